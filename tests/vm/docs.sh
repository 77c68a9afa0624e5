#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 500
# What the documents say to type, with the module and an RDMA device: the command lines of
# README.md and guide.rst in their order, the programs that need the module, and the
# examples. Traffic comes over a veth that is called eth0.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
build=${RGATE_BUILD:-$top/build}
slow=${RGATE_SLOW:-1}
. "$top/tests/docs/lib/tap.sh"
. "$top/tests/docs/lib/blocks.sh"
. "$top/tests/cli/lib/wait.sh"
cli_dir=$top/tests/cli
. "$cli_dir/lib/json.sh"
json_served
export PATH=$build/tools:$PATH
pids=()
backlog=/proc/sys/net/core/netdev_max_backlog
usual=$(cat $backlog)
trap 'kill "${pids[@]}" 2>/dev/null; wait; echo "$usual" >$backlog; rdma link del rxe0 2>/dev/null; ip link del eth0 2>/dev/null
	ip netns del docs 2>/dev/null; rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1

ip netns add docs
ip link add eth0 mtu 4200 type veth peer name peer0 mtu 4200 netns docs
ip addr add 10.77.1.1/24 dev eth0
ip link set eth0 up
ip -n docs addr add 10.77.1.2/24 dev peer0
ip -n docs link set peer0 up
# DNS and HTTPS by their ports, for as long as the test takes
cat >sender.py <<'END'
import socket, time
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    udp.sendto(b"question", ("10.77.1.1", 53))
    tcp = socket.socket()
    tcp.setblocking(False)
    tcp.connect_ex(("10.77.1.1", 443))
    tcp.close()
    time.sleep(0.05)
END
ip netns exec docs python3 sender.py &
pids+=($!)

# Numbers of what `ringgate status` lists
ids() { ringgate status --json | json "' '.join(str(x['id']) for x in j['$1'])"; }
# What each attachment does, in the order of their making
actions() { ringgate status --json | json "'\n'.join(x['action'] for x in j['attachments'])"; }
# SECONDS, ENOUGH, and what has to be printed, by command. What would not end by itself is ended by
# Ctrl-C as soon as it has printed that (said), or 20 frames have come (came), or else after
# SECONDS; "-": it ends, or has nothing to say.
expected()
{
	local seconds=4 regex='' enough=-

	case $1 in
	*" -w out.pcapng"*) seconds=5 enough=came ;;
	*tshark*) seconds=25 regex='question|DNS|UDP' enough=said ;;
	*"--udp "*) seconds=3 ;;
	*"ringgate attach"*) regex='^[0-9]+$' ;;
	*"RGATE_MAX_MR="*) seconds=60 regex='^[1-9][0-9]* region' ;;
	*capture*) seconds=5 regex='10\.77\.1\.1' enough=said ;;
	"ringgate load"*) regex='loaded|is loaded' ;;
	*status*) regex='^module: loaded' ;;
	*replay*) seconds=8 regex='^[1-9][0-9]* frames sent through eth0' ;;
	*stats*) regex='"published"|"delivered"|"seen"' ;;
	*" top"*) regex='eth0|ring' enough=said ;;
	*events*) seconds=2 ;;
	*doctor*) seconds=60 regex='module' ;;
	*"probe --list"*) seconds=60 regex='rxe0' ;;
	*"probe --mr-limit"*) seconds=60 regex='500' ;;
	*probe*) seconds=100 regex='memfd' ;;
	*plan*) regex='120' ;;
	esac
	echo "$seconds $enough $regex"
}

# Of the command that runs: see expected()
came()
{
	[ "$(ringgate status --json |
		json 'sum(a["stats"]["delivered"] for a in j["attachments"])')" -ge 20 ]
}
said()
{
	local text

	IFS= read -r -d '' text <"$tmp/log"
	[[ $text =~ $regex ]]
}
ended_or() { ! kill -0 "$command" 2>/dev/null || "$1"; }

