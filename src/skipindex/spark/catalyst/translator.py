"""Catalyst's expressions as SQL for the planner.

An expression is written as text only if its class is listed in ``classes`` or here, and
the text says all that the expression holds.  Every other one becomes ``opaque()``, a
function that the planner does not know: every row may match a condition with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from skipindex.expressions import literal_sql
from skipindex.spark.catalyst.classes import (
    CALLS,
    COMPARISONS,
    TRANSPARENT,
    Part,
    Shape,
)
from skipindex.spark.catalyst.literals import interval_text, literal_text
from skipindex.spark.catalyst.node import Node
from skipindex.spark.catalyst.sql_text import (
    OPAQUE,
    call_text,
    case_text,
    field_text,
    name_text,
)

_HARMLESS: Final = {"comment"}
"""Metadata of a column that says nothing of its values."""
_CAST_TARGETS: Final = {
    *("boolean", "tinyint", "smallint", "int", "bigint", "double", "decimal"),
    *("string", "date", "timestamp", "timestamp_ntz"),
}
_MOST_ALTERNATIVES: Final = 100
_STEPS: Final = {
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 7 * 86_400_000_000,
}
"""Units of a time, in microseconds, that are no longer than a wall clock shows."""


@dataclass(slots=True)
class Translator:
    """Writes expressions as SQL, and remembers the time zone that they hold.

    Args:
        columns: the types of the table's columns, as a catalog writes them.
        zone: the first zone that a value depends on; None if there is none.
    """

    columns: Mapping[str, str]
    zone: str | None = None

    def text(self, node: Node, *, compared: bool = False) -> str:
        """The expression in SQL; parts that only Spark can compute read ``opaque()``.

        Args:
            node: the expression.
            compared: it is compared with values of its own type.
        """
        name = node.name
        if name in _OTHERS:
            return _OTHERS[name](self, node)
        if name == "Literal":
            return literal_text(node.kind, node.value, compared=compared)
        if name in TRANSPARENT and self._accepts(TRANSPARENT[name], node):
            return self.text(node.children[0], compared=compared)
        if name in COMPARISONS and self._accepts(COMPARISONS[name], node):
            return call_text(COMPARISONS[name].sql, self.compared_texts(node.children))
        if name in CALLS and self._accepts(CALLS[name], node):
            return call_text(CALLS[name].sql, [self.text(one) for one in node.children])
        return OPAQUE

    def compared_texts(self, operands: Sequence[Node]) -> list[str]:
        """Operands, of which literals are brought into the type of the others."""
        kinds = {operand.kind for operand in operands}
        alike = len(kinds) == 1 and "" not in kinds
        return [self.text(operand, compared=alike) for operand in operands]

    def _accepts(self, shape: Shape, node: Node) -> bool:
        if not shape.accepts(node.held):
            return False
        zones = [
            held
            for part, held in zip(shape.parts, node.held, strict=True)
            if part is Part.ZONE
        ]
        return all(map(self.takes_zone, zones))

    def takes_zone(self, zone: str | None) -> bool:
        """Whether it is the zone of all others; None is that of the session."""
        if zone is None:
            return True
        if self.zone is None:
            self.zone = zone
        return zone == self.zone


def _attribute(write: Translator, node: Node) -> str:
    """A column of the table, if the table's type is what Spark takes it for."""
    match node.held:
        case [str() as name, kind, bool(), str() as metadata] if (
            kind == node.kind
            and write.columns.get(name) == kind
            and _HARMLESS.issuperset(json.loads(metadata))
        ):
            return name_text((name,))
    return OPAQUE


def _named(_write: Translator, node: Node) -> str:
    """A name that Spark has not looked up yet."""
    match node.held:
        case [[*parts]] if parts and all(isinstance(part, str) for part in parts):
            return name_text(parts)
    return OPAQUE


def _struct_field(write: Translator, node: Node) -> str:
    (parent,) = node.children
    if not node.field or parent.name not in {"AttributeReference", "GetStructField"}:
        return OPAQUE
    return field_text(write.text(parent), node.field)


def _extracted(write: Translator, node: Node) -> str:
    """A field of a struct, or the value of a key of a map: the table tells."""
    if len(node.children) != 2 or node.held:
        return OPAQUE
    parent, key = node.children
    if parent.name not in {"UnresolvedAttribute", "UnresolvedExtractValue"}:
        return OPAQUE
    if not (key.is_literal() and key.kind == "string" and isinstance(key.value, str)):
        return OPAQUE
    return field_text(write.text(parent), key.value) if key.value else OPAQUE


def _function(write: Translator, node: Node) -> str:
    """A function that Spark has not looked up yet."""
    match node.held:
        case [[str() as name], False, None, False]:
            return call_text(name, [write.text(one) for one in node.children])
    return OPAQUE


def _cast(write: Translator, node: Node) -> str:
    match node.held:
        case [str() as kind, zone, mode] if kind.partition("(")[
            0
        ] in _CAST_TARGETS and Part.MODE.accepts(mode):
            (child,) = node.children
            # Spark gives the zone to every cast.
            uses_zone = "timestamp" in {kind, child.kind}
            if uses_zone and not write.takes_zone(zone):
                return OPAQUE
            return f"CAST({write.text(child)} AS {kind.upper()})"
    return OPAQUE


def _case(write: Translator, node: Node) -> str:
    parts = [write.text(child) for child in node.children]
    has_else = len(parts) % 2 == 1
    if node.held != (() if has_else else (None,)):
        return OPAQUE
    branches = zip(parts[::2], parts[1::2], strict=False)
    return case_text(branches, parts[-1] if has_else else None)


