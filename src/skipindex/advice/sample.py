"""A sample of a table: some complete files, and the columns that may get an index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.build.task import read_column, reason
from skipindex.conditions.bound_predicate import Computed, Leaf
from skipindex.errors import UnsupportedTypeError, one_line
from skipindex.expressions.atoms import Value
from skipindex.expressions.bounds import Bounds
from skipindex.expressions.domain import Domain
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.planner.stages.computed import probe_stats
from skipindex.storage.telling import part
from skipindex.table import ColumnInfo, TableState
from skipindex.table.statistics import FileStats
from skipindex.table.summaries import summaries_to_arrow, summarize

MIN_FILES: Final = 2


@dataclass(frozen=True, slots=True)
class SampleSize:
    """The most files of a sample, and about its most rows."""

    files: int
    rows: int


SMALL_SAMPLE: Final = SampleSize(8, 300_000)
LARGE_SAMPLE: Final = SampleSize(24, 1_000_000)
"""For a workload, because each query may concern only a few of the files."""


@dataclass(frozen=True)
class SampledColumn:
    """One column of the sampled files.

    Args:
        name: as the schema spells it.
        domain: of its values.
        files: the column in each file of the sample.
    """

    name: str
    domain: Domain
    files: Sequence[EncodedColumn]

    @cached_property
    def stats(self) -> FileStats:
        """The statistics that the manifest will have of the sampled files."""
        summaries = [summarize(column) for column in self.files]
        n_rows = pa.array([column.n_rows for column in self.files], pa.int64())
        return FileStats.from_arrow(summaries_to_arrow(summaries, self.domain), n_rows)

    @property
    def n_distinct(self) -> float:
        """Distinct values of a file, on average."""
        return float(np.mean([column.n_distinct for column in self.files]))

    @property
    def null_share(self) -> float:
        """The part of the rows that is NULL."""
        nulls = sum(column.null_count for column in self.files)
        return nulls / max(1, sum(column.n_rows for column in self.files))

    @cached_property
    def run_length(self) -> float:
        """How many neighbouring rows have the same value, on average."""
        runs = sum(
            1 + int(np.count_nonzero(column.codes[1:] != column.codes[:-1]))
            for column in self.files
            if column.n_rows
        )
        return sum(column.n_rows for column in self.files) / max(1, runs)

    @cached_property
    def overlap(self) -> float:
        """In what part of the files a value of one lies between minimum and maximum.

        1 if every file spans all values, so that min/max does not distinguish them.
        """
        lows = [column.minimum for column in self.files]
        highs = [column.maximum for column in self.files]
        spans = [
            (low, high)
            for low, high in zip(lows, highs, strict=True)
            if low is not None and high is not None
        ]
        hits = [
            low <= value <= high  # type: ignore[operator]  # one domain, one type
            for column in self.files
            if column.null_count < column.n_rows
            for place in (0.1, 0.5, 0.9)
            for value in (self.value(column, int(place * column.n_distinct)),)
            for low, high in spans
        ]
        return float(np.mean(hits)) if hits else 1.0

    def value(self, column: EncodedColumn, code: int) -> Value:
        """The value of a code of one of the files."""
        distinct = column.distinct
        if isinstance(distinct, np.ndarray):
            return int(distinct[code])
        value: bytes = distinct[code].as_py()
        return value

    def rank(self, column: EncodedColumn, value: Value) -> int:
        """How many distinct values of the file are below ``value``."""
        distinct = column.distinct
        if isinstance(distinct, np.ndarray):
            return int(np.searchsorted(distinct, value))
        below = pc.less(distinct, pa.scalar(value, distinct.type))
        return int(pc.sum(below).as_py() or 0)


@dataclass(frozen=True)
class Sample:
    """Some files of a table.

    Args:
        table: the table.
        files: their places in ``table.paths``.
        n_rows: of each.
        columns: by name; those that can have an index.
        notes: what was omitted, and why.
    """

    table: TableState
    files: Sequence[int]
    n_rows: Sequence[int]
    columns: dict[str, SampledColumn]
    notes: Sequence[str] = field(default=())

    @property
    def n_bytes(self) -> int:
        """The size of the sampled files."""
        return int(self.table.sizes[np.array(self.files, np.int64)].sum())

    @property
    def scale(self) -> float:
        """How many times the table is larger than the sample."""
        return float(self.table.sizes.sum()) / max(1, self.n_bytes)

    def stats(self, leaf: Leaf | Computed) -> Bounds[np.ndarray]:
        """What paths and min/max statistics say of ``leaf``, for the sampled files."""
        if leaf.column in self.columns:
            return probe_stats(self.columns[leaf.column].stats, leaf)
        column = self.table.stored(leaf.column)
        assert column.domain is not None
        if column.is_partition:
            bounds = probe_stats(self.table.stats(column), leaf)
            files = list(self.files)
            return Bounds(bounds.lower[files], bounds.upper[files])
        return probe_stats(FileStats.unknown(len(self.files), column.domain), leaf)


def take_sample(
    table: TableState,
    columns: Sequence[ColumnInfo],
    size: SampleSize = SMALL_SAMPLE,
    places: Sequence[int] | None = None,
) -> Sample:
    """Some files from all parts of the table, or those at ``places``, with ``columns``.

    A column is omitted and noted if a file has it in another type, or if no file has
    it readable: no index could be built on it.  A file is omitted and noted if it, or
    one of the other columns in it, cannot be read.
    """
    notes: list[str] = []
    taken: list[_Read] = []
    others: set[str] = set()
    n_whole = n_rows = 0
    looked_at = _places(len(table), size.files) if places is None else places
    tell = part("sampling", "files", len(looked_at))
    for n_done, at in enumerate(looked_at):
        tell(n_done)
        path = one_line(table.paths[at])
        try:
            one = _read(table, at, columns)
        except Exception as error:  # noqa: BLE001 (one file never ends the advice)
            notes.append(f"{path}: not readable: {reason(error)}")
            continue
        if not one.n_rows:
            continue
        taken.append(one)
        notes += [f"{path}: {text}" for text in (*one.failed, *one.other.values())]
        others |= one.other.keys()
        if not one.failed:
            n_whole += 1
            n_rows += one.n_rows
            enough = n_whole >= MIN_FILES and n_rows + one.n_rows > size.rows
            if enough and places is None:
                break
    tell(len(looked_at))
    if not taken:
        notes.append("no sampled file has a row")
    mine = [c for c in columns if c.name not in others]
    mine = [c for c in mine if any(c.name in one.columns for one in taken)]
    whole = [one for one in taken if all(c.name in one.columns for c in mine)]
    if not whole:
        whole = taken
        mine = [c for c in mine if all(c.name in one.columns for one in taken)]
    sampled = {
        c.name: SampledColumn(c.name, c.domain, [one.columns[c.name] for one in whole])
        for c in mine
        if c.domain is not None and whole
    }
    files, rows = [one.at for one in whole], [one.n_rows for one in whole]
    return Sample(table, files, rows, sampled, tuple(notes))


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read of one file.

    Args:
        at: its place in ``table.paths``.
        n_rows: of the file.
        columns: that could be read, by name.
        failed: why some could not.
        other: why some cannot have an index, by name.
    """

    at: int
    n_rows: int
    columns: dict[str, EncodedColumn] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    other: dict[str, str] = field(default_factory=dict)


def _read(table: TableState, at: int, columns: Sequence[ColumnInfo]) -> _Read:
    names = {column.name for column in columns}
    with table.opened(at, encoded=names) as file:
        result = _Read(at, int(file.metadata.num_rows))
        for column in columns if result.n_rows else ():
            name, domain = column.name, column.domain
            assert domain is not None
            try:
                result.columns[name] = read_column(file, column.place, domain)
            except UnsupportedTypeError as error:
                result.other[name] = str(error)
            except Exception as error:  # noqa: BLE001 (nor does one column)
                result.failed.append(f"column {name!r}: not readable: {reason(error)}")
        return result


def _places(n_files: int, n_wanted: int) -> list[int]:
    """Files to look at; however many are taken, they are spread over the table."""
    n = min(n_wanted, n_files)
    places = [int((i + 0.5) * n_files / n) for i in range(n)]
    # 0, 1/2, 1/4, 3/4, 1/8 …: the bits of the counter, mirrored.
    width = max(1, (n - 1).bit_length())
    order = [int(f"{i:0{width}b}"[::-1], 2) for i in range(1 << width)]
    return [places[i] for i in order if i < n]
