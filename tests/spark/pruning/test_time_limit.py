"""What a query waits for the planner, and what happens when it waits too long."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.java_gateway import set_field
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.spark.pruning.session import _pruned
from skipindex.spark.pruning.tables import Tables
from tests.spark.pruning.scans import files_read
from tests.tables import made

pytestmark = pytest.mark.spark

JOINED = (
    "SELECT count(*) FROM f JOIN d ON f.k = d.k JOIN e ON f.k = e.k "
    "WHERE d.c = 'a' AND e.c <> 'b' AND f.v > 'a'"
)
ONE = "SELECT count(*) FROM f WHERE k = 7"


def make(folder: Path) -> None:
    """A fact and two dimensions, all with indexes."""
    for name, n_files in (("f", 6), ("d", 1), ("e", 1)):
        (folder / name).mkdir()
        for i in range(n_files):
            keys = list(range(5 * i, 5 * i + 5))
            columns = {"k": keys, "c": list("abcde"), "v": ["x" * 900] * 5}
            pq.write_table(pa.table(columns), folder / name / f"{i}.parquet")
        sx.build_indexes(folder / name, {"k": "bitmap", "c": "bitmap"}, workers=1)


@pytest.fixture
def star(pruned: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    """The three tables as views, and a short limit of time."""
    made(tmp_path, make)
    for name in ("f", "d", "e"):
        pruned.read.parquet(str(tmp_path / name)).createOrReplaceTempView(name)
    pruned.conf.set("skipindex.timeLimit", "0.5")
    yield pruned
    pruned.conf.unset("skipindex.timeLimit")


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[None]]:
    """A store that never answers; an item for each time that a table is looked at."""
    asked: list[None] = []
    is_over = threading.Event()

    def hang(*_: object) -> object:
        asked.append(None)
        is_over.wait(120)
        raise OSError("the store is gone")

    monkeypatch.setattr(Tables, "current", hang)
    yield asked
    is_over.set()


def test_a_query_waits_once_for_all_its_questions(
    star: SparkSession, hanging: list[None]
) -> None:
    """Three scans and two joins would be asked about a dozen times."""
    before = len(sx.last_plans(star))
    assert files_read(star.sql(JOINED)) == 8
    problems = [plan.problem for plan in sx.last_plans(star)[before:]]
    assert any("skipindex.timeLimit" in problem for problem in problems)
    assert len(hanging) <= 3, "at most one question for each table"


def test_a_table_is_left_alone_for_a_while(
    star: SparkSession, hanging: list[None]
) -> None:
    assert files_read(star.sql(ONE)) == 6
    n_asked = len(hanging)
    assert n_asked
    assert files_read(star.sql(ONE)) == 6
    assert len(hanging) == n_asked
    assert "all files of the table are read" in sx.last_plans(star)[-1].problem


def test_a_query_that_may_wait_longer_asks_all_the_same(
    star: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The short limit of one session is no reason for others to read all files."""
    with monkeypatch.context() as patched:
        patched.setattr(Tables, "current", lambda *_: time.sleep(2))
        assert files_read(star.sql(ONE)) == 6
    star.conf.set("skipindex.timeLimit", "30")
    assert files_read(star.sql(ONE)) == 1


@pytest.mark.slow
def test_after_a_while_it_is_asked_again(
    star: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = _pruned[star.sparkContext.applicationId].calls
    set_field(calls, "restMillis", 300)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(Tables, "current", lambda *_: time.sleep(0.7))
            assert files_read(star.sql(ONE)) == 6
        time.sleep(0.4)
        star.sql(ONE).collect()
        assert "files of the table" not in sx.last_plans(star)[-1].problem
    finally:
        set_field(calls, "restMillis", 30_000)


@pytest.mark.few(1)
@pytest.mark.parametrize("text", ["0", "-1"])
def test_no_time_is_no_plan(star: SparkSession, text: str) -> None:
    star.conf.set("skipindex.timeLimit", text)
    assert files_read(star.sql(ONE)) == 6
    assert files_read(star.sql(JOINED)) == 8
    star.conf.set("skipindex.timeLimit", "30")
    assert files_read(star.sql(ONE)) == 1


def test_a_limit_that_is_no_number_is_told(star: SparkSession) -> None:
    star.conf.set("skipindex.timeLimit", "soon")
    before = len(sx.last_plans(star))
    assert files_read(star.sql(ONE)) == 6
    (told,) = {plan.problem for plan in sx.last_plans(star)[before:]}
    assert "'soon'" in told
    assert "seconds" in told


@pytest.mark.parametrize("how", ["planner fails", "switched off"])
def test_a_side_that_was_small_when_it_was_planned_is_small_when_it_is_read(
    star: SparkSession, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Spark may have chosen to broadcast it: all files may be too much for that."""
    star.conf.set("skipindex.timeLimit", "30")
    df = star.sql("SELECT f.v FROM f JOIN d ON f.k = d.k + 7 WHERE f.k = 7")
    df._jdf.queryExecution().optimizedPlan()
    with monkeypatch.context() as patched:
        if how == "planner fails":
            patched.setattr(Tables, "current", lambda *_: 1 // 0)
        else:
            star.conf.set("skipindex.enabled", "false")
        assert files_read(df, "/f") == 1


def test_a_file_that_was_replaced_since_is_read(
    star: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    star.conf.set("skipindex.timeLimit", "30")
    df = star.sql("SELECT f.v FROM f JOIN d ON f.k = d.k + 7 WHERE f.k = 7")
    df._jdf.queryExecution().optimizedPlan()
    columns = {"k": [7] * 5, "c": list("abcde"), "v": ["y" * 900] * 5}
    pq.write_table(pa.table(columns), tmp_path / "f/0.parquet")
    with monkeypatch.context() as patched:
        patched.setattr(Tables, "current", lambda *_: 1 // 0)
        assert files_read(df, "/f") == 2
        assert df.count() == 6
