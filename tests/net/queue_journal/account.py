# SPDX-License-Identifier: MIT OR GPL-2.0
"""What submitters and workers of a journaled queue saw, while its daemon was killed: can it be?"""

import sys
from collections import defaultdict


def faults(lines, selftest=False):
    """All that cannot be, as text"""
    submitted, ran, completed, results, first = set(), defaultdict(list), defaultdict(list), defaultdict(list), {}
    bad = []
    for line in lines:
        words = line.split()
        at, what, task = int(words[0]), words[1], words[2]
        if what == "submitted":
            submitted.add(task)
            first[task] = at
        elif what == "ran":
            ran[task].append((at, words[3]))
        elif what == "completed":
            completed[task].append((at, words[3]))
        elif what == "result":
            results[task].append((at, words[3]))
        elif what == "gone":
            bad.append(f"{task}: its result is gone, and was not fetched")
    for task in submitted:
        if task not in ran:
            bad.append(f"{task}: was taken, and never ran")
    for task, all_of in completed.items():
        if len(all_of) > 1:
            bad.append(f"{task}: completed {len(all_of)} times")
        late = [at for at, _ in ran[task] if at > all_of[0][0]]
        if late:
            bad.append(f"{task}: ran after it was completed")
    for task, all_of in results.items():
        said = {result for _, result in all_of} | {result for _, result in completed[task]}
        if len(said) > 1 or len(all_of) > 1:
            bad.append(f"{task}: results {sorted(said)}, told {len(all_of)} times")
    print(f"# {len(submitted)} taken, {sum(map(len, ran.values()))} runs of {len(ran)}, "
          f"{len(completed)} completed, {len(results)} results")
    if not selftest and not (submitted and completed and results):
        bad.append("there is nothing to be looked at")
    return bad


SELFTEST = [
    ("1 submitted a\n", 1),
    ("1 submitted a\n2 ran a x\n3 completed a x\n4 ran a y\n", 1),
    ("1 submitted a\n2 ran a x\n3 completed a x\n4 completed a y\n", 1),
    ("1 submitted a\n2 ran a x\n3 ran a y\n4 result a x\n5 completed a y\n", 1),
    ("1 submitted a\n2 ran a x\n3 ran a y\n4 completed a y\n5 result a y\n", 0),
    ("1 submitted a\n2 ran a x\n3 gone a\n", 1),
]

if sys.argv[1] == "--selftest":
    sys.exit(any(bool(faults(text.splitlines(), True)) != bool(want) for text, want in SELFTEST))
found = faults(line for path in sys.argv[1:] for line in open(path, encoding="ascii"))
print("\n".join(f"# {line}" for line in found[:20]))
sys.exit(bool(found))
