"""Joins with filtered dimensions: files of the fact without a key are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from tests.spark.pruning.costs import check_costs
from tests.spark.pruning.scans import files_read, with_and_without

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
