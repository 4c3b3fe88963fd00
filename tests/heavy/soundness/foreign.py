"""The sweep of files that others wrote, with Spark as judge.

A table is a folder of files by DuckDB, Polars, fastparquet, delta-rs, pyarrow and
Spark, some of Spark's rewritten by pyarrow, with random encodings, pages, row groups
and compressions, whose schemas differ.  Spark counts the matching rows of every file
under several settings; what it cannot read is not judged.
"""

from __future__ import annotations

import logging
import random
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from skipindex.errors import PredicateError
from tests.heavy.soundness.by_spark import NOISY, QUICK, count_by_file
from tests.heavy.soundness.foreign_tables import (
    COLUMNS,
    ForeignTable,
    written_by_spark,
)
from tests.heavy.soundness.matrix import Tally, judge
from tests.heavy.soundness.pools import OTHER_ZONES, Pool
from tests.heavy.soundness.texts import conditions
from tests.spark.reading.whole import NO_PUSHDOWN, ZONE, settings

_REFUSED: Final = (PySparkException, Py4JError)
_ZONES: Final = ("UTC", "America/New_York", *OTHER_ZONES)


@dataclass
class ForeignResult:
    """What was checked on the files of others.

    Args:
        judged: how many conditions Spark could evaluate, over all settings.
        refused: how many it could not.
        by_setting: the files judged, by the settings of the session.
        by_pool: the same by column type.
        files: how many were written, by writer.
        verdicts: the files judged, by writer.
        skippable: of these, those without a matching row, by writer.
        skipped: of these, those that were skipped, by writer.
        unread: files under a setting that Spark cannot read, by writer.
        failures: what was wrong, in words that reproduce it.
    """

    judged: int = 0
    refused: int = 0
    by_setting: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    by_pool: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    files: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    skippable: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    @property
    def total(self) -> Tally:
        """Over all column types."""
        found = Tally()
        for tally in self.by_pool.values():
            found.add(tally)
        return found


@dataclass(frozen=True)
class Setting:
    """How a session reads."""

    vectorized: bool
    merge: bool
    zone: str
    ntz: bool = True

    def __str__(self) -> str:
        reader = "vectorized" if self.vectorized else "row by row"
        merged = ", mergeSchema" if self.merge else ""
        return f"{reader}{merged}, {self.zone}" + ("" if self.ntz else ", no NTZ")

    @property
    def conf(self) -> Mapping[str, str]:
        named = {
            "spark.sql.parquet.enableVectorizedReader": self.vectorized,
            "spark.sql.parquet.mergeSchema": self.merge,
            "spark.sql.ansi.enabled": False,  # each error would cost some jobs
            "spark.sql.parquet.inferTimestampNTZ.enabled": self.ntz,
        }
        texts = {name: str(value).lower() for name, value in named.items()}
        return {**NO_PUSHDOWN, **QUICK, **texts, ZONE: self.zone}


def _settings(rng: random.Random, pool: Pool, n: int) -> list[Setting]:
    """Both readers, with ``mergeSchema`` and without, in several zones."""
    ways = [(v, m) for v in (True, False) for m in (False, True)]
    if rng.random() < 0.5:
        ways.reverse()
    zones = [pool.zone, *rng.sample(_ZONES, len(_ZONES))]
    return [
        Setting(
            *ways[i % len(ways)],
            zone=zones[i % len(zones)],
            ntz=rng.random() < 0.7,
        )
        for i in range(n)
    ]


