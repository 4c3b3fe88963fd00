"""The sweep of files that others wrote, with Spark as judge.

A table is a folder of files by DuckDB, Polars, fastparquet, delta-rs, pyarrow and
Spark, some of Spark's rewritten by pyarrow, with random encodings, pages, row groups
and compressions, whose schemas differ.  Spark counts the matching rows of every file
under several settings; what it cannot read is not judged.
"""

from __future__ import annotations

import contextlib
import logging
import random
import shutil
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from skipindex.errors import PredicateError
from skipindex.indexes import index_type, index_types
from tests.soundness.by_spark import NOISY, QUICK, count_by_file
from tests.soundness.matrix import Tally, judge
from tests.soundness.pools import Pool
from tests.soundness.texts import conditions
from tests.soundness.writers import CHANGES, REWRITTEN, SPARK, WRITERS, by_pyarrow
from tests.spark.whole import NO_PUSHDOWN, ZONE, settings

LATER: Final = frozenset(
    {
        "string views",
        "wider integers",
        "unsigned integers",
        "more digits",
        "nanoseconds",
        "names in capitals",
        "row metadata of another type",
        "another schema by mergeSchema",
        "types by settings",
    }
)
"""What is left out as long as indexes do not know of it: some of ``CHANGES``, and
what is named where it is asked for."""

_REFUSED: Final = (PySparkException, Py4JError)
_SAME_TYPES: Final = (
    "another order of columns",
    "one column more",
    "dictionary arrays",
    "large strings",
    "string views",
)
"""Changes after which ``mergeSchema`` still finds one type for each column."""

_ZONES: Final = ("UTC", "America/New_York", "Asia/Kolkata", "Pacific/Apia")
_TIMES: Final = 3
"""How often a file of Spark's has every pair."""

_COLUMNS: Final = ("v_minmax", "v_filter", "v_rows", "v_all")


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
            ntz="types by settings" in LATER or rng.random() < 0.7,
        )
        for i in range(n)
    ]


def written_by_spark(spark: SparkSession, pool: Pool, aside: Path) -> list[Path]:
    """Files of Spark itself: as it writes by default, and as old versions did."""
    places = [i for i in range(len(pool.pairs)) for _ in range(_TIMES)]
    pq.write_table(pool.arrow(places, _COLUMNS), aside / "all.parquet")
    df = spark.read.parquet(f"file:{aside}/all.parquet").coalesce(1)
    found = []
    for legacy, kind in (("false", "TIMESTAMP_MICROS"), ("true", "INT96")):
        conf = {
            "spark.sql.parquet.writeLegacyFormat": legacy,
            "spark.sql.parquet.outputTimestampType": kind,
        }
        with settings(spark, conf):
            df.write.parquet(f"file:{aside}/{kind}")
        found += list((aside / kind).glob("part-*.parquet"))
    return found


