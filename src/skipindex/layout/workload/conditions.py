"""Conditions over codes: which rows match a query, computed without Spark.

A stored condition names columns by their place and values by their codes, so it is
never SQL text, and reading one cannot run anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from skipindex.conditions.bound_predicate import (
    BoundPredicate,
    Computed,
    Leaf,
    Unknown,
    fold,
)
from skipindex.errors import LayoutError
from skipindex.expressions.arrays import Mask
from skipindex.expressions.atoms import (
    Atom,
    Matches,
    NoneOf,
    NotNullAtom,
    NullAtom,
    OneOf,
    Range,
)
from skipindex.layout.workload.steps import Codes, Steps


@dataclass(frozen=True, slots=True)
class Within:
    """The code of a column is in one of some half-open intervals."""

    column: int
    intervals: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Every:
    """All parts are TRUE; every row matches a condition of no parts."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """One of the parts is TRUE; no row matches a condition of no parts."""

    parts: tuple[Condition, ...]


Condition: TypeAlias = Within | Every | Either
ALL_ROWS = Every(())


def condition_of(tree: BoundPredicate, steps: Sequence[Steps]) -> Condition:
    """The condition of a query; parts that codes cannot evaluate are TRUE.

    So a row that matches the query matches the condition.  Both are the same where
    the query has comparisons with literals alone.
    """
    place = {own.column: i for i, own in enumerate(steps)}

    def leaf(node: Leaf | Computed) -> Condition:
        if not is_told(node):
            return ALL_ROWS
        assert isinstance(node, Leaf)
        at = place[node.column]
        return Within(at, true_codes(node.atom, steps[at]))

    def all_of(parts: Sequence[Condition]) -> Condition:
        told = tuple(part for part in parts if part != ALL_ROWS)
        return told[0] if len(told) == 1 else Every(told)

    return fold(
        tree,
        leaf=leaf,
        all_of=lambda parts: all_of(tuple(parts)),
        any_of=lambda parts: either(tuple(parts)),
        constant=lambda value: ALL_ROWS if value else Either(()),
        unknown=lambda _: ALL_ROWS,
    )


def is_told(part: Leaf | Computed | Unknown) -> bool:
    """Whether codes tell for which rows the part is TRUE."""
    return isinstance(part, Leaf) and not isinstance(part.atom, Matches)


def either(parts: Sequence[Condition]) -> Condition:
    """The condition that is TRUE where one of ``parts`` is."""
    return ALL_ROWS if ALL_ROWS in parts else Either(tuple(parts))


def matching(condition: Condition, codes: Sequence[Codes], n_rows: int) -> Mask:
    """Which rows the condition is TRUE for, by the codes of every column."""
    match condition:
        case Within(column, intervals):
            own = codes[column]
            result = np.zeros(n_rows, np.bool_)
            for low, stop in intervals:
                result |= (own >= low) & (own < stop)
            return result
        case Every(parts):
            result = np.ones(n_rows, np.bool_)
            for part in parts:
                result &= matching(part, codes, n_rows)
            return result
        case Either(parts):
            result = np.zeros(n_rows, np.bool_)
            for part in parts:
                result |= matching(part, codes, n_rows)
            return result


def to_json(condition: Condition) -> Any:
    """The condition as plain values."""
    match condition:
        case Within(column, intervals):
            return {"column": column, "within": [list(pair) for pair in intervals]}
        case Every(parts):
            return {"all": [to_json(part) for part in parts]}
        case Either(parts):
            return {"any": [to_json(part) for part in parts]}


def from_json(data: Mapping[str, Any], steps: Sequence[Steps]) -> Condition:
    """The condition that ``to_json`` wrote.

    Raises:
        LayoutError: it names a column or a code that is not there.
        KeyError, TypeError, ValueError: it is damaged otherwise.
    """
    if "all" in data:
        return Every(tuple(from_json(part, steps) for part in data["all"]))
    if "any" in data:
        return Either(tuple(from_json(part, steps) for part in data["any"]))
    column = data["column"]
    intervals = tuple((low, stop) for low, stop in data["within"])
    numbers = (column, *(n for pair in intervals for n in pair))
    if not all(type(n) is int for n in numbers) or not 0 <= column < len(steps):
        raise LayoutError(f"a condition on column {column!r} of {len(steps)}")
    most = steps[column].n_codes
    if not all(0 <= low < stop <= most for low, stop in intervals):
        raise LayoutError(f"a condition on codes {intervals!r} of {most}")
    return Within(column, intervals)


def true_codes(atom: Atom, steps: Steps) -> tuple[tuple[int, int], ...]:
    """The codes of the values that may make an atom TRUE."""
    most = steps.n_codes
    match atom:
        case NullAtom():
            return ((0, 1),)
        case Range(_, low, high):
            first = 1 if low is None else steps.code_of(low)
            stop = most if high is None else steps.code_of(high)
            return ((first, stop),) if first < stop else ()
        case OneOf(_, values):
            codes = [steps.code_of(value) for value in values]
            return tuple((code, code + 1) for code in codes)
        case NoneOf(_, values):
            ends = [0, *(steps.code_of(value) for value in values), most]
            return tuple(
                (low + 1, stop) for low, stop in pairwise(ends) if low + 1 < stop
            )
        case NotNullAtom() | Matches():
            return ((1, most),)
