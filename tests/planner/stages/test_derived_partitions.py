"""Derived partitions: folders that were made of a column rule out its values."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import skipindex as sx
from skipindex.conditions.binding import folders
from skipindex.errors import PredicateError
from tests.tables import kept, put

HIDDEN = {"year": "year(ctime)", "month": "month(ctime)", "day": "day(ctime)"}
DAYS = [date(2021, 12, 11), date(2021, 12, 12), date(2022, 11, 29), date(2022, 11, 30)]
DAYS += [date(2022, 12, 1), date(2023, 1, 1)]


def folder_of(day: date) -> str:
    return f"year={day.year}/month={day.month:02}/day={day.day:02}"


@pytest.fixture
def logs(tmp_path: Path) -> sx.Table:
    """A file a day, of a timestamp that Spark stores as year, month and day."""
    for day in DAYS:
        noon = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
        moments = [noon - timedelta(hours=12), noon, noon + timedelta(hours=11), None]
        columns = {
            "ctime": pa.array(moments, pa.timestamp("us", "UTC")),
            "other": pa.array([noon] * 4, pa.timestamp("us", "UTC")),
        }
        put(tmp_path / folder_of(day) / "f.parquet", columns)
    return sx.open_table(tmp_path).declare_derived(HIDDEN, timezone="UTC")


def days(table: sx.Table, condition: Any, **options: Any) -> list[date]:
    paths = kept(table, condition, **{"timezone": "UTC", **options})
    return [day for day in DAYS if f"{folder_of(day)}/f.parquet" in paths]


def test_check_20_a_greater_than_keeps_the_day_of_the_literal(logs: sx.Table) -> None:
    """``>`` widens to ``>=`` of the folder, although 'year/month' are inferred ints."""
    at = "'2022-11-30 12:00:00'"
    assert days(logs, f"ctime > {at}") == DAYS[3:]
    assert days(logs, f"ctime >= {at}") == DAYS[3:]
    assert days(logs, f"ctime < {at}") == DAYS[:4]
    assert days(logs, f"ctime <= {at}") == DAYS[:4]
    assert days(logs, f"ctime = TIMESTAMP {at}") == [DAYS[3]]
    assert days(logs, f"ctime <=> TIMESTAMP {at}") == [DAYS[3]]
    assert days(logs, "ctime < TIMESTAMP '2022-11-30 00:00:00'") == DAYS[:3]


def test_check_21_substring_of_a_timestamp(logs: sx.Table) -> None:
    assert days(logs, "substring(ctime, 1, 10) >= '2021-12-12'") == DAYS[1:]
    assert days(logs, "'2021-12-12' > substring(ctime, 1, 10)") == DAYS[:1]
    assert days(logs, "CAST(ctime AS DATE) = '2022-12-01'") == [DAYS[4]]
    assert days(logs, "month(ctime) = 12") == [DAYS[0], DAYS[1], DAYS[4]]
    assert days(logs, "year(ctime) = 2022 AND day(ctime) > 28") == DAYS[2:4]


def test_check_22_mirrored_operands_and_the_condition_as_it_was(logs: sx.Table) -> None:
    text = "TIMESTAMP '2022-11-30 00:00:00' < ctime"
    plan = logs.plan(text, timezone="UTC")
    assert days(logs, text) == DAYS[3:]
    assert plan.where == text
    assert {task.residual for task in plan.tasks} == {
        "ctime > TIMESTAMP '2022-11-30 00:00:00'"
    }
    twice = logs.refresh().plan(f"{text} AND {text}", timezone="UTC")
    assert twice.paths == plan.paths


@pytest.mark.parametrize(
    "condition",
    [
        "substring(ctime, 2, 10) = '2022-11-30'",
        "substring(ctime, 1, 10) IS NOT NULL",
        "ctime > 'no time at all'",
        "ctime > other",
        "ctime > current_timestamp() - make_interval(40, 1, 0, 1)",
        "substring(ctime, 1, 10) >= upper(other)",
        "other > TIMESTAMP '2030-01-01 00:00:00'",
        "ctime IS NULL",
        "ctime > TIMESTAMP '2022-11-30 12:00:00' OR other IS NULL",
    ],
)
def test_check_23_what_must_not_be_rewritten(logs: sx.Table, condition: str) -> None:
    assert days(logs, condition) == DAYS


def test_the_moment_of_a_plan_is_a_literal(logs: sx.Table) -> None:
    now = datetime(2022, 12, 1, 11, tzinfo=UTC)
    assert days(logs, "ctime > current_timestamp()", now=now) == DAYS[4:]
    assert days(logs, "ctime >= now() - INTERVAL 35 HOURS", now=now) == DAYS[3:]
    assert days(logs, "ctime > current_timestamp()") == []


def test_the_session_may_have_another_zone_than_the_writer(logs: sx.Table) -> None:
    """The folders bound instants, so the wall clock of a literal decides."""
    text = "ctime >= TIMESTAMP '2022-12-01 05:00:00'"
    assert days(logs, text, timezone="UTC") == DAYS[4:]
    assert days(logs, text, timezone="+06:00") == DAYS[3:]


def test_without_the_writers_zone_a_folder_is_a_day_wider(tmp_path: Path) -> None:
    for day in DAYS:
        put(tmp_path / folder_of(day) / "f.parquet", {"ctime": pa.array([], _INSTANT)})
    table = sx.open_table(tmp_path, derived=sx.Derived(HIDDEN))
    assert days(table, "ctime < TIMESTAMP '2022-11-30 00:00:00Z'") == DAYS[:4]
    assert days(table, "ctime < TIMESTAMP '2022-11-27 00:00:00Z'") == DAYS[:2]


_INSTANT = pa.timestamp("us", "UTC")


MONTHS = [f"2022-{month:02}" for month in range(1, 13)]
ODD = ("+12022-06", "-2021-06", "0000-06", "2022-13", "2022-6", "x")
"""Texts of which no time of four digits' years is known."""


