#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 300
# capture without the module: what is in the file is what was sent.

# A network of its own: two devices, one cable
if [ "${1:-}" != inside ]; then
	if unshare -n true 2>/dev/null; then
		exec unshare -n "$0" inside
	elif unshare -rn true 2>/dev/null; then
		exec unshare -rn "$0" inside
	fi
	echo "1..0 # SKIP no network namespaces for this user"
	exit 0
fi

# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/lib/tap.sh"
frames=$cli_dir/lib/frames.py
filter=()

sysctl -qw net.ipv6.conf.default.disable_ipv6=1
ip link set lo up
ip link add v0 mtu 9000 type veth peer name v1 mtu 9000 ||
	skip_all "no veth devices on this kernel"
ip link set v0 up
ip link set v1 up

# A packet socket for all protocols is on the list as soon as it receives. (/sys
# would show the devices of the network namespace it was mounted in.)
listening()
{
	local index

	if [ "$1" = any ]; then
		awk '$4 == "0003" && $5 == 0 { found = 1 } END { exit !found }' /proc/net/packet
		return
	fi

	index=$(ip -o link show dev "$1" | cut -d: -f1)
	awk -v i="$index" '$4 == "0003" && $5 == i { found = 1 }
		END { exit !found }' /proc/net/packet
}

# capture DEVICE ARGUMENT...: in the background, until it receives
capture()
{
	local dev=$1
	shift
	timeout 60 "$ringgate" capture --userspace "$@" "$dev" "${filter[@]}" \
		>"$tmp/out" 2>"$tmp/err" &
	pid=$!
	wait_for 10 listening "${dev%%,*}"
}

# For as long as frames may still be on the way; then Ctrl-C
stop()
{
	sleep 0.5
	kill -INT "$pid"
	wait "$pid"
	rc=$?
	err=$(<"$tmp/err")
}

capture v1 -w "$tmp/a.pcapng" --slot-size 16K
"$frames" send v0
stop
is "Ctrl-C ends a capture with status 0" "$rc" 0
ok "all frames as they were sent" "$frames" check "$tmp/a.pcapng" interface=v1
like "summary tells how many" "$err" "8 packets captured"
is "the file is for its owner only" "$(stat -c %a "$tmp/a.pcapng")" 600

capture v1 -w "$tmp/b.pcapng" --slot-size 1K
"$frames" send v0
stop
ok "frames longer than a slot are cut, both lengths told" \
	"$frames" check "$tmp/b.pcapng" cut=960
like "summary tells what was cut" "$err" "3 of them cut short"

capture v1 -w "$tmp/c.pcapng" --slot-size 1K --chain
"$frames" send v0 5
stop
ok "chained frames are joined" "$frames" check "$tmp/c.pcapng" count=5

filter=(ether dst 01:00:5e:00:00:01)
capture v1 -w "$tmp/d.pcapng"
filter=()
"$frames" send v0
stop
is "a filter" "$("$frames" dump "$tmp/d.pcapng" |
	json '[len(p["data"]) // 2 for p in j["packets"]]')" "[114]"
is "a filter is told in the file" "$("$frames" dump "$tmp/d.pcapng" |
	json 'j["interfaces"][0]["filter"]')" "ether dst 01:00:5e:00:00:01"

if command -v tshark >/dev/null; then
	fields=$(tshark -r "$tmp/a.pcapng" -T fields -E separator=, -e vlan.id \
		-e frame.len -e frame.interface_name 2>/dev/null | head -c 4000)
	# (the outer tag of the fifth is of 802.1ad, another field)
	is "tshark reads it: lengths, VLANs and interface" "$fields" \
",60,v1
,114,v1
5,218,v1
4095,64,v1
9,322,v1
,1500,v1
,5014,v1
11,8018,v1"
else
	skip "tshark reads it" "tshark is not installed"
fi
if command -v tcpdump >/dev/null; then
	is "tcpdump reads it" "$(tcpdump --nano -nr "$tmp/c.pcapng" 2>/dev/null |
		grep -c 'length 8018')" 5
else
	skip "tcpdump reads it" "tcpdump is not installed"
fi

# To a pipe, read as it grows: what was sent is there before the capture ends.
mkfifo "$tmp/fifo"
cat "$tmp/fifo" >"$tmp/e.pcapng" &
reader=$!
capture v1 -w "$tmp/fifo" --slot-size 16K
"$frames" send v0
sleep 1
size=$(stat -c %s "$tmp/e.pcapng")
[ "$size" -gt 15000 ]
result $? "a pipe gets frames when nothing more is at hand"
stop
wait $reader
ok "and the whole file at the end" "$frames" check "$tmp/e.pcapng"

# A reader that leaves
head -c 1 <("$ringgate" capture --userspace -w - v1 2>"$tmp/err"
	echo $? >"$tmp/status") >/dev/null
wait_for 10 listening v1
"$frames" send v0 3
wait_for 20 test -s "$tmp/status"
is "a reader that leaves ends the capture with status 0" \
	"$(cat "$tmp/status" 2>/dev/null)" 0

