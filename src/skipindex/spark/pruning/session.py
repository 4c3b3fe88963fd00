"""Switching pruning on and off for a session of Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from skipindex.errors import EngineError, first_line
from skipindex.spark.catalyst.java import SOURCES
from skipindex.spark.janino import compile_classes, source_of
from skipindex.spark.pruning.query_plan import QueryPlan
from skipindex.spark.pruning.query_planner import SETTINGS, QueryPlanner
from skipindex.spark.pruning.tables import Tables
from skipindex.storage.file_system.names import FOLDER
from skipindex.table import TableState

_RULE: Final = "skipindex.SkipRule"
_CLASSES: Final = (
    "PlannerCalls",
    "Dimension",
    "JoinKeys",
    "SkippingFileIndex",
    "SkipRule",
)
_SEQ: Final = ("scala.collection.Seq", "scala.collection.immutable.Seq")
"""What ``Seq`` is in Spark's signatures under Scala 2.12, and since 2.13."""

_pruned: Final[dict[str, Pruning]] = {}
"""By the id of the rule, which the session in the driver has."""


class _JavaFunction:
    """A Python function that the driver calls."""

    def __init__(self, function: Callable[[str], bytes | None]) -> None:
        self._function = function

    def apply(self, argument: str) -> bytes | None:
        return self._function(argument)

    class Java:
        implements = ("java.util.function.Function",)


class Pruning:
    """The optimizer rule of a session, and the planner that it asks.

    Attributes:
        planner: answers the rule.
        rule: the Java object.
        calls: the Java object by which the rule asks.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.planner = QueryPlanner(Tables())
        self.id = str(uuid4())
        # The driver knows the functions by weak references alone.
        self._functions = [
            _JavaFunction(call)
            for call in (
                self.planner.answer,
                self.planner.files,
                self.planner.uses_of,
                self.planner.failed,
            )
        ]
        gateway = _gateway(spark)
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        try:
            (constructor,) = _rule_class(gateway, spark.version).getConstructors()
        except Py4JError as error:
            raise EngineError(
                f"Spark {spark.version} takes no rule that prunes queries: "
                f"{first_line(error)} (accepted: an unchanged Spark 3.5 to 4.3)"
            ) from error
        nothing = gateway.new_array(gateway.jvm.java.lang.Object, 0)
        self.rule = constructor.newInstance(nothing)
        self.calls = self.rule.connect(
            self.id,
            spark._jsparkSession.sessionState(),  # noqa: SLF001
            *self._functions,
            FOLDER,
            "\n".join(SETTINGS),
        )


def enable(spark: SparkSession) -> None:
    """See ``skipindex.enable``."""
    if _pruning(spark) is None:
        pruning = Pruning(spark)
        _pruned[pruning.id] = pruning
        _set_rules(spark, [*_rules(spark), pruning.rule])


def disable(spark: SparkSession) -> None:
    """See ``skipindex.disable``."""
    pruning = _pruning(spark)
    if pruning is not None:
        pruning.calls.setOn(False)
        pruning.planner.close()
        others = [rule for rule in _rules(spark) if _id(rule) != pruning.id]
        _set_rules(spark, others)
        del _pruned[pruning.id]


def register(spark: SparkSession, state: TableState) -> None:
    """See ``skipindex.register``."""
    enable(spark)
    pruning = _pruning(spark)
    assert pruning is not None
    pruning.planner.tables.give(state)
    pruning.calls.register(state.location.spark_path())


def last_plans(spark: SparkSession) -> Sequence[QueryPlan]:
    """See ``skipindex.last_plans``."""
    pruning = _pruning(spark)
    return () if pruning is None else tuple(pruning.planner.records)


def _pruning(spark: SparkSession) -> Pruning | None:
    """What the session is pruned by, if it is."""
    found = (_pruned.get(_id(rule)) for rule in _rules(spark))
    return next((pruning for pruning in found if pruning is not None), None)


def _id(rule: Any) -> str:
    """Of a rule of ours; empty for others."""
    return str(rule.id()) if rule.getClass().getName() == _RULE else ""


def _rules(spark: SparkSession) -> list[Any]:
    _gateway(spark)
    rules = spark._jsparkSession.experimental().extraOptimizations()  # noqa: SLF001
    return [rules.apply(i) for i in range(rules.size())]


def _set_rules(spark: SparkSession, rules: Sequence[Any]) -> None:
    jvm = _gateway(spark).jvm
    listed = jvm.java.util.ArrayList()
    for rule in rules:
        listed.add(rule)
    experimental = spark._jsparkSession.experimental()  # noqa: SLF001
    # Scala's name of the setter, which is no name in Python.
    set_rules = getattr(experimental, "extraOptimizations_$eq")
    set_rules(jvm.PythonUtils.toSeq(listed))


def _gateway(spark: SparkSession) -> Any:
    """The way to the driver.

    Raises:
        EngineError: the session has no driver in reach, as that of Spark Connect.
    """
    if not hasattr(spark, "_jsparkSession"):
        raise EngineError(
            f"{type(spark).__module__}.{type(spark).__name__} has no driver that rules "
            "can be added to (accepted: a classic session; with Spark Connect, "
            "skipindex.read reads the planned files of a condition)"
        )
    return spark.sparkContext._gateway  # noqa: SLF001 (PySpark has no public name)


@lru_cache(maxsize=1)
def _rule_class(gateway: Any, version: str) -> Any:
    """The class of the rule.

    It is compiled once for every JVM, as Py4J takes classes of one name for one class.

    Args:
        gateway: the way to the driver.
        version: of Spark.
    """
    scala = gateway.jvm.scala.util.Properties.versionNumberString()
    words = {
        "TO_SEQ": "(SEQ) org.apache.spark.api.python.PythonUtils.toSeq",
        "SEQ": _SEQ[scala.startswith("2.13")],
        " SCAN_STREAM": ", scan.stream()" if version >= "4" else "",
    }
    sources = dict(SOURCES)
    for name in _CLASSES:
        text = source_of(__package__, name)
        for word, meaning in words.items():
            text = text.replace(word, meaning)
        sources[f"skipindex.{name}"] = text
    loader = compile_classes(gateway.jvm, sources)
    return [loader.loadClass(name) for name in sources][-1]
