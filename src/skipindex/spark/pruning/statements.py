"""Statements in SQL, of which ``Statements.java`` asks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pyspark.sql import SparkSession

from skipindex.errors import first_line
from skipindex.spark.pruning.query_planner import LOG


class Statements(Protocol):
    """Reads statements, and carries them out."""

    def read(self, text: str, spark: SparkSession) -> Mapping[str, Any]:
        """The ``columns`` of the result as Spark writes them in DDL.

        If the text is wrong: the word that it is wrong ``near``, the ``hint`` what is
        expected, its ``line`` and its ``position``.  ``may_be_of_others`` says that
        another parser is to have a look first.
        """

    def run(self, text: str, spark: SparkSession) -> Sequence[Mapping[str, Any]]:
        """The rows of the result, by the names of the columns."""


class StatementFunction:
    """The function that the driver calls with a verb, a session and a text."""

    def __init__(self, spark: SparkSession, statements: Statements) -> None:
        self._spark = spark
        self._statements = statements

    def apply(self, argument: Any) -> str:
        """The answer as JSON; of what fails, an ``error``."""
        verb, java, text = argument
        spark = SparkSession(self._spark.sparkContext, java)
        try:
            if verb == "read":
                answer = dict(self._statements.read(text, spark))
            else:
                answer = {"rows": self._statements.run(text, spark)}
            return json.dumps(answer)
        except Exception as error:  # noqa: BLE001 - Spark shows it to who asked
            if verb == "read":  # its own parser tells of the text then
                LOG.warning("a statement cannot be read: %s", first_line(error))
            return json.dumps({"error": str(error) or first_line(error)})

    class Java:
        """What Py4J looks for."""

        implements = ("java.util.function.Function",)
