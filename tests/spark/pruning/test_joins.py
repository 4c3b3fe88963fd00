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
from tests.rewrite.arrow_writer import optimized
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


JOINS = {
    f"SELECT count(*), sum(part) FROM orders JOIN customers c ON customer = c.key "
    f"WHERE {city(3)}": 1,
    f"SELECT count(*) FROM customers c, orders o WHERE o.customer = c.key "
    f"AND ({city(3)} OR {city(9)})": 2,
    "SELECT count(*) FROM orders WHERE customer IN "
    "(SELECT key FROM customers WHERE city = 'city 5')": 1,
    "SELECT count(*) FROM orders LEFT SEMI JOIN customers c "
    f"ON customer = c.key AND {city(7)}": 1,
    "SELECT count(*) FROM orders JOIN (SELECT DISTINCT key AS k FROM customers c "
    f"WHERE {city(8)}) ON customer = k": 1,
    "SELECT city, count(*) FROM orders o JOIN customers c ON o.label = c.label "
    "WHERE c.city LIKE 'city 1_' GROUP BY city": 5,
    # By rows: customers of 12 files and parts of 12, and one file has both.
    "SELECT count(*) FROM orders JOIN customers c ON customer = c.key "
    "JOIN parts p ON part = p.key WHERE c.city IN ('city 3', 'city 9') "
    "AND p.brand IN (5, 17)": 1,
    f"SELECT count(*) FROM orders JOIN customers c ON customer = c.key WHERE {city(99)}"
    "": 0,
    # These need rows that the other side does not have.
    "SELECT count(*) FROM orders LEFT JOIN customers c ON customer = c.key "
    f"AND {city(3)}": N_FILES,
    f"SELECT count(*) FROM orders LEFT ANTI JOIN customers c ON customer = c.key "
    f"AND {city(3)}": N_FILES,
    "SELECT count(*) FROM orders FULL JOIN (SELECT * FROM customers c WHERE "
    f"{city(3)}) c ON customer = c.key": N_FILES,
    "SELECT count(*) FROM orders RIGHT JOIN (SELECT * FROM customers c WHERE "
    f"{city(3)}) c ON customer = c.key": 1,
    # The fact and the dimension under names of views.
    "SELECT count(*) FROM (SELECT customer AS c, price AS p FROM orders) JOIN "
    "(SELECT key AS k, city AS town FROM customers) ON c = k WHERE town = 'city 3'": 1,
    # A condition that Spark alone can evaluate leaves the others.
    "SELECT count(*) FROM orders JOIN customers c ON customer = c.key WHERE "
    f"{city(3)} AND hash(c.label) <> 3": 1,
    f"SELECT count(*) FROM orders JOIN customers c ON customer = c.key WHERE {city(3)} "
    "OR hash(c.label) = 3": N_FILES,
    "SELECT count(*) FROM orders JOIN customers c ON customer = c.key "
    f"AND {city(3)} AND price > c.key": 1,
    # Rows that the query itself has.
    "SELECT count(*) FROM orders WHERE customer IN (SELECT * FROM VALUES (7), (30))": 2,
    "SELECT count(*) FROM orders JOIN (VALUES ('c7'), (NULL)) v(l) ON label = l": 1,
    # NULL equals NULL here, and text is compared as a number.
    "SELECT count(*) FROM orders JOIN customers c ON customer <=> c.key "
    f"WHERE {city(3)}": N_FILES,
    "SELECT count(*) FROM orders JOIN (SELECT string(key) AS k FROM customers c "
    f"WHERE {city(3)}) ON customer = k": N_FILES,
    "SELECT count(*) FROM orders JOIN (SELECT key + 1 AS k FROM customers c "
    f"WHERE {city(3)}) ON customer = k": N_FILES,
    # Rows of an aggregate and of a sample, and those that chance leaves.
    "SELECT count(*) FROM orders JOIN (SELECT max(key) AS k FROM customers c "
    f"WHERE {city(3)} GROUP BY city) ON customer = k": N_FILES,
    "SELECT count(*) >= 0 FROM orders JOIN (SELECT * FROM customers TABLESAMPLE "
    f"(50 PERCENT) c WHERE {city(3)}) ON customer = key": N_FILES,
    "SELECT count(*) >= 0 FROM orders JOIN (SELECT *, rand() AS r FROM customers) c "
    f"ON customer = key WHERE r < 2 AND {city(3)}": N_FILES,
    # Which rows a limit lets through may change from one run to the next.
    "SELECT count(*) > 0 FROM orders JOIN (SELECT key FROM customers LIMIT 3) c "
    "ON customer = c.key": N_FILES,
    # A number that counts the rows would be another one over fewer files.
    "SELECT count(*) FROM (SELECT customer, monotonically_increasing_id() AS n "
    f"FROM orders) JOIN customers c ON customer = c.key WHERE {city(3)} "
    "AND n % 8589934592 < 7000": N_FILES,
    # A total over fewer rows would be another one.
    "SELECT max(total) FROM (SELECT customer, sum(part) OVER () AS total "
    f"FROM orders) JOIN customers c ON customer = c.key WHERE {city(3)}": N_FILES,
}
"""Queries, and at most how many files of the orders they read."""


