"""Merging packs: fewer of them, the same answers, and nothing lost on the way."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skipindex as sx
from skipindex.build import merge
from skipindex.build.packs import merged_packs
from skipindex.indexes import file_map
from skipindex.log import latest_version
from skipindex.storage.file_system.descriptors import MAX_OPEN, OPEN
from skipindex.storage.file_system.names import PACKS
from skipindex.storage.pack import Blob
from tests.tables import build, flip, forget_open_packs, packs, put

CONDITIONS = (
    "a = 21",
    "a BETWEEN 10 AND 40 AND s = 'v1'",
    "a = 0 AND s <> 'a'",
    "s IN ('v0', 'v3')",
    "a IS NULL",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six appends, each indexed by a build of its own."""
    folder = tmp_path_factory.mktemp("made")
    for i in range(6):
        columns = {"a": [0, 7 * i, None], "s": ["a", f"v{i}", "z"], "b": [i, i, i]}
        put(folder / f"{i}.parquet", columns)
        build(folder, {"a": ["bit_sliced", "bloom"], "s": "bitmap"})
    build(folder, {"b": "bitmap"})
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy, to be changed."""
    return shutil.copytree(
        made, tmp_path, copy_function=shutil.copy2, dirs_exist_ok=True
    )


def answers(table: sx.Table, **options: Any) -> list[Any]:
    forget_open_packs()
    plans = [table.plan(condition, **options) for condition in CONDITIONS]
    return [(p.paths, p.count_bounds, p.notes) for p in plans]


def test_one_pack_answers_as_many_did(folder: Path) -> None:
    before = sx.open_table(folder)
    expected = answers(before)
    assert len(before.state.snapshot.manifest.packs) > 6
    table = sx.open_table(folder).compact_indexes()
    assert table.state.snapshot.version == before.state.snapshot.version + 1
    assert len(table.state.snapshot.manifest.packs) == 1
    assert answers(table) == expected
    assert all(not notes for _, _, notes in expected)
    for kinds in (["bit_sliced", "bitmap"], ["bloom"], ["file_map"]):
        assert answers(table, kinds=kinds) == answers(before, kinds=kinds)
    again = build(folder, {"a": "bloom"}).status()
    assert again.version == table.status().version


@pytest.mark.parametrize("kind", ["bitmap", "exact"])
@pytest.mark.parametrize("text", ["", "k{:06d}"])
def test_a_merged_map_knows_values_that_small_ones_had_in_bins(
    kind: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the dictionaries of the payloads: bins of bins would hold most files."""
    monkeypatch.setattr(file_map, "_LEAST_BYTES", 1000)
    monkeypatch.setattr(file_map, "_BYTES_PER_FILE", 0)
    monkeypatch.setattr(file_map, "_BINS_TRIED", (32,))
    rng = np.random.default_rng(7)
    keys = rng.permutation(40 * 25).reshape(40, 25).tolist()

    def value(key: int) -> object:
        return text.format(key) if text else key * 977

    for at in range(0, 40, 10):
        for i in range(at, at + 10):
            put(tmp_path / f"{i:02d}.parquet", {"k": [*map(value, keys[i]), None]})
        build(tmp_path, {"k": kind})
    before = sx.open_table(tmp_path)
    assert len(before.state.snapshot.manifest.packs) > 3
    conditions = [f"k = {value(key)!r}" for i in (0, 13, 39) for key in keys[i][:5]]
    kept = [before.plan(one, kinds=["file_map"]).paths for one in conditions]
    assert sum(map(len, kept)) > 3 * len(kept)
    monkeypatch.setattr(file_map, "_LEAST_BYTES", 100_000)
    monkeypatch.setattr(file_map, "_BINS_TRIED", (1 << 14,))
    table = before.compact_indexes()
    assert len(table.state.snapshot.manifest.packs) == 1
    kept = [table.plan(one, kinds=["file_map"]).paths for one in conditions]
    assert kept == [[f"{i:02d}.parquet"] for i in (0, 13, 39) for _ in range(5)]
    assert not table.plan(f"k = {value(40 * 25)!r}", kinds=["file_map"]).paths


