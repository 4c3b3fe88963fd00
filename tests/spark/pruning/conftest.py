"""What the tests of pruning share: a pruned session, a planner without a driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.spark.pruning.query_planner import QueryPlanner
from skipindex.spark.pruning.tables import Tables
from tests.spark.pruning.questions import make
from tests.spark.pruning.records import Record, differences
from tests.spark.pruning.worlds import WORLDS, World
from tests.tables import made

QUICK: Final = 3
"""The seed of the quick tests, which draw less."""


@pytest.fixture
def pruned(spark: SparkSession) -> Iterator[SparkSession]:
    sx.enable(spark)
    yield spark
    sx.disable(spark)
    spark.conf.unset("skipindex.enabled")


@pytest.fixture(scope="session")
def world_of(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], World]]:
    """Makes a world when it is asked for first."""
    made = []

    @cache
    def one(name: str) -> World:
        session = spark.newSession()
        session.sql(f"CREATE DATABASE world_{name}")
        session.sql(f"USE world_{name}")
        made.append(name)
        world = World(session, tmp_path_factory.mktemp(name))
        WORLDS[name](world)
        return world

    yield one
    for name in made:
        spark.sql(f"DROP DATABASE world_{name} CASCADE")


@pytest.fixture
def check(
    spark: SparkSession,
    world_of: Callable[[str], World],
    request: pytest.FixtureRequest,
) -> Iterator[Callable[[Record], str]]:
    """What is not as a record says."""
    case = request.node.callspec.params.get("record")
    world_of(case.world if case else "numbers")  # it takes no time of the test
    sx.enable(spark)
    yield lambda record: differences(record, world_of(record.world))
    sx.disable(spark)


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
