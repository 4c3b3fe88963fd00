"""``verify`` finds and names every damage, staleness and orphan."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import skipindex as sx
from skipindex.build.runners import LocalRunner, Progress, T, Task
from skipindex.cli import main
from skipindex.rewrite.vacuum import vacuum
from skipindex.rewrite.verify_table import verify
from skipindex.storage.file_system.names import LOG, MANIFESTS, PACKS
from tests.tables import (
    build,
    flip,
    made,
    newest_commit,
    newest_manifest,
    packs,
    put,
    put_all,
)

ASKED: Any = {"a": ["bitmap", "bloom"]}


def make(folder: Path) -> None:
    files = [{"a": [i, 10 + i, 20 + i], "b": [i, i, i]} for i in range(4)]
    build(put_all(folder, files), ASKED)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return made(tmp_path / "t", make)


def test_a_whole_table_is_fine(folder: Path) -> None:
    report = verify(folder)
    assert report.ok
    assert (report.damaged, report.stale, report.orphans) == ((), (), ())
    assert report.index_bytes == sum(p.stat().st_size for p in packs(folder))
    assert "0 damaged, 0 stale, 0 orphans" in str(report)
    assert main(["verify", str(folder)]) == 0
    put_all(folder.parent / "plain", [{"a": [1]}])
    assert not verify(folder.parent / "plain").ok, "it was never indexed"


@pytest.mark.parametrize(
    ("columns", "times", "misplaced"),
    [
        ({"day": "to_date(at)"}, ["05T00:00", "05T23:59"], None),
        ({"day": "to_date(at)"}, ["05T12:00", "06T00:00"], "06 00:00:00"),
        ({"day": "to_date(at)"}, ["04T23:59", "05T23:59"], "04 23:59:00"),
        ({"month": "month(at)", "day": "day(at)"}, ["04T23:59"], "04 23:59:00"),
        ({"day": "date_format(at, 'yyyy-MM-dd')"}, ["06T00:00"], "06 00:00:00"),
        ({}, ["06T00:00"], None),
    ],
)
def test_rows_in_a_folder_that_rules_them_out_are_found(
    tmp_path: Path, columns: dict[str, str], times: list[str], misplaced: str | None
) -> None:
    """Other writers may have put them there; no condition on the column reads them."""
    values = {"day": "5" if "month" in columns else "2024-01-05", "month": "1"}
    hive = "/".join(f"{name}={values[name]}" for name in columns) or "day=2024-01-05"
    found = [datetime.fromisoformat(f"2024-01-{text}:00+00:00") for text in times]
    put(tmp_path / hive / "0.parquet", {"at": found})
    build(tmp_path, {"at": "minmax"})
    table = sx.open_table(tmp_path)
    if columns:
        table = table.declare_derived(columns, timezone="UTC")
    report = table.verify()
    assert report.ok == (misplaced is None)
    if misplaced:
        (line,) = report.misplaced
        assert f"{hive}/0.parquet: it has a row where at is 2024-01-{misplaced}" in line
        assert line in str(report)


def test_every_byte_of_a_payload_is_looked_at(folder: Path) -> None:
    """Whichever byte of a blob is changed, it is found, and the pack is named."""
    table = sx.open_table(folder)
    pack = table.state.snapshot.manifest.packs[0]
    path = folder / PACKS / pack.name
    for blob in pack.blobs:
        for at in range(0, blob.length, 13):
            flip(path, blob.offset + at)
            report = verify(folder)
            flip(path, blob.offset + at)
            if report.ok:  # padding between parts, which nothing reads
                raw = path.read_bytes()[blob.offset + at]
                assert raw == 0
                continue
            assert pack.name in " ".join(report.damaged)
            assert blob.meta.kind in " ".join(report.damaged)
    assert verify(folder).ok


def newest_pack(folder: Path) -> Path:
    return packs(folder)[0]


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.filterwarnings("ignore:commit .* of the table is damaged")
@pytest.mark.parametrize("how", [Path.unlink, _cut, _empty])
@pytest.mark.parametrize("what", [newest_commit, newest_manifest, newest_pack])
def test_what_is_lost_or_cut_is_named(
    folder: Path, how: Any, what: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = what(folder)
    how(path)
    report = verify(folder)
    assert not report.ok
    if path.exists() or path.parent.name != "log":
        assert report.damaged
    assert main(["verify", str(folder), "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert (record["ok"], record["damaged"]) == (False, list(report.damaged))
    sx.open_table(folder).refresh_indexes(workers=1)
    build(folder, ASKED)
    assert not verify(folder).stale


class Counting(LocalRunner):
    """Runs tasks here, as if there were two cores, and counts them."""

    n_tasks = 0

    def __init__(self) -> None:
        super().__init__(1)

    @property
    def slots(self) -> int:
        return 2

    def run(self, tasks: Sequence[Task[T]], progress: Progress | None) -> list[T]:
        Counting.n_tasks = len(tasks)
        return super().run(tasks, progress)


def test_workers_find_what_one_process_finds(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    for i in range(6):
        put(folder / f"{i}.parquet", {"a": [i, 10 + i]})
        build(folder, ASKED)
    found = packs(folder)
    assert verify(folder, runner=Counting()) == verify(folder)
    assert Counting.n_tasks == len(found) == 6
    flip(found[1], 30)
    found[2].unlink()
    found[4].write_bytes(found[4].read_bytes()[:-20])
    expected = verify(folder)
    assert len(expected.damaged) >= 3
    assert verify(folder, runner=Counting()) == expected
    assert sx.open_table(folder).verify(workers=2) == expected


def test_staleness_is_named_by_file(folder: Path) -> None:
    put(folder / "new.parquet", {"a": [5], "b": [5]})
    put(folder / "1.parquet", {"a": [5, 6], "b": [5, 6]})
    (folder / "2.parquet").unlink()
    (folder / "junk.parquet").write_bytes(b"PAR1 this is no Parquet file PAR1")
    text = "\n".join(verify(folder).stale)
    for line in (
        "new.parquet: never indexed",
        "1.parquet: changed since it was indexed",
        "2.parquet: indexed, and deleted or changed",
        "junk.parquet: never indexed",
    ):
        assert line in text
    sx.open_table(folder).refresh_indexes(workers=1)
    report = verify(folder)
    assert not report.damaged
    assert [text.partition(":")[0] for text in report.stale] == ["junk.parquet"]


def test_an_index_that_some_files_lack_is_named(folder: Path) -> None:
    put(folder / "new.parquet", {"a": [5], "b": [5]})
    build(folder, {"a": "bitmap"})
    assert verify(folder).stale == (
        "column 'a': 4 of 5 indexed files have the index bloom",
    )


def test_orphans_are_named_and_do_no_harm(folder: Path) -> None:
    strays = {
        f"{PACKS}/stray.puffin",
        f"{MANIFESTS}/stray.arrow",
        f"{PACKS}/.abc.tmp",
        f"{LOG}/note.txt",
        "_skipindex-0a-0/part.parquet",
        "_skipindex/staging/run/part.parquet",
    }
    for stray in strays:
        put(folder / stray, {"a": [1]})
    report = verify(folder)
    assert report.ok
    assert len(report.orphans) == len(strays)
    assert all(stray in "\n".join(report.orphans) for stray in strays)


def test_older_commits_are_no_orphans(folder: Path) -> None:
    sx.open_table(folder).drop_indexes(kinds=["bloom"])
    sx.open_table(folder).compact_indexes()
    report = verify(folder)
    assert report.orphans == ()
    vacuum(folder, purge=True)
    assert verify(folder).damaged == ()


def test_status_counts_what_is_there(folder: Path) -> None:
    put(folder / "new.parquet", {"a": [5], "b": [5]})
    (folder / "2.parquet").unlink()
    status = sx.open_table(folder).status()
    assert (status.files, status.indexed_files, status.vanished_files) == (4, 3, 1)
    assert status.gaps == {"never indexed": 1}
    assert not status.fresh
    a, b = status.columns
    assert (a.statistics, a.indexes) == (3, {"bitmap": 3, "bloom": 3})
    assert (b.statistics, b.indexes, b.why) == (3, {}, "no index")
    assert status.to_dict()["version"] == 0
    assert "3 files)" in str(status)
    assert sx.open_table(folder).refresh_indexes(workers=1).table.status().fresh
