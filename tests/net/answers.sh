#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 120
# What ringgated answers on its socket: each request, and what it refuses; the status in
# words; what it tells of the processes that it ran.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

ringgated=$build/tools/ringgated
declare -A pid
trap 'kill -9 "${pid[@]}" 2>/dev/null; rm -rf "$tmp"' EXIT
chmod 755 "$tmp"
cat >"$tmp/cluster" <<-END
	provider local
	node 0 gateway $tmp/n0 gw
	node 1 compute $tmp/n1 one
	node 5 compute $tmp/n5 alice
END
cluster_keys "$tmp/cluster"
cat >"$tmp/policy" <<-END
	node alice user $(id -un)
	allow alice /bin/cat args
	allow alice $tmp/none
END
chmod 600 "$tmp/policy"
port=$(free_port)

start()
{
	"$ringgated" -C "$tmp/cluster" -n "$1" -s "$tmp/s$1" --pool 16M "${@:2}" 2>>"$tmp/log$1" &
	pid[$1]=$!
	wait_for 20 "$ringgate" cluster status -s "$tmp/s$1"
	chmod 666 "$tmp/s$1"
}
# talk NODE REQUEST...: an answer a line, of one connection; "+": a further connection;
# "REQUEST~TEXT": asked again until the answer begins so
cat >"$tmp/talk.py" <<-'END'
	import socket, sys, time
	def connect():
	    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
	    s.settimeout(20)
	    s.connect(sys.argv[1])
	    return s
	def ask(r):
	    socks[-1].send(r.encode())
	    answer = socks[-1].recv(200000).decode().strip()
	    if r.startswith("ring-open") and answer.startswith("ok"):
	        socks[-1].recv(200)  # and its descriptors
	    return answer
	socks = [connect()]
	for r in sys.argv[2:]:
	    if r == "+":
	        socks.append(connect())
	        continue
	    r, _, wanted = r.partition("~")
	    answer = ask(r)
	    while not answer.startswith(wanted):
	        time.sleep(0.05)
	        answer = ask(r)
	    print(answer, flush=True)
END
talk() { timeout $((30 * slow)) python3 "$tmp/talk.py" "$tmp/s$1" "${@:2}"; }
field() { "$ringgate" cluster status -s "$tmp/s$1" --json | json "$2"; }
up() { [ "$(field 0 '[p["state"] for p in j["peers"] if p["node"] == 1]')" = "['up']" ]; }

printf 'dns node:1 port 53\nall node:1\n' >"$tmp/rules"
start 0 -S "$tmp/rules" --source "udp 127.0.0.1:$port"
start 1 --spawn "policy $tmp/policy" --spawn "cgroup none"
ok "the two are connected" wait_for 20 up

# rings
refused="err 22 ring-open SLOTS SLOT_SIZE POLICY CLOCK [NAME]"
is "a ring needs its four numbers" "$(talk 1 ring-open "ring-open 64" "ring-open 64 256 0" \
	"ring-open 64 256 0 x")" "$refused
$refused
$refused
$refused"
is "rings are not the gateway's" "$(talk 0 "ring-open 64 256 0 0")" \
	"err 95 this node is the gateway: rings are at compute nodes"
is "one ring a connection" "$(talk 1 "ring-open 64 256 0 0" "ring-open 64 256 0 0")" "ok
err 16 this connection has a ring"
is "one ring a name" "$(talk 1 "ring-open 64 256 0 0 twin" + "ring-open 64 256 0 0 twin")" "ok
err 17 a ring of that name is open"
like "slots that are no power of two" "$(talk 1 "ring-open 63 256 0 0")" "^err 22 [^S]*$"
is "a ring of its own for each: no ring, no state" "$(talk 1 "ring-open 64 2048 0 0" "ring-state~ok filled" + \
	ring-state)" "ok
ok filled
err 2 this connection has no ring"
like "a ring that is smaller than the gateway's" "$(talk 1 "ring-open 64 256 0 0" "ring-state~err")" \
	"err 90 the gateway refuses the ring, as its own has slots of ([0-9]+) bytes, and this one of 256: --slot-size ([0-9]+)$"
is "... which says what would do" "${BASH_REMATCH[1]:-}" "${BASH_REMATCH[2]:-x}"

