"""The catalogue of conditions, asked of Spark again: in any zone, ANSI mode on and off.

A part is a table: Spark says what its conditions are for each row, and plans of the
text, of the final conditions and of a ``Column``, and all engines, have to agree.
Other parts draw conditions: literals that may be cast to NULL, calls of all functions
of Spark, and long texts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skipindex as sx
from ssb.session import local_session
from tests.conditions.catalogue.by_spark import frame_of, is_taken, said, session
from tests.conditions.catalogue.entries import BASE, FAILS, VARIES, entries
from tests.conditions.catalogue.judges import is_part, plan_wrong, wrong
from tests.conditions.catalogue.tables import CASTS, MADE, table_of
from tests.heavy.catalogue import Told, rounds
from tests.rebase import REBASE
from tests.spark.catalyst.final import final_conditions, final_plan
from tests.spark.versions import FAILED

ZONES: Final = (
    *("UTC", "+05:30", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"),
    *("Pacific/Apia", "Australia/Lord_Howe", None),
)
"""None is a zone that plans are not told."""
UNTOLD: Final = "Asia/Tokyo"
_N: Final = 40
"""Conditions of a case."""

LITERALS: Final = (
    *("'2020-02-30'", "'x'", "'2020-01-01'", "'1.5'", "'1'", "''", "'NaN'", "'true'"),
    *("'99999999999999999999'", "'2020-01-01 24:00:00'", "'2020-01-01 12:00:00'"),
    *("'0000-01-01'", "'2020-1-1'", "' 1 '", "'1e400'", "NULL", "CAST(NULL AS INT)"),
    *("CAST('x' AS DATE)", "TRY_CAST('x' AS INT)", "CAST(300 AS TINYINT)", "1 / 0"),
    *("make_date(2020, 2, 30)", "CAST('2020-02-30' AS TIMESTAMP)", "X'31'", "1"),
    "TRUE",
)
"""Many of them are NULL where they are cast without ANSI mode, or may be."""
FORMS: Final = (
    *("{c} = {v}", "{c} <> {v}", "{c} < {v}", "{c} >= {v}", "{c} <=> {v}"),
    *("NOT ({c} = {v})", "NOT ({c} <> {v})", "NOT ({c} > {v})", "NOT ({c} <=> {v})"),
    *("{c} IS DISTINCT FROM {v}", "{c} IS NOT DISTINCT FROM {v}"),
    *("NOT ({c} IS DISTINCT FROM {v})", "{v} IS DISTINCT FROM {c}"),
    *("{c} IN ({v})", "{c} NOT IN ({v})", "{c} IN ({v}, NULL)", "NOT {c} IN ({v})"),
    *("{c} BETWEEN {v} AND {v}", "{c} NOT BETWEEN {v} AND {v}"),
    *("({c} = {v}) IS NULL", "({c} <> {v}) IS TRUE", "({c} = {v}) IS NOT TRUE"),
    *("({c} <=> {v}) IS NOT TRUE", "({c} <=> {v}) = FALSE", "({c} < {v}) <=> FALSE"),
    *("({c} <=> {v}) IS NULL", "({c}, 1) IN (({v}, 1))", "({c}, 1) NOT IN (({v}, 1))"),
    *("CASE WHEN {c} = {v} THEN 1 ELSE 2 END = 2", "nullif({c}, {v}) IS NULL"),
    *("CASE WHEN {c} <=> {v} THEN 1 ELSE 2 END = 2", "if({c} <=> {v}, FALSE, TRUE)"),
    *("CASE {c} WHEN {v} THEN 1 END IS NULL", "coalesce({c}, {v}) IS NULL"),
    *("NOT ({c} <=> {v}) AND {c} IS NULL", "coalesce({c} IS DISTINCT FROM {v}, TRUE)"),
    *("NOT CASE WHEN {c} <=> {v} THEN TRUE ELSE FALSE END", "nvl({c} <> {v}, FALSE)"),
)
ARGUMENTS: Final = (
    *("i", "l", "y", "d", "f", "dec", "big", "s", "bin", "b", "dt", "ts", "ntz", "st"),
    *("arr", "m", "st.x", "1", "2", "0", "-1", "1.5", "'a'", "'b'", "''", "NULL"),
    *("TRUE", "'yyyy'", "'year'", "'UTC'", "DATE '2020-01-01'", "'$.a'", "1D", "'%a'"),
    *("TIMESTAMP '2020-01-01 00:00:00'", "x -> x > 1", "(x, y) -> x", "X'61'"),
    "array(1, 2)",
)
_LARGE: Final = {
    *("repeat", "space", "lpad", "rpad", "array_repeat", "sequence", "randstr"),
    "array_insert",
}
"""Functions that make gigabytes of a large number."""
_LESS: Final = {
    # Without ANSI mode Spark compares the dates as text, and plans say nothing of the
    # text of days that its old formatter shows otherwise.
    "dt IN ('2020-01-01')",
    # A plan for the text knows that a column is hidden, and that the rest is not.
    "CASE WHEN _metadata.file_size > 0 THEN i ELSE 0 END = 1",
    "i = TRY_CAST('1' AS INT)",
    # The interval is one of months, days and microseconds.
    "ts + make_interval(0, 0, 1, 2) = TIMESTAMP '2020-01-10 00:00:00'",
    "dt + make_interval(0, 0, 1, 2) = DATE '2020-01-10'",
}
"""Texts whose plans skip more than those for what Spark hands over."""
_ENDS: Final = ("0001-01-01", "9999-12-31")
"""In some zones their instants are of years that Python has not: of a text a plan has
their numbers, and of what Spark hands over no literal."""
LONG: Final = (
    "(" * 300 + "i = 1" + " AND l > -9)" * 300,
    "NOT (" * 301 + "i = 1" + ")" * 301,
    "(" * 300
    + "i = 1"
    + "".join(" AND l = 1)" if k % 2 else " OR y = 1)" for k in range(300)),
    "i" + " + 1" * 100 + " = 101",
    " OR ".join(f"i = {k}" for k in range(300)),
    "s" + " || 'x'" * 50 + " = 'a'",
    "coalesce(" * 30 + "i" + ", 1)" * 30 + " = 1",
    "CASE " + " ".join(f"WHEN i = {k} THEN 'n{k}'" for k in range(200)) + " END = 'n7'",
)


def casts(rng: random.Random) -> list[str]:
    """A form, a column and a literal each."""
    pairs = zip(rng.choices([*CASTS], k=_N), rng.choices(LITERALS, k=_N), strict=True)
    return [rng.choice(FORMS).format(c=c, v=v) for c, v in pairs]


def calls(rng: random.Random) -> list[str]:
    """Calls of Spark's functions with drawn arguments, of which few fit their types."""
    spark = _session()
    names = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()} - _LARGE
    frame = frame_of(spark, "every")
    found: list[str] = []
    usable = sorted(name for name in names if name.isidentifier())
    while len(found) < _N:
        some = rng.choices(ARGUMENTS, k=rng.choice((0, 1, 1, 2, 2, 3)))
        call = f"{rng.choice(usable)}({', '.join(some)})"
        if is_taken(frame, f"{call} IS NOT NULL"):
            other = rng.choice(("1", "'a'", "i", "TRUE", "0.5"))
            forms = ("{0}", "{0} = {1}", "{0} IS NOT NULL", "NOT ({0} > {1})")
            found += [form.format(call, other) for form in forms]
    return found


