"""Plans over very many files: ``python -m benchmarks.scale [--files N …]``.

Tables of statistics alone, ten columns of each type, half of them clustered.  Opening
is from the log, so no file is listed; every plan is the whole call.  ``deltalake``,
where it is installed, reads a log of the same statistics (``--peer-files`` at most, as
it is written line by line), and so does ``pyiceberg`` (``--iceberg-files``).
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import skipindex as sx
from benchmarks._manifests import Bounds, manifest_of
from benchmarks._report import Measure, best_seconds, show
from skipindex.expressions import Predicate, col, to_sql
from skipindex.log import Snapshot, newest_snapshot
from skipindex.log.manifest import Manifest
from skipindex.log.properties import NO_PROPERTIES, TableProperties
from skipindex.source import commit
from skipindex.source.folder.exclusive import DECLARED
from skipindex.storage.file_system.location import Location, location_of
from ssb.files import size_of


def iceberg_table(bounds: Bounds, folder: Path) -> Callable[[], Any]:
    """Write a table with the statistics of every file; what loads it again."""
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415
    from pyiceberg.conversions import to_bytes  # noqa: PLC0415
    from pyiceberg.manifest import (  # noqa: PLC0415
        DataFile,
        DataFileContent,
        FileFormat,
    )
    from pyiceberg.typedef import Record  # noqa: PLC0415
    from pyiceberg.types import PrimitiveType  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    catalog = SqlCatalog(
        "c", uri=f"sqlite:///{folder}/catalog.db", warehouse=folder.as_uri()
    )
    catalog.create_namespace("d")
    schema = pa.schema([(name, low.type) for name, (low, _) in bounds.items()])
    table = catalog.create_table("d.t", schema=schema)
    encoded: list[dict[int, list[bytes]]] = [{}, {}]
    for field in table.schema().fields:
        for side, end in enumerate(bounds[field.name]):
            values = end.to_pylist()
            encoded[side][field.field_id] = [
                to_bytes(cast(PrimitiveType, field.field_type), value)
                for value in values
            ]
    ids = list(encoded[0])
    n_files = len(next(iter(bounds.values()))[0])
    with table.transaction() as change, change.update_snapshot().fast_append() as files:
        for i in range(n_files):
            lower, upper = ({n: side[n][i] for n in ids} for side in encoded)
            files.append_data_file(
                DataFile.from_args(
                    content=DataFileContent.DATA,
                    file_path=f"{folder.as_uri()}/part-{i:07}.parquet",
                    file_format=FileFormat.PARQUET,
                    partition=Record(),
                    record_count=60_000,
                    file_size_in_bytes=1_000_000,
                    column_sizes={},
                    value_counts=dict.fromkeys(ids, 60_000),
                    null_value_counts=dict.fromkeys(ids, 0),
                    nan_value_counts={},
                    lower_bounds=lower,
                    upper_bounds=upper,
                )
            )
    return lambda: catalog.load_table("d.t")


def iceberg_filter(sql: str) -> str:
    """A condition as pyiceberg spells it: dates are texts."""
    return sql.replace("DATE'", "'")


SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)
LIMIT_MS: Final = {10_000: 1.0, 100_000: 5.0, 1_000_000: 30.0}
"""Of a warm plan with one condition; an AND of three may take twice as long."""
LIMIT_OPEN_MS: Final = {1_000_000: 1_000.0}
"""Of opening, and the first plan."""
LIMIT_BYTES: Final = 300.0
"""In memory, for a file with statistics of all ten columns."""
N_LISTED: Final = 1_000
N_APPENDS: Final = 3

"""The least and the greatest values of every file, by column."""


def bounds_of(n_files: int) -> Bounds:
    """Ten columns of statistics; ``id``, ``day``, ``user``, ``seen`` are clustered."""
    rng = np.random.default_rng(1)
    place = np.arange(n_files)
    spread = rng.integers(0, 1 << 20, n_files)
    city = rng.integers(0, 240, n_files)
    key = np.sort(rng.integers(0, 1 << 62, (2, n_files)), axis=0)

    def numbers(dtype: pa.DataType, low: npt.NDArray[Any], width: int) -> Any:
        wide = pa.decimal128(38, 4) if pa.types.is_decimal(dtype) else dtype
        ends = (pa.array(end) for end in (low, low + width))
        return tuple(end.cast(wide).cast(dtype) for end in ends)

    def texts(form: str, low: npt.NDArray[Any], high: npt.NDArray[Any]) -> Any:
        return tuple(pa.array([form % n for n in end.tolist()]) for end in (low, high))

    day = 10_000 + place * 5_000 // max(1, n_files)
    return {
        "id": numbers(pa.int64(), place * 1_000, 1_200),
        "n": numbers(pa.int64(), spread, 10_000),
        "day": tuple(end.cast(pa.date32()) for end in numbers(pa.int32(), day, 1)),
        "price": numbers(pa.decimal128(12, 2), spread, 500),
        "total": numbers(pa.decimal128(38, 4), spread - (1 << 19), 500),
        "user": texts("user-%010d", place * 1_000, place * 1_000 + 1_200),
        "city": texts("CITY %03d", city, city + 9),
        "key": texts("%016x", key[0], key[1]),
        "seen": numbers(pa.int64(), place * 60_000_000, 90_000_000),
        "amount": numbers(pa.float64(), spread / 7, 100),
    }


def conditions(n_files: int) -> dict[str, str | Predicate]:
    """One condition of every kind, by what it is; most of a long list is its text."""
    at = n_files // 2 * 1_000
    listed = range(at, at + N_LISTED * 1_500, 1_500)
    users = ", ".join(f"'user-{n:010}'" for n in listed)
    far = ", ".join(map(str, range(0, 1 << 20, (1 << 20) // N_LISTED)))
    return {
        "number =": f"id = {at}",
        "number range": "n BETWEEN 500000 AND 520000",
        "date =": "day = DATE'2004-01-01'",
        "decimal <": "price < 1000.50",
        "long decimal range": "total BETWEEN -200 AND 200",
        "double >": "amount > 149000",
        "string =": f"user = 'user-{at:010}'",
        "string <>": "city <> 'CITY 100'",
        "string range": "key BETWEEN '2' AND '21'",
        "LIKE 'x%'": "city LIKE 'CITY 01%'",
        "IN of 1,000 numbers": f"id IN ({', '.join(map(str, listed))})",
        "IN of 1,000 far numbers": f"n IN ({far})",
        "isin of an array of 1,000": col("n").isin(np.arange(N_LISTED) * 1_048),
        "IN of 1,000 strings": f"user IN ({users})",
        "OR": f"id = {at} OR city = 'CITY 007'",
        "NOT": "NOT (n < 1000000 OR price > 900000)",
        "AND of three": "n > 500000 AND city = 'CITY 100' AND total < 0",
    }


def manifest_of_many(n_files: int) -> Manifest:
    """The manifest of so many files with these statistics, and no index."""
    paths = [f"part-{i:07}.parquet" for i in range(n_files)]
    return manifest_of(paths, bounds_of(n_files))


def opened(location: Location, schema: pa.Schema) -> sx.Table:
    """The table as its log has it."""
    return sx.open_table(location.full(""), schema=schema, trust="log")


def once(call: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds of one call, and what it returns."""
    began = time.perf_counter()
    found = call()
    return (time.perf_counter() - began) * 1e3, found