is "a name that is too long" "$(talk 1 "ring-open 64 256 0 0 $(printf 'x%.0s' {1..32})")" \
	"err 22 a ring's name has up to 31 bytes, and no blanks"

# names of the gateway's devices
who="err 22 ring-device NUMBER, of who has a ring"
is "a device's number, from who has a ring" "$(talk 1 "ring-device 1" "ring-open 64 2048 0 0" \
	ring-device "ring-device x")" "$who
ok
$who
$who"
is "a device's name" "$(talk 1 "ring-open 64 2048 0 0" "ring-device 1~ok" "ring-device 1" "ring-device 1")" \
	"ok
ok lo
ok lo
ok lo"
is "a device that is none" "$(talk 1 "ring-open 64 2048 0 0" "ring-device 2147483647~err 19" \
	"ring-device 2147483648" "ring-device 0")" "ok
err 19 device 2147483647 of the gateway: No such device
err 22 device 2147483648 of the gateway: Invalid argument
err 22 device 0 of the gateway: Invalid argument"

# rules
is "rules are the gateway's" "$(talk 1 "steer list")" \
	"err 95 rules are at the gateway, which is another node"
usage="err 22 steer list, list-json, add, insert or remove"
is "what can be done with rules" "$(talk 0 steer "steer fly")" "$usage
$usage"
is "rules as JSON" "$(talk 0 "steer list-json" | sed 's/^ok //' | json 'j')" \
	"[{'rule': 'dns node:1 port 53', 'frames': 0}, {'rule': 'all node:1', 'frames': 0}]"
is "a rule before another" "$(talk 0 "steer insert dns web node:1 port 80" "steer list-json" |
	sed -n '2,$s/^ok //;2,$p' | json '[r["rule"] for r in j]')" "['web node:1 port 80', 'dns node:1 port 53', 'all node:1']"
like "... or before none" "$(talk 0 "steer insert nosuch ntp node:1 port 123")" "^err [0-9]+ .*nosuch"
# of which half would be another rule
long=$(printf '%-4096s' "steer add long node:1 port 80")
is "a request that is too long" "$(talk 0 "$long or port 81" "steer remove long")" \
	"err 90 a request has up to 4096 bytes
err 2 there is no rule 'long'"
like "... the longest that is not" "$(talk 0 "$(printf '%-4096s' "steer list-json")")" '^ok \['

if [ "$(id -u)" = 0 ]; then
	is "rules are changed by root alone" "$(setpriv --reuid nobody --clear-groups /usr/bin/python3 - "$tmp/s0" <<-'END'
		import socket, sys
		s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		s.connect(sys.argv[1])
		for r in b"steer add x drop", b"steer remove web", b"steer list":
		    s.send(r)
		    print(s.recv(200000)[:36].decode().split("\n")[0])
	END
	)" "err 1 only root may change the rules
err 1 only root may change the rules
ok FRAMES  RULE"
else
	skip "rules are changed by root alone" "not root"
fi

# pings
like "a ping" "$(talk 0 "ping one" "ping 1")" "^ok one [1-9][0-9]*
ok one [1-9][0-9]*$"
is "... of nobody" "$(talk 0 "ping nine" "ping gw")" "err 2 nine: no such node
err 2 gw: this node itself"
like "... of who was never there" "$(talk 0 "ping alice")" "^err 107 alice: not connected: .systemctl"

# the status in words, of a ring that 7 datagrams of 100 bytes went to
timeout $((60 * slow)) "$ringgate" capture --remote="$tmp/s1" -q -w "$tmp/got.pcapng" 2>"$tmp/take" &
pid[take]=$!
has_ring() { [ "$(field 0 'len(j["gateway"]["rings"])')" = 1 ]; }
ok "a ring is filled" wait_for 20 has_ring
python3 -c 'import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(7):
    s.sendto(b"x" * 100, ("127.0.0.1", int(sys.argv[1])))' "$port"
