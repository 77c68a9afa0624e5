#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 400
# The CLI with the module: load, capture, attach, counters, events, unload.

if [ "${1:-}" != inside ]; then
	exec unshare -n -m "$0" inside
fi

# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"
# shellcheck source=tests/cli/lib/capture.sh
. "$cli_dir/lib/capture.sh"
frames=$cli_dir/lib/frames.py
json_served
# shellcheck disable=SC2034 # for readable()
readable_later=yes

# Devices of this network namespace, not of the one outside
mount -t sysfs sysfs /sys 2>/dev/null
sysctl -qw net.ipv6.conf.default.disable_ipv6=1
ip link set lo up
ip link add v0 mtu 9000 type veth peer name v1 mtu 9000
ip link set v0 up
ip link set v1 up

[ ! -e /sys/module/ringgate ] || rmmod ringgate ||
	{ echo "Bail out! the module is loaded and in use"; exit 1; }

# load and unload
run "$ringgate" unload
is "unload without module: status 3" "$rc" 3
run "$ringgate" load --module "$RGATE_KO" no_such_option=1
if [ "$rc" = 0 ]; then
	# the kernel takes unknown options with a warning only
	"$ringgate" unload >/dev/null
fi
run "$ringgate" load --module /dev/null
is "load of something else: status 1" "$rc" 1
run "$ringgate" load --module "$RGATE_KO"
is "load: status 0" "$rc" 0
# some releases have a plus sign in their names
like "load: says what" "$out" "loaded ringgate 0\.1\.0 from ${RGATE_KO//+/\\+}"
[ -c /dev/ringgate ]
result $? "load: the device is there"
run "$ringgate" load
is "load again: status 0" "$rc" 0
run "$ringgate" load --module "$RGATE_KO"
is "load again with a file: status 1" "$rc" 1
run "$ringgate" doctor
is "doctor: usable" "$rc" 0
run "$ringgate" status --json
is "status: loaded, nothing there" \
	"$(json 'j["module"]["loaded"], j["rings"], j["attachments"]' <<<"$out")" \
	"(True, [], [])"

begin 1 -w "$tmp/a.pcapng" --slot-size 16K v1
"$frames" send v0 3
end 24
is "capture: Ctrl-C, status 0" "$rc" 0
ok "capture: all frames as they were sent" \
	"$frames" check "$tmp/a.pcapng" count=3 interface=v1
like "capture: summary" "$err" "24 packets captured"
is "capture: interface statistics" "$("$frames" dump "$tmp/a.pcapng" |
	json '[(s["received"], s["dropped"], s["delivered"]) for s in j["stats"]]')" \
	"[(24, 0, 24)]"
if command -v tshark >/dev/null; then
	is "capture: tshark reads it" "$(HOME=$tmp tshark -r "$tmp/a.pcapng" \
		-T fields -E separator=, -e vlan.id -e frame.len 2>/dev/null |
		head -8 | paste -sd ' ')" \
		",60 ,114 5,218 4095,64 9,322 ,1500 ,5014 11,8018"
else
	skip "capture: tshark reads it" "tshark is not installed"
fi
if command -v tcpdump >/dev/null; then
	is "capture: tcpdump reads it" \
		"$(tcpdump -nr "$tmp/a.pcapng" 2>/dev/null | grep -c 'length')" 24
else
	skip "capture: tcpdump reads it" "tcpdump is not installed"
fi
readable "capture: whole frames" "$tmp/a.pcapng"

# devices of two link types, one of which sends nothing; and no frame at all
if ip link add t0 type gre local 127.0.0.1 remote 127.0.0.2 2>/dev/null ||
	ip tuntap add t0 mode tun 2>/dev/null; then
	ip link set t0 up
	begin 2 -w "$tmp/t.pcapng" v1,t0
	"$frames" send v0
	end 8
	readable "capture: of two link types" "$tmp/t.pcapng"
	is "... has the frames of the one" "$("$frames" dump "$tmp/t.pcapng" | json 'len(j["packets"])')" 8
	run "$ringgate" capture -q -t 0.3 -w "$tmp/e.pcapng" t0
	is "capture: nothing comes: status 0" "$rc" 0
	readable "capture: without frames" "$tmp/e.pcapng"
	ip link del t0
else
	skip "capture: of two link types" "neither GRE nor tun devices on this kernel"
fi

