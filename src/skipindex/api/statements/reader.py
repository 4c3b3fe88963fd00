"""Parsing the SQL statements that skipindex adds.

::

    OPTIMIZE [TABLE] table [FULL] [WHERE partition_condition]
        [{ZORDER | HILBERT | RANGE | HASH} BY (column [, …])]
        [LOCALLY ORDERED BY (column [, …])]
    CREATE INDEX ON [TABLE] table [(column [, …])] [USING kind [(name = value)]]
    DROP INDEX ON [TABLE] table [(column [, …])] [USING kind]
    SHOW INDEXES {ON | IN | FROM} [TABLE] table
    REFRESH INDEXES {ON | IN | FROM} [TABLE] table
    VACUUM [TABLE] table [RETAIN n {HOURS | DAYS}] [DRY RUN]
    ALTER TABLE table DISTRIBUTED BY {HASH | RANGE | ZORDER | HILBERT} (column [, …])
        [LOCALLY ORDERED BY (column [, …])]
    DESCRIBE SKIPPING [TABLE] table
    EXPLAIN SKIPPING query

A table is a name of the catalog, a path in quotes, or ``parquet.`path```.  INDEX and
INDEXES, DESC and DESCRIBE are the same, and lists of columns need no parentheses.
Where a literal may stand, a marker such as ``:name`` or ``?`` may too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import ClassVar, Final, TypeAlias

from skipindex.conditions.sql.literals import string
from skipindex.conditions.sql.tokens import (
    OPENING,
    Kind,
    Token,
    match_brackets,
    tokenize,
)
from skipindex.expressions import stored_name
from skipindex.expressions.not_judged import NotJudgedError

CURVES: Final[Mapping[str, str]] = {
    "ZORDER": "zorder",
    "HILBERT": "hilbert",
    "RANGE": "linear",
    "HASH": "hash",
}
"""The curves by the words of SQL."""
_UNITS: Final = {"HOUR": 1, "HOURS": 1, "DAY": 24, "DAYS": 24}
_MOST_HOURS: Final = 10_000_000


class StatementError(Exception):
    """A word that is not expected at its place.

    Args:
        near: the word, or "end of input".
        expected: what could stand there.
        line: of the text, from 1.
        position: in the line, from 0.
    """

    def __init__(self, near: str, expected: str, line: int, position: int) -> None:
        super().__init__(f"expected {expected}, found {near}")
        self.near = near
        self.expected = expected
        self.line = line
        self.position = position


@dataclass(frozen=True, slots=True)
class Target:
    """The table of a statement: a name as SQL writes it, or else a path."""

    name: str
    is_path: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """How rows are distributed over files; None is as the table has it."""

    by: tuple[str, ...] | None = None
    curve: str | None = None
    sort_within: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Optimize:
    """``OPTIMIZE``."""

    table: Target
    mode: str
    where: str | None
    layout: Layout
    publish: bool = False
    columns: ClassVar[str] = (
        "files_removed BIGINT, files_added BIGINT, bytes_removed BIGINT, "
        "bytes_added BIGINT, rows BIGINT, files_left BIGINT, notes ARRAY<STRING>"
    )


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """``CREATE INDEX``; without columns and kind, what the advisor chooses."""

    table: Target
    names: tuple[str, ...]
    kind: str | None
    columns: ClassVar[str] = (
        "files_indexed BIGINT, files_unchanged BIGINT, files_unread BIGINT, "
        "bytes BIGINT, notes ARRAY<STRING>"
    )


@dataclass(frozen=True, slots=True)
class RefreshIndexes:
    """``REFRESH INDEXES``."""

    table: Target
    columns: ClassVar[str] = CreateIndex.columns


@dataclass(frozen=True, slots=True)
class ShowIndexes:
    """``SHOW INDEXES``."""

    table: Target
    columns: ClassVar[str] = (
        "column STRING, kind STRING, parameters STRING, files BIGINT, bytes BIGINT"
    )


@dataclass(frozen=True, slots=True)
class DropIndex:
    """``DROP INDEX``; without columns or kind, of all of them."""

    table: Target
    names: tuple[str, ...]
    kind: str | None
    columns: ClassVar[str] = ShowIndexes.columns


@dataclass(frozen=True, slots=True)
class NamedIndex:
    """``CREATE INDEX`` or ``DROP INDEX`` of an index with a name, as other tables have.

    Args:
        table: which it is of.
        name: of the index.
        verb: CREATE or DROP.
    """

    table: Target
    name: str
    verb: str
    columns: ClassVar[str] = ShowIndexes.columns


@dataclass(frozen=True, slots=True)
class Vacuum:
    """``VACUUM``."""

    table: Target
    retention: timedelta | None
    dry_run: bool
    columns: ClassVar[str] = (
        "published BIGINT, deleted BIGINT, bytes BIGINT, paths ARRAY<STRING>, "
        "waiting STRING"
    )


@dataclass(frozen=True, slots=True)
class Distribute:
    """``ALTER TABLE … DISTRIBUTED BY``."""

    table: Target
    layout: Layout
    columns: ClassVar[str] = (
        "distributed_by ARRAY<STRING>, curve STRING, locally_ordered_by ARRAY<STRING>"
    )


@dataclass(frozen=True, slots=True)
class Describe:
    """``DESCRIBE SKIPPING``."""

    table: Target
    columns: ClassVar[str] = "name STRING, value STRING"


@dataclass(frozen=True, slots=True)
class Explain:
    """``EXPLAIN SKIPPING``."""

    query: str
    columns: ClassVar[str] = "plan STRING"


OnTable: TypeAlias = (
    Optimize
    | CreateIndex
    | RefreshIndexes
    | ShowIndexes
    | DropIndex
    | Vacuum
    | Distribute
    | Describe
)
Statement: TypeAlias = OnTable | Explain | NamedIndex


def read_statement(text: str, arguments: Mapping[str | int, str] = {}) -> Statement:
    """The statement that a text is; a semicolon at its end is allowed.

    Args:
        text: of SQL.
        arguments: literals by the names, or positions from 0, of markers.

    Raises:
        StatementError: it is none.
        PredicateError: a quote, a bracket or a comment is not closed.
    """
    return _Reader(_bound(text, arguments)).statement()


def _bound(text: str, arguments: Mapping[str | int, str]) -> str:
    """A text with literals for its markers; Spark binds those of a query."""
    tokens = tokenize(text)
    if tokens[0].key == "EXPLAIN":
        return text
    pieces, end, n_positional = [], 0, 0
    for token, after in pairwise(tokens):
        name: str | int
        if token.key == "?":
            name, last = n_positional, token
            n_positional += 1
        elif token.key == ":" and after.kind is Kind.WORD:
            name, last = after.text, after
        else:
            continue
        if name not in arguments:
            marker = text[token.start : last.end]
            raise _error(text, token, f"'{marker}'", "an argument for it, or a literal")
        pieces += [text[end : token.start], arguments[name]]
        end = last.end
    return "".join([*pieces, text[end:]])


def _error(text: str, token: Token, near: str, expected: str) -> StatementError:
    line = text.count("\n", 0, token.start) + 1
    position = token.start - text.rfind("\n", 0, token.start) - 1
    return StatementError(near, expected, line, position)


class _Reader:
    """Takes one word after the other."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokenize(text)
        self._closing = match_brackets(self._tokens, text)
        self._at = 0

    def statement(self) -> Statement:
        if self._takes("EXPLAIN", "SKIPPING"):
            return self._explain()
        if named := self._named():
            return named
        result = self._on_table()
        self._takes(";")
        if self._next.kind is not Kind.END:
            raise self._unexpected("the end of the statement")
        return result

    def _on_table(self) -> OnTable:
        if self._takes("OPTIMIZE"):
            return self._optimize()
        if self._takes("VACUUM"):
            return self._vacuum()
        if self._takes("CREATE"):
            return CreateIndex(*self._index("IF", "NOT", "EXISTS"))
        if self._takes("DROP"):
            return DropIndex(*self._index("IF", "EXISTS"))
        if self._takes("SHOW"):
            return ShowIndexes(self._table_of_indexes())
        if self._takes("REFRESH"):
            return RefreshIndexes(self._table_of_indexes())
        if self._takes("ALTER", "TABLE"):
            return self._distribute()
        if self._takes("DESCRIBE", "SKIPPING") or self._takes("DESC", "SKIPPING"):
            return Describe(self._table())
        raise self._unexpected("a statement of skipindex")

    def _optimize(self) -> Optimize:
        table = self._table()
        mode = "full" if self._takes("FULL") else "incremental"
        where = self._condition() if self._takes("WHERE") else None
        by, curve = None, None
        if self._next.key in CURVES and self._after.key == "BY":
            curve = CURVES[self._next.key]
            self._at += 2
            by = self._columns()
        if self._next.kind is not Kind.END and self._next.key not in {
            "LOCALLY",
            "PUBLISH",
            ";",
        }:
            clauses = (
                "ZORDER BY, HILBERT BY, RANGE BY, HASH BY, LOCALLY ORDERED BY, PUBLISH"
            )
            before = "" if where or curve else "FULL, WHERE, "
            raise self._unexpected(f"{before}{clauses} or the end of the statement")
        layout = Layout(by, curve, self._order())
        return Optimize(table, mode, where, layout, self._takes("PUBLISH"))

    def _vacuum(self) -> Vacuum:
        table = self._table()
        retention = None
        if self._takes("RETAIN"):
            number = self._next.text.rstrip("LlSsYy")  # as Spark writes an argument
            if not number.isdecimal() or int(number) > _MOST_HOURS:
                raise self._unexpected("a number of hours or days")
            self._at += 1
            if self._next.key not in _UNITS:
                raise self._unexpected("HOURS or DAYS")
            retention = timedelta(hours=int(number) * _UNITS[self._next.key])
            self._at += 1
        return Vacuum(table, retention, self._takes("DRY", "RUN"))

    def _index(self, *condition: str) -> tuple[Target, tuple[str, ...], str | None]:
        """What follows CREATE or DROP; without the condition it means the same."""
        self._indexes()
        self._takes(*condition)
        if not self._takes("ON"):
            raise self._unexpected("ON")
        table = self._table()
        names = self._columns() if self._next.key == "(" else ()
        kind = self._name("a kind") if self._takes("USING") else None
        begin = self._next
        if kind and begin.key == "(" and "NOT" in condition:  # CREATE takes parameters
            while self._next.key != ")":  # the brackets are known to be closed
                self._at += 1
            kind += self._text[begin.start : self._next.end]
            self._at += 1
        return table, names, kind

    def _named(self) -> NamedIndex | None:
        """One whose index has a name; of the rest only its table is read."""
        first, verb = self._at, self._next.key
        if verb in {"CREATE", "DROP"} and self._after.key == "INDEX":
            self._at += 2
            _ = self._takes("IF", "NOT", "EXISTS") or self._takes("IF", "EXISTS")
            name = self._next
            if name.key != "ON" and self._after.key == "ON":
                self._at += 2
                return NamedIndex(self._table(), name.text, verb)
        self._at = first
        return None

    def _table_of_indexes(self) -> Target:
        self._indexes()
        if not any(map(self._takes, ("ON", "IN", "FROM"))):
            raise self._unexpected("ON, IN or FROM")
        return self._table()

    def _indexes(self) -> None:
        if not (self._takes("INDEX") or self._takes("INDEXES")):
            raise self._unexpected("INDEX or INDEXES")

    def _distribute(self) -> Distribute:
        table = self._table()
        if not self._takes("DISTRIBUTED", "BY"):
            raise self._unexpected("DISTRIBUTED BY")
        if self._next.key not in CURVES:
            raise self._unexpected(" or ".join([", ".join([*CURVES][:-1]), "HASH"]))
        curve = CURVES[self._next.key]
        self._at += 1
        by = self._columns()
        return Distribute(table, Layout(by, curve, self._order() or ()))

    def _explain(self) -> Explain:
        begin = self._next
        if begin.kind is Kind.END:
            raise self._unexpected("a query")
        return Explain(self._text[begin.start :])

    def _order(self) -> tuple[str, ...] | None:
        return self._columns() if self._takes("LOCALLY", "ORDERED", "BY") else None

    def _condition(self) -> str:
        """The text up to the next clause outside of brackets."""
        first = last = self._next
        while not self._begins_clause():
            if self._next.key in OPENING:
                self._at = self._closing[self._at]
            last = self._next
            self._at += 1
        if last is self._next:
            raise self._unexpected("a condition on partition columns")
        return self._text[first.start : last.end]

    def _begins_clause(self) -> bool:
        key, after = self._next.key, self._after.key
        is_clause = (key in CURVES and after == "BY") or (key, after) == (
            "LOCALLY",
            "ORDERED",
        )
        is_clause |= key == "PUBLISH" and self._after.kind is Kind.END
        return is_clause or key == ";" or self._next.kind is Kind.END

    def _columns(self) -> tuple[str, ...]:
        """Names with commas between them, in parentheses or not."""
        enclosed = self._takes("(")
        names = [self._column()]
        while self._takes(","):
            names.append(self._column())
        if enclosed and not self._takes(")"):
            raise self._unexpected("a comma or ')'")
        return tuple(names)

    def _column(self) -> str:
        """A column, by the name that is stored for it: ``a.b`` is no ```a.b```."""
        parts = [self._name("the name of a column")]
        while self._takes("."):
            parts.append(self._name("the name of a field"))
        return stored_name(parts)

    def _table(self) -> Target:
        if self._after.kind is not Kind.SYMBOL:  # else a table of the name "table"
            self._takes("TABLE")
        start = self._next
        if start.kind is Kind.STRING:
            return Target(self._string(), is_path=True)
        names = [self._name("the name or the path of a table")]
        while self._takes("."):
            names.append(self._name("a name"))
        if len(names) == 2 and names[0].lower() == "parquet" and "/" in names[1]:
            return Target(names[1], is_path=True)
        return Target(self._text[start.start : self._tokens[self._at - 1].end])

    def _name(self, expected: str) -> str:
        token = self._next
        if token.kind not in {Kind.WORD, Kind.QUOTED}:
            raise self._unexpected(expected)
        self._at += 1
        if token.kind is Kind.QUOTED:
            return token.text[1:-1].replace("``", "`")
        return token.text

    def _string(self) -> str:
        token = self._next
        try:
            result = string(token.text, doubled=True)
        except NotJudgedError:
            result = ""
        if not result:
            raise self._unexpected("a path")
        self._at += 1
        return result

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    @property
    def _after(self) -> Token:
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)]

    def _takes(self, *keys: str) -> bool:
        """Whether these words come next; if so, they are taken."""
        result = tuple(token.key for token in self._tokens[self._at :][: len(keys)])
        if result != keys:
            return False
        self._at += len(keys)
        return True

    def _unexpected(self, expected: str) -> StatementError:
        token = self._next
        near = "end of input" if token.kind is Kind.END else f"'{token.text}'"
        return _error(self._text, token, near, expected)
