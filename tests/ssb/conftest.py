from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from ssb.data.generate import Dataset, generate


@pytest.fixture(scope="session")
def ssb_dataset(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Dataset:
    """60,000 rows in 7 files; for reading only."""
    out = tmp_path_factory.mktemp("ssb") / "data"
    return generate(out, scale=0.01, files=7, spark=spark)
