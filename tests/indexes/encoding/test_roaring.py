"""Our bytes are CRoaring's bytes."""

from __future__ import annotations

import numpy as np
import pytest
from pyroaring import BitMap

from skipindex.errors import CorruptIndexError
from skipindex.indexes.bit_slices.decode import dense_bits
from skipindex.indexes.encoding.entries import MIXED, row_bytes, write_rows
from skipindex.indexes.encoding.entry_packing import pack_sets
from skipindex.indexes.encoding.roaring import (
    EMPTY,
    blank,
    from_mask,
    from_rows,
    from_sorted_u16,
    load,
    or_plain,
    pack_all,
    pack_dense,
)
from skipindex.storage.bitmaps import BITS_SIZE, PLAIN, bitmap_of, is_plain, memory_of

rng = np.random.default_rng(0)
SIZES = [1, 7, 8, 9, 65_535, 65_536, 65_537, 200_000]
DENSITIES = [0, 1e-4, 0.0625, 0.5, 0.999, 1]


def croaring(rows: np.ndarray) -> bytes:
    bitmap = BitMap(rows.tolist())
    bitmap.run_optimize()
    return bitmap.serialize()


def masks(n: int, density: float) -> list[np.ndarray]:
    scattered = rng.random(n) < density
    clustered = np.repeat(rng.random(n // 90 + 1) < density, 90)[:n]
    return [scattered, clustered]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("density", DENSITIES)
def test_dense_bits_give_the_bytes_of_croaring(n: int, density: float) -> None:
    for mask in masks(n, density):
        packed = pack_dense(np.packbits(mask, bitorder="little"))
        assert packed == croaring(np.flatnonzero(mask))


def test_many_bitmaps_at_once() -> None:
    n = 70_000
    chosen = [mask for density in DENSITIES for mask in masks(n, density)]
    bits = blank(len(chosen), n)
    for row, mask in zip(bits, chosen, strict=True):
        row[: n // 8] = np.packbits(mask, bitorder="little")
    assert pack_all(bits) == [croaring(np.flatnonzero(mask)) for mask in chosen]


def test_no_rows_at_all() -> None:
    assert pack_all(blank(2, 0)) == [EMPTY, EMPTY]
    assert pack_dense(np.empty(0, np.uint8)) == EMPTY
    assert not load(EMPTY)


@pytest.mark.parametrize("cards", [(4096,), (4097,), (65_536,), (4096, 4097, 1)])
def test_containers_at_their_limits(cards: tuple[int, ...]) -> None:
    mask = np.zeros(len(cards) << 16, np.bool_)
    for i, card in enumerate(cards):
        mask[(i << 16) + rng.permutation(65_536)[:card]] = True
    packed = pack_dense(np.packbits(mask, bitorder="little"))
    assert packed == croaring(np.flatnonzero(mask))


@pytest.mark.parametrize(
    ("n", "n_values", "order"),
    [
        (50, 7, "random"),
        (5_000, 5_000, "random"),
        (70_000, 3, "random"),
        (70_000, 3, "sorted"),
        (70_000, 1, "sorted"),
        (200_000, 900, "random"),
        (200_000, 900, "sorted"),
        (400_000, 5, "clustered"),
        (400_000, 30, "clustered"),
        (400_000, 5, "sorted"),
    ],
)
def test_sets_have_the_bytes_of_croaring_where_they_are_fewer(
    n: int, n_values: int, order: str
) -> None:
    values = rng.integers(0, n_values, n)
    if order == "sorted":
        values = np.sort(values)
    if order == "clustered":
        values = np.repeat(values[: n // 50 + 1], 50)[:n]
    codes = np.unique(values, return_inverse=True)[1]
    n_sets = int(codes.max()) + 1
    keys = np.sort(codes.astype(np.uint64) << np.uint64(32) | np.arange(n, dtype="u8"))
    expected, width = b"", row_bytes(n)
    for code in range(n_sets):
        rows = np.flatnonzero(codes == code).astype(np.uint32)
        expected += min(write_rows(rows, width), croaring(rows), key=len)
    parts, firsts = pack_sets(keys, n_sets, n)
    mixed = [
        (part, end - first)
        for part, first, end in zip(parts, firsts, [*firsts[1:], n_sets], strict=True)
        if part[0] & MIXED
    ]
    assert mixed or order == "random"
    for part, size in mixed:
        assert part[1 + (1 << (part[0] & 3)) * size :] in expected


@pytest.mark.parametrize("n", [10, 65_536, 65_537, 300_000])
@pytest.mark.parametrize("share", [0, 0.001, 0.05, 0.5, 1])
def test_rows_in_any_order(n: int, share: float) -> None:
    rows = rng.permutation(n)[: int(n * share)].astype(np.uint32)
    assert from_rows(rows, n) == BitMap(rows.tolist())


def test_ascending_rows_of_16_bits() -> None:
    assert not from_sorted_u16(b"")
    rows = np.sort(rng.permutation(65_536)[:4096]).astype("<u2")
    assert from_sorted_u16(rows.tobytes()) == BitMap(rows.tolist())


@pytest.mark.parametrize("raw", [b"", b"\0", EMPTY[:5], b"\xff" * 30])
def test_what_is_no_bitmap_is_refused(raw: bytes) -> None:
    with pytest.raises(CorruptIndexError, match="no roaring bitmap"):
        load(raw)


@pytest.mark.parametrize("n", [1, 4096, 4097, 8192, 8193, 60_000, *SIZES])
@pytest.mark.parametrize("density", [0, 0.001, 0.02, 0.06, 0.3, 0.97, 0.9995, 1])
def test_a_mask_as_a_bitmap(n: int, density: float) -> None:
    for mask in masks(n, density):
        found = from_mask(mask)
        assert found == BitMap(np.flatnonzero(mask).tolist())
        found.run_optimize()
        assert found.serialize() == croaring(np.flatnonzero(mask))


@pytest.mark.parametrize("n", [*SIZES, 255, 5_000, 6_000, 70_000])
@pytest.mark.parametrize("density", DENSITIES)
def test_a_bitmap_in_the_smaller_form(n: int, density: float) -> None:
    for mask in masks(n, density):
        rows = BitMap(np.flatnonzero(mask).tolist())
        bits = blank(1, n)[0]
        bits[: (n + 7) // 8] = np.packbits(mask, bitorder="little")
        portable = pack_all(bits[np.newaxis])[0]
        raw = or_plain(portable, bits)
        assert len(raw) <= len(portable)
        assert is_plain(raw) or raw == portable
        n_plain = 2 + len(bits.tobytes().rstrip(b"\0"))
        saves = n <= 65_536 and n_plain <= 0.75 * len(portable)
        assert len(raw) == (n_plain if saves else len(portable))
        for found in (load(raw), bitmap_of(memoryview(raw))):
            assert found == rows
        assert (dense_bits(memoryview(raw), n) == bits).all()


def test_plain_bits_beyond_the_rows_are_refused() -> None:
    for row, n_rows in ((8, 8), (15, 15), (9, 9)):
        bits = blank(1, 16)[0]
        bits[row // 8] = 1 << row % 8
        raw = PLAIN.to_bytes(2, "little") + bits[:2].tobytes()
        assert load(raw) == BitMap([row])
        with pytest.raises(CorruptIndexError, match=f"has row {row}"):
            dense_bits(memoryview(raw), n_rows)
        assert dense_bits(memoryview(raw), row + 1)[row // 8]
    with pytest.raises(CorruptIndexError, match="no roaring bitmap"):
        load(PLAIN.to_bytes(2, "little") + bytes(BITS_SIZE + 1))


def test_plain_bits_take_the_memory_of_a_container() -> None:
    mask = rng.random(6_000) < 0.5
    bits = blank(1, 6_000)[0]
    bits[:750] = np.packbits(mask, bitorder="little")
    raw = or_plain(pack_all(bits[np.newaxis])[0], bits)
    assert is_plain(raw)
    assert memory_of(raw) == BITS_SIZE
