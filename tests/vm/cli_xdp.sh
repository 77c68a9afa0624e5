#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 400
# The CLI and XDP: programs come onto devices and go with their attachments.

if [ "${1:-}" != inside ]; then
	exec unshare -n -m "$0" inside
fi

# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"
frames=$cli_dir/lib/frames.py

# Devices of this network namespace, not of the one outside; no BPF file system yet
mount -t sysfs sysfs /sys
sysctl -qw net.ipv6.conf.default.disable_ipv6=1
ip link set lo up
ip link add v0 type veth peer name v1
ip netns add xdp-peer
ip link set v0 netns xdp-peer
ip netns exec xdp-peer ip link set v0 up
ip netns exec xdp-peer ip addr add 10.9.0.1/24 dev v0
ip link set v1 up
ip addr add 10.9.0.2/24 dev v1

[ ! -e /sys/module/ringgate ] || rmmod ringgate ||
	{ echo "Bail out! the module is loaded and in use"; exit 1; }
"$ringgate" load --module "$RGATE_KO" >/dev/null ||
	{ echo "Bail out! the module cannot be loaded"; exit 1; }
if [ ! -e /sys/kernel/btf/ringgate ]; then
	skip "XDP" "this kernel does not know the module's types"
	"$ringgate" unload >/dev/null
	finish
	exit
fi

has_program()
{
	[ "$(has_xdp)" = 1 ]
}

said()
{
	[ "$(wc -l <"$tmp/example")" -ge "$1" ]
}

# Values of a key over all attachments of `status --json`, in order; a Python for each
# would take most of the time.
values()
{
	"$ringgate" status --json | sed -n '/"attachments"/,$p' |
		sed -n "s/^ *\"$1\": \"*\([^\",]*\).*/\1/p" | paste -sd ' '
}

attachments()
{
	values fanout | wc -w
}

attached()
{
	[ "$(attachments)" = "$1" ]
}

# A ring: that of a capture with a filter that nothing matches
hold()
{
	"$ringgate" capture -q -w /dev/null v1 ether proto 0x1234 2>/dev/null &
	pid=$!
	wait_for 20 attached 1
	ring=$("$ringgate" status | awk '$1 == "RING" { getline; print $1; exit }')
}

let_go()
{
	kill -INT "$pid"
	wait "$pid"
}

# Of the last attachment
last()
{
	values "$1" | awk '{ print $NF }'
}

at_least()
{
	[ "$(last "$1")" -ge "$2" ]
}

pins()
{
	find /sys/fs/bpf/ringgate -type f | wc -l
}

has_xdp()
{
	ip -d link show v1 | grep -c 'prog/xdp'
}

hold
run "$ringgate" doctor
like "doctor: XDP programs can call the module" "$out" 'xdp +.*can call'
run "$ringgate" attach --xdp v1 --ring "$ring"
is "no BPF file system: status 1" "$rc/$(attachments)" "1/1"
like "no BPF file system: says how to mount it" "$err" 'mount -t bpf'
mount -t bpf bpf /sys/fs/bpf
mkdir -m 777 /sys/fs/bpf/ringgate
chmod 777 /sys/fs/bpf/ringgate
run "$ringgate" attach --xdp v1 --ring "$ring"
is "a folder of everyone's: status 1" "$rc/$(attachments)" "1/1"
rmdir /sys/fs/bpf/ringgate
mkdir -m 700 /sys/fs/bpf/ringgate
chown 65534 /sys/fs/bpf/ringgate
run "$ringgate" attach --xdp v1 --ring "$ring"
is "a folder of somebody's: status 1" "$rc/$(attachments)" "1/1"
like "a folder of somebody's: says so" "$err" "is not root's alone"
rmdir /sys/fs/bpf/ringgate
run "$ringgate" attach --xdp v1 --ring "$ring" --priority 3
is "a priority: status 2" "$rc" 2

