"""Function calls as bound terms: a condition on the result becomes one on the column.

A function that rises or falls with its column is inverted: ``year(d) = 1993`` holds
for one range of ``d``, which every index kind answers, and so does ``floor(x) > 3`` or
``CAST(t AS DATE) <= …``.  The ends of the range are found by bisection over the
column's domain, so there is one definition of every function and no second one of its
inverse.  Where the function may be unsure (an overflow), the rows stay possible.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Final

from skipindex.conditions.binding.scalar import is_about
from skipindex.conditions.binding.terms import (
    Asked,
    BoundColumn,
    BoundTerm,
    Interval,
    computed,
    intervals_of,
    merged_columns,
)
from skipindex.conditions.bound_predicate import (
    NEVER,
    AllOf,
    AnyOf,
    BoundPredicate,
    Unknown,
)
from skipindex.conditions.functions.registry import (
    UNSURE,
    Function,
    Plain,
    from_plain,
    least_integer,
    to_plain,
    type_range,
)
from skipindex.expressions import atoms
from skipindex.expressions.domain import Domain

MANY: Final = 64
"""More listed values than this are not inverted one by one."""
_OVERFLOW: Final = "the function may overflow"


@dataclass(frozen=True)
class BoundCall:
    """A function of bound terms."""

    function: Function
    arguments: tuple[BoundTerm, ...]
    expression: str

    @property
    def domain(self) -> Domain:
        """The domain of the function's values."""
        return self.function.domain

    @cached_property
    def columns(self) -> tuple[BoundColumn, ...]:
        """The columns of the arguments."""
        return merged_columns(self.arguments)

    @cached_property
    def key(self) -> Hashable:
        """The keys of the function and of its arguments; None if one has none."""
        keys = (self.function.key, *(argument.key for argument in self.arguments))
        return None if None in keys else keys

    def value(self, value: atoms.Value | None) -> Plain | None:
        """The function of the arguments' values."""
        result = [argument.value(value) for argument in self.arguments]
        if None in result:
            return None
        return self.function.apply(*result)

    def _alike(self, value: atoms.Value | None) -> Collection[Plain]:
        """Values, one of which has the call's own answer to some questions."""
        assert self.function.alike is not None
        try:
            plains = [argument.value(value) for argument in self.arguments]
            return () if None in plains else self.function.alike(*plains)
        except UNSURE:
            return ()

    @cached_property
    def varying(self) -> BoundTerm | None:
        """The one argument that is not the same for every row, if there is one."""
        varying = [argument for argument in self.arguments if argument.columns]
        return varying[0] if len(varying) == 1 else None

    @property
    def _varying_domain(self) -> Domain:
        """The domain of this argument."""
        assert self.varying is not None
        assert self.varying.domain is not None
        return self.varying.domain

    @property
    def _span(self) -> tuple[int, int]:
        """The values of this argument for which the function is sure."""
        return self.function.span or type_range(self._varying_domain)

    @cached_property
    def _constants(self) -> tuple[list[Any], list[Any]]:
        """The values of the arguments before this one, and of those after it."""
        at = next(i for i, argument in enumerate(self.arguments) if argument.columns)
        plains = [None if a.columns else a.value(None) for a in self.arguments]
        return plains[:at], plains[at + 1 :]

    @cached_property
    def applied(self) -> Callable[[Plain], Plain]:
        """The function of this argument alone."""
        apply, (before, after) = self.function.apply, self._constants
        if len(self.arguments) == 1:
            return apply
        return lambda plain: apply(*before, plain, *after)

    @property
    def can_compose(self) -> bool:
        """Whether it can be a part of a chain: exact, and of numbers or times."""
        function = self.function
        return bool(
            function.direction and not function.slack and function.least is None
        )

    @cached_property
    def composed(self) -> BoundCall:
        """The same function; a chain of functions that rise or fall as one function.

        Each of them asked for itself would ask the next one three questions.
        """
        child = self.varying
        if not isinstance(child, BoundCall) or not self.can_compose:
            return self
        inner = child.composed
        column = inner.varying
        if column is None or inner.domain.is_bytes or not inner.can_compose:
            return self
        apply, (before, after) = self.function.apply, self._constants
        first = inner.applied
        span = inner.reaching(self.function.span)
        direction = self.function.direction * inner.function.direction

        def chained(plain: Plain) -> Plain:
            return apply(*before, first(plain), *after)

        reason = self.function.reason or inner.function.reason
        function = Function(
            self.domain, chained, direction if span else 0, span, reason=reason
        )
        return BoundCall(function, (column,), self.expression)

    def reaching(self, wanted: tuple[int, int] | None) -> tuple[int, int] | None:
        """The argument's values whose result is sure, and wanted; None if none is."""
        low, high = self._span
        if wanted is None:
            return low, high
        result = self._interval_of((wanted[0], wanted[1] + 1))
        if result is None:
            return None
        start, stop = result
        assert not isinstance(start, bytes)
        assert not isinstance(stop, bytes)
        return (low if start is None else start), (high if stop is None else stop - 1)

    def preimage(self, question: atoms.Atom, asked: Asked) -> BoundPredicate:
        """Through the function, if it can be inverted."""
        asked.budget.spend()
        if self.function.is_identity and self.varying is not None:
            return self.varying.preimage(question, asked)
        if self.composed is not self:
            return self.composed.preimage(question, asked)
        child = self.varying
        if child is None:
            return computed(self, question, asked)
        function = self.function
        if function.slack:
            return self._rough_preimage(child, question, asked)
        if not function.direction or isinstance(question, atoms.Matches):
            if function.alike and is_about(question, function.letters):
                return computed(self, question, asked, self._alike)
            return computed(self, question, asked)
        if isinstance(question, atoms.NullAtom | atoms.NotNullAtom):
            known: BoundPredicate = child.preimage(question, asked)
            beyond = [
                child.preimage(atoms.Range("", *interval), asked)
                for interval in self._beyond
            ]
            if not beyond:
                return known
            unknown = Unknown(asked.text, self.function.reason or _OVERFLOW)
            if isinstance(question, atoms.NullAtom):
                return AnyOf((known, AllOf((AnyOf(tuple(beyond)), unknown))))
            inside = child.preimage(atoms.Range("", *self._sure), asked)
            return AnyOf((inside, AllOf((AnyOf(tuple(beyond)), unknown))))
        return self._preimage_of_range(child, question, asked)

    def _preimage_of_range(
        self, child: BoundTerm, question: atoms.Atom, asked: Asked
    ) -> BoundPredicate:
        match question:
            case atoms.OneOf(_, values) | atoms.NoneOf(_, values) if len(values) > MANY:
                hull: BoundPredicate = child.preimage(atoms.NotNullAtom(""), asked)
                if isinstance(question, atoms.OneOf):
                    span = atoms.Range("", values[0], atoms.successor(values[-1]))
                    hull = self._preimage_of_range(child, span, asked)
                return AllOf((hull, computed(self, question, asked)))
            case atoms.Range(_, low, high):
                wanted: list[Interval] = [(low, high)]
            case atoms.OneOf() | atoms.NoneOf():
                wanted = intervals_of(question)
            case _:
                raise AssertionError("a question about NULL is answered before")
        intervals = [self._interval_of(interval) for interval in wanted]
        pieces = list(_question_of([i for i in intervals if i is not None]))
        parts = [child.preimage(piece, asked) for piece in pieces]
        unknown = Unknown(asked.text, self.function.reason or _OVERFLOW)
        for interval in self._beyond:
            beyond = child.preimage(atoms.Range("", *interval), asked)
            parts.append(AllOf((beyond, unknown)))
        result = AnyOf(tuple(parts)) if parts else NEVER
        return self._but_unsure(result, child, wanted, asked)

    def _but_unsure(
        self,
        result: BoundPredicate,
        child: BoundTerm,
        wanted: Sequence[Interval],
        asked: Asked,
    ) -> BoundPredicate:
        """``result``; arguments of which the function is not sure stay possible."""
        if self.function.unsure is None:
            return result
        bounds = {bound for bound in chain(*wanted) if isinstance(bound, bytes)}
        values = tuple(
            sorted(set[atoms.Value]().union(*map(self.function.unsure, bounds)))
        )
        if not values:
            return result
        unknown = Unknown(asked.text, "a text that ends in a part of a character")
        rest = AllOf((child.preimage(atoms.NoneOf("", values), asked), result))
        return AnyOf(
            (rest, AllOf((child.preimage(atoms.OneOf("", values), asked), unknown)))
        )

    def _rough_preimage(
        self, child: BoundTerm, question: atoms.Atom, asked: Asked
    ) -> BoundPredicate:
        """Preimage of a function that is known up to ``slack``, or at some bounds."""
        unknown = Unknown(asked.text, self.function.reason)
        match question:
            case atoms.NullAtom() | atoms.NotNullAtom():
                return child.preimage(question, asked)
            case atoms.Range(_, low, high):
                wanted: list[Interval] = [(low, high)]
            case atoms.OneOf() | atoms.NoneOf() if len(question.values) <= MANY:
                wanted = intervals_of(question)
            case atoms.OneOf(_, values):
                hull = atoms.Range("", values[0], atoms.successor(values[-1]))
                return AllOf((self._rough_preimage(child, hull, asked), unknown))
            case _:
                return unknown
        return self._rough_preimage_of(child, wanted, asked)

    def _rough_preimage_of(
        self, child: BoundTerm, wanted: Sequence[Interval], asked: Asked
    ) -> BoundPredicate:
        """TRUE where the value certainly matches, and perhaps where it may be."""
        sure: list[Interval] = []
        possible: list[Interval] = []
        for low, high in wanted:
            (begin, first), (last, end) = self._place_of(low), self._place_of(high)
            possible.append((begin, end))
            sure.append((first, last))

        def any_of(intervals: Sequence[Interval]) -> BoundPredicate:
            clipped = (
                _clipped(interval, *type_range(self.domain)) for interval in intervals
            )
            pieces = _question_of([one for one in clipped if one is not None])
            parts = tuple(child.preimage(piece, asked) for piece in pieces)
            return AnyOf(parts) if parts else NEVER

        if sure == possible:
            return any_of(sure)
        unknown = Unknown(asked.text, self.function.reason)
        return AnyOf((any_of(sure), AllOf((any_of(possible), unknown))))

    def _place_of(self, bound: atoms.Value | None) -> Interval:
        """Between which arguments the first lies whose true value reaches ``bound``."""
        # They are the same one if it is known, and may lie beyond the domain.
        if bound is None:
            return None, None
        assert isinstance(bound, int)
        function = self.function
        known = function.exact and function.exact(bound)
        if known is not None:
            return known, known
        return bound - function.slack, bound + function.slack * (not function.is_later)

    @cached_property
    def _sure(self) -> Interval:
        """Where the function is sure, as an interval of its argument."""
        if self.function.span is None:
            return None, None
        low, high = self.function.span
        least, most = type_range(self._varying_domain)
        return (low if low > least else None), (high + 1 if high < most else None)

    @cached_property
    def _beyond(self) -> list[Interval]:
        """Where the function is not sure, as intervals of its argument."""
        low, high = self._sure
        below: list[Interval] = [(None, low)] if low is not None else []
        return below + ([(high, None)] if high is not None else [])

    def _interval_of(self, wanted: Interval) -> Interval | None:
        """The argument's values whose result is wanted, None if there is none."""
        low, high = wanted
        if self.function.direction > 0:
            start = None if low is None else self._first(low)
            stop = None if high is None else self._first(high)
            if low is not None and start is None:
                return None  # nothing is that large
        else:
            start = None if high is None else self._first(high)
            stop = None if low is None else self._first(low)
            if high is not None and start is None:
                return None
        begin, end = self._sure
        start = start if start is not None else begin
        stop = stop if stop is not None else end
        if start is not None and stop is not None and start >= stop:  # type: ignore[operator]
            return None
        return start, stop

    def _first(self, bound: atoms.Value) -> atoms.Value | None:
        """The least argument on the far side of ``bound``, None if there is none."""
        # Rising: the first whose result is at least it; falling: the first below it.
        function = self.function
        if function.least is not None:
            assert isinstance(bound, bytes)
            return function.least(bound)

        domain, apply = self._varying_domain, self.applied

        def reached(value: int) -> bool:
            result = from_plain(function.domain, apply(to_plain(domain, value)))
            at_least: bool = result >= bound  # type: ignore[operator]
            return at_least == (function.direction > 0)

        return least_integer(*self._span, reached)


def _clipped(interval: Interval, least: int, most: int) -> Interval | None:
    """The part of an interval that lies in a domain of integers; None if none does."""
    low, high = interval
    assert not isinstance(low, bytes)
    assert not isinstance(high, bytes)
    start, stop = least if low is None else low, most + 1 if high is None else high
    if max(start, least) >= min(stop, most + 1):
        return None
    return (None if start <= least else start), (None if stop > most else stop)


def _question_of(intervals: Sequence[Interval]) -> Iterator[atoms.Atom]:
    """Questions whose union is the union of the intervals."""
    single: list[atoms.Value] = []
    for low, high in sorted(intervals, key=lambda i: (i[0] is not None, i[0])):
        if low is not None and high == atoms.successor(low):
            single.append(low)
        else:
            yield atoms.Range("", low, high)
    if single:
        yield atoms.OneOf("", tuple(single))
