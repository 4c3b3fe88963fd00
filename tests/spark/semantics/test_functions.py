"""Functions over columns, against Spark: every value at the edges of its type.

One file holds few rows, so that statistics, dictionaries and inverted functions all
have something to decide.  Without ANSI mode the rows overflow and fail to be cast; with
it they would be errors, so there the values are tame, and every answer must be exact.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from skipindex.conditions.bound_predicate import Computed, leaves, unknowns
from skipindex.planner.plan import Plan, Verdict
from tests.quick_run import NO_CODEGEN
from tests.spark.reading.whole import NO_PUSHDOWN, settings
from tests.tables import build, put

pytestmark = pytest.mark.spark

Columns: TypeAlias = Mapping[str, Sequence[Any]]
TYPES = {
    "i": pa.int32(),
    "l": pa.int64(),
    "y": pa.int8(),
    "d": pa.float64(),
    "f": pa.float32(),
    "dec": pa.decimal128(10, 2),
    "s": pa.string(),
    "n": pa.string(),
    "b": pa.bool_(),
    "dt": pa.date32(),
    "ts": pa.timestamp("us", "UTC"),
    "ntz": pa.timestamp("us"),
}
INTERPRETED = {**NO_PUSHDOWN, **NO_CODEGEN}
"""To compile hundreds of conditions takes longer than to run them."""
N = None
MOMENTS = (
    *("1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "1992-02-29 23:30:00"),
    *("1993-01-01 00:00:00", "1993-12-31 23:59:59.5", "1994-01-01 00:00:00.000001"),
    *("2020-03-08 02:30:00", "2020-03-29 01:30:00", "2020-10-25 00:59:59.999999"),
    *("2020-10-25 01:00:00", "2020-12-31 22:59:59", "2020-12-31 23:00:00"),
    *("2021-01-01 00:00:00", "2021-01-03 12:34:56.78", "1582-10-15 01:02:03"),
    *("1900-02-28 12:00:00", "2000-02-29 00:00:01", "2019-01-31 00:00:00"),
)
CLOCKS = [datetime.fromisoformat(text) for text in MOMENTS]
TAME: Columns = {
    "i": [0, 1, -1, 2, 3, -3, 7, 10, -7, 100, 1992, 1993, 12345, -9876, N, 46340],
    "l": [0, 1, -1, 2, 3, -3, 7, 10, -7, 1 << 40, -(1 << 40), 5, N, 999, 1000, 1001],
    "y": [0, 1, -1, 2, 3, -3, 7, 10, -7, 100, -100, 50, N, 6, 9, 11],
    "d": [
        *(0.0, -0.0, 1.0, -1.0, 1.5, -1.5, 2.5, 0.1, 1e9, -1e9, 7.0, N, 3.0, 0.5),
        *(1e-300, 99.99),
    ],
    "f": [0.0, -0.0, 1.0, -1.0, 1.5, -1.5, 2.5, 0.25, 1e9, 7.0, N, 3.0, 0.5, 8.0, 1.0],
    "dec": [
        N if text is None else Decimal(text)
        for text in (
            *("0.00", "0.01", "-0.01", "1.50", "-1.50", "99999999.99", "1.00", N),
            *("-99999999.99", "1.49", "1.51", "10.00", "-1.00", "2.00", "3.99", "7.77"),
        )
    ],
    "s": [
        *("", " ", "a", "A", "ab", "Ab", "abc", " a ", "a%b", "aXb", "ab\n", N, "b"),
        *("2020-01-01", "zz", "abcabc", "O'K", "a_b"),
    ],
    "n": ["0", "1", "-1", " 7 ", "+3", "007", "1992", "12", N, "2147483647", "99"],
    "b": [True, False, N],
    "dt": [*(clock.date() for clock in CLOCKS), N],
    "ts": [*(clock.replace(tzinfo=UTC) for clock in CLOCKS), N],
    "ntz": [*CLOCKS, N],
}
WILD: Columns = {
    **TAME,
    "i": [*TAME["i"], 2**31 - 1, -(2**31), 2**31 - 2, -(2**31) + 1, 2**30],
    "l": [*TAME["l"], 2**63 - 1, -(2**63), 2**63 - 2, 2**53 + 1, 2**62],
    "y": [*TAME["y"], 127, -128, 126],
    "d": [
        *TAME["d"],
        *(math.nan, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 2.0**63),
        *(-(2.0**63), 2.0**53, 2147483648.0, -2147483648.5, 127.9, 128.0),
    ],
    "f": [*TAME["f"], math.nan, math.inf, -math.inf, 1e-45, 3.4e38],
    "s": [
        *TAME["s"],
        "é",
        "éa",
        "\U0001f33cx",
        "x\uffff",
        "ß",
        "İ",
        "ǅ",
        "ﬁ",
        "ΑΣ",
        "\x00",
        "abc" * 40,
    ],
    "n": [*TAME["n"], "", "x", "1.5", "1e2", "2147483648", "999999999999999999999"],
    "dt": [*TAME["dt"], date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 4)],
    "ts": [
        *TAME["ts"],
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    ],
    "ntz": [*TAME["ntz"], datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59)],
}

NUMBERS = [
    f"{term} {comparison}"
    for term in (
        *("i + 1", "i - 1", "1 + i", "5 - i", "i * 3", "i * -2", "i * 0", "-i", "+i"),
        *("i + 1L", "y + 1", "y + 1Y", "y * 2"),
        *("i % 7", "i % -3", "mod(i, 2)", "pmod(i, 7)", "i DIV 10", "i DIV -3"),
        *("i / 2", "i / -4", "abs(i)", "abs(y)", "l + 1", "l * 2", "l DIV 1000"),
        *("floor(i)", "ceil(l)", "bigint(i)"),
        *("int(y)", "double(i)", "i * i", "i + i * 2", "CAST(b AS INT)", "-(-l)"),
        *("CAST(i AS DECIMAL(12,2))", "(i + 1) * 2", "abs(i) % 5", "CAST(n AS INT)"),
        *("length(s)", "octet_length(s)", "instr(s, 'b')", "locate('b', s)"),
        *("position('a' IN s)", "char_length(trim(s))", "ascii(n)", "coalesce(i, 0)"),
        *("nvl(y, 5)", "nullif(i, 1)", "if(i > 1, i, -1)", "if(b, 1, 0)"),
        *("CASE WHEN i > 2 THEN 1 WHEN l IS NULL THEN 2 ELSE 3 END", "nvl2(s, 1, 2)"),
        *("CASE i WHEN 1 THEN 3 WHEN 2 THEN 7 END", "coalesce(i, l)", "coalesce(l, 7)"),
        *("floor(d)", "ceil(d)", "floor(dec)", "ceiling(dec)", "CAST(d AS INT)"),
        *("CAST(dec AS INT)", "CAST(d AS BIGINT)", "int(dec)"),
        *("greatest(i, 2)", "least(i, l)", "greatest(i, l, NULL, 1)", "least(y, 3)"),
        *("round(i)", "round(i, -1)", "round(y, -1)", "sign(i)", "signum(dec)"),
        *("coalesce(nvl(i, y), l)", "i" + " + 1" * 12 + " - 11", "-(i + 1) * 2 - 1"),
        *("abs(greatest(i, -3))", "nvl(i, l) + 1"),
    )
    for comparison in ("= 3", "< 3", ">= 2", "!= 1", "IN (1, 3, 7)", "NOT IN (0, 2)")
]
DOUBLES = [
    f"{term} {comparison}"
    for term in (
        *("d + 1", "d - 0.5D", "1 - d", "d * 2", "d * -2D", "d / 2", "d / 3", "-d"),
        *(
            "d * 0D",
            "d % 2",
            "abs(d)",
            "d + 0.1",
            "d * 1.1D",
            "double(f)",
            "double(dec)",
        ),
        *("CAST(i AS DOUBLE) / 3", "coalesce(d, 1D)", "coalesce(d, 0)", "-f", "abs(f)"),
        *("l / 3", "i * 1.5D", "double(l) + 1", "round(d)", "round(d, 1)", "sign(d)"),
        *("greatest(d, 1D)", "least(d, 0)", "signum(d) * 2"),
    )
    for comparison in ("= 2.0D", "< 1.5", ">= 1", "!= 0", "IN (1D, 2D)", "<=> 0.5D")
]
DECIMALS = [
    f"{term} {comparison}"
    for term in (
        "-dec",
        "abs(dec)",
        "CAST(dec AS DECIMAL(14,4))",
        "CAST(y AS DECIMAL(5,1))",
        *("dec + 1", "dec - 0.5", "1 - dec", "dec * 2", "dec * -1.5", "(dec + 1) * 2"),
        *("dec * dec", "round(dec)", "round(dec, 1)", "round(dec, -1)"),
        *("greatest(dec, dec)", "dec + 1L", "dec - CAST(1 AS DECIMAL(18,4))"),
    )
    for comparison in ("= 1.50", "< 1.5", ">= -1.00BD", "!= 1.5", "IN (1.50, 0.01)")
]
TEXTS = [
    *(
        f"{term} {comparison}"
        for term in (
            *("upper(s)", "lower(s)", "trim(s)", "ltrim(s)", "rtrim(s)", "reverse(s)"),
            *("substring(s, 1, 1)", "left(s, 2)", "substr(s, 2)", "right(s, 1)"),
            *(
                "substring(s, -2, 1)",
                "substring(s, 0, 1)",
                "substring(s, -9, 8)",
                "s || 'x'",
            ),
            *(
                "concat('x', s, 'y')",
                "replace(s, 'a', 'b')",
                "repeat(s, 2)",
                "left(s, 0)",
            ),
            *(
                "coalesce(s, 'ab')",
                "nullif(s, 'ab')",
                "lpad(s, 3, 'xy')",
                "rpad(s, 2, 'x')",
            ),
            *(
                "upper(trim(s))",
                "substring(upper(s), 1, 1)",
                "substring(s FROM 2 FOR 1)",
            ),
            *(
                "CAST(i AS STRING)",
                "string(b)",
                "string(y)",
                "concat(s, s)",
                "string(s)",
            ),
            *("if(b, s, 'ab')", "substring(s, 1, 3)", "ucase(n)", "left(s, -1)"),
            *("trim(BOTH 'a' FROM s)", "trim(LEADING 'ab' FROM s)", "btrim(s, 'b')"),
            *("trim(TRAILING FROM s)", "ltrim('a', s)", "trim(BOTH FROM s)"),
            *("greatest(s, 'ab')",),
        )
        for comparison in (
            *("= 'ab'", "= 'A'", "< 'b'", ">= 'ab'", "!= 'a'", "IN ('ab', 'x', '')"),
            *("LIKE 'a%'", "LIKE '%b%'", "NOT LIKE '_b%'", "IS NULL", "> 'A'"),
        )
    ),
    *(
        "s LIKE '%b%c'",
        "s LIKE 'a_b'",
        r"s LIKE 'a\%b'",
        "s NOT LIKE '%b'",
        "s LIKE '%'",
    ),
    *("s ILIKE 'A%'", "s ILIKE 'ab_'", "s NOT ILIKE '%B'", "contains(s, 'b')"),
    *(
        "endswith(lower(s), 'b')",
        "startswith(upper(s), 'A')",
        "s LIKE '_'",
        "s LIKE 'é%'",
    ),
    *(
        "contains(s, 'b') = true",
        "startswith(s, 'a') <> TRUE",
        "endswith(s, 'b') IS NULL",
    ),
    *("if(contains(s, 'b'), 1, 0) = 1", "coalesce(startswith(s, 'a'), FALSE)"),
    *("contains(upper(s), 'B') OR i = 1", "NOT contains(s, 'a')", "n LIKE '%9%'"),
]
DATES = [
    f"{term} {comparison}"
    for term, comparisons in {
        "year({0})": ("= 1993", "< 1993", ">= 2020", "!= 1993", "IN (1992, 2021)"),
        "month({0})": ("= 1", ">= 12", "IN (2, 3)"),
        "quarter({0})": ("= 1", "> 3"),
        "day({0})": ("= 1", "> 28", "!= 31"),
        "dayofmonth({0})": ("= 29",),
        "dayofweek({0})": ("= 1", "IN (2, 7)"),
        "weekday({0})": ("= 0", "> 4"),
        "dayofyear({0})": ("= 60", "> 364"),
        "weekofyear({0})": ("= 53", "= 1", "< 10"),
        "EXTRACT(YEAR FROM {0})": ("= 2020",),
        "EXTRACT(MONTH FROM {0})": ("= 10",),
        "CAST({0} AS DATE)": (
            *("= DATE '1993-01-01'", "< '1993-01-01'", ">= DATE '2020-12-31'"),
            *("!= DATE '2021-01-01'", "IN (DATE '2020-03-29', DATE '1992-02-29')"),
        ),
        "last_day({0})": ("= DATE '1992-02-29'", "< DATE '1993-01-31'"),
        "trunc({0}, 'MM')": ("= DATE '2020-10-01'", "> DATE '1993-12-01'"),
        "trunc({0}, 'year')": ("= DATE '1993-01-01'", "<= DATE '1993-06-01'"),
        "trunc({0}, 'QUARTER')": ("= DATE '2020-10-01'",),
        "trunc({0}, 'week')": ("= DATE '2020-12-28'", "< DATE '1970-01-01'"),
        "date_add({0}, 1)": ("= DATE '1993-01-01'", "> DATE '2021-01-01'"),
        "date_sub({0}, 30)": ("< DATE '1993-01-01'", "!= DATE '1970-01-01'"),
        "add_months({0}, 1)": ("= DATE '2019-02-28'", ">= DATE '2021-01-31'"),
        "datediff({0}, DATE '1993-01-01')": ("= 0", "> 364", "< -1000"),
        "datediff(DATE '1993-01-01', {0})": ("= 0", "> 364"),
        "date_format({0}, 'yyyy-MM')": ("= '1993-12'", ">= '2020-10'"),
        "date_format({0}, 'yyyyMMdd')": ("= '20210101'", "< '19930101'"),
        "year({0}) % 4": ("= 0", "!= 1"),
        "year(add_months({0}, 6))": ("= 2021",),
        "date_trunc('DAY', {0})": ("= TIMESTAMP '2020-12-31 00:00:00Z'",),
        "date_trunc('MONTH', {0})": (
            *("= TIMESTAMP '2020-10-01 00:00:00'", "< TIMESTAMP '1993-01-01 00:00:00'"),
        ),
        "date_trunc('week', {0})": (">= TIMESTAMP '2020-12-28 00:00:00'",),
        "CAST({0} AS STRING)": ("= '1993-01-01'", ">= '2020-12-31'", "LIKE '2020-1%'"),
        "substring({0}, 1, 10)": (">= '2021-01-01'", "= '1993-12-31'"),
        "left({0}, 4)": ("= '2020'", "< '1993'"),
        "CAST({0} AS TIMESTAMP)": ("> TIMESTAMP '2020-12-31 00:00:00'",),
        "CASE WHEN {0} < DATE '1993-01-01' THEN 'old' ELSE 'new' END": ("= 'old'",),
    }.items()
    for comparison in comparisons
]
CLOCK_PARTS = [
    *("hour({0}) = 23", "hour({0}) < 2", "minute({0}) = 30", "second({0}) >= 59"),
    *("date_trunc('HOUR', {0}) = TIMESTAMP '2020-03-29 01:00:00'",),
    *("date_trunc('minute', {0}) > TIMESTAMP '2020-10-25 00:59:00'",),
    *("hour({0}) IN (0, 12) AND year({0}) = 1970",),
]
MADE = [
    *(form.format(column) for form in DATES for column in ("dt", "ts", "ntz")),
    *(form.format(column) for form in CLOCK_PARTS for column in ("ts", "ntz")),
    *("dt + 1 = DATE '1993-01-01'", "dt - 1 < DATE '1993-01-01'", "unix_date(dt) > 0"),
    *(
        "dt + INTERVAL 1 DAY = DATE '1993-01-01'",
        "dt - INTERVAL '2' MONTH >= '2020-10-31'",
    ),
    *("dt + INTERVAL 1 YEAR < DATE '1994-01-01'", "bigint(ts) = -1", "bigint(ts) > 0"),
    *("ntz + INTERVAL 1 HOUR < TIMESTAMP_NTZ '1993-01-01 00:00:00'",),
    *(
        "dt = DATE '1992-12-31' + INTERVAL 1 DAY",
        "dt < date_add(DATE '1993-01-01', -1)",
    ),
    *(
        "dt + INTERVAL 2 WEEKS > DATE '1993-01-10'",
        "dt - INTERVAL 1 WEEK < '1993-01-01'",
    ),
    *("ts + INTERVAL 1 DAY > TIMESTAMP '1993-01-01 00:00:00Z'",),
    *("ts - INTERVAL 23 HOURS <= TIMESTAMP '2020-03-28 12:00:00+01:00'",),
    *("ts + INTERVAL 36 HOURS = TIMESTAMP '2020-03-30 13:30:00Z'",),
    *("ts + INTERVAL 1 WEEK < TIMESTAMP '2020-11-01 01:00:00'",),
    *("ts + INTERVAL 90 SECONDS >= TIMESTAMP '2021-01-01 00:01:30Z'",),
    *("ntz - INTERVAL 1 WEEK = TIMESTAMP_NTZ '1993-12-25 00:00:00'",),
    *("ts - INTERVAL '1 12' DAY TO HOUR <= TIMESTAMP '2020-03-28 12:00:00+01:00'",),
    *("ts + INTERVAL 1 DAY 90 MINUTES 0.5 SECONDS > TIMESTAMP '1993-01-01 00:00:00Z'",),
    *("ts + INTERVAL '2 days -3 days' < TIMESTAMP '2020-11-01 01:00:00'",),
    *("ntz - INTERVAL '30:00:00.000001' HOUR TO SECOND < TIMESTAMP_NTZ '1994-01-01'",),
    *("dt + INTERVAL 1 WEEK -2 DAYS > DATE '1993-01-10'",),
    *("dt - INTERVAL '1-2' YEAR TO MONTH >= '2019-10-31'",),
    *("ts - make_interval(0, 0, 1) < TIMESTAMP '2020-11-01 01:00:00'",),
    *("dt + make_ym_interval(1, 1) > DATE '1994-01-01'",),
    *("dt - make_interval(0, 1) <= DATE '1993-11-30'",),
    *("ts + make_dt_interval(1, 12) = TIMESTAMP '2020-03-30 13:30:00Z'",),
    *("ts < TIMESTAMP '2020-03-28 12:00:00+01:00' + INTERVAL 23 HOURS",),
    *("coalesce(ts, TIMESTAMP '2020-01-01 00:00:00Z') > DATE '2020-03-29'",),
    *("nvl(ntz, TIMESTAMP_NTZ '1993-01-01 00:00:00') < TIMESTAMP_NTZ '1994-01-01'",),
    *("greatest(ts, TIMESTAMP '2020-01-01 00:00:00Z') <= DATE '2020-04-01'",),
    *(
        "greatest(dt, DATE '2020-01-01') = DATE '2020-01-01'",
        "least(dt, dt + 1) IS NULL",
    ),
    *("dt >= add_months(DATE '2020-01-31', 1)", "dt = make_date(1993, 6 + 6, 31)"),
    *("ts < TIMESTAMP '1993-01-01 00:00:00Z' + INTERVAL 12 HOURS", "i = 1 + 2 * 3"),
    *("ntz = TIMESTAMP_NTZ '1992-12-31 00:00:00' + INTERVAL 1 DAY", "i < 2 - 5 DIV 2"),
]
LOGIC = [
    *(
        "(i = 1) IS TRUE",
        "(i = 1) IS NOT TRUE",
        "(i > 1 OR b) IS FALSE",
        "i = 1 IS NULL",
    ),
    *("(i > 1 AND y < 3) IS NOT FALSE", "(i > 1 OR b) IS UNKNOWN", "(i = 1) = true"),
    *(
        "(i = 1) = (1 = 1)",
        "(i = 1) <> true",
        "i < 5 = TRUE",
        "NOT (i IN (1, NULL)) IS TRUE",
    ),
    *(
        "(i IN (1, NULL)) IS NULL",
        "(i NOT IN (1, NULL)) IS NOT NULL",
        "(i + 1 > 3) IS TRUE",
    ),
    *("(i + 1 > 3) IS NOT TRUE", "(upper(s) = 'A') <=> TRUE", "(s LIKE '%b') <=> NULL"),
    *("if(i > 1, b, y = 3)", "CASE WHEN i > 1 THEN TRUE ELSE FALSE END"),
    *("NOT CASE WHEN i > 1 THEN b END", "coalesce(i = 1, FALSE)", "coalesce(b, i > 3)"),
    *("NOT coalesce(b, i > 3)", "nvl(b, TRUE)", "if(i > 1 AND b, 1, 0) = 1"),
    *("NOT (i + 1 = 2)", "NOT (upper(s) = 'AB' OR i % 2 = 0)", "NOT (year(dt) = 1993)"),
    *("i IS DISTINCT FROM 1 + 1", "(i + 1) IS NOT DISTINCT FROM NULL", "i % 2 IS NULL"),
    *(
        "upper(s) IS NOT NULL",
        "(i / 2) IS NULL",
        "coalesce(i, l) IS NULL",
        "1 = abs(i)",
    ),
    *("(i = 1 OR l = 2) = false", "(i > 1) IS DISTINCT FROM TRUE", "5 > i % 10"),
    *("3 BETWEEN i AND i + 5", "i + 1 BETWEEN 2 AND 4", "i + 1 NOT BETWEEN 0 AND 4"),
    *("(b) = true", "(b AND i > 0) != false", "CASE WHEN b THEN i ELSE y END > 2"),
    *(
        "(i, s) IN ((1, 'a'), (3, 'ab'))",
        "(i, s) NOT IN ((1, 'a'), (3, 'ab'))",
        "(s, i) IN (('ab', 3))",
    ),
]
CONVERTED = [
    *("d = '1.5'", "d > ' 1e0 '", "d < '-Infinity'", "d <> '0'", "d <=> '2.5'"),
    *(
        "dec = 1.5D",
        "dec > 1e0",
        "dec <= 1.49D",
        "dec = '1.5'",
    ),
    *("dec <> 1.51D", "dec <=> 1.00D", "dec IN (1.5D, 2)", "dec NOT IN (1D, 2D)"),
    *("dec >= 99999999.99D", "dec = 0.01D"),
    *("b = 'true'", "b = ' F '", "b <> 'yes'", "b > 'n'", "b <=> '0'", "b < 'T'"),
    *("'a' = 'a'", "'a' < 'B' OR i = 1", "1.5D > 1 AND i = 1", "1 IN (1, 2)"),
    *("X'61' = X'61' AND i = 2", "'a' = 'b' OR s = 'a'"),
    *("ts > TIMESTAMP '2020-03-29 01:30:00Z'", "'2' > '10' AND b"),
]
NEARLY = [
    *("dec < '-1e0'", "dec > '1.49999999999999999999'"),
    "dec + 1234567890.1234567890123456789 = 1234567891.6234567890123456789",
    "1234567890.1234567890123456789 - dec = 1234567888.6234567890123456789",
    "dec * 1234567890123456789012.5 = 1851851835185185183518.75",
    "dec = '1.5000000000000000000000000000000001'",
    "dec >= '1.5000000000000000000000000000000001'",
    *("dec + i = 1.50", "dec + i < 1.5", "dec - l >= -1.00BD", "i * dec IN (1.50, 3)"),
    *("least(s, n) LIKE '%b%'", "least(s, n) NOT LIKE '_b%'", "greatest(s, n) < 'b'"),
    *("ts < TIMESTAMP '2020-03-28 12:00:00+01:00' + INTERVAL 36 HOURS",),
    *("ts > TIMESTAMP '2020-03-29 03:30:00 Europe/Berlin'",),
    *("ts = TIMESTAMP '2020-10-25 02:59:59.999999 Europe/Berlin'",),
    *("ts <= TIMESTAMP '1900-02-28 12:00:00 America/New_York'",),
    *("ntz < TIMESTAMP '2020-10-25 02:00:00 Europe/Berlin'", "d = 'NaN'", "d > 'nan'"),
    *("f = '1.5'", "f = '0.1'", "f > 'NaN'", "b = 1", "b <> 1", "b = 0.0", "b <=> 1e0"),
    *(
        "b = 2",
        "NOT b = 0",
        "'1' = 1 OR i = 1",
        "d = 'x'",
        "1D = 'x' OR i = 1",
        "dec = 'x'",
        "b = 'x'",
    ),
    *("1 = 1.0D AND d = 'NaN'", "NOT (d <= '1e400')", "dec <> '1e400'"),
]
"""Never wrong; some are errors in ANSI mode, and some are only known nearly."""
ALL = [*NUMBERS, *DOUBLES, *DECIMALS, *TEXTS, *MADE, *LOGIC, *CONVERTED]
FOLDED = [
    *("(l < 9223372036854775807.5) IS TRUE", "(l <= 9223372036854775808) IS TRUE"),
    *("(l > -9223372036854775808.5) IS TRUE", "(l < 9223372036854775807.5) IS UNKNOWN"),
]
"""Spark puts a constant in the place of the comparison; nothing is certain of them."""


def write(folder: Path, values: Columns, *, rows: int) -> sx.Table:
    """Files of few rows; the values of every column go round and round."""
    n_files = -(-max(map(len, values.values())) // rows) * 2
    for file in range(n_files):
        table = {
            name: pa.array(
                [column[(file * rows + k) % len(column)] for k in range(rows)],
                TYPES[name],
            )
            for name, column in values.items()
        }
        put(folder / f"{file:02}.parquet", table)
    # A file of each extreme alone, and one without any value.
    put(folder / "nothing.parquet", {n: pa.nulls(2, t) for n, t in TYPES.items()})
    one = {n: pa.array([values[n][0]] * 2, t) for n, t in TYPES.items()}
    put(folder / "single.parquet", one)
    return build(folder, dict.fromkeys(TYPES, "bitmap"))


def truth(
    spark: SparkSession, table: sx.Table, conditions: Sequence[str]
) -> dict[str, dict[str, int]]:
    """How many rows of every file Spark keeps, by condition."""
    df = spark.read.parquet(table.state.location.spark_path())
    found: dict[str, dict[str, int]] = {}
    for some in (conditions[i : i + 300] for i in range(0, len(conditions), 300)):
        named = [f"({text}) AS c{i}" for i, text in enumerate(some)]
        rows = df.select(sf.input_file_name(), *map(sf.expr, named)).collect()
        for i, text in enumerate(some):
            counts = Counter[str]()
            for row in rows:
                counts[unquote(row[0]).rpartition("/")[2]] += row[i + 1] is True
            found[text] = dict(counts)
    return found


def check(plan: Plan, counts: Mapping[str, int], text: str) -> None:
    """Law 1, and bounds that enclose the truth."""
    kept = set(plan.paths)
    for file, n in counts.items():
        assert file in kept or n == 0, f"{text} in {file}"
    for task in plan.tasks:
        n = counts[task.path]
        assert task.matching is not None
        assert task.matching[0] <= n <= task.matching[1], f"{text} in {task.path}"
        assert task.verdict is not Verdict.ALL or n == task.n_rows, f"{text}: {task}"


def is_exact(plan: Plan, counts: Mapping[str, int]) -> bool:
    total = sum(counts.values())
    return plan.count_bounds == (total, total)


PART = 10
"""Of so many conditions a quick test takes one."""


def test_some_tame_values_are_answered_exactly_in_ansi_mode(
    spark: SparkSession, tmp_path: Path
) -> None:
    check_tame(spark, tmp_path, "+05:30", ALL[::PART])


@pytest.mark.slow
def test_tame_values_are_answered_exactly_in_ansi_mode(
    spark: SparkSession, tmp_path: Path
) -> None:
    check_tame(spark, tmp_path, "+05:30", ALL)


def check_tame(
    spark: SparkSession, tmp_path: Path, zone: str, texts: Sequence[str]
) -> None:
    table = write(tmp_path, TAME, rows=3)
    wanted = {**INTERPRETED, "spark.sql.session.timeZone": zone}
    with settings(spark, {**wanted, "spark.sql.ansi.enabled": "true"}):
        said = truth(spark, table, texts)
    inexact = []
    for text in texts:
        plan = table.plan(text, timezone=zone)
        check(plan, said[text], text)
        check(table.plan(text, timezone=zone, kinds=["minmax"]), said[text], text)
        if not is_exact(plan, said[text]):
            inexact.append((text, [u.reason for u in unknowns(plan.evaluation.tree)]))
    assert inexact == []


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", None])
def test_wild_values_are_never_lost(
    spark: SparkSession, tmp_path: Path, zone: str | None
) -> None:
    texts = [*ALL, *FOLDED, *NEARLY]
    table = write(tmp_path, WILD, rows=3)
    session = {**INTERPRETED, "spark.sql.session.timeZone": zone or "Asia/Tokyo"}
    with settings(spark, {**session, "spark.sql.ansi.enabled": "false"}):
        said = truth(spark, table, texts)
    computed = 0
    for text in said:
        plan = table.plan(text, timezone=zone)
        computed += any(isinstance(x, Computed) for x in leaves(plan.evaluation.tree))
        check(plan, said[text], text)
        check(table.plan(text, timezone=zone, kinds=["minmax"]), said[text], text)
    assert computed > len(texts) / 8
