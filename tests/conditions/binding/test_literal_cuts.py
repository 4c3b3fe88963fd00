"""Literals cut a column's domain exactly where Spark's order does, or not at all."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.conditions.binding.literal_cuts import Cut, Refusal, cut
from skipindex.conditions.functions.decimals import fits_decimal
from skipindex.conditions.functions.zones import (
    ZoneRules,
    fixed_offset,
    offsets_here,
    relying_on,
)
from skipindex.expressions.domain import (
    INT64_MAX,
    INT64_MIN,
    NAN,
    Domain,
    domain_of,
    float_key,
)
from tests.oracle import compare
from tests.strategies import TYPES, ColumnData, elements, literals, neighbours

INT = domain_of(pa.int32())
BIGINT = domain_of(pa.int64())
DOUBLE = domain_of(pa.float64())
FLOAT = domain_of(pa.float32())
DATE = domain_of(pa.date32())
INSTANT = domain_of(pa.timestamp("us", "UTC"))
CLOCK = domain_of(pa.timestamp("us"))
TEXT = domain_of(pa.string())
BINARY = domain_of(pa.binary())
BOOL = domain_of(pa.bool_())
DAY = 86_400_000_000
NEW_YEAR = datetime.fromisoformat("2020-01-01 00:00:00")
EDGE = 1 << 63


def decimal_domain(precision: int, scale: int) -> Domain:
    return domain_of(pa.decimal128(precision, scale))


def exact(domain: Domain, value: Any, zone: str | None = None) -> Cut:
    found = cut(domain, value, zone)
    assert isinstance(found, Cut), found
    assert not found.slack
    return found


def reaches(key: Any, bound: Any) -> bool:
    """Whether a value is at or beyond a cut."""
    return bound is not None and bool(key >= bound)


def refused(domain: Domain, value: Any, zone: str | None = None) -> str:
    found = cut(domain, value, zone)
    assert isinstance(found, Refusal), found
    return found.reason


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@given(st.data())
def test_a_cut_parts_the_values_as_spark_orders_them(
    dtype: pa.DataType, data: st.DataObject
) -> None:
    """Every literal that Spark compares, against values on both sides of it."""
    value = data.draw(elements(dtype), label="value")
    literal = data.draw(literals(ColumnData(dtype, (value,))), label="literal")
    if literal is None:
        return
    domain = domain_of(dtype)
    found = cut(domain, literal, "UTC")
    if isinstance(found, Refusal):
        assert found.reason
        return
    assert not found.slack
    for v in [value, *(n for n in neighbours(value, dtype) if _is_of(n, dtype))]:
        key = domain.encode(pa.array([v], dtype))[0].as_py()
        order = compare(v, literal)
        assert reaches(key, found.ge) == (order >= 0), v
        assert reaches(key, found.gt) == (order > 0), v


def _is_of(value: Any, dtype: pa.DataType) -> bool:
    """Whether a neighbour of a value is still a value of the type."""
    try:
        again = pa.array([value], dtype)[0].as_py()
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return False
    return type(again) is type(value) and (again == value or again != again)


@given(st.integers(-EDGE, EDGE - 1), st.floats(allow_nan=False, allow_infinity=False))
def test_a_bigint_meets_a_double_as_a_double(value: int, double: float) -> None:
    found = exact(BIGINT, double)
    assert reaches(value, found.ge) == (float(value) >= double)
    assert reaches(value, found.gt) == (float(value) > double)


def test_several_bigints_equal_one_double() -> None:
    """2^53 + 1 is no double; Spark rounds the column, half to even."""
    found = exact(BIGINT, 2.0**53)
    assert (found.ge, found.gt) == (2**53, 2**53 + 2)
    assert exact(BIGINT, 2.0**53 + 2) == Cut(2**53 + 2, 2**53 + 3)
    assert exact(BIGINT, 0.5) == Cut(1, 1)
    assert exact(BIGINT, -0.0) == Cut(0, 1)


@pytest.mark.parametrize(
    ("literal", "ge", "gt"),
    [
        (math.inf, None, None),
        (-math.inf, INT64_MIN, INT64_MIN),
        (math.nan, None, None),
        (2.0**63, INT64_MAX - 511, None),
        (-(2.0**63), INT64_MIN, INT64_MIN + 513),
        (1e300, None, None),
    ],
)
def test_doubles_beyond_all_bigints(
    literal: float, ge: int | None, gt: int | None
) -> None:
    assert exact(BIGINT, literal) == Cut(ge, gt)


@pytest.mark.parametrize(
    ("literal", "ge", "gt"),
    [
        (INT64_MAX, INT64_MAX, None),
        (INT64_MIN, INT64_MIN, INT64_MIN + 1),
        (EDGE, None, None),
        (-EDGE - 1, INT64_MIN, INT64_MIN),
        (Decimal("9223372036854775807.5"), None, None),
        (Decimal("-9223372036854775808.5"), INT64_MIN, INT64_MIN),
        (Decimal("1.5"), 2, 2),
        (Decimal("-1.5"), -1, -1),
        (Decimal("2.00"), 2, 3),
    ],
    ids=str,
)
def test_the_edges_of_int64(literal: Any, ge: int | None, gt: int | None) -> None:
    assert exact(BIGINT, literal) == Cut(ge, gt)


@pytest.mark.parametrize("domain", [INT, BIGINT, Domain("int", bits=8)])
def test_text_next_to_an_integer_must_be_plain_and_in_range(domain: Domain) -> None:
    """With ANSI Spark reads the text as a bigint, without as the column's type."""
    assert exact(domain, "-5") == Cut(-5, -4)
    assert exact(domain, "0") == Cut(0, 1)
    limit = 1 << (domain.bits - 1)
    assert exact(domain, str(-limit)).ge == -limit
    for text in ("", "05", "+5", " 5", "5 ", "-0", "5.0", "1e3", "٣", "x", str(limit)):
        assert "needs a cast" in refused(domain, text), text