def written(location: Location, manifest: Manifest) -> float:
    """Milliseconds of a commit."""
    whole = manifest, TableProperties(exclusive=DECLARED)
    return once(lambda: commit(location, lambda _: whole, operation="benchmark"))[0]


def bytes_per_file(location: Location, schema: pa.Schema) -> float:
    """What is in memory once every column has been compared with a value."""
    gc.collect()
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    table = opened(location, schema)
    for column in table.columns:
        assert column.domain is not None
        table.state.stats(column).ends.between(
            b"" if column.domain.is_bytes else 0, None
        )
    arrow: int = pa.total_allocated_bytes() - before
    python, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (arrow + python) / len(table)


def measures(n_files: int, folder: Path, rounds: int) -> Iterator[Measure]:
    """Opening, first and warm plans, and memory, of a table of so many files."""
    schema = pa.schema([(name, low.type) for name, (low, _) in bounds_of(2).items()])
    location = location_of(folder)
    wrote = written(location, manifest_of_many(n_files))
    asked = conditions(n_files)

    def measure(what: str, figure: float, limit: float | None, note: str = "") -> Any:
        return Measure(what=what, figure=figure, unit="ms", limit=limit, note=note)

    yield measure("a commit of all files", wrote, None)
    opening, table = once(lambda: opened(location, schema))
    first, _ = once(lambda: table.plan(asked["string ="]))
    limit = LIMIT_OPEN_MS.get(n_files)
    yield measure("open from the log, first plan", opening + first, limit)
    for what, condition in asked.items():
        ask = partial(table.plan, condition)
        first, plan = once(ask)
        ms = 1e3 * best_seconds(ask, rounds=rounds)
        limit = LIMIT_MS.get(n_files)
        if limit and what == "AND of three":
            limit *= 2
        note = f"{len(plan.files):,} files kept, first {first:.3g} ms"
        yield measure(what, ms, limit, note)
    what = "a plan of all files, and their paths"
    yield measure(what, once(lambda: list(table.plan("n >= 0").files))[0], None)
    memory = bytes_per_file(location, schema)
    limit = LIMIT_BYTES if n_files >= 10_000 else None
    yield Measure(what="memory of a file", figure=memory, unit="B", limit=limit)
    n_bytes = size_of(folder / "_skipindex")
    yield Measure(
        what="bytes of the log", figure=n_bytes / n_files, unit="B", note="of a file"
    )
    appends = []
    base = newest_snapshot(location)
    for i in range(N_APPENDS):
        one = manifest_of([f"new-{i}.parquet"], bounds_of(1))
        change = partial(_appended, one)
        call = partial(commit, location, change, operation="append", known=base)
        ms, base = once(call)
        appends.append(ms)
    note = f"{(size_of(folder / '_skipindex') - n_bytes) / N_APPENDS / 1e3:.1f} kB each"
    yield measure("a commit of one file", min(appends), None, note)


