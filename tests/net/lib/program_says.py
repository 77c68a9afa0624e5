# SPDX-License-Identifier: MIT OR GPL-2.0
"""What programs say that a test runs, and how they end where something is not as it should be."""
import errno


def say(*words):
    print(*words, flush=True)


def check(what, got, want):
    if got != want:
        raise SystemExit(f"{what}: {got!r} instead of {want!r}")


def fails(number, call, *args):
    try:
        got = call(*args)
    except OSError as e:
        check("error", errno.errorcode.get(e.errno), errno.errorcode[number])
    else:
        raise SystemExit(f"{call.__name__}: {got!r} instead of {errno.errorcode[number]}")
