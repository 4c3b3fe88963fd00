"""Random conditions over a table of files whose values overlap a little.

Every column drifts from file to file, so that a condition on it leaves some files out.
Some rows are NULL, some files hold nothing else, and NaN, both zeros, letters beyond
ASCII and numbers beside the literals' types are among the values.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tests.tables import put_all

N_FILES: Final = 12
N_ROWS: Final = 25
DAY_0: Final = date(2020, 1, 1)
MOMENT_0: Final = datetime(2020, 1, 1, tzinfo=UTC)
WORDS: Final = ("a", "é", "日", "%", "_", "B", " ", "")
TYPES: Final = {
    "i": pa.int32(),
    "l": pa.int64(),
    "sh": pa.int16(),
    "by": pa.int8(),
    "d": pa.float64(),
    "f": pa.float32(),
    "dec": pa.decimal128(12, 2),
    "big": pa.decimal128(30, 4),
    "s": pa.string(),
    "ds": pa.string(),
    "dte": pa.date32(),
    "ts": pa.timestamp("us", tz="UTC"),
    "ntz": pa.timestamp("us"),
    "b": pa.bool_(),
    "bin": pa.binary(),
    "st": pa.struct({"a": pa.int32(), "n": pa.struct({"s": pa.string()})}),
}


def write(folder: Path, seed: int) -> Path:
    """The table's files."""
    rng = random.Random(seed)
    return put_all(folder, [_file(rng, k) for k in range(N_FILES)])


def _file(rng: random.Random, k: int) -> pa.Table:
    rows = [_row(rng, k) for _ in range(N_ROWS)]
    share = (0.0, 0.2, 1.0 if k % 4 == 3 else 0.1)[k % 3]
    columns = {}
    for name, kind in TYPES.items():
        values = [None if rng.random() < share else row[name] for row in rows]
        columns[name] = pa.array(values, kind)
    return pa.table(columns)


def _row(rng: random.Random, k: int) -> dict[str, Any]:
    number = round(rng.gauss(k, 2), 1)
    odd = rng.choice([number] * 6 + [0.0, -0.0, float("nan"), float("inf")])
    day = DAY_0 + timedelta(days=k * 20 + rng.randrange(25))
    moment = MOMENT_0 + timedelta(hours=k * 30 + rng.randrange(40), microseconds=k)
    text = f"v{k:02}{rng.choice(WORDS)}{rng.choice(WORDS)}"
    return {
        "i": k * 10 + rng.randrange(15),
        "l": k * 3 + rng.randrange(-5, 5),
        "sh": k + rng.randrange(5),
        "by": k + rng.randrange(3),
        "d": odd if k % 3 == 0 else number,
        "f": float(np.float32(odd if k % 5 == 0 else number / 3)),
        "dec": Decimal(int(number * 100)) / 100,
        "big": Decimal(int(number * 10)) * 10**12,
        "s": text,
        "ds": day.isoformat() if rng.random() < 0.9 else text,
        "dte": day,
        "ts": moment,
        "ntz": moment.replace(tzinfo=None),
        "b": bool(k % 2) if k % 4 < 2 else rng.random() < 0.5,
        "bin": bytes([k, rng.randrange(256)]),
        "st": {"a": k * 10 + rng.randrange(15), "n": {"s": f"q{k % 5}"}},
    }


