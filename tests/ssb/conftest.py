from __future__ import annotations

import fcntl
import os

import pytest
from pyspark.sql import SparkSession

from ssb.data.generate import Dataset, find_or_generate


@pytest.fixture(scope="session")
def ssb_dataset(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Dataset:
    """60,000 rows in 7 files; for reading only, by all processes of the run."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    with (shared / "ssb.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return find_or_generate(shared / "ssb", scale=0.01, files=7, spark=spark)
