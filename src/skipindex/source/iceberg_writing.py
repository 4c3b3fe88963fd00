"""Files of an Iceberg table that replace others, by a commit in its catalog.

The columns of a file are known by their field ids; a file is replaced only if Spark
reads by them what a reader of Iceberg does, and writes it with the same types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from skipindex.source.field_ids import number_of
from skipindex.source.parquet.partial_statistics import PartialStatistics
from skipindex.source.parquet.stored import is_hybrid
from skipindex.storage.file_system.location import FileInfo, Location

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableRequirement, TableUpdate

_WRITTEN: Final = frozenset(
    {
        *("BooleanType", "IntegerType", "LongType", "FloatType", "DoubleType"),
        *("DecimalType", "DateType", "TimestampType", "TimestamptzType"),
        *("StringType", "BinaryType", "StructType"),
    }
)
"""Types of columns that Spark stores as Iceberg does, with field ids."""
_ROW_IDS: Final = 3
"""The version of the format that numbers the rows."""
_REFUSED: Final[Mapping[str, str]] = {
    "encryption.key-id": "it is encrypted",
    "write.object-storage.enabled": "its files are spread over a store",
}
"""Properties of tables whose files are not replaced, and what they say."""


def why_not_written(metadata: TableMetadata) -> str:
    """Why files of the table are not replaced; empty if they can be."""
    if metadata.format_version >= _ROW_IDS:
        return f"its rows have ids (version {metadata.format_version} of the format)"
    for name, why in _REFUSED.items():
        if metadata.properties.get(name, "false").lower() != "false":
            return why
    return _other_type(metadata.schema().fields)


def _other_type(fields: Sequence[Any]) -> str:
    for one in fields:
        if type(one.field_type).__name__ not in _WRITTEN:
            return f"{one.name!r} is of type {one.field_type}"
        if why := _other_type(getattr(one.field_type, "fields", ())):
            return why
    return ""


def unlike(
    location: Location, path: str, columns: Schema, plain: pa.Schema, filled: set[int]
) -> str:
    """Why Spark, by field ids, would read other rows of a file; empty if not.

    ``plain`` has the types of the columns.  Those of ``filled`` are not NULL where a
    file lacks them.

    Raises:
        ArrowException, OSError, ValueError: the file cannot be read.
    """
    with location.open_input(path) as source:
        file = pq.ParquetFile(source)
        stored, metadata = file.schema_arrow, file.metadata
        if is_hybrid(metadata.metadata or {}):
            return "it has dates of the old hybrid calendar"
        leaves = (file.schema.column(i) for i in range(metadata.num_columns))
        if any(leaf.physical_type == "INT96" for leaf in leaves):
            return "it has times of 96 bits"
    return _unlike(columns.fields, stored, plain, filled)


def _unlike(
    fields: Sequence[Any],
    stored: pa.Schema | pa.StructType,
    plain: pa.Schema | pa.StructType,
    filled: set[int],
) -> str:
    by_id = {number_of(one): one for one in stored}
    if None in by_id or len(by_id) != len(list(stored)):
        return "its columns have no field ids"
    now = {one.name.lower(): one.field_id for one in fields}
    for number, one in by_id.items():
        # Spark takes the type of a column from the name that the file has for it.
        if now.get(one.name.lower(), number) != number:
            return f"another column is named {one.name!r} now"
    for one in fields:
        if one.field_id not in by_id:
            # Spark takes a struct for NULL that has none of the fields it asks for.
            is_inside = isinstance(plain, pa.StructType)
            if is_inside or one.field_id in filled or one.required:
                return f"it lacks {one.name!r}"
            continue
        dtype, wanted = by_id[one.field_id].type, plain.field(one.name).type
        if pa.types.is_struct(dtype) and pa.types.is_struct(wanted):
            if why := _unlike(one.field_type.fields, dtype, wanted, filled):
                return why
        elif dtype != wanted and _large(dtype) != _large(wanted):
            return f"it has {one.name!r} as {dtype}, and the table as {wanted}"
    return ""


def _large(dtype: pa.DataType) -> pa.DataType:
    """The type with offsets of 64 bits."""
    if pa.types.is_string(dtype):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary(dtype) else dtype


def filled_columns(table: Table) -> set[int]:
    """The columns that a file without them does not hold NULL of."""
    result = {part.source_id for spec in table.specs().values() for part in spec.fields}
    fields = table.schema().fields
    return result | {f.field_id for f in fields if f.initial_default is not None}


def data_file(
    location: Location, file: FileInfo, like: tuple[str, DataFile], known: TableMetadata
) -> DataFile:
    """A new file as a manifest has it, with statistics from its footer.

    ``like`` is the path of a file that it replaces, and that file.
    """
    from pyiceberg.io.pyarrow import (  # noqa: PLC0415 (of the extra "iceberg")
        compute_statistics_plan,
        data_file_statistics_from_parquet_metadata,
        parquet_path_to_id_mapping,
    )
    from pyiceberg.manifest import DataFile, DataFileContent  # noqa: PLC0415

    with location.open_input(file.path) as source:
        footer = pq.read_metadata(source)
    ids = parquet_path_to_id_mapping(known.schema())
    statistics = data_file_statistics_from_parquet_metadata(
        footer, compute_statistics_plan(known.schema(), known.properties), ids
    )
    # pyiceberg goes by the row groups that say something, and takes NaN for a bound.
    partial = PartialStatistics.of(footer)
    for name in partial.bounds:
        statistics.column_aggregates.pop(ids[name], None)
    for name in partial.nulls:
        statistics.null_value_counts.pop(ids[name], None)
    bounds = statistics.to_serialized_dict()
    _widen_zeros(bounds, known.schema())
    old_path, old = like
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=old.file_path.removesuffix(old_path) + file.path,
        file_format=old.file_format,
        partition=old.partition,
        file_size_in_bytes=file.size,
        sort_order_id=None,
        spec_id=old.spec_id,
        equality_ids=None,
        key_metadata=None,
        **bounds,
    )


def _widen_zeros(statistics: Mapping[str, dict[int, bytes]], columns: Schema) -> None:
    """Make a bound of 0.0 hold -0.0 too, and the reverse."""
    # Iceberg's order puts -0.0 first, and a condition takes the two for equal.
    for name, sign in (("lower_bounds", b"\x80"), ("upper_bounds", b"\x00")):
        for number, bound in statistics[name].items():
            is_number = str(columns.find_type(number)) in {"float", "double"}
            if is_number and not any(bound[:-1]) and bound[-1] in {0x00, 0x80}:
                statistics[name][number] = bound[:-1] + sign


def replacement(
    table: Table, old: Sequence[DataFile], new: Sequence[DataFile]
) -> tuple[int, tuple[TableUpdate, ...], tuple[TableRequirement, ...]]:
    """A snapshot with files for others: its number, and what a catalog is asked for.

    The catalog refuses it after any commit to the snapshot that ``table`` has.
    """
    from pyiceberg.table.snapshots import Operation, Summary  # noqa: PLC0415
    from pyiceberg.table.update import AddSnapshotUpdate, AssertTableUUID  # noqa: PLC0415

    def as_replacing(update: TableUpdate) -> TableUpdate:
        """Say what pyiceberg cannot: that the rows are those of the snapshot before."""
        if not isinstance(update, AddSnapshotUpdate):
            return update
        known = update.snapshot.summary
        more = {} if known is None else known.additional_properties
        summary = Summary(Operation.REPLACE, **more)
        snapshot = update.snapshot.model_copy(update={"summary": summary})
        return update.model_copy(update={"snapshot": snapshot})

    producer = table.transaction().update_snapshot().overwrite()
    for file in old:
        producer.delete_data_file(file)
    for file in new:
        producer.append_data_file(file)
    # The commit of a transaction would be tried again after other writers' commits.
    updates, requirements = producer._commit()  # noqa: SLF001
    same_table = AssertTableUUID(uuid=table.metadata.table_uuid)
    return (
        producer.snapshot_id,
        tuple(map(as_replacing, updates)),
        (same_table, *requirements),
    )
