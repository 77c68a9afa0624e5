#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 240
# ringgate capture --remote: files that others read, the times, the gateway's devices, a
# filter, and what ends it; and what the daemons' log says of peers and of strangers.

# shellcheck disable=SC2317 # functions that wait_for calls
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
. "$(dirname "$0")/../cli/lib/tap.sh"
frames=$cli_dir/lib/frames.py
ringgated=$build/tools/ringgated
plain_cli tsan
declare -A pid
trap 'kill -9 "${pid[@]}" 2>/dev/null; rm -rf "$tmp"' EXIT

sysctl -qw net.ipv6.conf.default.disable_ipv6=1
ip link set lo up
# a name that no terminal should obey
dev=$(printf 'g\033[7mw')
ip link add v0 mtu 9000 type veth peer name "$dev" mtu 9000 ||
	skip_all "no veth devices on this kernel"
ip link set v0 up
ip link set "$dev" up

cat >"$tmp/cluster" <<-END
	provider local
	timeout 10000
	node 0 gateway $tmp/n0 gw
	node 1 compute $tmp/n1 one
	node 3 compute $tmp/n3 guest
END
cluster_keys "$tmp/cluster"
ready() { "$ringgate" cluster status -s "$tmp/s$1"; }
start()
{
	local node=$1
	shift
	"$ringgated" -C "$tmp/cluster" -n "$node" -s "$tmp/s$node" --pool 16M "$@" \
		2>>"$tmp/log$node" &
	pid[$node]=$!
	# until it listens a client would say, rightly, that there is no daemon
	wait_for 20 ready "$node"
}
status() { "$ringgate" cluster status -s "$tmp/s$1" --json | json "$2"; }
filled() { [ "$(status 0 'len(j["gateway"]["rings"])')" = 1 ]; }
start 0 --source "packet $dev slots 1024 slot_size 2048"
start 1
# capture ARGUMENT...: in the background, until the gateway fills the ring
capture()
{
	timeout $((60 * slow)) "$ringgate" capture --remote="$tmp/s1" "$@" >"$tmp/out" 2>"$tmp/err" &
	pid[cap]=$!
	wait_for 20 filled
}
end()
{
	wait "${pid[cap]}"
	rc=$?
	err=$(<"$tmp/err")
	unset "pid[cap]"
}
stop()
{
	sleep 0.5
	kill -INT "${pid[cap]}"
	end
}

from=$(date +%s)
capture -w "$tmp/a.pcapng"
"$frames" send v0
stop
to=$(date +%s)
is "a capture: status 0" "$rc" 0
readable "frames of the gateway" "$tmp/a.pcapng"
ok "all frames as they were sent" "$frames" check "$tmp/a.pcapng"
is "one interface: Ethernet, by the gateway's name of it, as text" \
	"$("$frames" dump "$tmp/a.pcapng" | json '[(i["link"], i["name"]) for i in j["interfaces"]]')" \
	"[(1, 'g\\\\x1b[7mw')]"
is "times are those of the wall clock" "$("$frames" dump "$tmp/a.pcapng" |
	json "all($from <= p['time'] / 1e9 <= $to + 1 for p in j['packets'])")" True
capture -c 1
"$frames" send v0
end
like "lines have that name, too, and the time" "$(<"$tmp/out")" \
	"^$(date +%H):[0-9:.]+ g\\\\x1b\[7mw 60/60 "
timeout $((20 * slow)) "$ringgate" capture --remote="$tmp/s1" -q -t 0.3 -w "$tmp/b.pcapng"
readable "without frames" "$tmp/b.pcapng"

capture -w "$tmp/c.pcapng" ether dst 01:00:5e:00:00:01
"$frames" send v0
stop
is "a filter" "$("$frames" dump "$tmp/c.pcapng" |
	json '[len(p["data"]) // 2 for p in j["packets"]]')" "[114]"
