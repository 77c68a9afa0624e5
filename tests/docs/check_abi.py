#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0
"""Are the tables of abi.rst and wire.rst what the headers in uapi/ringgate say?

Both directions: every struct member and constant of the headers is in the
document with its offset, size and value, and the document has no other. The
compiler tells what the headers mean. Speaks TAP.

usage: check_abi.py [abi.rst | wire.rst [directory of the headers]]
"""
import csv
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# Document: its headers, and how many structs and constants these have at least
DOCUMENTS = {
    "abi.rst": (("ring.h", "ioctl.h"), 9, 40),
    "wire.rst": (("desc.h", "shard.h"), 5, 17),
}
# Not constants: macros with arguments, guards, assertions, strings.
NOT_NUMBERS = {"RGATE_ASSERT", "RGATE_AT", "RGATE_DEVICE"}


def document(path):
    """{struct: (size, [(offset, size, field)])} and {constant: value}"""
    structs, constants = {}, {}
    table = None
    for line in open(path, encoding="utf-8"):
        m = re.match(r"\.\. csv-table:: (.*)", line)
        if m:
            title = m.group(1)
            s = re.match(r"struct (\w+), (\d+) bytes$", title)
            if s:
                table = structs[s.group(1)] = (int(s.group(2)), [])
            else:
                table = constants if title.startswith("Constants:") else None
            continue
        if line.strip() and not line.startswith(" "):
            table = None
        if table is None or not line.strip() or line.strip().startswith(":"):
            continue
        row = [c.strip().strip("`") for c in
               next(csv.reader([line.strip()], skipinitialspace=True))]
        if isinstance(table, dict):
            table[row[0]] = int(row[1], 0)
        else:
            table[1].append((int(row[0]), int(row[1]), row[2]))
    return structs, constants


def names(directory, headers):
    """{struct: [members]} and [constants] that the headers declare"""
    structs, constants = {}, []
    for header in headers:
        text = open(os.path.join(directory, header), encoding="utf-8").read()
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        for name, body in re.findall(r"^struct (\w+) \{(.*?)^\};", text,
                                     re.S | re.M):
            structs[name] = re.findall(r"(\w+)(?:\[[^]]*\])?;", body)
        for body in re.findall(r"^enum \w+ \{(.*?)^\};", text, re.S | re.M):
            constants += re.findall(r"\b(RGATE_\w+)", body)
        constants += [n for n in re.findall(r"^#define (RGATE_\w+)[ \t(]", text,
                                            re.M) if n not in NOT_NUMBERS]
    return structs, constants


def measure(uapi, headers, structs, constants):
    """The same with numbers, by compiling a program that prints them"""
    lines = ['#include <stdio.h>', '#include <stddef.h>',
             *['#include <ringgate/%s>' % h for h in headers], 'int main(void) {']
    for s, members in structs.items():
        lines.append('printf("S %s %%zu\\n", sizeof(struct %s));' % (s, s))
        for f in members:
            lines.append('printf("F %s %s %%zu %%zu\\n", offsetof(struct %s, %s),'
                         ' sizeof(((struct %s *)0)->%s));' % (s, f, s, f, s, f))
    for c in constants:
        lines.append('printf("C %s %%llu\\n", (unsigned long long)(%s));' % (c, c))
    lines.append("return 0; }\n")
    with tempfile.TemporaryDirectory() as tmp:
        src, exe = os.path.join(tmp, "m.c"), os.path.join(tmp, "m")
        with open(src, "w", encoding="utf-8") as f:
            f.write("\n".join(lines))
        subprocess.run([os.environ.get("CC", "gcc"), "-std=gnu11", "-I", uapi,
                        "-o", exe, src], check=True)
        out = subprocess.run([exe], check=True, capture_output=True, text=True)
    sizes, fields, values = {}, {}, {}
    for line in out.stdout.splitlines():
        w = line.split()
        if w[0] == "S":
            sizes[w[1]] = int(w[2])
        elif w[0] == "F":
            fields.setdefault(w[1], []).append((int(w[3]), int(w[4]), w[2]))
        else:
            values[w[1]] = int(w[2])
    return {s: (sizes[s], fields[s]) for s in sizes}, values


def main():
    doc = sys.argv[1] if len(sys.argv) > 1 else os.path.join(
        TOP, "Documentation", "abi.rst")
    directory = sys.argv[2] if len(sys.argv) > 2 else os.path.join(
        TOP, "uapi", "ringgate")
    headers, min_structs, min_consts = DOCUMENTS[os.path.basename(doc)]
    doc_structs, doc_consts = document(doc)
    structs, consts = measure(os.path.dirname(os.path.abspath(directory)), headers,
                              *names(directory, headers))
    failed = n = 0

    def ok(good, name, why=()):
        nonlocal failed, n
        n += 1
        failed += not good
        print("%sok %d - %s" % ("" if good else "not ", n, name))
        for line in why:
            print("# " + line)

    ok(len(structs) >= min_structs and len(consts) >= min_consts,
       "the headers were understood",
       ["%d structs, %d constants" % (len(structs), len(consts))])
    for s in sorted(set(structs) | set(doc_structs)):
        a, b = doc_structs.get(s), structs.get(s)
        why = [] if a == b else ["document: %s" % (a,), "header:   %s" % (b,)]
        ok(a == b, "struct %s" % s, why)
    wrong = ["%s: document %s, header %s" % (c, doc_consts.get(c), consts.get(c))
             for c in sorted(set(consts) | set(doc_consts))
             if consts.get(c) != doc_consts.get(c)]
    ok(not wrong, "constants", wrong)
    print("1..%d" % n)
    return 1 if failed else 0


sys.exit(main())
