#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# What a request costs that another node carries out, beside a message of the fabric there and
# back, in turns. Arguments: bench_remote, with bench_fabric beside it, rounds, requests a turn.
# JSON lines.

set -euo pipefail

bench=$1 rounds=$2 times=$3
tools=${bench%/tests/*}/tools
tmp=$(mktemp -d "${TMPDIR:-/tmp}/ringgate-bench.XXXXXX")
daemons=()
finish()
{
	[ ${#daemons[@]} = 0 ] || kill "${daemons[@]}" 2>/dev/null || true
	rm -rf "$tmp"
}
trap finish EXIT

printf 'provider local\nnode 0 gateway %s/n0 gw\nnode 1 compute %s/n1 one\n' "$tmp" "$tmp" >"$tmp/cluster"
for n in 0 1; do
	"$tools/ringgate" cluster keygen -C "$tmp/cluster" -n $n >"$tmp/public$n"
done
cat "$tmp"/public? >>"$tmp/cluster"
printf 'allow any core memory\nnode any user:%s\n' "$(id -un)" >"$tmp/policy"
chmod 600 "$tmp/policy"
for n in 0 1; do
	"$tools/ringgated" -C "$tmp/cluster" -n $n -s "$tmp/s$n" --requests "socket $tmp/requests$n" \
		--requests "policy $tmp/policy" 2>"$tmp/log$n" &
	daemons+=($!)
done
for _ in $(seq 200); do
	! "$bench" "$tmp/requests0" "$tmp/requests1" 0 1 >/dev/null 2>&1 || break
	sleep 0.1
done
for _ in $(seq "$rounds"); do
	"$bench" "$tmp/requests0" "$tmp/requests1" 0 "$times" || { cat "$tmp"/log? >&2; exit 1; }
	"${bench%/*}/bench_fabric" send-lat 64 "$times" | sed 's/^{/{"what": "trip", /'
done
