"""Files that come, change or go, and rewrites under a query: what is read is there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.seen import NOW, listed
from tests.spark.pruning.scans import (
    dataset_of,
    files_of_run,
    files_read,
    rows_of,
    same_rows,
    scans,
    set_for,
    with_and_without,
)
from tests.tables import build, put

pytestmark = pytest.mark.spark


Copied = Callable[..., Path]


@pytest.fixture
def numbers(copied: Copied) -> Path:
    """Ten files of twenty consecutive numbers, with indexes."""
    return copied("numbers")


def test_a_file_that_is_replaced_after_the_frame_was_defined_is_read(
    pruned: SparkSession, numbers: Path
) -> None:
    df = pruned.read.parquet(str(numbers))
    assert df.where("id = 5").count() == 1
    # Both listings are older than the file: that of the frame, and that of the table.
    shutil.copy(numbers / "0.parquet", numbers / "7.parquet")
    assert df.where("id = 5").count() == 2


def test_a_file_that_is_gone_is_missed_as_it_is_without_pruning(
    pruned: SparkSession, numbers: Path
) -> None:
    df = pruned.read.parquet(str(numbers))
    assert df.where("id = 5").count() == 1
    (numbers / "7.parquet").unlink()
    for is_enabled in ("true", "false"):
        pruned.conf.set("skipindex.enabled", is_enabled)
        with pytest.raises(Exception, match=r"7\.parquet"):
            df.where("id = 5").count()
    assert pruned.read.parquet(str(numbers)).where("id = 5").count() == 1


def test_a_table_that_reads_and_overwrites_itself(
    answering: SparkSession, numbers: Path
) -> None:
    answering.sql(f"CREATE TABLE own USING parquet LOCATION 'file:{numbers}'")
    try:
        answering.sql(
            "INSERT INTO own SELECT id + 1000, rest, name, ten FROM own WHERE id < 5"
        )
        ends = answering.sql("SELECT count(*), max(id) FROM own")
        assert ends.first() == (205, 1004)
        assert answering.sql("SELECT * FROM own WHERE id >= 1000").count() == 5
        assert answering.sql("SELECT * FROM own WHERE id < 5").count() == 5
        answering.sql(
            f"INSERT OVERWRITE DIRECTORY 'file:{numbers}-copy' USING parquet "
            "SELECT * FROM own WHERE id < 5"
        )
        assert answering.read.parquet(f"{numbers}-copy").count() == 5
        answering.sql("INSERT OVERWRITE own VALUES (3L, 3, 'x', 0)")
        assert answering.sql("SELECT name FROM own WHERE id = 3").collect() == [
            Row("x")
        ]
    finally:
        answering.sql("DROP TABLE own")


def test_an_answer_is_about_the_files_of_its_own_listing(
    pruned: SparkSession, numbers: Path
) -> None:
    """Between plans files come and go, so that positions mean other files."""
    df = pruned.read.parquet(str(numbers))
    for file in range(0, 10, 4):
        (numbers / f"{file}.parquet").rename(numbers / f"x{9 - file}.parquet")
        sx.build_indexes(numbers, {"id": "minmax"})
        assert pruned.read.parquet(str(numbers)).where(f"id = {20 * file}").count() == 1
    assert df.schema == pruned.read.parquet(str(numbers)).schema


def test_any_rows_need_no_other_file(pruned: SparkSession, numbers: Path) -> None:
    """Not one that has gone either, on which the query would fail."""
    df = pruned.read.parquet(str(numbers))
    assert df.where("ten < 0").count() == 0
    (numbers / "9.parquet").rename(numbers / "moved.parquet")
    for condition in ("ten > 4", "ten > 4", "ten < 2"):  # the last leaves one
        one = df.where(condition).limit(1).select(sf.lit(1))
        assert one.collect() == [(1,)]
        assert files_of_run(one) == 1
        build(numbers)  # our listing was as old as that of Spark


@pytest.fixture
def answering(pruned: SparkSession) -> Iterator[SparkSession]:
    with set_for(pruned, {"skipindex.answers": "true"}):
        yield pruned


@pytest.fixture
def counted(copied: Copied, answering: SparkSession) -> Path:
    """Five files of twenty consecutive numbers, as the view ``t``."""
    folder = copied("results")
    answering.read.parquet(str(folder)).createOrReplaceTempView("t")
    return folder


def put_rows(path: Path, file: int) -> None:
    """Twenty other numbers in all columns of such a file."""
    ids = pa.array(range(20 * file, 20 * file + 20), pa.int64())
    tens = pa.array([i // 10 for i in ids.to_pylist()], pa.int32())
    put(path, {"id": ids, "ten": tens})


def test_a_plan_asks_once(answering: SparkSession, counted: Path) -> None:
    """The rule sees each plan twice, and what it has made of it."""
    put_rows(counted / "new.parquet", 7)
    answering.read.parquet(str(counted)).createOrReplaceTempView("t")
    df = answering.sql("SELECT max(id), count(*) FROM t WHERE ten >= 0")
    df._jdf.queryExecution().optimizedPlan()
    assert [record.answered != "" for record in sx.last_plans(answering)] == [True]
    assert df.collect() == [(159, 120)]
    assert len(sx.last_plans(answering)) == 1


def test_a_file_that_is_replaced_after_the_frame_was_defined_is_counted(
    answering: SparkSession, counted: Path
) -> None:
    df = answering.read.parquet(str(counted))
    assert df.where("id >= 0").count() == 100
    # Both listings are older than the file.
    pq.write_table(pq.read_table(counted / "2.parquet")[:3], counted / "2.parquet")
    assert df.where("id >= 0").count() == 83
    assert df.agg(sf.max("id"), sf.count("*")).first() == (99, 83)


def test_a_frame_counts_as_of_its_first_plan(
    answering: SparkSession, counted: Path
) -> None:
    """Files that come later are not mixed with results of before."""
    ends = answering.sql("SELECT count(*), max(id) FROM t")
    ends.explain()
    put_rows(counted / "2.parquet", 90)
    answering.catalog.refreshByPath(str(counted))
    assert ends.collect() == [(100, 99)]
    assert answering.sql("SELECT count(*), max(id) FROM t").first() == (100, 1819)


def test_rows_of_files_that_came_or_changed_are_read_by_spark(
    pruned: SparkSession, tmp_path: Path
) -> None:
    def pairs(name: str, first: int, *values: int) -> None:
        ids = range(first, first + len(values))
        put(tmp_path / name, {"id": ids, "c": values})

    def n_scans(view: DataFrame) -> tuple[int, int]:
        df = same_rows(pruned, lambda: view.where("id = 1"))
        return len(scans(df)), df.count()

    pairs("0.parquet", 0, 1, 2)
    pairs("1.parquet", 10, 3, 4)
    build(tmp_path, {"id": "exact"})
    with set_for(pruned, {"skipindex.rowsFromPlanner": "4m"}):
        before = pruned.read.parquet(str(tmp_path))
        assert n_scans(before) == (0, 1)
        pairs("2.parquet", 1, 5, 6)  # not listed before
        assert before.where("id = 1").collect() == [(1, 2)]
        assert n_scans(pruned.read.parquet(str(tmp_path))) == (1, 2)
        pairs("0.parquet", 1, 7, 8, 9)
        assert n_scans(pruned.read.parquet(str(tmp_path))) == (1, 2)


@pytest.fixture
def grouped(copied: Copied, pruned: SparkSession) -> Iterator[Path]:
    """Files of row groups of fifty rows, of which plans read some."""
    rules = {
        "spark.sql.files.openCostInBytes": "0",
        "spark.sql.files.minPartitionNum": "1",
        "spark.sql.parquet.filterPushdown": "false",
    }
    with set_for(pruned, rules):
        yield copied("groups")


@pytest.mark.few(2)
@pytest.mark.parametrize("how", ["other", "shorter", "touched"])
def test_a_file_that_changed_is_read_whole(
    pruned: SparkSession, grouped: Path, how: str
) -> None:
    """Spark and the planner have listed it before; what it holds now counts."""
    view = pruned.read.parquet(str(grouped))
    assert view.where("k = 5").count() == 2
    path = grouped / "p=0" / "0.parquet"
    if how == "touched":
        path.touch()
    else:
        n = 500 if how == "other" else 50
        columns = {"id": range(n), "k": [5] * n, "text": ["x"] * n}
        put(path, columns, row_group_size=25)
    df = same_rows(pruned, lambda: pruned.read.parquet(str(grouped)).where("k = 5"))
    assert files_of_run(df) >= 1
    same_rows(pruned, lambda: view.where("k = 5"))


@pytest.mark.parametrize("n_bytes", ["0", "4m"])
def test_a_file_that_changed_after_the_plan(
    pruned: SparkSession, grouped: Path, n_bytes: str
) -> None:
    """It is as Spark finds it when the query runs, never a part of its rows."""
    with set_for(pruned, {"skipindex.rowsFromPlanner": n_bytes}):
        df = sx.read(grouped, "k = 5", spark=pruned).select("id")
        path = next(grouped.glob(f"p=*/{df.collect()[0].id // 500}.parquet"))
        put(path, {"id": [9, 10], "k": [5, 6]})
        os.utime(path, (1_000_000_000, 1_000_000_000))
        again = sx.read(grouped, "k = 5", spark=pruned).select("id")
        with set_for(pruned, {"skipindex.enabled": "false"}):
            plain = pruned.read.parquet(str(grouped)).where("k = 5").select("id")
            expected = rows_of(plain)
        assert rows_of(again) == expected


WISH = {"cluster_by": ["id"], "rows_per_file": 20}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files whose least and greatest ``k`` say nothing, and the bitmaps all."""
    for i in range(8):
        rows = {"k": [-1, i, 100, *[i] * 7], "id": list(range(i * 10, i * 10 + 10))}
        put(tmp_path / f"p={i % 2}" / f"{i}.parquet", rows)
    build(tmp_path, {"k": "bitmap", "id": "minmax"})
    return tmp_path


