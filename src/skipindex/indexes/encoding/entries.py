"""The rows of every value, packed into parts of about 16 KB.

A value's *entry* is the shorter of its rows as such (``postings``: ascending, in 2
bytes, 3 or 4 in files of more than 2**16 or 2**24 rows) and a portable roaring bitmap.
So a value of one row costs 2 to 4 bytes, one of half the file or in long runs a few
bytes a container.  Entries follow one another in the order of their codes and are not
split; an entry of more than 16 KB is a part of its own.  A part::

    u8    form: bits 0-1, log2 of the bytes of a number in the table
                bit 2, one number stands for all entries
                bit 3, the rows are one zstd frame: the first, then each less the one
                before, modulo 2**16 where they have 2 bytes, else 2**32
                bit 4, an entry is a bitmap
    table for every entry its number of rows; with bit 4, its end in bytes << 1, and
          1 if it is a bitmap
    ..    the entries
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import zstandard

from skipindex.errors import CorruptIndexError
from skipindex.expressions.arrays import Ints
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.indexes.encoding.postings import pack_postings
from skipindex.indexes.encoding.roaring import blank, pack_all

PART_BYTES: Final = 1 << 14
_FEW_VALUES: Final = 64
"""Up to here one pass over the codes for every value beats sorting them."""
_UNIFORM: Final = 4
_GAPS: Final = 8
_MIXED: Final = 16
_LEVEL: Final = 1
_WORTH: Final = 0.75
_MAX_RAW: Final = 1 << 26

_Rows: TypeAlias = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]


def row_bytes(n_rows: int) -> int:
    """The bytes of a row in the postings of a file."""
    return 2 if n_rows <= 1 << 16 else 3 if n_rows <= 1 << 24 else 4


def _write_rows(rows: _Rows, width: int) -> bytes:
    if width == 3:
        return rows.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :3].tobytes()
    return rows.astype(f"<u{width}").tobytes()


def read_rows(raw: memoryview, width: int) -> _Rows:
    """The rows of postings of ``width`` bytes each."""
    if width != 3:
        return np.frombuffer(raw, f"<u{width}")
    wide = np.zeros((len(raw) // 3, 4), np.uint8)
    wide[:, :3] = np.frombuffer(raw, np.uint8).reshape(-1, 3)
    return wide.view("<u4").reshape(-1)


@dataclass(frozen=True, slots=True)
class Entries:
    """The rows of the codes of one part, as a reader finds them.

    Args:
        form: of the part.
        table: ends of entries, in rows or (with bit 4) in bytes << 1 and a flag; the
            number of rows if all are alike.
        data: the entries.
        width: the bytes of a row in postings.
    """

    form: int
    table: npt.NDArray[Any]
    data: memoryview
    width: int

    def take(self, start: int, stop: int) -> tuple[list[memoryview], list[memoryview]]:
        """Bytes of postings, and of bitmaps, of the entries ``start .. stop - 1``."""
        taken: tuple[list[memoryview], list[memoryview]] = [], []
        if not self.form & _MIXED:
            at, end = self._rows_before(start), self._rows_before(stop)
            at, end = at * self.width, end * self.width
            taken[0].append(self.data[at:end])
        else:
            at = end = int(self.table[start - 1]) >> 1 if start else 0
            for number in self.table[start:stop].tolist():
                end = number >> 1
                taken[number & 1].append(self.data[at:end])
                at = end
        if end > len(self.data):
            raise CorruptIndexError(
                f"a part has {len(self.data)} bytes of entries, and its table says "
                f"at least {end}"
            )
        return taken

    @property
    def n_bytes(self) -> int:
        """About what it takes in memory."""
        return len(self.data) + self.table.nbytes

    def _rows_before(self, entry: int) -> int:
        if self.form & _UNIFORM:
            return int(self.table[0]) * entry
        return int(self.table[entry - 1]) if entry else 0


def read_entries(raw: memoryview, n: int, width: int) -> Entries:
    """The ``n`` entries of a part, whose postings have rows of ``width`` bytes.

    Raises:
        CorruptIndexError: the part does not have them.
    """
    form = raw[0] if len(raw) else 0xFF
    size, n_numbers = 1 << (form & 3), 1 if form & _UNIFORM else n
    head = 1 + size * n_numbers
    if form >> 5 or size > 4 or len(raw) < head:
        raise CorruptIndexError(f"a part of {len(raw)} bytes has no {n} entries")
    table: npt.NDArray[Any] = np.frombuffer(raw, f"<u{size}", n_numbers, 1)
    if not form & (_MIXED | _UNIFORM):
        table = np.add.accumulate(table, dtype=np.int64)
    data = raw[head:]
    if form & _GAPS:
        data = _without_gaps(data, width)
    return Entries(form, table, data, width)


def _without_gaps(frame: memoryview, width: int) -> memoryview:
    dtype = np.dtype("<u2" if width == 2 else "<u4")
    try:
        if not 0 < zstandard.frame_content_size(frame) < _MAX_RAW:
            raise CorruptIndexError("a part does not say how many rows it has")
        raw = zstandard.ZstdDecompressor().decompress(frame)
    except (zstandard.ZstdError, MemoryError) as error:
        raise CorruptIndexError(f"a part is damaged ({error})") from error
    rows = np.cumsum(np.frombuffer(raw, dtype), dtype=dtype)
    return memoryview(_write_rows(rows, width))


@dataclass(frozen=True, slots=True)
class _Packing:
    """All entries before they are cut into parts.

    Args:
        postings: the rows of the values, by value and row.
        starts: where each value begins in ``postings``; one more for the end.
        bitmaps: the bytes of the values that are written as bitmaps.
    """

    postings: _Rows
    starts: Ints
    bitmaps: dict[int, bytes]


def pack_entries(column: EncodedColumn) -> tuple[list[bytes], list[int]]:
    """The parts, and the first code of each."""
    n_values = column.n_distinct
    if not n_values:
        return [], []
    width = row_bytes(column.n_rows)
    if n_values <= _FEW_VALUES:
        packing = _pack_by_mask(column, width)
    else:
        packing = _packing_of(_sorted_keys(column), column.counts, width)
    return _parts_of(packing, width)


def pack_sets(
    keys: npt.NDArray[np.uint64], n_sets: int, n_rows: int
) -> tuple[list[bytes], list[int]]:
    """The parts of any sets of rows, and the first set of each.

    Args:
        keys: ``set << 32 | row``, sorted and distinct; every set has a row.
        n_sets: sets are below this.
        n_rows: rows are below this.
    """
    if not n_sets:
        return [], []
    counts = np.bincount((keys >> np.uint64(32)).astype(np.int64), minlength=n_sets)
    width = row_bytes(n_rows)
    return _parts_of(_packing_of(keys, counts, width), width)


def _parts_of(packing: _Packing, width: int) -> tuple[list[bytes], list[int]]:
    counts = np.diff(packing.starts)
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
            parts.append(_front(_MIXED, table) + entries)
            continue
        head = _front(0, counts[start:stop])
        rows = packing.postings[packing.starts[start] : packing.starts[stop]]
        frame = _as_gaps(rows, width, compressor)
        if frame is None:
            parts.append(head + _write_rows(rows, width))
        else:
            parts.append(bytes([head[0] | _GAPS]) + head[1:] + frame)
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
        if len(raw) < int(column.counts[i]) * width:
            bitmaps[i] = raw
        else:
            postings.append(np.flatnonzero(codes == i).astype(np.uint32))
            counts[i] = len(postings[-1])
    starts = np.concatenate(([0], np.cumsum(counts)))
    return _Packing(np.concatenate(postings), starts, bitmaps)


def _packing_of(keys: npt.NDArray[Any], counts: Ints, width: int) -> _Packing:
    """Sorted keys, a value above a row in 16 or 32 bits each; ``counts`` by value."""
    starts = np.concatenate(([0], np.cumsum(counts)))
    rows: _Rows = keys.astype(np.uint32)
    if keys.itemsize == 4:  # the low half of a key
        rows = keys.astype(np.uint16)
    bitmaps: dict[int, bytes] = {}
    candidates = _may_be_shorter(counts, starts, rows, width)
    if candidates.any():
        chosen = keys[np.repeat(candidates, counts)]
        if chosen.itemsize == 4:
            high = (chosen >> np.uint32(16)).astype(np.uint64) << np.uint64(32)
            chosen = high | (chosen & np.uint32(0xFFFF))
        packed = pack_postings(chosen, len(candidates))
        shorter = candidates & (packed.lengths < counts * width)
        blob = packed.blob.data
        for i in np.flatnonzero(shorter).tolist():
            at = int(packed.offsets[i])
            bitmaps[i] = bytes(blob[at : at + int(packed.lengths[i])])
    return _Packing(rows, starts, bitmaps)


def _may_be_shorter(
    counts: Ints, starts: Ints, rows: _Rows, width: int
) -> npt.NDArray[np.bool_]:
    """Which values a roaring bitmap could hold in fewer bytes than postings.

    A bitmap has 8,208 bytes, or at least 11 and 2 for every run of rows.
    """
    begins = np.empty(len(rows), np.bool_)
    np.not_equal(rows[1:], rows[:-1] + rows.dtype.type(1), out=begins[1:])
    begins[starts[:-1]] = True
    n_runs = np.add.reduceat(begins, starts[:-1], dtype=np.int64)
    least = np.minimum(8208, 11 + 2 * n_runs)
    fewer: npt.NDArray[np.bool_] = least < counts * width
    return fewer


def _sorted_keys(column: EncodedColumn) -> npt.NDArray[Any]:
    """``code << 16 | row`` or ``code << 32 | row`` of all values, ascending."""
    codes = column.codes
    row = np.arange(column.n_rows, dtype=np.uint32)
    if column.validity is not None:
        codes, row = codes[column.validity], row[column.validity]
    keys: npt.NDArray[Any]
    if column.n_rows <= 1 << 16:  # numpy sorts u32 at three times the speed
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
        full = int(before.searchsorted(before[start] + PART_BYTES, side="right"))
        stop = min(n, max(full - 1, start + 1))
        yield start, stop
        start = stop


def _front(form: int, table: Ints) -> bytes:
    """The form and the table of a part."""
    if not form & _MIXED and (table == table[0]).all():
        form, table = form | _UNIFORM, table[:1]
    log_size = next(w for w in range(3) if int(table.max()) < 1 << (8 << w))
    return bytes([form | log_size]) + table.astype(f"<u{1 << log_size}").tobytes()


def _mixed(packing: _Packing, start: int, stop: int, width: int) -> bytes:
    starts = packing.starts
    return b"".join(
        packing.bitmaps[i]
        if i in packing.bitmaps
        else _write_rows(packing.postings[starts[i] : starts[i + 1]], width)
        for i in range(start, stop)
    )


def _as_gaps(
    rows: _Rows, width: int, compressor: zstandard.ZstdCompressor
) -> bytes | None:
    """The rows by their differences, where these compress well."""
    dtype = "<u2" if width == 2 else "<u4"
    gaps = np.diff(rows.astype(dtype), prepend=np.zeros(1, dtype))
    if 2 * int(np.count_nonzero(gaps < 256)) < len(gaps):
        return None
    frame: bytes = compressor.compress(gaps.tobytes())
    return frame if len(frame) <= _WORTH * len(rows) * width else None


def part_of(firsts: Sequence[int], code: int) -> int:
    """The part that has the entry of ``code``."""
    return bisect_right(firsts, code) - 1
