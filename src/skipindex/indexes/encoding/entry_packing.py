"""Packing the rows of each value into parts; ``entries`` has the format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import zstandard

from skipindex.expressions.arrays import Bits, Ints, Words
from skipindex.indexes.encoding.coding import Coding
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.indexes.encoding.entries import (
    GAPS,
    MIXED,
    SPLIT,
    UNARY,
    UNIFORM,
    Rows,
    in_unary,
    row_bytes,
    split_rows,
    write_rows,
)
from skipindex.indexes.encoding.roaring import (
    blank,
    from_sorted,
    or_plain,
    pack_all,
)
from skipindex.storage.bitmaps import RUNS

_PART_BYTES: Final = 1 << 14
_FEW_VALUES: Final = 64
"""Up to here one pass over the codes for every value beats sorting them."""
_BLOCK: Final = 1 << 20
"""Rows of the values whose parts are made together."""
_LEVEL: Final = 1
_WORTH: Final = 0.75
"""Rows are compressed if they shrink to this share."""
_COMPRESSED: Final = 3
"""How many times as many bytes rows take as by their differences, compressed, where
they are as near to each other as plain bits are short."""
_LEAST_PLAIN: Final = 1 << 9
"""Bytes of rows from which they may be plain bits: a part with a bitmap is neither
compressed nor in unary."""
_ONE_RUN: Final = np.dtype(
    [
        *[("cookie", "<u4"), ("has_runs", "u1"), ("key", "<u2"), ("card", "<u2")],
        *[("n_runs", "<u2"), ("first", "<u2"), ("others", "<u2")],
    ]
)
"""A roaring bitmap of one run in one container."""


@dataclass(frozen=True, slots=True)
class _Packing:
    """All entries before they are cut into parts.

    ``postings`` are the rows of the values, by value and row; each value begins at its
    place of ``starts``, which has one more for the end.  ``bitmaps`` are the bytes of
    the values that are written as bitmaps.
    """

    postings: Rows
    starts: Ints
    bitmaps: dict[int, bytes]


def pack_entries(
    column: EncodedColumn, coding: Coding
) -> tuple[list[bytes], list[int]]:
    """The parts of a coding of a column, and the first code of each."""
    if not coding.n_codes:
        return [], []
    if coding.n_codes <= _FEW_VALUES:
        packing = _pack_by_mask(column, row_bytes(column.n_rows))
        return _parts_of(packing, column.n_rows)
    keys = _sorted_keys(column, coding)
    return _parts_by_block(keys, coding.n_codes, column.n_rows)


def _parts_by_block(
    keys: npt.NDArray[Any], n_values: int, n_rows: int
) -> tuple[list[bytes], list[int]]:
    """Compute ``_parts_of`` for some values at a time, which takes little memory."""
    shift = keys.dtype.type(4 * keys.itemsize)
    parts: list[bytes] = []
    firsts: list[int] = []
    code, at, block = 0, 0, _BLOCK
    while code < n_values:
        last = min(at + block, len(keys)) - 1
        stop = int(keys[last] >> shift) + 1  # the value of this row is the last one
        end = len(keys)
        if stop < n_values:
            end = int(keys.searchsorted(keys.dtype.type(stop) << shift))
        some = keys[at:end] - (keys.dtype.type(code) << shift)
        counts = np.bincount((some >> shift).astype(np.int64), minlength=stop - code)
        result, first = _parts_of(_packing_of(some, counts, n_rows), n_rows)
        # The last part of a block may go on in the next one, which begins with it.
        if stop < n_values:
            if len(result) == 1:
                block *= 2
                continue
            result.pop()
            stop = code + first.pop()
            end = int(keys.searchsorted(keys.dtype.type(stop) << shift))
        parts += result
        firsts += [code + one for one in first]
        code, at, block = stop, end, _BLOCK
    return parts, firsts


def pack_sets(keys: Words, n_sets: int, n_rows: int) -> tuple[list[bytes], list[int]]:
    """The parts of any sets of rows, and the first set of each.

    ``keys`` are ``set << 32 | row``, sorted and distinct; every set has a row.  Sets
    are below ``n_sets``, and rows below ``n_rows``.
    """
    if not n_sets:
        return [], []
    counts = np.bincount((keys >> np.uint64(32)).astype(np.int64), minlength=n_sets)
    return _parts_of(_packing_of(keys, counts, n_rows), n_rows)


def _parts_of(packing: _Packing, n_rows: int) -> tuple[list[bytes], list[int]]:
    width, counts = row_bytes(n_rows), np.diff(packing.starts)
    n_values = len(counts)
    sizes, is_bitmap = counts * width, np.zeros(n_values, np.bool_)
    for i, raw in packing.bitmaps.items():
        sizes[i], is_bitmap[i] = len(raw), True
    compressor = zstandard.ZstdCompressor(level=_LEVEL)
    parts, firsts = [], []
    for start, stop in _cut(sizes):
        firsts.append(start)
        if is_bitmap[start:stop].any():
            table = np.cumsum(sizes[start:stop]) << 1 | is_bitmap[start:stop]
            entries = _mixed(packing, start, stop, width)
            parts.append(_front(MIXED, table) + entries)
            continue
        rows = packing.postings[packing.starts[start] : packing.starts[stop]]
        form, content = GAPS, _as_gaps(rows, width, compressor)
        if content is None and width > 2:
            form, content = SPLIT, split_rows(rows, n_rows)
        elif content is None:
            form, content = 0, write_rows(rows, width)
        parts.append(_front(form, counts[start:stop]) + content)
    return parts, firsts


def _pack_by_mask(column: EncodedColumn, width: int) -> _Packing:
    codes = column.codes.astype(np.uint8)  # NULL is 255, and above them all
    bits = blank(column.n_distinct, column.n_rows)
    n_bytes = (column.n_rows + 7) // 8
    for v, packed in enumerate(bits):
        packed[:n_bytes] = np.packbits(codes == v, bitorder="little")
    bitmaps, postings = {}, [np.empty(0, np.uint32)]
    counts = np.zeros(column.n_distinct, np.int64)
    for i, raw in enumerate(pack_all(bits)):
        shorter = _shorter(raw, bits[i, :n_bytes], int(column.counts[i]) * width)
        if shorter is not None:
            bitmaps[i] = shorter
        else:
            postings.append(np.flatnonzero(codes == i).astype(np.uint32))
            counts[i] = len(postings[-1])
    starts = np.concatenate(([0], np.cumsum(counts)))
    return _Packing(np.concatenate(postings), starts, bitmaps)


def _packing_of(keys: npt.NDArray[Any], counts: Ints, n_rows: int) -> _Packing:
    """Sorted keys, a value above a row in 16 or 32 bits each; ``counts`` by value."""
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    rows: Rows = keys.astype(np.uint32)
    if keys.itemsize == 4:  # the low half of a key
        rows = keys.astype(np.uint16)
    return _Packing(rows, starts, _shorter_bitmaps(rows, starts, row_bytes(n_rows)))


def _shorter(raw: bytes, bits: Bits | None, n_bytes: int) -> bytes | None:
    """A bitmap, if it takes fewer bytes than its rows do, which take ``n_bytes``."""
    shorter = raw
    if bits is not None and n_bytes >= _LEAST_PLAIN:
        shorter = or_plain(raw, bits)
    if len(raw) < n_bytes or _COMPRESSED * len(shorter) <= n_bytes:
        return shorter
    return None


def _shorter_bitmaps(rows: Rows, starts: Ints, width: int) -> dict[int, bytes]:
    """The bitmaps that take fewer bytes than the rows of their values."""
    values = np.flatnonzero(np.diff(starts))
    firsts, counts = starts[values], np.diff(starts)[values]
    begins = np.empty(len(rows), np.bool_)
    np.not_equal(rows[1:], rows[:-1] + rows.dtype.type(1), out=begins[1:])
    begins[firsts] = True
    n_runs = np.add.reduceat(begins, firsts, dtype=np.int64)
    # At least 8,208 bytes, or 11 and 2 for each run; no run is shorter than 3 rows, so
    # where hardly any rows are neighbours 16 and 2 for each row.
    sparse = counts - n_runs < 3
    least = np.where(sparse, 16 + 2 * counts, 11 + 2 * n_runs + 2 * (n_runs == 1))
    lasts = rows[firsts + counts - 1].astype(np.int64)
    is_long = (lasts >> 16 == 0) & (counts * width >= _LEAST_PLAIN)
    as_bits = np.where(is_long, _COMPRESSED * (lasts >> 3), 8208)
    may_be = np.minimum(np.minimum(least, 8208), as_bits) < counts * width
    lows = rows[firsts].astype(np.uint32)
    within_one = lows >> 16 == (lows + (counts - 1).astype(np.uint32)) >> 16
    is_run = may_be & (n_runs == 1) & within_one
    table = np.empty(int(is_run.sum()), _ONE_RUN)
    table["cookie"], table["has_runs"], table["n_runs"] = RUNS, 1, 1
    table["key"], table["first"] = lows[is_run] >> 16, lows[is_run]
    table["card"] = table["others"] = counts[is_run] - 1
    raw, size = table.tobytes(), table.itemsize
    result = {
        value: raw[size * i : size * (i + 1)]
        for i, value in enumerate(values[is_run].tolist())
    }
    for i in np.flatnonzero(may_be & ~is_run).tolist():
        some = rows[firsts[i] : firsts[i] + counts[i]]
        bitmap = from_sorted(some)
        bitmap.run_optimize()
        bits = None
        if is_long[i]:
            mask = np.zeros(int(lasts[i]) + 1, np.bool_)
            mask[some] = True
            bits = np.packbits(mask, bitorder="little")
        shorter = _shorter(bitmap.serialize(), bits, len(some) * width)
        if shorter is not None:
            result[int(values[i])] = shorter
    return result


def _sorted_keys(column: EncodedColumn, coding: Coding) -> npt.NDArray[Any]:
    """``code << 16 | row`` or ``code << 32 | row`` of all values, ascending."""
    codes = coding.codes
    row = np.arange(column.n_rows, dtype=np.uint32)
    if column.validity is not None:
        codes, row = codes[column.validity], row[column.validity]
    keys: npt.NDArray[Any]
    # numpy sorts u32 at three times the speed
    if max(column.n_rows, coding.n_codes) <= 1 << 16:
        keys = codes << np.uint32(16)
    else:
        keys = codes.astype(np.uint64)
        keys <<= np.uint64(32)
    keys |= row
    keys.sort()
    return keys


def _cut(sizes: Ints) -> Iterator[tuple[int, int]]:
    """Values that share a part, as ``start .. stop - 1``."""
    before = np.concatenate(([0], np.cumsum(sizes)))
    start, n = 0, len(sizes)
    while start < n:
        full = int(before.searchsorted(before[start] + _PART_BYTES, side="right"))
        stop = min(n, max(full - 1, start + 1))
        yield start, stop
        start = stop


def _front(form: int, table: Ints) -> bytes:
    """The form and the table of a part."""
    bits = b""
    if not form & MIXED and (table == table[0]).all():
        form, table = form | UNIFORM, table[:1]
    elif not form & MIXED and int(table.sum()) + len(table) < 8 * len(table):
        form, bits, table = form | UNARY, in_unary(table), table.sum(keepdims=True)
    log_size = next(w for w in range(3) if int(table.max()) < 1 << (8 << w))
    numbers = table.astype(f"<u{1 << log_size}").tobytes()
    return bytes([form | log_size]) + numbers + bits


def _mixed(packing: _Packing, start: int, stop: int, width: int) -> bytes:
    starts = packing.starts
    return b"".join(
        packing.bitmaps[i]
        if i in packing.bitmaps
        else write_rows(packing.postings[starts[i] : starts[i + 1]], width)
        for i in range(start, stop)
    )


def _as_gaps(
    rows: Rows, width: int, compressor: zstandard.ZstdCompressor
) -> bytes | None:
    """The rows by their differences, where these compress well."""
    dtype = "<u2" if width == 2 else "<u4"
    gaps = np.diff(rows.astype(dtype), prepend=np.zeros(1, dtype))
    if 2 * int(np.count_nonzero(gaps < 256)) < len(gaps):
        return None
    frame: bytes = compressor.compress(gaps.tobytes())
    return frame if len(frame) <= _WORTH * len(rows) * width else None
