"""Derived partitions: what a folder's values imply for their source column.

A table may say that its partition column ``year`` is ``year(ctime)``.  Then a folder
bounds ``ctime`` itself, and every question to ``ctime`` is asked of these bounds: a
``>`` keeps the folder that the literal lies in, operands may stand on either side, a
literal that cannot be read asks nothing, and no condition is added to the query.

* ``year``, ``month``, ``day`` and ``hour`` of one column bound it together.
* Where dates or times are read from a column of text, the folders bound what is read,
  and so the texts that it is read from.
* Any other function that rises or falls is inverted
  (``conditions/binding/inversion.py``).
* Of a function that does neither, a listed value tells the one folder that it is in,
  and a condition on the very function is answered by the folder's value.

Nothing is ever certain: the declaration says what the writer did with its values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial, reduce
from operator import eq
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.conditions.binding.compiler import Compiler
from skipindex.conditions.binding.constants import with_values
from skipindex.conditions.binding.inversion import BoundCall
from skipindex.conditions.binding.scalar import answer, judged
from skipindex.conditions.binding.terms import Asked, BoundColumn, BoundTerm, Interval
from skipindex.conditions.bound_predicate import (
    BoundPredicate,
    Computed,
    Leaf,
    fold,
    shorten,
    unknowns,
)
from skipindex.conditions.budget import PlanBudget
from skipindex.conditions.functions import calendar
from skipindex.conditions.functions.calendar import CLOCK_UNITS, DAY
from skipindex.conditions.functions.dates import DATE, is_sure_of_years
from skipindex.conditions.functions.patterns import Pattern, pattern_of
from skipindex.conditions.functions.reading import CLOCK_OF_TEXT, DATE_OF_TEXT
from skipindex.conditions.functions.registry import (
    UNSURE,
    TextInterval,
    Texts,
    from_plain,
    type_range,
)
from skipindex.conditions.functions.text import substring
from skipindex.conditions.sql.parser import parse
from skipindex.errors import PredicateError
from skipindex.expressions import Call, Comparison, Predicate, Reference, Term
from skipindex.expressions.arrays import Ints, Mask
from skipindex.expressions.atoms import (
    OneOf,
    Range,
    Value,
    after_prefix,
    successor,
)
from skipindex.expressions.domain import Domain
from skipindex.expressions.not_judged import TWO_COLUMNS, NotJudgedError
from skipindex.planner.stages.computed import probe_stats
from skipindex.table import FileStats, TableState

_PARTS: Final = ("year", "month", "day", "hour")
_ANY: Final = Asked("", PlanBudget(1 << 60))
"""A derivation was bound within a budget; its preimages have no text."""
_MAX_LISTED: Final = 1000
"""Values of a list that are computed one by one."""
_FEW: Final = 16
"""Values compared with each folder, if a function is known only approximately."""
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True)
class Derivation:
    """One partition column and what it was made of.

    Args:
        name: of the partition column.
        term: the declared function.
        bound_term: the term, bound; it takes one column.
        values: those of the files, in the term's domain; None is "not known".
    """

    name: str
    term: Term
    bound_term: BoundTerm
    values: tuple[Value | None, ...]

    @property
    def source(self) -> BoundColumn:
        """The column that the term takes."""
        (column,) = self.bound_term.columns
        return column

    @cached_property
    def base(self) -> BoundTerm:
        """What the folders bound: what the term reads from text, else the column."""
        term = self.bound_term
        while isinstance(term, BoundCall) and term.varying is not None:
            if term.function.texts is not None:
                return term
            term = term.varying
        return self.source

    @cached_property
    def of_base(self) -> BoundTerm:
        """The term, with a column of the base's values in place of what is read."""
        if isinstance(self.base, BoundColumn):
            return self.bound_term
        return _with_column(self.bound_term, self.base)


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
        is_stored = not info.is_partition and not info.has_default
        if len(reference.parts) > 1 or info.domain is None or not is_stored:
            raise NotJudgedError(f"the column {str(reference)!r}")
        # Who wrote the folders may have rounded nanoseconds, up or down.
        return BoundColumn(info.name, info.domain.number, str(Reference(info.path)))

    def condition(_: Predicate) -> BoundPredicate:
        raise NotJudgedError("a condition")

    tree = with_values(parse(f"({text}) <=> NULL"), table.derived.timezone)
    zone = table.derived.timezone
    term = getattr(tree, "column", None)
    if not isinstance(tree, Comparison) or not isinstance(term, Call):
        raise PredicateError(f"cannot derive a partition by {text!r} ({expected})")
    try:
        compiler = Compiler(column, condition, PlanBudget.of(term), zone)
        bound_term = compiler.compile(term)
    except (NotJudgedError, *UNSURE) as refused:
        why = str(refused) or "only Spark can compute its value"
        raise PredicateError(
            f"cannot derive a partition by {text!r}: {why} ({expected})"
        ) from None
    if len(bound_term.columns) != 1 or bound_term.domain is None:
        raise PredicateError(f"cannot derive a partition by {text!r} ({expected})")
    typed = tuple(_typed(value, bound_term.domain) for value in stored[0].values)
    return Derivation(stored[0].name, term, bound_term, typed)


