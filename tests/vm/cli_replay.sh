#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 300
# ringgate replay: what arrives at the other end of the cable is what is in the file.

if [ "${1:-}" != inside ]; then
	exec unshare -n -m "$0" inside
fi

# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"
# shellcheck source=tests/cli/lib/capture.sh
. "$cli_dir/lib/capture.sh"
frames=$cli_dir/lib/frames.py
json_served

mount -t sysfs sysfs /sys 2>/dev/null
sysctl -qw net.ipv6.conf.default.disable_ipv6=1
ip link set lo up
ip link add v0 mtu 9000 type veth peer name v1 mtu 9000
ip link set v0 up
ip link set v1 up
[ -e /sys/module/ringgate ] || insmod "$RGATE_KO" || { echo "Bail out! no module"; exit 1; }

# begin_v1: what arrives at v1, to a.pcapng
begin_v1() { begin 1 -w "$tmp/a.pcapng" --slot-size 16K v1; }
# of the JSON that replay printed
told() { json "$1" <"$tmp/out"; }

"$frames" write "$tmp/in.pcapng" count=3
begin_v1
run "$ringgate" replay --full --json "$tmp/in.pcapng" v0
is "at full speed: status 0" "$rc" 0
is "... tells what was sent" "$(told 'j["device"], j["frames"], j["bytes"], j["passes"]')" \
	"('v0', 24, $((3 * (60 + 114 + 218 + 64 + 322 + 1500 + 5014 + 8018))), 1)"
is "... and that nothing was refused" "$(told 'sum(j["refused"].values()), len(j["refused"])')" "(0, 4)"
is "... and a rate" "$(told 'abs(j["frames"] * 1e9 / j["time_ns"] / j["frames_per_second"] - 1) < 0.01')" True
end 24
ok "... all of it arrives, byte by byte and in order" "$frames" check "$tmp/a.pcapng" count=3

# 23 gaps of 20 ms
"$frames" write "$tmp/in.pcap" format=pcap count=3 gap=20000000
begin_v1
run "$ringgate" replay --json "$tmp/in.pcap" v0
is "paced, of the other format: status 0" "$rc" 0
is "... not faster than it was" "$(told '460e6 <= j["time_ns"]')" True
end 24
ok "... all of it arrives" "$frames" check "$tmp/a.pcapng" count=3
is "... spread over that time, but for the first" "$("$frames" dump "$tmp/a.pcapng" |
	json 'j["packets"][-1]["time"] - j["packets"][1]["time"] >= 220000000')" True
run "$ringgate" replay --json --speed 0.5 "$tmp/in.pcap" v0
is "half as fast" "$(told 'j["frames"], 920e6 <= j["time_ns"]')" "(24, True)"
run "$ringgate" replay --json --speed 4 "$tmp/in.pcap" v0
is "four times as fast" "$(told 'j["frames"], 115e6 <= j["time_ns"]')" "(24, True)"
"$frames" write "$tmp/slow.pcapng" gap=3600000000000
run "$ringgate" replay --json --full "$tmp/slow.pcapng" v0
is "a file of hours at full speed" "$rc $(told 'j["frames"]')" "0 8"
"$frames" write "$tmp/back.pcapng" gap=-1000000000
run "$ringgate" replay --json "$tmp/back.pcapng" v0
is "time that runs backwards is not waited for" "$rc $(told 'j["frames"]')" "0 8"

begin_v1
run "$ringgate" replay --full --json --loop 300 "$tmp/in.pcap" v0
is "many times: status 0, all sent" "$rc $(told 'j["frames"], j["passes"]')" "0 (7200, 300)"
end 7200
is "... all of it arrives" "$("$frames" dump "$tmp/a.pcapng" | json 'j["stats"][0]["received"]')" 7200
begin_v1
run "$ringgate" replay --json --loop 2 --count 17 "$tmp/in.pcap" v0
is "some of it" "$rc $(told 'j["frames"], j["passes"]')" "0 (17, 0)"
"$ringgate" replay -q --loop 0 --full --count 7 - v0 <"$tmp/in.pcapng" 2>"$tmp/err"
is "again and again from standard input, which is a file" "$?" 0
end 17