def test_readers_of_the_older_commit_still_have_its_packs(folder: Path) -> None:
    before = sx.open_table(folder)
    expected = answers(before)
    n_packs = len(packs(folder))
    sx.open_table(folder).compact_indexes()
    assert len(packs(folder)) == n_packs + 1
    assert answers(before) == expected


def test_a_second_merge_has_nothing_to_do(folder: Path) -> None:
    version = sx.open_table(folder).compact_indexes().state.snapshot.version
    assert sx.open_table(folder).compact_indexes().state.snapshot.version == version


def test_packs_are_closed_at_their_limits(folder: Path) -> None:
    expected = answers(sx.open_table(folder))
    table = sx.open_table(folder).compact_indexes(max_files=5)
    assert len(table.state.snapshot.manifest.packs) == 2
    assert answers(table) == expected
    table = sx.open_table(folder).compact_indexes(max_bytes=1)
    assert len(table.state.snapshot.manifest.packs) == 2, "none is small"


def test_what_is_damaged_stays_as_it_is_and_is_named(folder: Path) -> None:
    table = sx.open_table(folder)
    pack = table.state.snapshot.manifest.packs[0]
    (path,) = [p for p in packs(folder) if p.name == pack.name]
    for blob in pack.blobs:
        flip(path, blob.offset + 20)
    forget_open_packs()
    before = answers(table)
    merged = sx.open_table(folder).compact_indexes()
    assert [p for p in merged.state.snapshot.manifest.packs if p.name == pack.name]
    assert len(merged.state.snapshot.manifest.packs) == 3, (
        "of 0.parquet, and of the others"
    )
    assert f"pack {pack.name} not merged" in " ".join(merged.notes)
    assert [a[:2] for a in answers(merged)] == [b[:2] for b in before]
    for condition in CONDITIONS:
        plan = merged.plan(condition)
        assert set(table.plan(condition).paths) >= set(plan.paths)
    assert "0.parquet" in merged.plan("a = 5", kinds=["bitmap"]).paths


