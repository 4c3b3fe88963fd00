"""Building: what is missing, once, in any number of processes, beside anybody."""

from __future__ import annotations

import contextlib
import errno
import itertools
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import spawn
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from loky.backend.process import LokyProcess

import skipindex as sx
from skipindex.api.types import Progress
from skipindex.build import builder, missing, runners
from skipindex.build import task as task_module
from skipindex.build.column_requests import column_requests
from skipindex.build.pending_pack import ColumnRequest
from skipindex.build.repair import Repair
from skipindex.build.runners import ALONE_BYTES, LocalRunner
from skipindex.build.task import BuildTask
from skipindex.cli import main
from skipindex.errors import (
    BuildError,
    IndexVersionError,
    PredicateError,
    UnknownIndexError,
    UnsupportedTypeError,
)
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.indexes.registry import index_types
from skipindex.log import FORMAT, latest_version, read_snapshot
from skipindex.log.manifest import Manifest
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import LOG, PACKS
from tests.tables import (
    build,
    forget_open_packs,
    kept,
    newest_manifest,
    packs,
    put,
    put_all,
    rewrite_commit,
)

ALL = ["bitmap", "bloom", "range_bitmap", "bit_sliced"]


def numbers(i: int) -> dict[str, Any]:
    """Ten rows whose values are those of file ``i`` alone."""
    own = range(10 * i, 10 * i + 10)
    return {"a": [*own], "s": [f"v{n}" for n in own]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return put_all(tmp_path, [numbers(i) for i in range(4)])


def version(folder: Path) -> int:
    return latest_version(Location(str(folder)))


def manifest(folder: Path) -> Manifest:
    return read_snapshot(Location(str(folder))).manifest


def specs(table: sx.Table, column: str) -> set[tuple[str, str]]:
    """Which kinds serve which files."""
    return {
        (use.entry.meta.kind, table.paths[row])
        for use in table.state.blobs(table.state.resolve(column))
        for row in use.rows
    }


def test_a_star_is_every_ordered_column(folder: Path) -> None:
    report = sx.build_indexes(folder, {"*": "minmax"}, workers=1)
    assert (report.files, report.unchanged, report.n_bytes) == (4, 0, 0)
    assert set(manifest(folder).stats) == {"a", "s"}
    assert not (folder / PACKS).exists(), "statistics need no pack"
    assert kept(report.table, "a = 25") == ["2.parquet"]


def test_every_column_gets_statistics_too(folder: Path) -> None:
    table = build(folder, {"s": "bloom"})
    assert set(manifest(folder).stats) == {"a", "s"}
    assert specs(table, "s") == {("bloom", f"{i}.parquet") for i in range(4)}
    assert not specs(table, "a")


def test_statistics_are_left_out_where_none_are_wanted(folder: Path) -> None:
    build(folder, {"s": "bloom", "*": None})
    assert set(manifest(folder).stats) == {"s"}
    build(folder, {"s": "bitmap"})
    assert set(manifest(folder).stats) == {"s"}, "as the table was told before"
    build(folder, {"*": "minmax"})
    assert set(manifest(folder).stats) == {"a", "s"}


def test_one_column_alone_is_left_out(folder: Path) -> None:
    build(folder, {"a": None})
    assert set(manifest(folder).stats) == {"s"}
    sx.open_table(folder).refresh_indexes(workers=1)
    assert set(manifest(folder).stats) == {"s"}


@pytest.mark.parametrize(
    "wanted",
    ["bloom", sx.Bloom(), ["bloom"], ("bloom", sx.Bloom()), ["minmax", "bloom"]],
    ids=str,
)
def test_one_wish_has_many_forms(folder: Path, wanted: Any) -> None:
    table = build(folder, {"S": wanted})
    assert {kind for kind, _ in specs(table, "s")} == {"bloom"}


def test_a_second_call_reads_and_commits_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(folder, {"a": ALL, "s": "bitmap"})
    before = newest_manifest(folder).read_bytes()
    monkeypatch.setattr(task_module, "_read_and_index", None)
    report = sx.build_indexes(folder, {"a": ALL, "s": "bitmap"}, workers=1)
    assert (report.files, report.unchanged, report.n_bytes) == (0, 4, 0)
    assert version(folder) == 0
    assert newest_manifest(folder).read_bytes() == before


def test_an_append_indexes_the_new_file_alone(folder: Path) -> None:
    build(folder, {"a": "bitmap"})
    put(folder / "new.parquet", numbers(9))
    report = sx.build_indexes(folder, {"a": "bitmap"}, workers=1)
    assert (report.files, report.unchanged) == (1, 4)
    assert len(specs(report.table, "a")) == 5
    assert kept(report.table, "a = 95") == ["new.parquet"]


def test_a_second_index_on_a_column_keeps_the_first(folder: Path) -> None:
    build(folder, {"a": "bitmap"})
    put(folder / "new.parquet", numbers(9))
    table = build(folder, {"a": "bloom"})
    assert ("bitmap", "0.parquet") in specs(table, "a")
    assert ("bitmap", "new.parquet") not in specs(table, "a")
    assert len([1 for kind, _ in specs(table, "a") if kind == "bloom"]) == 5
    assert "a" in manifest(folder).stats


def test_two_parameter_sets_of_one_kind_stand_side_by_side(folder: Path) -> None:
    wanted = [sx.BitSliced(base=2), sx.BitSliced(base=10), sx.BitSliced(base=2)]
    table = build(folder, {"a": wanted})
    uses = table.state.blobs(table.state.resolve("a"))
    assert len(uses) == 8, "of four tasks"
    assert {use.entry.meta.spec["base"] for use in uses} == {2, 10}


@pytest.mark.parametrize(
    ("n_workers", "n_parts", "n_tasks"),
    [(1, 1, 1), (2, 1, 2), (2, 3, 3), (1, 100, 4), (2, 100, 8), (9, 100, 10)],
)
def test_each_worker_has_one_task_and_of_large_tables_up_to_four(
    tmp_path: Path, n_workers: int, n_parts: int, n_tasks: int
) -> None:
    """The table has so many times the bytes of a task, in ten files."""
    table = sx.open_table(put_all(tmp_path, [numbers(i) for i in range(10)])).state
    requests = column_requests(table, {"a": "bitmap"})
    groups = missing.missing_of(table, requests, Repair(), None)
    n_bytes = int(table.sizes.sum()) // n_parts
    with mock.patch.object(missing, "_TASK_BYTES", n_bytes):
        tasks = missing.deal(table, groups, n_workers, None)
    assert len(tasks) == n_tasks
    assert sorted(path for task in tasks for path in task.paths) == table.paths


def test_another_column_is_added_to_what_is_there(folder: Path) -> None:
    build(folder, {"a": "bitmap"})
    table = build(folder, {"s": "bitmap"})
    assert set(manifest(folder).stats) == {"a", "s"}
    plan = table.plan("a = 15 AND s = 'v16'")
    assert plan.paths == []
    assert plan.count_bounds == (0, 0)


@pytest.mark.parametrize(
    ("options", "left_kinds", "left_stats"),
    [
        ({}, set(), set()),
        ({"columns": ["a"]}, {("s", "bitmap"), ("s", "bloom")}, {"s"}),
        ({"kinds": ["bloom"]}, {("a", "bitmap"), ("s", "bitmap")}, {"a", "s"}),
        (
            {"columns": ["S"], "kinds": ["bitmap", "minmax"]},
            {("a", "bitmap"), ("a", "bloom"), ("s", "bloom")},
            {"a"},
        ),
        (
            {"kinds": ["minmax"]},
            {(c, k) for c in "as" for k in ("bitmap", "bloom")},
            set(),
        ),
        (
            {"columns": []},
            {(c, k) for c in "as" for k in ("bitmap", "bloom")},
            {"a", "s"},
        ),
        (
            {"kinds": []},
            {(c, k) for c in "as" for k in ("bitmap", "bloom")},
            {"a", "s"},
        ),
    ],
    ids=[
        *("nothing", "a column", "a kind", "kinds of a column", "statistics"),
        *("no column", "no kind"),
    ],
)
def test_indexes_are_dropped_by_column_and_kind(
    folder: Path,
    options: dict[str, Any],
    left_kinds: set[tuple[str, str]],
    left_stats: set[str],
) -> None:
    build(folder, {"a": ["bitmap", "bloom"], "s": ["bitmap", "bloom"]})
    table = sx.open_table(folder).drop_indexes(**options)
    found = {(c, kind) for c in "as" for kind, _ in specs(table, c)}
    assert found == left_kinds
    assert set(manifest(folder).stats) == left_stats
    assert len(packs(folder)) == 4, "readers of older commits still need them"
    assert kept(table, "a = 15 AND s = 'v16'") or left_kinds


def test_what_was_dropped_can_be_built_again(folder: Path) -> None:
    before = build(folder, {"a": "bitmap"}).plan("a = 15").count_bounds
    sx.open_table(folder).drop_indexes()
    assert sx.open_table(folder).plan("a = 15").count_bounds == (0, 40)
    assert build(folder, {"a": "bitmap"}).plan("a = 15").count_bounds == before


def test_dropping_asks_for_columns_and_kinds_that_exist(folder: Path) -> None:
    with pytest.raises(PredicateError, match="no column 'nope'"):
        sx.open_table(folder).drop_indexes(columns=["nope"])
    with pytest.raises(UnknownIndexError, match="unknown index kind 'nope'"):
        sx.open_table(folder).drop_indexes(kinds=["nope"])


def test_a_process_pool_builds_the_same_bytes(folder: Path) -> None:
    build(folder, {"a": ALL, "s": ALL})
    here = {p.name: p.read_bytes() for p in packs(folder)}
    name, content = newest_manifest(folder).name, newest_manifest(folder).read_bytes()
    for path in [*packs(folder), *(folder / LOG).iterdir()]:
        path.unlink()
    newest_is_gone = version(folder)
    assert newest_is_gone == -1
    sx.build_indexes(folder, {"a": ALL, "s": ALL}, workers=2)
    assert {p.name: p.read_bytes() for p in packs(folder)} == here
    assert newest_manifest(folder).name == name
    assert newest_manifest(folder).read_bytes() == content


@pytest.mark.slow
def test_workers_run_no_modules_of_the_working_folder(
    folder: Path, tmp_path: Path
) -> None:
    """The folder of the script, which is the first on our path, counts."""
    place, scripts = tmp_path / "place", tmp_path / "scripts"
    place.mkdir()
    scripts.mkdir()
    for name in ("random", "types", "threading", "numpy"):
        text = "print('A MODULE RAN', __file__); raise SystemExit('not this one')"
        (place / f"{name}.py").write_text(text)
    script = scripts / "script.py"
    script.write_text(
        "import sys, skipindex as sx\n"
        "if __name__ == '__main__':\n"
        "    sx.build_indexes(sys.argv[1], {'a': 'bitmap'}, workers=2)\n"
    )
    command = [sys.executable, str(script), str(folder)]
    done = subprocess.run(command, cwd=place, capture_output=True, check=True)
    # A warning would say that there are no workers.
    assert (done.stdout, done.stderr) == (b"", b"")


def test_workers_have_the_working_folder_first_on_their_path_if_we_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As where packages are installed into the folder of a program."""
    safe = {"PYTHONSAFEPATH": "1"}
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    for first, found in (("", {}), (str(Path.cwd()), {}), ("/scripts", safe)):
        monkeypatch.setattr(sys, "path", [first, *sys.path])
        assert runners._environment() == found
        assert "PYTHONSAFEPATH" not in os.environ
    monkeypatch.setattr(sys, "path", [])
    assert runners._environment() == safe
    monkeypatch.setenv("PYTHONSAFEPATH", "y")
    assert runners._environment() == {}


@pytest.mark.few(1)
@pytest.mark.parametrize("workers", [1, 2])
def test_progress_counts_files_from_the_beginning_to_the_end(
    folder: Path, workers: int
) -> None:
    calls: list[tuple[int, int]] = []

    def note(now: Progress) -> None:
        assert (now.what, now.unit) == ("indexing", "files")
        calls.append((now.done, now.total))

    sx.build_indexes(folder, {"*": "minmax"}, workers=workers, progress=note)
    assert (calls[0], calls[-1]) == ((0, 4), (4, 4))
    assert calls == sorted(set(calls))


def test_the_report_reads_well(folder: Path) -> None:
    (folder / "x.parquet").write_bytes(b"no parquet at all")
    report = sx.build_indexes(folder, {"a": "bitmap"}, workers=1)
    first, note, hint = str(report).splitlines()
    assert first.startswith(
        "indexed 4 files (0 up to date, 1 not readable), 0.0 MB of indexes, "
    )
    assert note.startswith("1 files: not readable: ")
    assert note.endswith("(first: x.parquet)")
    assert hint == report.hint
    assert report.n_bytes == sum(p.stat().st_size for p in packs(folder))


def damaged_footer(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9] + b"?" * 9)


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def footer_of_noise(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-120:-8] = b"\xaa" * 112
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("damage", [damaged_footer, truncated, footer_of_noise])
def test_a_file_that_cannot_be_read_is_noted_and_kept(
    folder: Path, damage: Callable[[Path], None]
) -> None:
    damage(folder / "2.parquet")
    report = sx.build_indexes(folder, {"a": ALL, "s": ALL}, workers=1)
    (note,) = report.notes
    assert note.startswith("1 files: not readable")
    assert "first: 2.parquet" in note
    plan = report.table.plan("a = 15")
    assert plan.paths == ["1.parquet", "2.parquet"]
    assert any("not readable" in note for note in plan.notes), plan.notes
    assert plan.count_bounds == (1, None)


def test_what_is_built_here_is_encoded_once_and_the_table_is_as_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [{"s": [f"word{i % 7} {j}" for j in range(50)]} for i in range(3)]
    for i, columns in enumerate(texts):
        numbers = [i * 50 + j if j % 9 else None for j in range(50)]
        put(tmp_path / f"{i}.parquet", columns | {"n": numbers, "x": [0.5, None] * 25})
    calls: list[str] = []
    for name in ("to_checked_bytes", "to_bytes", "from_bytes"):
        original = getattr(Manifest, name)

        def counted(*args: Any, name: str = name, original: Any = original) -> Any:
            calls.append(name)
            return original(*args)

        monkeypatch.setattr(Manifest, name, counted)
    table, here = sx.open_table(tmp_path).state, LocalRunner(1)
    table = builder.build(table, {"*": ["minmax", "bitmap"]}, runner=here).table
    for kind, name in itertools.product(index_types(), "sn"):
        with contextlib.suppress(UnsupportedTypeError):
            table = builder.build(table, {"*": None, name: kind}, runner=here).table
    assert calls == ["to_checked_bytes"] * (table.snapshot.version + 1)
    mine, read = table.snapshot, read_snapshot(Location(str(tmp_path)))
    assert mine.segments == read.segments
    assert mine.manifest.packs == read.manifest.packs
    assert mine.manifest.files.equals(read.manifest.files)
    assert mine.manifest.stats == read.manifest.stats
    assert list(mine.manifest.stats) == list(read.manifest.stats)
    assert mine.manifest.n_bytes == read.manifest.n_bytes
    monkeypatch.undo()
    again = pickle.loads(pickle.dumps(mine.manifest))
    assert again.packs == read.manifest.packs
    assert again.files.equals(read.manifest.files)


def test_a_file_that_was_deleted_since_it_was_listed_is_left_out(folder: Path) -> None:
    table = sx.open_table(folder)
    (folder / "0.parquet").unlink()
    requests = (ColumnRequest("a", table.state.resolve("a").domain, (), ("a",)),)  # type: ignore[arg-type]
    task = task_module.BuildTask(table.state.location, tuple(table.paths), requests)
    piece = task_module.run_task(task)
    assert piece.paths == ["1.parquet", "2.parquet", "3.parquet"]


def test_a_file_that_changes_while_it_is_indexed_gets_no_index(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = task_module._read_and_index

    def read_slowly(location: Any, found: Any, *rest: Any) -> Any:
        indexed = read(location, found, *rest)
        if found.path == "1.parquet":
            put(folder / "1.parquet", numbers(50))
        return indexed

    monkeypatch.setattr(task_module, "_read_and_index", read_slowly)
    report = sx.build_indexes(folder, {"a": "bitmap"}, workers=1)
    assert report.notes == ("1 files: changed while it was indexed (first: 1.parquet)",)
    assert kept(report.table, "a = 505") == ["1.parquet"]


def test_columns_that_cannot_be_read_are_noted_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder / "4.parquet", {"A": [15], "s": ["x"]})
    put(folder / "5.parquet", {"a": ["text"], "s": ["y"]})
    wanted = {"a": "bitmap", "s": "bitmap"}
    report = sx.build_indexes(folder, wanted, workers=1)
    other = "column 'a' has type string here, and another in the table"
    assert report.notes == (f"1 files: {other} (first: 5.parquet)",)
    plan = report.table.plan("a = 15")
    assert plan.paths == ["1.parquet", "4.parquet", "5.parquet"]
    assert kept(report.table, "a = 15 AND s = 'x'") == ["4.parquet"]
    monkeypatch.setattr(task_module, "_read_and_index", None)
    assert sx.build_indexes(folder, wanted, workers=1).files == 0


def test_a_name_in_other_letters_is_not_indexed(folder: Path) -> None:
    """A session that tells them apart reads NULL there, another one values."""
    put(folder / "4.parquet", {"A": [15], "s": ["x"]})
    table = build(folder, {"a": "bitmap"})
    assert kept(table, "a = 15") == ["1.parquet", "4.parquet"]
    assert kept(table, "a IS NULL", case_sensitive=True) == ["4.parquet"]


def test_a_kind_that_refuses_a_file_leaves_the_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: sx.Bitmap, column: EncodedColumn) -> list[bytes]:
        raise UnsupportedTypeError(f"too many rows in {column.name!r}")

    monkeypatch.setattr(sx.Bitmap, "build", refuse)
    report = sx.build_indexes(folder, {"a": ["bitmap", "bloom"]}, workers=1)
    assert report.notes == ("4 files: too many rows in 'a' (first: 0.parquet)",)
    assert kept(report.table, "a = 15", kinds=["bloom"]) == ["1.parquet"]
    plan = report.table.plan("a = 15")
    assert plan.count_bounds == (0, 10)


def test_packs_are_closed_when_they_are_full(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_all(folder, [numbers(i) for i in range(10)])
    monkeypatch.setattr(task_module, "PACK_FILES", 2)
    table = build(folder, {"a": "bitmap"})
    assert len(packs(folder)) == 6, "four tasks of 3, 3, 2 and 2 files"
    for i in range(10):
        plan = table.plan(f"a = {10 * i + 3}")
        assert (plan.paths, plan.count_bounds) == ([f"{i}.parquet"], (1, 1))


def test_the_size_of_a_pack_is_bounded_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_all(folder, [numbers(i) for i in range(10)])
    monkeypatch.setattr(task_module, "PACK_BYTES", 1)
    build(folder, {"a": "bitmap"})
    assert len(packs(folder)) == 10


def test_building_leaves_the_callers_arrow_threads_alone(folder: Path) -> None:
    before = pa.cpu_count()
    build(folder, {"a": "bitmap"})
    assert pa.cpu_count() == before


@pytest.mark.parametrize(
    ("indexes", "error", "text"),
    [
        ({"nope": "bloom"}, PredicateError, "no column 'nope' in"),
        ({"a": "nope"}, UnknownIndexError, "unknown index kind 'nope' .known: "),
        ({"a": 7}, UnknownIndexError, "7 is not an index .accepted: "),
        ({"a": [None]}, UnknownIndexError, "None is not an index"),
    ],
)
def test_a_wish_that_cannot_be_met_is_one_sentence(
    folder: Path, indexes: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text) as found:
        sx.build_indexes(folder, indexes, workers=1)
    assert "\n" not in str(found.value)
    assert version(folder) == -1


def test_an_index_on_a_type_that_has_none_is_one_sentence(tmp_path: Path) -> None:
    put(tmp_path / "f.parquet", {"l": [[1, 2]], "x": [1.5]})
    for wanted in ("bloom", "minmax", ALL):
        with pytest.raises(
            UnsupportedTypeError, match=r"cannot index column 'l'.*list"
        ):
            sx.build_indexes(tmp_path, {"l": wanted}, workers=1)


def test_the_rest_is_built_beside_a_column_that_cannot_be_indexed(
    tmp_path: Path,
) -> None:
    rows = {"l": [[1]], "s": [{"a": 1}], "m": [None], "x": [1.5], "i": [1], "t": ["a"]}
    put(tmp_path / "p=1" / "f.parquet", rows)
    for column in ("l", "s", "p"):
        report = sx.build_indexes(tmp_path, {column: "bloom", "i": "bitmap"}, workers=1)
        (note,) = report.notes
        assert note.startswith(f"cannot index column {column!r}: ")
        assert sx.open_table(tmp_path).plan("i = 2").paths == []
        assert sx.open_table(tmp_path).refresh_indexes(workers=1).notes == ()
        with pytest.raises(
            UnsupportedTypeError, match=f"cannot index column {column!r}"
        ):
            sx.build_indexes(tmp_path, {column: "bloom", "i": None}, workers=1)
    with pytest.raises(
        UnsupportedTypeError, match="cannot build a ngram_bloom index on column 'i'"
    ):
        sx.build_indexes(tmp_path, {"i": "ngram_bloom", "t": "bitmap"}, workers=1)


def test_a_kind_for_all_columns_goes_to_those_that_it_fits(tmp_path: Path) -> None:
    put(tmp_path / "f.parquet", {"l": [[1]], "i": [1], "t": ["abcdef"], "x": [1.5]})
    wanted = {"l": "bitmap", "*": ["ngram_bloom", "bloom"]}
    report = sx.build_indexes(tmp_path, wanted, workers=1)
    (note,) = report.notes[1:]
    assert note.startswith(
        "2 columns have no ngram_bloom index, which does not support"
    )
    assert sx.open_table(tmp_path).plan("t LIKE '%xyz%'").paths == []
    assert sx.open_table(tmp_path).refresh_indexes(workers=1).notes == ()
    with pytest.raises(UnknownIndexError):
        sx.build_indexes(tmp_path, {"*": "nokind"}, workers=1)


def test_a_newer_format_is_told_before_any_work(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build(folder)
    rewrite_commit(folder, format=FORMAT + 1)
    table = sx.open_table(folder)
    with mock.patch.object(builder, "_indexed", side_effect=AssertionError):
        for call in (
            lambda: table.build_indexes({"a": "bitmap"}, workers=1),
            lambda: table.build_indexes(columns=["a"], workers=1),
            lambda: table.refresh_indexes(workers=1),
            table.drop_indexes,
            table.compact_indexes,
            table.verify,
        ):
            with pytest.raises(IndexVersionError, match=r"3, newer .* so upgrade"):
                call()
    assert version(folder) == 0
    assert table.status().superseded_bytes == 0
    assert main(["status", str(folder)]) == 0
    told = capsys.readouterr().out
    assert "its indexes are of another version of skipindex" in told
    assert "skipindex build" not in told
    assert "skipindex vacuum" not in told


def test_a_damaged_pack_is_repaired_by_dropping_and_building(folder: Path) -> None:
    """In one process, which has the damaged file open."""
    table = build(folder, {"a": "bitmap"})
    for path in packs(folder):
        path.write_bytes(path.read_bytes()[:50])
    forget_open_packs()
    assert table.plan("a = 15").count_bounds == (0, 10)
    sx.open_table(folder).drop_indexes(kinds=["bitmap"])
    plan = build(folder, {"a": "bitmap"}).plan("a = 15")
    assert (plan.count_bounds, plan.notes) == ((1, 1), [])


def _build_in_a_process(folder: str, indexes: Any, barrier: Any) -> None:
    barrier.wait()
    sx.build_indexes(folder, indexes, workers=1)


def at_once(*works: Callable[[], Any]) -> None:
    """Run all of them in threads that begin together."""
    barrier = threading.Barrier(len(works))
    errors: list[BaseException] = []

    def run(work: Callable[[], Any]) -> None:
        barrier.wait()
        try:
            work()
        except BaseException as error:  # noqa: BLE001 (raised again below)
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_two_builders_at_once_lose_nothing(folder: Path) -> None:
    at_once(
        lambda: sx.build_indexes(folder, {"a": ["bitmap", "bloom"]}, workers=1),
        lambda: sx.build_indexes(folder, {"s": "bit_sliced"}, workers=1),
        lambda: sx.build_indexes(folder, {"a": "range_bitmap"}, workers=1),
    )
    table = sx.open_table(folder)
    assert version(folder) >= 2
    assert len(specs(table, "a")) == 12
    assert len(specs(table, "s")) == 4
    assert set(manifest(folder).stats) == {"a", "s"}
    assert table.plan("a = 15 AND s = 'v15'").count_bounds == (1, 1)


def test_builders_of_the_same_index_at_once_lose_nothing(folder: Path) -> None:
    """They write the same pack under the same name."""
    work = lambda: sx.build_indexes(folder, {"a": "bitmap"}, workers=1)  # noqa: E731
    at_once(work, work, work)
    plan = sx.open_table(folder).plan("a = 15")
    assert (plan.count_bounds, plan.notes) == ((1, 1), [])


@pytest.mark.slow
def test_builders_in_processes_of_their_own_lose_nothing(folder: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    wishes: list[Any] = [{"a": ["bitmap"]}, {"a": ["bitmap"], "s": ["bloom"]}]
    workers = [
        context.Process(target=_build_in_a_process, args=(str(folder), wish, barrier))
        for wish in wishes
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    table = sx.open_table(folder)
    assert len(specs(table, "a")) == len(specs(table, "s")) == 4
    assert table.plan("a = 15").count_bounds == (1, 1)


def test_dropping_beside_a_builder_drops_no_other_column(folder: Path) -> None:
    build(folder, {"a": "bitmap"})
    at_once(
        lambda: sx.open_table(folder).drop_indexes(columns=["a"]),
        lambda: sx.build_indexes(folder, {"s": "bitmap"}, workers=1),
    )
    table = sx.open_table(folder)
    assert specs(table, "a") == set()
    assert len(specs(table, "s")) == 4


def test_readers_keep_the_snapshot_that_they_opened(folder: Path) -> None:
    table = build(folder, {"a": "bitmap"})
    sx.open_table(folder).drop_indexes()
    assert table.plan("a = 15").count_bounds == (1, 1)


def test_a_worker_that_is_killed_is_our_error_and_nothing_is_left(
    tmp_path: Path,
) -> None:
    for i in range(4):
        pq.write_table(pa.table({"x": [i]}), tmp_path / f"{i}.parquet")
    tasks = [BuildTask(Location(str(tmp_path)), (f"{i}.parquet",), ()) for i in (0, 1)]
    fatal = replace(tasks[0], columns=Fatal())  # type: ignore[arg-type]
    with pytest.raises(BuildError, match=rf"killed while it indexed '{tmp_path}'"):
        LocalRunner(2).run([fatal, tasks[1]], None)
    assert not (tmp_path / "_skipindex" / "log").exists()
    assert sx.build_indexes(tmp_path, {"x": "bitmap"}, workers=2).files == 4


@pytest.mark.parametrize(
    ("n_files", "size", "alone"),
    [(31, 0, True), (32, 0, False), (2, 15 << 20, True), (2, 16 << 20, False)],
)
def test_few_bytes_are_indexed_by_one_process(
    n_files: int, size: int, alone: bool
) -> None:
    """Workers take a second to start; those that are asked for start all the same."""
    default = LocalRunner(8, ALONE_BYTES)
    sizes = [size] * n_files
    assert default.sized(sizes).slots == (1 if alone else 8)
    assert LocalRunner(8).sized(sizes).slots == 8
    assert LocalRunner.default().alone_bytes == ALONE_BYTES


def test_a_default_build_of_few_files_starts_no_worker(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: LokyProcess) -> None:
        raise AssertionError("a worker was started")

    monkeypatch.setattr(LokyProcess, "start", refuse)
    monkeypatch.setattr(runners, "LOG", None)
    assert sx.build_indexes(folder, {"a": "bitmap"}).files == 4
    put(folder / "new.parquet", numbers(9))
    assert sx.open_table(folder).refresh_indexes().files == 1


class Named:
    """A task that notes which process runs it."""

    done = "run"
    n_units = 1

    def run(self) -> bytes:
        return str(os.getpid()).encode()


@pytest.mark.parametrize("first", [0, 1], ids=["none", "one and no more"])
@pytest.mark.parametrize(
    "error",
    [
        AssertionError("daemonic processes are not allowed to have children"),
        RuntimeError("before the current process has finished its bootstrapping"),
        BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"),
        PermissionError(errno.EACCES, "no semaphores"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_one_process_builds_where_no_other_can_be_started(
    error: Exception,
    first: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """So it is for daemons, as workers of Celery are, and where the system refuses."""
    started: list[Any] = []
    start = LokyProcess.start

    def refuse(process: LokyProcess) -> None:
        if len(started) == first:
            raise error
        start(process)
        started.append(process)

    monkeypatch.setattr(LokyProcess, "start", refuse)
    found = LocalRunner(2).run([Named(), Named()], None)
    assert found == [str(os.getpid()).encode()] * 2
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert f"no workers can be started: {type(error).__name__}: " in caplog.text
    for process in started:
        process.join()


def test_one_process_builds_where_no_file_can_be_made(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    found = LocalRunner(2).run([Named(), Named()], None)
    assert found == [str(os.getpid()).encode()] * 2
    assert "no workers can be started: FileNotFoundError: " in caplog.text


def test_one_process_builds_where_workers_end_at_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    monkeypatch.setattr(spawn, "get_executable", lambda: "/bin/false")
    found = LocalRunner(2).run([Named(), Named()], None)
    assert found == [str(os.getpid()).encode()] * 2
    assert "no workers can be started: TerminatedWorkerError: " in caplog.text


class Fatal(tuple[()]):
    """Columns that end the process that looks at them."""

    __slots__ = ()

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return os._exit, (1,)


def test_indexes_are_no_more_open_than_the_data(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    (tmp_path / "a.parquet").chmod(0o600)
    sx.build_indexes(tmp_path, {"x": "bitmap"}, workers=1)
    assert (tmp_path / "_skipindex").stat().st_mode & 0o077 == 0
    for path in (tmp_path / "_skipindex").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path
