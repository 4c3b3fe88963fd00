"""What is understood of Catalyst's expressions, and what is not: without Spark."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from skipindex.conditions.binding.constants import with_values
from skipindex.conditions.sql.parser import parse
from skipindex.conditions.trees.operands import LiteralOperand, Operand, operand_of
from skipindex.conditions.trees.operands import typed as as_typed
from skipindex.expressions import (
    And,
    Call,
    Constant,
    In,
    Like,
    Not,
    Unsupported,
    to_sql,
)
from skipindex.expressions import col as column
from skipindex.expressions.atoms import IntegerSet
from skipindex.expressions.not_judged import NotJudgedError
from skipindex.spark.catalyst.conditions import Conditions, conditions
from skipindex.spark.catalyst.forms import MANY
from skipindex.spark.catalyst.node import read_nodes
from skipindex.spark.catalyst.translator import Translator

OPAQUE = "only Spark can compute it"
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


def parts(*expressions: Json) -> list[str]:
    return list(map(to_sql, read(*expressions).parts))


def is_opaque(expression: Json) -> bool:
    """Whether all rows may match the condition, as it is none that is understood."""
    (part,) = read(expression).parts
    return isinstance(part, Unsupported)


def test_a_long_list_of_integers_is_a_set() -> None:
    keys = list(range(MANY))
    (part,) = read(node("InSet", "boolean", col("i"), v=keys)).parts
    assert part == In(column("i").reference, IntegerSet(np.arange(MANY)))
    with_null = node("InSet", "boolean", col("i"), v=[*keys, None])
    assert read(with_null).parts == (part,)
    (negated,) = read(node("Not", "boolean", with_null)).parts
    assert negated == Not(In(column("i").reference, (*keys, None)))
    for unknown in (col("i", "bigint"), col("unknown", "int")):
        assert is_opaque(node("InSet", "boolean", unknown, v=keys))


ONE = lit("int", 1)


def literal(kind: str, value: Any, *, compared: bool = False) -> Operand | None:
    (read,) = read_nodes(json.dumps([lit(kind, value)]))
    try:
        return Translator(TYPES).operand(read, compared=compared)
    except NotJudgedError:
        return None


@pytest.mark.parametrize(
    ("kind", "value", "alone", "typed"),
    [
        ("int", 1, 1, ""),
        ("bigint", -(2**63), -(2**63), "BIGINT"),
        ("smallint", 5, 5, "SMALLINT"),
        ("tinyint", -5, -5, "TINYINT"),
        ("double", "-0.0", -0.0, ""),
        ("double", "1.0E-5", 1e-05, ""),
        ("double", "NaN", math.nan, ""),
        ("double", "-Infinity", -math.inf, ""),
        ("float", "1.100000023841858", 1.100000023841858, "FLOAT"),
        ("float", "NaN", math.nan, "FLOAT"),
        ("decimal(3,2)", "5.00", Decimal("5.00"), ""),
        ("decimal(4,0)", "1E+3", Decimal(1000), ""),
        ("string", "a'\"\\", "a'\"\\", ""),
        ("binary", "00ff", b"\x00\xff", ""),
        ("boolean", True, True, ""),
        ("date", -1, date(1969, 12, 31), ""),
        ("timestamp", 1, datetime(1970, 1, 1, 0, 0, 0, 1, UTC), ""),
        ("timestamp_ntz", 10**6, datetime(1970, 1, 1, 0, 0, 1), "TIMESTAMP_NTZ"),
        ("int", None, None, ""),
    ],
)
def test_literals(kind: str, value: Any, alone: Any, typed: str) -> None:
    """Next to values of their own type they need no other one."""
    assert repr(literal(kind, value)) == repr(operand_of(as_typed(alone, typed)))
    if kind == "timestamp_ntz":
        alone = "1970-01-01 00:00:01"
    assert repr(literal(kind, value, compared=True)) == repr(LiteralOperand(alone))


def test_a_decimal_keeps_the_digits_of_its_type() -> None:
    cast = Call("cast", (Decimal("5.00"), "DECIMAL(12,2)"))
    assert literal("decimal(12,2)", "5.00") == cast
    plain = LiteralOperand(Decimal("5.00"))
    assert literal("decimal(12,2)", "5.00", compared=True) == plain


@pytest.mark.parametrize(
    ("kind", "value", "number", "unit"),
    [
        ("interval day", 86400000000, 1, "DAY"),
        ("interval day to second", 60000000, 1, "MINUTE"),
        ("interval second", 1, 1, "MICROSECOND"),
        ("interval day to second", 91_800_500_000, 91_800_500_000, "MICROSECOND"),
        ("interval year", 12, 1, "YEAR"),
        ("interval month", 13, 13, "MONTH"),
    ],
)
def test_intervals(kind: str, value: int, number: int, unit: str) -> None:
    assert literal(kind, value) == Call("interval", (number, unit))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("string", ["ff"]),
        ("string collate UTF8_LCASE", "a"),
        ("date", 2932897),
        ("timestamp", 253402300800000000),
        ("interval day", 86400000000 * 10**9),
        ("interval", [0, 1, 0]),
        ("array<int>", {"c": "UnsafeArrayData"}),
        ("time(6)", 5),
        ("int", "5"),
    ],
)
def test_literals_that_are_not_understood(kind: str, value: Any) -> None:
    assert literal(kind, value) is None
    assert literal(kind, value, compared=True) is None


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
    assert is_opaque(unknown)
    (whole,) = read(node("And", "boolean", unknown, equal(col("i"), ONE))).parts
    assert isinstance(whole, And)
    assert isinstance(whole.children[0], Unsupported)
    assert whole.children[1:] == (column("i") == 1,)


def test_the_value_of_else_is_no_condition() -> None:
    case = node("CaseWhen", "int", equal(col("i"), ONE), ONE, lit("int", 2))
    assert sql(equal(case, ONE)) == "CASE WHEN i = 1 THEN 1 ELSE 2 END = 1"


@pytest.mark.parametrize("mode", ["TRY", ["TRY", True], ["ANSI"], 1, None])
def test_an_unknown_way_to_compute_is_opaque(mode: Any) -> None:
    held = [mode]
    sum_ = node("Add", "int", col("i"), ONE, held=held)
    assert read(equal(sum_, ONE)).parts == (Unsupported("{Add(i, 1)} = 1", OPAQUE),)


@pytest.mark.parametrize("mode", ["LEGACY", "ANSI", ["ANSI", True], ["LEGACY", False]])
def test_known_ways_to_compute(mode: Any) -> None:
    sum_ = node("Add", "int", col("i"), ONE, held=[mode])
    assert sql(equal(sum_, ONE)) == "(i + 1) = 1"


def as_date(zone: str | None) -> Json:
    return node("Cast", "date", col("t"), held=["date", zone, "ANSI"])


def test_one_time_zone_is_returned_and_a_second_one_is_opaque() -> None:
    day = lit("date", 0)
    berlin, utc = as_date("Europe/Berlin"), as_date("UTC")
    found = read(equal(col("i"), ONE), equal(berlin, day), equal(utc, day))
    assert found.zone == "Europe/Berlin"
    assert list(map(to_sql, found.parts)) == [
        "i = 1",
        "CAST(t AS DATE) = DATE '1970-01-01'",
        "({Cast(t)} = DATE '1970-01-01')",
    ]
    hour = node("Hour", "int", col("t"), held=["UTC"])
    assert parts(equal(berlin, day), equal(hour, ONE))[1] == "({Hour(t)} = 1)"


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
    assert found.text == "(n + INTERVAL '1' HOUR) = '1970-01-01 00:00:00'"
    assert found.zone is None


def test_literals_keep_their_type_where_something_is_computed() -> None:
    one = lit("float", "1.5")
    sum_ = node("Add", "float", col("f"), one, held=["ANSI"])
    (part,) = read(equal(sum_, one)).parts
    assert to_sql(part) == "(f + CAST(1.5D AS FLOAT)) = 1.5D"
    refused = with_values(part)
    assert isinstance(refused, Unsupported)
    assert refused.reason == "arithmetic with a FLOAT"


def test_operands_of_unknown_or_other_types_are_not_compared_as_alike() -> None:
    """They are compared as Spark's grammar says, and a FLOAT is no DOUBLE there."""
    assert sql(equal(col("i"), lit("float", "1.5"))) == "i = CAST(1.5D AS FLOAT)"
    assert is_opaque(equal(col("i"), lit("float", "16777217")))
    unresolved = {
        "c": "org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute",
        "t": "",
        "x": [["a", "b c"]],
    }
    assert (
        sql(equal(unresolved, lit("float", "1.5"))) == "a.`b c` = CAST(1.5D AS FLOAT)"
    )


