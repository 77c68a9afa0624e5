#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 900
# A cluster over Soft-RoCE, each node a VM: traffic, daemons that are killed, a VM that is
# lost. What is sent is numbered; each datagram has to be somewhere, once, and right.

# shellcheck source=tests/cluster/lib/vms.sh
. "$(dirname "$0")/lib/vms.sh"

vms_cluster 3 10000
vm_boot 0
vm_boot 1
ok "VM 0 is there" wait_for 150 vm_ready 0
ok "VM 1 is there" wait_for 150 vm_ready 1
[ "$failures" = 0 ] || { sed 's/^/# /' "$tmp"/log?; finish; }

# two nodes; the third one is not there yet
on 0 daemon
on 1 daemon
ok "gateway and node 1 are connected" wait_for 60 peers_up 0 1
on 1 receive r
ok "its ring is filled" wait_for 30 filled 1
ok "all traffic at node 1" burst r 8 0 99 1

# three
vm_boot 2
ok "VM 2 is there" wait_for 150 vm_ready 2
on 2 daemon
ok "the gateway has both" wait_for 60 peers_up 0 2
ok "the nodes have each other" wait_for 60 peers_up 2 2
on 2 receive r
ok "both rings are filled" wait_for 30 filled 2
ok "traffic over both, each datagram once" burst r 8 100 299 1 2
fetch r 2
[ "$(verify frames "$tmp/r.2")" -gt 0 ]
result $? "some of it at node 2"

# the daemon of node 2 is killed, in the middle of traffic
on 0 transmit t -f 8 -b 1000 -n 100000 -r 200
sleep 2
on 2 stop daemon -9
ok "the gateway sees that a daemon was killed" wait_for 60 peers_up 0 1
sleep 1
on 0 stop t
ok "its flows are at node 1, all of them" burst r 8 10000 10099 1
ok "those of node 1 were not touched" kept r 100 1000 t 1
on 2 daemon
ok "the daemon comes back" wait_for 60 peers_up 0 2
on 2 receive r
ok "its ring is filled" wait_for 30 filled 2
ok "and traffic is over both again" burst r 8 11000 11099 1 2
ok "nothing was malformed or out of order meanwhile" verify sound "$tmp"/r.[12]

# the gateway's
on 0 transmit t -f 8 -b 20000 -n 100000 -r 200
sleep 2
on 0 stop daemon -9
ok "the nodes see that the gateway was killed" wait_for 60 peers_up 1 1
on 0 stop t
on 0 daemon
ok "the gateway comes back, and fills the rings that are there" wait_for 60 filled 2
ok "traffic over both" burst r 8 30000 30099 1 2
ok "nothing was malformed or out of order meanwhile" verify sound "$tmp"/r.[12]
for id in 1 2; do
	is "node $id has the same ring, in its second session" \
		"$(node_status $id '[r["sessions"] for r in j["rings"]]')" "[2]"
done

# a machine
on 0 transmit t -f 8 -b 40000 -n 100000 -r 200
sleep 2
vm_kill 2
ok "the gateway sees that a machine is gone" wait_for 60 peers_up 0 1
sleep 1
on 0 stop t
ok "its flows are at node 1" burst r 8 50000 50099 1
ok "those of node 1 were not touched" kept r 30000 40000 t 1
vm_boot 2
ok "VM 2 boots" wait_for 150 vm_ready 2
on 2 daemon
ok "it joins" wait_for 60 peers_up 0 2
on 2 receive r
ok "its ring is filled" wait_for 30 filled 2
ok "traffic over both" burst r 8 60000 60099 1 2
ok "nothing was malformed or out of order meanwhile" verify sound "$tmp"/r.[12]

[ "$failures" = 0 ] || logs 0 1 2
for id in 0 1 2; do
	ok "node $id: the daemon ends when told to" on $id stop daemon
done
vm_end 0 1 2
finish