@pytest.mark.parametrize("zone", ["UTC", "+09:00", "-03:00"])
@pytest.mark.parametrize("column", ["t", "d", "n"])
@pytest.mark.parametrize("shown", ["parts", "text", "number"])
def test_a_month_that_is_shown_bounds_the_time(
    tmp_path: Path, shown: str, column: str, zone: str
) -> None:
    """Tight in a zone without rules; nearly so in one with rules."""
    names = {
        "parts": "year={}/month={}",
        "text": "p={}-{}",
        "number": "p={}{}",
    }
    terms = {
        "parts": {"year": f"year({column})", "month": f"month({column})"},
        "text": {"p": f"date_format({column}, 'yyyy-MM')"},
        "number": {"p": f"CAST(date_format({column}, 'yyyyMM') AS INT)"},
    }
    schema = pa.schema([("t", _INSTANT), ("d", pa.date32()), ("n", pa.timestamp("us"))])
    place = names[shown]
    for month in MONTHS:
        put(
            tmp_path / place.format(*month.split("-")) / "f.parquet",
            schema.empty_table(),
        )
    odd = ODD if shown == "text" else ()
    for text in odd:
        put(tmp_path / f"p={text}" / "f.parquet", schema.empty_table())
    table = sx.open_table(tmp_path, derived=sx.Derived(terms[shown], zone))
    near = sx.open_table(tmp_path, derived=sx.Derived(terms[shown], "Asia/Tokyo"))
    for condition, expected in (
        (f"{column} >= '2022-06-01'", MONTHS[5:]),
        (f"{column} < '2022-06-01'", MONTHS[:5]),
        (f"{column} BETWEEN '2022-06-30' AND '2022-07-01'", MONTHS[5:7]),
        (f"date_format({column}, 'yyyyMM') > '202206'", MONTHS[6:]),
        (f"date_format({column}, 'yyyy-MM-dd') <= '2022-06'", MONTHS[:5]),
        (f"date_format({column}, 'yyyy') = '2023'", []),
        (f"substring({column}, 1, 7) > '2022-06'", MONTHS[6:]),
    ):
        paths = kept(table, condition, timezone=zone)
        places = [place.format(*month.split("-")) for month in expected]
        wanted = places + [f"p={text}" for text in odd]
        assert sorted(p.rpartition("/")[0] for p in paths) == sorted(wanted), condition
        nearly = kept(near, condition, timezone="Asia/Tokyo")
        assert len(expected) <= len(nearly) - len(odd) <= len(expected) + 2, condition


def test_hours_and_unpadded_folders(tmp_path: Path) -> None:
    for hour in (0, 9, 23):
        place = tmp_path / f"y=2020/m=2/d=29/h={hour}" / "f.parquet"
        put(place, {"t": pa.array([datetime(2020, 2, 29, hour)], pa.timestamp("us"))})
    parts = {"y": "year(t)", "m": "month(t)", "d": "dayofmonth(t)", "h": "hour(t)"}
    table = sx.open_table(tmp_path).declare_derived(parts)
    found = kept(table, "t < TIMESTAMP_NTZ '2020-02-29 09:30:00'", timezone="UTC")
    assert [path.split("/")[3] for path in found] == ["h=0", "h=9"]


