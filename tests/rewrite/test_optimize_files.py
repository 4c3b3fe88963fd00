"""Optimize without Spark: what is rewritten, into what, and what never changes."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skipindex as sx
from skipindex.api import open_table
from skipindex.build.runners import LocalRunner
from skipindex.errors import (
    CommitConflictError,
    LayoutError,
    PredicateError,
    TableError,
    UnknownIndexError,
    UnsupportedTypeError,
)
from skipindex.log.manifest import Manifest
from skipindex.rewrite.optimize import OptimizeOptions, optimize_files
from skipindex.rewrite.selection import eligible_files, target
from skipindex.rewrite.selection.cubes import runs_of
from skipindex.rewrite.selection.target import EligibleFile, rows_by_default
from skipindex.rewrite.vacuum import vacuum
from skipindex.source.folder.new_files import NewFiles, SaveMode
from skipindex.source.parquet import footers
from skipindex.storage.file_system.names import round_of, visible_name
from skipindex.table import Overlap
from tests.quick_run import examples
from tests.rewrite.arriving import arrived
from tests.rewrite.arrow_writer import arrow_writer, make_own, optimized
from tests.rewrite.seen import (
    NOW,
    check_rows,
    everything,
    listed,
    rows_of,
    seen_alike,
    seen_by_both,
)
from tests.tables import build, put

N_FILES, N_ROWS = 8, 100


def fill(folder: Path, n_files: int = N_FILES, *, first: int = 0) -> Path:
    """Files of random rows in no order."""
    for i in range(first, first + n_files):
        source = np.random.default_rng(i)
        columns = {
            "x": source.integers(0, 1000, N_ROWS),
            "y": source.integers(0, 1000, N_ROWS),
            "id": np.arange(N_ROWS) + i * N_ROWS,
        }
        put(folder / f"{i}.parquet", columns)
    return folder


def overlap(found: Mapping[str, Overlap | None]) -> Overlap:
    """That of column x."""
    one = found["x"]
    assert one is not None
    return one


def test_a_time_of_int96_stays_an_instant(tmp_path: Path) -> None:
    """Spark fails on the nanoseconds that pyarrow reads INT96 as."""
    times = pa.array(range(N_ROWS), pa.timestamp("us", "UTC"))
    for i in range(4):
        columns = {"id": np.arange(N_ROWS) + i * N_ROWS, "time": times}
        path = tmp_path / f"{i}.parquet"
        put(path, columns, use_deprecated_int96_timestamps=True)
    before = pq.read_table(tmp_path, coerce_int96_timestamp_unit="us")
    sx.build_indexes(tmp_path, {"id": "exact"}, workers=1)
    table = optimized(tmp_path, cluster_by=["id"], rows_per_file=50).table
    files = [pq.ParquetFile(tmp_path / path) for path in table.state.paths]
    assert {file.schema_arrow.field("time").type for file in files} == {times.type}
    assert {file.schema.column(1).physical_type for file in files} == {"INT64"}
    after = pa.concat_tables([file.read() for file in files]).sort_by("id")
    assert after["time"].cast(pa.int64()) == before["time"].cast(pa.int64())


DAYS = ("01", "2", "__HIVE_DEFAULT_PARTITION__")


def fill_partitions(folder: Path) -> Path:
    for day in DAYS:
        fill(folder / f"day={day}", 4)
    return folder


def layout_of(table: sx.Table) -> Any:
    return table.state.snapshot.properties.to_json().get("layout")


def test_clustering_replaces_all_files_in_one_commit(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    build(folder, {"x": "bitmap", "y": [], "id": "bloom"})
    before = seen_by_both(folder)
    version = open_table(folder).state.snapshot.version
    report = optimized(folder, cluster_by=["x", "y"], rows_per_file=100)
    assert (report.files_in, report.files_out, report.n_rows) == (8, 8, 800)
    assert seen_by_both(folder) == before
    table, state = report.table, report.table.state
    assert state.snapshot.version == version + 1
    assert not set(table.paths) & set(listed(folder))
    assert state.index_gaps == {}
    known = set(state.snapshot.manifest.paths)
    assert known == {*table.paths, *listed(folder)}, "for readers who list the folder"
    blobs = state.blobs(state.resolve("x"))
    assert {blob.entry.meta.kind for blob in blobs} == {"bitmap"}
    assert len(table.plan("x < 100 AND y < 100").paths) <= 3
    assert overlap(report.overlap_before).worst == 8
    assert overlap(report.overlap_after).mean < 5
    assert "8 files" in str(report)


def test_appended_files_leave_sealed_cubes_alone(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    wish = {"cluster_by": ["x"], "rows_per_file": 100, "cube_size": 5000}
    first = optimized(folder, **wish)
    assert first.sealed > 0
    ((run, how),) = runs_of(first.table.state.snapshot.properties).items()
    sealed = {
        visible_name(path)
        for path in first.table.paths
        if (round_of(path) or (run, how.sealed)) < (run, how.sealed)
    }
    assert len(sealed) > 0
    unsealed = set(map(visible_name, first.table.paths)) - sealed
    fill(folder, 2, first=8)
    second = optimized(folder, **wish)
    assert second.files_in == 2 + len(unsealed)
    assert sealed <= set(map(visible_name, second.table.paths))
    assert rows_of(folder, second.table.paths) == rows_of(folder, listed(folder))
    assert optimized(folder, **wish).files_in == 0


def test_check_13_smaller_cubes_overlap_more(tmp_path: Path) -> None:
    found = []
    for i, cube_size in enumerate((10**9, 9000, 1000)):
        folder = fill(tmp_path / str(i), 16)
        wish = {"cluster_by": ["x"], "rows_per_file": 100, "mode": "full"}
        report = optimized(folder, **wish, cube_size=cube_size)
        found.append(overlap(report.overlap_after).mean)
    assert found == sorted(found)
    assert found[0] < found[2]


@pytest.mark.parametrize(
    ("bytes_per_file", "n_files"), [(10**9, 1), (None, 4), (3000, None)]
)
def test_check_05_output_files(
    tmp_path: Path, bytes_per_file: int | None, n_files: int | None
) -> None:
    """max(1, total size / target size)."""
    folder = fill(tmp_path)
    size = sum(path.stat().st_size for path in folder.iterdir())
    target = bytes_per_file or size // 4
    report = optimized(folder, cluster_by=["x"], bytes_per_file=target)
    assert report.files_out == (n_files or size // target)


def test_small_files_are_joined_by_size(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    put(folder / "large.parquet", pq.read_table(folder / "0.parquet").slice(0, 90))
    build(folder)
    wish: dict[str, Any] = {"cluster_by": [], "rows_per_file": 250}
    report = optimized(folder, **wish)
    assert sorted(report.table.state.n_rows.or_else(-1)) == [90, 200, 200, 200, 200]
    assert (report.files_in, report.files_out, report.files_left) == (8, 4, 1)
    seen_alike(folder)
    assert optimized(folder, **wish).files_in == 0
    fill(folder, 1, first=20)
    assert optimized(folder, **wish).files_in >= 2
    assert optimized(folder, **wish).files_in == 0
    optimized(folder, cluster_by=["x"], rows_per_file=100, mode="full")
    fill(folder, 2, first=30)
    report = optimized(folder, cluster_by=[], rows_per_file=300)
    assert (report.files_in, report.files_out) == (2, 1), "clustered files stay"


def test_joined_files_that_became_smaller_are_not_joined_again(tmp_path: Path) -> None:
    """Most of a small file is its footer, so two of them become one of half."""
    for i in range(3):
        put(tmp_path / f"{i}.parquet", {"x": [i], "y": [i], "z": [i]})
    size = (tmp_path / "0.parquet").stat().st_size
    wish: dict[str, Any] = {"cluster_by": [], "bytes_per_file": int(2.5 * size)}
    report = optimized(tmp_path, **wish)
    assert (report.files_in, report.files_left) == (2, 1)
    assert report.bytes_out < 1.5 * size
    assert optimized(tmp_path, **wish).files_in == 0


def test_check_11_many_small_files_become_few(tmp_path: Path) -> None:
    folder = fill(tmp_path, 40)
    report = optimized(folder, cluster_by=[], rows_per_file=1000)
    assert (report.files_in, report.files_out) == (40, 4)
    fill(folder, 4, first=40)
    later = optimized(folder, cluster_by=[], rows_per_file=1000)
    assert later.files_in == 4, "the full files of the first run are left alone"


def test_partitions_are_kept_as_their_folders_are_spelled(tmp_path: Path) -> None:
    folder = fill_partitions(tmp_path)
    before = seen_by_both(folder)
    report = optimized(folder, cluster_by=["x"], rows_per_file=200)
    assert (report.files_in, report.files_out) == (12, 6)
    assert seen_by_both(folder) == before
    folders = {path.split("/")[0] for path in report.table.paths}
    assert folders == {f"day={day}" for day in DAYS}
    assert len(report.table.plan("day = 1 AND x < 10").paths) == 1


def test_check_05_where_chooses_partitions(tmp_path: Path) -> None:
    folder = fill_partitions(tmp_path)
    report = optimized(folder, cluster_by=["x"], where="day = 2", rows_per_file=200)
    assert report.files_in == 4
    hidden = [path for path in report.table.paths if "_skipindex" in path]
    assert {path.split("/")[0] for path in hidden} == {"day=2"}
    assert layout_of(report.table) is None
    report = optimized(folder, cluster_by=["x"], where=sx.col("day").is_null())
    assert report.files_in == 4


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("x = 1", "'x' is not one"),
        ("day = 2 AND x = 1", "'x' is not one"),
        ("day = 2 OR id IS NULL", "'id' is not one"),
        ("hash(day) = 2", "is not known whether it is TRUE for 'day="),
        ("nope = 1", "no column 'nope'"),
        ("day =", "day ="),
    ],
)
def test_check_05_where_takes_partition_columns_alone(
    tmp_path: Path, where: str, text: str
) -> None:
    folder = fill_partitions(tmp_path)
    with pytest.raises(PredicateError, match=text):
        optimized(folder, cluster_by=["x"], where=where)
    assert "_skipindex" not in {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("wish", "text"),
    [
        ({"cluster_by": ["day"]}, "'day': it is a partition column"),
        ({"cluster_by": ["tags"]}, "'tags': type list"),
        ({"cluster_by": ["y"]}, "'y': the new files would have no statistics of it"),
        ({"cluster_by": ["x", "X"]}, "named twice"),
        ({"cluster_by": "x"}, "expected a list"),
        ({"curve": "peano"}, "peano"),
        ({"mode": "half"}, "no mode 'half'"),
        ({"rows_per_file": 0}, "at least 1"),
        ({"rows_per_file": 1, "bytes_per_file": 1}, "not both"),
        ({"cube_size": 0}, "cubes of 0"),
        ({"cluster_by": [], "curve": "zorder"}, "need columns in cluster_by"),
        ({"cluster_by": ["nope"]}, "no column 'nope'"),
        ({"sort_within": ["nope"]}, "no column 'nope'"),
    ],
    ids=str,
)
def test_check_05_what_cannot_be_clustered(
    tmp_path: Path, wish: dict[str, Any], text: str
) -> None:
    for day in (1, 2):
        columns = {"x": [1, 2], "y": [3, 4], "tags": [[1], [2]]}
        put(tmp_path / f"day={day}" / "0.parquet", columns)
    build(tmp_path, {"x": [], "*": None})
    with pytest.raises((LayoutError, PredicateError), match=text) as error:
        optimized(tmp_path, **{"cluster_by": ["x"], **wish})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("indexes", "error"),
    [
        ({"x": "nope"}, UnknownIndexError),
        ({"x": [], "day": "bloom"}, UnsupportedTypeError),
        ({"x": [], "nope": []}, PredicateError),
    ],
    ids=str,
)
def test_an_impossible_index_is_refused_before_the_work(
    tmp_path: Path, indexes: Any, error: type[Exception]
) -> None:
    folder = fill_partitions(tmp_path)
    files = everything(folder)
    writer = between(folder, lambda: pytest.fail("rows were written"))
    with pytest.raises(error):
        run(folder, writer, cluster_by=["x"], indexes=indexes)
    assert everything(folder) == files


def test_files_of_others_are_rewritten_in_place_only_if_asked(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    for declare in (lambda _: None, make_own):  # a layout is declared of any folder
        declare(folder)
        with pytest.raises(TableError, match="or once with in_place"):
            optimized(folder, cluster_by=["x"], in_place=False)
    assert optimized(folder, cluster_by=["x"]).files_in == 8
    shutil.copyfile(next(folder.glob("*.parquet")), folder / "new.parquet")
    assert optimized(folder, cluster_by=["x"], in_place=False).files_in


def test_where_nothing_is_new_no_file_is_read_and_nothing_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fill(tmp_path)
    optimized(folder, cluster_by=["x"], rows_per_file=100)
    before = everything(folder)

    def refuse(*_: Any) -> None:
        raise AssertionError("a footer is read")

    monkeypatch.setattr(footers, "column_reader", refuse)
    report = optimized(folder)
    assert (report.files_in, report.files_left) == (0, len(report.table))
    assert report.overlap_after == report.overlap_before != {}
    assert everything(folder) == before


def test_the_layout_of_the_table_is_the_default(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    wish = {"cluster_by": ["x"], "curve": "zorder", "sort_within": ["id"]}
    first = optimized(folder, **wish, rows_per_file=300)
    layout = layout_of(first.table)
    sizes = {"rows_per_file": 300, "bytes_per_file": None}
    assert layout == {**wish, "partition_by": [], **sizes}
    assert optimized(folder, in_place=False).files_in == 0
    fill(folder, 1, first=8)
    again = optimized(folder, in_place=False)
    assert layout_of(again.table) == layout
    assert again.files_in == 1
    whole = optimized(folder, in_place=False, ratio=math.inf)
    assert whole.files_in == again.files_out + first.files_out


@pytest.mark.parametrize(
    "log",
    [
        "_delta_log/00000000000000000000.json",
        "_spark_metadata/0",
        ".hoodie/hoodie.properties",
        "metadata/v1.metadata.json",
    ],
)
def test_tables_with_another_log_are_refused(tmp_path: Path, log: str) -> None:
    """Their readers would lose the rows when vacuum deletes the old files."""
    folder = fill(tmp_path, 2)
    (folder / log).parent.mkdir()
    (folder / log).write_bytes(b"{}")
    with pytest.raises(TableError, match=r"determines which files|is a Delta table"):
        optimized(folder, cluster_by=["x"])


def test_files_without_rows_are_left_alone(tmp_path: Path) -> None:
    folder = fill(tmp_path, 2)
    put(folder / "9.parquet", pq.read_table(folder / "0.parquet").slice(0, 0))
    report = optimized(folder, cluster_by=["x"])
    assert (report.files_in, report.files_left) == (2, 1)
    assert "9.parquet" in report.table.paths


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"x": [1], "y": [1], "id": [1], "new": [1]}, "'new'"),
        ({"x": [1], "y": [1]}, "'id'"),
        ({"x": [1], "y": [1], "id": ["a"]}, "'id'"),
    ],
)
def test_files_of_other_columns_are_not_rewritten(
    tmp_path: Path, columns: dict[str, Any], text: str
) -> None:
    """Spark would read them with the table's columns, and lose the others."""
    folder = fill(tmp_path, 2)
    put(folder / "9.parquet", columns)
    with pytest.raises(TableError, match=rf"9\.parquet.*{text}.* differ"):
        optimized(folder, cluster_by=["x"])


