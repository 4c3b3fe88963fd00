"""GREATEST and LEAST as bound terms; both pass over arguments that are NULL."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from skipindex.expressions import atoms
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

    def value(self, value: atoms.Value | None) -> Plain | None:
        """The last, or the first, of the arguments' values in Spark's order."""
        found = [argument.value(value) for argument in self.arguments]
        there = [plain for plain in found if plain is not None]
        if not there:
            return None
        pick = max if self.greatest else min
        return pick(there, key=lambda plain: from_plain(self.domain, plain))

    def preimage(self, question: atoms.Atom, text: str) -> BoundPredicate:
        """Some value reaches the bound, and none is beyond the other one."""
        spend()
        match question:
            case atoms.NullAtom() | atoms.NotNullAtom():
                kind = AllOf if isinstance(question, atoms.NullAtom) else AnyOf
                return kind(tuple(a.preimage(question, text) for a in self.arguments))
            case atoms.Range(_, low, high):
                return self._between((low, high), text)
            case atoms.OneOf(_, values) | atoms.NoneOf(_, values) if (
                len(values) <= MANY
            ):
                wanted = intervals_of(question)
                return AnyOf(tuple(self._between(one, text) for one in wanted))
            case atoms.OneOf() | atoms.NoneOf() | atoms.Matches():
                return computed(self, question, text)

    def _between(self, wanted: Interval, text: str) -> BoundPredicate:
        above, below = (
            atoms.Range("", wanted[0], None),
            atoms.Range("", None, wanted[1]),
        )
        reached, within = (above, below) if self.greatest else (below, above)
        some: BoundPredicate = AnyOf(
            tuple(a.preimage(reached, text) for a in self.arguments)
        )
        if within == atoms.Range("", None, None):
            return some
        every = [
            AnyOf((a.preimage(within, text), a.preimage(atoms.NullAtom(""), text)))
            for a in self.arguments
        ]
        return AllOf((some, *every))