class ForeignTable:
    """The table of one pool.

    Args:
        pool: the column type.
        own: files of Spark, of which this table has some, and rows of them.
        folder: where the files are written.
        n_files: of the table.
        mixed: whether files have columns of other types, or lack some.
        seed: of all choices.
    """

    def __init__(
        self,
        pool: Pool,
        own: Sequence[Path],
        folder: Path,
        *,
        n_files: int,
        mixed: bool,
        seed: int,
    ) -> None:
        self.pool, self.folder = pool, folder
        self._changes = sorted({*(CHANGES if mixed else _SAME_TYPES)} - LATER)
        self.writers: dict[str, str] = {}
        """Who wrote it, and how its schema differs, by the name of the file."""
        rng = random.Random(f"{seed} {pool.name} {mixed}")
        with tempfile.TemporaryDirectory() as aside, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the writers, about their own files
            rewritten = [
                pq.read_table(p, coerce_int96_timestamp_unit="us") for p in own
            ]
            for path in own:
                shutil.copy(path, Path(aside, path.name))
                self._keep(rng, Path(aside, path.name), SPARK)
            if "row metadata of another type" in LATER:
                # One of the two was written as INT96, which pyarrow makes local times.
                rewritten = rewritten[:1]
            while len(self.writers) < n_files:
                self._write(rng, Path(aside), rng.choice(rewritten))
        self.table = self._build(rng)
        self.n_rows = np.array(
            [pq.ParquetFile(folder / p).metadata.num_rows for p in self.table.paths]
        )

    def _keep(self, rng: random.Random, path: Path, writer: str) -> None:
        """Move a file into the table; which comes first is chance."""
        name = f"{rng.randrange(16**6):06x}.parquet"
        shutil.move(path, self.folder / name)
        self.writers[name] = writer

    def _write(self, rng: random.Random, aside: Path, spark_table: pa.Table) -> None:
        writer = rng.choice([*WRITERS, REWRITTEN])
        places = self._places(rng, large=writer == "DuckDB" and rng.random() < 0.25)
        write = WRITERS.get(writer, by_pyarrow)
        if writer == REWRITTEN:
            some = pa.array([_TIMES * i for i in places], pa.int64())
            table = spark_table.take(some)
        else:
            table = self.pool.arrow(places, _COLUMNS)
        name = rng.choice(self._changes) if rng.random() < 0.4 else ""
        changed = CHANGES[name](rng, table) if name else None
        table = table if changed is None else changed
        path = aside / "new.parquet"
        try:
            write(rng, table, path)
        except Exception:  # noqa: BLE001 (the writer has no such type or option)
            path.unlink(missing_ok=True)
            return
        self._keep(rng, path, f"{writer}|{name if changed is not None else ''}")

    def _places(self, rng: random.Random, *, large: bool) -> list[int]:
        """The rows of one file, as places in the pool's pairs.

        A large one has several row groups even where they have 2,048 rows at least.
        """
        n_values = rng.choice([1, 2, 3, 8, len(self.pool.pairs)])
        some = rng.sample(
            range(len(self.pool.pairs)), min(n_values, len(self.pool.pairs))
        )
        n = 5000 if large else rng.choice([0, 1, 3, 20, 20, 60, 150, 300])
        places = rng.choices(some, k=n)
        if rng.random() < 0.5:  # each row group has other values, or a page has
            places.sort()
        return places

    def _build(self, rng: random.Random) -> sx.Table:
        opened = sx.open_table(self.folder)
        wanted: dict[str, Any] = {}
        for name in (*_COLUMNS, "w"):
            with contextlib.suppress(PredicateError):
                if (domain := opened.find(name).domain) is not None:
                    wanted[name] = self._kinds(rng, name, domain)
        return sx.build_indexes(self.folder, wanted, workers=1).table

    def _kinds(self, rng: random.Random, name: str, domain: Any) -> list[Any]:
        fitting = []
        for kind in index_types():
            with contextlib.suppress(sx.UnsupportedTypeError):
                index_type(kind).check(domain)
                fitting.append(kind)
        by_name = {
            "v_minmax": [],
            "v_filter": [k for k in fitting if not index_type(k).positional],
            "v_all": fitting,
        }
        exact = [k for k in fitting if index_type(k).positional]
        return by_name.get(name, [rng.choice(exact)])

    def asked_as(self, i: int) -> tuple[str, tuple[str, ...] | None]:
        """A column by turns, and the kinds that a plan of it may use."""
        name = _COLUMNS[i % len(_COLUMNS)]
        kinds = {"v_minmax": ("minmax",), "v_all": None}
        without = tuple(sorted(set(index_types())))
        return name, kinds.get(name, without)


def is_left_out(pool: Pool) -> bool:
    """Whether tables of this type are, as delta-rs makes signed integers of it."""
    unsigned = pa.types.is_unsigned_integer(pool.dtype)
    return unsigned and "unsigned integers" in LATER


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
    if is_left_out(pool):
        return
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


def opened(made: ForeignTable, df: DataFrame, setting: Setting) -> sx.Table | None:
    """The table as it is to be planned under a setting; None if it is left out."""
    if not setting.merge and setting.ntz:
        return made.table
    if "another schema by mergeSchema" in LATER and setting.merge:
        first = df.sparkSession.read.option("mergeSchema", "false")
        same = _types(first.parquet(f"file:{made.folder}")) == _types(df)
        return made.table if same else None
    return sx.open_table(made.folder, schema=df.schema)


def _types(df: DataFrame) -> dict[str, str]:
    return {name: kind for name, kind in df.dtypes if name in {*_COLUMNS, "w"}}


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
    table = opened(made, df, setting)
    if table is None or not {"v_minmax", "w"} <= set(df.columns):
        return
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
            plan = table.plan_files(mine, timezone=setting.zone, kinds=kinds)
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
    columns = sf.hash(*(sf.col(name) for name in (*_COLUMNS, "w")))

    def read(some: Sequence[str]) -> set[str]:
        files = whole.parquet(*(f"file:{folder}/{path}" for path in some))
        try:
            files.select(sf.max(columns)).collect()
        except _REFUSED:
            half = len(some) // 2
            return read(some[:half]) | read(some[half:]) if half else set()
        return set(some)

    return read(sorted(paths))
