"""Which column a name is, its zone, and its default."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from skipindex.planner.plan import plan_files
from tests.conditions.functions.test_wall_clocks import shifted
from tests.quick_run import RUN
from tests.spark.pruning.scans import (
    files_of_run,
    rows_of,
    unpruned,
    with_and_without,
)
from tests.spark.reading.whole import ZONE, settings
from tests.table.which_column import CONDITIONS, NAMES, Table, ids_of, is_true, same
from tests.tables import build, put, put_all

pytestmark = pytest.mark.spark


@pytest.fixture(params=[False, True], ids=["folded", "exact"])
def exact(request: pytest.FixtureRequest, pruned: SparkSession) -> Iterator[bool]:
    """Whether capitals tell names apart in the session, which asks for answers too."""
    pruned.conf.set("spark.sql.caseSensitive", str(request.param).lower())
    pruned.conf.set("skipindex.answers", "true")
    yield request.param
    pruned.conf.unset("skipindex.answers")
    pruned.conf.unset("spark.sql.caseSensitive")


@pytest.mark.few(1)
@pytest.mark.parametrize("kinds", ["bitmap", "bloom"])
def test_a_name_is_the_column_that_spark_reads(
    tmp_path: Path,
    pruned: SparkSession,
    exact: bool,
    kinds: str,
) -> None:
    random = Random(11)
    for case in range(2 if RUN.is_whole else 1):
        drawn = Table.draw(random)
        folder = str(drawn.write(tmp_path / f"{case}"))
        sx.build_indexes(folder, {"*": kinds}, workers=1)
        columns = drawn.schema(exact=exact)
        names = [n for n in NAMES if any(same(n, c, exact) for c in columns)]
        for name in random.sample(names, min(2, len(names))):
            condition = random.choice(CONDITIONS)
            ids = random.sample(range(4 * len(drawn.files)), 4)
            found = {
                n: value
                for file in range(len(drawn.files))
                for n, value in zip(
                    ids_of(file), drawn.values(file, name, exact=exact), strict=True
                )
                if n in ids and is_true(value, condition)
            }
            text = f"id IN ({', '.join(map(str, ids))}) AND {name} {condition}"
            rows = pruned.read.parquet(folder).where(text)
            case_of = (drawn, text)
            assert dict(rows.select("id", name).collect()) == found, case_of
            assert rows.groupBy().count().first()[0] == len(found), case_of
            ends = rows.selectExpr(f"min({name})", f"max({name})").first()
            known = [v for v in found.values() if v is not None]
            expected = (min(known, default=None), max(known, default=None))
            assert tuple(ends) == expected, case_of
            read = sx.read(folder, text, spark=pruned)
            assert {r["id"] for r in read.collect()} == set(found), case_of


ZONED_CONDITIONS = {
    "CAST(t AS DATE) = DATE '2024-10-27'": 25,
    "to_date(t) > '2024-10-26' AND year(t) = 2024": 35,
    "date_trunc('DAY', t) = TIMESTAMP '2024-10-26 00:00:00'": 13,
    "t >= '2024-10-27 02:30:00'": 32,
    "date_format(t, 'yyyy-MM-dd HH') < '2024-10-27 01'": 14,
}
"""With the number of hours that match; each is a file."""


@pytest.fixture(scope="module")
def zoned_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The 48 hours around a change of the clocks in Berlin."""
    root = tmp_path_factory.mktemp("hours")
    first = datetime(2024, 10, 26, 9, tzinfo=UTC)
    hours = [first + timedelta(hours=n) for n in range(48)]
    kind = pa.timestamp("us", "UTC")
    put_all(root, [{"t": pa.array([hour], kind)} for hour in hours])
    build(root, {"t": "bitmap"})
    return root


@pytest.fixture
def zoned_pruned(spark: SparkSession, zoned_table: Path) -> Iterator[SparkSession]:
    with settings(spark, {ZONE: "Europe/Berlin"}):
        sx.enable(spark)
        spark.read.parquet(str(zoned_table)).createOrReplaceTempView("hours")
        yield spark
        spark.catalog.dropTempView("hours")
        sx.disable(spark)


@pytest.mark.few(2)
@pytest.mark.parametrize(("condition", "n_hours"), ZONED_CONDITIONS.items())
def test_the_rules_are_those_of_the_driver(
    zoned_pruned: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    condition: str,
    n_hours: int,
) -> None:
    """Whatever Python takes for the rules, and exactly the files with matches."""
    text = f"SELECT * FROM hours WHERE {condition}"
    whole = unpruned(zoned_pruned, text)
    assert len(whole) == n_hours
    assert plan_files.__kwdefaults__ is not None
    monkeypatch.setitem(plan_files.__kwdefaults__, "offsets", shifted)
    assert rows_of(zoned_pruned.sql(text)) == whole
    assert sx.last_plans(zoned_pruned)[-1].n_read == n_hours


def test_rows_are_counted_by_the_rules_of_the_driver(
    zoned_pruned: SparkSession,
) -> None:
    zoned_pruned.conf.set("skipindex.answers", "true")
    try:
        text = "SELECT count(*) FROM hours WHERE CAST(t AS DATE) = DATE '2024-10-27'"
        assert zoned_pruned.sql(text).head() == (25,)
        assert "count(*)" in sx.last_plans(zoned_pruned)[-1].answered
    finally:
        zoned_pruned.conf.unset("skipindex.answers")