run "$ringgate" capture --userspace -t 0.3 -w "$tmp/f.pcapng" v1
is "--time ends it" "$rc" 0
is "without packets: interface and statistics" "$("$frames" dump "$tmp/f.pcapng" |
	json '[i["name"] for i in j["interfaces"]], len(j["packets"]), j["stats"][0]["delivered"]')" \
	"(['v1'], 0, 0)"

capture v1 -c 2 -j
"$frames" send v0
wait "$pid"
is "--count ends it" $? 0
is "lines of JSON" "$(head -1 "$tmp/out" | json 'j["dev"], j["len"], j["proto"]')" \
	"('v1', 60, '0x88b5')"
is "--count lines" "$(wc -l <"$tmp/out")" 2
is "summary as JSON" "$(json 'j["packets"]' <"$tmp/err")" 2

# Several devices, and all of them
capture v1,lo -w "$tmp/g.pcapng" --slot-size 16K
wait_for 10 listening lo
"$frames" send v0
"$frames" udp 127.0.0.1 9 1 10
stop
is "several devices: an interface each" "$("$frames" dump "$tmp/g.pcapng" |
	json '[i["name"] for i in j["interfaces"]], sorted({p["interface"] for p in j["packets"]})')" \
	"(['v1', 'lo'], [0, 1])"

for f in a:whole b:cut c:chained d:filtered e:pipe f:empty g:two-devices; do
	readable "${f#*:}" "$tmp/${f%:*}.pcapng"
done

# Devices of different link types, and all of them: one link type in the file
links() { "$frames" dump "$1" | json 'sorted({i["link"] for i in j["interfaces"]})'; }
if ip tuntap add dev t0 mode tun 2>/dev/null; then
	ip addr add 192.0.2.1/24 dev t0
	ip link set t0 up
	"$cli_dir/lib/tun.py" t0 "$tmp/tun" &
	tun=$!
	wait_for 10 test -e "$tmp/tun"
	for devs in t0 v1,t0 any; do
		capture "$devs" -w "$tmp/t.pcapng" --slot-size 16K
		[ "$devs" != v1,t0 ] || wait_for 10 listening t0
		"$frames" send v0
		kill -USR1 $tun
		stop
		readable "$devs" "$tmp/t.pcapng"
		# raw IP, or cooked
		is "$devs: one link type" "$(links "$tmp/t.pcapng")" \
			"$([ $devs = t0 ] && echo '[101]' || echo '[113]')"
		is "$devs: the datagram is there" "$(tshark -nr "$tmp/t.pcapng" \
			-Y 'udp.dstport == 4242' -T fields -e frame.interface_name -e udp.payload \
			2>/dev/null)" "t0	74756e"
	done
	kill $tun
else
	skip "devices of several link types" "no tun devices here"
fi
timeout 60 "$ringgate" capture --userspace -t 0.3 -q -w "$tmp/n.pcapng" any
readable "any, without packets" "$tmp/n.pcapng"

# UDP: no privilege, and no module
listening_udp() { grep -q ":$(printf %04X "$1") " /proc/net/udp; }
timeout 60 "$ringgate" capture --udp 127.0.0.1:9999 -c 200 \
	-w "$tmp/u.pcapng" 2>"$tmp/err" &
pid=$!
wait_for 10 listening_udp 9999
"$frames" udp 127.0.0.1 9999 200 700
wait $pid
is "UDP: ends at --count" $? 0
ok "UDP: payloads as they were sent" "$frames" checkudp "$tmp/u.pcapng" 9999 200 700
is "UDP: link type is raw IP" "$("$frames" dump "$tmp/u.pcapng" |
	json 'j["interfaces"][0]["link"], j["interfaces"][0]["name"]')" \
	"(101, 'udp:127.0.0.1:9999')"
readable "UDP" "$tmp/u.pcapng"
if command -v tshark >/dev/null; then
	is "UDP: tshark finds no bad checksum" "$(tshark -r "$tmp/u.pcapng" \
		-o ip.check_checksum:TRUE -Y 'ip.checksum.status == 1 && udp.dstport == 9999' \
		2>/dev/null | wc -l)" 200
fi

# What cannot begin
run "$ringgate" capture --userspace nodev0 -t 1
is "no such device: status 1" "$rc" 1
like "no such device: says so" "$err" "nodev0: no such device in this network namespace"
run "$ringgate" capture --userspace v1 -t 1 portt 53
is "a wrong filter: status 1" "$rc" 1
run "$ringgate" capture --userspace -t 1 -w /nonexistent/x v1
is "a file that cannot be made: status 1" "$rc" 1
like "a file that cannot be made: says why" "$err" "its directory does not exist"
run "$ringgate" capture --userspace -t 1 -w /dev/full v1
is "a full disk: status 1" "$rc" 1
like "a full disk: says so" "$err" "the disk is full"

# The device goes while frames are awaited
capture v1 -w "$tmp/h.pcapng"
ip link del v0
wait_for 10 bash -c "! kill -0 $pid" || kill "$pid"
wait "$pid"
is "the device goes: status 1" $? 1
ok "the device goes: the file is complete" "$frames" dump "$tmp/h.pcapng"
readable "the device went" "$tmp/h.pcapng"
finish
