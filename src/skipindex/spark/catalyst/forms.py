"""Catalyst classes whose translation is more than a function call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np

from skipindex.conditions.trees.calls import call, cast_to
from skipindex.conditions.trees.comparisons import choice, is_known, truth
from skipindex.conditions.trees.conditions import is_in, like, row_in
from skipindex.conditions.trees.operands import BooleanOperand, LiteralOperand, Operand
from skipindex.expressions import Call
from skipindex.expressions.atoms import IntegerSet
from skipindex.spark.catalyst.classes import Part
from skipindex.spark.catalyst.literals import INTEGERS, MICROSECONDS, interval, literal
from skipindex.spark.catalyst.node import Form, Held, Node, Writer

_CAST_TARGETS: Final = {
    *("boolean", "tinyint", "smallint", "int", "bigint", "double", "decimal"),
    *("float", "string", "binary", "date", "timestamp", "timestamp_ntz"),
}
_TRIMS: Final = {
    "StringTrim": "trim",
    "StringTrimLeft": "ltrim",
    "StringTrimRight": "rtrim",
}
MANY: Final = 200
"""Integers of a list that are not read one by one."""
_MOST_ALTERNATIVES: Final = 100
"""Wall clocks in a list, which the planner takes one by one."""


def _literal(_write: Writer, node: Node) -> Operand:
    return literal(node.kind, node.value)


def _cast(write: Writer, node: Node) -> Operand | None:
    match node.held, node.children:
        case [str(kind), zone, mode], [child] if kind.partition("(")[
            0
        ] in _CAST_TARGETS and Part.MODE.accepts(mode):
            # Spark gives a zone to every cast.
            if "timestamp" in {kind, child.kind} and not _in_zone(write, zone):
                return None
            name, _, parameters = kind.rstrip(")").partition("(")
            digits = [int(one) for one in parameters.split(",") if one]
            return cast_to(write.operand(child), name.upper(), digits)
    return None


def _read_text(write: Writer, node: Node) -> Operand | None:
    """Spark 4 holds too what it suggests where a text cannot be read."""
    match node.held, node.children:
        case [("timestamp" | "timestamp_ntz") as kind, *suggested, zone, bool()], [
            Node(kind="string") as text,
            Node(name="Literal", kind="string", value=str()) as pattern,
        ] if kind == node.kind and len(suggested) < 2 and _in_zone(write, zone):
            name = "to_timestamp" if kind == "timestamp" else "to_timestamp_ntz"
            return call(name, [write.operand(text), write.operand(pattern)])
    return None


def _seconds_of_text(write: Writer, node: Node) -> Operand | None:
    match node.held, node.children:
        case [zone, bool()], [
            Node(kind="string") as text,
            Node(name="Literal", kind="string", value=str()) as pattern,
        ] if _in_zone(write, zone):
            arguments = [write.operand(text), write.operand(pattern)]
            return call("unix_timestamp", arguments)
    return None


def _case(write: Writer, node: Node) -> Operand | None:
    parts = [write.operand(child) for child in node.children]
    has_else = len(parts) % 2 == 1
    if node.held != (() if has_else else (None,)):
        return None
    # The value of ELSE stands where a condition would, and is none.
    pairs = zip(parts[1::2], parts[::2], strict=False)
    branches = [(truth(condition), value) for value, condition in pairs]
    return choice(branches, parts[-1] if has_else else LiteralOperand(None))


def _nanvl(write: Writer, node: Node) -> Operand | None:
    if node.held:
        return None
    value, other = map(write.operand, node.children)
    return choice([(truth(call("isnan", [value])), other)], value)


def _in(write: Writer, node: Node) -> Operand | None:
    match node.held, node.children:
        case [[]], [value]:
            return call("in", [write.operand(value)])
        case [], [value, _, *_]:
            return _member(write, value, node.children[1:])
    return None


def _in_set(write: Writer, node: Node) -> Operand | None:
    match node.children, node.value:
        case [value], [_, *_] as values:
            if value.kind in INTEGERS and {*map(type, values)} <= {int, type(None)}:
                return BooleanOperand(is_in(write.operand(value), _integers(values)))
            listed = [Node("Literal", value.kind, value=one) for one in values]
            return _member(write, value, listed)
    return None


def _integers(values: Sequence[int | None]) -> IntegerSet | tuple[int | None, ...]:
    """Integers of a list; of many, a set, which is asked as a join's keys are."""
    if len(values) < MANY or None in values:
        return tuple(values)
    return IntegerSet(np.array(values, np.int64))


def _member(write: Writer, value: Node, listed: Sequence[Node]) -> Operand | None:
    if value.name == "CreateNamedStruct":
        return _row_member(write, value, listed)
    operands = write.compared_operands([value, *listed])
    if value.kind != "timestamp_ntz" or len(listed) > _MOST_ALTERNATIVES:
        return call("in", operands)
    # The planner takes local times one by one.
    return call("or", [call("=", [operands[0], one]) for one in operands[1:]])


def _row_member(write: Writer, made: Node, listed: Sequence[Node]) -> Operand | None:
    """``(a, b) IN ((1, 'x'), …)``; there as here NULL equals NULL inside rows."""
    terms = made.children[1::2]
    kinds = [term.kind for term in terms]
    if made.held or len(terms) < 2 or "timestamp_ntz" in kinds:
        return None
    rows = []
    for row in listed:
        values = _row_values(row)
        alike = [value.kind for value in values] == kinds
        if not (values and (alike or "" in kinds)):
            return None
        rows.append([write.operand(value, compared=alike) for value in values])
    return BooleanOperand(row_in([write.operand(term) for term in terms], rows))