begin 1 -w "$tmp/b.pcapng" --slot-size 1K v1
"$frames" send v0
end 8
ok "capture: long frames are cut, both lengths told" \
	"$frames" check "$tmp/b.pcapng" cut=960
readable "capture: frames that were cut" "$tmp/b.pcapng"

begin 1 -w "$tmp/c.pcapng" --slot-size 1K --chain --rings 2 --fanout cpu v1
"$frames" send v0 5
end 40
ok "capture: chains over two rings are joined, in order" \
	"$frames" check "$tmp/c.pcapng" count=5
readable "capture: chains of two rings" "$tmp/c.pcapng"

# UDP payloads through the stack of another namespace; stolen or not
ip netns add peer
ip link set v0 netns peer
ip netns exec peer ip link set v0 up
ip netns exec peer ip addr add 10.9.0.1/24 dev v0
ip addr add 10.9.0.2/24 dev v1
ip netns exec peer ping -c 1 -W 5 10.9.0.2 >/dev/null
begin 1 -w "$tmp/u.pcapng" v1 udp dst port 9999
ip netns exec peer "$frames" udp 10.9.0.2 9999 300 1400
wait_for 20 delivered 300
end 300
ok "capture: UDP payloads as they were sent" \
	"$frames" checkudp "$tmp/u.pcapng" 9999 300 1400
readable "capture: with a filter" "$tmp/u.pcapng"

begin 1 -w "$tmp/s.pcapng" --steal v1 icmp
if ip netns exec peer ping -c 1 -W 2 10.9.0.2 >/dev/null; then
	result 1 "capture --steal: the stack does not see what is captured"
else
	result 0 "capture --steal: the stack does not see what is captured"
fi
end 1
readable "capture --steal" "$tmp/s.pcapng"
ok "capture: after it the stack has it all again" \
	ip netns exec peer ping -c 1 -W 5 10.9.0.2

# The same from a gateway's source
cluster_of_two "$tmp/cluster"
# gateway SOURCE: in the background, until it is attached
gateway()
{
	"$build/tools/ringgated" -C "$tmp/cluster" -n gw -s "$tmp/gw" --pool 16M --source "$1" \
		2>"$tmp/gw.err" &
	pid=$!
	wait_for 20 attached 1
}
gateway "module v1 slots 1024 slot_size 2048"
ok "a gateway mirrors unless it is told" ip netns exec peer ping -c 1 -W 5 10.9.0.2
kill "$pid"
wait "$pid"
for what in "all" "filter icmp"; do
	gateway "module v1 slots 1024 slot_size 2048 action steal $what"
	if ip netns exec peer ping -c 1 -W 2 10.9.0.2 >/dev/null; then
		result 1 "a gateway steals: $what"
	else
		result 0 "a gateway steals: $what"
	fi
	kill "$pid"
	wait "$pid"
done

# A ring for the other commands: that of a capture with a filter nothing matches
begin 1 -q v1 ether proto 0x1234
ring=$("$ringgate" status --json | json 'j["rings"][0]["id"]')
name=$("$ringgate" status --json | json 'j["rings"][0]["name"]')
run "$ringgate" status
like "status: the ring" "$out" "$ring +$name +4096 +2048"
run "$ringgate" unload
is "unload while busy: status 1" "$rc" 1
like "unload while busy: names the process" "$err" "pid $pid \(ringgate\)"

run "$ringgate" attach v1 --ring "$name" --filter 'udp port 7777' \
	--sample 1 --priority 5 --fanout hash
is "attach: status 0" "$rc" 0
att=$out
like "attach: prints the number" "$att" '^[0-9]+$'
entry="[a for a in j['attachments'] if a['id'] == $att][0]"
is "attach: as asked" "$("$ringgate" status --json |
	json "[${entry}[k] for k in ('ifname', 'action', 'fanout', 'priority', 'rings')]")" \
	"['v1', 'mirror', 'hash', 5, [$ring]]"
ip netns exec peer "$frames" udp 10.9.0.2 7777 10 100
ip netns exec peer "$frames" udp 10.9.0.2 7778 10 100
wait_for 10 seen 40
is "stats: counters" "$("$ringgate" stats "$ring" --json |
	json "${entry}['stats']['delivered'], j['rings'][0]['stats']['delivered']")" \
	"(10, 10)"