def test_changes_during_a_merge_stay(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer drops an index, changes a file and adds one."""
    write = merged_packs.Merger.write

    def meanwhile(self: Any, small: set[int], **options: Any) -> Any:
        moves = write(self, small, **options)
        sx.open_table(folder).drop_indexes(columns=["b"])
        put(folder / "2.parquet", {"a": [5, 5, 5], "s": ["q"] * 3, "b": [1, 1, 1]})
        put(folder / "9.parquet", {"a": [6], "s": ["q"], "b": [1]})
        build(folder, {"a": ["bit_sliced", "bloom"], "s": "bitmap"})
        return moves

    monkeypatch.setattr(merged_packs.Merger, "write", meanwhile)
    table = sx.open_table(folder).compact_indexes()
    assert not table.state.blobs(table.state.resolve("b")), (
        "dropped, and not brought back"
    )
    assert table.plan("a = 5").paths == ["2.parquet"]
    assert table.plan("a = 6").paths == ["9.parquet"]
    assert table.plan("s = 'v3'").count_bounds == (1, 1)
    assert table.plan("a = 14").paths == []
    assert len(table.state.snapshot.manifest.packs) < 5


def test_a_merge_that_stops_half_way_changes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sx.open_table(folder)
    expected = answers(before)

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(merge, "commit", stop)
    with pytest.raises(KeyboardInterrupt):
        sx.open_table(folder).compact_indexes()
    assert latest_version(before.state.location) == before.state.snapshot.version
    assert answers(before.refresh()) == expected


def test_an_index_in_a_large_pack_is_not_superseded_by_nothing(tmp_path: Path) -> None:
    """One file has it in a pack that is not merged, others in packs that are."""
    for i in range(6):
        put(tmp_path / f"{i}.parquet", {"a": [0, 7 * i, 90], "b": [i, 20 - i, 50]})
        wanted: Any = {"a": "bitmap"} if i == 0 else {"a": "bitmap", "b": "bitmap"}
        build(tmp_path, wanted)
    build(tmp_path, {"b": "bitmap"})
    (first,) = (p for p in sx.open_table(tmp_path).state.snapshot.manifest.packs[:1])
    before = [
        sx.plan_files(f"a = {7 * i} AND b = {i}", table=tmp_path).count_bounds
        for i in range(6)
    ]
    merged = sx.open_table(tmp_path).compact_indexes(max_bytes=2 * first.size)
    assert [
        merged.plan(f"a = {7 * i} AND b = {i}").count_bounds for i in range(6)
    ] == before
    uses = [u for u in merged.state.blobs(merged.state.resolve("a")) if len(u.rows)]
    assert sorted({int(row) for use in uses for row in use.rows}) == list(range(6))


def test_a_column_of_nulls_has_a_map_too(tmp_path: Path) -> None:
    put(tmp_path / "a.parquet", {"c": pa.array([None] * 10, pa.string())})
    build(tmp_path, {"c": "bitmap"})
    put(tmp_path / "b.parquet", {"c": ["x", "y"] * 5})
    build(tmp_path, {"c": "bitmap"})
    table = sx.open_table(tmp_path).compact_indexes()
    assert len(table.state.snapshot.manifest.packs) == 1
    assert table.plan("c = 'x'").count_bounds == (5, 5)
    assert table.plan("c IS NULL").paths == ["a.parquet"]


@pytest.mark.parametrize(
    "nth",
    [
        pytest.param(n, marks=() if n % 18 == 1 else pytest.mark.slow)
        for n in range(1, 40, 3)
    ],
)
def test_a_read_that_fails_once_loses_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    """Whichever it is: the pack is named, or the read was tried again."""
    expected = answers(sx.open_table(folder))
    real, n_reads = os.pread, 0

    def flaky(*arguments: Any) -> bytes:
        nonlocal n_reads
        n_reads += 1
        if n_reads == nth:
            raise OSError(errno.EIO, "Input/output error")
        return real(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(os, "pread", flaky)
        merged = sx.open_table(folder).compact_indexes()
    assert n_reads > nth
    named = "Input/output error" in " ".join(merged.notes)
    assert named or len(merged.state.snapshot.manifest.packs) == 1
    assert [a[:2] for a in answers(merged)] == [b[:2] for b in expected]


def test_merging_needs_few_descriptors(folder: Path) -> None:
    sx.open_table(folder).compact_indexes()
    assert len(OPEN) <= MAX_OPEN


def test_the_rows_of_deleted_files_are_left_behind(folder: Path) -> None:
    (folder / "2.parquet").unlink()
    put(folder / "3.parquet", {"a": [1], "s": ["q"], "b": [1]})
    merged = sx.open_table(folder).compact_indexes()
    assert sorted(merged.state.snapshot.manifest.paths) == [
        f"{i}.parquet" for i in (0, 1, 4, 5)
    ]
    assert merged.plan("a = 1").paths == ["3.parquet"], "changed"
    (pack,) = merged.state.snapshot.manifest.packs
    assert (
        len(
            Blob(
                merged.state.location.view(f"{PACKS}/{pack.name}"), pack.blobs[0]
            ).n_rows
        )
        == 4
    )


def test_the_log_says_the_encodings_of_exact(tmp_path: Path) -> None:
    """When a pack is written, and when it is written anew."""
    for i in range(3):
        a = (np.arange(4000) * 7 + i) % 50
        put(tmp_path / f"{i}.parquet", {"a": a, "b": a // 10, "c": np.sort(a)})
        table = build(tmp_path, {"a": "exact", "b": "exact", "c": ["exact", "bloom"]})
    for _ in range(2):
        first, second, third = table.status().columns
        assert first.encodings == {"exact": {"run_length": 3}}
        assert second.encodings == {"exact": {"mapping": 3}}
        assert third.encodings_of("exact") == ["3 run_length"]
        assert third.encodings_of("bloom") == []
        assert "3 mapping" in str(table.status())
        sx.open_table(tmp_path).compact_indexes()
        table = sx.open_table(tmp_path)
    assert len(table.state.snapshot.manifest.packs) == 1
