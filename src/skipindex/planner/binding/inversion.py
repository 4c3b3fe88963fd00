"""Function calls as bound terms: questions to them become questions to the columns.

A function that rises or falls with its column is inverted: ``year(d) = 1993`` holds
for one range of ``d``, which every index kind answers, and so does ``floor(x) > 3`` or
``CAST(t AS DATE) <= …``.  The ends of the range are found by bisection over the
column's domain, so there is one definition of every function and no second one of its
inverse.  Where the function may be unsure (an overflow), the rows are kept.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Final

from skipindex.expressions.atoms import (
    Atom,
    IsNotNull,
    IsNull,
    Matches,
    NoneOf,
    OneOf,
    Range,
    Value,
    successor,
)
from skipindex.expressions.domain import Domain
from skipindex.planner.binding.budget import spend
from skipindex.planner.binding.terms import (
    BoundColumn,
    BoundTerm,
    Interval,
    computed,
    merged_columns,
)
from skipindex.planner.bound_predicate import (
    AllOf,
    AnyOf,
    BoundPredicate,
    TruthValue,
    Unknown,
)
from skipindex.planner.functions.bisection import least_integer
from skipindex.planner.functions.registry import (
    Function,
    Plain,
    from_plain,
    to_plain,
    whole,
)

MANY: Final = 64
"""More listed values than this are not inverted one by one."""


@dataclass(frozen=True)
class BoundCall:
    """A function of bound terms."""

    function: Function
    arguments: tuple[BoundTerm, ...]
    expression: str

    @property
    def domain(self) -> Domain:
        """Of the function's values."""
        return self.function.domain

    @cached_property
    def columns(self) -> tuple[BoundColumn, ...]:
        """Those of the arguments."""
        return merged_columns(self.arguments)

    @cached_property
    def key(self) -> Hashable:
        """The function's and those of the arguments, if all have one."""
        keys = (self.function.key, *(argument.key for argument in self.arguments))
        return None if None in keys else keys

    def value(self, value: Value | None) -> Plain | None:
        """The function of the arguments' values."""
        found = [argument.value(value) for argument in self.arguments]
        if None in found:
            return None
        return self.function.apply(*found)

    @cached_property
    def composed(self) -> BoundCall:
        """The same function; a chain of functions that rise or fall as one function.

        Each of them asked for itself would ask the next one three questions.
        """
        at = [i for i, argument in enumerate(self.arguments) if argument.columns]
        child = self.arguments[at[0]] if len(at) == 1 else None
        if not isinstance(child, BoundCall) or not _can_compose(self.function):
            return self
        inner = child.composed
        columns = [argument for argument in inner.arguments if argument.columns]
        if (
            len(columns) != 1
            or inner.domain.is_bytes
            or not _can_compose(inner.function)
        ):
            return self
        mine = [
            argument.value(None) if not argument.columns else None
            for argument in self.arguments
        ]
        its = [
            argument.value(None) if not argument.columns else None
            for argument in inner.arguments
        ]
        place = inner.arguments.index(columns[0])

        def apply(plain: Plain) -> Plain:
            its[place] = plain
            mine[at[0]] = inner.function.apply(*its)
            return self.function.apply(*mine)

        span = inner.reaching(self.function.span)
        direction = self.function.direction * inner.function.direction
        function = Function(self.domain, apply, direction if span else 0, span)
        return BoundCall(function, (columns[0],), self.expression)

    def reaching(self, wanted: tuple[int, int] | None) -> tuple[int, int] | None:
        """The argument's values whose result is sure, and wanted; None if none is."""
        (child,) = (argument for argument in self.arguments if argument.columns)
        assert child.domain is not None
        low, high = self.function.span or whole(child.domain)
        if wanted is None:
            return low, high
        found = self._interval_of((wanted[0], wanted[1] + 1))
        if found is None:
            return None
        start, stop = found
        assert not isinstance(start, bytes)
        assert not isinstance(stop, bytes)
        return (low if start is None else start), (high if stop is None else stop - 1)

    def preimage(self, question: Atom, text: str) -> BoundPredicate:
        """Through the function, if it can be inverted."""
        spend()
        if self.composed is not self:
            return self.composed.preimage(question, text)
        varying = [argument for argument in self.arguments if argument.columns]
        if len(varying) != 1:
            return computed(self, question, text)
        (child,) = varying
        function = self.function
        if function.slack:
            return self._rough_preimage(child, question, text)
        if not function.direction or isinstance(question, Matches):
            return computed(self, question, text)
        if isinstance(question, IsNull | IsNotNull):
            known: BoundPredicate = child.preimage(question, text)
            beyond = [
                child.preimage(Range("", *interval), text) for interval in self._beyond
            ]
            if not beyond:
                return known
            unknown = Unknown(text, "the function may overflow")
            if isinstance(question, IsNull):
                return AnyOf((known, AllOf((AnyOf(tuple(beyond)), unknown))))
            inside = child.preimage(Range("", *self._sure), text)
            return AnyOf((inside, AllOf((AnyOf(tuple(beyond)), unknown))))
        return self._preimage_of_range(child, question, text)

    def _preimage_of_range(
        self, child: BoundTerm, question: Atom, text: str
    ) -> BoundPredicate:
        match question:
            case OneOf(_, values) | NoneOf(_, values) if len(values) > MANY:
                hull: BoundPredicate = child.preimage(IsNotNull(""), text)
                if isinstance(question, OneOf):
                    span = Range("", values[0], successor(values[-1]))
                    hull = self._preimage_of_range(child, span, text)
                return AllOf((hull, computed(self, question, text)))
            case Range(_, low, high):
                wanted: list[Interval] = [(low, high)]
            case OneOf(_, values):
                wanted = [(v, successor(v)) for v in values]
            case NoneOf(_, values):
                edges = [None, *chain(*((v, successor(v)) for v in values)), None]
                wanted = list(zip(edges[::2], edges[1::2], strict=True))
            case _:
                raise AssertionError("a question about NULL is answered before")
        intervals = [self._interval_of(interval) for interval in wanted]
        pieces = list(_question_of([i for i in intervals if i is not None]))
        parts = [child.preimage(piece, text) for piece in pieces]
        unknown = Unknown(text, "the function may overflow")
        for interval in self._beyond:
            beyond = child.preimage(Range("", *interval), text)
            parts.append(AllOf((beyond, unknown)))
        found = AnyOf(tuple(parts)) if parts else TruthValue(value=False)
        return self._but_unsure(found, child, wanted, text)

    def _but_unsure(
        self,
        found: BoundPredicate,
        child: BoundTerm,
        wanted: Sequence[Interval],
        text: str,
    ) -> BoundPredicate:
        """``found``, but for the arguments of which the function is not sure."""
        if self.function.unsure is None:
            return found
        bounds = {bound for bound in chain(*wanted) if isinstance(bound, bytes)}
        values = tuple(sorted(set[Value]().union(*map(self.function.unsure, bounds))))
        if not values:
            return found
        unknown = Unknown(text, "a text that ends in a part of a character")
        rest = AllOf((child.preimage(NoneOf("", values), text), found))
        return AnyOf((rest, AllOf((child.preimage(OneOf("", values), text), unknown))))

    def _rough_preimage(
        self, child: BoundTerm, question: Atom, text: str
    ) -> BoundPredicate:
        unknown = Unknown(text, self.function.reason)
        slack = self.function.slack
        match question:
            case IsNull() | IsNotNull():
                return child.preimage(question, text)
            case Range(_, low, high):
                pass
            case OneOf(_, values):
                low, high = values[0], successor(values[-1])
            case _:
                return unknown
        least, most = whole(self.domain)
        if isinstance(low, int):
            low = low - slack if low - slack > least else None
        if isinstance(high, int):
            high = high + slack if high + slack <= most else None
        return AllOf((child.preimage(Range("", low, high), text), unknown))

    @cached_property
    def _sure(self) -> Interval:
        """Where the function is sure, as an interval of its argument."""
        (child,) = (a for a in self.arguments if a.columns)
        assert child.domain is not None
        if self.function.span is None:
            return None, None
        low, high = self.function.span
        least, most = whole(child.domain)
        return (low if low > least else None), (high + 1 if high < most else None)

    @cached_property
    def _beyond(self) -> list[Interval]:
        """Where it is not."""
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

    def _first(self, bound: Value) -> Value | None:
        """The least argument on the far side of ``bound``, None if there is none.

        Rising: the first whose result is at least it; falling: the first below it.
        """
        function = self.function
        at, child = next((i, a) for i, a in enumerate(self.arguments) if a.columns)
        if function.least is not None:
            assert isinstance(bound, bytes)
            return function.least(bound)
        assert child.domain is not None
        low, high = function.span or whole(child.domain)
        constants = [a.value(None) if not a.columns else None for a in self.arguments]

        def reached(value: int) -> bool:
            constants[at] = to_plain(child_domain, value)
            result = from_plain(function.domain, function.apply(*constants))
            at_least: bool = result >= bound  # type: ignore[operator]
            return at_least == (function.direction > 0)

        child_domain = child.domain
        return least_integer(low, high, reached)


def _can_compose(function: Function) -> bool:
    """Whether it can be a part of a chain: exact, and of numbers or times."""
    return bool(function.direction and not function.slack and function.least is None)


def _question_of(intervals: Sequence[Interval]) -> Iterator[Atom]:
    """Questions whose union is the union of the intervals."""
    single: list[Value] = []
    for low, high in sorted(intervals, key=lambda i: (i[0] is not None, i[0])):
        if low is not None and high == successor(low):
            single.append(low)
        else:
            yield Range("", low, high)
    if single:
        yield OneOf("", tuple(single))
