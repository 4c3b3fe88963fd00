"""Columns that are written as dictionaries are read so, and give the same indexes."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.storage.location import location_of
from skipindex.storage.log import PACKS
from skipindex.storage.pack import Blob
from skipindex.storage.parts import ReadCount
from skipindex.table import column_reader
from tests.tables import build, put

KINDS = ["bitmap", "bit_sliced", "bloom", "range_bitmap", "run_length"]


def read_as(path: Path, column: str) -> pa.DataType:
    """The type in which the column comes, if it may be a dictionary."""
    file, close = column_reader(location_of(path.parent), path.name, encoded={column})
    try:
        found: pa.DataType = file.read(columns=[column]).column(0).type
        return found
    finally:
        close()


def columns() -> dict[str, pa.Array]:
    chooser = random.Random(1)
    words = [chooser.choice(["ASIA", "é", "", "EUROPE", None]) for _ in range(900)]
    raw = [chooser.choice([b"\xff\0", b"\0", b"", b"a"]) for _ in range(900)]
    keys = [f"Customer#{chooser.randrange(10**9):09d}" for _ in range(900)]
    return {
        "word": pa.array(words),
        "raw": pa.array(raw, pa.binary()),
        "key": pa.array(keys),
        "nothing": pa.array([None] * 900, pa.string()),
        "number": pa.array([chooser.randrange(9) for _ in range(900)], pa.int64()),
        "inner": pa.array([{"word": word} for word in words]),
    }


@pytest.mark.parametrize("version", ["1.0", "2.6"])
@pytest.mark.parametrize("row_group_size", [900, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_dictionaries_make_the_same_packs(
    tmp_path: Path, kind: str, row_group_size: int, version: str
) -> None:
    made = []
    for use_dictionary in (True, False):
        folder = tmp_path / str(use_dictionary)
        put(
            folder / "0.parquet",
            columns(),
            use_dictionary=use_dictionary,
            row_group_size=row_group_size,
            version=version,
        )
        names = [*list(columns())[:-1], "inner.word"]
        build(folder, dict.fromkeys(names, kind))
        table = sx.open_table(folder)
        (info,) = table.snapshot.manifest.packs
        source = location_of(folder).view(f"{PACKS}/{info.name}")
        count = ReadCount()
        payloads = []
        for entry in info.blobs:
            own = Blob(source, entry).payload(0, count)
            parts = [] if own is None else own.read(0, len(own))
            payloads.append((entry.meta.column, [bytes(part) for part in parts]))
        made.append(payloads)
    assert made[0] == made[1]


def test_what_is_written_as_a_dictionary_is_read_so(tmp_path: Path) -> None:
    path = put(tmp_path / "0.parquet", columns())
    plain = put(tmp_path / "1.parquet", columns(), use_dictionary=False)
    assert pa.types.is_dictionary(read_as(path, "word"))
    assert pa.types.is_dictionary(read_as(path, "raw"))
    assert read_as(path, "number") == pa.int64()
    for column in ("word", "raw", "key"):
        assert not pa.types.is_dictionary(read_as(plain, column))


def test_a_dictionary_that_grew_too_large_is_not_read_as_one(tmp_path: Path) -> None:
    rng = random.Random(2)
    keys = pa.array([rng.randbytes(40).hex() for _ in range(20_000)])
    path = tmp_path / "0.parquet"
    pq.write_table(pa.table({"key": keys}), path)
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    assert chunk.has_dictionary_page
    assert not pa.types.is_dictionary(read_as(path, "key"))


def test_one_row_group_of_plain_values_is_enough_to_read_them_so(
    tmp_path: Path,
) -> None:
    rng = random.Random(2)
    few = pa.array(["a", "b"] * 10_000)
    many = pa.array([rng.randbytes(40).hex() for _ in range(20_000)])
    path = tmp_path / "0.parquet"
    with pq.ParquetWriter(path, pa.schema([("key", pa.string())])) as writer:
        writer.write_table(pa.table({"key": few}))
        writer.write_table(pa.table({"key": many}))
    assert not pa.types.is_dictionary(read_as(path, "key"))


def test_a_file_without_rows_has_no_dictionary(tmp_path: Path) -> None:
    path = put(tmp_path / "0.parquet", {"key": pa.array([], pa.string())})
    assert len(pq.read_table(path)) == 0
    assert read_as(path, "key") == pa.string()


def test_answers_are_right(tmp_path: Path) -> None:
    for i in range(4):
        values = [f"w{j % 7}" for j in range(i, i + 5)] * 50
        put(tmp_path / f"{i}.parquet", {"word": values}, row_group_size=60)
    table = build(tmp_path, {"word": ["bitmap", "bloom"]})
    for j in range(9):
        holds = [i for i in range(4) if j < 7 and j in {k % 7 for k in range(i, i + 5)}]
        plan = table.plan_files(f"word = 'w{j}'")
        assert plan.paths == [f"{i}.parquet" for i in holds]
        assert plan.count_bounds == (50 * len(holds), 50 * len(holds))
