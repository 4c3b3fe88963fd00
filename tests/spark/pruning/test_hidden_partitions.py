"""Conditions on a timestamp leave out year/month/day folders of unchanged queries.

The folders are made from ``ctime``, and no file has an index.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.errors import PredicateError
from tests.spark.pruning.scans import files_read, rows_of, unpruned
from tests.spark.reading.whole import ZONE, settings

pytestmark = pytest.mark.spark

FIRST = date(2021, 11, 28)
STEP = timedelta(days=67)
N_DAYS = 12
"""From 2021-11-28 to 2023-12-06; the tenth is 2023-07-24, the sixth 2022-10-29."""


def days() -> list[date]:
    return [FIRST + i * STEP for i in range(N_DAYS)]


@pytest.fixture(scope="module", params=["{:d}", "{:02d}"], ids=["month=1", "month=01"])
def table(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A file a day, at noon and at midnight; the time is a timestamp, and a text."""
    root = tmp_path_factory.mktemp("days") / "events"
    two: str = request.param
    for number, day in enumerate(days()):
        name = f"year={day.year}/month={two}/day={two}".format(day.month, day.day)
        moments = [datetime.combine(day, time(hour)) for hour in (0, 12)]
        rows = pa.table(
            {
                "id": [2 * number, 2 * number + 1],
                "ctime": pa.array(moments, pa.timestamp("us", "UTC")),
                "text": [f"{moment:%Y-%m-%d %H:%M:%S}" for moment in moments],
            }
        )
        (root / name).mkdir(parents=True)
        # Without statistics nothing but the folders can tell.
        pq.write_table(rows, root / name / "part.parquet", write_statistics=False)
    opened = sx.open_table(root)
    parts = {"year": "year(ctime)", "month": "month(ctime)", "day": "dayofmonth(ctime)"}
    opened.declare_derived(parts, timezone="UTC")
    return root


@pytest.fixture
def pruned(spark: SparkSession, table: Path) -> Iterator[SparkSession]:
    with settings(spark, {ZONE: "UTC"}):
        sx.enable(spark)
        spark.read.parquet(str(table)).createOrReplaceTempView("events")
        yield spark
        spark.catalog.dropTempView("events")
        sx.disable(spark)


def n_days(since: str) -> int:
    return sum(f"{day}" >= since for day in days())


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("condition", "n_files"),
    [
        ("ctime > '2022-11-30 12:00:00'", n_days("2022-11-30")),
        ("ctime > timestamp'2022-11-30 12:00:00'", n_days("2022-11-30")),
        ("'2022-11-30 12:00:00' < ctime", n_days("2022-11-30")),
        ("ctime >= '2022-10-29'", n_days("2022-10-29")),
        ("ctime < '2021-11-28 12:00:00'", 1),
        ("ctime <= '2021-11-27 23:59:59'", 0),
        ("ctime = '2022-10-29 12:00:00'", 1),
        ("date(ctime) = '2022-10-29'", 1),
        ("ctime BETWEEN '2022-04-01' AND '2022-10-29 00:00:00'", 4),
        ("NOT ctime <= '2022-11-30 12:00:00'", n_days("2022-11-30")),
        ("ctime > '2022-11-30 12:00:00' AND year = 2023", 6),
        ("ctime > '2022-11-30 12:00:00' OR id = 0", N_DAYS),
        ("ctime > '2022-11-30 12:00:00' AND ctime < '2023-01-10'", 1),
    ],
)
def test_unchanged_texts_read_fewer_folders(
    pruned: SparkSession, condition: str, n_files: int
) -> None:
    text = f"SELECT id, ctime, year, month, day FROM events WHERE {condition}"
    whole = unpruned(pruned, text)
    found = pruned.sql(text)
    assert rows_of(found) == whole
    assert files_read(pruned.sql(text)) == n_files
    assert n_files == N_DAYS or len(whole) <= 2 * n_files


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "condition",
    [
        "text > '2022-11-30 12:00:00'",  # another column than the folders' one
        "substring(text, 1, 10) >= '2022-11-30'",
        "ctime > cast(text AS timestamp) - INTERVAL 1 DAY",
        "hour(ctime) = 12",
        "year(ctime) + id > 2023",
    ],
)
def test_what_folders_cannot_tell_reads_all(
    pruned: SparkSession, condition: str
) -> None:
    text = f"SELECT id FROM events WHERE {condition}"
    whole = unpruned(pruned, text)
    assert rows_of(pruned.sql(text)) == whole
    assert files_read(pruned.sql(text)) == N_DAYS


