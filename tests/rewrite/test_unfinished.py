"""Tables between the commit and the publication, and what others do to them then."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from skipindex.api import open_table
from skipindex.errors import StorageError, TableError
from skipindex.rewrite.vacuum import vacuum
from skipindex.source.folder import publish
from skipindex.source.folder.new_files import NewFiles, SaveMode
from skipindex.source.folder.publish import Publisher
from skipindex.source.folder.replacements import Rewrites
from skipindex.storage.checks import sealed
from skipindex.storage.file_system.location import FileInfo, Location, location_of
from skipindex.storage.file_system.names import MANIFESTS, published
from tests.rewrite.arriving import arrived, overwrite_killed
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.kill_and_damage import WRITERS, copy, seen
from tests.rewrite.killing import Killed, killed_in, meanwhile
from tests.rewrite.seen import (
    NOW,
    check_rows,
    check_total,
    listed,
    rows_of,
    seen_alike,
    seen_by_both,
    totals,
)
from tests.tables import build, kept, newest_commit, put, put_all


def rewritten(folder: Path, n_files: int = 2, **wish: Any) -> Path:
    """Files of four rows each, which an optimize has replaced."""
    put_all(folder, [{"x": [i] * 4} for i in range(n_files)])
    build(folder, {"x": "bitmap"})
    optimized(folder, cluster_by=["x"], **wish)
    return folder


@pytest.mark.parametrize(
    "lost", ["partition", "hidden file", "damaged file", "link in its place"]
)
def test_files_that_arrive_count_each_for_itself(folder: Path, lost: str) -> None:
    overwrite_killed(folder)
    assert totals(folder) == [6, 40]
    (hidden,) = (folder / "day=2").glob("_skipindex-*/*.hidden")
    if lost == "partition":
        shutil.rmtree(folder / "day=2")
    elif lost == "hidden file":
        hidden.unlink()
    elif lost == "damaged file":
        hidden.write_bytes(b"PAR1")
    else:
        hidden.symlink_to(hidden.rename(folder.parent / "elsewhere.parquet"))
    assert totals(folder)[0] == 3
    assert "new files are deleted" in " ".join(open_table(folder).notes)
    waits = lost == "link in its place"  # which is not ours to delete
    for retention in (None, NOW):
        vacuum(folder, retention=retention)
        assert totals(folder) == [3, 40 if waits else 3]
    assert bool(Rewrites.of(open_table(folder).state.snapshot).replacements) == waits


def test_a_file_whose_hidden_name_is_gone_counts_by_its_visible_one(
    folder: Path,
) -> None:
    """As if the folder were cleaned of all that begins with an underscore."""
    overwrite_killed(folder)
    (hidden,) = (folder / "day=2").glob("_skipindex-*/*.hidden")
    path = str(hidden.relative_to(folder))
    location_of(folder).copy(path, published(path))
    assert totals(folder)[0] == 6
    shutil.rmtree(hidden.parent)
    assert totals(folder)[0] == 6
    vacuum(folder, retention=NOW)
    assert totals(folder) == [6, 6]


def test_a_rewrite_that_changes_while_it_is_linked_is_void(tmp_path: Path) -> None:
    """The vacuum was killed between its links and the commit."""
    rewritten(tmp_path)
    with killed_in(publish, "sync_left"):
        vacuum(tmp_path, retention=NOW)
    assert totals(tmp_path) == [8, 16]
    put(tmp_path / "0.parquet", {"x": [7] * 5})
    wanted = rows_of(tmp_path, ["0.parquet", "1.parquet"])
    assert seen_by_both(tmp_path)[0] == wanted
    vacuum(tmp_path, retention=NOW)
    assert seen_by_both(tmp_path) == (wanted, wanted)
    assert not Rewrites.of(open_table(tmp_path).state.snapshot).replacements


@pytest.mark.parametrize("where", ["_ended", "_delete_names"])
@pytest.mark.parametrize("size", ["same", "another"])
def test_a_visible_file_that_is_written_again_has_no_index(
    folder: Path, where: str, size: str
) -> None:
    """An index of other content would skip it."""
    plain: dict[str, Any] = {"compression": "none", "use_dictionary": False}
    plain["write_statistics"] = False
    write = pq.write_table
    with pytest.MonkeyPatch.context() as patch, killed_in(Publisher, where):
        patch.setattr(pq, "write_table", lambda *a: write(*a, **plain))
        patch.setattr(NewFiles, "withdraw", lambda *_, **__: None)
        arrived(folder, SaveMode.OVERWRITE, values=[101, 102, 103])
    (visible,) = (folder / "day=2").glob("part*.parquet")
    rows = [107, 108, 109, 110][: 3 if size == "same" else 4]
    other = put(folder / "new", {"x": rows, "i": [2] * len(rows)}, **plain)
    same_size = other.stat().st_size == visible.stat().st_size
    assert same_size == (size == "same")
    other.replace(visible)
    path = visible.relative_to(folder).as_posix()
    if where != "_ended" or size == "another":
        assert kept(folder, "x = 108") == [path]
    vacuum(folder)
    assert kept(folder, "x = 108") == [path]
    check_rows(folder, seen_alike(folder))
    assert not Rewrites.of(open_table(folder).state.snapshot).replacements


def test_a_commit_of_a_newer_library_is_no_garbage(folder: Path) -> None:
    """It comes between the look at the log and the listing of a vacuum."""

    def newer() -> None:
        overwrite_killed(folder)
        path = newest_commit(folder)
        body = json.loads(path.read_bytes())["commit"]
        path.write_bytes(sealed("commit", {**body, "format": 99}))

    with (
        meanwhile(Location, "list_own", newer),
        pytest.raises(StorageError, match="nothing more was deleted"),
    ):
        vacuum(folder, retention=NOW)
    body = json.loads(newest_commit(folder).read_bytes())["commit"]
    for segment in body["segments"]:
        assert (folder / MANIFESTS / segment["name"]).exists()
    assert len(list(folder.glob("day=*/_skipindex-*/*.hidden"))) == 2


def test_a_file_that_is_written_again_is_another_one_in_a_copy_too(
    tmp_path: Path,
) -> None:
    """Its footer would be the same: of equal size, and without statistics."""
    for i in range(2):
        put(tmp_path / f"{i}.parquet", {"x": [i] * 4}, write_statistics=False)
    build(tmp_path, {"x": "bitmap"})
    optimized(tmp_path, cluster_by=["x"])
    assert len(open_table(tmp_path)) == 1
    put(tmp_path / "0.parquet", {"x": [7] * 4}, write_statistics=False)
    now = rows_of(tmp_path, ["0.parquet", "1.parquet"])
    assert seen_by_both(tmp_path) == (now, now)


@pytest.mark.parametrize("by_writer", [True, False])
def test_a_publisher_that_wakes_up_brings_no_row_back(
    folder: Path, by_writer: bool
) -> None:
    """It sleeps before a copy; others end the publication and replace the table."""
    if not by_writer:
        optimized(folder, cluster_by=["x"])

    def others() -> None:
        vacuum(folder, retention=None if by_writer else NOW)
        arrived(folder, SaveMode.OVERWRITE)

    with meanwhile(Location, "copy", others), warnings.catch_warnings(action="ignore"):
        if by_writer:
            arrived(folder, SaveMode.OVERWRITE, values=[8, 9])
        else:
            vacuum(folder, retention=NOW)
    check_total(folder, 6)


def test_an_overwrite_that_wakes_up_before_its_hidden_names_go_brings_no_row_back(
    folder: Path,
) -> None:
    """A vacuum has ended it and was killed; then another overwrite replaces it."""

    def others() -> None:
        with killed_in(Publisher, "_delete_names"):
            vacuum(folder)
        assert list(folder.glob("day=*/_skipindex-*/*.hidden"))
        arrived(folder, SaveMode.OVERWRITE)

    with (
        meanwhile(Location, "copy", others),
        warnings.catch_warnings(action="ignore"),
        suppress(TableError),
    ):
        arrived(folder, SaveMode.OVERWRITE, values=[8, 9])
    assert totals(folder) == [6, 6]


def test_a_copy_that_is_gone_before_the_commit_is_no_lost_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another tool cleans up what it sees twice."""
    rewritten(tmp_path)

    def cleaned(location: Location, paths: Iterable[str]) -> None:
        for path in paths:
            location.delete(path)

    monkeypatch.setattr(publish, "sync_left", cleaned)
    vacuum(tmp_path, retention=NOW)
    assert totals(tmp_path) == [8, 8]
    assert listed(tmp_path) == ["0.parquet", "1.parquet"]


