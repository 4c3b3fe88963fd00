"""Rows by keys: exactly those of the files, whatever the kind of index."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.errors import PredicateError
from tests.tables import build, put, put_all

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
KINDS = ["exact", "run_length", "bitmap", "bit_sliced", "range_bitmap", "bloom", ""]
ROWWISE = {"exact", "run_length", "bitmap", "bit_sliced"}
TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "long": (pa.int64(), [*range(-40, 40), 2**62, -(2**62)]),
    "byte": (pa.int8(), [*range(-20, 20)]),
    "text": (pa.string(), [f"k{i:03}" for i in range(80)] + ["", "ü", "k"]),
    "binary": (pa.binary(), [bytes([i]) for i in range(60)]),
    "date": (pa.date32(), [date(2024, 1, 1 + i) for i in range(30)]),
    "time": (
        pa.timestamp("us", "UTC"),
        [datetime(2024, 1, 1, 0, i, tzinfo=UTC) for i in range(50)],
    ),
    "decimal": (pa.decimal128(9, 2), [Decimal(i) / 4 for i in range(50)]),
    "double": (pa.float64(), [i / 2 for i in range(50)] + [float("inf")]),
    "boolean": (pa.bool_(), [True, False]),
}


def located(
    table: sx.Table, keys: Any, column: str = "c"
) -> tuple[Counter[tuple[Any, str, int]], set[str]]:
    """The rows, and the files of which it is not known."""
    result = table.locate(keys, column).read_all()
    rows = result.to_pylist()
    known = [row for row in rows if row["row"] is not None]
    assert all(row["key"] is None for row in rows if row["row"] is None)
    return (
        Counter((row["key"], row["file"], row["row"]) for row in known),
        {row["file"] for row in rows if row["row"] is None},
    )


def truth(folder: Path, keys: Any) -> Counter[tuple[Any, str, int]]:
    wanted = {key for key in keys if key is not None}
    return Counter(
        (value, path.name, i)
        for path in folder.glob("*.parquet")
        for i, value in enumerate(pq.read_table(path)["c"].to_pylist())
        if value in wanted
    )


@pytest.mark.few(15)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TYPES)
def test_rows_are_those_of_the_files(tmp_path: Path, kind: str, name: str) -> None:
    dtype, values = TYPES[name]
    rng = random.Random(f"{kind} {name}")
    for i, n in enumerate([0, 1, 40, 500, 3000]):
        some = rng.sample(values, rng.randint(1, len(values)))
        nulls = rng.choice([0, 0.3])
        column = [None if rng.random() < nulls else rng.choice(some) for _ in range(n)]
        if rng.random() < 0.5:
            column.sort(key=lambda v: (v is None, v if v is not None else 0))
        put(tmp_path / f"{i}.parquet", {"c": pa.array(column, dtype)})
    try:
        table = build(tmp_path, {"c": kind or "minmax"})
    except sx.SkipIndexError:
        return  # no index of this kind has the type
    for n_keys in (0, 1, 3, 30, 200):
        keys = [rng.choice(values) for _ in range(n_keys)] + [None] * rng.randint(0, 1)
        rows, unknown = located(table, pa.array(keys, dtype))
        expected = truth(tmp_path, keys)
        known = Counter({k: n for k, n in expected.items() if k[1] not in unknown})
        assert rows == known
        assert not (kind in ROWWISE and unknown)
        assert unknown <= set(table.paths)


def test_a_file_that_no_index_knows_may_hold_any_key(tmp_path: Path) -> None:
    put_all(tmp_path, [{"c": [1, 2, 2]}, {"c": [7, None, 2]}])
    table = build(tmp_path, {"c": "exact"})
    put(tmp_path / "1.parquet", {"c": [2, 9]})
    put(tmp_path / "2.parquet", {"c": [2]})
    rows, unknown = located(table.refresh(), [2, 3, None])
    assert rows == Counter({(2, "0.parquet", 1): 1, (2, "0.parquet", 2): 1})
    assert unknown == {"1.parquet", "2.parquet"}


def test_filters_and_bounds_rule_out_files(tmp_path: Path) -> None:
    put_all(tmp_path, [{"c": [0, 100]}, {"c": [2, 90]}, {"c": [200]}])
    table = build(tmp_path, {"c": "bloom"})
    assert located(table, [2]) == (Counter(), {"1.parquet"})
    assert located(table, [1000, -1]) == (Counter(), set())


def test_a_damaged_index_leaves_its_files_possible(tmp_path: Path) -> None:
    put_all(tmp_path, [{"c": [1, 2]}, {"c": [1, 4]}])
    build(tmp_path, {"c": "exact"})
    for pack in tmp_path.rglob("*.pack"):
        data = bytearray(pack.read_bytes())
        data[len(data) // 3 : -40] = b"\xaa" * len(data[len(data) // 3 : -40])
        pack.write_bytes(data)
    rows, unknown = located(sx.open_table(tmp_path), [1])
    assert set(rows) <= set(truth(tmp_path, [1]))
    assert unknown | {file for _, file, _ in rows} == {"0.parquet", "1.parquet"}


def test_columns_and_keys_that_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "p=1/0.parquet", {"c": [1], "l": [[1]], "x": [0.5], "t": [NOON]})
    put(tmp_path / "p=2/0.parquet", {"c": [1], "l": [[1]], "x": [0.5], "t": [NOON]})
    table = sx.open_table(tmp_path)
    for column, keys in (
        ("p", [1]),
        ("l", [1]),
        ("none", [1]),
        ("c", ["1"]),
        ("c", [1.5]),
        ("c", [1, "x"]),
        ("x", pa.array([0.5], pa.float32())),
        ("c", [[1]]),
        ("t", [datetime(2024, 1, 1)]),
        ("c", [2**70]),
        ("c", "1"),
        ("c", pa.array([1], pa.timestamp("ns"))),
    ):
        with pytest.raises(PredicateError):
            table.locate(keys, column)


@pytest.mark.parametrize("view", [pa.string_view(), pa.binary_view()])
def test_keys_may_be_views(tmp_path: Path, view: pa.DataType) -> None:
    dtype = pa.string() if view == pa.string_view() else pa.binary()
    put(tmp_path / "0.parquet", {"c": pa.array(["a", None, "b"], dtype)})
    table = build(tmp_path, {"c": "exact"})
    keys = pa.array(["b", None, "x"], dtype).cast(view)
    assert table.locate(keys, "c").read_all()["row"].to_pylist() == [2]


def test_keys_of_another_unit_or_scale(tmp_path: Path) -> None:
    columns = {"t": pa.array([NOON], pa.timestamp("us", "UTC")),
               "d": pa.array([Decimal("1.50")], pa.decimal128(9, 2))}  # fmt: skip
    put(tmp_path / "0.parquet", columns)
    table = build(tmp_path, {"t": "exact", "d": "exact"})
    for column, keys in (
        ("t", pa.array([NOON], pa.timestamp("ms", "Europe/Rome"))),
        ("d", [Decimal("1.5")]),
    ):
        assert table.locate(keys, column).read_all()["row"].to_pylist() == [0]
    with pytest.raises(PredicateError):
        table.locate([Decimal("1.505")], "d")


def test_keys_of_other_widths_and_forms(tmp_path: Path) -> None:
    put(tmp_path / "0.parquet", {"c": pa.array([1, 2], pa.int32()), "s": ["a", "b"]})
    table = build(tmp_path, {"c": "exact", "s": "exact"})
    for keys in (
        [2, 2**40],
        pa.array([2, 2], pa.int16()),
        pa.chunked_array([[2], [5]]),
        pa.array([2]).dictionary_encode(),
    ):
        assert [
            row["row"] for row in table.locate(keys, "c").read_all().to_pylist()
        ] == [1]
    assert table.locate([], "c").read_all().num_rows == 0
    assert table.locate([None], "c").read_all().num_rows == 0
    assert located(table, ["b", "z"], "s")[0] == Counter({("b", "0.parquet", 1): 1})


def test_fields_of_structs(tmp_path: Path) -> None:
    put(tmp_path / "0.parquet", {"s": [{"a": 1}, {"a": 2}, None]})
    table = build(tmp_path, {"s.a": "exact"})
    assert located(table, [2], "s.a")[0] == Counter({(2, "0.parquet", 1): 1})


def test_columns_that_are_functions_of_others(tmp_path: Path) -> None:
    rng = random.Random(3)
    for i in range(3):
        c = [rng.randrange(500) for _ in range(4000)]
        put(tmp_path / f"{i}.parquet", {"c": c, "f": [str(v % 7) for v in c]})
    table = build(tmp_path, {"c": "exact", "f": "exact"})
    (column,) = (one for one in table.status().columns if one.name == "f")
    assert "mapping" in column.encodings["exact"]
    assert located(table, [3, 499, 600])[0] == truth(tmp_path, [3, 499, 600])
    rows, _ = located(table, ["3", "x"], "f")
    assert sum(rows.values()) == sum(
        value == "3"
        for path in tmp_path.glob("*.parquet")
        for value in pq.read_table(path)["f"].to_pylist()
    )


@pytest.mark.parametrize("kind", sorted(ROWWISE))
def test_long_lists_of_texts(tmp_path: Path, kind: str) -> None:
    texts = [f"key {i % 997:05}" for i in range(3000)]
    put_all(tmp_path, [{"c": texts[i::3]} for i in range(3)])
    table = build(tmp_path, {"c": kind})
    for step in (1, 3, 50):
        keys = [f"key {i:05}" for i in range(0, 2000, step)]
        assert located(table, keys) == (truth(tmp_path, keys), set())


def test_many_keys_are_found_file_by_file(tmp_path: Path) -> None:
    rng = random.Random(5)
    ids = rng.sample(range(10**9), 20_000)
    put_all(tmp_path, [{"c": ids[i::4]} for i in range(4)])
    table = build(tmp_path, {"c": "exact"})
    keys = rng.sample(ids, 5000) + rng.sample(range(10**9), 5000)
    reader = table.locate(keys, "c")
    batches = list(reader)
    assert len(batches) == 4
    rows, unknown = located(table, keys)
    assert (rows, unknown) == (truth(tmp_path, keys), set())
