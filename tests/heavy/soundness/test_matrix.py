"""A part of the soundness matrix in every run; ``make soundness`` runs it all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import skipindex as sx
from skipindex.expressions import Comparison, Operator, Reference, to_sql
from tests.heavy.soundness.forms import FORMS
from tests.heavy.soundness.large import sweep_large
from tests.heavy.soundness.matrix import (
    Result,
    Sample,
    judge,
    predicates,
    renamed,
    sweep,
)
from tests.heavy.soundness.pools import Pool, pools
from tests.tables import build, put_all

POOLS = {pool.name: pool for pool in pools()}
QUICK = ("double", "timestamp in America/New_York")
SHARES = {"timestamp_ntz in America/New_York": 0.5}
"""Where less is skipped than elsewhere: beside wall clocks, an instant near a change
of the clocks, or of a year whose rules are not relied on, is none that is known."""
EXACT = ("Bitmap()", "BitSliced(base=2, 'range')", "RunLength()", "Exact()")


@pytest.mark.parametrize(
    "pool",
    [
        pytest.param(pool, marks=[] if name in QUICK else [pytest.mark.slow])
        for name, pool in POOLS.items()
    ],
    ids=list(POOLS),
)
def test_no_breach_in_the_matrix(pool: Pool) -> None:
    result = Result()
    sweep(pool, each=1, random_files=0, seed=7, result=result, more_statistics=1)
    assert not result.failures, "\n".join(result.failures[:20])
    assert set(result.along(1)) >= {name for name in FORMS if "LIKE" not in name}
    assert result.total.verdicts > 2_500
    for kind in EXACT:
        tally = result.along(2)[kind]
        share = SHARES.get(pool.name, 0.75)
        assert tally.skipped > share * tally.skippable, f"{kind} has stopped helping"


@pytest.mark.slow
def test_edges_of_texts_are_swept_without_their_trees() -> None:
    """The largest pool, in a few seconds."""
    pool = Pool("string", POOLS["string"].dtype, POOLS["string"].values[::4])
    result = Result()
    sweep(pool, each=1, random_files=0, seed=8, result=result, more_statistics=1)
    assert not result.failures, "\n".join(result.failures[:20])
    assert set(result.along(1)) == set(FORMS)


@pytest.mark.slow
@pytest.mark.parametrize("n_files", [3, 8])
def test_no_breach_in_files_of_many_rows(n_files: int) -> None:
    result = Result()
    labels = ("bit_sliced", "filters", "mixed 1", "mixed 4", "mixed 7")
    sweep_large(
        n=40, seed=7, result=result, labels=labels, n_files=n_files, n_rows=66_000
    )
    assert not result.failures, "\n".join(result.failures[:20])
    tally = result.along(2)["bit_sliced"]
    assert tally.skipped == tally.skippable > 20 * n_files // 8
    assert tally.exact == tally.indexed


def test_the_judge_sees_every_kind_of_breach(tmp_path: Path) -> None:
    table = build(put_all(tmp_path, [{"v": [1, 2]}, {"v": [3, 3]}]), {"v": "bitmap"})
    n_rows = np.array([2, 2])

    def breaches(text: str, least: list[int], most: list[int]) -> list[str]:
        plan = table.plan(text)
        truth = np.array(least), np.array(most)
        _, failures = judge(plan, *truth, n_rows, n_indexed=2)
        return [failure.split(": ")[1] for failure in failures]

    assert breaches("v = 3", [0, 2], [0, 2]) == []
    assert breaches("v = 3", [0, 2], [1, 2])[0] == "skipped, but holds a match"
    assert "not all rows match" in breaches("v = 3", [0, 1], [0, 2])
    assert breaches("v = 2", [0, 0], [1, 0]) == ["fewer rows match than said"]
    assert breaches("v = 2", [1, 0], [2, 0]) == ["more rows match than said"]


def test_files_that_changed_or_came_later_are_swept(tmp_path: Path) -> None:
    sample = Sample(POOLS["boolean"], tmp_path, random_files=0, seed=1)
    gaps = sample.table.state.index_gaps
    assert set(gaps) == {"changed since it was indexed", "never indexed"}
    assert len(sample.table) - sum(gaps.values()) == sample.n_indexed


def test_predicates_are_the_same_for_a_seed() -> None:
    def texts(seed: int) -> list[str]:
        made = predicates(POOLS["date"], each=2, seed=seed)
        return [to_sql(renamed(tree, "other")) for _, tree in made]

    assert texts(1) == texts(1)
    assert texts(1) != texts(2)


def test_renaming_reaches_every_leaf() -> None:
    tree = sx.col("v").between(1, 2) | ~sx.col("v").isin(1)
    tree &= Comparison(Reference(("w",)), Operator.EQ, 1)
    assert to_sql(renamed(tree, "x")) == to_sql(tree).replace("v", "x")
