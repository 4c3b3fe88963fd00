"""The rules of words that a program can check, over docs, docstrings and messages.

A docstring names its subject in its first words.  A private function has one line,
unless it names the source of an algorithm.  A limit names its unit in the plural, such
as bytes, or in the text below it.

Some phrases were riddles to readers, and were replaced everywhere.  The lists below
name the better words; add a phrase when a reader stumbles over one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "skipindex"
NOT_YET: set[str] = set()
"""Packages that the rules are not applied to yet."""
GONE = {
    "a column that is not there": "a column that does not exist",
    "a table that is there": "an existing table",
    "are gone or changed": "were deleted or changed",
    "are no list": "are not a list",
    "as ever": "as before",
    "be wanted": "be requested",
    "by turns": "alternately",
    "can be told": "is known",
    "can tell": "knows, can compute",
    "cannot be told": "is unknown",
    "cannot tell": "does not know, cannot determine",
    "drawn questions": "sample conditions",
    "files that are gone": "deleted files",
    "files that arrived": "new files",
    "forget indexes": "drop indexes",
    "from when on": "the time from which",
    "from which on": "at which",
    "go by": "use",
    "had it already": "were up to date",
    "hangs on": "depends on",
    "in the long run": "over many runs",
    "in vain": "without success",
    "is gone or changed": "was deleted or changed",
    "is not remembered": "is no longer in memory",
    "is the same one": "is unchanged",
    "is told": "is reported",
    "just so": "unchanged",
    "know rows": "have row positions",
    "known, and gone": "indexed, and deleted",
    "knows no rows": "has no row positions",
    "knows rows": "has row positions",
    "left alone": "not changed, ignored",
    "lie where": "overlap",
    "lies where": "overlaps",
    "looked at anew": "read again",
    "may lack": "is optional, can be without",
    "never asked for": "in no query",
    "no opinion": "unknown",
    "no other than": "the same",
    "of before": "former, earlier",
    "of use": "useful",
    "one above the other": "overlapping",
    "only known nearly": "known only approximately",
    "questions that were drawn": "sample conditions",
    "read rightly": "decoded",
    "reader who": "reader that",
    "readers who": "readers that",
    "said of": "a term before its noun",
    "so many files": "the number of files",
    "so many of": "a number of",
    "stand for themselves": "are plain text",
    "surely": "certainly",
    "take away": "remove",
    "take the record back": "remove the declaration",
    "tells of": "reports",
    "that are wanted": "that are requested",
    "that there is not": "that does not exist",
    "the funnel": "the stages",
    "the latter": "the noun",
    "the share of": "the fraction of",
    "the truth": "the rows, the exact result",
    "there is no such kind": "the kind does not exist",
    "there is no such table any more": "the table no longer exists",
    "to be had": "possible",
    "wall clock": "local time",
    "what is new": "new files, new rows",
    "whatever the budget": "with any budget",
    "where memory is short": "if memory is short",
    "without a line of Python": "without Python code",
    "worth its bytes": "pays for its bytes",
}
"""Phrases that are in no page, docstring or message, and the better words."""
GONE_FROM_PAGES = {
    "anew": "again",
    "are asked": "are probed, are requested",
    "are told": "are reported",
    "asked for": "requested",
    "at once": "immediately, or at the same time",
    "but for": "except for",
    "is asked": "is probed, is requested",
    "left out": "omitted, excluded",
    "looked at": "read, probed, checked",
    "need not": "does not have to",
    "of ours": "of skipindex",
    "says how": "describes, documents",
    "so many bytes": "the number of bytes",
    "stands": "is, is stored",
    "where they": "if they",
}
"""Phrases that are in no page, and the better words; docstrings still have some."""
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


def phrases(text: str, gone: Mapping[str, str]) -> list[str]:
    """The phrases of a list that a text has, each with the better words."""
    plain = " ".join(text.split()).lower()
    return [
        f"{phrase!r} (better: {better})"
        for phrase, better in gone.items()
        if (low := phrase.lower()) in plain  # which takes less time
        and re.search(rf"(?<![\w-]){re.escape(low)}(?![\w-])", plain)
    ]


def pages() -> Iterator[tuple[str, str]]:
    """The pages with their text: decisions and released changes are not edited."""
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")):
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        if name == "CHANGELOG.md":
            text = re.split(r"^## \d", text, maxsplit=1, flags=re.MULTILINE)[0]
        if not name.startswith("docs/adr/"):
            yield name, re.sub(r"`[^`\n]+`", "``", text)


def test_the_pages_have_no_phrase_that_went() -> None:
    wrong = [
        f"{name}: {found}"
        for name, text in pages()
        for found in phrases(text, {**GONE, **GONE_FROM_PAGES})
    ]
    assert wrong == []


def test_docstrings_and_messages_have_no_phrase_that_went() -> None:
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [p.value for p in node.values if isinstance(p, ast.Constant)]
                text = "{}".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            else:
                continue
            place = f"{path.relative_to(SOURCE)}:{node.lineno}"
            wrong += [f"{place}: {found}" for found in phrases(text, GONE)]
    assert wrong == []


@pytest.mark.parametrize("text", ["It was in vain.", "In\n    vain", "'in vain'"])
def test_a_phrase_that_went_is_noticed(text: str) -> None:
    assert phrases(text, GONE) == ["'in vain' (better: without success)"]


@pytest.mark.parametrize("text", ["invain", "in vainer words", "plain-in vain-x"])
def test_a_part_of_a_word_is_no_phrase(text: str) -> None:
    assert phrases(text, GONE) == []
