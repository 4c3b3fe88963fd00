"""Costs of planning: whether a stage pays off, and the order of conditions.

Stages run from the cheapest to the most expensive: the paths, then the statistics,
which answer for all files together, then filters, then bitmaps.  The last two are asked
once a file and condition.  Where that takes longer than reading every file that is
left, the stage is not run.

Bitmaps have a *price*: the seconds that it takes to ask one file, relative to those of
reading it.  A few files are asked first.  What they hold tells how much of reading the
others rows are expected to spare.  Where that is less than the price, the others are
read unasked; else four times as many are asked, and so on.

The figures are orders of magnitude of one core.  A wrong one costs time, never
correctness.  The same holds for the order of the conditions: values are taken to be
spread evenly between a file's bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple, assert_never

import numpy as np

from skipindex.conditions.bound_predicate import (
    AllOf,
    AnyOf,
    BoundPredicate,
    Computed,
    Judged,
    Leaf,
    fold,
    leaves,
)
from skipindex.expressions import atoms
from skipindex.expressions.atoms import IntegerSet
from skipindex.table import ColumnInfo, TableState

SECONDS_PER_FILE: Final = 1e-3
"""Spark opens a Parquet file and begins to read it."""
BYTES_PER_SECOND: Final = 2.5e8
"""One core decodes and filters."""
SECONDS_PER_QUESTION: Final = {False: 2e-5, True: 2e-5}
"""Probing one index of one file; the key is whether it has row positions."""
SECONDS_PER_LISTED: Final = {False: 1e-7, True: 4e-8}
"""In addition, for every value of a list, or of the column if it has fewer; the key is
whether they are many integers whose rows are asked for, which are looked up together.
"""
SECONDS_PER_STEP: Final = 2e-6
"""To combine the rows of a condition that was asked before with those of others."""


_SHARE_OF_COLUMNS: Final = 1 / 8
"""The part of the bytes of a file that a query reads."""


class Reader(NamedTuple):
    """Reads files for a query that names a few of their columns, on several cores.

    Args:
        seconds_per_file: to open a file.
        bytes_per_second: of whole files.
    """

    seconds_per_file: float
    bytes_per_second: float


ENGINES: Final = Reader(2e-4, 4e9)
SPARK: Final = Reader(1e-3, 1e9)
"""DuckDB and Polars, and Spark, in the Star Schema Benchmark."""
WAIT: Final = 0.03
"""Seconds until a store answers."""
STORE_BYTES_PER_SECOND: Final = 1e8
"""What a store sends."""
_COLD_BYTES_PER_SECOND: Final = 1.5e8
"""To read bytes of an index from a disk, and to check them."""
_COLD_SECONDS_PER_ROW: Final = 3e-9
_SECONDS_PER_ROW: Final = 3e-10
"""To decode an index with row positions, and to compare the codes that are in memory,
for each row of the file."""
_LATER: Final = 1 / 4
"""The part that the first plan pays of what is read into memory: others use it too."""
_FIRST_ASKED: Final = {False: 4, True: 32}
_TIMES_AS_MANY: Final = 4
"""Files that are asked first, in the next turn, and so on; the key is whether they are
in a store, where each turn is waited for."""
_MOST_LOST: Final = {False: 0.02, True: 4 * WAIT}
"""Seconds that asking may take beyond those that it is expected to spare, likewise."""
_HARDLY_LOST: Final = 0.004
"""Seconds that asking may lose on a disk, however fast all files are read."""
_LITTLE: Final = 0.03
"""A price that is never too high, and the part of reading that asking may lose."""
BLOCK: Final = 14
"""Rows of 2 ** 14 are taken for a page, before the pages are known."""
MOST_BLOCKS: Final = 0.25
"""The fraction of the blocks of rows above which no page is looked for."""
FEW: Final = 64
"""Below one row in so many, an index is probed for these rows alone."""
_OF_FEW: Final = 0.3
"""What that costs, of a probe for all rows."""
_SAMPLE: Final = 256
"""About how many files tell what share of the rows a condition leaves."""
_RARE: Final = 0.01
"""The fraction of one value among byte strings, or of NULL."""
_BETWEEN: Final = 0.1
_ONE_SIDED: Final = 0.4
"""Guessed shares of the rows: of two bounds or another test, and of one bound."""


def reading_seconds(table: TableState) -> np.ndarray:
    """About how long one core reads each file."""
    seconds: np.ndarray = SECONDS_PER_FILE + table.sizes / BYTES_PER_SECOND
    return seconds


def asking_seconds(
    asked: Sequence[Judged],
    table: TableState,
    *,
    positional: bool,
) -> float:
    """About how long it takes to ask the indexes of one file, in seconds.

    ``asked`` has the conditions as often as they stand in the predicate.
    """
    different = set(asked)
    n_rows = float(table.n_rows.or_else(0).mean()) if len(table) else 0.0
    listed = sum(
        SECONDS_PER_LISTED[positional and isinstance(values, IntegerSet)]
        * min(len(values), n_rows)
        for values in map(_listed, different)
    )
    once = len(different) * SECONDS_PER_QUESTION[positional]
    again = (len(asked) - len(different)) * SECONDS_PER_STEP
    return once + again + listed


def _listed(leaf: Judged) -> Sequence[atoms.Value]:
    match leaf:
        case Leaf(atoms.OneOf(_, values) | atoms.NoneOf(_, values)):
            return values
        case _:
            return ()


def not_worth_it(
    table: TableState,
    left: np.ndarray,
    asked: Sequence[Judged],
    *,
    positional: bool,
    kinds: Collection[str] | None,
) -> str:
    """Why a stage is not worth running, or empty if it may be.

    ``asked`` has the conditions that have an index to ask, as often as they stand in
    the predicate; ``left`` are the files to decide.  The ``kinds`` that a caller names
    are always asked; None if it names none.
    """
    if kinds is not None:
        return ""
    n_files = int(left.sum())
    reading = n_files * SECONDS_PER_FILE + table.sizes[left].sum() / BYTES_PER_SECOND
    asking = n_files * asking_seconds(asked, table, positional=positional)
    if asking <= reading:
        return ""
    return (
        f"not worth it: evaluating {len(set(asked))} conditions on {n_files} files "
        f"takes about {asking * 1e3:.0f} ms, reading them {reading * 1e3:.0f} ms "
        "(kinds=… forces it)"
    )


def _spread(files: np.ndarray, n: int) -> np.ndarray:
    """About ``n`` of the files, one from each run of as many neighbours."""
    # Writers that take turns have the same place in a run; multiples of an irrational
    # number have all places alike often, and miss none of a few writers.
    step = max(1, len(files) // n)
    runs = np.arange(len(files) // step)
    return files[runs * step + (runs * math.sqrt(2) % 1 * step).astype(np.int64)]


class Price:
    """What asking for the rows of files costs, and what it is expected to spare.

    Args:
        asking: seconds to ask each file.
        reading: seconds to read each file.
        in_store: the indexes are waited for.
    """

    def __init__(self, asking: float, reading: float, *, in_store: bool) -> None:
        self._asking, self._reading, self._in_store = asking, reading, in_store
        self._matches: list[int] = []
        self._spared = 0.0

    @classmethod
    def of(
        cls,
        asked: Sequence[Judged],
        table: TableState,
        files: np.ndarray,
        *,
        cold: float,
        is_kept: bool,
        reader: Reader,
        in_store: bool,
    ) -> Price:
        """The price for some files of a table.

        ``asked`` are the conditions.  Indexes of ``cold`` bytes a file are not in
        memory, which keeps them if ``is_kept``.
        """
        n_probed = len(set(asked)) * float(table.n_rows.or_else(0)[files].mean())
        asking = asking_seconds(asked, table, positional=True)
        asking += n_probed * _SECONDS_PER_ROW
        if cold:
            rate = STORE_BYTES_PER_SECOND if in_store else _COLD_BYTES_PER_SECOND
            first = cold / rate + n_probed * _COLD_SECONDS_PER_ROW
            asking += _LATER * first if is_kept else first
        n_bytes = float(table.sizes[files].mean())
        rate = reader.bytes_per_second
        if in_store:
            rate = min(rate, STORE_BYTES_PER_SECOND / _SHARE_OF_COLUMNS)
        reading = reader.seconds_per_file + n_bytes / rate
        return cls(asking, reading, in_store=in_store)

    def _most_lost(self, n_files: int) -> float:
        """The seconds that asking these files may take beyond what it spares."""
        if self._in_store:
            return _MOST_LOST[True]
        part = _LITTLE * n_files * self._reading
        return min(max(_HARDLY_LOST, part), _MOST_LOST[False])

    def turn(self, files: np.ndarray) -> np.ndarray:
        """The files to ask next, which are spread evenly, or all of them."""
        n = max(_FIRST_ASKED[self._in_store], _TIMES_AS_MANY * len(self._matches))
        least = self._spared / (len(self._matches) + 2.0)
        is_cheap = self._asking <= max(_LITTLE, least / 2.0) * self._reading
        lost = len(files) * self._asking
        if is_cheap or len(files) <= 2 * n or lost <= self._most_lost(len(files)):
            return files
        return _spread(files, n)

    def add(
        self,
        matches: Sequence[int],
        n_rows: np.ndarray,
        n_groups: Sequence[int],
    ) -> None:
        """Add files that were asked: their matching rows, all rows, and row groups."""
        self._matches += matches
        for n, every, some in zip(matches, n_rows.tolist(), n_groups, strict=True):
            blocks = n_blocks(every)
            n_parts = blocks if n <= MOST_BLOCKS * blocks else some
            # Of so many parts, those without one of the rows, spread at random.
            self._spared += (1.0 - 1.0 / max(1, n_parts)) ** n

    def too_high(self, n_files: int) -> str:
        """Why so many other files are not worth asking; empty if they are."""
        n = len(self._matches)
        if not n:
            return ""
        # By the rule of succession, one file in n + 2 may be spared (Laplace).
        share = max((self._spared + 1.0) / (n + 2.0), _share_of_none(self._matches))
        lost = n_files * (self._asking - share * self._reading)
        if lost <= self._most_lost(n_files):
            return ""
        n_empty, fewest = self._matches.count(0), min(self._matches)
        what = f"{n_empty} have no match" if n_empty else f"each has {fewest} or more"
        return (
            f"the rows of {n_files} files were not probed: of {n} files that were, "
            f"{what}, and reading the files takes less time (kinds=… forces it)"
        )


def n_blocks(n_rows: int) -> int:
    """The number of blocks of rows in a file."""
    return (n_rows >> BLOCK) + 1


def _share_of_none(counts: Sequence[int]) -> float:
    """The fraction of zeros, by the negative binomial distribution of the counts."""
    mean, variance = float(np.mean(counts)), float(np.var(counts))
    if variance <= mean:
        return math.exp(-mean)
    size = mean * mean / (variance - mean)
    return float((size / (size + mean)) ** size)


def in_order(
    tree: BoundPredicate,
    table: TableState,
    column_of: Callable[[Leaf | Computed], ColumnInfo],
    files: np.ndarray,
    *,
    costs: Mapping[str, float],
) -> BoundPredicate:
    """The tree with the children of every AND in the order in which they are probed.

    First comes the child with which all of them cost least, as others are asked of
    few rows if it leaves few.  The child that leaves the least share of the rows of
    ``files`` comes next.  ``costs`` are of asking for all rows of a file, by column
    name; 0 without an index.
    """
    sample = _spread(files, _SAMPLE)

    def of_leaf(leaf: Leaf | Computed) -> float:
        column = column_of(leaf)
        if not costs[column.name]:
            return 1.0
        if isinstance(leaf, Computed):
            return _BETWEEN
        return _of_atom(table, leaf.atom, column, sample)

    def share(node: BoundPredicate) -> float:
        return fold(
            node,
            leaf=of_leaf,
            all_of=lambda shares: float(math.prod(shares)),
            any_of=lambda shares: min(1.0, sum(shares)),
            constant=float,
            unknown=lambda _: 1.0,
        )

    def cost(node: BoundPredicate) -> float:
        return sum(costs[column_of(leaf).name] for leaf in leaves(node))

    def first_of(children: Sequence[BoundPredicate]) -> BoundPredicate:
        def with_others(child: BoundPredicate) -> tuple[float, float]:
            mine, left = cost(child), share(child)
            factor = _OF_FEW if left * FEW < 1.0 else 1.0
            return mine + factor * (total - mine), left

        total = sum(map(cost, children))
        return min(children, key=with_others)

    def ordered(node: BoundPredicate) -> BoundPredicate:
        match node:
            case AllOf(children):
                first = first_of(children)
                others = sorted((c for c in children if c is not first), key=share)
                return AllOf((ordered(first), *map(ordered, others)))
            case AnyOf(children):
                return AnyOf(tuple(map(ordered, children)))
            case _:
                return node

    return ordered(tree)


def _of_atom(
    table: TableState, atom: atoms.Atom, column: ColumnInfo, files: np.ndarray
) -> float:
    match atom:
        case atoms.NullAtom():
            return _RARE
        case atoms.NotNullAtom() | atoms.NoneOf():
            return 1.0 - _RARE
        case atoms.Matches(negated=negated):
            return 1.0 - _BETWEEN if negated else _BETWEEN
        case atoms.OneOf(values=values):
            spans = _spans(table, column, files)
            one = _RARE if spans is None else float(np.mean(1.0 / (spans[1] + 1.0)))
            return min(1.0, len(values) * one)
        case atoms.Range(low=low, high=high):
            spans = _spans(table, column, files)
            if spans is None or isinstance(low, bytes) or isinstance(high, bytes):
                return _ONE_SIDED if low is None or high is None else _BETWEEN
            least, width = spans
            start = 0.0 if low is None else np.maximum(0.0, float(low) - least)
            stop = width + 1.0
            if high is not None:
                stop = np.minimum(stop, float(high) - least)
            inside = np.maximum(0.0, stop - start) / (width + 1.0)
            return float(np.mean(inside))
        case _:
            assert_never(atom)


def _spans(
    table: TableState, column: ColumnInfo, files: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """The least value, and greatest less least, of files of an integer domain."""
    stats = table.stats(column)
    if not isinstance(stats.low, np.ndarray):
        return None
    at = files[stats.bounded[files]]
    if not len(at):
        return None
    least = stats.low[at].astype(np.float64)
    return least, stats.high[at].astype(np.float64) - least
