"""The forms of SQL that expressions of Spark are written in for the planner."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from skipindex.expressions import Reference
from skipindex.planner import engine

OPAQUE: Final = engine.OPAQUE
"""Stands for what only Spark can compute: every row may match a condition with it."""

_OPERATORS: Final = {
    *("=", "<=>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "div"),
}


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
        case "between", [one, low, high]:
            return f"({one} BETWEEN {low} AND {high})"
        case "extract", [unit, one]:
            word = unit.strip("'")
            return f"extract({word} FROM {one})" if word.isidentifier() else OPAQUE
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
    return parent if parent == OPAQUE else f"{parent}.{name_text((key,))}"


def name_text(parts: Sequence[str]) -> str:
    """The name of a column by its parts; SQL has no empty ones."""
    return str(Reference(tuple(parts))) if all(parts) else OPAQUE
