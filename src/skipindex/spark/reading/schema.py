"""The schema that Spark gives a table, as a session sees it."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import DataFrameReader, SparkSession
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import NullType, StructField, StructType

from skipindex.errors import PlanError
from skipindex.source import declared_schema
from skipindex.source.field_ids import Names, field_id_of
from skipindex.source.partitions.inference import INSTANT
from skipindex.spark.columns import declared, schema_of, spark_schema
from skipindex.spark.reading.frames import read_paths
from skipindex.spark.settings import is_case_sensitive, is_true, setting
from skipindex.spark.ship import has_driver
from skipindex.storage.file_system.location import Location
from skipindex.table import TableState, open_state

_INFERENCE: Final = "spark.sql.sources.partitionColumnTypeInference.enabled"
_TIMESTAMPS: Final = "spark.sql.timestampType"
_MERGE: Final = "spark.sql.parquet.mergeSchema"
_MAX_FOOTERS: Final = 64
"""Schemas that are remembered for one session."""

_footers: Final = WeakKeyDictionary[
    SparkSession, OrderedDict[tuple[object, ...], StructType]
]()
"""What a session read in footers, which costs a job each; it goes with the session.

The keys are a file with its size and time, and all settings of the session.
"""


def opened_in(
    spark: SparkSession,
    table: TableState | Location | str | os.PathLike[str],
    *,
    plain: bool,
) -> TableState:
    """The table as the session sees it, as far as the caller does not say."""
    opened = open_state(table, plain=plain)
    if is_true(spark, _MERGE) and opened.declared is None:
        # A partition column of NULLs alone has no type; Spark infers that again.
        merged = [f for f in _spark_schema(spark, opened) if f.dataType != NullType()]
        return opened.reopened(declared=declared(StructType(merged)))
    says_types = opened.source.schema is not None or is_true(spark, _INFERENCE)
    if opened is table or says_types:
        return opened
    texts = {p.name: pa.string() for p in opened.partitions if p.raw}
    return opened.reopened(partition_types=texts | opened.partition_types)


def table_schema(spark: SparkSession, table: TableState) -> StructType:
    """The schema that Spark gives the whole table.

    It comes from the file that Spark would take it from, with the partition
    columns typed over all folders and not only over the chosen ones.
    """
    _check_inference(spark, table)
    whole = any(
        partition.dtype is None or len(partition.names) > 1
        for partition in table.partitions
    )
    schema = _spark_schema(spark, table, "" if whole else table.schema_path)
    if table.declared is None and is_true(spark, _MERGE):
        _check_merged(spark, table)
    # A setting takes a call of the JVM, and there may be hundreds of columns.
    folded = str if is_case_sensitive(spark) else str.lower
    fields = {folded(field.name): field for field in schema}
    for partition in table.partitions:
        name = folded(partition.name)
        if not whole or partition.name in table.partition_types:
            # It takes the place of a column of the files that has its name.
            spelled = fields[name].name if whole else partition.name
            fields[name] = StructField(spelled, from_arrow_type(partition.dtype), True)
    return StructType(list(fields.values()))


def with_field_ids(
    schema: StructType, places: Mapping[Names, Names], parent: Names = ()
) -> StructType:
    """The columns with the numbers that files know them by, and no other notes."""
    result = []
    for one in schema:
        path, dtype = (*parent, one.name), one.dataType
        if isinstance(dtype, StructType):
            dtype = with_field_ids(dtype, places, path)
        notes = {"parquet.field.id": field_id_of(places[path][-1])}
        result.append(StructField(one.name, dtype, one.nullable, notes))
    return StructType(result)


def _spark_schema(spark: SparkSession, table: TableState, path: str = "") -> StructType:
    """What Spark reads at a path of the table, with the schema that is declared."""
    if table.declared is None:
        return _inferred(spark, table, path)
    given = spark_schema(table.declared)
    if path:  # no partition column is among these
        own = {field.name for field in table.schema}
        return StructType([field for field in given if field.name in own])
    return _read_schema(spark, spark.read.schema(given), table)


def _inferred(spark: SparkSession, table: TableState, path: str) -> StructType:
    """What Spark infers from a file, or from the whole table if ``path`` is empty."""
    file = table.location.stat(path) if path else None
    if file is None or not has_driver(spark):
        return _read_schema(spark, spark.read, table, path)
    java = spark._jsparkSession  # noqa: SLF001 (no public name gives all settings)
    settings = java.sessionState().conf().getAllConfs().toString()
    key = (table.location, path, file.size, file.mtime, file.tag, settings)
    known = _footers.setdefault(spark, OrderedDict())
    if key not in known:
        known[key] = _read_schema(spark, spark.read, table, path)
        if len(known) > _MAX_FOOTERS:
            known.popitem(last=False)
    return known[key]


def _read_schema(
    spark: SparkSession, reader: DataFrameReader, table: TableState, path: str = ""
) -> StructType:
    place = [table.location.spark_path(path)]
    plain = reader.option("__globPaths__", "false")
    rows = read_paths(spark, plain, table, place, [path] if path else [])
    return schema_of(rows)


def _check_merged(spark: SparkSession, table: TableState) -> None:
    """Raise ``PlanError`` where files have other columns than the table's footer."""
    footer = _spark_schema(spark, table, table.schema_path)
    own = {f.name: f.dataType for f in footer}
    merged = {f.name: f.dataType for f in _spark_schema(spark, table)}
    hidden = {name for p in table.partitions for name in p.names}
    differ = sorted(
        name for name in merged.keys() - hidden if own.get(name) != merged[name]
    )
    if differ:
        raise PlanError(
            f"the session has {_MERGE}=true, and files other than "
            f"{table.schema_path!r} differ in the columns {differ} (accepted: "
            "skipindex.read, or a table that was opened with schema=)"
        )


def typed(table: TableState, schema: StructType) -> TableState:
    """The table, with the types that Spark gives the columns of its files."""
    result = declared_schema(schema.json())
    assert result is not None
    return table.typed(*result)


def _check_inference(spark: SparkSession, table: TableState) -> None:
    """Without type inference Spark takes every partition column for a string."""
    inferred = [
        partition.name
        for partition in table.partitions
        if partition.raw and partition.name not in table.partition_types
    ]
    if is_true(spark, _INFERENCE):
        inferred = []
    instants = [p.name for p in table.partitions if p.dtype == INSTANT]
    if instants and setting(spark, _TIMESTAMPS).upper() != "TIMESTAMP_LTZ":
        raise PlanError(
            f"the session has {_TIMESTAMPS}={setting(spark, _TIMESTAMPS)}, but the "
            f"partition columns {instants} are taken for TIMESTAMP_LTZ"
        )
    if inferred:
        raise PlanError(
            f"the session has {_INFERENCE}=false, but the types of partition columns "
            f"{inferred} were inferred; open the table with partition_types={{…}}"
        )
