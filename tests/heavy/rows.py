"""Rows at known positions, by pages, beside those of a full read of the files.

Tables of many types are written by pyarrow, DuckDB, Polars and fastparquet, with pages
and row groups of many sizes.  Of each file some rows are read: both ends of every page,
few, all.  They must be the rows of a full read.  Then bytes of a file are damaged, in
headers of pages, the offset index or anywhere before the footer: the rows must be those
of a full read, or of the file before if that fails, or there is an error.

Engines read plans of the same tables, by pages and by scans, with settings of DuckDB
that are made before and after the relation: the rows must be those of Arrow.
"""

from __future__ import annotations

import math
import os
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import skipindex as sx
from skipindex.errors import PlanError
from skipindex.expressions.arrays import Ints
from skipindex.planner.rows import engines
from skipindex.planner.rows.dataset import Files
from skipindex.planner.rows.pages import (
    NotPagedError,
    WantedPages,
    flat_columns,
    wanted_pages,
)
from skipindex.planner.rows.selected import Bytes, rows_at
from skipindex.source import UNREADABLE, DataFile
from tests.heavy.catalogue import Told, rounds

N_DAMAGES: Final = 25
_EPOCH: Final = datetime(1970, 1, 1)
_FINITE: Final = (0.0, -0.0, 1.5, -1.5, 5e-324, -5e-324, math.inf, -math.inf)
_NUMBERS: Final = (0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, 1e-300)

SETTINGS: Final = (
    *("default_collation='NOCASE'", "default_collation='NOACCENT.NOCASE'"),
    *("default_null_order='nulls_first'", "integer_division=true"),
    *("disabled_optimizers='filter_pushdown'", "preserve_insertion_order=false"),
    *("old_implicit_casting=true", "ieee_floating_point_ops=false", "threads=1"),
)
"""Of a connection of DuckDB."""

Draw = Callable[[random.Random], Any]
VALUES: Final[Mapping[str, tuple[pa.DataType, Draw]]] = {
    "bool": (pa.bool_(), lambda r: r.random() < 0.5),
    "byte": (pa.int8(), lambda r: r.randint(-128, 127)),
    "short": (pa.int16(), lambda r: r.randint(-5, 5)),
    "int": (pa.int32(), lambda r: r.randint(-(2**31), 2**31 - 1)),
    "long": (pa.int64(), lambda r: r.randint(-(2**63), 2**63 - 1)),
    "few": (pa.int64(), lambda r: r.randint(0, 3)),
    "unsigned": (pa.uint32(), lambda r: r.randint(0, 2**32 - 1)),
    "float": (pa.float32(), lambda r: r.choice(_NUMBERS[:6])),
    "double": (pa.float64(), lambda r: r.choice([*_NUMBERS, r.random()])),
    "number": (pa.float64(), lambda r: r.choice([*_FINITE, r.uniform(-2, 2)])),
    "city": (pa.string(), lambda r: f"city {r.randint(0, 20)}"),
    "text": (pa.string(), lambda r: "é" * r.randint(0, 3) + str(r.random())),
    "long_text": (pa.large_string(), lambda r: "x" * r.randint(0, 500)),
    "blob": (pa.binary(), lambda r: r.randbytes(r.randint(0, 9))),
    "day": (pa.date32(), lambda r: date(1970, 1, 1) + timedelta(r.randint(0, 9000))),
    "ms": (pa.timestamp("ms"), lambda r: _EPOCH + timedelta(0, r.randint(0, 10**9))),
    "us": (
        pa.timestamp("us"),
        lambda r: _EPOCH + timedelta(0, 0, r.randint(-(10**15), 10**15)),
    ),
    "instant": (
        pa.timestamp("us", "UTC"),
        lambda r: _EPOCH + timedelta(0, r.randint(0, 10**9)),
    ),
    "small": (
        pa.decimal128(7, 2),
        lambda r: Decimal(r.randint(-(10**6), 10**6)).scaleb(-2),
    ),
    "large": (
        pa.decimal128(30, 3),
        lambda r: Decimal(r.randint(-(10**20), 10**20)).scaleb(-3),
    ),
}
FLAT_OF_ARROW: Final[Mapping[str, tuple[pa.DataType, Draw]]] = {
    "category": (
        pa.dictionary(pa.int32(), pa.string()),
        lambda r: f"c{r.randint(0, 9)}",
    ),
    "list": (pa.list_(pa.int32()), lambda r: [r.randint(0, 9)] * r.randint(0, 3)),
    "record": (
        pa.struct({"a": pa.int64(), "b": pa.string()}),
        lambda r: {"a": r.randint(0, 9), "b": str(r.randint(0, 99))},
    ),
    "a.b": (pa.int32(), lambda r: r.randint(0, 99)),
}
"""Types that only pyarrow writes here."""


