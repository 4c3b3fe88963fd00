"""Indexes in a folder elsewhere: nothing of a table's own folder is written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import skipindex as sx
from benchmarks.moto_server import S3
from skipindex.build import builder
from skipindex.errors import TableError
from skipindex.storage.file_system.location import Location, location_of
from skipindex.storage.file_system.names import FOLDER, LOG
from skipindex.storage.file_system.sidecar import (
    folder_in_sidecar,
    location_in,
    uri_of,
    with_sidecar,
)
from tests.api.test_removal import contents
from tests.rewrite.arrow_writer import optimized
from tests.tables import put, put_all

FILES = [{"x": [1, 2]}, {"x": [3, 4]}, {"x": [5, 6]}]
NOW = timedelta(0)


@contextmanager
def untouched(folder: Path) -> Iterator[None]:
    """Nothing is written to a folder, which says so itself unless this is root."""
    before = contents(folder), sorted(folder.rglob("*")), folder.stat().st_mtime_ns
    folder.chmod(0o555)
    try:
        yield
    finally:
        folder.chmod(0o755)
    after = contents(folder), sorted(folder.rglob("*")), folder.stat().st_mtime_ns
    assert after == before


def own(table: Path, sidecar: Path) -> Path:
    """The folder of a table in a sidecar."""
    return sidecar / folder_in_sidecar(location_of(table))


def lives(table: Any, sidecar: Any, more: Any, **options: Any) -> None:
    """Each call that reads or writes indexes, with a file that comes meanwhile."""
    place = {"sidecar": sidecar, **options}
    report = sx.build_indexes(table, {"x": "bitmap"}, workers=1, **place)
    assert report.files == 3
    assert sx.plan_files(table, "x = 3", **place).paths == ["1.parquet"]
    opened = sx.open_table(table, **place)
    assert opened.status().fresh
    more()
    assert opened.refresh().status().gaps == {"never indexed": 1}
    assert opened.refresh().plan("x = 7").paths == ["3.parquet"]
    assert opened.refresh_indexes(workers=1).files == 1
    assert opened.build_indexes({"x": "bit_sliced"}, workers=1).files == 4
    assert opened.verify().ok
    assert sx.open_table(table, **place).plan("x > 4").paths == ["2.parquet", *LAST]
    left = opened.drop_indexes(columns=["x"], kinds=["bitmap"]).compact_indexes()
    assert {one.kind for one in left.indexes} == {"minmax", "bit_sliced"}
    exclusive = left.declare_exclusive()
    assert sx.open_table(table, trust="log", **place).paths == exclusive.paths
    assert left.vacuum(purge=True).deleted
    assert left.verify().ok
    assert [one.operation for one in left.history()]
    assert left.refresh().plan("x = 3").to_arrow().to_table()["x"].to_pylist() == [3]
    assert left.remove_indexes().deleted
    assert len(sx.open_table(table, **place).indexes) == 0


LAST = ["3.parquet"]


def test_a_life_without_a_byte_in_the_tables_folder(tmp_path: Path) -> None:
    folder, sidecar = put_all(tmp_path / "t", FILES), tmp_path / "sidecar"
    fourth = put(tmp_path / "3.parquet", {"x": [7, 8]})

    def more() -> None:
        folder.chmod(0o755)
        fourth.rename(folder / fourth.name)
        os.utime(folder, ns=(0, 0))
        folder.chmod(0o555)

    os.utime(folder, ns=(0, 0))
    before = contents(folder)
    folder.chmod(0o555)
    try:
        lives(folder, sidecar, more)
        assert folder.stat().st_mtime_ns == 0, "nothing came, not even for a moment"
    finally:
        folder.chmod(0o755)
    assert contents(folder).items() >= before.items()
    assert sorted(path.name for path in folder.iterdir()) == [
        "0.parquet", "1.parquet", "2.parquet", "3.parquet"
    ]  # fmt: skip
    assert list(sidecar.iterdir()) == [], "an empty folder of the table is deleted"
    assert pl.scan_parquet(folder).collect().height == 8


@pytest.mark.few(2)
@pytest.mark.parametrize("stores", [(True, True), (True, False), (False, True)])
def test_a_life_on_stores(s3: S3, tmp_path: Path, stores: tuple[bool, bool]) -> None:
    folders = [f"s3://{s3.new_bucket()}/a b", f"s3://{s3.new_bucket()}/side"]
    local = [str(tmp_path / "t"), str(tmp_path / "side")]
    table, sidecar = (
        s if is_store else p
        for s, p, is_store in zip(folders, local, stores, strict=True)
    )
    data = location_of(table, s3.options if stores[0] else None)

    def add(i: int) -> None:
        values = {"x": [2 * i + 1, 2 * i + 2]}
        file = put(tmp_path / "made" / f"{i}.parquet", values)
        data.write(file.name, file.read_bytes())
        if data.is_local:  # else too young for a clock of another file system
            os.utime(data.full(file.name), ns=(0, 0))

    for i in range(3):
        add(i)
    lives(table, sidecar, lambda: add(3), storage_options=s3.options)
    assert sorted(data.names("")) == [f"{i}.parquet" for i in range(4)]


def test_polars_reads_the_folder(tmp_path: Path) -> None:
    folder = put_all(tmp_path / "t", FILES)
    sx.build_indexes(folder, {"x": "bitmap"}, sidecar=tmp_path / "side", workers=1)
    assert pl.scan_parquet(folder).collect().height == 6
    sx.build_indexes(folder, {"x": "bitmap"}, workers=1)
    with pytest.raises(pl.exceptions.InvalidOperationError):
        pl.scan_parquet(folder).collect()


def test_one_sidecar_serves_many_tables(tmp_path: Path) -> None:
    sidecar = tmp_path / "side"
    tables = [put_all(tmp_path / name / "t", FILES[i:]) for i, name in enumerate("ab")]
    for folder in tables:
        sx.build_indexes(folder, {"x": "bitmap"}, sidecar=sidecar, workers=1)
    assert len(list(sidecar.iterdir())) == 2
    first, second = (sx.open_table(one, sidecar=sidecar) for one in tables)
    assert (len(first), len(second)) == (3, 2)
    before = contents(own(tables[1], sidecar))
    first.remove_indexes()
    assert contents(own(tables[1], sidecar)) == before
    assert second.verify().ok
    assert second.plan("x = 3").paths == ["0.parquet"]


def test_the_folder_has_a_name_for_every_spelling_of_the_table() -> None:
    spelled = ("/data/x/../events/", "file:///data/events", "file:/data/events")
    assert {folder_in_sidecar(location_of(one)) for one in spelled} == {
        "events-fc662e33a838835f"
    }
    one, two = (Location("b/a b", f"{scheme}://b/a%20b/") for scheme in ("s3", "s3a"))
    assert uri_of(one) == uri_of(two) == "s3://b/a b/"
    odd = folder_in_sidecar(Location("/data/" + "été/" + "é" * 90))
    assert odd.startswith("_" * 40 + "-")
    assert folder_in_sidecar(Location("/data/\udce9")).startswith("_-")


@pytest.mark.parametrize("other", ["moved", "beside the data"])
def test_a_log_of_another_table_is_refused(tmp_path: Path, other: str) -> None:
    sidecar = tmp_path / "side"
    folder = put_all(tmp_path / "old", FILES)
    if other == "moved":
        sx.build_indexes(folder, {"x": "bitmap"}, sidecar=sidecar, workers=1)
        place = own(folder, sidecar)
    else:
        sx.build_indexes(folder, {"x": "bitmap"}, workers=1)
        place = tmp_path / "elsewhere"
        (folder / FOLDER).rename(place)
        (tmp_path / "in").mkdir()
        place = place.rename(tmp_path / "in" / FOLDER).parent
    folder = folder.rename(tmp_path / "new")
    opened = sx.open_table(folder, sidecar=sidecar)
    assert len(opened.indexes) == 0, "a table that has moved has another folder there"
    sidecar.mkdir(exist_ok=True)
    place.rename(own(folder, sidecar))
    before = contents(sidecar)
    named = "/old/, not of file:" if other == "moved" else "a table with indexes beside"
    calls = (
        lambda: sx.open_table(folder, sidecar=sidecar),
        lambda: sx.plan_files(folder, "x = 3", sidecar=sidecar),
        lambda: sx.build_indexes(folder, {"x": "bloom"}, sidecar=sidecar, workers=1),
        lambda: opened.vacuum(retention=NOW),
        opened.remove_indexes,
        opened.declare_exclusive,
    )
    for call in calls:
        with pytest.raises(TableError, match=named):
            call()
    assert contents(sidecar) == before


def test_a_log_with_hidden_files_is_refused(tmp_path: Path) -> None:
    """Else a vacuum would show them in the table's folder."""
    folder = put_all(tmp_path / "t", FILES)
    sx.build_indexes(folder, {"x": "bitmap"}, workers=1)
    optimized(folder, cluster_by=["x"])
    place = tmp_path / "side" / folder_in_sidecar(location_of(folder))
    place.mkdir(parents=True)
    (folder / FOLDER).rename(place / FOLDER)
    before = contents(folder)
    with pytest.raises(TableError, match="indexes beside its data"):
        sx.open_table(folder, sidecar=tmp_path / "side").vacuum(retention=NOW)
    assert contents(folder) == before


