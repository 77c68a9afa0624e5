#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0
"""Every field of `ringgate cluster status --json` of a gateway and two compute nodes.

status.py DIR PORT SECONDS [--wrong]: DIR has status.0 to status.2, what the three said while both nodes'
rings were filled, and n1.txt and n2.txt, the numbers of the datagrams that each node got:
number i has 15 + i % 1000 bytes. SECONDS have passed since the beginning. Prints what is
not as it must be. With --wrong each field is changed and left out, one after the other, and
what is printed is those where nothing was said, and how many there were.
"""
import copy
import json
import sys

TIMES = ["min_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"]
HEADERS = 28  # IPv4 and UDP, which are made for datagrams
SLOT_HEADER = 64


class Is:
    """A value that is known by a property of it"""

    def __init__(self, what, holds):
        self.what, self.holds = what, holds


remarks = []


def compare(got, want, at=""):
    if isinstance(want, Is):
        if not want.holds(got):
            remarks.append(f"{at}: {got}, not {want.what}")
    elif isinstance(want, dict) and isinstance(got, dict):
        for key in sorted(got.keys() | want.keys()):
            if key not in want or key not in got:
                remarks.append(f"{at}/{key}: is {'there' if key in got else 'missing'}")
            else:
                compare(got[key], want[key], f"{at}/{key}")
    elif isinstance(want, list) and isinstance(got, list) and len(got) == len(want):
        for i, (g, w) in enumerate(zip(got, want)):
            compare(g, w, f"{at}/{i}")
    elif got != want or isinstance(got, bool) != isinstance(want, bool):
        remarks.append(f"{at}: {got}, not {want}")


def between(low, high):
    return Is(f"from {low} to {high}", lambda v: isinstance(v, (int, float)) and low <= v <= high)


def operation(**known):
    """Of a kind of operation: what is known of it, and that its times are in order"""

    def holds(op):
        times = [op[t] for t in TIMES]
        if sorted(op) != sorted(["posted", "bytes", "failed", "measured"] + TIMES):
            return False
        if any(op[k] != v for k, v in known.items()) or op["failed"]:
            return False
        if not 0 <= op["measured"] <= op["posted"] or times != sorted(times) or op["bytes"] < 0:
            return False
        return times[0] > 0 if op["measured"] else times == [0] * len(times)

    return Is(f"such an operation: {known}", holds)


where, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
said = [json.load(open(f"{where}/status.{i}")) for i in range(3)]
got = {i: [int(n) for n in open(f"{where}/n{i}.txt")] for i in (1, 2)}
frames = {i: len(got[i]) for i in got}
octets = {i: sum(HEADERS + 15 + n % 1000 for n in got[i]) for i in got}
names = ["gw", "one", "two"]
rings = {}


def node(i):
    return {
        "node": i, "name": names[i], "role": "compute" if i else "gateway",
        "provider": "local", "up_s": between(0.2, seconds),
        # the one with the higher number connects
        "accepted": 2 - i, "bad_key": 0, "garbage": 0, "lines_left_out": 0,
        # a connection has two buffers at least
        "error": None, "in_use": {"peers": 2, "shares": 1, "buffers": between(4, 1000)},
        "peers": [peer(i, k) for k in range(3) if k != i],
    }


def peer(i, k):
    p = {
        "node": k, "name": names[k], "role": "compute" if k else "gateway",
        "address": f"{where}/n{k}", "state": "up", "connections": 1, "error": None,
        "up_s": between(0.1, said[i]["up_s"]),
    }
    ops = [q for q in said[i]["peers"] if q["node"] == k][0]["operations"]
    if i:
        p["operations"] = {name: operation() for name in ops}
        return p
    r = rings[k]
    p["operations"] = {
        "write": operation(posted=r["writes"] - r["notices"]),
        "write-imm": operation(posted=r["notices"]),
        "flush": operation(posted=3 - k, bytes=0, measured=3 - k),
        "send": operation(),
    }
    # Those that were never posted are not listed: where each frame came alone, plain writes; where
    # who reads the ring never slept, notices.
    if r["writes"] == r["notices"]:
        del p["operations"]["write"]
    if not r["notices"]:
        del p["operations"]["write-imm"]
    wire = sum(ops[name]["bytes"] for name in ("write", "write-imm") if name in ops)
    least = octets[k] + SLOT_HEADER * frames[k]
    compare(wire, between(least, 2 * least), f"/0/peers/{k}: bytes written")
    p.update(frames=frames[k], bytes=octets[k], lost=0, dropped_full=0, dropped_down=0,
             sessions=1)
    return p