cat "$tmp/in.pcapng" | "$ringgate" replay --full - v0 >"$tmp/out" 2>"$tmp/err"
is "from a pipe" "$?" 0
like "... in words" "$(<"$tmp/out")" "^24 frames sent through v0 \([0-9.]+ KiB\) in [0-9.]+ s: [0-9.]+k? frames/s"
is "... and not a word more" "$(<"$tmp/err")" ""

# what cannot be sent, one line each
"$frames" write "$tmp/cut.pcapng" cut=300 extra=13
run "$ringgate" replay --full --json "$tmp/cut.pcapng" v0
is "cut frames, and what is none: left out, status 1" \
	"$rc $(told 'j["frames"], j["refused"]["cut"], j["refused"]["too_short"]')" "1 (4, 4, 1)"
is "... one line each" "$(wc -l <"$tmp/err")" 2
for size in 9100 17000; do
	"$frames" write "$tmp/long.pcapng" extra=$size
	run "$ringgate" replay --full --json "$tmp/long.pcapng" v0
	is "a frame of $size bytes: left out, status 1" \
		"$rc $(told 'j["frames"], j["refused"]["too_long"]')" "1 (8, 1)"
	like "... with what would help" "$err" "ip link set v0 mtu $((size - 14))\`"
done
head -c 1000 "$tmp/in.pcapng" >"$tmp/half.pcapng"
run "$ringgate" replay --full --json "$tmp/half.pcapng" v0
is "a broken file: what is before is sent, status 1" "$rc $(told 'j["frames"]')" "1 4"

# until it is stopped
begin_v1
"$ringgate" replay -j --loop 0 --full "$tmp/in.pcapng" v0 >"$tmp/out" 2>"$tmp/err" &
sender=$!
wait_for 20 seen 1000
kill -INT $sender
wait $sender
is "Ctrl-C: status 0" "$?" 0
is "... and the summary" "$(told 'j["frames"] >= 500')" True
end 0
"$ringgate" replay -q "$tmp/slow.pcapng" v0 &
sender=$!
wait_for 20 attached 1
kill -TERM $sender
wait $sender
is "a signal while it waits: status 0" "$?" 0

# A queue that lets nothing through stops it, and one that throws away is told of.
if tc qdisc add dev v0 root tbf rate 8kbit burst 9100 limit 40000000 2>/dev/null; then
	"$ringgate" replay -j --loop 60 --full "$tmp/in.pcapng" v0 >"$tmp/out" 2>"$tmp/err" &
	sender=$!
	wait_for 20 attached 1
	sleep 2
	ok "a slow queue: it waits" kill -0 $sender
	tc qdisc del dev v0 root
	wait $sender
	is "... and goes on: status 0" "$? $(told 'j["frames"]')" "0 1440"
	tc qdisc add dev v0 root tbf rate 8kbit burst 9100 limit 20000
	run "$ringgate" replay --json --full "$tmp/in.pcapng" v0
	is "a short queue: what it drops is counted, status 1" \
		"$rc $(told 'j["refused"]["queue"] > 0, j["refused"]["queue"] + j["frames"]')" "1 (True, 24)"
	like "... and told" "$err" "dropped by the queue of v0: \`tc -s qdisc show dev v0\`"
	tc qdisc del dev v0 root
else
	skip "a slow queue" "no tbf here"
fi

# the device ends in between
"$ringgate" replay -q --loop 0 --full "$tmp/in.pcapng" v0 2>"$tmp/err" &
sender=$!
wait_for 20 attached 1
ip link set v0 down
wait $sender
is "the device goes down: status 1" "$?" 1
like "... says so" "$(<"$tmp/err")" "sending through v0 ended: the device is down"
ip link set v0 up
"$ringgate" replay -q --loop 0 --full "$tmp/in.pcapng" v0 2>"$tmp/err" &
sender=$!
wait_for 20 attached 1
ip link del v0
wait $sender
is "the device is removed: status 1" "$?" 1
like "... says so" "$(<"$tmp/err")" "sending through v0 ended: the device is (gone|down)"
if ip tuntap add t0 mode tun 2>/dev/null; then
	ip link set t0 up
	run "$ringgate" replay "$tmp/in.pcapng" t0
	is "through a device without Ethernet: status 1" "$rc" 1
	like "... says so" "$err" "its frames are not those of Ethernet"
fi
is "nothing is left" "$("$ringgate" status --json | json 'j["rings"], j["attachments"]')" "([], [])"
finish