def _with_column(term: BoundTerm, base: BoundTerm) -> BoundTerm:
    """The term with a column in place of ``base``, which is a part of it."""
    if term is base:
        assert base.domain is not None
        return BoundColumn("", base.domain, base.expression)
    if not isinstance(term, BoundCall):
        return term
    arguments = tuple(_with_column(one, base) for one in term.arguments)
    return replace(term, arguments=arguments)


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
        self._bounds: dict[str, list[FolderBounds]] = {}

    @property
    def sources(self) -> dict[str, str]:
        """The column that each derived partition column was made of."""
        return {one.name: one.source.name for one in self._derivations}

    def probe(self, leaf: Leaf | Computed) -> Mask | None:
        """The files where ``leaf`` may be TRUE of a row; None is "all of them"."""
        mine = [d for d in self._derivations if d.source.name == leaf.column]
        if not mine:
            return None
        possible = np.ones(self._n, bool)
        if leaf.column not in self._bounds:
            self._bounds[leaf.column] = list(_all_bounds(mine))
        for bounds in self._bounds[leaf.column]:
            possible &= bounds.probe(leaf)
        for one in mine:
            test = _value_test(one, leaf)
            if test is not None:
                known = {v: v is None or test(v) for v in set(one.values)}
                possible &= np.array([known[value] for value in one.values], bool)
        return possible

    def unasked(self, tree: BoundPredicate) -> list[str]:
        """Why no partition is omitted where columns are compared, one a condition.

        Nothing is said if another condition of ``tree`` may leave out some.
        """
        if not self._derivations or _may_leave_out(tree):
            return []
        names = "|".join({re.escape(d.source.name) for d in self._derivations})
        compared = re.compile(rf"(?<!\w)({names})(?!\w)", re.IGNORECASE)
        return [
            f"no partition is skipped for {shorten(text)}: {TWO_COLUMNS}"
            for text in dict.fromkeys(
                one.text for one in unknowns(tree) if one.reason == TWO_COLUMNS
            )
            if compared.search(text)
        ]


def _may_leave_out(tree: BoundPredicate) -> bool:
    """Whether some condition that is judged can leave out a file by itself."""
    return fold(
        tree,
        leaf=lambda _: True,
        all_of=any,
        any_of=all,
        constant=lambda value: not value,
        unknown=lambda _: False,
    )


_known: Final[WeakKeyDictionary[TableState, DerivedPartitions]] = WeakKeyDictionary()


def derived_partitions(table: TableState) -> DerivedPartitions:
    """What is derived of a table, computed once for all of its plans."""
    result = _known.get(table)
    if result is None:
        result = _known[table] = DerivedPartitions(table)
    return result


