#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 300
# A queue of one node, and workers at another: whoever of them dies, no task is lost.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"
# shellcheck source=tests/net/lib/queues.sh
. "$(dirname "$0")/lib/queues.sh"

guests() { "$ringgate" cluster status -s "$tmp/s1" --json | json 'j["requests"]["queues"]["guests"]'; }
no_guests() { [ "$(guests)" = 0 ]; }
# hold NODE KEY QUEUE: a worker whose command does not end, in a process group of its own
hold()
{
	at "$1" run "$3" -- sh -c "echo {} >$tmp/$2; exec sleep 1000"
	RGATE_REQUESTS=$tmp/r$1 setsid "${cmd[@]:4}" >/dev/null 2>"$tmp/$2.err" &
	pid[$2]=$!
}
# The whole group: workers are processes of their own
kill_worker()
{
	kill -9 -- "-${pid[$1]}"
	wait "${pid[$1]}" 2>/dev/null
	unset "pid[$1]"
}

start_all

# What is the home's own, and no other node's
queue 2 create --attempts 3 a
is "made from another node" "$rc/$err" "0/"
queue 0 create a
like "... once for all nodes" "$rc $err" "^1 .*already"
queue 1 ls
like "... at home, too" "$rc $out" "a +$(id -u) +0 "
run env RGATE_REQUESTS="$tmp/r2" "$ringgate" queue ls --node 2
is "... and not where it was made" "$rc/$(grep -c '^a' <<<"$out")" "0/0"
queue 2 --node 2 stats a
like "... by its number" "$rc $err" "^1 .*only its owner can make it"
queue 2 --node 7 stats a
like "no such node" "$rc $err" "^1 .*no such node"
queue 2 --owner 4000000 stats a
like "another one's, that is not there" "$rc $err" "^1 .*only its owner can make it"

seq 40 | put 2 a
is "put from another node" "$?/$(stat_of 1 a 'j["ready"]')" "0/40"
queue 0 peek a 2
is "peek" "$rc/$out" "0/1 ready 1
2 ready 2"
# a task that has all its bytes, and a result that has them, both of several messages
head -c 32768 /dev/zero | tr '\0' x | put 2 big
queue 0 peek big 1
is "... of a task of 32768 bytes" "$rc/${#out}" "0/$((8 + 32768))"
queue 0 remove big
is "... which nobody wants" "$rc/$err" "0/"
# workers of all nodes at once
for n in 0 1 2; do
	at $n run -P 2 a -- sh -c "echo {} >>$tmp/ran"
	"${cmd[@]}" 2>"$tmp/run$n" &
	pid[run$n]=$!
done
for n in 0 1 2; do
	ended run$n
	is "workers of node $n" "$status/$(<"$tmp/run$n")" "0/"
done
is "each task was run once" "$(sort -n "$tmp/ran" | tr '\n' ' ')" "$(seq 40 | tr '\n' ' ')"
queue 2 drain a
is "drain" "$rc/$err" "0/"

# A worker that is killed
echo killed | put 0 a
hold 2 first a
ok "a worker of node 2 has a task" wait_for 20 said first
ok "... and the home knows" wait_for 20 stat_is 1 a 'j["running"]' 1
kill_worker first
ok "it is killed: the task is ready again" wait_for 20 stat_is 1 a '(j["ready"], j["lost"])' "(1, 1)"
queue 0 run a -- true
is "... and another node's worker does it" "$rc/$(stat_of 1 a 'j["completed"]')" "0/41"

# The worker's daemon is killed
echo node | put 0 a
work 2 second a
ok "a worker of node 2 has a task" wait_for 20 said second
kill_node 2
: >"$tmp/second.go"
ended second
is "its daemon is killed: it ends" "$status" 1
ok "... and the task is ready again" wait_for $((20 + 10)) stat_is 1 a '(j["ready"], j["lost"])' "(1, 2)"
start 2
ok "node 2 is back" wait_for 20 ready 2
queue 2 run a -- true
is "... and does it itself" "$rc/$(stat_of 1 a 'j["completed"]')" "0/42"

# A node that is stopped for longer than it may be silent has nothing any more: what it says then
# of its task nobody takes.
echo stopped | put 0 a
work 2 third a
ok "a worker of node 2 has a task" wait_for 20 said third
kill -STOP "${pid[2]}"
ok "its daemon is stopped: the task is ready again" wait_for $((20 + 10)) \
	stat_is 1 a '(j["ready"], j["lost"])' "(1, 3)"
queue 0 run a -- true
is "... and done" "$rc/$(stat_of 1 a 'j["completed"]')" "0/43"
: >"$tmp/third.go"
kill -CONT "${pid[2]}"
ended third
is "... it goes on: its worker is told" "$status" 1
like "... and why" "$(<"$tmp/third.err")" "a: its node is gone"
is "... and completes nothing" "$(stat_of 1 a '(j["completed"], j["ready"])')" "(43, 0)"

# Policy: for whom that node may speak, and who has queues
policy 1 'allow any queue'
kill -HUP "${pid[1]}"
refused() { queue 2 stats a; [[ "$rc $err" =~ ^1\ .*"not for this user" ]]; }
ok "the home does not let that node speak for this user" wait_for 20 refused
if [ "$(id -u)" != 0 ]; then
	policy 1 'allow any lock' 'node any any' "node any user:$(id -u)"
	kill -HUP "${pid[1]}"
	ok "... nor this user have queues" wait_for 20 refused
else
	skip "... nor this user have queues" "root may have all"
fi
policy 1 'allow any queue' 'node any any' "node any user:$(id -u)"
kill -HUP "${pid[1]}"
allowed() { queue 2 stats a; [ "$rc" = 0 ]; }
ok "... and then it does" wait_for 20 allowed
ok "no session stays" wait_for 20 no_guests

# The home is killed: who waits is told, and who comes later, in bounded time.
at 2 run -f a -- true
"${cmd[@]}" 2>"$tmp/follows" &
pid[follows]=$!
ok "a worker waits for more" wait_for 20 stat_is 1 a 'j["waiting"]' 1
kill_node 1
ended follows
is "the home is killed: it ends" "$status" 1
like "... and says why" "$(<"$tmp/follows")" "a: its node is gone"
queue 2 stats a
like "who asks then is told" "$rc $err" "^1 .*node is (not there|gone)"
start 1
ok "the home is back" wait_for 20 ready 1
there() { queue 2 stats a; [[ "$rc $err" =~ ^1\ .*"only its owner can make it" ]]; }
ok "... without its queues" wait_for 30 there
echo again | put 2 a
queue 0 run a -- true
is "... and takes others" "$rc/$err" "0/"

end_all
is "nothing was complained of" "$(complaints "$tmp"/log[012])" ""
finish
