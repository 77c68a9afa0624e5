#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# Runs in a VM (scripts/bench pool, xfer and fabric): a benchmark on an RDMA device in
# software. Arguments: the program and its options. Its table goes to standard error,
# its JSON to standard output.

set -eu

program=$1
shift

modprobe rdma_rxe
sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
# room for a path MTU of 4096
ip link add rgv0 mtu 4200 type veth peer name rgv1 mtu 4200
ip addr add 10.77.0.1/24 dev rgv0
ip link set rgv0 up
ip link set rgv1 up
rdma link add rgrxe0 type rxe netdev rgv0
# the address is entered into the table of GIDs in the kernel's own time
tries=100
while ! grep -qs 0a4d:0001 /sys/class/infiniband/rgrxe0/ports/1/gids/1; do
	tries=$((tries - 1))
	[ $tries -gt 0 ] || { echo "rgrxe0 has no address" >&2; exit 1; }
	sleep 0.1
done

# From memory: the file server would be in the figures.
cp "$program" /run/bench
/run/bench "$@" -o /run/bench.json >&2
cat /run/bench.json
