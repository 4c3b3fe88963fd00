"""Spark as the planner's query engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyspark
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from skipindex.errors import PredicateError, first_line
from skipindex.expressions import to_sql
from skipindex.planner.plan import Plan
from skipindex.spark.catalyst.node import read_nodes
from skipindex.spark.catalyst.translator import Translator
from skipindex.spark.columns import declared
from skipindex.spark.driver import expressions_json
from skipindex.spark.reading.read import count_files, count_plan, read_plan
from skipindex.spark.runner import SparkRunner


class SparkEngine:
    """See ``skipindex.planner.engine.Engine``."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    @staticmethod
    def condition_text(condition: Column) -> str:
        return condition_text(condition)

    @staticmethod
    def arrow_schema(schema: StructType) -> pa.Schema:
        return declared(schema)

    def read(self, plan: Plan) -> DataFrame:
        return read_plan(self.session, plan)

    def count(self, plan: Plan) -> int:
        return count_plan(self.session, plan)

    def count_files(self, plan: Plan, files: Sequence[int]) -> dict[int, int]:
        return count_files(self.session, plan, files)

    def runner(self) -> SparkRunner:
        return SparkRunner(self.session)


_IS_SPARK_3: Final = pyspark.__version__.startswith("3.")


def condition_text(column: Any) -> str:
    """The condition in SQL; one that only Spark can judge reads ``opaque(…)``."""
    context = SparkContext._active_spark_context  # noqa: SLF001 (no public name)
    try:
        java = column._jc  # noqa: SLF001
        gateway: Any = context._gateway  # type: ignore[union-attr]  # noqa: SLF001
        expression = _expression(gateway.jvm, java)
    except (AttributeError, TypeError) as error:
        raise PredicateError(
            f"cannot read the column {column!r} (accepted: SQL text, a condition built "
            "with skipindex.col, or a Column of PySpark without Spark Connect)"
        ) from error
    except PySparkException as error:
        raise PredicateError(
            f"Spark cannot read the column {column!r}: {first_line(error)}"
        ) from error
    (node,) = read_nodes(expressions_json(gateway, [expression]))
    return to_sql(Translator({}, as_text=True).condition(node))


def _expression(jvm: Any, column: Any) -> Any:
    """What Spark's analyzer would see of a ``Column`` in the driver."""
    if _IS_SPARK_3:
        return column.expr()
    converter = getattr(
        jvm.org.apache.spark.sql.classic, "ColumnNodeToExpressionConverter$"
    )
    return getattr(converter, "MODULE$").apply(column.node())
