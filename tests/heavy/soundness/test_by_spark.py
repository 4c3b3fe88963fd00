"""A part of the sweep that Spark judges, and the page of all sweeps."""

from __future__ import annotations

from copy import deepcopy

import pytest
from pyspark.sql import SparkSession

from tests.heavy.soundness.by_spark import SparkResult, sweep_with_spark
from tests.heavy.soundness.matrix import Result, sweep
from tests.heavy.soundness.pools import pools
from tests.heavy.soundness.report import Checked, matrix, page

POOLS = {pool.name: pool for pool in pools()}


NAMES = ["timestamp in America/New_York", "int32"]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", NAMES)
def test_no_breach_by_spark(spark: SparkSession, name: str) -> None:
    result = SparkResult()
    sweep_with_spark(spark, POOLS[name], n=1, kinds=1, seed=7, result=result)
    assert not result.failures, "\n".join(result.failures[:20])
    assert sum(result.judged.values()) > 80


@pytest.fixture
def done(swept: Result) -> Checked:
    """A sweep of one type."""
    return Checked(by_oracle=deepcopy(swept))


@pytest.fixture(scope="module")
def swept() -> Result:
    result = Result()
    sweep(POOLS["boolean"], each=1, random_files=0, seed=7, result=result)
    return result


def test_the_page_counts_and_names_breaches(done: Checked) -> None:
    result = done.by_oracle
    sound = page(done, seed=7)
    assert f"| {result.total.verdicts:,} | 0 |" in sound
    assert "* 1 column types: boolean\n" in sound
    assert "seed 7" in sound
    assert "Breaches" not in sound
    assert sound.count("\n") < 60
    result.failures.append("boolean, bloom, 1.parquet: what was wrong")
    text = page(done, seed=7)
    assert f"| {result.total.verdicts:,} | 1 |" in text
    assert "* boolean, bloom, 1.parquet: what was wrong" in text


def test_the_matrix_has_every_cell(done: Checked) -> None:
    text = matrix(done, seed=7)
    for name in (*done.by_oracle.along(1), *done.by_oracle.along(2)):
        assert f" {name} " in text
    for tally in done.by_oracle.along(2).values():
        assert f"{tally.verdicts:,} (" in text
