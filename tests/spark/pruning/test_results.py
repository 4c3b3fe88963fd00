"""Results that indexes know, and the first rows of an order."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from tests.spark.pruning import mixed_table
from tests.spark.pruning.scans import files_of_run, files_read, with_and_without
from tests.spark.versions import SPARK
from tests.tables import made

pytestmark = pytest.mark.spark


N_FILES = 5
ROWS = 20
SETTING = "skipindex.answers"


@pytest.fixture
def answering(pruned: SparkSession) -> Iterator[SparkSession]:
    pruned.conf.set(SETTING, "true")
    yield pruned
    pruned.conf.unset(SETTING)


def put(path: Path, file: int) -> None:
    """A file of consecutive numbers, each over ten, the rest by 3 and as text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ids = range(file * ROWS, file * ROWS + ROWS)
    columns = {
        "id": pa.array(ids, pa.int64()),
        "ten": pa.array([i // 10 for i in ids], pa.int32()),
        "rest": pa.array([i % 3 or None for i in ids], pa.int32()),
        "name": pa.array([f"n{i % 4}" for i in ids]),
        "plain": pa.array(ids, pa.int64()),
        "f": pa.array([i / 2 for i in ids], pa.float64()),
    }
    pq.write_table(pa.table(columns), path)


def make(folder: Path) -> None:
    """Five files with indexes."""
    for file in range(N_FILES):
        put(folder / f"{file}.parquet", file)
    indexed = dict.fromkeys(("id", "ten", "rest", "name", "f"), "bitmap")
    sx.build_indexes(folder, indexed, workers=1)


@pytest.fixture
def folder(tmp_path: Path, answering: SparkSession) -> Path:
    """Five files, as the view ``t``."""
    made(tmp_path / "t", make)
    answering.read.parquet(str(tmp_path / "t")).createOrReplaceTempView("t")
    return tmp_path / "t"


def test_a_plan_asks_once(answering: SparkSession, folder: Path) -> None:
    """The rule sees each plan twice, and what it has made of it."""
    assert folder.is_dir()
    put(folder / "new.parquet", 7)
    answering.read.parquet(str(folder)).createOrReplaceTempView("t")
    df = answering.sql("SELECT max(id), count(*) FROM t WHERE ten >= 0")
    df._jdf.queryExecution().optimizedPlan()
    assert [record.answered != "" for record in sx.last_plans(answering)] == [True]
    assert df.collect() == [(159, 120)]
    assert len(sx.last_plans(answering)) == 1


@pytest.mark.slow
def test_methods_of_frames(answering: SparkSession, folder: Path) -> None:
    df = answering.read.parquet(str(folder))
    assert df.count() == 100
    assert df.where("rest = 1").count() == 33
    assert sx.last_plans(answering)[-1].answered == "count(*)"
    assert not df.where("rest = 1").isEmpty()
    if SPARK >= (4, 3):  # 3.5 plans it without LIMIT
        assert sx.last_plans(answering)[-1].answered == "1 rows"
    queries = (
        lambda: df.groupBy("name").count(),
        lambda: df.select("rest").distinct(),
        lambda: df.agg(sf.min("id"), sf.max("name")),
        lambda: df.dropDuplicates(["rest"]).select("rest"),
    )
    for query in queries:
        _, some, everything = with_and_without(answering, query)
        assert (some, everything) == (0, N_FILES)


def test_a_file_that_is_replaced_after_the_frame_was_defined_is_read(
    answering: SparkSession, folder: Path
) -> None:
    df = answering.read.parquet(str(folder))
    assert df.where("id >= 0").count() == 100
    # Both listings are older than the file.
    pq.write_table(pq.read_table(folder / "2.parquet")[:3], folder / "2.parquet")
    assert df.where("id >= 0").count() == 83
    assert df.agg(sf.max("id"), sf.count("*")).first() == (99, 83)


def test_a_frame_counts_as_of_its_first_plan(
    answering: SparkSession, folder: Path
) -> None:
    """Files that come later are not mixed with results of before."""
    counted = answering.sql("SELECT count(*), max(id) FROM t")
    counted.explain()
    put(folder / "2.parquet", 90)
    answering.catalog.refreshByPath(str(folder))
    assert counted.collect() == [(100, 99)]
    assert answering.sql("SELECT count(*), max(id) FROM t").first() == (100, 1819)


@pytest.mark.slow
def test_caches_views_and_catalog_tables(answering: SparkSession, folder: Path) -> None:
    cached = answering.sql("SELECT name, count(*) AS n FROM t GROUP BY name").cache()
    assert sorted(map(tuple, cached.collect())) == [(f"n{i}", 25) for i in range(4)]
    put(folder / "new.parquet", 7)
    assert cached.where("n > 3").count() == 4
    cached.unpersist()
    answering.sql(f"CREATE TABLE counted USING parquet LOCATION 'file:{folder}'")
    try:
        text = "SELECT count(*), max(id) FROM counted"
        _, some, everything = with_and_without(answering, lambda: answering.sql(text))
        assert (some, everything) == (1, N_FILES + 1)
        answering.sql("INSERT INTO counted SELECT * FROM t WHERE id = 1")
        assert answering.sql(text).first() == (121, 159)
    finally:
        answering.sql("DROP TABLE counted")


FILTERS = (
    "true",
    "true",
    "i > 12",
    "i BETWEEN 8 AND 33 AND b",
    "s <> 'a' OR d IS NULL",
    "part = 1 AND dec < 0",
    "part + i > 10",
    "f > 0 OR isnan(f)",
    "constant = 'one' AND s LIKE 'a%'",
    "small IS NULL OR big > 0",
    "year(d) = 2024 AND NOT b",
    "length(s) > 1",
    "crc32(s) > 9",
)
COLUMNS = ("id", "i", "small", "s", "d", "ts", "dec", "big", "f", "b", "constant")
FORMS = (
    "SELECT count(*), min({a}), max({b}) FROM m WHERE {where}",
    "SELECT max({a}), count({b}), min(part), count(1) FROM m WHERE {where}",
    "SELECT {a}, count(*) AS n FROM m WHERE {where} GROUP BY {a}",
    "SELECT DISTINCT {a} AS x FROM m WHERE {where}",
    "SELECT part, count(1) * 2 FROM m WHERE {where} GROUP BY part",
    "SELECT count({a}) FROM m WHERE {where}",
)


@pytest.mark.slow
def test_random_aggregates(
    answering: SparkSession, tmp_path: Path, seed: int, share: int
) -> None:
    rng = Random(seed)
    root = mixed_table.make(tmp_path / "m", rng)
    answering.read.parquet(root).createOrReplaceTempView("m")
    n_less = n_answered = 0
    for _ in range(40 // share):
        where = rng.choice(FILTERS)
        text = rng.choice(FORMS).format(
            a=rng.choice(COLUMNS), b=rng.choice(COLUMNS), where=where
        )
        found = []
        for is_enabled in ("false", "true"):
            answering.conf.set("skipindex.enabled", is_enabled)
            df = answering.sql(text)
            found.append((sorted(map(str, df.collect())), files_of_run(df)))
        assert found[1][0] == found[0][0], text
        n_answered += bool(sx.last_plans(answering)[-1].answered)
        n_less += found[1][1] < found[0][1]
    assert n_answered >= 15 // share
    assert n_less >= 15 // share


ORDERED_N_FILES = 10


def make_ordered(ordered_folder: Path) -> None:
    """Ten files of consecutive numbers, and each number over ten."""
    for file in range(ORDERED_N_FILES):
        ids = pa.array(range(file * ROWS, file * ROWS + ROWS), pa.int64())
        tens = pa.array([i // 10 for i in ids.to_pylist()], pa.int32())
        pq.write_table(
            pa.table({"id": ids, "ten": tens}), ordered_folder / f"{file}.parquet"
        )
    sx.build_indexes(ordered_folder, {"id": "minmax", "ten": "bitmap"}, workers=1)


@pytest.fixture
def ordered_folder(tmp_path: Path, pruned: SparkSession) -> Path:
    """The ten files as the view ``t``."""
    made(tmp_path / "t", make_ordered)
    pruned.read.parquet(str(tmp_path / "t")).createOrReplaceTempView("t")
    return tmp_path / "t"


def test_a_file_that_has_changed_does_not_count(
    pruned: SparkSession, ordered_folder: Path
) -> None:
    df = pruned.read.parquet(str(ordered_folder))
    assert df.orderBy("id").limit(2).collect()[0].id == 0
    # Both listings are older than the file, which has no row any more.
    pq.write_table(
        pq.read_table(ordered_folder / "1.parquet")[:0], ordered_folder / "0.parquet"
    )
    assert df.orderBy("id").limit(2).collect()[0].id == 20


def test_a_file_that_is_new_is_read(pruned: SparkSession, ordered_folder: Path) -> None:
    shutil.copy(ordered_folder / "0.parquet", ordered_folder / "more.parquet")
    df = pruned.read.parquet(str(ordered_folder)).orderBy(sf.desc("id")).limit(2)
    assert files_read(df) == 2


def test_any_rows_need_no_other_file(
    pruned: SparkSession, ordered_folder: Path
) -> None:
    """Not one that has gone either, on which the query would fail."""
    df = pruned.read.parquet(str(ordered_folder))
    assert df.where("ten < 0").count() == 0
    (ordered_folder / "9.parquet").rename(ordered_folder / "moved.parquet")
    for condition in ("ten > 4", "ten > 4", "ten < 2"):  # the last leaves one
        one = df.where(condition).limit(1).select(sf.lit(1))
        assert one.collect() == [(1,)]
        assert files_of_run(one) == 1
        sx.build_indexes(
            ordered_folder, workers=1
        )  # our listing was as old as that of Spark


KEYS = ("id", "i", "small", "s", "d", "ts", "dec", "big", "f", "b", "part", "constant")
ORDERED_FILTERS = (
    "true",
    "i > 12",
    "i BETWEEN 8 AND 33 AND b",
    "s <> 'a' OR d IS NULL",
    "part = 1 AND dec < 0",
    "part + i > 10",
    "f > 0",
    "constant = 'one'",
    "small IS NULL OR big > 0",
    "length(s) > 1",
)


@pytest.mark.slow
def test_random_orders(
    pruned: SparkSession, tmp_path: Path, seed: int, share: int
) -> None:
    rng = Random(seed)
    root = mixed_table.make(tmp_path / "m", rng)
    pruned.read.parquet(root).createOrReplaceTempView("m")
    n_less = 0
    for _ in range(40 // share):
        key, where = rng.choice(KEYS), rng.choice(ORDERED_FILTERS)
        way = rng.choice(["", " DESC", " NULLS LAST", " DESC NULLS FIRST"])
        more = rng.choice([", id", ", id", ", part DESC, id", ""])
        n = rng.choice([1, 3, 15, 40])
        shown = f"{key}, id" if more else key
        text = (
            f"SELECT {shown} FROM m WHERE {where} ORDER BY {key}{way}{more} LIMIT {n}"
        )
        found = []
        for is_enabled in ("false", "true"):
            pruned.conf.set("skipindex.enabled", is_enabled)
            df = pruned.sql(text)
            found.append((list(map(str, df.collect())), files_of_run(df)))
        assert found[1][0] == found[0][0], text
        n_less += found[1][1] < found[0][1]
    assert n_less >= 10 // share