STEPS = ("write_new", "copy", "sync", "delete", "delete_own", "stat")


def vacuumed_and(folder: Path, mode: SaveMode) -> None:
    vacuum(folder, retention=NOW)
    arrived(folder, mode, values=[8])


OTHERS: dict[str, Callable[[Path], Any]] = {
    "a vacuum and an overwrite": partial(vacuumed_and, mode=SaveMode.OVERWRITE),
    "a vacuum and an append": partial(vacuumed_and, mode=SaveMode.APPEND),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("stride", [19, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize(
    "name",
    [
        "overwrite",
        pytest.param("vacuum", marks=pytest.mark.slow),
        pytest.param("vacuum of an overwrite", marks=pytest.mark.slow),
    ],
)
def test_two_others_work_while_a_publisher_pauses_anywhere(
    tmp_path: Path, name: str, other: str, stride: int
) -> None:
    """After its commit; what it has committed is in the table that the others find."""
    writer = WRITERS[name]
    writer.prepare(tmp_path / "begun")
    begun = tmp_path / "begun"
    for step in range(0, 300, stride):
        folder = tmp_path / "t"
        copy(begun, folder)
        n = paused(folder, writer.write, OTHERS[other], step)
        if n is None:
            break
        assert seen(folder) == n, step
        vacuum(folder, retention=NOW)
        assert seen_by_both(folder) == (n, n), step
    assert step > 5


def paused(
    folder: Path, write: Callable[[Path], Any], others: Callable[[Path], Any], step: int
) -> Any:
    """Let others work at one call of a publisher; the rows that they leave."""
    left: list[Any] = []
    number, at_rest = [0], [True]
    originals = {name: getattr(Location, name) for name in STEPS}

    def watched(name: str) -> Callable[..., Any]:
        def call(self: Location, *args: Any) -> Any:
            if at_rest[0] and not left and is_committed(folder):
                number[0] += 1
                if number[0] == step + 1:
                    at_rest[0] = False
                    others(folder)
                    left.append(seen(folder))
                    at_rest[0] = True
            return originals[name](self, *args)

        return call

    before = len(list((folder / "_skipindex" / "log").glob("*")))

    def is_committed(folder: Path) -> bool:
        return len(list((folder / "_skipindex" / "log").glob("*.json"))) > before

    with (
        pytest.MonkeyPatch.context() as patch,
        warnings.catch_warnings(action="ignore"),
    ):
        for name in STEPS:
            patch.setattr(Location, name, watched(name))
        with suppress(Exception):
            write(folder)
    return left[0] if left else None


def test_a_file_that_is_written_while_others_are_deleted_stays(tmp_path: Path) -> None:
    rewritten(tmp_path, 3)
    with meanwhile(
        Location,
        "delete_own",
        lambda: put(tmp_path / "2.parquet", {"x": [5] * 9}),
        where=lambda _, file: file.path == "0.parquet",
    ):
        vacuum(tmp_path, retention=NOW)
    assert not (tmp_path / "1.parquet").exists()
    assert totals(tmp_path) == [21, 21]


@pytest.mark.few(3)
@pytest.mark.parametrize("n_shown", [0, 1, 2])
@pytest.mark.parametrize("is_damaged", [True, False])
@pytest.mark.filterwarnings("ignore:commit . of the table is damaged")
def test_a_rewrite_that_a_lost_commit_has_shown_is_not_lost(
    tmp_path: Path, n_shown: int, is_damaged: bool
) -> None:
    """Files that it replaced are deleted, and an older commit names them."""
    rewritten(tmp_path, rows_per_file=4)
    before = seen(tmp_path)
    deleted: list[str] = []
    original = Location.delete_own

    def dying(self: Location, file: FileInfo) -> bool:
        if len(deleted) == n_shown:
            raise Killed
        deleted.append(file.path)
        return original(self, file)

    with pytest.MonkeyPatch.context() as patch, suppress(Killed):
        patch.setattr(Location, "delete_own", dying)
        vacuum(tmp_path, retention=NOW)
    assert len(deleted) == n_shown
    lost = newest_commit(tmp_path)
    if is_damaged:
        lost.write_bytes(lost.read_bytes()[:-9])
    else:
        lost.unlink()
    assert seen(tmp_path) == before
    vacuum(tmp_path, retention=NOW)
    assert seen(tmp_path) == before
    build(tmp_path, {"x": ["bitmap", "bloom"]})  # commits after the lost one
    assert seen(tmp_path) == before
    vacuum(tmp_path, retention=NOW)
    assert seen_by_both(tmp_path) == (before, before)
