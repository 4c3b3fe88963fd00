"""Neither a table that hangs nor many queries of one keep others from their answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from py4j.java_gateway import set_field
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from skipindex.spark.pruning.query_planner import QueryPlanner
from skipindex.spark.pruning.session import _pruned
from skipindex.spark.pruning.tables import ScannedTable, Tables
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


class Store:
    """That of the tables ``slow…``, about which no question returns before the end.

    Attributes:
        asked: an item for each question that has begun.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[None] = []
        self._is_over = threading.Event()
        answer: Callable[..., bytes | None] = QueryPlanner._answer

        def hang(planner: QueryPlanner, *question: Any) -> bytes | None:
            if "/slow" in str(question):
                self.asked.append(None)
                self._is_over.wait(120)
            return answer(planner, *question)

        monkeypatch.setattr(QueryPlanner, "_answer", hang)

    def end(self) -> None:
        """It answers from now on."""
        self._is_over.set()


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    made = Store(monkeypatch)
    yield made
    made.end()


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not is_so() and time.monotonic() < end:
        time.sleep(0.02)
    assert is_so()


def optimize(df: DataFrame) -> None:
    df._jdf.queryExecution().optimizedPlan()


def at_once(calls: Iterable[Callable[[], object]]) -> list[threading.Thread]:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    return threads


def list_files(df: DataFrame) -> None:
    """Let Spark list the files of a query, and run no job."""
    df._jdf.queryExecution().toRdd().getNumPartitions()


def test_three_tables_that_hang_keep_no_query_of_another_waiting(
    session: SparkSession, tmp_path: Path, store: Store
) -> None:
    """Those of tables with partitions are asked while a query waits."""
    fast = session.read.parquet(str(make(tmp_path / "fast")))
    folders = [make(tmp_path / f"slow{i}", partitioned=True) for i in range(3)]
    slow = [session.read.parquet(str(folder)) for folder in folders]
    session.conf.set("skipindex.timeLimit", "60")
    queries = [frame.where(f"id = {i}") for frame in slow for i in range(3)]
    threads = at_once(partial(list_files, query) for query in queries)
    until(lambda: len(store.asked) >= 8)
    session.conf.set("skipindex.timeLimit", "2")
    before = len(sx.last_plans(session))
    assert files_read(fast.where("id = 15")) == 1
    (told,) = sx.last_plans(session)[before:]
    assert not told.problem
    store.end()
    for thread in threads:
        thread.join()


@pytest.mark.slow
def test_queries_wait_for_a_table_that_hangs_until_one_has_done_so_in_vain(
    session: SparkSession, tmp_path: Path, store: Store
) -> None:
    slow = session.read.parquet(str(make(tmp_path / "slow")))
    fast = session.read.parquet(str(make(tmp_path / "fast")))
    for i in range(9):  # they are asked ahead, for which no query waits yet
        optimize(slow.where(f"id = {i}"))
    until(lambda: len(store.asked) == 8)

    def problem_within(seconds: str) -> str:
        session.conf.set("skipindex.timeLimit", seconds)
        before = len(sx.last_plans(session))
        assert files_read(slow.where("id = 15")) == 4
        (told,) = sx.last_plans(session)[before:]
        return told.problem

    assert "was busy with other requests for the table" in problem_within("0.3")
    assert "without success" in problem_within("0.3")
    assert "without success" in problem_within("0.2")
    assert "until the time limit of 0.6 s" in problem_within("0.6")
    assert "without success" in problem_within("0.6")
    session.conf.set("skipindex.timeLimit", "5")
    assert files_read(fast.where("id = 15")) == 1
    assert len(store.asked) == 8
    store.end()
    until(lambda: files_read(slow.where("id = 15")) == 1)


@pytest.mark.few(1)
@pytest.mark.parametrize("seconds", ["0.3", "0.001"])
def test_questions_that_were_given_up_leave_room_when_they_end(
    session: SparkSession, tmp_path: Path, store: Store, seconds: str
) -> None:
    """The shorter limit may be over before a question has begun."""
    slow = session.read.parquet(str(make(tmp_path / "slow", partitioned=True)))
    session.conf.set("skipindex.timeLimit", seconds)
    queries = [slow.where(f"id = {i}") for i in range(10)]
    for thread in at_once(partial(list_files, query) for query in queries):
        thread.join()
    store.end()
    session.conf.set("skipindex.timeLimit", "5")
    until(lambda: files_read(slow.where("id = 15")) == 1)


@pytest.mark.slow
def test_many_queries_of_a_table_that_is_listed_slowly_have_their_answers(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = session.read.parquet(str(make(tmp_path / "t", partitioned=True)))
    list_files(frame.where("id = 0"))
    current = Tables.current

    def slow(tables: Tables, *given: Any) -> ScannedTable:
        time.sleep(0.5)
        return current(tables, *given)

    monkeypatch.setattr(Tables, "current", slow)
    session.conf.set("skipindex.timeLimit", "3")
    queries = [frame.where(f"id = {i}") for i in range(24)]
    for thread in at_once(partial(list_files, query) for query in queries):
        thread.join()
    told = sx.last_plans(session)[-24:]
    assert [plan.n_read for plan in told] == [1] * 24


def test_an_answer_that_comes_too_late_is_not_told(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = session.read.parquet(str(make(tmp_path / "t", partitioned=True)))
    current = Tables.current
    answered: list[None] = []

    def late(tables: Tables, *given: Any) -> ScannedTable:
        time.sleep(0.5)
        answered.append(None)
        return current(tables, *given)

    monkeypatch.setattr(Tables, "current", late)
    session.conf.set("skipindex.timeLimit", "0.2")
    before = len(sx.last_plans(session))
    assert files_read(frame.where("id = 15")) == 4
    until(lambda: bool(answered))
    time.sleep(0.3)  # so that the planner has its answer
    told = sx.last_plans(session)[before:]
    assert told
    assert not any(plan.n_skipped for plan in told)


@pytest.mark.slow
def test_questions_that_are_asked_at_once_take_their_time_once(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark runs the subqueries of a query at once."""
    names = [f"s{i}" for i in range(12)]
    for name in names:
        folder = str(make(tmp_path / name))
        session.read.parquet(folder).createOrReplaceTempView(name)
    current = Tables.current

    def slow(tables: Tables, *given: Any) -> ScannedTable:
        time.sleep(1)
        return current(tables, *given)

    monkeypatch.setattr(Tables, "current", slow)
    session.conf.set("skipindex.timeLimit", "8")
    sums = [f"(SELECT sum(id) FROM {name} WHERE id = 15)" for name in names]
    before = len(sx.last_plans(session))
    assert session.sql(f"SELECT {', '.join(sums)}").first() == (15,) * 12
    told = sx.last_plans(session)[before:]
    assert [plan.n_read for plan in told] == [1] * 12
