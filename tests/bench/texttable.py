# SPDX-License-Identifier: MIT OR GPL-2.0
"""Tables of benchmarks on a terminal."""

import sys


def show(head, rows, out=sys.stdout):
    """The first column is what is measured, the others are numbers."""
    cells = [[str(c) for c in row] for row in [head, *rows]]
    width = [max(len(row[i]) for row in cells) for i in range(len(head))]
    for row in cells:
        print("  ".join(f"{c:<{w}}" if i == 0 else f"{c:>{w}}"
                        for i, (c, w) in enumerate(zip(row, width))), file=out)