@pytest.mark.parametrize(
    ("derivation", "folders", "condition", "expected"),
    [
        ("CAST(d AS DATE)", ["2020-01-01", "2020-01-02"], "d > DATE '2020-01-01'", [1]),
        ("date_format(d, 'yyyy-MM')", ["2020-01", "2020-02"], "d = '2020-02-03'", [1]),
        ("trunc(d, 'MM')", ["2020-01-01", "2020-02-01"], "d >= '2020-02-01'", [1]),
        ("substring(s, 1, 2)", ["ab", "b"], "s >= 'abz'", [0, 1]),
        ("substring(s, 1, 2)", ["ab", "b"], "s LIKE 'b%'", [1]),
        ("left(s, 2)", ["ab", "b"], "s = 'abcdef'", [0]),
        ("upper(s)", ["AB", "B"], "s IN ('ab', 'aB')", [0]),
        ("upper(s)", ["AB", "B"], "upper(s) LIKE 'B%'", [1]),
        ("upper(s)", ["AB", "B"], "s IN ('ab', 'é')", [0]),
        ("upper(s)", ["AB", "B"], "s IN ('ab', '\ufb01')", [0, 1]),  # Java's affair
        ("upper(s)", ["AB", "B"], "s > 'x'", [0, 1]),
        ("i DIV 10", ["0", "1"], "i BETWEEN 3 AND 9", [0]),
        ("i - i % 10", ["0", "10"], "i = 13", [1]),
        ("i % 4", ["0", "3"], "i IN (7, 11)", [1]),
        ("pmod(i, 4)", ["0", "3"], "i = -1", [1]),
        ("i % 4", ["0", "3"], "i = 7 OR i IS NULL", [0, 1]),
        ("i % 4", ["0", "__HIVE_DEFAULT_PARTITION__"], "i = 7", [1]),
        ("i % 4", ["0", "x"], "i = 7", [1]),
        ("i + 1", ["2147483647", "3"], "i = 2", [1]),
        ("year(d)", ["2020", "nonsense"], "d = '2019-01-01'", [1]),
        ("year(d)", ["2020", "999999999999999999"], "d = '2020-01-01'", [0]),
        ("replace(s, 'A', 'a')", ["xa", "q"], "replace(s, 'a', 'A') = 'xA'", [0, 1]),
        ("replace(s, 'A', 'a')", ["xa", "q"], "REPLACE(S, 'A', 'a') = 'xa'", [0]),
        ("upper(s)", ["AB", "B"], "lower(s) LIKE 'B%'", [0, 1]),
        ("i % 4", ["0", "3"], "i % 3 = 0", [0, 1]),
        ("i % 4", ["0", "3"], "(i + 0) % 4 = 3", [0, 1]),
        ("substring(s, 1, 1)", ["タ", "ン"], "left(s, 1) NOT LIKE 'タ%'", [0, 1]),
        ("substring(s, 1, 1)", ["タ", "ン"], "s LIKE 'ン%'", [1]),
        ("date_format(d, 'yyyy')", ["2019", "2020"], "d = '2020-06-01'", [1]),
        ("date_format(d, 'yyyy')", ["2019", "2020"], "d = '2020-01-01'", [1]),
        ("date_format(d, 'yyyy')", ["2019", "2020"], "d = '2019-12-31'", [0, 1]),
        ("substring(s, 6, 2)", ["05", "11"], "s LIKE '2022-11%'", [1]),
        ("substring(s, 6, 2)", ["05", "11"], "s LIKE '2022-1%'", [1]),
        ("substring(s, 6, 2)", ["05", "11"], "s LIKE '2022%'", [0, 1]),
        ("substring(s, 6, 2)", ["05", "11"], "s BETWEEN '2022-05' AND '2022-05x'", [0]),
        ("substring(s, 6, 2)", ["05", "11"], "s > '2022-11'", [0, 1]),
        ("right(s, 2)", ["05", "11"], "s LIKE '2022-11%'", [0, 1]),
        ("substring(s, 1, 4)", ["2022", "2023"], "s >= '2023'", [1]),
        ("substring(s, 2, 2)", ["é1", "タ"], "s LIKE '2タ%'", [1]),
    ],
)
def test_generated_forms(
    tmp_path: Path,
    derivation: str,
    folders: list[str],
    condition: str,
    expected: list[int],
) -> None:
    schema = pa.schema([("d", pa.date32()), ("s", pa.string()), ("i", pa.int32())])
    for folder in folders:
        put(tmp_path / f"p={folder}" / "f.parquet", schema.empty_table())
    table = sx.open_table(tmp_path).declare_derived({"P": derivation})
    found = kept(table, condition)
    assert sorted(found) == sorted(f"p={folders[i]}/f.parquet" for i in expected)


def test_the_declaration_is_committed_and_taken_back(logs: sx.Table) -> None:
    text = "ctime > TIMESTAMP '2022-12-31 00:00:00'"
    folder = logs.state.location
    assert days(sx.open_table(folder), text) == DAYS[5:]
    assert days(sx.open_table(folder, derived=sx.Derived()), text) == DAYS
    table = sx.build_indexes(sx.open_table(folder), {"other": []}, workers=1).table
    table = table.drop_indexes()  # the statistics leave out the same files
    assert days(table, text) == DAYS[5:]
    assert days(table.declare_derived({}), text) == DAYS


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"nope": "year(ctime)"}, "no partition column 'nope' .*year, month, day"),
        ({"year": "year(nope)"}, "no column 'nope'"),
        ({"year": "rand()"}, r"cannot derive a partition by 'rand\(\)'"),
        ({"year": "ctime"}, "expected a function of one column"),
        ({"year": "datediff(ctime, other)"}, "expected a function of one column"),
        ({"year": "year("}, "is not closed"),
    ],
)
def test_wrong_declarations_are_refused(
    logs: sx.Table, columns: dict[str, str], problem: str
) -> None:
    with pytest.raises(PredicateError, match=problem):
        sx.open_table(logs).declare_derived(columns)


