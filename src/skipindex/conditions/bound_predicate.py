"""The bound predicate: atoms under AND and OR, over columns and domain values.

NOT is gone (``expressions.push_not``), so the tree is monotone: more rows for which
an atom may be TRUE never means fewer for the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Final, TypeAlias, TypeVar, assert_never

from skipindex.expressions.atoms import (
    Atom,
    NotNullAtom,
    OneOf,
    Range,
    Value,
    successor,
)
from skipindex.expressions.bounds import Bounds, SetLike
from skipindex.expressions.domain import INT64_MAX, INT64_MIN
from skipindex.expressions.operators import Operator

S = TypeVar("S", bound=SetLike)
T = TypeVar("T")

_SHOWN: Final = 400
"""Characters; longer conditions are shown shortened."""


class _Inner:
    """A node with children, whose hash is computed once.

    A function of functions asks the same again and again, so equal parts are found at
    every level of the tree.
    """

    __slots__ = ("_hash",)

    children: tuple[BoundPredicate, ...]
    _hash: int

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            result = hash((type(self), self.children))
            object.__setattr__(self, "_hash", result)
            return result


@dataclass(frozen=True, slots=True)
class AllOf(_Inner):
    """TRUE if all of ``children`` are."""

    children: tuple[BoundPredicate, ...]

    __hash__ = _Inner.__hash__


@dataclass(frozen=True, slots=True)
class AnyOf(_Inner):
    """TRUE if one of ``children`` is."""

    children: tuple[BoundPredicate, ...]

    __hash__ = _Inner.__hash__


@dataclass(frozen=True, slots=True)
class Leaf:
    """One question to the indexes, and the condition as the user wrote it."""

    atom: Atom
    text: str

    @property
    def column(self) -> str:
        """The column that it asks about."""
        return self.atom.column


@dataclass(frozen=True, slots=True)
class Computed:
    """A question to a function of one column, answered by a value of the column.

    Args:
        column: the only column that the function takes.
        expression: the function, in SQL.
        question: the question to its value.
        text: the condition as the user wrote it.
        test: the answer for a value of the column, in its domain; None is "may be
            TRUE or not".
        key: equal for equal functions; None equals no other.
    """

    column: str
    expression: str
    question: Atom
    text: str
    test: Callable[[Value | None], bool | None] = field(compare=False, repr=False)
    key: Hashable = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TruthValue:
    """TRUE for every row, or for none."""

    value: bool


NEVER: Final = TruthValue(value=False)


@dataclass(frozen=True, slots=True)
class Unknown:
    """May be TRUE for any row; ``reason`` says why no index can evaluate it.

    Args:
        text: the condition as the user wrote it.
        reason: for explanations.
        in_arrow: what the condition is where Arrow evaluates it, if readers differ.
    """

    text: str
    reason: str
    in_arrow: BoundPredicate | None = None


@dataclass(frozen=True, slots=True)
class ComparedColumns(Unknown):
    """``left operator right`` of two columns, by their min/max and indexes of rows.

    Args:
        left: the column on the left.
        operator: of SQL.
        right: the column on the right; its values have the order of those on the left.
    """

    left: str = ""
    operator: Operator = Operator.EQ
    right: str = ""

    @property
    def expression(self) -> str:
        """What plans call it."""
        return self.text


BoundPredicate: TypeAlias = AllOf | AnyOf | Leaf | Computed | TruthValue | Unknown
Judged: TypeAlias = Leaf | Computed | ComparedColumns
"""What statistics and indexes can be probed for."""


def within(
    column: str, low: Value | None, high: Value | None, text: str
) -> BoundPredicate:
    """``low <= column < high``, of bounds that may lie beyond 64 bits."""
    least = b"" if isinstance(low, bytes) or isinstance(high, bytes) else INT64_MIN
    if low is not None and low <= least:  # type: ignore[operator]
        low = None
    if isinstance(high, int) and high > INT64_MAX:
        high = None
    start: Value = least if low is None else low
    if high is not None and high <= start:  # type: ignore[operator]
        return NEVER
    if isinstance(low, int) and low > INT64_MAX:
        return NEVER
    if low is None and high is None:
        return Leaf(NotNullAtom(column), text)
    if low is not None and high == successor(low):
        return Leaf(OneOf(column, (low,)), text)
    return Leaf(Range(column, low, high), text)


def fold(
    tree: BoundPredicate,
    *,
    leaf: Callable[[Leaf | Computed], T],
    all_of: Callable[[Iterator[T]], T],
    any_of: Callable[[Iterator[T]], T],
    constant: Callable[[bool], T],
    unknown: Callable[[Unknown], T],
) -> T:
    """One value for ``tree``, made of the values of its parts.

    The parts of an AND and an OR come one by one, from left to right: a part that is
    not taken from the iterator is not folded.
    """

    def walk(node: BoundPredicate) -> T:
        match node:
            case AllOf(children):
                return all_of(map(walk, children))
            case AnyOf(children):
                return any_of(map(walk, children))
            case Leaf() | Computed():
                return leaf(node)
            case TruthValue(value):
                return constant(value)
            case Unknown():
                return unknown(node)
            case _:
                assert_never(node)

    return walk(tree)


def evaluate(
    tree: BoundPredicate,
    answer: Callable[[Judged], Bounds[S]],
    *,
    nothing: S,
    everything: S,
    is_empty: Callable[[S], bool],
) -> Bounds[S]:
    """The bounds of ``tree`` over a universe, from those of its parts.

    An AND stops as soon as nothing can be TRUE any more, and the rest of its parts
    is not asked.
    """
    never, always = Bounds(nothing, nothing), Bounds(everything, everything)
    unsure = Bounds(nothing, everything)

    def all_of(parts: Iterator[Bounds[S]]) -> Bounds[S]:
        result = next(parts)
        while not is_empty(result.upper):
            part = next(parts, None)
            if part is None:
                return result
            result &= part
        return never

    return fold(
        tree,
        leaf=answer,
        all_of=all_of,
        any_of=lambda parts: reduce(or_, parts),
        constant=lambda value: always if value else never,
        unknown=lambda node: (
            answer(node) if isinstance(node, ComparedColumns) else unsure
        ),
    )


def with_leaves(
    tree: BoundPredicate, change: Callable[[Leaf | Computed], BoundPredicate]
) -> BoundPredicate:
    """``tree`` with each of its leaves replaced by ``change`` of it."""
    return fold(
        tree,
        leaf=change,
        all_of=lambda parts: AllOf(tuple(parts)),
        any_of=lambda parts: AnyOf(tuple(parts)),
        constant=TruthValue,
        unknown=lambda node: node,
    )


def _parts(tree: BoundPredicate) -> Iterator[Leaf | Computed | TruthValue | Unknown]:
    """The nodes without children, from left to right."""
    rest = [tree]
    while rest:
        node = rest.pop()
        if isinstance(node, AllOf | AnyOf):
            rest += reversed(node.children)
        else:
            yield node


def leaves(tree: BoundPredicate) -> Iterator[Leaf | Computed]:
    """Every leaf of ``tree`` from left to right."""
    return (part for part in _parts(tree) if isinstance(part, Leaf | Computed))


def unknowns(tree: BoundPredicate) -> Iterator[Unknown]:
    """Every condition of ``tree`` that no index can judge."""
    return (part for part in _parts(tree) if isinstance(part, Unknown))


def comparisons(tree: BoundPredicate) -> Iterator[ComparedColumns]:
    """Every comparison of two columns in ``tree``."""
    return (part for part in _parts(tree) if isinstance(part, ComparedColumns))


def text_of(tree: BoundPredicate) -> str:
    """``tree`` in SQL words."""
    match tree:
        case AllOf(children):
            parts = [
                f"({text_of(c)})" if isinstance(c, AnyOf) else text_of(c)
                for c in children
            ]
            return " AND ".join(parts)
        case AnyOf(children):
            return " OR ".join(map(text_of, children))
        case Leaf(text=text) | Computed(text=text) | Unknown(text=text):
            return text
        case TruthValue(value):
            return str(value).upper()
        case _:
            assert_never(tree)


def shorten(text: str) -> str:
    """A condition for people: of a long one, such as a list of keys, the two ends."""
    if len(text) <= _SHOWN:
        return text
    return f"{text[: _SHOWN // 2]} … {text[-_SHOWN // 4 :]}"
