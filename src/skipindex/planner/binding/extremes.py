"""GREATEST and LEAST as bound terms: the last or the first value but NULL."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from skipindex.expressions.atoms import (
    Atom,
    Matches,
    NoneOf,
    NotNullAtom,
    NullAtom,
    OneOf,
    Range,
    Value,
)
from skipindex.expressions.domain import Domain
from skipindex.planner.binding.budget import spend
from skipindex.planner.binding.inversion import MANY
from skipindex.planner.binding.terms import (
    BoundColumn,
    BoundTerm,
    Interval,
    computed,
    intervals_of,
)
from skipindex.planner.bound_predicate import AllOf, AnyOf, BoundPredicate
from skipindex.planner.functions.registry import Plain, from_plain


@dataclass(frozen=True)
class BoundExtreme:
    """The greatest, or the least, of several values; NULL where all are NULL."""

    domain: Domain
    arguments: tuple[BoundTerm, ...]
    columns: tuple[BoundColumn, ...]
    expression: str
    greatest: bool
    key: Hashable = field(default=None, init=False)

    def value(self, value: Value | None) -> Plain | None:
        """The last, or the first, of the arguments' values in Spark's order."""
        found = [argument.value(value) for argument in self.arguments]
        there = [plain for plain in found if plain is not None]
        if not there:
            return None
        pick = max if self.greatest else min
        return pick(there, key=lambda plain: from_plain(self.domain, plain))

    def preimage(self, question: Atom, text: str) -> BoundPredicate:
        """Some value reaches the bound, and none is beyond the other one."""
        spend()
        match question:
            case NullAtom() | NotNullAtom():
                kind = AllOf if isinstance(question, NullAtom) else AnyOf
                return kind(tuple(a.preimage(question, text) for a in self.arguments))
            case Range(_, low, high):
                return self._between((low, high), text)
            case OneOf(_, values) | NoneOf(_, values) if len(values) <= MANY:
                wanted = intervals_of(question)
                return AnyOf(tuple(self._between(one, text) for one in wanted))
            case OneOf() | NoneOf() | Matches():
                return computed(self, question, text)

    def _between(self, wanted: Interval, text: str) -> BoundPredicate:
        above, below = Range("", wanted[0], None), Range("", None, wanted[1])
        reached, within = (above, below) if self.greatest else (below, above)
        some: BoundPredicate = AnyOf(
            tuple(a.preimage(reached, text) for a in self.arguments)
        )
        if within == Range("", None, None):
            return some
        every = [
            AnyOf((a.preimage(within, text), a.preimage(NullAtom(""), text)))
            for a in self.arguments
        ]
        return AllOf((some, *every))
