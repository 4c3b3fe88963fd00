"""Building within the memory of a worker: spilled, or left out."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.build import memory as memory_module
from skipindex.build.memory import (
    LEAST_MEMORY,
    MOST_MEMORY,
    Memory,
    default_memory,
    left_out,
    memory_bytes,
)
from skipindex.errors import BuildError
from skipindex.storage.file_system.names import FOLDER
from tests.tables import packs

N = 700
KINDS = ["bitmap", "bit_sliced", "range_bitmap", "run_length", "exact", "bloom"]


def columns(seed: int) -> pa.Table:
    """Columns of many types, with NULL, and one that is written as a dictionary."""
    rng = np.random.default_rng(seed)
    null = rng.random(N) < 0.2

    def of(values: list[Any], dtype: pa.DataType) -> pa.Array:
        return pa.array(
            [None if no else v for v, no in zip(values, null, strict=True)], dtype
        )

    numbers = rng.integers(-50, 400, N).tolist()
    return pa.table(
        {
            "k": pa.array(rng.integers(0, 1 << 60, N)),
            "n": of(numbers, pa.int32()),
            "f": of([v / 3 if v else float("nan") for v in numbers], pa.float64()),
            "d": of([Decimal(v) / 4 for v in numbers], pa.decimal128(9, 2)),
            "wide": of([Decimal(v) * 10**25 for v in numbers], pa.decimal128(38)),
            "few": of([f"city {v % 7}" for v in numbers], pa.string()),
            "text": of([f"user {v:x} \u00e9" * (v % 5) for v in numbers], pa.string()),
            "own": pa.array(rng.bytes(8 * N).hex(" ", 8).split(" "), pa.string()),
            "s": pa.StructArray.from_arrays([of(numbers, pa.int64())], names=["in"]),
            "all_null": pa.nulls(N, pa.int64()),
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for i in range(2):
        table = columns(i)
        if i:
            table = table.drop_columns(["n"])
        pq.write_table(
            table,
            tmp_path / f"{i}.parquet",
            row_group_size=250 if i else 1000,
            use_dictionary=["few"] if i else True,
        )
    return tmp_path


REQUEST = {
    "*": KINDS,
    "k": KINDS,
    "own": [*KINDS, "ngram_bloom", "token_bloom", sx.Bloom(hashing="pybloom")],
}


def forget(folder: Path) -> None:
    for path in sorted((folder / FOLDER).rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def test_what_does_not_fit_is_left_out_and_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = {"own": ["run_length", "bloom"]}
    with monkeypatch.context() as patch:
        patch.setattr(Memory, "free", property(lambda _: N * 250))
        report = sx.build_indexes(folder, request, workers=1, memory="1GB")
    (note,) = report.notes
    assert "2 files: column 'own': no run_length index: it takes about" in note
    assert "a worker has 1000 MB (pass more memory, or write smaller files)" in note
    value = pq.read_table(folder / "0.parquet")["own"][5].as_py()
    where = f"own = '{value}'"
    assert report.table.plan(where).paths == ["0.parquet"], "the filter was built"
    plan = report.table.plan(where, kinds=["minmax", "run_length"])
    assert plan.paths == ["0.parquet", "1.parquet"], "no runs rule anything out"
    # The same memory leaves it out again, without a look at the files.
    again = sx.build_indexes(folder, request, workers=1, memory="1GB")
    assert (again.files, again.unchanged) == (0, 2)
    more = sx.build_indexes(folder, request, workers=1, memory="4GB")
    assert (more.files, more.notes) == (2, ())
    assert more.table.plan(where).count() == 1, "by the runs"


def test_a_column_that_is_too_large_is_not_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = {"own": ["bitmap", "bloom"]}
    with monkeypatch.context() as patch:
        patch.setattr(Memory, "free", property(lambda _: 1))
        patch.setattr("skipindex.build.task.read_column", None)
        report = sx.build_indexes(folder, request, workers=1, memory="1GB")
    for kind in ("minmax", "bitmap", "bloom"):
        assert f"column 'own': no {kind} index: it takes about" in report.notes[0]
    for where in ("own = ''", "own > 'a'", "own IS NULL"):
        plan = report.table.plan(where)
        assert plan.paths == ["0.parquet", "1.parquet"], "nothing is known of it"
        assert any("no minmax index" in note for note in plan.notes)
    again = sx.build_indexes(folder, request, workers=1, memory="1GB")
    assert (again.files, again.unchanged) == (0, 2)
    more = sx.build_indexes(folder, request, workers=1, memory="4GB")
    assert (more.files, more.notes) == (2, ())
    assert more.table.plan("own = ''").paths == []


def test_statistics_that_were_too_large_are_taken_with_more_memory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Memory, "free", property(lambda _: 1))
        sx.build_indexes(folder, {"own": "minmax"}, workers=1, memory="1GB")
    report = sx.open_table(folder).refresh_indexes(workers=1, memory="4GB")
    assert (report.files, report.notes) == (2, ())
    assert report.table.plan("own < ''").paths == []


@pytest.mark.parametrize(
    ("machine", "n_workers", "expected"),
    [
        (64 * 10**9, 1, MOST_MEMORY),
        (64 * 10**9, 8, 4 * 10**9),
        (16 * 10**9, 8, 10**9),
        (16 * 10**9, 1, MOST_MEMORY),
        (2 * 10**9, 8, LEAST_MEMORY),
    ],
)
def test_workers_have_half_of_the_machine_together(
    monkeypatch: pytest.MonkeyPatch, machine: int, n_workers: int, expected: int
) -> None:
    monkeypatch.setattr(memory_module, "_machine_bytes", lambda: machine)
    assert default_memory(n_workers) == expected


@pytest.mark.parametrize(("text", "expected"), [("5000\n", 5000), ("max\n", 96000)])
def test_a_container_has_less_memory_than_its_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: int
) -> None:
    limit = tmp_path / "memory.max"
    limit.write_text(text)
    monkeypatch.setattr(memory_module, "_CONTAINER", (str(limit), "/no/such/file"))
    sizes = {"SC_PHYS_PAGES": 24, "SC_PAGE_SIZE": 4000}
    monkeypatch.setattr("os.sysconf", sizes.__getitem__)
    assert memory_module._machine_bytes() == expected


def test_many_payloads_of_one_file_are_packs_of_their_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = sx.build_indexes(folder, REQUEST, workers=1)
    conditions = [
        *("n = 7 AND few = 'city 3'", "f < 0 AND d > 3", "wide IS NULL"),
        *("few IN ('city 1', 'city 6') AND n > 300", "s.in BETWEEN 7 AND 9"),
        "text LIKE 'user 1%' AND f < 9",
    ]
    before = [(p.paths, p.count()) for p in map(whole.table.plan, conditions)]
    assert any(len(paths) < 2 for paths, _ in before)
    forget(folder)
    monkeypatch.setattr(Memory, "pack_bytes", property(lambda _: 2_000))
    report = sx.build_indexes(folder, REQUEST, workers=1)
    assert not report.notes
    assert len(packs(folder)) > 8
    after = [(p.paths, p.count()) for p in map(report.table.plan, conditions)]
    assert after == before
    assert sx.build_indexes(folder, REQUEST, workers=1).files == 0
    merged = report.table.compact_indexes()
    assert not merged.notes
    assert [(p.paths, p.count()) for p in map(merged.plan, conditions)] == before


@pytest.mark.parametrize("memory", ["1 hog", "", "-1GB", "100MB", 10**6, True])
def test_no_amount_of_memory(folder: Path, memory: Any) -> None:
    with pytest.raises(BuildError, match=r"of memory \(accepted: bytes, or a text"):
        sx.build_indexes(folder, {"k": "bloom"}, workers=1, memory=memory)
    assert not (folder / FOLDER).exists()


def test_amounts_of_memory() -> None:
    assert memory_bytes("1GB") == memory_bytes(10**9) == 10**9
    assert memory_bytes(" 0.5 gib ") == 1 << 29
    note = "column 'a': no bitmap index: it takes about 1500 MB, and so on; column 'b'"
    assert left_out(note, 1_500_000_000) == {("a", "bitmap")}
    assert left_out(note, 1_499_999_999) == set()
    assert left_out(note, None) == set()
    assert memory_bytes(None) is None


PEAK = """
import re, sys
from pathlib import Path
import skipindex as sx
sx.build_indexes(sys.argv[1], {sys.argv[2]: sys.argv[3].split(",")}, workers=1,
                 memory=sys.argv[4])
