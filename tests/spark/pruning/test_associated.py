"""Joins with dimensions whose attributes are indexed with the fact's rows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from tests.spark.pruning.scans import files_read, with_and_without
from tests.spark.versions import since

pytestmark = pytest.mark.spark

N_FILES = 12
ROWS = 300
CUSTOMERS = 240
"""Each file has the orders of a twelfth of them, and some without a customer."""


def write(folder: Path) -> Path:
    """Orders in twelve files, their customers, their parts, and a code of each part."""
    (folder / "orders").mkdir(parents=True)
    draw = np.random.default_rng(5)
    for file in range(N_FILES):
        customers = draw.integers(file * 20, file * 20 + 20, ROWS, np.int32)
        parts = draw.integers(0, 60, ROWS, np.int64) * N_FILES + (file * 5) % N_FILES
        orders = {
            "customer": pa.array(customers, mask=customers % 7 == 3),
            "part": parts,
            "code": [f"p{part}" for part in parts],
            "price": draw.integers(0, 100, ROWS),
        }
        pq.write_table(pa.table(orders), folder / f"orders/part-{file:02}.parquet")
    keys = np.arange(CUSTOMERS, dtype=np.int64)
    customers = {
        "key": pa.array([*keys, None, None], pa.int64()),
        "city": [*(f"city {key // 10}" for key in keys), "city 3", None],
        "size": pa.array([*(k % 5 or None for k in keys.tolist()), 1, 2]),
        "born": pa.array([*(7 * keys), 0, 1], pa.int32()).cast(pa.date32()),
    }
    put(folder / "customers/part-0.parquet", customers)
    brands = {"code": [f"p{i}" for i in range(720)], "brand": np.arange(720) % 60}
    put(folder / "parts/part-0.parquet", brands)
    return folder


def put(path: Path, columns: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def associate(folder: Path, indexes: Any = None) -> sx.Table:
    customers, parts = folder / "customers", folder / "parts"
    columns = {
        name: sx.via("customer", customers, "key", name.removeprefix("c_"))
        for name in ("c_city", "c_size", "c_born")
    }
    columns["brand"] = sx.via("code", parts, "code", "brand")
    return sx.build_indexes(
        folder / "orders", indexes or {}, associated=columns, workers=1
    ).table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write(tmp_path_factory.mktemp("star"))
    associate(folder)
    return folder


def define(spark: SparkSession, folder: Path) -> None:
    for name in ("orders", "customers", "parts"):
        spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)


@pytest.fixture
def star(pruned: SparkSession, folder: Path) -> SparkSession:
    define(pruned, folder)
    return pruned


BY_CITY = "SELECT count(*), sum(price) FROM orders JOIN customers c ON customer = c.key"
JOINS = {
    f"{BY_CITY} WHERE c.city = 'city 3'": 1,
    f"{BY_CITY} WHERE c.city IN ('city 3', 'city 9') AND c.size = 2": 2,
    f"{BY_CITY} WHERE NOT (c.city < 'city 9')": 1,
    f"{BY_CITY} WHERE c.size IS NULL AND c.city LIKE '% 5'": 1,
    f"{BY_CITY} WHERE c.city = 'city 99'": 0,
    f"{BY_CITY} WHERE year(c.born) = 1974": 2,
    f"{BY_CITY} WHERE upper(c.city) = 'CITY 4' AND price > 50": 1,
    # A key of the dimension is not indexed here, and what is left is a superset.
    f"{BY_CITY} WHERE c.city = 'city 3' AND c.key % 2 = 1": 1,
    f"{BY_CITY} WHERE c.city = 'city 3' OR c.key % 2 = 1": N_FILES,
    "SELECT count(*) FROM orders WHERE customer IN "
    "(SELECT key FROM customers WHERE city = 'city 5')": 1,
    "SELECT count(*) FROM orders LEFT SEMI JOIN customers c "
    "ON customer = c.key AND c.city = 'city 7'": 1,
    "SELECT count(*) FROM orders RIGHT JOIN (SELECT * FROM customers c WHERE "
    "c.city = 'city 3') c ON customer = c.key": 1,
    "SELECT count(*) FROM orders JOIN (SELECT key % 1000 AS k FROM customers WHERE "
    "city = 'city 3') ON customer = k": N_FILES,
    "SELECT count(*) FROM orders JOIN (SELECT key AS k, city AS town FROM customers) "
    "ON customer = k WHERE town = 'city 3'": 1,
    "SELECT brand, count(*) FROM orders o JOIN parts p ON o.code = p.code "
    "WHERE p.brand = 17 GROUP BY brand": 1,
    # By rows: customers of two files and parts of two, and one file has both.
    "SELECT count(*) FROM orders o JOIN customers c ON customer = c.key "
    "JOIN parts p ON o.code = p.code WHERE c.city IN ('city 3', 'city 9') "
    "AND p.brand IN (5, 17)": 1,
    # These need rows that the other side does not have.
    "SELECT count(*) FROM orders LEFT JOIN customers c ON customer = c.key "
    "AND c.city = 'city 3'": N_FILES,
    "SELECT count(*) FROM orders LEFT ANTI JOIN customers c ON customer = c.key "
    "AND c.city = 'city 3'": N_FILES,
    "SELECT count(*) FROM orders FULL JOIN (SELECT * FROM customers c WHERE "
    "c.city = 'city 3') c ON customer = c.key": N_FILES,
    # NULL meets nothing in a join, whatever its attributes would be.
    f"{BY_CITY} WHERE c.city IS NULL": 0,
}
"""Queries, and at most how many files of the orders they read."""


@pytest.mark.few(2)
@pytest.mark.parametrize("text", JOINS)
def test_conditions_of_dimensions_are_judged_by_the_facts_indexes(
    star: SparkSession, text: str
) -> None:
    _, some, everything = with_and_without(star, lambda: star.sql(text), "/orders")
    assert some == JOINS[text]
    assert everything in {0, N_FILES}  # 0: Spark has seen that a side is empty
    assert not any(" keys)" in plan.condition for plan in sx.last_plans(star))


def test_what_was_judged_is_told(star: SparkSession) -> None:
    star.sql(f"{BY_CITY} WHERE c.city = 'city 3'").collect()
    newest = sx.last_plans(star)[-1]
    assert newest.condition.endswith("(city = 'city 3')")
    assert newest.n_read == 1


@pytest.mark.slow
def test_keys_are_used_beside_what_is_not_judged(
    pruned: SparkSession, tmp_path: Path
) -> None:
    folder = write(tmp_path / "star")
    associate(folder, {"customer": "bitmap"})
    define(pruned, folder)
    both = f"{BY_CITY} WHERE c.city IN ('city 3', 'city 9') AND c.key < 50"
    _, some, _ = with_and_without(pruned, lambda: pruned.sql(both), "/orders")
    assert some == 1
    condition = sx.last_plans(pruned)[-1].condition
    assert "city IN" in condition
    assert "customer IN (10 keys)" in condition


@pytest.mark.slow
def test_a_dimension_that_is_too_large_for_its_keys_is_judged(
    pruned: SparkSession, tmp_path: Path
) -> None:
    folder = write(tmp_path / "star")
    path = folder / "customers/part-0.parquet"
    table = pq.read_table(path)
    notes = [np.random.default_rng(i).bytes(2000).hex() for i in range(len(table))]
    pq.write_table(table.append_column("note", pa.array(notes)), path)
    associate(folder, {"customer": "bitmap"})
    define(pruned, folder)
    orders = sum(file.stat().st_size for file in (folder / "orders").glob("*.parquet"))
    assert path.stat().st_size > orders / 4
    for text, n_files in (
        (f"{BY_CITY} WHERE c.city = 'city 3'", 1),
        (f"{BY_CITY} WHERE c.note < '7'", N_FILES),
    ):
        _, some, _ = with_and_without(pruned, lambda t=text: pruned.sql(t), "/orders")
        assert some == n_files
        assert " keys)" not in sx.last_plans(pruned)[-1].condition


@pytest.mark.slow
def test_executors_build_the_same(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "star"
    shutil.copytree(folder / "customers", copy / "customers")
    shutil.copytree(folder / "orders", copy / "orders")
    shutil.rmtree(copy / "orders" / "_skipindex")
    city = sx.via("customer", copy / "customers", "key", "city")
    built = sx.build_indexes(
        copy / "orders", {}, associated={"c_city": city}, spark=spark
    )
    assert built.notes == ()
    for text in ("c_city = 'city 3'", "c_city IS NULL", "c_city > 'city 5'"):
        expected = sx.plan_files(text, table=folder / "orders")
        found = built.table.plan(text)
        assert found.paths == expected.paths
        assert found.count_bounds == expected.count_bounds


# -- when the dimension changes ----------------------------------------------------


def everyone_in_city_3(folder: Path) -> None:
    path = folder / "customers/part-0.parquet"
    table = pq.read_table(path)
    pq.write_table(moved(table), path)


def moved(table: pa.Table) -> pa.Table:
    at = table.schema.get_field_index("city")
    return table.set_column(at, "city", pa.array(["city 3"] * len(table)))


def another_file(folder: Path) -> None:
    table = pq.read_table(folder / "customers/part-0.parquet")
    none = pa.nulls(len(table), pa.int64())
    pq.write_table(
        table.set_column(0, "key", none), folder / "customers/part-1.parquet"
    )


def renamed_file(folder: Path) -> None:
    everyone_in_city_3(folder)
    path = folder / "customers/part-0.parquet"
    path.rename(folder / "customers/part-9.parquet")


def swapped_in_place(folder: Path) -> None:
    """Of the same size and of nearly the same time."""
    path = folder / "customers/part-0.parquet"
    before = path.stat()
    everyone = pq.read_table(path)
    order = pa.array([*range(CUSTOMERS - 1, -1, -1), CUSTOMERS, CUSTOMERS + 1])
    swapped = everyone.set_column(0, "key", everyone["key"].take(order))
    pq.write_table(swapped, path)
    padded = path.read_bytes()
    assert len(padded) - before.st_size < 200
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 5_000_000))


@pytest.mark.slow
@pytest.mark.parametrize(
    "change", [another_file, swapped_in_place, everyone_in_city_3, renamed_file]
)
def test_a_dimension_that_changed_is_not_judged(
    pruned: SparkSession, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    folder = write(tmp_path / "star")
    table = associate(folder)
    define(pruned, folder)
    text = f"{BY_CITY} WHERE c.city = 'city 3'"

    def query() -> DataFrame:
        define(pruned, folder)
        return pruned.sql(text)

    assert files_read(query(), "/orders") == 1
    change(folder)
    _, some, everything = with_and_without(pruned, query, "/orders")
    assert some == everything == N_FILES
    table.refresh_indexes(workers=1)
    _, some, _ = with_and_without(pruned, query, "/orders")
    assert some == (1 if change in {another_file, swapped_in_place} else N_FILES)


@pytest.mark.few(1)
@pytest.mark.parametrize("refreshed", [False, True])
def test_a_dimension_that_changed_after_the_query_was_defined(
    pruned: SparkSession, tmp_path: Path, *, refreshed: bool
) -> None:
    """Spark's listing of it is of before, and its rows are those of now."""
    folder = write(tmp_path / "star")
    table = associate(folder)
    define(pruned, folder)
    query = pruned.sql(f"{BY_CITY} WHERE c.city = 'city 3'")
    same_size = (folder / "customers/part-0.parquet").stat().st_size
    swapped_in_place(folder)
    path = folder / "customers/part-0.parquet"
    assert abs(path.stat().st_size - same_size) < 200
    if refreshed:
        table.refresh_indexes(workers=1)
    try:
        rows = query.collect()
    except Exception as error:  # noqa: BLE001 (Spark may refuse a file of another size)
        assert "size" in str(error) or "Parquet" in str(error)  # noqa: PT017
        return
    pruned.conf.set("skipindex.enabled", "false")
    define(pruned, folder)
    assert rows == pruned.sql(f"{BY_CITY} WHERE c.city = 'city 3'").collect()


