"""The commit log: numbers without gaps, nothing lost, nothing half seen."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from skipindex.errors import CommitConflictError, CorruptIndexError, IndexVersionError
from skipindex.log import (
    FORMAT,
    Change,
    Snapshot,
    latest_version,
    newest_snapshot,
    read_snapshot,
)
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.source import commit
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import LOG, commit_path
from tests.log.pieces import saying
from tests.rewrite.killing import meanwhile
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


@pytest.fixture
def one(location: Location) -> Location:
    """A table with one commit, which adds a file ``f``."""
    commit(location, add("f"), operation="test")
    return location


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
    layout = {"by": ["é"]}
    written = commit(location, saying(layout=layout), operation="test")
    for found in (written, read_snapshot(location)):
        assert (found.version, found.properties.layout) == (0, layout)


def test_a_commit_is_small_json_that_people_can_read(
    one: Location, tmp_path: Path
) -> None:
    record = json.loads(newest_commit(tmp_path).read_text())["commit"]
    assert (record["operation"], record["format"]) == ("test", FORMAT)
    (segment,) = record["segments"]
    assert segment["size"] == newest_manifest(tmp_path).stat().st_size


def test_writers_at_the_same_time_lose_nothing(location: Location) -> None:
    """Eight threads of five commits each, all begun at once."""
    barrier = threading.Barrier(8)

    def work(i: int) -> None:
        barrier.wait()
        for j in range(5):
            commit(location, add(f"{i}-{j}"), operation="test")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    expected = {f"{i}-{j}" for i in range(8) for j in range(5)}
    assert set(read_snapshot(location).manifest.paths) == expected
    assert latest_version(location) == 39, "numbers without gaps"
    for version in range(40):
        assert len(read_snapshot(location, version).manifest) == version + 1


def _commit_in_a_process(root: str, i: int, barrier: Any) -> None:
    barrier.wait()
    for j in range(3):
        commit(Location(root), add(f"{i}-{j}"), operation="test")


@pytest.mark.slow
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
    monkeypatch.setattr(Location, "write_new", lambda *_: tried.append("again"))
    monkeypatch.setattr("skipindex.log.commits.time.sleep", lambda seconds: None)
    with pytest.raises(CommitConflictError, match="build: other writers") as error:
        commit(location, add("f"), operation="build")
    assert len(tried) == 50
    assert "\n" not in str(error.value)


def test_every_flipped_byte_of_a_commit_is_noticed(
    one: Location, tmp_path: Path
) -> None:
    path = newest_commit(tmp_path)
    whole, before = path.read_bytes(), read_snapshot(one)
    for position in range(len(whole)):
        for mask in (0x01, 0xFF):
            flip(path, position, mask)
            try:
                found = read_snapshot(one)
            except CorruptIndexError:
                pass
            else:  # blanks between the tokens
                assert found.manifest.paths == before.manifest.paths
                assert found.properties == before.properties
            path.write_bytes(whole)


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
        b'{"commit": {"format": 2, "nonce": ',
        b"\xff\xfe",
        b"\0" * 500,
    ],
    ids=repr,
)
def test_what_is_no_commit_is_corrupt(
    one: Location, tmp_path: Path, content: bytes
) -> None:
    newest_commit(tmp_path).write_bytes(content)
    with pytest.raises(CorruptIndexError, match="commit 0"):
        read_snapshot(one)


def test_a_commit_whose_keys_are_missing_is_corrupt(
    one: Location, tmp_path: Path
) -> None:
    rewrite_commit(tmp_path, segments=[{"name": "nowhere.arrow"}])
    with pytest.raises(CorruptIndexError, match="commit 0 cannot be read"):
        read_snapshot(one)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"format": FORMAT + 1}, r"format 3.*newer than ours \(2\)"),
        ({"needs": ["new"]}, r"needs 'new', which this.*not know \(known: nothing\)"),
        ({"needs": ["a", "b"]}, "needs 'a', which this"),
    ],
)
def test_a_commit_of_a_newer_library_is_refused_and_not_written_over(
    one: Location, tmp_path: Path, changes: dict[str, Any], text: str
) -> None:
    rewrite_commit(tmp_path, **changes)
    with pytest.raises(IndexVersionError, match=text):
        read_snapshot(one)
    with pytest.raises(IndexVersionError, match=text):
        commit(one, add("g"), operation="test")
    assert latest_version(one) == 0


@pytest.mark.parametrize("n_damaged", [1, 2, 3])
def test_a_damaged_commit_falls_back_to_the_newest_whole_one(
    location: Location, tmp_path: Path, n_damaged: int
) -> None:
    layout = {"cluster_by": ["x"]}
    commit(location, saying(layout=layout), operation="t")
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
    assert whole.properties.layout == layout
    assert whole.manifest.paths == [*(f"f{i}" for i in range(4 - n_damaged)), "g"]


def test_a_commit_that_is_deleted_while_it_is_read_is_not_damaged(
    one: Location, tmp_path: Path
) -> None:
    """Another commit has superseded it."""

    def supersede() -> None:
        commit(one, add("g"), operation="test")
        (tmp_path / commit_path(0)).unlink()

    with meanwhile(Location, "read", supersede):
        found = newest_snapshot(one)
    assert (found.version, found.damaged, found.notes) == (1, None, ())


@pytest.mark.parametrize(
    "name",
    [
        *("²³.json", "٣.json", "7.json", f"{10**19}.json", "x.json", "-1.json"),
        *("note.txt", ".123.tmp", "0007.json.crc"),
    ],
)
def test_what_has_no_name_of_a_commit_is_none(
    one: Location, tmp_path: Path, name: str
) -> None:
    (tmp_path / LOG / name).write_text("x")
    assert latest_version(one) == 0
    assert newest_snapshot(one).notes == ()
    assert commit(one, add("g"), operation="test").version == 1


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, Path.touch])
def test_what_is_in_the_place_of_a_commit_takes_its_number(
    one: Location, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    """A pipe is never opened, because a reader would wait for a writer."""
    make(tmp_path / commit_path(1))
    assert newest_snapshot(one).version == 0
    with pytest.warns(UserWarning, match="commit 1"):
        assert commit(one, add("g"), operation="test").version == 2
    assert newest_snapshot(one).manifest.paths == ["f", "g"]


def test_a_reader_sees_a_commit_whole_while_others_write(one: Location) -> None:
    def work() -> None:
        for i in range(1, 25):
            commit(one, add(f"f{i}"), operation="test")

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(work)
        while not writer.done():
            snapshot = read_snapshot(one)
            assert len(snapshot.manifest) == snapshot.version + 1
        writer.result()
