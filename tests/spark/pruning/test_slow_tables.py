"""A table whose store hangs takes nothing from the queries of other tables."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from py4j.java_gateway import set_field
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from skipindex.spark.pruning.session import _pruned
from skipindex.spark.pruning.tables import ScannedTable, Tables
from skipindex.storage.file_system.location import Location
from tests.spark.pruning.questions import put
from tests.spark.pruning.scans import files_read

pytestmark = pytest.mark.spark


def make(folder: Path, *, partitioned: bool = False) -> Path:
    """Four files of ten numbers each."""
    for i in range(4):
        part = f"p={i}" if partitioned else ""
        put(folder / part / f"{i}.parquet", 10 * i)
    sx.build_indexes(folder, {"id": "bitmap"}, workers=1)
    return folder


@pytest.fixture
def session(pruned: SparkSession) -> Iterator[SparkSession]:
    """No table is left alone because of what an earlier question took."""
    calls = _pruned[pruned.sparkContext.applicationId].calls
    set_field(calls, "restMillis", 0)
    yield pruned
    set_field(calls, "restMillis", 30_000)
    pruned.conf.unset("skipindex.timeLimit")


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[None]]:
    """The store of the table ``slow`` hangs; an item for each question that it has."""
    asked: list[None] = []
    is_over = threading.Event()
    current = Tables.current

    def hang(tables: Tables, location: Location) -> ScannedTable:
        if str(tmp_path / "slow") in location.full(""):
            asked.append(None)
            is_over.wait(120)
        return current(tables, location)

    monkeypatch.setattr(Tables, "current", hang)
    yield asked
    is_over.set()


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not is_so() and time.monotonic() < end:
        time.sleep(0.02)
    assert is_so()


def optimize(df: DataFrame) -> None:
    df._jdf.queryExecution().optimizedPlan()


def problems(session: SparkSession) -> list[str]:
    return [plan.problem for plan in sx.last_plans(session) if plan.problem]


def test_questions_ahead_of_one_table_do_not_stop_those_of_another(
    session: SparkSession, tmp_path: Path, hanging: list[None]
) -> None:
    slow = session.read.parquet(str(make(tmp_path / "slow")))
    fast = session.read.parquet(str(make(tmp_path / "fast")))
    for i in range(4):  # they take all threads for such questions
        optimize(slow.where(f"id = {i}"))
    until(lambda: len(hanging) == 4)
    session.conf.set("skipindex.timeLimit", "5")
    before = len(sx.last_plans(session))
    assert files_read(fast.where("id = 15")) == 1
    (told,) = sx.last_plans(session)[before:]
    assert not told.problem


def test_questions_of_one_table_do_not_take_all_threads(
    session: SparkSession, tmp_path: Path, hanging: list[None]
) -> None:
    """Those of a table with partitions are not asked ahead."""
    slow = session.read.parquet(str(make(tmp_path / "slow", partitioned=True)))
    fast = session.read.parquet(str(make(tmp_path / "fast")))
    session.conf.set("skipindex.timeLimit", "0.3")
    for i in range(9):
        assert files_read(slow.where(f"id = {i}")) == 4
    assert len(hanging) == 3
    assert all("skipindex.timeLimit" in problem for problem in problems(session))
    session.conf.set("skipindex.timeLimit", "5")
    assert files_read(fast.where("id = 15")) == 1


def test_an_answer_that_comes_too_late_is_not_told(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = session.read.parquet(str(make(tmp_path / "t", partitioned=True)))
    current = Tables.current
    answered: list[None] = []

    def late(tables: Tables, location: Location) -> ScannedTable:
        time.sleep(0.8)
        answered.append(None)
        return current(tables, location)

    monkeypatch.setattr(Tables, "current", late)
    session.conf.set("skipindex.timeLimit", "0.3")
    before = len(sx.last_plans(session))
    assert files_read(frame.where("id = 15")) == 4
    until(lambda: bool(answered))
    time.sleep(0.5)  # so that the planner has its answer
    told = sx.last_plans(session)[before:]
    assert told
    assert not any(plan.n_skipped for plan in told)


def test_questions_that_are_asked_at_once_take_their_time_once(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark runs the subqueries of a query at once."""
    names = [f"s{i}" for i in range(12)]
    for name in names:
        folder = str(make(tmp_path / name))
        session.read.parquet(folder).createOrReplaceTempView(name)
    current = Tables.current

    def slow(tables: Tables, location: Location) -> ScannedTable:
        time.sleep(1)
        return current(tables, location)

    monkeypatch.setattr(Tables, "current", slow)
    session.conf.set("skipindex.timeLimit", "8")
    sums = [f"(SELECT sum(id) FROM {name} WHERE id = 15)" for name in names]
    before = len(sx.last_plans(session))
    assert session.sql(f"SELECT {', '.join(sums)}").first() == (15,) * 12
    told = sx.last_plans(session)[before:]
    assert [plan.n_read for plan in told] == [1] * 12
