"""Folders that cannot match are never listed, if the columns are given."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.errors import PredicateError, TableError
from skipindex.storage.file_system.location import FileInfo, Location, location_of
from tests.rewrite.arrow_writer import optimized
from tests.tables import put

SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "dt": pa.string(),
        "year": pa.int32(),
        "month": pa.int32(),
        "day": pa.int32(),
    }
)
FORMAT = "yyyy-MM-dd HH:mm:ss"
YEARS, MONTHS, DAYS = range(2018, 2026), range(1, 13), (1, 9, 28)
NULL = "__HIVE_DEFAULT_PARTITION__"


def put_day(root: Path, year: int, month: int, day: int, width: int) -> None:
    folder = root / f"year={year}/month={month:0{width}}/day={day:0{width}}"
    texts = [f"{year}-{month:02}-{day:02} {hour:02}:30:00" for hour in (0, 23)]
    put(folder / "part.parquet", {"id": [day, day + 1], "dt": texts})


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """288 folders, and that of NULL, with a declaration beside them."""
    root = tmp_path_factory.mktemp("days")
    for year in YEARS:
        for month in MONTHS:
            for day in DAYS:
                put_day(root, year, month, day, width=1 + year % 2)
    put(root / f"year={NULL}/month={NULL}/day={NULL}/part.parquet", {"id": [0]})
    sx.open_table(root).declare_derived(field="dt", format=FORMAT, timezone="UTC")
    return root


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that were listed, by themselves or with all below them."""
    found: list[str] = []

    def counted(name: str) -> None:
        original = getattr(Location, name)

        def call(location: Location, folder: str = "") -> Iterator[FileInfo]:
            if not folder.startswith("_"):
                found.append(folder)
            return original(location, folder)  # type: ignore[no-any-return]

        monkeypatch.setattr(Location, name, call)

    counted("list")
    counted("entries")
    return found


ALL = len(YEARS) * len(MONTHS) * len(DAYS) + 1


@pytest.mark.parametrize(
    ("where", "n_files", "n_listed"),
    [
        # The way down to the first day is looked at, to learn the columns.
        ("year(dt) = 2022", 36, 21),
        ("year = 2022 AND month = 3", 3, 6),
        ("dt > '2025-12-09 10:00:00'", 2, 11),
        ("dt BETWEEN '2021-12-28' AND '2022-01-01 23:00:00'", 2, 13),
        ("dt > '2030-01-01'", 0, 7),
        ("date(dt) = date'2022-02-09' OR year = 2018 AND month = 1", 4, 11),
        ("month = 2 AND day < 5", len(YEARS), 28),
    ],
)
def test_few_folders_are_listed(
    days: Path, listed: list[str], where: str, n_files: int, n_listed: int
) -> None:
    plan = sx.plan_files(days, where, schema=SCHEMA, timezone="UTC")
    in_null = "dt" in where  # what is made of a time that is NULL, or cannot be read
    assert len(plan.paths) == n_files + in_null
    assert len(listed) == n_listed, listed
    n_unlisted = plan.table.n_unlisted
    assert n_unlisted > 0
    assert f"{n_unlisted} folders without a matching row were not listed" in str(
        plan.notes
    )
    assert f"(and those of {n_unlisted} folders, which were not listed)" in (
        plan.explain()
    )
    assert plan.to_dict()["folders_not_listed"] == n_unlisted
    whole = sx.open_table(days, schema=SCHEMA).plan(where, timezone="UTC")
    assert plan.paths == whole.paths
    assert plan.count_bounds == whole.count_bounds
    if plan.paths:
        assert plan.table.columns == whole.table.columns


@pytest.mark.parametrize(
    "where", ["id = 3", "dt IS NOT NULL", "length(dt) = 19", "year > 1 OR id = 3"]
)
def test_what_needs_all_is_listed_as_a_whole(
    days: Path, listed: list[str], where: str
) -> None:
    plan = sx.plan_files(days, where, schema=SCHEMA, timezone="UTC")
    assert len(plan.table) == ALL
    assert plan.table.n_unlisted == 0
    assert listed.count("") == 2, "one of them looks for folders"
    assert len(listed) <= 64


def test_without_columns_all_is_listed(days: Path, listed: list[str]) -> None:
    plan = sx.plan_files(days, "year(dt) = 2022", timezone="UTC")
    assert (len(plan.table), listed) == (ALL, [""])
    part = SCHEMA.remove(SCHEMA.get_field_index("month"))
    plan = sx.plan_files(days, "year(dt) = 2022", schema=part, timezone="UTC")
    assert len(plan.table) == ALL, "a type that Spark takes from all folders"


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(10))
def test_random_conditions_keep_the_files_of_a_whole_listing(
    days: Path, seed: int
) -> None:
    rng = random.Random(seed)
    whole = sx.open_table(days, schema=SCHEMA)

    def leaf() -> str:
        year, month, day = rng.choice(YEARS), rng.choice(MONTHS), rng.choice(DAYS)
        text = f"'{year}-{month:02}-{day:02} 12:00:00'"
        return rng.choice(
            [
                f"dt {rng.choice(['<', '>=', '=', '<=>'])} {text}",
                f"year {rng.choice(['<', '>', '=', '!='])} {year}",
                f"month IN ({month}, {month + 1})",
                f"day = '0{day}'",
                f"to_date(dt, '{FORMAT}') > date'{year}-{month:02}-{day:02}'",
                f"concat(year, month) = '{year}{month}'",
                f"substring(dt, 1, 7) = '{year}-{month:02}'",
                f"year IS {rng.choice(['', 'NOT '])}NULL",
                f"id = {day}",
            ]
        )

    n_cut = 0
    for _ in range(40):
        n = rng.randint(1, 3)
        where = rng.choice([" AND ", " OR "]).join(f"({leaf()})" for _ in range(n))
        where = f"NOT ({where})" if rng.random() < 0.2 else where
        plan = sx.plan_files(days, where, schema=SCHEMA, timezone="UTC")
        assert plan.paths == whole.plan(where, timezone="UTC").paths, where
        n_cut += plan.table.n_unlisted > 0
    assert n_cut > 5


