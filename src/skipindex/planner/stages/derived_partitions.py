"""Derived partitions: what the folders say of the column that they were made of.

A table may say that its partition column ``year`` is ``year(ctime)``.  Then a folder
bounds ``ctime`` itself, and every question to ``ctime`` is asked of these bounds: a
``>`` keeps the folder that the literal lies in, operands may stand on either side, a
literal that cannot be read asks nothing, and no condition is added to the query.

* ``year``, ``month``, ``day`` and ``hour`` of one column bound it together.
* Any other function that rises or falls is inverted (``planner/binding/inversion.py``).
* Of a function that does neither, a listed value tells the one folder that it is in,
  and a condition on the very function is answered by the folder's value.

Nothing is ever certain: the declaration says what the writer did with its values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial, reduce
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from skipindex.errors import PredicateError
from skipindex.expressions import Call, Comparison, Predicate, Reference, Term
from skipindex.expressions.arrays import Mask
from skipindex.expressions.atoms import OneOf, Range, Value, successor
from skipindex.expressions.domain import Domain
from skipindex.expressions.not_judged import NotJudgedError
from skipindex.planner.binding.compiler import Compiler
from skipindex.planner.binding.inversion import BoundCall
from skipindex.planner.binding.scalar import answer, judged
from skipindex.planner.binding.terms import BoundColumn, BoundTerm, Interval
from skipindex.planner.bound_predicate import BoundPredicate, Computed, Leaf, fold
from skipindex.planner.functions import calendar
from skipindex.planner.functions.calendar import CLOCK_UNITS, DAY
from skipindex.planner.functions.registry import UNSURE, from_plain, whole
from skipindex.planner.sql.parser import parse
from skipindex.planner.stages.computed import probe_stats
from skipindex.table import FileStats, TableState

_PARTS: Final = ("year", "month", "day", "hour")
_MAX_LISTED: Final = 1000
"""Values of a list that are computed one by one."""
_FEW: Final = 16
"""Values that are compared with each folder, where a function is only nearly known."""
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Derivation:
    """One partition column and what it was made of.

    Args:
        term: the declared function.
        bound_term: the term, bound; it takes one column.
        source: this column.
        values: those of the files, in the term's domain; None is "not known".
    """

    term: Term
    bound_term: BoundTerm
    source: BoundColumn
    values: tuple[Value | None, ...]


def derivation(table: TableState, name: str, text: str) -> Derivation:
    """The declaration that the partition column ``name`` is ``text``.

    Raises:
        PredicateError: there is no such partition, or no such function.
    """
    expected = "expected a function of one column, such as year(ctime)"
    stored = [p for p in table.partitions if p.name.lower() == name.lower()]
    if len(stored) != 1:
        raise PredicateError(
            f"no partition column {name!r} (partition columns: "
            f"{', '.join(p.name for p in table.partitions) or 'none'})"
        )

    def column(reference: Reference) -> BoundColumn:
        name = reference.parts[0]
        info = table.resolve(name, case_sensitive=table.has_exact_names)
        if len(reference.parts) > 1 or info.domain is None or info.is_partition:
            raise NotJudgedError(f"the column {str(reference)!r}")
        # Who wrote the folders may have rounded nanoseconds, up or down.
        return BoundColumn(info.name, info.domain.number, str(Reference(info.path)))

    def condition(_: Predicate) -> BoundPredicate:
        raise NotJudgedError("a condition")

    tree = parse(f"({text}) <=> NULL")
    compiler = Compiler(column, condition, table.derived.timezone)
    term = getattr(tree, "column", None)
    if not isinstance(tree, Comparison) or not isinstance(term, Call):
        raise PredicateError(f"cannot derive a partition by {text!r} ({expected})")
    try:
        bound_term = compiler.compile(term)
    except (NotJudgedError, *UNSURE) as refused:
        why = str(refused) or "only Spark can tell its value"
        raise PredicateError(
            f"cannot derive a partition by {text!r}: {why} ({expected})"
        ) from None
    if len(bound_term.columns) != 1 or bound_term.domain is None:
        raise PredicateError(f"cannot derive a partition by {text!r} ({expected})")
    typed = tuple(_typed(value, bound_term.domain) for value in stored[0].values)
    return Derivation(term, bound_term, bound_term.columns[0], typed)


def _typed(text: str | None, domain: Domain) -> Value | None:
    """A folder's value in a domain; None if it does not read as one of it."""
    if text is None:
        return None
    if domain.name == "string":
        return text.encode("utf-8", "surrogateescape")
    if domain.name == "int" and _INTEGER.fullmatch(text):
        return int(text)
    return calendar.day_of_text(text) if domain.name == "date" else None


