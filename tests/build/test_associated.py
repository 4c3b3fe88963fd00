"""Associated columns: what can be one, and what becomes of it when files change."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.api.types import AssociatedColumn
from skipindex.build.associated import dimension as dimensions
from skipindex.build.associated import request
from skipindex.errors import BuildError
from skipindex.log import Snapshot, commit
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.table import associated, listing
from tests.tables import flip, forget_open_packs, kept, packs, put, put_all

EVERY = ["0.parquet", "1.parquet", "2.parquet"]


@pytest.fixture
def star(tmp_path: Path) -> Path:
    """A dimension in two files, and a fact whose files have one key each."""
    put(tmp_path / "d" / "0.parquet", {"k": [1, 2], "a": ["x", "y"], "b": [5, 6]})
    put(tmp_path / "d" / "1.parquet", {"k": [3], "a": ["z"], "b": [7]})
    put_all(tmp_path / "f", [{"key": [i, i], "own": [i, 0]} for i in (1, 2, 3)])
    return tmp_path


def via(star: Path, attribute: str = "a") -> AssociatedColumn:
    return sx.via("key", star / "d", "k", attribute)


def build(star: Path, indexes: Any = None, **options: Any) -> sx.Table:
    columns = {"a": via(star), "b": via(star, "b")}
    options = {"workers": 1, "associated": columns} | options
    return sx.build_indexes(star / "f", indexes or {}, **options).table


def stored_names(table: sx.Table) -> set[str]:
    manifest = table.state.snapshot.manifest
    built = {blob.meta.column for pack in manifest.packs for blob in pack.blobs}
    return {name for name in {*built, *manifest.stats} if " via " in name}


# -- what can be an associated column ----------------------------------------------


@pytest.mark.parametrize(
    ("keys", "shown"),
    [([1, 2, 2], "value 2 more"), (["é", "é", None], "value 'é' more")],
)
def test_a_key_that_is_there_twice_is_refused(
    star: Path, keys: list[Any], shown: str
) -> None:
    put(star / "e" / "0.parquet", {"k": keys, "a": [1, 2, 3]})
    put(star / "g" / "0.parquet", {"key": keys[:1]})
    column = sx.via("key", star / "e", "k", "a")
    with pytest.raises(BuildError, match=shown):
        sx.build_indexes(star / "g", {}, associated={"a": column}, workers=1)
    assert not (star / "g" / "_skipindex").exists()


def test_null_keys_are_no_keys(star: Path) -> None:
    nulls = {"k": pa.array([None, None, 1], pa.int64()), "a": ["p", "q", "x"]}
    put(star / "e" / "0.parquet", nulls)
    column = sx.via("key", star / "e", "k", "a")
    table = build(star, associated={"a": column})
    assert kept(table, "a = 'x'") == ["0.parquet"]
    assert kept(table, "a = 'p'") == []


def test_too_large_a_dimension_is_refused(
    star: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dimensions, "MAX_ROWS", 2)
    with pytest.raises(BuildError, match="more than 2 rows"):
        build(star)
    monkeypatch.setattr(dimensions, "MAX_ROWS", 3)
    monkeypatch.setattr(request, "MAX_FILES", 1)
    with pytest.raises(BuildError, match="has 2 files"):
        build(star)


@pytest.mark.parametrize(
    ("key", "table_key", "attribute", "error", "text"),
    [
        ("no", "k", "a", sx.PredicateError, "no column 'no'"),
        ("key", "no", "a", sx.PredicateError, "no column 'no'"),
        ("key", "k", "no", sx.PredicateError, "no column 'no'"),
        ("key", "a", "b", sx.UnsupportedTypeError, "has other values than 'a'"),
        ("key", "d", "b", sx.UnsupportedTypeError, "'d' of .* is no key to join by"),
        ("f", "k", "b", sx.UnsupportedTypeError, "'f' of .* is no key to join by"),
        ("p", "k", "b", sx.TableError, "'p' of .* is no column of its files"),
        ("key", "k", "l", sx.UnsupportedTypeError, "cannot index column 'l'"),
    ],
)
def test_what_cannot_be_looked_up_is_refused(
    tmp_path: Path,
    key: str,
    table_key: str,
    attribute: str,
    error: type[Exception],
    text: str,
) -> None:
    columns = {"k": [1], "a": ["x"], "b": [5], "d": [1.5], "l": [[1]]}
    put(tmp_path / "d" / "0.parquet", columns)
    put(tmp_path / "f" / "p=1" / "0.parquet", {"key": [1], "f": [0.5]})
    column = sx.via(key, tmp_path / "d", table_key, attribute)
    with pytest.raises(error, match=text):
        sx.build_indexes(tmp_path / "f", {}, associated={"n": column}, workers=1)


@pytest.mark.parametrize("name", ["k", "a"])
def test_a_column_with_a_default_is_not_looked_up(star: Path, name: str) -> None:
    """No file that lacks it holds the default, which Spark reads there."""
    fields = [
        {
            "name": one,
            "type": kind,
            "nullable": True,
            "metadata": {"EXISTS_DEFAULT": "7"} if one == name else {},
        }
        for one, kind in (("k", "long"), ("a", "string"))
    ]
    text = json.dumps({"type": "struct", "fields": fields}).encode()
    rows = pa.table({"k": [1], "a": ["x"]}).replace_schema_metadata(
        {b"org.apache.spark.sql.parquet.row.metadata": text}
    )
    put(star / "e" / "0.parquet", rows)
    column = sx.via("key", star / "e", "k", "a")
    with pytest.raises(sx.UnsupportedTypeError, match=f"lack column '{name}' have its"):
        build(star, associated={"a": column})


def test_the_name_of_a_column_is_refused(star: Path) -> None:
    with pytest.raises(BuildError, match="has a column 'OWN'"):
        build(star, associated={"OWN": via(star)})


def test_a_kind_that_the_attribute_cannot_have_is_refused(star: Path) -> None:
    with pytest.raises(sx.UnsupportedTypeError, match="key_set index on column 'a'"):
        build(star, {"a": "key_set"})


def test_a_file_of_the_dimension_that_spells_a_column_otherwise_is_refused(
    star: Path,
) -> None:
    put(star / "d" / "1.parquet", {"K": [3], "a": ["z"], "b": [7]})
    with pytest.raises(sx.UnsupportedTypeError, match="spells column 'k' as 'K'"):
        build(star)


# -- when the dimension changes ----------------------------------------------------


def add(star: Path) -> None:
    put(star / "d" / "2.parquet", {"k": [4], "a": ["x"], "b": [5]})


def remove(star: Path) -> None:
    (star / "d" / "1.parquet").unlink()


def swap(star: Path) -> None:
    """The same size and other content, as soon as the clock ticks."""
    path = star / "d" / "0.parquet"
    before = path.stat()
    table = pq.read_table(path)
    swapped = pa.table({"k": [2, 1], "a": table["a"], "b": table["b"]})
    pq.write_table(swapped, path)
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))


def rename(star: Path) -> None:
    (star / "d" / "0.parquet").rename(star / "d" / "00.parquet")


def vanish(star: Path) -> None:
    shutil.rmtree(star / "d")


@pytest.mark.parametrize("change", [add, remove, swap, rename, vanish])
def test_what_was_built_is_void_once_the_dimension_changed(
    star: Path, change: Callable[[Path], None]
) -> None:
    table = build(star, {"own": "bitmap"})
    assert kept(table, "a = 'x'") == ["0.parquet"]
    change(star)
    for now in (table, sx.open_table(star / "f")):
        plan = now.plan("a = 'x'")
        assert plan.paths == EVERY
        assert "changed since" in plan.explain() or "cannot be listed" in plan.explain()
        assert kept(now, "a = 'x' AND own = 2") == ["1.parquet"]
    status = {column.name: column for column in table.status().columns}
    assert status["a"].indexes == {}
    assert "table" in status["a"].why


@pytest.mark.parametrize("change", [add, remove, swap, rename])
def test_a_refresh_builds_all_anew(star: Path, change: Callable[[Path], None]) -> None:
    before = build(star, {"a": "bit_sliced"})
    change(star)
    report = before.refresh_indexes(workers=1)
    assert report.files == 3
    fresh = report.table
    assert stored_names(fresh).isdisjoint(stored_names(before))
    assert len(stored_names(fresh)) == 2
    wanted = ["1.parquet"] if change is swap else ["0.parquet"]
    assert kept(fresh, "a = 'x'") == wanted
    assert {i.kind for i in fresh.indexes if i.column == "a"} == {
        "minmax",
        "bit_sliced",
    }
    again = fresh.refresh_indexes(workers=1)
    assert again.unchanged == 3
    assert again.table.state.snapshot.version == fresh.state.snapshot.version
    assert kept(before, "a = 'x'") == EVERY


def test_a_refresh_of_a_dimension_that_is_gone_says_so(star: Path) -> None:
    table = build(star)
    vanish(star)
    report = table.refresh_indexes(workers=1)
    assert any("column 'a' not associated" in note for note in report.notes)
    assert kept(report.table, "a = 'x'") == EVERY


def test_a_dimension_that_changes_during_the_build_is_not_believed(
    star: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = dimensions.Dimension.column

    def changed(self: Any, keys: Any, one: Any) -> Any:
        if not (star / "d" / "2.parquet").exists():
            add(star)
        return real(self, keys, one)

    monkeypatch.setattr(dimensions.Dimension, "column", changed)
    table = build(star)
    assert kept(table, "a = 'x'") == EVERY
    assert kept(table.refresh_indexes(workers=1).table, "a = 'x'") == ["0.parquet"]


def test_a_dimension_that_changes_while_it_is_read_is_refused(
    star: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = dimensions.read

    def changed(*arguments: Any) -> Any:
        if not (star / "d" / "2.parquet").exists():
            add(star)
        return real(*arguments)

    monkeypatch.setattr(dimensions, "read", changed)
    with pytest.raises(BuildError, match="changed while it was looked up"):
        build(star)
    assert kept(build(star), "a = 'x'") == ["0.parquet"]


def test_indexes_of_an_old_state_do_not_come_back_with_a_new_fingerprint(
    star: Path,
) -> None:
    """A table whose record names the state of today, and its packs that of before."""
    old = build(star)
    swap(star)
    new = request.renewed(old.state)[0]

    def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
        return base.manifest, request.with_associated(base.properties, new)

    commit(old.state.location, change, operation="test")
    assert kept(star / "f", "a = 'x'") == EVERY


# -- when the fact changes ---------------------------------------------------------


def test_new_files_are_read_until_a_refresh(star: Path) -> None:
    table = build(star)
    put(star / "f" / "3.parquet", {"key": [3], "own": [1]})
    now = table.refresh()
    assert kept(now, "a = 'x'") == ["0.parquet", "3.parquet"]
    report = now.refresh_indexes(workers=1)
    assert report.files == 1
    assert kept(report.table, "a = 'x'") == ["0.parquet"]


def test_other_builds_leave_associated_columns_alone(star: Path) -> None:
    build(star)
    table = sx.build_indexes(star / "f", {"own": "bitmap"}, workers=1).table
    assert kept(table, "a = 'x' OR own = 3") == ["0.parquet", "2.parquet"]
    more = table.build_indexes({"a": "bloom"}, workers=1).table
    assert {i.kind for i in more.indexes if i.column == "a"} == {
        *("minmax", "bitmap", "bloom")
    }
    assert kept(more, "a = 'x'", kinds=["bloom"]) == ["0.parquet"]


def test_all_that_a_table_has_is_merged_with_it(star: Path) -> None:
    table = build(star)
    for i in range(3, 6):
        put(star / "f" / f"{i}.parquet", {"key": [i % 3 + 1], "own": [1]})
        table = table.refresh_indexes(workers=1).table
    merged = table.compact_indexes()
    assert merged.notes == ()
    assert len(packs(star / "f")) > len(merged.state.snapshot.manifest.packs)
    assert kept(merged, "a = 'x'") == ["0.parquet", "3.parquet"]


def test_dropped_associated_columns_are_forgotten(star: Path) -> None:
    table = build(star, {"own": "bitmap", "a": ["bitmap", "bloom"]})
    fewer = table.drop_indexes(columns=["A"], kinds=["bitmap"])
    assert kept(fewer, "a = 'x'", kinds=["bitmap"]) == EVERY
    assert kept(fewer, "a = 'x'", kinds=["bloom"]) == ["0.parquet"]
    without = fewer.drop_indexes(columns=["a"])
    with pytest.raises(sx.PredicateError, match="no column 'a'"):
        without.plan("a = 'x'")
    assert kept(without, "b = 5") == ["0.parquet"]
    assert kept(without.refresh_indexes(workers=1).table, "own = 3") == ["2.parquet"]
    assert stored_names(without.drop_indexes()) == set()


# -- what is stored ----------------------------------------------------------------


def test_a_record_that_fails_its_check_makes_the_columns_unknown(
    star: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another writer may commit it; ours refuses."""
    monkeypatch.setattr("skipindex.log.commits._require_readable", str)
    good = build(star, {"own": "bitmap"})
    record = dict(good.state.snapshot.properties.associated or {})
    wrong: list[Any] = [
        [],
        {"a": None},
        {"a": {**record["a"], "key": 3}},
        {"a": {**record["a"], "domain": ["int", 0, 32]}},
        {"a": {**record["a"], "domain": ["no", 0, 32, 0]}},
        {"a": {**record["a"], "domain": ["decimal", 0, 0, 10**9]}},
        {"a": {**record["a"], "fingerprint": ""}},
        {"a": {**record["a"], "indexes": "bitmap"}},
        {"a": record["a"], "A": record["a"]},
        {str(i): record["a"] for i in range(1001)},
    ]
    for content in wrong:

        def change(base: Snapshot, found: Any = content) -> tuple[Any, Any]:
            properties = TableProperties(associated=found)
            return base.manifest, base.properties | properties

        commit(good.state.location, change, operation="test")
        table = sx.open_table(star / "f")
        assert any("'associated' ignored" in note for note in table.notes), content
        with pytest.raises(sx.PredicateError):
            table.plan("a = 'x'")
        assert kept(table, "own = 3") == ["2.parquet"]


