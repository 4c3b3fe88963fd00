"""Law 7: a plan read through Spark has the rows and columns of the whole table."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.errors import PlanError
from skipindex.storage import disk_cache
from tests.spark.reading.whole import (
    ZONE,
    check_law_7,
    columns,
    rows,
    rows_of_each,
    settings,
)
from tests.spark.versions import SPARK
from tests.tables import build, put, put_all

pytestmark = pytest.mark.spark

KINDS = ["bitmap", "bloom"]
THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = [
        {
            "id": [*range(10 * i, 10 * i + 10)],
            "s": [None if n == 3 else f"v{n % 4}" for n in range(10)],
        }
        for i in range(4)
    ]
    return put_all(tmp_path, files)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("condition", "n_files"),
    [
        ("id = 17 AND s = 'v3'", 1),
        ("id IN (5, 35) OR s <=> NULL AND id < 10", 2),
        ("s = 'nowhere'", 0),
        ("id % 10 = 3", 4),
    ],
)
@pytest.mark.usefixtures("way")
def test_a_plain_table(
    spark: SparkSession, folder: Path, condition: str, n_files: int
) -> None:
    plan = check_law_7(spark, folder, condition, indexes={"id": KINDS, "s": KINDS})
    assert len(plan.paths) == n_files


def test_a_plan_reads_the_files_that_it_names_and_no_others(
    spark: SparkSession, folder: Path
) -> None:
    plan = build(folder).plan("id BETWEEN 15 AND 25")
    df = plan.read(spark)
    found = {Path(name).name for name in df.inputFiles()}
    assert found == set(plan.paths) == {"1.parquet", "2.parquet"}
    assert sorted(row.id for row in df.collect()) == [*range(15, 26)]


def test_a_builder_expression_is_read_too(spark: SparkSession, folder: Path) -> None:
    predicate = (sx.col("id") > 5) & sx.col("s").isin("v1", "it's")
    expected = spark.read.parquet(str(folder)).where("id > 5 AND s IN ('v1', 'it''s')")
    assert rows(sx.read(folder, predicate, spark=spark)) == rows(expected)


def test_the_cache_on_disk_is_the_one_of_the_session(
    spark: SparkSession, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_cache, "_given", [])
    build(folder, {"id": KINDS})
    cache = tmp_path / "cache"
    spark.conf.set("skipindex.cacheDir", str(cache))
    try:
        assert sx.read(folder, "id = 17", spark=spark).count() == 1
    finally:
        spark.conf.unset("skipindex.cacheDir")
    assert [path for path in cache.rglob("*") if path.is_file()]


def test_an_unindexed_table_is_read_whole(spark: SparkSession, folder: Path) -> None:
    df = sx.read(str(folder), "id >= 0", spark=spark)
    assert len(df.inputFiles()) == 4
    assert df.count() == 40


@pytest.mark.usefixtures("way")
def test_trap_c34_an_empty_plan_has_the_columns_and_no_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    for p in ("x", "y"):
        put(tmp_path / f"p={p}" / "f.parquet", {"id": [1]})
    plan = build(tmp_path).plan("id = 99")
    assert plan.paths == []
    df = plan.read(spark)
    assert columns(df) == columns(spark.read.parquet(str(tmp_path)))
    assert df.groupBy("p").count().collect() == []


def test_trap_c35_no_file_is_read_twice(spark: SparkSession, folder: Path) -> None:
    condition = "id < 15 OR id < 5 OR s = 'v1' OR id < 15"
    plan = build(folder, {"id": KINDS}).plan(condition)
    assert len(set(plan.files)) == len(plan.files) == 4
    expected = spark.read.parquet(str(folder)).where(condition)
    assert rows(plan.read(spark)) == rows(expected)


SPECIAL = (
    ("a[1].parquet", "a1.parquet"),
    ("e*.parquet", "exx.parquet"),
    ("f?.parquet", "fx.parquet"),
    ("b{c,d}.parquet", "bc.parquet"),
    ("g\\h.parquet", "gh.parquet"),
    ("p%20q.parquet", "p q.parquet"),
    ("é日本.parquet", "e.parquet"),
    ("h#1.parquet", "h"),
    ("q'q\"q.parquet", "qqq"),
    ("x=y.parquet", "x"),
)
"""Names that Spark may take for a pattern, or for another name."""


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("way", ["given", "listed"], indirect=True)
def test_trap_c36_names_with_glob_characters(
    spark: SparkSession, tmp_path: Path
) -> None:
    """One half without the other: none is read beside it, or instead of it."""
    for i, names in enumerate(SPECIAL):
        for half, name in enumerate(names):
            put(tmp_path / name, {"id": [i], "half": [half]})
    table = build(tmp_path)
    for half in (0, 1):
        plan = table.plan(f"half = {half}")
        assert set(plan.paths) == {names[half] for names in SPECIAL}
        found = sorted((row.id, row.half) for row in plan.read(spark).collect())
        assert found == [(i, half) for i in range(len(SPECIAL))]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("way", ["given", "listed"], indirect=True)
def test_trap_c36_a_folder_with_glob_characters(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Read by path, and whole, where Spark alone can type the partition."""
    folder = tmp_path / "t[1] *{x}%20é"
    for p in ("1.5", "2"):
        put(folder / f"p={p}" / "f.parquet", {"id": [len(p)]})
    put(tmp_path / "t1 y" / "p=7" / "f.parquet", {"id": [7]})
    assert check_law_7(spark, folder, "id = 3").paths == ["p=1.5/f.parquet"]


