"""Columns that are written as dictionaries are read so, and give the same indexes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.source import column_reader
from skipindex.storage.file_system.location import location_of
from skipindex.storage.file_system.names import PACKS
from skipindex.storage.pack import Blob
from skipindex.storage.parts import ReadCount
from tests.tables import build, put

KINDS = ["bitmap", "bit_sliced", "bloom", "range_bitmap", "run_length"]


def read_as(path: Path, column: str) -> pa.DataType:
    """The type in which the column comes, if it may be a dictionary."""
    with column_reader(location_of(path.parent), path.name, encoded={column}) as file:
        found: pa.DataType = file.read([column]).type
        return found


def read_by_us(path: Path, *names: str) -> pa.ChunkedArray:
    """The column, or the field of a struct, as index builds read it."""
    with column_reader(location_of(path.parent), path.name, encoded={names[0]}) as file:
        return file.read(names)


def read_by_duckdb(path: Path, text: str) -> list[Any]:
    """What another reader makes of it, in the order of the rows."""
    found = duckdb.sql(f"SELECT {text} FROM '{path}' ORDER BY file_row_number")
    return [value for (value,) in found.fetchall()]


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


@pytest.mark.few(8)
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
        (info,) = table.state.snapshot.manifest.packs
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
        plan = table.plan(f"word = 'w{j}'")
        assert plan.paths == [f"{i}.parquet" for i in holds]
        assert plan.count_bounds == (50 * len(holds), 50 * len(holds))


def put_enum(path: Path, rng: random.Random) -> Path:
    """A file of DuckDB, whose dictionaries have '' for each value that is not used."""
    words = [f"e{i}" for i in range(rng.choice([2, 3, 5, 40, 300]))]
    used = rng.sample(words, rng.randint(1, min(len(words), 6)))
    n = rng.choice([1, 30, 5000, 9000])
    rows = [rng.choice([*used, None]) for _ in range(n)]
    if rng.random() < 0.7:  # so that row groups have different values
        rows.sort(key=lambda word: (word is None, word))
    shown = ", ".join(f"'{word}'" for word in words)
    compression = rng.choice(["snappy", "zstd", "gzip", "uncompressed", "lz4_raw"])
    db = duckdb.connect()
    db.execute("SET threads = 1")
    db.register("given", pa.table({"v": pa.array(rows, pa.string())}))
    db.execute(
        f"COPY (SELECT v::ENUM({shown}) AS v FROM given) TO '{path}' (FORMAT parquet, "
        f"ROW_GROUP_SIZE 2048, COMPRESSION {compression}, "
        f"PARQUET_VERSION {rng.choice(['V1', 'V2'])})"
    )
    db.close()
    return path


@pytest.mark.parametrize("n", [20, pytest.param(60, marks=pytest.mark.slow)])
def test_enums_of_duckdb_are_read_rightly(tmp_path: Path, n: int) -> None:
    rng = random.Random(3)
    for i in range(n):
        path = put_enum(tmp_path / f"{i}.parquet", rng)
        assert read_by_us(path, "v").to_pylist() == read_by_duckdb(path, "v"), i


def test_a_file_whose_dictionary_repeats_a_value_is_not_skipped(tmp_path: Path) -> None:
    rng = random.Random(4)
    for i in range(12):
        put_enum(tmp_path / f"{i}.parquet", rng)
    table = build(tmp_path, {"v": ["bitmap", "bloom"]})
    for word in ("e0", "e1", "e2", "e7", "e39"):
        holds = {
            f"{i}.parquet": n
            for i in range(12)
            if (n := read_by_duckdb(tmp_path / f"{i}.parquet", "v").count(word))
        }
        plan = table.plan(f"v = '{word}'")
        assert plan.paths == sorted(holds)
        assert plan.count_bounds == (sum(holds.values()),) * 2


def put_repeated(path: Path, rng: random.Random) -> bool:
    """A file some of whose dictionaries may repeat entries; whether one does.

    The writer goes on with plain values in the middle of a column chunk, sometimes.
    """
    words = [f"w{i:06d}" for i in range(rng.choice([2, 3, 10, 400]))]
    more = words + [f"x{i:06d}" for i in range(rng.choice([0, 1, 3, 50]))]
    n = rng.choice([1, 40, 3000])
    rows = [rng.choice([*words[:2], None]) for _ in range(n)]
    rows += [rng.choice(words) for _ in range(n)]
    rows += [rng.choice([*more, None]) for _ in range(n)]
    put(
        path,
        {"v": rows},
        compression="none",
        write_statistics=False,
        row_group_size=rng.choice([len(rows), 1 + len(rows) // 3]),
        version=rng.choice(["1.0", "2.6"]),
        data_page_version=rng.choice(["1.0", "2.0"]),
        data_page_size=rng.choice([64, 1 << 20]),
        dictionary_pagesize_limit=rng.choice([30, 1 << 20]),
        write_batch_size=rng.choice([10, 1024]),
    )
    data = bytearray(path.read_bytes())
    metadata = pq.ParquetFile(path).metadata
    repeated = False
    for i in range(metadata.num_row_groups):
        chunk = metadata.row_group(i).column(0)
        if rng.random() < 0.6 and chunk.has_dictionary_page:
            begin, end = chunk.dictionary_page_offset, chunk.data_page_offset
            # After the header, entries have eleven bytes: a length, and seven more.
            length = data.find(b"\x07\0\0\0", begin, end)
            entries = range(length + 4, end - 6, 11)
            if length > 0 and len(entries) > 1:
                one, other = rng.sample(entries, 2)
                repeated |= data[one : one + 7] != data[other : other + 7]
                data[one : one + 7] = data[other : other + 7]
    path.write_bytes(data)
    return repeated


@pytest.mark.parametrize("n", [50, pytest.param(150, marks=pytest.mark.slow)])
def test_repeated_entries_are_found_wherever_plain_values_begin(
    tmp_path: Path, n: int
) -> None:
    rng = random.Random(5)
    seen = set()
    for i in range(n):
        path = tmp_path / f"{i}.parquet"
        repeated = put_repeated(path, rng)
        values = read_by_us(path, "v")
        assert values.to_pylist() == read_by_duckdb(path, "v"), i
        seen.add((repeated, pa.types.is_dictionary(values.type)))
    assert seen == {(False, True), (True, False)}, "repeated, read as a dictionary"


def test_as_many_new_plain_values_as_repeated_entries(tmp_path: Path) -> None:
    """The number of entries that Arrow has is then that of the page."""
    path = tmp_path / "0.parquet"
    rows = ["aaaa", "bbbb"] * 8 + ["cccc"] * 16
    put(
        path,
        {"v": rows},
        compression="none",
        write_statistics=False,
        dictionary_pagesize_limit=16,
        data_page_size=1,
        write_batch_size=16,
    )
    data = path.read_bytes()
    entries = b"\x04\0\0\0aaaa\x04\0\0\0bbbb"
    assert data.count(b"\x04\0\0\0cccc") == 16, "plain, one for every row"
    path.write_bytes(data.replace(entries, entries.replace(b"bbbb", b"aaaa"), 1))
    values = read_by_us(path, "v")
    assert values.to_pylist() == read_by_duckdb(path, "v")
    assert values.to_pylist()[:2] == ["aaaa", "aaaa"]


@pytest.mark.parametrize("nested", [False, True])
def test_a_dictionary_array_that_cannot_be_checked_has_no_index(
    tmp_path: Path, nested: bool
) -> None:
    """Arrow reads what was written as a dictionary array as nothing else."""
    words = pa.array(["aaaa", "bbbb", "cccc"]).dictionary_encode()
    v = pa.StructArray.from_arrays([words], ["f"]) if nested else words
    columns = {"v": v, "w": [1, 2, 3]}
    path = put(
        tmp_path / "0.parquet", columns, compression="none", write_statistics=False
    )
    name = "v.f" if nested else "v"
    names = name.split(".")
    assert read_by_us(path, *names).to_pylist() == ["aaaa", "bbbb", "cccc"]
    path.write_bytes(path.read_bytes().replace(b"bbbb", b"aaaa"))
    assert read_by_duckdb(path, name) == ["aaaa", "aaaa", "cccc"]
    report = sx.build_indexes(tmp_path, {name: "bitmap", "w": "bitmap"}, workers=1)
    (note,) = report.notes
    assert f"column '{name}': its dictionary cannot be decoded" in note
    plan = report.table.plan(f"{name} = 'bbbb'")
    assert plan.paths == ["0.parquet"]
    assert any("cannot be decoded" in note for note in plan.notes)
    assert report.table.plan("w = 5").paths == []


def test_dictionaries_of_every_writer_are_read_so(tmp_path: Path) -> None:
    words = [random.Random(6).choice(["ASIA", "é", "", "EUROPE"]) for _ in range(5000)]
    table = pa.table({"v": words})
    files = []
    for codec in ("snappy", "gzip", "brotli", "zstd", "lz4", "none"):
        path = put(tmp_path / f"{codec}.parquet", table, compression=codec)
        files.append(path)
        path = tmp_path / f"polars {codec}.parquet"
        theirs = "uncompressed" if codec == "none" else codec
        pl.from_arrow(table).write_parquet(path, compression=theirs)
        files.append(path)
    files.append(tmp_path / "duckdb.parquet")
    duckdb.from_arrow(table).write_parquet(str(files[-1]))
    deltalake.write_deltalake(tmp_path / "delta", table)
    files += (tmp_path / "delta").glob("*.parquet")
    for path in files:
        values = read_by_us(path, "v")
        assert pa.types.is_dictionary(values.type), path
        assert values.to_pylist() == words
