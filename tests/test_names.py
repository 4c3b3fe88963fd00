"""Names that say nothing of what they name, or by a picture, do not come back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "skipindex"
GONE: Final = {
    "found": "the thing itself: evaluation, match, rows; or result",
    "Purse": "ValueBudget",
    "purse": "value_budget",
    "buys": "can_afford",
    "_Looks": "ValueHistory",
    "_Ears": "_SigintHandler",
    "heard_soon": "interruptible",
    "Ends": "FileBounds",
    "observe_trusting": "observe",
    "list_from_log": "observe",
    "unlike_log": "difference_from_log",
    "TOLD_TYPES": "EXPLICIT_TYPES",
}
"""Names that are not given any more, and what to call the thing instead."""
ELSEWHERE: Final = {
    ("spark/pruning/tables.py", "_Looks"),
}
"""Modules where a name says what it names."""


def names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The names that a module gives, with their lines."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.arg(arg=name):
                yield name, node.lineno
            case ast.Name(id=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name.lstrip("_"), node.lineno


def gone(place: str, text: str) -> list[str]:
    return [
        f"{place}:{line}: {name} (better: {GONE[name]})"
        for name, line in names(ast.parse(text))
        if name in GONE and (place, name) not in ELSEWHERE
    ]


def test_no_module_gives_a_name_that_went() -> None:
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).as_posix()
        wrong += gone(place, path.read_text(encoding="utf-8"))
    assert wrong == []


@pytest.mark.parametrize(
    "text",
    [
        "found = 1",
        "def f(found): pass",
        "class Purse: pass",
        "self._found = 2",
        "rows = [found for found in some]",
        "if (found := g()): pass",
    ],
)
def test_a_name_that_went_is_noticed(text: str) -> None:
    (complaint,) = gone("any.py", text)
    assert complaint.startswith("any.py:1: ")
