"""One bad column or file never takes a build with it, nor the advice."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.advice import sample as sample_module
from skipindex.api.types import BuildReport
from skipindex.build import task
from skipindex.build.builder import build
from skipindex.build.memory import Memory
from skipindex.build.runners import LocalRunner
from skipindex.errors import StorageError, TableError
from skipindex.indexes import EncodedColumn
from skipindex.indexes.file_map import ValueSpans
from skipindex.source import UNREADABLE, DataFile, column_reader
from skipindex.storage.file_system.local import LocalFiles
from skipindex.storage.file_system.location import location_of
from skipindex.table.summaries import summarize
from tests.tables import packs, put

if TYPE_CHECKING:  # the other tests need no PySpark
    from pyspark.sql import SparkSession

WANTED = {"a": ["bitmap", "bloom"], "b": ["bit_sliced", "bloom"], "s": "bitmap"}
N = 6


def rows(i: int) -> dict[str, Any]:
    """Ten rows, of which no other file has the values."""
    numbers = [10 * i + j for j in range(10)]
    texts = [f"s{n:03d}" for n in numbers]
    return {"a": numbers, "b": [n * 7 for n in numbers], "s": texts}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for i in range(N):
        put(tmp_path / f"{i}.parquet", rows(i), compression="none")
    return tmp_path


def chunk_of(path: Path, column: str) -> slice:
    """Where the pages of a column are."""
    group = pq.ParquetFile(path).metadata.row_group(0)
    chunks = [group.column(i) for i in range(group.num_columns)]
    (chunk,) = (c for c in chunks if c.path_in_schema == column)
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    return slice(begin, begin + chunk.total_compressed_size)


def overwrite(path: Path, place: slice, byte: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[place] = byte * (place.stop - place.start)
    path.write_bytes(data)


def noise(path: Path) -> str:
    path.write_bytes(b"PAR1 and then nothing that is Parquet PAR1")
    return "not readable"


def cut_off(path: Path) -> str:
    path.write_bytes(path.read_bytes()[:-20])
    return "not readable"


def damaged_page(path: Path) -> str:
    overwrite(path, chunk_of(path, "b"), b"\xff")
    return "column 'b': not readable"


def truncated_page(path: Path) -> str:
    place = chunk_of(path, "b")
    overwrite(path, slice(place.start + 12, place.stop), b"\0")
    return "column 'b': not readable"


def beyond_the_dictionary(path: Path, column: str = "b") -> str:
    """The first rows are of the sixteenth entry, of ten."""
    stop = chunk_of(path, column).stop
    overwrite(path, slice(stop - 8, stop - 4), b"\xff")
    return f"column {column!r}: not readable"


def other_type(path: Path) -> str:
    put(path, {**rows(int(path.stem)), "b": ["text"] * 10})
    return "column 'b' has type string here"


DAMAGES = [
    noise,
    cut_off,
    damaged_page,
    truncated_page,
    beyond_the_dictionary,
    other_type,
]


def check(report: BuildReport, why: str, *, bad: int, whole: bool) -> None:
    """The report and the plans name file ``bad``; of the others nothing is missing."""
    assert any(why in note and f"{bad}.parquet" in note for note in report.notes)
    table = report.table
    for i in range(N):
        own = {f"{i}.parquet", f"{bad}.parquet"}
        for column, value in (("a", 10 * i + 3), ("s", f"'s{10 * i + 3:03d}'")):
            plan = table.plan(f"{column} = {value}")
            lost = not whole and i != bad
            assert set(plan.paths) == ({f"{i}.parquet"} if lost else own), plan.where
        plan = table.plan(f"b = {7 * (10 * i + 3)}")
        assert set(plan.paths) == own
        assert any(why in note for note in plan.notes), plan.notes
        if i != bad:
            story = table.plan(f"b = {7 * (10 * i + 3)}").explain(file=f"{bad}.parquet")
            assert why in story


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_rest_is_built_here(folder: Path, damage: Callable[[Path], str]) -> None:
    why = damage(folder / "2.parquet")
    report = sx.build_indexes(folder, WANTED, workers=1)
    check(report, why, bad=2, whole=why == "not readable")
    assert len(report.notes) == 1


@pytest.mark.slow
@pytest.mark.spark
def test_the_rest_is_built_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    for damage in DAMAGES:
        folder = tmp_path / damage.__name__
        for i in range(N):
            put(folder / f"{i}.parquet", rows(i), compression="none")
        why = damage(folder / "2.parquet")
        put(folder / "z.parquet", pa.table(rows(0)).slice(0, 0))
        report = sx.build_indexes(folder, WANTED, spark=spark)
        check(report, why, bad=2, whole=why == "not readable")


@pytest.mark.few(3)
@pytest.mark.parametrize("damage", DAMAGES)
def test_advice_is_given_on_the_rest(
    folder: Path, damage: Callable[[Path], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    why = damage(folder / "2.parquet")
    queries = [f"a = {n} AND b = {7 * n}" for n in range(3, 60, 10)]
    advice = sx.open_table(folder).advise(queries=queries, max_bytes_ratio=9)
    assert any(why in note for note in advice.notes), advice.notes
    columns = {"a"} if damage is other_type else {"a", "b"}
    table = sx.open_table(folder)
    infos = [table.state.resolve(name) for name in ("a", "b")]
    sample = sample_module.take_sample(table.state, infos)
    assert set(sample.columns) == columns
    assert len(sample.files) == (N if damage is other_type else N - 1)
    report = sx.build_indexes(folder, queries=queries, workers=1, max_bytes_ratio=9)
    assert any(why in note and "2.parquet" in note for note in report.notes)


def test_a_dictionary_array_is_not_asked_beyond_its_entries(folder: Path) -> None:
    """Arrow itself reads it without a word."""
    path = folder / "2.parquet"
    beyond_the_dictionary(path, "s")
    values = pq.ParquetFile(path, read_dictionary=["s"]).read()["s"].chunk(0)
    assert values.indices[0].as_py() >= len(values.dictionary)
    with (
        column_reader(location_of(folder), "2.parquet", encoded=["s"]) as file,
        pytest.raises(UNREADABLE),
    ):
        file.read(["s"])
    report = sx.build_indexes(folder, WANTED, workers=1)
    assert "column 's': not readable: " in str(report)
    assert report.table.plan("s = 's013'").paths == ["1.parquet", "2.parquet"]
    assert report.table.plan("b = 161").paths == ["2.parquet"]


def test_a_column_that_no_file_has_readably_gets_no_advice(folder: Path) -> None:
    for path in folder.glob("*.parquet"):
        damaged_page(path)
    table = sx.open_table(folder)
    infos = [table.state.resolve(name) for name in ("a", "b")]
    sample = sample_module.take_sample(table.state, infos)
    assert (set(sample.columns), len(sample.files)) == ({"a"}, N)
    assert len(sample.notes) == N
    overwrite(folder / "0.parquet", chunk_of(folder / "0.parquet", "a"), b"\xff")
    sample = sample_module.take_sample(table.state, infos)
    assert (set(sample.columns), len(sample.files)) == ({"a"}, N - 1)


def test_no_file_without_a_column_that_cannot_be_read(tmp_path: Path) -> None:
    for i, column in enumerate(["a", "b"]):
        path = put(tmp_path / f"{i}.parquet", rows(i), compression="none")
        overwrite(path, chunk_of(path, column), b"\xff")
    table = sx.open_table(tmp_path)
    infos = [table.state.resolve(name) for name in ("a", "b", "s")]
    sample = sample_module.take_sample(table.state, infos)
    assert (set(sample.columns), len(sample.files)) == ({"s"}, 2)


@pytest.mark.few(2)
@pytest.mark.parametrize("error", [IndexError, MemoryError, RecursionError, KeyError])
def test_whatever_a_decoder_raises(
    folder: Path, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = DataFile.read
    failing = True

    def fail(self: DataFile, path: Any) -> pa.ChunkedArray:
        values = read(self, path)
        if failing and list(path) == ["b"] and values[0].as_py() == 140:
            raise error("of a bug")
        return values

    monkeypatch.setattr(DataFile, "read", fail)
    report = sx.build_indexes(folder, WANTED, workers=1)
    check(report, f"column 'b': not readable: {error.__name__}", bad=2, whole=False)
    assert sx.build_indexes(folder, WANTED, workers=1).files == 1, "tried again"
    failing = False
    report = sx.build_indexes(folder, WANTED, workers=1)
    assert (report.files, report.unchanged, report.notes) == (1, N - 1, ())
    for kinds in (["bit_sliced"], ["bloom"]):
        assert report.table.plan("b = 161", kinds=kinds).paths == ["2.parquet"]
        plan = report.table.plan("b = 162", kinds=kinds)
        assert (plan.paths, plan.notes) == ([], [])
    assert sx.build_indexes(folder, WANTED, workers=1).files == 0


def test_a_file_that_could_not_be_read_for_a_while(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = column_reader

    def fail(location: Any, path: str, **options: Any) -> Any:
        if path == "2.parquet":
            raise OSError("the store is down")
        return before(location, path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(task, "column_reader", fail)
        first = sx.build_indexes(folder, WANTED, workers=1)
        n_packs = len(packs(folder))
        again = sx.build_indexes(folder, WANTED, workers=1)
    for report in (first, again):
        check(report, "not readable: the store is down", bad=2, whole=True)
    assert len(packs(folder)) == n_packs, "no pack of nothing"
    report = sx.build_indexes(folder, WANTED, workers=1)
    assert (report.files, report.notes) == (1, ())
    plan = report.table.plan("b = 161", kinds=["bit_sliced"])
    assert (plan.paths, plan.count_bounds) == (["2.parquet"], (1, 1))


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO], ids=errno.errorcode.get)
def test_a_file_that_the_system_refuses(
    folder: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """Builds and refreshes note it and are not done; the rest is built."""
    before = LocalFiles.open_input
    refusing = True

    def refuse(files: LocalFiles, path: str, known: Any = None) -> Any:
        if refusing and path == "2.parquet":
            raise OSError(code, os.strerror(code), path)
        return before(files, path, known)

    monkeypatch.setattr(LocalFiles, "open_input", refuse)
    why = f"not readable: cannot open '{folder}/2.parquet': {os.strerror(code)}"
    report = sx.build_indexes(folder, WANTED, workers=1)
    assert (report.files, report.unread) == (N - 1, 1)
    check(report, why, bad=2, whole=True)
    report = report.table.refresh_indexes(workers=1)
    assert (report.files, report.unread) == (0, 1)
    check(report, why, bad=2, whole=True)
    refusing = False
    report = report.table.refresh_indexes(workers=1)
    assert (report.files, report.unread, report.notes) == (1, 0, ())


def test_a_pack_that_cannot_be_written_fails_the_build(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it is written while a file is read: it would have no index for good."""

    def refuse(files: LocalFiles, path: str, _: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    monkeypatch.setattr(LocalFiles, "write", refuse)
    for pack_bytes in (1 << 20, 1):
        monkeypatch.setattr(Memory, "pack_bytes", pack_bytes)
        with pytest.raises(StorageError, match="cannot write"):
            sx.build_indexes(folder, WANTED, workers=1)


def test_the_first_file_gives_the_columns(folder: Path) -> None:
    """Without it Spark reads nothing either, unless it is given a schema."""
    (folder / "0.parquet").write_bytes(b"no Parquet file")
    with pytest.raises(TableError, match=r"0\.parquet' is no.*; accepted: a schema"):
        sx.build_indexes(folder, WANTED, workers=1)
    table = sx.open_table(folder, schema=pq.read_schema(folder / "1.parquet"))
    report = sx.build_indexes(table, WANTED, workers=1)
    assert (report.files, report.unread) == (N - 1, 1)


@pytest.mark.parametrize("when", ["before", "while"])
def test_a_file_that_vanishes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    before = column_reader

    def vanish(location: Any, path: str, **options: Any) -> Any:
        if when == "while" and path == "2.parquet":
            (folder / path).unlink()
        return before(location, path, **options)

    monkeypatch.setattr(task, "column_reader", vanish)
    table = sx.open_table(folder)
    if when == "before":
        (folder / "2.parquet").unlink()
    report = build(table.state, WANTED, runner=LocalRunner(1))
    (note,) = report.notes
    assert "2.parquet" in note
    assert ("deleted since" if when == "before" else "not readable") in note
    assert report.table.paths == [f"{i}.parquet" for i in range(N) if i != 2]
    assert sx.Table(report.table).plan("b = 91").paths == ["1.parquet"]
    assert (report.unchanged, report.unread) == (0, 1)


def test_a_file_that_cannot_be_looked_at(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stat = type(sx.open_table(folder).state.location).stat

    def fail(self: Any, path: str) -> Any:
        if path == "2.parquet":
            raise PermissionError("not for you")
        return stat(self, path)

    with monkeypatch.context() as patch:
        patch.setattr(type(sx.open_table(folder).state.location), "stat", fail)
        report = sx.build_indexes(folder, WANTED, workers=1)
    (note,) = report.notes
    assert "not readable: not for you (first: 2.parquet)" in note
    assert report.table.plan("b = 91").paths == ["1.parquet", "2.parquet"]
    assert sx.build_indexes(folder, WANTED, workers=1).files == 1


def test_a_file_without_rows_is_no_trouble(folder: Path) -> None:
    put(folder / "z.parquet", pa.table(rows(0)).slice(0, 0))
    report = sx.build_indexes(folder, workers=1)
    assert report.notes == ()
    assert report.table.plan("a IS NULL OR b < 0").paths == []


def test_a_kind_that_raises_takes_nothing_with_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = sx.Bloom.build

    def fail(self: sx.Bloom, column: EncodedColumn) -> list[bytes]:
        if column.name == "b":
            raise ZeroDivisionError("of a bug")
        return right(self, column)

    monkeypatch.setattr(sx.Bloom, "build", fail)
    report = sx.build_indexes(folder, WANTED, workers=1)
    why = "column 'b': no bloom index: ZeroDivisionError: of a bug"
    assert report.notes == (f"{N} files: {why} (first: 0.parquet)",)
    plan = report.table.plan("b = 161")
    assert (plan.paths, plan.count_bounds) == (["2.parquet"], (1, 1))
    assert f"{N} files: {why}" in plan.notes
    assert report.table.plan("a = 23", kinds=["bloom"]).paths == ["2.parquet"]
    queries = [f"a = {n} AND b = {7 * n}" for n in range(3, 60, 10)]
    advice = sx.open_table(folder).advise(queries=queries, max_bytes_ratio=9)
    assert why in " ".join(advice.notes)


def test_statistics_that_raise(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(column: EncodedColumn) -> Any:
        if column.name == "b":
            raise ValueError("of a bug")
        return summarize(column)

    monkeypatch.setattr(task, "summarize", fail)
    report = sx.build_indexes(folder, WANTED, workers=1)
    assert len(report.notes) == 1
    assert len(report.table.plan("b = 161").paths) == N
    assert report.table.plan("a = 23").paths == ["2.parquet"]


def test_a_file_map_that_raises(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spans = ValueSpans.of

    def fail(column: EncodedColumn) -> Any:
        if column.minimum == 140:
            raise ValueError("of a bug")
        return spans(column)

    monkeypatch.setattr(ValueSpans, "of", fail)
    report = sx.build_indexes(folder, WANTED, workers=1)
    assert "column 'b': no file map: of a bug (first: 2.parquet)" in str(report)
    assert report.table.plan("b = 161").paths == ["2.parquet"]
    assert report.table.plan("b = 91").paths == ["1.parquet"]


def test_fewer_values_than_rows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = DataFile.read
    monkeypatch.setattr(DataFile, "read", lambda self, path: read(self, path).slice(1))
    report = sx.build_indexes(folder, {"a": "bitmap"}, workers=1)
    assert "column 'a' has 9 rows of 10" in str(report)
    assert len(report.table.plan("a = 23").paths) == N