@pytest.mark.few(1)
def test_a_text_column_may_be_what_folders_are_made_of(
    pruned: SparkSession, table: Path, tmp_path: Path
) -> None:
    """``substring(text, 1, 4)`` is the year, so that years are left out."""
    root = tmp_path / "texts"
    for year in range(2020, 2024):
        path = root / f"year={year}" / "part.parquet"
        path.parent.mkdir(parents=True)
        rows = pa.table({"text": [f"{year}-12-12 10:00:00", f"{year}-01-31"]})
        pq.write_table(rows, path, write_statistics=False)
    sx.open_table(root).declare_derived({"year": "substring(text, 1, 4)"})
    whole = pruned.read.parquet(str(root))
    text = "substring(text, 1, 10) >= '2022-12-12'"
    assert [row.year for row in rows_of(whole.where(text))] == [2022, 2023, 2023]
    assert files_read(whole.where(text)) == 2
    assert files_read(whole.where("substring(text, 1, 4) = '2021'")) < 4


FORMAT = "yyyy-MM-dd HH:mm:ss"


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> sx.Table:
    """Times in a text, a folder a day, and one of NULL."""
    root = tmp_path_factory.mktemp("days") / "texts"
    for day in [*days(), None]:
        null = "__HIVE_DEFAULT_PARTITION__"
        parts = [null] * 3 if day is None else f"{day}".split("-")
        path = root / "year={}/month={}/day={}/part.parquet".format(*parts)
        path.parent.mkdir(parents=True)
        some = [None] if day is None else [f"{day} 00:00:00", f"{day} 12:00:00"]
        rows = pa.table({"dt": pa.array(some, pa.string())})
        pq.write_table(rows, path, write_statistics=False)
    return sx.open_table(root).declare_derived(
        field="dt", format=FORMAT, timezone="UTC"
    )


@pytest.mark.few(2)
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize(
    ("condition", "n_files"),
    [
        (
            f"to_timestamp(dt, '{FORMAT}') > timestamp'2022-11-30 12:00:00'",
            n_days("2022-11-30"),
        ),
        (
            f"try_to_timestamp(dt, '{FORMAT}') > timestamp'2022-11-30 12:00:00'",
            n_days("2022-11-30"),
        ),
        (
            f"to_timestamp_ntz(dt, '{FORMAT}') <= timestamp_ntz'2022-10-29 00:00:00'",
            N_DAYS - n_days("2022-10-30"),
        ),
        (f"to_date(dt, '{FORMAT}') > date'2022-10-29'", n_days("2022-10-30")),
        (f"to_date(dt, '{FORMAT}') IN (date'2022-10-29', date'2023-07-24')", 2),
        (f"month(to_date(dt, '{FORMAT}')) = 10", 1),
        (f"unix_timestamp(dt, '{FORMAT}') >= 1690156800", n_days("2023-07-24")),
        (f"to_unix_timestamp(dt, '{FORMAT}') < 1638057600", 0),
        ("try_to_timestamp(dt, 'yyyy/MM/dd') > timestamp'2022-11-30 12:00:00'", N_DAYS),
        (f"to_timestamp(dt, if(dt > '2', '{FORMAT}', 'yyyy')) IS NULL", N_DAYS),
    ],
)
def test_times_that_queries_read_from_text_read_the_folders_that_plans_keep(
    pruned: SparkSession, texts: sx.Table, condition: str, n_files: int, ansi: str
) -> None:
    """The folder of NULL is always read."""
    root = texts.state.location.spark_path()
    assert len(texts.plan(condition, timezone="UTC").paths) == n_files + 1
    with settings(pruned, {"spark.sql.ansi.enabled": ansi}):
        text = f"SELECT * FROM parquet.`{root}` WHERE {condition}"
        assert rows_of(pruned.sql(text)) == unpruned(pruned, text)
        assert files_read(pruned.sql(text)) == n_files + 1


def test_a_field_is_declared_for_all_parts(pruned: SparkSession, table: Path) -> None:
    opened = sx.open_table(table)
    former = opened.status().derived
    again = opened.declare_derived(field="ctime", format="yyyy", timezone="UTC")
    assert again.status().derived == former
    for given in ({}, {"columns": former, "format": "yyyy"}):
        with pytest.raises(PredicateError, match="nothing to declare"):
            opened.declare_derived(**given)
    with pytest.raises(PredicateError, match="no column 'other'"):
        opened.declare_derived(field="other")
