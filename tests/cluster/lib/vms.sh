# SPDX-License-Identifier: MIT OR GPL-2.0
# shellcheck shell=bash disable=SC2154 # variables of tap.sh
#
# A cluster whose nodes are virtual machines on one wire. To be sourced; VM 0 is the
# gateway. Everything is driven from here, by a directory that each VM shares.

# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../cli/lib/tap.sh"

declare -A lab
kernel=${LAB_KERNEL:-6.1}
vms_limit=${CLUSTER_TIMEOUT:-900}	# seconds that a VM lives at most
vms_memory=640			# MiB of each
# A segment of this test's own
segment=239.$((RANDOM % 256)).$((RANDOM % 256)).$((RANDOM % 256)):$((20000 + RANDOM % 10000))

vms_kill_all()
{
	local id

	for id in "${!lab[@]}"; do
		kill "${lab[$id]}" 2>/dev/null
	done
	wait
	rm -rf "$tmp"
}
trap vms_kill_all EXIT
trap 'exit 143' TERM INT

# address ID: of its node on the wire, of kind $ipv
address()
{
	[ "${ipv:-4}" = 4 ] && echo "10.90.0.$(($1 + 1))" || echo "fd00:90::$(($1 + 1))"
}

# vms_cluster NODES TIMEOUT_MS: the cluster's files
vms_cluster()
{
	local id ms=$(($2 * slow))

	{
		echo "provider verbs"
		echo "timeout $((ms < 60000 ? ms : 60000))"
		echo "node 0 gateway $(address 0) gw"
		for ((id = 1; id < $1; id++)); do
			echo "node $id compute $(address $id) n$id"
		done
	} >"$tmp/cluster"
	echo "flows hash:*" >"$tmp/steer"
}

# own_keys ID: the nodes whose private keys that VM has: those that have its address
own_keys()
{
	awk -v addr="$(address "$1")" '$1 == "node" {
		at = $4
		if (at !~ /:.*:/ || at ~ /^\[/)
			sub(/:[0-9]+$/, "", at)
		gsub(/[][]/, "", at)
		if (at == addr)
			print $2
	}' "$tmp/cluster"
}

# vm_boot ID: begins to
vm_boot()
{
	local id=$1 node

	rm -rf "$tmp/vm$id"
	mkdir "$tmp/vm$id"
	cp "$tmp/cluster" "$tmp/steer" "$tmp/vm$id/"
	own_keys "$id" | while read -r node; do
		cp "$tmp/node$node.key" "$tmp/vm$id/"
	done
	[ ! -e "$tmp/spawn" ] || cp "$tmp/spawn" "$tmp/vm$id/"
	O=$build "$top/scripts/lab" -k "$kernel" -t $((vms_limit * slow)) -m "$vms_memory" -c 1 \
		--net "$segment" --share "$tmp/vm$id" --pidfile "$tmp/pid$id" \
		-e RGATE_BUILD="$build" -e RGATE_SLOW="$slow" -e CLUSTER_ADDRESS="$(address "$id")" \
		-- "$top/tests/cluster/lib/agent" "$id" >>"$tmp/log$id" 2>&1 &
	lab[$id]=$!
}