arrived() { [ "$(field 1 '[j["rings"][0]["frames"], "clock_offset_ns" in j["rings"][0]]')" = "[7, True]" ]; }
ok "7 datagrams arrive, and the clock's offset is known" wait_for 20 arrived
bytes=$(field 1 'j["rings"][0]["bytes"]')
name=$(field 1 'j["rings"][0]["name"]')
gw=$("$ringgate" cluster status -s "$tmp/s0")
like "the gateway, in words" "$gw" "^node 0 \\(gw\\), gateway, provider local, up [0-9]+ s"
like "... its nodes" "$gw" "NODE +NAME +ROLE +STATE +CONNECTIONS +WRITES +BYTES +ERROR
 +1 +one +compute +up +1 +[1-9][0-9]* +[0-9.]+( [KM]i)?B? *
 +5 +alice +compute +[a-z]+ +0 +0 +0"
like "... its rings" "$gw" "NODE +RING +FRAMES +BYTES +WAITING +STALLS +DROPPED +WRITES/POST
 +1 +$name +7 +[0-9.]+ ?[KMi]*B? +[0-9]+ +0 +0 +[1-9][0-9]*\\.[0-9]"
like "... its frames" "$gw" "
frames 7, without a rule 0, dropped by rule 0, for want of a node 0"
one=$("$ringgate" cluster status -s "$tmp/s1")
like "a compute node, in words" "$one" "^node 1 \\(one\\), compute, provider local, up [0-9]+ s"
like "... its rings" "$one" "RING +SLOTS +SIZE +STATE +FRAMES +BYTES +SESSIONS +OFFSET_US
$name +[0-9]+ +2048 +filled +7 +[0-9.]+ ?[KMi]*B? +1 +-?[0-9]+\\.[0-9]"
is "counters of the gateway's nodes" "$(talk 0 counters | grep -a one)" "ok one up 7 $bytes 0 0"
is "... and of a node's rings" "$(talk 1 counters)" "ok $name filled 7 $bytes 0 0"
kill -INT "${pid[take]}"
wait "${pid[take]}"
unset "pid[take]"

# processes: one that ends, one that is refused, one that cannot be started, one that is killed
spawned() { RGATE_CLUSTER=$tmp/cluster RGATE_NODE=alice timeout $((20 * slow)) "$ringgate" spawn --node one -- "$@" 2>&1; }
is "a process" "$(echo hello | spawned /bin/cat)" hello
like "... that is not allowed" "$(spawned /bin/true </dev/null)" \
	"^ringgate spawn: one: /bin/true: refused: the policy does not allow this command to this node$"
like "... that is not there" "$(spawned "$tmp/none" </dev/null)" \
	"^ringgate spawn: one: $tmp/none: .*No such file or directory"
told() { [ "$(field 1 "[j['spawn'][k] for k in $1]")" = "$2" ]; }
ok "what became of them" wait_for 10 told \
	"('requests', 'refused', 'failed', 'started', 'completed', 'killed', 'timed_out', 'garbage', 'jobs', 'queued', 'running', 'bytes_in', 'bytes_out')" \
	"[3, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 6, 6]"
like "... in words" "$("$ringgate" cluster status -s "$tmp/s1")" "
processes: running 0, waiting 0, ended 1, refused 1, not started 1"

kill "${pid[1]}"
wait "${pid[1]}"
unset "pid[1]"
down() { [[ $(talk 0 "ping one") = "err 107 one: not connected: "* ]]; }
ok "a ping of who went" wait_for 20 down
kill "${pid[0]}"
wait "${pid[0]}"
is "the gateway ends" $? 0
unset "pid[0]"
[ -z "$(complaints "$tmp"/log*)" ]
result $? "nothing was complained of"

# which node this is, when nobody says so
mkdir "$tmp/bare"
bare() { "$ringgated" --check -C "$tmp/bare/cluster" -s "$tmp/s" --pool 16M 2>&1; }
printf 'provider verbs\nnode 0 gateway 203.0.113.1 gw\nnode 1 compute 203.0.113.2 one\n' >"$tmp/bare/cluster"
cluster_keys "$tmp/bare/cluster"
which="node of the cluster has an address of this machine: say which one it is, by --node"
like "no node is here" "$(bare)" "no $which"
sed -i 's/203.0.113.1/127.0.0.1/' "$tmp/bare/cluster"
[[ $(bare) != *"say which one"* ]]
result $? "one is"
sed -i 's/203.0.113.2/127.0.0.1:7999/' "$tmp/bare/cluster"
like "two are" "$(bare)" "more than one $which"

finish
