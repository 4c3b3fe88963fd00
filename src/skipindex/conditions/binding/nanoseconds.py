"""Conditions on nanoseconds, which Spark reads as numbers and others as times.

A number is compared with them as with any bigint.  A time is compared as readers do
that take them for times: DuckDB and pyarrow compare the nanoseconds, Polars cuts them
to microseconds first, and so does DuckDB before version 2, towards zero, where they
have a time zone.  So a time cuts the nanoseconds at two places within a microsecond.  A
row is possible where one of the readers takes it, and certain where all of them do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Final, assert_never

from skipindex.conditions.binding.comparison import ColumnBinding
from skipindex.conditions.binding.inversion import MANY
from skipindex.conditions.binding.literal_cuts import Cut, Refusal, cut
from skipindex.conditions.bound_predicate import (
    NEVER,
    AllOf,
    AnyOf,
    BoundPredicate,
    Computed,
    Leaf,
    Unknown,
    with_leaves,
)
from skipindex.conditions.functions.dates import SURE_NANOSECONDS
from skipindex.expressions import Comparison, In, IsNull, Like, Literal, Operator, atoms
from skipindex.expressions.domain import INT64_MAX, INT64_MIN, Domain

_CLOCK: Final = Domain("timestamp_ntz")
_ROUNDED: Final = "readers differ in nanoseconds below a microsecond"
_BEYOND: Final = "64 bits of nanoseconds do not reach the time: readers may fail"
_ZONE: Final = "the time zone's rules are known only approximately"


@dataclass(frozen=True, slots=True)
class TimeCut:
    """Where a time cuts nanoseconds; each place is the first and the last it may be.

    Args:
        ge: the least value that is at least the time.
        gt: the least value that is greater.
        doubt: why no row is certain; empty if some may be.
    """

    ge: tuple[int, int]
    gt: tuple[int, int]
    doubt: str = ""

    @property
    def exact(self) -> TimeCut:
        """The cut for a reader that compares the nanoseconds; without a doubt."""
        return TimeCut((self.ge[1], self.ge[1]), (self.gt[0], self.gt[0]))


def time_cut(domain: Domain, value: Literal, zone: str | None) -> TimeCut | Refusal:
    """Where a time cuts the nanoseconds of ``domain``."""
    at = cut(Domain(domain.nanoseconds), value, zone)
    if isinstance(at, Refusal):
        return at
    assert isinstance(at.ge, int)
    low, high = 1000 * (at.ge - at.slack), 1000 * (at.ge + at.slack)
    # Towards zero, what is less than a microsecond before 1970 is up to 0.
    least = low - 999 if low <= 0 else low
    doubt = _ZONE if at.slack else ""
    if low < INT64_MIN or high > INT64_MAX:
        doubt = _BEYOND
    if at.slack:
        return TimeCut((least, high + 1000), (least, high + 1000), doubt)
    return TimeCut((least, high), (low + 1, high + 1000), doubt)


class NanosecondBinding(ColumnBinding):
    """A condition on a column of nanoseconds, or on a function with such values."""

    __slots__ = ()

    def bind(self, node: Comparison | In | IsNull | Like) -> BoundPredicate:
        """The condition over atoms; it compares with no NULL."""
        match node:
            case Comparison(_, operator, value) if _is_time(value):
                return self._comparison(operator, value)
            case Comparison(_, _, value):
                values: Sequence[Literal] = [value]
            case In(_, atoms.IntegerSet()) | IsNull():
                values = ()
            case In(_, listed, negated):
                values = [value for value in listed if value is not None]
                if values and all(isinstance(value, date) for value in values):
                    return self._membership(values, negated=negated)
            case Like():
                return Unknown(self.text, "LIKE on nanoseconds needs a cast")
            case _:
                assert_never(node)
        kinds = {type(v).__name__: None for v in values if not _is_number(v)}
        if kinds:
            what = f"comparing nanoseconds with {', '.join(kinds)} needs a cast"
            return Unknown(self.text, what)
        number = ColumnBinding(self.name, self.domain.number, self.zone, self.text)
        return number.bind(node)

    def _comparison(self, operator: Operator, value: Literal) -> BoundPredicate:
        at = time_cut(self.domain, value, self.zone)
        if isinstance(at, Refusal):
            return Unknown(self.text, at.reason)
        match operator:
            case Operator.NULL_SAFE_EQ if at.doubt == _BEYOND:
                return Unknown(self.text, at.doubt)  # a reader may make NULL of it
            case Operator.NULL_SAFE_NE:
                null = Leaf(atoms.NullAtom(self.name), self.text)
                return self._read(
                    AnyOf((null, self._possible(Operator.NE, at))),
                    AnyOf((null, self._certain(Operator.NE, at))),
                    at.doubt,
                    AnyOf((null, self._certain(Operator.NE, at.exact))),
                )
            case _:
                return self._read(
                    self._possible(operator, at),
                    self._certain(operator, at),
                    at.doubt,
                    self._certain(operator, at.exact),
                )

    def _membership(
        self, values: Sequence[Literal], *, negated: bool
    ) -> BoundPredicate:
        operator = Operator.NE if negated else Operator.EQ
        cuts = [time_cut(self.domain, value, self.zone) for value in values]
        known = [at for at in cuts if isinstance(at, TimeCut)]
        for at in cuts:
            if isinstance(at, Refusal):
                return Unknown(self.text, at.reason)
        doubt = next((at.doubt for at in known if at.doubt), "")
        if len(known) > MANY:
            least, most = min(at.ge[0] for at in known), max(at.gt[1] for at in known)
            hull = self._range(None if negated else least, None if negated else most)
            return self._read(hull, NEVER, "a long list of times")
        kind = AllOf if negated else AnyOf
        return self._read(
            kind(tuple(self._possible(operator, at) for at in known)),
            kind(tuple(self._certain(operator, at) for at in known)),
            doubt,
            kind(tuple(self._certain(operator, at.exact) for at in known)),
        )

    def _read(
        self,
        possible: BoundPredicate,
        certain: BoundPredicate,
        doubt: str,
        in_arrow: BoundPredicate | None = None,
    ) -> BoundPredicate:
        """The rows that one reader takes, and of them those that all do."""
        if doubt:
            return AllOf((possible, Unknown(self.text, doubt)))
        return between(certain, possible, Unknown(self.text, _ROUNDED, in_arrow))

    def _possible(self, operator: Operator, at: TimeCut) -> BoundPredicate:
        """Where one reader finds it TRUE."""
        # The least and the greatest nanoseconds are infinite times to some readers.
        match operator:
            case Operator.LT:
                return self._range(None, max(at.ge[1], 1 - INT64_MAX))
            case Operator.LE:
                return self._range(None, max(at.gt[1], 1 - INT64_MAX))
            case Operator.GE:
                return self._range(min(at.ge[0], INT64_MAX), None)
            case Operator.GT:
                return self._range(min(at.gt[0], INT64_MAX), None)
            case Operator.EQ | Operator.NULL_SAFE_EQ:
                return self._range(at.ge[0], at.gt[1])
            case Operator.NE | Operator.NULL_SAFE_NE:
                return self._outside(at.ge[1], at.gt[0])
            case _:
                assert_never(operator)

    def _certain(self, operator: Operator, at: TimeCut) -> BoundPredicate:
        """Where all readers find it TRUE; without a doubt."""
        match operator:
            case Operator.LT:
                return self._range(None, at.ge[0])
            case Operator.LE:
                return self._range(None, at.gt[0])
            case Operator.GE:
                return self._range(at.ge[1], None)
            case Operator.GT:
                return self._range(at.gt[1], None)
            case Operator.EQ | Operator.NULL_SAFE_EQ:
                return self._range(at.ge[1], at.gt[0])
            case Operator.NE | Operator.NULL_SAFE_NE:
                return self._outside(at.ge[0], at.gt[1])
            case _:
                assert_never(operator)

    def _outside(self, low: int, high: int) -> BoundPredicate:
        """All but ``low <= value < high``."""
        if low >= high or low > INT64_MAX or high <= INT64_MIN:
            return Leaf(atoms.NotNullAtom(self.name), self.text)
        if high == low + 1 and low >= INT64_MIN:
            return Leaf(atoms.NoneOf(self.name, (low,)), self.text)
        return AnyOf((self._range(None, low), self._range(high, None)))


def between(
    certain: BoundPredicate, possible: BoundPredicate, unknown: Unknown
) -> BoundPredicate:
    """TRUE where ``certain`` is, and perhaps where ``possible`` is, which holds it."""
    if certain == possible:
        return certain
    return AnyOf((certain, AllOf((possible, unknown))))


def either_reading(
    node: Comparison | In | IsNull | Like,
    down: BoundPredicate,
    up: BoundPredicate,
    text: str,
) -> BoundPredicate:
    """TRUE where both ``down`` and ``up`` are, and perhaps where one of them is.

    They are the condition over nanoseconds that are rounded down, and up.
    """
    if _compares_beyond(node):
        if isinstance(node, Comparison) and node.operator is Operator.NULL_SAFE_EQ:
            return Unknown(text, _BEYOND)
        return AllOf((AnyOf((down, up)), Unknown(text, _BEYOND)))
    up = with_leaves(up, _rounded_up)
    if down == up:
        return down
    unknown = Unknown(text, _ROUNDED)
    return between(AllOf((down, up)), AnyOf((down, up)), unknown)


def _compares_beyond(node: Comparison | In | IsNull | Like) -> bool:
    """Whether a time of the condition is near the ends of nanoseconds, or beyond."""
    match node:
        case Comparison(_, _, value):
            values: Sequence[Literal] = [value]
        case In(_, values) if not isinstance(values, atoms.IntegerSet):
            pass
        case _:
            return False
    cuts = [cut(_CLOCK, value, "UTC") for value in values if _is_time(value)]
    low, high = SURE_NANOSECONDS
    return any(
        isinstance(at, Cut) and isinstance(at.ge, int) and not low < 1000 * at.ge < high
        for at in cuts
    )


def _rounded_up(leaf: Leaf | Computed) -> BoundPredicate:
    """The leaf; a function of nanoseconds that are rounded up is another function."""
    if isinstance(leaf, Leaf):
        return leaf
    return replace(leaf, expression=f"{leaf.expression}, rounded up")


def _is_time(value: Literal) -> bool:
    return isinstance(value, date | str)


def _is_number(value: Literal) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)
