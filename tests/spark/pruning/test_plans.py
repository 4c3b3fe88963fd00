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
from tests.spark.pruning.costs import check_costs
from tests.spark.pruning.scans import files_read, rows_of, with_and_without
from tests.spark.versions import since
from tests.tables import build, put, put_all

pytestmark = pytest.mark.spark


def write(folder: Path, *files: dict[str, object]) -> str:
    folder.mkdir(parents=True)
    for i, columns in enumerate(files):
        pq.write_table(pa.table(columns), folder / f"{i}.parquet")
    return str(folder)


@pytest.fixture
def tree(pruned: SparkSession, tmp_path: Path) -> str:
    """One edge a file; each node but the last has the next one as its child."""
    edges = [
        {"id": [i + 1], "parent": [i], "more": ["x" * 2000 + str(i)]} for i in range(12)
    ]
    folder = write(tmp_path / "tree", *edges)
    sx.build_indexes(folder, {"parent": "bitmap"}, workers=1)
    pruned.read.parquet(folder).createOrReplaceTempView("tree")
    return folder


RECURSIVE = """
WITH RECURSIVE r (id, level) AS (
  {anchor}
  UNION ALL
  SELECT tree.id, level + 1 FROM tree JOIN r ON tree.parent = r.id WHERE level < 2
)
SELECT * FROM r
"""


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    ("anchor", "n_rows"),
    [
        pytest.param("SELECT 3L AS id, 0 AS level", 3, marks=pytest.mark.slow),
        ("SELECT * FROM VALUES (3L, 0), (10L, 0) AS v (id, level)", 6),
        pytest.param(
            "SELECT id, 0 AS level FROM tree WHERE parent = 2",
            3,
            marks=pytest.mark.slow,
        ),
    ],
)
@since(4, 1, what="WITH RECURSIVE")
def test_each_step_of_a_recursion_has_keys_of_its_own(
    pruned: SparkSession, anchor: str, n_rows: int
) -> None:
    query = RECURSIVE.format(anchor=anchor)
    assert pruned.sql(query).count() == n_rows
    check_costs(pruned, lambda: pruned.sql(query))


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


MUTUAL = [
    "SELECT a.id FROM one a JOIN one b ON a.id = b.id WHERE a.g = 3 AND b.id < 50",
    "SELECT a.id FROM one a JOIN one b ON a.id = b.id WHERE a.id = 7 AND b.id = 7",
    "SELECT one.id FROM one JOIN two ON one.id = oid WHERE g = 3 AND st = 's8'",
    """SELECT one.id FROM one JOIN two ON one.id = oid JOIN one c ON c.id = oid
    WHERE one.g = 3 AND st = 's8' AND c.id < 100""",
    """SELECT one.id FROM one, two, small, one d WHERE one.id = oid AND oid = d.id
    AND one.g = k AND name < 'n4' AND st < 's8' AND d.g = 3""",
]
"""Joins in which each side has a condition and an index on its key."""


@pytest.mark.few(1)
@pytest.mark.parametrize("broadcast", ["-1", "10MB"])
@pytest.mark.parametrize("query", MUTUAL)
def test_sides_of_a_join_do_not_wait_for_each_other(
    both: SparkSession, query: str, broadcast: str
) -> None:
    both.conf.set("spark.sql.autoBroadcastJoinThreshold", broadcast)
    try:
        check_costs(both, lambda: both.sql(query))
    finally:
        both.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_bucketed_tables_that_are_listed_while_spark_plans(
    pruned: SparkSession, tmp_path: Path
) -> None:
    ordering = "spark.sql.legacy.bucketedTableScan.outputOrdering"
    frame = pruned.range(0, 200).selectExpr("id", "id % 10 AS g")
    path = str(tmp_path / "bucketed")
    writer = frame.write.bucketBy(4, "id").sortBy("id").option("path", path)
    writer.saveAsTable("bucketed")
    pruned.conf.set(ordering, "true")
    try:
        sx.build_indexes(path, {"id": "bitmap", "g": "bitmap"}, workers=1)
        query = (
            "SELECT a.id FROM bucketed a JOIN bucketed b ON a.id = b.id "
            "WHERE a.g = 3 AND b.id < 50"
        )
        check_costs(pruned, lambda: pruned.sql(query))
    finally:
        pruned.conf.unset(ordering)
        pruned.sql("DROP TABLE bucketed")


@pytest.fixture
def star(pruned: SparkSession, tmp_path: Path) -> Callable[[], None]:
    """A fact with a folder for each day, and its days."""
    for day in range(8):
        rows = {"k": [day * 10 + i for i in range(100)], "v": list(range(100))}
        write(tmp_path / f"fact/day={day}", rows)
    days = [
        {
            "day": [4 * i + j for j in range(4)],
            "name": [f"d{4 * i + j}" for j in range(4)],
        }
        for i in range(2)
    ]
    write(tmp_path / "days", *days)

    def define() -> None:
        for name in ("fact", "days"):
            folder = str(tmp_path / name)
            pruned.read.parquet(folder).createOrReplaceTempView(name)

    sx.build_indexes(tmp_path / "days", {"name": "bitmap", "day": "bitmap"}, workers=1)
    define()
    return define


