"""Row groups: a scan reads those that can hold a match, and the rows are Spark's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from tests.spark.pruning.scans import nodes, rows_of, scans, shown
from tests.tables import made

pytestmark = pytest.mark.spark

SETTING = "skipindex.rowGroups"
OPEN = "spark.sql.files.openCostInBytes"
N_FILES, N_GROUPS, ROWS = 3, 10, 50
N = N_GROUPS * ROWS
NARROW = "RowGroups"


def put(path: Path, first: int) -> None:
    """Rows whose ``k`` is in no order, so that no statistics rule out a row group."""
    numbers = range(first, first + N)
    columns = {
        "id": pa.array(numbers, pa.int64()),
        "k": pa.array([i * 7919 % 1009 for i in numbers], pa.int64()),
        "text": [f"{i:040}" for i in numbers],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, row_group_size=ROWS)


@pytest.fixture
def folder(tmp_path: Path, pruned: SparkSession) -> Iterator[Path]:
    """Files in two folders, as the view ``t``; Parquet itself rules out no row group.

    No gap between row groups is small.
    """

    def make(folder: Path) -> None:
        for i in range(N_FILES):
            put(folder / f"p={i % 2}" / f"{i}.parquet", i * N)
        sx.build_indexes(folder, {"k": "exact", "id": "exact"}, workers=1)

    path = made(tmp_path / "t", make)
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


def both(spark: SparkSession, query: Callable[[], DataFrame]) -> DataFrame:
    """A query that ran, whose rows are those without skipping."""
    with settings(spark, {"skipindex.enabled": "false"}):
        expected = rows_of(query())
    df = query()
    assert rows_of(df) == expected
    return df


def rows_read(df: DataFrame) -> int:
    """The rows that the scans of a run gave, before conditions above them."""
    return sum(scan.metrics().apply("numOutputRows").value() for scan in scans(df))


def is_narrow(df: DataFrame) -> bool:
    return any(node.getClass().getSimpleName() == NARROW for node in nodes(df))


def groups_of(*values: int, files: range = range(N_FILES)) -> int:
    """The rows of the row groups that have one of these values in ``k``."""
    numbers = (i for file in files for i in range(file * N, file * N + N))
    return ROWS * len({i // ROWS for i in numbers if i * 7919 % 1009 in values})


@pytest.mark.parametrize("vectorized", ["true", "false"])
@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("codegen", ["true", "false"])
def test_a_scan_reads_the_row_groups_with_a_match(
    pruned: SparkSession, folder: Path, vectorized: str, adaptive: str, codegen: str
) -> None:
    assert folder.is_dir()
    these = {
        "spark.sql.parquet.enableVectorizedReader": vectorized,
        "spark.sql.adaptive.enabled": adaptive,
        "spark.sql.codegen.wholeStage": codegen,
    }
    assert 0 < groups_of(5, 700) < N_FILES * N / 2
    with settings(pruned, these):
        df = both(pruned, lambda: pruned.sql("SELECT * FROM t WHERE k IN (5, 700)"))
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


@pytest.mark.few(3)
@pytest.mark.parametrize("text", QUERIES)
def test_queries_have_the_same_rows(
    pruned: SparkSession, folder: Path, text: str
) -> None:
    assert folder.is_dir()
    both(pruned, lambda: pruned.sql(text))


def test_a_filter_of_partitions_at_run_time(pruned: SparkSession, folder: Path) -> None:
    assert folder.is_dir()
    text = (
        "SELECT t.id FROM t JOIN (SELECT p, max(k) m FROM t WHERE id < 20 GROUP BY p) "
        "u ON t.p = u.p WHERE t.k IN (5, 700)"
    )
    with settings(pruned, {"spark.sql.autoBroadcastJoinThreshold": "10m"}):
        df = both(pruned, lambda: pruned.sql(text))
    assert "dynamicpruning" in str(df._jdf.queryExecution().optimizedPlan())
    assert is_narrow(df)


def test_equal_exchanges_run_once(pruned: SparkSession, folder: Path) -> None:
    assert folder.is_dir()
    text = (
        "WITH c AS (SELECT p, count(*) n FROM t WHERE k < 3 GROUP BY p) "
        "SELECT * FROM c WHERE n >= (SELECT max(n) - 1 FROM c)"
    )
    df = both(pruned, lambda: pruned.sql(text))
    assert "ReusedExchange" in df._jdf.queryExecution().executedPlan().toString()
    assert is_narrow(df)


def test_files_are_split_as_ever(pruned: SparkSession, folder: Path) -> None:
    """A row group is read once, whichever parts of a file tasks have."""
    assert folder.is_dir()
    for size in ("700", "2000", "5000"):
        with settings(pruned, {"spark.sql.files.maxPartitionBytes": size}):
            df = both(pruned, lambda: pruned.sql("SELECT * FROM t WHERE k < 100"))
        assert rows_read(df) == groups_of(*range(100))


def test_small_ranges_of_files_share_a_task(pruned: SparkSession, folder: Path) -> None:
    assert folder.is_dir()
    with settings(pruned, {"spark.sql.files.minPartitionNum": "1"}):
        df = both(pruned, lambda: pruned.sql("SELECT id FROM t WHERE k IN (5, 700)"))
    assert df.rdd.getNumPartitions() == 1


def test_to_open_a_file_again_may_cost_more(pruned: SparkSession, folder: Path) -> None:
    assert folder.is_dir()
    text = "SELECT * FROM t WHERE k IN (2, 5)"
    with settings(pruned, {OPEN: "4194304"}):
        df = both(pruned, lambda: pruned.sql(text))
    assert groups_of(2, 5) < rows_read(df) < N_FILES * N


WHOLE = (
    "SELECT id, input_file_block_start() s FROM t WHERE k = 5",
    "SELECT id, input_file_block_length() s FROM t WHERE k = 5",
    "SELECT id, _metadata.file_block_start s FROM {t} WHERE k = 5",
    "SELECT id, _metadata.row_index s FROM {t} WHERE k = 5",
)


@pytest.mark.parametrize("text", WHOLE)
def test_rows_that_tell_their_place_are_of_whole_files(
    pruned: SparkSession, folder: Path, text: str
) -> None:
    text = text.replace("{t}", f"parquet.`{folder}`")
    with settings(pruned, {"spark.sql.files.minPartitionNum": "1"}):  # no splits
        assert not is_narrow(both(pruned, lambda: pruned.sql(text)))


def test_the_setting_turns_it_off(pruned: SparkSession, folder: Path) -> None:
    assert folder.is_dir()
    with settings(
        pruned, {SETTING: "false", "spark.sql.parquet.filterPushdown": "false"}
    ):
        df = both(pruned, lambda: pruned.sql("SELECT id FROM t WHERE k = 5"))
    assert not is_narrow(df)
    assert rows_read(df) % N == 0


def test_buckets_stay_as_they_are(pruned: SparkSession, tmp_path: Path) -> None:
    rows = pruned.range(500).selectExpr("id", "id * 7919 % 1009 AS k")
    writer = rows.write.bucketBy(4, "id").option("path", str(tmp_path / "b"))
    writer.saveAsTable("buckets_of_groups")
    try:
        sx.build_indexes(tmp_path / "b", {"k": "exact"}, workers=1)
        text = "SELECT id, count(*) FROM buckets_of_groups WHERE k < 9 GROUP BY id"
        assert not is_narrow(both(pruned, lambda: pruned.sql(text)))
    finally:
        pruned.sql("DROP TABLE buckets_of_groups")


@pytest.mark.parametrize("how", ["other", "shorter", "touched"])
def test_a_file_that_changed_is_read_whole(
    pruned: SparkSession, folder: Path, how: str
) -> None:
    """Spark and the planner have listed it before; what it holds now counts."""
    view = pruned.table("t")
    assert view.where("k = 5").count() == 2
    path = folder / "p=0" / "0.parquet"
    if how == "touched":
        path.touch()
    else:
        n = N if how == "other" else ROWS
        columns = {"id": range(n), "k": [5] * n, "text": ["x"] * n}
        pq.write_table(pa.table(columns), path, row_group_size=ROWS // 2)
    df = both(pruned, lambda: pruned.read.parquet(str(folder)).where("k = 5"))
    assert rows_read(df) >= 1
    both(pruned, lambda: view.where("k = 5"))


def test_a_session_without_skipping_has_no_strategy_of_ours(
    pruned: SparkSession, folder: Path
) -> None:
    assert folder.is_dir()
    methods = pruned._jsparkSession.experimental()
    pruned.sql("SELECT id FROM t WHERE k = 5").collect()
    pruned.sql("SELECT id FROM t WHERE k = 5").collect()
    assert methods.extraStrategies().size() == 1
    sx.disable(pruned)
    pruned.sql("SELECT id FROM t WHERE k = 5").collect()
    assert methods.extraStrategies().size() == 0


def test_cached_rows_are_those_of_the_ranges(
    pruned: SparkSession, folder: Path
) -> None:
    assert folder.is_dir()
    df = pruned.sql("SELECT * FROM t WHERE k IN (5, 700)").cache()
    try:
        both(pruned, lambda: df.where(sf.col("k") == 5))
    finally:
        df.unpersist()