def test_an_index_kind_of_others_is_left_alone(star: Path) -> None:
    good = build(star)
    record = dict(good.state.snapshot.properties.associated or {})
    record["a"] = {**record["a"], "indexes": [{"kind": "foreign"}]}

    def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
        return base.manifest, base.properties | TableProperties(associated=record)

    commit(good.state.location, change, operation="test")
    add(star)
    fresh = sx.open_table(star / "f").refresh_indexes(workers=1).table
    assert kept(fresh, "a = 'x'") == ["0.parquet"]
    kept_record = (fresh.state.snapshot.properties.associated or {})["a"]
    assert kept_record["indexes"] == [{"kind": "foreign"}]


def test_a_damaged_pack_is_not_believed_and_is_built_again(star: Path) -> None:
    table = build(star, {"*": None})
    for path in packs(star / "f"):
        flip(path, path.stat().st_size // 3)
    forget_open_packs()
    assert "0.parquet" in kept(table, "a = 'x'", kinds=["bitmap"])
    fixed = table.refresh_indexes(workers=1, repair=True).table
    assert kept(fixed, "a = 'x'", kinds=["bitmap"]) == ["0.parquet"]


def test_a_table_and_its_dimension_may_move_together(star: Path) -> None:
    build(star)
    shutil.move(star / "f", star / "moved" / "f")
    shutil.move(star / "d", star / "moved" / "d")
    assert kept(star / "moved" / "f", "a = 'x'") == ["0.parquet"]


def test_indexes_are_for_those_who_may_read_the_dimension(star: Path) -> None:
    (star / "d" / "0.parquet").chmod(0o600)
    build(star)
    assert (star / "f" / "_skipindex").stat().st_mode & 0o077 == 0


def test_a_dimension_is_listed_once_for_all_of_its_columns(
    star: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = build(star)
    listed: list[str] = []
    real = listing.current_files

    def counting(location: Location) -> list[FileInfo]:
        listed.append(location.root)
        return real(location)

    monkeypatch.setattr(associated, "current_files", counting)
    for look in (
        lambda: table.plan("a = 'x' AND b = 1"),
        table.status,
        lambda: request.renewed(table.state),
    ):
        listed.clear()
        look()
        assert listed == [str(star / "d")]


@pytest.mark.slow
def test_processes_build_the_same(star: Path) -> None:
    table = build(star, workers=2)
    assert kept(table, "a = 'x'") == ["0.parquet"]
    assert kept(table, "b = 7") == ["2.parquet"]
