#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# Empty tasks through ringgated, through redis and beanstalkd where these are installed, and through
# a deque in shared memory, in turns; prints lines of JSON. Arguments: bench_queue, rounds, tasks of
# ringgate, of the servers, of the deque, and how many are under way at a time, one after the other.

set -euo pipefail

bench=$1 rounds=$2 tasks=$3 others=$4 most=$5 batches=("${@:6}")
tools=${bench%/tests/*}/tools
# shellcheck source=tests/bench/lib/cluster.sh
. "$(dirname "$0")/lib/cluster.sh"
cluster_local
policy 'allow any core' 'allow any queue'
node 0
ln -s requests0 "$tmp/ringgate"
ways=(ringgate)
if command -v redis-server >/dev/null; then
	redis-server --port 0 --unixsocket "$tmp/redis" --save '' --appendonly no --daemonize no \
		--dir "$tmp" >"$tmp/redis.log" &
	pids+=($!)
	ways+=(redis)
else
	echo "queue.sh: without redis-server" >&2
fi
if command -v beanstalkd >/dev/null; then
	beanstalkd -l "unix:$tmp/beanstalkd" &
	pids+=($!)
	ways+=(beanstalkd)
else
	echo "queue.sh: without beanstalkd" >&2
fi
for way in "${ways[@]}"; do
	for _ in $(seq 100); do
		[ ! -S "$tmp/$way" ] || break
		sleep 0.1
	done
done
ways+=(deque)
for ((i = 0; i < rounds; i++)); do
	for way in "${ways[@]}"; do
		case $way in
		ringgate) n=$tasks ;;
		deque) n=$most ;;
		*) n=$others ;;
		esac
		for batch in "${batches[@]}"; do
			timeout 120 "$bench" "$way" "$tmp/$way" "$n" "$batch" || { cat "$tmp/log0" >&2; exit 1; }
		done
	done
done
