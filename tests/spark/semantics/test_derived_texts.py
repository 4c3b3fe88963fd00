"""Partitions made of a time in a text: the folders, and the truth, are Spark's.

Texts of the pattern and others are drawn, so are conditions on them; a folder with a
matching row is never left out.  Of texts in a pattern, folders are left out exactly.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from tests.spark.pruning.scans import files_of_run, rows_of
from tests.spark.reading.whole import (
    INTERPRETED,
    ZONE,
    check_counts,
    counts_by_file,
    is_taken,
    settings,
)
from tests.spark.versions import frame_of
from tests.tables import build, put

pytestmark = pytest.mark.spark

PARTS = ("year", "month", "day", "hour")
NULL = "__HIVE_DEFAULT_PARTITION__"
LAX = {
    **INTERPRETED,
    "spark.sql.ansi.enabled": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
}
PATTERNS = {
    "yyyy": "%Y",
    "yyyyMM": "%Y%m",
    "yyyyMMdd": "%Y%m%d",
    "yyyy-MM-dd": "%Y-%m-%d",
    "yyyy/MM/dd": "%Y/%m/%d",
    "yyyy-MM-dd HH": "%Y-%m-%d %H",
    "yyyy-MM-dd HH:mm:ss": "%Y-%m-%d %H:%M:%S",
    "yyyyMMddHHmmss": "%Y%m%d%H%M%S",
    "yyyy-MM-dd'T'HH:mm:ss": "%Y-%m-%dT%H:%M:%S",
    "yyyy-MM-dd HH:mm:ss.SSS": "%Y-%m-%d %H:%M:%S.%f",
}
"""The same for Spark and for Python."""
CORNERS = [
    *("2022-11-30 12:00:00", "2022-12-01 00:00:00", "2021-12-31 23:59:59"),
    *("2022-02-05 01:02:03", "2022-10-09 09:30:00", "2024-02-29 23:00:00"),
    *("2024-03-10 02:30:00", "2024-11-03 01:30:00", "2011-12-30 10:00:00"),
    *("1999-01-01 00:00:00", "1000-01-01 00:00:00", "2399-12-31 23:59:59"),
    *("1582-10-10 05:00:00", "0999-06-07 08:09:10", "0001-01-01 00:00:00"),
    *("1969-12-31 23:59:59", "1970-01-01 00:00:00"),
]
MOMENTS = [datetime.fromisoformat(corner) for corner in CORNERS]
ODD = [
    *("9999-12-31 23:59:59", "9999-12-31", "99991231", "9999"),
    *("", " ", "zzz", "2022", "2022-1", "2022-11", "2022-1-5", "2022-2-5 1:2:3"),
    *("+2022-11-30", "-2022-11-30", "02022-11-30", "+12022-11-30 12:00:00"),
    *("\x7f2022-11-30\x7f", "\t2022-11-30 12:00:00\n", " 2022-12-01", "2022-1\x7f"),
    *("2022-11-30 23:30:00-05:00", "2022-11-30 00:30:00Z", "2022-11-30T12:00:00+18:00"),
    *("2022-11-30 22:00:00 America/Los_Angeles", "2022-11-30Tnoon", "T12:30", "12:30"),
    *("1:2", "2022-02-30", "2022-13-01", "2022-11-30 24:00:00", "2022-11-30t12:00:00"),
    *("0000-01-01", "12022-11-30", "2022-11-30 12:00:00.1", "2022-11-30 12:00:00 "),
    *("20221130x", "2022-11-30 12:00:60", "é", "2022\u201311"),
    *("1969-12-31 23:59:59.500", "1969-12-31 23:59:58.500"),
]


def written(moment: datetime, form: str) -> str:
    """A text as Spark's pattern has it: years of four digits, milliseconds."""
    text = moment.strftime(form.replace("%Y", f"{moment.year:04}"))
    return text[:-3] if form.endswith("%f") else text


def seconds(moment: datetime) -> int:
    """Seconds since 1970, in UTC."""
    return round(moment.replace(tzinfo=UTC).timestamp())


def drawn_texts(rng: random.Random, n: int) -> list[str | None]:
    """Texts of all patterns, some with a fault, and odd ones."""
    found: list[str | None] = [None, *ODD]
    for _ in range(n):
        moment = rng.choice(MOMENTS)
        if 1000 < moment.year < 9999 and rng.random() < 0.7:
            moment += timedelta(days=rng.randint(0, 40), seconds=rng.randint(-60, 60))
        text = written(moment, rng.choice(list(PATTERNS.values())))
        if rng.random() < 0.3:
            faults = (
                f"{text} ",
                f" {text}",
                text[:-1],
                f"{text}Z",
                text.replace("-0", "-"),
            )
            text = rng.choice(faults)
        # A date of such a year is none that Spark can make a time of.
        year = re.match(r"\s*(\d{6,7})(?!\d)", text)
        if year is None or int(year[1]) < 290_000:
            found.append(text)
    return list(dict.fromkeys(found))


