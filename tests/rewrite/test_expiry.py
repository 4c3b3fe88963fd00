"""Old history goes after the retention, and all that commits of it name stays."""

from __future__ import annotations

import random
import time
from datetime import timedelta
from pathlib import Path
from unittest import mock

import pytest

import skipindex as sx
from skipindex.errors import CorruptIndexError, SkipIndexError, TableError
from skipindex.log import latest_version, newest_snapshot, read_snapshot
from skipindex.planner.stages.pack_cache import CacheSession
from skipindex.rewrite import arrival, expiry
from skipindex.rewrite.expiry import expire, parts_of
from skipindex.source.folder.new_files import SaveMode
from skipindex.storage.file_system.location import location_of
from skipindex.storage.file_system.names import LOG, MANIFESTS, PACKS
from tests.rewrite.arriving import arrived, fill
from tests.rewrite.killing import Killed, killed_at
from tests.tables import build, put, set_mtime

DAY = 86400.0


@pytest.fixture(autouse=True)
def _no_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "LOG_AGE", 0.0)


def own(folder: Path) -> list[Path]:
    """All that is stored of commits, segments and packs."""
    return [
        path for name in (LOG, MANIFESTS, PACKS) for path in (folder / name).iterdir()
    ]


def commits(folder: Path) -> dict[int, Path]:
    return {int(path.stem): path for path in sorted((folder / LOG).iterdir())}


def pass_time(folder: Path, seconds: float) -> None:
    """Let all that is stored of the log be so much older."""
    for path in own(folder):
        set_mtime(path, path.stat().st_mtime - seconds)


def aged(folder: Path, *, seed: int = 1, n_steps: int = 14) -> sx.Table:
    """A table with a long history, in which a day passes after each step."""
    fill(folder, 2)
    table = build(folder, {"x": "bitmap"})
    choice = random.Random(seed)
    for step in range(n_steps):
        pass_time(folder, DAY)
        match choice.randrange(4):
            case 0:
                arrived(folder, SaveMode.APPEND, values=[step, step + 1])
            case 1:
                path = folder / "day=1" / f"{choice.randrange(2)}.parquet"
                put(path, {"x": [step] * (step + 1), "i": [0] * (step + 1)})
                table = build(folder, {"x": "bitmap"})
            case 2:
                table.refresh().drop_indexes(columns=["x"])
            case _:
                build(folder, {"x": "bitmap", "i": "bitmap"})
    return sx.open_table(folder)


def readable(folder: Path) -> list[int]:
    """The numbers of the commits that can be read whole, with their packs."""
    location, found = location_of(folder), []
    for version in range(latest_version(location) + 1):
        try:
            snapshot = read_snapshot(location, version)
        except CorruptIndexError:
            continue
        if not snapshot.lost and all((folder / p).exists() for p in parts_of(snapshot)):
            found.append(version)
    return found


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("days", [0, 2.5, 6.5])
def test_all_commits_of_the_retention_stay_whole(
    tmp_path: Path, seed: int, days: float
) -> None:
    aged(tmp_path, seed=seed).declare_retention(timedelta(days=days))
    pass_time(tmp_path, 60)
    oldest = before_retention(tmp_path, days)
    wanted = [version for version in commits(tmp_path) if version >= oldest]
    before = len(own(tmp_path))
    gone = expire(location_of(tmp_path))
    assert gone
    assert len(own(tmp_path)) == before - len(gone)
    assert readable(tmp_path) == wanted
    if days == 0:
        newest = newest_snapshot(location_of(tmp_path))
        left = {str(path.relative_to(tmp_path)) for path in own(tmp_path)}
        assert left == parts_of(newest) | {f"{LOG}/{newest.version:020d}.json"}
    assert expire(location_of(tmp_path)) == []
    assert sx.open_table(tmp_path).notes == ()


def before_retention(folder: Path, days: float) -> int:
    """The newest commit that is as old as that."""
    begin = time.time() - days * DAY
    found = commits(folder).items()
    return max(version for version, path in found if path.stat().st_mtime <= begin)


def spoil(path: Path) -> None:
    at = path.stat().st_mtime
    path.write_bytes(b"{}")
    set_mtime(path, at)


def test_by_default_a_week_stays(tmp_path: Path) -> None:
    aged(tmp_path, n_steps=5)
    assert expire(location_of(tmp_path)) == []
    pass_time(tmp_path, 8 * DAY)
    assert expire(location_of(tmp_path))


def test_a_young_number_is_not_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry, "LOG_AGE", 3600.0)
    aged(tmp_path, n_steps=3).declare_retention(timedelta(0))
    before = commits(tmp_path)
    for path in before.values():
        set_mtime(path, time.time() - 60)
    expire(location_of(tmp_path))
    assert commits(tmp_path) == before


