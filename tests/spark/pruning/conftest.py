"""What the tests of pruning share: a pruned session, a planner without a driver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.spark.pruning.query_planner import QueryPlanner
from skipindex.spark.pruning.tables import Tables
from tests.spark.pruning.questions import make
from tests.tables import made

QUICK: Final = 3
"""The seed of the quick tests, which draw less."""


@pytest.fixture
def pruned(spark: SparkSession) -> Iterator[SparkSession]:
    sx.enable(spark)
    yield spark
    sx.disable(spark)
    spark.conf.unset("skipindex.enabled")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The table that the questions are about."""
    return made(tmp_path / "t", make)


@pytest.fixture
def planner() -> QueryPlanner:
    return QueryPlanner(Tables())


@pytest.fixture(
    params=[QUICK, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 1, 2))]
)
def seed(request: pytest.FixtureRequest) -> int:
    """Of what a test draws."""
    found: int = request.param
    return found


@pytest.fixture
def share(seed: int) -> int:
    """A test draws this part of what it draws of a seed of the slow tests."""
    return 4 if seed == QUICK else 1
