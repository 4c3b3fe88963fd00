"""Rules that make a bound tree smaller; each keeps the rows that are TRUE.

A rule is a plain function from node to node, with its equation as docstring.
They run bottom-up, once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Final

import numpy as np

from skipindex.conditions.bound_predicate import (
    NEVER,
    AllOf,
    AnyOf,
    BoundPredicate,
    Leaf,
    TruthValue,
)
from skipindex.expressions import atoms


def simplify(tree: BoundPredicate) -> BoundPredicate:
    """``tree``, smaller; TRUE for the same rows.

    A part that occurs again is not simplified again.
    """
    known: dict[BoundPredicate, BoundPredicate] = {}

    def simplified(node: BoundPredicate) -> BoundPredicate:
        if not isinstance(node, AllOf | AnyOf):
            return node
        result = known.get(node)
        if result is None:
            result = type(node)(tuple(map(simplified, node.children)))
            for rule in RULES:
                result = rule(result)
            known[node] = result
        return result

    return simplified(tree)


def flatten(node: BoundPredicate) -> BoundPredicate:
    """``a AND (b AND c) = a AND b AND c``, and so for OR."""
    if not isinstance(node, AllOf | AnyOf):
        return node
    kind = type(node)
    children: list[BoundPredicate] = []
    for child in node.children:
        children += child.children if isinstance(child, kind) else (child,)
    return kind(tuple(children))


def fold_constants(node: BoundPredicate) -> BoundPredicate:
    """``a AND TRUE = a``, ``a AND FALSE = FALSE``; ``a OR FALSE = a``, and so on."""
    if not isinstance(node, AllOf | AnyOf):
        return node
    neutral = isinstance(node, AllOf)
    known = [child.value for child in node.children if type(child) is TruthValue]
    if (not neutral) in known:
        return TruthValue(not neutral)
    children = tuple(child for child in node.children if type(child) is not TruthValue)
    if not children:
        return TruthValue(neutral)
    return type(node)(children) if known else node


def merge_conjuncts(node: BoundPredicate) -> BoundPredicate:
    """``low <= c AND c < high`` is one range; ``c IN A AND c IN B = c IN (A & B)``."""
    if not isinstance(node, AllOf):
        return node
    return _merge(node, [(atoms.Range, atoms.OneOf), (atoms.NoneOf,)], _both)


def merge_disjuncts(node: BoundPredicate) -> BoundPredicate:
    """``c IN A OR c IN B = c IN (A | B)``."""
    return _merge(node, [(atoms.OneOf,)], _either) if isinstance(node, AnyOf) else node


def unwrap(node: BoundPredicate) -> BoundPredicate:
    """An AND or OR of one child is that child; equal children count once."""
    if not isinstance(node, AllOf | AnyOf):
        return node
    children = tuple(dict.fromkeys(node.children))
    return children[0] if len(children) == 1 else type(node)(children)


RULES: Final[tuple[Callable[[BoundPredicate], BoundPredicate], ...]] = (
    flatten,
    fold_constants,
    merge_conjuncts,
    merge_disjuncts,
    fold_constants,
    unwrap,
)


def _merge(
    node: AllOf | AnyOf,
    kinds: Sequence[tuple[type[atoms.Atom], ...]],
    combine: Callable[[Sequence[atoms.Atom]], atoms.Atom | TruthValue],
) -> BoundPredicate:
    """Combine the leaves about one column whose atoms are of one group of kinds."""
    word = " AND " if isinstance(node, AllOf) else " OR "
    # All at once: two at a time would take as many steps as there are pairs.
    groups: dict[tuple[object, ...], list[BoundPredicate]] = {}
    for i, child in enumerate(node.children):
        key: tuple[object, ...] = (i,)
        for some in kinds:
            if isinstance(child, Leaf) and isinstance(child.atom, some):
                key = (child.column, some)
        group = groups.pop(key, [])  # a group stands where its last leaf stood
        group.append(child)
        groups[key] = group
    return type(node)(tuple(_merged(some, combine, word) for some in groups.values()))


def _merged(
    group: list[BoundPredicate],
    combine: Callable[[Sequence[atoms.Atom]], atoms.Atom | TruthValue],
    word: str,
) -> BoundPredicate:
    """One leaf instead of several."""
    if len(group) == 1:
        return group[0]
    some = [leaf for leaf in group if isinstance(leaf, Leaf)]
    result = combine([leaf.atom for leaf in some])
    if isinstance(result, TruthValue):
        return result
    text, *others = texts = list(dict.fromkeys(leaf.text for leaf in some))
    return Leaf(result, f"({word.join(texts)})" if others else text)


def _both(parts: Sequence[atoms.Atom]) -> atoms.Atom | TruthValue:
    """All of some ranges and lists of one column, or of what is not listed."""
    column = parts[0].column
    excluded = [atom.values for atom in parts if isinstance(atom, atoms.NoneOf)]
    if excluded:
        return atoms.NoneOf(column, _union(excluded))
    ranges = [atom for atom in parts if isinstance(atom, atoms.Range)]
    low = _choose(max, [r.low for r in ranges if r.low is not None])
    high = _choose(min, [r.high for r in ranges if r.high is not None])
    lists = [atom.values for atom in parts if isinstance(atom, atoms.OneOf)]
    if lists:
        common = reduce(_intersection, lists)
        return _one_of(column, atoms.values_between(common, low, high))
    if low is not None and high is not None and low >= high:  # type: ignore[operator]
        return NEVER
    return atoms.Range(column, low, high)


def _either(parts: Sequence[atoms.Atom]) -> atoms.Atom:
    """One of some lists of one column."""
    lists = [atom.values for atom in parts if isinstance(atom, atoms.OneOf)]
    return atoms.OneOf(parts[0].column, _union(lists))


def _one_of(column: str, values: atoms.Values) -> atoms.OneOf | TruthValue:
    return atoms.OneOf(column, values) if values else NEVER


def _intersection(values: atoms.Values, others: atoms.Values) -> atoms.Values:
    if isinstance(values, atoms.IntegerSet) and isinstance(others, atoms.IntegerSet):
        common = np.isin(values.array, others.array, assume_unique=True)
        return atoms.IntegerSet(values.array[common])
    few, many = sorted((values, others), key=len)
    return atoms.values_of([value for value in few if atoms.is_among(value, many)])


def _union(lists: Sequence[atoms.Values]) -> atoms.Values:
    if any(isinstance(values, atoms.IntegerSet) for values in lists):
        return atoms.IntegerSet(
            np.concatenate([np.asarray(values) for values in lists])
        )
    return atoms.values_of(set().union(*lists))


def _choose(
    pick: Callable[..., atoms.Value], values: list[atoms.Value]
) -> atoms.Value | None:
    return pick(values) if values else None