class DerivedPartitions:
    """The derived partitions of one table; ``derived_partitions`` makes them.

    Attributes:
        problems: why declarations of the table cannot be used.
    """

    def __init__(self, table: TableState) -> None:
        self._n = len(table)
        self._derivations: list[Derivation] = []
        self.problems: list[str] = []
        for name, text in table.derived.columns.items():
            try:
                self._derivations.append(derivation(table, name, text))
            except PredicateError as error:
                self.problems.append(f"derived partition {name!r} not used: {error}")
        self._stats: dict[str, FileStats | None] = {}

    def probe(self, leaf: Leaf | Computed) -> Mask | None:
        """The files where ``leaf`` may be TRUE of a row; None is "all of them"."""
        mine = [d for d in self._derivations if d.source.name == leaf.column]
        if not mine:
            return None
        possible = np.ones(self._n, bool)
        if leaf.column not in self._stats:
            self._stats[leaf.column] = self._bounds(mine)
        stats = self._stats[leaf.column]
        if stats is not None:
            possible &= probe_stats(stats, leaf).upper
        for one in mine:
            test = _value_test(one, leaf)
            if test is not None:
                known = {v: v is None or test(v) for v in set(one.values)}
                possible &= np.array([known[value] for value in one.values], bool)
        return possible

    def _bounds(self, mine: Sequence[Derivation]) -> FileStats | None:
        """What the folders leave possible for their source, as statistics."""
        source = mine[0].source
        least, most = (None, None) if source.domain.is_bytes else whole(source.domain)
        known: dict[tuple[Value | None, ...], Interval] = {}
        ways = [
            (one, _part_of(one.term), cache(partial(_hull_of, one))) for one in mine
        ]
        lows: list[Value | None] = []
        highs: list[Value | None] = []
        for values in zip(*(one.values for one in mine), strict=True):
            if values not in known:
                known[values] = _interval(ways, values)
            low, high = known[values]
            low = least if low is None else low
            high = most if high is None else high - 1 if isinstance(high, int) else high
            bounded = low is not None and high is not None
            lows.append(low if bounded else None)
            highs.append(high if bounded else None)
        if all(low is None for low in lows):
            return None
        return FileStats.between(lows, highs, source.domain)


_known: Final[WeakKeyDictionary[TableState, DerivedPartitions]] = WeakKeyDictionary()


def derived_partitions(table: TableState) -> DerivedPartitions:
    """What is derived of a table, computed once for all of its plans."""
    found = _known.get(table)
    if found is None:
        found = _known[table] = DerivedPartitions(table)
    return found


def _hull_of(one: Derivation, value: Value) -> Interval:
    """The values of the source that one value of a folder leaves possible."""
    return _hull(one.bound_term.preimage(OneOf("", (value,)), ""))


def _interval(
    ways: Sequence[tuple[Derivation, tuple[str, str], Callable[[Value], Interval]]],
    values: Sequence[Value | None],
) -> Interval:
    """The values of the source that the folder's values leave possible together."""
    found: Interval = (None, None)
    parts: dict[str, dict[str, tuple[BoundTerm, int]]] = {}
    for (one, (name, argument), hull), value in zip(ways, values, strict=True):
        if value is None:
            continue
        found = _both(found, hull(value))
        if name and isinstance(one.bound_term, BoundCall) and isinstance(value, int):
            parts.setdefault(argument, {})[name] = one.bound_term.arguments[0], value
    for given in parts.values():
        found = _both(found, _of_parts(given))
    return found


