"""What is understood of Catalyst's expressions, and what is not: without Spark."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skipindex.expressions import Unsupported
from skipindex.planner.sql.parser import parse
from skipindex.spark.catalyst.conditions import MANY, Conditions, conditions
from skipindex.spark.catalyst.node import read_nodes

EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
Json = dict[str, Any]
TYPES = {
    "i": "int",
    "f": "float",
    "d": "double",
    "dec": "decimal(12,2)",
    "big": "decimal(30,4)",
    "s": "string",
    "t": "timestamp",
    "n": "timestamp_ntz",
    "dt": "date",
    "b": "boolean",
    "st": "struct<a b:int>",
}


def node(name: str, kind: str, *children: Json, held: Any = (), **more: Any) -> Json:
    made = {"c": EXPRESSIONS + name, "t": kind, **more}
    if children:
        made["a"] = list(children)
    if held:
        made["x"] = list(held)
    return made


def col(name: str, kind: str = "", metadata: str = "{}") -> Json:
    kind = kind or TYPES[name]
    return node("AttributeReference", kind, held=[name, kind, True, metadata])


def lit(kind: str, value: Any) -> Json:
    return node("Literal", kind, v=value)


def equal(left: Json, right: Json) -> Json:
    return node("EqualTo", "boolean", left, right)


def read(*expressions: Json) -> Conditions:
    return conditions(json.dumps(expressions), TYPES)


def sql(expression: Json) -> str:
    return read(expression).text


def test_a_long_list_of_integers_is_no_text() -> None:
    keys = [*range(MANY), None]
    found = read(node("InSet", "boolean", col("i"), v=keys), equal(col("b"), col("b")))
    assert found.lists == (("i", list(range(MANY))),)
    assert found.texts == ("(b = b)",)
    for opaque in (col("i", "bigint"), col("unknown", "int")):
        found = read(node("InSet", "boolean", opaque, v=keys))
        assert (found.lists, found.text.count("opaque()")) == ((), 1)
    inner = node("Not", "boolean", node("InSet", "boolean", col("i"), v=keys))
    assert read(inner).lists == ()


ONE = lit("int", 1)


@pytest.mark.parametrize(
    ("kind", "value", "alone", "compared"),
    [
        ("int", 1, "1", "1"),
        ("bigint", -(2**63), "-9223372036854775808L", "-9223372036854775808"),
        ("smallint", 5, "5S", "5"),
        ("tinyint", -5, "-5Y", "-5"),
        ("double", "-0.0", "-0.0D", "-0.0D"),
        ("double", "1.0E-5", "1e-05D", "1e-05D"),
        ("double", "NaN", "CAST('nan' AS DOUBLE)", "CAST('nan' AS DOUBLE)"),
        ("double", "-Infinity", "CAST('-inf' AS DOUBLE)", "CAST('-inf' AS DOUBLE)"),
        ("float", "1.100000023841858", "1.100000023841858F", "1.100000023841858D"),
        ("float", "NaN", "CAST('nan' AS FLOAT)", "CAST('nan' AS DOUBLE)"),
        ("decimal(12,2)", "5.00", "CAST(5.00BD AS DECIMAL(12,2))", "5.00BD"),
        ("decimal(3,2)", "5.00", "5.00BD", "5.00BD"),
        ("string", "a'\"\\", "'a\\'\"\\\\'", "'a\\'\"\\\\'"),
        ("string", ["ff"], "opaque()", "opaque()"),
        ("string collate UTF8_LCASE", "a", "opaque()", "opaque()"),
        ("binary", "00ff", "X'00FF'", "X'00FF'"),
        ("boolean", True, "TRUE", "TRUE"),
        ("date", -1, "DATE '1969-12-31'", "DATE '1969-12-31'"),
        ("date", 2932897, "opaque()", "opaque()"),
        (
            "timestamp",
            1,
            "TIMESTAMP '1970-01-01 00:00:00.000001+00:00'",
            "TIMESTAMP '1970-01-01 00:00:00.000001+00:00'",
        ),
        (
            "timestamp_ntz",
            10**6,
            "TIMESTAMP_NTZ '1970-01-01 00:00:01'",
            "'1970-01-01 00:00:01'",
        ),
        ("timestamp", 253402300800000000, "opaque()", "opaque()"),
        ("interval day", 86400000000, "INTERVAL '1' DAY", "INTERVAL '1' DAY"),
        (
            "interval day to second",
            60000000,
            "INTERVAL '1' MINUTE",
            "INTERVAL '1' MINUTE",
        ),
        ("interval year", 12, "INTERVAL '12' MONTH", "INTERVAL '12' MONTH"),
        ("interval second", 1, "opaque()", "opaque()"),
        ("interval day", 86400000000 * 10**9, "opaque()", "opaque()"),
        ("interval", [0, 1, 0], "opaque()", "opaque()"),
        ("array<int>", {"c": "UnsafeArrayData"}, "opaque()", "opaque()"),
        ("int", None, "NULL", "NULL"),
        ("time(6)", 5, "opaque()", "opaque()"),
        ("int", "5", "opaque()", "opaque()"),
    ],
)
def test_literals(kind: str, value: Any, alone: str, compared: str) -> None:
    assert sql(lit(kind, value)) == alone
    assert (
        sql(equal(lit(kind, value), lit(kind, value))) == f"({compared} = {compared})"
    )


@pytest.mark.parametrize(
    "unknown",
    [
        node("RLike", "boolean", col("s"), lit("string", "a")),
        {**equal(col("i"), ONE), "c": "org.example.EqualTo"},
        {**equal(col("i"), ONE), "c": EXPRESSIONS + "aggregate.EqualTo"},
        {"c": ""},
        node("EqualTo", "boolean", col("i"), ONE, held=["more"]),
        node("IsNull", "boolean", col("i"), held=[None]),
        node("Like", "boolean", col("s"), lit("string", "a"), held=["\\", 1]),
        node("Like", "boolean", col("s"), lit("string", "a")),
        node("In", "boolean", col("i"), ONE, held=[[]]),
        node("In", "boolean", col("i")),
        node("InSet", "boolean", col("i"), v=[]),
        node("InSet", "boolean", col("i"), v={"c": "Set"}),
        node("AtLeastNNonNulls", "boolean", *[col("i")] * 3, held=[2]),
        node("DynamicPruningExpression", "boolean", col("b")),
        node("ScalarSubquery", "boolean", held=[{"c": "Project"}, {"c": "ExprId"}]),
        col("b", metadata='{"__metadata_col":true}'),
        col("b", metadata='{"__CHAR_VARCHAR_TYPE_STRING":"char(3)"}'),
        col("b", "string"),
        col("none", "boolean"),
        node("AttributeReference", "boolean", held=["b", "string", True, "{}"]),
        node("AttributeReference", "boolean", held=["b", "boolean", True, "{}", 1]),
        node("Cast", "boolean", col("s"), held=["boolean", None, "TRY"]),
        node("Cast", "boolean", col("s"), held=["boolean", None, "ANSI", 1]),
        node("CaseWhen", "boolean", col("b"), col("b")),
        node("CaseWhen", "boolean", col("b"), col("b"), col("b"), held=[None]),
        node("NaNvl", "boolean", col("b"), col("b"), held=[True]),
        node("GetStructField", "boolean", node("Rand", "struct<a:boolean>"), n="a"),
    ],
    ids=lambda unknown: unknown["c"].rpartition(".")[2],
)
def test_what_is_not_understood_is_opaque(unknown: Json) -> None:
    assert sql(unknown) == "opaque()"
    whole = node("And", "boolean", unknown, equal(col("i"), ONE))
    assert sql(whole) == "(opaque() AND (i = 1))"


@pytest.mark.parametrize("mode", ["TRY", ["TRY", True], ["ANSI"], 1, None])
def test_an_unknown_way_to_compute_is_opaque(mode: Any) -> None:
    held = [mode]
    sum_ = node("Add", "int", col("i"), ONE, held=held)
    assert sql(equal(sum_, ONE)) == "(opaque() = 1)"


@pytest.mark.parametrize("mode", ["LEGACY", "ANSI", ["ANSI", True], ["LEGACY", False]])
def test_known_ways_to_compute(mode: Any) -> None:
    sum_ = node("Add", "int", col("i"), ONE, held=[mode])
    assert sql(equal(sum_, ONE)) == "((i + 1) = 1)"


def as_date(zone: str | None) -> Json:
    return node("Cast", "date", col("t"), held=["date", zone, "ANSI"])


def test_one_time_zone_is_returned_and_a_second_one_is_opaque() -> None:
    day = lit("date", 0)
    berlin, utc = as_date("Europe/Berlin"), as_date("UTC")
    found = read(equal(col("i"), ONE), equal(berlin, day), equal(utc, day))
    assert found.zone == "Europe/Berlin"
    assert found.texts == (
        "(i = 1)",
        "(CAST(t AS DATE) = DATE '1970-01-01')",
        "(opaque() = DATE '1970-01-01')",
    )
    hour = node("Hour", "int", col("t"), held=["UTC"])
    assert read(equal(berlin, day), equal(hour, ONE)).texts[1] == "(opaque() = 1)"


def test_a_zone_that_no_value_depends_on_is_none() -> None:
    wider = node("Cast", "bigint", col("i"), held=["bigint", "Europe/Berlin", "ANSI"])
    assert read(equal(wider, lit("bigint", 1))).zone is None
    local = node(
        "TimestampAddInterval",
        "timestamp_ntz",
        col("n"),
        lit("interval hour", 3_600_000_000),
        held=["Europe/Berlin"],
    )
    found = read(equal(local, lit("timestamp_ntz", 0)))
    assert found == Conditions(
        ("((n + INTERVAL '1' HOUR) = '1970-01-01 00:00:00')",), None
    )


def test_literals_keep_their_type_where_something_is_computed() -> None:
    one = lit("float", "1.5")
    sum_ = node("Add", "float", col("f"), one, held=["ANSI"])
    assert sql(equal(sum_, one)) == "((f + 1.5F) = 1.5D)"


def test_operands_of_unknown_or_other_types_are_not_compared_as_alike() -> None:
    """They are compared as Spark's grammar says, and a FLOAT is no DOUBLE there."""
    assert sql(equal(col("i"), lit("float", "1.5"))) == "(i = 1.5F)"
    unresolved = {
        "c": "org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute",
        "t": "",
        "x": [["a", "b c"]],
    }
    assert sql(equal(unresolved, lit("float", "1.5"))) == "(a.`b c` = 1.5F)"


