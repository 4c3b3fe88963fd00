"""The data set is, to the byte, the one that was compared with its specification.

Its digests were written when TPC-H's rows, the rules of each dimension, the formulas of
money and the draws had tests of their own, which all passed.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import xxhash
from pyspark.sql import SparkSession

from ssb.data import generate
from ssb.data.generate import TABLES, Dataset
from ssb.data.scale import Sizes
from tests.spark.reading.whole import settings

DIMENSIONS = {
    "customer": ("lo_custkey", "c_custkey"),
    "supplier": ("lo_suppkey", "s_suppkey"),
    "part": ("lo_partkey", "p_partkey"),
    "date": ("lo_orderdate", "d_datekey"),
}
DIGESTS = {
    "customer": (300, "b53bf32268ad0412"),
    "date": (2556, "85971a4c9a334ba3"),
    "lineorder": (60175, "ada53ba065f44c68"),
    "lineorder_flat": (60175, "5be389277645c43c"),
    "part": (2000, "0cc30ed1ad02d22f"),
    "supplier": (20, "8a194d956632e97d"),
}
"""Rows of each table at scale 0.01, and a hash of their columns."""


@pytest.fixture(scope="module")
def tables(ssb_dataset: Dataset) -> dict[str, pa.Table]:
    return {table: read(ssb_dataset, table) for table in TABLES}


def data_files(dataset: Dataset, table: str) -> list[Path]:
    return sorted((dataset.path / table).glob("*.parquet"))


def read(dataset: Dataset, table: str) -> pa.Table:
    files = data_files(dataset, table)
    return pa.concat_tables([pq.read_table(file) for file in files])


def digest(table: pa.Table) -> str:
    state = xxhash.xxh64()
    for name, column in zip(table.column_names, table.columns, strict=True):
        state.update(f"{name} {column.type} {column.to_pylist()}".encode())
    return state.hexdigest()


@pytest.mark.slow
@pytest.mark.spark
def test_the_rows_are_those_that_were_compared(tables: dict[str, pa.Table]) -> None:
    assert {
        name: (table.num_rows, digest(table)) for name, table in tables.items()
    } == DIGESTS


@pytest.mark.slow
@pytest.mark.spark
def test_the_flat_table_is_the_star_joined(tables: dict[str, pa.Table]) -> None:
    flat = tables["lineorder_flat"]
    assert flat.select(tables["lineorder"].column_names).equals(tables["lineorder"])
    for table, (fact_key, key) in DIMENSIONS.items():
        dimension = tables[table]
        places = pc.index_in(flat[fact_key], dimension[key].combine_chunks())
        joined = dimension.take(places).drop_columns([key])
        columns = flat.select(joined.column_names)
        assert columns.equals(joined.cast(columns.schema)), table


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(("orders", "n_slices"), [(8_000, 2), (4_000, 4)])
def test_slices_give_the_same_files_as_the_whole(
    ssb_dataset: Dataset,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    orders: int,
    n_slices: int,
) -> None:
    """Whatever the number of files that a slice has, or of orders that a file has.

    Nor do the partitions that Spark sorts in change anything.
    """
    monkeypatch.setattr(generate, "_SLICE_ORDERS", orders)
    sizes = Sizes.of(ssb_dataset.scale)
    n_files = ssb_dataset.n_files
    slices = generate.slices(sizes, n_files)
    assert len(slices) == n_slices
    assert [f for files in slices for f in files] == list(range(n_files))

    with settings(spark, {"spark.sql.shuffle.partitions": "7"}):
        sliced = generate.generate(
            tmp_path / "data", scale=ssb_dataset.scale, files=n_files, spark=spark
        )
    for table in ("lineorder", "lineorder_flat"):
        whole = data_files(ssb_dataset, table)
        for one, other in zip(whole, data_files(sliced, table), strict=True):
            assert pq.read_table(one).equals(pq.read_table(other)), one.name
