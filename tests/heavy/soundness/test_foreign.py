"""A part of the sweep over files of others; ``make soundness`` runs it all."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from skipindex.build import task
from skipindex.indexes import EncodedColumn
from skipindex.table.summaries import Summary, summarize
from tests.heavy.soundness.foreign import ForeignResult, sweep_foreign
from tests.heavy.soundness.pools import Pool, pools
from tests.heavy.soundness.report import Checked, matrix, page
from tests.heavy.soundness.writers import WRITERS

POOLS = {pool.name: pool for pool in pools()}


@pytest.mark.spark
def test_no_breach_on_some_files_of_others(spark: SparkSession) -> None:
    result = ForeignResult()
    sweep_foreign(
        spark, POOLS["string"], n=9, n_files=6, n_settings=1, seed=7, result=result
    )
    assert not result.failures, "\n".join(result.failures[:20])
    assert sum(result.files.values()) == 12
    assert result.total.verdicts > 100
    assert result.total.skipped > result.total.skippable / 5


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("pool", POOLS.values(), ids=lambda pool: pool.name)
def test_no_breach_on_files_of_others(spark: SparkSession, pool: Pool) -> None:
    result, seeds = ForeignResult(), iter(range(7, 11))
    while result.total.verdicts <= 200:  # Spark refuses some tables whole
        seed = next(seeds)
        sweep_foreign(
            spark, pool, n=20, n_files=14, n_settings=1, seed=seed, result=result
        )
        assert not result.failures, "\n".join(result.failures[:20])
        assert sum(result.files.values()) == 28 * (seed - 6)
    assert result.total.skipped > result.total.skippable / 5


@pytest.mark.slow
@pytest.mark.spark
def test_the_sweep_sees_a_breach(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def narrow(column: EncodedColumn) -> Summary:
        found = summarize(column)
        return replace(found, low=found.high)

    monkeypatch.setattr(task, "summarize", narrow)
    result = ForeignResult()
    pool = POOLS["int16"]
    sweep_foreign(spark, pool, n=20, n_files=8, n_settings=1, seed=7, result=result)
    assert any("skipped, but holds a match" in failure for failure in result.failures)
    done = Checked(foreign=result)
    assert f"## Breaches: {len(result.failures)}" in page(done, seed=7)
    assert "## Files of others" in matrix(done, seed=7)


@pytest.mark.parametrize("name", WRITERS)
def test_what_a_writer_writes_is_what_it_was_given(tmp_path: Path, name: str) -> None:
    pool = POOLS["string"]
    places = [5 * i for i in range(len(pool.values))] * 3
    table = pool.arrow(places, ["v"])
    for i in range(8):
        path = tmp_path / f"{i}.parquet"
        WRITERS[name](random.Random(i), table, path)
        file = pq.ParquetFile(path)
        assert file.metadata.num_rows == len(table)
        if name != "DuckDB":  # Arrow itself misreads its enums
            assert (
                file.read()["v"].cast(pa.string()).to_pylist() == table["v"].to_pylist()
            )