def test_a_decimal_next_to_a_double_is_compared_as_the_planner_does() -> None:
    as_double = node("Cast", "double", col("big"), held=["double", "UTC", "LEGACY"])
    assert sql(equal(as_double, lit("double", "1.5"))) == "(big = 1.5D)"
    assert sql(equal(as_double, col("d"))) == "(CAST(big AS DOUBLE) = d)"
    tried = node("Cast", "double", col("big"), held=["double", "UTC", "TRY"])
    assert sql(equal(tried, lit("double", "1.5"))) == "(opaque() = 1.5D)"


def test_rows_in_lists() -> None:
    made = node(
        "CreateNamedStruct",
        "struct<i:int,s:string>",
        *(lit("string", "i"), col("i"), lit("string", "s"), col("s")),
    )

    def row(kind: str) -> Json:
        values = [{"t": kind, "v": 1}, {"t": "string", "v": None}]
        return lit("struct<col1:int,col2:string>", values)

    assert sql(node("In", "boolean", made, row("int"))) == "((i, s) IN ((1, NULL)))"
    in_set = node("InSet", "boolean", made, v=[row("int")["v"], row("int")["v"]])
    assert sql(in_set) == "((i, s) IN ((1, NULL), (1, NULL)))"
    assert sql(node("In", "boolean", made, row("bigint"))) == "opaque()"
    assert sql(node("In", "boolean", made, col("st"))) == "opaque()"
    assert sql(node("InSet", "boolean", made, v=[None])) == "opaque()"


