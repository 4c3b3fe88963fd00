"""The queries of the skipping benchmark: names, and look-ups that are drawn."""

from __future__ import annotations

import re

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.conditions.sql.parser import parse
from ssb.data.generate import Dataset
from ssb.queries import columns_of
from ssb.run import matches_per_file
from ssb.workloads.drawn import drawn_lookups
from ssb.workloads.workload import workload

pytestmark = pytest.mark.spark  # the data are made by Spark


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
