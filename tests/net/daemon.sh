#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 240
# ringgated: a gateway and two compute nodes, processes of this machine; what the CLI
# says of them; rules changed live; nodes that are killed and come back; a wrong key.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

ringgated=$build/tools/ringgated
plain_cli tsan
declare -A pid
trap 'kill -9 "${pid[@]}" 2>/dev/null; rm -rf "$tmp"' EXIT
port=0

cat >"$tmp/cluster" <<-END
	provider local
	timeout 10000
	node 0 gateway $tmp/n0 gw
	node 1 compute $tmp/n1 one
	node 2 compute $tmp/n2 two
END
cluster_keys "$tmp/cluster"

# start NODE ARGUMENT...
start()
{
	local node=$1
	shift
	"$ringgated" -v -C "$tmp/cluster" -n "$node" -s "$tmp/s$node" --pool 16M "$@" \
		>>"$tmp/log$node" 2>&1 &
	pid[$node]=$!
}
start_gateway() { start 0 -S "$tmp/steer" --source "udp 127.0.0.1:$port"; }
stop() { kill "${pid[$1]}"; wait "${pid[$1]}"; rc=$?; unset "pid[$1]"; }

cluster() { "$ringgate" cluster "$1" -s "$tmp/s$2" "${@:3}"; }
steer() { "$ringgate" steer -s "$tmp/s0" "$@"; }
status() { cluster status "$1" --json | json "$2"; }
is_up() { [ "$(status "$1" 'sum(p["state"] == "up" for p in j["peers"])')" = "$2" ]; }
# rings N: the gateway fills so many
rings() { [ "$(status 0 'len(j["gateway"]["rings"])')" = "$1" ]; }

# take NODE COUNT: in the background, to a file
take()
{
	# Once, and not its group: what looks for leaks at its end does not stand a signal.
	timeout --foreground $((60 * slow)) "$ringgate" capture --remote="$tmp/s$1" -q -c "$2" -w "$tmp/got$1.pcapng" \
		2>"$tmp/take$1" &
	pid[take$1]=$!
}
taken() { wait "${pid[take$1]}"; rc=$?; unset "pid[take$1]"; }

# send FIRST LAST: datagrams that carry their numbers, from so many source ports that both nodes
# have some of them: of 8 all were at one of two nodes once in 128 times.
flows=64
send()
{
	python3 - "$port" "$1" "$2" "$flows" <<-'END'
	import socket, sys, time
	port, first, last, flows = map(int, sys.argv[1:])
	socks = []
	for i in range(flows):
	    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
	    s.bind(("127.0.0.1", 0))
	    socks.append(s)
	for i in range(first, last + 1):
	    socks[i % flows].sendto(b"number %08d" % i + b"x" * (i % 1000), ("127.0.0.1", port))
	    if i % 50 == 0:
	        time.sleep(0.002)
	END
}

# numbers NODE: of what it captured, in order
numbers()
{
	tshark -r "$tmp/got$1.pcapng" -d "udp.port==$port,data" -T fields -e data.data 2>/dev/null |
		python3 -c 'import sys
for line in sys.stdin:
    b = bytes.fromhex(line.strip())
    n = int(b[7:15])
    assert b[15:] == b"x" * (n % 1000), n
    print(n)'
}

# run_fn FUNCTION...: as run, for functions of this file
run_fn()
{
	"$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	rc=$?
	out=$(<"$tmp/out")
	err=$(<"$tmp/err")
}

run "$ringgated" --help
like "--help" "$out" "gateway"
run "$ringgated" --version
like "--version" "$out" "^ringgated [0-9]"
run "$ringgated" --fly
is "wrong option: status 2" "$rc" 2
run "$ringgated" --check -C "$tmp/cluster" -n one
is "--check of what is right: status 0" "$rc" 0
run "$ringgated" --check -C "$tmp/cluster" -n five
like "--check: no such node" "$rc $err" "^1 .*no node 'five'"
echo "x fly:1" >"$tmp/bad"
run "$ringgated" --check -C "$tmp/cluster" -n gw -S "$tmp/bad"
like "--check: wrong rules" "$rc $err" "^1 .*bad:1: .*'fly:'"
printf 'node one\nsource carrier pigeon\n' >"$tmp/conf"
run "$ringgated" --check -c "$tmp/conf" -C "$tmp/cluster"
like "--check: wrong configuration" "$rc $err" "^1 .*conf:2: .*carrier"
run "$ringgated" -C "$tmp/cluster" -n one -c "$tmp/none"
like "a file that was named must be there" "$rc $err" "^1 .*none: No such file"
chmod 644 "$tmp/node1.key"
run "$ringgated" -C "$tmp/cluster" -n one -s "$tmp/s1"
is "a key that others can read: status 1" "$rc" 1
chmod 600 "$tmp/node1.key"
run "$ringgate" cluster status -s "$tmp/s0"
like "no daemon" "$rc $err" "^1 .*is it running"
run env RGATE_SOCKET="$tmp/there" "$ringgate" cluster status
like "no daemon at the socket that the environment names" "$rc $err" "^1 .* at $tmp/there: is it"

