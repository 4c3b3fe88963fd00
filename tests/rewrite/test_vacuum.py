"""Vacuum deletes what nobody needs, and nothing else."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.api import open_table
from skipindex.errors import TableError
from skipindex.log import Snapshot, latest_version
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.rewrite.vacuum import vacuum
from skipindex.source import commit
from skipindex.source.folder import folder, staging
from skipindex.source.folder.new_files import SaveMode
from skipindex.source.folder.replacements import Rewrites
from skipindex.storage.file_system.location import Location, location_of
from skipindex.storage.file_system.names import LOG, MANIFESTS, PACKS
from tests.rewrite.arriving import arrived
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.killing import Killed, killed_in, meanwhile
from tests.rewrite.seen import (
    NOW,
    check_rows,
    everything,
    listed,
    rows_of,
    seen_by_both,
)
from tests.tables import build, kept, newest_commit, put, put_all, set_mtime
from tests.traps.test_unreadable import as_another

WEEK = timedelta(days=7)


def fill(folder: Path, n_files: int = 4) -> Path:
    for i in range(n_files):
        put(folder / f"{i}.parquet", {"x": [7 * i % 5, 3 * i % 7], "i": [i, i]})
        (folder / f".{i}.parquet.crc").write_bytes(b"crc")
    return folder


def age(folder: Path, *, days: float) -> None:
    """Let everything below the folder have happened some days ago."""
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, (time.time() - days * 86400,) * 2)


def test_published_files_keep_their_indexes_and_readers(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    build(folder, {"x": "bitmap"})
    before = rows_of(folder, listed(folder))
    opened = optimized(folder, cluster_by=["x"], rows_per_file=2).table
    old = set(listed(folder))
    backdate(folder, days=8)
    report = vacuum(folder, retention=WEEK)
    assert report.published == len(opened)
    assert old <= set(report.deleted)
    assert seen_by_both(folder) == (before, before)
    assert rows_of(folder, opened.paths) == before, "who opened it before reads on"
    table = open_table(folder)
    assert table.paths == listed(folder)
    assert table.state.index_gaps == {}
    assert len(table.plan("x = 4").paths) < len(table)
    assert not list(folder.glob(".*.crc"))
    hidden, shown = ({Path(p).name for p in t.paths} for t in (opened, table))
    assert hidden == {f"{name}.hidden" for name in shown}


def test_no_glob_of_parquet_files_finds_a_hidden_copy(tmp_path: Path) -> None:
    """DuckDB and Polars read what a glob finds, under names with an underscore too."""

    def found(folder: Path) -> int:
        paths = folder.rglob("*.parquet")
        return sum(pq.read_metadata(path).num_rows for path in paths)

    folder = fill(tmp_path)
    build(folder, {"x": "bitmap"})
    n_rows = found(folder)
    optimized(folder, cluster_by=["x"], rows_per_file=2)
    assert len(list(folder.rglob("*.hidden"))) > 1
    assert found(folder) == n_rows
    backdate(folder, days=8)
    assert vacuum(folder, retention=WEEK).published
    assert list(folder.rglob("*.hidden")), "for who opened it before"
    assert found(folder) == n_rows
    vacuum(folder, retention=timedelta(0))
    assert not list(folder.rglob("*.hidden"))
    assert found(folder) == n_rows


def test_a_table_with_hidden_names_of_before_is_published(tmp_path: Path) -> None:
    """They ended in ``.parquet``, and a table may still have some."""
    folder = fill(tmp_path)
    build(folder, {"x": "bitmap"})
    before = rows_of(folder, listed(folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staging, "HIDDEN_END", "")
        optimized(folder, cluster_by=["x"], rows_per_file=2)
    assert list(folder.rglob("_skipindex-*/*.parquet"))
    assert seen_by_both(folder) == (before, before)
    assert vacuum(folder, retention=timedelta(0)).published
    assert seen_by_both(folder) == (before, before)
    optimized(folder, cluster_by=["x"], rows_per_file=3, mode="full")
    vacuum(folder, retention=timedelta(0))
    assert seen_by_both(folder) == (before, before)
    assert not list(folder.rglob("_skipindex-*"))


def backdate(folder: Path, *, days: float) -> None:
    """Let the replacements have been committed some days ago."""

    def earlier(some: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(replace(one, since=one.since - days * 86400) for one in some)

    def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
        names = ("replacements", "shown", "trash")
        older = {name: earlier(getattr(Rewrites.of(base), name)) for name in names}
        rewrites = replace(Rewrites.of(base), **older)
        return base.manifest, rewrites.to_properties(base.properties)

    commit(location_of(folder), change, operation="test")


def test_hidden_copies_go_a_retention_later(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    hidden = set(optimized(folder, cluster_by=["x"]).table.paths)
    backdate(folder, days=8)
    vacuum(folder)
    assert hidden <= everything(folder)
    backdate(folder, days=8)
    report = vacuum(folder)
    assert set(report.deleted) == hidden
    assert not hidden & everything(folder)
    rewrites = Rewrites.of(open_table(folder).state.snapshot)
    assert rewrites == Rewrites(changes=rewrites.changes)


def test_a_dry_run_tells_and_does_nothing(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    build(folder, {"x": "bitmap"})
    optimized(folder, cluster_by=["x"])
    (folder / "_skipindex" / "staging" / "dead").mkdir(parents=True)
    (folder / "_skipindex" / "staging" / "dead" / "part.parquet").write_bytes(b"x")
    files = everything(folder)
    told = vacuum(folder, retention=NOW, dry_run=True)
    assert everything(folder) == files
    assert told.dry_run
    assert "would publish 1 rewritten files" in str(told)
    done = vacuum(folder, retention=NOW)
    assert told.published == done.published == 1
    assert set(told.deleted) <= set(done.deleted)
    files_only = {p for p in done.deleted if MANIFESTS not in p and PACKS not in p}
    assert files_only <= set(told.deleted), "a hidden name alone is no file"
    assert {"0.parquet", "_skipindex/staging/dead/part.parquet"} <= set(told.deleted)


def stored(folder: Path, name: str) -> set[str]:
    return {path.name for path in (folder / name).iterdir()}


def packs_of(table: sx.Table) -> set[str]:
    return {pack.name for pack in table.state.snapshot.manifest.packs}


def test_superseded_packs_and_manifests_go_and_the_newest_stay(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    for kind in ("bitmap", "bloom", "bit_sliced"):
        build(folder, {"x": kind})
        sx.open_table(folder).drop_indexes(kinds=[kind])
    table = build(folder, {"x": "bitmap"})
    assert vacuum(folder).deleted == ()
    vacuum(folder, retention=NOW)
    assert stored(folder, PACKS) == packs_of(table)
    assert len(stored(folder, MANIFESTS)) == 1
    packs = open_table(folder).state.snapshot.manifest.packs
    assert packs == table.state.snapshot.manifest.packs
    assert open_table(folder).plan("x = 100").paths == []


def test_commits_of_the_retention_keep_what_they_name(tmp_path: Path) -> None:
    """Also the one that was the newest when it began."""
    folder = fill(tmp_path)
    build(folder, {"x": "bitmap"})
    build(folder, {"i": "bloom"})
    newest = packs_of(sx.open_table(folder).drop_indexes(kinds=["bitmap"]))
    age(folder, days=10)
    sx.open_table(folder).drop_indexes()
    assert stored(folder, PACKS) > newest
    vacuum(folder, retention=WEEK)
    assert stored(folder, PACKS) == newest
    assert stored(folder, LOG) == {f"{n:020d}.json" for n in (2, 3)}
    assert latest_version(location_of(folder)) == 3


def test_young_commits_are_kept_whatever_the_retention(tmp_path: Path) -> None:
    """A slow writer must not find the number of a deleted commit free."""
    folder = fill(tmp_path)
    for kind in ("bitmap", "bloom"):
        build(folder, {"x": kind})
    vacuum(folder, retention=NOW)
    assert len(stored(folder, LOG)) == 2


def test_files_of_others_are_not_touched(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    build(folder, {"x": "bitmap"})
    others = {
        "_SUCCESS",
        "_metadata_of_mine/a.parquet",
        "_skipindex-backup/part-0.parquet",
        "_skipindex/log/notes.json",
        "_skipindex/notes.txt",
        "_skipindex/packs/thesis.tex",
        "sub/9.parquet",
        ".0f.tmp",
        "sub/.a.tmp",
        f"other/_skipindex/{TEMPORARY}",
    }
    for name in others:
        put(folder / name, {"x": [1], "i": [2]})
    age(folder, days=100)
    vacuum(folder, retention=NOW)
    assert others <= everything(folder)
    assert set(listed(folder)) == {f"{i}.parquet" for i in range(4)}


TEMPORARY = f".skipindex-{'0f' * 16}.tmp"
"""A file that is being written, in whatever folder."""


def test_what_a_killed_writer_left_goes_after_the_retention(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    before = rows_of(folder, listed(folder))
    left = [
        "_skipindex/staging/1/0/part-0.parquet",
        "_skipindex-1-0/part-0.parquet",
        "_skipindex/packs/1.puffin",
        *(f"{of}{TEMPORARY}" for of in ("", "day=1/", f"{LOG}/", f"{PACKS}/")),
    ]
    for name in left:
        put(folder / name, {"x": [1], "i": [2]})
    assert vacuum(folder, retention=WEEK).deleted == ()
    for name in left:
        set_mtime(folder / name, time.time() - 8 * 86400)
    assert set(vacuum(folder, retention=WEEK).deleted) == set(left)
    assert seen_by_both(folder) == (before, before)


def stopped_while_it_publishes(folder: Path) -> list[str]:
    """Let a vacuum end on a full disk; the rewritten files."""
    paths = optimized(fill(folder), cluster_by=["x"]).table.paths
    with killed_in(Location, "copy"):
        vacuum(folder, retention=NOW)
    assert open_table(folder).paths == paths
    return paths


def test_a_file_deleted_while_it_is_published_stays_deleted(tmp_path: Path) -> None:
    (hidden,) = stopped_while_it_publishes(tmp_path)
    (tmp_path / "0.parquet").unlink()
    before = rows_of(tmp_path, ["1.parquet", "2.parquet", "3.parquet"])
    assert seen_by_both(tmp_path) == (before, before)
    (tmp_path / hidden).unlink()
    check_rows(tmp_path, before)
    check_rows(tmp_path, before)


def test_what_is_asked_wrongly(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="expected 0 or more"):
        vacuum(tmp_path, retention=timedelta(-1))
    with pytest.raises(TableError, match="no such table"):
        vacuum(tmp_path / "nowhere")


def test_a_store_that_copies_gives_files_new_marks(tmp_path: Path) -> None:
    """By the code for other file systems, on the local one."""
    folder = fill(tmp_path)
    far = Location(str(folder), f"file://{folder}")
    before = rows_of(folder, listed(folder))
    table = optimized(sx.open_table(far), cluster_by=["x"], rows_per_file=2).table
    assert table.state.location == far
    vacuum(far, retention=NOW)
    table = open_table(far)
    assert table.paths == listed(folder)
    assert table.state.index_gaps == {}
    assert seen_by_both(folder) == (before, before)
    assert optimized(table, cluster_by=["x"], rows_per_file=2).files_in == 0


def listed_before(
    patch: pytest.MonkeyPatch, others: Callable[[], Any], *, only_once: bool = True
) -> None:
    """Let others work when a table has been listed, before its log is looked at."""
    original = Location.list

    def listing(location: Location, below: str = "") -> Any:
        found = list(original(location, below))
        if not below:
            with patch.context() as inner:
                inner.setattr(Location, "list", original)
                others()
            if only_once:
                patch.undo()
        return iter(found)

    patch.setattr(Location, "list", listing)


def test_a_table_is_not_listed_while_it_changes_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listing from before a commit does not go with a commit from after it."""
    folder = fill(tmp_path)
    optimized(folder, cluster_by=["x"])
    before = rows_of(folder, listed(folder))
    listed_before(monkeypatch, lambda: vacuum(folder, retention=NOW))
    table = open_table(folder)
    assert rows_of(folder, table.paths) == before
    assert table.paths == listed(folder)


