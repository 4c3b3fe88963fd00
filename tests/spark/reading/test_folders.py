"""The listing is Spark's listing: random trees of folders, with Spark as judge."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.reading.folder_trees import check_tree

pytestmark = pytest.mark.spark


@pytest.mark.slow
def test_random_trees_are_read_as_spark_reads_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    seeds, root = range(1220), tmp_path / "tree"
    found = Counter(check_tree(spark, root, random.Random(seed)) for seed in seeds)
    assert found["read"] > len(seeds) // 3
    assert found["refused"] > len(seeds) // 20
