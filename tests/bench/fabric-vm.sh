#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# Runs in a VM (scripts/bench fabric): perftest and bench_fabric, taking turns on the same
# pair of RDMA devices in software. Arguments: bench_fabric, rounds, and cells of the form
# OPERATION:BYTES:N. JSON on standard output, a line for each run.

set -eu

bench=$1 rounds=$2
shift 2

# shellcheck disable=SC2034 # for rxe_pair.sh
a=rgbf0 b=rgbf1 na=rgbn0 nb=rgbn1 net=10.79.0 pref=7720
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
export RGATE_BENCH_ADDRS=$ip_a,$ip_b
# From memory: the file server would be in the figures.
mkdir -p /run/bench
cp "$bench" /usr/bin/ib_write_lat /usr/bin/ib_send_lat /usr/bin/ib_read_lat \
	/usr/bin/ib_atomic_lat /usr/bin/ib_write_bw /run/bench

listening() { ss -Hltn "sport = :$port" | grep -q .; }

# perftest PROGRAM OPERATION BYTES N
port=18600
perftest()
{
	local program=$1 op=$2 bytes=$3 n=$4 size=() server

	[ "$program" = ib_atomic_lat ] || size=(-s "$bytes")
	port=$((port + 1))
	taskset -c 0 "/run/bench/$program" -F -d "$a" -x 1 -p $port -n "$n" "${size[@]}" >/dev/null &
	server=$!
	wait_for 20 listening
	taskset -c 1 "/run/bench/$program" -F -d "$b" -x 1 -p $port -n "$n" "${size[@]}" "$ip_a" \
		>/run/bench/out
	wait $server
	if [ "$program" = ib_write_bw ]; then
		awk -v op="$op" '$1 ~ /^[0-9]+$/ && NF >= 5 { printf \
			"{\"who\":\"perftest\",\"op\":\"%s\",\"bytes\":%d,\"rate\":%.1f}\n", op, $1, $5 * 1e6 }' /run/bench/out
	else
		awk -v op="$op" '$1 ~ /^[0-9]+$/ && NF >= 8 { printf \
			"{\"who\":\"perftest\",\"op\":\"%s\",\"bytes\":%d,\"median_us\":%.3f,\"mean_us\":%.3f,\"p99_us\":%.3f}\n", \
			op, $1, $5, $6, $8 }' /run/bench/out
	fi
}

# ringgate OPERATION BYTES N [BATCH]
ringgate()
{
	/run/bench/bench_fabric "$@" | sed 's/^{/{"who":"ringgate",/'
}

declare -A rival=([write-lat]=ib_write_lat [imm-lat]=ib_send_lat [send-lat]=ib_send_lat
	[read-lat]=ib_read_lat [add-lat]=ib_atomic_lat [write-bw]=ib_write_bw)

for ((i = 0; i < rounds; i++)); do
	for cell; do
		IFS=: read -r op bytes n <<<"$cell"
		[ $((i % 2)) = 1 ] || perftest "${rival[$op]}" "$op" "$bytes" "$n"
		ringgate "$op" "$bytes" "$n"
		[ "$op" != write-bw ] || ringgate "$op" "$bytes" "$n" 16
		[ $((i % 2)) = 0 ] || perftest "${rival[$op]}" "$op" "$bytes" "$n"
	done
done
