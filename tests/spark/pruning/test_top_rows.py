"""The first rows of an order: the same with skipping, from the files that hold them."""

from __future__ import annotations

import shutil
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
from tests.tables import made

pytestmark = pytest.mark.spark

N_FILES = 10
ROWS = 20


def make(folder: Path) -> None:
    """Ten files of consecutive numbers, and each number over ten."""
    for file in range(N_FILES):
        ids = pa.array(range(file * ROWS, file * ROWS + ROWS), pa.int64())
        tens = pa.array([i // 10 for i in ids.to_pylist()], pa.int32())
        pq.write_table(pa.table({"id": ids, "ten": tens}), folder / f"{file}.parquet")
    sx.build_indexes(folder, {"id": "minmax", "ten": "bitmap"}, workers=1)


@pytest.fixture
def folder(tmp_path: Path, pruned: SparkSession) -> Path:
    """The ten files as the view ``t``."""
    made(tmp_path / "t", make)
    pruned.read.parquet(str(tmp_path / "t")).createOrReplaceTempView("t")
    return tmp_path / "t"


TEXTS = {
    "SELECT * FROM t ORDER BY id LIMIT 5": 1,
    "SELECT * FROM t ORDER BY id DESC LIMIT 21": 2,
    "SELECT id FROM t ORDER BY id LIMIT 5 OFFSET 17": 2,
    "SELECT ten FROM t ORDER BY ten, id LIMIT 20": 1,
    "SELECT ten FROM t WHERE id >= 30 ORDER BY ten DESC LIMIT 3": 1,
    "SELECT x FROM (SELECT id AS x, ten + 1 AS y FROM t) ORDER BY x, y LIMIT 5": 1,
    "SELECT id, upper(string(ten)) FROM t WHERE ten > 3 ORDER BY id LIMIT 2": 1,
    "SELECT * FROM (SELECT * FROM t ORDER BY id LIMIT 3) WHERE ten = 9": 1,
    "SELECT max(id) FROM (SELECT * FROM t ORDER BY id LIMIT 3)": 1,
    "SELECT * FROM t WHERE id = (SELECT id FROM t ORDER BY id DESC LIMIT 1)": 11,
    "SELECT * FROM t WHERE id IN (SELECT id FROM t ORDER BY id DESC LIMIT 2)": 11,
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM t WHERE ten > 4)": 1,
    "SELECT 1 AS one FROM t LIMIT 19": 1,
    "WITH c AS (SELECT * FROM t ORDER BY id LIMIT 4) "
    "SELECT * FROM c a JOIN c b ON a.id = b.id": 2,
}
"""Queries, and at most how many files their scans read."""


@pytest.mark.few(3)
@pytest.mark.parametrize("text", TEXTS)
def test_files_after_the_first_rows_are_not_read(
    pruned: SparkSession, folder: Path, text: str
) -> None:
    assert folder.is_dir()
    _, some, everything = with_and_without(pruned, lambda: pruned.sql(text))
    assert some <= TEXTS[text]
    assert some < everything


ALL = (
    "SELECT id FROM t ORDER BY id % 3, id LIMIT 5",
    "SELECT id, row_number() OVER (ORDER BY id) FROM t ORDER BY id LIMIT 5",
    "SELECT id FROM t WHERE id % 2 = 0 AND rand(1) < 0.9 ORDER BY id LIMIT 5",
    "SELECT id FROM t WHERE crc32(string(id)) > 0 ORDER BY id LIMIT 5",
    "SELECT id FROM (SELECT -id AS id FROM t) ORDER BY id LIMIT 5",
    "SELECT id FROM t SORT BY id LIMIT 5",
    "SELECT id FROM t ORDER BY id LIMIT 1000",
    "SELECT max(id) FROM (SELECT * FROM t LIMIT 500)",
    "SELECT id FROM (SELECT id, explode(array(1, 2)) FROM t) ORDER BY id LIMIT 3",
    "SELECT ten, max(id) FROM t GROUP BY ten ORDER BY ten LIMIT 3",
    "SELECT a.id FROM t a JOIN t b ON a.id = b.id + 150 ORDER BY a.id LIMIT 3",
)
"""Queries whose first rows may be those of any file."""


@pytest.mark.few(2)
@pytest.mark.parametrize("text", ALL)
def test_other_queries_read_all(pruned: SparkSession, folder: Path, text: str) -> None:
    assert folder.is_dir()
    _, some, everything = with_and_without(pruned, lambda: pruned.sql(text))
    assert some == everything or "SORT BY" in text


def test_any_rows_are_left_to_spark(pruned: SparkSession, folder: Path) -> None:
    assert folder.is_dir()
    text = "SELECT * FROM t WHERE id >= 0 LIMIT 5"
    pruned.sql(text).collect()
    assert "LIMIT" not in sx.last_plans(pruned)[-1].condition


def test_the_plan_tells(pruned: SparkSession, folder: Path) -> None:
    df = pruned.sql("SELECT * FROM t WHERE ten >= 2 ORDER BY id DESC LIMIT 5")
    df.collect()
    record = sx.last_plans(pruned)[-1]
    assert (record.folder, record.n_read) == (str(folder), 1)
    assert record.condition.endswith("ORDER BY id DESC NULLS LAST LIMIT 5")


def test_settings_under_which_files_may_be_left_out(
    pruned: SparkSession, folder: Path
) -> None:
    """A file that counts may then give no rows."""
    text = "SELECT * FROM t ORDER BY id LIMIT 5"
    for name in ("ignoreCorruptFiles", "ignoreMissingFiles"):
        pruned.conf.set(f"spark.sql.files.{name}", "true")
        assert files_read(pruned.sql(text)) == N_FILES
        pruned.conf.unset(f"spark.sql.files.{name}")
        read = pruned.read.option(name, "true").parquet(str(folder))
        assert files_read(read.orderBy("id").limit(5)) == N_FILES
    pruned.conf.set("spark.sql.execution.topKSortFallbackThreshold", "3")
    assert files_read(pruned.sql(text)) == N_FILES
    pruned.conf.unset("spark.sql.execution.topKSortFallbackThreshold")


def test_files_that_spark_does_not_list_do_not_count(
    pruned: SparkSession, folder: Path
) -> None:
    some = [str(folder / f"{file}.parquet") for file in (3, 5, 8)]
    df = pruned.read.parquet(*some).orderBy("id").limit(5)
    assert [row.id for row in df.collect()] == [60, 61, 62, 63, 64]
    assert files_read(df.select("*")) == 1


def test_a_file_that_has_changed_does_not_count(
    pruned: SparkSession, folder: Path
) -> None:
    df = pruned.read.parquet(str(folder))
    assert df.orderBy("id").limit(2).collect()[0].id == 0
    # Both listings are older than the file, which has no row any more.
    pq.write_table(pq.read_table(folder / "1.parquet")[:0], folder / "0.parquet")
    assert df.orderBy("id").limit(2).collect()[0].id == 20


def test_a_file_that_is_new_is_read(pruned: SparkSession, folder: Path) -> None:
    shutil.copy(folder / "0.parquet", folder / "more.parquet")
    df = pruned.read.parquet(str(folder)).orderBy(sf.desc("id")).limit(2)
    assert files_read(df) == 2


def test_any_rows_need_no_other_file(pruned: SparkSession, folder: Path) -> None:
    """Not one that has gone either, on which the query would fail."""
    df = pruned.read.parquet(str(folder))
    assert df.where("ten < 0").count() == 0
    (folder / "9.parquet").rename(folder / "moved.parquet")
    for condition in ("ten > 4", "ten > 4", "ten < 2"):  # the last leaves one
        one = df.where(condition).limit(1).select(sf.lit(1))
        assert one.collect() == [(1,)]
        assert files_of_run(one) == 1
        sx.build_indexes(folder, workers=1)  # our listing was as old as that of Spark


def test_subtrees_that_are_alike_but_for_the_limit(
    pruned: SparkSession, folder: Path
) -> None:
    """Spark runs scans once that it takes for the same."""
    assert folder.is_dir()
    text = (
        "SELECT (SELECT sum(id) FROM t WHERE ten >= 0), "
        "(SELECT sum(id) FROM (SELECT id FROM t WHERE ten >= 0 ORDER BY id LIMIT 3))"
    )
    rows, *_ = with_and_without(pruned, lambda: pruned.sql(text))
    assert rows[0][:2] == (19900, 3)


KEYS = ("id", "i", "small", "s", "d", "ts", "dec", "big", "f", "b", "part", "constant")
FILTERS = (
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
        key, where = rng.choice(KEYS), rng.choice(FILTERS)
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
