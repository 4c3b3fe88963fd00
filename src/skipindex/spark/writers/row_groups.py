"""How many rows a row group of a written file has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import SparkSession

from skipindex.errors import LayoutError

ROWS_PER_GROUP: Final = 128_000
"""Look-ups and whole reads both cost less than with 16,000 or 64,000 rows, and than
with one group a file; ``python -m benchmarks.row_groups`` measures it."""
_ROWS: Final = "parquet.block.row.count.limit"
_BYTES: Final = "parquet.block.size"
_SINCE: Final = (4, 1)
"""First version of Spark whose Parquet writer counts the rows of a group."""


def check_row_groups(spark: SparkSession, rows_per_group: int | None) -> None:
    """Refuse a number of rows that this Spark would ignore."""
    if rows_per_group is not None and not _are_counted(spark):
        raise LayoutError(
            f"Spark {spark.version} cannot count the rows of a row group: "
            f"rows_per_group={rows_per_group} (accepted: Spark 4.1 or newer, or a size "
            f"in bytes by options={{{_BYTES!r}: '16777216'}})"
        )


def row_group_options(
    spark: SparkSession, layout: Mapping[str, Any], options: Mapping[str, str]
) -> dict[str, str]:
    """What tells Spark's writer where a row group ends; what a caller says counts."""
    given = {name.lower() for name in options}
    if not _are_counted(spark) or _BYTES in given:
        return {}
    return {_ROWS: str(layout.get("rows_per_group") or ROWS_PER_GROUP)}


def _are_counted(spark: SparkSession) -> bool:
    match = re.match(r"(\d+)\.(\d+)", spark.version)
    return match is not None and (int(match[1]), int(match[2])) >= _SINCE
