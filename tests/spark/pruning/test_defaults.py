"""Columns that were added with DEFAULT: files without them hold the default."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.spark.pruning.scans import with_and_without

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
