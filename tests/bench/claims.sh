#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# What it costs to claim tasks of another node by operations of the fabric, beside requests for a queue
# whose home is there, in turns: natively over shared memory ("local"), in a VM over Soft-RoCE ("rdma").
# Arguments: local|rdma, the folder of benchmarks, rounds, times. JSON lines.

set -euo pipefail

mode=$1 bin=$2 rounds=$3 times=$4
tools=${bin%/tests/*}/tools
tmp=$(mktemp -d "${TMPDIR:-/tmp}/ringgate-bench.XXXXXX")
daemons=()
finish()
{
	[ ${#daemons[@]} = 0 ] || kill "${daemons[@]}" 2>/dev/null || true
	wait
	[ "$mode" = local ] || rxe_pair_down
	rm -rf "$tmp"
}
trap finish EXIT

if [ "$mode" = rdma ]; then
	# shellcheck source=tests/bench/lib/rxe.sh
	. tests/bench/lib/rxe.sh
	bench_rxe_up
	ulimit -l unlimited
	printf 'provider verbs\nnode 0 gateway %s gw\nnode 1 compute %s one\n' "${RGATE_BENCH_ADDRS%,*}" \
		"${RGATE_BENCH_ADDRS#*,}" >"$tmp/cluster"
	cp "$bin/bench_fabric" "$bin/bench_claim" "$tools/ringgated" "$tools/ringgate" "$tools/ringgate-spawner" /run
	bin=/run tools=/run
else
	printf 'provider local\nnode 0 gateway %s/n0 gw\nnode 1 compute %s/n1 one\n' "$tmp" "$tmp" >"$tmp/cluster"
fi
for n in 0 1; do
	"$tools/ringgate" cluster keygen -C "$tmp/cluster" -n $n >"$tmp/public$n"
done
cat "$tmp"/public? >>"$tmp/cluster"
printf 'allow any core queue\nnode any user:%s\n' "$(id -un)" >"$tmp/policy"
chmod 600 "$tmp/policy"

# The fabric first: two daemons that are there have the devices' ports, and look at them.
for _ in $(seq "$rounds"); do
	for op in cas-lat:8:1 read-lat:64:1 claim-lat:64:1 claims-lat:8:32; do
		IFS=: read -r name bytes batch <<<"$op"
		timeout 120 "$bin/bench_fabric" "$name" "$bytes" "$times" "$batch"
	done
done
for n in 0 1; do
	"$tools/ringgated" -C "$tmp/cluster" -n $n -s "$tmp/s$n" --requests "socket $tmp/requests$n" \
		--requests "policy $tmp/policy" 2>"$tmp/log$n" &
	daemons+=($!)
done
for _ in $(seq 200); do
	! timeout 20 "$bin/bench_claim" "$tmp/requests0" "$tmp/requests1" 0 1 >/dev/null 2>&1 || break
	sleep 0.2
done
for _ in $(seq "$rounds"); do
	timeout 120 "$bin/bench_claim" "$tmp/requests0" "$tmp/requests1" 0 "$times" || { cat "$tmp"/log? >&2; exit 1; }
done
