"""What not every version of Spark has, for the tests that need it."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyspark
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

SPARK: Final = tuple(map(int, pyspark.__version__.split(".")[:2]))
"""The version that runs, ``(4, 0)`` for one."""

FAILED: Final = (PySparkException, Py4JJavaError)
"""What a query that fails raises: Spark 3.5 leaves errors of its tasks as py4j's."""


def since(major: int, minor: int, *, what: str) -> pytest.MarkDecorator:
    """Skip a test before the first version that has what it needs."""
    reason = f"Spark {major}.{minor} is the first with {what}"
    return pytest.mark.skipif((major, minor) > SPARK, reason=reason)


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The rows of a table of Arrow's; Spark 4.0 is the first that takes it so."""
    if SPARK >= (4, 0):
        return spark.createDataFrame(table)
    return spark.createDataFrame(table.to_pylist(), from_arrow_schema(table.schema))
