#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 300
# ringgate lock and ringgate barrier through the daemons of two nodes: one at a time, whoever
# dies or stands still.

# shellcheck disable=SC2317,SC2016 # functions that wait_for calls; $ for another shell
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

ringgated=$build/tools/ringgated
plain_cli tsan
declare -A pid
trap 'kill -9 "${pid[@]}" 2>/dev/null; rm -rf "$tmp"' EXIT

chmod 755 "$tmp"
cluster_patient "$tmp/cluster" gw one
printf 'allow any lock barrier\nnode any any\nnode any user:%s\n' "$(id -u)" >"$tmp/policy"
chmod 600 "$tmp/policy"
# start NODE
start()
{
	: >"$tmp/log$1"
	"$ringgated" -C "$tmp/cluster" -n "$1" -s "$tmp/s$1" --pool 16M \
		--requests "socket $tmp/r$1" --requests "policy $tmp/policy" >>"$tmp/log$1" 2>&1 &
	pid[$1]=$!
}
kill_node()
{
	kill -9 "${pid[$1]}"
	wait "${pid[$1]}" 2>/dev/null
}
ready() { grep -q "is ready" "$tmp/log$1"; }
up() { "$ringgate" cluster status -s "$tmp/s1" --json | json '[p["state"] for p in j["peers"]]' | grep -q up; }
# lock NODE ARGUMENT..., barrier NODE ARGUMENT...: asked at that node; their home is node 0
at() { cmd=(env RGATE_REQUESTS="$tmp/r$1" "$ringgate" "$2" --node 0 "${@:3}"); }
lock() { at "$1" lock "${@:2}"; run "${cmd[@]}"; }
barrier() { at "$1" barrier "${@:2}"; run "${cmd[@]}"; }
listed() { RGATE_REQUESTS=$tmp/r$1 "$ringgate" lock --node 0 --list "${@:2}"; }
held() { [ "$(listed 0 --json | json '[(l["holders"], l["waiters"]) for l in j if l["name"] == "a"]')" = "[($1, $2)]" ]; }
said() { grep -q . "$tmp/$1"; }

lock 0 a -- true
like "no daemon: what to type" "$rc $err" "^255 .*a: .*systemctl s"
lock 0 --list
like "... for --list" "$rc $err" "^1 .*systemctl s"
barrier 0 a 2
like "... for a barrier" "$rc $err" "^255 .*systemctl s"

start 0
start 1
for n in 0 1; do
	ok "daemon $n" wait_for 20 ready $n
done
ok "they see each other" wait_for 20 up

# as flock(1) does
for n in 0 1; do
	lock $n a -- sh -c 'echo out; exit 7'
	is "node $n: output and exit code" "$rc/$out" "7/out"
done
lock 1 a -- sh -c 'kill -9 $$'
is "a signal" "$rc" 137
lock 1 a -- "$tmp/none"
like "no such command" "$rc $err" "^127 .*No such file"
lock 1 a
like "no command" "$rc $err" "^2 .*which command"
lock 1 "a b" -- true
like "no name" "$rc $err" "^2 .*cannot be a lock"
lock 1 --node 7 a -- true
like "no such node" "$rc $err" "^255 .*no such node"
lock 1 --owner 4000000 a -- true
like "another one's, that is not there" "$rc $err" "^255 .*only its owner can make it"

# One at a time, of both nodes: what each reads nobody has written meanwhile.
echo 0 >"$tmp/count"
many()
{
	for _ in $(seq 20); do
		RGATE_REQUESTS=$tmp/r$1 "$ringgate" lock --node 0 a -- \
			sh -c "read n <$tmp/count; echo \$((n + 1)) >$tmp/count" || return
	done
}
for n in 0 1 0 1; do
	many $n &
	workers+=($!)
done
for w in "${workers[@]}"; do
	wait "$w"
	result $? "a worker got it each time"
done
is "one at a time" "$(cat "$tmp/count")" 80

# hold NODE KEY [ARGUMENT...]: a command that says so when it has the lock, and which pid it is
hold()
{
	: >"$tmp/$2"
	at "$1" lock "${@:3}" a -- sh -c "echo \$\$ >$tmp/$2; exec sleep 1000"
	"${cmd[@]}" 2>"$tmp/$2.err" &
	pid[$2]=$!
}
gone() { ! kill -0 "$(cat "$tmp/$1")" 2>/dev/null; }
# ended KEY: its exit status is in status
ended()
{
	wait "${pid[$1]}" 2>/dev/null
	status=$?
	unset "pid[$1]"
}
hold 1 first
ok "it runs" wait_for 20 said first
ok "... and is shown" held 1 0
is "... with who has it, and from where" "$(listed 1 --json | json '[(l["name"], l["owner"], l["holder"], l["from"], l["shared"]) for l in j]')" \
	"[('a', $(id -u), $(id -u), 1, False)]"