def _row_values(row: Node) -> Sequence[Node]:
    """The values of a row; nothing if they are not known."""
    match row:
        case Node(name="CreateNamedStruct", held=()):
            return row.children[1::2]
        case Node(name="Literal", value=[*values]):
            return [Node("Literal", value["t"], value=value["v"]) for value in values]
    return ()


def _like(write: Writer, node: Node) -> Operand | None:
    match node.held, [write.operand(child) for child in node.children]:
        case [str(escape)], [text, pattern] if len(escape) == 1:
            return BooleanOperand(like(text, pattern, LiteralOperand(escape)))
    return None


def _trim(write: Writer, node: Node) -> Operand | None:
    """SQL names the characters that it drops before the text."""
    if node.held != ((None,) if len(node.children) == 1 else ()):
        return None
    arguments = [write.operand(child) for child in reversed(node.children)]
    return call(_TRIMS[node.name], arguments)


def _locate(write: Writer, node: Node) -> Operand | None:
    if node.held:
        return None
    match node.children:
        case [*operands, Node(name="Literal", value=1)] if len(operands) == 2:
            pass  # SQL has no need to say that it begins at the first character
        case operands:
            pass
    return call("locate", [write.operand(operand) for operand in operands])


def _at_least(write: Writer, node: Node) -> Operand | None:
    """The stated number of operands, all or one, is neither NULL nor NaN."""
    known = [_is_number(child.kind, write.operand(child)) for child in node.children]
    match node.held:
        case [int(least)] if least == len(known):
            return call("and", known)
        case [1]:
            return call("or", known)
    return None


def _is_number(kind: str, operand: Operand) -> Operand:
    known = BooleanOperand(is_known(operand))
    if kind not in {"float", "double"}:
        return known
    return call("and", [known, call("not", [call("isnan", [operand])])])


def _later(write: Writer, node: Node) -> Operand | None:
    """A date or a time, and an interval."""
    match node.held, node.children:
        case [*zone], [start, Node(name="Literal") as step] if len(zone) <= 1:
            return _moved(write, start, zone, interval(step.kind, step.value))
    return None


def _steps_later(write: Writer, node: Node) -> Operand | None:
    match node.held, node.children:
        case [str(unit), zone], [Node(name="Literal", value=int(number)), start] if (
            unit.upper() in MICROSECONDS
        ):
            micros = number * MICROSECONDS[unit.upper()]
            return _moved(write, start, [zone], interval("interval day", micros))
    return None


def _moved(
    write: Writer, start: Node, zone: Sequence[Held], step: Call
) -> Operand | None:
    if start.kind == "timestamp" and not (zone and _in_zone(write, zone[0])):
        return None
    return call("+", [write.operand(start), step])


def _in_zone(write: Writer, zone: Held) -> bool:
    return Part.ZONE.accepts(zone) and write.takes_zone(zone)


_ESCAPED: Final = Form(_like, "`LIKE … ESCAPE`")
_TRIMMED: Final = Form(_trim, "`trim(…)`, `ltrim(…)`, `rtrim(…)`")
_INTERVAL: Final = Form(_later, "`+ INTERVAL`", "an interval of time, or of months")
_BY_PATTERN: Final = "of a string, by a literal pattern"
_SECONDS: Final = Form(_seconds_of_text, "`unix_timestamp(…)`", _BY_PATTERN)

FORMS: Final[Mapping[str, Form]] = MappingProxyType(
    {
        "AtLeastNNonNulls": Form(
            _at_least, "`IS NOT NULL`, `NOT isnan(…)`", "of all operands, or of one"
        ),
        "CaseWhen": Form(_case, "`CASE WHEN`"),
        "Cast": Form(
            _cast, "`CAST`", f"not `try_cast`; to {', '.join(sorted(_CAST_TARGETS))}"
        ),
        "DateAddYMInterval": _INTERVAL,
        "GetTimestamp": Form(
            _read_text, "`to_timestamp(…)`, `to_timestamp_ntz(…)`", _BY_PATTERN
        ),
        "In": Form(_in, "`IN`", "literals in the list"),
        "InSet": Form(_in_set, "`IN`"),
        "Like": _ESCAPED,
        "Literal": Form(
            _literal,
            "a literal",
            "no arrays and maps; strings in UTF-8; dates and times of years 1 to 9999",
        ),
        "NaNvl": Form(_nanvl, "`CASE WHEN isnan(…)`"),
        "StringLocate": Form(_locate, "`locate(…)`"),
        "StringTrim": _TRIMMED,
        "StringTrimLeft": _TRIMMED,
        "StringTrimRight": _TRIMMED,
        "TimeAdd": _INTERVAL,
        "TimestampAdd": Form(
            _steps_later, "`+ INTERVAL`", "a number of weeks or of shorter units"
        ),
        "TimestampAddInterval": _INTERVAL,
        "ToUnixTimestamp": _SECONDS,
        "UnixTimestamp": _SECONDS,
    }
)
"""Forms by the name of the class."""