def read(spark: SparkSession, folder: Path, where: str) -> tuple[int, int]:
    def query() -> DataFrame:
        return spark.read.parquet(str(folder)).where(where)

    _, some, everything = with_and_without(spark, query)
    return some, everything


def test_new_files_are_read_from_the_commit_on(
    pruned: SparkSession, folder: Path
) -> None:
    frame = pruned.read.parquet(str(folder)).where("id = 4")
    assert frame.count() == 1
    optimized(folder, **WISH)
    assert read(pruned, folder, "id = 4") == (1, 8)
    assert read(pruned, folder, "id >= 0") == (4, 8)
    plan = sx.last_plans(pruned)[-1]
    assert (plan.n_files, plan.n_read, plan.n_unindexed) == (4, 4, 0)
    assert read(pruned, folder, "p = 1 AND id > 12") == (2, 4)
    assert read(pruned, folder, "k = 3 AND p = 0") == (0, 4)
    assert files_read(frame.where("k < 50")) == 1
    put(folder / "p=0" / "more.parquet", {"k": [3], "id": [4]})
    assert read(pruned, folder, "id = 4") == (2, 9)
    build(folder, {"k": "bitmap", "id": "minmax"})
    optimized(folder, **WISH, mode="full")
    assert read(pruned, folder, "id = 4") == (1, 9)
    assert sx.open_table(folder).verify().ok