def misplaced(table: TableState) -> Iterator[str]:
    """The files with rows that no condition on a derived partition's source finds.

    Their folder contradicts the declaration.  The least and the greatest value of each
    file are judged, so of a function that neither rises nor falls, rows may be missed.
    """
    if not table.derived.columns:
        return
    folder_of = [path.rpartition("/")[0] for path in table.paths]
    alone: dict[str, DerivedPartitions] = {}
    for folder, file in zip(folder_of, table.listing, strict=True):
        if folder not in alone:  # one file stands for all of its folder
            bare = table.over([file]).declaring(table.derived)
            alone[folder] = DerivedPartitions(bare)
    for name in sorted({*derived_partitions(table).sources.values()}):
        column = table.stored(name)
        stats = table.stats(column)
        assert column.domain is not None
        for i in np.flatnonzero(stats.bounded & stats.exact & stats.can_value).tolist():
            for end in (stats.low[i], stats.high[i]):
                value = end.as_py() if isinstance(end, pa.Scalar) else int(end)
                leaf = Leaf(OneOf(name, (value,)), "")
                possible = alone[folder_of[i]].probe(leaf)
                if possible is not None and not possible.any():
                    yield (
                        f"{table.paths[i]}: it has a row where {name} is "
                        f"{column.domain.show(value)}, which the declaration of its "
                        "folder rules out, so no condition on that column finds it"
                    )
                    break


@dataclass(frozen=True)
class FolderBounds:
    """What folders leave possible for the values of a column, or of what reads it.

    Args:
        domain: of the values.
        asked: what a leaf asks of them; None is "nothing".
        folders: the number of each file's folder.
        intervals: of every folder; none is "any value, or no value".
        texts: if the column is read, which texts are.
    """

    domain: Domain
    asked: Callable[[Leaf | Computed], Leaf | Computed | None]
    folders: Ints
    intervals: Sequence[Sequence[Interval]]
    texts: Texts | None = None

    def probe(self, leaf: Leaf | Computed) -> Mask:
        """The files where ``leaf`` may be TRUE of a row."""
        asked = self.asked(leaf)
        if asked is None:
            return np.ones(len(self.folders), bool)
        possible = probe_stats(self._stats, self._readable(asked)).upper
        match asked:
            case Leaf(Range(_, bytes(low), _)):  # statistics include their upper bound
                stops = pa.array(self._stops, pa.large_binary())
                beyond = pc.less_equal(stops, low).fill_null(False)
                possible = possible & ~np.asarray(beyond)
        mask: Mask = np.logical_or.reduceat(possible, self._starts)[self.folders]
        return mask

    def _readable(self, leaf: Leaf | Computed) -> Leaf | Computed:
        """The leaf, which asks of no text that is not read."""
        match leaf:
            case Leaf(OneOf(name, values)) if self.texts and len(values) <= _MAX_LISTED:
                texts = [v for v in values if isinstance(v, bytes)]
                read = tuple(filter(self.texts.may_read, texts))
                # No text of the intervals is below the empty one.
                atom = OneOf(name, read) if read else Range(name, None, b"")
                return replace(leaf, atom=atom)
            case _:
                return leaf

    @cached_property
    def _flat(self) -> Sequence[Interval]:
        """The intervals of all folders, one folder after the other."""
        return [one for each in self.intervals for one in each or [(None, None)]]

    @cached_property
    def _starts(self) -> Ints:
        """Where those of each folder begin."""
        return np.cumsum([0, *(len(each) or 1 for each in self.intervals[:-1])])

    @cached_property
    def _stops(self) -> Sequence[Value | None]:
        return [high for _, high in self._flat]

    @cached_property
    def _stats(self) -> FileStats:
        """Statistics as if every interval were a file."""
        domain = self.domain
        least, most = (b"", None) if domain.is_bytes else type_range(domain)
        lows: list[Value | None] = []
        highs: list[Value | None] = []
        for low, high in self._flat:
            first = least if low is None else low
            last = most if high is None else high - 1 if isinstance(high, int) else high
            is_known = last is not None and (low, high) != (None, None)
            lows.append(first if is_known else None)
            highs.append(last if is_known else None)
        return FileStats.between(lows, highs, domain)


