"""What one plan needs of a scan counts for that plan alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from skipindex.spark.pruning.query_planner import QueryPlanner
from tests.spark.pruning.costs import check_costs
from tests.spark.pruning.scans import files_read
from tests.spark.versions import since
from tests.tables import build, put_all

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


@pytest.mark.few(2)
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
