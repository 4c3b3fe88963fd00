"""Partition columns through a plan: Spark's names, types and values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_type

import skipindex as sx
from skipindex.errors import PlanError
from skipindex.source.partitions.hive import partition_columns
from tests.spark.reading.whole import check_law_7, columns, rows, settings
from tests.tables import kept, put

pytestmark = pytest.mark.spark

NULL = "__HIVE_DEFAULT_PARTITION__"
VALUES: dict[str, Sequence[str]] = {
    "int": ["1", "-20"],
    "padded": ["01", "+5"],  # trap C-30
    "long": ["1", "3000000000"],
    "huge": ["1", "99999999999999999999"],
    "decimal": ["1.5", "2"],
    "double": ["1e5", "2"],
    "nan": ["NaN", "1"],
    "infinity": ["Infinity", "-Infinity"],
    "day": ["2020-02-29", "0001-01-01"],
    "no_day": ["2020-02-30", "2020-01-01"],
    "moment": ["2020-01-01 00%3A00%3A00", "2021-01-01 10%3A00%3A00"],
    "mixed": ["1", "x"],
    "mixed_padded": ["01", "x"],
    "mixed_days": ["2020-01-01", "k"],
    "codes": ["1k", "2q"],
    "weeks": ["2020w31", "2020"],
    "hex": ["1a", "2k"],
    "text": ["a b", "é"],
    "arabic": ["\u0661", "\u0662"],
    "full_width": ["\uff11", "\uff12"],
    "null": [NULL, NULL],  # trap C-40
    "int_null": ["7", NULL],
    "text_null": [NULL, "x"],
    "escaped": ["%C3%A9", "a%2Fb%3Dc"],  # trap C-38
    "percent": ["%", "%zz%2"],
    "word": ["Nan", "infinity"],
    "sign": ["-", "+x"],
    "spelled": ["0x10", "1_000"],
    "suffix": ["1d", "2f"],
}
LEFT_TO_SPARK = {"no_day", "arabic", "full_width", "null", "spelled"}


@pytest.mark.usefixtures("way")
def test_trap_c30_values_are_typed_as_spark_types_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    """All of these columns at once: the very types, or left to Spark."""
    paths = []
    for i in range(2):
        folders = [f"{name}={values[i]}" for name, values in VALUES.items()]
        paths.append("/".join([*folders, "f.parquet"]))
        put(tmp_path / paths[i], {"id": [i]})
    whole = spark.read.parquet(str(tmp_path))
    answer = [row.asDict() for row in whole.orderBy("id").collect()]
    types = dict(columns(whole))
    found = partition_columns(paths, {})
    assert {c.name for c in found if c.dtype is None} == LEFT_TO_SPARK
    for column in found:
        if column.dtype is None:
            continue
        assert types[column.name] == from_arrow_type(column.dtype).simpleString()
        if types[column.name] == "string":
            assert list(column.values) == [row[column.name] for row in answer]
    read = sx.read(tmp_path, "id = 1", spark=spark)
    assert columns(read) == columns(whole)
    assert [row.asDict() for row in read.collect()] == answer[1:]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("folders", "conditions"),
    [
        (
            ["month=01", "month=02", "month=12"],
            ["month = 1", "month = '01'", "month IN (1, 12) AND month <> 12"],
        ),
        (
            ["p=a%2Fb", "p=%C3%A9", "p=é", "p=it's", f"p={NULL}"],
            ["p = 'a/b'", "p = 'é'", "p = 'Ã©'", "p IS NULL", "p LIKE 'i%'"],
        ),
        (
            ["d=2020-01-31", "d=2020-02-01", f"d={NULL}"],
            ["d = '2020-01-31'", "NOT d <=> DATE '2020-02-01'"],
        ),
        (["p=1", "p=a"], ["p = '1'"]),
        (["x=1/plain/y=2", "x=1/plain/y=3"], ["y = 2"]),
        (["x=1/plain", "x=2/plain"], ["x = 2"]),
        (["p=1.50", "p=2"], ["p = 1.5"]),
        (["p=a%5B1%5D %25", "p=b"], ["p = 'a[1] %'"]),
    ],
    ids=str,
)
@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("way", ["given", "listed"], indirect=True)
def test_partitions_of_every_spelling_are_read_as_from_the_whole_table(
    spark: SparkSession, tmp_path: Path, folders: list[str], conditions: list[str]
) -> None:
    for i, name in enumerate(folders):
        put(tmp_path / name / "f.parquet", {"id": [i, 7]})
    for condition in conditions:
        check_law_7(spark, tmp_path, condition)


@pytest.mark.few(1)
@pytest.mark.parametrize("condition", ["id = 1", "p = 2", "id > 0", "id < 0"])
@pytest.mark.usefixtures("way")
def test_trap_c31_files_that_are_named_keep_their_partition_columns(
    spark: SparkSession, tmp_path: Path, condition: str
) -> None:
    """Spark itself loses them, as it sees no folder above a file that is named."""
    for p in (1, 2):
        put(tmp_path / f"p={p}" / "f.parquet", {"id": [p], "z": [p * 10]})
    plan = check_law_7(spark, tmp_path, condition)
    if plan.files:
        assert spark.read.parquet(*plan.files).columns == ["id", "z"]
    read = plan.read(spark)
    assert read.columns == ["id", "z", "p"]
    assert [(row.id, row.z, row.p) for row in read.orderBy("id").collect()] == [
        (int(path[2]), int(path[2]) * 10, int(path[2])) for path in plan.paths
    ]


@pytest.mark.usefixtures("way")
def test_trap_c32_the_type_is_that_of_all_partitions(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Of the chosen file alone Spark would infer an int."""
    for p in ("01", "xyz"):
        put(tmp_path / f"p={p}" / "f.parquet", {"id": [len(p)]})
    plan = check_law_7(spark, tmp_path, "id = 2")
    assert [row.p for row in plan.read(spark).collect()] == ["01"]


