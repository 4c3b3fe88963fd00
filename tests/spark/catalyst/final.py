"""The conditions that Spark's scans are given, at the end of planning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

import skipindex as sx
from skipindex.spark.catalyst.conditions import Conditions, conditions
from skipindex.spark.driver import expressions_json


def scans(df: DataFrame) -> Iterator[list[Any]]:
    """The conditions on data of every scan of files, as Java objects."""
    leaves = df._jdf.queryExecution().sparkPlan().collectLeaves()
    for i in range(leaves.size()):
        leaf = leaves.apply(i)
        if leaf.getClass().getSimpleName() == "FileSourceScanExec":
            filters = leaf.dataFilters()
            yield [filters.apply(k) for k in range(filters.size())]


def final_json(df: DataFrame) -> str | None:
    """The conditions of the one scan as JSON; None if Spark scans nothing."""
    gateway = df.sparkSession.sparkContext._gateway
    texts = [expressions_json(gateway, found) for found in scans(df)]
    return texts[0] if texts else None


def types(df: DataFrame) -> dict[str, str]:
    """The columns' types as a catalog writes them."""
    return {field.name: field.dataType.simpleString() for field in df.schema}


def final_conditions(df: DataFrame) -> Conditions | None:
    """What the planner reads of them; None if Spark scans nothing."""
    text = final_json(df)
    return None if text is None else conditions(text, types(df))


def final_plan(
    table: sx.Table, found: Conditions, *, zone: str, **options: Any
) -> sx.Plan:
    """The plan for a query's final conditions."""
    return table.plan(found.tree, timezone=found.zone or zone, **options)