def _appended(one: Manifest, base: Snapshot) -> tuple[Manifest, TableProperties]:
    return base.manifest.merge(one), NO_PROPERTIES


def write_delta_log(folder: Path, n_files: int) -> None:
    """A table of delta-rs with the same statistics."""
    bounds = bounds_of(n_files)
    types = {"int64": "long", "date32[day]": "date", "double": "double"}
    fields = []
    for name, (low, _) in bounds.items():
        kind = types.get(str(low.type), "string")
        if pa.types.is_decimal(low.type):
            kind = f"decimal({low.type.precision},{low.type.scale})"
        fields.append({"name": name, "type": kind, "nullable": True, "metadata": {}})
    meta = {
        "id": "00000000-0000-0000-0000-000000000000",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 0,
    }
    plain = {
        name: [_plain(end).to_pylist() for end in ends] for name, ends in bounds.items()
    }
    (folder / "_delta_log").mkdir(parents=True)
    with (folder / "_delta_log" / f"{0:020}.json").open("w") as log:
        protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
        print(json.dumps({"protocol": protocol}), file=log)
        print(json.dumps({"metaData": meta}), file=log)
        for i in range(n_files):
            stats = {
                "numRecords": 60_000,
                "minValues": {name: ends[0][i] for name, ends in plain.items()},
                "maxValues": {name: ends[1][i] for name, ends in plain.items()},
                "nullCount": dict.fromkeys(plain, 0),
            }
            add = {
                "path": f"part-{i:07}.parquet",
                "partitionValues": {},
                "size": 1_000_000,
                "modificationTime": 0,
                "dataChange": True,
                "stats": json.dumps(stats),
            }
            print(json.dumps({"add": add}), file=log)