FRAMES: dict[str, Callable[[SparkSession, Path], DataFrame]] = {
    "input_file_name": lambda spark, folder: (
        spark.read.parquet(str(folder))
        .where("id < 25")
        .select("id", sf.input_file_name())
    ),
    "_metadata": lambda spark, folder: spark.read.parquet(str(folder)).select(
        "id", "_metadata.file_path", "_metadata.row_index"
    ),
    "a condition on _metadata": lambda spark, folder: spark.read.parquet(
        str(folder)
    ).where("_metadata.file_name = '0.parquet'"),
    "in a subquery": lambda spark, folder: spark.sql(
        f"WITH t AS (SELECT * FROM parquet.`{folder}`) SELECT id FROM t WHERE id IN "
        "(SELECT id FROM t WHERE id < 50 AND input_file_name() LIKE '%/0.parquet')"
    ),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", FRAMES)
def test_rows_that_tell_of_their_files_are_those_of_old_ones(
    pruned: SparkSession, folder: Path, name: str
) -> None:
    def query() -> DataFrame:
        return FRAMES[name](pruned, folder).where("id >= 0 AND id < 30")

    before, n_before, _ = with_and_without(pruned, query)
    optimized(folder, **WISH)
    assert before
    assert with_and_without(pruned, query)[:2] == (before, n_before)


def test_a_frame_that_is_a_part_of_another_tells_of_old_files(
    pruned: SparkSession, folder: Path
) -> None:
    optimized(folder, **WISH)
    frame = pruned.read.parquet(str(folder)).where("id < 25")
    assert files_read(frame) == 2
    optimized_plan = frame._jdf.queryExecution().optimizedPlan()
    for part in (frame, dataset_of(pruned, optimized_plan)):
        named = part.select("id", sf.input_file_name())
        assert files_read(named) == 3
        assert not any("_skipindex" in name for _, name in named.collect())
    assert files_read(frame.where("id >= 0")) == 2


def test_only_all_files_of_a_rewrite_are_read_as_new_ones(
    pruned: SparkSession, folder: Path
) -> None:
    optimized(folder, **WISH)

    def of(*paths: str) -> tuple[list[Row], int, int]:
        def query() -> DataFrame:
            full = [str(folder / path) for path in paths]
            frame = pruned.read.option("basePath", str(folder)).parquet(*full)
            return frame.where("id < 1000")

        return with_and_without(pruned, query)

    assert len(of("p=0")[0]) == 40
    assert of("p=0")[1:] == (2, 4)
    assert of("p=1/1.parquet", "p=1/3.parquet")[1:] == (2, 2)
    assert of("p=0", "p=1/3.parquet")[1:] == (5, 5)
    plans = sx.last_plans(pruned)
    assert plans[-1].n_files == 5
    assert [plan.n_files for plan in plans] != [4, 5]


@pytest.mark.few(2)
@pytest.mark.parametrize("side", ["hidden", "visible"])
@pytest.mark.parametrize("is_listed_before", [False, True])
def test_a_rewrite_of_which_a_file_changes_does_not_count(
    pruned: SparkSession, folder: Path, side: str, is_listed_before: bool
) -> None:
    optimized(folder, **WISH)
    frame = pruned.read.parquet(str(folder))
    assert files_read(frame.where("id = 0")) == 1
    pattern = "p=0/_skipindex-*/*" if side == "hidden" else "p=0/0.parquet"
    path = next(folder.glob(pattern))
    rows = pq.read_table(path)
    before = path.stat()
    pq.write_table(rows.set_column(1, "id", pa.array([-7] * len(rows))), path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 10**9))
    if not is_listed_before:
        frame = pruned.read.parquet(str(folder))
    expected = 0 if side == "hidden" else 10
    assert frame.where("id = -7").count() == expected
    assert frame.where("id >= 0 OR id = -7").count() == 80
    assert frame.where("id = 70 AND p = 1").count() == 1


