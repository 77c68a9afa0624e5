# SPDX-License-Identifier: MIT OR GPL-2.0
"""Values of Python expressions over a JSON text, the object j.

json_eval.py EXPRESSION     of the text on standard input: prints it
json_eval.py                serves: on standard input a process id and an expression, each with a
                            NUL behind it; the text is that process's standard input. Answers
                            a status, 0 or 1, and the value or what is wrong, each with a NUL
"""

import sys

import _json


class Context:
    """What json.JSONDecoder hands to the scanner. The module json itself takes longer to load than
    all that is done here: it brings regular expressions along."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float
    memo = {}


scan = _json.make_scanner(Context())


def parse(text):
    text = text.strip(" \t\r\n")
    try:
        value, end = scan(text, 0)
    except StopIteration:
        raise ValueError(f"no JSON: {text[:80]!r}") from None
    if end != len(text):
        raise ValueError(f"something behind the JSON: {text[end:end + 80]!r}")
    return value


def value_of(expression, text):
    return str(eval(expression, {"j": parse(text)}))


def words(stream):
    pending = b""
    while True:
        data = stream.read(65536)
        if not data:
            return
        *whole, pending = (pending + data).split(b"\0")
        for word in whole:
            yield word.decode()


def serve(ask, tell):
    asked = words(ask)
    for pid in asked:
        expression = next(asked)
        try:
            with open(f"/proc/{pid}/fd/0", encoding="utf-8") as file:
                answer = "0", value_of(expression, file.read())
        except Exception as error:
            answer = "1", f"{expression}: {type(error).__name__}: {error}"
        tell.write("".join(word + "\0" for word in answer).encode())


if len(sys.argv) > 1:
    print(value_of(sys.argv[1], sys.stdin.read()))
else:
    serve(open(0, "rb", 0), open(1, "wb", 0))
