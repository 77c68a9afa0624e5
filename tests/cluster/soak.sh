#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# A soak of a gateway and two nodes, each a VM, over Soft-RoCE. In each round there is
# traffic, and something happens by chance: a daemon or a machine is killed, a wire is cut,
# for less or for more than the timeout, or loses packets, a consumer is replaced. Then each
# datagram that was sent has to have been consumed, once and as it was sent, or to be counted
# for what became of it, and all goes on as before. At the end: what processes held on to,
# and what the kernels said.
#
#   SOAK_SECONDS  how long (1800)
#   SOAK_SEED     what happens when; it is printed, so that it can happen again
#   SOAK_RATE     datagrams a second (100)

# shellcheck source=tests/cluster/lib/vms.sh
. "$(dirname "$0")/lib/vms.sh"

seconds=${SOAK_SECONDS:-1800}
seed=${SOAK_SEED:-$RANDOM}
rate=${SOAK_RATE:-100}
flows=8
echo "# timeout: $((seconds + 900))"
echo "# seed $seed; again: make soak SOAK_SEED=$seed SOAK_SECONDS=$seconds"

vms_limit=$((seconds + 800))
vm_limit=300			# for an answer
vms_cluster 3 10000
vms_start 0 1 2
old=$tmp/old			# reports of receivers that are no more
mkdir "$old"
: >"$tmp/held"
: >"$tmp/rounds"
begun=$SECONDS
RANDOM=$seed
count=0				# of receivers
declare -a reader

# Not in a subshell, which would have chances of its own
draw() { drawn=$((RANDOM % $1)); }

# receiver ID: begins; its report has a name of its own
receiver()
{
	count=$((count + 1))
	reader[$1]=r$count
	on "$1" receive "r$count"
}
put_away() { mv "$tmp/vm$1/got/${reader[$1]}" "$old/"; }
reports() { find "$old" "$tmp"/vm[12]/got -name 'r*[0-9]'; }

whole()
{
	[ "$(node_status 0 '[p["state"] for p in j["peers"]], len(j["gateway"]["rings"])')" = \
		"(['up', 'up'], 2)" ]
}

# What may happen. Node 1 is never killed, so that there is one process that lives all the
# time. `exact` tells whether all that the gateway delivered is consumed.

calm() { sleep 3; }
daemon_killed()
{
	# Its device writes a little longer than its consumer, which sees the end and takes
	# what is there.
	exact=no
	on 2 stop daemon -9
	on 2 "while running ${reader[2]}; do sleep 0.1; done"
	put_away 2
	on 2 daemon
	receiver 2
}
gateway_killed()
{
	# shellcheck disable=SC2046 # names without spaces
	from=$(verify progress "$flows" "$base" $(reports))
	exact=no
	on 0 stop daemon -9
	wait_for 60 peers_up 1 1
	on 0 daemon
}
machine_killed()
{
	exact=no
	vm_kill 2
	put_away 2
	vm_boot 2
	wait_for 300 vm_ready 2
	on 2 daemon
	receiver 2
}
consumer_replaced()
{
	draw 2
	exact=no
	on $((drawn + 1)) stop "${reader[drawn + 1]}"
	put_away $((drawn + 1))
	receiver $((drawn + 1))
}
wire_cut_short()
{
	local at
	draw 3
	at=$drawn
	draw 3
	on "$at" "wire_cut && sleep $((drawn + 1)); wire_mend"
}
wire_cut_long()
{
	local at
	draw 2
	at=$((drawn + 1))
	on "$at" wire_cut
	wait_for 60 peers_up 0 1
	wait_for 60 peers_up "$at" 0
	on "$at" wire_mend
}
wire_lossy()
{
	local at
	draw 3
	at=$drawn
	draw 10
	on "$at" "tc qdisc add dev eth0 root netem loss $((drawn + 1))% &&
		sleep 6; tc qdisc del dev eth0 root"
}
events=(calm daemon_killed daemon_killed gateway_killed machine_killed consumer_replaced
	wire_cut_short wire_cut_short wire_cut_long wire_lossy wire_lossy)

# settled: what the gateway and the receivers say fits together
settled()
{
	# shellcheck disable=SC2046 # names without spaces
	if [ "$event" = gateway_killed ]; then
		verify between $flows "$base" "$sent" "$from" $((sent - 2 * rate)) $(reports)
	else
		on 0 status >"$tmp/after" && verify accounted "$tmp/before" "$tmp/after" \
			$flows "$base" "$sent" "$exact" $(reports)
	fi
}

# settle SECONDS: waits for that; the last answer is in $outcome
settle()
{
	local end=$((SECONDS + $1))

	until outcome=$(settled 2>&1); do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.5
	done
}

note_held()
{
	local id

	for id in 0 1 2; do
		echo "round $round node $id $(on $id held)" >>"$tmp/held"
	done
}

one_round()
{
	local at=$((SECONDS - begun)) back

	base=$((round * 100000))
	exact=exact
	draw ${#events[@]}
	event=${events[drawn]}
	count_from
	on 0 transmit t -f $flows -b $base -n 1000000 -r "$rate"
	sleep 2
	back=$SECONDS
	"$event" >/dev/null
	wait_for 150 whole
	back=$((SECONDS - back))
	sleep 3
	on 0 stop t
	sent=$(on 0 sent t)
	settle 90
	result $? "round $round, $at s: $event: ${outcome//$'\n'/; }"
	[[ $outcome = sent* ]] || outcome="sent $sent"
	echo "$event back $back ${outcome%%$'\n'*}" >>"$tmp/rounds"
	ok "round $round: the cluster is whole after $back s" whole
	note_held
}

receiver 1
receiver 2
ok "the gateway has both nodes and fills their rings" wait_for 90 whole
for ((round = 1; SECONDS - begun < seconds && failures < 3; round++)); do
	one_round
done
[ "$failures" = 0 ] || grep . "$tmp/held" | tail -n 6 | sed 's/^/# /'
python3 "$top/tests/cluster/lib/soak.py" "$tmp/rounds" "$tmp/held" >"$tmp/table"
result $? "no process holds more and more"
sed 's/^/# /' "$tmp/table"
grep -h "kernel complained" -A 5 "$tmp"/log? | sed 's/^/# /'
ok "the kernels of VMs that were killed had not complained" \
	[ "$(cat "$tmp"/log? | grep -c "kernel complained")" = 0 ]

vms_finish 0 1 2
