"""Whole plans against the row oracle: random tables, indexes and trees.

Soundness: no file with a TRUE row is skipped, and bounds enclose the truth.
Tightness: with exact indexes on every column the bounds meet, so that an index
which has stopped helping fails here although it loses no row.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skipindex as sx
from skipindex.conditions.bound_predicate import Unknown, comparisons, unknowns
from skipindex.expressions import Predicate
from skipindex.expressions.domain import domain_of
from skipindex.indexes import index_type
from skipindex.indexes.kinds.run_length import RunLength
from skipindex.planner.plan import Plan, Verdict
from tests import oracle
from tests.quick_run import examples
from tests.strategies import (
    ColumnData,
    integers_of,
    predicates,
    tables,
    to_arrow,
    values_of,
)

EXACT = (
    sx.Bitmap(),
    sx.RangeBitmap(),
    sx.BitSliced(),
    RunLength(),
    sx.Exact(),
    sx.BitSliced(encoding="equality"),
    sx.BitSliced(base=10),
    sx.BitSliced(base=10, encoding="equality"),
)
INEXACT = (
    *(sx.Bloom(), sx.Bloom(error_rate=0.3), sx.RangeBitmap(max_bitmaps=2)),
    *(sx.NGramBloom(n=2), sx.TokenBloom()),
    *(
        sx.BitSliced(max_slices=2),
        sx.BitSliced(base=4, encoding="equality", max_slices=4),
    ),
)
OPAQUE = ("opaque()", "NOT opaque()")


def write_files(folder: Path, table: pa.Table, cuts: Sequence[int]) -> None:
    """The rows of ``table`` in files that end at ``cuts`` (some may be empty)."""
    edges = [0, *sorted(min(cut, len(table)) for cut in cuts), len(table)]
    for i, (start, stop) in enumerate(itertools.pairwise(edges)):
        pq.write_table(table.slice(start, stop - start), folder / f"{i}.parquet")


def row_counts(folder: Path) -> list[int]:
    return [pq.read_metadata(p).num_rows for p in sorted(folder.glob("*.parquet"))]


def matches_per_file(
    folder: Path, tree: Predicate, columns: Mapping[str, ColumnData], opaque: bool
) -> list[int]:
    """How many rows of every file the oracle holds to be TRUE."""

    def judge(text: str, row: Mapping[str, Any]) -> bool | None:
        return opaque if text == OPAQUE[0] else not opaque

    hits = set(
        oracle.matching(
            tree, values_of(columns), unsupported=judge, integers=integers_of(columns)
        )
    )
    found, start = [], 0
    for n in row_counts(folder):
        found.append(len(hits & set(range(start, start + n))))
        start += n
    return found


def check_sound(folder: Path, plan: Plan, truth: Sequence[int]) -> None:
    n_rows = {f"{i}.parquet": n for i, n in enumerate(row_counts(folder))}
    expected = {f"{i}.parquet": n for i, n in enumerate(truth)}
    assert {s.path for s in plan.skipped} | set(plan.paths) == set(expected)
    for skipped in plan.skipped:
        assert expected[skipped.path] == 0, f"{skipped} holds a matching row"
        assert skipped.reason
    for task in plan.tasks:
        n_true = expected[task.path]
        if task.verdict is Verdict.ALL:
            assert n_true == n_rows[task.path]
        if task.matching is not None:
            assert task.matching[0] <= n_true <= task.matching[1]


def specs_for(column: ColumnData, specs: Sequence[Any]) -> list[Any]:
    """Those of ``specs`` that the column's type allows."""
    allowed = []
    for spec in specs:
        try:
            index_type(spec.kind).check(domain_of(column.dtype))
        except sx.UnsupportedTypeError:
            continue
        allowed.append(spec)
    return allowed


def plan_of(
    folder: Path,
    tree: Predicate,
    indexes: Mapping[str, Sequence[Any]],
    **asked: Any,
) -> Plan:
    report = sx.build_indexes(folder, indexes, workers=1)
    assert not report.notes
    plan = report.table.plan(tree, timezone="UTC", **asked)
    assert not (indexes and plan.notes)
    return plan


@examples(40, whole=140)
@given(st.data())
def test_no_file_with_a_true_row_is_skipped(data: st.DataObject) -> None:
    """Any combination of kinds, exact or not, on some of the columns or none."""
    columns = data.draw(tables())
    tree = data.draw(predicates(columns, unsupported=OPAQUE, two_columns=True))
    indexes = {
        name: data.draw(
            st.lists(
                st.sampled_from(specs_for(column, EXACT + INEXACT)),
                max_size=2,
                unique=True,
            ),
            label=f"indexes of {name}",
        )
        for name, column in columns.items()
        if data.draw(st.integers(0, 3), label=f"index {name}")
    }
    cuts = data.draw(st.lists(st.integers(0, 30), max_size=2))
    opaque = data.draw(st.booleans())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, to_arrow(columns), cuts)
        plan = plan_of(folder, tree, indexes)
        check_sound(folder, plan, matches_per_file(folder, tree, columns, opaque))


@pytest.mark.parametrize("spec", EXACT, ids=str)
@examples(25, whole=125)
@given(st.data())
def test_exact_kinds_answer_exactly(spec: Any, data: st.DataObject) -> None:
    """With one exact kind on every column, a plan knows the very count of rows."""
    columns = data.draw(tables())
    tree = data.draw(predicates(columns, two_columns=True))
    cuts = data.draw(st.lists(st.integers(0, 30), max_size=2))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, to_arrow(columns), cuts)
        # At any price: comparisons may cost more than reading so small files.
        kinds = ["minmax", spec.kind] if data.draw(st.booleans()) else None
        plan = plan_of(folder, tree, {name: [spec] for name in columns}, kinds=kinds)
        truth = matches_per_file(folder, tree, columns, opaque=False)
        check_sound(folder, plan, truth)
        compared = any(comparisons(plan.evaluation.tree)) and kinds is None
        others = unknowns(plan.evaluation.tree)
        if compared or any(type(node) is Unknown for node in others):
            return  # a literal that no index can judge; bind's own tests say which
        assert [f"{i}.parquet" for i, n in enumerate(truth) if n] == plan.paths
        assert plan.count_bounds == (sum(truth), sum(truth))


@examples(40, whole=140)
@given(st.data())
def test_the_statistics_alone_are_sound(data: st.DataObject) -> None:
    columns = data.draw(tables())
    tree = data.draw(predicates(columns, unsupported=OPAQUE, two_columns=True))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, to_arrow(columns), [10, 20])
        plan = plan_of(folder, tree, {name: [] for name in columns})
        check_sound(folder, plan, matches_per_file(folder, tree, columns, opaque=True))