like "... counts what it left out" "$err" "8 received, 7 filtered out"
readable "filtered" "$tmp/c.pcapng"
capture -w "$tmp/d.pcapng" vlan 5
"$frames" send v0
stop
is "a filter sees the tag" "$("$frames" dump "$tmp/d.pcapng" |
	json '[len(p["data"]) // 2 for p in j["packets"]]')" "[218]"
run "$ringgate" capture --remote="$tmp/s1" -w "$tmp/e.pcapng" portt 53
like "a wrong filter" "$rc $err" "^1 ringgate.*: filter: "
[ ! -e "$tmp/e.pcapng" ]
result $? "... before a file is made"
run "$ringgate" capture --remote="$tmp/s1" lo
like "a device of this machine is none of the gateway's" "$rc $err" "^2 .*takes no device"

# what ends it
begin=$SECONDS
run "$ringgate" capture --remote="$tmp/s1" --slot-size 1K
like "slots that are too small: why, and what would do" "$rc $err" \
	"^1 .*slots of 2048 bytes, and this one of 1024: --slot-size 2048"
is "... said once" "$(grep -c '^ringgate' <<<"$err")" 1
[ $((SECONDS - begin)) -le $((5 * slow)) ]
result $? "... at once"
capture -w "$tmp/f.pcapng"
"$frames" send v0 3
taken() { [ "$(status 1 'j["rings"][0]["frames"]')" = 24 ]; }
ok "frames before the end" wait_for 10 taken
kill -9 "${pid[1]}"
begin=$SECONDS
wait "${pid[1]}" 2>/dev/null
end
like "the daemon is killed: status 1 and why" "$rc $err" "^1 .*ringgated has ended"
is "... said once" "$(grep -c '^ringgate' <<<"$err")" 1
[ $((SECONDS - begin)) -le $((5 * slow)) ]
result $? "... at once"
readable "cut off" "$tmp/f.pcapng"
ok "... with all that came before" "$frames" check "$tmp/f.pcapng" count=3
run "$ringgate" capture --remote="$tmp/s1" -c 1
is "no daemon: status 1" "$rc" 1

# without a gateway
start 1
kill "${pid[0]}"
wait "${pid[0]}"
is "the gateway ends well" $? 0
run "$ringgate" capture --remote="$tmp/s1" -t 2.5
like "without a gateway: waits, and says so" "$rc $err" "^0 .*waiting"
start 0 --source "packet $dev slots 1024 slot_size 2048"
both_up() { [ "$(status 0 '[p["state"] for p in j["peers"]]')" = "['up', 'unseen']" ]; }
ok "a node that never came is not down" wait_for 20 both_up
like "... in the table, too" "$("$ringgate" cluster status -s "$tmp/s0")" "guest +compute +unseen"

# the log, without -v
like "the log: who came" "$(<"$tmp/log0")" "node 1 \(one, $tmp/n1\): connected"
like "the log: who went" "$(<"$tmp/log0")" "node 1 \(one, $tmp/n1\): gone: "
is "the log has no control characters" "$(LC_ALL=C grep -c '[[:cntrl:]]' "$tmp/log0" "$tmp/log1" |
	grep -v ':0$')" ""
other_key "$tmp/cluster" 3 "$tmp/cluster2"
"$ringgated" -C "$tmp/cluster2" -n guest -s "$tmp/s3" --pool 16M 2>"$tmp/log3" &
pid[3]=$!
refused() { grep -q "connection from process ${pid[3]} of user [0-9]* as node 3 is refused: it did not prove" "$tmp/log0"; }
ok "the log: another key, and whose" wait_for 20 refused
# it tries again and again
sleep 3
[ "$(grep -c "is refused" "$tmp/log0")" -le $((5 * slow)) ]
result $? "... with a limit"
for n in 3 1 0; do
	kill "${pid[$n]}"
	wait "${pid[$n]}"
	unset "pid[$n]"
done
finish
