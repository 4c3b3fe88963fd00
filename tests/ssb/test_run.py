"""The benchmark on a small data set: the same code that ``make ssb`` runs."""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from skipindex import Table, build_indexes
from skipindex.conditions.sql.parser import parse
from skipindex.expressions import to_sql
from ssb.data.generate import Dataset
from ssb.layouts import INDEXES, layouts
from ssb.queries import LOOKUPS, QUERIES, Query
from ssb.report import verdict_of
from ssb.run import Outcome, run_layout

OUTCOME = Outcome(
    query="Q",
    matched=3,
    files=10,
    kept={"minmax": 8, "bloom": 6, "bitmaps": 2},
    oracle=2,
    lost=(),
    n_bytes=(1_000_000, 200_000),
    plan_seconds=0.01,
    seconds=(1.0, 0.5),
    equal=True,
    counted=(3, 3),
)


def columns_of(query: Query) -> set[str]:
    return set(re.findall(r"\b(?:lo|c|s|p|d)_\w+", to_sql(parse(query.where))))


def test_every_column_of_a_condition_has_a_row_level_index() -> None:
    for query in (*QUERIES, *LOOKUPS):
        assert columns_of(query) <= set(INDEXES), query.name


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"equal": False}, "answers differ"),
        ({"lost": ("a.parquet",)}, "1 files lost"),
        ({"oracle": 1}, "2 files kept with bitmaps, 1 hold a match"),
        ({"counted": (2, 4)}, "the plan counts 2 to 4 rows, 3 match"),
        ({"counted": (4, None)}, "the plan counts 4 to None rows, 3 match"),
    ],
)
def test_whatever_is_wrong_is_named(change: dict[str, object], words: str) -> None:
    wrong = dataclasses.replace(OUTCOME, **change)  # type: ignore[arg-type]
    assert not (wrong.is_right and wrong.is_tight)
    assert words in verdict_of([OUTCOME, wrong])


@pytest.mark.slow
@pytest.mark.spark
def test_every_layout_gives_the_unpruned_answers_from_the_oracles_files(
    spark: SparkSession, ssb_dataset: Dataset, tmp_path: Path
) -> None:
    queries = (*QUERIES, LOOKUPS[0], LOOKUPS[2], LOOKUPS[-1])
    check_layouts(spark, ssb_dataset, tmp_path, queries)


def check_layouts(
    spark: SparkSession, plain: Dataset, folder: Path, queries: Sequence[Query]
) -> None:
    shutil.copytree(plain.flat, folder / plain.flat.name)
    dataset = dataclasses.replace(plain, path=folder)
    kept = {
        name: sum(
            outcome.kept["minmax"] for outcome in check_outcomes(spark, layout, queries)
        )
        for name, layout in layouts(dataset, spark, log=lambda _: None).items()
    }
    assert kept["unordered"] > kept["clustered along a hilbert curve"]


def check_outcomes(
    spark: SparkSession, layout: Table, queries: Sequence[Query]
) -> Sequence[Outcome]:
    asked = set().union(*(columns_of(query) for query in queries))
    indexes = {name: INDEXES[name] for name in asked}
    table = build_indexes(layout, indexes, workers=1).table
    outcomes = run_layout(spark, table, queries, repeat=1, log=lambda _: None)
    assert verdict_of(outcomes).startswith(f"all {len(queries)} answers")
    return outcomes
