#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# Empty tasks through ringgated with a journal and without, and through beanstalkd likewise where it
# is installed, in turns; prints lines of JSON. Arguments: bench_queue, rounds, tasks of each turn,
# of those that sync each, and how many are under way at a time, one after the other.

set -euo pipefail

bench=$1 rounds=$2 tasks=$3 synced=$4 batches=("${@:5}")
tools=${bench%/tests/*}/tools
# shellcheck source=tests/bench/lib/cluster.sh
. "$(dirname "$0")/lib/cluster.sh"
cluster_local
policy 'allow any core' 'allow any queue'
ways=()
# daemon NAME OPTION...
daemon()
{
	local name=$1

	shift
	mkdir "$tmp/$name"
	sed "s,$tmp/n\([01]\),$tmp/$name/n\1," "$tmp/cluster" >"$tmp/$name/cluster"
	cp "$tmp"/node*.key "$tmp/$name/" 2>/dev/null || true
	"$tools/ringgated" -C "$tmp/$name/cluster" -n gw -s "$tmp/$name/s" --pool 16M \
		--requests "socket $tmp/$name/at" --requests "policy $tmp/policy" "$@" 2>"$tmp/$name/log" &
	pids+=($!)
	ways+=("ringgate $name")
}
daemon none
daemon never --journal "$tmp/never/j fsync never"
daemon 50ms --journal "$tmp/50ms/j fsync 50"
daemon each --journal "$tmp/each/j fsync each"
# server NAME OPTION...
server()
{
	local name=$1

	shift
	mkdir "$tmp/$name" "$tmp/$name/b"
	beanstalkd -l "unix:$tmp/$name/at" "$@" &
	pids+=($!)
	ways+=("beanstalkd $name")
}
if command -v beanstalkd >/dev/null; then
	server f-none
	server f-never -b "$tmp/f-never/b" -F
	server f50 -b "$tmp/f50/b" -f 50
	server f0 -b "$tmp/f0/b" -f 0
else
	echo "queue_journal.sh: without beanstalkd" >&2
fi
for way in "${ways[@]}"; do
	for _ in $(seq 100); do
		[ ! -S "$tmp/${way#* }/at" ] || break
		sleep 0.1
	done
done
for ((i = 0; i < rounds; i++)); do
	for way in "${ways[@]}"; do
		case $way in
		*each | *f0) n=$synced ;;
		*) n=$tasks ;;
		esac
		for batch in "${batches[@]}"; do
			timeout 120 "$bench" "${way% *}" "$tmp/${way#* }/at" "$n" "$batch" |
				sed "s/^{/{\"journal\": \"${way#* }\", /"
		done
	done
done
