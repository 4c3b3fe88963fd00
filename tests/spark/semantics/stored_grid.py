"""A grid of types in the table x types in a file, with Spark as the judge.

Every column ``T__S`` of one table is declared as ``T`` in the row metadata of the first
file, and stored as ``S`` in both.  Where Spark reads the column at all, every plan must
agree with the values that it hands out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType

import skipindex as sx
from skipindex.source import declared_schema
from tests.spark.reading.whole import NO_PUSHDOWN, ZONE, settings
from tests.spark.versions import FAILED, SPARK
from tests.tables import build, put

VECTORIZED = "spark.sql.parquet.enableVectorizedReader"
_DAY, _OLD = datetime(2020, 1, 1, 5), datetime(1999, 12, 31, 23, 59)

_QUICK = {
    # Hundreds of conditions over few rows: compiling them takes longest.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}

STORED: Mapping[str, pa.Array] = {
    "i8": pa.array([1, -128, None], pa.int8()),
    "i16": pa.array([1, 300, -1], pa.int16()),
    "i32": pa.array([1, 70_000, None], pa.int32()),
    "i32_small": pa.array([1, 44, None], pa.int32()),
    "i64": pa.array([1, 2**40, -(2**63)], pa.int64()),
    "u8": pa.array([1, 200, None], pa.uint8()),
    "u16": pa.array([1, 60_000, 3], pa.uint16()),
    "u32": pa.array([1, 3_000_000_000, None], pa.uint32()),
    "u64": pa.array([1, 2**63 + 1, None], pa.uint64()),
    "d5_2": pa.array([Decimal("1.25"), Decimal("-999.99"), None], pa.decimal128(5, 2)),
    "d10_2": pa.array([Decimal("1.25"), Decimal("12345678.90")], pa.decimal128(10, 2)),
    "d10_2_small": pa.array([Decimal("1.25"), None], pa.decimal128(10, 2)),
    "d20_2": pa.array([Decimal("1.25"), Decimal(10**17)], pa.decimal128(20, 2)),
    "d20_0": pa.array([Decimal(1), Decimal(2**64 - 1)], pa.decimal128(20, 0)),
    "d5_0": pa.array([Decimal(5), None], pa.decimal128(5, 0)),
    "text": pa.array(["a", "Ab ", None]),
    "view": pa.array(["a", "b", None], pa.string_view()),
    "large": pa.array(["a", "b"], pa.large_string()),
    "words": pa.array(["a", "b", "a", None]).dictionary_encode(),
    "json": pa.array(['{"a":1}', None], pa.json_()),
    "bytes": pa.array([b"a", b"\xff", None]),
    "bytes_view": pa.array([b"a", b"", None], pa.binary_view()),
    "bytes_1": pa.array([b"a", b"b"], pa.binary(1)),
    "uuid": pa.array([b"1" * 16], pa.uuid()),
    "f16": pa.array([1.0], pa.float16()),
    "f32": pa.array([0.1, float("nan"), -0.0], pa.float32()),
    "f64": pa.array([0.1, float("inf"), None], pa.float64()),
    "bool": pa.array([True, None]),
    "date": pa.array([date(2020, 1, 1), None]),
    "ntz_ms": pa.array([_DAY, _OLD], pa.timestamp("ms")),
    "ntz_us": pa.array([_DAY, None], pa.timestamp("us")),
    "ltz_us": pa.array([_DAY.replace(tzinfo=UTC)], pa.timestamp("us", "UTC")),
    "ntz_ns": pa.array([_DAY, None], pa.timestamp("ns")),
    "ltz_ns": pa.array([_DAY.replace(tzinfo=UTC)], pa.timestamp("ns", "UTC")),
    "time": pa.array([time(1), None], pa.time64("us")),
    "duration": pa.array([5, 2**40], pa.duration("us")),
}
"""What files hold, by name; values that other types cannot hold are among them."""

TYPES: Mapping[str, str] = {
    "byte": "TINYINT",
    "short": "SMALLINT",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "dec5_2": "DECIMAL(5,2)",
    "dec10_2": "DECIMAL(10,2)",
    "dec20_2": "DECIMAL(20,2)",
    "dec20_0": "DECIMAL(20,0)",
    "dec5_0": "DECIMAL(5,0)",
    "string": "STRING",
    "char": "CHAR(3)",
    "varchar": "VARCHAR(3)",
    "lower": "STRING COLLATE UTF8_LCASE",
    "binary": "BINARY",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "ltz": "TIMESTAMP",
    "ntz": "TIMESTAMP_NTZ",
    "months": "INTERVAL YEAR",
    "days": "INTERVAL DAY",
}
"""What a table declares."""
if SPARK < (4, 0):  # it has no collations
    TYPES = {name: spelled for name, spelled in TYPES.items() if name != "lower"}


@dataclass
class Judged:
    """What Spark was asked.

    Args:
        readable: the columns that Spark can read, by reader.
        verdicts: how many files were judged under a condition.
        skipped: how many of them a plan does not read.
        failures: what was wrong, in words that reproduce it.
    """

    readable: dict[str, list[str]] = field(default_factory=dict)
    verdicts: int = 0
    skipped: int = 0
    failures: list[str] = field(default_factory=list)


def declared(spark: SparkSession, columns: Sequence[str]) -> StructType:
    """The schema of the table; columns are named ``T__S``."""
    fields = []
    for name in columns:
        spelled = TYPES[name.partition("__")[0]]
        notes = {}
        if "CHAR" in spelled:
            notes = {"__CHAR_VARCHAR_TYPE_STRING": spelled.lower()}
            spelled = "STRING"
        dtype = spark.createDataFrame([], f"c {spelled}").schema[0].dataType
        fields.append(StructField(name, dtype, nullable=True, metadata=notes))
    return StructType(fields)


def write_grid(spark: SparkSession, folder: Path, columns: Sequence[str]) -> sx.Table:
    """Two files of the same columns, indexed; the first has the row metadata.

    The first holds all values, the second only the first one of each column.
    """
    note = {
        "org.apache.spark.sql.parquet.row.metadata": declared(spark, columns).json(),
        "org.apache.spark.version": "4.3.0",
    }
    whole = {name: STORED[name.partition("__")[2]] for name in columns}
    n_rows = max(map(len, whole.values()))
    for number, (n, metadata) in enumerate(((n_rows, note), (1, None))):
        arrays = {
            name: pa.concat_arrays([values] * n_rows).slice(0, n)
            for name, values in whole.items()
        }
        table = pa.table(arrays).replace_schema_metadata(metadata)
        put(folder / f"{number}.parquet", table, store_decimal_as_integer=n == 1)
    return build(folder, {"*": "bitmap"})


def sweep(
    spark: SparkSession,
    folder: Path,
    columns: Sequence[str],
    *,
    readers: Sequence[str] = ("true", "false"),
    variations: Sequence[Mapping[str, str]] = ({},),
    n_values: int = 1,
) -> Judged:
    """Judge every column under both readers, and every condition in a variation."""
    spark.sparkContext.setLogLevel("OFF")
    table, judged = write_grid(spark, folder, columns), Judged()
    for reader in readers:
        with settings(spark, {**NO_PUSHDOWN, **_QUICK, VECTORIZED: reader}):
            df, shown = spark.read.parquet(f"file:{folder}"), {}
            # A job of few columns, as one that fails takes its neighbours with it.
            for start in range(0, len(columns), 4):
                shown.update(_values(df, columns[start : start + 4]))
            judged.readable[reader] = sorted(shown)
            texts = [t for c in shown for t in conditions(c, shown[c][:n_values])]
            for i, changes in enumerate(variations):
                own = texts[i :: len(variations)]
                with settings(spark, changes):
                    _judge(spark, table, own, judged, f"{reader} {changes}")
    return judged


def _values(df: DataFrame, columns: Sequence[str]) -> dict[str, list[str]]:
    """The values that Spark hands out, as text, of the columns that it can read."""
    shown = [
        sf.expr(f"hex({name})" if name.startswith("binary__") else f"string({name})")
        for name in columns
    ]
    try:
        rows = df.select(*map(sf.collect_set, shown)).collect()
    except FAILED:
        if len(columns) == 1:
            return {}
        half = len(columns) // 2
        return _values(df, columns[:half]) | _values(df, columns[half:])
    return {
        name: sorted(map(str, found))
        for name, found in zip(columns, rows[0], strict=True)
    }


def conditions(name: str, values: Sequence[str]) -> Iterator[str]:
    """Conditions on a column, mostly about ``values`` that it has."""
    yield f"{name} IS NULL"
    yield f"{name} IS NOT NULL"
    for literal in dict.fromkeys(_literal(name, value) for value in values):
        yield f"{name} = {literal}"
        yield f"{name} <> {literal}"
        yield f"{name} < {literal}"
        yield f"{name} >= {literal}"
        yield f"NOT ({name} <=> {literal})"
        yield f"{name} IN ({literal}, NULL)"
        yield f"COALESCE({name} > {literal}, {name} IS NULL)"
    if name.startswith(("byte", "short", "int", "long", "dec", "float", "double")):
        yield f"{name} < 0"
        yield f"{name} IN (1, 44, 4464)"
        yield f"-{name} < 0"
    if name.startswith(("ltz", "ntz", "date")):
        yield f"year({name}) = 2020"
        yield f"{name} >= '2020-01-01 10:00:00'"
    if name.startswith(("string", "varchar", "char", "lower")):
        yield f"{name} = 'A'"
        yield f"{name} LIKE 'a%'"


def _literal(name: str, value: str) -> str:
    declared_as = TYPES[name.partition("__")[0]]
    if name.startswith("binary"):
        return f"X'{value}'"
    if declared_as.startswith(("STRING", "CHAR", "VARCHAR")):
        text = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{text}'"
    if declared_as.startswith("DEC"):
        return f"{value}BD"
    if declared_as.startswith("INTERVAL"):
        return value
    return f"CAST('{value}' AS {declared_as})"


def _judge(
    spark: SparkSession,
    table: sx.Table,
    asked: Sequence[str],
    judged: Judged,
    where: str,
) -> None:
    """Hold plans under the settings as they are against Spark's counts."""
    df = spark.read.parquet(table.state.location.spark_path())
    here = sx.Table(table.state.typed(*_typed(df)))
    zone = spark.conf.get(ZONE)
    for start in range(0, len(asked), 400):
        texts = asked[start : start + 400]
        counted = _count(df, texts)
        for text, truth in zip(texts, counted, strict=True):
            if truth is None:
                continue
            plan = here.plan(text, timezone=zone)
            for path in table.paths:
                judged.verdicts += 1
                if path not in plan.paths:
                    judged.skipped += 1
                    if truth.get(path):
                        judged.failures.append(f"{where}: {text} skips {path}")
            low, high = plan.count_bounds
            total = sum(truth.values())
            if low > total or (high is not None and high < total):
                judged.failures.append(f"{where}: {text}: {low} {total} {high}")


def _typed(df: DataFrame) -> Any:
    return declared_schema(df.schema.json())


def _count(df: DataFrame, texts: Sequence[str]) -> list[dict[str, int] | None]:
    """For every condition the matching rows by file; None where Spark fails."""
    try:
        counts = [sf.count_if(sf.expr(text)) for text in texts]
        rows = df.groupBy(sf.input_file_name()).agg(*counts).collect()
    except FAILED:
        if len(texts) == 1:
            return [None]
        half = len(texts) // 2
        return _count(df, texts[:half]) + _count(df, texts[half:])
    files = {unquote(name).rpartition("/")[2]: found for name, *found in rows}
    return [{file: own[i] for file, own in files.items()} for i in range(len(texts))]
