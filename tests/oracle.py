"""What Spark answers for one row: the judge of every test, slow and plain.

Nothing of the library is used but the classes of the tree and their text.  A row is
a mapping from column name to Python value; a struct is a mapping inside of it.  NULL
is None, UNKNOWN is None too.

* Spark's order: NaN equals itself and is above infinity, -0.0 equals 0.0, text is
  ordered by its UTF-8 bytes, FALSE is below TRUE.
* An integer or a decimal meets a double as a double, otherwise numbers are exact.
  Text meets another type as a value of that type, a date meets a timestamp as its
  midnight.
* A timestamp without a zone is a wall clock of ``zone`` where it meets one with.
* ``x IN ()`` is FALSE and ``x NOT IN ()`` is TRUE, even for NULL.
* So are ``<``, ``<=``, ``>`` and ``>=`` of an integer column with a number beyond
  bigint: Spark's analyzer puts TRUE or FALSE in their place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any

from skipindex.expressions import (
    And,
    ColumnComparison,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
    Predicate,
    Reference,
    Unsupported,
    to_sql,
)

Row = Mapping[str, Any]
Judge = Callable[[str, Row], "bool | None"]


def _no_judge(text: str, row: Row) -> bool | None:
    raise AssertionError(f"nobody can judge {text!r}")


def evaluate(
    tree: Predicate,
    row: Row,
    *,
    unsupported: Judge = _no_judge,
    zone: tzinfo = UTC,
    integers: Collection[str] = (),
) -> bool | None:
    """TRUE, FALSE or UNKNOWN (None): what ``tree`` is for ``row``.

    Args:
        tree: of any shape, with and without ``Not``.
        row: a value for every column that ``tree`` names.
        unsupported: judges an ``Unsupported``, and what is said of a function of
            columns, by its text.
        zone: the session's time zone.
        integers: the columns of an integer type, for the sake of their NULLs.
    """

    def truth(node: Predicate) -> bool | None:
        match node:
            case Comparison() | In() | IsNull() | Like() if not isinstance(
                node.column, Reference
            ):
                return unsupported(to_sql(node), row)
            case And(children):
                return _all([truth(child) for child in children])
            case Or(children):
                return _negation(_all([_negation(truth(c)) for c in children]))
            case Not(child):
                return _negation(truth(child))
            case Comparison(column, operator, value):
                known = _value(row, column)
                if known is None and ".".join(column.parts) in integers:
                    known = _in_place_of_null(operator, value)
                return _comparison(known, operator, value, zone)
            case In(column, values, negated):
                member = _membership(_value(row, column), values, zone)
                return _negation(member) if negated else member
            case ColumnComparison(left, operator, right):
                sides = _value(row, left), _value(row, right)
                return _comparison(sides[0], operator, sides[1], zone)
            case IsNull(column, negated):
                return (_value(row, column) is None) != negated
            case Like(column, pattern, escape, negated):
                text = _value(row, column)
                if text is None:
                    return None
                return _matches(text, pattern, escape) != negated
            case Constant(value):
                return value
            case Unsupported(text, _):
                return unsupported(text, row)
        raise AssertionError(f"no node of the tree: {node!r}")

    return truth(tree)


def matching(
    tree: Predicate,
    columns: Mapping[str, Sequence[Any]],
    *,
    unsupported: Judge = _no_judge,
    zone: tzinfo = UTC,
    integers: Collection[str] = (),
) -> list[int]:
    """The positions of the rows that WHERE keeps, those for which ``tree`` is TRUE.

    The arguments are those of ``evaluate``, ``columns`` all values of each column.
    """
    names = list(columns)
    rows = [
        dict(zip(names, values, strict=True))
        for values in zip(*columns.values(), strict=True)
    ]
    return [
        i
        for i, row in enumerate(rows)
        if evaluate(tree, row, unsupported=unsupported, zone=zone, integers=integers)
    ]


def _value(row: Row, column: Reference) -> Any:
    value: Any = row
    for part in column.parts:
        value = None if value is None else value[part]
    return value


def _negation(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _all(truths: list[bool | None]) -> bool | None:
    if False in truths:
        return False
    return None if None in truths else True


def _comparison(
    value: Any, operator: Operator, literal: Any, zone: tzinfo
) -> bool | None:
    if operator in {Operator.NULL_SAFE_EQ, Operator.NULL_SAFE_NE}:
        if value is None or literal is None:
            same = value is literal
        else:
            same = compare(value, literal, zone) == 0
        return same == (operator is Operator.NULL_SAFE_EQ)
    if value is None or literal is None:
        return None
    order = compare(value, literal, zone)
    match operator:
        case Operator.EQ:
            return order == 0
        case Operator.NE:
            return order != 0
        case Operator.LT:
            return order < 0
        case Operator.LE:
            return order <= 0
        case Operator.GT:
            return order > 0
        case Operator.GE:
            return order >= 0
    raise AssertionError(f"no operator: {operator!r}")


def _in_place_of_null(operator: Operator, literal: Any) -> int | None:
    equality = {Operator.EQ, Operator.NE, Operator.NULL_SAFE_EQ, Operator.NULL_SAFE_NE}
    number = not isinstance(literal, bool) and isinstance(literal, int | Decimal)
    if operator in equality or not number or -(2**63) <= literal <= 2**63 - 1:
        return None
    return 0  # any number: the literal is beyond all of them


def _membership(value: Any, literals: Sequence[Any], zone: tzinfo) -> bool | None:
    if not literals:
        return False
    if value is None:
        return None
    floats = any(isinstance(literal, float) for literal in literals)
    for literal in literals:
        if literal is None:
            continue
        # The whole list has one type: next to a double, all numbers are doubles.
        number = not isinstance(literal, bool) and isinstance(literal, int | Decimal)
        same_type = float(literal) if floats and number else literal
        if compare(value, same_type, zone) == 0:
            return True
    return None if None in literals else False


def compare(value: Any, literal: Any, zone: tzinfo = UTC) -> int:
    """-1, 0 or 1: how Spark orders a column's value and a literal, neither NULL.

    Raises:
        TypeError: Spark compares no such types, or not the same in every mode.
    """
    left, right = _alike(value, literal, zone)
    return int(left > right) - int(left < right)


def _alike(value: Any, literal: Any, zone: tzinfo) -> tuple[Any, Any]:
    """Two values that Python orders as Spark orders these."""
    if isinstance(literal, str) and not isinstance(value, str):
        literal = _read(literal, type(value))
    kinds = {_kind(value), _kind(literal)}
    if kinds == {"float"} or kinds == {"float", "number"}:
        return _order_of_double(float(value)), _order_of_double(float(literal))
    if kinds == {"date", "datetime"} or kinds == {"datetime"}:
        left, right = _midnight(value), _midnight(literal)
        if (left.tzinfo is None) != (right.tzinfo is None):
            left, right = _in_zone(left, zone), _in_zone(right, zone)
        return _microseconds(left), _microseconds(right)
    if kinds == {"str"}:
        return value.encode(), literal.encode()
    if len(kinds) == 1:
        return value, literal
    raise TypeError(f"Spark compares {value!r} and {literal!r} after a cast")


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | Decimal):
        return "number"
    if isinstance(value, datetime):
        return "datetime"
    return type(value).__name__


def _order_of_double(value: float) -> tuple[bool, float]:
    if value != value:
        return (True, 0.0)
    return (False, value)  # Python holds -0.0 and 0.0 to be equal


def _midnight(value: date) -> datetime:
    if isinstance(value, datetime):
        return value
    return datetime(value.year, value.month, value.day)


def _in_zone(value: datetime, zone: tzinfo) -> datetime:
    return value.replace(tzinfo=zone) if value.tzinfo is None else value


def _microseconds(value: datetime) -> int:
    epoch = datetime(1970, 1, 1, tzinfo=UTC if value.tzinfo else None)
    return (value - epoch) // timedelta(microseconds=1)


def _read(text: str, kind: type) -> Any:
    """The value that a plain text stands for, next to a column of ``kind``."""
    if kind is bool:
        return {"true": True, "false": False}[text]
    if kind in {date, datetime}:
        return kind.fromisoformat(text)
    if kind in {int, Decimal, float}:
        return kind(text)
    raise TypeError(f"Spark compares {kind.__name__} and text after a cast")


def _matches(text: str, pattern: str, escape: str) -> bool:
    expression = ""
    position = 0
    while position < len(pattern):
        c = pattern[position]
        if c == escape:
            position += 1
            c = pattern[position : position + 1]
            if not c or c not in {"%", "_", escape}:
                raise ValueError(f"Spark refuses the pattern {pattern!r}")
            expression += re.escape(c)
        else:
            expression += {"%": ".*", "_": "."}.get(c, re.escape(c))
        position += 1
    return re.fullmatch(expression, text, re.DOTALL) is not None
