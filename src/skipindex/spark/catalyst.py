"""A Catalyst expression, which a ``Column`` of Spark 3 holds, as text for the planner.

Spark 3 makes the expressions of its optimizer at once, where Spark 4 has a tree of
what the user wrote (``skipindex.spark.condition``).  An expression is written as text
only if its class is listed here and the text says all that the expression holds.
Every other one becomes the call of a function that the planner does not know: every
row may match it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

from skipindex.expressions import Reference, literal_sql
from skipindex.expressions.domain import EPOCH, EPOCH_UTC
from skipindex.planner.engine import OPAQUE

MAX_DEPTH: Final = 60
"""Of functions in functions that are read; Python's own stack has an end."""

_PACKAGES: Final = (
    "org.apache.spark.sql.catalyst.expressions",
    "org.apache.spark.sql.catalyst.analysis",
)
_OPERATORS: Final = {
    *("=", "<=>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%"),
}
_SIGNS: Final = {
    "Add": "+",
    "Divide": "/",
    "EqualNullSafe": "<=>",
    "EqualTo": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "IntegralDivide": "div",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "Multiply": "*",
    "Remainder": "%",
    "Subtract": "-",
    "UnaryMinus": "negative",
}
"""What SQL calls them; of the others ``prettyName`` is the name."""
_CALLS: Final = {
    *("EqualNullSafe", "EqualTo", "GreaterThan", "GreaterThanOrEqual", "In", "IsNaN"),
    *("IsNotNull", "IsNull", "LessThan", "LessThanOrEqual", "Not"),
    *("Coalesce", "Greatest", "Least"),
    *("AddMonths", "DateAdd", "DateDiff", "DateSub", "DayOfMonth", "DayOfWeek"),
    *("DayOfYear", "LastDay", "Month", "Quarter", "TruncDate", "UnixDate"),
    *("WeekDay", "WeekOfYear", "Year"),
    *("Ascii", "BitLength", "Concat", "Contains", "EndsWith", "Left", "Length"),
    *("Lower", "OctetLength", "Reverse", "Right", "StartsWith", "StringInstr"),
    *("StringLPad", "StringLocate", "StringRPad", "StringRepeat", "StringReplace"),
    *("Substring", "Upper", "Signum", "UnaryPositive"),
    # Whether they fail or are NULL where they have no value: plans are for both.
    *("Abs", "MakeDate", "Round", "UnaryMinus"),
}
"""Classes whose operands are all that they hold, in the order of SQL's arguments."""
_WITH_MODE: Final = {
    *("Add", "Divide", "IntegralDivide", "Multiply", "Pmod", "Remainder", "Subtract"),
}
_WITH_ZONE: Final = {"DateFormatClass", "Hour", "Minute", "Second", "TruncTimestamp"}
_PATTERNS: Final = {"ILike", "Like"}
_TRIMS: Final = {"StringTrim", "StringTrimLeft", "StringTrimRight"}
_JUNCTIONS: Final = {"And": "AND", "Or": "OR"}


def expression_text(node: Any, depth: int = 0) -> str:
    """The expression in SQL; parts that only Spark can compute read ``opaque()``."""
    name = _class_name(node)
    if depth >= MAX_DEPTH:
        return OPAQUE
    if name in _JUNCTIONS:
        return _call(_JUNCTIONS[name], _chain(node, name), depth + 1)
    if name in _OTHERS:
        return _OTHERS[name](node, depth + 1)
    if not _is_plain(node, name):
        return OPAQUE
    called = _SIGNS.get(name) or str(node.prettyName())
    return _call(called, items(node.children()), depth + 1)


def _is_plain(node: Any, name: str) -> bool:
    """Whether the name and the operands say all of the expression."""
    if name in _WITH_MODE:
        return _has_usual_mode(node)
    if name in _WITH_ZONE:  # the analyzer puts the session's there
        return not node.timeZoneId().isDefined()
    if name in _PATTERNS:
        return str(node.escapeChar()) == "\\"
    if name in _TRIMS:  # else they name the characters that they drop
        return int(node.children().size()) == 1
    return name in _CALLS


def call_text(name: str, arguments: Sequence[str]) -> str:
    """The call of the function or operator of that name, in SQL."""
    match name.lower(), arguments:
        case ((("and" | "or") as word), _):
            return f"({f' {word.upper()} '.join(arguments)})"
        case (("!" | "not"), [one]):
            return f"(NOT {one})"
        case "isnull", [one]:
            return f"({one} IS NULL)"
        case "isnotnull", [one]:
            return f"({one} IS NOT NULL)"
        case "in", [one]:
            # FALSE, and of NULL it is FALSE or UNKNOWN, as the session has it.
            return f"({one} IS NULL AND NULL AND {OPAQUE})"
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