@pytest.mark.parametrize(
    ("partitions", "rows", "megabytes", "expected"),
    [
        ([40], 25_000, 0.875, 28_572),  # 35 files of 1 MB
        ([40], 25_000, 2, 25_000),
        ([640], 25_000, 2, 250_000),
        ([10_000], 1_000, 0.001, 1_000_000),
        ([8, 8], 100_000, 5, 100_000),
        ([128, 8], 100_000, 5, 188_889),  # 72 files
        ([3], 5_000_000, 200, 1_000_000),
        ([1], 10, 0.001, 10),
        ([], 1, 1, 1),
    ],
)
def test_files_are_as_large_as_a_query_for_one_value_needs(
    partitions: list[int], rows: int, megabytes: float, expected: int
) -> None:
    files = [
        EligibleFile(f"p={p}/{i}", (("p", str(p)),), int(megabytes * 1e6), rows)
        for p, n in enumerate(partitions)
        for i in range(n)
    ]
    assert rows_by_default(files) == expected


def test_a_first_run_keeps_the_number_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of all would be read whole for each value."""
    monkeypatch.setattr(target, "_LEAST_BYTES", 1000)
    folder = fill(tmp_path)
    report = optimized(folder, cluster_by=["x"])
    assert (report.files_in, report.files_out) == (8, 8)
    assert "MB for a value (before:" in str(report)
    layout = report.table.state.snapshot.properties.layout or {}
    assert layout["rows_per_file"] == 100
    put(folder / "9.parquet", {"x": [1] * 300, "y": [1] * 300, "id": [1] * 300})
    assert optimized(folder, mode="full").files_out == 11
    assert optimized(folder, mode="full", rows_per_file=10**6).files_out == 1


def test_a_declared_layout_leaves_the_size_open(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    by_x = sx.Clustering(by=["x"])
    for layout, rows in ((by_x, None), (replace(by_x, rows_per_file=7), 7)):
        declared = open_table(folder).declare_layout(layout).state.snapshot
        assert (declared.properties.layout or {})["rows_per_file"] == rows


def test_the_log_alone_names_the_files_that_count(tmp_path: Path) -> None:
    """Its manifest has the replaced files too, which readers of the folder read."""
    folder = fill(tmp_path)
    build(folder, {"x": "bitmap"})
    sx.open_table(folder).declare_exclusive()
    optimized(folder, cluster_by=["x"], rows_per_file=100)
    table = sx.open_table(folder, trust="log")
    assert table.paths == sx.open_table(folder).paths
    assert not set(table.paths) & set(listed(folder))
    assert table.status().exclusive
    table.vacuum(retention=NOW)
    again = sx.open_table(folder, trust="log")
    assert again.status().exclusive
    assert again.paths == sorted(listed(folder))
    sx.open_table(folder).declare_exclusive()


FOREIGN = {
    "unsigned": pa.uint32(),
    "duration": pa.duration("us"),
    "nanoseconds": pa.timestamp("ns", "UTC"),
    "time": pa.time64("us"),
    "half": pa.float16(),
    "bytes": pa.binary(4),
    "list": pa.list_(pa.uint8()),
    "struct": pa.struct([("a", pa.int64()), ("b", pa.list_(pa.duration("s")))]),
    "map": pa.map_(pa.string(), pa.uint16()),
    "dictionary": pa.dictionary(pa.int8(), pa.uint64()),
}
"""Types that Spark reads as others, or not at all."""
OWN = {
    "numbers": pa.struct(
        [(f"i{n}", getattr(pa, f"int{n}")()) for n in (8, 16, 32, 64)]
    ),
    "times": pa.timestamp("us", "UTC"),
    "milliseconds": pa.timestamp("ms"),
    "days": pa.date32(),
    "decimal": pa.decimal128(20, 3),
    "categories": pa.dictionary(pa.int8(), pa.string()),
    "large": pa.large_list(pa.large_string()),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_files_with_types_that_spark_lacks_are_left(tmp_path: Path, name: str) -> None:
    """Spark would write them as numbers, which other readers then see."""
    for day in (1, 2):
        for i in range(2):
            rows = pa.table({"x": [day, i], "y": pa.nulls(2, pa.int32())})
            if day == 2:
                rows = rows.set_column(1, "y", pa.nulls(2, FOREIGN[name]))
            put(tmp_path / f"day={day}" / f"{i}.parquet", rows)
    schema = pa.schema([("x", pa.int64()), ("y", pa.null()), ("day", pa.int32())])
    table = open_table(tmp_path, schema=schema)
    report = optimized(table, cluster_by=["x"], indexes={"x": "minmax"})
    assert (report.files_in, report.files_left) == (2, 2)
    (note,) = report.notes
    start = "2 files were not rewritten: Spark would write y ("
    assert note.startswith(start)
    assert note in str(report)
    assert set(report.table.paths) >= {f"day=2/{i}.parquet" for i in range(2)}


@pytest.mark.parametrize("name", OWN)
def test_files_with_types_of_spark_are_rewritten(tmp_path: Path, name: str) -> None:
    for i in range(2):
        rows = pa.table({"x": [i, 5], "y": pa.nulls(2, OWN[name])})
        put(tmp_path / f"{i}.parquet", rows)
    report = optimized(tmp_path, cluster_by=["x"], indexes={"x": "minmax"})
    assert (report.files_in, report.notes) == (2, ())


def test_times_of_96_bits_are_no_nanoseconds(tmp_path: Path) -> None:
    rows = pa.table({"x": [1], "t": pa.array([0], pa.timestamp("us"))})
    for i in range(2):
        path = tmp_path / f"{i}.parquet"
        pq.write_table(rows, path, use_deprecated_int96_timestamps=True)
    assert optimized(tmp_path, cluster_by=["x"], indexes={"x": "minmax"}).files_in == 2


def test_files_that_lack_a_declared_column_are_rewritten(tmp_path: Path) -> None:
    folder = fill(tmp_path, 2)
    put(folder / "9.parquet", {"x": [1], "y": [1]})
    schema = pa.schema([(name, pa.int64()) for name in ("x", "y", "id")])
    report = optimized(open_table(folder, schema=schema), cluster_by=["x"])
    assert report.files_in == 3
    ids = [pq.read_table(folder / path)["id"] for path in report.table.paths]
    assert pa.chunked_array([c for one in ids for c in one.chunks]).null_count == 1


def test_what_may_be_null_inside_does_not_matter(tmp_path: Path) -> None:
    """Spark writes a nested field as nullable whatever it read."""
    for i, nullable in enumerate((True, False)):
        field = pa.field("f", pa.list_(pa.field("e", pa.int64(), nullable=nullable)))
        dtype = pa.struct([field, pa.field("g", pa.int8(), nullable=nullable)])
        rows = pa.array([{"f": [1], "g": 2}] * 3, dtype)
        put(tmp_path / f"{i}.parquet", pa.table({"x": [i] * 3, "n": rows}))
    for others in ([field, ("h", pa.int8())], [field], [field, ("g", pa.int16())]):
        assert not eligible_files._holds_alike(dtype, pa.struct(others))
    assert len(eligible_files.eligible_files(open_table(tmp_path).state, [0, 1])) == 2


def test_a_column_that_is_a_partition_too_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "x=1" / "0.parquet", {"x": [5], "y": [1]})
    with pytest.raises(LayoutError, match="a column of the files and a partition"):
        optimized(tmp_path, cluster_by=["y"])


def test_the_commit_of_an_optimize_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = build(fill(tmp_path), {"x": "bitmap"})
    with monkeypatch.context() as patch:
        patch.setattr(Manifest, "from_bytes", lambda *_: pytest.fail("it was read"))
        after = optimized(table, cluster_by=["x"], rows_per_file=100).table
    read = open_table(tmp_path)
    assert after.state.snapshot.segments == read.state.snapshot.segments
    assert after.paths == read.paths
    assert after.plan("x = 3").paths == read.plan("x = 3").paths


def test_lost_rows_are_noticed(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    before = everything(folder)

    def lose() -> None:
        next((folder / "_skipindex" / "staging").rglob("*.parquet")).unlink()

    with pytest.raises(TableError, match=r"of 800 .* nothing was replaced"):
        run(folder, between(folder, lose), cluster_by=["x"], rows_per_file=100)
    assert everything(folder) == before


def run(folder: Path, writer: Any, **wish: Any) -> Any:
    table = open_table(folder)
    wished = OptimizeOptions(**wish, in_place=True)
    return optimize_files(table.state, wished, writer=writer, runner=LocalRunner(1))


def between(folder: Path, action: Any) -> Any:
    """A writer that lets something happen after it has written."""

    def make(target: Any) -> Any:
        def write(groups: Any, to: str) -> None:
            arrow_writer(open_table(folder))(target)(groups, to)
            action()

        return write

    return make


def test_two_optimizes_the_second_gives_way(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    before = rows_of(folder, listed(folder))
    first = between(folder, lambda: optimized(folder, cluster_by=["y"]))
    with pytest.raises(CommitConflictError, match="by another writer meanwhile"):
        run(folder, first, cluster_by=["x"], rows_per_file=100)
    table = open_table(folder)
    assert layout_of(table)["cluster_by"] == ["y"]
    assert seen_by_both(folder) == (before, before)
    hidden = {path for path in everything(folder) if "_skipindex-" in path}
    assert hidden == set(table.paths), "nothing of the second is left"
    assert not any(path.startswith("_skipindex/staging") for path in everything(folder))


def test_two_optimizes_of_different_partitions_both_count(tmp_path: Path) -> None:
    folder = fill_partitions(tmp_path)
    other = between(
        folder, lambda: optimized(folder, cluster_by=["x"], where="day = 1")
    )
    run(folder, other, cluster_by=["x"], where="day = 2")
    hidden = [path for path in open_table(folder).paths if "_skipindex-" in path]
    assert {path.split("/")[0] for path in hidden} == {"day=01", "day=2"}
    seen_alike(folder)


def test_a_file_that_changes_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    changed = pq.read_table(folder / "3.parquet").slice(0, 50)
    writer = between(folder, lambda: put(folder / "3.parquet", changed))
    with pytest.raises(CommitConflictError, match=r"3\.parquet"):
        run(folder, writer, cluster_by=["x"])
    seen_alike(folder)


def test_a_file_that_is_appended_meanwhile_is_kept(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    run(folder, between(folder, lambda: fill(folder, 1, first=8)), cluster_by=["x"])
    table = open_table(folder)
    assert "8.parquet" in table.paths
    seen_alike(folder)


def test_others_may_go_on_writing_as_if_nothing_had_happened(tmp_path: Path) -> None:
    """Whatever becomes of the visible files: both readers see the same rows."""
    folder = fill_partitions(tmp_path)
    optimized(folder, cluster_by=["x"], rows_per_file=200)
    (folder / "day=01" / "0.parquet").unlink()
    table = open_table(folder)
    seen_alike(folder)
    assert any("deleted or changed" in note for note in table.notes)
    assert len([path for path in table.paths if "_skipindex-" in path]) == 4
    put(folder / "day=2" / "1.parquet", {"x": [1], "y": [2], "id": [3]})
    seen_alike(folder)
    vacuum(folder, retention=NOW)
    seen_alike(folder)
    report = optimized(folder, cluster_by=["x"], rows_per_file=200)
    assert report.files_in == 3 + 4, "what was void is clustered anew"
    seen_alike(folder)


def test_a_lost_log_loses_no_rows(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    before = rows_of(folder, listed(folder))
    optimized(folder, cluster_by=["x"])
    for path in (folder / "_skipindex" / "log").iterdir():
        path.write_bytes(b"{}")
    assert seen_by_both(folder) == (before, before)
    with pytest.warns(UserWarning, match="commit . of the table is damaged"):
        assert vacuum(folder, retention=NOW).deleted == ()
    with pytest.warns(UserWarning, match="commit . of the table is damaged"):
        build(folder)
    check_rows(folder, before)


columns = st.fixed_dictionaries(
    {
        "a": st.none() | st.integers(-(2**63), 2**63 - 1),
        "b": st.none() | st.floats() | st.sampled_from([math.nan, -0.0, 0.0]),
        "c": st.none() | st.text("ab\U0001f33c", max_size=3),
    }
)
SCHEMA = pa.schema(
    [
        pa.field("a", pa.int64(), metadata={"k": "v"}),
        ("b", pa.float64()),
        ("c", pa.string()),
    ]
)


@examples(10)
@given(
    batches=st.lists(
        st.lists(columns, min_size=1, max_size=12), min_size=1, max_size=5
    ),
    later=st.lists(columns, max_size=8),
    wish=st.fixed_dictionaries(
        {
            "cluster_by": st.sampled_from([["a"], ["b"], ["c"], ["a", "b", "c"], []]),
            "rows_per_file": st.integers(1, 8),
            "cube_size": st.sampled_from([1, 2500, 10**9]),
            "mode": st.sampled_from(["incremental", "full"]),
        }
    ),
    vacuums=st.booleans(),
)
def test_rewriting_changes_no_row(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[list[dict[str, Any]]],
    later: list[dict[str, Any]],
    wish: dict[str, Any],
    vacuums: bool,
) -> None:
    folder = tmp_path_factory.mktemp("t")
    for i, batch in enumerate(batches):
        put(folder / f"{i}.parquet", pa.Table.from_pylist(batch, SCHEMA))
    before = rows_of(folder, listed(folder))
    optimized(folder, **wish)
    assert seen_by_both(folder) == (before, before)
    files = everything(folder)
    again = optimized(folder, **wish)
    assert (again.files_in, again.bytes_out) == (0, 0)
    assert everything(folder) == files, "not even a commit"
    if later:
        put(folder / "later.parquet", pa.Table.from_pylist(later, SCHEMA))
    if vacuums:
        vacuum(folder, retention=NOW)
    before = rows_of(folder, listed(folder))
    assert seen_by_both(folder) == (before, before)
    report = optimized(folder, **wish)
    assert seen_by_both(folder) == (before, before)
    assert later or report.files_in == 0
    # New files that were too light for the others may have become heavy enough by
    # their footers, if there are more of them now.
    assert any(optimized(folder, **wish).files_in == 0 for _ in range(3))
    check_rows(folder, before)
    assert set(listed(folder)) == set(open_table(folder).paths)
    for path in listed(folder):
        assert pq.read_schema(folder / path).equals(SCHEMA, check_metadata=True)
    assert optimized(folder, **wish).files_in == 0


def test_files_in_a_plain_folder_are_not_rewritten(tmp_path: Path) -> None:
    """Their rows would come twice: in the new files, and where they are."""
    folder = fill(tmp_path, 2)
    backup = put(folder / "backup" / "0.parquet", pq.read_table(folder / "0.parquet"))
    before = backup.read_bytes()
    report = optimized(folder, cluster_by=["x"])
    assert report.files_in == 2
    assert report.table.state.n_rows.or_else(-1).sum() == report.n_rows
    vacuum(folder, retention=NOW)
    assert backup.read_bytes() == before
    assert sx.open_table(folder).state.n_rows.or_else(-1).sum() == report.n_rows


def test_folders_that_spell_a_partition_in_two_ways_are_refused(tmp_path: Path) -> None:
    for folder in ("P=1", "p=2"):
        fill(tmp_path / folder, 1)
    with pytest.raises(LayoutError, match=r"as \['P', 'p'\] \(expected one spelling"):
        optimized(tmp_path, cluster_by=["x"])


def test_rewritten_files_are_no_more_open_than_the_old_ones(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for i, mode in enumerate((0o644, 0o640)):
        put(tmp_path / f"{i}.parquet", {"x": [i, i + 2]}).chmod(mode)
    table = optimized(tmp_path, cluster_by=["x"], rows_per_file=10).table
    assert len(table) == 1
    assert (tmp_path / table.paths[0]).stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("n_changed", [1, 2])
def test_a_file_that_was_written_anew_under_its_name_is_rewritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_changed: int
) -> None:
    """The replacement that it makes void ends, and the others count.

    Both named the file, so readers ignored all replacements of the table, and rows
    that were committed and not yet published with them.
    """
    for day in (1, 2):
        for i in range(2):
            put(tmp_path / f"day={day}" / f"{i}.parquet", {"x": [i, 5], "i": [i, i]})
    optimized(tmp_path, cluster_by=["x"])
    with monkeypatch.context() as patch:
        patch.setattr(NewFiles, "_publish", lambda *_: None)
        arrived(tmp_path, SaveMode.APPEND)
    for i in range(n_changed):
        put(tmp_path / "day=1" / f"{i}.parquet", {"x": [i, 6, 7], "i": [i, i, i]})
    before = rows_of(tmp_path, open_table(tmp_path).paths)
    assert before.total() == 8 + n_changed + 6
    table = optimized(tmp_path, cluster_by=["x"], indexes={"x": "bitmap"}).table
    assert rows_of(tmp_path, table.paths) == before
    assert table.notes == open_table(tmp_path).notes == ()
    for _ in range(2):
        vacuum(tmp_path, retention=NOW)
        assert seen_by_both(tmp_path) == (before, before)
