"""Rows that the planner reads in place of a scan: those that Spark would read."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from skipindex.spark.pruning import few_rows as planned
from skipindex.spark.pruning import query_planner
from tests.spark.pruning.scans import nodes, rows_of, scans, shown
from tests.tables import made

pytestmark = pytest.mark.spark

SETTING = "skipindex.rowsFromPlanner"
N_FILES = 4
ROWS = 300
TYPES = """
    id, id % 10 AS k, CAST(id % 7 AS tinyint) AS tiny, CAST(id AS smallint) AS small,
    IF(id % 3 = 0, NULL, CAST(id AS int)) AS whole, CAST(id / 3 AS float) AS real,
    CASE id % 5 WHEN 0 THEN double('NaN') WHEN 1 THEN -0.0D WHEN 2 THEN double('-inf')
    ELSE id / 7 END AS double, CAST(id AS decimal(9, 2)) AS d9, id % 2 = 0 AS even,
    CAST(id AS decimal(18, 3)) AS d18, -CAST(id AS decimal(38, 10)) AS d38,
    IF(id % 4 = 1, NULL, concat('ä€', id)) AS name, binary(concat('x', id)) AS bin,
    date'2024-02-28' + CAST(id % 9 AS int) AS day, '' AS empty,
    timestamp'2024-03-31 00:59:59.123456' + make_interval(0, 0, 0, 0, id) AS ts,
    timestamp_ntz'2024-03-31 02:30:00' + make_interval(0, 0, 0, 0, id) AS ntz,
    CAST(NULL AS string) AS nothing, array(id) AS list, struct(id, 1 AS one) AS pair
