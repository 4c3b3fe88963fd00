"""What Spark's own expressions become as JSON, and which are none of ours to judge."""

from __future__ import annotations

import time
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from skipindex.conditions.trees.operands import LiteralOperand, Operand
from skipindex.expressions import Call, In, Reference, Unsupported, to_sql
from skipindex.expressions.atoms import IntegerSet
from skipindex.spark.catalyst.conditions import Conditions, conditions
from skipindex.spark.catalyst.node import read_nodes
from skipindex.spark.catalyst.translator import Translator
from skipindex.spark.driver import expressions_json
from tests.spark.catalyst.final import final_conditions, final_json, types
from tests.spark.reading.whole import settings
from tests.spark.versions import since

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("expressions") / "t")
    spark.range(10).selectExpr(
        "cast(id as int) i",
        "id l",
        "cast(id as float) f",
        "concat('v', id) s",
        "timestamp'2020-01-01 00:00:00' t",
        "named_struct('x', id) `s t`",
    ).write.parquet(path)
    return path


def sql(spark: SparkSession, folder: str, condition: str) -> str:
    found = final_conditions(spark.read.parquet(folder).where(condition))
    assert found is not None
    return found.text


def json_of(spark: SparkSession, *texts: str) -> str:
    """Expressions that no analyzer has seen."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    parsed = [parser.parseExpression(text) for text in texts]
    return expressions_json(spark.sparkContext._gateway, parsed)


def written(spark: SparkSession, *texts: str) -> list[str]:
    """Conditions that no analyzer has seen, one by one."""
    return texts_of(conditions(json_of(spark, *texts), {}))


def values(spark: SparkSession, *texts: str) -> list[Operand]:
    return list(map(Translator({}).operand, read_nodes(json_of(spark, *texts))))


def texts_of(found: Conditions | None) -> list[str]:
    assert found is not None
    return list(map(to_sql, found.parts))


def test_every_bit_of_a_number_is_written(spark: SparkSession) -> None:
    some = ["1.1F", "-0.0D", "1e-45F", "4.9e-324D", "-0.0F"]
    assert repr(values(spark, *some)) == repr(
        [
            Call("cast", (1.100000023841858, "FLOAT")),
            LiteralOperand(-0.0),
            Call("cast", (1.401298464324817e-45, "FLOAT")),
            LiteralOperand(5e-324),
            Call("cast", (-0.0, "FLOAT")),
        ]
    )
    assert values(spark, "9223372036854775807L", "1.50BD", "X'00ff'", "NULL") == [
        Call("cast", (9223372036854775807, "BIGINT")),
        LiteralOperand(Decimal("1.50")),
        LiteralOperand(b"\x00\xff"),
        LiteralOperand(None),
    ]


def test_names_before_they_are_looked_up(spark: SparkSession) -> None:
    some = ["a.`b.c` = 1", "year(d) = 2020", "x.y.f(a) = 1", "count(DISTINCT a) = 1"]
    assert written(spark, *some) == [
        "a.`b.c` = 1",
        "year(d) = 2020",
        "({UnresolvedFunction(a)} = 1)",
        "({UnresolvedFunction(a)} = 1)",
    ]


def test_forms_that_newer_parsers_leave_to_names(spark: SparkSession) -> None:
    some = ["a BETWEEN 1 AND 2", "extract(YEAR FROM d) = 1", "b IS NOT UNKNOWN"]
    assert written(spark, *some) == [
        "a >= 1 AND a <= 2",
        "year(d) = 1",
        "b IS NOT NULL",
    ]


def test_text_that_is_no_utf8_is_opaque(spark: SparkSession, folder: str) -> None:
    text = sql(spark, folder, "s = cast(X'61ff' as string)")
    assert text.endswith("(s = {…})")
    assert sql(spark, folder, "s = '\U0001f33c\\u0000'").endswith(
        "s = '\U0001f33c\\u0000'"
    )


@pytest.mark.slow
def test_deep_trees_are_opaque_and_long_chains_are_not(
    spark: SparkSession, folder: str
) -> None:
    frame = spark.read.parquet(folder)
    deep = sf.col("l")
    for _ in range(150):
        deep = deep * sf.col("l")
    found = final_conditions(frame.where((deep == 1) & (sf.col("i") == 3)))
    assert sorted(texts_of(found)) == [
        *("({…})", "i = 3", "i IS NOT NULL", "l IS NOT NULL")
    ]
    chain = " OR ".join(f"(i = {k} AND l <> {k})" for k in range(1000))
    assert sql(spark, folder, chain).count(" OR ") == 999


@pytest.mark.parametrize("n", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_long_list_is_written_and_read_quickly(
    spark: SparkSession, folder: str, n: int
) -> None:
    frame = spark.read.parquet(folder)
    keys = ", ".join(str(k * 7) for k in range(n))
    json_text = final_json(frame.where(f"l IN ({keys})"))
    assert json_text is not None
    start = time.perf_counter()
    found = conditions(json_text, types(frame))
    assert time.perf_counter() - start < 5
    (listed,) = (part for part in found.parts if isinstance(part, In))
    assert listed.column == Reference(("l",))
    assert listed.values == IntegerSet(np.arange(0, 7 * n, 7))


def test_hidden_columns_and_python_are_opaque(spark: SparkSession, folder: str) -> None:
    frame = spark.read.parquet(folder)
    found = final_conditions(
        frame.where("_metadata.file_size > 0 AND _metadata.file_name <> 'x' AND i = 1")
    )
    assert found is not None
    assert {"i = 1", "i IS NOT NULL"} <= set(texts_of(found))
    assert "file_" not in found.text
    odd = sf.udf(lambda x: x == 1, "boolean", useArrow=False)
    found = final_conditions(frame.where(odd("i") | (sf.col("l") == 1)))
    assert found is None or "l = 1" not in found.text or "} OR" in found.text


def test_a_column_that_is_named_as_a_hidden_one_is_told_apart(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    spark.range(3).selectExpr("id file_size").write.parquet(path)
    text = sql(spark, path, "_metadata.file_size > 5 AND file_size = 7")
    assert "file_size > 5" not in text
    assert "file_size = 7" in text


def test_a_column_of_another_type_is_opaque(spark: SparkSession, folder: str) -> None:
    table = types(spark.read.parquet(folder))
    for schema, condition in (("i bigint", "i = 1"), ("l decimal(20,0)", "l = 1")):
        json_text = final_json(
            spark.read.schema(schema).parquet(folder).where(condition)
        )
        assert json_text is not None
        found = conditions(json_text, table)
        assert all(isinstance(part, Unsupported) for part in found.parts)


@since(4, 0, what="collations")
def test_other_collations_are_opaque(spark: SparkSession, folder: str) -> None:
    table = types(spark.read.parquet(folder))
    frame = spark.read.schema("s string collate UTF8_LCASE").parquet(folder)
    for condition in (
        "s = 'V1'",
        "s LIKE 'V%'",
        "s IN ('V1', 'V2')",
        "upper(s) = 'V1'",
    ):
        json_text = final_json(frame.where(condition))
        assert json_text is not None
        found = conditions(json_text, table)
        assert all(isinstance(part, Unsupported) for part in found.parts)
    text = sql(spark, folder, "s COLLATE UTF8_LCASE = 'V1' AND i = 1")
    assert "i = 1" in text
    assert "V1" not in text


def test_text_that_is_padded_is_opaque(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(
        f"CREATE TABLE padded (c CHAR(3), v VARCHAR(3), i INT) USING parquet "
        f"LOCATION '{tmp_path}/padded'"
    )
    try:
        spark.sql("INSERT INTO padded VALUES ('a', 'b', 1)")
        frame = spark.table("padded")
        found = final_conditions(frame.where("c = 'a' AND v = 'b' AND i = 1"))
        assert found is not None
        assert {"v = 'b'", "i = 1"} <= set(texts_of(found))
        (padded,) = [part for part in found.parts if "a  " in to_sql(part)]
        assert isinstance(padded, Unsupported)
    finally:
        spark.sql("DROP TABLE padded")


def test_a_zone_of_a_view_is_that_of_its_conditions(
    spark: SparkSession, folder: str
) -> None:
    frame = spark.read.parquet(folder)
    with settings(spark, {"spark.sql.session.timeZone": "Asia/Tokyo"}):
        found = final_conditions(frame.where("hour(t) = 3"))
    assert found is not None
    assert found.zone == "Asia/Tokyo"
    assert "hour(t) = 3" in texts_of(found)
