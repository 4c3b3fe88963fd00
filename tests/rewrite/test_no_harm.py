"""Nothing that a log says makes vacuum touch what is not ours."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from skipindex.api import open_table
from skipindex.errors import CommitConflictError
from skipindex.rewrite.vacuum import vacuum
from skipindex.source.folder.publish import Publisher
from skipindex.storage.file_system.names import LOG, is_own_garbage, is_plain_path
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.killing import killed_in, meanwhile
from tests.rewrite.seen import (
    NOW,
    Rows,
    check_rows,
    everything,
    listed,
    rows_of,
    seen_by_both,
)
from tests.tables import build, made, put, rewrite_commit


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


def make(folder: Path) -> None:
    build(fill(folder), {"x": "bitmap"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return made(tmp_path / "table", make)


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
    old = triple(folder, "../outside/gone")
    new = triple(folder, "../outside/d/secret")
    for name in ("replacements", "shown"):
        forge(folder, **{name: [{"old": [old], "new": [new], "since": 0}]})
        vacuum(folder, retention=NOW)
    assert before == {path: (outside / path).read_bytes() for path in before}


def test_a_copy_with_other_rows_replaces_nothing(folder: Path) -> None:
    """Well-formed, and a lie: the file has one row, the others two."""
    hidden = "_skipindex-a-0/part-0.parquet"
    put(folder / hidden, {"x": [1], "i": [1]})
    old, new = (triple(folder, path) for path in ("0.parquet", hidden))
    before = rows_of(folder, listed(folder))
    forge(folder, replacements=[{"old": [old], "new": [new], "since": 0}])
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
@pytest.mark.parametrize("is_below", [True, False])
def test_the_copies_of_a_table_below_or_above_stay(
    tmp_path: Path, inner: str, is_below: bool
) -> None:
    below, above = fill(tmp_path / "t" / inner), tmp_path / "t"
    build(below, {"x": "bitmap"})
    mine, other = (below, above) if is_below else (above, below)
    paths = optimized(mine, cluster_by=["x"]).table.paths
    vacuum(other, retention=NOW)
    assert (open_table(mine).paths, open_table(mine).notes) == (paths, ())


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
        ("_skipindex/manifests/aa.cubes.json", True, False),
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


@pytest.mark.few(4)
@pytest.mark.parametrize("step", ["due", "_link", "_link_file", "_delete_old"])
@pytest.mark.parametrize("after", [False, True])
def test_two_vacuums_at_once_agree(tmp_path: Path, step: str, after: bool) -> None:
    """The second runs as a whole where the first one stands."""
    folder = fill(tmp_path)
    optimized(folder, cluster_by=["x"], rows_per_file=3)
    before = rows_of(folder, listed(folder))
    with (
        meanwhile(Publisher, step, lambda: vacuum(folder, retention=NOW), after=after),
        contextlib.suppress(CommitConflictError),
    ):
        vacuum(folder, retention=NOW)
    check_rows(folder, before)


def linked_and_not_shown(folder: Path) -> Rows:
    """Let a vacuum die when the copies are visible, before its commit; the rows."""
    before = rows_of(folder, listed(folder))
    optimized(folder, cluster_by=["x"])
    with killed_in(Publisher, "_with_shown"):
        vacuum(folder, retention=NOW)
    return before


def test_what_is_taken_back_is_the_copy_alone(folder: Path) -> None:
    before = linked_and_not_shown(folder)
    optimized(folder, cluster_by=["i"])  # the copies are of hidden files in the trash
    assert len(listed(folder)) == 5
    assert seen_by_both(folder)[0] == before
    vacuum(folder)
    assert listed(folder) == [f"{i}.parquet" for i in range(4)]
    assert seen_by_both(folder) == (before, before)


def test_where_one_file_is_deleted_while_copies_are_visible_no_row_is_lost(
    folder: Path,
) -> None:
    """A vacuum may have deleted it, after a commit that is lost; its rows are there."""
    before = linked_and_not_shown(folder)
    (folder / "1.parquet").unlink()
    assert seen_by_both(folder)[0] == before
    vacuum(folder, retention=NOW)
    assert seen_by_both(folder) == (before, before)


@pytest.mark.filterwarnings("ignore:commit . of the table is damaged")
def test_an_overwrite_after_publishing_is_obeyed_though_the_log_goes_back(
    folder: Path,
) -> None:
    """Hidden copies are still there, and an older commit says that they count."""
    optimized(folder, cluster_by=["x"])
    vacuum(folder, retention=NOW)
    for path in listed(folder):
        (folder / path).unlink()
    put(folder / "new.parquet", {"x": [1], "i": [1]})
    before = rows_of(folder, ["new.parquet"])
    commits = sorted((folder / LOG).glob("*.json"))
    assert len(commits) > 2
    for commit in reversed(commits[1:]):
        assert rows_of(folder, open_table(folder).paths) == before
        commit.unlink()
