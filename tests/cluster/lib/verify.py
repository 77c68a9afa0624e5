#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR GPL-2.0
"""Judge what receivers (cluster_recv) say they got.

  verify.py once FLOWS FIRST LAST FILE...   each datagram once, at one of them, each flow
                                            in order and at one of them
  verify.py copies FLOWS FIRST LAST FILE... all datagrams at each of them
  verify.py sound FILE...                   nothing malformed or out of order
  verify.py kept PROBE FIRST LAST FILE      flows that have datagram PROBE here have all of
                                            FIRST to LAST here, too
  verify.py frames FILE...                  prints how many frames they have, together
"""

import collections
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


def copies(receivers, flows, first, last):
    problems = []
    for receiver in receivers:
        problems += receiver.unsound()
        got = collections.Counter(receiver.numbers(first, last))
        problems += missing_and_more(got, flows, first, last)
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
    if what in ("once", "copies"):
        flows, first, last = map(int, words[:3])
        receivers = [Receiver(path) for path in words[3:]]
        problems = (once if what == "once" else copies)(receivers, flows, first, last)
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