def test_nothing_is_derived_of_a_column_with_a_default(logs: sx.Table) -> None:
    """The folders were named before the files had it."""
    ctime = logs.state.schema.field("ctime").with_metadata({"EXISTS_DEFAULT": ""})
    table = sx.open_table(
        logs.state.location,
        schema=pa.schema([ctime]),
        derived=sx.Derived({"year": "year(ctime)"}, "UTC"),
    )
    plan = table.plan("ctime > TIMESTAMP '2030-01-01 00:00:00Z'")
    assert len(plan.paths) == len(DAYS)


def test_a_declaration_that_no_longer_fits_keeps_the_files(logs: sx.Table) -> None:
    table = sx.open_table(
        logs.state.location, derived=sx.Derived({"gone": "year(ctime)"})
    )
    plan = table.plan("ctime > TIMESTAMP '2030-01-01 00:00:00Z'")
    assert len(plan.paths) == len(DAYS)
    assert any("derived partition 'gone' not used" in note for note in plan.notes)


def test_skipped_files_say_why(logs: sx.Table) -> None:
    plan = logs.plan("ctime > TIMESTAMP '2022-12-31 00:00:00Z'")
    assert {s.stage for s in plan.skipped} == {"partition values"}
    assert "the declared partition columns" in plan.skipped[0].reason


TEXT = "yyyy-MM-dd HH:mm:ss"
PARTS = ("year", "month", "day")


def texts(
    folder: Path, read: str, zone: str | None = "UTC", name: str = "{:d}"
) -> sx.Table:
    """The article's table: a text of a time, its folders made by reading it."""
    schema = pa.schema([("dt", pa.string()), ("other", pa.string())])
    for day in [*DAYS, None]:
        parts = [getattr(day, part, None) for part in PARTS]
        values = [
            "__HIVE_DEFAULT_PARTITION__" if day is None else name.format(p)
            for p in parts
        ]
        place = "/".join(map("{}={}".format, PARTS, values))
        put(folder / place / "f.parquet", schema.empty_table())
    declared = {part: f"{part}({read})" for part in PARTS}
    return sx.open_table(folder).declare_derived(declared, timezone=zone)


def days_of(table: sx.Table, condition: str, **options: Any) -> list[date]:
    """The days kept; the folder of texts that cannot be read is kept too."""
    paths = kept(table, condition, **{"timezone": "UTC", **options})
    found = [path.split("/")[:3] for path in paths]
    numbers = [[p.partition("=")[2] for p in parts] for parts in found]
    assert ["__HIVE_DEFAULT_PARTITION__"] * 3 in numbers
    return sorted(date(*map(int, n)) for n in numbers if n[0].isdecimal())


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("dt > '2022-11-30 12:00:00'", DAYS[3:]),
        ("'2022-11-30 12:00:00' < dt", DAYS[3:]),
        ("dt > '2022-11-30 23:59:59'", DAYS[4:]),
        ("dt < '2022-11-30 00:00:00'", DAYS[:3]),
        ("dt <= '2022-11-30 00:00:00'", DAYS[:4]),
        ("dt = '2022-11-30 12:00:00'", [DAYS[3]]),
        ("dt IN ('2022-11-30 12:00:00', '2023-01-01 25:00:00')", [DAYS[3]]),
        ("dt = '2022-11-30 12:00'", []),
        ("substring(dt, 1, 10) >= '2021-12-12'", DAYS[1:]),
        ("substring(dt, 1, 10) = '2022-11-30'", [DAYS[3]]),
        ("dt LIKE '2022-11%'", DAYS[2:4]),
        ("dt BETWEEN '2022-11-30' AND '2022-12'", [DAYS[3]]),
        ("NOT dt <= '2022-12'", DAYS[4:]),
        ("dt > '2022-11-30'", DAYS[3:]),
        ("dt > 'zzz'", []),
        ("dt <= '2022-11'", DAYS[:2]),
        ("dt < '2'", []),
        (f"to_timestamp(dt, '{TEXT}') > TIMESTAMP '2022-11-30 12:00:00'", DAYS[3:]),
        (f"to_timestamp(dt, '{TEXT}') >= TIMESTAMP '2022-12-01 00:00:00'", DAYS[4:]),
        (f"try_to_timestamp(dt, '{TEXT}') < TIMESTAMP '2022-11-30'", DAYS[:3]),
        (f"to_timestamp_ntz(dt, '{TEXT}') < TIMESTAMP_NTZ '2022-11-30'", DAYS[:3]),
        (f"to_date(dt, '{TEXT}') <= DATE '2022-11-29'", DAYS[:3]),
        (f"year(to_timestamp(dt, '{TEXT}')) = 2022", DAYS[2:5]),
        (f"month(to_timestamp(dt, '{TEXT}')) = 12", [DAYS[0], DAYS[1], DAYS[4]]),
        ("to_date(dt) = '2022-11-30'", [DAYS[3]]),
        ("year(dt) = 2022", DAYS[2:5]),
        ("CAST(dt AS TIMESTAMP) > TIMESTAMP '2022-11-30 12:00:00'", DAYS[3:]),
        ("to_timestamp(dt, 'yyyyMMdd') > TIMESTAMP '2022-11-30 12:00:00'", DAYS),
        ("dt != '2022-11-30 12:00:00'", DAYS),
        ("dt IS NULL OR other > 'a'", DAYS),
        ("dt > other", DAYS),
    ],
)
@pytest.mark.parametrize("name", ["{:d}", "{:02d}"])
def test_check_20_a_time_field_of_text(
    tmp_path: Path, name: str, condition: str, expected: list[date]
) -> None:
    table = texts(tmp_path, f"to_timestamp(dt, '{TEXT}')", name=name)
    assert days_of(table, condition) == expected


