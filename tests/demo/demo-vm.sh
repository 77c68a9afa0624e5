#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# The module's half of the demonstration, in a VM: two namespaces joined by veth,
# traffic of three kinds, each into a ring and then to recvmmsg. Prints lines of
# JSON for scripts/demo. Arguments: directory of the demo programs; module; in how many
# rounds ring and recvmmsg take turns.

set -eu

bin=$1 module=$2 rounds=$3
work=$(mktemp -d)
server=

finish()
{
	[ -z "$server" ] || kill "$server"
	ip netns del sender 2>/dev/null || true
	ip netns del receiver 2>/dev/null || true
	rmmod ringgate 2>/dev/null || true
	rm -rf "$work"
}
trap finish EXIT

network()
{
	modprobe veth
	ip netns add sender
	ip netns add receiver
	ip -n sender link add veth0 mtu 9216 type veth \
		peer name veth1 mtu 9216 netns receiver
	ip -n sender addr add 10.77.0.1/24 dev veth0
	ip -n receiver addr add 10.77.0.2/24 dev veth1
	ip -n sender link set veth0 up
	ip -n receiver link set veth1 up
	# neighbours once and for all: no ARP in between
	ip -n sender neigh add 10.77.0.2 dev veth0 \
		lladdr "$(ip netns exec receiver cat /sys/class/net/veth1/address)"
	ip -n receiver neigh add 10.77.0.1 dev veth1 \
		lladdr "$(ip netns exec sender cat /sys/class/net/veth0/address)"
}

sender="ip netns exec sender"
ring() { ip netns exec receiver "$bin/demo_ring" "$@"; }
plain() { ip netns exec receiver "$bin/demo_recv" "$@"; }

udp()
{
	echo "# datagrams over veth into a ring of the module, paced and then fast"
	send="$sender $bin/demo_send"
	export DEMO_TEST=vm-udp-paced
	ring -i veth1 -f "udp port 9000" -k stream -n 4000 -s -p -- \
		$send -n 4000 -l 512 -r 2000 -s 10.77.0.2 9000
	export DEMO_TEST=vm-udp-fast
	for _ in $(seq "$rounds"); do
		ring -i veth1 -f "udp port 9000" -k stream -n 24000 -S 32768 -- \
			$send -n 24000 -l 512 10.77.0.2 9000
		plain -u 9000 -n 24000 -- $send -n 24000 -l 512 10.77.0.2 9000
	done
}

tcp()
{
	echo "# a TCP download, mirrored into the ring"
	mkdir "$work/www"
	head -c 25165824 /dev/urandom >"$work/www/file"
	head -c 67108864 /dev/urandom >"$work/www/large"
	$sender busybox httpd -f -p 10.77.0.1:8080 -h "$work/www" &
	server=$!
	get="curl -sS --fail --retry 5 --retry-connrefused --retry-delay 1 \
		-o $work/got http://10.77.0.1:8080"
	# connects only: the server is up from then on
	ip netns exec receiver $get/file
	export DEMO_TEST=vm-tcp
	# slots that hold a merged segment of 64 KiB in one chain
	ring -i veth1 -f "tcp src port 8080" -m -k tcp -S 8192 -Z 4096 -c -s -- $get/file
	sum() { sha256sum "$1" | cut -d' ' -f1; }
	echo "{\"test\":\"vm-tcp\",\"who\":\"sender\",\"hash\":\"sha256:$(sum "$work/www/file")\",\"bytes\":$(stat -c %s "$work/www/file")}"
	echo "{\"test\":\"vm-tcp\",\"who\":\"curl\",\"hash\":\"sha256:$(sum "$work/got")\",\"bytes\":$(stat -c %s "$work/got")}"
	export DEMO_TEST=vm-tcp-fast
	for _ in $(seq "$rounds"); do
		# a segment, a slot: a chain of 17 takes a tenth more of the time
		ring -i veth1 -f "tcp src port 8080" -m -k frames -S 256 -Z 65536 -c -- $get/large
		plain -i veth1 -f "tcp src port 8080" -- $get/large
	done
	kill $server
	server=
}

replay()
{
	echo "# frames of a pcapng file: VLANs, fragments, IPv6, jumbo frames"
	"$bin/demo_mkpcap" "$work/frames.pcapng"
	filter="ether src 02:72:67:00:00:01"
	times=800 frames=11200
	send="$sender $bin/demo_replay -n $times"
	export DEMO_TEST=vm-replay
	ring -i veth1 -f "$filter" -k frames -n $frames -S 32768 -c -s -- \
		$send -s veth0 "$work/frames.pcapng"
	export DEMO_TEST=vm-replay-fast
	for _ in $(seq "$rounds"); do
		ring -i veth1 -f "$filter" -k frames -n $frames -S 32768 -c -- \
			$send veth0 "$work/frames.pcapng"
		plain -i veth1 -f "$filter" -n $frames -- $send veth0 "$work/frames.pcapng"
	done
}

insmod "$module"
network
udp
tcp
replay
echo "{\"test\":\"vm\",\"who\":\"kernel\",\"release\":\"$(uname -r)\"}"
