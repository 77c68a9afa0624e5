#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# Runs in a VM that counts instructions (scripts/bench icount): every receiver of
# bench_cost with two sizes and two senders. Arguments: directory with bench_cost
# and nfdrop.ko; ringgate.ko or "none" (the rivals alone); bursts.

set -eu

dir=$1 module=$2 bursts=$3
own=02:00:00:00:00:01 other=02:00:00:00:00:99

# Programs run from memory: the file server would be in the figures.
cp "$dir/bench_cost" "$dir/nfdrop.ko" /run/

setup()
{
	modprobe -a veth pktgen
	[ "$module" = none ] || insmod "$module"
	sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
	ip link add veth0 type veth peer name veth1
	ip link set veth1 address $own
	ip addr add 10.9.0.1/24 dev veth1
	ip link set veth0 up
	ip link set veth1 up
}

cost() { /run/bench_cost -l "$len" -n "$bursts" -s "$sender" "$@"; }

# With the frames dropped behind whatever taps them
cost_drop()
{
	insmod /run/nfdrop.ko ifname=veth1
	cost "$@"
	rmmod nfdrop
}

setup
for sender in pktgen packet; do
	for len in 64 1500; do
		cost_drop drop
		if [ "$module" != none ]; then
			cost ring
			cost ring_coarse
		fi
		cost_drop tpacket_v3
		# as a capture sees what is for another host: the stack drops it
		cost -m $other -N "tpacket_v3 stack" tpacket_v3
		cost xdp_drop
		if [ "$module" != none ]; then
			cost ring_xdp
			cost ring_xdp_coarse
		fi
		cost af_xdp
		cost recvmmsg
	done
done
