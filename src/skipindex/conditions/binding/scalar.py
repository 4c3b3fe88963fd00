"""Evaluating a condition on a single value: TRUE, not TRUE, or unknown.

The answers are those of three-valued logic as WHERE sees it: FALSE and UNKNOWN are
both "not TRUE".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import assert_never

from skipindex.conditions.bound_predicate import BoundPredicate, Computed, Leaf, fold
from skipindex.conditions.functions.registry import Plain, from_plain
from skipindex.expressions import atoms
from skipindex.expressions.domain import Domain
from skipindex.expressions.patterns import matches


def answer(
    question: atoms.Atom, domain: Domain | None, plain: Plain | None
) -> bool | None:
    """Whether ``question`` is TRUE for one value of a term; None is "may be"."""
    if plain is None or domain is None:
        return holds(question, None)
    return holds(question, from_plain(domain, plain))


def holds(atom: atoms.Atom, value: atoms.Value | None) -> bool | None:
    """Whether ``atom`` is TRUE for one value of its column; None is "may be"."""
    match atom:
        case atoms.NullAtom():
            return value is None
        case atoms.NotNullAtom():
            return value is not None
        case _ if value is None:
            return False
        case atoms.Range(_, low, high):
            return _between(value, low, high)
        case atoms.OneOf(_, values):
            return atoms.is_among(value, values)
        case atoms.NoneOf(_, values):
            return not atoms.is_among(value, values)
        case atoms.Matches(_, pattern, negated):
            assert isinstance(value, bytes)
            return matches(pattern, value, negated=negated)
        case _:
            assert_never(atom)


def is_about(atom: atoms.Atom, letters: Collection[str]) -> bool:
    """Whether other letters in a value may be exchanged for any others but these."""
    match atom:
        case atoms.Range(_, bytes(low), high) if high == atoms.after_prefix(low):
            texts: Iterable[object] = (low,)
        case atoms.Range(_, low, high):  # in which order those are is known of ASCII
            return all(end is None or bytes(end).isascii() for end in (low, high))
        case atoms.OneOf(_, values) | atoms.NoneOf(_, values):
            texts = values
        case atoms.Matches(_, pattern):
            texts = (one for one in pattern if one is not atoms.Wildcard.ANY_TEXT)
        case _:
            return True
    return all(
        isinstance(text, bytes) and all(map(letters.__contains__, _decoded(text)))
        for text in texts
    )


def _decoded(text: bytes) -> str:
    return text.decode(errors="replace")


def _between(
    value: atoms.Value, low: atoms.Value | None, high: atoms.Value | None
) -> bool:
    above: bool = low is None or value >= low  # type: ignore[operator]
    return above and (high is None or value < high)  # type: ignore[operator]


def judged(tree: BoundPredicate, value: atoms.Value | None) -> bool | None:
    """Whether ``tree``, over one column alone, is TRUE where it has this value.

    None is "may be"; FALSE and UNKNOWN are both "is not TRUE".
    """

    def of_leaf(leaf: Leaf | Computed) -> bool | None:
        if isinstance(leaf, Computed):
            return leaf.test(value)
        return holds(leaf.atom, value)

    return fold(
        tree,
        leaf=of_leaf,
        all_of=_all_true,
        any_of=_one_true,
        constant=lambda known: known,
        unknown=lambda _: None,
    )


def _all_true(parts: Iterator[bool | None]) -> bool | None:
    result = list(parts)
    return False if False in result else None if None in result else True


def _one_true(parts: Iterator[bool | None]) -> bool | None:
    result = list(parts)
    return True if True in result else None if None in result else False
