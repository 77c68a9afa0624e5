#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# An irregular tree, searched by one and by two workers on two CPUs, each beside one loop of the same
# run: a line of JSON for each number of nodes in a task and of workers, with medians of ROUNDS runs.
# Arguments: examples/tree, rounds, two CPUs, as taskset(1) has them.

set -euo pipefail

tree=$1 rounds=$2 cpus=${3:-0,1}
for ((i = 0; i < rounds; i++)); do
	for grain in 3000 20000 100000; do
		for threads in 1 2; do
			taskset -c "$cpus" timeout 120 "$tree" -r "${RGATE_TREE_ROOTS:-60000}" -t $threads -g $grain |
				sed "s/^{/{\"grain\": $grain, /"
		done
	done
done | python3 -c '
import json, statistics, sys

runs = {}
for line in sys.stdin:
    run = json.loads(line)
    if run["nodes"] != run["alone"]:
        sys.exit(f"another count: {line}")
    runs.setdefault((run["grain"], run["threads"]), []).append(run)
for (grain, threads), some in runs.items():
    rates = [r["alone_s"] / threads / r["s"] for r in some]
    print(json.dumps({"grain": grain, "threads": threads, "rounds": len(some),
        "nodes": some[0]["nodes"], "tasks": some[0]["tasks"],
        "alone_s": statistics.median(r["alone_s"] for r in some),
        "s": statistics.median(r["s"] for r in some),
        "efficiency": round(statistics.median(rates), 3), "least": round(min(rates), 3),
        "most": round(max(rates), 3),
        "cpu": round(statistics.median(r["alone_cpu_s"] / r["cpu_s"] for r in some), 3)}))
'