def declarations() -> dict[str, dict[str, str]]:
    """What partitions are made of, by what is read."""
    reads = ["dt", "to_date(dt)"]
    reads += [f"CAST(dt AS {kind})" for kind in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")]
    for pattern in PATTERNS:
        functions = "to_timestamp", "to_timestamp_ntz", "to_date"
        reads += [f"{name}(dt, {literal(pattern)})" for name in functions]
    found = {}
    for read in reads:
        n = 3 if "to_date" in read or "AS DATE" in read else 4
        found[read] = {part: f"{part}({read})" for part in PARTS[:n]}
        shown = "yyyy-MM-dd" if n == 3 else "yyyy-MM-dd HH"
        found[f"shown {read}"] = {"p": f"date_format({read}, '{shown}')"}
    pieces = {"year": (1, 4), "month": (6, 2), "day": (9, 2)}
    found["pieces"] = {k: f"substring(dt, {a}, {n})" for k, (a, n) in pieces.items()}
    return found


def literal(text: str) -> str:
    """A text in SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def drawn_conditions(
    rng: random.Random, texts: Sequence[str | None], n: int
) -> list[str]:
    """Conditions on the text, and on functions of it."""
    known = [text for text in texts if text]
    patterns = [literal(pattern) for pattern in PATTERNS]

    def some() -> str:
        text = rng.choice(known)
        return literal(text[: rng.choice([4, 7, 8, 10, 99, 99])])

    def operator() -> str:
        return rng.choice(["<", "<=", ">", ">=", "=", "!=", "<=>"])

    def condition() -> str:
        moment, pattern = rng.choice(MOMENTS), rng.choice(patterns)
        at = f"{moment.year:04}" + moment.strftime("-%m-%d %H:%M:%S")
        forms = [
            f"dt {operator()} {some()}",
            f"dt {operator()} {some()}",
            f"dt = {literal(rng.choice(known))}",
            f"dt BETWEEN {some()} AND {some()}",
            f"dt IN ({some()}, {some()}, {some()})",
            f"dt NOT IN ({some()}, {some()})",
            f"dt LIKE {some()[:-1]}%'",
            f"substring(dt, 1, {rng.choice([4, 7, 10])}) {operator()} {some()}",
            f"substring(dt, 6, 2) = '{at[5:7]}'",
            f"to_timestamp(dt, {pattern}) {operator()} TIMESTAMP '{at}'",
            f"to_timestamp_ntz(dt, {pattern}) {operator()} TIMESTAMP_NTZ '{at}'",
            f"to_date(dt, {pattern}) {operator()} DATE '{at[:10]}'",
            f"unix_timestamp(dt, {pattern}) {operator()} {seconds(moment)}",
            f"to_date(dt) {operator()} DATE '{at[:10]}'",
            f"CAST(dt AS TIMESTAMP) {operator()} TIMESTAMP '{at}'",
            f"CAST(dt AS TIMESTAMP_NTZ) {operator()} TIMESTAMP_NTZ '{at}'",
            f"year(dt) {operator()} {moment.year}",
            f"month(to_date(dt, {pattern})) = {moment.month}",
            f"hour(dt) {operator()} {moment.hour}",
            f"year(to_timestamp(dt, {pattern})) {operator()} {moment.year}",
            f"date_format(dt, 'yyyy-MM') {operator()} '{at[:7]}'",
            f"date_format(to_timestamp(dt, {pattern}), 'yyyyMM') = '{at[:4]}{at[5:7]}'",
            "dt IS NULL",
            f"to_date(dt, {pattern}) IS NULL",
        ]
        return rng.choice(forms)

    found = [condition() for _ in range(n)]
    found += [f"NOT ({one})" for one in found[: n // 8]]
    pairs = zip(found[::5], found[1::5], strict=False)
    return [*found, *(f"({a}) {rng.choice(['AND', 'OR'])} ({b})" for a, b in pairs)]


def told(
    spark: SparkSession, frame: DataFrame, terms: Sequence[str], zone: str
) -> list[list[str | None]]:
    """The values of terms for every row, as texts, by one query."""
    some = [f"CAST({term} AS STRING) AS c{i}" for i, term in enumerate(terms)]
    with settings(spark, {ZONE: zone, **LAX}):
        lines = frame.selectExpr(*some).collect()
    return [[line[i] for line in lines] for i in range(len(terms))]


def folders_of(
    names: Sequence[str], columns: Sequence[Sequence[str | None]]
) -> Mapping[str, list[int]]:
    """The rows of every folder."""
    found = defaultdict(list)
    for row, values in enumerate(zip(*columns, strict=True)):
        texts = [NULL if not v else quote(v, safe=" -+") for v in values]
        found["/".join(map("{}={}".format, names, texts))].append(row)
    return found


def sweep(
    spark: SparkSession,
    folder: Path,
    zones: Sequence[str | None],
    *,
    seed: int,
    n: int,
    every: int = 1,
) -> tuple[int, int]:
    """How many plans were right, and how many folders they left out."""
    rng = random.Random(seed)
    texts = drawn_texts(rng, 2 * n)
    conditions = drawn_conditions(rng, texts, n)
    frame = frame_of(spark, pa.table({"dt": pa.array(texts, pa.string())})).coalesce(1)
    asked = {zone: told(spark, frame, conditions, zone) for zone in ("UTC", "+06:00")}
    declared = dict(list(declarations().items())[seed % every :: every])
    right = left_out = 0
    for zone in zones:
        terms = [term for made in declared.values() for term in made.values()]
        values = dict(
            zip(terms, told(spark, frame, terms, zone or "Asia/Tokyo"), strict=True)
        )
        for k, (read, made) in enumerate(declared.items()):
            rows_of = folders_of(list(made), [values[term] for term in made.values()])
            place = folder / f"{zone}".replace("/", "-") / f"{k}"
            for name, rows in rows_of.items():
                mine = pa.array([texts[row] for row in rows], pa.string())
                put(place / name / "f.parquet", {"dt": mine}, write_statistics=False)
            table = sx.open_table(place, derived=sx.Derived(made, zone))
            for session, truths in asked.items():
                for condition, holds in zip(conditions, truths, strict=True):
                    plan = table.plan(condition, timezone=session)
                    kept = {path.rpartition("/")[0] for path in plan.paths}
                    for name, rows in rows_of.items():
                        if name not in kept:
                            wrong = [texts[r] for r in rows if holds[r] == "true"]
                            where = (
                                f"{condition} in {session}; {read} in {zone}: {name}"
                            )
                            assert not wrong, f"{where} {wrong}"
                    right += 1
                    left_out += len(rows_of) - len(kept)
    return right, left_out


def test_no_folder_with_a_matching_text_is_left_out(
    spark: SparkSession, tmp_path: Path
) -> None:
    right, left_out = sweep(spark, tmp_path, ["UTC"], seed=7, n=20, every=18)
    assert right > 200
    assert left_out > 300


def judged(
    spark: SparkSession, folder: Path, policy: str, *, seed: int, n: int
) -> Sequence[tuple[int, int]]:
    """The rows that may match, and that surely do; as many as Spark says, or not."""
    rng = random.Random(seed)
    texts = drawn_texts(rng, n)
    conditions = [
        *drawn_conditions(rng, texts, n),
        *("concat(i, dt) = '12022'", "i || '-' || i > '2-2'", "concat(i) LIKE '%2'"),
        *("lpad(i, 3, '0') = '002'", "rpad(i, 1, 'x') >= '3'", "concat(i, NULL) = '1'"),
        *(
            "year(dt) + i = 2023",
            "date_add(dt, 1) = DATE '2022-12-01'",
            "quarter(dt) = 1",
        ),
        *(f"unix_timestamp(dt, 'yyyy-MM-dd HH:mm:ss.SSS') = {n}" for n in (0, -1, -2)),
        *("last_day(dt) > DATE '2022-11-30'", "datediff(dt, DATE '2022-01-01') = 333"),
        *(
            "date_format(dt, 'yyyy/MM/dd HH:mm:ss.SSS') > '2022/11/30 12'",
            "minute(dt) = 30",
        ),
    ]
    numbers = [i % 7 - 2 for i in range(len(texts))]
    table = pa.table(
        {"dt": pa.array(texts, pa.string()), "i": pa.array(numbers, "int32")}
    )
    for k in range(5):
        put(folder / f"{k}.parquet", table.slice(k * len(texts) // 5, len(texts) // 5))
    built = build(folder, {"*": "bitmap"})
    spark.sparkContext.setLogLevel("OFF")  # old settings overflow, and are meant to
    options = {**LAX, ZONE: "UTC", "spark.sql.legacy.timeParserPolicy": policy}
    with settings(spark, options):
        said = counts_by_file(spark.read.parquet(str(folder)), conditions)
    found = []
    for condition, counts in zip(conditions, said, strict=True):
        if counts is not None:
            plan = built.plan(condition, timezone="UTC")
            check_counts(plan, counts, f"{condition} ({policy})")
            found.append(plan.count_bounds)
    assert len(found) > 0.8 * len(said)
    return found


@pytest.mark.few(1)
@pytest.mark.parametrize("policy", ["CORRECTED", "LEGACY"])
def test_functions_of_texts_are_judged_row_by_row(
    spark: SparkSession, tmp_path: Path, policy: str
) -> None:
    found = judged(spark, tmp_path, policy, seed=3, n=60)
    assert sum(low == high for low, high in found) > 20


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["CORRECTED", "LEGACY"])
@pytest.mark.parametrize("seed", range(4))
def test_many_functions_of_texts_are_judged_row_by_row(
    spark: SparkSession, tmp_path: Path, policy: str, seed: int
) -> None:
    found = judged(spark, tmp_path, policy, seed=seed + 10, n=300)
    assert sum(low == high for low, high in found) > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_folder_is_left_out_in_any_zone(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    zones = ["UTC", "+06:00", "America/New_York", "Pacific/Apia", None]
    right, left_out = sweep(spark, tmp_path, zones, seed=seed, n=60, every=4)
    print(f"{right} plans right, {left_out} folders left out")
    assert right > 5000
    assert left_out > 20000


def queried(spark: SparkSession, folder: Path, *, seed: int, n: int) -> tuple[int, int]:
    """How many queries of a catalog's table were right, and the files they left out.

    Half of the partitions were moved, some into folders that are named as others are.
    """
    rng = random.Random(seed)
    pattern = rng.choice([p for p in PATTERNS if "d" in p])
    texts = drawn_texts(rng, 2 * n)
    conditions = drawn_conditions(rng, texts, n)
    zone = rng.choice(["UTC", "+06:00", "America/New_York"])
    read = f"to_timestamp_ntz(dt, {literal(pattern)})"
    parts = ", ".join(f"{part}({read}) AS {part}" for part in PARTS[:3])
    frame = frame_of(spark, pa.table({"dt": pa.array(texts, pa.string())}))
    frame.coalesce(1).selectExpr("dt").createOrReplaceTempView("drawn")
    with settings(spark, {ZONE: zone, **LAX, "spark.sql.ansi.enabled": "false"}):
        spark.sql("DROP TABLE IF EXISTS moved")
        spark.sql(
            "CREATE TABLE moved (dt STRING, year INT, month INT, day INT) "
            "USING parquet PARTITIONED BY (year, month, day) "
            f"LOCATION 'file:{folder}/moved' TBLPROPERTIES ("
            "'skipindex.time.field' = 'dt', "
            f"'skipindex.time.format' = {literal(pattern)})"
        )
        spark.sql(f"INSERT INTO moved SELECT dt, {parts} FROM drawn")
        names = [row[0] for row in spark.sql("SHOW PARTITIONS moved").collect()]
        known = [name for name in names if NULL not in name]
        moved = rng.sample(known, len(known) // 2)
        others = rng.sample(known, len(moved))
        for name, other in zip(moved, others, strict=True):
            place = folder / "others" / other
            place.parent.mkdir(parents=True, exist_ok=True)
            (folder / "moved" / name).rename(place)
            spec = ", ".join(name.split("/"))
            spark.sql(
                f"ALTER TABLE moved PARTITION ({spec}) SET LOCATION 'file:{place}'"
            )
        right = left_out = 0
        for condition in conditions:
            text = f"SELECT dt, year, month, day FROM moved WHERE {condition}"
            if not is_taken(spark.table("moved"), condition):
                continue
            whole = rows_of(spark.sql(text))
            sx.enable(spark)
            pruned = spark.sql(text)
            found = rows_of(pruned)
            sx.disable(spark)
            assert found == whole, f"{condition} in {zone}: {pattern}"
            right += 1
            left_out += len(names) - files_of_run(pruned)
        spark.sql("DROP TABLE moved")
    return right, left_out


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_queries_find_the_rows_of_moved_partitions(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    right, left_out = queried(spark, tmp_path, seed=seed, n=8)
    assert right > 5
    assert left_out > 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 14))
def test_many_queries_find_the_rows_of_moved_partitions(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    right, left_out = queried(spark, tmp_path, seed=seed, n=60)
    print(f"{right} queries right, {left_out} files left out")
    assert right > 50
    assert left_out > 100