def sweep_foreign(
    spark: SparkSession,
    pool: Pool,
    *,
    n: int,
    n_files: int,
    n_settings: int,
    seed: int,
    result: ForeignResult,
) -> None:
    """Check two tables under some settings, with ``n`` conditions under each.

    One has files of other types, which ``mergeSchema`` often refuses.

    Args:
        spark: any session; its settings are changed for a while.
        pool: the column type.
        n: conditions.
        n_files: of each table.
        n_settings: of the session.
        seed: of all choices.
        result: is added to.
    """
    NOISY.setLevel(logging.CRITICAL)
    spark.sparkContext.setLogLevel("OFF")
    rng = random.Random(f"{seed} {pool.name} settings")
    texts = list(conditions(pool, n=2 * n, seed=seed))
    with tempfile.TemporaryDirectory() as aside:
        own = written_by_spark(spark, pool, Path(aside))
        ways = _settings(rng, pool, 2 * n_settings)
        for mixed in (False, True):
            folder = Path(aside, f"table {mixed}")
            folder.mkdir()
            made = ForeignTable(
                pool, own, folder, n_files=n_files, mixed=mixed, seed=seed
            )
            result.files.update(w.partition("|")[0] for w in made.writers.values())
            for setting in ways[mixed::2]:
                with settings(spark, setting.conf):
                    some = rng.sample(texts, min(n, len(texts)))
                    _sweep(spark, made, setting, some, result)


def opened(made: ForeignTable, df: DataFrame, setting: Setting) -> sx.Table:
    """The table with the types that it has under a setting."""
    if not setting.merge and setting.ntz:
        return made.table
    return sx.open_table(made.folder, schema=df.schema)


def _sweep(
    spark: SparkSession,
    made: ForeignTable,
    setting: Setting,
    texts: Sequence[str],
    result: ForeignResult,
) -> None:
    try:
        df = spark.read.parquet(f"file:{made.folder}")
    except _REFUSED:  # schemas that Spark does not merge
        return
    if not {"v_minmax", "w"} <= set(df.columns):
        return
    table = opened(made, df, setting)
    asked = [text.replace("{v}", "v_minmax") for text in texts]
    read = _readable(df, made.folder, table.paths)
    known = np.array([path in read for path in table.paths])
    writers = np.array([made.writers[p].partition("|")[0] for p in table.paths])
    result.unread.update(writers[~known].tolist())
    if not read:
        return
    if len(read) < len(table):
        whole = spark.read.schema(df.schema)
        df = whole.parquet(*(f"file:{made.folder}/{path}" for path in sorted(read)))
    truths = count_by_file(df, table.paths, asked)
    for i, (text, truth) in enumerate(zip(texts, truths, strict=True)):
        if truth is None:
            result.refused += 1
            continue
        result.judged += 1
        name, kinds = made.asked_as(i)
        mine = text.replace("{v}", name)
        where = f"{made.pool.name}, {setting}, "
        try:
            plan = table.plan(mine, timezone=setting.zone, kinds=kinds)
        except PredicateError as error:
            result.failures.append(f"{where}Spark takes {mine}: {error}")
            continue
        said = plan.row_counts
        # Of a file that Spark cannot read, nothing said is wrong.
        least = np.where(known, truth, said.lower)
        most = np.where(known, truth, 0)
        found, failures = judge(plan, least, most, made.n_rows, n_indexed=len(table))
        found.verdicts = int(known.sum())
        low, high = plan.count_bounds
        total = int(truth.sum())
        if known.all() and not (low <= total and (high is None or total <= high)):
            failures.append(f"{low} to {high} rows are said to match, {total} do")
        result.by_setting[str(setting)].add(found)
        result.by_pool[made.pool.name].add(found)
        kept = np.isin(table.paths, plan.paths)
        result.verdicts.update(writers[known].tolist())
        result.skippable.update(writers[known & (truth == 0)].tolist())
        result.skipped.update(writers[known & ~kept].tolist())
        result.failures += [f"{where}{_named(made, failure)}" for failure in failures]


def _named(made: ForeignTable, failure: str) -> str:
    """With the writer of the file."""
    path = failure.partition(":")[0]
    return f"{made.writers.get(path, '')} {failure}"


def _readable(df: DataFrame, folder: Path, paths: Sequence[str]) -> set[str]:
    """The files of which Spark can read every row under the session's settings."""
    whole = df.sparkSession.read.schema(df.schema)
    columns = sf.hash(*(sf.col(name) for name in (*COLUMNS, "w")))

    def read(some: Sequence[str]) -> set[str]:
        files = whole.parquet(*(f"file:{folder}/{path}" for path in some))
        try:
            files.select(sf.max(columns)).collect()
        except _REFUSED:
            half = len(some) // 2
            return read(some[:half]) | read(some[half:]) if half else set()
        return set(some)

    return read(sorted(paths))
