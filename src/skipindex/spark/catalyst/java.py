"""``ExpressionJson.java``, compiled and called from Python."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from skipindex.spark.janino import compile_classes, source_of

SOURCES: Final = {
    "skipindex.ExpressionJson": source_of(__package__, "ExpressionJson"),
}
"""The Java sources of this package, by the name of their class."""


def expressions_json(gateway: Any, expressions: Sequence[Any]) -> str:
    """The Java objects, which are expressions of one session, as JSON.

    Raises:
        Py4JError: the JVM cannot compile the class.
    """
    listed = gateway.jvm.java.util.ArrayList()
    for expression in expressions:
        listed.add(expression)
    as_seq = gateway.jvm.org.apache.spark.api.python.PythonUtils.toSeq
    arguments = gateway.new_array(gateway.jvm.java.lang.Object, 1)
    arguments[0] = as_seq(listed)
    return str(_method(gateway).invoke(None, arguments))


@lru_cache(maxsize=1)
def _method(gateway: Any) -> Any:
    """``ExpressionJson.json``; it is compiled once for every JVM."""
    lang = gateway.jvm.java.lang
    compiled = compile_classes(gateway.jvm, SOURCES)
    takes = gateway.new_array(lang.Class, 1)
    takes[0] = lang.Class.forName("scala.collection.Seq")
    return compiled.loadClass("skipindex.ExpressionJson").getMethod("json", takes)