def test_many_build_at_once(tmp_path: Path) -> None:
    folder, sidecar = put_all(tmp_path / "t", FILES * 3), tmp_path / "side"
    kinds = ["bitmap", "bloom", "bit_sliced", "range_bitmap"]

    def build(kind: str) -> int:
        asked = {"x": kind}
        return sx.build_indexes(folder, asked, sidecar=sidecar, workers=1).files

    with untouched(folder), ThreadPoolExecutor(4) as pool:
        assert list(pool.map(build, kinds)) == [9] * 4
    table = sx.open_table(folder, sidecar=sidecar)
    assert {*kinds, "minmax"} == {one.kind for one in table.indexes}
    assert table.verify().ok


def test_what_moves_data_files_needs_the_indexes_beside_them(tmp_path: Path) -> None:
    folder, sidecar = put_all(tmp_path / "t", FILES), tmp_path / "side"
    table = sx.build_indexes(folder, {"x": "bitmap"}, sidecar=sidecar, workers=1).table
    with (
        untouched(folder),
        pytest.raises(TableError, match="optimize needs the indexes in the table's"),
    ):
        optimized(table, cluster_by=["x"])


def test_a_table_with_indexes_of_its_own_takes_no_sidecar(tmp_path: Path) -> None:
    folder, sidecar = put_all(tmp_path / "t", FILES), tmp_path / "side"
    table = sx.build_indexes(folder, {"x": "bitmap"}, workers=1).table
    with pytest.raises(TableError, match="so it takes no sidecar"):
        sx.open_table(folder, sidecar=sidecar)
    assert with_sidecar(location_of(folder), sidecar, insist=False).sidecar is None
    table.remove_indexes()
    assert sx.open_table(folder, sidecar=sidecar).plan("x = 3").paths
    assert not sidecar.exists(), "who reads writes nothing"