def test_a_zone_of_an_expression_is_not_that_of_the_session(
    zoned_pruned: SparkSession,
) -> None:
    """Its offsets are not told, so it is known to a day."""
    other = "to_date(from_utc_timestamp(t, 'Asia/Tokyo')) = DATE '2024-10-28'"
    text = f"SELECT * FROM hours WHERE {other} AND CAST(t AS DATE) >= '2024-10-27'"
    assert rows_of(zoned_pruned.sql(text)) == unpruned(zoned_pruned, text)


ADDED = {"j": "INT DEFAULT 7", "s": "STRUCT<x: INT> DEFAULT named_struct('x', 7)"}


@pytest.fixture
def grown(pruned: SparkSession) -> Iterator[str]:
    """Two files without the columns, one with values and one with NULL."""
    pruned.sql("CREATE TABLE grown (i INT) USING parquet")
    try:
        for i in range(2):
            pruned.sql(f"INSERT INTO grown VALUES ({i})")
        for name, kind in ADDED.items():
            pruned.sql(f"ALTER TABLE grown ADD COLUMN {name} {kind}")
        pruned.sql("INSERT INTO grown VALUES (2, 5, named_struct('x', 5))")
        pruned.sql("INSERT INTO grown VALUES (3, NULL, NULL)")
        pruned.sql("CREATE INDEX ON grown (i, j, s.x) USING bitmap")
        yield "grown"
    finally:
        pruned.sql("DROP TABLE grown")


QUERIES = {
    "SELECT i FROM grown WHERE j = 7": 3,
    "SELECT i FROM grown WHERE j = 5": 4,
    "SELECT i FROM grown WHERE s.x = 7": 3,
    "SELECT i FROM grown WHERE j = 7 AND i = 0": 1,
    "SELECT i FROM grown WHERE j IS NULL": 3,
    "SELECT i FROM grown WHERE j IS NOT NULL": 4,
    "SELECT i FROM grown WHERE NOT j = 5": 3,
    "SELECT i, j FROM grown ORDER BY j DESC LIMIT 1": 4,
    "SELECT count(j), min(j), max(j) FROM grown": 4,
    "SELECT i FROM grown JOIN (SELECT explode(array(7, 8)) AS k) ON j = k": 4,
}


def test_files_without_the_column_hold_the_default(
    pruned: SparkSession, grown: str
) -> None:
    """Also where they have been rewritten, with the default in each row."""
    pruned.conf.set("skipindex.answers", "true")
    try:
        texts = [*QUERIES] if RUN.is_whole else [*QUERIES][::2]
        whole = {text: unpruned(pruned, text) for text in texts}
        assert all(whole.values())
        for is_rewritten in (False, True):
            if is_rewritten:
                pruned.sql(f"OPTIMIZE {grown} RANGE BY (i) LOCALLY ORDERED BY (j)")
            for text in texts:
                most = QUERIES[text]
                df = pruned.sql(text)
                assert rows_of(df) == whole[text]
                some = files_of_run(df)
                assert some <= most, text
                if text.endswith("j = 7"):
                    assert some == (1 if is_rewritten else most)
    finally:
        pruned.conf.unset("skipindex.answers")


def test_a_reader_by_path_sees_no_default_before_the_vacuum(
    pruned: SparkSession, grown: str
) -> None:
    """Its schema is its own, without DEFAULT, so the old files hold NULL for it."""
    path = Path(pruned.table(grown).inputFiles()[0].removeprefix("file:")).parent
    pruned.sql(f"OPTIMIZE {grown} RANGE BY (i)")

    def query() -> DataFrame:
        frame = pruned.read.schema("i INT, j INT").parquet(str(path))
        return frame.where("j IS NULL")

    rows, *_ = with_and_without(pruned, query)
    assert len(rows) == 3


def test_a_dimension_has_the_default_where_its_files_lack_an_attribute(
    pruned: SparkSession, tmp_path: Path
) -> None:
    for i in range(4):
        put(tmp_path / "orders" / f"{i}.parquet", {"customer": [2 * i, 2 * i + 1]})
    place = tmp_path / "customers"
    put(place / "0.parquet", {"k": [5, 6, 7], "city": ["Rome"] * 3})
    put(place / "1.parquet", {"k": range(5)})
    columns = "k BIGINT, city STRING DEFAULT 'Oslo'"
    pruned.sql(
        f"CREATE TABLE joined_by_default ({columns}) USING parquet LOCATION '{place}'"
    )
    try:
        sx.build_indexes(tmp_path / "orders", {"customer": "bitmap"}, workers=1)

        def query(city: str) -> DataFrame:
            orders = pruned.read.parquet(str(tmp_path / "orders"))
            customers = pruned.table("joined_by_default")
            joined = orders.join(customers, orders.customer == customers.k)
            return joined.where(f"city = '{city}'")

        for city, n in {"Oslo": 5, "Rome": 3}.items():
            rows, *_ = with_and_without(pruned, partial(query, city))
            assert len(rows) == n
    finally:
        pruned.sql("DROP TABLE joined_by_default")