"""
FLAT = (
    "id, k, tiny, small, whole, real, double, d9, even, d18, d38, name, bin, day, "
    "empty, ts, ntz, nothing"
)


@pytest.fixture
def reading(pruned: SparkSession) -> Iterator[SparkSession]:
    pruned.conf.set(SETTING, "4m")
    yield pruned
    pruned.conf.set(SETTING, "0")


@pytest.fixture
def folder(tmp_path: Path, reading: SparkSession) -> Path:
    """Files with all types, in folders of a date and a text, as the view ``t``."""

    def make(folder: Path) -> None:
        rows = reading.range(N_FILES * ROWS).selectExpr(*_columns(TYPES))
        rows = rows.withColumn("p", sf.expr("date'2024-01-01' + CAST(id % 2 AS int)"))
        rows = rows.withColumn(
            "q", sf.expr("IF(id % 4 < 2, NULL, concat('é ', id % 2))")
        )
        write = rows.repartition(N_FILES, "id").write.mode("append")
        write.partitionBy("p", "q").parquet(str(folder))
        asked = {"id": "exact", "k": "exact", "name": "bitmap"}
        sx.build_indexes(folder, asked, workers=1)

    made(tmp_path / "t", make)
    reading.read.parquet(str(tmp_path / "t")).createOrReplaceTempView("t")
    return tmp_path / "t"


def _columns(text: str) -> list[str]:
    """Expressions that commas outside of brackets part."""
    result, depth = [""], 0
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and not depth:
            result.append("")
        else:
            result[-1] += letter
    return result


def both(
    spark: SparkSession, query: Callable[[], DataFrame]
) -> tuple[DataFrame, list[str]]:
    """A query that ran, whose rows are those without skipping, and these rows."""
    spark.conf.set("skipindex.enabled", "false")
    expected = [*map(str, rows_of(query()))]
    spark.conf.set("skipindex.enabled", "true")
    df = query()
    rows = [*map(str, rows_of(df))]
    assert rows == expected
    return df, rows


def n_scans(df: DataFrame) -> int:
    return len(scans(df))


READ = (
    f"SELECT {FLAT}, p, q FROM t WHERE k = 3",
    "SELECT id FROM (SELECT id, name, pair FROM t) WHERE id = 3",
    "SELECT id, q FROM t WHERE id BETWEEN 30 AND 50 AND p = '2024-01-02'",
    "SELECT id FROM t WHERE id IN (1, 50, 5000) AND q IS NULL",
    "SELECT count(*) FROM t WHERE p > '2024-01-01' AND k = 2",
    "SELECT count(*) FROM t WHERE p > '2024-01-01'",
    "SELECT k, sum(id), max(name) FROM t WHERE k < 3 GROUP BY k",
    "SELECT a.id, b.q FROM t a JOIN t b ON a.id = b.id + 1 WHERE a.k = 2 AND b.k = 1",
    "SELECT id FROM t WHERE k = 1 UNION ALL SELECT id FROM t WHERE k = 1",
    "SELECT id FROM t WHERE k = 4 ORDER BY id DESC LIMIT 5",
    "SELECT id, upper(name) u FROM t WHERE id < 20 AND name LIKE '%1%' AND ts > '2024'",
    "WITH c AS (SELECT * FROM t WHERE k = 9) SELECT count(*), max(id) FROM c",
    "SELECT (SELECT max(id) FROM t WHERE k = 8) AS m",
    "SELECT name FROM t WHERE id = -1",
    "SELECT rank() OVER (ORDER BY id) r, id FROM t WHERE k = 5",
)
"""Queries whose scans the planner reads."""


@pytest.mark.few(2)
@pytest.mark.parametrize("text", READ)
def test_the_planner_reads_few_rows(
    reading: SparkSession, folder: Path, text: str
) -> None:
    assert folder.is_dir()
    df, _ = both(reading, lambda: reading.sql(text))
    assert n_scans(df) == 0


def test_the_plan_tells_rows_and_bytes(reading: SparkSession, folder: Path) -> None:
    assert reading.sql("SELECT id FROM t WHERE id = 77").collect() == [(77,)]
    plan = sx.last_plans(reading)[-1]
    assert (plan.folder, plan.n_rows, plan.n_read) == (str(folder), 1, 1)
    assert plan.n_bytes > 0
    assert "1 rows (" in str(plan)
    assert "read by the planner from 1 of" in str(plan)
    (shown,) = reading.sql("EXPLAIN SKIPPING SELECT id FROM t WHERE id = 77").collect()
    assert "read by the planner" in str(shown)


def test_a_look_up_needs_no_job(reading: SparkSession, folder: Path) -> None:
    assert folder.is_dir()
    df = reading.sql("SELECT name, p FROM t WHERE id = 77")
    before = reading.sparkContext._jsc.sc().dagScheduler().numTotalJobs()
    assert len(df.collect()) == 1
    assert reading.sparkContext._jsc.sc().dagScheduler().numTotalJobs() == before


@pytest.mark.parametrize(("n", "left"), [(1, 1), (5, 5), (1000, 120)])
def test_a_limit_of_rows_of_the_planner_needs_no_exchange(
    reading: SparkSession, folder: Path, n: int, left: int
) -> None:
    df = reading.sql(f"SELECT id FROM t WHERE k = 3 LIMIT {n}")
    assert len(df.collect()) == left
    kinds = {node.getClass().getSimpleName() for node in nodes(df)}
    assert "LocalRows" in kinds
    assert "ShuffleExchangeExec" not in kinds


def test_equal_rows_of_a_subquery_are_exchanged_once(
    reading: SparkSession, folder: Path
) -> None:
    assert folder.is_dir()
    text = (
        "WITH c AS (SELECT tiny, count(*) n FROM t WHERE k = 3 GROUP BY tiny) "
        "SELECT * FROM c WHERE n >= (SELECT max(n) - 1 FROM c)"
    )
    df, _ = both(reading, lambda: reading.sql(text))
    assert n_scans(df) == 0
    assert "ReusedExchange" in df._jdf.queryExecution().executedPlan().toString()


LEFT = (
    "SELECT id, input_file_name() <> '' FROM t WHERE k = 3",
    "SELECT id, _metadata.file_size > 0 FROM {t} WHERE k = 3",
    "SELECT id FROM t WHERE k = 3 AND input_file_block_start() >= 0",
    "SELECT id FROM t WHERE k = 3 AND rand(7) + id >= 0",
    "SELECT id, monotonically_increasing_id() >= 0 FROM t WHERE k = 3",
    "SELECT count(*) >= 0 FROM (SELECT * FROM t WHERE k = 3) TABLESAMPLE (50 PERCENT)",
    "SELECT id, list FROM t WHERE k = 3",
    "SELECT pair FROM t WHERE k = 3",
    "SELECT * FROM t WHERE k = 3",
    "SELECT id FROM t",
    "SELECT id FROM t WHERE k = (SELECT min(k) FROM t)",
)
"""Queries with a scan that Spark reads."""


@pytest.mark.few(2)
@pytest.mark.parametrize("text", LEFT)
def test_spark_reads_what_needs_its_scan(
    reading: SparkSession, folder: Path, text: str
) -> None:
    text = text.replace("{t}", f"parquet.`{folder}`")
    df, _ = both(reading, lambda: reading.sql(text))
    assert n_scans(df) > 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (SETTING, "0"),
        (SETTING, "100"),
        ("spark.sql.files.ignoreCorruptFiles", "true"),
        ("spark.sql.files.ignoreMissingFiles", "true"),
    ],
)
def test_settings_leave_the_scan(
    reading: SparkSession, folder: Path, name: str, value: str
) -> None:
    assert folder.is_dir()
    reading.conf.set(name, value)
    try:
        df, _ = both(reading, lambda: reading.sql("SELECT id, name FROM t WHERE k = 3"))
    finally:
        reading.conf.unset(name)
    assert n_scans(df) == 1


def test_a_wrong_setting_is_told(reading: SparkSession, folder: Path) -> None:
    assert folder.is_dir()
    reading.conf.set(SETTING, "much")
    df, _ = both(reading, lambda: reading.sql("SELECT id FROM t WHERE k = 3"))
    assert n_scans(df) == 1
    assert any("much" in plan.problem for plan in sx.last_plans(reading))


def test_many_rows_are_read_by_spark(reading: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"k": pa.array([1] * 10_001 + [2] * 9)})
    pq.write_table(rows, tmp_path / "0.parquet")
    sx.build_indexes(tmp_path, {"k": "exact"}, workers=1)
    view = reading.read.parquet(str(tmp_path))
    assert n_scans(both(reading, lambda: view.where("k = 1"))[0]) == 1
    assert n_scans(both(reading, lambda: view.where("k = 2"))[0]) == 0


def test_a_row_that_fails_fails_when_the_query_runs(
    reading: SparkSession, folder: Path
) -> None:
    assert folder.is_dir()
    reading.conf.set("spark.sql.ansi.enabled", "true")
    try:
        df = reading.sql("SELECT 1 / (id - 3) FROM t WHERE id = 3")
        assert len(df.columns) == 1
        df.explain()
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
            df.collect()
    finally:
        reading.conf.unset("spark.sql.ansi.enabled")


def test_rows_are_written_and_cached(
    reading: SparkSession, folder: Path, tmp_path: Path
) -> None:
    few = reading.sql("SELECT id, name, p FROM t WHERE k = 3")
    expected = rows_of(few)
    few.write.parquet(str(tmp_path / "copy"))
    assert rows_of(reading.read.parquet(str(tmp_path / "copy"))) == expected
    few.cache()
    try:
        assert rows_of(few.where("id > 0")) == rows_of(few)
    finally:
        few.unpersist()
    assert folder.is_dir()


def put(path: Path, columns: dict[str, pa.Array], first: int = 0) -> None:
    rows = len(next(iter(columns.values())))
    ids = pa.array(range(first, first + rows), pa.int64())
    pq.write_table(pa.table({"id": ids, **columns}), path)


def as_spark_reads(
    spark: SparkSession, folder: Path, schema: str | None = None, where: str = "id < 9"
) -> int:
    """The scans that are left of a look-up, whose rows or error are Spark's."""
    reader = spark.read if schema is None else spark.read.schema(schema)
    view = reader.parquet(str(folder))
    spark.conf.set("skipindex.enabled", "false")
    expected = _outcome(view.where(where))
    spark.conf.set("skipindex.enabled", "true")
    df = view.where(where)
    assert _outcome(df) == expected
    return n_scans(df)