DRAWN: Final[Mapping[str, tuple[str, Callable[[random.Random], list[str]]]]] = {
    "drawn casts": ("casts", casts),
    "drawn calls": ("every", calls),
    "long texts": ("every", lambda rng: rng.sample(LONG, 3)),
}
"""Parts that draw conditions on a table."""


def listed(table: str, rng: random.Random) -> list[str]:
    """Conditions of the catalogue."""
    every = [one.text for one in entries(table)]
    return rng.sample(every, min(_N, len(every)))


def cases(seed: int, first: int, parts: Sequence[str]) -> Iterator[Told]:
    """Some conditions of a part, in one session."""
    known = {name: name for name in (*MADE, *DRAWN)}
    for part, one, only in rounds(known, seed, first, parts):
        rng = random.Random(f"{part} {one}")
        table, make = DRAWN.get(part, (part, None))
        texts = listed(part, rng) if make is None else make(rng)
        zone, ansi = rng.choice(ZONES), rng.random() < 0.5
        n, troubles = check(table, texts, zone, ansi=ansi)
        yield Told(n, "\n".join(troubles), only)


def check(
    table: str, texts: Sequence[str], zone: str | None, *, ansi: bool
) -> tuple[int, list[str]]:
    """How many answers were compared with what Spark says, and what was wrong."""
    spark, troubles, n = _session(), [], 0
    told = zone or UNTOLD
    found = said(spark, table, told, texts, ansi=ansi)
    known = {one.text: one for one in entries(table) if one.zone == zone}
    for text, truth in found.items():
        where = f"{table}: {text}\n    in {zone}, {'' if ansi else 'not '}ANSI, "
        with session(spark, told, ansi=ansi):
            plans = plans_of(frame_of(spark, table), table_of(table), text, zone)
        fewest = {*plans["text"].paths}
        for name, plan in plans.items():
            n += 1
            part = name.startswith("final") and is_part(text)
            trouble = ""
            if truth not in {FAILS, VARIES}:
                trouble = plan_wrong(table, plan, truth, is_part=part)
            more = {*plan.paths} - fewest
            is_less = text in _LESS or any(end in text for end in _ENDS)
            if more and not trouble and table == "every" and not is_less:
                trouble = f"reads {len(more)} files more than the plan of the text"
            if trouble:
                troubles.append(f"{where}{name}: {trouble}")
        entry = known.get(text)
        if entry is not None:
            n += 1
            if not ansi and truth != entry.truths[BASE]:
                troubles.append(f"{where}Spark says {truth}: {entry.truths[BASE]}")
            troubles += wrong(entry, is_whole=True)
    return n, troubles


def plans_of(
    frame: DataFrame, table: sx.Table, text: str, zone: str | None
) -> dict[str, sx.Plan]:
    """The plan of a text, and those of what Spark makes of it."""
    plans = {"text": table.plan(text, timezone=zone)}
    plans["text"].explain()
    try:
        final = final_conditions(frame.where(text))
        plans["Column"] = table.plan(sf.expr(text), timezone=zone)
    except FAILED:  # what it folds fails
        return plans
    if final is not None:
        plans[f"final conditions {final.text!r}"] = final_plan(
            table, final, zone=zone or UNTOLD
        )
    return plans


@cache
def _session() -> SparkSession:
    conf = {"spark.sql.shuffle.partitions": "2", **REBASE}
    spark = local_session("conditions", cores=2, memory="2g", conf=conf)
    spark.sparkContext.setLogLevel("OFF")  # many conditions fail, and are meant to
    return spark
