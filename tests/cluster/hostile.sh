#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 900
# A cluster over Soft-RoCE, each node a VM: one that has another key pair, and one that has the
# right one and writes to memory of others that it was not given. The others do not notice.

# shellcheck source=tests/cluster/lib/vms.sh
. "$(dirname "$0")/lib/vms.sh"

vms_cluster 3 10000
count=()
vms_start 0 1 2
ok "the gateway has both nodes" wait_for 60 peers_up 0 2
on 1 receive r
ok "a ring is filled" wait_for 30 filled 1
ok "traffic" burst r 8 0 49 1

# Another key
on 2 stop daemon
on 2 other_key
on 2 daemon
ok "a node with another key is refused: counted" wait_for 30 refused 0
ok "... and told to it" on 2 'grep -q "node 0 does not take it for node 2" $dir/log'
ok "that node is down" peers_up 0 1
ok "traffic to the other one" burst r 8 1000 1049 1
on 2 stop daemon
on 2 own_key

# The right key, and memory that it was not given, with the keys of all regions that there
# are: as one who guesses well.
before=$(connections)
on 0 transmit t -f 8 -b 2000 -n 100000 -r 100
for victim in 0 1; do
	on $victim regions >"$tmp/regions.$victim"
	python3 "$top/tests/cluster/lib/targets.py" choose $RANDOM "$tmp/regions.$victim" \
		>"$tmp/vm2/targets.$victim"
	cp "$tmp/vm2/targets.$victim" "$tmp/vm$victim/targets"
	count[victim]=$(wc -l <"$tmp/vm2/targets.$victim")
	out=$(vm_limit=300 on 2 hostile $victim)
	like "node $victim: ${count[victim]} writes where nobody may, each is refused" "$out" \
		"refused ${count[victim]} written 0 other 0"
	ok "node $victim: nothing was written" on $victim intact
done
# That this would be seen: a write that is allowed
python3 "$top/tests/cluster/lib/targets.py" lent "$tmp/regions.0" >"$tmp/vm2/targets.0"
cp "$tmp/vm2/targets.0" "$tmp/vm0/targets"
like "what is lent can be written" "$(on 2 hostile 0)" "refused 0 written 1 other 0"
like "... and found" "$(on 0 intact)" "written at 1 place"
ok "traffic to the other node meanwhile, each datagram once" all_arrive r t 2000 1
now=$(connections)
is "... over one connection" "$(json 'j["1"]' <<<"$now")" "$(json 'j["1"]' <<<"$before")"
new=$(($(json 'j["2"]' <<<"$now") - $(json 'j["2"]' <<<"$before")))
ok "each refusal ended a connection, and is counted" [ $new -ge "${count[0]}" ]
on 2 daemon
ok "an honest daemon takes its place" wait_for 60 peers_up 0 2
on 2 receive r
ok "both rings are filled" wait_for 30 filled 2
ok "traffic over both" burst r 8 900000 900049 1 2

vms_finish 0 1 2
