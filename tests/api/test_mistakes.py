"""Mistakes that people make: each is an error of ours that says what would be accepted.

A message says what was wrong and what would be accepted, in one line.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from unittest.mock import Mock

import pyarrow as pa
import pytest

import skipindex as sx
from skipindex.api import checks
from skipindex.errors import (
    AdviceError,
    BuildError,
    EngineError,
    LayoutError,
    PlanError,
    PredicateError,
    TableError,
    UnknownIndexError,
    UnsupportedTypeError,
    did_you_mean,
    kind_of,
)
from tests.tables import build, put


@dataclass(frozen=True)
class Place:
    """A table of two files, the second of which has one more column."""

    folder: Path
    table: sx.Table

    def path(self, name: str) -> Path:
        return self.folder.parent / name


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("mistakes") / "t"
    moment = pa.array([dt.datetime(2024, 1, 1)] * 2, pa.timestamp("us", "UTC"))
    both = {"city": ["Rome", "Oslo"], "price": [1, 2], "at": moment}
    put(folder / "0.parquet", both)
    put(folder / "1.parquet", {**both, "extra": [1, 2]})
    put(folder.parent / "nested" / "sub" / "0.parquet", {"x": [1]})
    delta = folder.parent / "delta" / "_delta_log" / f"{0:020}.json"
    delta.parent.mkdir(parents=True)
    delta.write_text("{}")
    put(folder.parent / "delta" / "0.parquet", {"x": [1]})
    (folder.parent / "csv").mkdir()
    (folder.parent / "csv" / "a.csv").write_text("a,b\n1,2\n")
    (folder.parent / "empty").mkdir()
    return Place(folder, build(folder, {"city": "bitmap"}))


pd = pytest.importorskip("pandas")


FRAME = pd.DataFrame({"city": ["Rome"]})
PRICE = sx.col("price")

Mistake = tuple[Callable[[Place], object], type[Exception], str]

MISTAKES: Final[Mapping[str, Mistake]] = {
    # opening
    "no such folder": (
        lambda t: sx.open_table(t.path("nowhere")),
        TableError,
        "no such table: .*nowhere' does not exist",
    ),
    "a file": (
        lambda t: sx.open_table(t.folder / "0.parquet"),
        TableError,
        r"0.parquet' is a file \(expected the folder of a table\)",
    ),
    "a folder of CSV": (
        lambda t: sx.open_table(t.path("csv")),
        TableError,
        "a.csv' is not a readable Parquet file",
    ),
    "a list of folders": (
        lambda t: sx.open_table([t.folder]),
        TableError,
        r"not a table: a list \(accepted: .* of one folder",
    ),
    "a pandas frame": (
        lambda _: sx.open_table(FRAME),
        TableError,
        r"not a table: a pandas.DataFrame \(accepted: a Table, a path or a URI",
    ),
    "None": (
        lambda _: sx.open_table(None),
        TableError,
        r"not a table: None \(accepted: a Table, a path or a URI\)",
    ),
    "a Delta table without a log": (
        lambda t: sx.open_table(t.path("delta")),
        TableError,
        "is a Delta table, and its log cannot be read",
    ),
    "an empty folder": (
        lambda t: sx.open_table(t.path("empty")),
        TableError,
        "no Parquet files in",
    ),
    "the folder above": (
        lambda t: sx.open_table(t.path("nested")),
        TableError,
        "is in a folder that is not named like a partition",
    ),
    "a pattern of names": (
        lambda t: sx.open_table(f"{t.folder}/*.parquet"),
        TableError,
        r"is a pattern of names \(accepted: the folder itself, '.*/t'\)",
    ),
    "unknown storage options": (
        lambda _: sx.open_table("s3://b/t", storage_options={"key": "x"}),
        TableError,
        r"options \['key'\]: .*'key' is not valid for store 'S3' \(accepted",
    ),
    "storage options of a disk": (
        lambda t: sx.open_table(t.folder, storage_options={"region": "x"}),
        TableError,
        r"takes no storage_options \(accepted: an s3:",
    ),
    "a schema of texts": (
        lambda t: sx.open_table(t.folder, schema={"city": "string"}),
        TableError,
        r"not a schema: a dict \(accepted: an Arrow schema",
    ),
    "a type of a partition as text": (
        lambda t: sx.open_table(t.folder, partition_types={"day": "date"}),
        TableError,
        r"'date' is not an Arrow type for 'day' \(accepted: such as pa.int32",
    ),
    "derived as a mapping": (
        lambda t: sx.open_table(t.folder, derived={"year": "year(at)"}),
        TableError,
        r"accepted: skipindex.Derived\(",
    ),
    "unknown trust": (
        lambda t: sx.open_table(t.folder, trust="logs"),
        TableError,
        "trust='logs' .*accepted: 'listing', 'log'",
    ),
    # building
    "indexes as a list": (
        lambda t: t.table.build_indexes(["city"]),
        UnknownIndexError,
        r"\['city'\] .*accepted: a mapping such as \{'city': 'bitmap'\}",
    ),
    "indexes as a text": (
        lambda t: t.table.build_indexes("city"),
        UnknownIndexError,
        r"'city' .*accepted: a mapping such as \{'city': 'bitmap'\}",
    ),
    "a typo in a column": (
        lambda t: t.table.build_indexes({"ctiy": "bitmap"}, workers=1),
        PredicateError,
        r"no column 'ctiy' in .*did you mean 'city'\? \(columns: city, price, at\)",
    ),
    "a typo in a kind": (
        lambda t: t.table.build_indexes({"city": "bitmpa"}, workers=1),
        UnknownIndexError,
        r"unknown index kind 'bitmpa': did you mean 'bitmap'\? \(known: bit_sliced,",
    ),
    "a kind with arguments as text": (
        lambda t: t.table.build_indexes({"city": "bloom(0.1)"}, workers=1),
        UnknownIndexError,
        r"not an index: 'bloom\(0.1\)' .*or bloom\(error_rate=0.001\)",
    ),
    "a kind for other types": (
        lambda t: t.table.build_indexes({"price": "ngram_bloom"}, workers=1),
        UnsupportedTypeError,
        r"ngram_bloom index on column 'price': .*\(accepted: string\)",
    ),
    "an error rate beyond 1": (
        lambda _: sx.Bloom(error_rate=2),
        UnknownIndexError,
        "accepted: between 0 and 1",
    ),
    "no workers": (
        lambda t: t.table.build_indexes({"city": "bitmap"}, workers=0),
        BuildError,
        r"not a number of workers: 0 \(accepted: 1 or more",
    ),
    "workers as a text": (
        lambda t: t.table.refresh_indexes(workers="2"),
        BuildError,
        r"not a number of workers: '2' \(accepted: 1 or more",
    ),
    "progress that is no function": (
        lambda t: t.table.build_indexes({"city": "bloom"}, workers=1, progress=7),
        BuildError,
        r"progress=7 cannot be called \(accepted: True, or a function",
    ),
    "a share as a text": (
        lambda t: t.table.build_indexes(max_bytes_ratio="10%", workers=1),
        AdviceError,
        r"max_bytes_ratio='10%' \(accepted: a number above 0",
    ),
    "no amount of memory": (
        lambda t: t.table.build_indexes({"city": "bitmap"}, memory="lots"),
        BuildError,
        "accepted: bytes, or a text such as '1GB'",
    ),
    "a name as a session": (
        lambda t: t.table.build_indexes({"city": "bitmap"}, spark="local"),
        EngineError,
        r"no engine for 'local' \(accepted: a session of pyspark\)",
    ),
    "a query of another table": (
        lambda t: t.table.advise(queries=["ctiy = 'x'"]),
        AdviceError,
        r"no column 'ctiy' .*did you mean 'city'\?",
    ),
    # planning
    "a typo in a condition": (
        lambda t: t.table.plan("pirce < 4"),
        PredicateError,
        r"no column 'pirce' .*did you mean 'price'\?",
    ),
    "a column of other files": (
        lambda t: t.table.plan("extra = 1"),
        PredicateError,
        r"no column 'extra' .*give open_table a schema",
    ),
    "a whole query": (
        lambda t: t.table.plan("SELECT * FROM t WHERE price < 4"),
        PredicateError,
        "expected the condition alone, without 'SELECT'",
    ),
    "no SQL": (
        lambda t: t.table.plan("city = 'Rome' &&"),
        PredicateError,
        "near '&' at line 1, column 15",
    ),
    "no condition": (
        lambda t: t.table.plan(""),
        PredicateError,
        "expected a condition, found none",
    ),
    "a condition of pandas": (
        lambda t: t.table.plan(FRAME["city"] == "Rome"),
        PredicateError,
        r"not a predicate: a pandas.Series \(accepted: SQL text",
    ),
    "conditions in a list": (
        lambda t: t.table.plan(["price < 4"]),
        PredicateError,
        r"not a predicate: a list \(accepted: SQL text",
    ),
    "a limit as a text": (
        lambda t: t.table.plan("price < 4", limit="5"),
        PlanError,
        r"not a limit: '5' \(accepted: a number of rows\)",
    ),
    "an order that is not text": (
        lambda t: t.table.plan("price < 4", limit=5, order_by=1),
        PlanError,
        r"not an order: 1 \(accepted: 'x', or a list",
    ),
    "an order without limit": (
        lambda t: t.table.plan("price < 4", order_by="price"),
        PlanError,
        r"order_by without limit .*pass limit=n",
    ),
    "a typo in a zone": (
        lambda t: t.table.plan("price < 4", timezone="Europe/Roma"),
        PlanError,
        r"unknown time zone 'Europe/Roma': did you mean 'Europe/Rome'\? \(accepted",
    ),
    "a zone of Python": (
        lambda t: t.table.plan("price < 4", timezone=dt.UTC),
        PlanError,
        r"timezone=datetime.timezone.utc is not a text \(accepted: such as 'UTC'",
    ),
    "now as a text": (
        lambda t: t.table.plan("price < 4", now="2024-01-01"),
        PlanError,
        r"now='2024-01-01' is not a time \(accepted: datetime.now\(UTC\)\)",
    ),
    "now without a zone": (
        lambda t: t.table.plan("price < 4", now=dt.datetime(2024, 1, 1)),
        PlanError,
        r"has no time zone \(accepted: datetime.now\(UTC\)\)",
    ),
    "a session that is no cache": (
        lambda t: t.table.plan("price < 4", session="x"),
        PlanError,
        r"session='x' is not a cache \(accepted: a skipindex.api.CacheSession",
    ),
    "a kind that there is not": (
        lambda t: t.table.plan("price < 4", kinds="blom"),
        UnknownIndexError,
        r"unknown index kind 'blom': did you mean 'bloom'\?",
    ),
    "the predicate before the table": (
        lambda t: sx.plan_files("price < 4", str(t.folder)),
        TableError,
        r"the table comes first: plan_files\('.*/t', 'price < 4'\)",
    ),
    # building conditions
    "and between conditions": (
        lambda _: (PRICE > 3) and (PRICE < 5),
        PredicateError,
        r"combine with & \| ~ \(not: and or not\)",
    ),
    "arithmetic with a column": (
        lambda _: PRICE + 1 > 5,
        PredicateError,
        r"no arithmetic with price here \(accepted: SQL text",
    ),
    "a column in a list": (
        lambda _: sx.col("cost").isin(PRICE, 4),
        PredicateError,
        r"not a literal: a skipindex.Column \(accepted: .*None\)",
    ),
    "a condition and a text": (
        lambda _: (PRICE > 3) | "city = 'Rome'",
        PredicateError,
        r"not a predicate: \"city = 'Rome'\" \(accepted: conditions built with",
    ),
    "a column by its place": (
        lambda _: sx.col(0),
        PredicateError,
        r"not a column: 0 \(accepted: its name",
    ),
    "a pattern that is not text": (
        lambda _: sx.col("city").like(5),
        PredicateError,
        r"not a LIKE pattern: 5 \(expected text\)",
    ),
    # reading
    "read without a session": (
        lambda t: t.table.plan("price < 4").read(),
        EngineError,
        r"no session \(accepted: plan.read\(spark\), or without Spark plan.to_pandas",
    ),
    "sx.read without a session": (
        lambda t: sx.read(t.folder, "price < 4"),
        EngineError,
        r"no session \(accepted: spark=spark, or without Spark .*plan.to_pandas",
    ),
    "a session as a text": (
        lambda t: sx.read(t.folder, "price < 4", spark="local"),
        EngineError,
        r"not a Spark session: 'local' \(accepted: a SparkSession",
    ),
    "enable without a session": (
        lambda _: sx.enable(None),
        EngineError,
        r"not a Spark session: None \(accepted: a SparkSession",
    ),
    "a file that is not there": (
        lambda t: t.table.plan("price < 4").explain(file="nope"),
        PlanError,
        "no file 'nope' in .*such as '0.parquet'",
    ),
    "a sample as a text": (
        lambda t: t.table.plan("price < 4").verify(sample="all"),
        PlanError,
        r"not a sample: 'all' \(accepted: a number of files",
    ),
    # writing, and looking after a table
    "a pandas frame to write": (
        lambda t: sx.write_table(FRAME, t.path("new")),
        EngineError,
        r"not a Spark DataFrame: a pandas.DataFrame \(.*spark.createDataFrame",
    ),
    "an Arrow table to append": (
        lambda t: sx.append(pa.table({"x": [1]}), t.folder),
        EngineError,
        r"not a Spark DataFrame: a pyarrow.Table \(.*spark.createDataFrame",
    ),
    "optimize without a session": (
        lambda t: t.table.optimize("incremental"),
        EngineError,
        r"not a Spark session: 'incremental' \(accepted: a SparkSession",
    ),
    "a column to cluster by as a text": (
        lambda _: sx.Clustering(by="city"),
        LayoutError,
        "lists of column names, not 'city'",
    ),
    "a workload as a text": (
        lambda _: sx.Workload("price < 4"),
        LayoutError,
        'a list of conditions, not "?.price < 4',
    ),
    "a retention in days": (
        lambda t: t.table.vacuum(retention=7),
        TableError,
        r"not a retention: 7 \(accepted: a timedelta",
    ),
    "a retention as a text": (
        lambda t: t.table.declare_retention("7 days"),
        TableError,
        r"not a retention: '7 days' \(accepted: a timedelta",
    ),
    "an index of a column that is not there": (
        lambda t: t.table.drop_indexes(columns=["City2"]),
        PredicateError,
        r"no column 'City2' .*did you mean 'city'\?",
    ),
    "nothing to declare": (
        lambda t: t.table.declare_derived(),
        PredicateError,
        r"nothing to declare \(accepted: columns",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_in_one_line(name: str, place: Place) -> None:
    mistake, error, message = MISTAKES[name]
    if "session" in message or "Spark:" in message:
        pytest.importorskip("pyspark")
    with pytest.raises(error, match=message) as raised:
        mistake(place)
    assert isinstance(raised.value, sx.SkipIndexError)
    assert "\n" not in str(raised.value)
    assert " object at 0x" not in str(raised.value)


def test_there_are_forty_mistakes_and_more() -> None:
    assert len(MISTAKES) >= 40


def test_a_name_that_stands_alone_is_a_list_of_itself(place: Place) -> None:
    one = place.table.layout_quality(columns="city")
    assert [column.column for column in one.columns] == ["city"]
    quality = place.table.layout_quality("price < 4")
    assert [query.query for query in quality.queries] == ["price < 4"]


@pytest.mark.parametrize(
    "zone", ["UTC", "Z", "GMT+2", "+02:00", "-3", "UTC+01:30", "PST", "Asia/Tokyo"]
)
def test_zones_of_java_are_taken(place: Place, zone: str) -> None:
    assert place.table.plan("price < 4", timezone=zone).session.timezone == zone


def test_the_zones_that_there_are_are_listed_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That reads hundreds of files, and a plan takes less than a millisecond."""
    lists = Mock(return_value={"Asia/Tokyo"})
    monkeypatch.setattr(checks, "available_timezones", lists)
    checks._known_zones.cache_clear()
    try:
        for zone in ("Asia/Tokyo", "UTC", "Asia/Tokyo"):
            place.table.plan("price < 4", timezone=zone)
        assert lists.call_count == 1
    finally:
        checks._known_zones.cache_clear()


def test_the_kind_of_a_value() -> None:
    values: list[tuple[Any, str]] = [
        (None, "None"),
        ("x", "'x'"),
        (5, "5"),
        ([1], "a list"),
        (object(), "an object"),
        (FRAME, "a pandas.DataFrame"),
        (pa.table({}), "a pyarrow.Table"),
    ]
    for value, text in values:
        assert kind_of(value) == text


def test_the_most_similar_name() -> None:
    assert did_you_mean("USERID", ["user_id", "city"]) == ": did you mean 'user_id'?"
    assert did_you_mean("zzz", ["user_id", "city"]) == ""
