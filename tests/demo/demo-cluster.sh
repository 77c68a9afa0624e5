#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# The cluster's half of the demonstration: a gateway and two compute nodes, all on this
# machine. "local": over shared memory, datagrams to a UDP socket of the gateway's.
# "rdma": over Soft-RoCE, from a namespace that is the internet through the kernel
# module; also TCP, replayed frames, and the same datagrams forwarded by the kernel.
# Prints lines of JSON for scripts/demo.
# Arguments: local|rdma, directory of the demo programs, of the tools, the module.

set -euo pipefail

mode=$1 bin=$2 tools=$3 module=${4:-}
work=$(mktemp -d "${TMPDIR:-/tmp}/ringgate-demo.XXXXXX")
pids=()
server=''

finish()
{
	[ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	wait
	if [ "$mode" = rdma ]; then
		ip netns del internet 2>/dev/null || true
		ip netns del plain 2>/dev/null || true
		rmmod ringgate 2>/dev/null || true
	fi
	[ "${failed:-1}" = 0 ] || sed 's/^/# /' "$work"/log* >&2
	rm -rf "$work"
}
trap finish EXIT

# Three devices in the initial namespace, where Soft-RoCE works on all kernels. All
# addresses are this machine's, so rules say what goes over which wire.
rdma_nodes()
{
	local i dev ip

	modprobe -a veth bridge rdma_rxe rdma_ucm
	sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv4.conf.all.rp_filter=0
	ip link add rgbr mtu 4200 type bridge
	ip link set rgbr up
	ip rule add pref 7790 lookup local
	ip rule del pref 0
	for i in 0 1 2; do
		dev=rgn$i ip=10.80.0.$((i + 1))
		ip link add $dev mtu 4200 type veth peer name rgp$i mtu 4200
		ip link set rgp$i master rgbr up
		ip addr add $ip/24 dev $dev
		sysctl -qw net.ipv4.conf.$dev.rp_filter=0 net.ipv4.conf.$dev.accept_local=1 \
			net.ipv4.conf.$dev.arp_ignore=1 net.ipv4.conf.$dev.arp_announce=2
		ip link set $dev up
		ip -batch - <<-END
			route replace 10.80.0.0/24 dev $dev src $ip table 77$i
			rule add pref 7780 iif $dev lookup local
			rule add pref 7781 from $ip to $ip lookup local
			rule add pref 7782 from $ip lookup 77$i
			rule add pref 7783 oif $dev lookup 77$i
		END
		rdma link add rgd$i type rxe netdev $dev
	done
}

# internet --- gateway --- plain (which the kernel forwards to)
wires()
{
	ip netns add internet
	ip netns add plain
	ip -n internet link add i0 mtu 9216 type veth peer name gw0 mtu 9216 netns $$
	ip link add gw1 mtu 9216 type veth peer name p0 mtu 9216 netns plain
	ip -n internet addr add 10.77.0.1/24 dev i0
	ip addr add 10.77.0.2/24 dev gw0
	ip addr add 10.79.0.1/24 dev gw1
	ip -n plain addr add 10.79.0.2/24 dev p0
	ip -n internet link set i0 up
	ip -n plain link set p0 up
	ip link set gw0 up
	ip link set gw1 up
	ip -n internet route add default via 10.77.0.2
	ip -n plain route add default via 10.79.0.1
	sysctl -qw net.ipv4.ip_forward=1
	# Known from the start: frames that wait for ARP are sent by who has the answer, on any CPU, and
	# those behind them pass them.
	ip -n internet neigh add 10.77.0.2 dev i0 lladdr "$(cat /sys/class/net/gw0/address)" nud permanent
}

cluster_file()
{
	local id

	if [ "$mode" = local ]; then
		cat <<-END
			provider local
			node 0 gateway $work/n0 gateway
			node 1 compute $work/n1 one
			node 2 compute $work/n2 two
		END
	else
		cat <<-END
			provider verbs
			node 0 gateway 10.80.0.1 gateway
			node 1 compute 10.80.0.2 one
			node 2 compute 10.80.0.3 two
		END
	fi >"$work/cluster"
	echo "timeout 10000" >>"$work/cluster"
	for id in 0 1 2; do
		"$tools/ringgate" cluster keygen -C "$work/cluster" -n $id >>"$work/cluster"
	done
	cat >"$work/steer" <<-END
		web node:1 tcp src port 8080
		replayed node:2 ether src 02:72:67:00:00:01
		one node:1 udp dst port 9001
		two node:2 udp dst port 9002
	END
}

# node ID ARGUMENT...
node()
{
	local id=$1
	shift
	"$tools/ringgated" -C "$work/cluster" -n "$id" -s "$work/s$id" --pool 32M "$@" \
		2>>"$work/log$id" &
	pids+=($!)
}

up()
{
	local end=$((SECONDS + 30))

	until [ "$("$tools/ringgate" cluster status -s "$work/s0" --json 2>/dev/null |
		grep -c '"state": "up"')" = 2 ]; do
		[ $SECONDS -lt $end ] || { echo "the nodes do not connect" >&2; exit 1; }
		sleep 0.1
	done
}

# us of CPU time that this machine was not idle
busy() { awk -v hz="$(getconf CLK_TCK)" \
	'/^cpu / { printf "%.0f\n", ($2 + $3 + $4 + $7 + $8) * 1e6 / hz }' /proc/stat; }

# and that process $1 has had, all its threads
process() { awk '{ n += $1 } END { printf "%.0f\n", n / 1000 }' /proc/"$1"/task/*/schedstat; }

# cpu TEST WHO COMMAND...: runs it, and tells the CPU time of the machine and the gateway
cpu()
{
	local test=$1 who=$2 before gateway
	shift 2
	before=$(busy) gateway=$(process "${pids[0]}")
	"$@"
	echo "{\"test\":\"$test\",\"who\":\"$who\",\"machine_us\":$(($(busy) - before)),\
\"gateway_us\":$(($(process "${pids[0]}") - gateway))}"
}

# demo_ring at both nodes around the two senders; arguments: name, those of demo_send
both()
{
	local name=$1
	shift
	# shellcheck disable=SC2016 # for the inner shell
	DEMO_TEST=$name-1 "$bin/demo_ring" -R "$work/s1" -k stream "${ring[@]}" -- \
		env "DEMO_TEST=$name-2" "$bin/demo_ring" -R "$work/s2" -k stream "${ring[@]}" -- \
		sh -c 'name=$1 to=$2; shift 2
			DEMO_TEST=$name-1 "$@" "$to" 9001 & DEMO_TEST=$name-2 "$@" "$to" 9002; wait $!' \
		sh "$name" "$to" "${send[@]}" "$@"
}

udp()
{
	echo "# both nodes are up: datagrams to each of them, paced and then fast"
	ring=(-n "$paced" -s "${size[@]}")
	both "$mode-udp-paced" -n "$paced" -l 512 -r "$rate" -s
	ring=(-n "$fast" "${size[@]}")
	cpu "$mode-udp-fast" cpu-ring both "$mode-udp-fast" -n "$fast" -l 512
}

forwarded()
{
	echo "# the same datagrams, forwarded by the kernel"
	plain() {
		DEMO_TEST=$mode-udp-fast ip netns exec plain "$bin/demo_recv" -u 9000 -n "$1" -- \
			ip netns exec internet "$bin/demo_send" -n "$1" -l 512 10.79.0.2 9000
	}
	# the first pays for neighbours and caches
	plain 1000 >/dev/null
	cpu "$mode-udp-fast" cpu-forward plain $((2 * fast))
}

tcp()
{
	local get

	echo "# a TCP download to node 1"
	mkdir "$work/www"
	head -c 8388608 /dev/urandom >"$work/www/file"
	ip netns exec internet busybox httpd -f -p 10.77.0.1:8080 -h "$work/www" &
	server=$!
	get=(curl -sS --fail --retry 5 --retry-connrefused --retry-delay 1 -o "$work/got"
		http://10.77.0.1:8080/file)
	until curl -sS --fail -o /dev/null -r 0-0 http://10.77.0.1:8080/file 2>/dev/null; do
		sleep 0.1
	done
	sleep 0.5	# that connection's last segments are gone before there is a ring
	DEMO_TEST=rdma-tcp "$bin/demo_ring" -R "$work/s1" -k tcp "${size[@]}" -s -- "${get[@]}"
	sum() { sha256sum "$1" | cut -d' ' -f1; }
	echo "{\"test\":\"rdma-tcp\",\"who\":\"sender\",\"hash\":\"sha256:$(sum "$work/www/file")\",\"bytes\":8388608}"
}

replay()
{
	echo "# frames of a pcapng file to node 2"
	"$bin/demo_mkpcap" "$work/frames.pcapng"
	DEMO_TEST=rdma-replay "$bin/demo_ring" -R "$work/s2" -k frames -n 1400 "${size[@]}" -s -- \
		env DEMO_TEST=rdma-replay ip netns exec internet \
		"$bin/demo_replay" -n 100 -s i0 "$work/frames.pcapng"
}

echo "# starting the gateway and its nodes"
cluster_file
if [ "$mode" = local ]; then
	paced=5000 rate=5000 fast=20000 to=127.0.0.1
	size=(-S 32768 -Z 1024)
	send=("$bin/demo_send")
	node 0 -S "$work/steer" --source "udp 127.0.0.1:9001 slots 65536 slot_size 1024" \
		--source "udp 127.0.0.1:9002 slots 65536 slot_size 1024"
else
	paced=1000 rate=500 fast=4000 to=10.77.0.2
	size=(-S 8192 -Z 4096)
	send=(ip netns exec internet "$bin/demo_send")
	insmod "$module"
	rdma_nodes
	wires
	node 0 -S "$work/steer" \
		--source "module gw0 slots 16384 slot_size 4096 action steal \
filter udp portrange 9001-9002" \
		--source "module gw0 slots 8192 slot_size 4096 \
filter tcp src port 8080 or ether src 02:72:67:00:00:01"
fi
node 1
node 2
up
udp
if [ "$mode" = rdma ]; then
	forwarded
	tcp
	replay
fi
echo "{\"test\":\"$mode\",\"who\":\"gateway\",\"status\":$("$tools/ringgate" cluster status \
	-s "$work/s0" --json | tr -d '\n')}"
failed=0
