# SPDX-License-Identifier: MIT OR GPL-2.0
# shellcheck shell=bash
#
# A pair of RDMA devices in software for a benchmark in a VM of its own, which is to call
# rxe_pair_down when it ends. Sets RGATE_BENCH_ADDRS. Sourced in the checkout's directory.

# shellcheck disable=SC2034 # for rxe_pair.sh
a=rgbench0 b=rgbench1 na=rgbnet0 nb=rgbnet1 net=10.79.0 pref=7720
skip_all() { echo "$1" >&2; exit 1; }
wait_for()
{
	local tries=$(($1 * 10))
	shift
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || { echo "$*: not within its time" >&2; exit 1; }
		sleep 0.1
	done
}
# shellcheck source=tests/vm/lib/rxe_pair.sh
. tests/vm/lib/rxe_pair.sh

bench_rxe_up()
{
	modprobe -q rdma_ucm || true
	sysctl -qw net.ipv6.conf.all.disable_ipv6=1
	rxe_pair_up
	export RGATE_BENCH_ADDRS=$ip_a,$ip_b
}