def gateway():
    total = {"frames": 2000, "bytes": sum(octets.values())}
    # one of them slept, at first if at no other time
    compare(sum(r["notices"] for r in rings.values()), between(1, 2000), "/0/gateway/rings: notices")
    return dict(node(0), gateway={
        **total, "unmatched": 0, "dropped_rule": 0, "dropped_down": 0, "refused": 0,
        "busy_ns": between(1000, said[0]["up_s"] * 1e9),
        "sources": [{"at": f"127.0.0.1:{port}", **total, "dropped_full": 0, "passed": 0}],
        "rings": [{
            "node": k, "name": said[k]["rings"][0]["name"], "slots": 4096, "slot_size": 2048,
            "waiting": 0, "frames": frames[k], "bytes": octets[k], "dropped_full": 0,
            "resteered": 0, "stalls": 0, "posts": between(1, r["writes"]),
            "writes": between(frames[k], 2 * frames[k] + r["notices"]),
            "notices": between(0, r["posts"]), "packed": False,
        } for k, r in rings.items()],
        "rules": [{"rule": "default hash:*", "frames": 2000}],
    })


def compute(i):
    # Clocks of one machine: how far they are apart is within the error.
    error = said[i]["rings"][0]["clock_error_ns"]
    return dict(node(i), rings=[{
        "name": Is("capture's", lambda v: v.startswith("capture-")), "slots": 4096,
        "slot_size": 2048, "filled": True, "error": None, "frames": frames[i],
        "bytes": octets[i], "dropped_full": 0, "sessions": 1, "found": 0, "errors": 0,
        "clock_offset_ns": between(-error, error), "clock_error_ns": between(1, 10**9),
    }])


def check():
    """What is wrong with what is in `said`"""
    remarks.clear()
    rings.clear()
    # What others are reckoned from may be what is missing.
    try:
        rings.update({r["node"]: r for r in said[0]["gateway"]["rings"]})
        if sorted(rings) != [1, 2]:
            return [f"rings of nodes {sorted(rings)}"]
        compare(said[0], gateway(), "/0")
        for n in (1, 2):
            compare(said[n], compute(n), f"/{n}")
    except (IndexError, KeyError, TypeError) as e:
        remarks.append(f"cannot be reckoned: {e!r}")
    return remarks


def fields(value, at=""):
    """(container, key, path) of all that has no parts"""
    for key, v in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(v, (dict, list)):
            yield from fields(v, f"{at}/{key}")
        else:
            yield value, key, f"{at}/{key}"


def wrong(v):
    """Another value of that kind"""
    if isinstance(v, bool):
        return not v
    return -10**15 if isinstance(v, (int, float)) else f"{v}?"


def not_noticed():
    """Fields of `said` that may be anything, and how many fields there are"""
    count, silent = 0, []
    for i in range(3):
        whole = copy.deepcopy(said[i])
        for n, (_, _, path) in enumerate(list(fields(whole))):
            for how in "changed", "left out":
                said[i] = copy.deepcopy(whole)
                holder, key, _ = list(fields(said[i]))[n]
                if how == "changed":
                    holder[key] = wrong(holder[key])
                else:
                    del holder[key]
                count += 1
                if not check():
                    silent.append(f"/{i}{path} {how}")
        said[i] = whole
    return silent, count


if sorted(got[1] + got[2]) != list(range(1, 2001)):
    sys.exit("not all frames came to both rings")
if sys.argv[4:] == ["--wrong"]:
    print(*not_noticed())
else:
    print(*check(), sep="\n")
