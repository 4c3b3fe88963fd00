"""Few rows that the planner reads, and row groups in the place of files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from skipindex.spark.pruning import few_rows as planned
from skipindex.spark.pruning import query_planner
from skipindex.spark.reading import frames
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


def make(folder: Path) -> None:
    """Files with all types, in folders of a date and a text."""
    spark = SparkSession.getActiveSession()
    assert spark is not None
    rows = spark.range(N_FILES * ROWS).selectExpr(*_columns(TYPES))
    rows = rows.withColumn("p", sf.expr("date'2024-01-01' + CAST(id % 2 AS int)"))
    rows = rows.withColumn("q", sf.expr("IF(id % 4 < 2, NULL, concat('é ', id % 2))"))
    write = rows.repartition(N_FILES, "id").write.mode("append")
    write.partitionBy("p", "q").parquet(str(folder))
    asked = {"id": "exact", "k": "exact", "name": "bitmap"}
    sx.build_indexes(folder, asked, workers=1)


@pytest.fixture
def folder(tmp_path: Path, reading: SparkSession) -> Path:
    """The files as the view ``t``."""
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


@pytest.mark.few(2)
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


@pytest.mark.few(4)
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


@pytest.mark.few(1)
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


FEW = "skipindex.rowsFromPlanner"
RULES = {
    "spark.sql.files.openCostInBytes": "0",
    "spark.sql.files.minPartitionNum": "1",
    FEW: "4m",
}
PLANNED_N_FILES, N, PLANNED_ROWS = 3, 500, 50


@pytest.fixture
def planned_reading(pruned: SparkSession) -> Iterator[SparkSession]:
    before = {name: pruned.conf.get(name, None) for name in RULES}
    for name, value in RULES.items():
        pruned.conf.set(name, value)
    yield pruned
    for name, known in before.items():
        if known is None:
            pruned.conf.unset(name)
        else:
            pruned.conf.set(name, known)


def make_planned(planned_folder: Path) -> None:
    for i in range(PLANNED_N_FILES):
        numbers = range(i * N, i * N + N)
        columns = {
            "id": pa.array(numbers, pa.int64()),
            "k": pa.array([n * 7919 % 1009 for n in numbers], pa.int64()),
            "list": [[n] for n in numbers],
        }
        path = planned_folder / f"p={i % 2}" / f"{i}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), path, row_group_size=PLANNED_ROWS)
    sx.build_indexes(planned_folder, {"k": "exact", "id": "exact"}, workers=1)


@pytest.fixture
def planned_folder(tmp_path: Path) -> Path:
    """Files in two folders, whose statistics rule out no row group for ``k``."""

    return made(tmp_path / "t", make_planned)


def whole(spark: SparkSession, planned_folder: Path, condition: str) -> DataFrame:
    """The rows of the table without skipping, as they are when this is called."""
    spark.conf.set("skipindex.enabled", "false")
    rows = spark.read.parquet(str(planned_folder)).where(condition)
    result = spark.createDataFrame(rows.collect(), rows.schema)
    spark.conf.set("skipindex.enabled", "true")
    return result


def jobs(spark: SparkSession) -> int:
    found: int = spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs()
    return found


def is_narrow(df: DataFrame) -> bool:
    return any(node.getClass().getSimpleName() == "RowGroups" for node in nodes(df))


def test_few_rows_of_a_plan_need_no_job(
    planned_reading: SparkSession, planned_folder: Path
) -> None:
    expected = whole(planned_reading, planned_folder, "k IN (5, 700)").select("id", "p")
    plan = sx.open_table(planned_folder).plan("k IN (5, 700)")
    for df in (
        plan.read(planned_reading),
        sx.read(planned_folder, "k IN (5, 700)", spark=planned_reading),
    ):
        before = jobs(planned_reading)
        few = df.select("id", "p")
        rows = rows_of(few)
        assert jobs(planned_reading) == before
        assert rows == rows_of(expected)
        assert few.schema == expected.schema
        assert not scans(few)


def test_more_conditions_leave_fewer_rows(
    planned_reading: SparkSession, planned_folder: Path
) -> None:
    df = sx.read(planned_folder, "k < 900", spark=planned_reading).select("id")
    assert rows_of(df.where("id = 77")) == [(77,)]
    assert sx.last_plans(planned_reading)[-1].n_rows == 1


def test_a_plan_reads_row_groups(
    planned_reading: SparkSession, planned_folder: Path
) -> None:
    planned_reading.conf.set(FEW, "0")
    expected = whole(planned_reading, planned_folder, "k IN (5, 700)")
    df = sx.read(planned_folder, "k IN (5, 700)", spark=planned_reading)
    assert df.columns == expected.columns
    assert rows_of(df) == rows_of(expected)
    assert is_narrow(df)
    (scan,) = scans(df)
    assert scan.metrics().apply("numOutputRows").value() == 4 * PLANNED_ROWS
    assert rows_of(df.where("id < 0")) == []


def test_rows_that_tell_their_file_are_of_its_scan(
    planned_reading: SparkSession, planned_folder: Path
) -> None:
    for n_bytes in ("0", "4m"):
        planned_reading.conf.set(FEW, n_bytes)
        df = sx.read(planned_folder, "id = 77", spark=planned_reading)
        name = df.select(sf.input_file_name()).head()
        assert name is not None
        assert name[0].endswith("p=0/0.parquet")
        block = df.select(sf.expr("input_file_block_length()"))
        assert block.head() == ((planned_folder / "p=0/0.parquet").stat().st_size,)
        found = df.select("_metadata.file_name", "_metadata.row_index").head()
        assert found == ("0.parquet", 77)


@pytest.mark.usefixtures("planned_reading")
def test_a_session_that_is_not_enabled_reads_the_files_of_the_plan(
    spark: SparkSession, planned_folder: Path
) -> None:
    sx.disable(spark)
    df = sx.read(planned_folder, "id = 77", spark=spark).select("id")
    assert df.collect() == [(77,)]
    assert len(scans(df)) == 1
    assert not is_narrow(df)


def test_a_file_that_changed_after_the_plan(
    planned_reading: SparkSession, planned_folder: Path
) -> None:
    """It is as Spark finds it when the query runs, never a part of its rows."""
    for n_bytes in ("0", "4m"):
        planned_reading.conf.set(FEW, n_bytes)
        df = sx.read(planned_folder, "k = 5", spark=planned_reading).select("id")
        path = next(
            planned_folder.glob("p=*/" + str(df.collect()[0].id // N) + ".parquet")
        )
        table = pa.table({"id": pa.array([9, 10]), "k": pa.array([5, 6])})
        pq.write_table(table, path)
        os.utime(path, (1_000_000_000, 1_000_000_000))
        again = sx.read(planned_folder, "k = 5", spark=planned_reading).select("id")
        assert rows_of(again) == rows_of(
            whole(planned_reading, planned_folder, "k = 5").select("id")
        )


def test_files_that_spark_lists_are_pruned_too(
    planned_reading: SparkSession, planned_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "_relation", lambda _: None)
    df = sx.read(planned_folder, "id = 77", spark=planned_reading).select("id")
    assert df.collect() == [(77,)]
    assert not scans(df)


def test_a_list_of_rows_is_read_by_spark(
    planned_reading: SparkSession, planned_folder: Path
) -> None:
    df = sx.read(planned_folder, "id = 77", spark=planned_reading)
    assert rows_of(df) == rows_of(whole(planned_reading, planned_folder, "id = 77"))
    assert len(scans(df)) == 1


GROUPED_SETTING = "skipindex.rowGroups"
OPEN = "spark.sql.files.openCostInBytes"
GROUPED_N_FILES, N_GROUPS, GROUPED_ROWS = 3, 10, 50
GROUPED_N = N_GROUPS * GROUPED_ROWS
NARROW = "RowGroups"


def put_grouped(path: Path, first: int) -> None:
    """Rows whose ``k`` is in no order, so that no statistics rule out a row group."""
    numbers = range(first, first + GROUPED_N)
    columns = {
        "id": pa.array(numbers, pa.int64()),
        "k": pa.array([i * 7919 % 1009 for i in numbers], pa.int64()),
        "text": [f"{i:040}" for i in numbers],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, row_group_size=GROUPED_ROWS)


def make_grouped(grouped_folder: Path) -> None:
    for i in range(GROUPED_N_FILES):
        put_grouped(grouped_folder / f"p={i % 2}" / f"{i}.parquet", i * GROUPED_N)
    sx.build_indexes(grouped_folder, {"k": "exact", "id": "exact"}, workers=1)


@pytest.fixture
def grouped_folder(tmp_path: Path, pruned: SparkSession) -> Iterator[Path]:
    """Files in two folders, as the view ``t``; Parquet itself rules out no row group.

    No gap between row groups is small.
    """

    path = made(tmp_path / "t", make_grouped)
    with settings(pruned, {OPEN: "0", "spark.sql.parquet.filterPushdown": "false"}):
        pruned.read.parquet(str(path)).createOrReplaceTempView("t")
        yield path


@contextmanager
def settings(spark: SparkSession, these: Mapping[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in these}
    for name, value in these.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, known in before.items():
            if known is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, known)


def both_grouped(spark: SparkSession, query: Callable[[], DataFrame]) -> DataFrame:
    """A query that ran, whose rows are those without skipping."""
    with settings(spark, {"skipindex.enabled": "false"}):
        expected = rows_of(query())
    df = query()
    assert rows_of(df) == expected
    return df


def rows_read(df: DataFrame) -> int:
    """The rows that the scans of a run gave, before conditions above them."""
    return sum(scan.metrics().apply("numOutputRows").value() for scan in scans(df))


def is_narrow_grouped(df: DataFrame) -> bool:
    return any(node.getClass().getSimpleName() == NARROW for node in nodes(df))


def groups_of(*values: int, files: range = range(GROUPED_N_FILES)) -> int:
    """The rows of the row groups that have one of these values in ``k``."""
    numbers = (
        i
        for file in files
        for i in range(file * GROUPED_N, file * GROUPED_N + GROUPED_N)
    )
    return GROUPED_ROWS * len(
        {i // GROUPED_ROWS for i in numbers if i * 7919 % 1009 in values}
    )


@pytest.mark.few(3)
@pytest.mark.parametrize("vectorized", ["true", "false"])
@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("codegen", ["true", "false"])
def test_a_scan_reads_the_row_groups_with_a_match(
    pruned: SparkSession,
    grouped_folder: Path,
    vectorized: str,
    adaptive: str,
    codegen: str,
) -> None:
    assert grouped_folder.is_dir()
    these = {
        "spark.sql.parquet.enableVectorizedReader": vectorized,
        "spark.sql.adaptive.enabled": adaptive,
        "spark.sql.codegen.wholeStage": codegen,
    }
    assert 0 < groups_of(5, 700) < GROUPED_N_FILES * GROUPED_N / 2
    with settings(pruned, these):
        df = both_grouped(
            pruned, lambda: pruned.sql("SELECT * FROM t WHERE k IN (5, 700)")
        )
    assert rows_read(df) == groups_of(5, 700)
    plan = sx.last_plans(pruned)[-1]
    assert (plan.n_read, plan.n_in_part) == (2, 2)
    assert "2 of 3 files, 2 of them in part for: k IN (5, 700)" in str(plan)
    told = df._jdf.queryExecution().toString()
    assert "RowGroups: 4 of 20 row groups of 2 files" in told
    assert shown(df) == {
        "row groups that can match": 4,
        "row groups of files read in part": 20,
        "files read in part": 2,
    }


QUERIES = (
    "SELECT k, count(*), max(text) FROM t WHERE k IN (5, 700) GROUP BY k",
    "SELECT id FROM t WHERE k = 5 UNION ALL SELECT id FROM t WHERE k = 700",
    "SELECT a.id, b.text FROM t a JOIN t b ON a.id = b.id + 1 WHERE a.k = 5",
    "SELECT id, p FROM t WHERE k = 5 AND p = 1",
    "SELECT id FROM t WHERE k = 5 AND p >= (SELECT min(p) FROM t)",
    "SELECT id FROM t WHERE k = (SELECT min(k) FROM t WHERE k > 4)",
    "SELECT id FROM t WHERE k = 5 AND rand(3) >= 0",
    "SELECT id FROM t WHERE k IN (5, 700) OR id = 77",
    "SELECT id FROM t WHERE k < 500 AND text LIKE '%9%'",
    "SELECT id FROM t WHERE k = -1",
    "SELECT id, text FROM t WHERE NOT k > 3 ORDER BY text DESC",
    "SELECT count(*) FROM t WHERE k = 5 AND id IN (SELECT id FROM t WHERE p = 0)",
)


@pytest.mark.few(2)
@pytest.mark.parametrize("text", QUERIES)
def test_queries_have_the_same_rows(
    pruned: SparkSession, grouped_folder: Path, text: str
) -> None:
    assert grouped_folder.is_dir()
    both_grouped(pruned, lambda: pruned.sql(text))


def test_a_filter_of_partitions_at_run_time(
    pruned: SparkSession, grouped_folder: Path
) -> None:
    assert grouped_folder.is_dir()
    text = (
        "SELECT t.id FROM t JOIN (SELECT p, max(k) m FROM t WHERE id < 20 GROUP BY p) "
        "u ON t.p = u.p WHERE t.k IN (5, 700)"
    )
    with settings(pruned, {"spark.sql.autoBroadcastJoinThreshold": "10m"}):
        df = both_grouped(pruned, lambda: pruned.sql(text))
    assert "dynamicpruning" in str(df._jdf.queryExecution().optimizedPlan())
    assert is_narrow_grouped(df)


def test_equal_exchanges_run_once(pruned: SparkSession, grouped_folder: Path) -> None:
    assert grouped_folder.is_dir()
    text = (
        "WITH c AS (SELECT p, count(*) n FROM t WHERE k < 3 GROUP BY p) "
        "SELECT * FROM c WHERE n >= (SELECT max(n) - 1 FROM c)"
    )
    df = both_grouped(pruned, lambda: pruned.sql(text))
    assert "ReusedExchange" in df._jdf.queryExecution().executedPlan().toString()
    assert is_narrow_grouped(df)


def test_files_are_split_as_ever(pruned: SparkSession, grouped_folder: Path) -> None:
    """A row group is read once, whichever parts of a file tasks have."""
    assert grouped_folder.is_dir()
    for size in ("700", "2000", "5000"):
        with settings(pruned, {"spark.sql.files.maxPartitionBytes": size}):
            df = both_grouped(
                pruned, lambda: pruned.sql("SELECT * FROM t WHERE k < 100")
            )
        assert rows_read(df) == groups_of(*range(100))


def test_small_ranges_of_files_share_a_task(
    pruned: SparkSession, grouped_folder: Path
) -> None:
    assert grouped_folder.is_dir()
    with settings(pruned, {"spark.sql.files.minPartitionNum": "1"}):
        df = both_grouped(
            pruned, lambda: pruned.sql("SELECT id FROM t WHERE k IN (5, 700)")
        )
    assert df.rdd.getNumPartitions() == 1


def test_to_open_a_file_again_may_cost_more(
    pruned: SparkSession, grouped_folder: Path
) -> None:
    assert grouped_folder.is_dir()
    text = "SELECT * FROM t WHERE k IN (2, 5)"
    with settings(pruned, {OPEN: "4194304"}):
        df = both_grouped(pruned, lambda: pruned.sql(text))
    assert groups_of(2, 5) < rows_read(df) < GROUPED_N_FILES * GROUPED_N


WHOLE = (
    "SELECT id, input_file_block_start() s FROM t WHERE k = 5",
    "SELECT id, input_file_block_length() s FROM t WHERE k = 5",
    "SELECT id, _metadata.file_block_start s FROM {t} WHERE k = 5",
    "SELECT id, _metadata.row_index s FROM {t} WHERE k = 5",
)


@pytest.mark.few(2)
@pytest.mark.parametrize("text", WHOLE)
def test_rows_that_tell_their_place_are_of_whole_files(
    pruned: SparkSession, grouped_folder: Path, text: str
) -> None:
    text = text.replace("{t}", f"parquet.`{grouped_folder}`")
    with settings(pruned, {"spark.sql.files.minPartitionNum": "1"}):  # no splits
        assert not is_narrow_grouped(both_grouped(pruned, lambda: pruned.sql(text)))


def test_the_setting_turns_it_off(pruned: SparkSession, grouped_folder: Path) -> None:
    assert grouped_folder.is_dir()
    with settings(
        pruned, {GROUPED_SETTING: "false", "spark.sql.parquet.filterPushdown": "false"}
    ):
        df = both_grouped(pruned, lambda: pruned.sql("SELECT id FROM t WHERE k = 5"))
    assert not is_narrow_grouped(df)
    assert rows_read(df) % GROUPED_N == 0


@pytest.mark.slow
def test_buckets_stay_as_they_are(pruned: SparkSession, tmp_path: Path) -> None:
    rows = pruned.range(500).selectExpr("id", "id * 7919 % 1009 AS k")
    writer = rows.write.bucketBy(4, "id").option("path", str(tmp_path / "b"))
    writer.saveAsTable("buckets_of_groups")
    try:
        sx.build_indexes(tmp_path / "b", {"k": "exact"}, workers=1)
        text = "SELECT id, count(*) FROM buckets_of_groups WHERE k < 9 GROUP BY id"
        assert not is_narrow_grouped(both_grouped(pruned, lambda: pruned.sql(text)))
    finally:
        pruned.sql("DROP TABLE buckets_of_groups")


@pytest.mark.few(2)
@pytest.mark.parametrize("how", ["other", "shorter", "touched"])
def test_a_file_that_changed_is_read_whole(
    pruned: SparkSession, grouped_folder: Path, how: str
) -> None:
    """Spark and the planner have listed it before; what it holds now counts."""
    view = pruned.table("t")
    assert view.where("k = 5").count() == 2
    path = grouped_folder / "p=0" / "0.parquet"
    if how == "touched":
        path.touch()
    else:
        n = GROUPED_N if how == "other" else GROUPED_ROWS
        columns = {"id": range(n), "k": [5] * n, "text": ["x"] * n}
        pq.write_table(pa.table(columns), path, row_group_size=GROUPED_ROWS // 2)
    df = both_grouped(
        pruned, lambda: pruned.read.parquet(str(grouped_folder)).where("k = 5")
    )
    assert rows_read(df) >= 1
    both_grouped(pruned, lambda: view.where("k = 5"))


def test_a_session_without_skipping_has_no_strategy_of_ours(
    pruned: SparkSession, grouped_folder: Path
) -> None:
    assert grouped_folder.is_dir()
    methods = pruned._jsparkSession.experimental()
    pruned.sql("SELECT id FROM t WHERE k = 5").collect()
    pruned.sql("SELECT id FROM t WHERE k = 5").collect()
    assert methods.extraStrategies().size() == 1
    sx.disable(pruned)
    pruned.sql("SELECT id FROM t WHERE k = 5").collect()
    assert methods.extraStrategies().size() == 0


def test_cached_rows_are_those_of_the_ranges(
    pruned: SparkSession, grouped_folder: Path
) -> None:
    assert grouped_folder.is_dir()
    df = pruned.sql("SELECT * FROM t WHERE k IN (5, 700)").cache()
    try:
        both_grouped(pruned, lambda: df.where(sf.col("k") == 5))
    finally:
        df.unpersist()
