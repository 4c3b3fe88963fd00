"""The columns of a scan whose values the planner reads as Spark does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from skipindex.spark.pruning.protocol import Scan
from skipindex.table import TableState

_PARTITION_TYPES: Final[Mapping[str, pa.DataType]] = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "date": pa.date32(),
}
"""Types under which a folder's name has one value, whatever the session's settings."""


def judged_columns(
    state: TableState, scan: Scan, *, case_sensitive: bool
) -> Mapping[str, str]:
    """The types of columns, as a catalog writes them, by the names of the scan.

    A column of the files is one that no partition column hides.  A partition column is
    one that Spark takes from the folders' names, as the table does: a catalog may say
    otherwise.
    """
    data, partitions = scan.data_types, scan.partitions_types
    taken = {*partitions, *(n for p in state.partitions for n in p.names)}
    if not case_sensitive:
        taken = {name.lower() for name in taken}
    judged = {
        name: kind
        for name, kind in data.items()
        if (name if case_sensitive else name.lower()) not in taken
    }
    if scan.is_catalog_table:
        return judged
    for column in state.partitions:
        kind = partitions.get(column.name, "")
        is_same = (
            column.dtype is not None and _PARTITION_TYPES.get(kind) == column.dtype
        )
        if is_same and len(column.names) == 1:
            judged[column.name] = kind
    return judged