@pytest.mark.few(2)
@pytest.mark.parametrize("text", JOINS)
def test_a_join_reads_the_files_with_wanted_keys(star: SparkSession, text: str) -> None:
    _, some, everything = with_and_without(star, lambda: star.sql(text), "/orders")
    assert some == JOINS[text]
    assert everything in {0, N_FILES}  # 0: Spark has seen that a side is empty


SIDES = [
    f"SELECT DISTINCT key FROM customers c WHERE {city(8)}",
    f"SELECT c.key FROM customers c JOIN parts p ON c.key = p.key WHERE {city(8)}",
]


@pytest.mark.few(1)
@pytest.mark.parametrize("side", SIDES)
def test_no_job_runs_for_keys(star: SparkSession, side: str) -> None:
    text = f"SELECT count(*) FROM orders LEFT SEMI JOIN ({side}) k ON customer = k.key"
    star.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        enabled, plain = check_costs(star, lambda: star.sql(text))
    finally:
        star.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    assert enabled.jobs <= plain.jobs
    assert enabled.files == plain.files - N_FILES + 1


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


@pytest.mark.slow
def test_without_an_index_no_keys_are_computed(
    star: SparkSession, tmp_path: Path
) -> None:
    rows = star.table("orders").drop("label")
    rows.repartition(4).write.parquet(str(tmp_path / "orders"))
    sx.build_indexes(tmp_path / "orders", {"*": "minmax"})
    star.read.parquet(str(tmp_path / "orders")).createOrReplaceTempView("plain_orders")
    text = (
        "SELECT count(*) FROM plain_orders JOIN customers c ON customer = c.key "
        f"WHERE {city(3)}"
    )
    assert files_read(star.sql(text), "/orders") == 4
    assert not any(plan.dimensions for plan in sx.last_plans(star)[-1:])


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


def test_few_keys_are_shown(star: SparkSession) -> None:
    query = "SELECT count(*) FROM orders JOIN customers c ON customer = c.key WHERE "
    star.sql(f"{query} c.label IN ('c7', 'c30')").collect()
    assert any("customer IN (7, 30)" in one.condition for one in sx.last_plans(star))


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


def test_a_side_with_a_join_gives_keys_that_meet_both(side_star: Star) -> None:
    days(side_star.folder / "days/1.parquet", 7, 8)
    days(side_star.folder / "more/0.parquet", 1, 8, 9)
    side_star.check(
        lambda: side_star.days("name = 'd'").join(
            side_star.read("more").where("k > 0").select("k"), "k", "left_semi"
        ),
        2,
    )


@pytest.fixture
def chain(side_star: Star) -> Star:
    """Customers of nations of regions: the second region has the keys 6 to 11."""
    put(side_star.folder / "customer/0.parquet", {"k": range(N_FILES), "n": [0, 1] * 6})
    put(side_star.folder / "nation/0.parquet", {"n": [0, 1], "r": [0, 1]})
    put(side_star.folder / "region/0.parquet", {"r": [0, 1], "name": ["A", "B"]})
    for name in ("fact", "customer", "nation", "region"):
        side_star.read(name).createOrReplaceTempView(name)
    return side_star


