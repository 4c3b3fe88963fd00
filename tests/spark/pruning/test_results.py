"""Results that indexes know, and the first rows of an order."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
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


NONE_READ = (
    "SELECT count(*) FROM t",
    "SELECT count(1) AS n, count(*) + count(rest) AS m FROM t WHERE ten > 2",
    "SELECT min(id), max(name), count(rest) FROM t WHERE rest = 1 OR name = 'n0'",
    "SELECT min(name), max(rest) FROM t WHERE id IN (1, 7, 77)",
    "SELECT max(id) - min(id), 'x', count(*) = 3 FROM t WHERE rest IS NULL",
    "SELECT count(*) FROM t WHERE id > 1000",
    "SELECT min(id), count(f) FROM t WHERE id > 1000",
    "SELECT name, count(*) FROM t GROUP BY name",
    "SELECT rest, count(*) AS n FROM t WHERE id % 2 = 0 GROUP BY rest HAVING n > 1",
    "SELECT count(*) + 1, rest AS r FROM t WHERE NOT name <=> 'n2' GROUP BY rest",
    "SELECT DISTINCT rest FROM t WHERE ten < 9",
    "SELECT rest FROM t WHERE id = 33 GROUP BY rest",
    "SELECT count(*) FROM (SELECT id + 1 AS x, rest AS y FROM t) WHERE y = 2",
    "SELECT y, count(1) FROM (SELECT name AS y, id FROM t) WHERE id < 9 GROUP BY y",
    "SELECT count(*) FROM t UNION ALL SELECT DISTINCT id FROM t WHERE ten = 1",
    "WITH c AS (SELECT max(id) AS m FROM t) SELECT * FROM c a JOIN c b ON a.m = b.m",
    "SELECT name, (SELECT max(id) FROM t WHERE ten > 2) FROM t GROUP BY name",
    "SELECT n FROM (SELECT name x, count(*) n FROM t GROUP BY 1) NATURAL JOIN {m}",
    "SELECT sum(n) OVER (ORDER BY x) FROM (SELECT ten x, count(*) n FROM t GROUP BY 1)",
    "SELECT count(*) FROM t WHERE f < 10 AND f <> 3.5",
    "SELECT 1 AS one WHERE EXISTS (SELECT id FROM t WHERE rest = 1 AND ten = 3)",
    "SELECT 'x', 1 + 1 FROM t WHERE name = 'n1' LIMIT 9 OFFSET 3",
    "SELECT count(*) FROM (SELECT * FROM t LIMIT 7)",
)
"""Queries of which indexes know all; ``{m}`` is one of them too."""
LAST = "(SELECT max(name) AS x FROM t WHERE rest = 1)"


@pytest.mark.few(2)
@pytest.mark.parametrize("text", NONE_READ)
def test_no_file_is_read(answering: SparkSession, folder: Path, text: str) -> None:
    assert folder.is_dir()
    text = text.replace("{m}", LAST)
    _, some, everything = with_and_without(answering, lambda: answering.sql(text))
    assert (some, everything > 0) == (0, True)


LEFT = (
    "SELECT sum(id) FROM t WHERE id > 30",
    "SELECT count(*), sum(id) FROM t",
    "SELECT count(DISTINCT name) FROM t WHERE id > 30",
    "SELECT count(*) FILTER (WHERE id > 3) FROM t",
    "SELECT max(f), min(f) FROM t",
    "SELECT f, count(*) FROM t GROUP BY f",
    "SELECT name, max(id) FROM t GROUP BY name",
    "SELECT name, rest, count(*) FROM t GROUP BY name, rest",
    "SELECT id % 2, count(*) FROM t GROUP BY id % 2",
    "SELECT max(id + 1) FROM t",
    "SELECT count(rest, ten) FROM t",
    "SELECT max(plain) FROM t WHERE rest = 1",
    "SELECT plain, count(*) FROM t GROUP BY plain",
    "SELECT count(*) FROM t WHERE crc32(name) > 5",
    "SELECT count(*) FROM t WHERE rand(3) < 0.5",
    "SELECT name, count(*) FROM t GROUP BY ROLLUP (name)",
    "SELECT count(*) FROM t a JOIN t b ON a.id = b.id + 1",
    "SELECT count(*) FROM (SELECT explode(array(id, ten)) FROM t)",
    "SELECT count(*), max(id) FROM (SELECT * FROM t LIMIT 500)",
    "SELECT max(x) FROM (SELECT input_file_name() AS x FROM t)",
)
"""Queries that are left to Spark."""


@pytest.mark.few(1)
@pytest.mark.parametrize("text", LEFT)
def test_other_aggregates_are_left_to_spark(
    answering: SparkSession, folder: Path, text: str
) -> None:
    assert folder.is_dir()
    with_and_without(answering, lambda: answering.sql(text))
    assert not any(record.answered for record in sx.last_plans(answering))


def test_it_is_off_unless_it_is_set(answering: SparkSession, folder: Path) -> None:
    assert folder.is_dir()
    for value, n_read in (("true", 0), ("false", N_FILES), (None, N_FILES)):
        if value is None:
            answering.conf.unset(SETTING)
        else:
            answering.conf.set(SETTING, value)
        assert files_read(answering.sql("SELECT count(*) FROM t")) == n_read
    answering.conf.set(SETTING, "true")
    answering.conf.set("skipindex.enabled", "false")
    assert files_read(answering.sql("SELECT count(*) FROM t")) == N_FILES


def test_the_plan_and_its_schema(
    answering: SparkSession, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "SELECT rest AS r, count(*) AS n FROM t WHERE ten > 0 GROUP BY rest"
    answering.conf.set("skipindex.enabled", "false")
    plain = answering.sql(text)._jdf.queryExecution().optimizedPlan().schema()
    answering.conf.set("skipindex.enabled", "true")
    df = answering.sql(text)
    optimized = df._jdf.queryExecution().optimizedPlan().schema()
    assert optimized.json() == plain.json()
    df.explain()
    out = capsys.readouterr().out
    assert " files, from indexes" in out
    assert "from_indexes" in out
    (record,) = sx.last_plans(answering)
    assert record.answered == "count(*) by rest"
    assert str(record).startswith(
        f"{folder}: count(*) by rest from indexes and 0 of 5 files for: "
    )


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


def test_new_and_changed_files_are_read_and_added(
    answering: SparkSession, folder: Path
) -> None:
    shutil.copy(folder / "2.parquet", folder / "more.parquet")
    put(folder / "4.parquet", 11)

    def query() -> DataFrame:
        return answering.read.parquet(str(folder)).agg(
            sf.count("*"), sf.min("id"), sf.max("id"), sf.count("rest")
        )

    rows, some, everything = with_and_without(answering, query)
    assert rows[0][:3] == (120, 0, 239)
    assert (some, everything) == (2, N_FILES + 1)
    by_name = lambda: answering.read.parquet(str(folder)).groupBy("name").count()  # noqa: E731
    _, some, everything = with_and_without(answering, by_name)
    assert (some, everything) == (2, N_FILES + 1)


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


def test_files_that_spark_does_not_list_do_not_count(
    answering: SparkSession, folder: Path
) -> None:
    some = [str(folder / f"{file}.parquet") for file in (1, 3)]
    df = answering.read.parquet(*some)
    assert df.count() == 40
    assert df.agg(sf.max("id")).first() == (79,)
    twice = answering.read.parquet(some[0], *some)
    answering.conf.set("skipindex.enabled", "false")
    expected = answering.read.parquet(some[0], *some).count()
    answering.conf.set("skipindex.enabled", "true")
    assert twice.count() == expected


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["ignoreCorruptFiles", "ignoreMissingFiles"])
def test_settings_under_which_files_may_be_left_out(
    answering: SparkSession, folder: Path, name: str
) -> None:
    setting = f"spark.sql.files.{name}"
    answering.conf.set(setting, "true")
    assert files_read(answering.sql("SELECT count(*) FROM t")) == N_FILES
    answering.conf.unset(setting)
    df = answering.read.option(name, "true").parquet(str(folder))
    assert files_read(df.groupBy("name").count()) == N_FILES


def test_other_values_than_those_of_the_index(
    answering: SparkSession, folder: Path
) -> None:
    name = "spark.sql.parquet.datetimeRebaseModeInRead"
    before = answering.conf.get(name)
    answering.conf.set(name, "LEGACY")
    try:
        assert files_read(answering.sql("SELECT max(id) FROM t")) == N_FILES
    finally:
        answering.conf.set(name, before)
    read = answering.read.schema("id BIGINT, rest INT, missing INT")
    for query in (
        lambda: read.parquet(str(folder)).agg(sf.count("missing"), sf.max("rest")),
        lambda: read.parquet(str(folder)).groupBy("missing").count(),
    ):
        with_and_without(answering, query)


def test_scans_that_are_alike_are_told_apart(
    answering: SparkSession, folder: Path
) -> None:
    """One of them has the rows of a file in the plan; Spark runs equal scans once."""
    put(folder / "new.parquet", 7)
    answering.read.parquet(str(folder)).createOrReplaceTempView("t")
    text = (
        "SELECT (SELECT count(*) FROM t WHERE ten > 1), "
        "(SELECT count(*) FROM t WHERE ten > 1 AND plain > 0), "
        "(SELECT sum(ten) FROM t WHERE ten > 1), (SELECT max(ten) FROM t WHERE ten > 1)"
    )
    with_and_without(answering, lambda: answering.sql(text))
    joined = (
        "SELECT a.n, b.s FROM (SELECT ten, count(*) n FROM t GROUP BY ten) a "
        "JOIN (SELECT ten, sum(id) s FROM t GROUP BY ten) b ON a.ten = b.ten"
    )
    with_and_without(answering, lambda: answering.sql(joined))


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


@pytest.mark.slow
def test_partitions_of_a_catalog_are_left_to_it(
    answering: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "p"
    for file in range(4):
        put(table / f"month=0{file % 2 + 1}" / f"{file}.parquet", file)
    sx.build_indexes(table, {"id": "bitmap"}, workers=1)
    path = answering.read.parquet(str(table))
    _, some, _ = with_and_without(answering, lambda: path.groupBy("month").count())
    assert some == 0
    answering.sql(
        "CREATE TABLE swapped (id BIGINT, month INT) USING parquet "
        f"PARTITIONED BY (month) LOCATION 'file:{table}'"
    )
    try:
        for month, name in ((1, "02"), (2, "01"), (3, "01")):
            answering.sql(
                f"ALTER TABLE swapped ADD PARTITION (month={month}) "
                f"LOCATION 'file:{table}/month={name}'"
            )
        for text in (
            "SELECT month, count(*) FROM swapped GROUP BY month",
            "SELECT count(*), max(id) FROM swapped",
            "SELECT count(*), max(id) FROM swapped WHERE month = 1",
            "SELECT max(month) FROM swapped WHERE month < 3 AND id > 5",
            "SELECT count(*) FROM swapped WHERE month > 1",
        ):
            with_and_without(answering, lambda: answering.sql(text))  # noqa: B023
    finally:
        answering.sql("DROP TABLE swapped")


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
    pruned: SparkSession, ordered_folder: Path, text: str
) -> None:
    assert ordered_folder.is_dir()
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
def test_other_queries_read_all(
    pruned: SparkSession, ordered_folder: Path, text: str
) -> None:
    assert ordered_folder.is_dir()
    _, some, everything = with_and_without(pruned, lambda: pruned.sql(text))
    assert some == everything or "SORT BY" in text


def test_any_rows_are_left_to_spark(pruned: SparkSession, ordered_folder: Path) -> None:
    assert ordered_folder.is_dir()
    text = "SELECT * FROM t WHERE id >= 0 LIMIT 5"
    pruned.sql(text).collect()
    assert "LIMIT" not in sx.last_plans(pruned)[-1].condition


def test_the_plan_tells(pruned: SparkSession, ordered_folder: Path) -> None:
    df = pruned.sql("SELECT * FROM t WHERE ten >= 2 ORDER BY id DESC LIMIT 5")
    df.collect()
    record = sx.last_plans(pruned)[-1]
    assert (record.folder, record.n_read) == (str(ordered_folder), 1)
    assert record.condition.endswith("ORDER BY id DESC NULLS LAST LIMIT 5")


def test_settings_under_which_first_rows_may_be_left_out(
    pruned: SparkSession, ordered_folder: Path
) -> None:
    """A file that counts may then give no rows."""
    text = "SELECT * FROM t ORDER BY id LIMIT 5"
    for name in ("ignoreCorruptFiles", "ignoreMissingFiles"):
        pruned.conf.set(f"spark.sql.files.{name}", "true")
        assert files_read(pruned.sql(text)) == ORDERED_N_FILES
        pruned.conf.unset(f"spark.sql.files.{name}")
        read = pruned.read.option(name, "true").parquet(str(ordered_folder))
        assert files_read(read.orderBy("id").limit(5)) == ORDERED_N_FILES
    pruned.conf.set("spark.sql.execution.topKSortFallbackThreshold", "3")
    assert files_read(pruned.sql(text)) == ORDERED_N_FILES
    pruned.conf.unset("spark.sql.execution.topKSortFallbackThreshold")


def test_rows_of_files_that_spark_does_not_list_do_not_count(
    pruned: SparkSession, ordered_folder: Path
) -> None:
    some = [str(ordered_folder / f"{file}.parquet") for file in (3, 5, 8)]
    df = pruned.read.parquet(*some).orderBy("id").limit(5)
    assert [row.id for row in df.collect()] == [60, 61, 62, 63, 64]
    assert files_read(df.select("*")) == 1


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


def test_subtrees_that_are_alike_but_for_the_limit(
    pruned: SparkSession, ordered_folder: Path
) -> None:
    """Spark runs scans once that it takes for the same."""
    assert ordered_folder.is_dir()
    text = (
        "SELECT (SELECT sum(id) FROM t WHERE ten >= 0), "
        "(SELECT sum(id) FROM (SELECT id FROM t WHERE ten >= 0 ORDER BY id LIMIT 3))"
    )
    rows, *_ = with_and_without(pruned, lambda: pruned.sql(text))
    assert rows[0][:2] == (19900, 3)


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
