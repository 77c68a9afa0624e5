# SPDX-License-Identifier: MIT OR GPL-2.0
# shellcheck shell=bash
#
# For benches with daemons: $tmp, and processes in the background, $pids, both of which end with the
# script, and a cluster of two nodes. To be sourced; $tools has the commands.

tmp=$(mktemp -d "${TMPDIR:-/tmp}/ringgate-bench.XXXXXX")
pids=()
cleanup()
{
	[ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null || true
	wait
	rm -rf "$tmp"
}
trap cleanup EXIT

# cluster_of_two PROVIDER ADDRESS ADDRESS: gw and one, at $tmp/cluster
cluster_of_two()
{
	local n

	printf 'provider %s\nnode 0 gateway %s gw\nnode 1 compute %s one\n' "$@" >"$tmp/cluster"
	for n in 0 1; do
		# shellcheck disable=SC2154 # who sources this has it
		"$tools/ringgate" cluster keygen -C "$tmp/cluster" -n $n >"$tmp/public$n"
	done
	cat "$tmp"/public? >>"$tmp/cluster"
}

cluster_local() { cluster_of_two local "$tmp/n0" "$tmp/n1"; }

# policy LINE...: of who may ask the daemons for what
policy()
{
	printf '%s\n' "$@" >"$tmp/policy"
	chmod 600 "$tmp/policy"
}

# node N: its daemon, which is asked at $tmp/requestsN, and says what it has to in $tmp/logN
node()
{
	"$tools/ringgated" -C "$tmp/cluster" -n "$1" -s "$tmp/s$1" --requests "socket $tmp/requests$1" \
		--requests "policy $tmp/policy" 2>"$tmp/log$1" &
	pids+=($!)
}
