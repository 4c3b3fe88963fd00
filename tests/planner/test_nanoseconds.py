"""Nanoseconds, as pandas writes its times, for readers that take them for times."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from math import floor, trunc
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.expressions.domain import INT64_MAX, INT64_MIN, Domain, domain_of
from tests.tables import build, kept, put_all

WALL, INSTANT = pa.timestamp("ns"), pa.timestamp("ns", "UTC")
EPOCH: Final = datetime(1970, 1, 1)
DAY: Final = 86_400 * 10**9
HOUR: Final = 3600 * 10**9
NEW_YEAR: Final = 1_704_067_200 * 10**9
"""2024-01-01."""


def files(*columns: Sequence[int | None], dtype: pa.DataType = WALL) -> list[pa.Table]:
    return [pa.table({"v": pa.array(values, dtype)}) for values in columns]


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> sx.Table:
    """Four days of January 2024, an hour of each in each file."""
    hours = [[NEW_YEAR + d * DAY + h * HOUR for h in range(10)] for d in range(4)]
    folder = tmp_path_factory.mktemp("days")
    return build(put_all(folder, files(*hours)), {"v": "bitmap"})


FOUND: Final[Mapping[str, str]] = {
    "v >= '2024-01-03'": "23",
    "v < '2024-01-02 00:00:00'": "0",
    "v > DATE '2024-01-03'": "23",
    "v <= DATE '2024-01-02'": "01",
    "v = TIMESTAMP '2024-01-02 03:00:00'": "1",
    "v = '2024-01-02 03:30:00'": "",
    "v BETWEEN '2024-01-02' AND '2024-01-03'": "12",
    "v IN (DATE '2024-01-02', DATE '2025-01-01')": "1",
    "NOT (v < '2024-01-04')": "3",
    "v IS NOT DISTINCT FROM DATE '2024-01-03'": "2",
    "v <> DATE '2024-01-03'": "0123",
    "v NOT IN (DATE '2024-01-03')": "0123",
    "CAST(v AS DATE) = DATE '2024-01-02'": "1",
    "to_date(v) > DATE '2024-01-02'": "23",
    "CAST(v AS TIMESTAMP) < TIMESTAMP '2024-01-02 00:00:00'": "0",
    "year(v) = 2023": "",
    "month(v) = 1 AND day(v) = 3": "2",
    "hour(v) = 11": "",
    "date_trunc('DAY', v) = TIMESTAMP '2024-01-04 00:00:00'": "3",
    "coalesce(v, v) < '2024-01-02'": "0",
    "CASE WHEN v < '2024-01-02' THEN v END IS NOT NULL": "0",
    "greatest(v, v) >= '2024-01-04'": "3",
    f"v >= {NEW_YEAR + 3 * DAY}": "3",
    f"v IN ({NEW_YEAR}, {NEW_YEAR + 1})": "0",
    "v > 1e30": "",
    "v IS NULL": "",
}
"""Conditions, and the files that have to be read."""


@pytest.mark.parametrize("condition", FOUND)
def test_conditions_on_time_skip_files(days: sx.Table, condition: str) -> None:
    plan = days.plan(condition, timezone="UTC")
    assert "".join(path[0] for path in plan.paths) == FOUND[condition]
    assert " int " not in plan.explain()


@pytest.mark.parametrize(
    "condition",
    [
        "v = 'yesterday'",
        "v = '5'",
        "v = TRUE",
        "v = X'00'",
        "v IN ('2024-01-02', '2024-01-03')",
        "v IN (DATE '2024-01-02', 5)",
        "v LIKE '2024%'",
        "v + 1 > 5",
        "abs(v) > 5",
        "v + INTERVAL 1 DAY > DATE '2030-01-01'",
        "CAST(v AS BIGINT) < 5",
        "CAST(v AS STRING) = 'x'",
        "concat(v, 'x') = 'x'",
        "coalesce(v, 5) < 5",
        "datediff(v, v) > 5",
        "CASE WHEN v > 5 THEN year(v) ELSE month(v) END > 2100",
    ],
)
def test_what_readers_take_for_several_values_is_not_judged(
    days: sx.Table, condition: str
) -> None:
    plan = days.plan(condition, timezone="UTC")
    assert len(plan.paths) == 4
    (reason,) = {one.reason for one in plan.conditions}
    assert "int column" not in reason
    assert "nanoseconds" in reason or "as a different one" in reason


def test_times_without_a_zone_ask_for_the_zone(tmp_path: Path) -> None:
    """Of a column of instants; a wall clock needs none beside a text."""
    folders = {dtype: tmp_path / str(dtype.tz) for dtype in (WALL, INSTANT)}
    tables = {
        dtype: build(put_all(folder, files([0], [DAY], dtype=dtype)), {"v": "bitmap"})
        for dtype, folder in folders.items()
    }
    condition = "v < '1970-01-01 12:00:00'"
    assert kept(tables[WALL], condition) == ["0.parquet"]
    assert len(kept(tables[INSTANT], condition)) == 2
    assert "timezone=" in tables[INSTANT].plan(condition).explain()
    assert kept(tables[INSTANT], condition, timezone="UTC") == ["0.parquet"]
    assert len(kept(tables[INSTANT], condition, timezone="-18:00")) == 2
    assert kept(tables[INSTANT], condition, timezone="Europe/Rome") == ["0.parquet"]
    far = "v < '1980-01-01' AND v <> '1975-01-01'"
    plan = tables[INSTANT].plan(far, timezone="Europe/Rome")
    assert plan.count_bounds == (2, 2)
    assert kept(tables[INSTANT], "v > '1980-01-01'", timezone="Europe/Rome") == []
    assert kept(tables[INSTANT], "year(v) = 1971", timezone="Europe/Rome") == []


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_ends_are_infinite_times_to_duckdb(tmp_path: Path, sign: int) -> None:
    """And no literal that is beyond them wraps around."""
    values = [[sign * INT64_MAX, None], [sign * (INT64_MAX - DAY)], [0]]
    table = build(put_all(tmp_path, files(*values)), {"v": "bitmap"})
    year, beyond = (2500, ">") if sign > 0 else (1600, "<")
    within = "<" if sign > 0 else ">"
    end = ["0.parquet"]
    for value in (f"DATE '{year}-01-01'", f"'{year}-01-01'"):
        assert kept(table, f"v {beyond} {value}") == end
        assert table.plan(f"v {within} {value}").count_bounds == (0, 3)
        assert kept(table, f"v = {value}") == []
        assert kept(table, f"v IN (DATE '{year}-01-01', DATE '1970-01-01')") == [
            "2.parquet"
        ]
        assert table.plan(f"v <> {value}").count_bounds == (0, 3)
        assert len(kept(table, f"v <=> {value}")) == 3  # NULL to Polars
    far = kept(table, f"CAST(v AS DATE) {beyond} DATE '{year}-01-01'")
    assert set(far) == {"0.parquet", "1.parquet"}
    assert set(kept(table, "year(v) IS NULL")) == {"0.parquet", "1.parquet"}


def test_a_long_list_of_times_is_known_by_its_ends(days: sx.Table) -> None:
    hours = [EPOCH + timedelta(hours=h) for h in range(100)]
    listed = ", ".join(f"TIMESTAMP '{moment}'" for moment in hours)
    assert kept(days, f"v IN ({listed})", timezone="UTC") == []
    assert len(kept(days, f"v NOT IN ({listed})", timezone="UTC")) == 4


def test_files_of_clocks_and_of_instants_are_not_mixed(tmp_path: Path) -> None:
    """Numbers mean the same in both, but times are moved by a zone."""
    tables = [*files([0]), *files([0], dtype=INSTANT), pa.table({"v": [0]})]
    table = build(put_all(tmp_path, tables), {"v": "bitmap"})
    assert kept(table, "v > DATE '2000-01-01'", timezone="UTC") == ["1.parquet"]
    number = sx.Table(table.state.typed(pa.schema([("v", pa.int64())]), {}))
    build(tmp_path, {"v": "bitmap"})
    assert kept(number, "v > 5") == ["1.parquet"]


def test_to_a_session_that_reads_numbers_they_are_numbers(days: sx.Table) -> None:
    schema = pa.schema([("v", pa.int64())])
    number = sx.Table(days.state.typed(schema, {}))
    assert number.columns[0].domain == Domain("int", bits=64)
    assert kept(number, f"v + 1 <= {NEW_YEAR + 1}") == ["0.parquet"]
    assert len(kept(number, "v > '2030-01-01'")) == 4


def test_structs_have_nanoseconds_too(tmp_path: Path) -> None:
    rows = [[{"v": 0}], [{"v": DAY}], [None]]
    dtype = pa.struct([("v", WALL)])
    put_all(tmp_path, [pa.table({"s": pa.array(row, dtype)}) for row in rows])
    table = build(tmp_path, {"s.v": "bitmap"})
    assert kept(table, "s.v >= '1970-01-02'") == ["1.parquet"]


def test_they_are_shown_as_times() -> None:
    wall, instant = domain_of(WALL), domain_of(INSTANT)
    assert wall.show(1_500_000_000) == "1970-01-01 00:00:01.5"
    assert wall.show(-1) == "1969-12-31 23:59:59.999999999"
    assert instant.show(DAY) == "1970-01-02 00:00:00+00:00"
    assert wall.show(INT64_MIN) == "1677-09-21 00:12:43.145224192"
    assert wall.tag == instant.tag == domain_of(pa.int64()).tag


# --- readers ----------------------------------------------------------------

OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "<>": operator.ne,
}
READINGS: Final[Sequence[Callable[[Fraction], Fraction | int]]] = (
    lambda micros: micros,
    floor,
    trunc,
)
"""What readers compare, of microseconds: themselves, or rounded."""
N_FILES: Final = 40


def _values(rng: random.Random) -> list[int | None]:
    """The rows of one file: close together, around a whole microsecond or an end."""
    center = rng.choice(
        (0, 0, DAY, -DAY, -1000, 1000, NEW_YEAR, rng.randrange(-(2**62), 2**62) // 1000)
    )
    if rng.random() < 0.1:
        center = rng.choice((INT64_MIN, INT64_MAX, 1 - INT64_MAX, INT64_MAX - DAY))
    spread = rng.choice((1, 1000, 3000, 10**6, DAY))
    found: list[int | None] = []
    for _ in range(rng.randint(1, 3)):
        value = center + rng.randint(-spread, spread)
        value -= value % rng.choice((1, 1, 500, 1000))
        found.append(min(max(value, INT64_MIN), INT64_MAX))
    return found + [None] * (rng.random() < 0.2)


def _moment(rng: random.Random, columns: Sequence[Sequence[int | None]]) -> datetime:
    """A whole microsecond near a value, or far beyond all of them."""
    if rng.random() < 0.1:
        return datetime(rng.choice((1, 1600, 1677, 2262, 2500, 9999)), 9, 21)
    known = [value for values in columns for value in values if value is not None]
    near = rng.choice(known) // 1000 + rng.randint(-1, 2)
    moment = EPOCH + timedelta(microseconds=near)
    if rng.random() < 0.3:
        moment = datetime.combine(moment, datetime.min.time())
    return moment


def _micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def _within(moment: datetime) -> bool:
    return INT64_MIN <= 1000 * _micros(moment) <= INT64_MAX


@pytest.mark.few(4)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", [WALL, INSTANT], ids=str)
def test_the_rows_are_those_of_every_reader(
    tmp_path: Path, dtype: pa.DataType, seed: int
) -> None:
    """Possible is what one reading takes, and certain what all of them do."""
    rng = random.Random(seed)
    columns = [_values(rng) for _ in range(N_FILES)]
    table = build(put_all(tmp_path, files(*columns, dtype=dtype)), {"v": "bitmap"})
    for _ in range(30):
        sign, moment = rng.choice(list(OPERATORS)), _moment(rng, columns)
        compare = OPERATORS[sign]
        plan = table.plan(f"v {sign} '{moment}'", timezone="UTC")
        tests = [
            [
                [compare(read(Fraction(v, 1000)), _micros(moment)) for read in READINGS]
                for v in values
                if v is not None
            ]
            for values in columns
        ]
        least = [sum(map(all, rows)) * _within(moment) for rows in tests]
        most = [sum(map(any, rows)) for rows in tests]
        for i, (low, high) in _row_counts(plan).items():
            told = sign, moment, columns[i]
            assert low == least[i], told
            assert high == most[i] if _within(moment) else high >= most[i], told


def _row_counts(plan: sx.Plan) -> dict[int, tuple[int, int]]:
    """By the number of a file, how many rows certainly and possibly match."""
    names = [int(path.split(".")[0]) for path in plan.evaluation.table.paths]
    counts = plan.row_counts
    bounds = zip(counts.lower.tolist(), counts.upper.tolist(), strict=True)
    return dict(zip(names, bounds, strict=True))


def _conditions(
    rng: random.Random, columns: Sequence[Sequence[int | None]]
) -> Iterator[tuple[str, Callable[[Any], Any] | None]]:
    """Conditions in SQL, and of some the same for a column of Polars and pyarrow."""
    while True:
        sign, one = rng.choice(list(OPERATORS)), _moment(rng, columns)
        other = _moment(rng, columns)
        compare = OPERATORS[sign]
        day = one.date()
        yield f"v {sign} TIMESTAMP '{one}'", lambda v, c=compare, m=one: c(v, m)
        yield f"v {sign} DATE '{day}'", lambda v, c=compare, d=day: c(v, d)
        yield f"NOT (v {sign} TIMESTAMP '{one}')", lambda v, c=compare, m=one: ~c(v, m)
        listed = f"(TIMESTAMP '{one}', TIMESTAMP '{other}')"
        negated = rng.choice(("", "NOT "))
        yield f"v {negated}IN {listed}", None
        yield f"v IS {negated}DISTINCT FROM TIMESTAMP '{one}'", None
        low, high = sorted((one, other))
        yield f"v {negated}BETWEEN '{low}' AND '{high}'", None
        yield f"v {sign} '{one}' OR v < TIMESTAMP '{other}'", None
        yield f"CAST(v AS DATE) {sign} DATE '{day}'", None
        yield f"CAST(v AS TIMESTAMP) {sign} TIMESTAMP '{one}'", None
        yield f"year(v) {sign} {one.year}", None
        part = rng.choice(("month", "day", "hour", "quarter", "second"))
        yield f"{part}(v) {sign} {getattr(one, part, 2)}", None
        unit = rng.choice(("YEAR", "MONTH", "DAY", "HOUR", "SECOND"))
        # DuckDB before version 2 errs in the other comparisons, also of microseconds.
        safe = rng.choice(("<", ">=", "="))
        yield f"date_trunc('{unit}', v) {safe} TIMESTAMP '{one}'", None
        yield f"coalesce(v, v) {sign} TIMESTAMP '{one}'", None
        yield f"CASE WHEN v {sign} '{one}' THEN year(v) END IS {negated}NULL", None


class Readers:
    """What the readers that are installed find in the files of a folder."""

    def __init__(self, folder: Path) -> None:
        duckdb, pl = map(pytest.importorskip, ("duckdb", "polars"))
        self._failures = duckdb.Error, pl.exceptions.PolarsError
        self._column, self._of_sql = pl.col, pl.sql_expr
        self._duckdb = duckdb.connect()
        self._duckdb.execute("SET TimeZone = 'UTC'")
        self._duckdb.execute(
            "CREATE VIEW t AS SELECT v, CAST(parse_filename(filename, true) AS INT) i "
            f"FROM read_parquet('{folder}/*.parquet', filename = true)"
        )
        names = [str(i) for i in range(N_FILES)]
        tables = [pq.read_table(folder / f"{name}.parquet") for name in names]
        columns = [
            table.append_column("i", pa.array([int(name)] * len(table), pa.int64()))
            for table, name in zip(tables, names, strict=True)
        ]
        self._arrow = pa.concat_tables(columns)
        self._polars = pl.concat(
            [
                pl.read_parquet(folder / f"{name}.parquet").with_columns(
                    pl.lit(int(name)).alias("i")
                )
                for name in names
            ]
        )

    def answers(
        self, condition: str, of: Callable[[Any], Any] | None
    ) -> Iterator[tuple[str, dict[int, int]]]:
        """By reader, how many rows of each file match; readers that fail are left."""
        try:
            query = f"SELECT i, count(*) FROM t WHERE {condition} GROUP BY i"
            yield "duckdb", dict(self._duckdb.execute(query).fetchall())
        except self._failures:
            pass
        try:
            chosen = self._polars.filter(
                of(self._column("v")) if of else self._of_sql(condition)
            )
            yield "polars", dict(chosen.group_by("i").len().iter_rows())
        except self._failures:
            pass
        if of is not None:
            try:
                rows = self._arrow.filter(of(pc.field("v")))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                return
            found = rows["i"].value_counts().to_pylist()
            yield "pyarrow", {one["values"]: one["counts"] for one in found}


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dtype", [WALL, INSTANT], ids=str)
def test_no_reader_misses_a_row(tmp_path: Path, dtype: pa.DataType, seed: int) -> None:
    assert sweep(tmp_path, dtype, seed, 100) > 60


def sweep(folder: Path, dtype: pa.DataType, seed: int, n: int) -> int:
    """Compare plans with the answers of readers; how many answers there were."""
    rng = random.Random(seed)
    columns = [_values(rng) for _ in range(N_FILES)]
    table = build(put_all(folder, files(*columns, dtype=dtype)), {"v": "bitmap"})
    readers, n_answers = Readers(folder), 0
    conditions = _conditions(rng, columns)
    for _ in range(n):
        condition, of = next(conditions)
        plan = table.plan(condition, timezone="UTC")
        bounds = _row_counts(plan)
        for reader, found in readers.answers(condition, of):
            n_answers += 1
            paths = {f"{i}.parquet" for i in found}
            assert paths <= set(plan.paths), (reader, condition)
            for i, (least, most) in bounds.items():
                told = reader, condition, columns[i], (least, most)
                assert least <= found.get(i, 0) <= most, told
    return n_answers
