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

# of what node $1 has
count_of() { "$ringgate" cluster status -s "$tmp/s$1" --json | json "j['requests']['queues']['$2']"; }
count_is() { [ "$(count_of "$1" "$2")" = "$3" ]; }
mirror_of() { stat_of "$1" a "j['mirror']['$2']"; }

start_all

queue 2 create --mirror --attempts 7 a
is "a queue with a mirror" "$rc/$err" "0/"
seq 10 | put 2 a
is "what node 2 puts, node 0 has copies of" "$?/$(count_of 0 copies)/$(mirror_of 0 nodes)" "0/10/[0]"
is "... all of it" "$(mirror_of 0 missed)/$(mirror_of 0 late)" "0/False"
queue 0 run a -- sh -c "echo {} >>$tmp/ran"
is "a worker completes them" "$rc/$(wc -l <"$tmp/ran")" "0/10"
ok "... and there are no copies any more" wait_for 20 count_is 0 copies 0

# Home and submitter die: at node 0, which has a copy, a worker has one task
seq 11 30 | put 2 a
echo urgent | put 2 -p 0 a
work 0 claimed a
ok "a worker has one" wait_for 20 said claimed
is "all that are not completed have copies" "$(count_of 0 copies)" 21
kill -9 "${pid[1]}" "${pid[2]}"
wait "${pid[1]}" "${pid[2]}" 2>/dev/null
start 1
start 2
ok "home and submitter are killed together, and come back" wait_for 20 ready 1
ok "... both" wait_for 20 ready 2
ok "... and the tasks are there" wait_for 40 stat_is 1 a 'j["ready"]' 21
: >"$tmp/claimed.go"
ended claimed
is "who had one completes nothing in this one" "$status/$(stat_of 1 a 'j["completed"]')" "1/0"
is "it was made as it had been" "$(stat_of 1 a 'j["attempts"]')" 7
queue 0 run a -- sh -c "echo {} >>$tmp/after"
is "each is done once" "$rc/$(stat_of 1 a '(j["completed"], j["ready"], j["buried"])')" \
	"0/(21, 0, 0)"
is "... in their order" "$(tr '\n' ' ' <"$tmp/after")" "urgent $(seq 11 30 | tr '\n' ' ')"
ok "... and nobody has copies" wait_for 20 count_is 0 copies 0

# The home alone dies: who keeps them and who has copies both submit them again, once.
seq 31 40 | put 2 a
kill_node 1
start 1
ok "the home is killed, and comes back" wait_for 20 ready 1
ok "... with the tasks" wait_for 40 stat_is 1 a 'j["ready"]' 10
ok "... who has copies has submitted them, too" wait_for 20 count_is 0 kept_again 31
is "... each once" "$(stat_of 1 a 'j["ready"]')" 10
queue 0 run a -- sh -c "echo {} >>$tmp/third"
is "... and done once" "$(tr '\n' ' ' <"$tmp/third")" "$(seq 31 40 | tr '\n' ' ')"
ok "nothing is kept, nor copied" wait_for 20 count_is 0 copies 0
ok "... at any node" wait_for 20 count_is 2 kept 0

# Who has copies dies: what is put then is taken without, late, and has copies when he is back.
seq 41 50 | put 2 a
kill_node 0
seq 51 60 | put 2 a
is "the third node is killed: what is put is taken" "$?/$(stat_of 1 a 'j["ready"]')" "0/20"
is "... and the queue says that it is late" "$(mirror_of 1 late)/$(count_of 1 unmirrored)" "True/10"
start 0
ok "it is back" wait_for 20 ready 0
ok "... and has copies of all" wait_for 20 count_is 0 copies 20
has_all() { [ "$(mirror_of 1 late)/$(mirror_of 1 nodes)/$(mirror_of 1 missed)" = "False/[0]/10" ]; }
ok "... as the queue says" wait_for 20 has_all
queue 0 run a -- true
ok "... until they are done" wait_for 20 count_is 0 copies 0

end_all
is "nothing was complained of" "$(complaints "$tmp"/log[012])" ""
finish
