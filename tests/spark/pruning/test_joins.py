"""Joins: files without a key of the other side are skipped."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from skipindex.spark.pruning import dimensions
from tests.spark.pruning.costs import check_costs
from tests.spark.pruning.scans import files_read, with_and_without
from tests.tables import build, made, put

pytestmark = pytest.mark.spark


N_FILES = 12
ROWS = 2000
CUSTOMERS = 240
"""Each file has the orders of a twelfth of them."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Orders in twelve files, their customers and their parts."""
    folder = tmp_path_factory.mktemp("star")
    (folder / "orders").mkdir()
    draw = np.random.default_rng(5)
    for file in range(N_FILES):
        customers = draw.integers(file * 20, file * 20 + 20, ROWS, np.int32)
        parts = draw.integers(0, 60, ROWS, np.int64) * N_FILES + (file * 5) % N_FILES
        orders = {
            "customer": customers,
            "part": parts,
            "label": [f"c{key}" for key in customers],
            "price": draw.random(ROWS),
        }
        pq.write_table(pa.table(orders), folder / f"orders/part-{file:02}.parquet")
    keys = np.arange(CUSTOMERS, dtype=np.int64)
    customers = {
        "key": keys,
        "label": [f"c{key}" for key in keys],
        "city": [f"city {key // 10}" for key in keys],
    }
    (folder / "customers").mkdir()
    pq.write_table(pa.table(customers), folder / "customers/part-0.parquet")
    parts = {"key": np.arange(720), "brand": np.arange(720) % 60}
    (folder / "parts").mkdir()
    pq.write_table(pa.table(parts), folder / "parts/part-0.parquet")
    sx.build_indexes(
        folder / "orders", {"customer": "bitmap", "part": "bitmap", "label": "bitmap"}
    )
    return folder


@pytest.fixture
def star(spark: SparkSession, folder: Path) -> Iterator[SparkSession]:
    for name in ("orders", "customers", "parts"):
        spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    sx.enable(spark)
    yield spark
    sx.disable(spark)
    spark.conf.unset("skipindex.enabled")


def city(number: int) -> str:
    return f"c.city = 'city {number}'"


