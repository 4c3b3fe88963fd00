"""Rules that make a bound tree smaller; each keeps the rows that are TRUE.

A rule is a plain function from node to node, with its equation as docstring.
They run bottom-up, once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from skipindex.atoms import (
    Atom,
    IntegerSet,
    NoneOf,
    OneOf,
    Range,
    Value,
    Values,
    successor,
    values_between,
)
from skipindex.planner.bound import AllOf, AnyOf, Bound, Known, Leaf


def simplify(tree: Bound) -> Bound:
    """``tree``, smaller; TRUE for the same rows."""
    if isinstance(tree, AllOf | AnyOf):
        tree = type(tree)(tuple(map(simplify, tree.children)))
    for rule in RULES:
        tree = rule(tree)
    return tree


def flatten(node: Bound) -> Bound:
    """``a AND (b AND c) = a AND b AND c``, and so for OR."""
    if not isinstance(node, AllOf | AnyOf):
        return node
    kind = type(node)
    children: list[Bound] = []
    for child in node.children:
        children += child.children if isinstance(child, kind) else (child,)
    return kind(tuple(children))


def fold_constants(node: Bound) -> Bound:
    """``a AND TRUE = a``, ``a AND FALSE = FALSE``; ``a OR FALSE = a``, and so on."""
    if not isinstance(node, AllOf | AnyOf):
        return node
    neutral = isinstance(node, AllOf)
    if Known(not neutral) in node.children:
        return Known(not neutral)
    children = tuple(child for child in node.children if child != Known(neutral))
    return type(node)(children) if children else Known(neutral)


def merge_conjuncts(node: Bound) -> Bound:
    """``low <= c AND c < high`` is one range; ``c IN A AND c IN B = c IN (A & B)``."""
    return _merge(node, _both, " AND ") if isinstance(node, AllOf) else node


def merge_disjuncts(node: Bound) -> Bound:
    """``c IN A OR c IN B = c IN (A | B)``."""
    return _merge(node, _either, " OR ") if isinstance(node, AnyOf) else node


def unwrap(node: Bound) -> Bound:
    """An AND or OR of one child is that child; equal children count once."""
    if not isinstance(node, AllOf | AnyOf):
        return node
    children = tuple(dict.fromkeys(node.children))
    return children[0] if len(children) == 1 else type(node)(children)


RULES: Final[tuple[Callable[[Bound], Bound], ...]] = (
    flatten,
    fold_constants,
    merge_conjuncts,
    merge_disjuncts,
    fold_constants,
    unwrap,
)


def _merge(
    node: AllOf | AnyOf,
    combine: Callable[[Atom, Atom], Atom | Known | None],
    word: str,
) -> Bound:
    """Combine neighbours pairwise, wherever ``combine`` can."""
    merged: list[Bound] = []
    for child in node.children:
        new: Bound = child
        for i, other in enumerate(merged):
            if not (isinstance(new, Leaf) and isinstance(other, Leaf)):
                continue
            result = combine(other.atom, new.atom)
            if result is not None:
                text = new.text
                if other.text != text:
                    text = f"({other.text}{word}{text})"
                new = result if isinstance(result, Known) else Leaf(result, text)
                del merged[i]
                break
        merged.append(new)
    return type(node)(tuple(merged))


def _both(a: Atom, b: Atom) -> Atom | Known | None:
    if a.column != b.column:
        return None
    match a, b:
        case Range(), Range():
            low = _choose(max, [v for v in (a.low, b.low) if v is not None])
            high = _choose(min, [v for v in (a.high, b.high) if v is not None])
            if low is not None and high is not None and low >= high:  # type: ignore[operator]
                return Known(value=False)
            return Range(a.column, low, high)
        case OneOf(_, values), OneOf(_, others):
            return _one_of(a.column, _intersection(values, others))
        case (OneOf(_, values), Range() as r) | (Range() as r, OneOf(_, values)):
            return _one_of(a.column, values_between(values, r.low, r.high))
        case NoneOf(_, values), NoneOf(_, others):
            return NoneOf(a.column, _union(values, others))
    return None


def _either(a: Atom, b: Atom) -> Atom | None:
    if a.column != b.column:
        return None
    match a, b:
        case OneOf(_, values), OneOf(_, others):
            return OneOf(a.column, _union(values, others))
    return None


def _one_of(column: str, values: Values) -> OneOf | Known:
    return OneOf(column, values) if values else Known(value=False)


def _intersection(values: Values, others: Values) -> Values:
    if isinstance(values, IntegerSet) and isinstance(others, IntegerSet):
        common = np.isin(values.array, others.array, assume_unique=True)
        return IntegerSet(values.array[common])
    few, many = sorted((values, others), key=len)
    if isinstance(many, IntegerSet):
        return tuple(v for v in few if values_between(many, v, successor(v)))
    wanted = set(many)
    return tuple(v for v in few if v in wanted)


def _union(values: Values, others: Values) -> Values:
    if isinstance(values, IntegerSet) or isinstance(others, IntegerSet):
        return IntegerSet(np.concatenate([np.asarray(values), np.asarray(others)]))
    return tuple(sorted({*values, *others}))


def _choose(pick: Callable[..., Value], values: list[Value]) -> Value | None:
    return pick(values) if values else None
