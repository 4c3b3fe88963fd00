"""Random trees of folders, read by Spark and through a plan: the listing's judge."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from tests.spark.reading.whole import NO_PUSHDOWN, ZONE, columns, rows, settings
from tests.spark.versions import SPARK

NULL: Final = "__HIVE_DEFAULT_PARTITION__"
INFERENCE: Final = "spark.sql.sources.partitionColumnTypeInference.enabled"

PLAIN: Final = ("", "sub", "sub/deep", "Sub", "x._COPYING_")
HIDDEN: Final = (
    *(
        "_x",
        ".x",
        ".p=1",
        "_temporary/0",
        "_metadata",
        "_metadata_x",
        "_common_metadata",
    ),
    *("p=1/_temporary/0", "p=2/.staging", "p=1/_metadata"),
)
VALUES: Final = (
    ("1", "2", "03", "+4", NULL),
    ("1", "3000000000", "-7", NULL),
    ("1", "99999999999999999999", "1e5", "1.5e1", "5."),
    ("1.5", "2", "-0.0", "NaN", "1e-3", "-Infinity", ".5", "2f"),
    ("1", "a", "b c", "é", "%41", "a%2Fb", "%C3%A9", "%"),
    ("2020-01-01", "2021-02-28", "1999-12-31", NULL),
    ("2020-01-01", "2020-01-01 10%3A30%3A00", "2021-03-28 02%3A30%3A00.5", NULL),
    ("2020-01-01 10%3A30%3A00", "1969-12-31 23:59:59", "2020-01-01 00:00:00.25"),
    ("1", "2020-01-01", "1.5", "x", "3000000000", "0x1p3", "1k"),
    ("1", "1.5", "3000000000"),
    (NULL,),
    ("", "1"),
)
FILES: Final = (
    *("0.parquet", "1.parquet", "2.parquet", "3", "4.csv", "_a=b.parquet"),
    *("_hidden.parquet", ".dot.parquet", "c.parquet._COPYING_", "_metadata_z"),
)
SUMMARIES: Final = ("_metadata", "_common_metadata")


def grow(root: Path, rng: random.Random) -> None:
    """Fill ``root`` with a random tree of data files, summaries and other things."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    folders: list[str] = []
    form = rng.random()
    if form < 0.85:
        folders += _partitions(rng)
    if form > 0.75:
        folders += rng.sample(PLAIN, rng.randint(1, 2))
    if rng.random() < 0.15:
        folders.append("")
    if rng.random() < 0.25:
        folders += rng.sample(HIDDEN, rng.randint(1, 2))
    if rng.random() < 0.1:
        folders.append(rng.choice(["sub", "q=1", "P=5", "p=1/p=2", "p=1/r=2", "=1"]))
    number = 0
    for folder in folders:
        for name in rng.sample(FILES, rng.choice([1, 1, 1, 2, 3])):
            number += 1
            _put(root / folder / name, number, rng)
    if rng.random() < 0.15:
        (root / rng.choice([*folders, ""]) / "_SUCCESS").write_bytes(b"")
    if rng.random() < 0.15:
        summary = root / rng.choice([*folders, ""]) / rng.choice(SUMMARIES)
        if not summary.is_dir():
            _put(summary, number + 1, rng)


def _partitions(rng: random.Random) -> list[str]:
    depth = rng.choice([1, 1, 1, 2])
    above = rng.choice([""] * 8 + ["a/", "a/b/", "k=1/sub/"])
    below = rng.choice([""] * 8 + ["/sub", "/sub/deep"])
    drawn = [rng.choice(VALUES) for _ in range(depth)]
    names = rng.choice([("p", "q")] * 6 + [("_p", "q"), ("P", "p"), ("%70", "q q")])
    folders = []
    for _ in range(rng.randint(1, 4)):
        parts = []
        for name, values in zip(names, drawn, strict=False):
            spelled = name.swapcase() if rng.random() < 0.03 else name
            parts.append(f"{spelled}={rng.choice(values)}")
        deeper = below if rng.random() < 0.5 else ""
        place = above.upper() if rng.random() < 0.05 else above
        folders.append(f"{place}{'/'.join(parts)}{deeper}")
    return folders


def _put(path: Path, number: int, rng: random.Random) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    chance = rng.random()
    if chance < 0.05 and SPARK >= (4, 3):  # older ones fail on them
        path.write_bytes(b"")
    elif chance < 0.07:
        path.write_bytes(b"no Parquet file")
    else:
        more: dict[str, Any] = {"x": [number]} if rng.random() < 0.1 else {}
        if rng.random() < 0.05:
            more["P"] = [number]
        pq.write_table(pa.table({"v": [number], **more}), path)


def outcome(df: Any) -> tuple[list[tuple[str, str]], list[str]] | None:
    """Columns and rows of what a function returns; None if it was refused."""
    try:
        found: DataFrame = df()
        return columns(found), rows(found)
    except (sx.SkipIndexError, PySparkException, Py4JError):
        return None


def conditions(whole: DataFrame, rng: random.Random) -> Iterator[str]:
    """Conditions on the columns of folders, made of values that they have."""
    yield "v > 0 OR v IS NULL"
    names = [name for name in whole.columns if name.lower() not in {"v", "x"}]
    if not names:
        return
    name = rng.choice(names)
    values = [row[0] for row in whole.select(f"`{name}`").collect()]
    yield f"`{name}` IS {rng.choice(['NULL', 'NOT NULL'])}"
    some = [text for text in map(_literal, values) if text is not None]
    if some:
        yield f"`{name}` {rng.choice(['=', '<', '>=', '<>', '<=>'])} {rng.choice(some)}"


def _literal(value: object) -> str | None:
    match value:
        case bool() | None:
            return None
        case int() | Decimal():
            return str(value)
        case float():
            return f"CAST('{value}' AS DOUBLE)"
        case datetime():
            return f"TIMESTAMP '{value}'"
        case date():
            return f"DATE '{value}'"
        case str() if "'" not in value and "\\" not in value:
            return f"'{value}'"
        case _:
            return None


@contextmanager
def session_of(spark: SparkSession, rng: random.Random) -> Iterator[dict[str, str]]:
    """Settings that have a say in the listing."""
    wanted = {
        **NO_PUSHDOWN,
        ZONE: rng.choice(["UTC", "UTC", "Europe/Berlin", "+05:30"]),
        INFERENCE: rng.choice(["true"] * 5 + ["false"]),
        "spark.sql.caseSensitive": rng.choice(["false"] * 7 + ["true"]),
    }
    with settings(spark, wanted):
        yield wanted


def check_tree(spark: SparkSession, root: Path, rng: random.Random) -> str:
    """One tree: the same rows and columns, or refused by both; which of the two."""
    grow(root, rng)
    with session_of(spark, rng):

        def whole() -> DataFrame:
            return spark.read.parquet(f"file:{root}")

        if outcome(whole) is None:
            found = outcome(lambda: sx.read(root, "v > 0 OR v IS NULL", spark=spark))
            assert found is None, (tree(root), found)
            return "refused"
        for condition in conditions(whole(), rng):
            expected = outcome(partial(whole().where, condition))
            found = outcome(partial(sx.read, root, condition, spark=spark))
            assert found == expected, (condition, tree(root), found, expected)
    return "read"


def tree(root: Path) -> list[str]:
    """Every file, for messages."""
    files = (path for path in root.rglob("*") if path.is_file())
    return sorted(f"{p.relative_to(root)} {p.stat().st_size}" for p in files)
