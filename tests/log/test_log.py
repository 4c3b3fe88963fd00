"""The commit log: numbers without gaps, nothing lost, nothing half seen."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skipindex.errors import (
    CommitConflictError,
    CorruptIndexError,
    IndexVersionError,
)
from skipindex.log import (
    FORMAT,
    Change,
    Snapshot,
    commit,
    latest_version,
    newest_snapshot,
    read_snapshot,
)
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import LOG, MANIFESTS, commit_path
from tests.tables import flip, newest_commit, newest_manifest, rewrite_commit


def add(*paths: str) -> Change:
    """The change that adds data files of these names."""
    ones = dict.fromkeys(("size", "mtime", "footer_crc", "n_rows"), 1)
    rows: list[dict[str, Any]] = [
        {"path": path, **ones, "note": None, "packs": [], "slots": []} for path in paths
    ]

    def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
        new = Manifest.of_files(rows, {}, ())
        return base.manifest.merge(new), base.properties

    return change


@pytest.fixture
def location(tmp_path: Path) -> Location:
    return Location(str(tmp_path))


def test_before_the_first_commit_there_is_nothing(location: Location) -> None:
    snapshot = read_snapshot(location)
    assert snapshot.version == latest_version(location) == -1
    assert (len(snapshot.manifest), snapshot.properties) == (0, TableProperties())


def test_every_commit_has_the_next_number(location: Location) -> None:
    for i in range(3):
        assert commit(location, add(f"f{i}"), operation="test").version == i
    assert latest_version(location) == 2
    assert sorted(p.name for p in Path(location.full(LOG)).iterdir()) == [
        f"{i:020d}.json" for i in range(3)
    ]
    assert read_snapshot(location).manifest.paths == ["f0", "f1", "f2"]
    assert read_snapshot(location, 1).manifest.paths == ["f0", "f1"]


def test_what_is_returned_is_what_is_read(location: Location) -> None:
    layout = TableProperties(layout={"by": ["é"]})

    def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
        return base.manifest, layout

    written = commit(location, change, operation="test")
    read = read_snapshot(location)
    assert (read.version, read.properties) == (0, layout)
    assert (written.version, written.properties) == (0, read.properties)


def test_a_commit_is_small_json_that_people_can_read(tmp_path: Path) -> None:
    commit(Location(str(tmp_path)), add("f"), operation="build")
    record = json.loads(newest_commit(tmp_path).read_text())["commit"]
    assert record["operation"] == "build"
    assert record["format"] == FORMAT
    (segment,) = record["segments"]
    assert segment["size"] == newest_manifest(tmp_path).stat().st_size


def test_writers_at_the_same_time_lose_nothing(location: Location) -> None:
    """Eight threads of five commits each, all begun at once."""
    barrier = threading.Barrier(8)

    def work(i: int) -> None:
        barrier.wait()
        for j in range(5):
            commit(location, add(f"{i}-{j}"), operation="test")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = {f"{i}-{j}" for i in range(8) for j in range(5)}
    assert set(read_snapshot(location).manifest.paths) == expected
    assert latest_version(location) == 39, "numbers without gaps"
    for version in range(40):
        assert len(read_snapshot(location, version).manifest) == version + 1


def _commit_in_a_process(root: str, i: int, barrier: Any) -> None:
    barrier.wait()
    for j in range(3):
        commit(Location(root), add(f"{i}-{j}"), operation="test")


def test_processes_at_the_same_time_lose_nothing(location: Location) -> None:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    workers = [
        context.Process(target=_commit_in_a_process, args=(location.root, i, barrier))
        for i in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert len(read_snapshot(location).manifest) == 6
    assert latest_version(location) == 5


def test_the_slower_writer_applies_its_change_again(location: Location) -> None:
    calls: list[int] = []

    def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
        calls.append(base.version)
        if (
            len(calls) == 1
        ):  # another writer commits between our reading and our writing
            commit(location, add("theirs"), operation="test")
        return add("ours")(base)

    assert commit(location, change, operation="test").version == 1
    assert calls == [-1, 0]
    assert read_snapshot(location).manifest.paths == ["theirs", "ours"]


def test_who_is_always_slower_gives_up_with_one_sentence(
    location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def taken(self: Location, path: str, data: bytes) -> bool:
        tried.append(path)
        return False

    monkeypatch.setattr(Location, "write_new", taken)
    monkeypatch.setattr("skipindex.log.commits.time.sleep", lambda seconds: None)
    with pytest.raises(CommitConflictError, match="build: other writers") as error:
        commit(location, add("f"), operation="build")
    assert len(tried) == 50
    assert "\n" not in str(error.value)


def test_every_flipped_byte_of_a_commit_is_noticed(tmp_path: Path) -> None:
    location = Location(str(tmp_path))
    commit(location, add("f"), operation="test")
    path = newest_commit(tmp_path)
    whole = path.read_bytes()
    before = read_snapshot(location)
    for position in range(len(whole)):
        for mask in (0x01, 0xFF):
            flip(path, position, mask)
            try:
                found = read_snapshot(location)
            except CorruptIndexError:
                pass
            else:  # blanks between the tokens
                assert found.manifest.paths == before.manifest.paths
                assert found.properties == before.properties
            path.write_bytes(whole)


def test_every_flipped_byte_of_a_manifest_is_noticed(tmp_path: Path) -> None:
    location = Location(str(tmp_path))
    commit(location, add("f"), operation="test")
    path = newest_manifest(tmp_path)
    for position in range(0, path.stat().st_size, 7):
        flip(path, position)
        (lost,) = read_snapshot(location).lost
        assert "crc32c" in str(lost)
        flip(path, position)
    assert read_snapshot(location).manifest.paths == ["f"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"7",
        b"{}",
        b'{"commit": null, "crc32c": 1}',
        b'{"commit": {}, "crc32c": "x"}',
        b"\xff\xfe",
        b"\0" * 500,
    ],
    ids=repr,
)
def test_what_is_no_commit_is_corrupt(tmp_path: Path, content: bytes) -> None:
    location = Location(str(tmp_path))
    commit(location, add("f"), operation="test")
    newest_commit(tmp_path).write_bytes(content)
    with pytest.raises(CorruptIndexError, match="commit 0"):
        read_snapshot(location)


@pytest.mark.parametrize("length", [0, 1, 100])
def test_a_commit_that_was_cut_off_is_corrupt(tmp_path: Path, length: int) -> None:
    location = Location(str(tmp_path))
    commit(location, add("f"), operation="test")
    path = newest_commit(tmp_path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(CorruptIndexError):
        read_snapshot(location)


def test_a_commit_whose_keys_are_missing_is_corrupt(tmp_path: Path) -> None:
    location = Location(str(tmp_path))
    commit(location, add("f"), operation="test")
    rewrite_commit(tmp_path, segments=[{"name": "nowhere.arrow"}])
    with pytest.raises(CorruptIndexError, match="commit 0 cannot be read"):
        read_snapshot(location)


def test_a_missing_manifest_is_told(tmp_path: Path) -> None:
    location = Location(str(tmp_path))
    commit(location, add("f"), operation="test")
    shutil.rmtree(tmp_path / MANIFESTS)
    found = read_snapshot(location)
    assert (found.version, len(found.lost), found.manifest.paths) == (0, 1, [])


def test_a_newer_format_is_refused_by_its_number(tmp_path: Path) -> None:
    location = Location(str(tmp_path))
    commit(location, add("f"), operation="test")
    rewrite_commit(tmp_path, format=FORMAT + 1)
    with pytest.raises(IndexVersionError, match=r"format 3.*newer than ours \(2\)"):
        read_snapshot(location)


@pytest.mark.parametrize("needs", [["something new"], ["a", "b"]])
def test_a_commit_that_needs_what_is_unknown_is_refused_by_name(
    tmp_path: Path, needs: list[str]
) -> None:
    location = Location(str(tmp_path))
    commit(location, add("f"), operation="test")
    rewrite_commit(tmp_path, needs=needs)
    with pytest.raises(IndexVersionError, match=f"needs '{needs[0]}', which this"):
        read_snapshot(location)
    with pytest.raises(IndexVersionError, match=r"does not know \(known: nothing\)"):
        commit(location, add("g"), operation="test")
    assert latest_version(location) == 0


def test_a_newer_format_is_never_written_over(tmp_path: Path) -> None:
    location = Location(str(tmp_path))
    commit(location, add("f"), operation="test")
    rewrite_commit(tmp_path, format=FORMAT + 1)
    with pytest.raises(IndexVersionError):
        commit(location, add("g"), operation="test")
    assert latest_version(location) == 0


def test_where_no_commit_is_whole_the_next_begins_anew(tmp_path: Path) -> None:
    location = Location(str(tmp_path))
    commit(location, add("f"), operation="test")
    newest_commit(tmp_path).write_bytes(b"damaged")
    with pytest.warns(UserWarning, match="commit 0 of the table is damaged"):
        assert commit(location, add("g"), operation="test").version == 1
    assert read_snapshot(location).manifest.paths == ["g"]


def keep(base: Snapshot) -> tuple[Manifest, TableProperties]:
    return base.manifest, base.properties


@pytest.mark.parametrize("n_damaged", [1, 2, 3])
def test_a_damaged_commit_falls_back_to_the_newest_whole_one(
    tmp_path: Path, n_damaged: int
) -> None:
    location = Location(str(tmp_path))
    layout = TableProperties(layout={"cluster_by": ["x"]})
    commit(location, lambda base: (base.manifest, layout), operation="t")
    for i in range(4):
        commit(location, add(f"f{i}"), operation="test")
    for version in range(5 - n_damaged, 5):
        flip(tmp_path / commit_path(version), 60)
    found = newest_snapshot(location)
    assert (found.version, found.newest) == (4 - n_damaged, 4)
    assert "commit 4 cannot be read" in found.notes[0]
    assert f"commit {4 - n_damaged} is used instead" in found.notes[0]
    with pytest.warns(UserWarning, match="commit 4 of the table is damaged"):
        assert commit(location, add("g"), operation="test").version == 5
    whole = newest_snapshot(location)
    assert (whole.version, whole.newest, whole.notes) == (5, 5, ())
    assert whole.properties == layout
    assert whole.manifest.paths == [*(f"f{i}" for i in range(4 - n_damaged)), "g"]


def test_a_commit_that_is_deleted_while_it_is_read_is_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another commit has superseded it."""
    location = Location(str(tmp_path))
    commit(location, add("f"), operation="test")
    original = Location.read
    pending = [1]

    def read(self: Location, path: str, limit: int) -> bytes:
        if pending:
            pending.pop()
            commit(location, add("g"), operation="test")
            (tmp_path / commit_path(0)).unlink()
        return original(self, path, limit)

    monkeypatch.setattr(Location, "read", read)
    found = newest_snapshot(location)
    assert (found.version, found.damaged, found.notes) == (1, None, ())


