"""Files that change after they were indexed, and columns that change their type.

No Spark here: what is right is read from the files with PyArrow.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from tests.tables import build, kept, put, put_all, set_mtime

KINDS = ["bitmap", "bloom", "range_bitmap", "bit_sliced"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put_all(tmp_path, [{"a": [10 * i, 10 * i + 1]} for i in range(3)])
    build(tmp_path, {"a": KINDS})
    return tmp_path


def gaps(folder: Path) -> dict[str, int]:
    return sx.open_table(folder).state.index_gaps


def test_trap_c42_a_file_rewritten_in_place_with_the_same_size(folder: Path) -> None:
    path = folder / "1.parquet"
    size = path.stat().st_size
    put(path, {"a": [50, 51]})
    assert path.stat().st_size == size, "only the mark of modification differs"
    assert kept(folder, "a = 50") == ["1.parquet"]
    assert gaps(folder) == {"changed since it was indexed": 1}
    assert kept(folder, "a = 10") == ["1.parquet"], "it might be there"
    assert kept(build(folder, {"a": KINDS}), "a = 10") == []


def test_trap_c42_a_file_with_another_size_and_the_same_mark(folder: Path) -> None:
    path = folder / "1.parquet"
    mark = path.stat().st_mtime_ns
    put(path, {"a": [*range(50, 500)]})
    os.utime(path, ns=(mark, mark))
    assert kept(folder, "a = 77") == ["1.parquet"]


def test_a_file_that_was_only_touched_is_kept_and_indexed_again(folder: Path) -> None:
    set_mtime(folder / "1.parquet", 1e9)
    assert kept(folder, "a = 0") == ["0.parquet", "1.parquet"]
    report = sx.build_indexes(folder, {"a": KINDS}, workers=1)
    assert report.files == 1
    assert kept(report.table, "a = 0") == ["0.parquet"]


def test_trap_c44_a_file_that_was_never_indexed_is_kept(folder: Path) -> None:
    put(folder / "new.parquet", {"a": [100, 101]})
    assert kept(folder, "a = 20") == ["2.parquet", "new.parquet"]
    assert gaps(folder) == {"never indexed": 1}


def test_a_deleted_file_is_not_planned(folder: Path) -> None:
    (folder / "1.parquet").unlink()
    assert kept(folder, "a = 10") == []
    assert kept(folder, "a >= 0") == ["0.parquet", "2.parquet"]
    assert gaps(folder) == {}


def test_a_renamed_file_is_kept(folder: Path) -> None:
    """Its bytes are known, but by another name."""
    (folder / "1.parquet").rename(folder / "other.parquet")
    assert kept(folder, "a = 20") == ["2.parquet", "other.parquet"]


def test_trap_c43_names_that_are_swapped_are_noticed(folder: Path) -> None:
    """Same names, same sizes, other contents: the marks move with the files."""
    (folder / "0.parquet").rename(folder / "x")
    (folder / "1.parquet").rename(folder / "0.parquet")
    (folder / "x").rename(folder / "1.parquet")
    assert "0.parquet" in kept(folder, "a = 10")
    assert "1.parquet" in kept(folder, "a = 0")


def test_a_file_that_comes_back_is_known_until_a_commit_forgets_it(
    folder: Path,
) -> None:
    backup = shutil.copy2(folder / "1.parquet", folder.parent / "backup")
    (folder / "1.parquet").unlink()
    shutil.copy2(backup, folder / "1.parquet")
    assert kept(folder, "a = 0") == ["0.parquet"]
    (folder / "1.parquet").unlink()
    build(folder, {"a": KINDS})
    shutil.copy2(backup, folder / "1.parquet")
    assert kept(folder, "a = 0") == ["0.parquet", "1.parquet"]
    assert gaps(folder) == {"never indexed": 1}


def test_trap_c43_statistics_and_packs_go_stale_together(folder: Path) -> None:
    """A build of one column does not make the old indexes of another look fresh."""
    put(folder / "1.parquet", {"a": [70, 71], "b": [1, 2]})
    put(folder / "0.parquet", {"a": [0, 1], "b": [5, 6]})
    table = build(folder, {"b": "bitmap", "a": None})
    assert kept(table, "a = 70") == ["0.parquet", "1.parquet"]
    assert kept(table, "a = 70 AND b = 1") == ["1.parquet", "2.parquet"][:1]


def test_every_row_of_a_table_whose_files_all_changed(folder: Path) -> None:
    for i in range(3):
        put(folder / f"{i}.parquet", {"a": [100 + i]})
    assert len(kept(folder, "a = 101")) == 3
    assert sx.plan_files("a = 101", table=folder).count_bounds == (0, None)


CHANGES: dict[str, tuple[pa.Array, pa.Array, str]] = {
    "int to string": (pa.array([1, 2]), pa.array(["1", "2"]), "c = '2'"),
    "string to int": (pa.array(["1", "2"]), pa.array([1, 2]), "c = 2"),
    "int to double": (pa.array([1, 2]), pa.array([1.5, 2.5]), "c = 2.5"),
    "int to decimal": (
        pa.array([1, 2]),
        pa.array([Decimal("1.5"), Decimal("2.5")], pa.decimal128(5, 1)),
        "c = 2.5BD",
    ),
    "decimal of another scale": (
        pa.array([Decimal("1.5"), Decimal("2.5")], pa.decimal128(5, 1)),
        pa.array([Decimal("1.55"), Decimal("2.55")], pa.decimal128(5, 2)),
        "c = 2.55BD",
    ),
    "date to timestamp": (
        pa.array([1, 2], pa.date32()),
        pa.array([1, 2], pa.timestamp("us", "UTC")),
        "c = TIMESTAMP '1970-01-01 00:00:00.000002Z'",
    ),
    "bool to int": (pa.array([False, True]), pa.array([0, 7]), "c = 7"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_trap_c46_a_column_that_was_dropped_and_added_with_another_type(
    tmp_path: Path, name: str
) -> None:
    """The first file, which gives the schema, has the new type; the index the old."""
    old, new, condition = CHANGES[name]
    put_all(tmp_path, [{"c": old}, {"c": old}])
    build(tmp_path, {"c": KINDS if not pa.types.is_boolean(old.type) else "bitmap"})
    put(tmp_path / "0.parquet", {"c": new})
    table = sx.open_table(tmp_path)
    assert kept(table, condition) == ["0.parquet", "1.parquet"]
    assert kept(table, "c IS NULL") == ["0.parquet", "1.parquet"]
    # Built again, the old file is of another type than the table, and kept.
    again = build(tmp_path, {"c": "bitmap"})
    assert kept(again, condition) == ["0.parquet", "1.parquet"]
    assert any("another in the table" in gap for gap in again.state.index_gaps)
    column = again.state.resolve("c")
    domains = {use.entry.meta.domain for use in again.state.blobs(column)}
    assert domains == {column.domain.tag if column.domain else ""}


ALIKE = {
    "decimal of more digits": (
        pa.array([Decimal("1.5"), Decimal("2.5")], pa.decimal128(5, 1)),
        pa.array([Decimal("1.5"), Decimal("9.5")], pa.decimal128(25, 1)),
        "c = 9.5BD",
    ),
    "timestamp to timestamp_ntz": (
        pa.array([1, 2], pa.timestamp("us", "UTC")),
        pa.array([1, 9], pa.timestamp("us")),
        "c = '1970-01-01 00:00:00.000009'",
    ),
    "string to binary": (pa.array(["a", "b"]), pa.array([b"a", b"z"]), "c = X'7A'"),
}
"""Spark reads the same values of the old file under the new type."""


@pytest.mark.parametrize("name", ALIKE)
def test_trap_c46_a_type_of_the_same_values_needs_a_new_index(
    tmp_path: Path, name: str
) -> None:
    old, new, condition = ALIKE[name]
    put_all(tmp_path, [{"c": old}, {"c": old}])
    build(tmp_path, {"c": KINDS})
    put(tmp_path / "0.parquet", {"c": new})
    assert kept(tmp_path, condition) == ["0.parquet", "1.parquet"]
    assert kept(tmp_path, "c IS NULL") == ["0.parquet", "1.parquet"]
    again = build(tmp_path, {"c": "bitmap"})
    assert kept(again, condition) == ["0.parquet"]
    assert kept(again, "c IS NULL") == []
    assert again.state.index_gaps == {}


WIDER: dict[str, tuple[pa.DataType, pa.DataType]] = {
    "int to bigint": (pa.int32(), pa.int64()),
    "byte to int": (pa.int8(), pa.int32()),
    "float to double": (pa.float32(), pa.float64()),
    "decimal of the same scale": (pa.decimal128(9, 2), pa.decimal128(18, 2)),
    "timestamp in ms to us": (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")),
}


def numbers(dtype: pa.DataType, *values: int) -> pa.Array:
    if pa.types.is_decimal(dtype):
        return pa.array(map(Decimal, values), dtype)
    return pa.array(values, pa.int64()).cast(dtype)


@pytest.mark.parametrize("name", WIDER)
def test_trap_c20_a_type_that_only_became_wider_keeps_its_indexes(
    tmp_path: Path, name: str
) -> None:
    narrow, wide = WIDER[name]
    put_all(tmp_path, [{"c": numbers(wide, 1, 2)}, {"c": numbers(narrow, 5, 6)}])
    table = build(tmp_path, {"c": "bitmap"})
    assert table.state.index_gaps == {}
    literal = {"decimal": "5BD", "timestamp": "TIMESTAMP '1970-01-01 00:00:00.005Z'"}
    condition = f"c = {literal.get(name.split(maxsplit=1)[0], '5')}"
    plan = table.plan(condition)
    assert (plan.paths, plan.count_bounds) == (["1.parquet"], (1, 1))


def test_trap_c20_a_bigint_file_in_an_int_table(tmp_path: Path) -> None:
    """No reader may skip it for a value that Spark cuts, and Spark fails."""
    put_all(
        tmp_path,
        [{"c": pa.array([1], pa.int32())}, {"c": pa.array([2**32 + 1], pa.int64())}],
    )
    table = build(tmp_path, {"c": "bitmap"})
    assert kept(table, "c = 1") == ["0.parquet", "1.parquet"]
    assert kept(table, "c > 1") == ["1.parquet"]
    assert any("does not fit" in gap for gap in table.state.index_gaps)
    assert kept(build(tmp_path, {"c": "bitmap"}), "c > 1") == ["1.parquet"]


def tables_with(files: list[Mapping[str, Any]], folder: Path) -> sx.Table:
    return build(put_all(folder, files), {"a": KINDS, "c": KINDS})


def test_trap_c27_columns_that_some_files_lack(tmp_path: Path) -> None:
    """A missing column is NULL to Spark, and never a reason to skip the others."""
    table = tables_with(
        [{"a": [1], "c": [5]}, {"a": [2]}, {"a": [3], "c": [7]}], tmp_path
    )
    assert kept(table, "c = 5") == ["0.parquet"]
    assert kept(table, "c IS NULL") == ["1.parquet"]
    assert kept(table, "c IS NOT NULL") == ["0.parquet", "2.parquet"]
    assert kept(table, "a = 2 AND c IS NULL") == ["1.parquet"]
    assert kept(table, "a = 3 AND c = 7") == ["2.parquet"]
    assert kept(table, "a = 2 OR c = 7") == ["1.parquet", "2.parquet"]
    assert kept(table, "NOT (c <=> 5)") == ["1.parquet", "2.parquet"]


def test_a_column_that_only_later_files_have_is_not_in_the_table(
    tmp_path: Path,
) -> None:
    """As Spark has it: the schema is that of the first file."""
    put_all(tmp_path, [{"a": [1]}, {"a": [2], "late": [1]}])
    table = build(tmp_path)
    with pytest.raises(sx.PredicateError, match="no column 'late'"):
        table.plan("late = 1")
    assert kept(table, "a = 2") == ["1.parquet"]


def test_trap_c26_statistics_of_some_files_only(tmp_path: Path) -> None:
    """The trap of delta-rs: statistics known of some columns, or files, or none."""
    put_all(tmp_path, [{"a": [i], "c": [i]} for i in range(3)])
    build(tmp_path, {"a": "minmax", "*": None})
    for i in (3, 4):
        put(tmp_path / f"{i}.parquet", {"a": [i], "c": [i]})
    some = sx.open_table(tmp_path)
    assert kept(some, "a = 1") == ["1.parquet", "3.parquet", "4.parquet"]
    assert kept(some, "c = 1") == some.paths, "no statistics of this column"
    assert kept(some, "a = 1 AND c = 9") == ["1.parquet", "3.parquet", "4.parquet"]
    assert kept(some, "a = 1 OR c = 9") == some.paths
    every = build(tmp_path, {"a": "minmax", "c": "minmax"})
    assert kept(every, "a = 1 AND c = 1") == ["1.parquet"]
    none = sx.open_table(tmp_path).drop_indexes()
    assert kept(none, "a = 1 AND c = 1") == none.paths


def test_trap_c55_files_without_rows(tmp_path: Path) -> None:
    """Skipped once their rows are counted, and only then."""
    nothing = pa.array([], pa.int64())
    put_all(tmp_path, [{"a": [1]}, {"a": nothing}, {"a": nothing}])
    assert kept(tmp_path, "a = 1") == ["0.parquet", "1.parquet", "2.parquet"]
    table = build(tmp_path, {"a": KINDS})
    for condition in ("a = 1", "a IS NOT NULL", "NOT a = 7", "a < 5"):
        assert kept(table, condition) == ["0.parquet"], condition
    assert kept(table, "a IS NULL") == []
    plan = table.plan("f(a)")
    assert plan.count_bounds == (0, 1)


def test_a_table_of_no_rows_at_all(tmp_path: Path) -> None:
    put_all(tmp_path, [{"a": pa.array([], pa.int64())}])
    plan = build(tmp_path, {"a": KINDS}).plan("a = 1 OR a IS NULL")
    assert (plan.paths, plan.count_bounds) == ([], (0, 0))


def test_trap_c45_a_compacted_table_is_not_judged_by_its_old_rows(
    tmp_path: Path,
) -> None:
    put_all(tmp_path, [{"a": [1, 2]}, {"a": [3, 4]}])
    build(tmp_path, {"a": "bitmap"})
    merged = pa.concat_tables(
        [pq.read_table(tmp_path / f"{i}.parquet") for i in (1, 0)]
    )
    (tmp_path / "1.parquet").unlink()
    put(tmp_path / "0.parquet", merged)
    assert kept(tmp_path, "a = 4") == ["0.parquet"]
    plan = build(tmp_path, {"a": "bitmap"}).plan("a = 4")
    assert (plan.paths, plan.count_bounds) == (["0.parquet"], (1, 1))
