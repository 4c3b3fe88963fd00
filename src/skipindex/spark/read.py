"""Plans read through Spark: the same rows and columns as the whole table.

The planned files go to ``spark.read`` as an explicit path set.  What that needs
to be right: the table's full schema (Spark would infer it from the chosen files),
``basePath`` (or partition columns are lost), no globbing of names, no path twice,
and a listing that is not one Spark task a path.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import NullType, StructField, StructType

from skipindex.errors import PlanError
from skipindex.expressions import Predicate
from skipindex.planner.plan import Moment, Plan, check_stored, plan_files
from skipindex.planner.stages.limit import SortKey
from skipindex.spark.columns import column, declared, spark_schema
from skipindex.spark.settings import (
    check_session,
    is_case_sensitive,
    is_true,
    session_settings,
    setting,
)
from skipindex.storage.file_system.location import Location
from skipindex.table import TableState, declared_schema, open_state
from skipindex.table.partitions.inference import INSTANT

_DISCOVERY: Final = "spark.sql.sources.parallelPartitionDiscovery"
_INFERENCE: Final = "spark.sql.sources.partitionColumnTypeInference.enabled"
_GLOB: Final = re.compile(r"[\\*?\[\]{}]")
_TIMESTAMPS: Final = "spark.sql.timestampType"
_MERGE: Final = "spark.sql.parquet.mergeSchema"


def read(
    spark: SparkSession,
    table: TableState | Location | str | os.PathLike[str],
    predicate: str | Predicate | Column,
    *,
    plain: bool = False,
) -> DataFrame:
    """See ``skipindex.read``."""
    opened = _opened(spark, table, plain=plain)
    schema = table_schema(spark, opened)
    plan = plan_files(
        predicate,
        table=_typed(opened, schema),
        timezone=setting(spark, "spark.sql.session.timeZone"),
        case_sensitive=is_case_sensitive(spark),
    )
    check_session(spark)
    check_stored(plan)
    return _matching(spark, plan, schema)


def read_plan(spark: SparkSession, plan: Plan) -> DataFrame:
    """The matching rows of a plan; see ``Plan.read``."""
    return _matching(spark, plan, _schema_of(spark, plan))


def _matching(spark: SparkSession, plan: Plan, schema: StructType) -> DataFrame:
    rows = read_files(spark, plan.table, plan.files, schema).where(
        _condition(spark, plan)
    )
    if plan.row_limit.order_by:
        rows = rows.orderBy(*map(_sort_column, plan.row_limit.order_by))
    return rows if plan.row_limit.limit is None else rows.limit(plan.row_limit.limit)


def count_plan(spark: SparkSession, plan: Plan) -> int:
    """How many rows match, from the files where the plan does not know it."""
    schema = _schema_of(spark, plan)
    table, counts = plan.table, plan.row_counts
    known = int(counts.lower[counts.exact].sum())
    unread = [
        table.location.spark_path(table.paths[i]) for i in np.flatnonzero(~counts.exact)
    ]
    rows = read_files(spark, table, unread, schema).where(_condition(spark, plan))
    return known + rows.count()


def count_files(
    spark: SparkSession, plan: Plan, files: Sequence[int]
) -> dict[int, int]:
    """How many rows of each of these files match, by its place in the table.

    Spark counts them without its own file skipping, which loses rows (NaN).
    """
    schema = _schema_of(spark, plan)
    if not files:
        return {}
    table = plan.table
    paths = [table.location.spark_path(table.paths[i]) for i in files]
    place = {_uri(path): i for path, i in zip(paths, files, strict=True)}
    with session_settings(spark, {"spark.sql.parquet.filterPushdown": "false"}):
        rows = read_files(spark, table, paths, schema).where(_condition(spark, plan))
        counted = rows.groupBy(sf.input_file_name()).count().collect()
    found = dict.fromkeys(files, 0)
    for name, n in counted:
        found[place[_uri(unquote(str(name)))]] = int(n)
    return found


def _uri(path: str) -> str:
    """One spelling: Spark writes ``file:/`` with one slash or three."""
    return re.sub("^file:/+", "file:/", path)


def _sort_column(key: SortKey) -> Column:
    ordered = sf.expr(str(key.column))
    match key.descending, key.nulls_first:
        case True, True:
            return ordered.desc_nulls_first()
        case True, False:
            return ordered.desc_nulls_last()
        case False, True:
            return ordered.asc_nulls_first()
        case _:
            return ordered.asc_nulls_last()


def _condition(spark: SparkSession, plan: Plan) -> str | Column:
    """A ``Column`` may hold what no text can say, such as a Python function."""
    if plan.moment is not None and plan.moment.has_rules:
        _check_moment(spark, plan.moment)
    return plan.where if plan.condition is None else plan.condition


def _check_moment(spark: SparkSession, moment: Moment) -> None:
    """Raise ``PlanError`` where Spark computes a constant of the moment otherwise.

    The rows would be those of the plan, but not those that the condition asks for.
    """
    known = [constant for constant in moment.constants if constant.value is not None]
    tests = ", ".join(f"({one.engine_text}) <=> {one.value}" for one in known)
    answers = spark.sql(f"SELECT {tests}").head() if known else ()
    for constant, is_alike in zip(known, answers or (), strict=True):
        if not is_alike:
            raise PlanError(
                f"at {moment.now} Spark takes {constant.text} for another value than "
                f"{constant.value}: its rules of the time zone are others than those "
                "of Python (accepted: another tzdata or Java, or the literal)"
            )


def _schema_of(spark: SparkSession, plan: Plan) -> StructType:
    """The schema of the plan's table; ``PlanError`` if it is another in this session.

    Settings such as ``spark.sql.parquet.mergeSchema`` give columns other types.
    """
    _check_session(spark, plan)
    schema = table_schema(spark, plan.table)
    here = {
        leaf.name: leaf.domain
        for found in _typed(plan.table, schema).columns
        for leaf in found.leaves
    }
    for leaf in (leaf for named in plan.columns for leaf in named.leaves):
        if leaf.domain is not None and leaf.domain != here.get(leaf.name):
            raise PlanError(
                f"the session gives column {leaf.name!r} another type than the plan, "
                f"which took it from {plan.table.schema_path!r} (skipindex.read plans "
                "with the types of the session)"
            )
    return schema


def _typed(table: TableState, schema: StructType) -> TableState:
    """The table, with the types that Spark gives the columns of its files."""
    partitions = {name.lower() for p in table.partitions for name in p.names}
    fields = [field for field in schema if field.name.lower() not in partitions]
    found = declared_schema(StructType(fields).json())
    assert found is not None
    return table.typed(*found)


def _check_session(spark: SparkSession, plan: Plan) -> None:
    """Raise ``PlanError`` where the settings are not those of the plan."""
    zone = plan.session.timezone
    actual = setting(spark, "spark.sql.session.timeZone")
    if zone is not None and zone != actual:
        raise PlanError(
            f"the plan is for time zone {zone!r}, the session has {actual!r}; plan "
            "again with the session's, or use skipindex.read"
        )
    if plan.session.case_sensitive != is_case_sensitive(spark):
        raise PlanError(
            f"the plan has case_sensitive={plan.session.case_sensitive}, the session "
            f"has spark.sql.caseSensitive={setting(spark, 'spark.sql.caseSensitive')}"
        )
    check_session(spark)


def read_files(
    spark: SparkSession, table: TableState, files: list[str], schema: StructType
) -> DataFrame:
    """All rows of some of the table's files, with the table's schema.

    Raises:
        PlanError: a file is gone.
    """
    reader = spark.read.schema(schema).option("basePath", table.location.spark_path())
    if not files:
        return reader.format("parquet").load([])
    # Names may hold *, ?, [ or {, and none is a pattern.  Spark's own option for
    # that, __globPaths__, reads all files again for every such name.
    plain = [_GLOB.sub(r"\\\g<0>", file) for file in files]
    with _quick_listing(spark, local=table.location.is_local):
        df = _frame(reader, table, files, plain)
    # Given a schema, Spark puts the partition columns last, also those that have
    # the place of a column of the files.
    return df if df.columns == schema.names else df.select(*map(column, schema.names))


def _frame(
    reader: DataFrameReader,
    table: TableState,
    files: Sequence[str],
    spelled: Sequence[str],
) -> DataFrame:
    """What is read at some paths of a table.

    Args:
        reader: with schema and options.
        table: whose files they are.
        files: the paths.
        spelled: the paths as the reader takes them.

    Raises:
        PlanError: a file is gone.
    """
    try:
        return reader.parquet(*spelled)
    except AnalysisException as error:
        root = f"{table.location.spark_path()}/"
        paths = [file.removeprefix(root) for file in files if file.startswith(root)]
        gone = [path for path in paths if table.location.stat(path) is None]
        if not gone:
            raise
        raise PlanError(
            f"the table {table.location.full('')!r} changed since this plan was made: "
            f"{len(gone)} of its files are gone, such as {gone[0]!r} (open the table "
            "again, and plan again)"
        ) from error


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
    fields = {_folded(spark, field.name): field for field in schema}
    for partition in table.partitions:
        name = _folded(spark, partition.name)
        if not whole or partition.name in table.partition_types:
            # It takes the place of a column of the files that has its name.
            spelled = fields[name].name if whole else partition.name
            fields[name] = StructField(spelled, from_arrow_type(partition.dtype), True)
    return StructType(list(fields.values()))


def _spark_schema(spark: SparkSession, table: TableState, path: str = "") -> StructType:
    """What Spark reads at a path of the table, with the schema that is declared."""
    reader = spark.read.option("__globPaths__", "false")
    if table.declared is not None:
        given = spark_schema(table.declared)
        if path:  # no partition column is among these
            own = {field.name for field in table.schema}
            return StructType([field for field in given if field.name in own])
        reader = reader.schema(given)
    with _quick_listing(spark, local=table.location.is_local):
        place = [table.location.spark_path(path)]
        return _frame(reader, table, place, place).schema


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


def _folded(spark: SparkSession, name: str) -> str:
    """The name, as the session tells it from others."""
    return name if is_case_sensitive(spark) else name.lower()


def _opened(
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
        return opened.with_schema(declared(StructType(merged)))
    if opened is table or is_true(spark, _INFERENCE):
        return opened
    texts = {p.name: pa.string() for p in opened.partitions if p.raw}
    return opened.with_partition_types(texts)


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


@contextmanager
def _quick_listing(spark: SparkSession, *, local: bool) -> Iterator[None]:
    """List explicit paths on the driver, or in a few tasks on an object store.

    By default Spark starts a job with one task a path above 32 paths.
    """
    if local:
        wanted = {f"{_DISCOVERY}.threshold": str(2**31 - 1)}
    else:
        tasks = 4 * spark.sparkContext.defaultParallelism
        wanted = {f"{_DISCOVERY}.parallelism": str(tasks)}
    with session_settings(spark, wanted):
        yield