def _in(write: Translator, node: Node) -> str:
    if len(node.children) == 1 and node.held == ([],):
        return call_text("in", [write.text(node.children[0])])
    if node.held:
        return OPAQUE
    value, *listed = node.children
    if value.name == "CreateNamedStruct":
        return _rows(write, value, listed)
    return _member(value.kind, write.compared_texts(node.children))


def _in_set(write: Translator, node: Node) -> str:
    (value,) = node.children
    if not isinstance(node.value, list) or not node.value:
        return OPAQUE
    listed = [Node("Literal", value.kind, value=one) for one in node.value]
    if value.name == "CreateNamedStruct":
        return _rows(write, value, listed)
    return _member(value.kind, write.compared_texts([value, *listed]))


def _member(kind: str, operands: Sequence[str]) -> str:
    value, *listed = operands
    if kind != "timestamp_ntz" or len(listed) > _MOST_ALTERNATIVES:
        return call_text("in", operands)
    # The planner takes wall clocks one by one.
    return call_text("or", [call_text("=", [value, one]) for one in listed])


def _rows(write: Translator, made: Node, listed: Sequence[Node]) -> str:
    """``(a, b) IN ((1, 'x'), …)``: NULL equals NULL inside rows."""
    terms = made.children[1::2]
    rows = []
    for one in listed:
        if not (one.is_literal() and isinstance(one.value, list)):
            return OPAQUE
        row = [Node("Literal", part["t"], value=part["v"]) for part in one.value]
        if [term.kind for term in terms] != [part.kind for part in row]:
            return OPAQUE
        rows.append(_listed([write.text(part, compared=True) for part in row]))
    if made.held or len(terms) < 2 or "timestamp_ntz" in {t.kind for t in terms}:
        return OPAQUE
    return f"({_listed(map(write.text, terms))} IN {_listed(rows)})"


def _listed(texts: Iterable[str]) -> str:
    return f"({', '.join(texts)})"


def _like(write: Translator, node: Node) -> str:
    left, right = map(write.text, node.children)
    match node.held:
        case ["\\"]:
            return call_text("like", [left, right])
        case [str() as escape]:
            return f"({left} LIKE {right} ESCAPE {literal_sql(escape)})"
    return OPAQUE


def _trim(write: Translator, node: Node) -> str:
    """SQL names the characters that it drops before the text."""
    name = {"StringTrim": "trim", "StringTrimLeft": "ltrim", "StringTrimRight": "rtrim"}
    arguments = [write.text(child) for child in reversed(node.children)]
    if node.held != ((None,) if len(arguments) == 1 else ()):
        return OPAQUE
    return call_text(name[node.name], arguments)


def _locate(write: Translator, node: Node) -> str:
    *operands, start = node.children
    if node.held or not (start.is_literal() and start.value == 1):
        return OPAQUE
    return call_text("locate", [write.text(operand) for operand in operands])


def _nanvl(write: Translator, node: Node) -> str:
    value, other = map(write.text, node.children)
    return case_text([(call_text("isnan", [value]), other)], value)


def _at_least(write: Translator, node: Node) -> str:
    """As many operands as it says are neither NULL nor NaN: all of them, or one."""
    known = []
    for child in node.children:
        text = write.text(child)
        is_known = call_text("isnotnull", [text])
        if child.kind in {"float", "double"}:
            number = call_text("not", [call_text("isnan", [text])])
            is_known = call_text("and", [is_known, number])
        known.append(is_known)
    match node.held:
        case [int() as least] if least == len(known):
            return call_text("and", known)
        case [1]:
            return call_text("or", known)
    return OPAQUE


def _later(write: Translator, node: Node) -> str:
    """A date or a time, and an interval."""
    start, interval = node.children
    if node.name == "DateAddYMInterval":
        is_known = not node.held
    else:
        is_known = Shape("", (Part.ZONE,)).accepts(node.held) and (
            start.kind != "timestamp" or write.takes_zone(node.held[0])
        )
    step = interval_text(interval.kind, interval.value)
    if not (is_known and interval.is_literal()) or step == OPAQUE:
        return OPAQUE
    return f"({write.text(start)} + {step})"


def _unit_added(write: Translator, node: Node) -> str:
    """``dateadd(HOUR, 3, t)``."""
    number, start = node.children
    match node.held:
        case [str() as unit, zone] if (
            unit.upper() in _STEPS
            and number.is_literal()
            and isinstance(number.value, int)
            and (start.kind != "timestamp" or write.takes_zone(zone))
        ):
            step = interval_text("interval day", number.value * _STEPS[unit.upper()])
            if step != OPAQUE:
                return f"({write.text(start)} + {step})"
    return OPAQUE


_OTHERS: Final[dict[str, Callable[[Translator, Node], str]]] = {
    "AtLeastNNonNulls": _at_least,
    "AttributeReference": _attribute,
    "CaseWhen": _case,
    "Cast": _cast,
    "DateAddYMInterval": _later,
    "GetStructField": _struct_field,
    "In": _in,
    "InSet": _in_set,
    "Like": _like,
    "NaNvl": _nanvl,
    "StringLocate": _locate,
    "StringTrim": _trim,
    "StringTrimLeft": _trim,
    "StringTrimRight": _trim,
    "TimeAdd": _later,
    "TimestampAdd": _unit_added,
    "TimestampAddInterval": _later,
    "UnresolvedAttribute": _named,
    "UnresolvedExtractValue": _extracted,
    "UnresolvedFunction": _function,
}
