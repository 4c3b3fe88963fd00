"""Summaries: the statistics of one column of one file, as a manifest stores them.

They are no payload in a pack but columns of the manifest, one row a data file::

    null_count  int64         null: not known (which is not zero, and not all)
    nan_count   int64         null: not known, or the column holds no floats
    low, high   int64 or large_binary: bounds in the column's domain; both null
                where no value is known
    low_exact, high_exact  whether the bound is a value of the file

The bounds are taken from the values, never from a Parquet footer: footers leave
NaN out, and some writers cut strings inside a character (delta-io/delta 3430,
apache/iceberg 11161, and our tests name more).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from skipindex.expressions.atoms import Value
from skipindex.expressions.domain import Domain
from skipindex.indexes import EncodedColumn
from skipindex.log.manifest import summary_type

MAX_BYTES: Final = 64
"""Bytes of a bound after those that both bounds of a file begin with.  Longer byte
strings are cut: the low bound down, the high bound up."""
MOST_BYTES: Final = 2048
"""Bytes of a bound in all: texts such as URLs and object keys begin alike for long."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The statistics of one column of one file; None is "not known"."""

    null_count: int | None
    nan_count: int | None
    low: Value | None
    high: Value | None
    low_exact: bool = True
    high_exact: bool = True


UNKNOWN: Final = Summary(None, None, None, None)
"""The summary of a column that a file lacks, or has with another type."""


def summarize(column: EncodedColumn) -> Summary:
    """The statistics of ``column``; long byte strings are cut, and marked so."""
    low, high = column.minimum, column.maximum
    nan_count = column.nan_count if column.domain.name == "float" else None
    if not isinstance(low, bytes) or not isinstance(high, bytes):
        return Summary(column.null_count, nan_count, low, high)
    pairs = enumerate(zip(low[:MOST_BYTES], high, strict=False))
    alike = next((i for i, (a, b) in pairs if a != b), len(low))
    n_bytes = min(alike + MAX_BYTES, MOST_BYTES)
    short_low, short_high = low[:n_bytes], _cut_up(high, n_bytes)
    return Summary(
        column.null_count,
        nan_count,
        short_low,
        short_high,
        low_exact=short_low == low,
        high_exact=short_high == high,
    )


def _cut_up(high: bytes, n_bytes: int) -> bytes:
    """A short upper bound: the prefix, raised by one.  Errs upwards."""
    if len(high) <= n_bytes:
        return high
    # Bytes are compared, not characters, so there is no code point to cut.
    prefix = high[:n_bytes].rstrip(b"\xff")
    if not prefix:  # nothing shorter is above it
        return high
    return prefix[:-1] + bytes([prefix[-1] + 1])


def summaries_to_arrow(rows: Sequence[Summary | None], domain: Domain) -> pa.Array:
    """The manifest's statistics column; None is "nothing known of this file"."""
    names = [field.name for field in summary_type(domain)]
    records = [r and {name: getattr(r, name) for name in names} for r in rows]
    return pa.array(records, summary_type(domain))
