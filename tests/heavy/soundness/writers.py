"""Files as others write them: one table, written in one of many ways."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import deltalake
import duckdb
import fastparquet
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Write = Callable[[random.Random, pa.Table, Path], None]
Change = Callable[[random.Random, pa.Table], pa.Table | None]

_NULLABLE: Final = {
    pa.bool_(): pd.BooleanDtype(),
    pa.int8(): pd.Int8Dtype(),
    pa.int16(): pd.Int16Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.uint8(): pd.UInt8Dtype(),
    pa.uint16(): pd.UInt16Dtype(),
    pa.uint32(): pd.UInt32Dtype(),
}
"""Pandas' types of whole numbers that may be NULL."""

_CODECS: Final = ("snappy", "gzip", "zstd", "lz4", "none")
"""Compressions that Spark reads without further libraries."""


def by_pyarrow(rng: random.Random, table: pa.Table, path: Path) -> None:
    """Pages of both versions, with dictionaries or any encoding that fits."""
    options: dict[str, Any] = {"use_dictionary": rng.random() < 0.6}
    if not options["use_dictionary"] and rng.random() < 0.7:
        options["column_encoding"] = {
            field.name: rng.choice(_encodings(field.type)) for field in table.schema
        }
    timed = any(pa.types.is_timestamp(field.type) for field in table.schema)
    if timed and rng.random() < 0.2:
        options |= {"coerce_timestamps": "ms", "allow_truncated_timestamps": True}
    pq.write_table(
        table,
        path,
        compression=rng.choice(_CODECS),
        row_group_size=rng.choice([7, 100, 1000, 1 << 20]),
        version=rng.choice(["1.0", "2.4", "2.6"]),
        data_page_version=rng.choice(["1.0", "2.0"]),
        data_page_size=rng.choice([1, 100, 1 << 20]),
        dictionary_pagesize_limit=rng.choice([1, 60, 1 << 20]),
        write_batch_size=rng.choice([1, 10, 1024]),
        write_statistics=rng.random() < 0.5,
        store_schema=rng.random() < 0.5,
        store_decimal_as_integer=rng.random() < 0.5,
        **options,
    )


def _encodings(dtype: pa.DataType) -> list[str]:
    types = pa.types
    if types.is_string(dtype) or types.is_binary(dtype):
        return ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]
    if types.is_floating(dtype):
        return ["PLAIN", "BYTE_STREAM_SPLIT"]
    whole = types.is_integer(dtype) or types.is_temporal(dtype)
    return ["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"] if whole else ["PLAIN"]


def by_duckdb(rng: random.Random, table: pa.Table, path: Path) -> None:
    """Texts are an ENUM sometimes, of which not all values occur."""
    db = duckdb.connect()
    try:
        db.execute("SET threads = 1")
        db.execute("SET TimeZone = 'UTC'")
        db.register("given", table)
        columns = []
        for field in table.schema:
            words = pc.unique(table[field.name]).drop_null().to_pylist()
            name = f'"{field.name}"'
            if pa.types.is_string(field.type) and words and rng.random() < 0.5:
                words = list(
                    dict.fromkeys([*words, *(f"unused {i}" for i in range(9))])
                )
                rng.shuffle(words)
                listed = ", ".join(
                    "'" + word.replace("'", "''") + "'" for word in words
                )
                name = f"{name}::ENUM({listed}) AS {name}"
            columns.append(name)
        codec = rng.choice(["snappy", "gzip", "zstd", "lz4_raw", "uncompressed"])
        options = [
            "FORMAT parquet",
            f"COMPRESSION {codec}",
            f"ROW_GROUP_SIZE {rng.choice([2048, 4096, 122880])}",
            f"PARQUET_VERSION {rng.choice(['V1', 'V2'])}",
        ]
        if rng.random() < 0.3:
            options.append(f"DICTIONARY_SIZE_LIMIT {rng.choice([1, 5])}")
        db.execute(
            f"COPY (SELECT {', '.join(columns)} FROM given) TO '{path}' "
            f"({', '.join(options)})"
        )
    finally:
        db.close()


def by_polars(rng: random.Random, table: pa.Table, path: Path) -> None:
    """Texts are categories or an enum sometimes."""
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    for name, dtype in frame.schema.items():
        if dtype == pl.String and rng.random() < 0.5:
            words = frame[name].drop_nulls().unique().to_list()
            kinds = [pl.Categorical(), pl.Enum([*words, "unused \U0001f600"])]
            frame = frame.with_columns(pl.col(name).cast(rng.choice(kinds)))
    codec = rng.choice(["snappy", "gzip", "zstd", "lz4", "uncompressed"])
    frame.write_parquet(
        path,
        compression=codec,
        row_group_size=rng.choice([7, 100, 1000, None]),
        data_page_size=rng.choice([1, 100, None]),
        statistics=rng.random() < 0.5,
    )


