"""LIMIT and ORDER BY: files that no wanted row can be of are not read."""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cmp_to_key
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skipindex as sx
from skipindex.errors import PlanError, PredicateError
from skipindex.expressions import Reference
from skipindex.planner.stages.limit import SortKey, parse_order
from skipindex.table import ColumnInfo, FileStats, TableState
from skipindex.table.statistics.counts import Counts
from tests import oracle
from tests.quick_run import examples
from tests.strategies import integers_of, predicates, tables, to_arrow
from tests.tables import build, put, put_all


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four files of ten rows, ``a`` from 0 to 39, ``b`` within each from 0 to 9."""
    files = [{"a": [*range(10 * i, 10 * i + 10)], "b": [*range(10)]} for i in range(4)]
    return put_all(tmp_path, files)


def test_a_limit_reads_files_that_certainly_hold_enough(folder: Path) -> None:
    table = build(folder)
    assert len(table.plan("a >= 0", limit=10).paths) == 1
    assert len(table.plan("a >= 0", limit=11).paths) == 2
    assert len(table.plan("a >= 0").paths) == 4
    plan = table.plan("a >= 0", limit=1)
    assert plan.count_bounds == (40, 40), "of the predicate, not of what is read"
    left_out = plan.skipped[0]
    assert left_out.stage == "limit"
    assert left_out.reason == "10 rows of the files that are read certainly match"
    assert plan.stages[-1].name == "limit"
    assert plan.stages[-1].n_files == 1


def test_rows_that_only_may_match_are_not_enough(folder: Path) -> None:
    table = build(folder)
    plan = table.plan("a >= 0 AND b = 3", limit=1)
    assert len(plan.paths) == 4
    assert plan.stages[-1].note == "fewer than 1 rows certainly match"
    assert len(build(folder, {"b": "bitmap"}).plan("b = 3", limit=2).paths) == 2


def test_a_file_that_no_index_knows_is_not_counted_on(folder: Path) -> None:
    build(folder)
    put(folder / "4.parquet", {"a": [50] * 99, "b": [1] * 99})
    assert len(sx.plan_files("a >= 0", table=folder, limit=41).paths) == 5
    assert len(sx.plan_files("a >= 0", table=folder, limit=40).paths) == 4


def test_no_row_is_wanted(folder: Path) -> None:
    plan = build(folder).plan("a >= 0", limit=0)
    assert plan.paths == []
    assert {s.reason for s in plan.skipped} == {"the limit is 0"}


@pytest.mark.parametrize(
    ("order", "limit", "expected"),
    [
        ("a", 10, ["0.parquet"]),
        ("a", 11, ["0.parquet", "1.parquet"]),
        ("a DESC", 5, ["3.parquet"]),
        (["a desc nulls last", "b"], 5, ["3.parquet"]),
        ("A", 3, ["0.parquet"]),
        ("b", 5, ["0.parquet", "1.parquet", "2.parquet", "3.parquet"]),
    ],
)
def test_the_first_rows_are_in_the_files_read(
    folder: Path, order: Any, limit: int, expected: list[str]
) -> None:
    plan = build(folder).plan("a >= 0", limit=limit, order_by=order)
    assert plan.paths == expected


def test_the_order_is_of_rows_that_match(folder: Path) -> None:
    """Smaller values elsewhere do not count if their rows may not match."""
    table = build(folder, {"a": "bitmap", "b": "bitmap"})
    plan = table.plan("b = 5 AND a > 12", limit=1, order_by="a")
    assert plan.paths == ["1.parquet"]
    assert plan.skipped[-1].reason == "1 rows that match have a up to 19"
    only = table.plan("b = 5 AND a > 12", limit=1, order_by="a", kinds="minmax")
    assert only.paths == ["1.parquet", "2.parquet", "3.parquet"]


def test_without_statistics_no_order_is_known(folder: Path) -> None:
    table = build(folder, {"a": "bitmap"})
    plan = table.plan("a >= 0", limit=1, order_by="a", without="minmax")
    assert len(plan.paths) == 4
    assert plan.stages[-1].note == "the order of a is not known"


def test_a_limit_of_a_column_without_order(tmp_path: Path) -> None:
    put(tmp_path / "f.parquet", {"l": [[1]], "s": [{"x": 1}]})
    table = build(tmp_path)
    for order in ("l", "s", "s.x"):
        assert table.plan("TRUE", limit=1, order_by=order).paths == ["f.parquet"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": -1}, "not a limit: -1"),
        ({"order_by": "a"}, "order_by without limit"),
        ({"limit": 1, "order_by": "a, b"}, "not a sort key: 'a, b'"),
        ({"limit": 1, "order_by": []}, "order_by has no column"),
    ],
)
def test_what_is_no_limit(folder: Path, options: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        build(folder).plan("a > 1", **options)
    with pytest.raises(PredicateError, match="no column 'zz'"):
        build(folder).plan("a > 1", limit=1, order_by="zz")


def test_sort_keys_as_spark_reads_them() -> None:
    a = Reference(("a",))
    assert parse_order("a") == (SortKey(a, descending=False, nulls_first=True),)
    assert parse_order(["a DESC"]) == (SortKey(a, descending=True, nulls_first=False),)
    (key,) = parse_order("  `x, y`.z  asc  NULLS  last ")
    assert key == SortKey(Reference(("x, y", "z")), descending=False, nulls_first=False)
    assert str(key) == "`x, y`.z ASC NULLS LAST"


def sorted_rows(
    rows: list[dict[str, Any]], *, descending: bool, nulls_first: bool
) -> list[dict[str, Any]]:
    def order(x: dict[str, Any], y: dict[str, Any]) -> int:
        a, b = x["a"], y["a"]
        if a is None or b is None:
            here = (a is not None) - (b is not None)
            return here if nulls_first else -here
        found = oracle.compare(a, b)
        return -found if descending else found

    return sorted(rows, key=cmp_to_key(order))


@examples(30, whole=130)
@given(st.data())
def test_a_plan_with_an_order_has_the_first_rows(data: st.DataObject) -> None:
    """By brute force: the keys of the first rows are those of the files read."""
    drawn = data.draw(tables(max_columns=2, min_rows=1))
    tree = data.draw(predicates(drawn, max_leaves=2))
    descending, nulls_first = data.draw(st.booleans()), data.draw(st.booleans())
    limit = data.draw(st.integers(0, 8))
    whole = to_arrow(drawn)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = data.draw(st.integers(1, 6))
        for i, start in enumerate(range(0, len(whole), size)):
            pq.write_table(whole.slice(start, size), folder / f"{i:03d}.parquet")
        indexes = {c: data.draw(st.sampled_from(["bitmap", "bloom"])) for c in drawn}
        table = build(folder, indexes)
        order = SortKey(Reference(("a",)), descending, nulls_first)
        plan = table.plan(tree, timezone="UTC", limit=limit, order_by=str(order))
        unordered = table.plan(tree, timezone="UTC", limit=limit)

        def matching(paths: Sequence[str]) -> list[dict[str, Any]]:
            rows = []
            for path in paths:
                rows += pq.read_table(folder / path).to_pylist()
            return [
                row
                for row in rows
                if oracle.evaluate(tree, row, integers=integers_of(drawn))
            ]

        found, wanted = [
            sorted_rows(matching(paths), descending=descending, nulls_first=nulls_first)
            for paths in (plan.paths, table.paths)
        ]
        keys = [[_key(row["a"]) for row in rows[:limit]] for rows in (found, wanted)]
        assert keys[0] == keys[1]
        assert len(matching(unordered.paths)) >= min(limit, len(wanted))


@pytest.mark.parametrize(
    ("where", "order", "expected"),
    [
        ("TRUE", "t DESC", [5]),
        ("TRUE", "t NULLS LAST", [0]),
        ("t IS NOT NULL", "t DESC", [5]),
        ("t IS NOT NULL", "t DESC NULLS FIRST", [5]),
        ("t IS NOT NULL", "t", [0]),
        ("t >= 10", "t", [1]),
        ("t >= 10", "t DESC NULLS FIRST", [5]),
        ("t >= 10 OR t IS NULL", "t DESC", [5]),
        ("t IS NULL", "t", [0, 1, 2, 3, 4, 5]),  # all are equal
        ("TRUE", "t", [0, 1, 2, 3, 4, 5]),
    ],
)
def test_a_null_in_each_file_costs_no_file(
    tmp_path: Path, where: str, order: str, expected: list[int]
) -> None:
    put_all(
        tmp_path,
        [{"t": [10 * i + 9, None, *range(10 * i, 10 * i + 8)]} for i in range(6)],
    )
    plan = build(tmp_path).plan(where, limit=3, order_by=order)
    assert plan.paths == [f"{i}.parquet" for i in expected]
    assert len(plan.paths) == plan.stages[-1].n_files


def test_a_file_with_enough_nulls_is_enough_where_they_come_first(
    tmp_path: Path,
) -> None:
    put_all(tmp_path, [{"t": [1, 2]}, {"t": [3, None, None]}, {"t": [4, 5]}])
    table = build(tmp_path)
    for order in ("t", "t DESC NULLS FIRST"):
        assert table.plan("TRUE", limit=2, order_by=order).paths == ["1.parquet"]


def test_an_unknown_number_of_nulls_is_not_counted_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = TableState.stats

    def stats(table: TableState, column: ColumnInfo) -> FileStats:
        known = real(table, column)
        every = np.ones_like(known.can_null)
        nulls = Counts.unknown(2)
        return replace(known, nulls=nulls, can_null=every, can_value=every)

    put_all(tmp_path, [{"t": [1, None]}, {"t": [5, 6]}])
    monkeypatch.setattr(TableState, "stats", stats)
    plan = build(tmp_path).plan("TRUE", limit=2, order_by="t NULLS LAST")
    assert plan.paths == ["0.parquet", "1.parquet"]


Row = tuple[int | None, int | None]
CONDITIONS: dict[str, Callable[[Row], bool | None]] = {
    "TRUE": lambda _: True,
    "t IS NOT NULL": lambda row: row[0] is not None,
    "t IS NULL": lambda row: row[0] is None,
    "t > 3": lambda row: row[0] and row[0] > 3,
    "t > 3 AND t <= 8": lambda row: row[0] and 3 < row[0] <= 8,
    "t <> 5": lambda row: row[0] and row[0] != 5,
    "t IS NULL OR t < 4": lambda row: row[0] is None or row[0] < 4,
    "t IS NULL OR u > 2": lambda row: row[0] is None or (row[1] and row[1] > 2),
    "t < 20 AND u < 20": lambda row: None not in row,
    "t > u": lambda row: None not in row and row[0] > row[1],
    "NOT (t <=> u)": lambda row: row[0] != row[1],
    "abs(t) > 2": lambda row: row[0] and row[0] > 2,
    "coalesce(t, 7) > 5": lambda row: (row[0] or 7) > 5,
}


def draw_file(drawn: random.Random) -> list[Row]:
    """Rows of ``t`` and ``u``, which are close to each other, and many NULL."""
    start, null = drawn.randint(1, 9), drawn.choice([0.1, 0.5, 0.9])

    def value() -> int | None:
        return None if drawn.random() < null else start + drawn.randint(0, 2)

    return [(value(), value()) for _ in range(drawn.randint(1, 6))]


@pytest.mark.parametrize("seed", range(2))
def test_the_first_rows_beside_nulls_are_those_of_all_files(
    tmp_path: Path, seed: int
) -> None:
    """By brute force; of some files the number of NULLs is not known."""
    drawn = random.Random(seed)
    schema = pa.schema({"t": pa.int64(), "u": pa.int64()})

    def write(path: Path, rows: Sequence[Row]) -> list[Row]:
        columns = zip(*rows, strict=True)
        table = pa.table([pa.array(c, pa.int64()) for c in columns], schema=schema)
        if not any(t for t, _ in rows):  # a column that a file lacks is NULL
            table = table.select(["u"])
        put(path, table)
        return list(rows)

    for n in range(12):
        folder = tmp_path / str(n)
        files = [
            write(folder / f"{i}.parquet", draw_file(drawn))
            for i in range(drawn.randint(1, 7))
        ]
        kinds = {"t": drawn.choice(["minmax", "bitmap"]), "u": "minmax"}
        sx.open_table(folder, schema=schema).build_indexes(kinds, workers=1)
        for i in range(drawn.randint(0, 2)):
            files[i : i + 1] = [write(folder / f"{i}.parquet", draw_file(drawn))]
        table = sx.open_table(folder, schema=schema)
        for where, is_true in CONDITIONS.items():
            rows = [[row[0] for row in file if is_true(row)] for file in files]
            plan = table.plan(where)
            n_rows, counts = np.array([len(some) for some in rows]), plan.row_counts
            assert (counts.lower <= n_rows).all(), where
            assert ((n_rows <= counts.upper) | (counts.upper < 0)).all(), where
            for order in ("t", "t NULLS LAST", "t DESC", "t DESC NULLS FIRST"):
                limit = drawn.randint(1, 9)
                plan = table.plan(where, limit=limit, order_by=order)
                read = [int(path.removesuffix(".parquet")) for path in plan.paths]
                found = in_order([t for i in read for t in rows[i]], order)
                wanted = in_order([t for some in rows for t in some], order)
                assert found[:limit] == wanted[:limit], (where, order, limit)


def in_order(values: list[int | None], order: str) -> list[int | None]:
    (key,) = parse_order(order)
    sign = -1 if key.descending else 1
    return sorted(
        values, key=lambda t: ((t is None) != key.nulls_first, sign * (t or 0))
    )


def _key(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


def test_the_order_of_edges_in_spark_s_terms(tmp_path: Path) -> None:
    """NaN above infinity, NULL where it is asked for, long texts by their bytes."""
    values: list[list[float | None]] = [[math.nan], [math.inf], [-math.inf], [None]]
    put_all(tmp_path, [{"v": pa.array(v, pa.float64())} for v in values])
    table = build(tmp_path)

    def first(order: str) -> list[str]:
        return table.plan("TRUE", limit=1, order_by=order).paths

    assert first("v DESC") == ["0.parquet"]
    assert first("v DESC NULLS FIRST") == ["3.parquet"]
    assert first("v") == ["3.parquet"]
    assert first("v NULLS LAST") == ["2.parquet"]


@pytest.mark.parametrize(("order", "first"), [("v", 1), ("v DESC", 90)])
def test_a_file_whose_best_row_is_among_the_first_is_read(
    tmp_path: Path, order: str, first: int
) -> None:
    """Trap C-50: the file of the first row may hold the last one too."""
    put_all(tmp_path, [{"v": [40, 50]}, {"v": [1, 90]}, {"v": [60, 61], "w": [0, 0]}])
    plan = build(tmp_path).plan("TRUE", limit=2, order_by=order)
    assert "1.parquet" in plan.paths, f"it holds {first}"
    assert len(plan.paths) == 2


def test_a_text_that_was_cut_is_still_a_bound(tmp_path: Path) -> None:
    long = "x" * 3000
    put_all(tmp_path, [{"s": [long + "a"]}, {"s": [long + "b"]}, {"s": ["y"]}])
    plan = build(tmp_path).plan("s > 'a'", limit=1, order_by="s")
    assert plan.paths == ["0.parquet", "1.parquet"]
