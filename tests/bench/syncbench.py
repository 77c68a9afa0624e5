# SPDX-License-Identifier: MIT OR GPL-2.0
"""Locks and barriers beside others, for scripts/bench: measures, prints, and has the tables."""

import json
import statistics
import subprocess
import sys

import texttable

TIMES, MEMBERS, WAITERS = 4000, 8, (2, 4, 8)
LOCKS = {"ringgate": "ringgate", "ringgate-node": "ringgate, its home another node",
         "requests": "ringgate, RELEASE not waited for",
         "requests-node": "likewise, its home another node",
         "redis": "redis, SET NX and DEL", "redis-list": "redis, BLPOP and RPUSH",
         "etcd": "etcd, lock and unlock", "flock": "flock(2)", "futex": "a robust mutex",
         "fetch-add": "ringgate, one fetch-add", "fetch-add-node": "ringgate, one fetch-add at another node",
         "cas-write": "ringgate, a compare-and-swap and a write",
         "cas-write-node": "ringgate, both at another node"}
BARRIERS = {"ringgate": "ringgate", "ringgate-node": "ringgate, four of the members at another node",
            "meet": "ringgate, rgate_barrier_meet()",
            "meet-node": "likewise, four of the members at another node",
            "futex": "pthread_barrier_wait", "mpi": "MPI_Barrier, Open MPI"}


class Failed(Exception):
    pass


def measure(script, program, rounds):
    """Medians of nanoseconds; @rounds in which the ways take turns."""
    done = subprocess.run([script, program, str(rounds), str(TIMES), str(MEMBERS), *map(str, WAITERS)],
                          text=True, stdout=subprocess.PIPE)
    if done.returncode:
        raise Failed("tests/bench/sync.sh failed: its messages are above")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    keys = []
    for x in lines:
        if (x["what"], x["way"], x["n"]) not in keys:
            keys.append((x["what"], x["way"], x["n"]))
    rows = []
    for what, way, n in keys:
        own = [x for x in lines if (x["what"], x["way"], x["n"]) == (what, way, n)]
        ns = [x["ns"] for x in own]
        rows.append({"what": what, "way": way, "n": n, "ns": statistics.median(ns), "least": min(ns),
                     "most": max(ns), "changes": statistics.median(x["changes"] for x in own)})
    return {"rounds": rounds, "rows": rows, "aims": aims(lines, rows)}


def aims(lines, rows):
    """Ratios of neighbouring turns, their median; what it should be"""
    def turns(what, way, n):
        return [x["ns"] for x in lines if (x["what"], x["way"], x["n"]) == (what, way, n)]

    def ratio(top, bottom):
        pairs = [a / b for a, b in zip(turns(*top), turns(*bottom))]
        return round(statistics.median(pairs), 2) if pairs else None

    most, least = WAITERS[-1], WAITERS[0]
    out = [
        ("redis, SET NX and DEL, over ringgate, uncontended", "at least 10",
         ratio(("lock", "redis", 0), ("lock", "ringgate", 0))),
        ("etcd over ringgate, uncontended", "or at least 50",
         ratio(("lock", "etcd", 0), ("lock", "ringgate", 0))),
        ("acquire and release over one fetch-add", "at most 2.1",
         ratio(("lock", "ringgate", 0), ("lock", "fetch-add", 0))),
        ("the same at another node", "at most 2.1",
         ratio(("lock", "ringgate-node", 0), ("lock", "fetch-add-node", 0))),
        (f"hand-over with {least} waiters over a compare-and-swap and a write", "at most 1.3",
         ratio(("lock", "ringgate", least), ("lock", "cas-write", 0))),
        ("the same at another node", "at most 1.3",
         ratio(("lock", "ringgate-node", least), ("lock", "cas-write-node", 0))),
        (f"hand-over with {most} waiters over {least}", "about 1",
         ratio(("lock", "ringgate", most), ("lock", "ringgate", least))),
        ("the same at another node", "about 1",
         ratio(("lock", "ringgate-node", most), ("lock", "ringgate-node", least))),
        ("barrier over MPI_Barrier", "at most 1.0",
         ratio(("barrier", "ringgate", MEMBERS), ("barrier", "mpi", MEMBERS))),
        ("rgate_barrier_meet() over MPI_Barrier", "at most 1.0",
         ratio(("barrier", "meet", MEMBERS), ("barrier", "mpi", MEMBERS))),
    ]
    return [{"what": what, "aim": aim, "ratio": r} for what, aim, r in out if r is not None and rows]


def find(result, what, way, n):
    for r in result["rows"]:
        if (r["what"], r["way"], r["n"]) == (what, way, n):
            return r
    return None


def us(row):
    return "" if not row else f"{row['ns'] / 1e3:,.1f}" if row["ns"] > 999 else f"{row['ns'] / 1e3:.3f}"


def locks(result):
    rows = []
    for way, name in LOCKS.items():
        if not find(result, "lock", way, 0):
            continue
        waiting = [find(result, "lock", way, n) for n in WAITERS]
        rows.append([name, us(find(result, "lock", way, 0)), *map(us, waiting),
                     f"{min(r['changes'] for r in waiting):.3f}" if all(waiting) else ""])
    return ["lock", "uncontended, us", *(f"{n} waiters, us" for n in WAITERS),
            "of the holds another process's, least"], rows


def barriers(result):
    rows = []
    for way, name in BARRIERS.items():
        r = find(result, "barrier", way, MEMBERS)
        if r:
            rows.append([name, us(r), f"{r['least'] / 1e3:,.1f}", f"{r['most'] / 1e3:,.1f}"])
    return [f"barrier of {MEMBERS}", "us", "least", "most"], rows


def tables(result):
    return {"sync-lock": locks(result), "sync-barrier": barriers(result),
            "sync-aims": (["what", "measured", "aim"],
                          [[a["what"], f"{a['ratio']:.2f}", a["aim"]] for a in result["aims"]])}


def show(result, out=sys.stdout):
    for head, rows in tables(result).values():
        texttable.show(head, rows, out)
        print(file=out)
