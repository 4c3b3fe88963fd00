"""Enabling and disabling pruning for the sessions of a Spark application."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from skipindex.errors import EngineError
from skipindex.spark.driver import new_object
from skipindex.spark.pruning.java_function import JavaFunction
from skipindex.spark.pruning.query_plan import QueryPlan
from skipindex.spark.pruning.query_planner import SETTINGS, QueryPlanner
from skipindex.spark.pruning.statements import Arguments, StatementFunction, Statements
from skipindex.spark.pruning.tables import Tables
from skipindex.spark.ship import has_driver
from skipindex.storage.file_system.names import FOLDER
from skipindex.table import TableState

_pruned: Final[dict[str, Pruning]] = {}
"""What was enabled, by the id of the Spark application."""


class Pruning:
    """The planner of a Spark application, which the rules of its sessions ask.

    Attributes:
        planner: answers the rules.
        sessions: the Java object that gives sessions their rules.
        calls: the Java object by which rules ask.
    """

    def __init__(self, spark: SparkSession, statements: Statements) -> None:
        self.planner = QueryPlanner(Tables())
        # The driver knows the functions by weak references alone.
        self._functions: list[Any] = [
            JavaFunction(self.planner.answer),
            StatementFunction(spark, statements),
        ]
        gateway = _gateway(spark)
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        self.sessions = _sessions(gateway)
        self.calls = self.sessions.connect(
            *self._functions, FOLDER, "\n".join(SETTINGS)
        )

    def close(self) -> None:
        """Let no query ask any more."""
        self.sessions.disconnect()


def enable(spark: SparkSession, statements: Statements) -> None:
    """See ``skipindex.enable``; ``statements`` are those that SQL takes then."""
    pruning = _pruning(spark)
    if pruning is None:
        try:
            pruning = Pruning(spark, statements)
        except EngineError as error:
            warnings.warn(f"queries read all files: {error}", stacklevel=3)
            return
        _pruned.clear()  # of another, whose SparkContext has stopped
        _pruned[_application(spark)] = pruning
    pruning.sessions.add(spark._jsparkSession)  # noqa: SLF001


def disable(spark: SparkSession) -> None:
    """See ``skipindex.disable``."""
    pruning = _pruned.pop(_application(spark), None)
    if pruning is not None:
        pruning.close()


def register(spark: SparkSession, state: TableState, statements: Statements) -> None:
    """See ``skipindex.register``."""
    enable(spark, statements)
    pruning = _pruning(spark)
    if pruning is not None:
        pruning.planner.tables.give(state)
        pruning.calls.register(state.location.spark_path())


def last_plans(spark: SparkSession) -> Sequence[QueryPlan]:
    """See ``skipindex.last_plans``."""
    pruning = _pruning(spark)
    if pruning is None:
        return ()
    pruning.calls.finishTelling()
    return tuple(pruning.planner.records)


def plans_of(
    spark: SparkSession, query: str, arguments: Arguments
) -> Sequence[QueryPlan]:
    """What the scans of a query ask, and would read; it is planned, and not run."""
    state = spark._jsparkSession.sessionState()  # noqa: SLF001
    jvm = _gateway(spark).jvm
    modes = jvm.org.apache.spark.sql.execution.CommandExecutionMode
    before = last_plans(spark)  # held, so that no new plan has the id of one of them
    parser, given = state.sqlParser(), arguments.java
    logical = (
        parser.parsePlan(query)
        if given is None
        else parser.parsePlanWithParameters(query, given)
    )
    planned = state.executePlan(logical, modes.SKIP())
    leaves = planned.sparkPlan().collectLeaves()
    scans = set()
    for scan in (leaves.apply(i) for i in range(leaves.size())):
        kind = scan.getClass().getSimpleName()
        if kind == "FileSourceScanExec":
            scan.selectedPartitions()  # lists the files that are left
            index = scan.relation().location()
            scans.add(jvm.java.lang.System.identityHashCode(index))
        elif kind == "BatchScanExec":
            scans.add(scan.scan().hashCode())
    pruning = _pruning(spark)
    if pruning is None:
        return ()
    pruning.calls.finishTelling()
    known = set(map(id, before))
    plans = pruning.planner.records_of(scans)
    return [plan for plan in plans if not (plan.is_estimate or id(plan) in known)]


def _pruning(spark: SparkSession) -> Pruning | None:
    """What the session is pruned by, if it is."""
    return _pruned.get(_application(spark))


def _application(spark: SparkSession) -> str:
    _gateway(spark)
    return spark.sparkContext.applicationId


def _gateway(spark: SparkSession) -> Any:
    """The way to the driver."""
    if not has_driver(spark):
        raise EngineError(
            f"{type(spark).__module__}.{type(spark).__name__} gives no access to its "
            "driver, to which enable adds rules (accepted: a classic session; with "
            "Spark Connect, skipindex.read reads the planned files of a condition)"
        )
    return spark.sparkContext._gateway  # noqa: SLF001 (PySpark has no public name)


@lru_cache(maxsize=1)
def _sessions(gateway: Any) -> Any:
    """The Java object that gives sessions their rules; one for every JVM."""
    # Spark forgets no extension.
    return new_object(gateway, "Sessions")
