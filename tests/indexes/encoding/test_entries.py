"""The rows of many values in one part: what is written is what is read."""

from __future__ import annotations

import numpy as np
import pytest

from skipindex.errors import CorruptIndexError
from skipindex.indexes.encoding.entries import (
    MIXED,
    SPLIT,
    UNARY,
    UNIFORM,
    read_entries,
)
from skipindex.indexes.encoding.entry_packing import pack_sets


def _keys(counts: np.ndarray, n_rows: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    rows = [np.sort(rng.choice(n_rows, n, replace=False)) for n in counts]
    sets = np.repeat(np.arange(len(counts)), counts)
    return sets.astype(np.uint64) << np.uint64(32) | np.concatenate(rows).astype("u8")


@pytest.mark.parametrize(
    "n_rows", [300, 1 << 16, (1 << 16) + 1, 1 << 20, (1 << 26) + 9]
)
@pytest.mark.parametrize("most", [2, 4, 300])
def test_the_rows_of_each_set_are_read_again(n_rows: int, most: int) -> None:
    counts = np.random.default_rng(1).integers(1, most, 900)
    keys = _keys(counts, n_rows)
    parts, firsts = pack_sets(keys, len(counts), n_rows)
    ends = [*firsts[1:], len(counts)]
    for raw, first, end in zip(parts, firsts, ends, strict=True):
        entries = read_entries(memoryview(raw), end - first, n_rows)
        if most < 5:
            assert entries.form & (UNARY | UNIFORM)
            assert bool(entries.form & SPLIT) == (n_rows > 1 << 16)
        some = np.arange(0, end - first, 3)
        together, n_each = entries.rows_of(some)
        assert n_each.tolist() == counts[first + some].tolist()
        alone = []
        for i in some.tolist():
            lists, bitmaps = entries.take(i, i + 1)
            rows = [*lists[0].tolist()] if lists else list(bitmaps[0])
            mine = keys[keys >> np.uint64(32) == first + i]
            assert rows == (mine & np.uint64(0xFFFF_FFFF)).tolist()
            alone += rows
        assert together.tolist() == alone


@pytest.mark.parametrize("n_rows", [3000, 8000, 1 << 16])
def test_dense_sets_of_few_rows_take_a_bit_a_row(n_rows: int) -> None:
    """And not the 8 KB that a container of roaring has for any number of rows."""
    counts = np.array([n_rows // 2, n_rows // 3, 5, n_rows - 7, 40])
    keys = _keys(counts, n_rows)
    parts, firsts = pack_sets(keys, len(counts), n_rows)
    assert sum(map(len, parts)) < 3 * (n_rows // 8 + 40) + 2 * (5 + 40)
    found = []
    for raw, first, end in zip(parts, firsts, [*firsts[1:], len(counts)], strict=True):
        entries = read_entries(memoryview(raw), end - first, n_rows)
        rows, n_each = entries.rows_of(np.arange(end - first))
        assert n_each.tolist() == counts[first:end].tolist()
        found += rows.tolist()
    assert found == (keys & np.uint64(0xFFFF_FFFF)).tolist()


def test_sets_of_very_few_rows_stay_compressed() -> None:
    """A part with plain bits is neither compressed nor has a table in unary."""
    counts = np.full(500, 12)
    parts, _ = pack_sets(_keys(counts, 90), 500, 90)
    assert not any(raw[0] & MIXED for raw in parts)


def test_a_damaged_part_is_refused_or_read_within_its_bytes() -> None:
    counts = np.random.default_rng(1).integers(1, 4, 900)
    (raw,), _ = pack_sets(_keys(counts, 1 << 20), len(counts), 1 << 20)
    assert raw[0] & UNARY
    assert raw[0] & SPLIT
    rng = np.random.default_rng(2)
    refused = 0
    for _ in range(2000):
        damaged = bytearray(raw[: len(raw) - int(rng.integers(0, 3))])
        damaged[int(rng.integers(0, 200))] ^= int(rng.integers(1, 256))
        try:
            entries = read_entries(memoryview(bytes(damaged)), 900, 1 << 20)
            rows, _ = entries.rows_of(np.arange(900))
        except (CorruptIndexError, IndexError, ValueError):
            refused += 1
        else:
            assert len(rows) <= len(raw)
    assert refused > 1000
