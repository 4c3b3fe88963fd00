"""A PySpark ``Column`` as the text of a condition, for the planner.

A ``Column`` holds what the user wrote: in Spark 3 an expression of Catalyst that no
analyzer has seen, since Spark 4 a tree that Spark itself makes such an expression of.
"""

from __future__ import annotations

from typing import Any, Final

import pyspark
from pyspark import SparkContext
from pyspark.errors import PySparkException

from skipindex.errors import PredicateError, first_line
from skipindex.expressions import to_sql
from skipindex.spark.catalyst.node import read_nodes
from skipindex.spark.catalyst.translator import Translator
from skipindex.spark.driver import expressions_json

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