def test_what_a_cut_listing_cannot_tell_is_what_a_whole_one_says(
    tmp_path: Path,
) -> None:
    for year in (2020, 2021):
        put_day(tmp_path, year, 1, 1, width=1)
    schema: dict[str, Any] = {"schema": SCHEMA}
    with pytest.raises(PredicateError, match="no column 'other'"):
        sx.plan_files(tmp_path, "other = 3 AND year = 2020", **schema)
    with pytest.raises(TableError, match="does not exist"):
        sx.plan_files(tmp_path / "none", "year = 2020", **schema)
    put(tmp_path / "part.parquet", {"id": [7], "dt": ["x"]})
    assert sx.plan_files(tmp_path, "year = 2030", **schema).paths == []
    (tmp_path / "part.parquet").unlink()
    put(tmp_path / "_delta_log" / "0.json", {"id": [7]})
    with pytest.raises(TableError, match="is a Delta table"):
        sx.plan_files(tmp_path, "year = 2020", **schema)
    assert len(sx.plan_files(tmp_path, "year = 2020", plain=True, **schema).table) == 1


def test_a_file_that_is_named_as_a_folder_is_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "year=2020")
    (tmp_path / "year=2021").mkdir()
    schema = pa.schema({"id": pa.int64(), "year": pa.int32()})
    plan = sx.plan_files(tmp_path, "year = 2021 OR id = 1", schema=schema)
    assert plan.paths == ["year=2020"]
    plan = sx.plan_files(tmp_path, "id = 1 AND year IS NULL", schema=schema)
    assert plan.paths == ["year=2020"]


def test_links_are_followed_as_in_a_whole_listing(tmp_path: Path) -> None:
    put_day(tmp_path / "real", 2020, 1, 1, width=1)
    put_day(tmp_path / "real", 2021, 1, 1, width=1)
    table = tmp_path / "table"
    table.mkdir()
    (table / "year=2020").symlink_to(tmp_path / "real" / "year=2020")
    (table / "year=2022").symlink_to(tmp_path / "real" / "year=2021")
    (table / "year=2023").symlink_to(tmp_path / "nowhere")
    (table / "_back").symlink_to(tmp_path)
    plan = sx.plan_files(table, "year > 2020", schema=SCHEMA)
    assert plan.paths == ["year=2022/month=1/day=1/part.parquet"]
    assert plan.table.n_unlisted == 1
    everything = sorted(entry.path for entry in location_of(table).entries(""))
    assert everything == ["year=2020/", "year=2022/"]


def test_a_day_that_there_is_not_lies_in_a_month(tmp_path: Path) -> None:
    """A whole listing asks nothing of it but the year, a cut one its month too."""
    for month, day in ((2, 28), (2, 30), (3, 1), (3, 32)):
        put(
            tmp_path / f"year=2022/month={month}/day={day}/part.parquet",
            {"id": [1], "dt": ["?"]},
        )
    sx.open_table(tmp_path).declare_derived(field="dt", format=FORMAT, timezone="UTC")
    where = "dt BETWEEN '2022-03-01' AND '2022-03-02'"
    plan = sx.plan_files(tmp_path, where, schema=SCHEMA)
    kept = [f"year=2022/month=3/day={day}/part.parquet" for day in (1, 32)]
    assert (plan.paths, plan.table.n_unlisted) == (kept, 1)
    whole = sx.open_table(tmp_path, schema=SCHEMA).plan(where).paths
    assert whole == ["year=2022/month=2/day=30/part.parquet", *kept]


def test_indexes_answer_of_the_folders_that_are_listed(tmp_path: Path) -> None:
    for month in MONTHS:
        put_day(tmp_path, 2020 + month % 2, month, 1, width=1)
    opened = sx.open_table(tmp_path, schema=SCHEMA)
    table = opened.build_indexes({"id": "bitmap"}, workers=1).table
    where = "year = 2020 AND id = 1"
    plan = sx.plan_files(tmp_path, where, schema=SCHEMA)
    assert (len(plan.table), plan.table.n_unlisted) == (6, 1)
    assert plan.count_bounds == table.plan(where).count_bounds == (6, 6)


def test_a_table_with_hidden_files_is_listed_whole(tmp_path: Path) -> None:
    """They may lie in other folders than the files of which they have the rows."""
    for i in range(4):
        folder = tmp_path / f"year={2020 + i % 2}"
        put(folder / f"{i}.parquet", {"id": list(range(10 * i, 10 * i + 10))})
    sx.build_indexes(tmp_path, {"id": "minmax"}, workers=1)
    optimized(tmp_path)
    schema = pa.schema({"id": pa.int64(), "year": pa.int32()})
    plan = sx.plan_files(tmp_path, "year = 2020", schema=schema)
    assert (len(plan.table), plan.table.n_unlisted) == (2, 0)
    assert plan.paths == sx.open_table(tmp_path).plan("year = 2020").paths
    sx.open_table(tmp_path).vacuum(retention=timedelta(0))
    plan = sx.plan_files(tmp_path, "year = 2020", schema=schema)
    assert (len(plan.table), plan.table.n_unlisted) == (1, 1)
