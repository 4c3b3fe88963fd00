"""How well a table's files are separated, from their statistics alone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from skipindex.expressions import Predicate, to_sql
from skipindex.layout.ordering import Positions
from skipindex.notebook import block, paragraph, table
from skipindex.planner.plan import Plan, plan_files
from skipindex.storage.file_system.location import Location
from skipindex.table import ColumnInfo, TableState, open_state
from skipindex.table.statistics.overlap import ranked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class ColumnQuality:
    """How well one column separates the files; the best is depth 1 and 0 overlaps.

    Args:
        column: the name of the column.
        n_known: the number of files whose bounds are known, or that hold no value.
        depth: for each file, the greatest number of files, itself included, whose
            ranges contain one value of its range; the mean over all files.
        overlaps: the number of other files whose ranges overlap a file's, on average.
        look_up: the fraction of files that a look-up of one value must read, for
            values drawn from the bounds of the files.
    """

    column: str
    n_known: int
    depth: float
    overlaps: float
    look_up: float


@dataclass(frozen=True, slots=True)
class QueryQuality:
    """The files that one query reads, compared with the best possible number.

    Args:
        query: the query as SQL.
        n_files: the number of files that it reads.
        matching: the least and the greatest number of matching rows; None is not
            known.
        ideal: the fewest files of average size that can hold this number of rows, for
            both numbers.
    """

    query: str
    n_files: int
    matching: tuple[int, int | None]
    ideal: tuple[int, int | None]


@dataclass(frozen=True, slots=True)
class Quality:
    """The result of ``Table.layout_quality``; ``str`` returns it as text."""

    table: str
    n_files: int
    n_rows: int
    n_bytes: int
    columns: tuple[ColumnQuality, ...]
    queries: tuple[QueryQuality, ...]

    def _repr_html_(self) -> str:
        head, *_ = str(self).splitlines()
        columns = [
            (c.column, c.depth, c.overlaps, 100 * c.look_up) for c in self.columns
        ]
        queries = [
            (q.query, q.n_files, _between(q.ideal), _between(q.matching))
            for q in self.queries
        ]
        names = ("column", "depth", "overlaps", "look-up, % of files")
        of_queries = ("query", "files", "ideal", "rows")
        return block(
            paragraph(head),
            table(names, columns, right=(1, 2, 3)),
            table(of_queries, queries, right=(1, 2, 3)) if queries else "",
        )

    def __str__(self) -> str:
        """All of it as text."""
        size = f"{self.n_rows:,} rows known, {self.n_bytes / 1e6:.1f} MB"
        lines = [f"{self.table}: {self.n_files} files, {size}"]
        if self.columns:
            wide = max(6, *(len(c.column) for c in self.columns))
            lines.append(
                f"{'column':<{wide}}  {'depth':>8}  {'overlaps':>8}  {'look-up':>8}"
            )
            lines += [
                f"{c.column:<{wide}}  {c.depth:>8.1f}  {c.overlaps:>8.1f}  "
                f"{c.look_up:>8.1%}"
                for c in self.columns
            ]
        if self.queries:
            lines.append(f"{'files':>6}  {'ideal':>9}  {'rows':>19}  query")
            lines += [
                f"{q.n_files:>6}  {_between(q.ideal):>9}  {_between(q.matching):>19}  "
                f"{q.query}"
                for q in self.queries
            ]
        return "\n".join(lines)


def layout_quality(
    table: TableState | Location | str | os.PathLike[str],
    queries: Iterable[str | Predicate] = (),
    *,
    columns: Sequence[str] | None = None,
    spark: SparkSession | None = None,
) -> Quality:
    """See ``Table.layout_quality``."""
    opened = open_state(table)
    if columns is None:
        known = opened.snapshot.manifest.stats
        infos = [
            c
            for c in opened.leaves
            if c.is_partition or not known.keys().isdisjoint(c.stored_names)
        ]
    else:
        infos = [opened.resolve(name) for name in columns]
    n_rows = int(opened.n_rows.or_else(0).sum())
    return Quality(
        opened.folder,
        len(opened),
        n_rows,
        int(opened.sizes.sum()),
        tuple(_column(opened, info) for info in infos if info.domain is not None),
        tuple(_query(opened, query, n_rows, spark) for query in queries),
    )


def _column(table: TableState, info: ColumnInfo) -> ColumnQuality:
    stats = table.stats(info)
    n_files = len(table)
    low, high = ranked(stats)
    n_unknown = int((stats.can_value & ~stats.bounded).sum())
    if not len(low):
        share = n_unknown / n_files
        return ColumnQuality(
            info.name, n_files - n_unknown, n_unknown, max(0, n_unknown - 1), share
        )
    lows, highs = np.sort(low), np.sort(high)

    def n_holding(values: Positions) -> Positions:
        """How many ranges hold each value."""
        begun = np.searchsorted(lows, values, side="right")
        result: Positions = begun - np.searchsorted(highs, values, side="left")
        return result

    # A range is deepest where another one begins, or at its own beginning.
    points = np.unique(low)
    depths = _greatest(
        n_holding(points),
        np.searchsorted(points, low, side="left"),
        np.searchsorted(points, high, side="right"),
    )
    asked = n_holding(np.concatenate([low, high])) + n_unknown
    return ColumnQuality(
        info.name,
        n_files - n_unknown,
        float(depths.mean()) + n_unknown,
        float(_n_met(low, high).mean()) - 1 + n_unknown,
        float(asked.mean()) / n_files,
    )


def _n_met(low: Positions, high: Positions) -> Positions:
    """How many of the ranges each of them meets, itself included."""
    begun = np.searchsorted(np.sort(low), high, side="right")
    result: Positions = begun - np.searchsorted(np.sort(high), low, side="left")
    return result


def _greatest(values: Positions, start: Positions, stop: Positions) -> Positions:
    """The greatest of ``values[start:stop]`` for each pair; none is empty."""
    # Two overlapping runs of a power of two cover every interval.
    levels = [values]
    while (width := 1 << (len(levels) - 1)) * 2 <= len(values):
        levels.append(np.maximum(levels[-1][:-width], levels[-1][width:]))
    level = np.frexp((stop - start).astype(np.float64))[1] - 1
    result = np.empty(len(start), np.int64)
    for i, runs in enumerate(levels):
        at = level == i
        result[at] = np.maximum(runs[start[at]], runs[stop[at] - (1 << i)])
    return result


def _query(
    table: TableState,
    query: str | Predicate,
    n_rows: int,
    spark: SparkSession | None,
) -> QueryQuality:
    plan: Plan = plan_files(query, table=table)
    matching: tuple[int, int | None] = plan.count_bounds
    if spark is not None:
        n_matching = plan.read(spark).count()
        matching = (n_matching, n_matching)
    n_known = int(table.n_rows.known.sum())
    ideal: tuple[int, int | None] = (0, None)
    if n_rows:
        least, most = (
            None if n is None else -(-n * n_known // n_rows) for n in matching
        )
        ideal = (least or 0, most)
    text = query if isinstance(query, str) else to_sql(query)
    return QueryQuality(text, len(plan.paths), matching, ideal)


def _between(bounds: tuple[int, int | None]) -> str:
    least, most = bounds
    if least == most:
        return f"{least:,}"
    return f"{least:,}-{'?' if most is None else f'{most:,}'}"
