"""Binding: names become columns, and atoms ask exactly what was written."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex import col
from skipindex import expressions as ex
from skipindex.conditions.binding.binder import Binder
from skipindex.conditions.bound_predicate import (
    AllOf,
    AnyOf,
    BoundPredicate,
    Computed,
    Leaf,
    TruthValue,
    Unknown,
    evaluate,
    unknowns,
)
from skipindex.conditions.columns import ColumnInfo
from skipindex.conditions.simplify import simplify
from skipindex.conditions.sql.parser import parse
from skipindex.errors import PredicateError
from skipindex.expressions import atoms
from skipindex.expressions.bounds import Bounds
from skipindex.expressions.domain import Domain, domain_of
from skipindex.table.schema import columns_of
from tests import oracle
from tests.strategies import TYPES, ColumnData, columns
from tests.strategies import atoms as conditions
from tests.tables import holds

Rows = frozenset[int]
CLOCK = datetime.fromisoformat("2020-07-01 12:00:00")
C = ex.Reference(("c",))


def binder(columns: dict[str, pa.DataType], zone: str | None = "UTC") -> Binder:
    def resolve(name: str) -> ColumnInfo:
        if name not in columns:
            raise PredicateError(f"no column {name!r}")
        return columns_of(pa.schema([(name, columns[name])]), {}, [], {})[name]

    return Binder(resolve, zone)


def bind(
    predicate: ex.Predicate, zone: str | None = "UTC", **columns: pa.DataType
) -> BoundPredicate:
    return simplify(binder(columns, zone).bind(predicate))


def rows_of(tree: BoundPredicate, column: ColumnData) -> Bounds[Rows]:
    """Rows certainly and possibly TRUE, by asking the values themselves."""
    domain = domain_of(column.dtype)
    values = domain.encode(column.to_arrow()).to_pylist()
    everything: Rows = frozenset(range(len(values)))

    def answer(leaf: Leaf | Computed) -> Bounds[Rows]:
        if isinstance(leaf, Leaf):
            rows = frozenset(i for i, v in enumerate(values) if holds(leaf.atom, v))
            return Bounds(rows, rows)
        found = [leaf.test(value) for value in values]
        certain = frozenset(i for i, truth in enumerate(found) if truth)
        possible = frozenset(i for i, truth in enumerate(found) if truth is not False)
        return Bounds(certain, possible)

    return evaluate(
        tree,
        answer,
        nothing=frozenset(),
        everything=everything,
        is_empty=lambda rows: not rows,
    )


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@given(st.data())
def test_an_atom_is_true_for_the_very_rows_that_spark_keeps(
    dtype: pa.DataType, data: st.DataObject
) -> None:
    """Every type of column against every literal that Spark compares with it."""
    column = data.draw(columns([dtype]), label="column")
    predicate = data.draw(conditions({"c": column}), label="predicate")
    names = ["c"] if pa.types.is_integer(dtype) else []
    values = {"c": column.values}
    truth = frozenset(oracle.matching(predicate, values, integers=names))
    tree = bind(predicate, c=dtype)
    found = rows_of(tree, column)
    assert found.lower <= truth <= found.upper, tree
    if not any(unknowns(tree)):
        assert found.lower == found.upper


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@given(st.data())
def test_literals_of_the_columns_own_type_are_always_judged(
    dtype: pa.DataType, data: st.DataObject
) -> None:
    """Tightness: nothing of this is Unknown."""
    column = data.draw(columns([dtype], min_size=1), label="column")
    known = [v for v in column.values if v is not None]
    value = data.draw(st.sampled_from(known)) if known else None
    operator = data.draw(st.sampled_from(list(ex.Operator)))
    own = [
        ex.Comparison(C, operator, value),
        col("c").is_null(),
        col("c").is_not_null(),
    ]
    listed: tuple[Any, ...] = tuple(known[:4])
    own += [ex.In(C, listed), ex.In(C, listed, negated=True)]
    for predicate in own:
        assert not any(unknowns(bind(predicate, c=dtype))), predicate


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (col("c").isin(), "FALSE"),
        (~col("c").isin(), "TRUE"),
        (~col("c").isin(1, None), "FALSE"),  # trap C-25
        (col("c").isin(2, 1, 2), "OneOf(1, 2)"),
        (col("c").isin(1.5, 2), "Unknown"),
        (col("c") != 1.5, "NotNullAtom"),
        (col("c").between(1, 3), "Range(1, 4)"),
        (ex.Comparison(C, ex.Operator.GT, math.nan), "FALSE"),
        (col("c") == 2.0**53, f"Range({2**53}, {2**53 + 2})"),
    ],
    ids=str,
)
def test_conditions_on_a_bigint(predicate: ex.Predicate, expected: str) -> None:
    assert shape(bind(predicate, c=pa.int64())) == expected


def shape(tree: BoundPredicate) -> str:
    match tree:
        case TruthValue(value):
            return str(value).upper()
        case Unknown() | Computed():
            return type(tree).__name__
        case Leaf(atoms.Range(_, low, high)):
            return f"Range({low!r}, {high!r})"
        case Leaf(atoms.OneOf(_, values)) | Leaf(atoms.NoneOf(_, values)):
            return f"{type(tree.atom).__name__}{values!r}"
        case Leaf(atoms.Matches(_, pattern, negated)):
            pieces = [p.value if isinstance(p, atoms.Wildcard) else p for p in pattern]
            return f"{'Not' * negated}Matches({pieces})"
        case Leaf(atom):
            return type(atom).__name__
        case AllOf(children) | AnyOf(children):
            word = " AND " if isinstance(tree, AllOf) else " OR "
            return word.join(map(shape, children))
    raise AssertionError(tree)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("abc", "OneOf(b'abc',)"),
        ("ab%", "Range(b'ab', b'ac')"),
        ("%", "NotNullAtom"),
        ("ab%c", "Range(b'ab', b'ac') AND Matches([b'ab', '%', b'c'])"),
        ("ab_", "Range(b'ab', b'ac') AND Matches([b'ab', '_'])"),
        ("%é%b_%%", "Matches(['%', b'\\xc3\\xa9', '%', b'b', '_', '%'])"),
        ("\ufffd%", "Unknown"),
        ("a\\_\ufffd", "Unknown"),
        ("ab\\", "Unknown"),
        (r"a\bc", "Unknown"),
        ("\uffff%", "Range(b'\\xef\\xbf\\xbf', b'\\xef\\xbf\\xc0')"),
        (
            "\U0010ffff%",
            "Range(b'\\xf4\\x8f\\xbf\\xbf', b'\\xf4\\x8f\\xbf\\xc0') AND Unknown",
        ),
    ],
)
def test_like_by_its_pattern(pattern: str, expected: str) -> None:
    assert shape(bind(ex.Like(C, pattern), c=pa.string())) == expected


def test_not_like_asks_for_the_other_values() -> None:
    tree = bind(~ex.Like(C, "ab%c"), c=pa.string())
    assert shape(tree) == "NotMatches([b'ab', '%', b'c'])"
    assert shape(bind(~ex.Like(C, "a%b", "%"), c=pa.string())) == "Unknown"


@pytest.mark.parametrize("dtype", [pa.int32(), pa.binary(), pa.date32()], ids=str)
def test_like_on_what_is_no_text_is_not_judged(dtype: pa.DataType) -> None:
    assert shape(bind(ex.Like(C, "1%"), c=dtype)) == "Unknown"


@pytest.mark.parametrize(
    ("values", "dtype", "judged"),
    [
        ((1, 2.5), pa.int32(), False),
        ((Decimal("1.5"), 2.5), pa.float32(), True),
        (("1", 2), pa.int32(), False),
        ((5,), pa.decimal128(38, 20), False),
        ((10**10,), pa.decimal128(38, 18), True),
        ((Decimal("1E-20"), Decimal("1E+20")), pa.decimal128(10, 0), False),
        ((1 << 70,), pa.float64(), False),
    ],
    ids=str,
)
def test_a_list_is_judged_if_its_common_type_is_the_columns(
    values: tuple[Any, ...], dtype: pa.DataType, *, judged: bool
) -> None:
    for negated in (False, True):
        tree = bind(ex.In(C, values, negated), c=dtype)
        assert any(unknowns(tree)) != judged, tree


@pytest.mark.parametrize("operator", list(ex.Operator))
def test_trap_c19_summer_time_only_widens(operator: ex.Operator) -> None:
    """No file is certain, and none within a day of the literal is skipped."""
    noon = datetime(2020, 7, 1, 16, tzinfo=UTC)  # 12:00 in New York
    moments = [noon.replace(day=d, month=m) for m in (6, 7) for d in range(1, 31)]
    column = ColumnData(pa.timestamp("us", "UTC"), (*moments, None))
    predicate = ex.Comparison(C, operator, CLOCK)
    found = rows_of(bind(predicate, "America/New_York", c=column.dtype), column)
    null = {len(moments)} if operator is ex.Operator.NULL_SAFE_NE else set()
    assert found.lower == null
    truth = oracle.matching(ex.Comparison(C, operator, noon), {"c": column.values})
    near = {i for i, m in enumerate(moments) if abs(m - noon) <= timedelta(days=1)}
    wide = set(truth) | near
    if operator in {ex.Operator.NE, ex.Operator.NULL_SAFE_NE}:
        wide = set(range(len(column.values)))
    assert set(truth) | near <= found.upper <= wide


def test_trap_c19_a_list_in_a_zone_with_summer_time_is_not_judged() -> None:
    predicate = col("c").isin(CLOCK)
    tree = bind(predicate, "America/New_York", c=pa.timestamp("us", "UTC"))
    assert [u.reason for u in unknowns(tree)] == ["instants of a zone with summer time"]


@pytest.mark.parametrize("dtype", [pa.list_(pa.int32()), pa.null()], ids=str)
def test_conditions_on_columns_without_an_order_are_not_judged(
    dtype: pa.DataType,
) -> None:
    for predicate in (col("c") == 1, col("c").isin(1), col("c").is_null()):
        (unknown,) = unknowns(bind(predicate, c=dtype))
        assert "cannot be indexed" in unknown.reason
    assert shape(bind(col("c") == None, c=dtype)) == "FALSE"  # noqa: E711
    assert shape(bind(~col("c").isin(), c=dtype)) == "TRUE"


@pytest.mark.parametrize(
    "dtype",
    [pa.list_(pa.struct([("x", pa.int64())])), pa.map_(pa.string(), pa.int64())],
)
def test_what_is_inside_of_lists_and_maps_is_not_judged(dtype: pa.DataType) -> None:
    (unknown,) = unknowns(bind(parse("c.x = 1"), c=dtype))
    assert unknown.reason == "elements of lists and maps have no index"


def test_one_unknown_condition_leaves_the_others() -> None:
    predicate = (col("a") == "x") & (col("b") == 1)
    assert shape(bind(predicate, a=pa.int64(), b=pa.int64())) == "Unknown AND OneOf(1,)"


def test_trap_c41_names_with_dots_and_backticks() -> None:
    types = {"a.b": pa.int64(), "x`y": pa.int64(), "s": pa.struct([("f", pa.int64())])}
    assert shape(bind(parse("`a.b` = 1"), **types)) == "OneOf(1,)"
    assert shape(bind(parse("`x``y` = 1"), **types)) == "OneOf(1,)"
    assert bind(parse("S.F = 1"), **{**types, "S": types["s"]}) == Leaf(
        atoms.OneOf("S.f", (1,)), "S.F = 1"
    )
    with pytest.raises(PredicateError, match="no column 'a'"):
        bind(parse("a.b = 1"), **types)


def test_a_field_of_what_is_no_struct_is_an_error() -> None:
    with pytest.raises(
        PredicateError, match="no field 'x': column 'c' is not a struct"
    ):
        bind(parse("c.x = 1"), c=pa.int64())


@pytest.mark.parametrize(
    "condition", ["nope = NULL", "nope IN (1)", "nope IS NULL", "NOT nope LIKE 'a%'"]
)
def test_a_missing_column_is_an_error_in_every_condition(condition: str) -> None:
    with pytest.raises(PredicateError, match="no column 'nope'"):
        bind(parse(f"c = 1 OR {condition}"), c=pa.int64())
    with pytest.raises(PredicateError, match="no column 'nope'"):
        bind(~col("nope").isin(), c=pa.int64())


def test_leaves_carry_the_users_words() -> None:
    tree = bind(parse("c BETWEEN 1 AND 3 AND c IS NOT NULL"), c=pa.int64())
    assert isinstance(tree, AllOf)
    texts = [leaf.text for leaf in tree.children if isinstance(leaf, Leaf)]
    assert texts == ["(c >= 1 AND c <= 3)", "c IS NOT NULL"]


def test_every_shape_of_domain_is_bound() -> None:
    """The parametrised tests above name each type once."""
    names = {domain_of(dtype).name for dtype in TYPES}
    judged: dict[str, Callable[..., Any] | Domain] = {n: Domain(n) for n in names}
    assert set(judged) == {
        *("bool", "int", "float", "decimal", "big_decimal", "string", "binary"),
        *("date", "timestamp", "timestamp_ntz"),
    }


@pytest.mark.parametrize(
    ("dtype", "is_judged"),
    [
        (pa.string(), True),
        (pa.int32(), True),
        (pa.date32(), False),
        (pa.float64(), False),
        (pa.float32(), False),
        (pa.bool_(), False),
        (pa.decimal128(9, 2), False),
        (pa.decimal128(30, 2), False),
        (pa.timestamp("us"), False),
        (pa.timestamp("us", "UTC"), False),
        (pa.binary(), False),
    ],
    ids=str,
)
@pytest.mark.parametrize("form", ["(c, n) IN (('1', 5))", "(c, n) NOT IN (('1', 5))"])
def test_a_text_in_a_row_may_make_spark_cast_the_column(
    form: str, dtype: pa.DataType, is_judged: bool
) -> None:
    bound = bind(parse(form), c=dtype, n=pa.int32())
    assert is_judged == (not any(unknowns(bound)))


def test_decimals_of_rows_have_one_type() -> None:
    """Each of them fits beside the column, and together they are rounded."""
    wide = ("1." + "0" * 19 + "1", "1" * 25)
    apart = [parse(f"(c, n) IN (({number}BD, 5))") for number in wide]
    assert not any(isinstance(one, ex.Unsupported) for one in apart)
    both = parse(f"(c, n) IN (({wide[0]}BD, 5), ({wide[1]}BD, 5))")
    assert isinstance(both, ex.Unsupported)


@pytest.mark.parametrize(
    ("text", "is_judged"),
    [
        ("c IN ('1582-10-24')", False),
        ("c IN ('2020-01-01', '1582-10-15')", False),
        ("c NOT IN ('1582-10-04')", False),
        ("(c, n) IN (('1582-10-15', 5))", False),
        ("c IN ('1582-10-25', '2020-01-01')", True),
        ("c IN (DATE '1582-10-15')", True),
        ("c = '1582-10-15'", True),
    ],
)
def test_a_listed_text_may_be_shown_for_another_day(text: str, is_judged: bool) -> None:
    """By the old formatter, to which Spark casts the column without ANSI mode."""
    bound = bind(parse(text), c=pa.date32(), n=pa.int32())
    assert is_judged == (not any(unknowns(bound)))


@pytest.mark.parametrize("numbers", ["5", ", ".join(map(str, range(500)))])
def test_a_wider_integer_is_the_column_itself(numbers: str) -> None:
    """And a narrower one may overflow."""
    wide = bind(parse(f"CAST(c AS BIGINT) IN ({numbers})"), c=pa.int32())
    assert isinstance(wide, Leaf)
    assert wide.atom == bind(parse(f"c IN ({numbers})"), c=pa.int32()).atom
    for text in (f"CAST(c AS INT) IN ({numbers})", f"tinyint(c) NOT IN ({numbers})"):
        assert not isinstance(bind(parse(text), c=pa.int64()), Leaf)