def _outcome(df: DataFrame) -> list[str]:
    try:
        return [*map(str, rows_of(df))]
    except Exception as error:  # noqa: BLE001 (whatever Spark raises)
        return [type(error).__name__]


@pytest.mark.parametrize(
    ("column", "schema"),
    [
        (pa.array([1, None, 3], pa.int32()), "id long, c long"),
        (pa.array([1, None, 3], pa.int32()), "id long, c smallint"),
        (pa.array([1, None, 3], pa.uint16()), None),
        (pa.array([1.5, None], pa.float32()), "id long, c double"),
        (pa.array([b"a", None], pa.binary()), "id long, c string"),
        (pa.array(["a", None], pa.string()), "id long, c binary"),
        (pa.array([1, None], pa.timestamp("ms", "UTC")), None),
        (pa.array([1, None], pa.timestamp("us", "UTC")), "id long, c timestamp_ntz"),
        (pa.array([1, None], pa.timestamp("us")), "id long, c timestamp"),
        (pa.array([-100_000, 3], pa.date32()), None),
        (pa.array([-(10**16), 3], pa.timestamp("us", "UTC")), None),
    ],
    ids=str,
)
def test_spark_reads_what_it_converts(
    reading: SparkSession, tmp_path: Path, column: pa.Array, schema: str | None
) -> None:
    put(tmp_path / "0.parquet", {"c": column})
    sx.build_indexes(tmp_path, {"id": "exact"}, workers=1)
    assert as_spark_reads(reading, tmp_path, schema) == 1