def test_a_table_that_never_rests_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fill(tmp_path)
    optimized(folder, cluster_by=["x"])

    def again() -> None:
        fill(folder)
        optimized(folder, cluster_by=["x"])

    listed_before(monkeypatch, again, only_once=False)
    with pytest.raises(TableError, match="was rewritten 20 times"):
        open_table(folder)


def test_a_rewrite_that_comes_and_goes_while_a_table_is_listed_loses_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after the log names no rewritten file; the listing is of between."""
    folder = fill(tmp_path)
    build(folder, {"x": "bitmap"})
    before = rows_of(folder, listed(folder))

    def come_and_go() -> None:
        optimized(folder, cluster_by=["x"])
        for _ in range(2):
            vacuum(folder, retention=NOW)

    listed_before(monkeypatch, come_and_go)
    listing = Location.list

    def of_between(self: Location, below: str = "") -> Any:
        found = sorted(listing(self, below), key=lambda file: file.path)
        return iter([file for file in found if (folder / file.path).exists()])

    monkeypatch.setattr(Location, "list", of_between)
    table = open_table(folder)
    rewrites = Rewrites.of(table.state.snapshot)
    assert rewrites == Rewrites(changes=rewrites.changes)
    assert rows_of(folder, table.paths) == before


def test_a_file_that_changes_while_it_is_published_is_a_new_one(tmp_path: Path) -> None:
    stopped_while_it_publishes(tmp_path)
    put(tmp_path / "2.parquet", {"x": [1, 2, 3], "i": [1, 2, 3]})
    check_rows(tmp_path, rows_of(tmp_path, listed(tmp_path)))


def test_segments_that_a_commit_names_stay_and_the_others_go(tmp_path: Path) -> None:
    """Each append names the segments of those before it."""
    for i in range(30):
        put(tmp_path / f"{i}.parquet", {"x": [i, i + 100]})
        table = build(tmp_path, {"x": "bitmap"})
    named = {segment.name for segment in table.state.snapshot.segments}
    assert 1 < len(named) < 30
    written = stored(tmp_path, MANIFESTS)
    assert named < written
    assert not vacuum(tmp_path).deleted
    assert stored(tmp_path, MANIFESTS) == written
    vacuum(tmp_path, retention=NOW)
    assert stored(tmp_path, MANIFESTS) == named
    for i in range(30):
        assert kept(tmp_path, f"x = {i}") == [f"{i}.parquet"]
    age(tmp_path / "_skipindex", days=10)
    (tmp_path / "7.parquet").unlink()
    dead = build(tmp_path, {"x": "bitmap"}).state.snapshot
    vacuum(tmp_path, retention=WEEK)
    assert {segment.name for segment in dead.segments} <= stored(tmp_path, MANIFESTS)
    assert named <= stored(tmp_path, MANIFESTS), "the newest of before the retention"


def test_a_segment_that_no_commit_got_to_name_goes(tmp_path: Path) -> None:
    put(tmp_path / "0.parquet", {"x": [1]})
    build(tmp_path, {"x": "bitmap"})
    put(tmp_path / "1.parquet", {"x": [2]})
    named = stored(tmp_path, MANIFESTS)
    with killed_in(Location, "write_new"):
        build(tmp_path, {"x": "bitmap"})
    assert stored(tmp_path, MANIFESTS) > named
    assert kept(tmp_path, "x = 1") == ["0.parquet", "1.parquet"]
    vacuum(tmp_path, retention=NOW)
    assert stored(tmp_path, MANIFESTS) == named
    assert kept(tmp_path, "x = 7") == ["1.parquet"]


@pytest.mark.parametrize("mode", SaveMode)
def test_a_finished_write_leaves_one_name_of_each_file(
    tmp_path: Path, mode: SaveMode
) -> None:
    """A second name would double the bytes of a copy, and ``rm`` would free none."""
    folder = tmp_path / "t"
    if mode is not SaveMode.CREATE:
        put(folder / "day=1" / "0.parquet", {"x": [1], "i": [1]})
        build(folder, {"x": "bitmap"})
    arrived(folder, mode)
    table = open_table(folder)
    rewrites = Rewrites.of(table.state.snapshot)
    assert rewrites == Rewrites(changes=rewrites.changes)
    assert not list(folder.rglob("_skipindex-*"))
    assert {path.stat().st_nlink for path in folder.rglob("*.parquet")} == {1}
    assert vacuum(folder).deleted == ()
    assert len(table.paths) == (3 if mode is SaveMode.APPEND else 2)
    assert len(table.plan("x = 2").paths) == 2


def test_hidden_names_that_an_overwrite_did_not_delete_go_after_the_retention(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = Location.delete

    def dying(location: Location, path: str) -> None:
        if "_skipindex-" in path:
            raise Killed
        delete(location, path)

    with monkeypatch.context() as patch:
        patch.setattr(Location, "delete", dying)
        with pytest.raises(Killed):
            arrived(folder, SaveMode.OVERWRITE)
    rewrites = Rewrites.of(open_table(folder).state.snapshot)
    assert rewrites == Rewrites(changes=rewrites.changes)
    hidden = list(folder.rglob("_skipindex-*/*.hidden"))
    assert len(hidden) == 2

    def are_there(days: float, **options: Any) -> bool:
        for path in hidden:
            set_mtime(path, time.time() + days * 86400)
        vacuum(folder, **options)
        assert len({path.exists() for path in hidden}) == 1
        return hidden[0].exists()

    assert are_there(0)
    assert are_there(0.001, retention=NOW), "written a moment ago"
    assert are_there(-0.001, retention=NOW, dry_run=True)
    assert not are_there(-0.001, retention=NOW)
    assert len(open_table(folder).plan("x = 2").paths) == 2


def test_commits_of_many_appends_do_not_grow(folder: Path) -> None:
    sizes = []
    for _ in range(12):
        arrived(folder, SaveMode.APPEND)
        sizes.append(newest_commit(folder).stat().st_size)
    assert max(sizes[-4:]) < 1.5 * max(sizes[:8])


def test_a_vacuum_between_the_listing_and_the_schema(tmp_path: Path) -> None:
    """The file that the schema comes from is gone: the table is listed anew."""
    put_all(tmp_path, [{"x": [i, 9 - i]} for i in range(4)])
    optimized(tmp_path, cluster_by=["x"], rows_per_file=2)
    with meanwhile(folder, "read_schema", lambda: vacuum(tmp_path, retention=NOW)):
        table = open_table(tmp_path)
    assert table.paths == listed(tmp_path)
    assert "0.parquet" not in table.paths
    assert kept(table, "x = 0") != []


# Who may read a table may read what says which of its files count


@contextmanager
def masked(mask: int) -> Iterator[None]:
    old = os.umask(mask)
    try:
        yield
    finally:
        os.umask(old)


def test_another_user_opens_a_table_that_was_vacuumed_in_private(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "t"
    for day in (1, 2):
        for name in "ab":
            put(folder / f"day={day}" / f"{name}.parquet", {"x": [1, 2], "i": [3, 4]})
    build(folder, {"x": "bitmap"})
    optimized(folder, cluster_by=["x"], rows_per_file=100)
    for path in (*tmp_path.parents[:2], tmp_path, folder):
        path.chmod(0o755)
    with masked(0o077):
        vacuum(folder, retention=timedelta(0))
    for path in folder.rglob("day=*/**/*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    for path in folder.glob("day=*"):
        path.chmod(0o755)
    if os.geteuid() != 0:
        pytest.skip("only root may become another user")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "chown", lambda *_, **__: None)  # it is another one's table
        with as_another(folder), pytest.warns(UserWarning, match="cannot be read"):
            assert rows_of(folder, sx.open_table(folder).paths).total() == 8