port=$(free_port)
start_gateway
start 1
start 2
ok "the gateway has both nodes" wait_for 20 is_up 0 2
ok "a compute node has both others" wait_for 20 is_up 1 2
run_fn cluster status 0
like "status: peers" "$out" "two +compute +up"
is "status: role" "$(status 1 'j["role"]')" "compute"
run_fn cluster ping 0 -c 2 -i 0.05 one
like "ping" "$rc $out" "^0 one: read of its memory in .* us"
run_fn cluster ping 0 -c 1 --json two
is "ping --json" "$(json 'j["ns"] > 0' <<<"$out")" True
# flushes NODE EXPRESSION: of those that the gateway did there, f; a ping is one
flushes()
{
	cluster status 0 --json | json "[(lambda f: $2)(p['operations']['flush'])
		for p in j['peers'] if p['name'] == '$1']"
}
is "status: what was done with each peer" "$(flushes one 'f["posted"]') $(flushes two 'f["posted"]')" \
	"[2] [1]"
latencies='[f[key + "_ns"] for key in ("min", "p50", "p90", "p99", "p999", "max")]'
is "... and how long it took" "$(flushes one "0 < f['min_ns'] and $latencies == sorted($latencies)")" \
	"[True]"
run_fn cluster ping 0 -c 1 nobody
like "ping nobody" "$rc $err" "^1 .*no such node"
run_fn cluster top 0 -c 1 -i 0.1 --json
is "top --json" "$(json '[r["name"] for r in j]' <<<"$out")" "['one', 'two']"
run "$ringgate" steer list -s "$tmp/s1"
like "rules are the gateway's" "$rc $err" "^1 .*another node"
run "$ringgate" capture --remote="$tmp/s0" -c 1 -w "$tmp/none.pcapng"
is "rings are not the gateway's" "$rc" 1

# every datagram once, in its flow's order, over both nodes
take 1 100000
take 2 100000
ok "both rings are filled" wait_for 20 rings 2
send 1 2000
sum() { status 0 'sum(r["frames"] for r in j["gateway"]["rings"])'; }
all_sent() { [ "$(sum)" -ge "$1" ]; }
ok "all were forwarded" wait_for 30 all_sent 2000
sleep 0.5
for i in 0 1 2; do
	cluster status $i --json >"$tmp/status.$i"
done
elapsed=$SECONDS
kill -INT "${pid[take1]}" "${pid[take2]}"
taken 1
is "capture ends" "$rc" 0
taken 2
numbers 1 >"$tmp/n1.txt"
numbers 2 >"$tmp/n2.txt"
is "each datagram, once" "$(sort -n "$tmp/n1.txt" "$tmp/n2.txt" | md5sum)" \
	"$(seq 1 2000 | md5sum)"
is "status: every field" "$("$(dirname "$0")/lib/status.py" "$tmp" "$port" $((elapsed + 1)) 2>&1)" ""
like "... of which none may be wrong or missing" \
	"$("$(dirname "$0")/lib/status.py" "$tmp" "$port" $((elapsed + 1)) --wrong 2>&1)" "^\[\] [3-9][0-9][0-9]$"
for i in 1 2; do
	is "node $i: in order within each flow" "$(awk -v n=$flows '{ f = $1 % n
		if ($1 < last[f]) print "late", $1; last[f] = $1 }' "$tmp/n$i.txt")" ""
done
both=$(comm -12 <(awk -v n=$flows '{ print $1 % n }' "$tmp/n1.txt" | sort -u) \
	<(awk -v n=$flows '{ print $1 % n }' "$tmp/n2.txt" | sort -u))
is "no flow is at both" "$both" ""
ok "rings that were closed are left" wait_for 10 rings 0

# rules
run_fn steer add copy 'all:*' udp dst port "$port"
is "steer add" "$rc" 0
run_fn steer add copy drop
like "a name that is taken" "$rc $err" "^1 .*already"
run_fn steer add --before default first node:1 udp src port 1
is "steer add --before" "$rc" 0
run_fn steer remove default
is "steer remove" "$rc" 0
run_fn steer list --json
is "steer list --json" "$(json '[r["rule"].split()[0] for r in j]' <<<"$out")" "['copy', 'first']"
is "the file of rules" "$(grep -v '^#' "$tmp/steer")" "copy all:* udp dst port $port
first node:1 udp src port 1"
take 1 50
take 2 50
ok "both rings again" wait_for 20 rings 2
send 1 50
taken 1
taken 2
is "copies: all at the one" "$(numbers 1)" "$(seq 1 50)"
is "copies: all at the other" "$(numbers 2)" "$(seq 1 50)"
# what has no rule, is dropped by one, or has no ring: each counted as that, and as no other
send_from()
{
	python3 - "$port" "$1" "$2" <<-'END'
	import socket, sys
	port, source, n = map(int, sys.argv[1:])
	s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
	s.bind(("127.0.0.1", source))
	for i in range(n):
	    s.sendto(b"x" * 72, ("127.0.0.1", port))
	END
}
first=$(free_port)
second=$(free_port)
printf '%s\n' "none drop udp src port $first" "absent node:2/other down=drop udp src port $second" \
	>"$tmp/steer"
