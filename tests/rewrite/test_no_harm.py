"""Nothing that a log says makes vacuum touch what is not ours."""

from __future__ import annotations

import contextlib
import os
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from skipindex.api import open_table
from skipindex.errors import CommitConflictError
from skipindex.rewrite.publish import Publisher
from skipindex.rewrite.vacuum import vacuum
from skipindex.storage.file_system.names import LOG, is_own_garbage, is_plain_path
from tests.rewrite.arrow_writer import (
    Rows,
    everything,
    listed,
    optimized,
    rows_of,
    seen_by_both,
)
from tests.tables import build, put, rewrite_commit

NOW = timedelta(0)


def fill(folder: Path, n_files: int = 4) -> Path:
    for i in range(n_files):
        put(folder / f"{i}.parquet", {"x": [7 * i % 5, 3 * i % 7], "i": [i, i]})
    return folder


def triple(folder: Path, path: str) -> list[Any]:
    found = (folder / path).stat()
    return [path, found.st_size, found.st_mtime_ns]


def forge(folder: Path, **rewrites: Any) -> None:
    """Let the newest commit say this, with the right checksum."""
    record = {"replacements": [], "trash": [], **rewrites}
    rewrite_commit(folder, properties={"rewrites": record})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = fill(tmp_path / "table")
    build(folder, {"x": "bitmap"})
    return folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    for path in ("gone", "d/secret", "secret", "_skipindex-a-0/part.parquet"):
        put(tmp_path / "outside" / path, {"x": [1]})
        os.utime(tmp_path / "outside" / path, (1e9, 1e9))
    return tmp_path / "outside"


@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret",
        "../outside/_skipindex-a-0/part.parquet",
        "_skipindex-a-0/../../outside/secret",
        "0.parquet",
        "_skipindex/log/00000000000000000000.json",
    ],
)
def test_trash_is_only_a_hidden_copy(folder: Path, outside: Path, path: str) -> None:
    (folder / "_skipindex-a-0").mkdir()
    forge(folder, trash=[[path, 1, 1, 0]])
    before = everything(outside), everything(folder)
    table = open_table(folder)
    assert "property 'rewrites' ignored" in table.notes[0]
    vacuum(folder)
    assert (everything(outside), everything(folder)) == before


def test_a_replacement_leads_nowhere_outside(folder: Path, outside: Path) -> None:
    before = {path: (outside / path).read_bytes() for path in everything(outside)}
    one = {
        "old": [triple(folder, "../outside/gone")],
        "new": [triple(folder, "../outside/d/secret")],
        "since": 0,
    }
    for name in ("replacements", "shown"):
        forge(folder, **{name: [one]})
        vacuum(folder, retention=NOW)
    assert {
        path: (outside / path).read_bytes() for path in everything(outside)
    } == before


def test_a_copy_with_other_rows_replaces_nothing(folder: Path) -> None:
    """Well-formed, and a lie: the file has one row, the others two."""
    hidden = "_skipindex-a-0/part-0.parquet"
    put(folder / hidden, {"x": [1], "i": [1]})
    one = {
        "old": [triple(folder, "0.parquet")],
        "new": [triple(folder, hidden)],
        "since": 0,
    }
    before = rows_of(folder, listed(folder))
    forge(folder, replacements=[one])
    vacuum(folder, retention=NOW)
    assert not before - rows_of(folder, listed(folder)), "no row is gone"


@pytest.mark.filterwarnings("ignore:commit . of the table is damaged")
@pytest.mark.parametrize("name", ["packs", "staging", "manifests", "log"])
def test_no_link_is_followed(folder: Path, outside: Path, name: str) -> None:
    place = folder / "_skipindex" / name
    if place.is_dir():
        shutil.rmtree(place)
    place.symlink_to(outside)
    (folder / "_skipindex-b-0").symlink_to(outside)
    before = everything(outside)
    vacuum(folder)
    vacuum(folder, retention=NOW)
    assert everything(outside) == before