@pytest.mark.parametrize(
    ("pattern", "written", "expected"),
    [
        ("yyyyMMdd", "20221130", [3]),
        ("yyyy-MM-dd", "2022-11-30", [3]),
        ("yyyy/MM/dd", "2022/11/30", [3]),
        ("yyyyMMddHHmmss", "20221130120000", [3]),
        ("yyyy-MM-dd HH", "2022-11-30 12", [3]),
        ("yyyy-MM-dd'T'HH:mm:ss", "2022-11-30T12:00:00", [3]),
        ("yyyy-MM-dd'T'HH:mm:ss'Z'", "2022-11-30t12:00:00z", [3]),
        ("yyyy-MM-dd HH:mm:ss.SSS", "2022-11-30 12:00:00.1", [3]),
        ("yyyy年MM月dd日", "2022年11月30日", [3]),
        ("yyyy-MM-dd", "2022-11-30 12:00:00", []),
        ("yyyy-MM-dd HH:mm:ss", "2022-02-30 12:00:00", []),
    ],
)
def test_every_pattern_bounds_its_texts(
    tmp_path: Path, pattern: str, written: str, expected: list[int]
) -> None:
    quoted = pattern.replace("'", "\\'")
    for read, zone in (("to_timestamp", "UTC"), ("to_timestamp_ntz", None)):
        table = texts(tmp_path, f"{read}(dt, '{quoted}')", zone)
        assert days_of(table, f"dt = '{written}'") == [DAYS[i] for i in expected]
        after = days_of(table, f"dt >= '{written}'")
        assert after == (DAYS[3:] if expected else after)


FORMS = {
    "yyyyMM": "%Y%m",
    "yyyyMMdd": "%Y%m%d",
    "yyyy-MM-dd": "%Y-%m-%d",
    "yyyy/MM/dd HH": "%Y/%m/%d %H",
    "yyyy-MM-dd HH:mm:ss": "%Y-%m-%d %H:%M:%S",
    "yyyyMMddHHmmss": "%Y%m%d%H%M%S",
}


@pytest.mark.few(3)
@pytest.mark.parametrize("pattern", FORMS)
@pytest.mark.parametrize("n_parts", [1, 2, 3, 4])
def test_of_texts_in_a_pattern_folders_are_left_out_exactly(
    tmp_path: Path, pattern: str, n_parts: int
) -> None:
    """A folder is kept exactly if some text of the pattern lies in it and matches."""
    rng, form = random.Random(n_parts), FORMS[pattern]
    names = ("year", "month", "day", "hour")[:n_parts]
    start = datetime(2021, 12, 1)
    some = [start + timedelta(hours=rng.randrange(5_000)) for _ in range(12)]

    def read(at: datetime) -> datetime:
        """What a text does not show is the first of its kind."""
        return datetime.strptime(f"{at:{form}}", form).replace(tzinfo=UTC)

    moments = [read(at) for at in some]
    every = [start - timedelta(days=365) + timedelta(hours=i) for i in range(19_000)]
    texts_of: dict[tuple[int, ...], set[str]] = {}
    for at in every:
        key = tuple(getattr(read(at), name) for name in names)
        last = f"{at + timedelta(minutes=59, seconds=59):{form}}"
        texts_of.setdefault(key, set()).update({f"{at:{form}}", last})
    keys = {tuple(getattr(at, name) for name in names) for at in moments}
    schema = pa.schema([("dt", pa.string())])
    for key in keys:
        parts = map("{}={}".format, names, key)
        put(tmp_path.joinpath(*parts, "f.parquet"), schema.empty_table())
    read_by = f"to_timestamp_ntz(dt, '{pattern}')"
    declared = {name: f"{name}({read_by})" for name in names}
    table = sx.open_table(tmp_path).declare_derived(declared)

    def kept_keys(condition: str) -> set[tuple[int, ...]]:
        found = [path.split("/")[:-1] for path in kept(table, condition)]
        return {tuple(int(p.partition("=")[2]) for p in parts) for parts in found}

    for _ in range(25):
        written = sorted(f"{rng.choice(some):{form}}" for _ in range(2))
        cut = written[0][: rng.randrange(1, 20)] + rng.choice(["", "", "z", "0", " "])
        for condition, holds in (
            (f"dt > '{cut}'", lambda t, cut=cut: t > cut),
            (f"dt >= '{cut}'", lambda t, cut=cut: t >= cut),
            (f"dt < '{cut}'", lambda t, cut=cut: t < cut),
            (f"NOT dt > '{cut}'", lambda t, cut=cut: t <= cut),
            (f"dt = '{cut}'", lambda t, cut=cut: t == cut),
            (
                f"dt BETWEEN '{written[0]}' AND '{written[1]}'",
                lambda t, ends=written: ends[0] <= t <= ends[1],
            ),
        ):
            true = {key for key in keys if any(map(holds, texts_of[key]))}
            assert kept_keys(condition) == true, condition