CHAINS = {
    "SELECT count(*) FROM fact JOIN customer USING (k) JOIN nation USING (n) "
    "JOIN region USING (r) WHERE name = 'B'": 6,
    "SELECT count(*) FROM fact JOIN (SELECT k FROM customer JOIN nation USING (n) "
    "JOIN region USING (r) WHERE name = 'B') USING (k)": 6,
    "SELECT count(*) FROM region JOIN nation USING (r) JOIN customer USING (n) "
    "JOIN fact USING (k) WHERE name = 'B' AND k < 6": 3,
    "SELECT count(*) FROM fact WHERE k IN (SELECT k FROM customer WHERE n IN "
    "(SELECT n FROM nation WHERE r = 1))": 6,
    # Customers without such a region are rows too.
    "SELECT count(*) FROM fact JOIN customer USING (k) LEFT JOIN (SELECT n FROM nation "
    "WHERE r = 1) USING (n)": N_FILES,
    "SELECT count(*) FROM fact JOIN (SELECT k FROM customer LEFT ANTI JOIN (SELECT n "
    "FROM nation WHERE r = 1) USING (n)) USING (k)": N_FILES,
    "SELECT count(*) FROM fact JOIN (SELECT k, name FROM customer FULL JOIN region "
    "ON n = r AND name = 'B') USING (k)": N_FILES,
}
"""Queries, and how many files of the fact they read."""


@pytest.mark.few(1)
@pytest.mark.parametrize("text", CHAINS)
def test_dimensions_of_dimensions(chain: Star, text: str) -> None:
    spark = chain.spark
    _, some, everything = with_and_without(spark, lambda: spark.sql(text), "/fact")
    assert (some, everything) == (CHAINS[text], N_FILES)


@pytest.mark.slow
def test_keys_that_are_dates_and_decimals(side_star: Star) -> None:
    put(
        side_star.folder / "side/0.parquet",
        {
            "day": pa.array([3, 5, None], pa.int32()).cast(pa.date32()),
            "price": pa.array([Decimal(5), Decimal(7), None], pa.decimal128(9, 2)),
            "p": pa.array([Decimal(5), Decimal(7), None], pa.decimal128(12, 1)),
            "name": ["a", "b", "a"],
        },
    )
    side_star.check(
        lambda: side_star.read("side").where("name = 'a'").select("day"), 1, "day"
    )
    side_star.check(
        lambda: side_star.read("side").where("name < 'c'").select("price"), 2, "price"
    )
    # Spark casts both sides of these.
    wide = lambda: side_star.read("side").selectExpr("p AS price").where("p > 0")  # noqa: E731
    side_star.check(wide, N_FILES, "price")


@pytest.fixture
def parted(side_star: Star) -> str:
    """The path of a side in two folders that name a value."""
    days(side_star.folder / "parted/p=1/0.parquet", 3, 4)
    days(side_star.folder / "parted/p=2/0.parquet", 4, 5, 6, name="e")
    return str(side_star.folder / "parted")


def test_folders_and_files_as_sides(side_star: Star, parted: str) -> None:
    spark, path = side_star.spark, parted
    side_star.check(lambda: spark.read.parquet(path).where("p = 1 AND name = 'd'"), 2)
    one = f"{path}/p=2/0.parquet"
    side_star.check(lambda: spark.read.parquet(one).where("name = 'e'"), 3)
    two = (f"{path}/p=1", f"{path}/p=2")
    side_star.check(
        lambda: spark.read.option("basePath", path).parquet(*two).where("name = 'd'"), 2
    )


@pytest.mark.slow
def test_more_folders_as_sides(side_star: Star, parted: str) -> None:
    spark, path = side_star.spark, parted
    side_star.check(lambda: spark.read.parquet(path).where("p = 2"), 3)
    side_star.check(
        lambda: spark.read.schema("k INT, p INT").parquet(path).where("p < 2"), 2
    )
    side_star.check(lambda: spark.read.parquet(f"{path}/p=2").where("name = 'e'"), 3)


def test_a_side_in_other_capitals(side_star: Star) -> None:
    path = str(side_star.folder / "days")
    sides: list[tuple[Callable[[], DataFrame], int]] = [
        (lambda: side_star.days("NAME = 'd'").selectExpr("K AS k"), 2),
        (
            lambda: (
                side_star.spark.read.schema("K INT, NAME STRING")
                .parquet(path)
                .where("name = 'd'")
            ),
            N_FILES,
        ),
    ]
    for side, n_files in sides:
        side_star.check(side, n_files)


TABLES = {
    "padded": "k INT, name CHAR(3)",
    "keyed": "k CHAR(3), name STRING",
    "grown": "k INT, name STRING DEFAULT 'd'",
    "split": "k INT, name STRING, p INT",
}