def _all_bounds(mine: Sequence[Derivation]) -> Iterator[FolderBounds]:
    """What the folders leave possible for a column, and for what is read from it."""
    of_base: dict[Hashable, list[Derivation]] = {}
    for one in mine:
        key = one.base.expression if one.base.key is None else one.base.key
        of_base.setdefault(key, []).append(one)
    for some in of_base.values():
        number: dict[tuple[Value | None, ...], int] = {}
        rows = zip(*(one.values for one in some), strict=True)
        folders = np.array([number.setdefault(row, len(number)) for row in rows], int)
        if not number:
            continue
        ways = [(d, _part_of(d.term), cache(partial(_alone, d))) for d in some]
        result = [_interval(ways, values) for values in number]
        # A folder of which nothing is known may hold texts that are not read.
        known = [[] if one == (None, None) else [one] for one in result]
        base, source = some[0].base, some[0].source
        if not isinstance(base, BoundCall) or base.function.texts is None:
            yield FolderBounds(source.domain, lambda leaf: leaf, folders, known)
            continue
        texts, domain = base.function.texts, base.domain
        read = [[i for one in each for i in _texts(texts, one)] for each in known]
        yield FolderBounds(source.domain, lambda leaf: leaf, folders, read, texts)
        asked = _question_to(partial(eq, base.key))
        yield FolderBounds(domain, asked, folders, known)
        if isinstance(texts, Pattern) and texts.is_cast:
            asked = _question_to(partial(_is_clock_of, source.key))
            yield FolderBounds(domain, asked, folders, known)
            asked = _question_to(partial(eq, (DATE_OF_TEXT, source.key)))
            days = [list(map(_days, one)) for one in known]
            yield FolderBounds(DATE, asked, folders, days)


def _question_to(
    is_it: Callable[[Hashable], bool],
) -> Callable[[Leaf | Computed], Leaf | None]:
    """What a leaf asks of a function, by the key of the function."""

    def asked(leaf: Leaf | Computed) -> Leaf | None:
        if isinstance(leaf, Leaf) or leaf.key is None or not is_it(leaf.key):
            return None
        return Leaf(leaf.question, leaf.text)

    return asked


def _is_clock_of(column: Hashable, key: Hashable) -> bool:
    """Whether it is a cast of the column to a local time, in any zone."""
    match key:
        case ((kind, _), argument):
            return kind == CLOCK_OF_TEXT and argument == column
        case _:
            return False


def _texts(texts: Texts, values: Interval) -> Sequence[TextInterval]:
    """The texts that are read as one of the values."""
    low, high = values
    assert not isinstance(low, bytes)
    assert not isinstance(high, bytes)
    return texts.between(low, high)


def _days(moments: Interval) -> Interval:
    """The days of moments."""
    low, high = moments
    assert not isinstance(low, bytes)
    assert not isinstance(high, bytes)
    first = None if low is None else low // DAY
    return first, None if high is None else (high - 1) // DAY + 1


def _alone(one: Derivation, value: Value) -> Interval:
    """The values of the base that one value of a folder leaves possible."""
    hull = _hull(one.of_base.preimage(OneOf("", (value,)), _ANY))
    return _both(hull, _shown_as(one, value))


def _interval(
    ways: Sequence[tuple[Derivation, tuple[str, str], Callable[[Value], Interval]]],
    values: Sequence[Value | None],
) -> Interval:
    """The values of the base that the folder's values leave possible together."""
    result: Interval = (None, None)
    parts: dict[str, dict[str, tuple[BoundTerm, int]]] = {}
    for (one, (name, argument), alone), value in zip(ways, values, strict=True):
        if value is None:
            continue
        result = _both(result, alone(value))
        if name and isinstance(one.of_base, BoundCall) and isinstance(value, int):
            parts.setdefault(argument, {})[name] = one.of_base.arguments[0], value
    for given in parts.values():
        result = _both(result, _of_parts(given))
    return result