def by_fastparquet(rng: random.Random, table: pa.Table, path: Path) -> None:
    """Texts are categories sometimes; timestamps INT96."""
    frame = table.to_pandas(types_mapper=_NULLABLE.get)
    encodings: dict[str, str] = {}
    for field in table.schema:
        if pa.types.is_string(field.type):
            encodings[field.name] = "utf8"
            # Pandas takes '\0' and '' for one category.
            if rng.random() < 0.4 and not frame[field.name].eq("\0").any():
                frame[field.name] = frame[field.name].astype("category")
        elif pa.types.is_binary(field.type):
            encodings[field.name] = "bytes"
        elif pa.types.is_decimal(field.type) or pa.types.is_date(field.type):
            raise TypeError("it has no such type")
    codec = rng.choice(["SNAPPY", "GZIP", "ZSTD", "LZ4_RAW", None])
    size = rng.choice([7, 100, 1000, 1 << 20])
    fastparquet.write(
        str(path),
        frame,
        compression=codec,
        row_group_offsets=list(range(0, max(1, len(frame)), size)),
        object_encoding=encodings or "infer",
        has_nulls=True,
        write_index=False,
        times=rng.choice(["int64", "int96"]),
        stats=rng.random() < 0.5,
    )


def by_delta(rng: random.Random, table: pa.Table, path: Path) -> None:
    """The file of a Delta table that has one."""
    folder = path.with_suffix(".delta")
    try:
        deltalake.write_deltalake(
            folder,
            table,
            writer_properties=deltalake.WriterProperties(
                compression=rng.choice(["SNAPPY", "GZIP", "ZSTD", "LZ4_RAW"]),
                max_row_group_size=rng.choice([7, 100, 1000, 1 << 20]),
                data_page_size_limit=rng.choice([1, 100, 1 << 20]),
                data_page_row_count_limit=rng.choice([5, 20_000]),
                dictionary_page_size_limit=rng.choice([1, 60, 1 << 20]),
                write_batch_size=rng.choice([1, 10, 1024]),
                default_column_properties=deltalake.ColumnProperties(
                    dictionary_enabled=rng.random() < 0.6
                ),
            ),
        )
        (file,) = folder.glob("*.parquet")
        file.rename(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


WRITERS: Final[Mapping[str, Write]] = {
    "pyarrow": by_pyarrow,
    "DuckDB": by_duckdb,
    "Polars": by_polars,
    "fastparquet": by_fastparquet,
    "delta-rs": by_delta,
}

SPARK: Final = "Spark"
REWRITTEN: Final = "Spark, rewritten by pyarrow"


def _cast(table: pa.Table, dtype: pa.DataType) -> pa.Table:
    """The columns under test in another type, in the rows whose values fit it."""
    first = table.column(0)
    fitting = []
    for value in pc.unique(first):
        try:
            value.cast(dtype)
        except (pa.ArrowException, ValueError, OverflowError):
            continue
        fitting.append(value.as_py())
    kept = table.filter(pc.is_in(first, pa.array(fitting, first.type)))
    for i, name in enumerate(kept.column_names):
        if name != "w":
            kept = kept.set_column(i, name, kept[name].cast(dtype))
    return kept


def _integers(sizes: tuple[str, ...]) -> Change:
    def change(rng: random.Random, table: pa.Table) -> pa.Table | None:
        own = table.schema.field(0).type
        others = [t for size in sizes if (t := getattr(pa, size)()) != own]
        if not pa.types.is_integer(own):
            return None
        wider = sizes is _WIDER
        others = [t for t in others if (t.bit_width > own.bit_width) == wider]
        return _cast(table, rng.choice(others)) if others else None

    return change


_NARROWER: Final = ("int8", "int16", "int32")
_WIDER: Final = ("int16", "int32", "int64")
_UNSIGNED: Final = ("uint8", "uint16", "uint32")


def _digits(more: int) -> Change:
    def change(rng: random.Random, table: pa.Table) -> pa.Table | None:
        own = table.schema.field(0).type
        if not pa.types.is_decimal(own):
            return None
        precision = own.precision + more * rng.randint(1, 4)
        scale = own.scale - rng.choice([0, 1]) * (own.scale > 0)
        fits = max(1, scale) <= precision <= 38
        return _cast(table, pa.decimal128(precision, scale)) if fits else None

    return change


def _unit(unit: str) -> Change:
    def change(rng: random.Random, table: pa.Table) -> pa.Table | None:
        own = table.schema.field(0).type
        if not pa.types.is_timestamp(own) or own.unit == unit:
            return None
        return _cast(table, pa.timestamp(unit, own.tz))

    return change


def _texts_as(dtype: pa.DataType) -> Change:
    def change(rng: random.Random, table: pa.Table) -> pa.Table | None:
        own = table.schema.field(0).type
        return _cast(table, dtype) if pa.types.is_string(own) else None

    return change


def _dictionary(rng: random.Random, table: pa.Table) -> pa.Table | None:
    if not pa.types.is_string(table.schema.field(0).type):
        return None
    for i, name in enumerate(table.column_names):
        if name != "w":
            table = table.set_column(i, name, table[name].dictionary_encode())
    return table


CHANGES: Final[Mapping[str, Change]] = {
    "another order of columns": lambda rng, t: t.select(t.column_names[::-1]),
    "one column more": lambda rng, t: t.append_column("more", t["w"]),
    "a column missing": lambda rng, t: t.drop_columns(["w"]),
    "dictionary arrays": _dictionary,
    "large strings": _texts_as(pa.large_string()),
    "string views": _texts_as(pa.string_view()),
    "narrower integers": _integers(_NARROWER),
    "wider integers": _integers(_WIDER),
    "unsigned integers": _integers(_UNSIGNED),
    "fewer digits": _digits(-1),
    "more digits": _digits(1),
    "milliseconds": _unit("ms"),
    "nanoseconds": _unit("ns"),
    "names in capitals": lambda rng, t: t.rename_columns(
        [name.upper() for name in t.column_names]
    ),
}
"""How the schema of a file may differ from that of the others, by name."""