@pytest.mark.slow
def test_other_files_of_the_dimension_than_those_looked_up(
    pruned: SparkSession, folder: Path, tmp_path: Path
) -> None:
    """A copy, a part of it, and one under other types have rows of their own."""
    define(pruned, folder)
    text = f"{BY_CITY} WHERE c.city = 'city 3'"
    copy = tmp_path / "customers"
    shutil.copytree(folder / "customers", copy, copy_function=shutil.copy2)
    everyone_in_city_3(tmp_path)
    frames = [
        pruned.read.parquet(str(copy)),
        pruned.read.parquet(str(folder / "customers/part-0.parquet")),
        pruned.read.schema("KEY bigint, CITY string").parquet(
            str(folder / "customers")
        ),
        pruned.read.option("datetimeRebaseMode", "LEGACY").parquet(
            str(folder / "customers")
        ),
        pruned.read.parquet(str(folder / "customers")).limit(100),
        pruned.read.parquet(str(folder / "customers")).distinct(),
    ]
    for frame in frames:
        frame.createOrReplaceTempView("customers")
        _, some, everything = with_and_without(
            pruned, lambda: pruned.sql(text), "/orders"
        )
        assert some == everything


@since(4, 0, what="a reader that takes INT32 for bigint")
def test_another_type_of_the_facts_key(pruned: SparkSession, folder: Path) -> None:
    define(pruned, folder)
    frame = pruned.read.schema("customer bigint, price bigint")
    frame.parquet(str(folder / "orders")).createOrReplaceTempView("orders")
    text = f"{BY_CITY} WHERE c.city = 'city 3'"
    _, some, _ = with_and_without(pruned, lambda: pruned.sql(text), "/orders")
    assert some == N_FILES


@pytest.mark.slow
def test_a_column_of_the_fact_has_its_own_name(
    pruned: SparkSession, tmp_path: Path
) -> None:
    """Files that came later have a column of the associated column's name."""
    folder = write(tmp_path / "star")
    associate(folder)
    for path in (folder / "orders").glob("*.parquet"):
        times = path.stat()
        orders = pq.read_table(path)
        if path.name == "part-00.parquet":
            cities = pa.array(["city 0"] * len(orders))
            pq.write_table(orders.append_column("c_city", cities), path)
        else:
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    define(pruned, folder)
    text = f"{BY_CITY} WHERE c.city = 'city 3' AND coalesce(c_city, 'x') = 'x'"
    merged = pruned.read.option("mergeSchema", "true").parquet(str(folder / "orders"))
    merged.createOrReplaceTempView("orders")
    _, some, _ = with_and_without(pruned, lambda: pruned.sql(text), "/orders")
    assert some <= 2


@pytest.mark.slow
def test_random_conditions_have_the_same_rows(
    star: SparkSession, seed: int, share: int
) -> None:
    draw = np.random.default_rng(seed)

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
            star, lambda text=text: star.sql(text), "/orders"
        )
        n_skipped += everything - some
    assert n_skipped > 0
