"""Plans that become parts of others, and files that are rewritten under them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from skipindex.spark.pruning.query_planner import QueryPlanner
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.seen import NOW, listed
from tests.spark.pruning.scans import files_read, with_and_without
from tests.tables import build, put, put_all

pytestmark = pytest.mark.spark


def write(folder: Path, *files: dict[str, object]) -> str:
    folder.mkdir(parents=True)
    for i, columns in enumerate(files):
        pq.write_table(pa.table(columns), folder / f"{i}.parquet")
    return str(folder)


@pytest.fixture(scope="module")
def views(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Two tables of like size with the same keys, and a small one."""
    folder = tmp_path_factory.mktemp("both")
    rows = [list(range(10 * i, 10 * i + 10)) for i in range(12)]
    filler = ["x" * 500 + str(i) for i in range(10)]
    one = [{"id": ids, "g": [i % 5] * 10, "more": filler} for i, ids in enumerate(rows)]
    two = [
        {"oid": ids, "st": [f"s{i}"] * 10, "more": filler} for i, ids in enumerate(rows)
    ]
    small = [{"k": list(range(10)), "name": [f"n{i}" for i in range(10)]}]
    for name, files, indexes in (
        ("one", one, {"id": "bitmap", "g": "bitmap"}),
        ("two", two, {"oid": "bitmap", "st": "bitmap"}),
        ("small", small, {"k": "bitmap", "name": "bitmap"}),
    ):
        place = write(folder / name, *files)
        sx.build_indexes(place, indexes, workers=1)
        spark.read.parquet(place).createOrReplaceTempView(name)


@pytest.fixture
def both(views: None, pruned: SparkSession) -> SparkSession:
    """A session with the tables as views; no test changes them."""
    assert views is None
    return pruned


