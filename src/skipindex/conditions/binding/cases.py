"""CASE, COALESCE, GREATEST and LEAST as bound terms.

The conditions before a branch are not TRUE and its own is, which is a predicate that
every index kind can be asked.  The extremes pass over values that are NULL.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from skipindex.conditions.binding.inversion import MANY
from skipindex.conditions.binding.scalar import judged
from skipindex.conditions.binding.terms import (
    Asked,
    BoundColumn,
    BoundLiteral,
    BoundTerm,
    Interval,
    computed,
    constant_answer,
    intervals_of,
)
from skipindex.conditions.bound_predicate import (
    NEVER,
    AllOf,
    AnyOf,
    BoundPredicate,
    TruthValue,
)
from skipindex.conditions.functions.registry import Plain, UnsureError, from_plain
from skipindex.conditions.simplify import fold_constants
from skipindex.expressions import atoms
from skipindex.expressions.atoms import Atom, NotNullAtom, NullAtom, Value
from skipindex.expressions.domain import Domain


@dataclass(frozen=True)
class Choice:
    """One branch of a CASE: the condition, ``condition IS NOT TRUE``, and the value."""

    condition: BoundPredicate
    otherwise: BoundPredicate
    operand: BoundTerm


@dataclass(frozen=True)
class BoundCase:
    """The value of the first branch whose condition is TRUE."""

    domain: Domain
    choices: tuple[Choice, ...]
    default: BoundTerm
    columns: tuple[BoundColumn, ...]
    expression: str
    key: Hashable = field(default=None, init=False)  # conditions are not compared
    _last: dict[Value | None, tuple[Plain | None, ...]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """The result for the value that was asked for last; empty if it is unsure."""

    def value(self, value: Value | None) -> Plain | None:
        """The value of the branch that is taken for ``value``.

        Conditions in conditions ask for the same value again and again.
        """
        last = self._last.get(value)
        if last is None:
            try:
                last = (self._value(value),)
            except UnsureError:
                last = ()
            self._last.clear()
            self._last[value] = last
        if not last:
            raise UnsureError
        return last[0]

    def _value(self, value: Value | None) -> Plain | None:
        for choice in self.choices:
            taken = judged(choice.condition, value)
            if taken is None:
                raise UnsureError
            if taken:
                return choice.operand.value(value)
        return self.default.value(value)

    def preimage(self, question: Atom, asked: Asked) -> BoundPredicate:
        """Branch by branch: the conditions before it are not TRUE, and its own is."""
        asked.budget.spend()
        branches = [
            _Branch(
                choice.condition,
                choice.otherwise,
                _preimage_as(choice.operand, question, self.domain, asked),
            )
            for choice in self.choices
        ]
        return _first(
            branches, _preimage_as(self.default, question, self.domain, asked)
        )


@dataclass(frozen=True)
class BoundCoalesce:
    """The first of several values that is not NULL."""

    domain: Domain
    arguments: tuple[BoundTerm, ...]
    columns: tuple[BoundColumn, ...]
    expression: str
    key: Hashable = field(default=None, init=False)

    def value(self, value: Value | None) -> Plain | None:
        """The first value of an argument that is not NULL."""
        for argument in self.arguments:
            result = argument.value(value)
            if result is not None:
                return result
        return None

    def preimage(self, question: Atom, asked: Asked) -> BoundPredicate:
        """Argument by argument: those before it are NULL, and it is not."""
        asked.budget.spend()
        if isinstance(question, NullAtom | NotNullAtom):
            if any(map(_is_there, self.arguments)):
                return TruthValue(isinstance(question, NotNullAtom))
            kind = AllOf if isinstance(question, NullAtom) else AnyOf
            return kind(tuple(a.preimage(question, asked) for a in self.arguments))
        *some, last = self.arguments
        branches = [
            _Branch(
                TruthValue(value=True),
                argument.preimage(NullAtom(""), asked),
                _preimage_as(argument, question, self.domain, asked),
            )
            for argument in some
        ]
        return _first(branches, _preimage_as(last, question, self.domain, asked))


def _is_there(operand: BoundTerm) -> bool:
    """Whether it is a literal, and not NULL."""
    return isinstance(operand, BoundLiteral) and operand.plain is not None


@dataclass(frozen=True)
class _Branch:
    """Three conditions: it is taken, it is not, and its value answers a question."""

    taken: BoundPredicate
    otherwise: BoundPredicate
    answers: BoundPredicate


def _first(branches: Sequence[_Branch], default: BoundPredicate) -> BoundPredicate:
    """The first branch that is taken, and its value answers."""
    if not branches:
        return default
    # By halves: a thousand conditions are repeated ten times each, and not a thousand.
    middle = len(branches) // 2
    if not middle:
        (branch,) = branches
        mine = _all_of([branch.taken, branch.answers])
        return _any_of([mine, _all_of([branch.otherwise, default])])
    before = [branch.otherwise for branch in branches[:middle]]
    later = _first(branches[middle:], default)
    mine = _first(branches[:middle], NEVER)
    return _any_of([mine, _all_of([*before, later])])


def _all_of(parts: list[BoundPredicate]) -> BoundPredicate:
    return fold_constants(AllOf(tuple(parts)))


def _any_of(parts: list[BoundPredicate]) -> BoundPredicate:
    return fold_constants(AnyOf(tuple(parts)))


def _preimage_as(
    operand: BoundTerm, question: Atom, domain: Domain, asked: Asked
) -> BoundPredicate:
    """A question to a branch, whose value has the type of the whole."""
    if isinstance(operand, BoundLiteral):
        return constant_answer(question, domain, operand.plain, asked)
    return operand.preimage(question, asked)


@dataclass(frozen=True)
class BoundExtreme:
    """The greatest, or the least, of several values; NULL where all are NULL."""

    domain: Domain
    arguments: tuple[BoundTerm, ...]
    columns: tuple[BoundColumn, ...]
    expression: str
    greatest: bool
    key: Hashable = field(default=None, init=False)

    def value(self, value: atoms.Value | None) -> Plain | None:
        """The last, or the first, of the arguments' values in Spark's order."""
        result = [argument.value(value) for argument in self.arguments]
        there = [plain for plain in result if plain is not None]
        if not there:
            return None
        pick = max if self.greatest else min
        return pick(there, key=lambda plain: from_plain(self.domain, plain))

    def preimage(self, question: atoms.Atom, asked: Asked) -> BoundPredicate:
        """Some value reaches the bound, and none is beyond the other one."""
        asked.budget.spend()
        match question:
            case atoms.NullAtom() | atoms.NotNullAtom():
                kind = AllOf if isinstance(question, atoms.NullAtom) else AnyOf
                return kind(tuple(a.preimage(question, asked) for a in self.arguments))
            case atoms.Range(_, low, high):
                return self._between((low, high), asked)
            case atoms.OneOf(_, values) | atoms.NoneOf(_, values) if (
                len(values) <= MANY
            ):
                wanted = intervals_of(question)
                return AnyOf(tuple(self._between(one, asked) for one in wanted))
            case atoms.OneOf() | atoms.NoneOf() | atoms.Matches():
                return computed(self, question, asked)

    def _between(self, wanted: Interval, asked: Asked) -> BoundPredicate:
        above, below = (
            atoms.Range("", wanted[0], None),
            atoms.Range("", None, wanted[1]),
        )
        reached, within = (above, below) if self.greatest else (below, above)
        some: BoundPredicate = AnyOf(
            tuple(a.preimage(reached, asked) for a in self.arguments)
        )
        if within == atoms.Range("", None, None):
            return some
        every = [
            AnyOf((a.preimage(within, asked), a.preimage(atoms.NullAtom(""), asked)))
            for a in self.arguments
        ]
        return AllOf((some, *every))
