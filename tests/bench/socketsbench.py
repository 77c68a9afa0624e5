# SPDX-License-Identifier: MIT OR GPL-2.0
"""A program's connections by ringgate beside others', for scripts/bench: measures, prints, and has the tables."""

import json
import statistics
import subprocess
import sys

import texttable

NAMES = {"direct": "direct sockets", "haproxy": "haproxy", "haproxy-splice": "haproxy, splice",
         "nginx": "nginx stream", "pasta": "pasta", "library": "library", "shim": "ringgate run",
         "library-node": "library, of another node", "shim-node": "ringgate run, of another node"}
RELAYS = ("haproxy", "haproxy-splice", "nginx", "pasta")
OURS = ("library", "shim", "library-node", "shim-node")
# What a turn has measured, by what, number and key: how it is called, its scale, digits
FIGURES = {("push", 1, "bytes_per_s"): ("one stream sent, MB/s", 1e-6, 0),
           ("push", 8, "bytes_per_s"): ("eight streams sent, MB/s", 1e-6, 0),
           ("pull", 1, "bytes_per_s"): ("one stream received, MB/s", 1e-6, 0),
           ("push", 1, "cpu_ns_per_kib"): ("CPU of all, one stream, ns a KiB", 1, 0),
           ("push", 8, "cpu_ns_per_kib"): ("CPU of all, eight streams, ns a KiB", 1, 0),
           ("trip", 64, "p50_us"): ("64 bytes there and back, p50, us", 1, 1),
           ("trip", 64, "p99_us"): ("the same, p99", 1, 1),
           ("meet", 8, "per_s"): ("connect, request, close, a second", 1, 0),
           ("meet", 8, "cpu_us"): ("CPU of all, of one of these, us", 1, 1)}
IDLE = 10000


class Failed(Exception):
    pass


def measure(script, program, rounds, idle_rounds):
    """@rounds in which the ways take turns; their lines, and what is made of them."""
    done = subprocess.run([script, program, str(rounds), str(idle_rounds), str(IDLE)], text=True,
                          stdout=subprocess.PIPE)
    if done.returncode:
        raise Failed("tests/bench/sockets.sh failed: its messages are above")
    return results([json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")],
                   rounds, idle_rounds)


def results(lines, rounds, idle_rounds):
    turns = {}
    for x in lines:
        for key in x.keys() - {"way", "what", "n"}:
            turns.setdefault((x["what"], x["n"], key), {}).setdefault(x["way"], []).append(x[key])
    rows = [{"what": what, "n": n, "key": key,
             **{way: statistics.median(got) for way, got in turns[what, n, key].items()}}
            for what, n, key in FIGURES if (what, n, key) in turns]
    return {"rounds": rounds, "idle_rounds": idle_rounds, "rows": rows, "idle": idle(lines),
            "aims": aims(turns), "raw": lines}


def idle(lines):
    rows = []
    for way in NAMES:
        mine = [x for x in lines if x["way"] == way and x["what"] == "idle"]
        if mine:
            row = {"way": way, "connections": mine[0]["n"],
                   **{key: round(statistics.median(x[key] for x in mine), 1)
                      for key in mine[0].keys() - {"way", "what", "n"}}}
            row["ratio"] = round(statistics.median(x["p99_us"] / x["alone_p99_us"] for x in mine), 2)
            rows.append(row)
    return rows


def ratio(turns, figure, ours, theirs, best=max):
    """Of neighbouring turns, the median; @theirs: of several the best one of each round."""
    got = turns.get(figure, {})
    rivals = [got[way] for way in theirs if way in got]
    if ours not in got or not rivals:
        return None
    rounds = min(len(got[ours]), *(len(r) for r in rivals))
    return round(statistics.median(got[ours][i] / best(r[i] for r in rivals)
                                   for i in range(rounds)), 2) if rounds else None


def aims(turns):
    """What issue 18 has: figure, of whom, beside whom, the aim; more is better, or less."""
    rows = []
    for ours in OURS:
        library = ours.startswith("library")
        for n in (1, 8):
            what = ("push", n, "bytes_per_s")
            if library:
                rows.append((what, ours, ("direct",), 0.85, max))
            rows.append((what, ours, RELAYS, 1.5 if library else 1.0, max))
            rows.append((("push", n, "cpu_ns_per_kib"), ours, ("direct",) if library else ("haproxy",),
                         1.2 if library else 1.0, min))
        rows.append((("trip", 64, "p50_us"), ours, ("haproxy",), 1.0 if library else 1.3, min))
        rows.append((("meet", 8, "per_s"), ours, ("haproxy",), 1.0 if library else 0.8, max))
    out = []
    for what, ours, theirs, aim, best in rows:
        measured = ratio(turns, what, ours, theirs, best)
        if measured is not None:
            met = measured >= aim if best is max else measured <= aim
            out.append({"way": ours, "what": FIGURES[what][0],
                        "beside": NAMES[theirs[0]] if len(theirs) == 1 else "the best relay",
                        "ratio": measured, "aim": aim, "at_least": best is max, "met": met})
    return out


def ways(result):
    return [way for way in NAMES if any(way in row for row in result["rows"])]


def tables(result):
    """Heads and rows, by name"""
    there = ways(result)
    rows = []
    for r in result["rows"]:
        name, scale, digits = FIGURES[r["what"], r["n"], r["key"]]
        rows.append([name, *(f"{r[way] * scale:,.{digits}f}" if way in r else "" for way in there)])
    return {
        "sockets": (["what", *(NAMES[way] for way in there)], rows),
        "sockets-aims": (
            ["way", "what", "beside", "ratio", "aim", ""],
            [[NAMES[r["way"]], r["what"], r["beside"], f"{r['ratio']:.2f}",
              f"{'at least' if r['at_least'] else 'at most'} {r['aim']}",
              "met" if r["met"] else "**missed**"] for r in result["aims"]]),
        "sockets-idle": (
            ["way", "idle connections", "bytes of the program for each", "of who relays",
             "of the kernel, all ends", "one busy, p99, us", "alone, p99, us", "ratio"],
            [[NAMES[r["way"]], f"{r['connections']:,}", f"{r['own_bytes']:,.0f}",
              f"{r['others_bytes']:,.0f}", f"{r['kernel_bytes']:,.0f}", f"{r['p99_us']:,.1f}",
              f"{r['alone_p99_us']:,.1f}", f"{r['ratio']:.2f}"] for r in result["idle"]])}


def show(result, out=sys.stdout):
    for head, rows in tables(result).values():
        texttable.show(head, rows, out)
        print(file=out)
