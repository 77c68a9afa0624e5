# SPDX-License-Identifier: MIT OR GPL-2.0
"""The list of changes that no test can see, each with its reason.

Paragraphs: a line with the file; one beginning with "- ", the line as it stands in the
file (without indentation); optionally some with "+ ", what it becomes (without them every
change of the line is meant); then lines with "# ", the reason. A line of a file that does
not occur there, or an entry without a reason, is an error: the list does not go stale.
"""

import os


class Stale(Exception):
    """An entry of the list that does not fit the tree."""


class Equivalents:
    def __init__(self, top, path):
        self._entries = {}  # (file, line's text): (changed texts or none, reason)
        self._path = path
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                for number, paragraph in paragraphs(file):
                    self._take(top, number, paragraph)

    def _take(self, top, number, paragraph):
        name, rest = paragraph[0], paragraph[1:]
        texts = {sign: [line[2:].strip() for line in rest if line.startswith(f"{sign} ")] for sign in "-+#"}
        where = f"{os.path.basename(self._path)}:{number}"
        if len(texts["-"]) != 1 or not texts["#"] or sum(map(len, texts.values())) != len(rest):
            raise Stale(f"{where}: wanted a file, one line with '- ', some with '+ ', a reason with '# '")
        try:
            with open(os.path.join(top, name), encoding="utf-8") as file:
                present = {line.strip() for line in file}
        except OSError as error:
            raise Stale(f"{where}: {name}: {error.strerror}") from error
        if texts["-"][0] not in present:
            raise Stale(f"{where}: {name} has no line '{texts['-'][0]}' any more")
        self._entries.setdefault((name, texts["-"][0]), []).append((texts["+"], " ".join(texts["#"])))

    def reason(self, mutant):
        """Why no test can see the mutant; None where one should."""
        for changed, reason in self._entries.get((mutant.file, mutant.before.strip()), []):
            if not changed or mutant.after.strip() in changed:
                return reason
        return None

    def __len__(self):
        return sum(map(len, self._entries.values()))


def paragraphs(file):
    """(line number, lines) of each block; comments of the file begin with '#' in the first column of a block."""
    block, start = [], 0
    for number, line in enumerate([*file, "\n"], 1):
        line = line.rstrip("\n")
        if line.strip():
            start = start or number
            block.append(line)
        elif block:
            if not all(text.startswith("#") for text in block):
                yield start, block
            block, start = [], 0
