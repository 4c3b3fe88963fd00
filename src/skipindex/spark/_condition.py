"""A PySpark ``Column`` as the text of a condition, for the planner.

Walks Spark's own tree (``org.apache.spark.sql.internal.ColumnNode``), which holds the
names and literals that the user wrote.  What is no built-in function of Spark, such as
a Python function, becomes the call of a function that nobody knows: every row may
match it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

from pyspark import SparkContext

from skipindex.domain import EPOCH, EPOCH_UTC
from skipindex.errors import PredicateError
from skipindex.predicate import Reference, literal_sql

OPAQUE: Final = "opaque()"
"""Stands for what only Spark can compute."""

_OPERATORS: Final = {
    *("=", "<=>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "and", "or"),
}


def condition_text(column: Any) -> str:
    """The condition in SQL; parts that only Spark can compute read ``opaque()``.

    Raises:
        PredicateError: it is no ``Column`` of a session of PySpark 4 in this process.
    """
    try:
        node = column._jc.node()  # noqa: SLF001 (no public name)
    except (AttributeError, TypeError) as error:
        raise PredicateError(
            f"cannot read the column {column!r} (accepted: SQL text, a condition built "
            "with skipindex.col, or a Column of PySpark 4 without Spark Connect)"
        ) from error
    return _text(node)


def _text(node: Any) -> str:
    render = _NODES.get(node.getClass().getSimpleName())
    return OPAQUE if render is None else render(node)


def _literal(node: Any) -> str:
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
    context = SparkContext._active_spark_context  # noqa: SLF001 (no public name)
    assert context is not None, "there is a Column, so there is a session"
    jvm: Any = context._jvm  # noqa: SLF001
    package = jvm.org.apache.spark.sql.catalyst.expressions
    literal = getattr(getattr(package, "Literal$"), "MODULE$").apply(value)
    number = literal.value()
    try:
        match str(literal.dataType().catalogString()):
            case "date":
                return literal_sql(EPOCH + timedelta(days=number))
            case "timestamp":
                return literal_sql(EPOCH_UTC + timedelta(microseconds=number))
            case "timestamp_ntz":
                wall_clock = EPOCH_UTC + timedelta(microseconds=number)
                return f"TIMESTAMP_NTZ '{wall_clock.replace(tzinfo=None)}'"
    except OverflowError:  # Spark's years go beyond Python's 9999
        pass
    return OPAQUE


def _is_long(node: Any, value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    known = node.dataType()
    if known.isDefined():
        return str(known.get().catalogString()) == "bigint"
    return not -(1 << 31) <= value < 1 << 31


def _attribute(node: Any) -> str:
    return str(Reference(tuple(_items(node.nameParts()))))


def _call(node: Any) -> str:
    name = str(node.functionName())
    if node.isUserDefinedFunction() or node.isDistinct():
        return OPAQUE
    arguments = [_text(argument) for argument in _items(node.arguments())]
    match name.lower(), arguments:
        case (("!" | "not"), [one]):
            return f"(NOT {one})"
        case "isnull", [one]:
            return f"({one} IS NULL)"
        case "isnotnull", [one]:
            return f"({one} IS NOT NULL)"
        case "in", [one, *some]:
            return f"({one} IN ({', '.join(some)}))"
        case ((("like" | "ilike") as word), [one, pattern]):
            return f"({one} {word.upper()} {pattern})"
        case word, [left, right] if word in _OPERATORS:
            return f"({left} {word.upper()} {right})"
        case word, _ if word.isidentifier():
            return f"{word}({', '.join(arguments)})"
        case _:
            return OPAQUE


def _cast(node: Any) -> str:
    if node.evalMode().isDefined():  # try_cast
        return OPAQUE
    kind = node.dataType().sql()
    return f"CAST({_text(node.child())} AS {kind})"


def _case(node: Any) -> str:
    whens = [
        f"WHEN {_text(pair._1())} THEN {_text(pair._2())}"  # noqa: SLF001 (Scala's)
        for pair in _items(node.branches())
    ]
    otherwise = node.otherwise()
    ending = f" ELSE {_text(otherwise.get())}" if otherwise.isDefined() else ""
    return f"CASE {' '.join(whens)}{ending} END"


def _expression(node: Any) -> str:
    return f"({node.expression()}\n)"


def _alias(node: Any) -> str:
    return _text(node.child())


def _items(sequence: Any) -> Sequence[Any]:
    return [sequence.apply(i) for i in range(sequence.size())]


_NODES: Final[dict[str, Callable[[Any], str]]] = {
    "Alias": _alias,
    "CaseWhenOtherwise": _case,
    "Cast": _cast,
    "Literal": _literal,
    "SqlExpression": _expression,
    "UnresolvedAttribute": _attribute,
    "UnresolvedFunction": _call,
}
