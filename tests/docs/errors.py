#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR GPL-2.0
"""The errors that the public headers document, and what rgate_strerror() says of them.

errors.py LIBRARY HEADER... [-- SOURCE...]

Prints a line for each documented error of a function for which there are no words of that
call, and for each row of the SOURCEs' tables that no function of the headers is meant by.
What an error is that means the same everywhere (PLAIN) may be said in general.
"""

import ctypes
import errno
import re
import sys

PLAIN = {"EINVAL", "ENOMEM", "EINTR", "EOWNERDEAD", "ECANCELED", "EMFILE", "EAFNOSUPPORT", "EOVERFLOW"}
ITEM = re.compile(r"(?P<comment>/\*.*?\*/)"
                  r"|^(?:RGATE_API|static inline)\s[^;{]*?\b(?P<call>rgate_\w+)\s*\("
                  r"|(?P<other>^(?:struct|enum|typedef|#)[^\n]*\n|^\n)", re.S | re.M)


def documented(path):
    """(function, its comment): a comment is of all functions behind it, up to an empty line"""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    comment = ""
    for item in ITEM.finditer(text):
        if item["comment"]:
            if item.start() == 0 or text[item.start() - 1] == "\n":
                comment = item["comment"]
        elif item["call"]:
            yield item["call"], comment
        elif item["other"]:
            comment = ""


def errors_of(comments, call, seen=()):
    """Names of errors, with those of "as rgate_x()"."""
    comment = re.sub(r"\s*\n \*\s*", " ", comments.get(call, ""))
    found = set(re.findall(r"-(E[A-Z0-9]{2,})\b", comment))
    for other in re.findall(r"\b[Aa]s (?:of )?(rgate_\w+)\(\)(?! (?:makes|gave))", comment):
        if other not in seen and other != call:
            found |= errors_of(comments, other, (*seen, call))
    return found


def main(argv):
    sources = argv[argv.index("--") + 1:] if "--" in argv else []
    headers = argv[2:argv.index("--")] if "--" in argv else argv[2:]
    say = ctypes.CDLL(argv[1]).rgate_strerror
    say.restype = ctypes.c_char_p
    say.argtypes = [ctypes.c_char_p, ctypes.c_int]
    comments = {}
    for path in headers:
        for call, comment in documented(path):
            comments[call] = comments.get(call, "") + comment
    pairs = 0
    for call in comments:
        for name in sorted(errors_of(comments, call)):
            number = getattr(errno, name, None)
            if number is None:
                print(f"{call}: there is no error {name}")
                continue
            pairs += 1
            text = say(call.encode(), -number) or b""
            if not text.strip() or b"\n" in text or text.startswith(b"unexpected error"):
                print(f"{call}: no words for -{name}")
            elif name not in PLAIN and text == say(None, -number):
                print(f"{call}: no words of its own for -{name}")
    for path in sources:
        with open(path, encoding="utf-8") as file:
            for row in re.findall(r'\{ "(rgate_\w*)(?::\w+)?"', file.read()):
                if not any(call == row or row[-1] == "_" and call.startswith(row) for call in comments):
                    print(f"{path}: no function is, or begins with, {row}")
    print(f"{len(comments)} functions, {pairs} errors", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
