#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 900
# A cluster over Soft-RoCE, each node a VM: a wire that is cut or loses and reorders
# packets, and consumers that are too slow.

# shellcheck source=tests/cluster/lib/vms.sh
. "$(dirname "$0")/lib/vms.sh"

vms_cluster 3 10000
for id in 0 1 2; do
	vm_boot $id
done
for id in 0 1 2; do
	ok "VM $id is there" wait_for 200 vm_ready $id
done
[ "$failures" = 0 ] || { sed 's/^/# /' "$tmp"/log?; finish; }
for id in 0 1 2; do
	on $id daemon
done
ok "the gateway has both nodes" wait_for 60 peers_up 0 2
on 1 receive r
on 2 receive r
ok "both rings are filled" wait_for 30 filled 2
ok "traffic over both" burst r 8 0 99 1 2

connections() { node_status 0 '[p["connections"] for p in j["peers"]]'; }
sent_and_arrived()
{
	on 0 stop t
	wait_for 60 whole "$@" || whole "$@"
}
# whole FIRST: what was transmitted from there on is there, once
whole()
{
	local count
	count=$(on 0 sent t) || return
	# the last round of flows may not be complete
	arrived r 8 "$1" $(($1 + count / 8 - 1)) 1 2
}

# Shorter than the timeout: nothing is lost, the connection stays.
before=$(connections)
on 0 transmit t -f 8 -b 1000 -n 100000 -r 200
sleep 1
on 2 'tc qdisc add dev eth0 root netem loss 100%; sleep 3; tc qdisc del dev eth0 root'
sleep 1
ok "a cut of 3 s: each datagram arrives, once" sent_and_arrived 1000
is "and all connections are the same" "$(connections)" "$before"

# Longer: its flows go to the other node, and come back.
on 0 transmit t -f 8 -b 2000 -n 100000 -r 200
sleep 1
on 2 ip link set eth0 down
ok "a cut: the gateway sees it" wait_for 60 peers_up 0 1
ok "and so does the node that is cut off" wait_for 60 peers_up 2 0
on 0 stop t
ok "its flows are at the other one" burst r 8 10000 10099 1
ok "the other one's were not touched" kept r 0 2000 t 1
on 2 ip link set eth0 up
ok "it is connected again" wait_for 90 peers_up 0 2
ok "its ring is filled" wait_for 30 filled 2
ok "traffic over both" burst r 8 11000 11099 1 2
fetch r 1 2
ok "nothing was malformed or out of order meanwhile" verify sound "$tmp"/r.[12]

# A bad wire
before=$(connections)
base=20000
for bad in "loss 1%" "loss 10%" "delay 4ms 3ms reorder 25% 50%" "loss 1% duplicate 2% delay 1ms"; do
	for id in 0 1 2; do
		# shellcheck disable=SC2086 # words
		on $id tc qdisc add dev eth0 root netem $bad || failures=$((failures + 1))
	done
	rate=200
	ok "netem $bad: each datagram arrives, once" burst r 8 $base $((base + 99)) 1 2
	for id in 0 1 2; do
		on $id tc -s qdisc show dev eth0 | grep -E "Sent|dropped" | sed "s/^/# node $id:/"
		on $id tc qdisc del dev eth0 root
	done
	base=$((base + 1000))
done
is "all connections are the same" "$(connections)" "$before"

# A slow consumer: 100 frames a second and 256 slots. It is waited for,
on 1 stop r
on 2 stop r
on 0 "\$ringgate steer remove flows && \
	\$ringgate steer add flows node:1 full=wait" || failures=$((failures + 1))
on 1 receive slow -n 256 -d 5000
ok "a slow consumer's ring is filled" wait_for 30 filled 1
ok "full=wait: each datagram arrives, once" burst slow 8 30000 30149 1
is "nothing was dropped" "$(node_status 0 '[r["dropped_full"] for r in j["gateway"]["rings"]]')" "[0]"
is "the gateway had to wait" "$(node_status 0 'all(r["stalls"] > 0 for r in j["gateway"]["rings"])')" True
on 1 stop slow

# or not.
on 0 "\$ringgate steer remove flows && \$ringgate steer add flows node:1 full=drop" ||
	failures=$((failures + 1))
wait_for 30 filled 0
on 1 receive slow -n 256 -d 5000
ok "its ring is filled again" wait_for 30 filled 1
on 0 send -f 8 -b 40000 -n 1600 -r 1600
accounted()
{
	fetch slow 1
	[ "$(($(verify frames "$tmp/slow.1") +
		$(node_status 0 'sum(r["dropped_full"] for r in j["gateway"]["rings"])')))" = 1600 ]
}
ok "full=drop: what does not arrive is counted" wait_for 60 accounted
is "... and that is some of it" \
	"$(node_status 0 'sum(r["dropped_full"] for r in j["gateway"]["rings"]) > 0')" True
ok "what arrives is right, and in order" verify sound "$tmp/slow.1"
ok "and the rest of the cluster is well" peers_up 0 2

[ "$failures" = 0 ] || logs 0 1 2
for id in 0 1 2; do
	ok "node $id: the daemon ends when told to" on $id stop daemon
done
vm_end 0 1 2
finish