def test_wall_clocks_in_lists_are_compared_one_by_one() -> None:
    """A list would be read for a session's zone."""
    listed = [lit("timestamp_ntz", 0), lit("timestamp_ntz", None)]
    assert sql(node("In", "boolean", col("n"), *listed)) == (
        "((n = '1970-01-01 00:00:00') OR (n = NULL))"
    )


def test_the_characters_to_trim_come_first() -> None:
    for name, called in (("StringTrimLeft", "ltrim"), ("StringTrimRight", "rtrim")):
        trimmed = node(name, "string", col("s"), lit("string", "x"))
        assert sql(equal(trimmed, lit("string", ""))) == f"({called}('x', s) = '')"
        spaces = node(name, "string", col("s"), held=[None])
        assert sql(equal(spaces, lit("string", ""))) == f"({called}(s) = '')"
        assert sql(node(name, "string", col("s"))) == "opaque()"


def test_metadata_that_says_nothing_of_values() -> None:
    declared = '{"comment":"x","__CHAR_VARCHAR_TYPE_STRING":"varchar(3)"}'
    assert sql(col("s", metadata=declared)) == "s"


def test_names_are_quoted() -> None:
    field = node("GetStructField", "int", col("st"), held=[0, None], n="a b")
    assert sql(equal(field, ONE)) == "(st.`a b` = 1)"
    none = node("GetStructField", "int", col("st"), held=[0, None], n="")
    assert sql(equal(none, ONE)) == "(opaque() = 1)"


def test_a_chain_of_thousands_is_no_deep_tree() -> None:
    many = [equal(col("i"), lit("int", k)) for k in range(5000)]
    assert sql(node("Or", "boolean", *many)).count(" OR ") == 4999


def test_text_of_a_literal_is_never_read_as_sql() -> None:
    evil = "' OR TRUE OR '${x} -- \\' /* `"
    text = sql(equal(col("s"), lit("string", evil)))
    tree = parse(text)
    assert not isinstance(tree, Unsupported)
    assert getattr(tree, "value", None) == evil


def test_packages_are_told_apart() -> None:
    (found,) = read_nodes(json.dumps([{"c": EXPRESSIONS + "And", "t": "boolean"}]))
    assert found.name == "And"
    for other in ("com.x.And", EXPRESSIONS + "x.And", EXPRESSIONS, "And", ""):
        (found,) = read_nodes(json.dumps([{"c": other}]))
        assert found.name == ""


def test_nothing_is_a_condition_that_all_rows_match() -> None:
    assert conditions("[]", {}) == Conditions((), None)
    assert conditions("[]", {}).text == "TRUE"
