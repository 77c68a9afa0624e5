#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# Runs in a VM (scripts/bench spawn): spawn.sh over a pair of RDMA devices in software.
# Arguments: as spawn.sh.

set -eu

bench=$1
shift

# shellcheck disable=SC2034 # for rxe_pair.sh
a=rgbs0 b=rgbs1 na=rgbt0 nb=rgbt1 net=10.78.0 pref=7730
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
trap rxe_pair_down EXIT

modprobe -q rdma_ucm || true
sysctl -qw net.ipv6.conf.all.disable_ipv6=1
rxe_pair_up
# From memory: the file server would be in the figures.
mkdir -p /run/bench
cp "$bench" "${bench%/*}/bench_fabric" /run/bench
RGATE_BENCH_ADDRS=$ip_a,$ip_b tests/bench/spawn.sh "/run/bench/${bench##*/}" "$@"