def test_columns_that_a_file_lacks_are_null(
    reading: SparkSession, tmp_path: Path
) -> None:
    put(tmp_path / "0.parquet", {"c": pa.array([1, 2])})
    pq.write_table(pa.table({"id": pa.array([7, 8])}), tmp_path / "1.parquet")
    sx.build_indexes(tmp_path, {"id": "exact"}, workers=1)
    assert as_spark_reads(reading, tmp_path, "id long, c long") == 0
    assert as_spark_reads(reading, tmp_path, "ID long, C long") == 1


def test_a_column_of_files_and_folders(reading: SparkSession, tmp_path: Path) -> None:
    for folder in ("p=1", "p=2"):
        (tmp_path / folder).mkdir()
        put(tmp_path / folder / "0.parquet", {"p": pa.array([7, 8])})
    sx.build_indexes(tmp_path, {"id": "exact"}, workers=1)
    assert as_spark_reads(reading, tmp_path, where="id = 1") == 0  # of the folders
    # One folder is no partition, so that the values of the file count.
    assert as_spark_reads(reading, tmp_path / "p=1", where="id = 1") == 1
    df = reading.read.parquet(str(tmp_path / "p=1")).where("id = 1")
    assert df.select("p").collect() == [(8,)]
    assert as_spark_reads(reading, tmp_path / "p=1", "id long", "id = 1") == 0


def test_names_with_dots(reading: SparkSession, tmp_path: Path) -> None:
    pair = pa.array([{"b": 1}, {"b": 2}])
    put(tmp_path / "0.parquet", {"a": pair, "a.b": pa.array([3, 4])})
    sx.build_indexes(tmp_path, {"id": "exact"}, workers=1)
    assert as_spark_reads(reading, tmp_path) == 1
    assert as_spark_reads(reading, tmp_path, "id long, `a.b` long") == 1


def test_a_default_is_left_to_spark(reading: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([7, 8])}), tmp_path / "0.parquet")
    sx.build_indexes(tmp_path, {"id": "exact"}, workers=1)
    reading.sql(f"CREATE TABLE d (id LONG) USING parquet LOCATION '{tmp_path}'")
    try:
        reading.sql("ALTER TABLE d ADD COLUMNS (c INT DEFAULT 5)")
        df, rows = both(reading, lambda: reading.sql("SELECT c FROM d WHERE id = 7"))
    finally:
        reading.sql("DROP TABLE d")
    assert (n_scans(df), rows) == (1, ["Row(c=5)"])


def test_char_is_padded(reading: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "0.parquet", {"c": pa.array(["a", "b "])})
    sx.build_indexes(tmp_path, {"id": "exact"}, workers=1)
    reading.sql(
        f"CREATE TABLE d (id LONG, c CHAR(3)) USING parquet LOCATION '{tmp_path}'"
    )
    try:
        df, rows = both(reading, lambda: reading.sql("SELECT c FROM d WHERE id < 2"))
    finally:
        reading.sql("DROP TABLE d")
    assert (n_scans(df), rows) == (0, ["Row(c='a  ')", "Row(c='b  ')"])


def test_files_that_came_or_changed_are_read_by_spark(
    reading: SparkSession, tmp_path: Path
) -> None:
    put(tmp_path / "0.parquet", {"c": pa.array([1, 2])})
    put(tmp_path / "1.parquet", {"c": pa.array([3, 4])}, first=10)
    sx.build_indexes(tmp_path, {"id": "exact"}, workers=1)
    before = reading.read.parquet(str(tmp_path))
    assert n_scans(both(reading, lambda: before.where("id = 1"))[0]) == 0
    put(tmp_path / "2.parquet", {"c": pa.array([5, 6])}, first=1)  # not listed before
    assert both(reading, lambda: before.where("id = 1"))[1] == ["Row(id=1, c=2)"]
    after = reading.read.parquet(str(tmp_path))
    df, rows = both(reading, lambda: after.where("id = 1"))
    assert (n_scans(df), len(rows)) == (1, 2)
    put(tmp_path / "0.parquet", {"c": pa.array([7, 8, 9])}, first=1)
    changed = reading.read.parquet(str(tmp_path))
    df, rows = both(reading, lambda: changed.where("id = 1"))
    assert (n_scans(df), len(rows)) == (1, 2)