@given(st.floats(), st.floats())
def test_doubles_are_ordered_with_nan_above_all(value: float, literal: float) -> None:
    found = exact(DOUBLE, literal)
    key, order = float_key(value), compare(value, literal)
    assert reaches(key, found.ge) == (order >= 0)
    assert reaches(key, found.gt) == (order > 0)


def test_nothing_is_greater_than_nan() -> None:
    assert exact(DOUBLE, math.nan) == Cut(NAN, None)
    assert exact(DOUBLE, math.inf).gt == float_key(math.inf) + 1


@given(st.integers(INT64_MIN, INT64_MAX))
def test_a_double_meets_an_integer_as_a_double(literal: int) -> None:
    key = float_key(float(literal))
    assert exact(DOUBLE, literal) == Cut(key, key + 1)


@pytest.mark.parametrize("literal", [0, 16_777_216, 3_000_000_000, -(1 << 62)])
def test_a_float_meets_an_integer_that_it_can_be(literal: int) -> None:
    assert exact(FLOAT, literal).ge == float_key(float(literal))


@pytest.mark.parametrize("literal", [16_777_217, INT64_MAX, 10**18 + 1])
def test_a_float_and_an_integer_that_it_cannot_be_are_refused(literal: int) -> None:
    """With ANSI Spark compares doubles, without it floats."""
    assert "needs a cast" in refused(FLOAT, literal)
    exact(DOUBLE, literal)


@given(
    st.decimals(allow_nan=False, allow_infinity=False, places=12).filter(
        lambda d: abs(d) < 10**20
    )
)
def test_a_double_meets_a_decimal_as_the_nearest_double(literal: Decimal) -> None:
    assert (
        exact(DOUBLE, literal).ge
        == exact(FLOAT, literal).ge
        == float_key(float(literal))
    )


@given(
    st.integers(-(10**38) + 1, 10**38 - 1),
    st.integers(-(10**30), 10**30),
    st.sampled_from([(38, 8), (20, 3), (19, 0), (18, 2), (4, 4)]),
    st.integers(0, 8),
)
def test_trap_c15_decimals_are_compared_exactly(
    unscaled: int, literal: int, shape: tuple[int, int], places: int
) -> None:
    precision, scale = shape
    unscaled %= 10**precision
    number = Decimal(literal).scaleb(-places)
    domain = decimal_domain(precision, scale)
    found = cut(domain, number, None)
    if isinstance(found, Refusal):
        assert not fits_decimal(domain, [number])
        return
    value = Decimal((0, Decimal(unscaled).as_tuple().digits, -scale))
    dtype = pa.decimal128(precision, scale)
    key = domain.encode(pa.array([value], dtype))[0].as_py()
    assert reaches(key, found.ge) == (value >= number)
    assert reaches(key, found.gt) == (value > number)


def test_decimals_beyond_38_digits_are_refused() -> None:
    """Spark's common type then rounds the column; see ``fits_decimal``."""
    wide = decimal_domain(38, 20)
    exact(wide, Decimal("1.5"))
    assert refused(wide, 5), "5L, or CAST(5 AS BIGINT), has 20 digits to Spark"
    assert refused(wide, Decimal("1E-21"))
    assert refused(wide, Decimal(10) ** 18)
    exact(decimal_domain(38, 18), 10**10)
    assert refused(BIGINT, Decimal("1E-19"))
    exact(BIGINT, Decimal("1E-18"))
    exact(INT, Decimal("1E-28"))
    assert refused(domain_of(pa.uint32()), Decimal("1E-28")), "bigint to Spark"
    exact(domain_of(pa.uint8()), Decimal("1E-33"))
    assert refused(domain_of(pa.uint8()), Decimal("1E-34"))


