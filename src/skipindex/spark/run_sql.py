"""OPTIMIZE and VACUUM, run."""

from __future__ import annotations

from typing import assert_never

from pyspark.sql import SparkSession

from skipindex.rewrite.optimize import OptimizeReport
from skipindex.rewrite.sql_statements import Optimize, Vacuum, parse_statement
from skipindex.rewrite.vacuum import VacuumReport, vacuum
from skipindex.spark.writers.optimize import optimize_as
from skipindex.table import TableState


def sql(spark: SparkSession, text: str) -> OptimizeReport[TableState] | VacuumReport:
    """Run an OPTIMIZE or VACUUM statement; see ``rewrite.sql_statements``.

    ``OPTIMIZE '/path' WHERE day = 25 ZORDER BY (a, b)`` is ``optimize(spark, "/path",
    where="day = 25", cluster_by=["a", "b"], curve="zorder")``, and
    ``VACUUM '/path' RETAIN 48 HOURS`` is ``vacuum("/path", retention=...)``.

    Raises:
        PredicateError: it is neither; the message says where.
        SkipIndexError: what ``optimize`` and ``vacuum`` raise.
    """
    statement = parse_statement(text)
    match statement:
        case Optimize(path, wish, into):
            return optimize_as(spark, path, wish, into=into)
        case Vacuum(path, retention, dry_run):
            return vacuum(path, retention=retention, dry_run=dry_run)
        case _:
            assert_never(statement)
