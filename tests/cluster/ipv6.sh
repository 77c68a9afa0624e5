#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 300
# A cluster of two VMs over Soft-RoCE whose nodes have IPv6 addresses on the wire: traffic,
# and a connection that is lost and comes back.

# shellcheck source=tests/cluster/lib/vms.sh
. "$(dirname "$0")/lib/vms.sh"

ipv=6
vms_cluster 2 10000
vms_start 0 1
ok "gateway and node are connected" wait_for 60 peers_up 0 1
like "... by IPv6" "$(on 1 rdma resource show cm_id)" "fd00:90::"
on 1 receive r
ok "its ring is filled" wait_for 30 filled 1
ok "traffic: each datagram arrives, once" burst r 8 0 49 1
on 0 stop daemon -9
ok "the node sees that the gateway was killed" wait_for 60 peers_up 1 0
on 0 by_address=1 daemon
ok "it comes back, as the one whose address it has, and fills the ring that is there" wait_for 60 filled 1
ok "traffic" burst r 8 10000 10049 1

vms_finish 0 1
