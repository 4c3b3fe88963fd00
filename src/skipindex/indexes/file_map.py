"""File maps: which data files of a pack hold a value, without opening indexes.

One map stands for a column of all data files of a pack.  It is built with every index
with row positions, from the same values, and only ever says "no row of this file has
such a value", or, where it knows single values, "some row has".  Few distinct values
are stored one by one.  Many are put into bins of about equally many values, into as
many bins as make a look-up read the fewest bytes.  No map is written if nearly all
files are in nearly all bins.

Above the sets of files of single codes are those of 16 neighbours, of 256 and so on, so
any range unites at most 30 sets a level.

The parts, version 2, which are of all data files of the blob together::

    part 0          u8   version
                    u8   form: bit 1, values are bytes; bit 2, codes are bins
                    u8   t, length of the domain's tag
                    u8   v, the number of levels
                    u32  f, the number of files
                    u32  n, the number of codes
                    u32  c, the number of dictionary chunks, which are parts 1 .. c
                    t    the domain's tag
                    ..   one bit a file, the lowest first: the map speaks of it
                    ..   the codes (``dictionary``): the values, or the least of a bin
                    u32  p, the number of parts of a level, and the first set of each,
                         for every level
    parts 1 .. c    dictionary chunks
    then            the sets of slots of every level (``entries``)
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipindex.errors import CorruptIndexError
from skipindex.expressions.arrays import Ints, Mask, Words, starts
from skipindex.expressions.atoms import (
    Atom,
    OneOf,
    Range,
    Value,
    Values,
    places_in,
    successor,
)
from skipindex.expressions.domain import Domain
from skipindex.indexes.encoding.coding import dictionary
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.indexes.encoding.dictionary import Codebook, open_codebook
from skipindex.indexes.encoding.entries import (
    Entries,
    EntryParts,
)
from skipindex.indexes.encoding.entry_packing import pack_sets
from skipindex.indexes.encoding.header import (
    BYTES,
    Cursor,
    Head,
    check_tag,
    check_version,
)
from skipindex.indexes.encoding.ranks import Distinct, rank_bytes, rank_ints, taken
from skipindex.indexes.positional import DAMAGE, Interval, intervals_of, raise_damage
from skipindex.storage.parts import Parts

FILE_MAP: Final = "file_map"
"""The kind of its blobs; no spec asks for it, as it is no index of a file."""
VERSION: Final = 2

_HEAD: Final = struct.Struct("<BBBBIII")
_BINS: Final = 4
_FAN_BITS: Final = 4
_LOOK: Final = 32
"""Sets between two looks whether all files are found."""
MAX_PER_FILE: Final = 4096
"""More values of a file than this are stored as this number of intervals."""
_MAX_BYTES: Final = 1 << 20
"""Values of a file of more bytes than this are in no map, as they are in memory until
the pack is written."""
_BINS_TRIED: Final = 1 << 10, 1 << 12, 1 << 14
"""Bins of a map.  More of them leave fewer files of a look-up, and take more bytes."""
_MOST_KEYS: Final = 1 << 22
"""Bins of all files together up to which more bins are tried."""
_FULL: Final = 0.8
"""If bins hold this share of the files on average, no map is written."""
_LEAST_BYTES: Final = 1 << 16
_BYTES_PER_FILE: Final = 256
_SHARE: Final = 16
"""A map takes up to 64 KB and 256 bytes a file, or one byte for this number of bytes
of the indexes beside it."""


@dataclass(frozen=True, slots=True)
class ValueSpans:
    """The values of one file: each is in one of the spans ``lows[i] .. highs[i]``."""

    lows: Distinct
    highs: Distinct

    @classmethod
    def of(cls, column: EncodedColumn) -> ValueSpans | None:
        """The values of a column: one by one, if they are few; None if too long."""
        distinct = column.distinct
        n = len(distinct)
        if n <= MAX_PER_FILE:
            return cls(distinct, distinct) if distinct.nbytes <= _MAX_BYTES else None
        if isinstance(distinct, np.ndarray):
            # Cut at the widest gaps.  As unsigned numbers: they may exceed int64.
            gaps = distinct[1:].view(np.uint64) - distinct[:-1].view(np.uint64)
            widest = np.argpartition(gaps, n - MAX_PER_FILE)[n - MAX_PER_FILE :]
            begins = np.append(0, np.sort(widest) + 1)
        else:
            begins = np.arange(0, n, -(-n // MAX_PER_FILE))
        ends = np.append(begins[1:], n) - 1
        lows, highs = taken(distinct, begins), taken(distinct, ends)
        is_short = lows.nbytes + highs.nbytes <= _MAX_BYTES
        return cls(lows, highs) if is_short else None

    @classmethod
    def single_values(
        cls, values: Sequence[Value] | Ints, *, is_bytes: bool
    ) -> ValueSpans:
        """Each of some values, which ascend."""
        # By the domain and not by the values: a column of NULLs has none.
        dtype = pa.large_binary()
        distinct = pa.array(values, dtype) if is_bytes else np.array(values, np.int64)
        return cls(distinct, distinct)

    def __len__(self) -> int:
        return len(self.lows)

    @property
    def single(self) -> bool:
        """Whether every span is one value."""
        return self.lows is self.highs


def build_file_map(
    files: Sequence[ValueSpans | None], domain: Domain, *, n_index_bytes: int
) -> list[bytes] | None:
    """The parts of the map of some files, or None if it does not pay for its bytes.

    ``files`` has the values of every slot, None if the map is to say nothing of it, and
    ``n_index_bytes`` is of the indexes of the column in the pack.
    """
    spans = [(slot, s) for slot, s in enumerate(files) if s is not None]
    if not spans:
        return None
    least = _LEAST_BYTES + _BYTES_PER_FILE * len(spans)
    budget = max(least, n_index_bytes // _SHARE)
    slots = np.repeat([slot for slot, _ in spans], [len(s) for _, s in spans])
    slots = slots.astype(np.uint64)
    if all(s.single for _, s in spans):
        lows, distinct = _rank([s.lows for _, s in spans], domain)
        keys = np.sort(lows.astype(np.uint64) << np.uint64(32) | slots)
        parts = _written(files, domain, distinct, keys, form=0)
        if sum(map(len, parts)) <= budget:
            return parts
    best, least_read = None, math.inf
    for keys, distinct in _binned([s for _, s in spans], slots, domain):
        share = len(keys) / (len(distinct) * len(spans))
        if share <= _FULL:
            parts = _written(files, domain, distinct, keys, form=_BINS)
            n_bytes = sum(map(len, parts))
            # What a look-up of one value reads at most: the map, and what it leaves.
            n_read = n_bytes + share * n_index_bytes
            if n_bytes > budget or n_read >= least_read:
                break
            best, least_read = parts, n_read
            if share * n_index_bytes <= n_bytes:
                break
    return best


def _rank(pieces: Sequence[Distinct], domain: Domain) -> tuple[Ints, Distinct]:
    """The ranks of all values, and what they are ranks of."""
    if domain.is_bytes:
        codes, distinct = rank_bytes(pa.concat_arrays(list(pieces)))
    else:
        codes, distinct = rank_ints(np.concatenate(list(pieces)))
    return codes.astype(np.int64), distinct


def _binned(
    spans: Sequence[ValueSpans], slots: Words, domain: Domain
) -> Iterator[tuple[Words, Distinct]]:
    """Keys of the bins that spans touch, and their least values; of more and more."""
    pieces = [s.lows for s in spans] + [s.highs for s in spans]
    ranks, distinct = _rank(pieces, domain)
    lows, highs = ranks[: len(slots)], ranks[len(slots) :]
    ordered = np.sort(lows)
    for n_bins in _BINS_TRIED:
        cuts = ordered[:: max(1, -(-len(lows) // n_bins))]
        cuts = cuts[starts(cuts)]
        first = cuts.searchsorted(lows, side="right") - 1
        last = cuts.searchsorted(highs, side="right") - 1
        width = last - first + 1
        if n_bins > _BINS_TRIED[0] and width.sum() > _MOST_KEYS:
            return
        within = np.arange(int(width.sum())) - np.repeat(
            np.cumsum(width) - width, width
        )
        bins = (np.repeat(first, width) + within).astype(np.uint64)
        keys = np.sort(bins << np.uint64(32) | np.repeat(slots, width))
        yield keys[starts(keys)], taken(distinct, cuts)
        if len(lows) <= n_bins:
            return  # each value is in a bin of its own


def _written(
    files: Sequence[ValueSpans | None],
    domain: Domain,
    distinct: Distinct,
    keys: Words,
    *,
    form: int,
) -> list[bytes]:
    text_form, book_head, chunks = dictionary(distinct)
    n_codes = len(distinct)
    tail, sets, n_levels = b"", [], 0
    while n_codes:
        packed, firsts = pack_sets(keys, n_codes, len(files))
        tail += np.array([len(firsts), *firsts], "<u4").tobytes()
        sets += packed
        n_levels += 1
        if n_codes <= 1 << _FAN_BITS:
            break
        n_codes = -(-n_codes >> _FAN_BITS)
        codes = keys >> np.uint64(32 + _FAN_BITS) << np.uint64(32)
        keys = np.sort(codes | keys & np.uint64(0xFFFF_FFFF))
        keys = keys[starts(keys)]
    tag = domain.tag.encode()
    covered = np.packbits([s is not None for s in files], bitorder="little")
    head = _HEAD.pack(
        VERSION,
        form | text_form,
        len(tag),
        n_levels,
        len(files),
        len(distinct),
        len(chunks),
    )
    return [head + tag + covered.tobytes() + book_head + tail, *chunks, *sets]


@dataclass(frozen=True, slots=True)
class FileMap:
    """The map of one column of the data files of a pack.

    ``covered`` are the slots that it knows.  If it is ``binned``, codes are bins of
    values.  ``book`` is what the codes mean, and ``levels`` where the sets of each
    level are.
    """

    covered: Mask
    is_bytes: bool
    binned: bool
    book: Codebook
    levels: Sequence[EntryParts]
    parts: Parts

    @classmethod
    def open(cls, parts: Parts, domain: Domain, n_files: int) -> FileMap:
        """Read part 0.

        Raises:
            CorruptIndexError: it is not a map of this column and pack.
            IndexVersionError: a newer library wrote it.
        """
        if not len(parts):
            raise CorruptIndexError("a file map has no part")
        raw = parts[0]
        check_version(raw, VERSION, FILE_MAP)
        cursor = Cursor(raw)
        version, form, n_tag, n_levels, result, n_codes, n_chunks = cursor.unpack(_HEAD)
        check_tag(cursor.bytes(n_tag), domain, FILE_MAP)
        is_bytes = BYTES if domain.is_bytes else 0
        if result != n_files or form & ~_BINS != is_bytes:
            raise CorruptIndexError(
                f"a file map of form {form} and {result} files is not of {n_files}"
            )
        bits = np.frombuffer(cursor.bytes((n_files + 7) // 8), np.uint8)
        covered = np.unpackbits(bits, count=n_files, bitorder="little").view(np.bool_)
        head = Head(version, is_bytes, 0, n_files, 0, n_codes, n_chunks)
        book = open_codebook(head, cursor, parts)
        levels, at, n_sets = [], 1 + n_chunks, n_codes
        for _ in range(n_levels):
            level = EntryParts.open(cursor, n_codes=n_sets, at=at, n_rows=n_files)
            levels.append(level)
            at, n_sets = at + len(level), -(-n_sets >> _FAN_BITS)
        cursor.end()
        if at != len(parts) or bool(levels) != bool(n_codes):
            raise CorruptIndexError(
                f"a file map has {len(parts)} parts, and its header says {at}"
            )
        return cls(covered, bool(is_bytes), bool(form & _BINS), book, levels, parts)

    def ask(self, atom: Atom) -> tuple[Mask, Mask] | None:
        """The slots where no row is ruled out, and those where some row is TRUE.

        None is "unknown".  Slots that are not ``covered`` are in neither.

        Raises:
            CorruptIndexError: a part is damaged.
        """
        if not isinstance(atom, Range | OneOf):
            return None
        result = np.zeros(len(self.covered), np.bool_)
        try:
            for i, piece in enumerate(self._pieces(atom)):
                if i % _LOOK == _LOOK - 1 and result[self.covered].all():
                    break  # the other values of a list are in the same files
                for slots in _slots(*piece):
                    self.parts.count.bitmaps += 1
                    result[slots] = True
        except DAMAGE as error:
            raise_damage("the file map", error, atom.column)
        result &= self.covered
        return result, np.zeros_like(result) if self.binned else result

    def _pieces(self, atom: Range | OneOf) -> Iterator[tuple[Entries, int, int]]:
        """Entries with all sets of a condition's codes, and which of them."""
        sets: dict[int, list[Interval]] = {}
        for interval in self._intervals(atom):
            for level, some in _cover(interval, len(self.levels)):
                sets.setdefault(level, []).append(some)
        for level, intervals in sorted(sets.items(), reverse=True):
            yield from self.levels[level].among(self.parts, intervals)

    def spans(self) -> list[ValueSpans | None]:
        """What the map knows of every slot; None where it knows nothing.

        Bins of byte strings have no greatest value, so a map of them knows nothing.

        Raises:
            CorruptIndexError: a part is damaged.
        """
        if self.binned and self.is_bytes:
            return [None] * len(self.covered)
        values = self.book.values(0, self.book.n_codes)
        codes: list[list[int]] = [[] for _ in self.covered]
        try:
            for code, slots in enumerate(self._single_sets()):
                for slot in slots:
                    codes[slot].append(code)
        except DAMAGE as error:
            raise_damage("a file map", error)
        return [
            self._spans_of(own, values) if covered else None
            for own, covered in zip(codes, self.covered.tolist(), strict=True)
        ]

    def _single_sets(self) -> Iterator[list[int]]:
        """The slots of every code, in the order of the codes."""
        for level in self.levels[:1]:
            for entries, start, stop in level.among(self.parts, [(0, level.n_codes)]):
                for i in range(start, stop):
                    (slots,) = _slots(entries, i, i + 1)
                    yield slots.tolist()

    def _spans_of(self, codes: Sequence[int], values: Sequence[Value]) -> ValueSpans:
        lows = [values[code] for code in codes]
        spans = ValueSpans.single_values(lows, is_bytes=self.is_bytes)
        if not self.binned:
            return spans
        above = np.append(np.array(values, np.int64)[1:] - 1, np.iinfo(np.int64).max)
        return ValueSpans(spans.lows, above[np.array(codes, np.int64)])

    def _intervals(self, atom: Range | OneOf) -> list[Interval]:
        """The codes that a matching value can have."""
        if isinstance(atom, OneOf):
            if not self.binned:
                return intervals_of(self.book.find_all(atom.values))
            return intervals_of(self._bins_of(atom.values))
        if not self.binned:
            start, stop = self.book.locate(atom.low, atom.high)
        else:
            # <--- [ bin  low  ) [ bin ) [ bin  high ) --->
            start = 0 if atom.low is None else max(0, self._bin(atom.low))
            stop = self.book.locate(None, atom.high)[1]
        return [(start, stop)] if start < stop else []

    def _bins_of(self, values: Values) -> list[int]:
        """The bins of a list, ascending: values or bins are looked up, the fewer."""
        if len(values) < self.book.n_codes:
            return sorted({self._bin(value) for value in values} - {-1})
        least = self.book.values(0, self.book.n_codes)
        places = [*places_in(values, least), len(values)]
        return [i for i, (at, end) in enumerate(pairwise(places)) if at < end]

    def _bin(self, value: Value) -> int:
        """The bin of ``value``, or -1 below all of them."""
        return self.book.locate(None, successor(value))[1] - 1


def _slots(
    entries: Entries, start: int, stop: int
) -> Iterator[npt.NDArray[np.unsignedinteger]]:
    """The slots in the sets ``start .. stop - 1``, some at a time."""
    lists, bitmaps = entries.take(start, stop)
    yield from lists
    for bitmap in bitmaps:
        yield np.frombuffer(bitmap.to_array(), np.uint32)


def _cover(interval: Interval, n_levels: int) -> Iterator[tuple[int, Interval]]:
    """Intervals of sets, by level, whose codes are together those of the interval."""
    # Only the ends are probed in detail, as in dyadic ranges, with a fan of 16.
    start, stop = interval
    for level in range(n_levels):
        up = -(-start >> _FAN_BITS), stop >> _FAN_BITS
        if level == n_levels - 1 or up[0] >= up[1]:
            yield level, (start, stop)
            return
        if start < up[0] << _FAN_BITS:
            yield level, (start, up[0] << _FAN_BITS)
        if up[1] << _FAN_BITS < stop:
            yield level, (up[1] << _FAN_BITS, stop)
        start, stop = up
