#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# Very many sessions at one daemon; prints lines of JSON. Users are only told apart where this
# is root. Arguments: bench_sessions, sessions that are idle, processes that ask, requests of
# each, seconds.

set -euo pipefail

bench=$1 idle=$2 processes=$3 in_flight=$4 seconds=$5
tools=${bench%/tests/*}/tools
# shellcheck source=tests/bench/lib/cluster.sh
. "$(dirname "$0")/lib/cluster.sh"
chmod 755 "$tmp"
ulimit -n "$(ulimit -Hn)"

cluster_local
most=$((idle + processes + 8))
policy 'allow any core' \
	"limit any sessions $most requests $((processes * in_flight + most)) memory 4G"
node 0
daemon=${pids[0]}
for _ in $(seq 100); do
	[ ! -S "$tmp/requests0" ] || break
	sleep 0.1
done
"$bench" idle "$tmp/requests0" "$daemon" "$idle" "$seconds" || { cat "$tmp/log0" >&2; exit 1; }

# One user has 1 of 15 of the processes, the others 2, 4 and the rest.
part=$((processes / 15))
users=("$(id -u):$processes")
[ "$(id -u)" != 0 ] || [ $part = 0 ] ||
	users=("64001:$part" "64002:$((2 * part))" "64003:$((4 * part))" "64004:$((processes - 7 * part))")
"$bench" fair "$tmp/requests0" "$in_flight" "$seconds" "${users[@]}" || { cat "$tmp/log0" >&2; exit 1; }
