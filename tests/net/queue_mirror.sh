#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 300
# A queue with a mirror: its home and the node that submits are killed together, and each task that
# was taken is done once.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"
# shellcheck source=tests/net/lib/queues.sh
. "$(dirname "$0")/lib/queues.sh"

# What is looked at again and again is looked for in the text of it.
count_of() { "$ringgate" cluster status -s "$tmp/s$1" --json | json "j['requests']['queues']['$2']"; }
count_is() { "$ringgate" cluster status -s "$tmp/s$1" --json 2>/dev/null | grep -q "\"$2\": $3,\?$"; }
ready_is() { at 1 stats --json a; "${cmd[@]}" 2>/dev/null | grep -q "\"ready\": $1,"; }
state() { stat_of 1 a "(j['completed'], j['ready'], j['buried'])"; }
mirror() { stat_of 1 a "j['mirror']"; }
late() { stat_of 1 a "(j['mirror']['late'], j['mirror']['missed'])"; }
has_all() { [ "$(mirror)" = "{'nodes': [0], 'late': False, 'missed': 3}" ]; }

start_all

queue 2 create --mirror --attempts 7 a
is "a queue with a mirror" "$rc/$err" "0/"
seq 3 | put 2 a
is "what node 2 puts, node 0 has copies of" "$?/$(count_of 0 copies)/$(mirror)" \
	"0/3/{'nodes': [0], 'late': False, 'missed': 0}"
queue 0 run a -- sh -c "echo {} >>$tmp/ran"
is "a worker completes them" "$rc/$(wc -l <"$tmp/ran")" "0/3"
ok "... and there are no copies any more" wait_for 20 count_is 0 copies 0

# Home and submitter die: at node 0, which has a copy, a worker has one task
seq 11 14 | put 2 a
echo urgent | put 2 -p 0 a
work 0 claimed a
ok "a worker has one" wait_for 20 said claimed
is "all that are not completed have copies" "$(count_of 0 copies)" 5
kill -9 "${pid[1]}" "${pid[2]}"
wait "${pid[1]}" "${pid[2]}" 2>/dev/null
start 1
start 2
ok "home and submitter are killed together, and come back" wait_for 20 ready 1
ok "... both" wait_for 20 ready 2
ok "... and the tasks are there" wait_for 40 ready_is 5
: >"$tmp/claimed.go"
ended claimed
is "who had one completes nothing in this one" "$status/$(stat_of 1 a '(j["completed"], j["attempts"])')" \
	"1/(0, 7)"
queue 0 run a -- sh -c "echo {} >>$tmp/after"
is "each is done once" "$rc/$(state)" "0/(5, 0, 0)"
is "... in their order" "$(tr '\n' ' ' <"$tmp/after")" "urgent $(seq 11 14 | tr '\n' ' ')"
ok "... and nobody has copies" wait_for 20 count_is 0 copies 0

# The home alone dies: who keeps them and who has copies both submit them again, once.
seq 31 33 | put 2 a
kill_node 1
start 1
ok "the home is killed, and comes back" wait_for 20 ready 1
ok "... who has copies has submitted them" wait_for 40 count_is 0 kept_again 8
ok "... and who keeps them" wait_for 20 count_is 2 kept_again 3
is "... each is there once" "$(state)" "(0, 3, 0)"

# Who has copies dies: what is put then is taken without, late, and has copies when he is back.
kill_node 0
seq 41 43 | put 2 a
is "the third node is killed: what is put is taken, and late" "$?/$(state)/$(late)" \
	"0/(0, 6, 0)/(True, 3)"
start 0
ok "it is back" wait_for 20 ready 0
ok "... and has copies of all" wait_for 20 count_is 0 copies 6
ok "... as the queue says" wait_for 20 has_all
queue 0 run a -- true
ok "they are done, and have no copies" wait_for 20 count_is 0 copies 0
ok "... nor are they kept" wait_for 20 count_is 2 kept 0

end_all
is "nothing was complained of" "$(complaints "$tmp"/log[012])" ""
finish
