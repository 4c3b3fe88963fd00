"""What the newest commit knows of a table's files and columns.

A file that the newest commit does not know, or knows with another size or modification
mark, has no index.  Of the others there are statistics, index blobs and file maps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.conditions.columns import ColumnInfo
from skipindex.conditions.functions.zones import in_any_zone
from skipindex.expressions.domain import Domain
from skipindex.indexes.file_map import FILE_MAP
from skipindex.log.manifest import (
    Manifest,
    StatsColumn,
    as_one_array,
    joined,
    summary_type,
)
from skipindex.source.log_statistics import LogStatistics
from skipindex.source.partitions.hive import PartitionColumn
from skipindex.storage.blobs import BlobUse
from skipindex.table.schema import Columns
from skipindex.table.statistics import FileStats

Instants: TypeAlias = Callable[[int], tuple[int, int]]
"""Maps a local time in microseconds to the first and last instant that it may be."""


@dataclass(frozen=True)
class ColumnIndexes:
    """What is stored of every column, in the order of the table's files.

    ``rows`` has for every file of the table its row in the manifest, or -1.  The values
    of ``partitions`` stand in the paths, and ``instants`` is what their local times may
    be.  ``of_log`` has what the log of another format says of the files.  If
    ``exact_names``, capitals tell names apart.
    """

    manifest: Manifest
    rows: np.ndarray
    columns: Columns
    partitions: Sequence[PartitionColumn]
    instants: Instants = in_any_zone
    of_log: LogStatistics | None = None
    exact_names: bool = False
    _blobs: list[dict[str, list[BlobUse]]] = field(default_factory=list, repr=False)
    """Once a column is requested: all blobs by name.  Copies share it."""
    _stats: dict[str, FileStats] = field(default_factory=dict, init=False, repr=False)
    _fitting: dict[str, np.ndarray | None] = field(
        default_factory=dict, init=False, repr=False
    )
    """Files whose values fit a column's type, by column; None is all."""

    @cached_property
    def respelled(self) -> set[str]:
        """The names that something is built under, and no column has."""
        if self.exact_names:
            return set()
        manifest = self.manifest
        built = {blob.meta.column for pack in manifest.packs for blob in pack.blobs}
        known = {n for leaf in self.columns.leaves for n in leaf.stored_names}
        return {*manifest.stats, *built} - known

    def spellings(self, column: ColumnInfo) -> list[str]:
        """The names that ``column`` has in the manifest, its own first.

        This alone says what is stored for a column of a reader.  For a partition
        column nothing is: its values stand in the folders, and it hides what the files
        hold under its name, in whatever capitals.
        """
        if column.is_partition:
            return []
        folded = column.name.lower()
        others = [name for name in self.respelled if name.lower() == folded]
        if not others or not self.columns.is_alone(column):
            return column.stored_names
        return [*column.stored_names, *sorted(others)]

    def stats(self, column: ColumnInfo) -> FileStats:
        """What is known of ``column`` in every file, in the order of ``paths``.

        Of files whose values Spark reads as they are stored; of others, nothing.  One
        without a value can be without the column, and have its default.
        """
        assert column.domain is not None
        if column.name not in self._stats:
            stats = self._load_stats(column, column.domain)
            span = None if column.is_partition else column.domain.span
            fitting = None if span is None else stats.within(*span)
            if column.has_default:
                fitting = stats.bounded if fitting is None else stats.bounded & fitting
            if fitting is not None and fitting.all():
                fitting = None
            self._fitting[column.name] = fitting
            self._stats[column.name] = stats if fitting is None else stats.only(fitting)
        return self._stats[column.name]

    def blobs(self, column: ColumnInfo) -> list[BlobUse]:
        """The index blobs of ``column``, newest first; rows are those of ``paths``.

        Only of files whose values Spark reads as they are stored.
        """
        uses = self._as_read(column)
        return [use for use in uses if use.entry.meta.kind != FILE_MAP]

    def maps(self, column: ColumnInfo) -> list[BlobUse]:
        """The file maps of ``column``, as ``blobs``."""
        uses = self._as_read(column)
        return [use for use in uses if use.entry.meta.kind == FILE_MAP]

    def _as_read(self, column: ColumnInfo) -> list[BlobUse]:
        """The blobs, without the files where a value does not fit the column's type."""
        self.stats(column)
        fitting, uses = self._fitting[column.name], self.built(column)
        if fitting is None:
            return uses
        mine = [fitting[use.rows] for use in uses]
        return [
            replace(use, rows=use.rows[own], slots=use.slots[own])
            for use, own in zip(uses, mine, strict=True)
        ]

    def built(self, column: ColumnInfo) -> list[BlobUse]:
        """All blobs of ``column``, also of files where Spark reads other values."""
        if not self._blobs:
            self._blobs.append(fresh_blobs(self.manifest, self.rows))
        assert column.domain is not None
        tag = column.domain.tag
        names = self.spellings(column)
        uses = [use for name in names for use in self._blobs[0].get(name, [])]
        return [use for use in uses if use.entry.meta.domain == tag]

    def _partition_stats(self, column: PartitionColumn, domain: Domain) -> FileStats:
        values = column.typed(domain)
        if domain.name != "timestamp":
            return FileStats.of_values(values, domain)
        bounds = {wall: self.instants(wall) for wall in values if type(wall) is int}
        lows, highs = (
            [None if wall is None else bounds[wall][i] for wall in values]  # type: ignore[index]
            for i in (0, 1)
        )
        return FileStats.of_values(lows, domain, highs=highs)

    def _load_stats(self, column: ColumnInfo, domain: Domain) -> FileStats:
        for partition in self.partitions:
            if column.is_partition and partition.name == column.own_name:
                return self._partition_stats(partition, domain)
        manifest = self.manifest
        known = [manifest.stats.get(name) for name in self.spellings(column)]
        mine = [s.values for s in known if s is not None and _is_of(s, domain)]
        columns = [take(first_counted(mine), self.rows)] if mine else []
        n_rows = take(as_one_array(manifest.files["n_rows"]), self.rows)
        if self.of_log is not None:
            # Last, so that it stands for the files that no index has counted.
            columns.append(self.of_log.column(column.name, domain))
            n_rows = pc.coalesce(n_rows, self.of_log.n_rows)
        if not columns:
            return FileStats.unknown(len(self.rows), domain)
        return FileStats.from_arrow(first_counted(columns), n_rows)


