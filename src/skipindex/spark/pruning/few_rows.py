"""The rows of a scan that can match, where they are few; Spark's condition decides.

Spark evaluates its own condition on them, so they may be more than match.  What is not
certainly read as Spark would read it is left to Spark.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.errors import UnsupportedTypeError
from skipindex.expressions.arrays import Ints
from skipindex.planner.file_tasks import selections
from skipindex.planner.plan import Plan
from skipindex.planner.rows.dataset import Files
from skipindex.planner.rows.selected import Bytes, rows_at
from skipindex.source import DataFile
from skipindex.spark.pruning.protocol import WantedRows, arrow_stream
from skipindex.spark.pruning.tables import ScannedTable
from skipindex.table import TableState

_PAGES: Final = 16
"""Bytes of pages that may be read for each byte of rows that is wanted at most; for
half of the columns' bytes or more it is one, as tasks read them together."""
_FILES: Final = 100
"""Files from which rows are read; tasks read more files sooner than one process."""
_REBASED: Final = date(1900, 1, 1)
"""Earlier days and times are other ones in files and settings of the old calendar."""
_TYPES: Final = {
    *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32()),
    *(pa.timestamp("us"), pa.timestamp("us", "UTC")),
}
"""Types whose values have one form in Spark, whatever its settings; decimals too."""


@dataclass(frozen=True, slots=True)
class FewRows:
    """The rows of a scan.

    Args:
        rows: file by file, in the order of ``files``.
        files: the files to read, by their positions in the listing.
        counts: of each the number of rows.
        n_bytes: of the pages that were read, as stored.
    """

    rows: pa.Table
    files: Ints
    counts: Ints
    n_bytes: int

    def to_bytes(self) -> bytes:
        """The bytes, counts and a stream of Arrow, for ``PlannedRows.java``."""
        pairs = np.stack([self.files, self.counts], axis=1).astype("<i4")
        head = struct.pack("<qi", self.n_bytes, len(pairs))
        return head + pairs.tobytes() + arrow_stream(self.rows)


def few_rows(
    scanned: ScannedTable, plan: Plan | None, wanted: WantedRows, timezone: str | None
) -> FewRows | None:
    """The rows of a plan that can match; None if they are too many, or files changed.

    Raises:
        SkipIndexError: Spark may read other values, or a file changed.
    """
    if plan is None or plan.table.source.has_versions:
        return None
    table, files = plan.table, np.flatnonzero(plan.evaluation.possible)
    n_rows = table.n_rows.or_else(-1)[files]
    if len(files) > _FILES or (n_rows < 0).any():
        return None
    if n_rows[plan.evaluation.certain[files]].sum() > wanted.rows:
        return None
    # The rows of a sample may tell, before those of all other files are counted.
    if sum(one.lower for one in plan.evaluation.rows.values()) > wanted.rows:
        return None
    if plan.row_counts.upper[files].sum() > wanted.rows:
        return None
    reader = _StrictFiles(
        table,
        files.tolist(),
        timezone=timezone,
        case_sensitive=plan.session.case_sensitive,
    )
    reader.wanted = pa.schema([_field(table, name) for name in wanted.columns])
    rows = [
        np.arange(n) if one.rows is None else one.rows
        for n, one in zip(n_rows, selections(plan.evaluation, files), strict=True)
    ]
    counts = np.array([*map(len, rows)], np.int64)
    if counts.sum() > wanted.rows:
        return None
    n_bytes = 0

    def is_worth(size: Bytes) -> bool:
        nonlocal n_bytes
        n_bytes = size.pages
        is_part = 2 * n_bytes <= size.whole
        return n_bytes <= (_PAGES * wanted.bytes if is_part else wanted.bytes)

    pairs = zip(files.tolist(), rows, strict=True)
    there = {file: one for file, one in pairs if len(one)}
    result: pa.Table | None = reader.wanted.empty_table()
    if there:
        result = rows_at(reader, there, reader.wanted, (), is_worth)
    if result is None or result.nbytes > wanted.bytes or any(map(_is_old, result)):
        return None
    # What was read, and what was left out, is still so.
    if not scanned.unchanged(np.arange(len(scanned.state))).all():
        return None
    return FewRows(result.combine_chunks(), files, counts, n_bytes)


class _StrictFiles(Files):
    """Files that have the wanted columns in just the types of the table."""

    wanted: pa.Schema = pa.schema([])

    @contextmanager
    def opened(self, i: int) -> Iterator[tuple[DataFile, pa.NativeFile]]:
        """A file that is checked."""
        with super().opened(i) as (file, source):
            stored = file.schema_arrow
            for field in self.wanted:
                if field.name in stored.names:
                    _check_same(file, stored.field(field.name), field.type)
            yield file, source


def _check_same(file: DataFile, stored: pa.Field, wanted: pa.DataType) -> None:
    """Raise ``UnsupportedTypeError`` if Spark may convert, or refuse, a column."""
    dtype = stored.type
    if pa.types.is_timestamp(wanted):
        leaves = [file.schema.column(i) for i in range(len(file.schema))]
        (leaf,) = (one for one in leaves if one.path == stored.name)
        is_zoned = leaf.physical_type == "INT96" or dtype.tz is not None
        is_same = dtype.unit == "us" and is_zoned == (wanted.tz is not None)
    else:
        is_same = dtype == wanted
    if not is_same:
        raise UnsupportedTypeError(f"column {stored.name!r} has type {dtype} here")


def _field(table: TableState, name: str) -> pa.Field:
    """A column of the files; ``UnsupportedTypeError`` if Spark may read another one."""
    # Of a part of the table, Spark reads what the files have of a column of folders.
    folders = {name.lower() for p in table.partitions for name in (p.name, *p.names)}
    places = table.schema.get_all_field_indices(name)
    if len(places) != 1 or "." in name or name.lower() in folders:
        raise UnsupportedTypeError(f"column {name!r} is not one of the files alone")
    field = table.schema.field(places[0]).remove_metadata()
    if not (field.type in _TYPES or pa.types.is_decimal128(field.type)):
        raise UnsupportedTypeError(f"column {name!r} has type {field.type}")
    return field


def _is_old(column: pa.ChunkedArray) -> bool:
    """Whether a day or time has another value in the old calendar, or none there."""
    if not pa.types.is_temporal(column.type):
        return False
    least = pc.min(column)
    first = pa.scalar(_REBASED).cast(column.type)
    return bool(least.is_valid and pc.less(least, first).as_py())