# vms_start ID...: these VMs, with their daemons; without one of them there is no test
vms_start()
{
	local id pids=()

	cluster_keys "$tmp/cluster"
	for id; do
		vm_boot "$id"
	done
	for id; do
		ok "VM $id is there" wait_for $((120 + 30 * $#)) vm_ready "$id"
	done
	if [ "$failures" -gt 0 ]; then
		sed 's/^/# /' "$tmp"/log?
		finish
	fi
	for id; do
		on "$id" daemon &
		pids+=($!)
	done
	wait "${pids[@]}"
}

# vms_finish ID...: the daemons end, the VMs, and the test
vms_finish()
{
	local id

	[ "$failures" = 0 ] || logs "$@"
	for id; do
		ok "node $id: the daemon ends when told to" on "$id" stop daemon
	done
	vm_end "$@"
	finish
}

vm_ready() { [ -e "$tmp/vm$1/ready" ]; }
vm_ended() { ! kill -0 "${lab[$1]}" 2>/dev/null; }

# vm_kill ID: as a loss of power
vm_kill()
{
	kill -9 "$(cat "$tmp/pid$1")"
	wait "${lab[$1]}" 2>/dev/null
	unset "lab[$1]"
}

# vm_end ID...: the VMs end by themselves, with a clean kernel log
vm_end()
{
	local id rc

	for id; do
		touch "$tmp/vm$id/end"
	done
	for id; do
		wait_for 60 vm_ended "$id" || kill "${lab[$id]}"
		wait "${lab[$id]}"
		rc=$?
		unset "lab[$id]"
		is "VM $id ends well, with a clean kernel log" "$rc" 0
		[ $rc = 0 ] || sed 's/^/# /' "$tmp/log$id"
	done
}

# on ID COMMAND...: bash runs it in that VM, with lib/guest.sh; within vm_limit (90) s
on()
{
	local at=$tmp/vm$1/${EPOCHREALTIME//[.,]/}-$BASHPID end=$((SECONDS + ${vm_limit:-90} * slow))
	local id=$1
	shift
	printf '%s\n' "$*" >"$at.new"
	mv "$at.new" "$at.cmd"
	until [ -e "$at.rc" ]; do
		if [ $SECONDS -ge $end ]; then
			echo "VM $id does not answer: $*"
			return 124
		fi
		sleep 0.1
	done
	cat "$at.out"
	return "$(cat "$at.rc")"
}

# node_status ID EXPRESSION: of the daemon's status, j
node_status() { on "$1" status 2>/dev/null | json "$2" 2>/dev/null; }
# peers_up ID COUNT
peers_up() { [ "$(node_status "$1" 'sum(p["state"] == "up" for p in j["peers"])')" = "$2" ]; }
# connections: of the gateway with each node, by its number
connections() { node_status 0 '__import__("json").dumps({p["node"]: p["connections"] for p in j["peers"]})'; }
# refused ID: it has refused somebody who did not prove to be a node
refused() { [ "$(node_status "$1" 'j["bad_key"]')" -gt 0 ]; }
# filled COUNT: rings that the gateway fills
filled() { [ "$(node_status 0 'len(j["gateway"]["rings"])')" = "$1" ]; }

# fetch NAME ID...: what their receivers NAME have now
fetch()
{
	local name=$1 id
	shift
	for id; do
		cp "$tmp/vm$id/got/$name" "$tmp/$name.$id" 2>/dev/null || : >"$tmp/$name.$id"
	done
}

verify() { python3 "$top/tests/cluster/lib/verify.py" "$@"; }

# arrived NAME FLOWS FIRST LAST ID...: all of these datagrams are there, each once
arrived()
{
	local name=$1 flows=$2 first=$3 last=$4 files=() id
	shift 4
	fetch "$name" "$@"
	for id; do
		files+=("$tmp/$name.$id")
	done
	verify once "$flows" "$first" "$last" "${files[@]}"
}

# burst NAME FLOWS FIRST LAST ID...: sends them and has them arrive, once
burst()
{
	local flows=$2 first=$3 last=$4

	on 0 "send -f $flows -b $first -n $(((last - first + 1) * flows)) -r ${rate:-400}" \
		>/dev/null || return
	wait_for "${patience:-60}" arrived "$@" || arrived "$@"
}

# all_arrive NAME TRANSMIT FIRST ID...: what TRANSMIT sends, 8 flows from FIRST on, until now,
# but for a last round that is not complete
all_arrive()
{
	local name=$1 transmit=$2 first=$3 count
	shift 3
	on 0 stop "$transmit" && count=$(on 0 sent "$transmit") || return
	[ "$count" -ge 16 ] || { echo "only $count were sent"; return 1; }
	set -- "$name" 8 "$first" $((first + count / 8 - 1)) "$@"
	wait_for "${patience:-60}" arrived "$@" || arrived "$@"
}

# sound NAME ID...: nothing malformed or out of order there
sound()
{
	local name=$1 files=() id
	shift
	fetch "$name" "$@"
	for id; do
		files+=("$tmp/$name.$id")
	done
	verify sound "${files[@]}"
}

# copies NAME FLOWS NUMBER ID...: one datagram of each flow, the last one of which goes to all
copies()
{
	local name=$1 flows=$2 number=$3
	shift 3
	on 0 "send -f $flows -b $number -n $flows -r 400" >/dev/null || return
	wait_for 60 copied "$name" $((flows - 1)) "$number" "$@" ||
		copied "$name" $((flows - 1)) "$number" "$@"
}
copied()
{
	local name=$1 flow=$2 number=$3 files=() id
	shift 3
	fetch "$name" "$@"
	for id; do
		files+=("$tmp/$name.$id")
	done
	verify copies "$flow" "$number" "${files[@]}"
}

# count_from: what the gateway has counted until now, for `accounted`
count_from() { on 0 status >"$tmp/before"; }
# accounted FLOWS FIRST COUNT FILE...: of COUNT datagrams that were sent since then each one
# was consumed, once, or is counted by the gateway for what became of it
accounted()
{
	local flows=$1 first=$2 count=$3
	shift 3
	on 0 status >"$tmp/after" &&
		verify accounted "$tmp/before" "$tmp/after" "$flows" "$first" "$count" exact "$@"
}

# kept NAME PROBE FIRST TRANSMIT ID: nothing of what TRANSMIT sent, from FIRST on in $flows
# (or 8) flows, is missing in those flows that have datagram PROBE at node ID
kept()
{
	local name=$1 probe=$2 first=$3 count
	count=$(on 0 sent "$4") || return
	[ "$count" -ge $((2 * ${flows:-8})) ] || { echo "only $count were sent"; return 1; }
	fetch "$name" "$5"
	verify kept "$probe" "$first" $((first + count / ${flows:-8} - 1)) "$tmp/$name.$5"
}

# logs ID...: of the daemons, as comments
logs()
{
	local id

	for id; do
		[ -z "${lab[$id]:-}" ] || vm_ended "$id" ||
			on "$id" 'tail -n 40 $dir/log' | sed "s/^/# $id: /"
	done
}
