"""What not every version of Spark has, for the tests that need it."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

SPARK: Final = tuple(map(int, pyspark.__version__.split(".")[:2]))
"""The version that runs, ``(4, 0)`` for one."""


def since(major: int, minor: int, *, what: str) -> pytest.MarkDecorator:
    """Skip a test before the first version that has what it needs."""
    reason = f"Spark {major}.{minor} is the first with {what}"
    return pytest.mark.skipif((major, minor) > SPARK, reason=reason)


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The rows of a table of Arrow's; Spark 4.0 is the first that takes it so."""
    if SPARK >= (4, 0):
        return spark.createDataFrame(table)
    return spark.createDataFrame(table.to_pylist(), from_arrow_schema(table.schema))