def test_each_column_that_a_side_is_joined_by_needs_its_keys(
    star: SparkSession,
) -> None:
    text = (
        "SELECT count(*) FROM orders o JOIN customers c ON o.label = c.label "
        f"AND o.customer = c.key WHERE {city(3)}"
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


def test_a_dimension_that_changed_is_asked_anew(
    star: SparkSession, folder: Path
) -> None:
    path = folder / "customers/part-0.parquet"
    before = path.read_bytes()
    text = (
        "SELECT count(*) FROM orders JOIN customers c ON customer = c.key "
        f"WHERE {city(3)}"
    )
    (n_before,) = star.sql(text).first() or ()
    try:
        moved = pq.read_table(path).to_pydict()
        moved["city"] = ["city 3"] * CUSTOMERS
        pq.write_table(pa.table(moved), path)
        (n_after,) = star.sql(text).first() or ()
    finally:
        path.write_bytes(before)
    assert (n_before < n_after) == (n_after == N_FILES * ROWS)
    assert n_after == N_FILES * ROWS


def days(path: Path, *ks: int, name: str = "d") -> None:
    """A file of a dimension whose rows all have one name."""
    put(path, {"k": pa.array(ks, pa.int32()), "name": [name] * len(ks)})


def make_sides(folder: Path) -> None:
    for i in range(N_FILES):
        put(
            folder / f"fact/{i:02}.parquet",
            {
                "k": pa.array([i] * 9, pa.int32()),
                "day": pa.array([i] * 9, pa.int32()).cast(pa.date32()),
                "price": pa.array([Decimal(i)] * 9, pa.decimal128(9, 2)),
                "v": ["x" * 999 + str(i)] * 9,
            },
        )
    kinds = dict.fromkeys(("k", "day", "price"), "bitmap")
    sx.build_indexes(folder / "fact", kinds, workers=1)
    days(folder / "days/0.parquet", 0, 1)


@pytest.fixture
def side_folder(tmp_path: Path) -> Path:
    """A fact in twelve files, each with a key of its own, and a dimension of two."""
    return made(tmp_path, make_sides)


class Star:
    """The tables as they are now."""

    def __init__(self, spark: SparkSession, side_folder: Path) -> None:
        self.spark, self.folder = spark, side_folder

    def read(self, name: str) -> DataFrame:
        return self.spark.read.parquet(str(self.folder / name))

    def days(self, condition: str) -> DataFrame:
        return self.read("days").where(condition)

    def joined(self, side: DataFrame, key: str = "k") -> DataFrame:
        return self.read("fact").join(side, key).groupBy("k").count().orderBy("k")

    def check(
        self, side: Callable[[], DataFrame], n_files: int, key: str = "k"
    ) -> None:
        """The rows are those without skipping, of so many files of the fact."""
        _, some, everything = with_and_without(
            self.spark, lambda: self.joined(side(), key), "/fact"
        )
        assert (some, everything) == (n_files, N_FILES)


@pytest.fixture
def side_star(pruned: SparkSession, side_folder: Path) -> Star:
    return Star(pruned, side_folder)


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
        assert files_read(df, "/fact") == N_FILES
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


# -- what a side is -----------------------------------------------------------------


# -- when it changes ------------------------------------------------------------------


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


def test_a_slow_side_takes_its_keys_and_not_the_plan(
    side_star: Star, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = threading.Event()

    def hang(*_: object, **__: object) -> object:
        ends.wait(60)
        raise OSError("the store is gone")

    monkeypatch.setattr(dimensions, "dataset_of", hang)
    side_star.spark.conf.set("skipindex.timeLimit", "3")
    try:
        side = side_star.days("name = 'd'")
        for _ in range(2):
            df = side_star.read("fact").where("k < 6").join(side, "k").orderBy("k")
            assert files_read(df, "/fact") == 6
            assert {row.k for row in df.collect()} == {0, 1}
            (told,) = sx.last_plans(side_star.spark)[-1].dimensions
            assert "too long" in told.problem
    finally:
        side_star.spark.conf.unset("skipindex.timeLimit")
        ends.set()


# -- random ---------------------------------------------------------------------------


@pytest.mark.slow
def test_random_conditions_have_the_same_rows(
    pruned: SparkSession, tmp_path: Path, seed: int, share: int
) -> None:
    draw = np.random.default_rng(seed)
    write_star(tmp_path, draw)
    for name in ("orders", "customers", "parts"):
        frame = pruned.read.parquet(str(tmp_path / name))
        frame.createOrReplaceTempView(name)

    def leaf() -> str:
        n = int(draw.integers(0, 26))
        return str(
            draw.choice(
                [
                    f"c.city = 'city {n}'",
                    f"c.city < 'city {n}'",
                    f"c.city IN ('city {n}', 'city {n + 3}', NULL)",
                    f"c.city NOT IN ('city {n}', 'city {n + 1}')",
                    f"c.size <=> {n % 6}",
                    f"c.size > {n % 6}",
                    "c.size IS NULL",
                    f"c.born BETWEEN date'1971-01-01' AND date'1971-0{n % 9 + 1}-28'",
                    f"month(c.born) = {n % 12 + 1}",
                    f"c.key > {n * 10}",
                    f"c.rate > {n}",
                    "c.rate = double('NaN')",
                    f"reverse(c.city) > '{n}'",
                    f"price < {n}",
                    f"p.brand = {n}",
                    f"p.brand BETWEEN {n} AND {n + 3}",
                    f"c.size + p.brand = {n}",
                ]
            )
        )

    def tree(depth: int) -> str:
        kind = draw.choice(["leaf", "not", "and", "or"]) if depth else "leaf"
        if kind == "leaf":
            return leaf()
        if kind == "not":
            return f"NOT ({tree(depth - 1)})"
        return f"({tree(depth - 1)} {kind.upper()} {tree(depth - 1)})"

    n_skipped = 0
    for _ in range(25 // min(share, 2)):
        where = " AND ".join(tree(2) for _ in range(int(draw.integers(1, 4))))
        join = draw.choice(["JOIN", "LEFT SEMI JOIN", "LEFT JOIN", "RIGHT JOIN"])
        text = (
            "SELECT count(*), sum(price) FROM orders o JOIN customers c "
            f"ON customer = c.key JOIN parts p ON o.code = p.code WHERE {where}"
        )
        if join != "JOIN":
            side = f"(SELECT * FROM customers c WHERE {where.replace('p.', 'c.')})"
            if "brand" in where or "price" in where:
                continue
            text = f"SELECT count(*) FROM orders o {join} {side} c ON customer = c.key"
        _, some, everything = with_and_without(
            pruned, lambda text=text: pruned.sql(text), "/orders"
        )
        n_skipped += everything - some
    assert n_skipped > 0


def write_star(side_folder: Path, draw: Any) -> None:
    """Orders in twelve files, their customers and their parts."""
    for file in range(N_FILES):
        customers = draw.integers(file * 20, file * 20 + 20, 300, np.int32)
        parts = draw.integers(0, 60, 300, np.int64) * N_FILES + (file * 5) % N_FILES
        orders = {
            "customer": pa.array(customers, mask=customers % 7 == 3),
            "code": [f"p{part}" for part in parts],
            "price": draw.integers(0, 100, 300),
        }
        put(side_folder / f"orders/part-{file:02}.parquet", orders)
    keys = np.arange(240, dtype=np.int64)
    rates = draw.choice([float("nan"), -0.0, 0.0, 7.5, 30.0], 242)
    customers = {
        "key": pa.array([*keys, None, None], pa.int64()),
        "city": [*(f"city {key // 10}" for key in keys), "city 3", None],
        "size": pa.array([*(k % 5 or None for k in keys.tolist()), 1, 2]),
        "born": pa.array([*(7 * keys), 0, 1], pa.int32()).cast(pa.date32()),
        "rate": rates,
    }
    put(side_folder / "customers/part-0.parquet", customers)
    brands = {"code": [f"p{i}" for i in range(720)], "brand": np.arange(720) % 60}
    put(side_folder / "parts/part-0.parquet", brands)
    build(side_folder / "orders", {"customer": "bitmap", "code": "bitmap"})
