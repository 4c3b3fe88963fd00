"""Which column of the files a name is, whatever capitals folders and files have."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import skipindex as sx
from tests.table.which_column import (
    CONDITIONS,
    NAMES,
    ROWS,
    Table,
    ids_of,
    is_true,
    same,
)
from tests.tables import build, kept, put


@pytest.mark.parametrize("kinds", ["minmax", "bitmap", "bloom"])
def test_a_partition_hides_what_the_files_hold_in_other_capitals(
    tmp_path: Path, kinds: str
) -> None:
    for i, day in enumerate([1, 2, 3]):
        days = pa.array([7 - i] * 5, pa.int32())
        values = {"v": range(10 * i, 10 * i + 5), "day": days}
        put(tmp_path / f"Day={day}/f.parquet", values)
    build(tmp_path, {"*": kinds})
    for table in (sx.open_table(tmp_path), of_reader(tmp_path)):
        assert kept(table, "v = 11 AND day = 2") == ["Day=2/f.parquet"]
        assert kept(table, "day = 6") == []
        assert table.plan("day = 2").count_bounds[1] == 5
        (name, *_) = [c.name for c in table.state.columns if c.name.lower() == "day"]
        assert not table.state.blobs(table.state.resolve(name))


def of_reader(folder: Path) -> sx.Table:
    """The table with the columns that Spark gives a reader, one of each name."""
    found = sx.open_table(folder)
    hidden = {p.name.lower() for p in found.state.partitions}
    own = [f for f in found.state.schema if f.name.lower() not in hidden]
    return sx.open_table(folder, schema=pa.schema(own))


@pytest.mark.few(2)
@pytest.mark.parametrize("kinds", ["minmax", "bitmap", "bloom"])
@pytest.mark.parametrize(
    "seed", [0, 1, 2, *(pytest.param(n, marks=pytest.mark.slow) for n in range(3, 8))]
)
def test_a_name_is_the_column_that_spark_reads(
    tmp_path: Path, seed: int, kinds: str
) -> None:
    """Files are kept and rows are counted by what a reader of that name gets."""
    random, is_tight = Random(seed), kinds == "bitmap"
    for case in range(4):
        drawn = Table.draw(random)
        folder = drawn.write(tmp_path / f"{case}")
        build(folder, {"*": kinds})
        for table in (sx.open_table(folder), of_reader(folder)):
            for exact in (False, True):
                check(drawn, table, random, exact=exact, is_tight=is_tight)


def check(
    drawn: Table, table: sx.Table, random: Random, *, exact: bool, is_tight: bool
) -> None:
    columns = drawn.schema(exact=exact)
    names = [n for n in NAMES if any(same(n, column, exact) for column in columns)]
    known = {c.name for c in table.state.columns}
    for name in names:
        if exact and name not in known:
            continue  # hidden from the reader that names a folder's column once
        for condition in CONDITIONS:
            ids = random.sample(range(ROWS * len(drawn.files)), 4)
            listed = ", ".join(map(str, ids))
            expected = [
                sum(
                    n in ids and is_true(value, condition)
                    for n, value in zip(
                        ids_of(file), drawn.values(file, name, exact=exact), strict=True
                    )
                )
                for file in range(len(drawn.files))
            ]
            text = f"id IN ({listed}) AND {name} {condition}"
            plan = table.plan(text, case_sensitive=exact)
            needed = {p for p, n in zip(drawn.paths(), expected, strict=True) if n}
            case = (drawn, text, exact)
            assert needed <= set(plan.paths), case
            low, high = plan.count_bounds
            assert low <= sum(expected) <= high, case
            if is_tight and not exact:
                assert needed == set(plan.paths), case
