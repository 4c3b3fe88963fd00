"""Rules make a tree smaller and keep its truth for every row."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.conditions import simplify as rules
from skipindex.conditions.bound_predicate import (
    AllOf,
    AnyOf,
    BoundPredicate,
    Leaf,
    TruthValue,
    Unknown,
    leaves,
    text_of,
)
from skipindex.expressions.atoms import NoneOf, NotNullAtom, NullAtom, OneOf, Range
from tests.tables import holds

TRUE, FALSE = TruthValue(value=True), TruthValue(value=False)
UNKNOWN = Unknown("f(x)", "a function")


def leaf(atom: Any, text: str = "") -> Leaf:
    return Leaf(atom, text or str(atom))


def between(low: int | None, high: int | None, column: str = "c") -> Leaf:
    return leaf(Range(column, low, high))


def listed(*values: int, column: str = "c") -> Leaf:
    return leaf(OneOf(column, values))


SMALL = st.integers(0, 4)
SETS = st.sets(SMALL, min_size=1, max_size=3).map(lambda s: tuple(sorted(s)))
NAMES = st.sampled_from(["c", "d"])
RANGES = st.builds(Range, NAMES, st.none() | SMALL, st.none() | st.integers(5, 6))
LEAVES = st.one_of(
    RANGES,
    st.builds(Range, NAMES, st.integers(0, 2), st.integers(3, 5)),
    st.builds(OneOf, NAMES, SETS),
    st.builds(NoneOf, NAMES, SETS),
    st.builds(NullAtom, NAMES),
    st.builds(NotNullAtom, NAMES),
).map(leaf)
TREES: st.SearchStrategy[BoundPredicate] = st.recursive(
    st.one_of(LEAVES, LEAVES, st.sampled_from([TRUE, FALSE, UNKNOWN])),
    lambda nodes: st.one_of(
        st.lists(nodes, min_size=1, max_size=4).map(lambda c: AllOf(tuple(c))),
        st.lists(nodes, min_size=1, max_size=4).map(lambda c: AnyOf(tuple(c))),
    ),
    max_leaves=10,
)
ROWS = [{"c": c, "d": d} for c in (None, *range(6)) for d in (None, 0, 2, 4)]


def is_true(tree: BoundPredicate, row: dict[str, int | None], *, unknown: bool) -> bool:
    match tree:
        case AllOf(children):
            return all(is_true(c, row, unknown=unknown) for c in children)
        case AnyOf(children):
            return any(is_true(c, row, unknown=unknown) for c in children)
        case TruthValue(constant):
            return constant
        case Unknown():
            return unknown
        case Leaf(atom):
            return holds(atom, row[atom.column])


def size(tree: BoundPredicate) -> int:
    match tree:
        case AllOf(children) | AnyOf(children):
            return 1 + sum(map(size, children))
    return 1


@given(TREES)
def test_the_truth_of_every_row_is_kept(tree: BoundPredicate) -> None:
    small = rules.simplify(tree)
    for row in ROWS:
        for unknown in (False, True):
            before = is_true(tree, row, unknown=unknown)
            assert is_true(small, row, unknown=unknown) == before


@given(TREES)
def test_the_tree_becomes_no_larger_and_stays_well_formed(tree: BoundPredicate) -> None:
    small = rules.simplify(tree)
    assert size(small) <= size(tree)
    check_shape(small)
    for found in leaves(small):
        match found.atom:
            case OneOf(_, values) | NoneOf(_, values):
                assert values
                assert list(values) == sorted(set(values))
            case Range(_, low, high):
                assert low is None or high is None or low < high  # type: ignore[operator]


def check_shape(tree: BoundPredicate) -> None:
    """No constant inside, no AND in an AND, no AND of one."""
    if not isinstance(tree, AllOf | AnyOf):
        return
    assert len(tree.children) > 1
    for child in tree.children:
        assert not isinstance(child, TruthValue | type(tree))
        check_shape(child)


A, B, C = between(0, 1), between(None, None, "d"), leaf(NullAtom("d"))


@pytest.mark.parametrize(
    ("tree", "smaller"),
    [
        (AllOf((A, AllOf((B, C)))), AllOf((A, B, C))),
        (AnyOf((AnyOf((A, B)), C)), AnyOf((A, B, C))),
        (AllOf((A, AnyOf((B, C)))), AllOf((A, AnyOf((B, C))))),
        (A, A),
    ],
)
def test_flatten(tree: BoundPredicate, smaller: BoundPredicate) -> None:
    assert rules.flatten(tree) == smaller


@pytest.mark.parametrize(
    ("tree", "smaller"),
    [
        (AllOf((A, TRUE)), AllOf((A,))),
        (AllOf((A, FALSE, B)), FALSE),
        (AnyOf((A, FALSE)), AnyOf((A,))),
        (AnyOf((A, TRUE, B)), TRUE),
        (AllOf((TRUE, TRUE)), TRUE),
        (AnyOf((FALSE,)), FALSE),
        (AllOf(()), TRUE),
        (AnyOf(()), FALSE),
        (AllOf((UNKNOWN, FALSE)), FALSE),
        (AnyOf((UNKNOWN, TRUE)), TRUE),
    ],
)
def test_fold_constants(tree: BoundPredicate, smaller: BoundPredicate) -> None:
    assert rules.fold_constants(tree) == smaller


@pytest.mark.parametrize(
    ("atoms", "merged"),
    [
        ([between(1, None), between(None, 5)], [Range("c", 1, 5)]),
        ([between(1, 9), between(3, 5)], [Range("c", 3, 5)]),
        ([between(1, 3), between(3, 5)], [FALSE]),
        ([listed(1, 2), listed(2, 3)], [OneOf("c", (2,))]),
        ([listed(1), listed(2)], [FALSE]),
        ([listed(1, 5), between(2, 9)], [OneOf("c", (5,))]),
        ([between(2, 9), listed(1, 5)], [OneOf("c", (5,))]),
        ([listed(1), between(2, None)], [FALSE]),
        (
            [leaf(NoneOf("c", (1,))), leaf(NoneOf("c", (0, 2)))],
            [NoneOf("c", (0, 1, 2))],
        ),
        ([listed(1), listed(1, column="d")], [OneOf("c", (1,)), OneOf("d", (1,))]),
        ([leaf(NullAtom("c")), listed(1)], [NullAtom("c"), OneOf("c", (1,))]),
    ],
    ids=str,
)
def test_merge_conjuncts(atoms: list[BoundPredicate], merged: list[Any]) -> None:
    found = rules.merge_conjuncts(AllOf(tuple(atoms)))
    assert isinstance(found, AllOf)
    assert [c.atom if isinstance(c, Leaf) else c for c in found.children] == merged


def test_an_or_keeps_its_ranges() -> None:
    tree = AnyOf((between(1, 3), between(3, 5)))
    assert rules.merge_conjuncts(tree) == rules.merge_disjuncts(tree) == tree


def test_an_or_of_lists_is_one_list() -> None:
    found = rules.merge_disjuncts(AnyOf((listed(3), B, listed(1, 3))))
    assert isinstance(found, AnyOf)
    assert [c.atom for c in found.children if isinstance(c, Leaf)] == [
        B.atom,
        OneOf("c", (1, 3)),
    ]


def test_equal_children_count_once() -> None:
    assert rules.unwrap(AllOf((A, A))) == A
    assert rules.unwrap(AnyOf((A, B, A))) == AnyOf((A, B))
    assert rules.unwrap(AllOf((UNKNOWN, UNKNOWN))) == UNKNOWN


def test_a_part_that_occurs_again_is_simplified_once() -> None:
    def part() -> BoundPredicate:
        return AnyOf((B, AllOf((TRUE, A, UNKNOWN))))

    first, second = (
        AllOf((part(), leaf(NullAtom(name)))) for name in ("c", "other column")
    )
    tree = rules.simplify(AnyOf((first, second)))
    assert isinstance(tree, AnyOf)
    parts = [node.children[0] for node in tree.children if isinstance(node, AllOf)]
    assert parts[0] == AnyOf((B, AllOf((A, UNKNOWN))))
    assert parts[0] is parts[1]


def test_equal_nodes_have_equal_hashes_but_and_is_not_or() -> None:
    assert hash(AllOf((A, B))) == hash(AllOf((A, B)))
    assert hash(AllOf((A, B))) != hash(AnyOf((A, B)))
    node = AnyOf((A, B))
    hash(node)
    found = pickle.loads(pickle.dumps(node))
    assert found == node
    assert not hasattr(found, "_hash"), "another process hashes texts otherwise"


def test_three_bounds_become_one_range() -> None:
    tree = AllOf((between(1, None), between(None, 9), between(3, None)))
    assert rules.simplify(tree) == leaf(Range("c", 3, 9), text_of(rules.simplify(tree)))


def test_merged_conditions_keep_all_words() -> None:
    tree = AllOf(
        (leaf(Range("c", 1, None), "c > 0"), leaf(Range("c", None, 5), "c < 5"))
    )
    assert text_of(rules.simplify(tree)) == "(c > 0 AND c < 5)"


def test_words_keep_their_parentheses() -> None:
    tree = AllOf(
        (leaf(NullAtom("c"), "c IS NULL"), AnyOf((leaf(NullAtom("d"), "d"), UNKNOWN)))
    )
    assert text_of(tree) == "c IS NULL AND (d OR f(x))"
    assert text_of(FALSE) == "FALSE"