@pytest.mark.parametrize("inner", ["day=1", "deep/er/day=1"])
def test_the_copies_of_a_table_below_stay(tmp_path: Path, inner: str) -> None:
    below = fill(tmp_path / "outer" / inner)
    table = optimized(below, cluster_by=["x"]).table
    vacuum(tmp_path / "outer", retention=NOW)
    assert open_table(below).paths == table.paths
    assert open_table(below).notes == ()


@pytest.mark.parametrize("inner", ["day=1", "deep/er/day=1"])
def test_the_copies_of_a_table_above_stay(tmp_path: Path, inner: str) -> None:
    below = fill(tmp_path / "outer" / inner)
    build(below, {"x": "bitmap"})
    outer = optimized(tmp_path / "outer", cluster_by=["i"]).table
    vacuum(below, retention=NOW)
    assert open_table(tmp_path / "outer").paths == outer.paths
    assert open_table(tmp_path / "outer").notes == ()


def test_files_of_others_in_our_folders_stay(folder: Path) -> None:
    others = {
        "_skipindex/packs/thesis.tex",
        "_skipindex/log/notes.json",
        "_skipindex-backup/part-0.parquet",
    }
    for path in others:
        put(folder / path, {"x": [1]})
        os.utime(folder / path, (1e9, 1e9))
    vacuum(folder, retention=NOW)
    assert others <= everything(folder)


@pytest.mark.parametrize(
    ("path", "plain", "ours"),
    [
        ("_skipindex-0a-1/part-0.parquet", True, True),
        ("p=1/_skipindex-0a-1/part-0.parquet", True, True),
        ("_skipindex-0a-1/d/part-0.parquet", True, False),
        ("_skipindex-backup/part-0.parquet", True, False),
        ("_skipindex-0a-1/../part-0.parquet", False, False),
        ("/_skipindex/packs/aa.puffin", False, False),
        ("_skipindex/packs/aa.puffin", True, True),
        ("_skipindex/packs/.aa.tmp", True, False),
        ("_skipindex/packs/aa.tex", True, False),
        ("_skipindex/manifests/aa.arrow", True, True),
        ("_skipindex/manifests/aa.cubes.json", True, True),
        ("_skipindex/manifests/mine.cubes.json", True, False),
        ("_skipindex/packs/aa.cubes.json", True, False),
        ("_skipindex/log/00000000000000000001.json", True, False),
        ("a//b", False, False),
        ("\ud800", False, False),
    ],
)
def test_names(path: str, plain: bool, ours: bool) -> None:
    assert is_plain_path(path) == plain
    assert (is_plain_path(path) and is_own_garbage(path)) == ours


def bodies() -> list[tuple[str, Any]]:
    a_file = ["0.parquet", 10, 10]
    hidden = ["_skipindex-a-0/p.parquet", 10, 10]
    one = {"old": [a_file], "new": [hidden], "since": 0}
    records: list[Any] = [
        None,
        [],
        {"replacements": {}},
        {"replacements": [{"old": []}]},
        {"replacements": [one, one]},
        {"replacements": [{**one, "new": []}]},
        {"replacements": [{**one, "since": "x"}]},
        {"replacements": [{**one, "since": True}]},
        {"replacements": [{**one, "old": [hidden]}]},
        {"replacements": [{**one, "old": [["0.parquet", 2**64, 1]]}]},
        {"replacements": [{**one, "overwrites": "x"}]},
        {"shown": [one, one]},
        {"shown": [{**one, "new": []}]},
        {"trash": [[1, 2, 3]]},
        {"trash": [[*hidden, -1]]},
        {"trash": [[*a_file, 0]]},
        {"replacements": [one], "trash": [[*hidden, 0]]},
        {"changes": "x"},
    ]
    found = [("rewrites", record) for record in records]
    shape = {"cluster_by": ["x"]}
    targets: list[Any] = [
        *(7, [7], [{}], [{"shape": {"cluster_by": 1}, "size": {}, "runs": {}}]),
        [{"shape": shape, "size": {"cube_size": "x"}, "runs": {}}],
        [{"shape": shape, "size": {}, "runs": {"0": "x"}}],
    ]
    found += [("runs", value) for value in (7, *({"targets": t} for t in targets))]
    found += [("layout", value) for value in (7, {"cluster_by": [1]})]
    return [*found, ("derived", 3), ("choice", "x")]