def _shown_as(one: Derivation, value: Value) -> Interval:
    """The values of the base that ``date_format`` shows as a folder's text."""
    # Years of another number of digits than four have a sign, so no text is of both.
    match one.term, one.of_base, value:
        case (
            Call("date_format", (_, str(pattern))),
            BoundCall(arguments=(moment, _)),
            bytes(),
        ):
            text = value.decode(errors="replace")
        case (
            Call("cast", (Call("date_format", (_, str(pattern))), _)),
            BoundCall(arguments=(BoundCall(arguments=(moment, _)), _)),
            int(),
        ):
            text = f"{value}".zfill(len(pattern_of(pattern).shown(0)))
        case _:
            return None, None
    shown = pattern_of(pattern).alike(text)
    return _where(moment, *shown) if shown else (None, None)


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
    return _where(bound_term, low, high)


def _where(term: BoundTerm, low: int, high: int) -> Interval:
    """The values of the term's column where it is in ``[low, high)``."""
    while isinstance(term, BoundCall) and term.varying is not None:
        function = term.function
        if function.slack:  # of zones with rules
            low -= function.slack
            high += 0 if function.is_later else function.slack
        elif is_sure_of_years(function):
            result = term.reaching((low, high - 1))
            if result is None:
                return None, None
            low, high = result[0], result[1] + 1
        else:
            break
        term = term.varying
    return _hull(term.preimage(Range("", low, high), _ANY))


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
        if leaf.key is None or _plainer(leaf.key) != _plainer(one.bound_term.key):
            return None
        virtual = BoundColumn("", domain, "")
        question = leaf.question

        def same(value: Value) -> bool:
            try:
                return answer(question, domain, virtual.value(value)) is not False
            except UNSURE:
                return True

        return same
    if isinstance(leaf.atom, Range):
        return _prefix_test(one, leaf.atom)
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


def _plainer(key: Hashable) -> Hashable:
    """The key without casts that change no answer: the same for more functions."""
    match key:
        case "day", of:
            return _plainer(("dayofmonth", of))
        case ("year" | "month" | "dayofmonth") as name, ("cast", day, (_, _, "'DATE'")):
            return name, _plainer(day)
        case ("timestamp_ntz", int(there)), (("timestamp", int(back)), clock):
            # There and back in a zone of a fixed offset.
            return _plainer(clock) if there == -back else key
        case tuple():
            return tuple(map(_plainer, key))
        case _:
            return key


def _folder_test(
    one: Derivation, values: Sequence[Value]
) -> Callable[[Value], bool] | None:
    """The same if the function is known only approximately, for few values."""
    if len(values) > _FEW:
        return None

    def may_hold(folder: Value) -> bool:
        made_of = one.bound_term.preimage(OneOf("", (folder,)), _ANY)
        return any(judged(made_of, value) is not False for value in values)

    return may_hold


def _prefix_test(one: Derivation, atom: Range) -> Callable[[Value], bool] | None:
    """The same for texts that begin alike, of folders that are a piece of the text."""
    match one.term:
        case Call("substring" | "substr", (Reference(), int(start), int(length))):
            pass
        case Call("left", (Reference(), int(length))):
            start = 1
        case _:
            return None
    prefix = _common_prefix(atom)
    piece = substring(prefix, start, length).encode() if start > 0 else b""
    if one.source.domain.name != "string" or not piece:
        return None
    return lambda folder: isinstance(folder, bytes) and folder.startswith(piece)


def _common_prefix(atom: Range) -> str:
    """What all texts of the range begin with."""
    low, high = atom.low, atom.high
    if not isinstance(low, bytes) or not isinstance(high, bytes):
        return ""
    for n in range(len(low), 0, -1):
        stop = after_prefix(low[:n])
        if stop is None or high <= stop:
            try:
                return low[:n].decode()
            except UnicodeDecodeError as cut_off:
                return low[: cut_off.start].decode()
    return ""
