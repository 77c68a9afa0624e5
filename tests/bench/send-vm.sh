#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# Runs in a VM that counts instructions (scripts/bench send): the senders of bench_cost on
# a device that drops what it gets, and programs that send back what they get. Arguments:
# directory with bench_cost and nfdrop.ko; ringgate.ko; bursts.

set -eu

dir=$1 module=$2 bursts=$3
own=02:00:00:00:00:01 other=02:00:00:00:00:00

# Programs run from memory: the file server would be in the figures.
cp "$dir/bench_cost" "$dir/nfdrop.ko" /run/

modprobe -a dummy veth
insmod "$module"
sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
ip link add dummy0 type dummy
ip link set dummy0 up
for len in 64 1514; do
	for sender in ring tx_ring tx_ring_direct packet_queue packet; do
		/run/bench_cost -p dummy0 -l "$len" -n "$bursts" -s "$sender" drop
	done
done

# The other end is for others' frames, which its stack drops at once.
ip link add veth0 type veth peer name veth1
ip link set veth1 address $own
ip addr add 10.9.0.1/24 dev veth1
ip link set veth0 up
ip link set veth1 up
ip neigh add 10.9.0.2 lladdr $other dev veth1 nud permanent

cost() { /run/bench_cost -l "$len" -n "$bursts" -s packet "$@"; }

# With the frames dropped behind whatever taps them
cost_drop()
{
	insmod /run/nfdrop.ko ifname=veth1
	cost "$@"
	rmmod nfdrop
}

for len in 64 1500; do
	cost_drop -N "echo none" drop
	cost echo_ring
	cost_drop echo_packet
	cost echo_udp
done
