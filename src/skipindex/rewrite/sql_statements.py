"""OPTIMIZE and VACUUM as SQL.

::

    OPTIMIZE '/path' [FULL] [WHERE partition_predicate]
             [ZORDER BY (a, b) | CLUSTER BY (a, b)] [IN PLACE | INTO '/new']
    VACUUM '/path' [RETAIN n HOURS] [DRY RUN]

Words are those of Delta's statements, in any case.  The path stands in quotes or
backticks; FULL, IN PLACE and INTO are the arguments of ``Table.optimize``.
ZORDER BY takes the Z-order curve, CLUSTER BY the Hilbert curve.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from skipindex.errors import PredicateError
from skipindex.expressions.not_judged import NotJudgedError
from skipindex.planner.sql.literals import string
from skipindex.planner.sql.tokens import (
    OPENING,
    Kind,
    Token,
    error_at,
    match_brackets,
    tokenize,
)
from skipindex.rewrite.optimize import OptimizeOptions

_CLAUSES: Final = {("ZORDER", "BY"), ("CLUSTER", "BY"), ("IN", "PLACE")}


@dataclass(frozen=True, slots=True)
class Optimize:
    """An OPTIMIZE statement; ``into`` is a path or None."""

    path: str
    options: OptimizeOptions
    into: str | None


@dataclass(frozen=True, slots=True)
class Vacuum:
    """A VACUUM statement."""

    path: str
    retention: timedelta | None
    dry_run: bool


def parse_statement(text: str) -> Optimize | Vacuum:
    """The statement that ``text`` is; a semicolon at its end is allowed.

    Raises:
        PredicateError: it is neither; the message says where and what is expected.
    """
    reader = _Reader(text)
    if reader.takes("OPTIMIZE"):
        return reader.optimize()
    if reader.takes("VACUUM"):
        return reader.vacuum()
    raise reader.unexpected("OPTIMIZE or VACUUM")


class _Reader:
    """Takes one word after the other."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokenize(text)
        self._closing = match_brackets(self._tokens, text)
        self._at = 0

    def takes(self, *keys: str) -> bool:
        """Whether these words come next; if so, they are taken."""
        found = tuple(token.key for token in self._tokens[self._at :][: len(keys)])
        if found != keys:
            return False
        self._at += len(keys)
        return True

    def unexpected(self, expected: str) -> PredicateError:
        """The error that says which word was expected."""
        what = "the end" if self._next.kind is Kind.END else repr(self._next.text)
        problem = f"expected {expected}, found {what}"
        return error_at(self._text, self._next.start, problem)

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def optimize(self) -> Optimize:
        """What follows OPTIMIZE."""
        path = self._path()
        mode = "full" if self.takes("FULL") else "incremental"
        where = self._condition() if self.takes("WHERE") else None
        columns, curve = None, None
        if self.takes("ZORDER", "BY"):
            columns, curve = self._columns(), "zorder"
        elif self.takes("CLUSTER", "BY"):
            columns, curve = self._columns(), "hilbert"
        in_place = self.takes("IN", "PLACE")
        into = self._path() if not in_place and self.takes("INTO") else None
        self._end("WHERE, ZORDER BY, CLUSTER BY, IN PLACE, INTO or the end")
        options = OptimizeOptions(columns, curve, where, mode, in_place=in_place)
        return Optimize(path, options, into)

    def vacuum(self) -> Vacuum:
        """What follows VACUUM."""
        path = self._path()
        retention: timedelta | None = None
        if self.takes("RETAIN"):
            try:
                retention = timedelta(hours=float(self._next.text))
            except (ValueError, OverflowError):
                raise self.unexpected("a number of hours") from None
            self._at += 1
            if not self.takes("HOURS") and not self.takes("HOUR"):
                raise self.unexpected("HOURS")
        dry_run = self.takes("DRY", "RUN")
        self._end("RETAIN n HOURS, DRY RUN or the end")
        return Vacuum(path, retention, dry_run)

    def _path(self) -> str:
        kinds = {Kind.STRING, Kind.QUOTED}
        return self._word(kinds, "the path of a table in quotes")

    def _word(self, kinds: set[Kind], expected: str) -> str:
        """The next word, if it is of one of these kinds, without its quotes."""
        token = self._next
        if token.kind not in kinds:
            raise self.unexpected(expected)
        self._at += 1
        match token.kind:
            case Kind.WORD:
                return token.text
            case Kind.QUOTED:
                return token.text[1:-1].replace("``", "`")
        try:
            return string(token.text, doubled=True)
        except NotJudgedError as error:
            raise error_at(self._text, token.start, str(error)) from error

    def _condition(self) -> str:
        """The text up to the next clause that stands in no brackets."""
        first = last = self._next
        while not self._begins_clause():
            if self._next.key in OPENING:
                self._at = self._closing[self._at]
            last = self._next
            self._at += 1
        if self._next is first:
            raise self.unexpected("a condition on partition columns")
        return self._text[first.start : last.end]

    def _begins_clause(self) -> bool:
        token = self._next
        if token.kind is Kind.END or token.key == ";":
            return True
        after = self._tokens[self._at + 1]
        is_into = token.key == "INTO" and after.kind in {Kind.STRING, Kind.QUOTED}
        return is_into or (token.key, after.key) in _CLAUSES

    def _columns(self) -> list[str]:
        """Names with commas between them, in parentheses or not."""
        enclosed = self.takes("(")
        names = [self._name()]
        while self.takes(","):
            names.append(self._name())
        if enclosed and not self.takes(")"):
            raise self.unexpected("a comma or ')'")
        return names

    def _name(self) -> str:
        return self._word({Kind.WORD, Kind.QUOTED}, "the name of a column")

    def _end(self, expected: str) -> None:
        self.takes(";")
        if self._next.kind is not Kind.END:
            raise self.unexpected(expected)