def case_text(branches: Iterable[tuple[str, str]], otherwise: str | None) -> str:
    """``CASE WHEN`` of the branches, and the value where none is TRUE."""
    whens = [f"WHEN {condition} THEN {value}" for condition, value in branches]
    ending = "" if otherwise is None else f" ELSE {otherwise}"
    return f"CASE {' '.join(whens)}{ending} END"


def field_text(parent: str, key: str) -> str:
    """A field of a struct, or the value of a key of a map."""
    return parent if parent == OPAQUE else f"{parent}.{Reference((key,))}"


def moment_text(kind: str, number: int) -> str:
    """A date or a time, of Spark's type ``kind``, from Spark's number for it."""
    try:
        match kind:
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


def items(sequence: Any) -> list[Any]:
    """What a sequence of Scala's holds."""
    return [sequence.apply(i) for i in range(sequence.size())]


def _class_name(node: Any) -> str:
    """The class of an expression without its package; nothing if it is not Spark's."""
    package, _, name = str(node.getClass().getName()).rpartition(".")
    return name if package in _PACKAGES else ""


def _call(name: str, operands: Iterable[Any], depth: int) -> str:
    return call_text(name, [expression_text(one, depth) for one in operands])


def _chain(node: Any, name: str) -> list[Any]:
    """What ``a AND b AND c`` is made of, however many there are."""
    found, rest = [], [node]
    while rest:
        one = rest.pop()
        if _class_name(one) == name:
            rest += [one.right(), one.left()]
        else:
            found.append(one)
    return found


def _has_usual_mode(node: Any) -> bool:
    """Whether it fails or is NULL as the session has it: plans are for both."""
    return str(node.evalMode().toString()) in {"LEGACY", "ANSI"}


def _literal(node: Any, _depth: int) -> str:
    value, kind = node.value(), str(node.dataType().catalogString())
    match kind:
        case "void":
            return literal_sql(None)
        case _ if value is None:
            return OPAQUE
        case "boolean" | "int" | "double":
            return literal_sql(value)
        case "bigint":
            return f"{value}L"
        case "string":
            return literal_sql(str(value.toString()))
        case "binary":
            return literal_sql(bytes(value))
        case "date" | "timestamp" | "timestamp_ntz":
            return moment_text(kind, value)
        case _ if kind.startswith("decimal"):
            return _decimal(value.toJavaBigDecimal(), kind)
    return OPAQUE


def _decimal(value: Decimal, kind: str) -> str:
    """A decimal, if Spark gives its text that type."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "Spark has no NaN among its decimals"
    read_as = f"decimal({max(len(digits), -exponent)},{-exponent})"
    return literal_sql(value) if kind == read_as else OPAQUE


def _attribute(node: Any, _depth: int) -> str:
    return str(Reference(tuple(items(node.nameParts()))))


def _field(node: Any, depth: int) -> str:
    child, key = node.child(), node.extraction()
    if _class_name(child) not in {"UnresolvedAttribute", "UnresolvedExtractValue"}:
        return OPAQUE
    if _class_name(key) != "Literal" or key.dataType().catalogString() != "string":
        return OPAQUE
    return field_text(expression_text(child, depth), str(key.value().toString()))


def _function(node: Any, depth: int) -> str:
    names = items(node.nameParts())
    if len(names) > 1 or node.isDistinct() or node.ignoreNulls():
        return OPAQUE
    if node.filter().isDefined():
        return OPAQUE
    return _call(str(names[0]), items(node.arguments()), depth)


def _cast(node: Any, depth: int) -> str:
    if not _has_usual_mode(node) or node.timeZoneId().isDefined():
        return OPAQUE
    return f"CAST({expression_text(node.child(), depth)} AS {node.dataType().sql()})"


def _case(node: Any, depth: int) -> str:
    def text(part: Any) -> str:
        return expression_text(part, depth)

    branches = [(text(pair._1()), text(pair._2())) for pair in items(node.branches())]  # noqa: SLF001 (Scala's)
    otherwise = node.elseValue()
    return case_text(branches, text(otherwise.get()) if otherwise.isDefined() else None)


def _alias(node: Any, depth: int) -> str:
    return expression_text(node.child(), depth)


_OTHERS: Final[dict[str, Callable[[Any, int], str]]] = {
    "Alias": _alias,
    "CaseWhen": _case,
    "Cast": _cast,
    "Literal": _literal,
    "UnresolvedAttribute": _attribute,
    "UnresolvedExtractValue": _field,
    "UnresolvedFunction": _function,
}
