"""Plans that become parts of others, and listings that Spark takes for one another."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from skipindex.spark.pruning.query_planner import QueryPlanner
from tests.spark.pruning.costs import check_costs
from tests.spark.pruning.scans import dataset_of, files_read, set_for
from tests.spark.pruning.worlds import World
from tests.tables import build, put, put_all

pytestmark = pytest.mark.spark


@pytest.fixture
def both(pruned: SparkSession, world_of: Callable[[str], World]) -> SparkSession:
    """A session with tables of like size as views; no test changes them."""
    assert pruned is not None
    return world_of("plans").session


def first_leaf(spark: SparkSession, query: str) -> Any:
    """A part of an optimized plan."""
    plan = spark.sql(query)._jdf.queryExecution().optimizedPlan()
    while plan.children().size():
        plan = plan.children().apply(0)
    return plan


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

    with set_for(both, {"spark.sql.autoBroadcastJoinThreshold": "-1"}):
        scan, other = scan_of("one.id < 15"), scan_of("one.id < 35")
    location, conditions = scan.relation().location(), scan.dataFilters()
    assert (listed(conditions), listed(other.dataFilters())) == (2, 4)
    monkeypatch.setattr(QueryPlanner, "_answer", failed)
    assert (listed(conditions), listed(other.dataFilters())) == (2, 12)


JOINED = "SELECT id FROM one JOIN small ON id = k WHERE name < 'n4'"


FIRST = "SELECT id FROM one ORDER BY id LIMIT 3"


@pytest.mark.few(2)
@pytest.mark.parametrize("query", [JOINED, FIRST])
@pytest.mark.parametrize("is_enabled", ["true", "false"])
def test_a_part_of_an_optimized_plan_has_all_its_rows(
    both: SparkSession, query: str, is_enabled: str
) -> None:
    """The keys of its former join, and its former LIMIT, do not count any more."""
    plan = first_leaf(both, query)
    with set_for(both, {"skipindex.enabled": is_enabled}):
        assert dataset_of(both, plan).count() == 120


@pytest.mark.parametrize("query", [JOINED, FIRST])
def test_a_part_of_an_optimized_plan_has_all_its_rows_where_the_rule_fails(
    both: SparkSession, query: str
) -> None:
    plan = first_leaf(both, query)
    with set_for(both, {"skipindex.timeLimit": "soon"}):
        assert dataset_of(both, plan).count() == 120


def test_a_part_of_an_optimized_plan_has_all_its_rows_when_none_is_pruned_any_more(
    both: SparkSession,
) -> None:
    """Nothing is left of the files that were taken for its size."""
    query = "SELECT one.id FROM one JOIN two ON one.id = oid WHERE one.id < 15"
    plan = first_leaf(both, query)
    sx.disable(both)
    assert dataset_of(both, plan).where("id > 100").count() == 19


@pytest.mark.parametrize("name", ["'n1'", "'n7'"])
def test_a_part_of_an_optimized_plan_that_is_joined_anew_has_its_new_keys(
    both: SparkSession, name: str
) -> None:
    plan = first_leaf(both, JOINED)
    dataset_of(both, plan).createOrReplaceTempView("part")
    query = f"SELECT id FROM part JOIN small ON id = k WHERE name = {name}"
    assert [row.id for row in both.sql(query).collect()] == [int(name[2])]


def test_estimates_have_a_switch(both: SparkSession) -> None:
    query = "SELECT one.id FROM one JOIN two ON one.id = oid WHERE g = 3"
    with set_for(both, {"skipindex.estimates": "false"}):
        before = len(sx.last_plans(both))
        both.sql(query).collect()
        found = sx.last_plans(both)[before:]
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


def test_sizes_are_of_the_files_that_a_scan_lists(
    pruned: SparkSession, world_of: Callable[[str], World]
) -> None:
    assert pruned is not None
    world = world_of("results")
    query = "SELECT d1.k FROM d1 JOIN d2 ON d1.k = d2.k WHERE d1.k > 0 AND d2.k > 0"
    plan = world.session.sql(query)._jdf.queryExecution().optimizedPlan()
    leaves = plan.collectLeaves()
    for i in range(leaves.size()):
        location = leaves.apply(i).relation().location()
        name = location.rootPaths().apply(0).getName()
        assert location.sizeInBytes() == (world.folder / "listed" / name).stat().st_size


def test_each_column_that_a_side_is_joined_by_needs_its_keys(
    pruned: SparkSession, world_of: Callable[[str], World]
) -> None:
    assert pruned is not None
    star = world_of("star").session
    text = (
        "SELECT count(*) FROM orders o JOIN customers c ON o.label = c.label "
        "AND o.customer = c.key WHERE c.city = 'city 3'"
    )
    enabled, plain = check_costs(star, lambda: star.sql(text))
    assert enabled.jobs <= plain.jobs
    plan = sx.last_plans(star)[-1]
    for column in ("label", "customer"):
        assert f"{column} IN (10 keys)" in plan.condition
    assert [(one.column, one.n_keys) for one in plan.dimensions] == [
        ("label", 10),
        ("customer", 10),
    ]
    assert all(one.folder.endswith("/customers") for one in plan.dimensions)
    assert all(one.seconds > 0 and not one.problem for one in plan.dimensions)


def days(path: Path, *ks: int, name: str = "d") -> None:
    """A file of a dimension whose rows all have one name."""
    put(path, {"k": pa.array(ks, pa.int32()), "name": [name] * len(ks)})


class Star:
    """The tables as they are now."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder

    def read(self, name: str) -> DataFrame:
        return self.spark.read.parquet(str(self.folder / name))

    def days(self, condition: str) -> DataFrame:
        return self.read("days").where(condition)

    def joined(self, side: DataFrame, key: str = "k") -> DataFrame:
        return self.read("fact").join(side, key).groupBy("k").count().orderBy("k")