def test_trap_c37_hidden_files_are_not_read(spark: SparkSession, folder: Path) -> None:
    for name in ("_x.parquet", ".y.parquet", "_tmp/z.parquet", ".h/z.parquet"):
        put(folder / name, {"id": [5], "s": ["v1"]})
    if SPARK >= (4, 3):  # older ones fail on an empty file
        (folder / "0").write_bytes(b"")
    assert check_law_7(spark, folder, "id = 5").paths == ["0.parquet"]


def test_trap_c33_the_schema_is_that_of_the_whole_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Whatever columns the chosen files have."""
    put_all(
        tmp_path,
        [{"a": [1], "b": ["x"]}, {"a": [2]}, {"b": ["y"], "z": [1], "a": [3]}],
    )
    for condition in ("a = 2", "b = 'y'", "a > 1 AND b IS NULL"):
        plan = check_law_7(spark, tmp_path, condition, indexes={"a": KINDS, "b": KINDS})
        assert "0.parquet" not in plan.paths


def test_a_column_in_other_letters(spark: SparkSession, tmp_path: Path) -> None:
    """Read by sessions that do, and do not, tell letters apart."""
    put_all(tmp_path, [{"a": [1, 2]}, {"A": [3, 4]}])
    for condition in ("a = 3", "a IS NULL"):
        for sensitive in ("false", "true"):
            session = {"spark__sql__caseSensitive": sensitive}
            check_law_7(spark, tmp_path, condition, **session)


def test_trap_c41_names_of_columns(spark: SparkSession, tmp_path: Path) -> None:
    names = ["a.b", "x y", "t`t", "select", "é", "1"]
    for i in range(2):
        put(tmp_path / f"{i}.parquet", {name: [i] for name in names})
    condition = " AND ".join("`" + n.replace("`", "``") + "` = 1" for n in names)
    plan = check_law_7(spark, tmp_path, condition)
    assert plan.paths == ["1.parquet"]
    assert len(plan.evaluation.leaves) == len(names)


def test_summaries_give_the_schema(spark: SparkSession, folder: Path) -> None:
    for name in ("_metadata", "_common_metadata"):
        put(folder / name, {"id": [1], "s": ["x"], name: [1.5]})
        condition = f"id = 5 AND {name} IS NULL"
        assert check_law_7(spark, folder, condition).paths == ["0.parquet"]


def test_a_session_that_merges_schemas(spark: SparkSession, tmp_path: Path) -> None:
    put_all(tmp_path, [{"a": [1], "b": ["x"]}, {"a": [2], "c": [1.5]}])
    check_law_7(spark, tmp_path, "a = 1", spark__sql__parquet__mergeSchema="true")


@pytest.mark.usefixtures("way")
def test_trap_c39_thousands_of_paths_start_no_listing_job(
    spark: SparkSession, tmp_path: Path
) -> None:
    first = put(tmp_path / "0.parquet", {"id": [5]})
    for i in range(1, 2_000):
        os.link(first, tmp_path / f"{i}.parquet")
    plan = sx.plan_files("id = 5", table=tmp_path)
    context = spark.sparkContext
    group = str(tmp_path)
    context.setJobGroup(group, "reading a plan")
    try:
        df = plan.read(spark)
        tracker = context.statusTracker()
        jobs = map(tracker.getJobInfo, tracker.getJobIdsForGroup(group))
        stages = [i for job in jobs if job for i in job.stageIds]
        tasks = [s.numTasks for s in map(tracker.getStageInfo, stages) if s]
    finally:
        context.setJobGroup("", "")
    assert tasks in ([], [1]), "one task reads a footer for the schema; none lists"
    assert len(df.inputFiles()) == 2_000


def test_settings_are_restored_after_a_read(spark: SparkSession, folder: Path) -> None:
    with settings(spark, {THRESHOLD: "17"}):
        plan = build(folder).plan("id = 5")
        plan.read(spark)
        assert spark.conf.get(THRESHOLD) == "17"
        (folder / "0.parquet").unlink()
        with pytest.raises(PlanError):
            plan.read(spark)
        assert spark.conf.get(THRESHOLD) == "17"


@pytest.mark.parametrize("gone", ["0.parquet", "2.parquet"])  # 0 has the schema
@pytest.mark.usefixtures("way")
def test_a_plan_whose_files_are_gone_says_so(
    spark: SparkSession, folder: Path, gone: str
) -> None:
    plan = build(folder).plan("id >= 0")
    (folder / gone).unlink()
    said = f"changed since this plan was made: 1 of its files are gone, such as '{gone}"
    with pytest.raises(PlanError, match=said):
        plan.read(spark)


def test_trap_c19_a_plan_for_another_zone_is_refused(
    spark: SparkSession, folder: Path
) -> None:
    plan = sx.plan_files("id = 5", table=folder, timezone="Asia/Tokyo")
    with settings(spark, {ZONE: "Europe/Paris"}):
        text = "for time zone 'Asia/Tokyo', the session has 'Europe/Paris'"
        with pytest.raises(PlanError, match=text):
            plan.read(spark)
        assert sx.read(folder, "id = 5", spark=spark).count() == 1
    with settings(spark, {ZONE: "Asia/Tokyo"}):
        assert plan.read(spark).count() == 1


def test_a_plan_for_another_case_is_refused(spark: SparkSession, folder: Path) -> None:
    plan = sx.plan_files("id = 5", table=folder)
    with settings(spark, {"spark.sql.caseSensitive": "TRUE"}):
        with pytest.raises(PlanError, match="the plan has case_sensitive=False"):
            plan.read(spark)
        again = sx.plan_files("id = 5", table=folder, case_sensitive=True)
        assert again.read(spark).columns == ["id", "s"]
        assert sx.read(folder, "id = 5", spark=spark).columns == ["id", "s"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.parser.escapedStringLiterals", "true"),
        ("spark.sql.ansi.doubleQuotedIdentifiers", "true"),
        ("spark.sql.legacy.typeCoercion.datetimeToString.enabled", "true"),
        ("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY"),
        ("spark.sql.timestampType", "TIMESTAMP_NTZ"),
        ("spark.sql.legacy.literal.pickMinimumPrecision", "false"),
    ],
)
def test_a_session_that_reads_conditions_otherwise_is_refused(
    spark: SparkSession, folder: Path, name: str, value: str
) -> None:
    plan = sx.plan_files("id = 5", table=folder)
    text = f"the session has {name}={value}"
    with settings(spark, {name: value}), pytest.raises(PlanError, match=text):
        plan.read(spark)
    assert plan.read(spark).columns == ["id", "s"]


def test_trap_c42_a_table_that_was_rewritten_is_read_as_it_is(
    spark: SparkSession, folder: Path
) -> None:
    build(folder, {"id": KINDS})
    put(folder / "1.parquet", {"id": [*range(500, 510)], "s": ["w"] * 10})
    put(folder / "9.parquet", {"id": [600], "s": ["w"]})
    (folder / "2.parquet").unlink()
    shutil.copy(folder / "3.parquet", folder / "copy.parquet")
    for condition in ("id IN (505, 600, 35, 25, 15)", "s = 'w'"):
        expected = spark.read.parquet(str(folder)).where(condition)
        assert rows(sx.read(folder, condition, spark=spark)) == rows(expected), (
            condition
        )


def test_no_file_is_listed_again(spark: SparkSession, folder: Path) -> None:
    plan = build(folder).plan("id BETWEEN 15 AND 35")
    plan.read(spark)  # Spark looks at the one file that gives the schema
    found = spark._jvm.org.apache.spark.metrics.source.HiveCatalogMetrics
    before = found.METRIC_FILES_DISCOVERED().getCount()
    df = plan.read(spark)
    assert sorted(row.id for row in df.collect()) == [*range(15, 36)]
    assert found.METRIC_FILES_DISCOVERED().getCount() == before
    spark.read.parquet(str(folder)).collect()
    assert found.METRIC_FILES_DISCOVERED().getCount() > before


def test_plans_of_two_moments_are_not_taken_for_one(
    spark: SparkSession, folder: Path
) -> None:
    # Spark computes what it takes for equal once, and so it does what is cached.
    before = build(folder).plan("id >= 30").read(spark)
    put(folder / "4.parquet", {"id": [40, 41], "s": ["a", "b"]})
    after = sx.open_table(folder).plan("id >= 30").read(spark)
    before.cache()
    assert [before.count(), after.count()] == [10, 12]
    alike = build(folder).plan("id >= 30").read(spark)
    assert alike.join(after, "id").count() == 12
    before.unpersist()


def test_a_refreshed_plan_reads_the_table_as_it_is(
    spark: SparkSession, folder: Path
) -> None:
    df = build(folder).plan("id >= 30").read(spark)
    assert df.count() == 10
    put(folder / "4.parquet", {"id": [40, 41], "s": ["a", "b"]})
    assert df.count() == 10
    spark.catalog.refreshByPath(str(folder))
    df.cache()
    spark.catalog.refreshByPath(str(folder))
    assert df.count() == 12
    df.unpersist()


ODD_NAMES = ["a1", "a[1]", "a*", "x{y,z}", "b?", "e f", "g%25h", "i#j"]


@pytest.mark.few(1)
@pytest.mark.parametrize("has_partitions", [False, True])
def test_an_explicit_path_set_for_spark(
    spark: SparkSession,
    tmp_path: Path,
    has_partitions: bool,
) -> None:
    """Law 7 for the call that the guide shows, and for other readers of the files."""
    for i, name in enumerate(ODD_NAMES):
        folder = tmp_path / (f"day={i % 3:02d}" if has_partitions else "")
        put(folder / f"{name}.parquet", {"user": [10 * i, 10 * i + 1, 1000]})
    table = build(tmp_path, {"user": "bitmap"})
    conditions = [
        "user < 0",
        "user = 1000",
        *(f"user = {10 * i + 1}" for i in range(9)),
    ]
    if has_partitions:
        conditions += ["user = 1000 AND day = 2", "day = 5"]
    whole = spark.read.parquet(str(tmp_path))
    files = spark.read.schema(whole.schema).option("basePath", str(tmp_path))
    for condition, wanted in zip(
        conditions, rows_of_each(whole, conditions), strict=True
    ):
        plan = sx.plan_files(condition, table=table)
        found = files.parquet(*plan.spark_paths).where(condition)
        assert found.columns == whole.columns
        assert rows(found) == wanted, condition
        assert rows(plan.read(spark)) == wanted, condition
        if "day" in condition:
            continue
        n_rows = len(wanted)
        users = pc.field("user")
        test = users < 0 if "<" in condition else users == int(condition.split()[-1])
        others = ds.dataset(plan.files, schema=pa.schema([("user", pa.int64())]))
        assert others.count_rows(filter=test) == n_rows