@pytest.mark.parametrize(
    "pattern",
    [
        *("yy-MM-dd", "MM-dd", "dd/MM/yyyy", "yyyy-dd", "yyyy-MM-dd hh", "yyyy.SSS"),
        *("yyyy-MM-ddTHH", "yyyy-MM-dd HH:mm:ssSSS", "yyyy0MM", "yyyy[-MM]", "", "D"),
        *("yyyy-MM-dd HH:mm:ss VV", "yyyy-MM-dd \\'kK\\'", "yyyy-MM-dd\\'"),
    ],
)
def test_other_patterns_are_refused_in_words(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(PredicateError, match="expected yyyy, then MM, dd, HH"):
        texts(tmp_path, f"to_timestamp(dt, '{pattern}')")


@pytest.mark.parametrize(
    ("read", "condition", "expected"),
    [
        # A cast takes blanks before the text, and a DEL character: no side is bounded.
        ("dt", "dt > '2022-11-30 12:00:00'", DAYS),
        ("dt", "dt < '2021'", DAYS),
        ("dt", "dt = '2022-11-30 12:00:00'", [DAYS[3]]),
        ("dt", "dt IN ('2022-12-1', '2023')", DAYS[4:]),
        ("dt", "dt = ' 2022-12-01'", DAYS),
        ("dt", "dt LIKE '2022-1%'", DAYS[2:5]),
        ("dt", "dt BETWEEN '2022-11-30' AND '2022-12-31'", DAYS[3:5]),
        ("dt", "to_date(dt) > DATE '2022-11-30'", DAYS[4:]),
        ("dt", "year(dt) = 2021 AND day(dt) = 12", [DAYS[1]]),
        ("to_date(dt)", "dt = '2022-11-30Tnoon'", [DAYS[3]]),
        # A text may name another zone, or no day at all.
        ("CAST(dt AS TIMESTAMP)", "dt = '2022-11-30 12:00:00'", [DAYS[3]]),
        ("CAST(dt AS TIMESTAMP)", "dt = '2022-11-30 12:00:00+02:00'", DAYS[2:5]),
        ("CAST(dt AS TIMESTAMP)", "dt = '12:30'", DAYS),
        ("CAST(dt AS TIMESTAMP)", "dt LIKE '2023%'", DAYS[5:]),
        (
            "CAST(dt AS TIMESTAMP)",
            "CAST(dt AS TIMESTAMP) < TIMESTAMP '2022-11-29 00:00:00'",
            DAYS[:2],
        ),
        ("CAST(dt AS TIMESTAMP_NTZ)", "dt = '2022-11-30 12:00:00+02:00'", [DAYS[3]]),
    ],
)
def test_casts_of_text(
    tmp_path: Path, read: str, condition: str, expected: list[date]
) -> None:
    assert days_of(texts(tmp_path, read), condition) == expected


@pytest.mark.parametrize(
    ("zone", "is_alike"),
    [("UTC", True), ("+05:30", True), ("-08:00", True), ("Europe/Amsterdam", False)],
)
def test_a_part_of_what_is_read_is_that_of_its_date(
    tmp_path: Path, zone: str, is_alike: bool
) -> None:
    """A zone with rules may have moved the wall clock there and back."""
    table = texts(tmp_path, f"to_timestamp_ntz(dt, '{TEXT}')", zone)
    december = [DAYS[0], DAYS[1], DAYS[4]]
    for read in (
        f"to_date(dt, '{TEXT}')",
        f"to_timestamp(dt, '{TEXT}')",
        f"try_to_timestamp(dt, '{TEXT}')",
        f"CAST(to_timestamp(dt, '{TEXT}') AS DATE)",
    ):
        found = days_of(table, f"month({read}) = 12", timezone=zone)
        assert found == (december if is_alike else DAYS), read
    clock = f"CAST(to_timestamp_ntz(dt, '{TEXT}') AS DATE)"
    assert days_of(table, f"dayofmonth({clock}) IN (1, 30)", timezone=zone) == DAYS[3:]
    assert days_of(table, f"hour({clock}) = 12", timezone=zone) == DAYS


def test_a_cast_by_another_zone_reads_other_moments(tmp_path: Path) -> None:
    """A text that names a zone is of another day in the session's zone."""
    table = texts(tmp_path, "CAST(dt AS TIMESTAMP)")
    text = "CAST(dt AS TIMESTAMP) >= TIMESTAMP '2023-01-01 12:00:00'"
    assert days_of(table, text) == DAYS[5:]
    assert days_of(table, text, timezone="+06:00") == DAYS


def test_a_zone_with_rules_may_have_skipped_a_day(tmp_path: Path) -> None:
    """A wall clock that no moment has is read as a later one, so none is after it."""
    table = texts(tmp_path, f"to_timestamp(dt, '{TEXT}')", "Europe/Amsterdam")
    assert days_of(table, "dt > '2022-11-30 12:00:00'") == DAYS[3:]
    assert days_of(table, "dt > '2022-12-01 12:00:00'") == DAYS[4:]
    assert days_of(table, "dt < '2022-11-30 12:00:00'") == DAYS[:5]
    assert days_of(table, "dt < '2022-11-29 00:00:00'") == DAYS[:3]
    assert days_of(table, "dt < '2022-11-28 23:59:59'") == DAYS[:3]
    assert days_of(table, "dt < '2022-11-28'") == DAYS[:2]


def test_folders_that_no_text_has_say_nothing(tmp_path: Path) -> None:
    schema = pa.schema([("dt", pa.string())])
    odd = ["2022/13/5", "2022/2/30", "x/1/1", "2021/1/2", "2021/1/1"]
    for place in odd:
        parts = map("{}={}".format, PARTS, place.split("/"))
        put(tmp_path.joinpath(*parts, "f.parquet"), schema.empty_table())
    declared = {part: f"{part}(to_date(dt, 'yyyyMM'))" for part in PARTS}
    table = sx.open_table(tmp_path).declare_derived(declared, timezone="UTC")
    assert len(kept(table, "dt >= '202201'")) == 4  # all but that of 2021-01-01
    assert len(kept(table, "dt < '2022'")) == 3


def test_a_date_of_text_is_a_folder_too(tmp_path: Path) -> None:
    schema = pa.schema([("dt", pa.string())])
    for day in DAYS:
        put(tmp_path / f"p={day}" / "f.parquet", schema.empty_table())
    for function in (
        f"to_date(dt, '{TEXT}')",
        f"date_format(to_timestamp(dt, '{TEXT}'), 'yyyy-MM-dd')",
        f"CAST(to_timestamp_ntz(dt, '{TEXT}') AS DATE)",
    ):
        table = sx.open_table(tmp_path).declare_derived({"p": function}, timezone="UTC")
        found = kept(table, "dt > '2022-11-30 12:00:00'")
        assert sorted(found) == [f"p={day}/f.parquet" for day in DAYS[3:]]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2022-1\x7f", "2022-01-01"),
        ("2022-1\x7f \x7f", "2022-01-01"),
        ("2022\x7f", "2022-01-01"),
        ("2022-12\x7f", "2022-12-01"),
        ("2022-12-1\x7f", "2022-12-01"),
        ("2022-12-2\x7f", "2022-12-02"),
    ],
)
@pytest.mark.parametrize("read", ["to_date(dt)", "CAST(dt AS TIMESTAMP_NTZ)"])
def test_a_cast_reads_a_text_whose_last_parts_a_control_character_stands_for(
    tmp_path: Path, read: str, text: str, day: str
) -> None:
    """A cast takes blanks and control characters off both ends."""
    days = ["2022-01-01", "2022-01-02", "2022-12-01", "2022-12-02", "2023-02-01"]
    schema = pa.schema([("dt", pa.string())])
    for one in days:
        place = "year={}/month={}/day={}".format(*one.split("-"))
        put(tmp_path / place / "f.parquet", schema.empty_table())
    declared = {part: f"{part}({read})" for part in PARTS}
    table = sx.open_table(tmp_path, derived=sx.Derived(declared))
    found = kept(table, f"dt = '{text}'")
    wanted = "year={}/month={}/day={}/f.parquet".format(*day.split("-"))
    assert wanted in found
    assert len(found) <= 2


