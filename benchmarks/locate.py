"""Rows by keys: ``Table.locate`` beside DuckDB and Lance, and what a merge saves.

``python -m benchmarks.locate``.  The rows are those of 1,000 files in no order.  A
merge changes the rows of some keys in a Delta table of 730 files in 365 days.  The
files are in the page cache.  Lance counts if ``pylance`` is installed.
"""

from __future__ import annotations

import importlib
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

import skipindex as sx
from benchmarks._report import Measure, alone, best_seconds, peak_bytes, show
from ssb.session import local_session

_FILES, _ROWS = 1_000, 6_000
_KEYS: Final = (10_000, 1_000_000)
_DAYS, _A_DAY = 365, 5_000
_USERS: Final = 2_000_000
_MERGED: Final = (11, 4_711, 99_000, 1_500_000, 7, 800_123)


_Look = Callable[[Path, pa.Array], int]
"""Looks keys up in a folder; how many rows have one."""


def _seconds(look: _Look, folder: Path, keys: pa.Array, *, rounds: int = 3) -> float:
    def once() -> None:
        assert look(folder, keys) == len(keys)

    return best_seconds(once, rounds=rounds, warm_up=False)


def _rows(folder: Path) -> pa.Array:
    """Files of keys in no order; the keys."""
    rng = np.random.default_rng(1)
    keys = rng.permutation(_FILES * _ROWS) * 7
    for i, some in enumerate(np.split(keys, _FILES)):
        rows = pa.table({"key": some, "value": rng.random(_ROWS)})
        pq.write_table(rows, folder / f"{i:04}.parquet")
    return pa.array(keys)


def _by_skipindex(folder: Path, keys: pa.Array) -> int:
    table = sx.open_table(folder)
    return sum(batch.num_rows for batch in table.locate(keys, "key"))


def _by_duckdb(folder: Path, keys: pa.Array) -> int:
    with duckdb.connect() as connection:
        connection.register("keys", pa.table({"key": keys}))
        files = connection.read_parquet(
            f"{folder}/*.parquet", filename=True, file_row_number=True
        )
        return len(files.join(connection.table("keys"), "key").to_arrow_table())


def _peak(folder: Path, keys: pa.Array) -> float:
    """The most memory of a process that does nothing else, in MB."""
    _by_skipindex(folder, keys)
    return peak_bytes() / 2**20


def _lance(folder: Path, to: Path) -> _Look | None:
    """What looks keys up in a copy of the rows with a scalar index."""
    try:
        lance: Any = importlib.import_module("lance")
    except ImportError:
        return None
    rows = pq.read_table(folder)
    dataset = lance.write_dataset(rows, str(to), max_rows_per_file=_ROWS)
    dataset.create_scalar_index("key", "BTREE")

    def look(_: Path, keys: pa.Array) -> int:
        where = f"key IN ({', '.join(map(str, keys.to_pylist()))})"
        asked = {"columns": ["key"], "filter": where, "with_row_address": True}
        return int(lance.dataset(str(to)).scanner(**asked).to_table().num_rows)

    return look


def keys(root: Path) -> None:
    """Many keys, with and without the indexes in the cache."""
    folder = root / "keys"
    folder.mkdir()
    every = _rows(folder)
    sx.build_indexes(folder, {"key": "exact"})
    look = _lance(folder, root / "lance")
    rng = np.random.default_rng(2)
    for n in _KEYS:
        some = every.take(pa.array(rng.choice(len(every), n, replace=False)))
        cold = _seconds(_by_skipindex, folder, some, rounds=1)
        mine = _seconds(_by_skipindex, folder, some)
        other, is_few = _seconds(_by_duckdb, folder, some), n == _KEYS[0]
        half = (other / 2, "half of DuckDB's time") if is_few else ()
        measures = [
            Measure("locate", mine, "s", *half),
            Measure("with an empty cache", cold, "s"),
            Measure("a join of DuckDB", other, "s"),
            Measure("most memory", alone(_peak, folder, some), "MB", 500.0),
        ]
        if look is not None and is_few:  # its filter is a text of all keys
            measures.append(Measure("Lance, BTREE", _seconds(look, folder, some), "s"))
        show(f"{n:,} keys in {_FILES:,} files of {_ROWS:,} rows", measures)


def join(root: Path) -> None:
    """A join of Spark with a few keys, over all files and over those located."""
    folder = root / "keys"
    every = pq.read_table(folder / "0000.parquet")["key"]
    some = every.slice(0, 3).to_pylist()
    with local_session("locate") as spark:
        updates = spark.createDataFrame([(key,) for key in some], "key bigint")

        def joined(files: list[str]) -> int:
            return spark.read.parquet(*files).join(updates, "key").count()

        def located() -> int:
            found = sx.open_table(folder).locate(some, "key").read_all()
            names = sorted(set(found["file"].to_pylist()))
            return joined([str(folder / name) for name in names])

        assert located() == joined([str(folder)]) == len(some)
        other = best_seconds(lambda: joined([str(folder)]), rounds=5)
        mine = best_seconds(located, rounds=5)
    _compare(f"a join of Spark with {len(some)} keys", "join", mine, other)


def _compare(title: str, what: str, mine: float, other: float) -> None:
    limited = Measure(f"locate, {what}", mine, "s", other)
    show(title, [limited, Measure(f"{what} alone", other, "s")])


def merge(root: Path) -> None:
    """A merge into a Delta table, alone and with the days that the keys are in."""
    path = root / "delta"
    rng = np.random.default_rng(3)
    n = _DAYS * _A_DAY
    days = np.repeat([f"d{day:03}" for day in range(_DAYS)], _A_DAY)
    for _ in range(2):
        users, total = rng.integers(0, _USERS, n), rng.random(n)
        rows = pa.table({"user": users, "day": days, "total": total})
        write_deltalake(path, rows, mode="append", partition_by=["day"])
    sx.build_indexes(path, {"user": "exact"})
    updates = pa.table({"user": list(_MERGED), "total": [0.5] * len(_MERGED)})

    def merged(where: str) -> int:
        merger = DeltaTable(path).merge(updates, where, "s", "t")
        done = merger.when_matched_update({"total": "s.total"}).execute()
        return int(done["num_target_rows_updated"])

    def located() -> int:
        found = sx.open_table(path).locate(_MERGED, "user").read_all()
        folders = {file.split("/")[0] for file in found["file"].to_pylist()}
        days = ", ".join(f"'{name.removeprefix('day=')}'" for name in sorted(folders))
        return merged(f"t.user = s.user AND t.day IN ({days})")

    figures = []
    for by in (located, lambda: merged("t.user = s.user")):
        best = float("inf")
        for _ in range(3):
            shutil.copytree(path, root / "saved")
            began = time.perf_counter()
            n_rows = by()
            best = min(best, time.perf_counter() - began)
            shutil.rmtree(path)
            (root / "saved").rename(path)
        figures.append((best, n_rows))
    (mine, changed), (other, same) = figures
    assert changed == same
    title = f"a merge of {len(_MERGED)} keys, {changed} rows, into {2 * _DAYS} files"
    _compare(title, "merge", mine, other)


def main() -> None:
    """Run all parts."""
    with tempfile.TemporaryDirectory() as folder:
        keys(Path(folder))
        join(Path(folder))
        merge(Path(folder))


if __name__ == "__main__":
    main()
