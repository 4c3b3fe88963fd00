"""Which statistics of a Parquet footer are those of the file, not of some row groups.

A writer leaves the bounds of a row group out where a text is long or a value is NaN.
The bounds of the other row groups are then no bounds of the file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import pyarrow.parquet as pq

_FLOATS: Final = frozenset({"FLOAT", "DOUBLE"})
_KNOWS_NAN: Final = "parquet-mr"
"""The writer, Spark's, that leaves out the bounds of row groups with NaN, or says NaN.
Others ignore NaN."""


@dataclass(frozen=True, slots=True)
class PartialStatistics:
    """The columns of a file, by their dotted paths, that a footer does not describe.

    Args:
        bounds: a row group has no bounds, though it has values, or NaN for one.
        nulls: a row group does not count its NULLs.
        nan: the file may hold NaN, above its greatest bound.
    """

    bounds: frozenset[str]
    nulls: frozenset[str]
    nan: frozenset[str]

    @classmethod
    def of(cls, footer: pq.FileMetaData) -> PartialStatistics:
        """Return the columns that the footer of one file does not describe."""
        bounds, nulls, nan = set(), set(), set()
        if not (footer.created_by or "").startswith(_KNOWS_NAN):
            leaves = (footer.schema.column(i) for i in range(footer.num_columns))
            nan = {leaf.path for leaf in leaves if leaf.physical_type in _FLOATS}
        for i in range(footer.num_row_groups):
            group = footer.row_group(i)
            for k in range(footer.num_columns):
                column = group.column(k)
                known = column.statistics
                n_nulls = None
                if known is not None and known.has_null_count:
                    n_nulls = known.null_count
                if n_nulls is None:
                    nulls.add(column.path_in_schema)
                if known is None or not known.has_min_max:
                    if n_nulls != group.num_rows:
                        bounds.add(column.path_in_schema)
                elif any(
                    isinstance(end, float) and math.isnan(end)
                    for end in (known.min, known.max)
                ):
                    bounds.add(column.path_in_schema)
        return cls(frozenset(bounds), frozenset(nulls), frozenset(nan))