def column(rng: random.Random, n: int, dtype: pa.DataType, draw: Draw) -> pa.Array:
    """Values with some NULLs: none, one by one, in runs, or only NULLs."""
    how = rng.choice(["none", "none", "some", "runs", "all"])
    is_null = False
    values = []
    for _ in range(n):
        if how == "some":
            is_null = rng.random() < 0.2
        elif how == "runs" and rng.random() < 0.01:
            is_null = not is_null
        values.append(None if is_null or how == "all" else draw(rng))
    return pa.array(values, dtype)


def table_of(rng: random.Random, kinds: Mapping[str, Any], n: int) -> pa.Table:
    """A table with a number of each row and some columns."""
    names = rng.sample(sorted(kinds), min(len(kinds), rng.randint(2, 7)))
    columns = {name: column(rng, n, *kinds[name]) for name in names}
    return pa.table({"id": pa.array(range(n), pa.int64()), **columns})


def by_pyarrow(rng: random.Random, path: Path, n: int) -> None:
    table = table_of(rng, {**VALUES, **FLAT_OF_ARROW}, n)
    coded: Any = rng.choice([True, False, ["id"]])
    encodings: Any = None
    old_times = rng.random() < 0.15
    if coded is False and not old_times and rng.random() < 0.7:
        encodings = {
            name: e
            for name in table.column_names
            if (e := _encoding(rng, table[name].type))
        }
    if rng.random() < 0.2:
        fields = [
            field.with_nullable(bool(table[field.name].null_count))
            for field in table.schema
        ]
        table = table.cast(pa.schema(fields))
    pq.write_table(
        table, path, use_dictionary=coded, column_encoding=encodings,
        data_page_version=rng.choice(["1.0", "2.0"]),
        data_page_size=rng.choice([64, 500, 4000, 1 << 20]),
        dictionary_pagesize_limit=rng.choice([100, 2000, 1 << 20]),
        write_batch_size=rng.choice([1, 7, 100, 1024]),
        row_group_size=rng.choice([50, 700, 10**6]),
        compression=rng.choice(["snappy", "gzip", "zstd", "brotli", "lz4", "none"]),
        write_page_index=rng.random() < 0.5,
        write_page_checksum=rng.random() < 0.3,
        write_statistics=rng.random() < 0.8,
        store_schema=rng.random() < 0.7,
        use_deprecated_int96_timestamps=old_times,
        store_decimal_as_integer=rng.random() < 0.3,
    )  # fmt: skip


