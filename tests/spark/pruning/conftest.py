"""What the tests of pruning share: a pruned session, a planner without a driver."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.spark.pruning.query_planner import QueryPlanner
from skipindex.spark.pruning.tables import Tables
from tests.spark.pruning.questions import make
from tests.spark.pruning.records import Record, differences
from tests.spark.pruning.worlds import WORLDS, World
from tests.tables import made


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
    case = getattr(request.node, "callspec", None)
    record = case and case.params.get("record")
    world_of(record.world if record else "numbers")  # it takes no time of the test

    def differs(record: Record) -> str:
        world = world_of(record.world)  # it may disable what is enabled now
        sx.enable(spark)
        return differences(record, world)

    yield differs
    sx.disable(spark)


@pytest.fixture
def copied(world_of: Callable[[str], World], tmp_path: Path) -> Callable[..., Path]:
    """Copies a table of a world, with its indexes, as a test changes it."""

    def copy(world: str, table: str = "t") -> Path:
        made = world_of(world).folder / table
        return Path(shutil.copytree(made, tmp_path / table))

    return copy


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The table that the questions are about."""
    return made(tmp_path / "t", make)


@pytest.fixture
def planner() -> QueryPlanner:
    return QueryPlanner(Tables())
