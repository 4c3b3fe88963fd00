"""Running SQL statements for ``Statements.java``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pyspark.sql import SparkSession

from skipindex.errors import first_line
from skipindex.spark.pruning.query_planner import LOG


class Arguments:
    """The arguments of ``spark.sql`` for the markers of a text.

    Args:
        java: what Spark gives to parsers; None if there are none.
    """

    def __init__(self, java: Any) -> None:
        self.java = java

    def literals(self) -> dict[str | int, str]:
        """SQL by the name, or the position from 0, of a marker."""
        kind = self.java and self.java.getClass().getSimpleName()
        if kind not in {"NamedParameterContext", "PositionalParameterContext"}:
            return {}
        given = self.java.params().toSeq()
        listed = [given.apply(i) for i in range(given.size())]
        if kind == "PositionalParameterContext":
            return {i: one.sql() for i, one in enumerate(listed)}
        return {one.productElement(0): one.productElement(1).sql() for one in listed}


class Statements(Protocol):
    """Reads statements, and carries them out."""

    def read(
        self, text: str, arguments: Arguments, spark: SparkSession
    ) -> Mapping[str, Any]:
        """The ``columns`` of the result as Spark writes them in DDL.

        If the text is wrong: the word that it is wrong ``near``, the ``hint`` what is
        expected, its ``line`` and its ``position``.  ``may_be_of_others`` says that
        another parser is to have a look first.
        """

    def run(
        self, text: str, arguments: Arguments, spark: SparkSession
    ) -> Sequence[Mapping[str, Any]]:
        """The rows of the result, by the names of the columns."""


class StatementFunction:
    """The function that the driver calls with a verb, a session, a text and more."""

    def __init__(self, spark: SparkSession, statements: Statements) -> None:
        self._spark = spark
        self._statements = statements

    def apply(self, argument: Any) -> str:
        """The answer as JSON; of what fails, an ``error``."""
        verb, java, text, given = argument
        arguments = Arguments(given)
        spark = SparkSession(self._spark.sparkContext, java)
        try:
            if verb == "read":
                answer = dict(self._statements.read(text, arguments, spark))
            else:
                answer = {"rows": self._statements.run(text, arguments, spark)}
            return json.dumps(answer)
        except Exception as error:  # noqa: BLE001 - Spark shows it to who asked
            if verb == "read":  # its own parser tells of the text then
                LOG.warning("a statement cannot be read: %s", first_line(error))
            return json.dumps({"error": str(error) or first_line(error)})

    class Java:
        """What Py4J looks for."""

        implements = ("java.util.function.Function",)
