"""Star joins, TPC-H and SSB under `enable`: the same rows, and no work that is new."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from ssb.data.generate import Dataset, generate
from ssb.queries import QUERIES as SSB
from ssb.queries import Query
from ssb.star_form import ATTRIBUTES, FACT_INDEXES, define_views
from tests.heavy.queries.operators.watch import at_most
from tests.spark.joins import tpch
from tests.spark.pruning.costs import SWITCH, Cost, check_costs, cost, excess

pytestmark = pytest.mark.spark

SETTINGS = {
    "adaptive": {},
    "static": {"spark.sql.adaptive.enabled": "false"},
    "shuffled": {
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.shuffle.partitions": "3",
    },
}
"""Of the session, by name."""
MOST_SECONDS = 120
"""Of a query and its repetitions, before they are cancelled."""
N_YEARS = 10


@pytest.fixture
def enabled(spark: SparkSession) -> Iterator[SparkSession]:
    """A session of its own, as others change its settings."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "4")
    sx.enable(session)
    yield session
    sx.disable(session)


def check(spark: SparkSession, text: str) -> tuple[Cost, Cost]:
    with at_most(spark, MOST_SECONDS) as watch:
        found = check_costs(spark, lambda: spark.sql(text))
    assert not watch.fired, "it does not end"
    return found