@pytest.fixture
def tables(side_star: Star) -> Iterator[SparkSession]:
    """Tables of the catalog, by the names in TABLES."""
    spark = side_star.spark
    for name, columns in TABLES.items():
        more = " PARTITIONED BY (p)" if name == "split" else ""
        place = side_star.folder / "catalog" / name
        spark.sql(
            f"CREATE TABLE side_{name} ({columns}) USING parquet{more} "
            f"LOCATION '{place}'"
        )
    yield spark
    for name in TABLES:
        spark.sql(f"DROP TABLE side_{name}")


def test_tables_of_the_catalog_as_sides(side_star: Star, tables: SparkSession) -> None:
    tables.sql("INSERT INTO side_padded VALUES (2, 'd'), (3, 'e')")
    for text in ("name = 'd'", "k = 2"):
        _, some, _ = with_and_without(
            tables,
            lambda text=text: side_star.joined(tables.table("side_padded").where(text)),
            "/fact",
        )
        assert some == (1 if text.startswith("k") else N_FILES)
    tables.sql("INSERT INTO side_keyed VALUES ('2', 'd'), ('3', 'e')")
    fact = side_star.read("fact").selectExpr("string(k) AS t", "v")
    fact.write.parquet(str(side_star.folder / "text"))
    build(side_star.folder / "text", {"t": "bitmap"})

    def by_text() -> DataFrame:
        side = tables.table("side_keyed").where("name = 'd'").toDF("t", "name")
        return side_star.read("text").join(side, "t")

    with_and_without(tables, by_text)
    days(side_star.folder / "catalog/grown/0.parquet", 4, 5, name="e")
    put(side_star.folder / "catalog/grown/1.parquet", {"k": pa.array([8], pa.int32())})
    tables.sql("REFRESH TABLE side_grown")
    side_star.check(lambda: tables.table("side_grown").where("name = 'd'"), N_FILES)
    rows = side_star.joined(tables.table("side_grown").where("name = 'd'")).collect()
    assert [row.k for row in rows] == [8]


def test_partitions_of_the_catalog_as_sides(
    side_star: Star, tables: SparkSession
) -> None:
    """A catalog may say that a folder's rows have another value than its name."""
    days(side_star.folder / "elsewhere/p=9/0.parquet", 3, 4)
    days(side_star.folder / "catalog/split/p=5/0.parquet", 6)
    place = side_star.folder / "elsewhere/p=9"
    tables.sql(f"ALTER TABLE side_split ADD PARTITION (p=1) LOCATION '{place}'")
    tables.sql("ALTER TABLE side_split ADD PARTITION (p=5)")

    def rows(where: str) -> list[int]:
        def query() -> DataFrame:
            return side_star.joined(tables.table("side_split").where(where))

        with_and_without(tables, query)
        return keys_of(query())

    assert rows("p = 1") == [3, 4]
    assert rows("p = 9") == []
    assert rows("p < 9 AND name = 'd'") == [3, 4, 6]


def test_a_side_that_is_optimized_and_not_published_yet(side_star: Star) -> None:
    """Spark lists its old files, and reads the new ones."""
    for i in range(4):
        days(side_star.folder / f"days/{i}.parquet", 2 * i, 2 * i + 1, name=f"n{i}")
    build(side_star.folder / "days", {"name": "bitmap", "k": "minmax"})
    optimized(side_star.folder / "days", cluster_by=["k"], rows_per_file=3)
    side_star.check(lambda: side_star.days("name = 'n2'"), 2)


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


def test_a_side_that_cannot_be_read_by_the_planner(side_star: Star) -> None:
    old = pq.read_table(side_star.folder / "days/0.parquet")
    times = pa.array([0, 10**15], pa.timestamp("us", "UTC"))
    meta = {"org.apache.spark.version": "2.4.8"}
    table = old.append_column("t", times).replace_schema_metadata(meta)
    pq.write_table(table, side_star.folder / "days/0.parquet")
    mode = side_star.spark.conf.get("spark.sql.parquet.datetimeRebaseModeInRead")
    assert mode == "CORRECTED", "all sessions of the tests read so"
    side_star.check(lambda: side_star.days("t < timestamp'1980-01-01'"), N_FILES)
    (told,) = sx.last_plans(side_star.spark)[-1].dimensions
    assert "calendar" in told.problem


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


def test_a_function_of_the_users_gives_no_keys(side_star: Star) -> None:
    from pyspark.sql import functions as sf  # noqa: PLC0415

    is_even = sf.udf(lambda k: k % 2 == 0, "boolean")
    side_star.check(lambda: side_star.days("name = 'd'").where(is_even("k")), N_FILES)


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
