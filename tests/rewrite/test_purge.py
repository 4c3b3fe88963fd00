"""Forgetting: no value and no path of deleted data is left below the table."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import skipindex as sx
from skipindex.log import latest_version
from skipindex.log.manifest import Manifest
from skipindex.rewrite.purge import BLANK
from skipindex.rewrite.vacuum import vacuum
from skipindex.rewrite.verify_table import verify
from skipindex.source.folder.new_files import SaveMode
from skipindex.storage.file_system.location import location_of
from skipindex.storage.file_system.names import LOG, MANIFESTS, PACKS
from skipindex.storage.pack import Blob, blob_offsets
from skipindex.storage.parts import ReadCount
from tests.rewrite.arriving import arrived, deaths
from tests.tables import build, flip, forget_open_packs, kept, packs, put

KINDS = ["bitmap", "bloom", "bit_sliced", "range_bitmap", "run_length", "ngram_bloom"]
SECRET = "Geheimnis"
NUMBER = 7_777_777_777
ASKED: Any = {"name": [*KINDS, "exact"], "n": [*KINDS[:5], "exact"]}


def columns(i: int, *, secret: bool = False) -> dict[str, Any]:
    text = SECRET if secret else "other"
    base = NUMBER if secret else 1000 * i
    return {
        "name": [f"{i:02}-{text}-{j:03}" for j in range(60)],
        "n": [base + j for j in range(60)],
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six files in one pack; one of them is secret, and is deleted."""
    folder = tmp_path / "t"
    for i in range(6):
        put(folder / f"f{i}.parquet", columns(i))
    put(folder / f"{SECRET}.parquet", columns(9, secret=True))
    build(folder, ASKED)
    put(folder / "f6.parquet", columns(6))
    build(folder, ASKED)
    sx.open_table(folder).compact_indexes()
    (folder / f"{SECRET}.parquet").unlink()
    forget_open_packs()
    return folder


def traces(folder: Path) -> list[str]:
    """Where the secret, its number or its path can be found below the table."""
    number, secret = NUMBER.to_bytes(8, "little")[1:5], SECRET.encode()
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    found = [
        path.name
        for path in files
        if SECRET in path.name
        or secret in (data := path.read_bytes())
        or (path.suffix == ".puffin" and number in data)
    ]
    live = {p.name for p in folder.glob("*.parquet")}
    crcs = set()
    for path in (folder / MANIFESTS).glob("*.arrow"):
        manifest = Manifest.from_bytes(path.read_bytes())
        texts = [manifest.files.to_pylist()]
        texts += [column.values.to_pylist() for column in manifest.stats.values()]
        if SECRET in str(texts) or str(NUMBER)[:6] in str(texts):
            found.append(path.name)
        if set(manifest.paths) <= live:
            crcs |= set(manifest.files["footer_crc"].to_pylist())
    manifest = (
        sx.open_table(folder).state.snapshot.manifest if live else Manifest.empty()
    )
    entries = {p.name: p.blobs for p in manifest.packs}
    for path in packs(folder):
        source = location_of(folder).view(f"{PACKS}/{path.name}")
        if blob_offsets(source) != {e.offset for e in entries.get(path.name, ())}:
            found.append(f"{path.name}: other blobs")
        for entry in entries.get(path.name, ()):
            blob = Blob(source, entry)
            if not set(blob.identity.tolist()) <= crcs:
                found.append(f"{path.name}: a slot of another file")
            shared = blob.shared(ReadCount())
            parts = map(bytes, shared.read(0, len(shared)))
            found += [entry.meta.kind for part in parts if secret in part]
    return found


def test_nothing_is_left_of_a_deleted_file(folder: Path) -> None:
    assert traces(folder), "it is in packs, manifests and commits"
    report = vacuum(folder, purge=True)
    assert not traces(folder)
    assert not report.given_up
    table = sx.open_table(folder)
    assert table.status().fresh
    assert verify(folder).ok
    assert kept(table, "name = '03-other-007' AND n = 3007") == ["f3.parquet"]
    assert table.plan("n = 3007").count_bounds == (1, 1)
    assert table.refresh_indexes(workers=1).files == 0, "all others are kept"