like "... in a table" "$(listed 0)" "a +$(id -u) +held +$(id -u) +1 +0 +[0-9]"
token=$(listed 0 --json | json 'j[0]["token"]')
lock 0 --timeout 0.2 a -- true
like "not free in time" "$rc $err" "^124 .*not free within 0.2 s"
hold 0 second
ok "another one waits" wait_for 20 held 1 1
kill -9 "${pid[first]}"
ok "the holder is killed: its command ends" wait_for 20 gone first
ok "... and the next one has it" wait_for 20 said second
unset "pid[first]"
kill -TERM "${pid[second]}"
ended second
is "SIGTERM goes through" $status 143

hold 0 one --shared
hold 1 two --shared
both() { said one && said two; }
ok "shared: both at once" wait_for 20 both
kill -TERM "${pid[one]}" "${pid[two]}"
ended one
is "... and they end" $status 143
ended two
is "... each" $status 143

# The holder's daemon dies: its command ends before the next one begins.
hold 1 first
ok "held by node 1" wait_for 20 said first
hold 0 second
ok "... and waited for" wait_for 20 held 1 1
kill_node 1
ok "its daemon is killed: the next one has it" wait_for 30 said second
ok "... after the first was ended" gone first
ended first
is "... which says so" "$status/$(grep -c "the lock is lost" "$tmp/first.err")" "255/1"
start 1
ok "node 1 is back" wait_for 20 ready 1
ok "... and seen" wait_for 20 up

# The home dies
hold 1 third
ok "node 1 waits" wait_for 20 held 1 1
kill_node 0
ended second
is "the home is killed: its command ends" $status 255
start 0
ok "the home is back: who waited has it" wait_for 40 said third
[ "$(listed 0 --json | json 'j[0]["token"]')" -gt "$token" ]
result $? "... with a higher token"

# A daemon stands still for longer than the lease
kill -STOP "${pid[1]}"
ok "its command ends" wait_for 20 gone third
kill -CONT "${pid[1]}"
ended third
is "... and says so" $status 255
lock 0 --timeout $((20 * slow)) a -- echo free
is "others have it" "$rc/$out" "0/free"

# Barriers
go()
{
	at "$1" barrier --json b 3
	"${cmd[@]}" >"$tmp/$2" 2>"$tmp/$2.err" &
	pid[$2]=$!
}
ok "both nodes see each other" wait_for 20 up
for round in 1 2; do
	go 0 x
	go 1 y
	barrier 1 --timeout $((60 * slow)) b 3
	three=$rc
	ended x
	three+=/$status
	ended y
	is "round $round: three met" "$three/$status" 0/0/0
	is "... and say so" "$(json 'j["broken"], j["members"], j["missing"]' <"$tmp/x")" "(False, 3, [])"
done
barrier 1 --timeout 0.3 c 2
like "nobody else comes" "$rc $err" "^124 .*not all 2 came within 0.3 s"
go 0 x
# who says another number is told that there is one
arrived() { barrier 0 --timeout 0 b 4; [ "$rc" = 2 ]; }
ok "one waits" wait_for 20 arrived
go 1 y
sleep "$slow"
kill -9 "${pid[y]}"
ended x
is "a member dies: the others are told" $status 1
# the first or the second, as they came
who=$(sed -n 's/.*b: broken by member \([01]\) at node 1; 1 of 3 had arrived.*/\1/p' "$tmp/x.err")
like "... who it was" "$who" "[01]"
is "... also in JSON" "$(json 'j["broken"], [(m["member"], m["dead"], m.get("node")) for m in j["missing"]]' <"$tmp/x")" \
	"(True, [($who, True, 1), (2, False, None)])"
unset "pid[y]"
barrier 1 b
like "of how many?" "$rc $err" "^2 .*of how many"
barrier 1 b 65
like "too many" "$rc $err" "^2 .*64"

for n in 0 1; do
	kill "${pid[$n]}"
	wait "${pid[$n]}"
	result $? "daemon $n ends well"
	unset "pid[$n]"
done
finish