@pytest.mark.few(1)
@pytest.mark.parametrize("only_reuse", ["true", "false"])
@pytest.mark.parametrize("of_fact", [False, True])
def test_partitions_are_pruned_by_a_dimension_with_indexes(
    pruned: SparkSession,
    star: Callable[[], None],
    tmp_path: Path,
    *,
    of_fact: bool,
    only_reuse: str,
) -> None:
    """Spark finds that the scan of the filter is the scan of the join."""
    setting = "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly"
    if of_fact:
        sx.build_indexes(tmp_path / "fact", {"k": "bitmap"}, workers=1)
        star()
    query = "SELECT sum(v) FROM fact JOIN days ON fact.day = days.day WHERE name = 'd3'"
    pruned.conf.set(setting, only_reuse)
    try:
        check_costs(pruned, lambda: pruned.sql(query))
        assert files_read(pruned.sql(query), "/fact") == 1
        assert files_read(pruned.sql(query), "/days") in {1, 2}
    finally:
        pruned.conf.unset(setting)


@pytest.mark.slow
@pytest.mark.usefixtures("both")
def test_a_scan_with_keys_runs_once_where_it_is_used_twice(
    pruned: SparkSession,
) -> None:
    query = (
        "WITH x AS (SELECT g, sum(id) AS total FROM one JOIN small ON id = k "
        "WHERE name < 'n4' GROUP BY g) "
        "SELECT count(*) FROM x a JOIN x b ON a.g = b.g"
    )
    skipping, plain = check_costs(pruned, lambda: pruned.sql(query))
    assert skipping.exchanges == plain.exchanges
    assert skipping.files < plain.files


@pytest.mark.usefixtures("both")
def test_plans_share_an_exchange_though_one_of_them_has_no_join(
    pruned: SparkSession,
) -> None:
    """Spark asks for the size of a scan in the plan with the join alone."""
    part = "(SELECT id % 7 AS r, sum(id) AS total FROM one WHERE g < 3 GROUP BY 1)"
    query = (
        f"SELECT x.r, x.total, name FROM {part} x LEFT JOIN small ON x.r = k "
        f"WHERE x.total >= (SELECT max(total) / 2 FROM {part})"
    )
    skipping, plain = check_costs(pruned, lambda: pruned.sql(query))
    assert plain.reused == 1
    assert (skipping.reused, skipping.exchanges) == (1, plain.exchanges)
    assert skipping.files < plain.files


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


def test_the_first_rows_have_a_switch(both: SparkSession) -> None:
    assert files_read(both.sql(FIRST), "/one") == 1
    both.conf.set("skipindex.firstRows", "false")
    try:
        assert files_read(both.sql(FIRST), "/one") == 12
    finally:
        both.conf.unset("skipindex.firstRows")


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


def check(spark: SparkSession, query: Callable[[], DataFrame]) -> None:
    spark.conf.set("skipindex.enabled", "false")
    expected = rows_of(query())
    spark.conf.set("skipindex.enabled", "true")
    assert rows_of(query()) == expected


PAIRS = [("d1", "d2"), ("d2", "d1"), ("old", "new"), ("new", "old"), ("d1", "new")]


@pytest.mark.few(1)
@pytest.mark.parametrize(("one", "two"), PAIRS)
@pytest.mark.parametrize(
    "what",
    [
        "count(*) FROM {} WHERE k >= 0",
        "max(k) FROM {}",
        "EXISTS (SELECT * FROM {} WHERE k = 50)",
        "k FROM {} WHERE k = 7 ORDER BY k LIMIT 9",
    ],
)
def test_results_are_of_the_files_that_a_scan_lists(
    parts: SparkSession, one: str, two: str, what: str
) -> None:
    texts = [f"(SELECT {what.format(name)})" for name in (one, two)]
    parts.conf.set("skipindex.answers", "true")
    try:
        check(parts, lambda: parts.sql(" UNION ALL ".join(texts)))
    finally:
        parts.conf.unset("skipindex.answers")


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


def test_keys_are_of_the_files_that_a_side_lists(
    pruned: SparkSession, tmp_path: Path
) -> None:
    """Spark has a broadcast of the one listing, and a shuffle of the other."""
    filler = ["x" * 3000 + str(i) for i in range(10)]
    files = [{"k": [i] * 10, "v": filler} for i in range(8)]
    fact = write(tmp_path / "fact", *files)
    sx.build_indexes(fact, {"k": "bitmap"}, workers=1)
    side = write(tmp_path / "side", {"k": [1], "n": ["c"]})
    old = pruned.read.parquet(side)
    pq.write_table(pa.table({"k": [3], "n": ["c"]}), f"{side}/1.parquet")
    new = pruned.read.parquet(side)

    def joined(frame: DataFrame, hint: str) -> DataFrame:
        wanted = frame.where("n = 'c'").hint(hint)
        return pruned.read.parquet(fact).join(wanted, "k").selectExpr("k", f"'{hint}'")

    check(pruned, lambda: joined(old, "broadcast").union(joined(new, "merge")))
    check(pruned, lambda: joined(new, "broadcast").union(joined(old, "merge")))


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
