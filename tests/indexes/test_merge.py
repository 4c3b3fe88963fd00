"""Merging packs: fewer of them, the same answers, and nothing lost on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import skipindex as sx
from skipindex.indexes import _merge
from skipindex.storage.log import latest_version
from tests.tables import build, flip, forget_open_packs, packs, put

CONDITIONS = (
    "a = 21",
    "a BETWEEN 10 AND 40 AND s = 'v1'",
    "a = 0 AND s <> 'a'",
    "s IN ('v0', 'v3')",
    "a IS NULL",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six appends, each indexed by a build of its own."""
    for i in range(6):
        columns = {"a": [0, 7 * i, None], "s": ["a", f"v{i}", "z"], "b": [i, i, i]}
        put(tmp_path / f"{i}.parquet", columns)
        build(tmp_path, {"a": ["bit_sliced", "bloom"], "s": "bitmap"})
    build(tmp_path, {"b": "bitmap"})
    return tmp_path


def answers(table: sx.Table, **options: Any) -> list[Any]:
    forget_open_packs()
    plans = [table.plan_files(condition, **options) for condition in CONDITIONS]
    return [(p.paths, p.count_bounds, p.notes) for p in plans]


def test_one_pack_answers_as_many_did(folder: Path) -> None:
    before = sx.open_table(folder)
    expected = answers(before)
    assert len(before.snapshot.manifest.packs) > 6
    table = sx.merge_packs(folder)
    assert table.snapshot.version == before.snapshot.version + 1
    assert len(table.snapshot.manifest.packs) == 1
    assert answers(table) == expected
    assert all(not notes for _, _, notes in expected)
    for kinds in (["bit_sliced", "bitmap"], ["bloom"], ["file_map"]):
        assert answers(table, kinds=kinds) == answers(before, kinds=kinds)
    assert build(folder, {"a": "bloom"}).snapshot.version == table.snapshot.version


def test_readers_of_the_older_commit_still_have_its_packs(folder: Path) -> None:
    before = sx.open_table(folder)
    expected = answers(before)
    n_packs = len(packs(folder))
    sx.merge_packs(folder)
    assert len(packs(folder)) == n_packs + 1
    assert answers(before) == expected


def test_a_second_merge_has_nothing_to_do(folder: Path) -> None:
    version = sx.merge_packs(folder).snapshot.version
    assert sx.merge_packs(folder).snapshot.version == version


def test_packs_are_closed_at_their_limits(folder: Path) -> None:
    expected = answers(sx.open_table(folder))
    table = sx.merge_packs(folder, max_files=5)
    assert len(table.snapshot.manifest.packs) == 2
    assert answers(table) == expected
    table = sx.merge_packs(folder, max_bytes=1)
    assert len(table.snapshot.manifest.packs) == 2, "none is small"


def test_what_is_damaged_is_left_behind(folder: Path) -> None:
    table = sx.open_table(folder)
    pack = table.snapshot.manifest.packs[0]
    (path,) = [p for p in packs(folder) if p.name == pack.name]
    for blob in pack.blobs:
        flip(path, blob.offset + 20)
    forget_open_packs()
    merged = sx.merge_packs(folder)
    for condition in CONDITIONS:
        plan = merged.plan_files(condition)
        assert not plan.notes
        assert set(table.plan_files(condition).paths) >= set(plan.paths)
    assert "0.parquet" in merged.plan_files("a = 5", kinds=["bitmap"]).paths


def test_changes_during_a_merge_stay(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer drops an index, changes a file and adds one."""
    write = _merge._Merger.write

    def meanwhile(self: Any, small: set[int]) -> Any:
        moves = write(self, small)
        sx.drop_indexes(folder, columns=["b"])
        put(folder / "2.parquet", {"a": [5, 5, 5], "s": ["q"] * 3, "b": [1, 1, 1]})
        put(folder / "9.parquet", {"a": [6], "s": ["q"], "b": [1]})
        build(folder, {"a": ["bit_sliced", "bloom"], "s": "bitmap"})
        return moves

    monkeypatch.setattr(_merge._Merger, "write", meanwhile)
    table = sx.merge_packs(folder)
    assert not table.blobs(table.resolve("b")), "dropped, and not brought back"
    assert table.plan_files("a = 5").paths == ["2.parquet"]
    assert table.plan_files("a = 6").paths == ["9.parquet"]
    assert table.plan_files("s = 'v3'").count_bounds == (1, 1)
    assert table.plan_files("a = 14").paths == []
    assert len(table.snapshot.manifest.packs) < 5


def test_a_merge_that_stops_half_way_changes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sx.open_table(folder)
    expected = answers(before)

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_merge, "commit", stop)
    with pytest.raises(KeyboardInterrupt):
        sx.merge_packs(folder)
    assert latest_version(before.location) == before.snapshot.version
    assert answers(before.refresh()) == expected