@pytest.mark.parametrize("sidecar", ["", 7, Path("t"), Path("t/_side"), "file:t/_side"])
def test_what_is_no_sidecar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sidecar: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    put_all(Path("t"), FILES)
    with pytest.raises(TableError, match=r"not a sidecar: |is in the table's folder"):
        sx.open_table("t", sidecar=sidecar)


def test_options_are_of_a_store(tmp_path: Path) -> None:
    folder = put_all(tmp_path / "t", FILES)
    with pytest.raises(TableError, match="takes no storage_options"):
        sx.open_table(folder, sidecar=tmp_path / "side", storage_options={"a": "b"})
    table = sx.open_table(folder, sidecar=tmp_path / "side")
    with pytest.raises(TableError, match=r"is open and keeps its sidecar .accepted"):
        sx.open_table(table, sidecar=tmp_path)


def test_files_of_another_clock_are_old_enough_a_minute_later(tmp_path: Path) -> None:
    folder = put_all(tmp_path / "t", FILES)
    table = location_in(folder, None, tmp_path / "side")
    written = (folder / "2.parquet").stat().st_mtime_ns
    assert table.past() >= written
    other = replace(table, root="/dev")
    assert other.now() > written
    assert written - 60 * 10**9 <= other.past() < written - 50 * 10**9


def test_a_commit_that_lacks_the_table_is_refused(tmp_path: Path) -> None:
    folder, sidecar = put_all(tmp_path / "t", FILES), tmp_path / "side"
    sx.build_indexes(folder, {"x": "bitmap"}, sidecar=sidecar, workers=1)
    place = own(folder, sidecar)
    assert uri_of(location_of(folder)) in (place / LOG / f"{0:020d}.json").read_text()
    (place / FOLDER).rename(folder / FOLDER)
    table = sx.build_indexes(folder, {"x": "bloom"}, workers=1).table
    assert table.plan("x = 3").paths == ["1.parquet"], "a log may come to the data"
    (folder / FOLDER).rename(place / FOLDER)
    with pytest.raises(TableError, match="indexes beside its data"):
        sx.open_table(folder, sidecar=sidecar)


def test_an_interrupted_build_leaves_nothing_beside_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, sidecar = put_all(tmp_path / "t", FILES), tmp_path / "side"

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(builder, "commit", interrupt)
    with untouched(folder), pytest.raises(KeyboardInterrupt):
        sx.build_indexes(folder, {"x": "bitmap"}, sidecar=sidecar, workers=1)


def test_who_may_not_read_the_data_may_not_read_the_sidecar(tmp_path: Path) -> None:
    folder, sidecar = put_all(tmp_path / "t", FILES), tmp_path / "side"
    for path in folder.iterdir():
        path.chmod(0o600)
    sx.build_indexes(folder, {"x": "bitmap"}, sidecar=sidecar, workers=1)
    assert (own(folder, sidecar) / FOLDER).stat().st_mode & 0o077 == 0
