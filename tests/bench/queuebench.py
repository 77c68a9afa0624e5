# SPDX-License-Identifier: MIT OR GPL-2.0
"""Queues of tasks beside others, for scripts/bench: measures, prints, and has the table."""

import json
import statistics
import subprocess
import sys

WAYS = {"ringgate": "ringgate", "redis": "redis, a stream with a group", "beanstalkd": "beanstalkd",
        "deque": "a Chase-Lev deque, without a server"}
AIMS = {"redis": 10, "beanstalkd": 20, "deque": 0.5}
TASKS, OTHERS, MOST = 2000000, 200000, 20000000


class Failed(Exception):
    pass


def measure(script, program, rounds):
    """Medians of tasks a second; @rounds in which the ways take turns."""
    done = subprocess.run([script, program, str(rounds), str(TASKS), str(OTHERS), str(MOST)], text=True,
                          stdout=subprocess.PIPE)
    if done.returncode:
        raise Failed("tests/bench/queue.sh failed: its messages are above")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    rows = []
    for way in WAYS:
        rates = [x["per_s"] for x in lines if x["way"] == way]
        if rates:
            rows.append({"way": way, "per_s": statistics.median(rates), "least": min(rates),
                         "most": max(rates)})
    for row in rows:
        row["ratio"] = round(rows[0]["per_s"] / row["per_s"], 4)
    return {"rounds": rounds, "rows": rows}


def table(result):
    return (["queue", "tasks a second", "least", "most", "ringgate is so many times", "aim"],
            [[WAYS[r["way"]], f"{r['per_s']:,.0f}", f"{r['least']:,.0f}", f"{r['most']:,.0f}",
              "" if r["way"] == "ringgate" else f"{r['ratio']:.{1 if r['ratio'] >= 1 else 3}f}", AIMS.get(r["way"], "")]
             for r in result["rows"]])


def show(result, out=sys.stdout):
    head, rows = table(result)
    cells = [[str(c) for c in row] for row in [head, *rows]]
    width = [max(len(row[i]) for row in cells) for i in range(len(head))]
    for row in cells:
        print("  ".join(f"{c:>{w}}" for c, w in zip(row, width)), file=out)
