#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# The packet plane beside a post a frame, UDP over the same wire, and the kernel's
# forwarding between namespaces, taking turns. Natively over shared memory ("local"), in
# a VM over Soft-RoCE ("rdma"). Arguments: local|rdma, bench_plane, rounds, milliseconds,
# frame sizes. JSON lines.

set -eu

mode=$1 bench=$2 rounds=$3 ms=$4
shift 4
sizes=("$@")

# Namespaces of its own, which end with it
if [ "$mode" = local ] && [ -z "${PLANE_INSIDE:-}" ]; then
	PLANE_INSIDE=1 exec unshare -n -m "$0" "$mode" "$bench" "$rounds" "$ms" "$@"
fi

finish()
{
	ip netns del rgbsrc 2>/dev/null || true
	ip netns del rgbdst 2>/dev/null || true
	[ "$mode" = local ] || rxe_pair_down
}

# sender -- this namespace, which forwards -- receiver
forwarding()
{
	mkdir -p /run/netns
	ip netns add rgbsrc
	ip netns add rgbdst
	ip -n rgbsrc link add s0 type veth peer name f0 netns $$
	ip -n rgbdst link add r0 type veth peer name f1 netns $$
	ip -n rgbsrc addr add 10.82.0.1/24 dev s0
	ip addr add 10.82.0.2/24 dev f0
	ip addr add 10.83.0.2/24 dev f1
	ip -n rgbdst addr add 10.83.0.1/24 dev r0
	ip -n rgbsrc link set s0 up
	ip -n rgbdst link set r0 up
	ip link set f0 up
	ip link set f1 up
	ip -n rgbsrc route add default via 10.82.0.2
	ip -n rgbdst route add default via 10.83.0.2
	sysctl -qw net.ipv4.ip_forward=1
	# neighbours, before there is a flood
	ip netns exec rgbsrc ping -q -c 2 -i 0.2 -W 5 10.83.0.1 >/dev/null
}

kernel()
{
	local receiver

	ip netns exec rgbdst "$bench" -w recv -l "$1" -t "$ms" >"$out" &
	receiver=$!
	timeout 20 ip netns exec rgbsrc "$bench" -w send -l "$1" -t $((ms + 300)) -a 10.83.0.1 >/dev/null
	wait $receiver
	sed 's/"way":"recv"/"way":"kernel"/' "$out"
}

trap finish EXIT
out=$(mktemp)
if [ "$mode" = rdma ]; then
	# shellcheck source=tests/bench/lib/rxe.sh
	. tests/bench/lib/rxe.sh
	bench_rxe_up
	cp "$bench" /run/bench_plane
	bench=/run/bench_plane
else
	ip link set lo up
fi
forwarding

for ((i = 0; i < rounds; i++)); do
	for size in "${sizes[@]}"; do
		for way in batched single udp; do
			timeout 60 "$bench" -w $way -l "$size" -t "$ms"
		done
		kernel "$size"
	done
	for nodes in 1 2 4 7; do
		timeout 60 "$bench" -w batched -l 256 -t "$ms" -n $nodes
		timeout 60 "$bench" -w batched -l 256 -t "$ms" -n $nodes -c
	done
done
rm -f "$out"
