# SPDX-License-Identifier: MIT OR GPL-2.0
"""The single changes that can be made to a C file, found by libclang.

A mutant replaces text within one line, so that the lines of the file keep their numbers.
What the preprocessor leaves out has no syntax tree, and so no mutants.
"""

import dataclasses
import os
import re

from clang import cindex
from clang.cindex import CursorKind as K

TURNED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
LOGICAL = {"&&": "||", "||": "&&"}
ARITHMETIC = {"+": "-", "-": "+", "+=": "-=", "-=": "+="}
# What a lost call is called
FREEING = re.compile(r"(^|_)(free\w*|close\w*|destroy\w*|put|release|unmap|munmap|unlink\w*|dereg\w*)($|_)")
# Where these do nothing but check (glibc), a call less is no other program.
WITHOUT_EFFECT = re.compile(r"pthread_(mutex|cond|attr|mutexattr|condattr)_destroy$")
# What is likely: the compiler alone is told, and the same comes out of it.
HINT = re.compile(rb"__builtin_expect\([^;{}]*,\s*\Z")
UNLOCKING = re.compile(r"unlock")
ORDER = re.compile(r"__ATOMIC_(ACQUIRE|RELEASE|ACQ_REL|SEQ_CST)\b|memory_order_(acquire|release|acq_rel|seq_cst)\b")
ERRORS = re.compile(r"-\s*(E[A-Z0-9]+|errno)$")
ERROR_NAMES = {"err", "error", "ret", "rc", "status", "result"}
BODIES = (K.COMPOUND_STMT, K.IF_STMT, K.FOR_STMT, K.WHILE_STMT)
LEAVES = (K.RETURN_STMT, K.GOTO_STMT, K.BREAK_STMT, K.CONTINUE_STMT)


@dataclasses.dataclass(frozen=True, order=True)
class Mutant:
    """A change of one line: [start, end) of the file's bytes become `text`."""

    file: str
    line: int
    start: int
    end: int
    kind: str
    text: str
    before: str = dataclasses.field(compare=False)
    after: str = dataclasses.field(compare=False)

    def apply(self, source):
        return source[: self.start] + self.text.encode() + source[self.end :]


