"""Domains: values become ordered integers or bytes, in Spark's order."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.errors import UnsupportedTypeError
from skipindex.expressions.domain import (
    NAN,
    Domain,
    big_decimal_key,
    domain_of,
    float_from_key,
    float_key,
)
from tests.oracle import compare
from tests.strategies import TYPES, columns, elements

MOMENT = datetime.fromisoformat("2020-02-29 01:00:00")


def encode(values: list[Any], dtype: pa.DataType) -> list[Any]:
    found: list[Any] = domain_of(dtype).encode(pa.array(values, dtype)).to_pylist()
    return found


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@given(st.data())
def test_values_are_ordered_as_spark_orders_them(
    dtype: pa.DataType, data: st.DataObject
) -> None:
    a, b = data.draw(elements(dtype)), data.draw(elements(dtype))
    x, y = encode([a, b], dtype)
    assert (x > y) - (x < y) == compare(a, b)
    assert isinstance(x, bytes) == domain_of(dtype).is_bytes


@given(columns(min_size=0, max_size=12), st.integers(0, 5), st.integers(0, 5))
def test_slices_chunks_and_nulls_stay_in_place(
    column: Any, skip: int, stop: int
) -> None:
    """Arrow arrays may begin anywhere in their buffers."""
    domain = domain_of(column.dtype)
    whole = column.to_arrow()
    expected = domain.encode(whole).to_pylist()
    assert [v is None for v in expected] == [v is None for v in column.values]
    part = whole.slice(skip, max(0, len(whole) - skip - stop))
    found = domain.encode(part)
    assert found.to_pylist() == expected[skip : skip + len(part)]
    assert found.type == (pa.large_binary() if domain.is_bytes else pa.int64())


def test_dictionaries_are_looked_through() -> None:
    values = pa.array(["b", None, "a", "b"]).dictionary_encode()
    assert domain_of(values.type).encode(values).to_pylist() == [b"b", None, b"a", b"b"]
    assert domain_of(values.type).tag == "string"


def test_trap_c1_nan_is_one_value_above_infinity() -> None:
    payload = float.fromhex("nan")
    negative = math.copysign(math.nan, -1)
    keys = encode([math.inf, math.nan, negative, payload], pa.float64())
    assert keys == [float_key(math.inf), NAN, NAN, NAN]
    assert keys[0] < NAN


def test_trap_c4_the_two_zeros_are_one_value() -> None:
    assert (
        encode([-0.0, 0.0], pa.float64()) == encode([-0.0, 0.0], pa.float32()) == [0, 0]
    )
    assert float_key(-0.0) == 0


@given(st.floats(allow_nan=False))
def test_a_float_is_found_again_by_its_key(value: float) -> None:
    assert float_from_key(float_key(value)) == value
    assert encode([value], pa.float64()) == [float_key(value)]


@given(st.floats(width=32))
def test_trap_c20_a_float_and_its_double_have_one_key(value: float) -> None:
    assert encode([value], pa.float32()) == encode([value], pa.float64())


@given(st.integers(-(10**38) + 1, 10**38 - 1))
def test_trap_c15_big_decimals_are_ordered_bytes(unscaled: int) -> None:
    value = Decimal((int(unscaled < 0), Decimal(abs(unscaled)).as_tuple().digits, -4))
    (key,) = encode([value], pa.decimal128(38, 4))
    assert key == big_decimal_key(unscaled)
    assert big_decimal_key(unscaled - 1) < key < big_decimal_key(unscaled + 1)


@pytest.mark.parametrize(
    ("dtype", "tag"),
    [
        (pa.int8(), "int"),
        (pa.int64(), "int"),
        (pa.uint32(), "int"),
        (pa.float32(), "float"),
        (pa.float64(), "float"),
        (pa.decimal128(18, 2), "decimal:2"),
        (pa.decimal128(19, 2), "big_decimal:2"),
        (pa.decimal256(20, 0), "big_decimal:0"),
        (pa.string(), "string"),
        (pa.large_string(), "string"),
        (pa.binary(), "binary"),
        (pa.date32(), "date"),
        (pa.timestamp("ms", "Asia/Tokyo"), "timestamp"),
        (pa.timestamp("us"), "timestamp_ntz"),
        (pa.timestamp("ns"), "int"),
        (pa.bool_(), "bool"),
    ],
    ids=str,
)
def test_tags_tell_columns_apart_whose_values_differ(
    dtype: pa.DataType, tag: str
) -> None:
    assert domain_of(dtype).tag == tag


def test_an_unsigned_column_is_as_wide_as_spark_reads_it() -> None:
    """Spark reads uint8 as smallint, uint16 as int and uint32 as bigint."""
    widths = [domain_of(t).bits for t in (pa.uint8(), pa.uint16(), pa.uint32())]
    assert widths == [16, 32, 64]
    assert domain_of(pa.int32()).bits == 32
    assert encode([2**32 - 1], pa.uint32()) == [2**32 - 1]


@pytest.mark.parametrize(
    "dtype",
    [
        pa.float16(),
        pa.timestamp("s"),
        pa.date64(),
        pa.time32("ms"),
        pa.duration("us"),
        pa.decimal256(39, 0),
        pa.list_(pa.int32()),
        pa.struct([("x", pa.int32())]),
        pa.map_(pa.string(), pa.int32()),
        pa.null(),
    ],
    ids=str,
)
def test_other_types_are_refused_in_one_sentence(dtype: pa.DataType) -> None:
    with pytest.raises(UnsupportedTypeError, match="cannot index column 'c'") as error:
        domain_of(dtype, "c")
    assert "accepted: integers, float" in str(error.value)


def test_unsigned_64_bit_integers_are_decimals_of_20_digits() -> None:
    domain = domain_of(pa.uint64())
    assert domain == domain_of(pa.decimal128(20, 0))
    values = [0, 1, 2**63 - 1, 2**63, 2**64 - 1]
    keys = encode(values, pa.uint64())
    assert keys == sorted(keys)
    assert keys == encode([Decimal(v) for v in values], pa.decimal128(20, 0))
    assert domain.show(keys[-1]) == str(2**64 - 1)


def test_fixed_length_bytes_are_bytes() -> None:
    assert encode([b"zz", None, b"\xff\0"], pa.binary(2)) == [b"zz", None, b"\xff\0"]


def test_milliseconds_are_microseconds_times_a_thousand() -> None:
    assert encode([5], pa.timestamp("ms")) == [5_000]
    assert encode([5], pa.timestamp("ms", "Europe/Paris")) == [5_000]


@pytest.mark.parametrize(
    ("dtype", "value", "text"),
    [
        (pa.int32(), -5, "-5"),
        (pa.bool_(), True, "true"),
        (pa.float64(), 1.5, "1.5"),
        (pa.float64(), -math.inf, "-inf"),
        (pa.float64(), math.nan, "nan"),
        (pa.decimal128(4, 2), Decimal("-0.05"), "-0.05"),
        (pa.decimal128(18, 18), Decimal("1e-18"), "0." + "0" * 17 + "1"),
        (pa.decimal128(38, 3), Decimal("9" * 35 + ".999"), "9" * 35 + ".999"),
        (pa.date32(), date(2020, 2, 29), "2020-02-29"),
        (
            pa.timestamp("us"),
            datetime.fromisoformat("2020-02-29 01:00:00"),
            "2020-02-29 01:00:00",
        ),
        (
            pa.timestamp("us", "UTC"),
            datetime(1, 1, 1, tzinfo=UTC),
            "0001-01-01 00:00:00+00:00",
        ),
        (pa.string(), "it's", '"it\'s"'),
        (pa.binary(), b"\x00\xff", "X'00FF'"),
    ],
    ids=str,
)
def test_values_are_shown_as_people_write_them(
    dtype: pa.DataType, value: Any, text: str
) -> None:
    assert domain_of(dtype).show(encode([value], dtype)[0]) == text


@pytest.mark.parametrize(
    ("domain", "value"),
    [
        (Domain("date"), 10_000_000),
        (Domain("timestamp"), 1 << 62),
        (Domain("timestamp_ntz"), -(1 << 62)),
        (Domain("string"), b"\xff\xfe"),
    ],
    ids=str,
)
def test_values_beyond_python_are_shown_too(domain: Domain, value: Any) -> None:
    assert domain.show(value)


@pytest.mark.parametrize("digits", [5, 18])
def test_a_number_of_too_many_digits_is_beyond_all_that_fit(digits: int) -> None:
    """A file may hold longer decimals than its table; no bits of them are cut."""
    domain = domain_of(pa.decimal128(digits, 0))
    numbers = [2**64 + 5, 2**64 - 1, 2**63, 5, None, -(2**63) - 1, -(2**64) - 5]
    stored = pa.array(
        [None if n is None else Decimal(n) for n in numbers], pa.decimal128(38, 0)
    )
    keys = domain.encode(stored).to_pylist()
    high, low = 2**63 - 1, -(2**63)
    assert keys == [high, high, high, 5, None, low, low]
    assert domain.span is not None
    least, most = domain.span
    assert low < least
    assert most < high
    unsigned = pa.array([2**64 - 1, 5], pa.uint64())
    assert domain.encode(unsigned).to_pylist() == [high, 5]
