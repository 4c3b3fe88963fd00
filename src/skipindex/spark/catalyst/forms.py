"""The classes whose SQL is more than a call of their operands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from skipindex.expressions import literal_sql
from skipindex.spark.catalyst.classes import Part
from skipindex.spark.catalyst.literals import (
    INTEGERS,
    MICROSECONDS,
    interval_text,
    literal_text,
)
from skipindex.spark.catalyst.node import Held, Node
from skipindex.spark.catalyst.sql_text import OPAQUE, call_text, case_text
from skipindex.spark.catalyst.writer import Form, Writer

_CAST_TARGETS: Final = {
    *("boolean", "tinyint", "smallint", "int", "bigint", "double", "decimal"),
    *("float", "string", "binary", "date", "timestamp", "timestamp_ntz"),
}
_TRIMS: Final = {
    "StringTrim": "trim",
    "StringTrimLeft": "ltrim",
    "StringTrimRight": "rtrim",
}
_MOST_ALTERNATIVES: Final = 100
"""Wall clocks in a list, which the planner takes one by one."""


def _literal(_write: Writer, node: Node) -> str | None:
    return literal_text(node.kind, node.value)


def _cast(write: Writer, node: Node) -> str | None:
    match node.held, node.children:
        case [str(kind), zone, mode], [child] if kind.partition("(")[
            0
        ] in _CAST_TARGETS and Part.MODE.accepts(mode):
            # Spark gives a zone to every cast.
            if "timestamp" in {kind, child.kind} and not _in_zone(write, zone):
                return None
            return f"CAST({write.text(child)} AS {kind.upper()})"
    return None


def _read_text(write: Writer, node: Node) -> str | None:
    """Spark 4 holds too what it suggests where a text cannot be read."""
    match node.held, node.children:
        case [("timestamp" | "timestamp_ntz") as kind, *suggested, zone, bool()], [
            Node(kind="string") as text,
            Node(name="Literal", kind="string", value=str()) as pattern,
        ] if kind == node.kind and len(suggested) < 2 and _in_zone(write, zone):
            name = "to_timestamp" if kind == "timestamp" else "to_timestamp_ntz"
            return call_text(name, [write.text(text), write.text(pattern)])
    return None


def _seconds_of_text(write: Writer, node: Node) -> str | None:
    match node.held, node.children:
        case [zone, bool()], [
            Node(kind="string") as text,
            Node(name="Literal", kind="string", value=str()) as pattern,
        ] if _in_zone(write, zone):
            arguments = [write.text(text), write.text(pattern)]
            return call_text("unix_timestamp", arguments)
    return None


def _case(write: Writer, node: Node) -> str | None:
    parts = [write.text(child) for child in node.children]
    has_else = len(parts) % 2 == 1
    if node.held != (() if has_else else (None,)):
        return None
    branches = zip(parts[::2], parts[1::2], strict=False)
    return case_text(branches, parts[-1] if has_else else None)


def _nanvl(write: Writer, node: Node) -> str | None:
    if node.held:
        return None
    value, other = map(write.text, node.children)
    return case_text([(call_text("isnan", [value]), other)], value)


def _in(write: Writer, node: Node) -> str | None:
    match node.held, node.children:
        case [[]], [value]:
            return call_text("in", [write.text(value)])
        case [], [value, _, *_]:
            return _member(write, value, node.children[1:])
    return None


def _in_set(write: Writer, node: Node) -> str | None:
    match node.children, node.value:
        case [value], [_, *_] as values:
            if value.kind in INTEGERS and all(isinstance(v, int) for v in values):
                return call_text("in", [write.text(value), *map(str, values)])
            listed = [Node("Literal", value.kind, value=one) for one in values]
            return _member(write, value, listed)
    return None


def _member(write: Writer, value: Node, listed: Sequence[Node]) -> str | None:
    if value.name == "CreateNamedStruct":
        return _row_member(write, value, listed)
    texts = write.compared_texts([value, *listed])
    if value.kind != "timestamp_ntz" or len(listed) > _MOST_ALTERNATIVES:
        return call_text("in", texts)
    # The planner takes wall clocks one by one.
    return call_text("or", [call_text("=", [texts[0], one]) for one in texts[1:]])


def _row_member(write: Writer, made: Node, listed: Sequence[Node]) -> str | None:
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
        rows.append(_listed(write.text(value, compared=alike) for value in values))
    return f"({_listed(map(write.text, terms))} IN {_listed(rows)})"


def _row_values(row: Node) -> Sequence[Node]:
    """What stands in a row; nothing if that is not known."""
    match row:
        case Node(name="CreateNamedStruct", held=()):
            return row.children[1::2]
        case Node(name="Literal", value=[*values]):
            return [Node("Literal", value["t"], value=value["v"]) for value in values]
    return ()


def _listed(texts: Iterable[str]) -> str:
    return f"({', '.join(texts)})"


def _like(write: Writer, node: Node) -> str | None:
    match node.held, [write.text(child) for child in node.children]:
        case ["\\"], texts:
            return call_text("like", texts)
        case [str(escape)], [text, pattern]:
            return f"({text} LIKE {pattern} ESCAPE {literal_sql(escape)})"
    return None


def _trim(write: Writer, node: Node) -> str | None:
    """SQL names the characters that it drops before the text."""
    if node.held != ((None,) if len(node.children) == 1 else ()):
        return None
    arguments = [write.text(child) for child in reversed(node.children)]
    return call_text(_TRIMS[node.name], arguments)


def _locate(write: Writer, node: Node) -> str | None:
    if node.held:
        return None
    match node.children:
        case [*operands, Node(name="Literal", value=1)] if len(operands) == 2:
            pass  # SQL has no need to say that it begins at the first character
        case operands:
            pass
    return call_text("locate", [write.text(operand) for operand in operands])


def _at_least(write: Writer, node: Node) -> str | None:
    """The stated number of operands, all or one, is neither NULL nor NaN."""
    known = [_is_known(child.kind, write.text(child)) for child in node.children]
    match node.held:
        case [int(least)] if least == len(known):
            return call_text("and", known)
        case [1]:
            return call_text("or", known)
    return None


def _is_known(kind: str, text: str) -> str:
    known = call_text("isnotnull", [text])
    if kind not in {"float", "double"}:
        return known
    return call_text("and", [known, call_text("not", [call_text("isnan", [text])])])


def _later(write: Writer, node: Node) -> str | None:
    """A date or a time, and an interval."""
    match node.held, node.children:
        case [*zone], [start, Node(name="Literal") as step] if len(zone) <= 1:
            return _moved(write, start, zone, interval_text(step.kind, step.value))
    return None


def _steps_later(write: Writer, node: Node) -> str | None:
    match node.held, node.children:
        case [str(unit), zone], [Node(name="Literal", value=int(number)), start] if (
            unit.upper() in MICROSECONDS
        ):
            micros = number * MICROSECONDS[unit.upper()]
            return _moved(write, start, [zone], interval_text("interval day", micros))
    return None


def _moved(write: Writer, start: Node, zone: Sequence[Held], step: str) -> str | None:
    if step == OPAQUE:
        return None
    if start.kind == "timestamp" and not (zone and _in_zone(write, zone[0])):
        return None
    return f"({write.text(start)} + {step})"


def _in_zone(write: Writer, zone: Held) -> bool:
    return Part.ZONE.accepts(zone) and write.takes_zone(zone)


_ESCAPED: Final = Form(_like, "`LIKE … ESCAPE`")
_TRIMMED: Final = Form(_trim, "`trim(…)`, `ltrim(…)`, `rtrim(…)`")
_INTERVAL: Final = Form(
    _later, "`+ INTERVAL`", "an interval of whole seconds, or of months"
)
_BY_PATTERN: Final = "of a text, by a pattern that is a literal"
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
            "no arrays and maps; text in UTF-8; days and times of the years 1 to 9999",
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