def test_files_of_a_size_are_left_out_under_its_condition_alone(
    both: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark may put a scan where an equal one was, under another condition."""

    def scan_of(condition: str) -> Any:
        # What is computed is no column that keys could be of.
        text = f"SELECT one.id FROM one JOIN two ON one.id = abs(oid) WHERE {condition}"
        node = both.sql(text)._jdf.queryExecution().sparkPlan()
        while node.children().size():
            node = node.children().apply(0)
        return node

    def listed(conditions: Any) -> int:
        folders = location.listFiles(conditions.take(0), conditions)
        return sum(folders.apply(i).files().size() for i in range(folders.size()))

    def failed(*_: object) -> None:
        raise ValueError("no answer")

    both.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        scan, other = scan_of("one.id < 15"), scan_of("one.id < 35")
    finally:
        both.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    location, conditions = scan.relation().location(), scan.dataFilters()
    assert (listed(conditions), listed(other.dataFilters())) == (2, 4)
    monkeypatch.setattr(QueryPlanner, "_answer", failed)
    assert (listed(conditions), listed(other.dataFilters())) == (2, 12)


def dataset_of(spark: SparkSession, plan: object) -> DataFrame:
    """What a library makes that plans by itself: a frame of an optimized plan."""
    sql = spark._jvm.org.apache.spark.sql
    package = sql.classic if spark.version >= "4" else sql
    return DataFrame(package.Dataset.ofRows(spark._jsparkSession, plan), spark)


JOINED = "SELECT id FROM one JOIN small ON id = k WHERE name < 'n4'"
FIRST = "SELECT id FROM one ORDER BY id LIMIT 3"


@pytest.mark.few(2)
@pytest.mark.parametrize("query", [JOINED, FIRST])
@pytest.mark.parametrize("is_enabled", ["true", "false"])
def test_a_part_of_an_optimized_plan_has_all_its_rows(
    both: SparkSession, query: str, is_enabled: str
) -> None:
    """The keys of its former join, and its former LIMIT, do not count any more."""
    plan = both.sql(query)._jdf.queryExecution().optimizedPlan()
    while plan.children().size():
        plan = plan.children().apply(0)
    both.conf.set("skipindex.enabled", is_enabled)
    assert dataset_of(both, plan).count() == 120


@pytest.mark.parametrize("query", [JOINED, FIRST])
def test_a_part_of_an_optimized_plan_has_all_its_rows_where_the_rule_fails(
    both: SparkSession, query: str
) -> None:
    plan = both.sql(query)._jdf.queryExecution().optimizedPlan()
    while plan.children().size():
        plan = plan.children().apply(0)
    both.conf.set("skipindex.timeLimit", "soon")
    try:
        assert dataset_of(both, plan).count() == 120
    finally:
        both.conf.unset("skipindex.timeLimit")


def test_a_part_of_an_optimized_plan_has_all_its_rows_when_none_is_pruned_any_more(
    both: SparkSession,
) -> None:
    """Nothing is left of the files that were taken for its size."""
    query = "SELECT one.id FROM one JOIN two ON one.id = oid WHERE one.id < 15"
    plan = both.sql(query)._jdf.queryExecution().optimizedPlan()
    while plan.children().size():
        plan = plan.children().apply(0)
    sx.disable(both)
    assert dataset_of(both, plan).where("id > 100").count() == 19


@pytest.mark.parametrize("name", ["'n1'", "'n7'"])
def test_a_part_of_an_optimized_plan_that_is_joined_anew_has_its_new_keys(
    both: SparkSession, name: str
) -> None:
    plan = both.sql(JOINED)._jdf.queryExecution().optimizedPlan()
    while plan.children().size():
        plan = plan.children().apply(0)
    dataset_of(both, plan).createOrReplaceTempView("part")
    query = f"SELECT id FROM part JOIN small ON id = k WHERE name = {name}"
    assert [row.id for row in both.sql(query).collect()] == [int(name[2])]


def test_estimates_have_a_switch(both: SparkSession) -> None:
    query = "SELECT one.id FROM one JOIN two ON one.id = oid WHERE g = 3"
    both.conf.set("skipindex.estimates", "false")
    try:
        before = len(sx.last_plans(both))
        both.sql(query).collect()
        found = sx.last_plans(both)[before:]
    finally:
        both.conf.unset("skipindex.estimates")
    assert found
    assert not any(plan.is_estimate for plan in found)


def test_what_only_spark_computes_has_its_name(
    pruned: SparkSession, tmp_path: Path
) -> None:
    folder = put_all(tmp_path / "t", [{"x": [i], "s": [f"a{i}"]} for i in range(3)])
    build(folder, {"x": "bitmap"})
    frame = pruned.read.parquet(str(folder))
    assert frame.where("x < 2 AND s RLIKE 'a+1' AND length(hex(s)) = 4").count() == 1
    plan = sx.last_plans(pruned)[-1]
    assert plan.n_read == 2
    assert "({RLike(s, 'a+1')}) AND (" in plan.condition
    assert "opaque" not in f"{plan}{plan.plan}{plan.plan and plan.plan.explain()}"
    told = "{RLike(s, 'a+1')}: not judged, only Spark can compute it"
    assert plan.plan
    assert told in plan.plan.explain()
    many = f"x IN ({', '.join(map(str, range(2, 400)))})"
    assert frame.where(many).count() == 1
    plan = sx.last_plans(pruned)[-1]
    assert (plan.condition, plan.n_read) == ("x IN (398 keys)", 1)


@pytest.fixture
def parts(pruned: SparkSession, tmp_path: Path) -> SparkSession:
    """Two views of a file each of one table, a view of both before a third came."""
    first = {"k": [1, 2, 3], "v": ["a"] * 3}
    large = {"k": list(range(100)), "v": ["x" * 900 + str(i) for i in range(100)]}
    table = write(tmp_path / "t", first, large)
    for name, path in (("d1", "0.parquet"), ("d2", "1.parquet"), ("old", "")):
        pruned.read.parquet(f"{table}/{path}").createOrReplaceTempView(name)
    pruned.sql("SELECT * FROM old").collect()
    pq.write_table(pa.table({"k": [7] * 5, "v": ["n"] * 5}), f"{table}/2.parquet")
    sx.build_indexes(table, {"k": "bitmap"}, workers=1)
    pruned.read.parquet(table).createOrReplaceTempView("new")
    return pruned


def test_sizes_are_of_the_files_that_a_scan_lists(
    parts: SparkSession, tmp_path: Path
) -> None:
    query = "SELECT d1.k FROM d1 JOIN d2 ON d1.k = d2.k WHERE d1.k > 0 AND d2.k > 0"
    plan = parts.sql(query)._jdf.queryExecution().optimizedPlan()
    leaves = plan.collectLeaves()
    for i in range(leaves.size()):
        location = leaves.apply(i).relation().location()
        name = location.rootPaths().apply(0).getName()
        assert location.sizeInBytes() == (tmp_path / "t" / name).stat().st_size


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
