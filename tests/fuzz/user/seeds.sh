#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# Records what the fuzzers begin with, in a VM: the module's netlink answers, as
# strace shows them, and captured traffic. seeds.py makes the seeds of it:
#
#	scripts/lab -o build/seeds -- tests/fuzz/user/seeds.sh
#	tests/fuzz/user/seeds.py build/seeds

set -euo pipefail

out=${LAB_OUT:?run this in scripts/lab}
ringgate=${RGATE_BUILD:-build}/tools/ringgate

[ -e /sys/module/ringgate ] || "$ringgate" load --module "$RGATE_KO"
ip link set lo up
ip link add v0 type veth peer name v1
ip netns add far
ip link set v1 netns far
ip addr add 10.9.0.1/24 dev v0
ip -6 addr add fd00::1/64 dev v0 nodad
ip link set v0 up
ip link add link v0 name v0.5 type vlan id 5
ip addr add 10.9.5.1/24 dev v0.5
ip link set v0.5 up
far() { ip netns exec far "$@"; }
far ip addr add 10.9.0.2/24 dev v1
far ip -6 addr add fd00::2/64 dev v1 nodad
far ip link set v1 up
far ip link add link v1 name v1.5 type vlan id 5
far ip addr add 10.9.5.2/24 dev v1.5
far ip link set v1.5 up

spy()
{
	local name=$1
	shift
	strace -f -e trace=recvmsg -e read=all -o "$out/$name.strace" "$@" >/dev/null 2>&1 || true
}

spy events timeout 20 "$ringgate" events &
events=$!
sleep 1
"$ringgate" capture v0 -w "$out/traffic.pcapng" --rings 3 --chain &
capture=$!
"$ringgate" capture v0 -w /dev/null --slots 64 udp port 53 or ip6 &
small=$!
sleep 2

far ping -q -c 2 -i 0.2 10.9.0.1
far ping -q -c 2 -i 0.2 fd00::1
far ping -q -c 2 -i 0.2 -s 4000 10.9.0.1
far ping -q -c 2 -i 0.2 -s 4000 fd00::1
far ping -q -c 2 -i 0.2 10.9.5.1
python3 -c '
import socket
s = socket.create_server(("10.9.0.1", 99))
while s.accept()[0].send(b"x" * 3000): pass
' &
server=$!
sleep 1
far python3 -c '
import socket
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in (0, 1, 30, 1400): u.sendto(b"u" * n, ("10.9.0.1", 53))
u = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
u.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_DSTOPTS, bytes([0, 0, 1, 4, 0, 0, 0, 0]))
u.sendto(b"ext", ("fd00::1", 53))
socket.create_connection(("10.9.0.1", 99)).recv(5000)
'
kill $server || true

spy status "$ringgate" status --json
spy stats "$ringgate" stats
spy attach "$ringgate" attach lo --ring 1
spy refused "$ringgate" attach nosuchdev --ring 1
spy set "$ringgate" set 1 --sample 3
spy missing "$ringgate" detach 99
spy detach "$ringgate" detach 1
kill -INT $capture $small
wait $capture $small || true
wait $events || true
ls -la "$out"