def test_a_file_that_changes_while_it_is_read(
    reading: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "0.parquet", {"c": pa.array([1, 2])})
    put(tmp_path / "1.parquet", {"c": pa.array([3, 4])}, first=10)
    sx.build_indexes(tmp_path, {"id": "exact"}, workers=1)
    view = reading.read.parquet(str(tmp_path))
    now = planned.few_rows

    def late(*arguments: object) -> object:
        os.utime(tmp_path / "1.parquet", ns=(10**18, 10**18))  # was to be skipped
        return now(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(query_planner, "few_rows", late)
    df = view.where("id = 1")
    assert (rows_of(df), n_scans(df)) == ([(1, 2)], 1)


@pytest.mark.parametrize("error", [MemoryError, OSError, ValueError])
def test_a_planner_that_fails_leaves_the_scan(
    reading: SparkSession,
    folder: Path,
    error: type[Exception],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object) -> None:
        raise error

    assert folder.is_dir()
    monkeypatch.setattr(query_planner, "few_rows", fails)
    df, _ = both(reading, lambda: reading.sql("SELECT id FROM t WHERE k = 3"))
    assert n_scans(df) == 1
    assert sx.last_plans(reading)[-1].n_rows is None


def test_files_listed_twice_have_their_rows_twice(
    reading: SparkSession, folder: Path
) -> None:
    twice = [str(folder), str(folder)]
    both(reading, lambda: reading.read.parquet(*twice).select("id").where("k = 3"))
    some = sorted(map(str, folder.rglob("*.parquet")))[:2]
    df, _ = both(
        reading, lambda: reading.read.parquet(*some).where("k = 3").select("id")
    )
    assert n_scans(df) == 0


def test_a_stream_reads_its_files(reading: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    put(tmp_path / "t" / "0.parquet", {"c": pa.array([1, 2])})
    sx.build_indexes(tmp_path / "t", {"id": "exact"}, workers=1)
    found: list[object] = []
    stream = (
        reading.readStream.schema("id long, c long")
        .parquet(str(tmp_path / "t"))
        .where("id = 1")
        .writeStream.foreachBatch(lambda df, _: found.extend(df.collect()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    stream.awaitTermination()
    assert found == [(1, 2)]


@pytest.mark.parametrize("mode", ["EXPLAIN", "EXPLAIN FORMATTED"])
def test_explain_tells_where_rows_are_from(
    reading: SparkSession, folder: Path, mode: str
) -> None:
    assert folder.is_dir()
    (told,) = reading.sql(f"{mode} SELECT id FROM t WHERE id IN (3, 4)").head() or ()
    assert "PlannedRows: 2 rows of 2 files, read by skipindex" in told or (
        "PlannedRows" in told and "FORMATTED" in mode
    )


def test_metrics_tell_what_the_planner_read(
    reading: SparkSession, folder: Path
) -> None:
    assert folder.is_dir()
    for text in (
        "SELECT id FROM t WHERE id IN (3, 4)",
        "SELECT max(id) FROM t WHERE k = 3",
    ):
        df = reading.sql(text)
        df.collect()
        plan = sx.last_plans(reading)[-1]
        assert shown(df) == {
            "files with rows of the planner": plan.n_read,
            "rows of the planner": plan.n_rows,
            "bytes read by the planner": plan.n_bytes,
        }


def test_no_node_of_ours_reaches_executors(reading: SparkSession, folder: Path) -> None:
    assert folder.is_dir()
    df = reading.sql("SELECT id FROM t WHERE k = 3")
    df.collect()
    (ours, theirs) = nodes(df)
    assert ours.getClass().getName() == "skipindex.LocalRows"
    jvm = reading._jvm
    assert jvm is not None
    stored = jvm.org.apache.commons.lang3.SerializationUtils.serialize(ours)
    assert b"skipindex" not in bytes(stored)
    assert theirs.getClass().getSimpleName() == "LocalTableScanExec"
    assert theirs.sameResult(ours)
    shutil.rmtree(folder)
    assert len(df.collect()) == N_FILES * ROWS // 10  # the rows of the plan
