#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 1200
# The largest cluster, eight nodes over Soft-RoCE, each a VM: everybody is connected with
# everybody, flows are spread, copies go to all, and two nodes that are lost change
# nothing for the others.

# shellcheck source=tests/cluster/lib/vms.sh
. "$(dirname "$0")/lib/vms.sh"

vms_memory=512
flows=64
vms_limit=1200
vm_limit=200
vms_cluster 8 20000
vms_start 0 1 2 3 4 5 6 7
ok "the gateway has seven nodes" wait_for 120 peers_up 0 7
for id in 1 2 3 4 5 6 7; do
	ok "node $id is connected with all others" wait_for 60 peers_up $id 7
done
pids=()
for id in 1 2 3 4 5 6 7; do
	on $id receive r &
	pids+=($!)
done
wait "${pids[@]}"
ok "seven rings are filled" wait_for 60 filled 7
ok "flows over seven nodes, each datagram once" burst r 64 0 19 1 2 3 4 5 6 7
for id in 1 2 3 4 5 6 7; do
	[ "$(verify frames "$tmp/r.$id")" -gt 0 ]
	result $? "some of it at node $id"
done

on 0 '$ringgate steer add --before flows copies "all:*" udp src port 20063'
ok "a copy for each" copies r 64 1000 1 2 3 4 5 6 7
on 0 '$ringgate steer remove copies'

# Two at a time
on 0 transmit t -f 64 -b 2000 -n 1000000 -r 200
sleep 2
vm_kill 7
on 6 stop daemon -9
ok "the gateway sees that two nodes are gone" wait_for 90 peers_up 0 5
sleep 1
on 0 stop t
for id in 1 2 3 4 5; do
	ok "the flows of node $id were not touched" wait_for 60 kept r 0 2000 t $id
done
ok "all flows over the other five" burst r 64 1000000 1000009 1 2 3 4 5
on 6 daemon
vm_boot 7
ok "VM 7 boots" wait_for 300 vm_ready 7
on 7 daemon
ok "both are back" wait_for 120 peers_up 0 7
on 6 receive r
on 7 receive r
ok "seven rings are filled" wait_for 60 filled 7
ok "flows over seven nodes again" burst r 64 2000000 2000009 1 2 3 4 5 6 7

vms_finish 0 1 2 3 4 5 6 7