def test_joins_read_new_files(pruned: SparkSession, folder: Path) -> None:
    optimized(folder, **WISH)
    keys = pruned.range(3).withColumnRenamed("id", "key")
    frame = pruned.read.parquet(str(folder)).where("id < 20")

    def query() -> DataFrame:
        return frame.join(keys, frame.id == keys.key)

    rows, some, everything = with_and_without(pruned, query, "test_joins")
    assert len(rows) == 3
    assert some <= 2 < everything == 8


@pytest.mark.slow
def test_old_files_keep_their_indexes_until_they_go(
    pruned: SparkSession, folder: Path
) -> None:
    assert read(pruned, folder, "k = 3") == (1, 8)
    frame = pruned.read.parquet(str(folder)).where("k = 3")
    optimized(folder, **WISH)
    assert read(pruned, folder, "k = 3") == (1, 8)
    put(folder / "p=0" / "more.parquet", {"k": [3], "id": [80]})
    assert read(pruned, folder, "k = 3") == (2, 9)
    build(folder, {"k": "bitmap", "id": "minmax"})
    assert read(pruned, folder, "k = 4") == (1, 9)
    optimized(folder, **{**WISH, "rows_per_file": 20}, mode="full")
    assert read(pruned, folder, "k = 4") == (1, 9)
    assert frame.count() == 8
    table = sx.open_table(folder)
    assert table.status().vanished_files == 0
    assert table.verify().ok
    table.vacuum(retention=NOW)
    paths = sx.open_table(folder).state.snapshot.manifest.paths
    assert sorted(paths) == sorted(listed(folder))
    some, everything = read(pruned, folder, "id = 4")
    assert some == 1 < everything == len(paths)


@pytest.mark.slow
def test_what_changes_indexes_changes_those_of_old_files_too(
    pruned: SparkSession, folder: Path
) -> None:
    for i in range(8, 12):  # each with a pack of its own
        put(folder / "p=0" / f"{i}.parquet", {"k": [-1, i, 100], "id": [80 + i] * 3})
        build(folder, {"k": "bitmap", "id": "minmax"})
    optimized(folder, **WISH)
    table = sx.open_table(folder).compact_indexes(max_files=10**6, max_bytes=2**40)
    assert table.verify().ok
    assert read(pruned, folder, "k = 3") == (1, 12)
    assert read(pruned, folder, "k IN (3, 9)") == (2, 12)
    table = table.build_indexes({"k": "bit_sliced"}).table.drop_indexes(
        kinds=["bitmap"]
    )
    assert {one.kind for one in table.indexes} == {"bit_sliced", "minmax"}
    for _ in range(2):
        assert table.verify().ok
        read(pruned, folder, "k IN (3, 9)")
        table.vacuum(retention=NOW)
        table = table.refresh()
    assert read(pruned, folder, "k = 3")[0] < len(table)


def test_an_old_file_that_others_overwrite_is_read(
    pruned: SparkSession, folder: Path
) -> None:
    optimized(folder, **WISH)
    put(folder / "p=1" / "1.parquet", {"k": [3], "id": [10]})
    assert read(pruned, folder, "k = 3") == (2, 8)
    (folder / "p=1" / "3.parquet").unlink()
    assert read(pruned, folder, "k = 3") == (1, 7)


def test_a_registered_table_is_what_spark_lists(
    pruned: SparkSession, folder: Path
) -> None:
    table = sx.open_table(folder)
    sx.register(pruned, table)
    optimized(folder, **WISH)
    assert read(pruned, folder, "k = 3") == (1, 8)
    top = "SELECT id FROM parquet.`{}` ORDER BY id DESC LIMIT 1"
    assert pruned.sql(top.format(folder)).first() == (79,)
