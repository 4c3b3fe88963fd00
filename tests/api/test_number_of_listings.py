"""How often a public call lists the folder of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import skipindex as sx
from skipindex.storage.file_system.location import FileInfo, Location
from tests.tables import put


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for i in range(3):
        put(tmp_path / f"f{i}.parquet", {"a": [i, i + 1], "b": ["x", "y"]})
    return tmp_path


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that were listed whole, one entry a time."""
    listed: list[str] = []
    original = Location.list

    def counted(location: Location, folder: str = "") -> Iterator[FileInfo]:
        if not folder:
            listed.append(location.root)
        return original(location, folder)

    monkeypatch.setattr(Location, "list", counted)
    return listed


def count(listings: list[str], call: Callable[[], Any]) -> tuple[int, Any]:
    listings.clear()
    result = call()
    return len(listings), result


def test_every_call_lists_the_folder_once_and_a_commit_twice_more(
    folder: Path, listings: list[str]
) -> None:
    """What is listed before a commit cannot stand for what is there later.

    A commit that is built on an older one forgets files that have vanished, and lists
    after it has read that commit: a file that another writer has added meanwhile must
    not be taken for a vanished one.  The table that the call returns is listed after
    its own commit, since writers may have published other files before it.
    """
    once, table = count(listings, lambda: sx.open_table(folder))
    assert once == 1
    wanted = {"a": "bitmap", "b": "bloom"}
    twice, report = count(listings, lambda: table.build_indexes(wanted, workers=1))
    assert twice == 2
    built = report.table
    calls: dict[str, tuple[int, Callable[[], Any]]] = {
        "open a table that is open": (0, lambda: sx.open_table(built)),
        "plan": (0, lambda: built.plan("a = 1")),
        "plan a path": (1, lambda: sx.plan_files("a = 1", table=folder)),
        "look": (0, lambda: (built.indexes, built.status(), built.layout_quality())),
        "advise": (0, lambda: built.advise(max_bytes_ratio=9)),
        "refresh": (1, built.refresh),
        "build a path, nothing new": (
            1,
            lambda: sx.build_indexes(folder, wanted, workers=1),
        ),
        "refresh of indexes, nothing new": (
            1,
            lambda: built.refresh_indexes(workers=1),
        ),
        "compact": (4, built.compact_indexes),  # it chooses by what has not vanished
        "declare": (2, lambda: built.declare_derived({})),
        "build what is missing": (
            3,
            lambda: built.build_indexes({"a": "bloom"}, workers=1),
        ),
        "drop": (3, lambda: built.drop_indexes(kinds=["bloom"])),
    }
    found = {name: count(listings, call)[0] for name, (_, call) in calls.items()}
    assert found == {name: n for name, (n, _) in calls.items()}


def test_a_build_of_all_files_at_once_lists_twice(
    folder: Path, listings: list[str]
) -> None:
    listed, report = count(listings, lambda: sx.build_indexes(folder, {"a": "bloom"}))
    assert listed == 2
    assert report.table.indexes