run "$ringgate" attach --xdp v1 --ring "$ring" --filter 'udp port 7777'
is "attach --xdp: status 0" "$rc" 0
att=$out
is "attach --xdp: as asked" "$(values kind)/$(values ifname)/$(pins)" "hook xdp/v1 v1/1"
is "attach --xdp: in the driver" "$(has_xdp)/$(ip -d link show v1 | grep -c xdpgeneric)" 1/0
ip netns exec xdp-peer "$frames" udp 10.9.0.2 7777 10 100
ip netns exec xdp-peer "$frames" udp 10.9.0.2 7778 10 100
wait_for 20 at_least seen 20
is "attach --xdp: what matches is in the ring" \
	"$(last delivered)" 10
ok "attach --xdp: the stack hears the rest" ip netns exec xdp-peer ping -c 1 -W 5 10.9.0.2
run "$ringgate" attach --xdp v1 --ring "$ring"
is "a second program: status 1" "$rc/$(attachments)" "1/2"
like "a second program: says who is there" "$err" 'v1 has an XDP program already.*ringgate'
run "$ringgate" set "$att" --filter 'udp port 7778'
is "set --filter: the program's, status 1" "$rc" 1
run "$ringgate" unload
is "unload: status 1" "$rc" 1
like "unload: names the program" "$err" 'XDP program [0-9]+ \(ringgate\)'
run "$ringgate" detach "$att"
is "detach: status 0, the program is gone" "$rc/$(has_xdp)/$(pins)" 0/0/0

run "$ringgate" attach --xdp lo --ring "$ring"
is "a driver without XDP: status 1" "$rc/$(attachments)" "1/1"
like "a driver without XDP: says what does it" "$err" '--xdp-generic'
run "$ringgate" attach --xdp-generic v1 --ring "$ring" --steal --filter icmp
is "attach --xdp-generic: status 0" "$rc/$(ip -d link show v1 | grep -c xdpgeneric)" 0/1
att=$out
if ip netns exec xdp-peer ping -c 1 -W 2 10.9.0.2 >/dev/null; then
	result 1 "attach --xdp-generic --steal: the stack does not hear it"
else
	result 0 "attach --xdp-generic --steal: the stack does not hear it"
fi
is "attach --xdp-generic --steal: the ring has it" "$(last delivered)" 1

# The ring ends, and with it the attachment; the program only when somebody looks.
let_go
ok "without a ring the stack has it all again" ip netns exec xdp-peer ping -c 1 -W 5 10.9.0.2
hold
is "the program is left" "$(has_xdp)/$(pins)" 1/1
run "$ringgate" attach --xdp v1 --ring "$ring"
is "attach --xdp: takes the place of what was left" "$rc/$(has_xdp)/$(pins)" 0/1/1
let_go
run "$ringgate" unload
is "unload: takes away what was left" "$rc/$(has_xdp)/$(pins)" 0/0/0

# A program of one's own
filter=$build/examples/xdp_filter
if [ -e "$filter.bpf.o" ]; then
	"$ringgate" load --module "$RGATE_KO" >/dev/null
	"$filter" "$filter.bpf.o" v1 7777 >"$tmp/example" 2>"$tmp/example.err" &
	pid=$!
	wait_for 30 has_program
	ip netns exec xdp-peer "$frames" udp 10.9.0.2 7778 5 100
	ip netns exec xdp-peer "$frames" udp 10.9.0.2 7777 5 100
	wait_for 20 said 5
	kill "$pid"
	wait "$pid" 2>/dev/null
	is "an example: has the frames of its port alone" \
		"$(sort "$tmp/example" | uniq -c | sed 's/^ *//')" "5 142 bytes, ip protocol 17"
	sed 's/^/# /' "$tmp/example.err"
	run "$ringgate" unload --wait 20
	is "an example: nothing is left of it" "$rc/$(has_xdp)" 0/0
else
	skip "an example" "there is no clang to build it"
fi

ip link del v1
umount /sys/fs/bpf
finish
