"""OPTIMIZE and VACUUM, run."""

from __future__ import annotations

from typing import assert_never

from pyspark.sql import SparkSession

from skipindex.rewrite.optimize import OptimizeReport
from skipindex.rewrite.sql_statements import Optimize, Vacuum, parse_statement
from skipindex.rewrite.vacuum import VacuumReport, vacuum
from skipindex.spark.writers.optimize import optimize
from skipindex.table import TableState


def run_statement(
    spark: SparkSession, text: str
) -> OptimizeReport[TableState] | VacuumReport:
    """See ``skipindex.api.run_statement``."""
    statement = parse_statement(text)
    match statement:
        case Optimize(path, options, into):
            return optimize(spark, path, options, into=into)
        case Vacuum(path, retention, dry_run):
            return vacuum(path, retention=retention, dry_run=dry_run)
        case _:
            assert_never(statement)
