#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 900
# A cluster over Soft-RoCE, each node a VM: a wire that is cut, for less and for more than
# the timeout, and one that loses, reorders and duplicates packets.

# shellcheck source=tests/cluster/lib/vms.sh
. "$(dirname "$0")/lib/vms.sh"

# longer than a busy machine needs to cut and mend a wire
vms_cluster 3 20000
vms_start 0 1 2
ok "the gateway has both nodes" wait_for 60 peers_up 0 2
on 1 receive r
on 2 receive r
ok "both rings are filled" wait_for 30 filled 2
ok "traffic over both" burst r 8 0 99 1 2

# Shorter than the timeout: nothing is lost, the connection stays.
before=$(connections)
on 0 transmit t -f 8 -b 1000 -n 100000 -r 200
sleep 1
cut=$(on 2 wire_cut_for 3)
result $? "a wire is cut for 3 s"
echo "# $cut"
sleep 1
ok "each datagram arrives, once" all_arrive r t 1000 1 2
is "and all connections are the same" "$(connections)" "$before"

# Longer: its flows go to the other node, and come back.
count_from
on 0 transmit t -f 8 -b 2000 -n 100000 -r 200
sleep 1
on 2 wire_cut
ok "a cut: the gateway sees it" wait_for 90 peers_up 0 1
ok "and so does the node that is cut off" wait_for 90 peers_up 2 0
on 0 stop t
ok "the other one's flows were not touched" wait_for 60 kept r 0 2000 t 1
all_accounted() { accounted 8 2000 "$(on 0 sent t)" "$tmp"/vm[12]/got/r; }
ok "all of it was consumed or is counted" wait_for 30 all_accounted
ok "its flows are at the other one" burst r 8 10000 10099 1
on 2 wire_mend
ok "it is connected again" wait_for 90 peers_up 0 2
ok "its ring is filled" wait_for 30 filled 2
ok "traffic over both" burst r 8 11000 11099 1 2

# A bad wire, at all nodes. While a tenth of the packets is lost connections may end: then
# it is counted what became of the frames.
disturb()
{
	local id

	for id in 0 1 2; do
		# shellcheck disable=SC2086 # words
		on $id tc qdisc add dev eth0 root netem $1 || failures=$((failures + 1))
	done
}
calm()
{
	local id

	for id in 0 1 2; do
		on $id 'tc -s qdisc show dev eth0; tc qdisc del dev eth0 root' |
			sed -n "s/^ Sent/# node $id: sent/p"
	done
}
before=$(connections)
base=20000
rate=200
for bad in "loss 1%" "delay 4ms 3ms reorder 25% 50%" "loss 1% duplicate 2% delay 1ms"; do
	disturb "$bad"
	ok "netem $bad: each datagram arrives, once" burst r 8 $base $((base + 49)) 1 2
	calm
	base=$((base + 1000))
done
is "all connections are the same" "$(connections)" "$before"
count_from
disturb "loss 10%"
on 0 'send -f 8 -b 30000 -n 400 -r 100 >/dev/null'
all_accounted() { accounted 8 30000 400 "$tmp"/vm[12]/got/r; }
ok "netem loss 10%: each datagram is consumed or counted" wait_for 180 all_accounted
all_accounted | sed 's/^/# /'
calm
ok "a good wire again: both nodes are there" wait_for 60 peers_up 0 2
ok "both rings are filled" wait_for 30 filled 2
ok "traffic over both" burst r 8 40000 40099 1 2

vms_finish 0 1 2