@pytest.mark.parametrize(("name", "value"), bodies(), ids=repr)
def test_a_property_that_is_wrong_is_ignored_alone(
    folder: Path, name: str, value: Any
) -> None:
    layout = {"cluster_by": ["x"]} if name != "layout" else value
    rewrite_commit(folder, properties={"layout": layout, name: value, "more": [1]})
    table = open_table(folder)
    assert len(table.plan("x = 100").paths) == 0, "its index is used"
    assert len(table.notes) == 1
    assert f"property {name!r} ignored" in table.notes[0]
    properties = table.state.snapshot.properties.to_json()
    assert name not in properties
    assert properties["more"] == [1]


def vacuumed(folder: Path) -> None:
    vacuum(folder, retention=NOW)


@pytest.mark.parametrize("step", ["due", "_link", "_link_file", "_delete_old"])
@pytest.mark.parametrize("after", [False, True])
def test_two_vacuums_at_once_agree(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    after: bool,
) -> None:
    """The second runs as a whole where the first one stands."""
    folder = fill(tmp_path)
    optimized(folder, cluster_by=["x"], rows_per_file=3)
    before = rows_of(folder, listed(folder))
    original = getattr(Publisher, step)
    pending = [vacuumed]

    def interrupted(self: Publisher, *args: Any) -> Any:
        if after:
            found = original(self, *args)
        while pending:
            pending.pop()(folder)
        return found if after else original(self, *args)

    monkeypatch.setattr(Publisher, step, interrupted)
    with contextlib.suppress(CommitConflictError):
        vacuumed(folder)
    assert not pending
    assert seen_by_both(folder) == (before, before)
    vacuumed(folder)
    assert seen_by_both(folder) == (before, before)


def linked_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, Rows]:
    """A table whose vacuum died when the copies were visible, before its commit."""
    folder = fill(tmp_path / "t")
    before = rows_of(folder, listed(folder))
    optimized(folder, cluster_by=["x"])

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Publisher, "_with_shown", die)
        with pytest.raises(KeyboardInterrupt):
            vacuumed(folder)
    return folder, before


def test_what_is_taken_back_is_the_copy_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, before = linked_and_not_shown(tmp_path, monkeypatch)
    optimized(folder, cluster_by=["i"])  # the copies are of hidden files in the trash
    assert len(listed(folder)) == 5
    assert seen_by_both(folder)[0] == before
    vacuum(folder)
    assert listed(folder) == [f"{i}.parquet" for i in range(4)]
    assert seen_by_both(folder) == (before, before)


def test_where_one_file_is_deleted_while_copies_are_visible_no_row_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A vacuum may have deleted it, after a commit that is lost; its rows are there."""
    folder, before = linked_and_not_shown(tmp_path, monkeypatch)
    (folder / "1.parquet").unlink()
    assert seen_by_both(folder)[0] == before
    vacuumed(folder)
    assert seen_by_both(folder) == (before, before)


@pytest.mark.filterwarnings("ignore:commit . of the table is damaged")
def test_an_overwrite_after_publishing_is_obeyed_though_the_log_goes_back(
    folder: Path,
) -> None:
    """Hidden copies are still there, and an older commit says that they count."""
    optimized(folder, cluster_by=["x"])
    vacuumed(folder)
    for path in listed(folder):
        (folder / path).unlink()
    put(folder / "new.parquet", {"x": [1], "i": [1]})
    before = rows_of(folder, ["new.parquet"])
    commits = sorted((folder / LOG).glob("*.json"))
    assert len(commits) > 2
    for commit in reversed(commits[1:]):
        assert rows_of(folder, open_table(folder).paths) == before
        commit.unlink()
