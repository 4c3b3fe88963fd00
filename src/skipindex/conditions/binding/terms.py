"""Bound terms: columns, literals and functions, each with a domain.

A question to a term is TRUE for the same rows as its ``preimage``, questions to the
term's columns.  A function of one column that cannot be inverted stays ``Computed``: a
value of the column answers it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, Protocol

from skipindex.conditions.binding.scalar import answer
from skipindex.conditions.bound_predicate import (
    BoundPredicate,
    Computed,
    Leaf,
    TruthValue,
    Unknown,
    with_leaves,
    within,
)
from skipindex.conditions.budget import PlanBudget
from skipindex.conditions.functions.registry import UNSURE, Argument, Plain, to_plain
from skipindex.expressions.atoms import (
    Atom,
    NoneOf,
    OneOf,
    Range,
    Value,
    successor,
)
from skipindex.expressions.domain import Domain

Interval = tuple[Value | None, Value | None]
"""``low <= value < high``; None is "no bound on this side"."""
_REMEMBERED: Final = 1 << 16
"""Number of values whose answers are cached; at more, the cache is emptied."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A condition that a term is in: its text, and the budget of binding it."""

    text: str
    budget: PlanBudget


class BoundTerm(Protocol):
    """What a term is, for every row of a table."""

    @property
    def domain(self) -> Domain | None:
        """The domain of its values; None for the literal NULL."""

    @property
    def expression(self) -> str:
        """The term in SQL."""

    @property
    def columns(self) -> tuple[BoundColumn, ...]:
        """The columns that it takes, each once."""

    @property
    def key(self) -> Hashable:
        """Terms of equal keys have equal values in every row; None equals no key."""

    def value(self, value: Value | None) -> Plain | None:
        """The term's value in a row where its only column has this value.

        Raises:
            UnsureError: only Spark knows.
        """

    def preimage(self, question: Atom, asked: Asked) -> BoundPredicate:
        """TRUE for the rows whose value answers ``question`` with TRUE."""


@dataclass(frozen=True)
class BoundColumn:
    """A column as it is."""

    name: str
    domain: Domain
    expression: str

    @property
    def columns(self) -> tuple[BoundColumn, ...]:
        """Itself."""
        return (self,)

    @property
    def key(self) -> Hashable:
        """The column's name."""
        return "column", self.name

    def value(self, value: Value | None) -> Plain | None:
        """The value as functions take it."""
        return None if value is None else to_plain(self.domain, value)

    def preimage(self, question: Atom, asked: Asked) -> BoundPredicate:
        """The question itself, to this column."""
        if isinstance(question, Range):
            return within(self.name, question.low, question.high, asked.text)
        return Leaf(replace(question, column=self.name), asked.text)


@dataclass(frozen=True)
class BoundLiteral:
    """A literal."""

    domain: Domain | None
    plain: Plain | None
    expression: str
    columns: tuple[BoundColumn, ...] = ()

    @property
    def key(self) -> Hashable:
        """Type and value; ``repr`` tells the zeros apart, and a number from text."""
        return "literal", self.domain, repr(self.plain)

    def value(self, _value: Value | None) -> Plain | None:
        """The literal."""
        return self.plain

    def preimage(self, question: Atom, asked: Asked) -> BoundPredicate:
        """The answer of the literal."""
        return constant_answer(question, self.domain, self.plain, asked)


def constant_answer(
    question: Atom, domain: Domain | None, plain: Plain | None, asked: Asked
) -> BoundPredicate:
    """The answer of a term that has one value in every row."""
    result = answer(question, domain, plain)
    return (
        Unknown(asked.text, "text that is no UTF-8")
        if result is None
        else TruthValue(result)
    )


def computed(
    operand: BoundTerm,
    question: Atom,
    asked: Asked,
    alike: Callable[[Value | None], Collection[Plain]] | None = None,
) -> BoundPredicate:
    """The question as a test of the one column that ``operand`` takes.

    Where its value is unsure, one of the values ``alike`` answers as it does.
    """
    if len(operand.columns) != 1:
        return Unknown(asked.text, "a function of several columns")
    (column,) = operand.columns

    def test(value: Value | None) -> bool | None:
        try:
            return answer(question, operand.domain, operand.value(value))
        except UNSURE:
            plains = () if alike is None else alike(value)
            answers = {answer(question, operand.domain, plain) for plain in plains}
            return answers.pop() if len(answers) == 1 else None

    remembered = Remembered(test)
    return Computed(
        column.name, operand.expression, question, asked.text, remembered, operand.key
    )


class Remembered:
    """A test of a value that remembers its answers.

    Attributes:
        n_tests: how many values were tested.
    """

    def __init__(self, test: Callable[[Value | None], bool | None]) -> None:
        self._test = test
        self._known: dict[Value | None, bool | None] = {}
        self.n_tests = 0

    def __call__(self, value: Value | None) -> bool | None:
        """The answer of the test."""
        known = self._known
        if value in known:
            return known[value]
        if len(known) >= _REMEMBERED:
            known.clear()
        self.n_tests += 1
        result = known[value] = self._test(value)
        return result

    def n_unknown(self, values: Collection[Value]) -> int:
        """How many of the values would have to be tested."""
        known = self._known
        return sum(value not in known for value in values)


def preimage_of(
    tree: BoundPredicate, operand: BoundTerm, budget: PlanBudget
) -> BoundPredicate:
    """``tree``, whose leaves ask about ``operand``'s value, over the columns."""

    def of_leaf(leaf: Leaf | Computed) -> BoundPredicate:
        question = leaf.atom if isinstance(leaf, Leaf) else leaf.question
        return operand.preimage(question, Asked(leaf.text, budget))

    return with_leaves(tree, of_leaf)


def intervals_of(question: OneOf | NoneOf) -> list[Interval]:
    """The values that answer a question about a list with TRUE, as intervals."""
    around = [(value, successor(value)) for value in question.values]
    if isinstance(question, OneOf):
        return list(around)
    edges = [None, *chain(*around), None]
    return list(zip(edges[::2], edges[1::2], strict=True))


def merged_columns(operands: Sequence[BoundTerm]) -> tuple[BoundColumn, ...]:
    """The columns of all the terms, each once."""
    every = chain.from_iterable(operand.columns for operand in operands)
    return tuple({column.name: column for column in every}.values())


def argument_of(operand: BoundTerm) -> Argument:
    """The argument of a resolver for ``operand``; what is always NULL has no type."""
    if operand.columns:
        return Argument(operand.domain)
    value = operand.value(None)
    domain = None if value is None else operand.domain
    return Argument(domain, is_constant=True, value=value)
