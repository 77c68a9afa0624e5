#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# Runs in User Mode Linux (scripts/bench fabric): perftest and bench_fabric, taking turns on
# the same pair of RDMA devices in software. Arguments: bench_fabric, kHz of the time stamp
# counter, rounds, and cells of the form OPERATION:BYTES:N. JSON on standard output, a line
# for each run.

set -eu

bench=$1 khz=$2 rounds=$3
shift 3

# shellcheck source=tests/bench/lib/rxe.sh
. tests/bench/lib/rxe.sh
trap rxe_pair_down EXIT

bench_rxe_up
# From memory: the file server would be in the figures.
mkdir -p /run/bench
# perftest converts ticks by what stands here, and User Mode Linux does not say it.
if ! grep -q '^cpu MHz' /proc/cpuinfo; then
	{ cat /proc/cpuinfo; printf 'cpu MHz\t\t: %d.%03d\n' $((khz / 1000)) $((khz % 1000)); } \
		>/run/bench/cpuinfo
	mount --bind /run/bench/cpuinfo /proc/cpuinfo
fi
cp "$bench" /usr/bin/ib_write_lat /usr/bin/ib_send_lat /usr/bin/ib_read_lat \
	/usr/bin/ib_atomic_lat /usr/bin/ib_write_bw /run/bench

# What a device does, threads of the kernel do here, on the CPUs that both ends poll on:
# without this they would wait for milliseconds until it is their turn.
behind="chrt --idle 0"

listening() { ss -Hltn "sport = :$port" | grep -q .; }

# client_of PROGRAM ARGUMENT...: both ends; the table is in /run/bench/out
port=18600
client_of()
{
	local program=/run/bench/$1 server rc=0

	shift
	port=$((port + 1))
	: >/run/bench/err
	taskset -c 0 $behind timeout 300 "$program" -F -d "$a" -x 1 -p $port "$@" \
		>/dev/null 2>>/run/bench/err &
	server=$!
	wait_for 20 listening
	taskset -c $(($(nproc) - 1)) $behind timeout 300 "$program" -F -d "$b" -x 1 -p $port "$@" \
		"$ip_a" >/run/bench/out 2>>/run/bench/err || rc=$?
	[ $rc = 0 ] || kill $server 2>/dev/null || true
	wait $server || rc=$?
	[ $rc = 0 ] || cat /run/bench/err >&2
	return $rc
}

# perftest PROGRAM OPERATION BYTES N: with the time that ringgate's devices wait for an
# answer; of a rate the column that has more digits. It may print 0 and say nothing of it, or
# "inf" where it could not find out how fast the clock goes.
perftest()
{
	local program=$1 op=$2 bytes=$3 n=$4 options=(-u 17)

	[ "$program" = ib_atomic_lat ] || options+=(-s "$bytes")
	client_of "$program" -n "$n" "${options[@]}" || return
	awk -v op="$op" -v bytes="$bytes" '
		$1 !~ /^[0-9]+$/ || $1 != bytes { next }
		op == "write-bw" && NF >= 5 {
			figures = sprintf("\"rate\":%.3f",
				bytes < 65536 ? $5 * 1e6 : $4 * 1048576 / bytes)
			good = $5 + $4 > 0
		}
		op != "write-bw" && NF >= 8 {
			figures = sprintf("\"median_us\":%.3f,\"mean_us\":%.3f,\"p99_us\":%.3f",
				$5, $6, $8)
			good = $5 ~ /^[0-9.]+$/ && $5 > 0
		}
		END {
			if (!good)
				exit 1
			printf "{\"who\":\"perftest\",\"op\":\"%s\",\"bytes\":%d,%s}\n", op, bytes, figures
		}' /run/bench/out
}

# ringgate OPERATION BYTES N [BATCH]
ringgate()
{
	$behind timeout 300 /run/bench/bench_fabric "$@" >/run/bench/out || return
	sed 's/^{/{"who":"ringgate",/' /run/bench/out
}

# A machine that is busy may stand still for longer than a connection lives.
steadfast()
{
	local tries

	for tries in 1 2 3 4 5; do
		"$@" && return
		echo "$*: attempt $tries failed" >&2
	done
	exit 1
}

declare -A rival=([write-lat]=ib_write_lat [imm-lat]=ib_send_lat [send-lat]=ib_send_lat
	[read-lat]=ib_read_lat [add-lat]=ib_atomic_lat [write-bw]=ib_write_bw)

for ((i = 0; i < rounds; i++)); do
	for cell; do
		IFS=: read -r op bytes n <<<"$cell"
		[ $((i % 2)) = 1 ] || steadfast perftest "${rival[$op]}" "$op" "$bytes" "$n"
		steadfast ringgate "$op" "$bytes" "$n"
		[ "$op" != write-bw ] || steadfast ringgate "$op" "$bytes" "$n" 16
		[ $((i % 2)) = 0 ] || steadfast perftest "${rival[$op]}" "$op" "$bytes" "$n"
	done
done
