"""Functions of several partition columns, evaluated once for each folder.

The function is computed once for every combination of values that some file has.  The
condition then is one on each column alone, over the combinations that fulfil it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeAlias

from skipindex.conditions.binding.scalar import judged
from skipindex.conditions.binding.terms import Asked, BoundColumn, computed
from skipindex.conditions.bound_predicate import (
    NEVER,
    AllOf,
    AnyOf,
    BoundPredicate,
    Leaf,
    TruthValue,
    Unknown,
    leaves,
)
from skipindex.conditions.functions.registry import Plain, to_plain
from skipindex.expressions.atoms import Atom, NullAtom, OneOf, Value, values_of
from skipindex.expressions.domain import Domain
from skipindex.expressions.not_judged import NotJudgedError
from skipindex.storage.deadline import checked

Row: TypeAlias = tuple[Value | None, ...]
"""The values of some partition columns in one file."""
Folders: TypeAlias = Callable[[Sequence[BoundColumn]], Sequence[Row] | None]
"""The rows of columns, each once; None if they are no partition columns."""
_MAX_ROWS: Final = 1 << 14
"""Combinations of values; more are not computed."""
_MAX_LEAVES: Final = 1000
"""Questions to single columns; conditions of more are left to Spark."""
_MANY: Final = "partition columns of too many values"


@dataclass(frozen=True)
class FolderColumn:
    """One of several partition columns, in a row of values of all of them.

    Args:
        domain: of its values.
        expression: in SQL.
        columns: stands for all of them, and is alike for each.
        place: of its value in a row.
    """

    domain: Domain
    expression: str
    columns: tuple[BoundColumn, ...]
    place: int

    @property
    def key(self) -> Hashable:
        """Its place."""
        return "folder", self.place

    def value(self, value: Value | Row | None) -> Plain | None:
        """The value that it has in a row."""
        own = value[self.place] if isinstance(value, tuple) else None
        return None if own is None else to_plain(self.domain, own)

    def preimage(self, question: Atom, asked: Asked) -> BoundPredicate:
        """The question as a test of a row."""
        return computed(self, question, asked)


def folder_columns(columns: Sequence[BoundColumn]) -> Mapping[str, FolderColumn]:
    """The columns as places of a row, by their stored names."""
    whole = (BoundColumn("", columns[0].domain, ""),)
    return {
        column.name: FolderColumn(column.domain, column.expression, whole, place)
        for place, column in enumerate(columns)
    }


def over_columns(
    tree: BoundPredicate, columns: Sequence[BoundColumn], rows: Sequence[Row], text: str
) -> BoundPredicate:
    """``tree``, a test of rows, over the columns; TRUE for the same of ``rows``."""
    if len(rows) > _MAX_ROWS:
        raise NotJudgedError(_MANY)
    answers: dict[bool | None, BoundPredicate] = {
        None: Unknown(text, "only Spark can compute the value"),
        **{known: TruthValue(known) for known in (True, False)},
    }
    result = [(row, answers[judged(tree, row)]) for row in checked(rows)]  # type: ignore[arg-type]

    def split(some: Sequence[tuple[Row, BoundPredicate]], place: int) -> BoundPredicate:
        """The condition on the columns from ``place`` on, whose rows are ``some``."""
        if len({answer for _, answer in some}) == 1:
            return some[0][1]
        by_value: dict[Value | None, list[tuple[Row, BoundPredicate]]] = {}
        for row, answer in some:
            by_value.setdefault(row[place], []).append((row, answer))
        alike: dict[BoundPredicate, list[Value | None]] = {}
        for value, rest in by_value.items():
            alike.setdefault(split(rest, place + 1), []).append(value)
        if len(alike) == 1:
            return next(iter(alike))
        name = columns[place].name
        return AnyOf(
            tuple(
                AllOf((_one_of(name, values, text), answer))
                for answer, values in alike.items()
            )
        )

    if not result:
        return NEVER
    whole = split(result, 0)
    if sum(1 for _ in islice(leaves(whole), _MAX_LEAVES + 1)) > _MAX_LEAVES:
        raise NotJudgedError(_MANY)
    return whole


def _one_of(name: str, values: Sequence[Value | None], text: str) -> BoundPredicate:
    """Whether a column has one of the values."""
    some: list[BoundPredicate] = [Leaf(NullAtom(name), text)] if None in values else []
    known = {value for value in values if value is not None}
    if known:
        some.append(Leaf(OneOf(name, values_of(known)), text))
    return AnyOf(tuple(some))
