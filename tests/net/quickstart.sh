#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 120
# The quick start of net.rst and its rules, as they stand there, on one machine: RDMA is
# replaced by shared memory, and the gateway's module by a packet socket on a cable.

# shellcheck disable=SC2317 # functions that wait_for calls
if [ "${1:-}" != inside ]; then
	if unshare -n true 2>/dev/null; then
		exec unshare -n "$0" inside
	elif unshare -rn true 2>/dev/null; then
		exec unshare -rn "$0" inside
	fi
	echo "1..0 # SKIP no network namespaces for this user"
	exit 0
fi
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

sysctl -qw net.ipv6.conf.default.disable_ipv6=1
ip link add eth1 type veth peer name far || skip_all "no veth devices on this kernel"
ip link set eth1 up
ip link set far up
ip addr add 198.51.100.1/24 dev far
ip neigh add 198.51.100.9 lladdr 02:00:00:00:00:09 dev far

pids=()
trap 'kill "${pids[@]}" 2>/dev/null; wait; rm -rf "$tmp"' EXIT
mkdir "$tmp/bin"
ln -s "$ringgate" "$build/tools/ringgated" "$tmp/bin/"
PATH=$tmp/bin:$PATH

# What the document says, with what a test has to have for itself
mine()
{
	sed -e "s,/etc/ringgate,$tmp,g" -e "s,/var/lib/ringgate,$tmp,g" \
		-e 's/provider verbs/provider local/' -e "s,192\.0\.2\.\([0-9]\),$tmp/n\1,g" \
		-e 's/module eth1/packet eth1/'
}
# lines FROM REGEX: the indented ones that match, of the chapter
lines()
{
	awk -v chapter="$1" '$0 == chapter { on = 1; next } on && /^===/ { if (seen++) exit }
		on && /^   / { print substr($0, 4) }' "$top/Documentation/net.rst" | grep -E "$2" | mine
}
lines "Quick start" '^(#|provider|node) ' >"$tmp/cluster.conf"
is "the cluster file is found" "$(grep -c '^node' "$tmp/cluster.conf")" 3
export RGATE_CLUSTER=$tmp/cluster.conf
while read -r command; do
	ok "$command" bash -c "$command >>$tmp/cluster.conf"
done < <(lines "Quick start" '^ringgate cluster keygen' | sed 's/ *#.*//')
is "the private keys are made" "$(stat -c '%a %s' "$tmp"/node[012].key | uniq)" "600 45"
ok "and ringgate cluster show finds nothing wrong" "$ringgate" cluster show

# start NODE COMMAND...: the daemon, which would find out by its addresses who it is
start()
{
	local node=$1
	shift
	eval "$* -n $node -s $tmp/s$node --pool 16M" \
		>"$tmp/log$node" 2>&1 &
	pids+=($!)
}
mapfile -t daemons < <(lines "Quick start" '^ringgated' | sed 's/ *#.*//')
start gw "${daemons[0]}"
start one "${daemons[1]}"
start two "${daemons[1]}"
up()
{
	[ "$(RGATE_SOCKET=$tmp/sgw "$ringgate" cluster status --json |
		json 'sum(p["state"] == "up" for p in j["peers"])')" = 2 ]
}
ok "all are connected" wait_for 20 up

mapfile -t capture < <(lines "Quick start" '^ringgate capture')
for node in one two; do
	RGATE_SOCKET=$tmp/s$node timeout $((60 * slow)) ${capture[0]} >"$tmp/got-$node" 2>"$tmp/err-$node" &
	pids+=($!)
done
filled()
{
	[ "$(RGATE_SOCKET=$tmp/sgw "$ringgate" cluster status --json |
		json 'len(j["gateway"]["rings"])')" = 2 ]
}
ok "both rings are filled" wait_for 20 filled

export RGATE_SOCKET=$tmp/sgw
while read -r command; do
	ok "$command" bash -c "$command"
done < <(lines "Rules" '^ringgate steer')
is "the default is last" "$("$ringgate" steer list --json |
	json '" ".join(r["rule"].split()[0] for r in j)')" "dns ctl flows default"
is "... also in the file" "$(grep -v '^#' "$tmp/steer.conf" | awk '{ print $1 }' | xargs)" \
	"dns ctl flows default"

# 40 flows to port 53, 40 others, 3 pings
python3 - <<-'END'
	import socket
	for i in range(40):
	    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
	    s.sendto(b"x", ("198.51.100.9", 53))
	    s.sendto(b"x", ("198.51.100.9", 5300))
	s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
	for i in range(3):
	    s.sendto(b"\x08\x00\xf7\xff\x00\x00\x00\x00", ("198.51.100.9", 0))
END
# got NODE REGEX: frames that were printed there
got() { grep -cE "$2" "$tmp/got-$1"; }
# but for others', as ARP
sent=':53(00)?( |$)|ICMP'
all() { [ $(($(got one "$sent") + $(got two "$sent"))) -ge 86 ]; }
ok "all frames arrive" wait_for 20 all
is "dns: to node 1 alone" "$(got one ':53( |$)') $(got two ':53( |$)')" "40 0"
is "ctl: to both" "$(got one ICMP) $(got two ICMP)" "3 3"
# whole numbers: a sender's port may begin like that, too
flows=("$(got one ':5300( |$)')" "$(got two ':5300( |$)')")
is "flows: each at one of them" $((flows[0] + flows[1])) 40
[ "${flows[0]}" -gt 0 ] && [ "${flows[1]}" -gt 0 ]
result $? "... and some at each"
is "rules count what they matched" "$("$ringgate" steer list --json |
	json '[r["frames"] for r in j][:3]')" "[40, 3, 40]"
finish
