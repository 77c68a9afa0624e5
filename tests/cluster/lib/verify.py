#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR GPL-2.0
"""Judge what receivers (cluster_recv) say they got.

  verify.py once FLOWS FIRST LAST FILE...   each datagram once, at one of them, each flow
                                            in order and at one of them
  verify.py copies FLOW NUMBER FILE...      this datagram, once at each of them
  verify.py sound FILE...                   nothing malformed or out of order
  verify.py kept PROBE FIRST LAST FILE      flows that have datagram PROBE here have all of
                                            FIRST to LAST here, too
  verify.py frames FILE...                  prints how many frames they have, together
  verify.py accounted BEFORE AFTER FLOWS FIRST COUNT EXACT FILE...
                                            of COUNT datagrams in FLOWS flows, numbered from
                                            FIRST on, each was consumed once, or the gateway,
                                            whose status was BEFORE and is AFTER, has counted
                                            it; prints how many there are of each kind. EXACT
                                            is "exact" if what it delivered was consumed
  verify.py progress FLOWS FIRST FILE...    prints up to which number all flows came
  verify.py between FLOWS FIRST COUNT FROM UNTIL FILE...
                                            of COUNT datagrams each was consumed once, but for
                                            some from number FROM to the datagram UNTIL
"""

import collections
import json
import sys


class Receiver:
    """One file of cluster_recv."""

    def __init__(self, path):
        with open(path, encoding="ascii") as file:
            lines = file.read().splitlines()
        if not lines:
            sys.exit(f"{path}: nothing there")
        words = lines[0].split()
        self.sums = dict(zip(words[::2], map(int, words[1::2])))
        self.ranges = [tuple(map(int, line.split())) for line in lines[1:]]

    def unsound(self):
        """What is wrong whatever was sent."""
        return [f"{self.sums[key]} {key}" for key in ("bad", "late") if self.sums[key]]

    def numbers(self, first, last):
        """(flow, number) of all datagrams in that range, with repetitions."""
        for flow, begin, end in self.ranges:
            for number in range(max(begin, first), min(end, last) + 1):
                yield flow, number


def missing_and_more(got, flows, first, last):
    wanted = {(flow, number) for flow in range(flows) for number in range(first, last + 1)}
    missing = sorted(wanted - set(got))
    more = sorted(key for key, count in got.items() if count > 1)
    strange = sorted(set(got) - wanted)
    problems = []
    for name, keys in (("missing", missing), ("twice", more), ("not sent", strange)):
        if keys:
            problems.append(f"{len(keys)} {name}: {keys[:4]}")
    return problems


def once(receivers, flows, first, last):
    problems = [text for receiver in receivers for text in receiver.unsound()]
    got = collections.Counter()
    places = collections.defaultdict(set)
    for index, receiver in enumerate(receivers):
        for flow, number in receiver.numbers(first, last):
            got[flow, number] += 1
            places[flow].add(index)
    problems += missing_and_more(got, flows, first, last)
    problems += [f"flow {flow} at several nodes" for flow in sorted(places) if len(places[flow]) > 1]
    return problems


def copies(receivers, flow, number):
    problems = []
    for receiver in receivers:
        problems += receiver.unsound()
        count = list(receiver.numbers(number, number)).count((flow, number))
        if count != 1:
            problems.append(f"{count} copies at one node")
    return problems


def tally(path):
    """What became of frames, as the gateway's status tells it."""
    with open(path, encoding="utf-8") as file:
        status = json.load(file)
    gateway = status["gateway"]
    sums = {name: sum(node[name] for node in status["peers"])
            for name in ("frames", "lost", "dropped_full", "dropped_down")}
    sums["unmatched"] = gateway["unmatched"]
    sums["dropped_rule"] = gateway["dropped_rule"]
    sums["dropped_down"] += gateway["dropped_down"]
    sums["taken"] = gateway["frames"]
    sums["arrived"] = sum(s["frames"] for s in gateway["sources"])
    sums["dropped_source"] = sum(s["dropped_full"] + s["passed"] for s in gateway["sources"])
    sums["waiting"] = sum(ring["waiting"] for ring in gateway["rings"])
    return sums


ENDS = ("frames", "lost", "dropped_full", "dropped_down", "unmatched", "dropped_rule")


