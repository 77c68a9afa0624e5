#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR GPL-2.0
"""Where a hostile node writes, and whether it got there.

  targets.py choose SEED FILE   reads what guest.sh's `regions` said of a victim and prints
                                lines "ADDRESS KEY" of what nobody may write: memory that is
                                registered for the victim's own use or not at all, what is
                                beside the shared memory, and wrong keys for that itself
  targets.py lent FILE          the same for memory that is shared: the victim's pool
  targets.py intact PID         reads such lines; fails if what cluster_hostile writes is at
                                one of these addresses
"""

import random
import sys

BYTES = 64
WRITTEN = b"\x66" * BYTES
GUESSES = 3


def parse(path):
    """(rkey, lkey) of each region, and the mappings by name."""
    keys, maps = [], []
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if words[:1] == ["mr"]:
                keys.append((int(words[2], 16), int(words[4], 16)))
            elif words[:1] == ["map"]:
                begin, end = (int(word, 16) for word in words[1].split("-"))
                maps.append((begin, end, words[2], words[6] if len(words) > 6 else ""))
    return keys, maps


def choose(seed, path):
    dice = random.Random(seed)
    keys, maps = parse(path)
    shared = [(b, e) for b, e, mode, name in maps
              if mode[3] == "s" and (name.startswith("/memfd:") or name == "/dev/ringgate")]
    pools = [(b, e) for b, e, _, name in maps if name.startswith("/memfd:ringgate-node")]
    private = [(b, e) for b, e, mode, name in maps
               if mode.startswith("rw-p") and name in ("[heap]", "[stack]")]
    own = [lkey for rkey, lkey in keys if not rkey]
    lent = [rkey for rkey, _ in keys if rkey]
    if not pools or not private or not lent:
        sys.exit(f"{path}: no memory is shared there")
    targets = []
    for begin, end in private:
        targets += [(begin + 4096, key) for key in lent + own]
    for begin, end in pools:
        targets += [(end - BYTES // 2, key) for key in lent]
        targets += [(begin - BYTES // 2, key) for key in lent]
    for begin, end in shared:
        targets += [(begin + 8192, key) for key in own]
        for _ in range(GUESSES):
            key = dice.choice(lent) ^ dice.randrange(1, 1 << 20)
            if key not in lent:
                targets.append((begin + 8192, key))
    dice.shuffle(targets)
    for address, key in targets:
        print(f"{address:#x} {key:#x}")


def lent(path):
    keys, maps = parse(path)
    ends = [end for _, end, _, name in maps if name.startswith("/memfd:ringgate-node")]
    lent_keys = [rkey for rkey, _ in keys if rkey]
    if len(ends) != 1 or len(lent_keys) != 1:
        sys.exit(f"{path}: more than the pool is shared there")
    print(f"{ends[0] - 4096:#x} {lent_keys[0]:#x}")


def intact(pid):
    bad = 0
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in sys.stdin:
            address = int(line.split()[0], 16)
            try:
                memory.seek(address)
                bad += WRITTEN[:BYTES // 2] in memory.read(BYTES)
            except OSError:
                continue  # beside a mapping
    if bad:
        sys.exit(f"written at {bad} places")


if sys.argv[1] == "choose":
    choose(int(sys.argv[2]), sys.argv[3])
elif sys.argv[1] == "lent":
    lent(sys.argv[2])
else:
    intact(int(sys.argv[2]))
