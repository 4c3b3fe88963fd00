"""How many rows make a Parquet file of a size, and a row group of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from skipindex.errors import LayoutError, first_line
from skipindex.spark.settings import setting
from skipindex.spark.ship import ship_package

ROWS_PER_GROUP: Final = 128_000
"""Look-ups and whole reads both cost less than with 16,000 or 64,000 rows, and than
with one group a file; ``python -m benchmarks.row_groups`` measures it."""
_ROWS: Final = "parquet.block.row.count.limit"
_BYTES: Final = "parquet.block.size"
_SINCE: Final = (4, 1)
"""First version of Spark whose Parquet writer counts the rows of a group."""
SAMPLE_ROWS: Final = 100_000
"""Rows of the sample, about; as one file they are encoded as those of a large one."""
_SEED: Final = 20_260_101
_CODEC: Final = "spark.sql.parquet.compression.codec"
_CODECS: Final[Mapping[str, str]] = {
    **{name: name for name in ("snappy", "gzip", "brotli", "zstd", "none")},
    "uncompressed": "none",
    "lz4": "lz4",
    "lz4_raw": "lz4",
}
"""What Spark calls a compression to what Arrow does; of others snappy is near."""


def rows_in(
    n_bytes: int, df: DataFrame, n_rows: int, options: Mapping[str, str] | None
) -> int:
    """The rows of a file of this size in bytes; clustered rows take somewhat less.

    Args:
        n_bytes: of a file.
        df: whose rows they are; a sample of all its columns is written to memory.
        n_rows: its number of rows.
        options: of Spark's writer, for the compression.
    """
    if not n_rows:
        return 1
    ship_package(df.sparkSession)
    codec = _codec(df, options)

    def measure(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        result = [batch for batch in batches if batch.num_rows]
        if result:
            sizes = written_size(pa.Table.from_batches(result), codec)
            yield pa.RecordBatch.from_pydict({"n": [sizes[0]], "size": [sizes[1]]})

    share = min(1.0, SAMPLE_ROWS / n_rows)
    sample = df if share == 1 else df.sample(False, share, _SEED)
    try:
        sizes = sample.repartition(1).mapInArrow(measure, "n bigint, size bigint")
        result = sizes.agg(sf.sum("n"), sf.sum("size")).first()
    except PySparkException as error:
        raise LayoutError(
            f"the size of a row cannot be measured: {first_line(error)} (accepted: "
            "rows_per_file)"
        ) from error
    if result is None or not result[0]:  # the sample of few rows may be empty
        return n_rows
    return max(1, n_bytes * int(result[0]) // max(1, int(result[1])))


def written_size(rows: pa.Table, codec: str) -> tuple[int, int]:
    """The number of rows, and the bytes that their columns take in a file."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression=codec)
    metadata = pq.read_metadata(pa.BufferReader(sink.getvalue()))
    sizes = (
        metadata.row_group(group).column(column).total_compressed_size
        for group in range(metadata.num_row_groups)
        for column in range(metadata.num_columns)
    )
    return rows.num_rows, sum(sizes)


def _codec(df: DataFrame, options: Mapping[str, str] | None) -> str:
    given = {name.lower(): value for name, value in (options or {}).items()}
    name = given.get("compression", given.get("parquet.compression"))
    return _CODECS.get((name or setting(df.sparkSession, _CODEC)).lower(), "snappy")


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
