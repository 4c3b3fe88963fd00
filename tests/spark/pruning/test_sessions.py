"""``enable`` and ``disable`` count for all sessions of a Spark application."""

from __future__ import annotations

import datetime as dt
import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from tests.spark.pruning.scans import files_read, rows_of

pytestmark = pytest.mark.spark

N_FILES = 6
ROWS = 10
"""Of every file."""


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Files of consecutive numbers, and of days of one year each."""
    table = tmp_path / "t"
    table.mkdir()
    for file in range(N_FILES):
        days = [dt.date(1000 + file, 1, 1 + i) for i in range(ROWS)]
        ids = range(file * ROWS, file * ROWS + ROWS)
        columns = {"ID": pa.array(ids, pa.int64()), "day": pa.array(days)}
        pq.write_table(pa.table(columns), table / f"part-{file}.parquet")
    sx.build_indexes(table, {"ID": "bitmap", "day": "minmax"}, workers=1)
    return str(table)


def read(session: SparkSession, folder: str) -> int:
    return files_read(session.read.parquet(folder).where("id = 33"))


def rules(java_session: Any) -> list[str]:
    found = java_session.experimental().extraOptimizations()
    return [found.apply(i).getClass().getName() for i in range(found.size())]


def test_sessions_made_before_and_after_are_pruned(
    spark: SparkSession, folder: str
) -> None:
    before = spark.newSession()
    assert read(before, folder) == N_FILES, "it has planned a query without the rule"
    sx.enable(spark)
    after = spark.newSession()
    try:
        sessions = (spark, before, after, after.newSession())
        assert [read(session, folder) for session in sessions] == [1] * 4
        assert len(sx.last_plans(spark)) == 4
        assert sx.last_plans(after) == sx.last_plans(spark)
        after.conf.set("skipindex.enabled", "false")
        assert (read(after, folder), read(before, folder)) == (N_FILES, 1)
    finally:
        sx.disable(spark)
        after.conf.unset("skipindex.enabled")


def test_disable_in_one_session_is_for_all(pruned: SparkSession, folder: str) -> None:
    other = pruned.newSession()
    planned = pruned.read.parquet(folder).where("id = 33")
    planned.explain()
    assert read(other, folder) == 1
    sx.disable(other)
    assert files_read(planned) == N_FILES
    assert [read(session, folder) for session in (pruned, other)] == [N_FILES] * 2
    assert rules(other._jsparkSession) == []
    sx.enable(other)
    assert [read(session, folder) for session in (pruned, other)] == [1] * 2


def test_a_session_has_one_rule_and_a_clone_its_own(
    pruned: SparkSession, folder: str
) -> None:
    for _ in range(3):
        sx.enable(pruned)
        assert read(pruned, folder) == 1
    assert rules(pruned._jsparkSession) == ["skipindex.SkipRule"]
    clone = pruned._jsparkSession.cloneSession()
    before = clone.experimental().extraOptimizations().apply(0)
    query = clone.sql(f"SELECT * FROM parquet.`{folder}` WHERE id = 33")
    assert "SkippingFileIndex" in query.queryExecution().executedPlan().toString()
    assert rules(clone) == ["skipindex.SkipRule"]
    after = clone.experimental().extraOptimizations().apply(0)
    assert not after.equals(before), "it computes the keys of joins in its session"


def test_rules_of_others_stay(pruned: SparkSession, folder: str) -> None:
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
    assert read(other, folder) == 1
    assert rules(other._jsparkSession) == [*names, "skipindex.SkipRule"]
    sx.disable(pruned)
    assert read(other, folder) == N_FILES
    assert rules(other._jsparkSession) == names


@pytest.mark.slow
def test_sessions_are_not_remembered(pruned: SparkSession, folder: str) -> None:
    """A server makes one for each connection; threads of Spark hold the last ones."""
    jvm = pruned._jvm
    assert jvm is not None
    references = []
    for _ in range(6):
        other = pruned.newSession()
        assert read(other, folder) == 1
        references.append(jvm.java.lang.ref.WeakReference(other._jsparkSession))
        del other
    for _ in range(20):
        gc.collect()  # tells the driver which objects Python has dropped
        assert read(pruned, folder) == 1
        jvm.java.lang.System.gc()
        if any(reference.refersTo(None) for reference in references):
            return
    pytest.fail("all of the sessions are still there")


@pytest.mark.slow
def test_keys_of_joins_are_computed_in_every_session(
    pruned: SparkSession, folder: str
) -> None:
    text = (
        f"SELECT f.id FROM parquet.`{folder}` f JOIN VALUES (33L), (34L) AS d(k) "
        "ON f.id = d.k"
    )
    for session in (pruned, pruned.newSession()):
        assert [row.id for row in rows_of(session.sql(text))] == [33, 34]
        assert files_read(session.sql(text)) == 1


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
def test_a_second_application_of_one_process_is_pruned(folder: str) -> None:
    """Its driver is the first one's, and has the compiled classes."""
    done = subprocess.run(
        [sys.executable, "-c", AGAIN, folder],
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


@pytest.mark.parametrize("name", VIEW_SETTINGS)
def test_files_of_a_shared_view_are_read_as_its_own_session_says(
    spark: SparkSession, folder: str, name: str
) -> None:
    """Spark reads them under the settings of the session that defined the view."""
    one, other = spark.newSession(), spark.newSession()
    one.conf.set(name, VIEW_SETTINGS[name])
    frame = one.read.schema("id LONG, day DATE").parquet(folder)
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