def test_decimals_beyond_all_values_lie_on_one_side() -> None:
    domain = decimal_domain(20, 0)
    assert exact(domain, Decimal("9" * 38)).gt is not None
    small = decimal_domain(10, 2)
    assert exact(small, Decimal("9" * 30)) == Cut(None, None)
    assert exact(small, Decimal("-" + "9" * 30)) == Cut(INT64_MIN, INT64_MIN)


def test_decimals_and_other_types_need_a_cast() -> None:
    for literal in ("x", "0x1", True, b"x", date(2020, 1, 1)):
        assert "needs a cast" in refused(decimal_domain(10, 2), literal), literal
    for literal in ("1.5", "+1.50", 1.5):
        assert exact(decimal_domain(10, 2), literal) == Cut(150, 151)
    # Some of Spark rounds these to the column's type, some makes doubles of both.
    for literal in ("0.005", "15e-1", " 1.5", "NaN", "123456789"):
        assert "needs a cast" in refused(decimal_domain(10, 2), literal), literal
    for domain in (decimal_domain(38, 0), decimal_domain(16, 2)):
        assert "needs a cast" in refused(domain, "1"), domain
    # More digits than Python's decimals have unless they are told otherwise.
    long = "123456789012345.000000000000000001"
    assert "needs a cast" in refused(decimal_domain(15, 0), long)
    assert exact(decimal_domain(15, 0), long[:15] + "." + "0" * 18).ge == int(long[:15])
    assert "finite" in refused(decimal_domain(10, 2), Decimal("NaN"))


def test_text_of_thousands_of_digits_is_no_number() -> None:
    for digits in ("9" * 5000, "-" + "1" * 5000, "0" * 5000 + "5"):
        assert "needs a cast" in refused(BIGINT, digits)
    assert exact(BIGINT, str(EDGE - 1)).gt is None


def test_dates_and_their_text() -> None:
    days = exact(DATE, date(2020, 2, 29))
    assert days == exact(DATE, "2020-02-29") == Cut(18321, 18322)
    assert exact(DATE, date(1, 1, 1)).ge == -719162
    assert exact(DATE, date(9999, 12, 31)).ge == 2932896
    for text in ("2020-2-9", "2020-02-30", " 2020-02-09", "20200209", "٢٠٢٠-01-01"):
        assert "needs a cast" in refused(DATE, text), text
    assert "needs a cast" in refused(DATE, NEW_YEAR)
    assert "needs a cast" in refused(DATE, 18321)


