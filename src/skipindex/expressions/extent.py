"""Limits on the size and the depth of trees.

Python's stack is limited.  So a function that walks a tree by recursion gets a tree
that ``shallow`` has cut off, and terms that ``is_large`` has not refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

from skipindex.expressions.literals import Literal
from skipindex.expressions.predicate import (
    And,
    Call,
    Case,
    Comparison,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    Reference,
    Term,
    Unsupported,
    to_sql,
)

MAX_LEVELS: Final = 100
"""Of AND, OR and NOT that are judged."""
_MAX_DEPTH: Final = 40
"""Of functions, and of conditions in them."""
_MAX_NODES: Final = 4000
"""Of one condition; a CASE of a thousand branches has three thousand."""

_Node: TypeAlias = Predicate | Term


def shallow(tree: Predicate, levels: int = MAX_LEVELS) -> Predicate:
    """``tree``, where nothing is nested more deeply than ``levels``.

    Deeper conditions are ``Unsupported``: any row may match them, none must.
    """
    if max(_depths(tree, _operands)) <= levels:
        return tree
    return _cut_off(tree, levels)


def is_large(node: Predicate | Term, most: int = _MAX_NODES) -> bool:
    """Whether a condition, or a part of one, is too large or too deep to be judged.

    A part that occurs twice counts twice, because a walk visits it twice.
    """
    return any(
        seen > most or depth > _MAX_DEPTH
        for seen, depth in enumerate(_depths(node, _children), 1)
    )


def size(node: Predicate | Term) -> int:
    """The number of nodes of a condition that is not large."""
    return sum(1 for _ in nodes(node))


def nodes(node: Predicate | Term) -> Iterator[Predicate | Term]:
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
    """The terms and conditions right below ``node``; literals are left out."""
    match node:
        case And() | Or() | Not():
            yield from _operands(node)
        case Comparison(column=term) | In(column=term) | IsNull(column=term):
            yield term
        case Like(column=term):
            yield term
        case Call(_, arguments):
            yield from filter(_is_term, arguments)
        case Case(branches, otherwise):
            for condition, value in branches:
                yield condition
                if _is_term(value):
                    yield value  # type: ignore[misc]
            if _is_term(otherwise):
                yield otherwise  # type: ignore[misc]


def _is_term(argument: Term | Literal) -> bool:
    return isinstance(argument, Reference | Call | Case)


def _operands(node: Predicate) -> tuple[Predicate, ...]:
    """The conditions that AND, OR or NOT combines."""
    match node:
        case And(children) | Or(children):
            return children
        case Not(child):
            return (child,)
        case _:
            return ()


def _cut_off(tree: Predicate, levels: int) -> Predicate:
    if not isinstance(tree, And | Or | Not):
        return tree
    if levels <= 1:
        return Unsupported(to_sql(tree), f"nested more than {MAX_LEVELS} levels deep")
    if isinstance(tree, Not):
        return Not(_cut_off(tree.child, levels - 1))
    return type(tree)(tuple(_cut_off(child, levels - 1) for child in tree.children))
