#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# Locks and barriers of ringgated, of this node's and of another one's, beside redis, etcd, flock(2),
# a robust mutex and MPI_Barrier, where these are installed, in turns; prints lines of JSON. Arguments:
# bench_sync, rounds, how many times, members of the barrier, and numbers of waiters.

set -euo pipefail

bench=$1 rounds=$2 times=$3 members=$4 waiters=("${@:5}")
tools=${bench%/tests/*}/tools
# shellcheck source=tests/bench/lib/cluster.sh
. "$(dirname "$0")/lib/cluster.sh"

# Who begins first has no lock to give for the time of a lease.
daemons()
{
	cluster_local
	policy 'allow any core memory lock barrier' "node any user:$(id -un)"
	node 0
	node 1
	for _ in $(seq 200); do
		! "$bench" lock ringgate "$tmp/requests0,$tmp/requests1" 0 1 >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	cat "$tmp"/log? >&2
	exit 1
}

locks=(ringgate ringgate-node requests requests-node flock futex) words=(fetch-add fetch-add-node cas-write cas-write-node)
barriers=(ringgate ringgate-node meet meet-node futex)
daemons
if command -v redis-server >/dev/null; then
	redis-server --port 0 --unixsocket "$tmp/redis" --save '' --appendonly no --daemonize no \
		--dir "$tmp" >"$tmp/redis.log" &
	pids+=($!)
	locks+=(redis redis-list)
else
	echo "sync.sh: without redis-server" >&2
fi
if command -v etcd >/dev/null; then
	# Its log of writes lies in memory.
	etcd=$(mktemp -d /dev/shm/ringgate-bench.XXXXXX)
	trap 'cleanup; rm -rf "$etcd"' EXIT
	port=$((20000 + $$ % 10000))
	etcd --name bench --data-dir "$etcd" --listen-client-urls "http://127.0.0.1:$port" \
		--advertise-client-urls "http://127.0.0.1:$port" --listen-peer-urls "http://127.0.0.1:$((port + 1))" \
		--initial-advertise-peer-urls "http://127.0.0.1:$((port + 1))" \
		--initial-cluster "bench=http://127.0.0.1:$((port + 1))" >"$tmp/etcd.log" 2>&1 &
	pids+=($!)
	for _ in $(seq 100); do
		! timeout 10 "$bench" lock etcd $port 0 1 >/dev/null 2>&1 || break
		sleep 0.1
	done
	locks+=(etcd)
else
	echo "sync.sh: without etcd" >&2
fi
if command -v mpirun >/dev/null; then
	barriers+=(mpi)
else
	echo "sync.sh: without Open MPI" >&2
fi

# one lock|barrier WAY N TIMES
one()
{
	local way=$2 at

	case $2 in
	ringgate | requests | meet | fetch-add | cas-write) at=$tmp/requests0 ;;
	*-node) way=${2%-node} at=$tmp/requests0,$tmp/requests1 ;;
	redis-list) at=$tmp/redis ;;
	etcd) at=$port ;;
	*) at=$tmp/$2 ;;
	esac
	timeout 120 "$bench" "$1" "$way" "$at" "$3" "$4" | sed "s/\"way\":\"[^\"]*\"/\"way\":\"$2\"/" ||
		{ cat "$tmp"/log? >&2; exit 1; }
}

mpi()
{
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 mpirun -n "$1" --oversubscribe \
		--mca mpi_yield_when_idle 1 --mca btl self,vader "$bench" barrier mpi - "$1" "$2"
}

for ((i = 0; i < rounds; i++)); do
	for way in "${locks[@]}" "${words[@]}"; do
		n=$times
		[ "$way" != etcd ] || n=$((times / 40 + 1))
		one lock "$way" 0 "$n"
	done
	for w in "${waiters[@]}"; do
		for way in "${locks[@]}"; do
			n=$times
			[ "$way" != etcd ] || n=$((times / 80 + 1))
			one lock "$way" "$w" "$n"
		done
	done
	for way in "${barriers[@]}"; do
		if [ "$way" = mpi ]; then
			mpi "$members" $((times / 4))
		else
			one barrier "$way" "$members" $((times / 4))
		fi
	done
done
