"""Columns that were added with DEFAULT: files without them hold the default."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from tests.spark.pruning.scans import with_and_without
from tests.tables import put

pytestmark = pytest.mark.spark

ADDED = {"j": "INT DEFAULT 7", "s": "STRUCT<x: INT> DEFAULT named_struct('x', 7)"}


@pytest.fixture
def grown(pruned: SparkSession) -> Iterator[str]:
    """Two files without the columns, one with values and one with NULL."""
    pruned.sql("CREATE TABLE grown (i INT) USING parquet")
    try:
        for i in range(2):
            pruned.sql(f"INSERT INTO grown VALUES ({i})")
        for name, kind in ADDED.items():
            pruned.sql(f"ALTER TABLE grown ADD COLUMN {name} {kind}")
        pruned.sql("INSERT INTO grown VALUES (2, 5, named_struct('x', 5))")
        pruned.sql("INSERT INTO grown VALUES (3, NULL, NULL)")
        pruned.sql("CREATE INDEX ON grown (i, j, s.x) USING bitmap")
        yield "grown"
    finally:
        pruned.sql("DROP TABLE grown")


QUERIES = {
    "SELECT i FROM grown WHERE j = 7": 3,
    "SELECT i FROM grown WHERE j = 5": 4,
    "SELECT i FROM grown WHERE s.x = 7": 3,
    "SELECT i FROM grown WHERE j = 7 AND i = 0": 1,
    "SELECT i FROM grown WHERE j IS NULL": 3,
    "SELECT i FROM grown WHERE j IS NOT NULL": 4,
    "SELECT i FROM grown WHERE NOT j = 5": 3,
    "SELECT i, j FROM grown ORDER BY j DESC LIMIT 1": 4,
    "SELECT count(j), min(j), max(j) FROM grown": 4,
    "SELECT i FROM grown JOIN (SELECT explode(array(7, 8)) AS k) ON j = k": 4,
}


def test_files_without_the_column_hold_the_default(
    pruned: SparkSession, grown: str
) -> None:
    pruned.conf.set("skipindex.answers", "true")
    try:
        for is_rewritten in (False, True):
            for text, most in QUERIES.items():

                def query(text: str = text) -> DataFrame:
                    return pruned.sql(text)

                rows, some, _ = with_and_without(pruned, query)
                assert rows
                assert some <= most, text
                if text.endswith("j = 7"):
                    assert some == (1 if is_rewritten else most)
            pruned.sql(f"OPTIMIZE {grown} RANGE BY (i) LOCALLY ORDERED BY (j)")
    finally:
        pruned.conf.unset("skipindex.answers")


def test_a_reader_by_path_sees_no_default_before_the_vacuum(
    pruned: SparkSession, grown: str
) -> None:
    """Its schema is its own, without DEFAULT, so the old files hold NULL for it."""
    path = Path(pruned.table(grown).inputFiles()[0].removeprefix("file:")).parent
    pruned.sql(f"OPTIMIZE {grown} RANGE BY (i)")

    def query() -> DataFrame:
        frame = pruned.read.schema("i INT, j INT").parquet(str(path))
        return frame.where("j IS NULL")

    rows, *_ = with_and_without(pruned, query)
    assert len(rows) == 3


def test_a_dimension_has_the_default_where_its_files_lack_an_attribute(
    pruned: SparkSession, tmp_path: Path
) -> None:
    for i in range(4):
        put(tmp_path / "orders" / f"{i}.parquet", {"customer": [2 * i, 2 * i + 1]})
    place = tmp_path / "customers"
    put(place / "0.parquet", {"k": [5, 6, 7], "city": ["Rome"] * 3})
    put(place / "1.parquet", {"k": range(5)})
    columns = "k BIGINT, city STRING DEFAULT 'Oslo'"
    pruned.sql(
        f"CREATE TABLE joined_by_default ({columns}) USING parquet LOCATION '{place}'"
    )
    try:
        sx.build_indexes(tmp_path / "orders", {"customer": "bitmap"}, workers=1)

        def query(city: str) -> DataFrame:
            orders = pruned.read.parquet(str(tmp_path / "orders"))
            customers = pruned.table("joined_by_default")
            joined = orders.join(customers, orders.customer == customers.k)
            return joined.where(f"city = '{city}'")

        for city, n in {"Oslo": 5, "Rome": 3}.items():
            rows, *_ = with_and_without(pruned, partial(query, city))
            assert len(rows) == n
    finally:
        pruned.sql("DROP TABLE joined_by_default")