@pytest.mark.usefixtures("way")
def test_a_partition_hides_a_column_of_the_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It has that column's place, and the values of the path."""
    for p in (3, 4):
        put(tmp_path / f"p={p}" / "f.parquet", {"a": [p], "P": [8], "c": [1]})
    assert len(check_law_7(spark, tmp_path, "P = 3").paths) == 1
    assert len(check_law_7(spark, tmp_path, "p = 8").paths) == 0


def test_files_above_the_partitions_are_left_out(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark takes no row from them, but the columns."""
    put(tmp_path / "f.parquet", {"id": [1], "x": [1]})
    put(tmp_path / "p=1" / "f.parquet", {"id": [2]})
    plan = check_law_7(spark, tmp_path, "id > 0")
    assert plan.table.paths == ["p=1/f.parquet"]
    check_law_7(spark, tmp_path, "x IS NULL")


@pytest.mark.usefixtures("way")
def test_files_below_a_plain_folder_are_left_out(
    spark: SparkSession, tmp_path: Path
) -> None:
    put(tmp_path / "f.parquet", {"id": [1]})
    put(tmp_path / "backup" / "f.parquet", {"id": [2]})
    assert check_law_7(spark, tmp_path, "id > 0").count_bounds == (1, 1)


def test_names_of_partitions_may_differ_in_capitals(
    spark: SparkSession, tmp_path: Path
) -> None:
    for folder, i in (("P=1", 1), ("p=2", 2)):
        put(tmp_path / folder / "f.parquet", {"id": [i]})
    assert check_law_7(spark, tmp_path, "p = 2").paths == ["p=2/f.parquet"]
    check_law_7(spark, tmp_path, "P >= 1")
    with pytest.raises(sx.TableError, match=r"\['P', 'p'\].* differ in capitals"):
        sx.plan_files("id = 1", table=tmp_path, case_sensitive=True)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("values", "conditions", "n_kept"),
    [
        (
            ["1.5", "-0.0", "NaN", "1e-3", NULL],
            ["p = 1.5D", "p = 0", "p > 1", "p = CAST('NaN' AS DOUBLE)", "p IS NULL"],
            [1, 1, 2, 1, 1],
        ),
        (
            ["99999999999999999999", "1e5", "5."],
            ["p = 100000", "p < 6", "p > 10000000000", "p = 99999999999999999999"],
            [1, 1, 1, 1],
        ),
        (["1e5", "1.5e1"], ["p = 15", "p >= 15.5"], [1, 1]),
        (
            ["2020-01-01 10%3A30%3A00", "2020-06-01 23%3A00%3A00.5", "2021-01-01"],
            [
                "p = TIMESTAMP '2020-01-01 10:30:00'",
                "p > TIMESTAMP '2020-06-01 23:00:00'",
                "p < DATE '2020-03-01'",
            ],
            [1, 2, 1],
        ),
    ],
    ids=["double", "wide", "decimal", "timestamp"],
)
@pytest.mark.parametrize("zone", ["UTC", "+05:30", "America/New_York"])
def test_partitions_of_numbers_and_times_leave_files_out(
    spark: SparkSession,
    tmp_path: Path,
    values: list[str],
    conditions: list[str],
    n_kept: list[int],
    zone: str,
) -> None:
    for i, value in enumerate(values):
        put(tmp_path / f"p={value}" / "f.parquet", {"id": [i]})
    for condition, n in zip(conditions, n_kept, strict=True):
        session = {"spark__sql__session__timeZone": zone}
        plan = check_law_7(spark, tmp_path, condition, **session)
        assert len(plan.paths) == n, condition


def test_without_a_zone_a_timestamp_is_known_to_eighteen_hours(tmp_path: Path) -> None:
    for i, value in enumerate(["2020-01-01 10%3A30%3A00", "2020-01-03 10%3A30%3A00"]):
        put(tmp_path / f"p={value}" / "f.parquet", {"id": [i]})
    instant = "TIMESTAMP '2020-01-02 04:30:00Z'"
    assert len(kept(tmp_path, f"p = {instant}")) == 1
    assert len(kept(tmp_path, f"p = {instant} + INTERVAL '1' SECOND")) <= 1
    assert sx.plan_files(f"p <= {instant}", table=tmp_path).count_bounds[0] == 0


def test_another_timestamp_type_of_the_session_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    put(tmp_path / "p=2020-01-01 10%3A30%3A00" / "f.parquet", {"id": [1]})
    with (
        settings(spark, {"spark.sql.timestampType": "TIMESTAMP_NTZ"}),
        pytest.raises(PlanError, match=r"\['p'\] are taken for TIMESTAMP_LTZ"),
    ):
        sx.read(tmp_path, "id = 1", spark=spark)


def test_declared_types_come_before_those_that_spark_infers(
    spark: SparkSession, tmp_path: Path
) -> None:
    for p, q in (("01", "1.5"), ("1", "2")):
        put(tmp_path / f"p={p}" / f"q={q}" / "f.parquet", {"id": [1]})
    table = sx.open_table(tmp_path, partition_types={"p": pa.string()})
    plan = table.plan("p = '01'")
    assert len(plan.paths) == 1
    df = plan.read(spark)
    whole = dict(columns(spark.read.parquet(str(tmp_path))))
    assert columns(df) == [("id", "bigint"), ("p", "string"), ("q", whole["q"])]
    assert [row.p for row in df.collect()] == ["01"]


def test_without_type_inference_types_must_be_declared(
    spark: SparkSession, tmp_path: Path
) -> None:
    put(tmp_path / "p=01" / "f.parquet", {"id": [1]})
    inference = "spark.sql.sources.partitionColumnTypeInference.enabled"
    text = r"\['p'\] were inferred; open the table with partition_types="
    zone = spark.conf.get("spark.sql.session.timeZone")
    with settings(spark, {inference: "false"}):
        with pytest.raises(PlanError, match=text):
            sx.plan_files("p = 1", table=tmp_path, timezone=zone).read(spark)
        assert sx.read(tmp_path, "p = '1'", spark=spark).count() == 0
        table = sx.open_table(tmp_path, partition_types={"p": pa.string()})
        expected = spark.read.parquet(str(tmp_path)).where("p = '01'")
        found = sx.read(table, "p = '01'", spark=spark)
        assert (columns(found), rows(found)) == (columns(expected), rows(expected))
