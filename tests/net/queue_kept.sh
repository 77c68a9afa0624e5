#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 300
# The home of a queue is killed: what was submitted from another node, and not completed, is done.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"
# shellcheck source=tests/net/lib/queues.sh
. "$(dirname "$0")/lib/queues.sh"

# of what node 2 keeps
kept() { "$ringgate" cluster status -s "$tmp/s2" --json | json "j['requests']['queues']['$1']"; }
kept_is() { [ "$(kept "$1")" = "$2" ]; }

start_all

# Ten that are completed, one that is claimed, and those that wait
queue 2 create --attempts 7 a
is "a queue" "$rc/$err" "0/"
seq 10 | put 2 a
is "put has exited" "$?/$(kept kept)" "0/10"
queue 0 run a -- sh -c "echo {} >>$tmp/ran"
is "a worker has completed these" "$rc/$(wc -l <"$tmp/ran")" "0/10"
ok "... and they are not kept any more" wait_for 20 kept_is kept 0
ok "... nor counted as others" kept_is kept_refused 0
seq 11 30 | put 2 a
echo urgent | put 2 -p 0 a
work 0 claimed a
ok "a worker has one" wait_for 20 said claimed
is "all that are not completed are kept" "$(kept kept)" 21

# Who waits for the end of all of it is told; and it is done nonetheless.
at 2 drain a
"${cmd[@]}" 2>"$tmp/drain.err" &
pid[drain]=$!
kill_node 1
ended drain
is "the home is killed: who waits is told" "$status" 1
# by the end of what it asked for, or as nobody answered when it asked again
like "... and why" "$(<"$tmp/drain.err")" "a: (its node is (not there|gone)|nothing came in time)"
is "they are kept" "$(kept kept)" 21
start 1
ok "the home is back" wait_for 20 ready 1
ok "... and has them again" wait_for 40 stat_is 1 a 'j["ready"]' 21
ok "... each once" kept_is kept_again 21
: >"$tmp/claimed.go"
ended claimed
is "who had one completes nothing in this one" "$status/$(stat_of 1 a 'j["completed"]')" "1/0"
like "... and is told so" "$(<"$tmp/claimed.err")" "a: its node is (not there|gone)"
is "it was made as it had been" "$(stat_of 1 a 'j["attempts"]')" 7
queue 0 run a -- sh -c "echo {} >>$tmp/after"
is "another one completes them" "$rc/$(stat_of 1 a '(j["completed"], j["ready"], j["buried"])')" \
	"0/(21, 0, 0)"
is "... in their order" "$(tr '\n' ' ' <"$tmp/after")" "urgent $(seq 11 30 | tr '\n' ' ')"
ok "... and nothing is kept" wait_for 20 kept_is kept 0
is "... nor was anything refused" "$(kept kept_refused)" 0

# A home that stood still for longer than it may is the same one: it has what it had.
seq 31 35 | put 2 a
kill -STOP "${pid[1]}"
away() { queue 2 stats a; [ "$rc" = 1 ]; }
ok "the home stands still" wait_for 20 away
kill -CONT "${pid[1]}"
ok "it goes on, with what it had" wait_for 20 stat_is 2 a 'j["ready"]' 5
queue 0 run a -- true
ok "... which ends" wait_for 20 kept_is kept 0
is "... and nothing was submitted again" \
	"$(kept kept_again)/$(stat_of 1 a 'j["completed"]')" "21/26"

# What was removed does not come back with the next home.
seq 3 | put 2 b
is "another queue" "$(kept kept)" 3
queue 0 remove b
ok "it is removed: nothing is kept of it" wait_for 20 kept_is kept 0
# Without the daemon that keeps it, nor the home, a task is lost.
echo lost | put 2 c
kill_node 2
kill_node 1
start 1
start 2
ok "both daemons are killed, and come back" wait_for 20 ready 1
ok "... both" wait_for 20 ready 2
gone() { queue 2 stats "$1"; [[ "$rc $err" =~ ^1\ .*"only its owner can make it" ]]; }
ok "... without the task" wait_for 30 gone c
is "... nor what was removed" "$(gone b; echo $?)/$(kept kept)" "0/0"

end_all
is "nothing was complained of" "$(complaints "$tmp"/log[012])" ""
finish
