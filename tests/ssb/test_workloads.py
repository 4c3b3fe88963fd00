"""The queries of the skipping benchmark: names, and look-ups that are drawn."""

from __future__ import annotations

import re

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.planner.sql.parser import parse
from ssb import SsbError
from ssb.data.generate import Dataset
from ssb.queries import Query
from ssb.run import matches_per_file
from ssb.workloads.drawn import drawn_lookups
from ssb.workloads.workload import CROSS_QUERIES, GROUPS, columns_of, workload

pytestmark = pytest.mark.spark  # the data are made by Spark


@pytest.mark.slow
def test_the_groups_hold_all_queries_under_names_of_their_own(
    ssb_dataset: Dataset,
) -> None:
    asked = workload(ssb_dataset, lookups=9, seed=3)
    assert list(asked.groups) == list(GROUPS)
    assert [len(queries) for queries in asked.groups.values()] == [13, 2, 7, 9]
    names = [query.name for query in asked.queries]
    assert len(set(names)) == len(names)


@pytest.mark.slow
def test_every_condition_parses_and_names_columns_of_the_table(
    ssb_dataset: Dataset,
) -> None:
    asked = workload(ssb_dataset, lookups=70, seed=8)
    for query in asked.queries:
        parse(query.where)
    files = sorted(map(str, ssb_dataset.flat.glob("*.parquet")))
    assert set(columns_of(asked.queries)) <= set(ds.dataset(files).schema.names)


@pytest.mark.slow
def test_a_seed_draws_the_same_and_another_seed_draws_others(
    ssb_dataset: Dataset,
) -> None:
    drawn = drawn_lookups(ssb_dataset, 14, seed=5)
    assert drawn == drawn_lookups(ssb_dataset, 14, seed=5)
    assert drawn != drawn_lookups(ssb_dataset, 14, seed=6)


@pytest.mark.slow
def test_every_form_is_drawn_in_turn(ssb_dataset: Dataset) -> None:
    forms = ("point", "in", "or", "or-of-ands", "not", "like", "absent")
    names = [query.name for query in drawn_lookups(ssb_dataset, 15, seed=1)]
    assert names == [
        *(f"{form}-1" for form in forms),
        *(f"{form}-2" for form in forms),
        "point-3",
    ]


@pytest.mark.slow
def test_absent_values_are_absent_and_points_mostly_present(
    spark: SparkSession, ssb_dataset: Dataset
) -> None:
    drawn = drawn_lookups(ssb_dataset, 70, seed=2)
    truth = matches_per_file(spark, sx.open_table(ssb_dataset.flat), drawn)

    def matched(form: str) -> list[bool]:
        of_form = re.compile(rf"{form}-\d+")
        return [bool(found) for q, found in truth.items() if of_form.fullmatch(q)]

    assert matched("absent") == [False] * 10
    assert sum(matched("point")) >= 5
    assert any(matched("or-of-ands"))
    assert any(matched("like"))


@pytest.mark.slow
def test_a_negative_number_of_lookups_is_refused(ssb_dataset: Dataset) -> None:
    with pytest.raises(SsbError, match="cannot draw -1 look-ups: accepted is 0"):
        drawn_lookups(ssb_dataset, -1, seed=1)
    assert drawn_lookups(ssb_dataset, 0, seed=1) == ()


def test_cross_column_queries_have_the_published_literals() -> None:
    assert len(CROSS_QUERIES) == 7
    assert isinstance(CROSS_QUERIES[1], Query)
    assert CROSS_QUERIES[1].where == (
        "lo_ordtotalprice = 19665277 AND lo_revenue = 2141624"
    )
