"""The rules of words that a program can check, over the package's docstrings.

A docstring names what it is about in its first words.  A private function has a line,
unless it names the source of an algorithm.  A limit counts something that its name has
in the plural, such as bytes, or that the text below it tells.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "skipindex"
NOT_YET: set[str] = set()
"""Packages that the rules are not applied to yet."""
_BARE = re.compile(r"(Of|So|Those|By|With|That|As)\b")
_SOURCE = re.compile(r"https?://|doi|\bet al\b|\b(19|20)\d\d\b")
_LIMIT = re.compile(r"_?(MAX|MIN|MOST|LEAST)_")
_PLURAL = re.compile(r"S(_|$)")


def documented(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int, str]]:
    """The nodes that have a docstring, with their name, its line and its text."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            text = ast.get_docstring(node)
            if text is not None:
                yield node, getattr(node, "name", "module"), node.body[0].lineno, text


def constants(tree: ast.AST) -> Iterator[tuple[str, ast.expr | None, int, str]]:
    """The constants of modules and classes: name, value, line, and the text below.

    Constants without a line between them share the text below the last of them.
    """
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Module, ast.ClassDef)):
            continue
        group: list[tuple[str, ast.expr | None, int]] = []
        for one, after in zip_longest(node.body, node.body[1:]):
            match one:
                case ast.Assign([ast.Name(name)], value):
                    group.append((name, value, one.lineno))
                case ast.AnnAssign(ast.Name(name), _, value):
                    group.append((name, value, one.lineno))
                case _:
                    continue
            match after:
                case ast.Expr(ast.Constant(str(text))):
                    pass
                case ast.Assign() | ast.AnnAssign() if (
                    after.lineno == (one.end_lineno or one.lineno) + 1
                ):
                    continue
                case _:
                    text = ""
            for name, value, line in group:
                yield name, value, line, text
            group.clear()


def _is_number(value: ast.expr | None) -> bool:
    parts = (ast.Constant, ast.BinOp, ast.operator)
    return value is not None and all(isinstance(n, parts) for n in ast.walk(value))


def bad_words(text: str) -> list[str]:
    """What is wrong with the words of a module, by line."""
    tree = ast.parse(text)
    wrong = []
    for node, name, line, doc in documented(tree):
        if _BARE.match(doc):
            wrong.append(f"{line}: {name} begins with {doc.split()[0]!r}")
        is_private = name.startswith("_") and not name.startswith("__")
        is_long = is_private and isinstance(node, ast.FunctionDef) and "\n" in doc
        if is_long and not _SOURCE.search(doc):
            wrong.append(f"{line}: {name} is private and has more than a line")
    for name, value, line, doc in constants(tree):
        if _BARE.match(doc):
            wrong.append(f"{line}: {name} begins with {doc.split()[0]!r}")
        if not doc and _LIMIT.match(name) and _is_number(value):
            told = _PLURAL.search(name)
            wrong += [] if told else [f"{line}: {name} does not tell its unit"]
    return wrong


def test_docstrings_keep_to_the_rules() -> None:
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE)
        if place.parts[0] not in NOT_YET:
            text = path.read_text(encoding="utf-8")
            wrong += [f"{place}:{complaint}" for complaint in bad_words(text)]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('"""Of a module."""', "1: module begins with 'Of'"),
        ('def f():\n    """Those that are."""', "2: f begins with 'Those'"),
        ('class A:\n    """As B."""', "2: A begins with 'As'"),
        ('A = 1\n"""With a unit."""', "1: A begins with 'With'"),
        ('def _f():\n    """One.\n\n    Two."""', "2: _f is private and has more than"),
        ("MAX_SIZE = 1 << 20", "1: MAX_SIZE does not tell its unit"),
    ],
)
def test_a_broken_rule_is_noticed(text: str, complaint: str) -> None:
    (told,) = bad_words(text)
    assert told.startswith(complaint)


@pytest.mark.parametrize(
    "text",
    [
        '"""Offsets of rows."""',
        'def f():\n    """One.\n\n    Two."""',
        'def _f():\n    """One.\n\n    Floyd (1978)."""',
        'MAX_BYTES = 1 << 20\nMAX_SIZE = 4 * 3\n"""Bytes."""',
        'def __init__(self):\n    """One.\n\n    Two."""',
    ],
)
def test_what_keeps_to_the_rules_is_taken(text: str) -> None:
    assert bad_words(text) == []
