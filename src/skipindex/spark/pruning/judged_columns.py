"""The columns of a scan whose values the planner reads as Spark does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from skipindex.errors import PlanError
from skipindex.source import declared_schema
from skipindex.source.field_ids import Names, field_id_name
from skipindex.spark.pruning.protocol import Iceberg, Scan
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
    otherwise, and so may a log that Spark does not read.
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
    if scan.is_catalog_table or state.source.has_versions:
        return judged
    for column in state.partitions:
        kind = partitions.get(column.name, "")
        is_same = (
            column.dtype is not None and _PARTITION_TYPES.get(kind) == column.dtype
        )
        if is_same and len(column.names) == 1:
            judged[column.name] = kind
    return judged


def columns_of_iceberg(
    state: TableState, scan: Scan, read: Iceberg
) -> Mapping[str, str]:
    """Like ``judged_columns``: those of the same field ids and types in Iceberg.

    Raises:
        PlanError: the table was opened at another snapshot.
    """
    log, declared = state.source, declared_schema(scan.data)
    if log.version != read.snapshot or declared is None:
        raise PlanError(f"the scan reads snapshot {read.snapshot} of the table")
    read_as = {field_id_name(int(i)): name for i, name in read.names.items()}

    def is_same(field: pa.Field, owner: pa.Schema | pa.StructType, path: Names) -> bool:
        place = log.places.get(path, ("",))
        i = owner.get_field_index(field.name)
        if i < 0 or "." in field.name or read_as.get(place[-1]) != ".".join(path):
            return False
        own = owner.field(i).type
        if not (pa.types.is_struct(own) and pa.types.is_struct(field.type)):
            return bool(own == field.type)
        return all(is_same(inner, own, (*path, inner.name)) for inner in field.type)

    return {
        field.name: scan.data_types[field.name]
        for field in declared[0]
        if is_same(field, state.schema, (field.name,))
    }