# lines DOCUMENT SELECTOR: each is typed, and ended by Ctrl-C if it does not end by itself
lines()
{
	local line bare seconds enough regex rings atts command

	block "$@" >typed 2>"$tmp/log" && [ -s typed ] || ok 1 "$1: $2"
	while IFS= read -r line; do
		bare=${line%% #*}
		bare=${bare#sudo }
		bare=${bare%"${bare##*[! ]}"}
		case $bare in
		*RING*|*ATTACHMENT*)
			read -ra rings <<<"$(ids rings)"
			read -ra atts <<<"$(ids attachments)"
			bare=${bare//RING0/${rings[0]}}
			bare=${bare//RING1/${rings[1]:-}}
			bare=${bare//RING/${rings[0]}}
			bare=${bare//ATTACHMENT/${atts[-1]:-}}
			;;
		esac
		read -r seconds enough regex <<<"$(expected "$bare")"
		: >"$tmp/log"
		# bash: what is one command has its place, and its exit status, also after Ctrl-C
		RGATE_MAX_MR=500 timeout -s INT -k 5 $((seconds * slow)) bash -c "$bare" \
			>"$tmp/log" 2>&1 </dev/null &
		command=$!
		[ "$enough" = - ] || {
			wait_for "$seconds" ended_or "$enough" && kill -INT "$command"
		} 2>/dev/null
		wait "$command"
		rc=$?
		# 124: ended by time. What it printed tells more.
		# 2: of tshark, for which the capture ends in the middle of a frame.
		case $rc:$bare in 0:*|124:*|130:*|2:*tshark*) rc=0 ;; esac
		[ -z "$regex" ] || grep -qE "$regex" "$tmp/log" || rc=1
		ok $rc "$1: $bare"
	done <typed
}

echo "# $(uname -r)"
rmmod ringgate 2>/dev/null
lines README.md "A consumer:shell:1"
tcpdump -nr out.pcapng 2>>"$tmp/log" | grep -q '10\.77\.1\.1\.53: '
ok $? "... and the file has what was sent"
rmmod ringgate
lines Documentation/guide.rst Loading:shell:1
ringgate load >"$tmp/log" 2>&1
ok $? "loaded again"
rm -f out.pcapng
lines Documentation/guide.rst "The first capture:shell:1"
tcpdump -nr out.pcapng 2>>"$tmp/log" | grep -q '10\.77\.1\.1\.443: '
ok $? "... and the file has what was sent"
lines Documentation/guide.rst "The first capture:shell:2"
lines Documentation/guide.rst "The first capture:shell:3"

# Two rings, of programs of the guide's
stdbuf -oL "$build/examples/minimal" eth0 "udp port 53" >minimal.said 2>&1 &
pids+=($!)
minimal=$!
sleep 600 | "$build/examples/epoll" eth0 >epoll.said 2>&1 &
pids+=($!)
two() { [ "$(ids rings | wc -w)" = 2 ]; }
wait_for 10 two
wait_for 10 grep -qE '^[0-9]+ bytes, ethertype 0800$' minimal.said
rc=$?
cp minimal.said "$tmp/log"
ok $rc "examples/minimal prints what arrives"
lines Documentation/guide.rst Filters:shell:1
lines Documentation/guide.rst "Several rings: fan-out:shell:1"
lines Documentation/guide.rst Watching:shell:1
lines Documentation/guide.rst "Steal or mirror:shell:1"
actions | tail -n 2 | tr '\n' ' ' >"$tmp/log"
[ "$(cat "$tmp/log")" = "mirror mirror " ]
ok $? "... and what was stolen is mirrored in the end"
if [ -e /sys/kernel/btf/ringgate ]; then
	# the program's device has to take what its peer sends in one page
	ip link set eth0 mtu 1500
	ip -n docs link set peer0 mtu 1500
	lines Documentation/guide.rst "In the driver: XDP:shell:1"
	ip -d link show eth0 >"$tmp/log"
	grep -q 'prog/xdp' "$tmp/log"
	ok $? "... and the device has a program"
	ringgate detach "$(ids attachments | tr ' ' '\n' | tail -n 1)" >"$tmp/log" 2>&1
	ip link set eth0 mtu 4200
	ip -n docs link set peer0 mtu 4200
else
	ok 0 "guide.rst: In the driver: XDP # SKIP this kernel does not know the module's types"
fi
kill $minimal "$(pgrep -f "^$build/examples/epoll")" "$(pgrep -x sleep -P $$)" 2>/dev/null

{ sleep 3; echo; sleep 2; } | timeout 30 "$build/examples/epoll" eth0 >"$tmp/log" 2>&1
grep -qE '^[1-9][0-9]* frames$' "$tmp/log"
ok $? "examples/epoll counts while it waits for its input, too"
"$build/examples/workers" eth0 2 >"$tmp/log" 2>&1 &
workers=$!
pids+=("$workers")
says() { grep -qE "^worker $1: [0-9]+ bytes\$" "$tmp/log"; }
wait_for 20 says "[01]"
ok $? "examples/workers: a worker says what it takes"
# each that there is now, one after the other
for pid in $(pgrep -P "$workers"); do
	kill -9 "$pid"
done
two_workers() { [ "$(pgrep -P "$workers" | wc -l)" = 2 ]; }
wait_for 10 two_workers && : >"$tmp/log" && wait_for 20 says "[01]"
ok $? "... and one that is killed gets a successor"
kill "$workers"

# The frames that examples/send makes, at the other end; until 3000 came. A veth hands what is sent
# on a CPU to that CPU's backlog: the others' frames pass those of a sender that has moved, and
# those that find it full are gone.
echo 10000 >$backlog
cat >hear.py <<'END'
import socket, sys
sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88b5))
sock.setsockopt(socket.SOL_SOCKET, 33, 1 << 23)  # SO_RCVBUFFORCE
sock.bind(("peer0", 0x88b5))
sock.settimeout(30)
print("listening", flush=True)
got = [int(sock.recv(100)[14:].split(b"\0")[0].split()[1]) for _ in range(3000)]
if sys.argv[1] == "moves":
    got.sort()
late = [(i, n) for i, n in enumerate(got) if i != n]
assert not late, late[:5]
print("all of them")
END
for percent in '' 50; do
	ip netns exec docs python3 hear.py "${percent:+moves}" >heard 2>"$tmp/log" &
	hears=$!
	wait_for 20 grep -q listening heard
	# shellcheck disable=SC2086 # or none
	timeout $((30 * slow)) taskset -c 0 "$build/examples/send" eth0 3000 $percent >said 2>>"$tmp/log" &&
		grep -qx '3000 frames sent' said
	ok $? "examples/send${percent:+, with a thread that may take $percent percent}"
	wait $hears && grep -qx 'all of them' heard
	ok $? "... and all of them arrive$([ -n "$percent" ] || echo ", in order")"
done

build_blocks libringgate Documentation/man/libringgate.3 Examples:c:1 >"$tmp/log" 2>&1
ok $? "the program of libringgate(3) compiles"
timeout $((30 * slow)) ./libringgate >said 2>"$tmp/log"
grep -qE '^[0-9]+ bytes, ethertype 0800$' said
ok $? "... and runs"

modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth0
active() { grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state; }
wait_for 10 active
lines Documentation/guide.rst "RDMA and GPUs:shell:1"
lines Documentation/guide.rst "Many buffers, one memory region:shell:1"
cp "$build/examples/pool" program
lines Documentation/guide.rst "Many buffers, one memory region:shell:2"
build_blocks guide Documentation/guide.rst "RDMA and GPUs:c:1" >"$tmp/log" 2>&1
ok $? "guide.rst: registering a ring's slots compiles"
timeout $((30 * slow)) ./guide >"$tmp/log" 2>&1
grep -qx 'registered 256 slots' "$tmp/log"
ok $? "... and runs"
timeout $((30 * slow)) "$build/examples/pool" rxe0 >"$tmp/log" 2>&1
ok $? "examples/pool with the device"

echo "1..$n"
[ "$failed" -eq 0 ]
