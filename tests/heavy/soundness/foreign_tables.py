"""Tables of files that others wrote, for Spark to judge."""

from __future__ import annotations

import contextlib
import random
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.errors import PredicateError
from skipindex.indexes import index_type, index_types
from tests.heavy.soundness.pools import Pool
from tests.heavy.soundness.writers import CHANGES, REWRITTEN, SPARK, WRITERS, by_pyarrow
from tests.spark.reading.whole import settings

_SAME_TYPES: Final = (
    "another order of columns",
    "one column more",
    "dictionary arrays",
    "large strings",
    "string views",
)
"""Changes after which ``mergeSchema`` still finds one type for each column."""

_TIMES: Final = 3
"""How often a file of Spark's has every pair."""

COLUMNS: Final = ("v_minmax", "v_filter", "v_rows", "v_all")


def written_by_spark(spark: SparkSession, pool: Pool, aside: Path) -> list[Path]:
    """Files of Spark itself: as it writes by default, and as old versions did."""
    places = [i for i in range(len(pool.pairs)) for _ in range(_TIMES)]
    pq.write_table(pool.arrow(places, COLUMNS), aside / "all.parquet")
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
        self._changes = sorted(CHANGES if mixed else _SAME_TYPES)
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
            table = self.pool.arrow(places, COLUMNS)
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
        for name in (*COLUMNS, "w"):
            with contextlib.suppress(PredicateError):
                if (domain := opened.state.find(name).domain) is not None:
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
        name = COLUMNS[i % len(COLUMNS)]
        kinds = {"v_minmax": ("minmax",), "v_all": None}
        without = tuple(sorted(set(index_types())))
        return name, kinds.get(name, without)
