"""Files of a table as a DataFrame with the table's schema.

Spark is given the files with their sizes and times, so that it lists nothing again.
Where that cannot be, the files are an explicit path set.  That needs, to be right: the
table's full schema (Spark would infer it from the chosen files), ``basePath`` (or
partition columns are lost), no globbing of names, no path twice, and a listing that is
not one Spark task a path.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

import numpy as np
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.types import StructType

from skipindex.errors import EngineError, PlanError
from skipindex.spark.columns import column, schema_of
from skipindex.spark.driver import new_object
from skipindex.spark.settings import is_case_sensitive, session_settings
from skipindex.spark.ship import has_driver
from skipindex.storage.file_system.file_info import mark_of
from skipindex.table import TableState

LOG: Final = logging.getLogger("skipindex")
_DISCOVERY: Final = "spark.sql.sources.parallelPartitionDiscovery"
_UNTOLD_CORES: Final = 8
"""Cores of a cluster whose driver is not in reach."""
_PLACED: Final = frozenset({"hdfs", "viewfs", "webhdfs"})
"""Schemes whose listing tells on which hosts a file lies, so that Spark lists it."""


def read_files(
    spark: SparkSession,
    table: TableState,
    paths: Sequence[str],
    schema: StructType,
    *,
    by_ids: bool = False,
    pruned: bool = False,
) -> DataFrame:
    """All rows of some of the table's files, with the table's schema.

    ``paths`` are relative to the table; ``schema`` has the partition columns too.  With
    ``by_ids`` it has field ids, which the session goes by, and the caller knows that
    the files have no other rows than that.  With ``pruned`` the rule of an enabled
    session may leave out what the query around does not need.
    """
    if not by_ids:
        table.require_plain_rows(paths, "Spark")
    # The rule opens the folder as it is now, and by its log.
    pruned &= not (table.source.has_versions or table.options.plain)
    rows = _given(spark, table, paths, schema, is_pruned=pruned)
    if rows is None:
        rows = _listed(spark, table, paths, schema)
    # Given a schema, Spark puts the partition columns last, also those that have
    # the place of a column of the files.  The names of many columns take 40 ms.
    same = not table.partitions or schema_of(rows).names == schema.names
    return rows if same else rows.select(*map(column, schema.names))


def _given(
    spark: SparkSession,
    table: TableState,
    paths: Sequence[str],
    schema: StructType,
    *,
    is_pruned: bool,
) -> DataFrame | None:
    """The files by a listing that Spark is given; None where it needs its own."""
    location = table.location
    scheme = location.spark_path().partition(":")[0]
    if not paths or scheme in _PLACED or not has_driver(spark):
        return None
    relation = _relation(spark.sparkContext._gateway)  # noqa: SLF001 (no public name)
    if relation is None:
        return None
    marks = _local_marks(table, paths) if location.is_local else _marks(table, paths)
    marks[:, 1] //= 1_000_000
    java = spark._jsparkSession  # noqa: SLF001
    result = relation.of(
        java,
        location.spark_path(),
        "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape"),
        marks.astype("<i8").tobytes(),
        schema.json(),
        not table.partitions,
        is_case_sensitive(spark),
        is_pruned,
    )
    return DataFrame(java.baseRelationToDataFrame(result), spark)


def _local_marks(table: TableState, paths: Sequence[str]) -> np.ndarray:
    """Size in bytes and time in nanoseconds of each file as it is now."""
    root = table.location.full("").rstrip("/")
    marks = np.empty((len(paths), 2), np.int64)
    for i, path in enumerate(paths):
        try:
            result = os.stat(f"{root}/{path}")  # noqa: PTH116 (three times faster)
        except FileNotFoundError:
            raise _gone(table, paths) from None
        marks[i] = result.st_size, mark_of(result.st_mtime_ns)
    return marks


def _marks(table: TableState, paths: Sequence[str]) -> np.ndarray:
    """The same as the table was listed: a store is not asked again for each file."""
    places = {path: i for i, path in enumerate(table.paths)}
    at = [places[path] for path in paths]
    return np.column_stack([table.sizes[at], table.mtimes[at]])


@lru_cache(maxsize=1)
def _relation(gateway: Any) -> Any:
    """The Java object that makes relations; None if the driver has no classes."""
    try:
        return new_object(gateway, "PlannedRelation")
    except EngineError as error:
        LOG.warning("Spark lists the files of every plan again: %s", error)
        return None


def _listed(
    spark: SparkSession, table: TableState, paths: Sequence[str], schema: StructType
) -> DataFrame:
    """The files as a set of paths, which Spark lists."""
    location = table.location
    reader = spark.read.schema(schema).option("basePath", location.spark_path())
    if not paths:
        return reader.format("parquet").load([])
    files = list(map(location.spark_pattern, paths))
    return read_paths(spark, reader, table, files, paths)


def read_paths(
    spark: SparkSession,
    reader: DataFrameReader,
    table: TableState,
    spelled: Sequence[str],
    paths: Sequence[str],
) -> DataFrame:
    """What is read at some paths of a table, as ``spelled`` for the reader.

    ``paths`` are the files among them, relative to the table.
    """
    try:
        with _quick_listing(spark, local=table.location.is_local):
            return reader.parquet(*spelled)
    except AnalysisException as error:
        if all(table.location.stat(path) is not None for path in paths):
            raise
        raise _gone(table, paths) from error


def _gone(table: TableState, paths: Sequence[str]) -> PlanError:
    gone = [path for path in paths if table.location.stat(path) is None]
    return PlanError(
        f"the table {table.location.full('')!r} changed since this plan was made: "
        f"{len(gone)} of its files are gone, such as {gone[0]!r} (open the table "
        "again, and plan again)"
    )


@contextmanager
def _quick_listing(spark: SparkSession, *, local: bool) -> Iterator[None]:
    """List explicit paths on the driver, or in a few tasks on an object store."""
    # By default Spark starts a job with one task a path above 32 paths.
    if local:
        wanted = {f"{_DISCOVERY}.threshold": str(2**31 - 1)}
    else:
        cores = _UNTOLD_CORES
        if has_driver(spark):
            cores = spark.sparkContext.defaultParallelism
        tasks = 4 * cores
        wanted = {f"{_DISCOVERY}.parallelism": str(tasks)}
    with session_settings(spark, wanted):
        yield
