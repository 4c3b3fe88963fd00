"""Refreshing: what the table was given, on what is new, changed or damaged."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import skipindex as sx
from skipindex.advice import advised_build as advice_build
from skipindex.api.types import BuildReport
from skipindex.build import task
from skipindex.indexes import IndexSpec
from skipindex.log import Snapshot
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.rewrite.verify_table import verify
from skipindex.source import commit
from tests.indexes.columns import SPECS, fits, spec_id
from tests.tables import (
    build,
    flip,
    forget_open_packs,
    made,
    newest_commit,
    packs,
    put,
    put_all,
)

ASKED: Any = {"a": ["bitmap", "bloom"], "s": sx.BitSliced(base=2)}


def columns(i: int) -> dict[str, Any]:
    return {
        "a": [i, 100 + i, 1000],
        "s": [f"v{i}", "x", "z"],
        "b": [i, i + 1, 50],
    }


def make(folder: Path) -> None:
    build(put_all(folder, [columns(i) for i in range(4)]), ASKED)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = made(tmp_path / "t", make)
    forget_open_packs()
    return folder


def served(table: sx.Table, column: str) -> dict[str, set[str]]:
    """By kind, the files that have an index on a column."""
    found: dict[str, set[str]] = {}
    for use in table.state.blobs(table.state.resolve(column)):
        mine = {table.paths[row] for row in use.rows}
        found.setdefault(use.entry.meta.kind, set()).update(mine)
    return found


def whole(table: sx.Table) -> bool:
    every = set(table.paths)
    stats = table.state.snapshot.manifest.stats
    return (
        served(table, "a") == {"bitmap": every, "bloom": every}
        and served(table, "s") == {"bit_sliced": every}
        and stats.keys() == {"a", "s", "b"}
        and not table.state.index_gaps
        and sorted(table.state.snapshot.manifest.paths) == table.paths
        and not any(s.values.null_count for s in stats.values())
    )


def refresh(folder: Path, **options: Any) -> BuildReport:
    return sx.open_table(folder).refresh_indexes(workers=1, **options)


@pytest.mark.parametrize("call", [refresh, lambda p: sx.build_indexes(p, workers=1)])
def test_new_and_changed_files_get_what_the_others_have(
    folder: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advice_build, "advise", None)  # nothing is chosen
    put(folder / "1.parquet", columns(7))
    put(folder / "9.parquet", columns(9))
    (folder / "2.parquet").unlink()
    report = call(folder)
    assert (report.files, report.unchanged) == (2, 2)
    assert whole(report.table)
    assert report.table.plan("a = 109 AND s = 'x'").count_bounds == (1, 1)
    version = report.table.state.snapshot.version
    assert call(folder).table.state.snapshot.version == version, "nothing is left to do"


def test_a_table_that_is_overwritten_every_day_keeps_its_indexes(folder: Path) -> None:
    for day in range(3):
        for path in folder.glob("*.parquet"):
            path.unlink()
        put_all(folder, [columns(10 * day + i) for i in range(3)])
        if day:
            table = refresh(folder).table
            assert whole(table)
            assert len(table.state.snapshot.manifest) == 3


def test_two_wishes_are_one(folder: Path) -> None:
    build(folder, {"b": "bit_sliced"})
    put(folder / "9.parquet", columns(9))
    table = refresh(folder).table
    assert served(table, "b") == {"bit_sliced": set(table.paths)}
    assert served(table, "a")["bloom"] == set(table.paths)


def test_what_is_dropped_is_not_built_again(folder: Path) -> None:
    sx.open_table(folder).drop_indexes(columns=["a"], kinds=["bloom"])
    put(folder / "9.parquet", columns(9))
    table = refresh(folder).table
    assert served(table, "a") == {"bitmap": set(table.paths)}
    sx.open_table(folder).drop_indexes()
    table = refresh(folder).table
    assert not served(table, "a")
    assert table.state.snapshot.manifest.stats.keys() == {"a", "s", "b"}


@pytest.mark.few(8)
@pytest.mark.parametrize("again", [None, {"a": "bitmap"}, {"*": "exact"}])
@pytest.mark.parametrize(
    "dropped",
    [
        {"columns": ["a"]},
        {"columns": ["a"], "kinds": ["exact", "bloom"]},
        {"columns": ["a"], "kinds": ["minmax", "exact", "bloom"]},
        {"kinds": ["exact"]},
        {"kinds": ["minmax", "exact", "bloom"]},
        {"kinds": []},
    ],
)
@pytest.mark.parametrize(
    "asked",
    [{"*": "exact"}, {"a": "bloom"}, {"a": ["bloom", "exact"], "*": None}, {"b": []}],
)
def test_a_drop_outlives_the_files(
    folder: Path, asked: dict[str, Any], dropped: dict[str, Any], again: Any
) -> None:
    """A refresh gives new files what old ones have, and old ones nothing more."""

    def kinds(table: sx.Table) -> dict[str, set[str]]:
        every = {one.column for one in table.indexes}
        return {
            name: {one.kind for one in table.indexes if one.column == name}
            for name in every
        }

    sx.open_table(folder).drop_indexes()
    build(folder, asked)
    left = sx.open_table(folder).drop_indexes(**dropped)
    if again is not None:
        left = build(folder, again)
    expected = kinds(left)
    assert kinds(refresh(folder).table) == expected
    for path in folder.glob("*.parquet"):
        path.unlink()
    put_all(folder, [columns(30 + i) for i in range(2)])
    assert kinds(refresh(folder).table) == expected


def test_a_table_of_an_older_version_says_it_by_what_it_has(folder: Path) -> None:
    def forget(base: Snapshot) -> tuple[Manifest, TableProperties]:
        return base.manifest, TableProperties()

    commit(sx.open_table(folder).state.location, forget, operation="test")
    put(folder / "9.parquet", columns(9))
    assert whole(refresh(folder).table)


@pytest.mark.parametrize(
    "record",
    [7, [], {"a": 7}, {"a": "bitmap"}, {"a": [{"kind": "gone"}, 5, None]}, {"q": []},
     {"a": [{"kind": "bloom", "error_rate": "x"}]}],
)  # fmt: skip
def test_what_cannot_be_read_of_the_wish_is_left_out(folder: Path, record: Any) -> None:
    def forge(base: Snapshot) -> tuple[Manifest, TableProperties]:
        return base.manifest, TableProperties(indexes=record)

    commit(sx.open_table(folder).state.location, forge, operation="test")
    put(folder / "9.parquet", columns(9))
    table = refresh(folder).table
    assert served(table, "a")["bitmap"] == set(table.paths), "it is there"


def test_a_column_that_has_another_type_by_now(folder: Path) -> None:
    build(folder, {"s": "ngram_bloom"})
    for path in folder.glob("*.parquet"):
        path.unlink()
    put(folder / "0.parquet", {**columns(0), "s": [1, 2, 3]})
    table = refresh(folder).table
    assert "ngram_bloom" not in served(table, "s")
    assert table.plan("s = 9").paths == []
    assert whole(table)


def damage(folder: Path, how: str) -> None:
    table = sx.open_table(folder)
    for path in packs(folder):
        match how:
            case "gone":
                path.unlink()
            case "short":
                path.write_bytes(path.read_bytes()[:100])
            case "empty":
                path.write_bytes(b"")
            case "directory":
                for pack in table.state.snapshot.manifest.packs:
                    if pack.name == path.name:
                        for blob in pack.blobs:
                            flip(path, blob.offset + blob.length - 20)
            case "parts":
                for pack in table.state.snapshot.manifest.packs:
                    if pack.name == path.name:
                        for blob in pack.blobs:
                            flip(path, blob.offset + 16)
            case "swapped":
                continue
    if how == "swapped":
        names = packs(folder)
        held = [path.read_bytes() for path in names]
        for path, data in zip(names, held[1:] + held[:1], strict=True):
            path.write_bytes(data)
    forget_open_packs()


def answers(folder: Path) -> list[Any]:
    plans = [
        sx.plan_files(text, table=folder)
        for text in ("a = 102 AND s = 'x'", "s > 'v1'", "a IN (3, 50)")
    ]
    return [(p.paths, p.count_bounds, p.notes) for p in plans]


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("how", "repair"),
    [
        ("gone", None),
        ("short", None),
        ("empty", None),
        ("directory", None),
        ("swapped", None),
        ("parts", True),
    ],
)
@pytest.mark.parametrize("named", [False, True])
def test_damage_is_built_again(
    folder: Path, how: str, repair: bool | None, named: bool
) -> None:
    expected = answers(folder)
    damage(folder, how)
    assert answers(folder) != expected
    assert sx.build_indexes(folder, ASKED, workers=1, repair=False).files == 0
    if named:  # of a column that is not damaged more than the others
        sx.build_indexes(folder, {"b": "bloom"}, workers=1, repair=repair)
    report = refresh(folder, repair=repair)
    forget_open_packs()
    assert answers(folder) == expected
    assert whole(report.table)
    assert verify(folder).ok
    version = report.table.state.snapshot.version
    assert refresh(folder, repair=repair).table.state.snapshot.version == version


def test_one_damaged_payload_is_one_file_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(folder, {"*": "minmax"})
    merged = sx.open_table(folder).compact_indexes()
    (pack,) = merged.state.snapshot.manifest.packs
    (entry,) = (b for b in pack.blobs if b.meta.kind == "bit_sliced")
    flip(packs(folder)[0].parent / pack.name, entry.offset + 17)
    forget_open_packs()
    read: list[str] = []
    real = task._read_and_index

    def noted(location: Any, found: Any, *rest: Any) -> Any:
        read.append(found.path)
        return real(location, found, *rest)

    monkeypatch.setattr(task, "_read_and_index", noted)
    report = refresh(folder, repair=True)
    assert len(read) == 1
    assert "built again" in str(report)
    assert whole(report.table)
    assert verify(folder).ok


def test_a_read_that_fails_is_no_damage(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os  # noqa: PLC0415

    real = os.pread

    def failing(descriptor: int, *arguments: Any) -> bytes:
        if "/packs/" in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            raise OSError(5, "Input/output error")
        return real(descriptor, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(os, "pread", failing)
        report = refresh(folder)
    assert report.files == 0
    assert "not checked" in str(report)
    assert "Input/output error" in str(report)
    assert refresh(folder).files == 0


@pytest.mark.few(10)
@pytest.mark.parametrize("spec", SPECS, ids=spec_id)
def test_a_refresh_after_nothing_changed_indexes_no_file(
    tmp_path: Path, spec: IndexSpec
) -> None:
    """New files have the very index of the old ones, and these are left alone."""
    is_text = not fits(spec, pa.int64())
    column = [f"some text {i}" if is_text else i for i in range(9)]
    dtype = pa.string() if is_text else pa.int64()
    put(tmp_path / "0.parquet", {"c": pa.array(column, dtype)})
    build(tmp_path, {"c": spec})
    assert refresh(tmp_path).files == 0
    put(tmp_path / "1.parquet", {"c": pa.array(column, dtype)})
    report = refresh(tmp_path)
    assert report.files == 1
    (found,) = [one for one in report.table.indexes if one.kind == spec.kind]
    assert (found.spec, found.files) == (spec, 2)
    assert sx.build_indexes(tmp_path, {"c": spec}, workers=1).files == 0


def test_a_build_whose_packs_cannot_be_merged_succeeds(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("skipindex.build.builder.merge_crowded", failing)
    put(folder / "9.parquet", columns(9))
    report = refresh(folder)
    assert "packs were not merged" in str(report)
    assert whole(report.table)


def test_packs_of_many_builds_become_few_by_themselves(folder: Path) -> None:
    for i in range(10, 24):
        put(folder / f"{i}.parquet", columns(i))
        table = refresh(folder).table
        assert len(table.state.snapshot.manifest.packs) < 12
    assert whole(table)
    assert table.plan("a = 115").paths == ["15.parquet"]


def test_a_pack_of_which_little_is_left_is_written_anew(tmp_path: Path) -> None:
    put_all(tmp_path, [columns(i) for i in range(40)])
    build(tmp_path, ASKED)
    before = sum(p.size for p in sx.open_table(tmp_path).state.snapshot.manifest.packs)
    for i in range(40):
        if i % 10:
            (tmp_path / f"{i}.parquet").unlink()
    table = refresh(tmp_path).table
    assert sum(p.size for p in table.state.snapshot.manifest.packs) < before / 2
    assert whole(table)


def test_writers_at_once_forget_nothing_of_each_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that comes after the listing, and is committed first, stays known."""
    real = Manifest.concat.__func__  # type: ignore[attr-defined]
    done = []

    def meanwhile(cls: Any, pieces: Any) -> Manifest:
        found: Manifest = real(cls, pieces)
        if not done:
            done.append(True)
            put(folder / "7.parquet", columns(7))
            refresh(folder)
        return found

    monkeypatch.setattr(Manifest, "concat", classmethod(meanwhile))
    shutil.copy(folder / "0.parquet", folder / "8.parquet")
    (folder / "1.parquet").unlink()
    assert whole(refresh(folder).table)


def test_a_refresh_without_a_commit_says_that_the_request_is_lost(
    tmp_path: Path,
) -> None:
    put_all(tmp_path / "t", [columns(0)])
    (note,) = refresh(tmp_path / "t").notes
    assert note.startswith("min/max alone were built: no build was committed before")
    assert refresh(tmp_path / "t").notes == ()
    build(put_all(tmp_path / "u", [columns(0)]), {"a": "bitmap"})
    newest_commit(tmp_path / "u").write_text("{")
    with pytest.warns(UserWarning, match="cannot be read"):
        report = refresh(tmp_path / "u")
    assert (
        "commit 0 cannot be read, so it is not known which indexes" in report.notes[0]
    )
    sx.open_table(tmp_path / "u").drop_indexes()
    assert refresh(tmp_path / "u").notes == ()
