"""The sweep against Spark itself, with its Parquet push-down off (trap C-2)."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import numpy as np
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from skipindex.errors import PredicateError
from tests.heavy.soundness.matrix import Sample, Tally, judge
from tests.heavy.soundness.pools import Pool
from tests.heavy.soundness.texts import conditions
from tests.spark.reading.whole import NO_PUSHDOWN, ZONE, settings
from tests.spark.versions import FAILED

_BATCH: Final = 150
"""Conditions that are counted in one job."""


def _noisy() -> logging.Logger:
    """PySpark's logger of errors, which is of a class of its own from version 4.0 on.

    One that is made here must be of that class: PySpark gives it other arguments.
    """
    name = "SQLQueryContextLogger"
    try:
        from pyspark.logger import PySparkLogger  # noqa: PLC0415
    except ImportError:
        return logging.getLogger(name)
    return PySparkLogger.getLogger(name)


NOISY: Final = _noisy()
"""Many of the conditions are errors in Spark, and meant to be."""

QUICK: Final = {
    # Hundreds of conditions over few rows: compiling them takes longest.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@dataclass
class SparkResult:
    """What was checked against Spark.

    Args:
        judged: how many conditions Spark could evaluate, by column type.
        refused: how many it could not, for an error in a cast or of a type.
        tallies: the files judged, by column type.
        failures: what was wrong, in words that reproduce it.
    """

    judged: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    tallies: dict[str, Tally] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    @property
    def verdicts(self) -> int:
        """How many files were judged."""
        return sum(tally.verdicts for tally in self.tallies.values())


def sweep_with_spark(
    spark: SparkSession,
    pool: Pool,
    *,
    n: int,
    kinds: int,
    seed: int,
    result: SparkResult,
) -> None:
    """Check about ``n`` conditions over one pool, each with some kinds of index.

    Half of them are judged in ANSI mode, the others without it.

    Args:
        spark: any session; its settings are changed for a while.
        pool: the column type.
        n: conditions.
        kinds: how many kinds of index plan each of them, by turns.
        seed: of all choices.
        result: is added to.
    """
    NOISY.setLevel(logging.CRITICAL)
    spark.sparkContext.setLogLevel("OFF")
    texts = list(conditions(pool, n=n, seed=seed))
    with tempfile.TemporaryDirectory() as folder:
        sample = Sample(pool, Path(folder), random_files=5, seed=seed)
        for ansi in (True, False):
            name = f"{pool.name}, {'ANSI' if ansi else 'not ANSI'}"
            mode = {ZONE: pool.zone, "spark.sql.ansi.enabled": str(ansi).lower()}
            with settings(spark, {**NO_PUSHDOWN, **QUICK, **mode}):
                _sweep(spark, sample, name, texts[not ansi :: 2], kinds, result)


def _sweep(
    spark: SparkSession,
    sample: Sample,
    name: str,
    texts: Sequence[str],
    kinds: int,
    result: SparkResult,
) -> None:
    """Check some conditions under the settings of the session as they are."""
    zone, tally = sample.pool.zone, result.tallies.setdefault(name, Tally())
    df = spark.read.parquet(sample.table.state.location.spark_path())
    truths = count_by_file(
        df, sample.table.paths, [text.replace("{v}", "v_minmax") for text in texts]
    )
    for i, (text, truth) in enumerate(zip(texts, truths, strict=True)):
        if truth is None:
            continue
        for k in range(kinds):
            indexed = sample.columns[(i + 5 * k) % len(sample.columns)]
            mine = text.replace("{v}", indexed.column)
            where = f"{name}, {indexed.label}, "
            try:
                plan = sample.table.plan(mine, timezone=zone, kinds=indexed.kinds)
            except PredicateError as error:
                result.failures.append(f"{where}Spark takes {mine}: {error}")
                continue
            found, failures = judge(
                plan, truth, truth, sample.n_rows, n_indexed=sample.n_indexed
            )
            tally.add(found)
            result.failures += [where + failure for failure in failures]
    result.judged[name] = sum(truth is not None for truth in truths)
    result.refused[name] = len(truths) - result.judged[name]


def count_by_file(
    df: DataFrame, paths: Sequence[str], texts: Sequence[str]
) -> list[np.ndarray | None]:
    """For every condition the matching rows of every file; None if Spark fails."""
    counted: list[np.ndarray | None] = [None] * len(texts)
    place = {path: i for i, path in enumerate(paths)}

    def count(which: list[int]) -> None:
        if not which:
            return
        # First as columns: an aggregate takes no rand().
        truths = [sf.expr(texts[i]).alias(f"c{i}") for i in which]
        judged = df.select(sf.input_file_name().alias("file"), *truths)
        counts = [sf.count_if(sf.col(f"c{i}")) for i in which]
        try:
            rows = judged.groupBy("file").agg(*counts).collect()
        except FAILED:
            if len(which) > 1:
                half = len(which) // 2
                count(which[:half])
                count(which[half:])
            return
        for i in which:
            counted[i] = np.zeros(len(place), np.int64)
        for file, *found in rows:
            at = place[unquote(file).rpartition("/")[2]]
            for i, n in zip(which, found, strict=True):
                array = counted[i]
                assert array is not None
                array[at] = n

    good = [i for i, text in enumerate(texts) if _is_condition(df, text)]
    for start in range(0, len(good), _BATCH):
        count(good[start : start + _BATCH])
    return counted


def _is_condition(df: DataFrame, text: str) -> bool:
    try:
        df.where(text)
    except PySparkException:
        return False
    return True