class Conditions:
    """Draws conditions in SQL."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def __iter__(self) -> Iterator[str]:
        while True:
            yield self.condition(3)

    def condition(self, depth: int) -> str:
        rng = self.rng
        form = rng.random()
        if depth == 0 or form < 0.35:
            return self.leaf()
        one = self.condition(depth - 1)
        if form < 0.85:
            word = rng.choice(["AND", "OR"])
            return f"({one} {word} {self.condition(depth - 1)})"
        if form < 0.95:
            return f"NOT ({one})"
        other = self.condition(depth - 1)
        return rng.choice(
            [
                f"if({one}, {other}, {self.leaf()})",
                f"coalesce({one}, {other})",
                f"(({one}) <=> true)",
                f"CASE WHEN {one} THEN {other} END",
            ]
        )

    def leaf(self) -> str:
        rng = self.rng
        name = rng.choice(list(LITERALS))
        operator = rng.choice(["=", "<", "<=", ">", ">=", "<>", "<=>"])
        form = rng.random()
        if form < 0.3:
            return f"{name} {operator} {self.literal(name)}"
        if form < 0.35:
            return f"{self.literal(name)} {operator} {name}"
        if form < 0.45:
            some = [self.literal(name) for _ in range(rng.choice([1, 3, 14]))]
            null = ", NULL" if rng.random() < 0.2 else ""
            return f"{name} {self.maybe_not()}IN ({', '.join(some)}{null})"
        if form < 0.5:
            return f"{name} IS {self.maybe_not()}NULL"
        if form < 0.6:
            low, high = self.literal(name), self.literal(name)
            return f"{name} {self.maybe_not()}BETWEEN {low} AND {high}"
        if form < 0.7:
            pattern = rng.choice(
                ["v{:02}%", "v1%", "%日", "v_3%", "%1_", "v{:02}", "%"]
            )
            pattern = pattern.format(rng.randrange(N_FILES))
            return f"s {self.maybe_not()}LIKE '{pattern}'"
        name, value = rng.choice(COMPUTED)
        return f"{name} {operator} {self.filled(value)}"

    def maybe_not(self) -> str:
        return self.rng.choice(["", "", "NOT "])

    def literal(self, name: str) -> str:
        return self.filled(self.rng.choice(LITERALS[name]))

    def filled(self, value: str) -> str:
        k = self.rng.randrange(N_FILES)
        day = DAY_0 + timedelta(days=k * 20 + self.rng.randrange(25))
        moment = MOMENT_0 + timedelta(hours=k * 30 + self.rng.randrange(40))
        return value.format(
            k=k,
            i=k * 10 + self.rng.randrange(15),
            x=f"{self.rng.gauss(k, 2):.1f}",
            y=f"{self.rng.gauss(k, 2):.3f}",
            day=day.isoformat(),
            ts=moment.strftime("%Y-%m-%d %H:%M:%S"),
            w=self.rng.choice(WORDS),
        )


LITERALS: Final = {
    "i": ("{i}", "{i}", "{i}L", "'{i}'", "{x}BD", "{x}D", "NULL"),
    "l": ("{k}", "{i}", "{k}Y", "{x}BD", "'{k}'"),
    "sh": ("{k}", "{i}", "70000", "{x}BD"),
    "by": ("{k}Y", "{k}", "300", "-129"),
    "d": (
        "{x}D",
        "{x}BD",
        "{k}",
        "double('NaN')",
        "0.0D",
        "-0.0D",
        "double('Infinity')",
    ),
    "f": ("float({x})", "float('NaN')", "{x}BD", "{x}D", "{k}", "-0.0F", "{y}F"),
    "dec": ("{x}BD", "{y}BD", "{k}", "{x}D", "'{x}'"),
    "big": ("{k}000000000000", "{x}D", "{k}.5"),
    "s": ("'v{k:02}'", "'v{k:02}{w}日'", "'zz'", "''", "'v{k:02}é{w}'"),
    "dte": ("date'{day}'", "'{day}'", "date'2020-01-01' + {i}", "timestamp'{ts}'"),
    "ts": ("timestamp'{ts}'", "'{ts}'", "'{day}'", "date'{day}'", "timestamp'{ts}.5'"),
    "ntz": ("timestamp_ntz'{ts}'", "timestamp'{ts}'", "'{ts}'", "date'{day}'"),
    "b": ("true", "false", "NULL"),
    "bin": ("x'{k:02x}80'", "x'{k:02x}'", "x''"),
    "st.a": ("{i}", "{x}BD", "NULL"),
    "st.n.s": ("'q{k}'", "'q'"),
}
COMPUTED: Final = (
    *(("i + 1", "{i}"), ("i - l", "{k}"), ("i * 2", "{i}"), ("i % 3", "1")),
    *(("-i", "-{i}"), ("abs(l)", "{k}"), ("i div 10", "{k}"), ("pmod(l, 3)", "1")),
    *(("i / 10", "{x}D"), ("d + 1", "{x}D"), ("d * 2", "{x}D"), ("f * 2", "{x}D")),
    *(("dec + 1", "{x}BD"), ("dec * 2", "{x}BD"), ("dec - big", "0"), ("-d", "{x}D")),
    *(("round(dec, 1)", "{x}BD"), ("round(d)", "{k}D"), ("floor(d)", "{k}")),
    *(("ceil(dec)", "{k}"), ("signum(d)", "1D"), ("cast(i as string)", "'{i}'")),
    *(
        ("cast(d as int)", "{k}"),
        ("cast(dec as int)", "{k}"),
        ("cast(f as double)", "{x}D"),
    ),
    *(("cast(s as date)", "date'{day}'"), ("cast(ds as date)", "date'{day}'")),
    *(("cast(i as decimal(12,2))", "{i}.00BD"), ("cast(b as int)", "1")),
    *(("upper(s)", "'V{k:02}A'"), ("substring(s, 1, 3)", "'v{k:02}'")),
    *(("left(s, 2)", "'v1'"), ("right(s, 2)", "'1a'"), ("length(s)", "4")),
    *(
        ("concat(s, 'x')", "'v{k:02}ax'"),
        ("trim(s)", "'v{k:02}'"),
        ("reverse(s)", "'日{k}'"),
    ),
    *(("ltrim('v', s)", "'{k:02}a'"), ("rpad(s, 5, 'x')", "'v{k:02}xx'")),
    *(
        ("instr(s, 'a')", "4"),
        ("locate('a', s)", "4"),
        ("replace(s, 'v', 'w')", "'w{k:02}'"),
    ),
    *(
        ("lower(s)", "'v{k:02}b'"),
        ("ascii(s)", "118"),
        ("repeat(s, 2)", "'v{k:02}v{k:02}'"),
    ),
    *(
        ("year(dte)", "2020"),
        ("month(dte)", "{k}"),
        ("day(dte)", "{k}"),
        ("quarter(dte)", "2"),
    ),
    *(("trunc(dte, 'month')", "date'2020-03-01'"), ("trunc(dte, 'year')", "'{day}'")),
    *(("date_add(dte, 3)", "date'{day}'"), ("dte - 7", "date'{day}'")),
    *(
        ("datediff(dte, date'2020-01-01')", "{i}"),
        ("last_day(dte)", "date'2020-03-31'"),
    ),
    *(("add_months(dte, 1)", "date'{day}'"), ("dte + interval 1 month", "date'{day}'")),
    *(("dayofweek(dte)", "3"), ("weekofyear(dte)", "{k}"), ("dayofyear(dte)", "{i}")),
    *(("cast(ts as date)", "date'2020-01-05'"), ("unix_date(dte)", "18300")),
    *(
        ("to_date(ts)", "'2020-01-05'"),
        ("date_trunc('day', ts)", "timestamp'2020-01-05'"),
    ),
    *(("date_trunc('month', ts)", "timestamp'2020-01-01'"), ("hour(ts)", "{k}")),
    *(("minute(ts)", "0"), ("second(ts)", "0"), ("cast(ts as string)", "'{ts}'")),
    *(("cast(ts as bigint)", "1578000000"), ("unix_timestamp(ts)", "1578000000")),
    *(
        ("date_format(ts, 'yyyyMM')", "'202001'"),
        ("date_format(dte, 'yyyyMMdd')", "'20200{k:03}'"),
    ),
    *(("int(date_format(dte, 'yyyyMMdd'))", "20200315"), ("hour(ntz)", "{k}")),
    *(
        ("ts + interval 3 hours", "timestamp'{ts}'"),
        ("ts - interval 2 days", "timestamp'{ts}'"),
    ),
    *(
        ("ntz + interval 26 hours", "timestamp_ntz'{ts}'"),
        ("cast(ntz as timestamp)", "timestamp'{ts}'"),
    ),
    *(
        ("dateadd(HOUR, 3, ts)", "timestamp'{ts}'"),
        ("cast(dte as timestamp)", "timestamp'{ts}'"),
    ),
    *(("coalesce(i, 0)", "0"), ("nvl(l, 7)", "{k}"), ("nullif(i, 3)", "{i}")),
    *(("coalesce(dte, date'2020-05-01')", "date'{day}'"), ("nanvl(d, 1D)", "{x}D")),
    *(("if(b, i, l)", "{i}"), ("if(i > 50, 1, 0)", "1"), ("greatest(i, 60)", "{i}")),
    *(("least(i, l, 20)", "{k}"), ("greatest(d, 3D)", "{x}D"), ("st.a + 1", "{i}")),
    *(
        ("CASE WHEN i < 30 THEN 'x' WHEN b THEN 'y' ELSE s END", "'x'"),
        ("upper(st.n.s)", "'Q1'"),
    ),
    *(("isnan(d)", "true"), ("isnan(f)", "false"), ("b", "true"), ("i > 50", "b")),
    *(
        ("startswith(s, 'v0')", "true"),
        ("contains(s, '日')", "false"),
        ("s", "upper(s)"),
    ),
    *(("i", "l"), ("d", "f"), ("dte", "cast(ts as date)"), ("s", "ds"), ("l", "sh")),
    *(
        ("rlike(s, '^v0')", "true"),
        ("hash(i)", "{k}"),
        ("make_date(2020, sh, 1)", "date'{day}'"),
    ),
    *(("(i, s)", "(3, 'v00a')"), ("char_length(s)", "3"), ("bit_length(s)", "24")),
)
"""Computed values, and what they may be compared with."""
