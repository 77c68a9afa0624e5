#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 300
# A cluster of two VMs over Soft-RoCE, for every run of the tests: traffic, a wire that
# stalls and loses packets, a daemon that is killed, a wrong key. The other tests of this
# directory have more nodes, and more that goes wrong.

# shellcheck source=tests/cluster/lib/vms.sh
. "$(dirname "$0")/lib/vms.sh"

# longer than a busy machine needs to cut and mend a wire
vms_cluster 2 15000
vms_start 0 1
ok "gateway and node are connected" wait_for 60 peers_up 0 1
on 1 receive r
ok "its ring is filled" wait_for 30 filled 1
ok "traffic: each datagram arrives, once" burst r 8 0 49 1

before=$(connections)
on 0 transmit t -f 8 -b 1000 -n 100000 -r 200
sleep 1
cut=$(on 1 wire_cut_for 2)
result $? "a wire is cut for 2 s"
echo "# $cut"
ok "all arrive, once" all_arrive r t 1000 1
on 1 tc qdisc add dev eth0 root netem loss 1% || failures=$((failures + 1))
ok "a wire that loses 1 %: all arrive, once" burst r 8 10000 10049 1
on 1 tc qdisc del dev eth0 root
is "over one connection" "$(connections)" "$before"

on 0 transmit t -f 8 -b 20000 -n 100000 -r 200
sleep 1
on 1 stop daemon -9
ok "the gateway sees that the daemon was killed" wait_for 60 peers_up 0 0
on 0 stop t
ok "what arrived is right, and in order" sound r 1
on 1 other_key
on 1 daemon
ok "a node with another key is refused: counted" wait_for 30 refused 0
ok "... and told to it" on 1 'grep -q "node 0 does not take it for node 1" $dir/log'
ok "that node is down" peers_up 0 0
on 1 stop daemon
on 1 own_key
on 1 daemon
ok "with the right one it is back" wait_for 60 peers_up 0 1
on 1 receive r
ok "its ring is filled" wait_for 30 filled 1
ok "and traffic arrives" burst r 8 30000 30049 1

vms_finish 0 1