def test_hours_of_text(tmp_path: Path) -> None:
    schema = pa.schema([("dt", pa.string())])
    for hour in (0, 9, 23):
        place = tmp_path / f"d=2020-02-29/h={hour}" / "f.parquet"
        put(place, schema.empty_table())
    read = f"to_timestamp_ntz(dt, '{TEXT}')"
    declared = {"d": f"date_format({read}, 'yyyy-MM-dd')", "h": f"hour({read})"}
    table = sx.open_table(tmp_path).declare_derived(declared, timezone="UTC")
    assert len(kept(table, "dt = '2020-02-29 09:30:00'")) == 1
    assert len(kept(table, "dt < '2020-02-29'")) == 0
    by_hour = {part: f"{part}({read})" for part in ("year", "month", "day", "hour")}
    for hour in (0, 9, 23):
        parts = f"year=2020/month=2/day=29/hour={hour}"
        put(tmp_path / "parts" / parts / "f.parquet", schema.empty_table())
    table = sx.open_table(tmp_path / "parts").declare_derived(by_hour)
    assert len(kept(table, "dt < '2020-02-29 09:30:00'")) == 2
    assert len(kept(table, "dt > '2020-02-29 09:59:59'")) == 1


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("concat(year, month, day) >= '20221130'", DAYS[3:]),
        ("NOT concat(year, month, day) >= '20221130'", DAYS[:3]),
        ("year || '-' || lpad(month, 2, '0') = '2022-11'", DAYS[2:4]),
        ("concat(year, month) IN ('202212', '20231')", DAYS[4:]),
        ("concat(year, '-', month) LIKE '2021-%'", DAYS[:2]),
        ("year * 100 + month > 202211", DAYS[4:]),
        ("CAST(concat(year, month) AS INT) = 202112", DAYS[:2]),
        ("concat(year, month) IS NULL", []),
        ("coalesce(year, month) > 0", DAYS),
        ("CASE WHEN year = 2021 THEN month ELSE day END = 30", [DAYS[3]]),
        ("greatest(month, day) = 29", [DAYS[2]]),
        ("concat(year, dt) > '2023'", DAYS),
        ("concat(year, month) = '202211' OR other = 'a'", DAYS),
        ("concat(year, month) = '202211' AND year = 2023", []),
    ],
)
def test_functions_of_several_partition_columns(
    tmp_path: Path, condition: str, expected: list[date]
) -> None:
    """Whole numbers, as Spark infers them, so that a month has no zero in a text."""
    table = texts(tmp_path, "dt").declare_derived({})
    null = "__HIVE_DEFAULT_PARTITION__"
    plan = table.plan(condition)
    found = [[p.partition("=")[2] for p in path.split("/")[:3]] for path in plan.paths]
    numbers = sorted(date(*map(int, n)) for n in found if n[0] != null)
    assert numbers == expected
    keeps_null = "IS NULL" in condition or "other" in condition or "dt" in condition
    assert ([null] * 3 in found) == keeps_null
    if "dt" not in condition and "other" not in condition:
        assert all(task.residual == "TRUE" for task in plan.tasks)


