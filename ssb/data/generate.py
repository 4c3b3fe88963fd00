"""Real SSB data, made from real TPC-H data.

::

    DIR/lineorder/  customer/  supplier/  part/  date/    the star
    DIR/lineorder_flat/                                   all of it in one table
    DIR/_SSB.json                                         scale, seed, row counts

`tpchgen-cli` makes the TPC-H tables, Spark the rest.  ``DIR`` appears only when it
is complete.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation

from ssb import SsbError
from ssb.data import calendar
from ssb.data import dimensions as tables_of
from ssb.data.lineorder import lineorder
from ssb.data.scale import Sizes

FORMAT_VERSION: Final = 1  # of the data; one more whenever a value changes
# The smallest at which each of the 13 queries finds a row at scale 0.1.
DEFAULT_SEED: Final = 4
TABLES: Final = (
    "lineorder", "customer", "supplier", "part", "date", "lineorder_flat"
)  # fmt: skip

_METADATA: Final = "_SSB.json"
_RECORDED: Final = ("scale", "seed", "n_files", "row_counts")
"""Of a data set, in the metadata."""
_TPCH_TABLES: Final = ("customer", "supplier", "part", "orders", "lineitem")

_SLICE_ORDERS: Final = 1_500_000

Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Dataset:
    """A complete set of SSB tables on disk."""

    path: Path
    scale: float
    seed: int
    n_files: int
    row_counts: Mapping[str, int]

    @property
    def tables(self) -> dict[str, Path]:
        """The folder of every table, the flat one included."""
        return {table: self.path / table for table in TABLES}

    @property
    def flat(self) -> Path:
        """The folder of ``lineorder_flat``."""
        return self.path / "lineorder_flat"

    @property
    def n_rows(self) -> int:
        """The rows of ``lineorder``, and as many of ``lineorder_flat``."""
        return self.row_counts["lineorder"]

    @property
    def rows_per_file(self) -> int:
        """The rows of a file of most layouts."""
        return -(-self.n_rows // self.n_files)


def find_dataset(path: Path) -> Dataset | None:
    """The data set at ``path``, or None where none of this version is."""
    path = path.resolve()
    try:
        stored = json.loads((path / _METADATA).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError):
        return None
    if stored.get("version") != FORMAT_VERSION:
        return None
    if not all((path / table).is_dir() for table in TABLES):
        return None
    return Dataset(path, **{name: stored[name] for name in _RECORDED})


def generate(
    out: Path,
    *,
    scale: float,
    seed: int = DEFAULT_SEED,
    files: int | None = None,
    spark: SparkSession,
    overwrite: bool = False,
    log: Log = lambda _: None,
) -> Dataset:
    """Write the data set to ``out``; the same arguments give the same rows.

    Args:
        out: a folder that does not exist yet, or is empty.
        scale: 1 for 6,001,215 rows; from 0.01 up, in steps of 0.001.
        seed: of the draws that TPC-H does not make.
        files: number of files of ``lineorder`` and of ``lineorder_flat``, each
            with equally many orders; by default of about 60,000 rows each.
        spark: a session of this machine.
        overwrite: replace the data set that is at ``out``.
        log: told about every step.

    Raises:
        SsbError: if the scale or the number of files is impossible, if ``out``
            is taken, or if TPC-H data cannot be made.
    """
    check_request(out, scale=scale, seed=seed, files=files, overwrite=overwrite)
    sizes = Sizes.of(scale)
    n_files = sizes.default_files if files is None else files
    out = out.resolve()
    out.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, because only there a rename is sure to be atomic.
    work = Path(tempfile.mkdtemp(prefix=f"{out.name}.partial-", dir=out.parent))
    try:
        log(f"making TPC-H at scale {scale:g}")
        tpch = _make_tpch(work / "tpch", scale=scale, spark=spark)
        row_counts = _write_tables(
            tpch, work / "ssb", sizes=sizes, seed=seed, n_files=n_files,
            spark=spark, log=log,
        )  # fmt: skip
        dataset = Dataset(out, scale, seed, n_files, row_counts)
        _write_metadata(dataset, work / "ssb" / _METADATA)
        if out.exists():
            out.rename(work / "old")
        (work / "ssb").rename(out)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    log(f"{dataset.n_rows:,} rows in {n_files} files at {out}")
    return dataset


def find_or_generate(
    out: Path,
    *,
    scale: float,
    seed: int = DEFAULT_SEED,
    files: int | None = None,
    spark: SparkSession,
    log: Log = lambda _: None,
) -> Dataset:
    """The data set at ``out`` if it is the one asked for, else write it.

    A data set of another scale, seed or number of files is replaced.

    Raises:
        SsbError: as `generate`.
    """
    found = find_dataset(out)
    wanted = (scale, seed, Sizes.of(scale).default_files if files is None else files)
    if found is not None and (found.scale, found.seed, found.n_files) == wanted:
        log(f"reusing the data at {out}")
        return found
    return generate(
        out, scale=scale, seed=seed, files=files, spark=spark, log=log,
        overwrite=(out / _METADATA).exists(),
    )  # fmt: skip


def check_request(
    out: Path, *, scale: float, seed: int, files: int | None, overwrite: bool
) -> None:
    """Find out in no time whether `generate` can do what is asked.

    Raises:
        SsbError: as `generate`.
    """
    sizes = Sizes.of(scale)
    if files is not None and not 1 <= files <= sizes.n_orders:
        raise SsbError(
            f"cannot write {files} files at scale {scale!r}: "
            f"accepted is 1 to {sizes.n_orders}, one order a file"
        )
    if not -(2**63) <= seed < 2**63:
        raise SsbError(f"seed {seed} is too large: accepted is a 64-bit integer")
    _check_target(out, overwrite=overwrite)
    _tpchgen()


def _check_target(out: Path, *, overwrite: bool) -> None:
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    # What is replaced is deleted, so it must be ours beyond doubt.
    if not (out / _METADATA).is_file():
        raise SsbError(
            f"{str(out)!r} exists and is no SSB data set (it has no {_METADATA}): "
            "accepted is a new or an empty folder"
        )
    if not overwrite:
        raise SsbError(
            f"{str(out)!r} holds an SSB data set: "
            "accepted is a new or an empty folder, or overwrite"
        )


def _tpchgen() -> str:
    """The generator's command, from this interpreter's environment first."""
    beside = Path(sys.executable).parent
    found = shutil.which("tpchgen-cli", path=str(beside)) or shutil.which("tpchgen-cli")
    if found is None:
        raise SsbError(
            f"no tpchgen-cli in {str(beside)!r} or on the path: "
            "install it with pip install 'skipindex[ssb]' or pip install tpchgen-cli"
        )
    return found


def _make_tpch(
    folder: Path, *, scale: float, spark: SparkSession
) -> dict[str, DataFrame]:
    command = _tpchgen()
    tables = ",".join(("region", "nation", *_TPCH_TABLES))
    answer = subprocess.run(  # noqa: S603 - a command of our own environment
        [command, "parquet", "--scale-factor", f"{scale:.3f}", "--tables", tables,
         "--output-dir", str(folder), "--no-progress"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if answer.returncode != 0:
        last = (answer.stderr.strip().splitlines() or ["no message"])[-1]
        raise SsbError(f"{command!r} failed with {answer.returncode}: {last}")

    def read(table: str) -> DataFrame:
        return spark.read.parquet(str(folder / f"{table}.parquet"))

    nation = read("nation").join(
        read("region"), F.col("n_regionkey") == F.col("r_regionkey")
    )
    return {"nation": nation} | {table: read(table) for table in _TPCH_TABLES}


def _write_tables(
    tpch: dict[str, DataFrame],
    folder: Path,
    *,
    sizes: Sizes,
    seed: int,
    n_files: int,
    spark: SparkSession,
    log: Log,
) -> dict[str, int]:
    def write(table: str, frame: DataFrame) -> DataFrame:
        log(f"writing {table}")
        frame.write.parquet(str(folder / table))
        return spark.read.schema(frame.schema).parquet(str(folder / table))

    dimensions = {
        "customer": tables_of.customer(
            tpch["customer"], tpch["nation"], n_rows=sizes.n_customers, seed=seed
        ),
        "supplier": tables_of.supplier(
            tpch["supplier"], tpch["nation"], n_rows=sizes.n_suppliers, seed=seed
        ),
        "part": tables_of.part(tpch["part"], n_rows=sizes.n_parts, seed=seed),
        "date": spark.createDataFrame(list(calendar.date_rows()), calendar.SCHEMA),
    }
    written = {
        table: write(table, frame.coalesce(1).sortWithinPartitions(frame.columns[0]))
        for table, frame in dimensions.items()
    }
    for files in slices(sizes, n_files):
        facts = lineorder(
            tpch["lineitem"], tpch["orders"], sizes=sizes, seed=seed, n_files=n_files,
            files=files, spark=spark,
        ).persist(StorageLevel.MEMORY_AND_DISK)  # fmt: skip
        try:
            for table, frame in (
                ("lineorder", facts),
                ("lineorder_flat", _flat(facts, written)),
            ):
                log(f"writing {table}, files {files.start + 1} to {files.stop}")
                _write_slice(frame, folder / table, first=files.start)
        finally:
            facts.unpersist()
    row_counts = {table: _count_rows(folder / table) for table in TABLES}
    if row_counts["lineorder_flat"] != row_counts["lineorder"]:
        raise SsbError(
            f"lineorder_flat has {row_counts['lineorder_flat']} rows, lineorder "
            f"{row_counts['lineorder']}: a key found no or several dimension rows"
        )
    return row_counts


def slices(sizes: Sizes, n_files: int) -> list[range]:
    """The files in groups of no more orders than scale 1 has, if a file has fewer.

    So the memory that a group takes does not grow with the scale.
    """
    n_slices = min(n_files, -(-sizes.n_orders // _SLICE_ORDERS))
    starts = [i * n_files // n_slices for i in range(n_slices + 1)]
    return [range(a, b) for a, b in pairwise(starts)]


def _write_slice(frame: DataFrame, folder: Path, *, first: int) -> None:
    """Write one file for each partition; their names go on from number ``first``."""
    aside = folder.with_name(f"{folder.name}.slice")
    frame.write.parquet(str(aside))
    folder.mkdir(exist_ok=True)
    for file in aside.glob("*.parquet"):
        _, number, rest = file.name.split("-", 2)
        file.rename(folder / f"part-{first + int(number):05d}-{rest}")
    shutil.rmtree(aside)


def _count_rows(folder: Path) -> int:
    return sum(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet"))


def _flat(facts: DataFrame, dimensions: Mapping[str, DataFrame]) -> DataFrame:
    """Join every dimension to the facts, and leave the rows where they are."""
    flat = facts
    for table, fact_key, key in (
        ("customer", "lo_custkey", "c_custkey"),
        ("supplier", "lo_suppkey", "s_suppkey"),
        ("part", "lo_partkey", "p_partkey"),
        ("date", "lo_orderdate", "d_datekey"),
    ):
        # A broadcast join keeps the partitions of the facts and their order.
        dimension = F.broadcast(dimensions[table])
        flat = flat.join(dimension, F.col(fact_key) == F.col(key)).drop(key)
    return flat


def _write_metadata(dataset: Dataset, path: Path) -> None:
    values = {name: getattr(dataset, name) for name in _RECORDED}
    stored = {"version": FORMAT_VERSION, **values}
    path.write_text(json.dumps(stored, indent=2) + "\n", encoding="utf-8")
