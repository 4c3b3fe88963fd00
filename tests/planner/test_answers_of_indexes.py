"""What indexes answer about matching rows, compared with the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import AbstractBitMap, BitMap

import skipindex as sx
from skipindex.expressions.atoms import (
    Atom,
    NotNullAtom,
    NullAtom,
    OneOf,
    Range,
    Value,
)
from skipindex.expressions.bounds import Bounds
from skipindex.expressions.domain import INT64_MAX, Domain, float_key
from skipindex.planner.answers import MAX_GROUPS, MatchingRows
from skipindex.planner.plan import Plan
from skipindex.planner.stages.index_reader import IndexReader
from tests.planner import mixed_table

Rows = Sequence[Mapping[str, Any]]
CONDITIONS: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "TRUE": lambda _: True,
    "i > 12": lambda row: row["i"] is not None and row["i"] > 12,
    "NOT b": lambda row: row["b"] is False,
    "s = 'a' OR small >= 2": lambda row: (
        row["s"] == "a" or (row["small"] is not None and row["small"] >= 2)
    ),
    "i IS NULL AND part <> 1": lambda row: row["i"] is None and row["part"] != 1,
    "part = 2": lambda row: row["part"] == 2,
    "constant = 'one' AND dec < 0": lambda row: (
        row["dec"] is not None and row["dec"] < 0
    ),
    "d < DATE '1999-01-01'": lambda _: False,
}
KINDS = ("bitmap", "bit_sliced", "range_bitmap", "run_length", "minmax")
COLUMNS = ("id", "i", "small", "s", "d", "ts", "dec", "big", "b", "constant", "part")


def rows_of(root: str, path: str) -> Rows:
    part = int(path.split("/", maxsplit=1)[0].removeprefix("part="))
    found = pq.ParquetFile(f"{root}/{path}").read().to_pylist()
    lacking = dict.fromkeys(mixed_table.TYPES)
    return [lacking | row | {"part": part} for row in found]


def in_domain(values: Sequence[Any], name: str, domain: Domain) -> list[Any]:
    dtype = mixed_table.TYPES.get(name, pa.int32())
    found: list[Any] = domain.encode(pa.array(values, dtype)).to_pylist()
    return found


def every(plan: Plan) -> np.ndarray:
    return np.ones(len(plan.table), bool)


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_is_that_of_the_rows(tmp_path: Path, kind: str) -> None:
    root = mixed_table.make(tmp_path / "m", Random(f"answers {kind}"), kind=kind)
    n_known: Counter[str] = Counter()
    for where, holds in CONDITIONS.items():
        plan = sx.plan_files(where, table=root, timezone="UTC")
        found = MatchingRows(plan, every(plan))
        matching = [
            [row for row in rows_of(root, path) if holds(row)]
            for path in plan.table.paths
        ]
        for file in np.flatnonzero(found.counted):
            assert found.counts[file] == len(matching[file]), where
            n_known["count"] += 1
        for name in COLUMNS:
            column = plan.table.resolve(name)
            assert column.domain is not None
            values = [
                in_domain([row[name] for row in rows], name, column.domain)
                for rows in matching
            ]
            for greatest, extreme in ((False, min), (True, max)):
                extremes = found.extremes(column, greatest=greatest)
                for file, (value,) in extremes.items():
                    there = [v for v in values[file] if v is not None]
                    assert value == extreme(there, default=None), (where, name, file)
                n_known["extreme"] += len(extremes)
            groups = found.groups(column)
            for file, counted in groups.items():
                assert counted == Counter(values[file]), (where, name, file)
            n_known["groups"] += len(groups)
    n_cases = len(CONDITIONS) * 8
    if kind != "minmax":
        # All but the new file are known, but for columns without such an index.
        assert n_known["count"] == n_cases
        assert n_known["extreme"] >= 2 * n_cases * 9
        assert n_known["groups"] >= n_cases * 9
    assert n_known["count"] >= 16


def table_of(
    tmp_path: Path, columns: Mapping[str, Sequence[Any]], kind: str = "bitmap"
) -> sx.Table:
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "t" / "0.parquet")
    report = sx.build_indexes(tmp_path / "t", dict.fromkeys(columns, kind), workers=1)
    return report.table


def test_values_at_the_ends_of_the_domain(tmp_path: Path) -> None:
    ends = [INT64_MAX, -INT64_MAX - 1, 0, None]
    table = table_of(tmp_path, {"x": ends, "y": [1, 1, 2, 2]})
    for where, expected in (
        ("y = 1", (-INT64_MAX - 1, INT64_MAX)),
        ("y = 2", (0, 0)),
        ("x = 0", (0, 0)),
        ("x IS NULL", (None, None)),
    ):
        plan = table.plan(where)
        found = MatchingRows(plan, every(plan))
        column = plan.table.resolve("x")
        ways = (False, True)
        assert [found.extremes(column, greatest=g)[0].value for g in ways] == [
            *expected
        ]


def test_a_column_of_more_values_than_are_listed(tmp_path: Path) -> None:
    """The extreme is looked for between the bounds, and groups are left."""
    numbers = [(i * 7919) % 50_000 for i in range(20_000)]
    table = table_of(tmp_path, {"x": numbers, "y": [i % 3 for i in range(20_000)]})
    plan = table.plan("y = 1")
    found = MatchingRows(plan, every(plan))
    column = plan.table.resolve("x")
    mine = numbers[1::3]
    assert found.extremes(column, greatest=False) == {0: (min(mine),)}
    assert found.extremes(column, greatest=True) == {0: (max(mine),)}
    assert len(set(numbers)) > MAX_GROUPS
    assert found.groups(column) == {}


def test_floats_and_bytes_have_no_results(tmp_path: Path) -> None:
    """Zero and minus zero are one value of the domain, and NaN is not always one."""
    table = table_of(tmp_path, {"f": [0.0, -0.0], "raw": [b"a", b"b"]})
    plan = table.plan("TRUE")
    found = MatchingRows(plan, every(plan))
    assert plan.table.resolve("f").domain is not None
    assert float_key(0.0) == float_key(-0.0)
    for name in ("f", "raw"):
        column = plan.table.resolve(name)
        assert found.extremes(column, greatest=True) == {}
        assert found.groups(column) == {}


def test_a_long_text_is_no_extreme_where_it_was_cut(tmp_path: Path) -> None:
    """The statistics have the first bytes of it, the bitmaps all."""
    texts = ["a" * 70, "b" * 70]
    for kind, expected in (("minmax", {}), ("bitmap", {0: (b"b" * 70,)})):
        folder = tmp_path / kind
        folder.mkdir()
        table = table_of(folder, {"s": texts}, kind)
        plan = table.plan("TRUE")
        column = plan.table.resolve("s")
        found = MatchingRows(plan, every(plan))
        assert found.extremes(column, greatest=True) == expected


def test_a_condition_that_is_not_judged_answers_nothing(tmp_path: Path) -> None:
    table = table_of(tmp_path, {"x": [1, 2], "y": [1, 2]})
    plan = table.plan("unknown_function(y) AND x > 0")
    found = MatchingRows(plan, every(plan))
    assert not found.counted.any()
    assert found.extremes(plan.table.resolve("x"), greatest=True) == {}


def test_files_that_are_not_asked_about_have_no_answer(tmp_path: Path) -> None:
    table = table_of(tmp_path, {"x": [1, 2]})
    plan = table.plan("x > 0")
    found = MatchingRows(plan, ~every(plan))
    assert found.groups(plan.table.resolve("x")) == {}


class Told:
    """An index that answers what it is told.

    Args:
        rows: by value.
        is_sure: whether it is sure of them.
        present: the rows with a value; by default those of all values.
    """

    def __init__(
        self,
        rows: dict[Value, BitMap],
        *,
        is_sure: bool = True,
        present: BitMap | None = None,
    ) -> None:
        self.rows = rows
        self.is_sure = is_sure
        self.present = present

    def distinct(self, limit: int) -> list[Value]:
        return list(self.rows)[:limit]

    def probe(self, atom: Atom) -> Bounds[AbstractBitMap]:
        match atom:
            case NullAtom():
                values = []
            case OneOf(values=some):
                values = [value for value in self.rows if value in some]
            case Range(low=low, high=high):
                values = [
                    value
                    for value in self.rows
                    if (low is None or value >= low) and (high is None or value < high)
                ]
            case _:
                values = list(self.rows)
        found = BitMap().union(*(self.rows[value] for value in values))
        if isinstance(atom, NotNullAtom) and self.present is not None:
            found = self.present
        return Bounds(found if self.is_sure else BitMap(), found)


@pytest.mark.parametrize(
    ("told", "groups", "greatest"),
    [
        (Told({1: BitMap([0]), 2: BitMap([1])}), {1: 1, 2: 1}, 2),
        (Told({1: BitMap([0])}, present=BitMap([0, 1])), None, 1),
        (Told({1: BitMap([0]), 2: BitMap([1])}, is_sure=False), None, None),
        (Told({7: BitMap([2]), 8: BitMap()}, present=BitMap([0, 1, 2])), None, None),
    ],
)
def test_what_an_index_does_not_know_is_no_answer(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    told: Told,
    groups: dict[Value, int] | None,
    greatest: int | None,
) -> None:
    """Values that it does not list, rows of which it is not sure, values of no row."""
    table = table_of(tmp_path, {"x": [1, 2, 3], "y": [1, 1, 2]})
    plan = table.plan("y = 1")
    found = MatchingRows(plan, every(plan))
    column = plan.table.resolve("x")
    assert found.groups(column) == {0: {1: 1, 2: 1}}
    monkeypatch.setattr(IndexReader, "open", lambda *_: told)
    assert found.groups(column) == ({} if groups is None else {0: groups})
    expected = {} if greatest is None else {0: (greatest,)}
    assert found.extremes(column, greatest=True) == expected


def test_one_value_and_no_value_are_two_groups(tmp_path: Path) -> None:
    table = table_of(tmp_path, {"x": [5, 5, None]})
    plan = table.plan("TRUE")
    found = MatchingRows(plan, every(plan))
    assert found.groups(plan.table.resolve("x")) == {0: {5: 2, None: 1}}


def test_a_damaged_index_answers_nothing(tmp_path: Path) -> None:
    table = table_of(tmp_path, {"x": [1, 2, 3], "y": [1, 1, 2]})
    for pack in (tmp_path / "t" / "_skipindex").rglob("*.pack"):
        raw = bytearray(pack.read_bytes())
        raw[40:80] = bytes(40)
        pack.write_bytes(raw)
    plan = sx.open_table(table.folder).plan("y = 1")
    found = MatchingRows(plan, every(plan))
    for greatest in (False, True):
        answer = found.extremes(plan.table.resolve("x"), greatest=greatest)
        assert set(answer.items()) <= {(0, (2 if greatest else 1,))}