def _is_of(stats: StatsColumn, domain: Domain) -> bool:
    """Whether statistics are of values in this domain."""
    return stats.domain == domain.tag and stats.kind == summary_type(domain)


def take(values: pa.Array, rows: np.ndarray) -> pa.Array:
    """``values`` at ``rows``; null where the row is -1."""
    if is_every_row(rows, len(values)):
        return values
    return values.take(pa.array(rows, mask=rows < 0))


def is_every_row(rows: np.ndarray, n_rows: int) -> bool:
    """Whether ``rows`` are all rows of a manifest in their order."""
    # The ends tell almost always that they are not.
    if len(rows) != n_rows or (n_rows and (rows[0] != 0 or rows[-1] != n_rows - 1)):
        return False
    return np.array_equal(rows, np.arange(n_rows))


def first_counted(columns: Sequence[pa.StructArray]) -> pa.StructArray:
    """For every file the first statistics with counts, of columns of one kind.

    Without any it is the last column's.
    """
    if len(columns) == 1:
        return columns[0]
    n = len(columns[0])
    counted = [np.asarray(pc.struct_field(c, "null_count").is_valid()) for c in columns]
    counted[-1] = np.ones(n, np.bool_)
    which = np.argmax(counted, axis=0)
    return joined(columns).take(pa.array(which * n + np.arange(n)))


def files_by_row(manifest: Manifest, rows: np.ndarray) -> np.ndarray:
    """Map manifest rows to positions of files; -1 for row -1, and without a file."""
    files: np.ndarray = np.full(len(manifest) + 1, -1, np.int64)
    files[rows] = np.arange(len(rows))
    files[-1] = -1
    return files


def fresh_blobs(manifest: Manifest, rows: np.ndarray) -> dict[str, list[BlobUse]]:
    """The index blobs of files that did not change, by column and newest first.

    ``rows`` has of every file its row in the manifest or -1, as ``match`` says.
    """
    file_of_row = files_by_row(manifest, rows)
    result: dict[str, list[BlobUse]] = {}
    for use in reversed(manifest.blobs()):
        files = file_of_row[use.rows]
        fresh = files >= 0
        mine = replace(use, rows=files[fresh], slots=use.slots[fresh])
        result.setdefault(use.entry.meta.column, []).append(mine)
    return result