def _encoding(rng: random.Random, dtype: pa.DataType) -> str | None:
    types = pa.types
    if types.is_integer(dtype) or types.is_timestamp(dtype) or types.is_date(dtype):
        small = types.is_integer(dtype) and dtype.bit_width < 32
        return (
            None
            if small
            else rng.choice(["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"])
        )
    if types.is_floating(dtype):
        return rng.choice(["PLAIN", "BYTE_STREAM_SPLIT"])
    if types.is_boolean(dtype):
        return rng.choice(["PLAIN", "RLE"])
    if types.is_string(dtype) or types.is_binary(dtype):
        return rng.choice(["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
    return None


def by_duckdb(rng: random.Random, path: Path, n: int) -> None:
    import duckdb  # noqa: PLC0415 (only this writer needs it)

    table = table_of(rng, VALUES, n)
    options = [
        f"ROW_GROUP_SIZE {rng.choice([2048, 4096, 100_000])}",
        f"COMPRESSION {rng.choice(['snappy', 'zstd', 'gzip', 'uncompressed'])}",
        f"PARQUET_VERSION {rng.choice(['V1', 'V2'])}",
    ]
    with duckdb.connect() as connection:
        connection.register("rows", table)
        connection.execute(
            f"COPY rows TO '{path}' (FORMAT parquet, {', '.join(options)})"
        )


def by_polars(rng: random.Random, path: Path, n: int) -> None:
    import polars as pl  # noqa: PLC0415 (only this writer needs it)

    pl.from_arrow(table_of(rng, VALUES, n)).write_parquet(  # type: ignore[union-attr]
        path,
        compression=rng.choice(["snappy", "zstd", "gzip", "lz4", "uncompressed"]),
        row_group_size=rng.choice([100, 3000, None]),
        data_page_size=rng.choice([500, 5000, None]),
        statistics=rng.choice([True, False]),
    )


def by_fastparquet(rng: random.Random, path: Path, n: int) -> None:
    import fastparquet  # noqa: PLC0415 (only this writer needs it)

    kinds = {
        k: VALUES[k] for k in ("bool", "int", "long", "double", "city", "text", "us")
    }
    frame = table_of(rng, kinds, n).to_pandas()
    fastparquet.write(
        str(path), frame, compression=rng.choice(["SNAPPY", "GZIP", "ZSTD", None]),
        row_group_offsets=rng.choice([200, 5000]), write_index=False,
    )  # fmt: skip


WRITERS: Final[Mapping[str, Callable[[random.Random, Path, int], None]]] = {
    "pyarrow": by_pyarrow,
    "duckdb": by_duckdb,
    "polars": by_polars,
    "fastparquet": by_fastparquet,
}


def _chunks(source: pa.NativeFile, file: DataFile) -> Iterator[tuple[int, WantedPages]]:
    """The pages of each column chunk that has some, with the first row of its group."""
    try:
        columns = flat_columns(source, file).values()
    except NotPagedError:
        return
    first = 0
    for group in file.groups:
        for one in columns:
            with suppress(NotPagedError):
                every = np.arange(group.num_rows)
                yield first, wanted_pages(source, group, one.place, every)
        first += group.num_rows


def positions(rng: random.Random, path: Path) -> Iterator[Ints]:
    """Selections of rows: of all pages both ends, one row, few, ranges, all."""
    with pa.OSFile(str(path)) as source:
        file, ends = DataFile(source), {0}
        n_rows = file.metadata.num_rows
        for first, chunk in _chunks(source, file):
            for at in np.cumsum([page.n_values for page in chunk.pages]).tolist():
                ends |= {first + at - 1, first + at}
    edges = np.array(sorted(ends - {n_rows}), np.int64)
    yield edges
    yield edges[rng.randrange(len(edges)) :][:1]
    yield np.array([n_rows - 1])
    yield np.array(sorted(rng.sample(range(n_rows), min(n_rows, rng.randint(1, 9)))))
    start = rng.randrange(n_rows)
    yield np.arange(start, min(n_rows, start + rng.choice([2, 60, 1000])))
    yield np.arange(n_rows)


def same(one: pa.Table, other: pa.Table) -> bool:
    """Whether two tables are equal, NaN to NaN and -0.0 to no 0.0."""
    if one.schema != other.schema or one.num_rows != other.num_rows:
        return False
    return all(map(_same, one.columns, other.columns))


def _same(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    if pa.types.is_floating(one.type):
        if not pc.is_null(one).equals(pc.is_null(other)):
            return False
        sides = (side.fill_null(0).to_numpy().tobytes() for side in (one, other))
        return next(sides) == next(sides)
    if pa.types.is_dictionary(one.type):
        one, other = (side.cast(one.type.value_type) for side in (one, other))
    return one.equals(other)


class Judge:
    """Compares the rows of some files by pages with those of full reads."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.table = sx.open_table(paths[0].parent).state
        self.places = {one.path: i for i, one in enumerate(self.table.listing)}
        self.full = {path: self.read(path) for path in paths}

    def files(self, paths: Sequence[Path]) -> Files:
        places = [self.places[path.name] for path in paths]
        return Files(self.table, places, timezone="UTC", case_sensitive=False)

    def read(self, path: Path, names: Sequence[str] | None = None) -> pa.Table:
        """All rows of a file."""
        return self.files([path]).dataset().to_table(names)

    def by_pages(
        self, rows: Mapping[Path, Ints], names: Sequence[str]
    ) -> tuple[pa.Table, Bytes]:
        """The rows at some positions, and what was read for them."""
        sizes: list[Bytes] = []
        files = self.files(list(rows))
        schema = pa.schema([files.schema.field(name) for name in names])
        places = {self.places[path.name]: rows[path] for path in rows}

        def noted(size: Bytes) -> bool:
            sizes.append(size)
            return True

        result = rows_at(files, places, schema, (), noted)
        assert result is not None
        return result, sizes[-1]

    def expected(self, rows: Mapping[Path, Ints], names: Sequence[str]) -> pa.Table:
        parts = [self.full[path].select(names).take(at) for path, at in rows.items()]
        return pa.concat_tables(parts)


def compared(writer: str, seed: int, folder: Path) -> tuple[int, str]:
    """How many selections were compared, and what is wrong of them."""
    rng = random.Random(seed)
    n_rows = [rng.choice([1, 30, 900, 5000]) for _ in range(rng.randint(1, 3))]
    paths = [folder / f"{i}.parquet" for i in range(len(n_rows))]
    drawn = rng.getrandbits(64)
    for path, n in zip(paths, n_rows, strict=True):
        # Mostly the same columns and options in all files.
        WRITERS[writer](random.Random(drawn), path, n)
        drawn += rng.random() < 0.2
    try:
        judge = Judge(paths)
    except (PlanError, *UNREADABLE):
        return 0, ""  # types that only Spark reads, or encodings that Arrow cannot read
    done = 0
    names = judge.full[paths[0]].column_names
    chosen = [list(positions(rng, path)) for path in paths]
    for each in zip(*chosen, strict=True):
        rows = dict(zip(paths, each, strict=True))
        some = rng.sample(names, rng.randint(1, len(names)))
        found, size = judge.by_pages(rows, some)
        if not same(found, judge.expected(rows, some)):
            return done, f"{writer} {seed}: other rows of {some} at {rows}"
        if size.pages > size.groups * 1.001:
            return done, f"{writer} {seed}: pages are larger than row groups: {size}"
        done += 1
    wrong = engines_differ(folder, judge.full[paths[0]], rng)
    wrong = wrong or damaged(judge, paths, rng)
    return done + N_DAMAGES, f"{writer} {seed}: {wrong}" if wrong else ""


def questions(rng: random.Random, rows: pa.Table) -> Iterator[str]:
    """Conditions on the columns of a table, with values that it holds."""
    for field in rows.schema:
        if field.name not in VALUES or pa.types.is_binary(field.type):
            continue
        some = [VALUES[field.name][1](rng)]
        with suppress(pa.ArrowException):  # two kinds of NaN are one value to no kernel
            some += rows[field.name].drop_null().unique().to_pylist()[:50]
        a, b = (_literal(field.type, rng.choice(some)) for _ in "ab")
        name = f"`{field.name}`"
        yield rng.choice(
            [f"{name} = {a}", f"{name} < {a}", f"{name} IN ({a}, {b})",
             f"{name} NOT IN ({a})", f"{name} >= {a} OR {name} IS NULL",
             f"{name} <= {a}", f"{name} > {a}", f"NOT {name} BETWEEN {a} AND {b}"]
        )  # fmt: skip


def _literal(dtype: pa.DataType, value: Any) -> str:
    """A value in SQL."""
    types = pa.types
    if types.is_date(dtype):
        return f"DATE '{value}'"
    if types.is_timestamp(dtype):
        return f"{'TIMESTAMP' if dtype.tz else 'TIMESTAMP_NTZ'} '{value:%F %T.%f}'"
    if types.is_floating(dtype):
        return f"CAST('{value}' AS DOUBLE)"
    if types.is_decimal(dtype):
        return f"{value:f}"
    return "'" + value.swapcase() + "'" if isinstance(value, str) else repr(value)


def engines_differ(folder: Path, rows: pa.Table, rng: random.Random) -> str:
    """What is wrong of the rows of plans in engines; empty if nothing is."""
    import duckdb  # noqa: PLC0415 (only this part needs it)

    kind = rng.choice(["exact", "minmax"])
    asked = list(questions(rng, rows))
    request = {"id": kind} if rng.random() < 0.3 else {"id": kind, "*": "minmax"}
    table = sx.build_indexes(folder, request, workers=1).table
    for where in rng.sample(asked, min(3, len(asked))):
        plan = table.plan(where, timezone="UTC")
        try:
            with mock.patch.object(engines, "MOST_BLOCKS", -1):
                expected = sorted(plan.to_arrow().to_table(["id"])["id"].to_pylist())
        except pa.ArrowException as error:
            if "timestamp" not in str(error):
                raise
            continue  # some files have local times, and INT96 made the table's instants
        before, after = (rng.choice(SETTINGS) for _ in range(2))
        with (
            mock.patch.object(engines, "MOST_BLOCKS", rng.choice([-1, math.inf])),
            duckdb.connect() as connection,
        ):
            connection.execute(f"SET {before}")
            relation = plan.to_duckdb(connection, columns=["id"])
            connection.execute(f"SET {after}")
            answers = {
                "duckdb": [n for (n,) in relation.fetchall()],
                "polars": plan.to_polars(columns=["id"]).collect()["id"].to_list(),
                "pandas": plan.to_pandas(columns=["id"])["id"].tolist(),
            }
        for engine, found in answers.items():
            if sorted(found) != expected:
                how = f"{before} before and {after} after the relation"
                return f"{engine}, {where}, {how}: {len(found)}, not {len(expected)}"
    return ""


def damaged(judge: Judge, paths: Sequence[Path], rng: random.Random) -> str:
    """What is wrong of the rows of damaged files."""
    path = rng.choice(paths)
    good, stat = path.read_bytes(), path.stat()
    places = _places(path, good)
    # Arrow ends the process at some damaged footers, as soon as it scans the file.
    end = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
    for _ in range(N_DAMAGES):
        data = bytearray(good)
        n_damages = rng.choice([1, 1, 1, 2])
        for _ in range(n_damages):
            at = rng.choice(places) if rng.random() < 0.8 else rng.randrange(4, end)
            data[at] = rng.choice([0, 0xFF, data[at] ^ (1 << rng.randrange(8))])
        path.write_bytes(data)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        n_rows, names = judge.full[path].num_rows, judge.full[path].column_names
        rows = {path: np.array(sorted(rng.sample(range(n_rows), min(n_rows, 5))))}
        name = [rng.choice(names)]
        try:
            found = judge.by_pages(rows, name)[0]
        except (PlanError, *UNREADABLE):
            continue
        try:
            whole = judge.read(path, name)
        except (PlanError, *UNREADABLE):
            # Perhaps the table's type cannot hold wrong values of other rows.
            whole = _as_stored(path, name).cast(found.schema, safe=False)
        if whole.num_rows == n_rows:
            expected = whole.take(rows[path])
        elif n_damages > 1:
            continue
        else:  # Arrow may also read too few rows, without an error
            expected = judge.expected(rows, name)
        if not same(found, expected):
            return f"damaged {name} at {rows} of {path.name}"
    path.write_bytes(good)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    return ""


def _as_stored(path: Path, names: Sequence[str]) -> pa.Table:
    """The rows of a file in its own types; none if it cannot be read."""
    try:
        file = pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
        return file.read(names)
    except UNREADABLE:
        return file.schema_arrow.empty_table().select(names)


def _places(path: Path, data: bytes) -> list[int]:
    """The offsets of headers of pages and of what is between pages and the footer."""
    result: list[int] = []
    end = 4
    with pa.OSFile(str(path)) as source:
        for _, chunk in _chunks(source, DataFile(source)):
            for page in chunk.all_pages:
                result += range(page.offset, page.offset + min(page.size, 24))
                end = max(end, page.offset + page.size)
    footer = int.from_bytes(data[-8:-4], "little")
    result += range(end, len(data) - 8 - footer)
    return result or list(range(4, len(data) - 8 - footer))


def cases(seed: int, first: int, parts: Sequence[str]) -> Iterator[Told]:
    """The cases, each of one writer."""
    writers = {name: name for name in WRITERS}
    for writer, number, only in rounds(writers, seed, first, parts):
        with tempfile.TemporaryDirectory() as folder:
            yield Told(*compared(writer, number, Path(folder)), only)