def test_a_pack_that_a_writer_has_not_committed_yet_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the retention is: the build that wrote it goes on."""
    aged(tmp_path, n_steps=3).declare_retention(timedelta(0))
    pass_time(tmp_path, DAY)
    monkeypatch.setattr(expiry, "LOG_AGE", 3600.0)
    packs = [path for path in own(tmp_path) if PACKS in str(path)]
    pending = packs[0].with_name("0" * len(packs[0].stem) + packs[0].suffix)
    pending.write_bytes(packs[0].read_bytes())
    set_mtime(pending, time.time() - 60)
    assert expire(location_of(tmp_path))
    assert pending.exists()
    set_mtime(pending, time.time() - 2 * 3600)
    expire(location_of(tmp_path))
    assert not pending.exists()


@pytest.mark.few(2)
@pytest.mark.parametrize("which", ["oldest of the retention", "newest"])
@pytest.mark.parametrize("part", ["commit", "segment"])
def test_where_a_commit_is_damaged_nothing_goes(
    tmp_path: Path, which: str, part: str
) -> None:
    aged(tmp_path).declare_retention(timedelta(days=2.5))
    location = location_of(tmp_path)
    version = latest_version(location)
    if which != "newest":
        version = before_retention(tmp_path, 2.5)
    path = commits(tmp_path)[version]
    if part == "segment":
        path = tmp_path / read_snapshot(location, version).segments[-1].path
    spoil(path)
    before = own(tmp_path)
    assert expire(location) == []
    assert own(tmp_path) == before


def test_packs_of_a_segment_that_cannot_be_read_stay(tmp_path: Path) -> None:
    fill(tmp_path, 6)
    build(tmp_path, {"x": "bitmap"})
    arrived(tmp_path, SaveMode.APPEND)
    old = sx.open_table(tmp_path).state.snapshot
    pass_time(tmp_path, DAY)
    table = sx.open_table(tmp_path).drop_indexes(columns=["x"])
    table.declare_retention(timedelta(hours=12))
    assert len(old.segments) > 1
    path = tmp_path / old.segments[-1].path
    data = path.read_bytes()
    spoil(path)
    assert expire(location_of(tmp_path)) == []
    path.write_bytes(data)
    assert old.version in readable(tmp_path)


def test_a_process_that_dies_meanwhile_harms_nothing(tmp_path: Path) -> None:
    aged(tmp_path).declare_retention(timedelta(days=2.5))
    rows = len(sx.open_table(tmp_path).plan("x = 1").paths)
    location = location_of(tmp_path)
    for _ in range(3):
        with killed_at(1, after=True), pytest.raises(Killed):
            expire(location)
        table = sx.open_table(tmp_path)
        assert table.notes == ()
        assert table.verify().damaged == ()
        assert len(table.plan("x = 1").paths) == rows
    expire(location)
    assert sx.open_table(tmp_path).verify().ok


def test_who_opened_the_table_before_reads_all_files_that_may_match(
    tmp_path: Path,
) -> None:
    fill(tmp_path, 3)
    old = build(tmp_path, {"x": "bitmap"})
    build(tmp_path, {"x": "bitmap", "i": "bitmap"})
    old.drop_indexes(columns=["x"])
    old.declare_retention(timedelta(0))
    pass_time(tmp_path, 60)
    before = [str(path.relative_to(tmp_path)) for path in own(tmp_path)]
    gone = expire(location_of(tmp_path))
    assert gone
    assert set(gone) < set(before)
    with CacheSession() as session:
        plan = old.plan("x = 7 AND i = 1", kinds=["bitmap"], session=session)
    now = sx.open_table(tmp_path).plan("x = 7 AND i = 1", without=["minmax"])
    assert set(now.paths) <= set(plan.paths)
    with pytest.raises(SkipIndexError, match="commit 0 cannot be read"):
        read_snapshot(location_of(tmp_path), 0)


def test_an_append_deletes_now_and_then(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sx.open_table(folder).declare_retention(timedelta(0))
    monkeypatch.setattr(expiry, "_EVERY", 8)
    real, numbers = time.time, []
    monkeypatch.setattr(time, "time", lambda: real() + 60)
    for _ in range(8):
        arrived(folder, SaveMode.APPEND)
        numbers.append(len(commits(folder)))
    assert max(numbers) <= 10
    assert min(numbers[4:]) < max(numbers)
    assert len(sx.open_table(folder)) == 18


def test_an_error_of_it_is_a_warning(folder: Path) -> None:
    with (
        mock.patch.object(arrival, "expire_now_and_then", side_effect=OSError),
        pytest.warns(UserWarning, match="stay until the next vacuum"),
    ):
        arrived(folder, SaveMode.APPEND)
    assert len(sx.open_table(folder)) == 4


@pytest.mark.parametrize("days", [-1, 10**6])
def test_a_retention_out_of_range_is_refused(folder: Path, days: int) -> None:
    with pytest.raises(TableError, match="accepted: 0 to 36525 days"):
        sx.open_table(folder).declare_retention(timedelta(days=days))


def test_vacuum_goes_by_the_retention_of_the_table(tmp_path: Path) -> None:
    table = aged(tmp_path, n_steps=5)
    assert table.vacuum(dry_run=True).deleted == ()
    table = table.declare_retention(timedelta(days=1))
    assert table.vacuum(dry_run=True).deleted
    table = table.declare_retention(None)
    assert table.vacuum(dry_run=True).deleted == ()
