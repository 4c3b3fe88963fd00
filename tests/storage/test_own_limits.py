"""A writer commits nothing that its readers would not take."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import skipindex.log.segments as of_segments
from skipindex.errors import TableError
from skipindex.log import Snapshot, commits, latest_version
from skipindex.log.commits import newest_snapshot
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.source import commit
from skipindex.source.folder.new_files import SaveMode
from skipindex.storage import checks
from skipindex.storage.file_system.location import Location, location_of
from skipindex.storage.file_system.names import MANIFESTS
from tests.log.pieces import saying
from tests.log.test_log import add
from tests.rewrite.arriving import arrived
from tests.rewrite.seen import everything, seen_by_both

FILES = [f"day=1/part-{i:05d}.parquet" for i in range(40)]


LIMITS: dict[str, tuple[Any, int]] = {
    "MAX_COMMIT": (commits, 2_000),
    "MAX_MANIFEST": (of_segments, 0),
    "MAX_UNPACKED": (of_segments, 2_000),
    "_MAX_UNPACKED_OF_SMALL": (checks, 0),
    "_MAX_SEGMENTS": (of_segments, 1),
    "_MAX_ROWS": (of_segments, 20),
    "_MAX_DEPTH": (checks, 4),
}
"""Limits of readers, so low that the change below is beyond one of them; 0 stands for
what the commit before has."""


def large(base: Snapshot) -> tuple[Manifest, TableProperties]:
    found, _ = add(*FILES)(base)
    news = TableProperties(layout={"x": [[[[["y" * 3000]]]]]})
    return found, base.properties | news


@contextmanager
def lowered(patch: pytest.MonkeyPatch, name: str, folder: Path) -> Iterator[None]:
    module, low = LIMITS[name]
    data = next((folder / MANIFESTS).iterdir()).read_bytes()
    with patch.context() as inner:
        if name == "_MAX_UNPACKED_OF_SMALL":
            inner.setattr(checks, "_MAX_RATIO", 0)
            low = checks.unpacked_bytes(data)
        inner.setattr(module, name, low or len(data))
        yield


@pytest.mark.parametrize("name", LIMITS)
def test_what_is_beyond_a_limit_of_readers_is_not_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    location = Location(str(tmp_path))
    commit(location, add("f"), operation="test")
    with (
        lowered(monkeypatch, name, tmp_path),
        pytest.raises(TableError, match="test: nothing was committed") as told,
    ):
        commit(location, large, operation="test")
    assert "\n" not in str(told.value)
    assert latest_version(location) == 0
    done = commit(location, large, operation="test")
    assert newest_snapshot(location).properties == done.properties, "it is no other"


@pytest.mark.parametrize(
    ("name", "mode"),
    [("MAX_COMMIT", SaveMode.OVERWRITE), ("MAX_UNPACKED", SaveMode.APPEND)],
)
def test_rows_that_readers_would_not_take_are_not_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, mode: SaveMode
) -> None:
    folder = tmp_path / "t"
    arrived(folder, SaveMode.CREATE)
    before, files = seen_by_both(folder), everything(folder)
    many = {day: {"x": [1], "i": [day]} for day in range(1, 41)}
    with (
        lowered(monkeypatch, name, folder),
        pytest.raises(TableError, match=f"{mode.value}: nothing"),
    ):
        arrived(folder, mode, rows=many)
    assert seen_by_both(folder) == before
    left = {path for path in everything(folder) - files if path.endswith("parquet")}
    assert not left


NO_TARGET: dict[str, Any] = {"shape": {"cluster_by": []}, "size": {}, "runs": {}}


def test_all_that_a_commit_says_comes_back(tmp_path: Path) -> None:
    """What a reader would ignore with a note is no property that is written."""
    location = location_of(tmp_path)
    bad: list[dict[str, Any]] = [
        {"layout": {"cluster_by": "x"}},
        {"retention": {"seconds": -1}},
        {"rewrites": {"trash": [["0.parquet", 0]]}},
        {"runs": {"targets": [{**NO_TARGET, "size": {"levels": [0, -1]}}]}},
        {"runs": {"targets": [{**NO_TARGET, "size": {"levels": 1}}]}},
    ]
    for values in bad:
        with pytest.raises(TableError, match=f"property '{next(iter(values))}'"):
            commit(location, saying(**values), operation="test")
    assert latest_version(location) == -1
    with warnings.catch_warnings(action="error"):
        commit(location, saying(others={"of the future": 1}), operation="test")
    assert newest_snapshot(location).properties.others == {"of the future": 1}