def test_a_condition_that_becomes_too_large_is_left_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(1, 8):
        for j in range(8):
            put(tmp_path / f"a={i}/b={j}" / "f.parquet", {"x": [1]})
    table = sx.open_table(tmp_path)
    assert len(table.plan("a * b % 7 = 3").paths) == 6
    for limit in ("_MAX_LEAVES", "_MAX_ROWS"):
        with monkeypatch.context() as patched:
            patched.setattr(folders, limit, 5)
            plan = table.plan("a * b % 7 = 3")
        assert len(plan.paths) == 56
        assert "a function of several columns" in plan.explain()


def test_a_comparison_with_another_column_keeps_all_and_says_why(
    tmp_path: Path,
) -> None:
    table = texts(tmp_path, f"to_timestamp(dt, '{TEXT}')")
    plan = table.plan("dt > other", timezone="UTC")
    assert len(plan.paths) == len(DAYS) + 1
    assert "dt > other: ruled out no file alone" in plan.explain()
    assert noted(table, "dt > other") == ["dt > other"]


def noted(table: sx.Table, condition: str) -> list[str]:
    """The comparisons of columns that the notes of a plan name."""
    found = [
        note.partition("no partition is skipped for ")
        for note in table.plan(condition).notes
    ]
    return [
        rest.removesuffix(": two columns are compared") for *_, rest in found if rest
    ]


def test_a_comparison_with_another_column_is_noted_once_if_nothing_else_is_judged(
    tmp_path: Path,
) -> None:
    table = texts(tmp_path / "t", f"to_timestamp(dt, '{TEXT}')")
    assert noted(table, "dt > other") == ["dt > other"]
    assert noted(table, "NOT (other >= `DT`)") == ["other < DT"]
    assert noted(table, "dt > other AND dt > other") == ["dt > other"]
    assert noted(table, "dt > other OR dt > '2022'") == ["dt > other"]
    assert noted(table, "dt > other AND other < dt") == ["dt > other", "other < dt"]
    for judged in (
        "dt > other AND dt > '2022'",
        "dt > other AND year = 2022",
        "dt > other AND 1 = 2",
        "other = upper(other)",
        "dt > '2022'",
        "dt = lower(other) AND other = 'a'",
    ):
        assert noted(table, judged) == [], judged
    plain = sx.open_table(
        put(tmp_path / "u/f.parquet", {"dt": ["a"], "other": ["b"]}).parent
    )
    assert noted(plain, "dt > other") == []