@pytest.mark.parametrize("name", ["²³.json", "٣.json", "7.json", f"{10**19}.json"])
def test_what_has_no_name_of_a_commit_is_none(tmp_path: Path, name: str) -> None:
    location = Location(str(tmp_path))
    commit(location, add("f"), operation="test")
    (tmp_path / LOG / name).write_text("x")
    assert latest_version(location) == 0
    assert newest_snapshot(location).notes == ()
    assert commit(location, keep, operation="test").version == 1


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, Path.touch])
def test_what_is_in_the_place_of_a_commit_takes_its_number(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    """A pipe is never opened, because a reader would wait for a writer."""
    location = Location(str(tmp_path))
    commit(location, add("f"), operation="test")
    make(tmp_path / commit_path(1))
    assert newest_snapshot(location).version == 0
    with pytest.warns(UserWarning, match="commit 1"):
        assert commit(location, add("g"), operation="test").version == 2
    assert newest_snapshot(location).manifest.paths == ["f", "g"]


def test_other_files_in_the_log_are_no_commits(tmp_path: Path) -> None:
    location = Location(str(tmp_path))
    commit(location, add("f"), operation="test")
    for name in ("note.txt", ".123.tmp", "x.json", "0007.json.crc", "-1.json"):
        (tmp_path / LOG / name).write_bytes(b"?")
    assert latest_version(location) == 0
    assert commit(location, add("g"), operation="test").version == 1


def test_a_reader_sees_a_commit_whole_while_others_write(location: Location) -> None:
    commit(location, add("f0"), operation="test")
    done = threading.Event()

    def work() -> None:
        for i in range(1, 25):
            commit(location, add(f"f{i}"), operation="test")
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        snapshot = read_snapshot(location)
        assert len(snapshot.manifest) == snapshot.version + 1
    thread.join()
