#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 900
# A cluster over Soft-RoCE, each node a VM: machines that reboot, the gateway's too, with
# and without a shutdown. Nothing else is started again.

# shellcheck source=tests/cluster/lib/vms.sh
. "$(dirname "$0")/lib/vms.sh"

vms_cluster 3 10000
vms_start 0 1 2
ok "the gateway has both nodes" wait_for 60 peers_up 0 2
on 1 receive r
on 2 receive r
ok "both rings are filled" wait_for 30 filled 2
ok "traffic over both" burst r 8 0 49 1 2

# A node
on 0 transmit t -f 8 -b 1000 -n 100000 -r 200
sleep 1
vm_end 2
ok "the gateway sees that node 2 shut down" wait_for 60 peers_up 0 1
sleep 1
on 0 stop t
ok "its flows are at node 1" burst r 8 20000 20049 1
ok "those of node 1 were not touched" kept r 0 1000 t 1
vm_boot 2
ok "VM 2 boots" wait_for 200 vm_ready 2
on 2 daemon
ok "it joins" wait_for 60 peers_up 0 2
on 2 receive r
ok "its ring is filled" wait_for 30 filled 2
ok "traffic over both" burst r 8 30000 30049 1 2

# The gateway, by a shutdown, then by a loss of power
base=100000
for way in vm_end vm_kill; do
	on 0 transmit t -f 8 -b $base -n 100000 -r 200
	sleep 1
	$way 0
	ok "$way: the nodes see that the gateway is gone" wait_for 60 peers_up 1 1
	ok "what arrived is right, and in order" sound r 1 2
	vm_boot 0
	ok "the gateway boots" wait_for 200 vm_ready 0
	on 0 daemon
	ok "it has both nodes" wait_for 60 peers_up 0 2
	ok "and fills their rings" wait_for 30 filled 2
	ok "traffic over both" burst r 8 $((base + 50000)) $((base + 50049)) 1 2
	base=$((base + 100000))
done
is "node 1 has the same ring, in its third session" \
	"$(node_status 1 '[r["sessions"] for r in j["rings"]]')" "[3]"

vms_finish 0 1 2
