"""A PySpark ``Column`` as the text of a condition, for the planner.

Walks Spark's own tree (``org.apache.spark.sql.internal.ColumnNode``), which holds the
names and literals that the user wrote; Spark 3 has another one, which
``skipindex.spark.catalyst`` reads.  What is no built-in function of Spark, such as
a Python function, becomes the call of a function that nobody knows: every row may
match it.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import pyspark
from pyspark import SparkContext

from skipindex.errors import PredicateError
from skipindex.expressions import Reference, literal_sql
from skipindex.spark.catalyst.conditions import conditions
from skipindex.spark.catalyst.java import expressions_json
from skipindex.spark.catalyst.literals import moment_text
from skipindex.spark.catalyst.sql_text import OPAQUE, call_text, case_text, field_text

_IS_SPARK_3: Final = pyspark.__version__.startswith("3.")
_MAX_DEPTH: Final = 60
"""Of functions in functions that are read; Python's own stack has an end."""


def condition_text(column: Any) -> str:
    """The condition in SQL; parts that only Spark can compute read ``opaque()``.

    Raises:
        PredicateError: it is no ``Column`` of a session in this process.
    """
    try:
        java = column._jc  # noqa: SLF001 (no public name)
        node = java.expr() if _IS_SPARK_3 else java.node()
    except (AttributeError, TypeError) as error:
        raise PredicateError(
            f"cannot read the column {column!r} (accepted: SQL text, a condition built "
            "with skipindex.col, or a Column of PySpark without Spark Connect)"
        ) from error
    return _text_of_spark_3(node) if _IS_SPARK_3 else _text(node)


def _text_of_spark_3(expression: Any) -> str:
    (text,) = conditions(expressions_json(_context()._gateway, [expression]), {}).texts  # noqa: SLF001
    return text


def _context() -> SparkContext:
    context = SparkContext._active_spark_context  # noqa: SLF001 (no public name)
    assert context is not None, "there is a Column, so there is a session"
    return context


def _text(node: Any, depth: int = 0) -> str:
    render = _NODES.get(node.getClass().getSimpleName())
    if render is None or depth >= _MAX_DEPTH:
        return OPAQUE
    return render(node, depth + 1)


def _literal(node: Any, _depth: int) -> str:
    value = node.value()
    match value:
        case bool() | int() | float() | str() | Decimal() | None:
            text = literal_sql(value)
            # A number's type decides what arithmetic does with it.
            return f"{text}L" if _is_long(node, value) else text
        case bytes() | bytearray():
            return literal_sql(bytes(value))
    return _moment(value)


def _moment(value: Any) -> str:
    """A date or a time of Java's, as Spark takes it.

    Java's old classes have the Julian calendar before 1582 and their own offsets
    before 1937, so their fields and their instants are not Spark's.
    """
    jvm: Any = _context()._jvm  # noqa: SLF001
    package = jvm.org.apache.spark.sql.catalyst.expressions
    literal = getattr(getattr(package, "Literal$"), "MODULE$").apply(value)
    return moment_text(str(literal.dataType().catalogString()), literal.value())


def _items(sequence: Any) -> list[Any]:
    """What a sequence of Scala's holds."""
    return [sequence.apply(i) for i in range(sequence.size())]


def _is_long(node: Any, value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    known = node.dataType()
    if known.isDefined():
        return str(known.get().catalogString()) == "bigint"
    return not -(1 << 31) <= value < 1 << 31


def _attribute(node: Any, _depth: int) -> str:
    return str(Reference(tuple(_items(node.nameParts()))))


def _field(node: Any, depth: int) -> str:
    """``column["x"]``: a field of a struct, or the value of a key of a map."""
    child, key = node.child(), node.extraction()
    kinds = [one.getClass().getSimpleName() for one in (child, key)]
    if kinds[0] not in {"UnresolvedAttribute", "UnresolvedExtractValue"}:
        return OPAQUE
    if kinds[1] != "Literal" or not isinstance(key.value(), str):
        return OPAQUE
    return field_text(_text(child, depth), key.value())


def _call(node: Any, depth: int) -> str:
    name = str(node.functionName())
    if node.isUserDefinedFunction() or node.isDistinct():
        return OPAQUE
    is_chain = name.lower() in {"and", "or"}
    arguments = _chain(node, name) if is_chain else _items(node.arguments())
    return call_text(name, [_text(argument, depth) for argument in arguments])


def _chain(node: Any, name: str) -> list[Any]:
    """What ``a AND b AND c`` is made of, however many there are."""
    found, rest = [], [node]
    while rest:
        one = rest.pop()
        known = one.getClass().getSimpleName() == "UnresolvedFunction"
        arguments = _items(one.arguments()) if known else []
        if len(arguments) == 2 and str(one.functionName()) == name:
            rest += reversed(arguments)
        else:
            found.append(one)
    return found


def _cast(node: Any, depth: int) -> str:
    if node.evalMode().isDefined():  # try_cast
        return OPAQUE
    kind = node.dataType().sql()
    return f"CAST({_text(node.child(), depth)} AS {kind})"


def _case(node: Any, depth: int) -> str:
    branches = [
        (_text(pair._1(), depth), _text(pair._2(), depth))  # noqa: SLF001 (Scala's)
        for pair in _items(node.branches())
    ]
    otherwise = node.otherwise()
    return case_text(
        branches,
        _text(otherwise.get(), depth) if otherwise.isDefined() else None,
    )


def _expression(node: Any, _depth: int) -> str:
    return f"({node.expression()}\n)"


def _alias(node: Any, depth: int) -> str:
    return _text(node.child(), depth)


_NODES: Final[dict[str, Callable[[Any, int], str]]] = {
    "Alias": _alias,
    "CaseWhenOtherwise": _case,
    "Cast": _cast,
    "Literal": _literal,
    "SqlExpression": _expression,
    "UnresolvedAttribute": _attribute,
    "UnresolvedExtractValue": _field,
    "UnresolvedFunction": _call,
}
