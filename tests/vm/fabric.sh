#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 900
# The tests of tests/fabric (or of another directory, with those of its scripts that are
# named), which run natively over shared memory, over RDMA devices. FABRIC_IP=6: nodes have
# IPv6 addresses; FABRIC_PROGRAMS: only programs that match. RGATE_TEST_LONG: they take hours.

# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

# shellcheck disable=SC2034 # for rxe_pair.sh
a=rgfab0 b=rgfab1 na=rgfa0 nb=rgfa1 net=10.80.0 pref=7740
# shellcheck disable=SC2034 # so too
[ "${FABRIC_IP:-4}" = 4 ] || net6=fd00:0010:0080:0001
# shellcheck source=tests/vm/lib/rxe_pair.sh
. "$(dirname "$0")/lib/rxe_pair.sh"
# shellcheck source=scripts/lib/cpu.sh
. "$top/scripts/lib/cpu.sh"

cleanup()
{
	rxe_pair_down
	rm -rf "$tmp"
}
trap cleanup EXIT

modprobe -q rdma_ucm || true
sysctl -qw net.ipv6.conf.all.disable_ipv6=1
rxe_pair_up
export RGATE_FABRIC_PROVIDER=verbs RGATE_FABRIC_ADDRS=$ip_a,$ip_b
[ -z "${net6:-}" ] || RGATE_FABRIC_ADDRS="[$ip6_a],[$ip6_b]"
# No packet passes, and addresses, routes and neighbours stay; what an address sends passes
# again where RGATE_FABRIC_MEND_FROM ends in it.
if modprobe -q sch_netem && modprobe -q sch_prio && modprobe -q cls_u32; then
	cat >"$tmp/cut" <<-END
		qdisc add dev $na root handle 1: prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
		filter add dev $na parent 1: protocol arp prio 1 u32 match u32 0 0 flowid 1:1
		qdisc add dev $na parent 1:2 netem loss 100%
	END
	rxe_pair_more 8
	export RGATE_FABRIC_PAIRS=$rxe_pairs
	export RGATE_FABRIC_CUT="tc -batch $tmp/cut"
	export RGATE_FABRIC_MEND="tc qdisc del dev $na root"
	RGATE_FABRIC_MEND_FROM="tc filter add dev $na parent 1: protocol ip prio 2 u32"
	RGATE_FABRIC_MEND_FROM+=" flowid 1:1 match ip src"
	export RGATE_FABRIC_MEND_FROM
	export RGATE_FABRIC_SLOW="tc qdisc add dev $na root netem rate 20mbit"
fi

# used: what is allocated on both devices, of all processes
used()
{
	rdma resource show | sed 's/ cm_id.* mr/ mr/'
}

before=$(used)
back()
{
	[ "$(used)" = "$before" ]
}

limit=$((300 * slow))
# Natively they do ten times the rounds, as they do here where they take hours.
[ "${LAB:-}${RGATE_TEST_LONG:-}" != vm ] || export RGATE_TEST_EMULATED=1
if [ -n "${RGATE_TEST_LONG:-}" ]; then
	limit=$((5 * 3600))
	echo "# timeout: $limit"
fi
dir=${1:-fabric}
shopt -s extglob
for program in "$RGATE_BUILD/tests/$dir"/${FABRIC_PROGRAMS:-test_*} "${@:2}"; do
	[ "${program%.sh}" = "$program" ] || program=$top/tests/$dir/$program
	[ -x "$program" ] && [ -f "$program" ] || continue
	name=$(basename "$program")
	cpu_spent "$tmp/times"
	rc=0 began=$SECONDS before_cpu=$cpu
	timeout "$limit" "$program" >"$tmp/out" 2>"$tmp/err" || rc=$?
	why=''
	while read -r line; do
		case $line in
		"# SKIP: "*) why=${line#*: } ;;
		# One that does not say why may as well be one that does not work.
		"not ok "*" # SKIP "*)
			if [ -n "$why" ]; then
				skip "$name: ${line##*SKIP }" "$why"
			else
				result 1 "$name: ${line##*SKIP } was skipped for a reason"
			fi
			why='' ;;
		"ok "*) result 0 "$name: ${line#* - }" ;;
		"not ok "*) result 1 "$name: ${line#* - }" ;;
		"# ok - "*|"# not ok - "*|"1.."*) ;;
		*) echo "# $line" ;;
		esac
	done <"$tmp/out"
	cpu_spent "$tmp/times"
	echo "# $name took $((SECONDS - began)) s, and $((cpu - before_cpu)) s of CPU"
	is "$name ended well" "$rc" 0
	if [ "$rc" != 0 ]; then
		sed 's/^/# /' "$tmp/err"
		# The next one is not to fail because this one left the wire cut.
		${RGATE_FABRIC_MEND:-true} 2>/dev/null
	fi
	wait_for 10 back
	is "$name left nothing on the devices" "$(used)" "$before"
done
[ "$tests" -gt 0 ] || result 1 "no program of ${1:-fabric} is built"

finish
