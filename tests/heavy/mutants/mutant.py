"""A mutant is a function and the change that breaks it, applied to its syntax tree.

Formatting, comments and docstrings of the source do not matter, nor does where in the
function the changed code stands.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
PACKAGE: Final = ROOT / "src" / "skipindex"

_ANSWERS: Final = {"never": "False", "always": "True"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One broken variant.

    Args:
        function: the module below ``skipindex`` and the name of a function, a
            ``Class.method`` or a constant in it; or a module alone.
        change: what is wrong there.  ``X -> Y`` writes Y in the place of X, both of
            them expressions, statements, or heads of a ``case``, and ``...`` for
            whatever stands there; ``drop X`` leaves out
            a statement, a condition of several, or one item of several; ``never X``
            and ``always X`` answer a question without asking it.  X stands exactly
            once in the function.
        why: the mistake.
        tests: files of which one test must fail.
    """

    function: str
    change: str
    why: str
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        """What is broken, and how."""
        return f"{self.function}: {self.change}"

    @property
    def module(self) -> Path:
        """The file of the function, below the package."""
        parts = self.function.split(".")
        for n_parts in range(len(parts), 0, -1):
            path = Path(*parts[:n_parts]).with_suffix(".py")
            if (PACKAGE / path).is_file():
                return path
        raise ValueError(f"mutant {self.name!r} is out of date: no module of it exists")


def mutated(mutant: Mutant) -> ast.Module:
    """The tree of the mutant's module.

    Raises:
        ValueError: the function is gone, what is changed does not stand exactly once
            in it, or it is what is there already.
    """
    tree = ast.parse((PACKAGE / mutant.module).read_text())
    old, new = _old_and_new(mutant.change)
    function = _function(mutant, tree)
    found = [
        (place, whatever)
        for place in _places(function)
        if (whatever := _matched(old, place.node)) is not None
    ]
    if len(found) != 1:
        raise ValueError(
            f"mutant {mutant.name!r} is out of date: what it changes stands "
            f"{len(found)} times in {mutant.function}"
        )
    [(place, whatever)] = found
    filled = _Filled(whatever)
    changed = [filled.visit(one) for one in new]
    if [ast.dump(one) for one in changed] == [ast.dump(place.node)]:
        raise ValueError(f"mutant {mutant.name!r} changes nothing")
    place.put(changed)
    return ast.fix_missing_locations(tree)


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


def _old_and_new(change: str) -> tuple[ast.AST, list[ast.AST]]:
    """What a change looks for, and what it writes there: nothing if it drops it."""
    verb, _, rest = change.partition(" ")
    if verb == "drop":
        [old] = _nodes(rest)
        return old, []
    if verb in _ANSWERS:
        [old] = _nodes(rest)
        return old, _nodes(_ANSWERS[verb])
    before, _, after = change.partition(" -> ")
    [old] = _nodes(before)
    return old, _nodes(after)


def _nodes(text: str) -> list[ast.AST]:
    """The head of a ``case``, an expression, or statements."""
    if text.startswith("case "):
        [match] = ast.parse(f"match _:\n    {text}:\n        pass").body
        assert isinstance(match, ast.Match)
        return [*match.cases]
    match ast.parse(text).body:
        case [ast.Expr(value=value)]:
            return [value]
        case statements:
            return [*statements]


def _matched(old: object, node: object) -> list[ast.expr] | None:
    """What stands for each ``...`` where a node is what is looked for, else None."""
    match old, node:
        case ast.Constant(value=value), ast.expr() if value is ...:
            return [node]
        case _, ast.Expr():  # the statement of what it evaluates
            return _matched(old, node.value)
        case ast.match_case(), ast.match_case():
            pairs = [(old.pattern, node.pattern), (old.guard, node.guard)]
        case ast.AST(), ast.AST() if type(old) is type(node):
            fields = (field for field in old._fields if field != "ctx")
            pairs = [(getattr(old, one), getattr(node, one, None)) for one in fields]
        case list(), list() if len(old) == len(node):
            pairs = [*zip(old, node, strict=True)]
        case _:
            return [] if type(old) is type(node) and old == node else None
    parts = [_matched(*pair) for pair in pairs]
    return None if None in parts else [one for part in parts if part for one in part]


class _Filled(ast.NodeTransformer):
    """Writes for each ``...`` what stood there."""

    def __init__(self, whatever: list[ast.expr]) -> None:
        self._left = iter(whatever)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """What stood there."""
        return next(self._left) if node.value is ... else node


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a node stands: in a field of its parent, or in a list of it."""

    node: ast.AST
    parent: ast.AST
    field: str
    number: int | None

    def put(self, new: list[ast.AST]) -> None:
        """Write these nodes here, or leave out what is here."""
        there = getattr(self.parent, self.field)
        match self.node, new:
            case ast.match_case(), [ast.match_case(pattern=pattern, guard=guard)]:
                self.node.pattern, self.node.guard = pattern, guard
            case _ if self.number is None:
                [new_node] = new
                setattr(self.parent, self.field, new_node)
            case ast.stmt(), _:
                there[self.number : self.number + 1] = [
                    ast.Expr(one) if isinstance(one, ast.expr) else one
                    for one in new or [ast.Pass()]
                ]
            case _ if isinstance(self.parent, ast.BoolOp) and not new:
                there[self.number] = ast.Constant(isinstance(self.parent.op, ast.And))
            case _:
                there[self.number : self.number + 1] = new


def _places(tree: ast.AST) -> Iterator[_Place]:
    """All expressions, heads of a ``case``, and statements."""
    for parent in ast.walk(tree):
        for field, there in ast.iter_fields(parent):
            is_list = isinstance(there, list)
            for number, node in enumerate(there if is_list else [there]):
                # A statement stands for the expression that it is.
                if isinstance(node, ast.stmt | ast.match_case | ast.expr) and (
                    not isinstance(parent, ast.Expr)
                ):
                    yield _Place(node, parent, field, number if is_list else None)
