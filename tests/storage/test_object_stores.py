"""Object stores, on a real S3 server of this machine."""

from __future__ import annotations

import io
import multiprocessing
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from unittest import mock

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from benchmarks.moto_server import S3, SERVER_KEY, SERVER_SECRET
from skipindex.build import task
from skipindex.build.task import read_column
from skipindex.errors import CommitConflictError, TableError
from skipindex.log import Snapshot, newest_snapshot
from skipindex.log.manifest import Manifest
from skipindex.log.properties import NO_PROPERTIES
from skipindex.rewrite.arrival import arrive
from skipindex.source import commit
from skipindex.source.folder import live
from skipindex.source.folder.new_files import SaveMode
from skipindex.storage.file_system import object_store
from skipindex.storage.file_system.location import FileInfo, Location, location_of
from tests.log.test_log import add


@pytest.fixture
def place(s3: S3) -> Location:
    """An empty folder of a new bucket."""
    return location_of(f"s3://{s3.new_bucket()}/a b/t", s3.options)


@pytest.fixture
def stopped(s3: S3) -> Iterator[None]:
    """Everything is written at one moment of the server."""
    s3.stop_clock(stopped=True)
    yield
    s3.stop_clock(stopped=False)


def parquet(values: list[int]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": values}), sink)
    return sink.getvalue()


@pytest.mark.usefixtures("stopped")
def test_a_file_that_is_overwritten_within_the_same_second_is_not_skipped(
    s3: S3, place: Location
) -> None:
    before, after = parquet([1, 2, 3]), parquet([7, 8, 9])
    assert len(before) == len(after)
    place.write("f.parquet", before)
    sx.build_indexes(place, {"x": "bitmap"}, workers=1)
    assert sx.plan_files("x = 8", table=place).paths == []
    then = place.stat("f.parquet")
    place.write("f.parquet", after)
    now = place.stat("f.parquet")
    assert then is not None
    assert now is not None
    assert (then.size, then.mtime) == (now.size, now.mtime), "all that was known"
    assert sx.plan_files("x = 8", table=place).paths == ["f.parquet"]
    table = sx.open_table(place)
    assert table.status().gaps == {"changed since it was indexed": 1}
    report = table.refresh_indexes()
    assert report.table.plan("x = 8").paths == ["f.parquet"]
    assert report.table.plan("x = 2").paths == []


def test_every_read_of_a_file_that_is_indexed_is_of_one_content(
    place: Location,
) -> None:
    """The end of a large file comes from one object, and the rest from none other."""
    place.write("f", bytes(100_000))
    known = place.stat("f")
    with place.open_input("f", known) as source:
        assert source.read_at(10, 99_000) == bytes(10)
        place.write("f", b"\1" * 100_000)
        with pytest.raises(OSError, match="precondition"):
            source.read_at(10, 0)
    with place.open_input("f") as source:
        assert source.read_at(2, 0) == b"\1\1"


def test_what_an_earlier_version_indexed_is_indexed_anew(
    place: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its manifests have no tags, and the times of a store may be whole seconds."""
    place.write("f.parquet", parquet([1, 2, 3]))
    with monkeypatch.context() as patch:
        patch.setattr(object_store, "strong_tag", lambda _: None)
        sx.build_indexes(place, {"x": "bitmap"}, workers=1)
    table = sx.open_table(place)
    assert table.state.snapshot.manifest.files["tag"].to_pylist() == [None]
    assert table.plan("x = 8").paths == ["f.parquet"]
    table = table.build_indexes({"x": ["bitmap", "bloom"]}, workers=1).table
    assert table.plan("x = 8").paths == []
    assert table.state.snapshot.manifest.files["tag"].null_count == 0
    assert table.status().columns[0].indexes == {"bitmap": 1, "bloom": 1}


@pytest.mark.usefixtures("stopped")
def test_without_tags_a_file_that_was_modified_just_now_is_not_trusted(
    place: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "strong_tag", lambda _: None)
    monkeypatch.setattr("time.sleep", lambda _: None)
    place.write("f.parquet", parquet([1, 2, 3]))
    report = sx.build_indexes(place, {"x": "bitmap"}, workers=1)
    assert "modified too recently" in str(report)
    place.write("f.parquet", parquet([7, 8, 9]))
    assert sx.plan_files("x = 8", table=place).paths == ["f.parquet"]


@pytest.mark.parametrize(
    ("tag", "expected"),
    [('"a"', "a"), ("0x8D", "0x8D"), ('W/"a"', None), (None, None), ('""', None)],
)
def test_a_weak_tag_is_none(tag: str | None, expected: str | None) -> None:
    assert object_store.strong_tag(tag) == expected


def test_a_writer_whose_answer_was_lost_has_written(
    place: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """obstore repeats a request without an answer, and finds the object there."""
    assert place.write_new("warm", b"")
    put = obstore.put

    def repeated(*args: Any, **settings: Any) -> Any:
        put(*args, **settings)
        return put(*args, **settings)

    monkeypatch.setattr(obstore, "put", repeated)
    assert place.write_new("log/0", b"mine")
    assert not place.write_new("log/0", b"mine")


def _commits(place: Location, i: int, n: int, barrier: Any, results: Any) -> None:
    barrier.wait()
    refused = 0
    for j in range(n):
        try:
            commit(place, add(f"{i}-{j}"), operation="test")
        except CommitConflictError:
            refused += 1
    results.put(refused)


@pytest.mark.parametrize(
    ("writers", "commits"), [(2, 6), pytest.param(8, 100, marks=pytest.mark.slow)]
)
def test_processes_that_commit_at_once_lose_nothing(
    place: Location, writers: int, commits: int
) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(writers), context.Queue()
    workers = [
        context.Process(target=_commits, args=(place, i, commits, barrier, results))
        for i in range(writers)
    ]
    for worker in workers:
        worker.start()
    refused = sum(results.get() for _ in workers)
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * writers
    done = newest_snapshot(place)
    assert len(done.manifest) + refused == writers * commits
    assert done.version == len(done.manifest) - 1, "numbers without gaps"


def _append(place: Location, values: list[int]) -> None:
    def write(folder: str) -> int:
        place.write(f"{folder}/part-0.parquet", parquet(values))
        return len(values)

    arrive(
        place,
        SaveMode.APPEND,
        write=write,
        index=lambda _: (Manifest.empty(), NO_PROPERTIES),
    )


@pytest.mark.slow
def test_rows_of_writers_at_once_all_arrive(place: Location) -> None:
    place.write("f.parquet", parquet([-1]))
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(_append, place, [i]) for i in range(8)]:
            done.result()
    table = sx.open_table(place)
    rows = [
        pq.read_table(place.open_input(path))["x"].to_pylist() for path in table.paths
    ]
    assert sorted(x for some in rows for x in some) == list(range(-1, 8))
    assert not any(path.startswith("_") for path in table.paths)
    assert table.vacuum(retention=timedelta(0)).deleted
    assert sx.open_table(place).paths == table.paths


def test_marks_of_folders_are_no_files(s3: S3, place: Location) -> None:
    """Hadoop writes an empty object ``k=1/`` where a folder is made."""
    place.write("k=1/f.parquet", parquet([1]))
    for mark in ("k=1/", "k=2/", "empty/"):
        s3.put(f"{place.root}/{mark}")
    place.write("_SUCCESS", b"")
    assert sorted(f.path for f in place.list()) == ["_SUCCESS", "k=1/f.parquet"]
    table = sx.open_table(place)
    assert table.paths == ["k=1/f.parquet"]
    assert [column.name for column in table.columns] == ["x", "k"]


def test_errors_show_no_secret(s3: S3) -> None:
    wrong = location_of("s3://no-such-bucket-here/t", s3.options)
    with pytest.raises(TableError) as raised:
        sx.open_table(wrong)
    assert "no-such-bucket-here" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert SERVER_SECRET not in str(raised.value)
    assert SERVER_KEY not in str(raised.value)


@pytest.mark.usefixtures("stopped")
def test_a_file_that_is_another_one_only_while_it_is_read_is_not_indexed(
    place: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after, size, time and tag are those of the first content."""
    before = parquet(list(range(50_000)))
    place.write("f.parquet", before)

    def meanwhile(*args: Any, **settings: Any) -> Any:
        place.write("f.parquet", bytes(len(before)))
        try:
            return read_column(*args, **settings)
        finally:
            place.write("f.parquet", before)

    monkeypatch.setattr(task, "read_column", meanwhile)
    report = sx.build_indexes(place, {"x": "bitmap"}, workers=1)
    assert "recondition" in str(report)
    assert report.table.plan("x = 49999").paths == ["f.parquet"]


def test_a_listing_that_a_commit_interrupts_is_made_again(place: Location) -> None:
    """Files and commit of one moment: else rewritten rows could count twice."""
    place.write("f.parquet", parquet([1]))
    commit(place, add("f.parquet"), operation="test")

    def version(files: Sequence[FileInfo]) -> Callable[[Snapshot], tuple[int, int]]:
        return lambda snapshot: (len(files), snapshot.version)

    whole = live._look_at_once(place, None, version, place.list)
    assert whole is not None
    assert whole.result() == (3, 0), "a data file, a segment and a commit"

    def interrupted() -> Iterator[FileInfo]:
        found = list(place.list())
        commit(place, add("g"), operation="test")
        return iter(found)

    assert live._look_at_once(place, None, version, interrupted) is None

    def refused(_: object) -> Any:
        """What fails between two moments says nothing of either."""
        raise TableError("no columns")

    for begin in (refused, lambda _: refused):
        assert live._look_at_once(place, None, begin, interrupted) is None
        failed = live._look_at_once(place, None, begin, place.list)
        assert failed is not None
        with pytest.raises(TableError, match="no columns"):
            failed.result()


def test_folders_of_a_table_are_listed_by_level(s3: S3, place: Location) -> None:
    for day in range(1, 71):
        place.write(f"day={day}/f.parquet", parquet([day]))
    place.write("day=3/_more/f.txt", b"1")
    s3.put(f"{place.root}/day=3/day=9/")
    place.write("_SUCCESS", b"")
    entries = sorted(entry.path for entry in place.entries("day=3"))
    assert entries == ["day=3/_more/", "day=3/day=9/", "day=3/f.parquet"]
    schema = pa.schema({"x": pa.int64(), "day": pa.int32()})

    def planned(condition: str) -> tuple[sx.Plan, list[str]]:
        """A plan, and the folders that were asked for it."""
        with (
            mock.patch.object(
                Location, "entries", autospec=True, side_effect=Location.entries
            ) as entries,
            mock.patch.object(
                Location, "list", autospec=True, side_effect=Location.list
            ) as whole,
        ):
            plan = sx.plan_files(place, condition, schema=schema)
        calls = [*entries.call_args_list, *whole.call_args_list]
        return plan, [folder for call in calls for folder in call.args[1:] or [""]]

    plan, asked = planned("day = 3")
    assert asked == ["", "day=1", "day=3"]
    assert (plan.paths, plan.table.n_unlisted) == (["day=3/f.parquet"], 69)
    plan, asked = planned("day < 67")
    assert (asked, len(plan.paths)) == (["", "day=1", ""], 66), "too many by themselves"


def test_the_folder_of_a_table_can_be_opened(s3: S3, place: Location) -> None:
    place.write("f.parquet", parquet([1]))
    table = sx.open_table(place)
    assert table.folder == table.status().table == place.uri
    assert sx.open_table(table.folder, storage_options=s3.options).paths == table.paths
    with pytest.raises(TableError, match=re.escape(f"{place.uri}x' does not exist")):
        sx.open_table(f"{place.uri}x", storage_options=s3.options)
    assert table.remove_indexes(dry_run=True).folder == place.uri
