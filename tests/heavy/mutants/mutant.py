"""A mutant names a function and what it changes there, found by its syntax tree.

Formatting, line breaks, comments and docstrings of the source do not matter, nor does
where in the function the changed code stands.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
PACKAGE: Final = ROOT / "src" / "skipindex"

Node = ast.expr | ast.stmt | ast.pattern
"""What has a place in the source."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One broken variant.

    Args:
        name: short and unique.
        function: the module below ``skipindex`` and the name of a function, a
            ``Class.method`` or a constant in it; or a module alone.
        old: an expression, a few statements, the head of a ``case`` or an entry of
            a dictionary, as Python text; it stands exactly once in the function.
        new: what replaces it, of the same sort.
        why: the mistake.
        tests: files of which one test must fail.
    """

    name: str
    function: str
    old: str
    new: str
    why: str
    tests: tuple[str, ...]

    @property
    def module(self) -> Path:
        """The file of the function, below the package."""
        parts = self.function.split(".")
        for n_parts in range(len(parts), 0, -1):
            path = Path(*parts[:n_parts]).with_suffix(".py")
            if (PACKAGE / path).is_file():
                return path
        raise ValueError(f"mutant {self.name!r} is out of date: no module of it exists")


class Sort(Enum):
    """What a mutant replaces."""

    EXPRESSION = auto()
    STATEMENTS = auto()
    CASE = auto()
    ENTRY = auto()

    @classmethod
    def of(cls, mutant: Mutant) -> Sort:
        """By the texts: an expression only where both are one."""
        texts = (mutant.old, mutant.new)
        if mutant.old.startswith("case "):
            return cls.CASE
        if all(_is_expression(text) for text in texts):
            return cls.EXPRESSION
        if all(_is_expression(f"{{{text}}}") and ":" in text for text in texts):
            return cls.ENTRY
        return cls.STATEMENTS

    def parse(self, text: str) -> ast.AST:
        """The tree of a mutant's text."""
        match self:
            case Sort.EXPRESSION:
                return ast.parse(text, mode="eval")
            case Sort.STATEMENTS:
                return ast.parse(text)
            case Sort.CASE:
                return ast.parse(f"match _:\n    {text}\n        pass")
            case Sort.ENTRY:
                return ast.parse(f"{{{text}}}", mode="eval")


def _is_expression(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the source: from its first node to the end of its last."""

    text: str
    first: Node
    last: Node


def pieces(tree: ast.AST, sort: Sort) -> Iterator[list[Piece]]:
    """The pieces of a sort, in the rows in which they follow each other."""
    for node in ast.walk(tree):
        match sort, node:
            case Sort.EXPRESSION, ast.expr():
                yield [Piece(ast.unparse(node), node, node)]
            case Sort.CASE, ast.match_case(pattern=pattern, guard=guard):
                text = ast.unparse(pattern) + (
                    f" if {ast.unparse(guard)}" if guard else ""
                )
                yield [Piece(text, pattern, guard or pattern)]
            case Sort.ENTRY, ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    if key is not None:
                        text = f"{ast.unparse(key)}: {ast.unparse(value)}"
                        yield [Piece(text, key, value)]
            case Sort.STATEMENTS, _:
                for _, block in ast.iter_fields(node):
                    if (
                        isinstance(block, list)
                        and block
                        and isinstance(block[0], ast.stmt)
                    ):
                        yield [Piece(ast.unparse(one), one, one) for one in block]


def mutated(mutant: Mutant) -> str:
    """The text of the mutant's module.

    Raises:
        ValueError: the function is gone, or what is replaced does not stand exactly
            once in it.
    """
    text = (PACKAGE / mutant.module).read_text()
    sort = Sort.of(mutant)
    wanted = [piece.text for piece in next(pieces(sort.parse(mutant.old), sort))]
    n_wanted = len(wanted)
    found = [
        (row[at].first, row[at + n_wanted - 1].last)
        for row in pieces(_function(mutant, _parsed(text)), sort)
        for at in range(len(row) - n_wanted + 1)
        if [piece.text for piece in row[at : at + n_wanted]] == wanted
    ]
    if len(found) != 1:
        raise ValueError(
            f"mutant {mutant.name!r} is out of date: {mutant.old!r} stands "
            f"{len(found)} times in {mutant.function}"
        )
    return _replaced(text, *found[0], _new(mutant, sort, found[0][0].col_offset))


@cache
def _parsed(text: str) -> ast.Module:
    """The tree of a module, which several mutants look into."""
    return ast.parse(text)


def _function(mutant: Mutant, tree: ast.Module) -> ast.AST:
    """The part of a module that the mutant names."""
    node: ast.AST = tree
    for name in mutant.function.split(".")[len(mutant.module.parts) :]:
        named = [child for child in ast.iter_child_nodes(node) if _name(child) == name]
        if len(named) != 1:
            raise ValueError(
                f"mutant {mutant.name!r} is out of date: {len(named)} "
                f"definitions are named {mutant.function}"
            )
        node = named[0]
    return node


def _name(node: ast.AST) -> str | None:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return None


def _new(mutant: Mutant, sort: Sort, indent: int) -> str:
    """What is written where the old code begins."""
    match sort:
        case Sort.EXPRESSION:
            return f"({mutant.new})"
        case Sort.STATEMENTS:
            return textwrap.indent(mutant.new, " " * indent).lstrip()
        case Sort.CASE:
            return mutant.new.removeprefix("case ").removesuffix(":")
        case Sort.ENTRY:
            return mutant.new


def _replaced(text: str, first: Node, last: Node, new: str) -> str:
    """The source with a text from the first node to the last; columns are bytes."""
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    end_line, end_column = last.end_lineno or 0, last.end_col_offset or 0
    before = lines[first.lineno - 1][: first.col_offset]
    changed = before + new.encode() + lines[end_line - 1][end_column:]
    return b"".join([*lines[: first.lineno - 1], changed, *lines[end_line:]]).decode()