run "$ringgate" stats
like "stats: a table" "$out" "$name +10 "
run "$ringgate" set "$att" --filter 'udp port 7778' --sample 5
is "set: status 0" "$rc" 0
ip netns exec peer "$frames" udp 10.9.0.2 7778 20 100
wait_for 10 seen 80
is "set: filter and sampling hold" "$("$ringgate" stats --json |
	json "${entry}['stats']['delivered'], ${entry}['stats']['sampled_out'], ${entry}['sample']")" \
	"(14, 16, 5)"
action()
{
	"$ringgate" status --json | json "${entry}['action']"
}
run "$ringgate" set "$att" --steal
is "set --steal: holds, as there is a filter" "$rc/$(action)" "0/steal"
run "$ringgate" set "$att" --filter ''
is "set: no filter for what steals: status 1" "$rc/$(action)" "1/steal"
like "set: no filter for what steals: says what to give" "$err" \
	"attachment $att would take every frame of v1.*give a filter, or --all"
run "$ringgate" set "$att" --mirror --filter ''
is "set --mirror: without a filter" "$rc/$(action)" "0/mirror"
run "$ringgate" set "$att" --steal
is "set --steal without a filter: status 1, nothing changed" "$rc/$(action)" "1/mirror"
ok "a mirror of everything: the stack hears it" \
	ip netns exec peer ping -c 1 -W 5 10.9.0.2
run "$ringgate" set "$att" --steal --all --sample 1
is "set --steal --all: status 0" "$rc/$(action)" "0/steal"
if ip netns exec peer ping -c 1 -W 2 10.9.0.2 >/dev/null; then
	result 1 "set --steal --all: the stack hears nothing"
else
	result 0 "set --steal --all: the stack hears nothing"
fi
run "$ringgate" set "$att" --mirror
run "$ringgate" attach v1 --ring "$name"
second=$out
is "attach of everything: a mirror" "$rc/$("$ringgate" status --json |
	json "[a['action'] for a in j['attachments'] if a['id'] == $second]")" "0/['mirror']"
ok "attach of everything: the stack hears it" ip netns exec peer ping -c 1 -W 5 10.9.0.2
ok "detach" "$ringgate" detach "$second"
run "$ringgate" set "$att" --filter 'udp prot'
is "set: a wrong filter: status 1" "$rc" 1
like "set: a wrong filter: what libpcap says" "$err" "syntax error|unknown"
run "$ringgate" join "$att" "$ring"
is "join twice: status 1" "$rc" 1
like "join twice: says so" "$err" "already"
run "$ringgate" leave "$att" "$ring"
is "leave of the only ring: status 1" "$rc" 1
like "leave of the only ring: says what to do" "$err" "detach"

# A second ring for join and leave
"$ringgate" capture -q lo ether proto 0x1234 >/dev/null 2>&1 &
second=$!
wait_for 20 attached 3
ring2=$("$ringgate" status --json | json 'j["rings"][1]["name"]')
run "$ringgate" join "$att" "$ring2"
is "join: status 0" "$rc" 0
is "join: two rings" "$("$ringgate" status --json | json "len(${entry}['rings'])")" 2
run "$ringgate" leave "$att" "$ring"
is "leave: status 0" "$rc" 0
is "leave: one ring" "$("$ringgate" status --json | json "len(${entry}['rings'])")" 1

run "$ringgate" top -n 2 -d 0.5
is "top: status 0" "$rc" 0
is "top in a pipe: one table an interval" "$(grep -c '^ringgate ' <<<"$out")" 2
run "$ringgate" top -n 2 -d 0.5 --json
is "top: lines of JSON" "$(while read -r line; do json 'len(j["rings"])' <<<"$line"
	done <<<"$out" | paste -sd ' ')" "2 2"

"$ringgate" events --json -t 60 -n 2 >"$tmp/events" &
events=$!
sleep 2
kill -INT $second
wait $second
run "$ringgate" detach "$att"
is "detach of what ended with its ring: status 1" "$rc" 1
like "detach of what ended with its ring: says so" "$err" "no attachment $att"
ip netns exec peer ip link del v0
wait $events
is "events: a ring, a device" "$(while read -r line; do json 'j["event"]' <<<"$line"
	done <"$tmp/events" | sort | paste -sd ' ')" "device-gone ring-gone"
wait "$pid"
is "capture ends when its device goes: status 1" $? 1

readable_ends

# Nothing is left
is "no ring is left" "$("$ringgate" status --json | json 'len(j["rings"])')" 0
run "$ringgate" unload --wait 10
is "unload: status 0" "$rc" 0
run "$ringgate" status
is "status after that: status 3" "$rc" 3
finish
