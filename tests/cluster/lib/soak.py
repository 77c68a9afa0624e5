#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR GPL-2.0
"""The table of a soak, and what its processes held in the course of it.

  soak.py ROUNDS HELD   lines "EVENT back SECONDS sent N consumed N lost N dropped N", and
                        "round N node N boot ID pid N fds N anon KIB qp N ..."
"""

import collections
import sys

KEPT = 4  # rounds that a process has to be seen in
ANON_KIB = 2048  # that its own memory may grow by
OBJECTS = ("fds", "pd", "cq", "qp", "cm_id", "mr")
COLUMNS = ("sent", "consumed", "lost", "dropped", "cut off")


def pairs(words):
    return dict(zip(words[::2], words[1::2]))


def table(path):
    sums = collections.defaultdict(collections.Counter)
    longest = collections.Counter()
    with open(path, encoding="ascii") as file:
        for line in file:
            event, *words = line.split()
            got = {key: int(value) for key, value in pairs(words).items()}
            row = sums[event.replace("_", " ")]
            row["rounds"] += 1
            for key in COLUMNS:
                row[key] += got.get(key.replace(" ", "-"), 0)
            longest[event.replace("_", " ")] = max(longest[event.replace("_", " ")], got["back"])
    print(f"{'':18} rounds " + " ".join(f"{key:>9}" for key in COLUMNS) + "  back after s")
    for event, row in sorted(sums.items()):
        print(f"{event:18} {row['rounds']:6} " + " ".join(f"{row[key]:9}" for key in COLUMNS) +
              f"  {longest[event]}")
    total = sum(sums.values(), collections.Counter())
    print(f"{'all':18} {total['rounds']:6} " + " ".join(f"{total[key]:9}" for key in COLUMNS))


def leaks(path):
    processes = collections.defaultdict(list)
    bad = False
    with open(path, encoding="ascii") as file:
        for line in file:
            seen = pairs(line.split())
            processes[seen["node"], seen["boot"], seen["pid"]].append(seen)
    for (node, _, pid), seen in processes.items():
        if len(seen) < KEPT:
            continue
        for key in OBJECTS:
            early = max(int(s[key]) for s in seen[:2])
            late = min(int(s[key]) for s in seen[-2:])
            if late > early:
                print(f"node {node}, process {pid}: {key} {early} at first, {late} at last")
                bad = True
        first, last = int(seen[1]["anon"]), int(seen[-1]["anon"])
        print(f"node {node}, process {pid}: {len(seen)} rounds, {seen[-1]['fds']} descriptors, "
              f"{seen[-1]['qp']} queue pairs, {first} KiB of memory, then {last}")
        bad |= last > first + ANON_KIB
    return bad


table(sys.argv[1])
sys.exit(leaks(sys.argv[2]))