def test_a_decimal_next_to_a_double_is_compared_as_the_planner_does() -> None:
    as_double = node("Cast", "double", col("big"), held=["double", "UTC", "LEGACY"])
    assert sql(equal(as_double, lit("double", "1.5"))) == "big = 1.5D"
    assert sql(equal(as_double, col("d"))) == "CAST(big AS DOUBLE) = d"
    tried = node("Cast", "double", col("big"), held=["double", "UTC", "TRY"])
    assert sql(equal(tried, lit("double", "1.5"))) == "({Cast(big)} = 1.5D)"


def test_rows_in_lists() -> None:
    made = node(
        "CreateNamedStruct",
        "struct<i:int,s:string>",
        *(lit("string", "i"), col("i"), lit("string", "s"), col("s")),
    )

    def row(kind: str) -> Json:
        values = [{"t": kind, "v": 1}, {"t": "string", "v": None}]
        return lit("struct<col1:int,col2:string>", values)

    one = "i <=> 1 AND s <=> NULL"
    assert sql(node("In", "boolean", made, row("int"))) == one
    in_set = node("InSet", "boolean", made, v=[row("int")["v"], row("int")["v"]])
    assert sql(in_set) == f"{one} OR {one}"
    assert is_opaque(node("In", "boolean", made, row("bigint")))
    assert is_opaque(node("In", "boolean", made, col("st")))
    assert is_opaque(node("InSet", "boolean", made, v=[None]))


