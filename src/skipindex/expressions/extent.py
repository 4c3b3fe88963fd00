"""Limits on the size and the depth of trees.

Python's stack is limited.  So a function that walks a tree by recursion gets a tree
that ``shallow`` has cut off, and terms that ``is_large`` has not refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

from skipindex.expressions import predicate as ex
from skipindex.expressions.literals import Literal

MAX_LEVELS: Final = 100
"""Most levels of AND, OR and NOT that are judged."""
MAX_DEPTH: Final = 40
"""Most levels of functions, and of conditions in them."""
_MAX_NODES: Final = 4000
"""Most nodes of a condition; a CASE of a thousand branches has three thousand."""

_Node: TypeAlias = ex.Predicate | ex.Term


def shallow(tree: ex.Predicate, levels: int = MAX_LEVELS) -> ex.Predicate:
    """``tree``, where nothing is nested more deeply than ``levels``.

    Deeper conditions are ``Unsupported``: any row may match them, none must.
    """
    if max(_depths(tree, _operands)) <= levels:
        return tree
    return _cut_off(tree, levels)


def is_large(node: ex.Predicate | ex.Term, most: int = _MAX_NODES) -> bool:
    """Whether a condition, or a part of one, is too large or too deep to be judged.

    A part that occurs twice counts twice, because a walk visits it twice.
    """
    return any(
        seen > most or depth > MAX_DEPTH
        for seen, depth in enumerate(_depths(node, _children), 1)
    )


def size(node: ex.Predicate | ex.Term) -> int:
    """The number of nodes of a condition that is not large."""
    return sum(1 for _ in nodes(node))


def nodes(node: ex.Predicate | ex.Term) -> Iterator[ex.Predicate | ex.Term]:
    """``node`` and the terms and conditions below it, from left to right."""
    rest: list[_Node] = [node]
    while rest:
        one = rest.pop()
        yield one
        rest += reversed(list(_children(one)))


def _depths(root: _Node, below: Callable[[Any], Iterable[_Node]]) -> Iterator[int]:
    """The depth of every node, from 1, where ``below`` gives those below a node."""
    rest = [(root, 1)]
    while rest:
        node, depth = rest.pop()
        yield depth
        rest += [(child, depth + 1) for child in below(node)]


def _children(node: _Node) -> Iterator[_Node]:
    """The terms and conditions right below ``node``; literals are omitted."""
    match node:
        case ex.And() | ex.Or() | ex.Not():
            yield from _operands(node)
        case ex.Comparison(column=term) | ex.In(column=term) | ex.IsNull(column=term):
            yield term
        case ex.Like(column=term):
            yield term
        case ex.ColumnComparison(left, _, right):
            yield from (left, right)
        case ex.Call(_, arguments):
            yield from filter(_is_term, arguments)
        case ex.Case(branches, otherwise):
            for condition, value in branches:
                yield condition
                if _is_term(value):
                    yield value  # type: ignore[misc]
            if _is_term(otherwise):
                yield otherwise  # type: ignore[misc]


def _is_term(argument: ex.Term | Literal) -> bool:
    return isinstance(argument, ex.Reference | ex.Call | ex.Case)


def _operands(node: ex.Predicate) -> tuple[ex.Predicate, ...]:
    """The conditions that AND, OR or NOT combines."""
    match node:
        case ex.And(children) | ex.Or(children):
            return children
        case ex.Not(child):
            return (child,)
        case _:
            return ()


def _cut_off(tree: ex.Predicate, levels: int) -> ex.Predicate:
    if not isinstance(tree, ex.And | ex.Or | ex.Not):
        return tree
    if levels <= 1:
        return ex.Unsupported(
            ex.to_sql(tree), f"nested more than {MAX_LEVELS} levels deep"
        )
    if isinstance(tree, ex.Not):
        return ex.Not(_cut_off(tree.child, levels - 1))
    return type(tree)(tuple(_cut_off(child, levels - 1) for child in tree.children))
