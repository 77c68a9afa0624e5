# SPDX-License-Identifier: MIT OR GPL-2.0
"""Queues of tasks beside others, for scripts/bench: measures, prints, and has the table."""

import json
import statistics
import subprocess
import sys

import texttable

WAYS = {"ringgate": "ringgate", "redis": "redis, a stream with a group", "beanstalkd": "beanstalkd",
        "deque": "a Chase-Lev deque, without a server"}
BATCHES = 32, 256
AIMS = {"redis": 10, "beanstalkd": 20, "deque": 0.5}
TASKS, OTHERS, MOST = 2000000, 200000, 20000000


class Failed(Exception):
    pass


def measure(script, program, rounds):
    """Medians of tasks a second; @rounds in which the ways take turns."""
    done = subprocess.run([script, program, str(rounds), str(TASKS), str(OTHERS), str(MOST),
                           *map(str, BATCHES)], text=True, stdout=subprocess.PIPE)
    if done.returncode:
        raise Failed("tests/bench/queue.sh failed: its messages are above")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    rows = []
    for batch in BATCHES:
        ours = 0
        for way in WAYS:
            rates = [x["per_s"] for x in lines if x["way"] == way and x["batch"] == batch]
            if rates:
                median = statistics.median(rates)
                ours = ours or median
                rows.append({"way": way, "batch": batch, "per_s": median, "least": min(rates),
                             "most": max(rates), "ratio": round(ours / median, 4)})
    return {"rounds": rounds, "rows": rows}


def ratio(row):
    return "" if row["way"] == "ringgate" else f"{row['ratio']:.{1 if row['ratio'] >= 1 else 3}f}"


def table(result):
    return (["queue", "at a time", "tasks a second", "least", "most", "ringgate is so many times", "aim"],
            [[WAYS[r["way"]], r["batch"], f"{r['per_s']:,.0f}", f"{r['least']:,.0f}", f"{r['most']:,.0f}",
              ratio(r), AIMS.get(r["way"], "") if r["batch"] == BATCHES[0] else ""]
             for r in result["rows"]])


def show(result, out=sys.stdout):
    texttable.show(*table(result), out)
