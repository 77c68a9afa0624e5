#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR GPL-2.0
"""The literal blocks of a document: what a reader would copy.

blocks.py DOCUMENT               number, line, kind and section of each
blocks.py DOCUMENT SELECTOR...   the text of those selected, one after the other

A selector is SECTION:KIND:N, the N-th block (from 1) of a kind in a section, or
SECTION:KIND for all of them. Kinds: c, cuda, shell, text. Of a shell block only commands are
printed: prompts, and what a command printed, are left out."""

import re
import sys

UNDERLINE = re.compile(r"([=\-~^])\1{2,}$")
PROMPT = re.compile(r"[$#] (?=\S)")
SHELL = re.compile(r"(sudo |export |ringgate |ringgated|make |openssl |chmod |nvcc |scripts/|head -|\w+=)")
CODE = re.compile(r"rgate_\w+\(.*[;{,)]$|RGATE_OPTS\(")


class Block:
    def __init__(self, line, section, words, lines):
        while lines and not lines[-1].strip():
            lines.pop()
        while lines and not lines[0].strip():
            lines.pop(0)
        depth = min((len(l) - len(l.lstrip()) for l in lines if l.strip()), default=0)
        self.lines = [l[depth:] for l in lines]
        self.line, self.section, self.kind = line, section, words or self._guess()

    def _guess(self):
        if any(CODE.search(l) for l in self.lines):
            return "c"
        prompts = [l for l in self.lines if PROMPT.match(l) and l.startswith("$")]
        if prompts or (self.lines and SHELL.match(self.lines[0])):
            return "shell"
        return "text"

    def text(self):
        if self.kind != "shell":
            return "\n".join(self.lines)
        if any(l.startswith("$ ") for l in self.lines):
            return "\n".join(l[2:] for l in self.lines if l.startswith("$ "))
        return "\n".join(self.lines)


def rst_blocks(lines):
    section, i = "", 0
    while i < len(lines):
        line = lines[i]
        if i + 1 < len(lines) and line.strip() and UNDERLINE.match(lines[i + 1].strip()):
            section = line.strip()
        code = re.match(r"\s*\.\. code-block:: (\w+)", line)
        if code or (line.rstrip().endswith("::") and not line.lstrip().startswith("..")):
            depth = len(line) - len(line.lstrip())
            j = i + 1
            while j < len(lines) and (not lines[j].strip() or
                                      len(lines[j]) - len(lines[j].lstrip()) > depth):
                j += 1
            yield Block(i + 1, section, code and code[1], lines[i + 1:j])
            i = j
        else:
            i += 1


def markdown_blocks(lines):
    section, i = "", 0
    while i < len(lines):
        line = lines[i]
        if line.startswith("#"):
            section = line.lstrip("# ")
        if line.startswith("```"):
            j = next(k for k in range(i + 1, len(lines)) if lines[k].startswith("```"))
            yield Block(i + 1, section, line[3:].strip() or None, lines[i + 1:j])
            i = j + 1
        elif line.startswith("    ") and not lines[i - 1].strip():
            j = i
            while j < len(lines) and (not lines[j].strip() or lines[j].startswith("    ")):
                j += 1
            yield Block(i + 1, section, None, lines[i:j])
            i = j
        else:
            i += 1


def man_blocks(lines):
    section, i = "", 0
    while i < len(lines):
        if lines[i].startswith(".Sh "):
            section = lines[i][4:].strip('" ').capitalize()
        if lines[i].startswith(".Bd -literal"):
            j = lines.index(".Ed", i)
            yield Block(i + 1, section, None, lines[i + 1:j])
            i = j
        i += 1


def blocks_of(path):
    with open(path, encoding="utf-8") as file:
        lines = file.read().expandtabs(8).split("\n")
    if path.endswith(".rst"):
        return list(rst_blocks(lines))
    return list(markdown_blocks(lines) if path.endswith(".md") else man_blocks(lines))


def select(blocks, selector):
    match = re.fullmatch(r"(.+):(c|cuda|shell|text)(?::(\d+))?", selector)
    section, kind, number = match.groups() if match else ("", "", None)
    found = [b for b in blocks if b.section == section and b.kind == kind]
    if number:
        found = found[int(number) - 1:int(number)]
    if not found:
        sys.exit(f"no block {selector}")
    return found


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return
    blocks = blocks_of(sys.argv[1])
    for selector in sys.argv[2:]:
        for block in select(blocks, selector):
            print(block.text())
    if len(sys.argv) == 2:
        for block in blocks:
            print(f"{block.line}\t{block.kind}\t{block.section}")


if __name__ == "__main__":
    main()