kill -HUP "${pid[0]}"
of_gateway() { status 0 "[j['gateway'][k] for k in ('frames', 'bytes', 'unmatched', 'dropped_rule', 'dropped_down', 'refused')]"; }
rules_are() { [ "$(status 0 'len(j["gateway"]["rules"])')" = "$1" ]; }
ok "two rules" wait_for 10 rules_are 2
then=$(of_gateway)
run "$ringgate" capture --remote="$tmp/s1" --slot-size 1K
send_from "$first" 3
send_from "$second" 5
send_from "$(free_port)" 7
more_than() { [ "$(of_gateway | json "j[0] - ${then}[0]")" -ge "$1" ]; }
ok "fifteen more" wait_for 20 more_than 15
is "status: frames, bytes, unmatched, dropped by rule, for want of a node, rings refused" \
	"$(of_gateway | json "[a - b for a, b in zip(j, $then)]")" "[15, 1500, 7, 3, 5, 1]"
is "... and of each rule" "$(status 0 '[r["frames"] for r in j["gateway"]["rules"]]')" "[3, 5]"
like "... in words" "$(cluster status 0)" "without a rule 7, dropped by rule 3, for want of a node 5"
echo "only node:2" >"$tmp/steer"
kill -HUP "${pid[0]}"
sleep 0.5
like "SIGHUP reads the rules again" "$(steer list)" "only node:2"
echo "only nod:2" >"$tmp/steer"
kill -HUP "${pid[0]}"
sleep 0.5
like "... and malformed ones leave what holds" "$(steer list)" "only node:2"
echo "only hash:1,2" >"$tmp/steer"
kill -HUP "${pid[0]}"

# a node that is killed: its flows go to the other one; and it comes back
take 1 100000
take 2 100000
ok "both rings for the third time" wait_for 20 rings 2
kill -9 "${pid[2]}"
wait "${pid[2]}" 2>/dev/null
# state_of NODE: as the gateway sees it
state_of() { status 0 '[p["state"] for p in j["peers"] if p["node"] == '"$1"'][0]'; }
two_is() { [ "$(state_of 2)" = "$1" ]; }
ok "the gateway sees that a daemon was killed" wait_for 20 two_is down
is "... and only that" "$(state_of 1)" up
taken 2
send 1 200
all_at_one() { [ "$(status 1 'j["rings"][0]["frames"]')" -ge 200 ]; }
ok "its flows go to the other" wait_for 20 all_at_one
start 2
ok "it comes back" wait_for 20 is_up 0 2
take 2 100000
ok "and is filled again" wait_for 20 rings 2
send 1 400
both() { [ "$(status 2 'j["rings"][0]["frames"]')" -gt 0 ]; }
ok "with its flows" wait_for 20 both

# the gateway is killed and comes back: the rings go on
before=$(status 1 'j["rings"][0]["frames"]')
kill -9 "${pid[0]}"
wait "${pid[0]}" 2>/dev/null
gone() { is_up 1 1; }
ok "the nodes see that the gateway was killed" wait_for 20 gone
start_gateway
ok "it comes back, too" wait_for 20 rings 2
echo "only node:1" >"$tmp/steer"
kill -HUP "${pid[0]}"
sleep 0.3
send 1 100
more() { [ "$(status 1 'j["rings"][0]["frames"]')" -ge $((before + 100)) ]; }
ok "the ring that was there goes on" wait_for 20 more
is "filled for the second time" "$(status 1 'j["rings"][0]["sessions"]')" 2

# somebody with another key
stop 2
is "SIGTERM: status 0" "$rc" 0
other_key "$tmp/cluster" 2 "$tmp/cluster2"
"$ringgated" -C "$tmp/cluster2" -n two -s "$tmp/s2" --pool 16M >"$tmp/log2" 2>&1 &
pid[2]=$!
refused() { [ "$(status 0 'j["bad_key"] + j["garbage"]')" -gt 0 ]; }
ok "another key is refused and counted" wait_for 20 refused
like "... and the log says whose it was" "$(<"$tmp/log0")" \
	"node 0: a connection from [^ ]+.* as node 2 is refused: "
is "and the node stays down" "$(status 0 '[p["state"] == "up" for p in j["peers"] if p["node"] == 2]')" "[False]"
kill -INT "${pid[take1]}"
taken 1
stop 2
stop 1
is "a node ends well" "$rc" 0
stop 0
is "the gateway ends well" "$rc" 0
[ ! -e "$tmp/s0" ]
result $? "the socket is gone"
is "no daemon's sanitizer or pool complained" "$(complaints "$tmp"/log*)" ""
finish