def _part_of(term: Term) -> tuple[str, str]:
    """Which part of a date ``term`` is, and of what; empty if it is none."""
    match term:
        case Call("dayofmonth", (argument,)):
            return "day", str(argument)
        case Call(name, (argument,)) if name in _PARTS:
            return name, str(argument)
        case _:
            return "", ""


def _of_parts(given: Mapping[str, tuple[BoundTerm, int]]) -> Interval:
    """From year, month, day and hour, as far as they are given without a gap."""
    numbers: list[int] = []
    for name in _PARTS:
        if name not in given:
            break
        numbers.append(given[name][1])
    if not numbers:
        return None, None
    bound_term = given["year"][0]
    is_date = bound_term.domain is not None and bound_term.domain.name == "date"
    year, month, day, hour = numbers + [1, 1, 0][len(numbers) - 1 :]
    if not (1 <= year <= 9999 and 1 <= month <= 12 and 0 <= hour <= 23):
        return None, None
    if not 1 <= day <= calendar.month_length(year, month):
        return None, None
    first = calendar.day_number(year, month, day)
    if len(numbers) == 1:
        stop = calendar.day_number(year + 1, 1, 1)
    elif len(numbers) == 2:
        stop = calendar.add_months(first, 1)
    else:
        stop = first + 1
    low, high = (first, stop) if is_date else (first * DAY, stop * DAY)
    if len(numbers) == 4 and not is_date:
        low += hour * CLOCK_UNITS["HOUR"]
        high = low + CLOCK_UNITS["HOUR"]
    return _hull(bound_term.preimage(Range("", low, high), ""))


def _hull(tree: BoundPredicate) -> Interval:
    """An interval that holds every value for which ``tree`` may be TRUE."""
    every: Interval = (None, None)

    def of_leaf(leaf: Leaf | Computed) -> Interval:
        match leaf:
            case Leaf(Range(_, low, high)):
                return low, high
            case Leaf(OneOf(_, values)):
                return values[0], successor(values[-1])
            case _:
                return every

    def of_any(parts: Iterator[Interval]) -> Interval:
        lows, highs = zip(*parts, strict=True)
        least = None if None in lows else min(lows)
        return least, None if None in highs else max(highs)

    return fold(
        tree,
        leaf=of_leaf,
        all_of=lambda parts: reduce(_both, parts, every),
        any_of=of_any,
        constant=lambda _: every,
        unknown=lambda _: every,
    )


def _both(a: Interval, b: Interval) -> Interval:
    low = max((end for end in (a[0], b[0]) if end is not None), default=None)
    high = min((end for end in (a[1], b[1]) if end is not None), default=None)
    if low is not None and high is not None and low >= high:  # type: ignore[operator]
        return None, None  # the folders contradict themselves: believe nothing
    return low, high


def _value_test(
    one: Derivation, leaf: Leaf | Computed
) -> Callable[[Value], bool] | None:
    """Whether a folder of a value may hold a row for which ``leaf`` is TRUE."""
    domain = one.bound_term.domain
    assert domain is not None
    if isinstance(leaf, Computed):
        if leaf.key is None or leaf.key != one.bound_term.key:
            return None
        virtual = BoundColumn("", domain, "")
        question = leaf.question

        def same(value: Value) -> bool:
            try:
                return answer(question, domain, virtual.value(value)) is not False
            except UNSURE:
                return True

        return same
    if not isinstance(leaf.atom, OneOf) or len(leaf.atom.values) > _MAX_LISTED:
        return None
    wanted: set[Value] = set()
    for value in leaf.atom.values:
        try:
            plain = one.bound_term.value(value)
        except UNSURE:
            return _folder_test(one, leaf.atom.values)
        if plain is None:
            return None
        wanted.add(from_plain(domain, plain))
    return wanted.__contains__


def _folder_test(
    one: Derivation, values: Sequence[Value]
) -> Callable[[Value], bool] | None:
    """The same where the function is only known nearly, for few values."""
    if len(values) > _FEW:
        return None

    def may_hold(folder: Value) -> bool:
        made_of = one.bound_term.preimage(OneOf("", (folder,)), "")
        return any(judged(made_of, value) is not False for value in values)

    return may_hold
