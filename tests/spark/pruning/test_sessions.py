"""Sessions that are enabled, and what they record and observe."""

from __future__ import annotations

import datetime as dt
import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.errors import EngineError
from skipindex.spark.pruning import session
from skipindex.table import queries
from skipindex.table.queries import Asked, recorded
from tests.spark.pruning.scans import (
    files_of_run,
    files_read,
    rows_of,
)
from tests.spark.pruning.worlds import World
from tests.tables import build, put, put_all

pytestmark = pytest.mark.spark


N_FILES = 10
ROWS = 20
"""Of every file."""


@pytest.fixture
def folder(world_of: Callable[[str], World]) -> str:
    """Ten files, each with its own numbers, and with indexes."""
    return str(world_of("numbers").folder / "t")


def test_a_defined_query_follows_enable_disable_and_the_setting(
    spark: SparkSession, folder: str
) -> None:
    df = spark.read.parquet(folder).where("id = 77")

    def again() -> int:
        return files_read(df.select("*"))

    assert again() == N_FILES
    sx.enable(spark)
    sx.enable(spark)
    assert again() == 1
    spark.conf.set("skipindex.enabled", "false")
    assert again() == N_FILES
    spark.conf.set("skipindex.enabled", "true")
    planned = df.select("*")
    planned.explain()
    sx.disable(spark)
    sx.disable(spark)
    assert files_read(planned) == N_FILES, "it was planned while pruning was on"
    assert again() == N_FILES
    assert sx.last_plans(spark) == ()
    spark.conf.unset("skipindex.enabled")


