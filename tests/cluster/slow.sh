#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 600
# A cluster over Soft-RoCE, each node a VM: the consumer at one node is too slow. It is
# waited for, or its frames are dropped and counted, as the rule says; the other node gets
# its own at once.

# shellcheck source=tests/cluster/lib/vms.sh
. "$(dirname "$0")/lib/vms.sh"

vms_cluster 3 10000
# Flows have source ports one after the other: every other one goes to the slow node.
steer()
{
	printf '%s\n' "slow node:1 full=$1 udp[1] & 1 = 0" "fast node:2 full=wait udp[1] & 1 = 1"
}
steer wait >"$tmp/steer"
vms_start 0 1 2
ok "the gateway has both nodes" wait_for 60 peers_up 0 2
on 2 receive r

# ring: the slow one, with 256 slots and 5 ms a frame
ring()
{
	on 1 receive slow -n 256 -d 5000
	ok "both rings are filled" wait_for 30 filled 2
}
gateway_ring() { node_status 0 "sum(r['$2'] for r in j['gateway']['rings'] if r['node'] == $1)"; }
# fast FIRST: its four flows have 200 datagrams each, from there on
fast() { fetch r 2 && verify kept "$1" "$1" $(($1 + 199)) "$tmp/r.2"; }

ring
count_from
on 0 'send -f 8 -b 0 -n 1600 -r 1600 >/dev/null'
ok "full=wait: the other node has its own" wait_for 20 fast 0
like "... while the slow one's wait" "$(gateway_ring 1 waiting)" "^[1-9]"
both() { fetch r 2; fetch slow 1; verify once 8 "$1" $(($1 + 199)) "$tmp/slow.1" "$tmp/r.2"; }
ok "... and arrive in the end, each datagram once" wait_for 60 both 0
is "nothing was dropped" "$(gateway_ring 1 dropped_full)" 0
ok "the gateway had to wait" [ "$(gateway_ring 1 stalls)" -gt 0 ]
settled() { accounted 8 "$1" 1600 "$tmp"/vm[12]/got/*; }
ok "all of it is accounted for" wait_for 30 settled 0
on 1 stop slow

steer drop >"$tmp/vm0/steer"
on 0 'cp $LAB_SHARE/steer $dir/steer && kill -HUP $(cat $dir/daemon.pid)'
ok "the ring is left" wait_for 30 filled 1
ring
count_from
on 0 'send -f 8 -b 10000 -n 1600 -r 1600 >/dev/null'
ok "full=drop: the other node has its own" wait_for 20 fast 10000
ok "what does not arrive is counted" wait_for 60 settled 10000
ok "... and that is some of it" [ "$(gateway_ring 1 dropped_full)" -gt 0 ]
is "... of the slow node's only" "$(gateway_ring 2 dropped_full)" 0
ok "what arrives is right, and in order" sound slow 1
ok "all are still connected" peers_up 0 2

vms_finish 0 1 2