class Finder:
    """Collects the mutants of one file out of the syntax tree of what includes it, or its own."""

    def __init__(self, name, path, unit, arguments):
        self._name = name
        with open(path, "rb") as file:
            self._source = file.read()
        self._path = os.path.realpath(path)
        self._unit = cindex.Index.create().parse(unit, args=arguments)
        errors = [d for d in self._unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
        if errors:
            raise ValueError(f"{name}: {errors[0]}")
        self._found = set()

    def find(self):
        for top in self._unit.cursor.get_children():
            if top.kind == K.FUNCTION_DECL and top.is_definition() and self._here(top):
                self._walk(top, top)
                self._orders(top)
        return sorted(self._found)

    def _here(self, cursor):
        return cursor.location.file and os.path.realpath(cursor.location.file.name) == self._path

    def _walk(self, cursor, function):
        for child in cursor.get_children():
            self._look(child, cursor, function)
            self._walk(child, function)

    def _look(self, cursor, parent, function):
        if cursor.kind == K.IF_STMT:
            self._check(cursor)
        if cursor.kind in (K.IF_STMT, K.WHILE_STMT, K.CONDITIONAL_OPERATOR):
            self._negate(cursor)
        elif cursor.kind in (K.BINARY_OPERATOR, K.COMPOUND_ASSIGNMENT_OPERATOR):
            self._operator(cursor, parent)
        elif cursor.kind == K.INTEGER_LITERAL:
            self._constant(cursor, parent)
        elif cursor.kind == K.RETURN_STMT:
            self._returned(cursor, function)
        elif cursor.kind == K.CALL_EXPR and parent.kind in BODIES:
            self._call(cursor, parent)

    # Text

    def _text(self, cursor):
        return self._source[cursor.extent.start.offset : cursor.extent.end.offset]

    def _add(self, kind, start, end, text):
        """A change, where it is one and stays within a line."""
        old = self._source[start:end]
        if b"\n" in old or old.decode() == text:
            return
        first = self._source.rfind(b"\n", 0, start) + 1
        last = self._source.find(b"\n", end)
        line = self._source.count(b"\n", 0, start) + 1
        before = self._source[first:last].decode()
        after = (self._source[first:start] + text.encode() + self._source[end:last]).decode()
        self._found.add(Mutant(self._name, line, start, end, kind, text, before, after))

    # One kind of change each

    def _condition(self, cursor):
        """The cursor of a condition whose text is there as such, not out of a macro."""
        child = next(iter(cursor.get_children()), None)
        if child is None or child.kind == K.COMPOUND_STMT:
            return None
        text = self._text(child)
        if not text or text.count(b"(") != text.count(b")"):
            return None
        return child

    def _check(self, cursor):
        children = list(cursor.get_children())
        then = children[1] if len(children) == 2 else None
        if then is not None and then.kind == K.COMPOUND_STMT:
            then = (list(then.get_children()) or [None])[-1]
        condition = self._condition(cursor)
        if then is not None and then.kind in LEAVES and condition is not None:
            text = self._text(condition).decode()
            self._add("check dropped", condition.extent.start.offset, condition.extent.end.offset, f"({text}) && 0")

    def _negate(self, cursor):
        condition = self._condition(cursor)
        if condition is not None:
            text = self._text(condition).decode()
            new = text[1:] if re.fullmatch(r"!\w+", text) else f"!({text})"
            self._add("condition negated", condition.extent.start.offset, condition.extent.end.offset, new)

    def _same_where_equal(self, cursor, parent):
        """Of `a < b ? a : b` and `a > b ? a - b : 0`: where both are the same it is the same
        whether they are taken for that or not."""
        if parent.kind != K.CONDITIONAL_OPERATOR:
            return False
        condition, *arms = list(parent.get_children())
        if condition != cursor or len(arms) != 2:
            return False
        a, b = (re.sub(rb"\s+", b"", self._text(child)) for child in cursor.get_children())
        arms = {re.sub(rb"\s+", b"", self._text(arm)) for arm in arms}
        return arms in ({a, b}, {a + b"-" + b, b"0"}, {b + b"-" + a, b"0"})

    def _operator(self, cursor, parent):
        children = list(cursor.get_children())
        if len(children) != 2:
            return
        start, end = children[0].extent.end.offset, children[1].extent.start.offset
        between = self._source[start:end].decode(errors="replace")
        sign = between.strip()
        for kind, table in (("comparison turned", TURNED), ("logic turned", LOGICAL), ("sign turned", ARITHMETIC)):
            if sign in table and not (sign[0] in "<>" and self._same_where_equal(cursor, parent)):
                at = start + between.index(sign)
                self._add(kind, at, at + len(sign), table[sign])
        if sign in ("+", "-") and re.fullmatch(rb"1U?L*", self._text(children[1])):
            extent = children[1].extent
            self._add("off by one", extent.start.offset, extent.end.offset, "0")

    def _constant(self, cursor, parent):
        text = self._text(cursor).decode(errors="replace")
        if parent.kind in (K.CASE_STMT, K.VAR_DECL) or not re.fullmatch(r"\d+U?L*", text):
            return
        if HINT.search(self._source[: cursor.extent.start.offset]):
            return
        digits = re.match(r"\d+", text)[0]
        if digits.startswith("0") and digits != "0":
            return  # octal: modes
        # 1 is often what is true: 2 would be, too.
        new = ("0" if digits == "1" else str(int(digits) + 1)) + text[len(digits) :]
        self._add("constant", cursor.extent.start.offset, cursor.extent.end.offset, new)

    def _returned(self, cursor, function):
        value = next(iter(cursor.get_children()), None)
        if value is None or function.result_type.spelling not in ("int", "ssize_t", "long"):
            return
        text = self._text(value).decode(errors="replace")
        if ERRORS.match(text) or text in ERROR_NAMES:
            self._add("error returned as 0", value.extent.start.offset, value.extent.end.offset, "0")

    def _call(self, cursor, parent):
        children = list(parent.get_children())
        if parent.kind in (K.IF_STMT, K.WHILE_STMT) and children[0] == cursor:
            return  # the condition
        if parent.kind == K.FOR_STMT and children[-1] != cursor:
            return
        text = self._text(cursor)
        if not text.endswith(b")") or WITHOUT_EFFECT.match(cursor.spelling):
            return
        name = cursor.spelling
        kind = "unlock dropped" if UNLOCKING.search(name) else "free dropped" if FREEING.search(name) else "call dropped"
        self._add(kind, cursor.extent.start.offset, cursor.extent.end.offset, "(void)0")

    def _orders(self, function):
        for token in function.get_tokens():
            match = ORDER.fullmatch(token.spelling)
            if match:
                weak = "__ATOMIC_RELAXED" if match[1] else "memory_order_relaxed"
                self._add("order weakened", token.extent.start.offset, token.extent.end.offset, weak)


def find(name, path, unit, arguments):
    """All mutants of the file `path`, which is called `name`, as the C file `unit` has it."""
    return Finder(name, path, unit, arguments).find()