def test_streams_are_left_alone(
    pruned: SparkSession, folder: str, tmp_path: Path
) -> None:
    schema = pruned.read.parquet(folder).schema
    stream = pruned.readStream.schema(schema).parquet(folder).where("id = 77")
    query = (
        stream.writeStream.format("memory")
        .queryName("found")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert pruned.table("found").count() == 1
    assert not sx.last_plans(pruned)


def test_a_registered_table_is_used_as_it_was_opened(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "h"
    for month in range(1, 4):
        path = table / f"month=0{month}" / "part.parquet"
        path.parent.mkdir(parents=True)
        day = pa.array([f"2022-0{month}-10"]).cast(pa.date32())
        pq.write_table(pa.table({"day": day}), path)
    opened = sx.open_table(table, derived=sx.Derived({"month": "month(day)"}))
    try:
        sx.register(spark, opened)
        df = spark.read.parquet(str(table)).where("day = DATE '2022-02-10'")
        assert files_read(df) == 1
    finally:
        sx.disable(spark)


def test_a_session_without_a_driver_is_refused() -> None:
    class Remote:
        pass

    with pytest.raises(EngineError, match="not a Spark session"):
        sx.enable(Remote())  # type: ignore[arg-type]
    Remote.__module__ = "pyspark.sql.connect.session"
    with pytest.raises(EngineError, match=r"skipindex\.read"):
        sx.enable(Remote())  # type: ignore[arg-type]


def test_a_spark_whose_classes_do_not_link_reads_all_files(
    spark: SparkSession,
    folder: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_: object) -> None:
        raise EngineError("no class SkipRule")

    monkeypatch.setattr(session, "_sessions", refused)
    with pytest.warns(UserWarning, match=r"^queries read all files: no class SkipRule"):
        sx.enable(spark)
    with pytest.warns(UserWarning, match="no class SkipRule"):
        sx.register(spark, folder)
    df = spark.read.parquet(folder).where("id = 15")
    assert (df.count(), files_read(df)) == (1, N_FILES)
    assert sx.last_plans(spark) == ()


SESSION_N_FILES = 6
SESSION_ROWS = 10
"""Of every file."""


@pytest.fixture
def session_folder(tmp_path: Path) -> str:
    """Files of consecutive numbers, and of days of one year each."""
    table = tmp_path / "t"
    table.mkdir()
    for file in range(SESSION_N_FILES):
        days = [dt.date(1000 + file, 1, 1 + i) for i in range(SESSION_ROWS)]
        ids = range(file * SESSION_ROWS, file * SESSION_ROWS + SESSION_ROWS)
        columns = {"ID": pa.array(ids, pa.int64()), "day": pa.array(days)}
        pq.write_table(pa.table(columns), table / f"part-{file}.parquet")
    sx.build_indexes(table, {"ID": "bitmap", "day": "minmax"}, workers=1)
    return str(table)


def read(session: SparkSession, session_folder: str) -> int:
    return files_read(session.read.parquet(session_folder).where("id = 33"))


def rules(java_session: Any) -> list[str]:
    found = java_session.experimental().extraOptimizations()
    return [found.apply(i).getClass().getName() for i in range(found.size())]


def test_sessions_made_before_and_after_are_pruned(
    spark: SparkSession, session_folder: str
) -> None:
    before = spark.newSession()
    assert read(before, session_folder) == SESSION_N_FILES, (
        "it has planned a query without the rule"
    )
    sx.enable(spark)
    after = spark.newSession()
    try:
        sessions = (spark, before, after, after.newSession())
        assert [read(session, session_folder) for session in sessions] == [1] * 4
        assert len(sx.last_plans(spark)) == 4
        assert sx.last_plans(after) == sx.last_plans(spark)
        after.conf.set("skipindex.enabled", "false")
        assert (read(after, session_folder), read(before, session_folder)) == (
            SESSION_N_FILES,
            1,
        )
    finally:
        sx.disable(spark)
        after.conf.unset("skipindex.enabled")


def test_disable_in_one_session_is_for_all(
    pruned: SparkSession, session_folder: str
) -> None:
    other = pruned.newSession()
    planned = pruned.read.parquet(session_folder).where("id = 33")
    planned.explain()
    assert read(other, session_folder) == 1
    sx.disable(other)
    assert files_read(planned) == SESSION_N_FILES
    assert [read(session, session_folder) for session in (pruned, other)] == [
        SESSION_N_FILES
    ] * 2
    assert rules(other._jsparkSession) == []
    sx.enable(other)
    assert [read(session, session_folder) for session in (pruned, other)] == [1] * 2


def test_a_session_has_one_rule_and_a_clone_its_own(
    pruned: SparkSession, session_folder: str
) -> None:
    for _ in range(3):
        sx.enable(pruned)
        assert read(pruned, session_folder) == 1
    assert rules(pruned._jsparkSession) == ["skipindex.SkipRule"]
    clone = pruned._jsparkSession.cloneSession()
    before = clone.experimental().extraOptimizations().apply(0)
    query = clone.sql(f"SELECT * FROM parquet.`{session_folder}` WHERE id = 33")
    assert "SkippingFileIndex" in query.queryExecution().executedPlan().toString()
    assert rules(clone) == ["skipindex.SkipRule"]
    after = clone.experimental().extraOptimizations().apply(0)
    assert not after.equals(before), "it computes the keys of joins in its session"


def test_rules_of_others_stay(pruned: SparkSession, session_folder: str) -> None:
    """Those that a user gave a session run as before, in their order."""
    other = pruned.newSession()
    methods = other._jsparkSession.experimental()
    jvm = pruned._jvm
    assert jvm is not None
    optimizer = jvm.org.apache.spark.sql.catalyst.optimizer
    theirs = [optimizer.CombineUnions, optimizer.ConstantFolding]
    listed = jvm.java.util.ArrayList()
    for rule in theirs:
        name = f"{rule._fqn}$"
        listed.add(jvm.java.lang.Class.forName(name).getField("MODULE$").get(None))
    setter = getattr(methods, "extraOptimizations_$eq")
    setter(jvm.PythonUtils.toSeq(listed))
    names = [f"{rule._fqn}$" for rule in theirs]
    assert read(other, session_folder) == 1
    assert rules(other._jsparkSession) == [*names, "skipindex.SkipRule"]
    sx.disable(pruned)
    assert read(other, session_folder) == SESSION_N_FILES
    assert rules(other._jsparkSession) == names


@pytest.mark.slow
def test_sessions_are_not_remembered(pruned: SparkSession, session_folder: str) -> None:
    """A server makes one for each connection; threads of Spark hold the last ones."""
    jvm = pruned._jvm
    assert jvm is not None
    references = []
    for _ in range(6):
        other = pruned.newSession()
        assert read(other, session_folder) == 1
        references.append(jvm.java.lang.ref.WeakReference(other._jsparkSession))
        del other
    for _ in range(20):
        gc.collect()  # tells the driver which objects Python has dropped
        assert read(pruned, session_folder) == 1
        jvm.java.lang.System.gc()
        if any(reference.refersTo(None) for reference in references):
            return
    pytest.fail("all of the sessions are still there")


@pytest.mark.slow
def test_keys_of_joins_are_computed_in_every_session(
    pruned: SparkSession, session_folder: str
) -> None:
    text = (
        f"SELECT f.id FROM parquet.`{session_folder}` f "
        "JOIN VALUES (33L), (34L) AS d(k) ON f.id = d.k"
    )
    for one in (pruned, pruned.newSession()):
        assert [row.id for row in rows_of(one.sql(text))] == [33, 34]
        assert files_read(one.sql(text)) == 1


AGAIN = """
import sys

import skipindex as sx
from ssb.session import local_session

found = []
for _ in range(2):
    spark = local_session(cores=1, memory="1g")
    sx.enable(spark)
    rows = spark.newSession().read.parquet(sys.argv[1]).where("id = 33")
    n_rows, plans = rows.count(), sx.last_plans(spark)
    found.append((n_rows, len(plans), plans[0].n_read))
    spark.stop()
print(found)
"""


@pytest.mark.slow
def test_a_second_application_of_one_process_is_pruned(session_folder: str) -> None:
    """Its driver is the first one's, and has the compiled classes."""
    done = subprocess.run(
        [sys.executable, "-c", AGAIN, session_folder],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "[(1, 1, 1), (1, 1, 1)]"


VIEW_SETTINGS = {
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
    "spark.sql.caseSensitive": "true",
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", VIEW_SETTINGS)
def test_files_of_a_shared_view_are_read_as_its_own_session_says(
    spark: SparkSession, session_folder: str, name: str
) -> None:
    """Spark reads them under the settings of the session that defined the view."""
    one, other = spark.newSession(), spark.newSession()
    one.conf.set(name, VIEW_SETTINGS[name])
    frame = one.read.schema("id LONG, day DATE").parquet(session_folder)
    frame.createOrReplaceGlobalTempView("shared")
    try:
        first = other.sql("SELECT min(id) i, min(day) d FROM global_temp.shared")
        ((i, day),) = first.collect()
        queries = [
            other.sql(f"SELECT * FROM global_temp.shared WHERE {condition}")
            for condition in (f"day = DATE '{day}'", f"id = {i or 0}", "id IS NULL")
        ]
        expected = [rows_of(query) for query in queries]
        assert any(expected)
        sx.enable(spark)
        assert [rows_of(query.select("*")) for query in queries] == expected
        problem = sx.last_plans(other)[-1].problem
        assert name in (problem or "")
    finally:
        sx.disable(spark)
        other.sql("DROP VIEW global_temp.shared")


FILES = [{"x": [1, 2], "s": ["a", "b"]}, {"x": [3, 4], "s": ["c", "d"]}]


@pytest.fixture
def recorded_folder(tmp_path: Path, spark: SparkSession) -> Iterator[Path]:
    build(put_all(tmp_path, FILES), {"x": "bitmap", "s": "bitmap"})
    sx.enable(spark)
    yield tmp_path
    sx.disable(spark)
    for name in (queries.SETTING, queries.LITERALS):
        spark.conf.unset(name)


def asked_of(spark: SparkSession, recorded_folder: Path) -> list[Asked]:
    sx.last_plans(spark)  # waits for what scans report
    queries.flush()
    return recorded(sx.open_table(recorded_folder).state.location)


def test_a_query_is_recorded_once(spark: SparkSession, recorded_folder: Path) -> None:
    spark.conf.set("skipindex.queries", "table")
    assert (
        spark.read.parquet(str(recorded_folder)).where("x = 3 AND s < 'd'").count() == 1
    )
    (asked,) = asked_of(spark, recorded_folder)
    assert "x = 3" in asked.where
    assert "s < 'd'" in asked.where
    assert (asked.files, asked.read) == (2, 1)
    assert asked.n_bytes == (recorded_folder / "1.parquet").stat().st_size
    assert asked.zone == spark.conf.get("spark.sql.session.timeZone")
    advice = sx.open_table(recorded_folder).advise(queries="log")
    assert {column.name for column in advice.columns} == {"s", "x"}


def test_no_query_is_recorded_unless_a_session_says_so(
    spark: SparkSession, recorded_folder: Path
) -> None:
    spark.read.parquet(str(recorded_folder)).where("x = 3").count()
    assert asked_of(spark, recorded_folder) == []


def test_literals_can_be_hidden(spark: SparkSession, recorded_folder: Path) -> None:
    spark.conf.set("skipindex.queries", "table")
    spark.conf.set("skipindex.queries.literals", "false")
    spark.read.parquet(str(recorded_folder)).where("s = 'secret'").count()
    (asked,) = asked_of(spark, recorded_folder)
    assert "secret" not in asked.where
    assert asked.is_hidden


def test_reads_by_a_condition_are_recorded_once(
    spark: SparkSession, recorded_folder: Path
) -> None:
    spark.conf.set("skipindex.queries", "table")
    assert sx.read(recorded_folder, "x = 3", spark=spark).count() == 1
    assert [asked.where for asked in asked_of(spark, recorded_folder)] == ["x = 3"]


def test_a_place_that_cannot_be_written_fails_no_query(
    spark: SparkSession, recorded_folder: Path
) -> None:
    spark.conf.set("skipindex.queries", "s9://no such/place")
    assert spark.read.parquet(str(recorded_folder)).where("x = 3").count() == 1
    assert sx.last_plans(spark)[-1].n_read == 1
    assert asked_of(spark, recorded_folder) == []


N_ROWS = {"user = 2": 1, "user = 13 AND day = 1": 1, "user = 3": 1, "city <> 'Rome'": 4}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    for i in range(4):
        rows = {"user": [i, i + 10], "city": ["Oslo", "Rome"]}
        put(tmp_path / "t" / f"day={i % 2}" / f"{i}.parquet", rows)
    sx.build_indexes(tmp_path / "t", {"user": "bitmap"}, workers=1)
    return tmp_path / "t"


@pytest.fixture
def observing(spark: SparkSession) -> Iterator[SparkSession]:
    sx.enable(spark, observe=True)
    yield spark
    spark.conf.unset("skipindex.enabled")
    sx.disable(spark)


def test_nothing_is_skipped_and_all_is_recorded(
    observing: SparkSession, path: Path
) -> None:
    frame = observing.read.parquet(str(path))
    for where, n_rows in N_ROWS.items():
        df = frame.where(where)
        assert len(df.collect()) == n_rows
        partitions = 2 if "day" in where else 4
        assert files_of_run(df) == partitions
        (*_, plan) = sx.last_plans(observing)
        assert plan.is_observed
        assert (plan.n_files, plan.n_read) == (4, 4 if "city" in where else 1)
        assert f"{plan.n_read} of 4 files would be read" in str(plan)
    joined = frame.where("user = 1").join(frame.where("user IN (1, 2)"), "user")
    assert joined.count() == 1
    queries._WRITER.flush()
    report = sx.open_table(path).usage()
    assert (report.n_queries, report.n_files, report.n_read) == (6, 24, 9)
    assert report.n_verified > 0
    assert report.violations == ()
    first, *_, least = report.conditions
    assert (first.where, first.n_queries, first.n_read) == ("`user` = ?", 2, 2)
    assert (least.n_queries, least.n_files, least.n_read) == (1, 4, 4)
    assert "no file skipped, 1 times: NOT (city = ?)" in str(report)


def test_the_next_queries_of_the_session_skip_again(
    observing: SparkSession, path: Path
) -> None:
    observing.conf.set("skipindex.enabled", "true")
    df = observing.read.parquet(str(path)).where("user = 2")
    assert df.count() == 1
    assert files_read(df) == 1
    assert not sx.last_plans(observing)[-1].is_observed


def test_a_plan_that_fails_is_recorded_and_the_query_runs(
    observing: SparkSession, path: Path
) -> None:
    for file in (path / "_skipindex" / "log").iterdir():
        file.write_bytes(b"damaged")
    df = observing.read.parquet(str(path)).where("user = 2")
    assert df.count() == 1
    assert sx.last_plans(observing)[-1].n_skipped == 0