def consumed(receivers, flows, first, count):
    """All that came of COUNT datagrams, how many of them twice, how many that were not sent."""
    last = first + (count + flows - 1) // flows - 1
    got = collections.Counter(key for receiver in receivers
                              for key in receiver.numbers(first, last))
    twice = sum(1 for number in got.values() if number > 1)
    strange = sum(1 for flow, number in got if (number - first) * flows + flow >= count)
    return got, twice, strange


def between(receivers, flows, first, count, begin, until):
    problems = [text for receiver in receivers for text in receiver.unsound()]
    got, twice, strange = consumed(receivers, flows, first, count)
    missing = [key for key in ((i % flows, first + i // flows) for i in range(count))
               if key not in got]
    outside = [(flow, number) for flow, number in missing
               if number < begin or (number - first) * flows + flow >= until]
    for wrong, text in ((twice, f"{twice} consumed twice"),
                        (strange, f"{strange} that were not sent"),
                        (outside, f"{len(outside)} missing: {outside[:4]}")):
        if wrong:
            problems.append(text)
    print(f"sent {count} consumed {len(got)} cut-off {len(missing)}")
    return problems


def progress(receivers, flows, first):
    last = {flow: first for flow in range(flows)}
    for receiver in receivers:
        for flow, _, number in receiver.ranges:
            if flow in last:
                last[flow] = max(last[flow], number)
    return min(last.values())


def accounted(before, after, receivers, flows, first, count, exact):
    problems = [text for receiver in receivers for text in receiver.unsound()]
    sums = tally(after)
    waiting = sums["waiting"]
    for key, value in tally(before).items():
        sums[key] -= value
    got, twice, strange = consumed(receivers, flows, first, count)
    ended = sum(sums[key] for key in ENDS)
    for wrong, text in (
            (twice, f"{twice} consumed twice"),
            (strange, f"{strange} that were not sent"),
            (waiting, f"{waiting} are waiting"),
            (sums["arrived"] + sums["dropped_source"] != count,
             f"{count} sent, {sums['arrived']} in the gateway's ring and "
             f"{sums['dropped_source']} not"),
            (sums["taken"] != sums["arrived"], f"{sums['taken']} taken of {sums['arrived']}"),
            (ended != sums["taken"], f"{ended} accounted for of {sums['taken']}"),
            (exact and len(got) < sums["frames"] or len(got) > sums["frames"] + sums["lost"],
             f"{len(got)} consumed, {sums['frames']} delivered and {sums['lost']} lost")):
        if wrong:
            problems.append(text)
    dropped = sums["dropped_source"] + sum(sums[key] for key in ENDS[2:])
    print(f"sent {count} consumed {len(got)} lost {sums['lost']} dropped {dropped}")
    return problems


def kept(receiver, probe, first, last):
    problems = receiver.unsound()
    flows = {flow for flow, _ in receiver.numbers(probe, probe)}
    got = collections.Counter(key for key in receiver.numbers(first, last) if key[0] in flows)
    wanted = len(flows) * (last - first + 1)
    if not flows:
        problems.append("no flows here")
    if len(got) != wanted or sum(got.values()) != wanted:
        problems.append(f"{sum(got.values())} of {wanted} datagrams, {len(got)} different")
    return problems


def main():
    what, words = sys.argv[1], sys.argv[2:]
    if what == "once":
        flows, first, last = map(int, words[:3])
        problems = once([Receiver(path) for path in words[3:]], flows, first, last)
    elif what == "copies":
        flow, number = map(int, words[:2])
        problems = copies([Receiver(path) for path in words[2:]], flow, number)
    elif what == "accounted":
        flows, first, count = map(int, words[2:5])
        problems = accounted(*words[:2], [Receiver(path) for path in words[6:]],
                             flows, first, count, words[5] == "exact")
    elif what == "between":
        numbers = map(int, words[:5])
        problems = between([Receiver(path) for path in words[5:]], *numbers)
    elif what == "progress":
        flows, first = map(int, words[:2])
        print(progress([Receiver(path) for path in words[2:]], flows, first))
        problems = []
    elif what == "kept":
        probe, first, last = map(int, words[:3])
        problems = kept(Receiver(words[3]), probe, first, last)
    else:
        receivers = [Receiver(path) for path in words]
        problems = [text for receiver in receivers for text in receiver.unsound()]
        if what == "frames":
            print(sum(receiver.sums["frames"] for receiver in receivers))
            problems = []
    if problems:
        sys.exit("; ".join(problems))


main()