def test_wall_clocks_in_lists_are_compared_one_by_one() -> None:
    """A list would be read for a session's zone."""
    listed = [lit("timestamp_ntz", 0), lit("timestamp_ntz", None)]
    assert sql(node("In", "boolean", col("n"), *listed)) == (
        "n = '1970-01-01 00:00:00' OR n = NULL"
    )


def test_the_characters_to_trim_come_first() -> None:
    for name, called in (("StringTrimLeft", "ltrim"), ("StringTrimRight", "rtrim")):
        trimmed = node(name, "string", col("s"), lit("string", "x"))
        assert sql(equal(trimmed, lit("string", ""))) == f"{called}('x', s) = ''"
        spaces = node(name, "string", col("s"), held=[None])
        assert sql(equal(spaces, lit("string", ""))) == f"{called}(s) = ''"
        assert is_opaque(equal(node(name, "string", col("s")), lit("string", "")))


def test_metadata_that_says_nothing_of_values() -> None:
    declared = '{"comment":"x","__CHAR_VARCHAR_TYPE_STRING":"varchar(3)"}'
    text = equal(col("s", metadata=declared), lit("string", ""))
    assert sql(text) == "s = ''"


def test_names_are_quoted() -> None:
    field = node("GetStructField", "int", col("st"), held=[0, None], n="a b")
    assert sql(equal(field, ONE)) == "st.`a b` = 1"
    none = node("GetStructField", "int", col("st"), held=[0, None], n="")
    assert is_opaque(equal(none, ONE))


def test_an_empty_list_is_never_true() -> None:
    empty = node("In", "boolean", col("i"), held=[[]])
    (part,) = read(empty).parts
    assert isinstance(part, And)
    assert part.children[:2] == (column("i").is_null(), Constant(None))
    assert isinstance(part.children[2], Unsupported)


def test_an_escape_of_one_character() -> None:
    for escape, held in (("!", ["!"]), ("\\", ["\\"])):
        found = node("Like", "boolean", col("s"), lit("string", "a%"), held=held)
        assert read(found).parts == (Like(column("s").reference, "a%", escape),)


@pytest.mark.parametrize("name", ["now", "current_date", "unix_timestamp"])
def test_the_moment_of_a_column_is_that_of_its_text(name: str) -> None:
    """A ``Column`` becomes text, in which a plan gives the moment a value."""
    called = {
        "c": "org.apache.spark.sql.catalyst.analysis.UnresolvedFunction",
        "t": "",
        "x": [[name], [], False, None, False],
    }
    unresolved = {
        "c": "org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute",
        "t": "",
        "x": [["a"]],
    }
    assert sql(equal(unresolved, called)) == f"a = {name}()"
    listed = {"c": EXPRESSIONS + "In", "t": "", "a": [unresolved, called, ONE]}
    assert sql(listed) == f"a IN ({name}(), 1)"


def test_text_of_what_is_not_understood_is_not_judged() -> None:
    (unknown,) = read_nodes(json.dumps([equal(node("Rand", "int"), ONE)]))
    text = to_sql(Translator({}, as_text=True).condition(unknown))
    assert text == "(opaque({Rand()} = 1))"
    assert parse(text) == Unsupported("opaque({Rand()} = 1)", OPAQUE)


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
