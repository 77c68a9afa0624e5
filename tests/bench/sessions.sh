#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# Very many sessions at one daemon; prints lines of JSON. Users are only told apart where this
# is root. Arguments: bench_sessions, sessions that are idle, processes that ask, requests of
# each, seconds.

set -euo pipefail

bench=$1 idle=$2 processes=$3 in_flight=$4 seconds=$5
tools=${bench%/tests/*}/tools
tmp=$(mktemp -d)
daemon=
cleanup()
{
	[ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
	rm -rf "$tmp"
}
trap cleanup EXIT
chmod 755 "$tmp"
ulimit -n "$(ulimit -Hn)"

printf 'provider local\nnode 0 gateway %s/n0 gw\nnode 1 compute %s/n1 one\n' "$tmp" "$tmp" >"$tmp/cluster"
for n in 0 1; do
	"$tools/ringgate" cluster keygen -C "$tmp/cluster" -n $n >"$tmp/public$n"
done
cat "$tmp"/public? >>"$tmp/cluster"
most=$((idle + processes + 8))
printf 'allow any core\nlimit any sessions %d requests %d memory 4G\n' $most \
	$((processes * in_flight + most)) >"$tmp/policy"
chmod 600 "$tmp/policy"
"$tools/ringgated" -C "$tmp/cluster" -n gw -s "$tmp/s" --requests "socket $tmp/requests" \
	--requests "policy $tmp/policy" 2>"$tmp/log" &
daemon=$!
for _ in $(seq 100); do
	[ ! -S "$tmp/requests" ] || break
	sleep 0.1
done
"$bench" idle "$tmp/requests" $daemon "$idle" "$seconds" || { cat "$tmp/log" >&2; exit 1; }

# One user has 1 of 15 of the processes, the others 2, 4 and the rest.
part=$((processes / 15))
users=("$(id -u):$processes")
[ "$(id -u)" != 0 ] || [ $part = 0 ] ||
	users=("64001:$part" "64002:$((2 * part))" "64003:$((4 * part))" "64004:$((processes - 7 * part))")
"$bench" fair "$tmp/requests" "$in_flight" "$seconds" "${users[@]}" || { cat "$tmp/log" >&2; exit 1; }
