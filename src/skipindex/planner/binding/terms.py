"""Images: what a term is for every row of a table, and columns and literals as such.

A question to an image is TRUE for the same rows as what ``pull`` makes of it, questions
to its columns.  A function of one column that cannot be turned round stays
``Computed``: a value of the column answers it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, Final, Protocol, assert_never

from skipindex.expressions.atoms import (
    Atom,
    Matches,
    NoneOf,
    NotNullAtom,
    NullAtom,
    OneOf,
    Range,
    Value,
    successor,
)
from skipindex.expressions.domain import Domain
from skipindex.planner.binding.scalar import answer
from skipindex.planner.bound_predicate import (
    AllOf,
    AnyOf,
    Bound,
    Computed,
    Known,
    Leaf,
    Unknown,
)
from skipindex.planner.functions.registry import Argument, Plain, UnsureError, to_plain

Interval = tuple[Value | None, Value | None]
"""``low <= value < high``; None is "no bound on this side"."""
_REMEMBERED: Final = 1 << 16


class Image(Protocol):
    """What a term is, for every row of a table."""

    @property
    def domain(self) -> Domain | None:
        """Of its values; None for the literal NULL."""

    @property
    def expression(self) -> str:
        """The term in SQL."""

    @property
    def columns(self) -> tuple[ColumnImage, ...]:
        """The columns that it takes, each once."""

    @property
    def key(self) -> Hashable:
        """Images of one key have one value in every row; None is like no other."""

    def value(self, value: Value | None) -> Plain | None:
        """For a row whose only column of ``columns`` has this value.

        Raises:
            UnsureError: only Spark can tell.
        """

    def pull(self, question: Atom, text: str) -> Bound:
        """TRUE for the rows whose value answers ``question`` with TRUE."""


@dataclass(frozen=True)
class ColumnImage:
    """A column as it is."""

    name: str
    domain: Domain
    expression: str

    @property
    def columns(self) -> tuple[ColumnImage, ...]:
        """Itself."""
        return (self,)

    @property
    def key(self) -> Hashable:
        """The column's name."""
        return "column", self.name

    def value(self, value: Value | None) -> Plain | None:
        """The value as functions take it."""
        return None if value is None else to_plain(self.domain, value)

    def pull(self, question: Atom, text: str) -> Bound:
        """The question itself, to this column."""
        match question:
            case Range(_, low, high):
                return _ranged(self, low, high, text)
            case OneOf(_, values):
                return Leaf(OneOf(self.name, values), text)
            case NoneOf(_, values):
                return Leaf(NoneOf(self.name, values), text)
            case NullAtom():
                return Leaf(NullAtom(self.name), text)
            case NotNullAtom():
                return Leaf(NotNullAtom(self.name), text)
            case Matches(_, pattern, negated):
                return Leaf(Matches(self.name, pattern, negated), text)
            case _:
                assert_never(question)


@dataclass(frozen=True)
class ConstantImage:
    """A literal."""

    domain: Domain | None
    plain: Plain | None
    expression: str
    columns: tuple[ColumnImage, ...] = ()

    @property
    def key(self) -> Hashable:
        """Type and value; ``repr`` tells the zeros apart, and a number from text."""
        return "literal", self.domain, repr(self.plain)

    def value(self, _value: Value | None) -> Plain | None:
        """The literal."""
        return self.plain

    def pull(self, question: Atom, text: str) -> Bound:
        """The answer of the literal."""
        return settled(question, self.domain, self.plain, text)


def settled(
    question: Atom, domain: Domain | None, plain: Plain | None, text: str
) -> Bound:
    """The answer of one value, which is that of every row."""
    found = answer(question, domain, plain)
    return Unknown(text, "text that is no UTF-8") if found is None else Known(found)


def _ranged(
    column: ColumnImage, low: Value | None, high: Value | None, text: str
) -> Bound:
    if low is not None and high == successor(low):
        return Leaf(OneOf(column.name, (low,)), text)
    if low is None and high is None:
        return Leaf(NotNullAtom(column.name), text)
    return Leaf(Range(column.name, low, high), text)


def computed(image: Image, question: Atom, text: str) -> Bound:
    """The question as a test of the one column that ``image`` takes."""
    if len(image.columns) != 1:
        return Unknown(text, "a function of several columns")
    (column,) = image.columns

    def test(value: Value | None) -> bool | None:
        try:
            return answer(question, image.domain, image.value(value))
        except (UnsureError, ArithmeticError):
            return None

    remembered = Remembered(test)
    return Computed(
        column.name, image.expression, question, text, remembered, image.key
    )


class Remembered:
    """A test of a value that remembers its answers, and is pickled without them."""

    def __init__(self, test: Callable[[Value | None], bool | None]) -> None:
        self._test = test
        self._remembered = lru_cache(_REMEMBERED)(test)

    def __call__(self, value: Value | None) -> bool | None:
        """The answer of the test."""
        return self._remembered(value)

    def __reduce__(self) -> tuple[Any, ...]:
        return Remembered, (self._test,)


def pulled(tree: Bound, image: Image) -> Bound:
    """``tree``, whose leaves ask about ``image``'s value, over the columns."""
    match tree:
        case AllOf(children) | AnyOf(children):
            return type(tree)(tuple(pulled(child, image) for child in children))
        case Leaf(atom, text):
            return image.pull(atom, text)
        case Computed(question=question, text=text):
            return image.pull(question, text)
        case Known() | Unknown():
            return tree
        case _:
            assert_never(tree)


def merged_columns(images: Sequence[Image]) -> tuple[ColumnImage, ...]:
    """The columns of all of them, each once."""
    every = chain.from_iterable(image.columns for image in images)
    return tuple({column.name: column for column in every}.values())


def argument_of(image: Image) -> Argument:
    """What a resolver may know of ``image``."""
    if image.columns:
        return Argument(image.domain)
    return Argument(image.domain, is_constant=True, value=image.value(None))
