"""Unchanged queries over Iceberg tables: the same rows, of fewer files."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.spark.pruning import tables
from tests.spark.iceberg.runtime import jar, metadata

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        jar() is None,
        reason="SKIPINDEX_ICEBERG_JAR, or snowpark-connect-deps-iceberg, and Spark 3.5",
    ),
]
COLUMNS: Final = (
    "k BIGINT, s STRING, i INT, d DATE, t TIMESTAMP, n TIMESTAMP_NTZ, x DOUBLE, "
    "f FLOAT, b BOOLEAN, c DECIMAL(10, 2), y BINARY, r STRUCT<a: INT, z: STRING>"
)
VALUES: Final = (
    "id * 4 + {0}, concat('v', (id * 4 + {0}) % 37), int(id * 4 + {0}), "
    "date_add(DATE'2020-01-01', int(id * 4 + {0})), "
    "timestamp_seconds(id * 4 + {0}), CAST(timestamp_seconds(id * 4 + {0}) AS "
    "TIMESTAMP_NTZ), double(id * 4 + {0}), float(id * 4 + {0}), {0} = 1, "
    "CAST(id * 4 + {0} AS DECIMAL(10, 2)), CAST(concat('v', id * 4 + {0}) AS BINARY), "
    "named_struct('a', int(id * 4 + {0}), 'z', 'w')"
)
NUMBERS: Final = count()


class Table:
    """A table of the catalog ``ice``, of four files in which all values are spread."""

    def __init__(self, spark: SparkSession, more: str = "") -> None:
        self.spark = spark
        self.short = f"t{next(NUMBERS)}"
        self.name = f"ice.db.{self.short}"
        spark.sql(f"CREATE TABLE {self.name} ({COLUMNS}) USING iceberg {more}")
        for i in range(4):
            self.insert(i)

    def insert(self, i: int) -> None:
        self.spark.sql(
            f"INSERT INTO {self.name} SELECT /*+ COALESCE(1) */ {VALUES.format(i)} "
            "FROM range(0, 30, 1, 1)"
        )

    def put(self, **values: int) -> None:
        """One more row, of a file of its own."""
        columns = ", ".join(
            str(values.get(name, "NULL"))
            for name in self.spark.table(self.name).columns
        )
        self.spark.sql(f"INSERT INTO {self.name} VALUES ({columns})")

    def sql(self, text: str) -> list[Any]:
        """Run with the name of the table for ``{t}``."""
        return self.spark.sql(text.replace("{t}", self.name)).collect()

    def index(self, *columns: str) -> None:
        names = columns or ("k", "s", "i", "d", "t", "n", "x", "f", "c", "y", "r.a")
        sx.open_table(metadata(self.short)).build_indexes(
            dict.fromkeys(names, "exact"), workers=1
        )

    def snapshots(self) -> list[int]:
        found = self.sql("SELECT snapshot_id FROM {t}.snapshots ORDER BY committed_at")
        return [one[0] for one in found]

    def check(self, query: str) -> list[tuple[int, int]]:
        """Compare rows with skipping and without; files and skipped ones by scan."""
        held = sx.last_plans(self.spark)
        before = [id(plan) for plan in held]
        rows = self.sql(query)
        plans = [p for p in sx.last_plans(self.spark) if id(p) not in before]
        assert [plan.problem for plan in plans if plan.problem] == []
        self.spark.conf.set("skipindex.enabled", "false")
        try:
            assert sorted(map(str, rows)) == sorted(map(str, self.sql(query)))
        finally:
            self.spark.conf.set("skipindex.enabled", "true")
        return [(plan.n_files, plan.n_skipped) for plan in plans]


@pytest.fixture
def pruned(spark: SparkSession) -> Iterator[SparkSession]:
    sx.enable(spark)
    yield spark
    sx.disable(spark)
    spark.conf.unset("skipindex.enabled")


@pytest.fixture(scope="module")
def shared(spark: SparkSession) -> Table:
    """A table that tests only read, and its index."""
    table = Table(spark)
    table.index()
    return table


@pytest.fixture
def table(shared: Table, pruned: SparkSession) -> Table:
    return shared


CONDITIONS: Final = (
    ("k = 17", 3),
    ("s = 'v17'", 0),
    ("upper(s) = 'V3' AND k = 3", 3),
    ("i = 40 AND length(s) > 0", 3),
    ("d = DATE'2020-01-18'", 3),
    ("t = timestamp_seconds(17)", 3),
    ("n = TIMESTAMP_NTZ'1970-01-01 00:00:17'", 3),
    ("x = 17", 3),
    ("f = 17", 3),
    ("c = 17", 3),
    ("y = CAST('v17' AS BINARY)", 3),
    ("r.a = 17", 3),
    ("k IN (17, 21, 25)", 3),
    ("K = 17 AND rand() < 2", 3),
    ("k % 4 = 1", 3),
    ("k < 50 AND NOT k > 0", 3),
    ("(k = 1 OR k = 2) AND s LIKE 'v%'", 2),
    ("b AND k > 0", 0),
)


@pytest.mark.parametrize(("condition", "skipped"), CONDITIONS)
def test_files_without_a_match_are_not_read(
    table: Table, condition: str, skipped: int
) -> None:
    ((n_files, n_skipped),) = table.check(f"SELECT * FROM {{t}} WHERE {condition}")
    assert n_files <= 4
    assert 4 - (n_files - n_skipped) >= skipped


QUERIES: Final = (
    ("SELECT count(*), max(s) FROM {t} WHERE k = 17", 1),
    ("SELECT * FROM {t} a JOIN {t} b ON a.k = b.k WHERE a.k = 17 AND b.i > 3", 2),
    ("SELECT {max} WHERE k = 3), {max} WHERE k = 4)", 2),
    ("SELECT {max} WHERE k = 3), {max} WHERE k = 3)", 1),
    ("SELECT k FROM {t} WHERE k = 3 UNION ALL SELECT k FROM {t} WHERE k = 4", 2),
    ("WITH c AS ({rand} WHERE k = 3) SELECT a.k FROM c a JOIN c b ON a.k = b.k", 1),
    ("SELECT * FROM {t} WHERE k = 3 AND i IN (SELECT i FROM {t} WHERE s = 'v3')", 2),
    ("SELECT _file, _pos FROM {t} WHERE k = 3", 1),
)
"""With the number of their conditions on scans."""


@pytest.mark.parametrize(("query", "scans"), QUERIES)
def test_each_scan_has_its_own_condition(table: Table, query: str, scans: int) -> None:
    query = query.replace("{max}", "(SELECT max(s) FROM {t}")
    query = query.replace("{rand}", "SELECT k, rand(1) r FROM {t}")
    told = table.check(query)
    assert len(told) == scans
    assert any(skipped for _, skipped in told)


def test_deletes_ride_along(pruned: SparkSession) -> None:
    for mode in ("merge-on-read", "copy-on-write"):
        table = Table(
            pruned, f"TBLPROPERTIES ('write.delete.mode'='{mode}', "
            f"'write.update.mode'='{mode}', 'write.merge.mode'='{mode}')",
        )  # fmt: skip
        table.index("k", "s")
        table.sql("DELETE FROM {t} WHERE k IN (17, 18)")
        table.check("SELECT * FROM {t} WHERE k = 17")
        assert table.sql("SELECT * FROM {t} WHERE k = 17 AND s = 'v17'") == []
        table.sql("UPDATE {t} SET s = 'new' WHERE k = 21")
        table.check("SELECT * FROM {t} WHERE s = 'new' OR k = 21")
        assert len(table.sql("SELECT * FROM {t} WHERE upper(s) = 'NEW'")) == 1
        table.sql(
            "MERGE INTO {t} USING (SELECT * FROM {t} WHERE k = 40) o "
            "ON {t}.k = o.k + 4 WHEN MATCHED THEN UPDATE SET s = 'merged' "
            "WHEN NOT MATCHED THEN INSERT *"
        )
        assert len(table.sql("SELECT * FROM {t} WHERE s = 'merged'")) == 1
        table.check("SELECT * FROM {t} WHERE s = 'merged' OR k = 44")


def test_a_command_that_changes_rows_reads_all_files(pruned: SparkSession) -> None:
    table = Table(pruned)
    table.index("k")
    before = sx.last_plans(pruned)
    table.sql("UPDATE {t} SET s = 'other' WHERE k = 17 AND length(s) > 0")
    table.sql("DELETE FROM {t} WHERE k = 18 AND length(s) > 0")
    assert sx.last_plans(pruned) == before
    assert table.sql("SELECT count(*) FROM {t}")[0][0] == 119


def test_a_former_snapshot_has_its_own_columns(pruned: SparkSession) -> None:
    table = Table(pruned)
    first = table.snapshots()[-1]
    table.index("k", "i")
    for old, new in (("k", "other"), ("i", "k"), ("other", "i")):
        table.sql(f"ALTER TABLE {{t}} RENAME COLUMN {old} TO {new}")
    table.put(k=500, i=600)
    assert table.check("SELECT * FROM {t} WHERE k = 17") == [(4, 3)]
    assert table.check("SELECT * FROM {t} WHERE i = 600") == [(1, 0)]
    former = table.check(f"SELECT * FROM {{t}} VERSION AS OF {first} WHERE k = 17")
    assert former == [(4, 3)]


def test_a_column_that_came_later_is_null_before(pruned: SparkSession) -> None:
    table = Table(pruned)
    table.sql("ALTER TABLE {t} ADD COLUMN more INT")
    table.put(k=500, more=1)
    table.index("k", "more")
    assert table.check("SELECT * FROM {t} WHERE more + 0 = 1") == [(5, 4)]
    table.sql("ALTER TABLE {t} DROP COLUMN more")
    table.sql("ALTER TABLE {t} ADD COLUMN more INT")
    table.put(k=501, more=2)
    table.check("SELECT * FROM {t} WHERE more + 0 = 1")
    table.check("SELECT * FROM {t} WHERE more + 0 = 2")
    table.check("SELECT * FROM {t} WHERE more IS NULL AND k + 0 = 500")


@pytest.mark.parametrize("together", ["true", "false"])
def test_partitions_are_those_of_all_files(pruned: SparkSession, together: str) -> None:
    """A join by partitions, whose keys are those of all specs of the whole scan."""
    table = Table(pruned, "PARTITIONED BY (b)")
    table.sql("ALTER TABLE {t} ADD PARTITION FIELD bucket(4, k)")
    table.insert(1)
    table.index("k", "s", "i")
    pruned.conf.set("spark.sql.iceberg.planning.preserve-data-grouping", together)
    pruned.conf.set("spark.sql.sources.v2.bucketing.enabled", together)
    try:
        for condition in (
            "a.k = 17",
            "a.i = 17",
            "a.s = 'v17' AND a.i = 17",
            "a.k < 9",
        ):
            table.check(
                "SELECT * FROM {t} a JOIN {t} o ON a.b = o.b AND a.k = o.k "
                f"WHERE {condition} AND o.i >= 0"
            )
    finally:
        pruned.conf.unset("spark.sql.iceberg.planning.preserve-data-grouping")
        pruned.conf.unset("spark.sql.sources.v2.bucketing.enabled")


def test_filters_at_run_time_come_on_top(pruned: SparkSession) -> None:
    table = Table(pruned, "PARTITIONED BY (b)")
    table.index("k", "i", "s")
    table.sql("CREATE OR REPLACE TEMP VIEW few AS SELECT true AS w, 17 AS v")
    told = table.check(
        "SELECT * FROM {t} JOIN {t} o ON {t}.b = o.b AND {t}.i = o.i "
        "WHERE o.k = 17 AND o.x > 0 AND {t}.s LIKE 'v%'"
    )
    assert any(skipped for _, skipped in told)


def test_other_reads_are_left_alone(table: Table) -> None:
    spark, first = table.spark, table.snapshots()[0]
    before = sx.last_plans(spark)
    assert table.sql("SELECT * FROM {t}.files WHERE record_count = 17") == []
    assert table.sql("SELECT count(*) FROM {t}.all_data_files WHERE record_count > 1")
    since = spark.read.option("start-snapshot-id", first).table(table.name)
    assert since.where("k = 17").count() == 1
    assert since.where("k = 16").count() == 0
    assert table.sql("SELECT count(*) FROM {t}")[0][0] == 120
    assert sx.last_plans(spark) == before


def test_a_stream_reads_all(table: Table, tmp_path: Path) -> None:
    stream = (
        table.spark.readStream.table(table.name)
        .where("k = 17")
        .writeStream.format("memory")
        .queryName("rows")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    stream.awaitTermination(60)
    assert table.spark.table("rows").count() == 1


def test_a_table_without_an_index_is_not_planned(pruned: SparkSession) -> None:
    table = Table(pruned)
    before = sx.last_plans(pruned)
    assert table.check("SELECT * FROM {t} WHERE k = 17") == []
    assert sx.last_plans(pruned) == before


def test_a_plan_that_fails_changes_nothing(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_given: Any, **_more: Any) -> Any:
        raise OSError("no such store")

    sx.disable(table.spark)
    sx.enable(table.spark)
    monkeypatch.setattr(tables, "open_state", fails)
    assert len(table.sql("SELECT * FROM {t} WHERE k = 17")) == 1
    problems = [plan.problem for plan in sx.last_plans(table.spark)]
    assert problems == ["OSError: no such store"]


def test_a_plan_that_is_defined_already_loses_what_is_disabled(table: Table) -> None:
    frame = table.spark.table(table.name).where("k = 17")
    assert frame.count() == 1
    table.spark.conf.set("skipindex.enabled", "false")
    assert frame.where("i = 17").count() == 1