@pytest.fixture
def side_star(pruned: SparkSession, copied: Callable[..., Path]) -> Star:
    """A fact in twelve files, each with a key of its own, and a dimension of two."""
    folder = copied("keys", "fact").parent
    days(folder / "days/0.parquet", 0, 1)
    return Star(pruned, folder)


def keys_of(df: DataFrame) -> list[int]:
    return [row.k for row in df.collect()]


OPTIMIZED = "name IS NOT NULL AND name = 'd' AND k IS NOT NULL"
"""The condition of the side when Spark has optimized the join."""


@pytest.mark.few(1)
@pytest.mark.parametrize("columns", [["k"], ["k", "name"]])
def test_keys_do_not_come_from_a_cache_of_a_former_listing(
    side_star: Star, columns: list[str]
) -> None:
    """For Spark two scans of a folder are equal, whatever files they list."""
    cached = side_star.days(OPTIMIZED).select(*columns).cache()
    whole = side_star.days(OPTIMIZED).cache()
    assert (cached.count(), whole.count()) == (2, 2)
    try:
        days(side_star.folder / "days/1.parquet", 7, 8)  # by a process of its own
        df = side_star.joined(side_star.days("name = 'd'"))
        assert keys_of(df) == [0, 1, 7, 8]
        assert files_read(df, "/fact") == 4
    finally:
        cached.unpersist(blocking=True)
        whole.unpersist(blocking=True)


@pytest.mark.few(1)
@pytest.mark.parametrize("is_new_first", [False, True])
def test_two_listings_of_a_dimension_in_one_query(
    side_star: Star, *, is_new_first: bool
) -> None:
    """Spark broadcasts one of them and takes it for both, as their folder is one."""
    sides = [side_star.days("name = 'd'").withColumnRenamed("name", "one")]
    days(side_star.folder / "days/1.parquet", 7, 8)
    sides.append(side_star.days("name = 'd'").withColumnRenamed("name", "two"))
    if is_new_first:
        sides.reverse()
    fact = side_star.read("fact")

    def joined() -> list[int]:
        df = fact.join(sides[0], "k").join(sides[1], "k")
        return sorted({row.k for row in df.select("k").collect()})

    found = joined()
    side_star.spark.conf.set("skipindex.enabled", "false")
    assert found == joined()


@pytest.mark.few(1)
@pytest.mark.parametrize("adds", [False, True])
def test_a_cache_that_the_query_reads_itself_gives_its_rows_and_no_keys(
    side_star: Star, *, adds: bool
) -> None:
    side = side_star.days("name = 'd'").cache()
    assert side.count() == 2
    try:
        if adds:
            days(side_star.folder / "days/1.parquet", 7, 8)
        df = side_star.joined(side)
        assert keys_of(df) == [0, 1]
        assert files_read(df, "/fact") == 12
    finally:
        side.unpersist(blocking=True)


def test_a_listing_that_was_refreshed_after_the_query_was_planned(
    side_star: Star,
) -> None:
    side_star.read("days").createOrReplaceTempView("refreshed")
    df = side_star.joined(side_star.spark.table("refreshed").where("name = 'd'"))
    df._jdf.queryExecution().optimizedPlan()
    days(side_star.folder / "days/1.parquet", 7, 8)
    side_star.spark.catalog.refreshTable("refreshed")
    assert keys_of(df) == [0, 1, 7, 8]


def rewrite(side_star: Star, shift: int) -> None:
    """Other keys in a file of the same size and of nearly the same time."""
    path = side_star.folder / "days/0.parquet"
    before = path.stat()
    days(path, 7, 8)
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + shift))


@pytest.mark.few(1)
@pytest.mark.parametrize("shift", [5_000_000, 10**9])
def test_a_side_that_changes_between_planning_and_running(
    side_star: Star, shift: int
) -> None:
    """Spark's listing of it is of before, and its rows are those of now."""
    assert keys_of(side_star.joined(side_star.days("name = 'd'"))) == [0, 1]
    df = side_star.joined(side_star.days("name = 'd'"))
    df._jdf.queryExecution().executedPlan()
    rewrite(side_star, shift)
    assert keys_of(df) == [7, 8]
    assert keys_of(side_star.joined(side_star.days("name = 'd'"))) == [7, 8]
    assert files_read(side_star.joined(side_star.days("name = 'd'")), "/fact") == 2