@pytest.mark.parametrize(
    ("zone", "offset"),
    [
        ("UTC", 0),
        ("Z", 0),
        ("GMT", 0),
        ("Etc/UTC", 0),
        ("+02:00", 2),
        ("-08:00", -8),
        ("UTC+05:00", 5),
        ("GMT-03:00", -3),
    ],
)
def test_a_wall_clock_in_a_fixed_zone_is_an_instant(zone: str, offset: int) -> None:
    moment = datetime.fromisoformat("2020-07-01 12:00:00")
    instant = moment.replace(tzinfo=timezone(timedelta(hours=offset)))
    micros = (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    for literal in (moment, "2020-07-01 12:00:00", "2020-07-01T12:00:00.0"):
        assert exact(INSTANT, literal, zone) == Cut(micros, micros + 1)
    assert exact(INSTANT, instant) == Cut(micros, micros + 1), "it needs no zone"
    assert exact(INSTANT, instant, "America/New_York").ge == micros
    midnight = exact(INSTANT, date(2020, 7, 1), zone).ge
    assert midnight == exact(INSTANT, "2020-07-01", zone).ge == micros - DAY // 2


def test_trap_c19_without_a_zone_a_wall_clock_says_nothing() -> None:
    for literal in (NEW_YEAR, "2020-01-01", date(2020, 1, 1)):
        assert "pass timezone=" in refused(INSTANT, literal)


@pytest.mark.parametrize(
    "text", ["Mars/Olympus", "../etc", "", "America", "+25:00", "EST5EDT6"]
)
def test_trap_c19_an_unknown_zone_says_nothing(text: str) -> None:
    assert "is not known here" in refused(INSTANT, "2020-01-01", text)


@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Paris", "Asia/Tokyo"])
@given(moment=st.datetimes(NEW_YEAR.replace(1900), NEW_YEAR.replace(2100)))
def test_trap_c19_a_zone_with_rules_is_only_trusted_to_a_day(
    zone: str, moment: datetime
) -> None:
    found = cut(INSTANT, moment, zone)
    assert isinstance(found, Cut)
    assert found.slack == DAY
    for fold in (0, 1):
        instant = moment.replace(tzinfo=ZoneInfo(zone), fold=fold)
        micros = (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(
            microseconds=1
        )
        assert isinstance(found.ge, int)
        assert abs(micros - found.ge) <= DAY


@pytest.mark.parametrize(
    "text",
    [
        "2020-01-01 1:00:00",
        "2020-01-01 24:00:00",
        "2020-01-01 00:00",
        "2020-01-01 00:00:00Z",
        "2020-01-01 00:00:00.1234567",
        "0000-01-01",
        "2020",
        "now",
        "x",
    ],
)
def test_text_that_is_no_plain_timestamp_is_refused(text: str) -> None:
    for domain in (INSTANT, CLOCK):
        assert "Spark may read the timestamp" in refused(domain, text, "UTC")


def test_wall_clocks_without_a_zone_of_their_own() -> None:
    micros = 1_577_836_800_000_000
    for literal in ("2020-01-01 00:00:00", "2020-01-01", date(2020, 1, 1)):
        assert exact(CLOCK, literal, None) == Cut(micros, micros + 1)
    assert exact(CLOCK, NEW_YEAR, "+02:00").ge == micros
    instant = datetime(2020, 1, 1, tzinfo=UTC)
    assert exact(CLOCK, instant, "+02:00").ge == micros + 2 * 3_600_000_000
    assert "pass timezone=" in refused(CLOCK, NEW_YEAR, None)
    assert "known only approximately" in refused(CLOCK, NEW_YEAR, "Europe/Paris")


def test_a_wall_clock_near_no_change_is_the_one_of_an_instant() -> None:
    zone, noon = "Europe/Paris", datetime(2024, 10, 26, 12)
    with relying_on(ZoneRules(offsets_here)):
        cuts = exact(CLOCK, noon, zone)
        assert exact(CLOCK, noon.replace(tzinfo=ZoneInfo(zone)), zone) == cuts
        assert exact(CLOCK, noon.replace(hour=10, tzinfo=UTC), zone) == cuts
        assert cuts.ge == (noon - datetime(1970, 1, 1)) // timedelta(microseconds=1)
        twice = datetime(2024, 10, 27, 2, 30)
        assert "known only approximately" in refused(CLOCK, twice, zone)


def test_text_and_binary_are_their_bytes() -> None:
    assert exact(TEXT, "é") == Cut(b"\xc3\xa9", b"\xc3\xa9\x00")
    assert exact(TEXT, "") == Cut(b"", b"\x00")
    assert exact(BINARY, b"\xff") == Cut(b"\xff", b"\xff\x00")
    assert refused(TEXT, "\ud800"), "a lone surrogate is no UTF-8"
    assert exact(BINARY, "é") == exact(BINARY, b"\xc3\xa9")
    for domain, literal in ((TEXT, b"x"), (TEXT, 1), (BINARY, 1), (BINARY, True)):
        assert "needs a cast" in refused(domain, literal)
    assert refused(TEXT, date(2020, 1, 1)), "Spark casts the column"


def test_booleans_are_compared_as_zero_and_one() -> None:
    for literal in (False, 0, Decimal(0), 0.0, -0.0, "false", " F ", "No", "0"):
        assert exact(BOOL, literal) == Cut(0, 1), literal
    for literal in (True, 1, Decimal("1.0"), 1.0, "true", "y", "1"):
        cuts = exact(BOOL, literal)
        assert cuts.ge == 1, literal
        assert cuts.gt in {2, None}, literal
    for literal in ("", "2", "01", "on", b"t", date(2020, 1, 1)):
        assert "needs a cast" in refused(BOOL, literal), literal
    for domain in (INT, DOUBLE, decimal_domain(5, 0), TEXT):
        assert "needs a cast" in refused(domain, True)


@pytest.mark.parametrize(
    ("zone", "hours"),
    [
        ("utc", 0),
        ("+18:00", 18),
        ("+19:00", None),
        ("Europe/Paris", None),
        ("+1", None),
    ],
)
def test_offsets_that_never_change(zone: str, hours: int | None) -> None:
    expected = None if hours is None else timezone(timedelta(hours=hours))
    assert fixed_offset(zone) == expected


def test_numpy_does_not_leak_into_cuts() -> None:
    """A cut is compared with Python's own integers, never an overflowing one."""
    found = exact(FLOAT, float(np.float32(0.1)))
    assert type(found.ge) is int