@pytest.fixture(scope="module")
def star(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sales in folders of years, and the years; both have indexes."""
    folder = tmp_path_factory.mktemp("star")
    for year in range(N_YEARS):
        (folder / f"sales/year={year}").mkdir(parents=True)
        keys = [year * 50 + i for i in range(400)]
        sales = pa.table({"key": keys, "v": keys, "pad": [f"{k:0100}" for k in keys]})
        pq.write_table(sales, folder / f"sales/year={year}/f.parquet")
    (folder / "years").mkdir()
    years = {
        "year": pa.array(range(N_YEARS), pa.int32()),
        "key": list(range(0, N_YEARS * 50, 50)),
        "name": [f"y{i}" for i in range(N_YEARS)],
    }
    pq.write_table(pa.table(years), folder / "years/f.parquet")
    sx.build_indexes(folder / "years", {"name": "bitmap", "key": "bitmap"}, workers=1)
    sx.build_indexes(folder / "sales", {"key": "bitmap"}, workers=1)
    return folder


@pytest.fixture
def sales(enabled: SparkSession, star: Path) -> SparkSession:
    for name in ("sales", "years"):
        frame = enabled.read.parquet(str(star / name))
        frame.createOrReplaceTempView(name)
    return enabled


@pytest.mark.slow
def test_what_is_counted(sales: SparkSession) -> None:
    sales.conf.set(SWITCH, "false")
    sales.conf.set("spark.sql.adaptive.enabled", "false")
    text = (
        "SELECT /*+ BROADCAST(y) */ count(*) FROM sales s JOIN years y ON s.key = y.key"
    )
    _, found = cost(sales, lambda: sales.sql(text))
    # A broadcast and an aggregate; the broadcast is a job of another thread.
    one = ("BuildRight",)
    assert found == Cost(2, 2, N_YEARS + 1, broadcasts=1, built=one)
    _, found = cost(sales, lambda: sales.sql(f"{text} UNION ALL {text}"))
    assert (found.exchanges, found.files) == (2, N_YEARS + 1)  # reused
    _, found = cost(sales, lambda: sales.sql(f"SELECT ({text}) FROM years"))
    assert found.files == N_YEARS + 2
    sales.conf.set("spark.sql.adaptive.enabled", "true")
    _, found = cost(sales, lambda: sales.sql(f"{text} AND y.name = 'none'"))
    assert (found.is_cut, found.built) == (True, ())
    assert (found.chosen, found.whole) == (one, 3)
    cached = sales.sql("SELECT s.key FROM sales s JOIN years y USING (key)").cache()
    try:
        assert cost(sales, cached.distinct)[1].files == N_YEARS + 1
    finally:
        cached.unpersist(blocking=True)


def test_what_is_too_much() -> None:
    plain = Cost(jobs=3, exchanges=2, files=10)
    assert excess(Cost(3, 2, 10), plain) == ""
    assert excess(Cost(2, 1, 1), plain) == ""
    assert excess(Cost(4, 2, 10), plain) == "4 jobs for 3"
    assert excess(Cost(3, 3, 10), plain) == "3 exchanges for 2"
    assert excess(Cost(3, 2, 11), plain) == "11 files for 10"
    assert excess(Cost(4, 2, 10, broadcasts=1), plain) == ""
    assert excess(Cost(3, 3, 11, built=("BuildLeft",)), plain) == ""
    cut = replace(plain, is_cut=True)
    assert excess(Cost(3, 9, 99), cut) == ""
    assert excess(Cost(4, 2, 10), cut) == "4 jobs for 3"
    assert excess(Cost(4, 2, 10, whole=4), cut) == "4 jobs for 3"
    other = Cost(4, 3, 10, built=("BuildLeft",), chosen=("BuildLeft",), whole=4)
    assert excess(other, plain) == ""
    assert excess(other, cut) == ""
    assert excess(replace(other, jobs=5), plain) == "5 jobs for 3"
    assert excess(replace(other, chosen=None), plain) == "4 jobs for 3"


@pytest.mark.slow
@pytest.mark.parametrize("reuses", ["true", "false"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_folders_that_a_dimension_chooses(
    sales: SparkSession, setting: str, reuses: str
) -> None:
    """Dynamic partition pruning stays, though the dimension has indexes."""
    pruning = "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly"
    for name, value in {**SETTINGS[setting], pruning: reuses}.items():
        sales.conf.set(name, value)
    on, off = check(
        sales,
        "SELECT count(*), sum(v) FROM sales s JOIN years y ON s.year = y.year "
        "WHERE name = 'y3'",
    )
    assert on.files <= off.files
    if setting != "shuffled" or reuses == "false":
        assert off.files <= 3  # the years, also of a second run, and one folder


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_an_exchange_that_is_reused(sales: SparkSession, setting: str) -> None:
    for name, value in SETTINGS[setting].items():
        sales.conf.set(name, value)
    check(
        sales,
        "WITH x AS (SELECT s.v % 7 AS g, sum(s.v) AS n FROM sales s JOIN years y "
        "ON s.key = y.key WHERE name < 'y2' GROUP BY 1) "
        "SELECT count(*) FROM x a JOIN x b ON a.g = b.g",
    )


@pytest.mark.few(1)
@pytest.mark.parametrize("setting", SETTINGS)
def test_two_sides_with_conditions(sales: SparkSession, setting: str) -> None:
    """Neither asks the other for keys while the other asks it."""
    for name, value in SETTINGS[setting].items():
        sales.conf.set(name, value)
    check(
        sales,
        "SELECT a.v FROM sales a JOIN sales b ON a.key = b.key "
        "WHERE a.key IN (7, 60) AND b.key IN (7, 8) AND b.v < 300",
    )


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tpch.make(tmp_path_factory.mktemp("tpch") / "tables")


@pytest.fixture(scope="module", params=["facts", "all"])
def indexed(request: pytest.FixtureRequest, orders: Path) -> Path:
    """TPC-H with indexes of the large tables, and then of all."""
    if request.param == "facts":
        tpch.index(orders, tpch.FACTS)
    else:
        tpch.index(orders, tpch.DIMENSIONS)
    return orders


def test_there_are_22_queries() -> None:
    assert list(tpch.QUERIES) == [f"Q{i}" for i in range(1, 23)]


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("query", tpch.QUERIES)
def test_tpch(enabled: SparkSession, indexed: Path, query: str, setting: str) -> None:
    for name, value in SETTINGS[setting].items():
        enabled.conf.set(name, value)
    for name in (*tpch.FACTS, *tpch.DIMENSIONS):
        frame = enabled.read.parquet(str(indexed / name))
        frame.createOrReplaceTempView(name)
    check(enabled, tpch.QUERIES[query])


@pytest.fixture(scope="module")
def ssb(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    out = tmp_path_factory.mktemp("ssb") / "data"
    return generate(out, scale=0.01, files=12, spark=spark)


@pytest.fixture(scope="module", params=["fact", "all"])
def star_of_ssb(request: pytest.FixtureRequest, ssb: Dataset) -> Dataset:
    """SSB with indexes of the fact, and then of the dimensions too."""
    if request.param == "fact":
        sx.build_indexes(ssb.tables["lineorder"], FACT_INDEXES, workers=1)
        return ssb
    prefixes = {"c": "customer", "s": "supplier", "p": "part", "d": "date"}
    for prefix, table in prefixes.items():
        wanted = [name for name in ATTRIBUTES if name[0] == prefix]
        sx.build_indexes(ssb.tables[table], dict.fromkeys(wanted, "bitmap"), workers=1)
    return ssb


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("query", SSB, ids=[query.name for query in SSB])
def test_ssb(
    enabled: SparkSession, star_of_ssb: Dataset, query: Query, setting: str
) -> None:
    for name, value in SETTINGS[setting].items():
        enabled.conf.set(name, value)
    define_views(enabled, star_of_ssb, star_of_ssb.tables["lineorder"])
    check(enabled, query.star_sql())


def test_the_sides_that_a_cached_frame_broadcast(spark: SparkSession) -> None:
    """A query of it counts them: of a frame that ended early it needs no job."""
    before = spark.conf.get("spark.sql.adaptive.enabled")
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    costs = {}
    for side in ("a", "b"):
        text = (
            f"SELECT /*+ BROADCAST({side}) */ b.id FROM (SELECT id FROM range(9) WHERE "
            "rand(1) + id < 0) a JOIN (SELECT id FROM range(5)) b ON a.id = b.id"
        )
        df = spark.sql(text).cache()
        try:
            df.count()
            _, costs[side] = cost(spark, lambda df=df: df.groupBy("id").count())
        finally:
            df.unpersist()
    spark.conf.set("spark.sql.adaptive.enabled", str(before))
    assert costs["a"].chosen == ("BuildLeft",)
    assert costs["b"].chosen == ("BuildRight",)
    assert excess(replace(costs["b"], jobs=1), costs["a"]) == ""
    assert excess(replace(costs["b"], jobs=1), replace(costs["b"], jobs=0))
