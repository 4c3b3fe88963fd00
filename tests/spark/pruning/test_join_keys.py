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


SIDES = {
    f"SELECT DISTINCT key FROM customers c WHERE {city(8)}": 1,
    "SELECT c.key FROM customers c JOIN parts p ON c.key = p.key "
    f"WHERE {city(8)}": N_FILES,
}
"""What has keys, and how many files of the orders are read for them."""


@pytest.mark.few(1)
@pytest.mark.parametrize(("side", "n_files"), SIDES.items())
def test_a_side_runs_in_one_job_or_not_at_all(
    star: SparkSession, side: str, n_files: int
) -> None:
    """One that has to shuffle rows would do so twice."""
    text = f"SELECT count(*) FROM orders LEFT SEMI JOIN ({side}) k ON customer = k.key"
    star.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        enabled, plain = check_costs(star, lambda: star.sql(text))
    finally:
        star.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    assert enabled.jobs == plain.jobs + (n_files < N_FILES)
    assert enabled.files == plain.files - N_FILES + n_files


def test_a_side_runs_once_for_all_columns_that_it_is_joined_by(
    star: SparkSession,
) -> None:
    text = (
        "SELECT count(*) FROM orders o JOIN customers c ON o.label = c.label "
        f"AND o.customer = c.key WHERE {city(3)}"
    )
    enabled, plain = check_costs(star, lambda: star.sql(text))
    assert enabled.jobs == plain.jobs + 1
    condition = sx.last_plans(star)[-1].condition
    for column in ("label", "customer"):
        assert f"{column} IN (10 keys)" in condition


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
    assert not any(" keys)" in plan.condition for plan in sx.last_plans(star))


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
