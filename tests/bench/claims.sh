#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# What it costs to claim tasks of another node by operations of the fabric, beside requests for a queue
# whose home is there, in turns: natively over shared memory ("local"), in a VM over Soft-RoCE ("rdma").
# Arguments: local|rdma, the folder of benchmarks, rounds, times. JSON lines.

set -euo pipefail

mode=$1 bin=$2 rounds=$3 times=$4
tools=${bin%/tests/*}/tools
# shellcheck source=tests/bench/lib/cluster.sh
. "$(dirname "$0")/lib/cluster.sh"

where=(local "$tmp/n0" "$tmp/n1")
if [ "$mode" = rdma ]; then
	# shellcheck source=tests/bench/lib/rxe.sh
	. tests/bench/lib/rxe.sh
	trap 'cleanup; rxe_pair_down' EXIT
	bench_rxe_up
	ulimit -l unlimited
	where=(verbs "${RGATE_BENCH_ADDRS%,*}" "${RGATE_BENCH_ADDRS#*,}")
	cp "$bin/bench_fabric" "$bin/bench_claim" "$tools/ringgated" "$tools/ringgate" "$tools/ringgate-spawner" /run
	bin=/run tools=/run
fi
cluster_of_two "${where[@]}"
policy 'allow any core queue' "node any user:$(id -un)"

# The fabric first: two daemons that are there have the devices' ports, and look at them.
for _ in $(seq "$rounds"); do
	for op in cas-lat:8:1 read-lat:64:1 claim-lat:64:1 claims-lat:8:32 shard-lat:48:1 shard-lat:48:32; do
		IFS=: read -r name bytes batch <<<"$op"
		timeout 120 "$bin/bench_fabric" "$name" "$bytes" "$times" "$batch"
	done
done
node 0
node 1
for _ in $(seq 200); do
	! timeout 20 "$bin/bench_claim" "$tmp/requests0" "$tmp/requests1" 0 1 >/dev/null 2>&1 || break
	sleep 0.2
done
for _ in $(seq "$rounds"); do
	timeout 120 "$bin/bench_claim" "$tmp/requests0" "$tmp/requests1" 0 "$times" || { cat "$tmp"/log? >&2; exit 1; }
done