@pytest.mark.few(1)
@pytest.mark.parametrize("after", [False, True])
def test_a_purge_after_a_killed_overwrite_leaves_no_path(
    tmp_path: Path, after: bool
) -> None:
    step, begun = 0, tmp_path / "begun"
    put(begun / "day=1" / f"{SECRET}.parquet", {"x": [1, 7], "i": [1, 2]})
    build(begun, {"x": "bitmap"})
    overwrite = partial(arrived, mode=SaveMode.OVERWRITE)
    for step, folder in deaths(begun, overwrite, range(100), after=after):
        (folder / "day=1" / f"{SECRET}.parquet").unlink(missing_ok=True)
        put(folder / "day=1" / "other.parquet", {"x": [4], "i": [1]})
        vacuum(folder, purge=True)
        files = [path for path in folder.rglob("*") if path.is_file()]
        assert [p for p in files if SECRET.encode() in p.read_bytes()] == [], step
    assert step > 8


def test_nothing_is_left_of_a_file_that_was_overwritten(folder: Path) -> None:
    put(folder / f"{SECRET}.parquet", columns(9))
    (folder / f"{SECRET}.parquet").rename(folder / "g.parquet")
    sx.open_table(folder).refresh_indexes(workers=1)
    vacuum(folder, purge=True)
    assert not traces(folder)


def test_nothing_is_left_of_a_dropped_index(folder: Path) -> None:
    sx.open_table(folder).refresh_indexes(workers=1)
    put(folder / f"{SECRET}.parquet", columns(9, secret=True))
    sx.open_table(folder).refresh_indexes(workers=1)
    sx.open_table(folder).compact_indexes()
    sx.open_table(folder).drop_indexes(columns=["name"])
    (folder / f"{SECRET}.parquet").rename(folder / "g.parquet")
    vacuum(folder, purge=True)
    for pack in packs(folder):
        assert SECRET.encode() not in pack.read_bytes()
    assert sx.open_table(folder).plan("n = 3007").count_bounds[0] >= 1


def test_a_table_without_files_keeps_nothing(folder: Path) -> None:
    for path in folder.glob("*.parquet"):
        path.unlink()
    vacuum(folder, purge=True)
    assert not traces(folder)
    assert not packs(folder)


def test_a_pack_that_cannot_be_read_is_given_up(folder: Path) -> None:
    table = sx.open_table(folder)
    pack = table.state.snapshot.manifest.packs[-1]
    for at in range(16, pack.blobs[0].length - 500, 100):
        flip(folder / PACKS / pack.name, pack.blobs[0].offset + at)
    forget_open_packs()
    report = vacuum(folder, purge=True)
    assert pack.name in " ".join(report.given_up)
    assert not traces(folder)
    assert sx.open_table(folder).refresh_indexes(workers=1).files > 0
    table = sx.open_table(folder)
    assert table.plan("n = 3007").count_bounds == (1, 1)


def test_a_dry_run_changes_nothing(folder: Path) -> None:
    version = latest_version(location_of(folder))
    vacuum(folder, purge=True, dry_run=True)
    assert latest_version(location_of(folder)) == version
    assert traces(folder)


def test_commits_keep_their_numbers(folder: Path) -> None:
    """Else a slow writer could take one that others have built on."""
    location = location_of(folder)
    before = latest_version(location)
    vacuum(folder, purge=True)
    newest = latest_version(location)
    numbers = sorted(int(p.stem) for p in (folder / LOG).iterdir())
    assert numbers == list(range(newest + 1))
    assert newest > before
    texts = [p.read_bytes() for p in sorted((folder / LOG).iterdir())]
    assert texts[:-1] == [BLANK] * newest
    assert json.loads(texts[-1])["commit"]


def test_without_purging_the_next_commit_and_merge_forget(folder: Path) -> None:
    sx.open_table(folder).refresh_indexes(workers=1)
    sx.open_table(folder).compact_indexes()
    vacuum(folder, retention=timedelta(0))
    table = sx.open_table(folder)
    assert SECRET not in str(table.state.snapshot.manifest.paths)


@pytest.mark.slow
def test_space_does_not_grow_with_history(tmp_path: Path) -> None:
    """A table whose files are replaced again and again."""
    sizes = []
    for i in range(24):
        for j in range(3):
            put(tmp_path / f"{j}.parquet", columns(i + j))
        build(tmp_path, ASKED)
        if i % 4 == 3:
            vacuum(tmp_path, purge=True)
            stored = [(tmp_path / f).iterdir() for f in (MANIFESTS, PACKS)]
            sizes.append(sum(p.stat().st_size for each in stored for p in each))
    assert max(sizes[1:]) <= 1.1 * sizes[0]
