"""Codes out of bit slices: as many values as one likes, the same rows as one by one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from skipindex.errors import CorruptIndexError
from skipindex.expressions.atoms import NoneOf, OneOf
from skipindex.indexes.bit_slices import slices as slices_module
from skipindex.indexes.bit_slices.decode import dense_bits, rows_among
from skipindex.indexes.encoding import code_set
from skipindex.indexes.kinds.bit_sliced import BitSliced
from tests.indexes.columns import column_of
from tests.indexes.memory_parts import opened


def zeros_of(codes: np.ndarray, n_bits: int) -> list[memoryview]:
    slices = []
    for bit in range(n_bits):
        rows = BitMap(np.flatnonzero(codes >> bit & 1 == 0).tolist())
        rows.run_optimize()
        slices.append(memoryview(rows.serialize()))
    return slices


@pytest.mark.parametrize("table", [1 << 20, 1], ids=["table", "intervals"])
@pytest.mark.parametrize("order", ["random", "sorted", "constant"])
@pytest.mark.parametrize(
    ("n_rows", "n_bits"),
    [(1, 1), (7, 3), (8, 8), (1000, 9), (65_536, 5), (65_537, 17), (140_001, 12)],
)
def test_rows_are_those_of_the_codes(
    monkeypatch: pytest.MonkeyPatch, n_rows: int, n_bits: int, order: str, table: int
) -> None:
    monkeypatch.setattr(code_set, "_TABLE", table)
    monkeypatch.setattr(code_set, "_TABLE_PER_ROW", 0)
    rng = np.random.default_rng(n_rows)
    codes = rng.integers(0, 1 << n_bits, n_rows)
    if order == "sorted":
        codes.sort()
    elif order == "constant":
        codes[:] = codes[0]
    cuts = np.unique(rng.integers(0, (1 << n_bits) + 1, 40))
    intervals = [
        (int(a), int(b)) for a, b in zip(cuts[::2], cuts[1::2], strict=False) if a < b
    ] or [(0, 1)]
    found = rows_among(zeros_of(codes, n_bits), intervals, n_rows)
    wanted = np.zeros(n_rows, bool)
    for start, stop in intervals:
        wanted |= (codes >= start) & (codes < stop)
    assert found == BitMap(np.flatnonzero(wanted).tolist())


def test_codes_of_32_bits() -> None:
    codes = np.array([0, 1, 2**31, 2**32 - 2, 5, 2**31 - 1])
    intervals = [(0, 1), (5, 6), (2**31, 2**32 - 1)]
    assert rows_among(zeros_of(codes, 32), intervals, 6) == BitMap([0, 2, 3, 4])


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("max_slices", [None, 8])
def test_many_values_are_found_as_few_are(
    monkeypatch: pytest.MonkeyPatch, max_slices: int | None, *, nulls: bool
) -> None:
    rng = np.random.default_rng(3)
    values = rng.integers(0, 900, 3000)
    rows = [None if nulls and i % 5 == 0 else int(v) for i, v in enumerate(values)]
    column = column_of(pa.array(rows, pa.int64()))
    index, count = opened(BitSliced(max_slices=max_slices), column)
    wanted = tuple(sorted(set(rng.integers(0, 900, 60).tolist()) | {899}))
    decoded = [index.probe(OneOf("c", wanted)), index.probe(NoneOf("c", wanted))]
    assert count.bitmaps
    monkeypatch.setattr(slices_module, "_DECODE_FROM_INTERVALS", 10**9)
    walked = [index.probe(OneOf("c", wanted)), index.probe(NoneOf("c", wanted))]
    for one, other in zip(decoded, walked, strict=True):
        assert one is not None
        assert other is not None
        assert one.lower == other.lower
        assert one.upper == other.upper
    inside = {i for i, row in enumerate(rows) if row in set(wanted)}
    assert decoded[0] is not None
    assert set(decoded[0].lower) <= inside <= set(decoded[0].upper)
    if max_slices is None:
        assert set(decoded[0].upper) == inside


def test_the_bits_of_a_bitmap_whatever_its_containers_are() -> None:
    n_rows = 70_000
    for rows in (
        BitMap(),
        BitMap([3, 65_535, 69_999]),
        BitMap(range(10_000)),
        BitMap(range(0, n_rows, 2)),
        BitMap([*range(0, 65_536, 2), 65_540]),
    ):
        for optimize in (False, True):
            if optimize:
                rows.run_optimize()
            bits = dense_bits(memoryview(rows.serialize()), n_rows)
            mask = np.unpackbits(bits, bitorder="little")
            assert len(mask) == 2 * 65_536
            assert BitMap(np.flatnonzero(mask).tolist()) == rows


def test_bytes_that_are_no_bitmap_of_so_many_rows_are_refused() -> None:
    beyond = memoryview(BitMap([1, 9]).serialize())
    with pytest.raises(CorruptIndexError, match="has row 9"):
        dense_bits(beyond, 9)
    with pytest.raises(CorruptIndexError, match="no roaring bitmap"):
        dense_bits(beyond[:5], 10)