def _plain(values: pa.Array) -> pa.Array:
    """Values as JSON has them."""
    if pa.types.is_decimal(values.type):
        return values.cast(pa.float64())
    return values.cast(pa.string()) if pa.types.is_date(values.type) else values


def peer_measures(n_files: int, folder: Path, rounds: int) -> Iterator[Measure]:
    """The same conditions, asked of delta-rs."""
    from deltalake import DeltaTable  # noqa: PLC0415

    write_delta_log(folder, n_files)
    opening, table = once(lambda: DeltaTable(str(folder)))
    yield Measure(what="delta-rs: open", figure=opening, unit="ms")

    def plan(text: str) -> list[str]:
        kept: list[str] = table.file_uris(file_pruning_predicate=text)
        return kept

    yield from asked_of("delta-rs", plan, n_files, rounds)


def iceberg_measures(n_files: int, folder: Path, rounds: int) -> Iterator[Measure]:
    """The same conditions, asked of pyiceberg."""
    wrote, load = once(lambda: iceberg_table(bounds_of(n_files), folder))
    yield Measure(what="pyiceberg: a commit of all files", figure=wrote, unit="ms")
    opening, table = once(load)
    yield Measure(what="pyiceberg: open", figure=opening, unit="ms")

    def plan(text: str) -> list[Any]:
        return list(table.scan(row_filter=iceberg_filter(text)).plan_files())

    yield from asked_of("pyiceberg", plan, n_files, min(rounds, 3))


def asked_of(
    peer: str, plan: Callable[[str], list[Any]], n_files: int, rounds: int
) -> Iterator[Measure]:
    """What a peer takes for every condition, or what it says of one that it refuses."""
    for what, condition in conditions(n_files).items():
        sql = condition if isinstance(condition, str) else to_sql(condition)
        ask = partial(plan, sql)
        try:
            kept = ask()
        except Exception as error:  # noqa: BLE001 (whatever the peer raises is its answer)
            note = str(error).splitlines()[0][:60]
            yield Measure(what=f"{peer}: {what}", figure=float("nan"), note=note)
            continue
        ms = 1e3 * best_seconds(ask, rounds=rounds)
        note = f"{len(kept):,} files kept"
        yield Measure(what=f"{peer}: {what}", figure=ms, unit="ms", note=note)


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale", description=__doc__
    )
    parser.add_argument("--files", type=int, nargs="+", default=SIZES)
    parser.add_argument("--peer-files", type=int, default=100_000, metavar="N")
    parser.add_argument("--iceberg-files", type=int, default=10_000, metavar="N")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--folder", type=Path, help="where to write (temporary)")
    options = parser.parse_args(arguments)
    for peer in ("deltalake", "pyiceberg"):
        if not find_spec(peer):
            print(f"no {peer} here: pip install 'skipindex[bench]' compares with it")
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        list(measures(10, Path(name), 1))  # what is imported once
    for n_files in options.files:
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            found = list(measures(n_files, Path(name), options.rounds))
            if find_spec("deltalake") and n_files <= options.peer_files:
                found += peer_measures(n_files, Path(name) / "delta", options.rounds)
            if find_spec("pyiceberg") and n_files <= options.iceberg_files:
                at = Path(name) / "iceberg"
                found += iceberg_measures(n_files, at, options.rounds)
        show(f"scale: {n_files:,} files, warm, best of {options.rounds}", found)


if __name__ == "__main__":
    main(sys.argv[1:])