# ru_maxrss would be at least what the process of the tests took.
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(int(peak[1]) * 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [300, 500, 1000])
@pytest.mark.parametrize(
    ("column", "kinds"),
    [
        ("text", "minmax"),
        ("text", "bloom,token_bloom"),
        ("text", "bitmap,bit_sliced,run_length"),
        ("key", "bitmap,bit_sliced,range_bitmap,bloom"),
        ("key", "exact"),
        ("text", "exact"),
        ("text", "ngram_bloom,range_bitmap"),
    ],
)
def test_the_memory_of_a_worker_is_within_the_limit(
    tmp_path: Path, column: str, kinds: str, megabytes: int
) -> None:
    """Three million rows: each of these takes 450 MB and more, or is left out."""
    large(tmp_path / "f.parquet", 3_000_000)
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(tmp_path), column, kinds, f"{megabytes}MB"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < megabytes * 10**6


@pytest.mark.slow
def test_the_memory_of_a_worker_is_within_the_limit_where_values_are_long(
    tmp_path: Path,
) -> None:
    """Decoded at once, as 8,192 short ones are, they take 250 MB twice."""
    long_values(tmp_path / "f.parquet", n_rows=250, n_bytes=10**6)
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(tmp_path), "text", "minmax", "300MB"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < 300 * 10**6


def long_values(path: Path, *, n_rows: int, n_bytes: int) -> None:
    """Texts that are long, and take next to nothing when they are compressed."""
    schema = pa.schema([("text", pa.string())])
    options = {"compression": "zstd", "use_dictionary": False}
    body = "x" * n_bytes
    texts = pa.chunked_array(
        [pa.array([f"{i:09}{body}"], pa.string()) for i in range(n_rows)]
    )
    pq.write_table(pa.table([texts], schema), path, row_group_size=n_rows, **options)


def large(path: Path, n_rows: int) -> None:
    """Near-unique text of 24 bytes and near-unique integers, in three row groups."""
    rng = np.random.default_rng(1)
    writer = None
    for _ in range(3):
        n = n_rows // 3
        raw = np.frombuffer(rng.bytes(12 * n).hex().encode(), np.uint8)
        offsets = pa.py_buffer(np.arange(n + 1, dtype=np.int32) * 24)
        text = pa.Array.from_buffers(pa.string(), n, [None, offsets, pa.py_buffer(raw)])
        table = pa.table({"key": rng.integers(0, 1 << 40, n), "text": text})
        writer = writer or pq.ParquetWriter(path, table.schema, use_dictionary=False)
        writer.write_table(table)
    assert writer is not None
    writer.close()
