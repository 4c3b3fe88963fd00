"""Plans read through Spark: the same rows and columns as the whole table."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import unquote

import numpy as np
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from skipindex.conditions.functions.zones import Offsets, OffsetsOf, no_offsets
from skipindex.errors import PlanError
from skipindex.expressions import Predicate
from skipindex.planner.plan import Moment, Plan, plan_files, record_plan
from skipindex.planner.stages.cost import SPARK
from skipindex.planner.stages.limit import SortKey
from skipindex.spark.reading.frames import read_files
from skipindex.spark.reading.schema import opened_in, table_schema, typed
from skipindex.spark.settings import (
    check_session,
    is_case_sensitive,
    session_settings,
    setting,
)
from skipindex.spark.ship import has_driver
from skipindex.storage.file_system.location import Location
from skipindex.table import TableState
from skipindex.table.queries import LITERALS, SETTING, Recording


def read(
    spark: SparkSession,
    table: TableState | Location | str | os.PathLike[str],
    predicate: str | Predicate | Column,
    *,
    plain: bool = False,
    now: datetime | None = None,
) -> DataFrame:
    """See ``skipindex.read``; ``now`` is as for ``plan_files``."""
    opened = opened_in(spark, table, plain=plain)
    schema = table_schema(spark, opened)
    plan = plan_files(
        predicate,
        table=typed(opened, schema),
        timezone=setting(spark, "spark.sql.session.timeZone"),
        case_sensitive=is_case_sensitive(spark),
        now=now,
        read_by=SPARK,
    )
    check_session(spark)
    recording = Recording.of_settings(
        {name: spark.conf.get(name, None) for name in (SETTING, LITERALS)}
    )
    if recording is not None:
        record_plan(plan, recording)
    return _matching(spark, plan.under(offsets_in(spark)), schema)


def read_plan(spark: SparkSession, plan: Plan) -> DataFrame:
    """The matching rows of a plan; see ``Plan.read``."""
    schema = _schema_of(spark, plan)
    return _matching(spark, plan.under(offsets_in(spark)), schema)


def _matching(spark: SparkSession, plan: Plan, schema: StructType) -> DataFrame:
    rows = read_files(spark, plan.table, plan.paths, schema, pruned=True).where(
        _condition(spark, plan)
    )
    if plan.row_limit.order_by:
        rows = rows.orderBy(*map(_sort_column, plan.row_limit.order_by))
    return rows if plan.row_limit.limit is None else rows.limit(plan.row_limit.limit)


def count_plan(spark: SparkSession, plan: Plan) -> int:
    """How many rows match, from the files where the plan does not know it."""
    schema = _schema_of(spark, plan)
    plan = plan.under(offsets_in(spark))
    table, counts = plan.table, plan.row_counts
    known = int(counts.lower[counts.exact].sum())
    unread = [table.paths[i] for i in np.flatnonzero(~counts.exact)]
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
    paths = [table.paths[i] for i in files]
    full = map(table.location.spark_path, paths)
    place = {_uri(path): i for path, i in zip(full, files, strict=True)}
    with session_settings(spark, {"spark.sql.parquet.filterPushdown": "false"}):
        rows = read_files(spark, table, paths, schema).where(_condition(spark, plan))
        counted = rows.groupBy(sf.input_file_name()).count().collect()
    result = dict.fromkeys(files, 0)
    for name, n in counted:
        result[place[_uri(unquote(str(name)))]] = int(n)
    return result


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
    """Raise ``PlanError`` where Spark computes a constant of the moment otherwise."""
    known = [constant for constant in moment.constants if constant.value is not None]
    tests = ", ".join(f"({one.engine_text}) <=> {one.value}" for one in known)
    answers = spark.sql(f"SELECT {tests}").head() if known else ()
    for constant, is_alike in zip(known, answers or (), strict=True):
        if not is_alike:
            raise PlanError(
                f"at {moment.now} Spark reads {constant.text} as another value than "
                f"{constant.value}: its rules of time zones differ (accepted: another "
                "tzdata or Java, or the literal)"
            )


def _schema_of(spark: SparkSession, plan: Plan) -> StructType:
    """The schema of the plan's table; ``PlanError`` if this session has another."""
    _check_session(spark, plan)
    # Settings such as ``spark.sql.parquet.mergeSchema`` give columns other types.
    schema = table_schema(spark, plan.table)
    here = {
        leaf.name: leaf.domain
        for result in typed(plan.table, schema).columns
        for leaf in result.leaves
    }
    for leaf in (leaf for named in plan.columns for leaf in named.leaves):
        if leaf.domain is not None and leaf.domain != here.get(leaf.name):
            raise PlanError(
                f"the session gives column {leaf.name!r} another type than the plan, "
                f"which took it from {plan.table.schema_path!r} (skipindex.read plans "
                "with the types of the session)"
            )
    return schema


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


def offsets_in(spark: SparkSession) -> OffsetsOf:
    """The offsets of zones in the driver; none are known behind Spark Connect."""
    if not has_driver(spark):
        return no_offsets
    jvm: Any = spark._jvm  # noqa: SLF001 (no public name)
    instant = jvm.java.time.Instant
    zones = jvm.org.apache.spark.sql.catalyst.util.DateTimeUtils

    def offsets(zone: str, low: int, high: int) -> Offsets | None:
        at = instant.ofEpochSecond(low)
        try:
            rules = zones.getZoneId(zone).getRules()
        except (Py4JError, PySparkException):  # Java has no such zone
            return None
        result = [(low, int(rules.getOffset(at).getTotalSeconds()))]
        while (change := rules.nextTransition(at)) is not None:
            at = change.getInstant()
            second = int(at.getEpochSecond())
            if second > high:
                break
            result.append((second, int(change.getOffsetAfter().getTotalSeconds())))
        return tuple(result)

    return offsets
