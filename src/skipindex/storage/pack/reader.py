"""Reading packs: the directory of a blob, and its parts on demand."""

from __future__ import annotations

import json
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, Final, TypeVar, cast

import numpy as np
from crc32c import crc32c
from pyroaring import FrozenBitMap

from skipindex.errors import CorruptIndexError, IndexVersionError
from skipindex.storage.bitmaps import bitmap_of, memory_of
from skipindex.storage.cache import NOTHING, Cache, CacheEntry
from skipindex.storage.deadline import check
from skipindex.storage.file_system.byte_source import ByteSource
from skipindex.storage.file_system.store_input import Range
from skipindex.storage.pack.format import (
    CONTAINER,
    COUNTS,
    HEADER,
    MAGIC,
    MAX_U32,
    PUFFIN,
    TAIL,
    BlobEntry,
)
from skipindex.storage.parts import D, Decoded, ReadCount

P = TypeVar("P")

_GUESS: Final = 1 << 14
"""Bytes of a blob's end that are read first; most directories fit."""
_NUMBER_BYTES: Final = 40
"""Bytes that a number of a list takes."""
_BEGIN: Final = 1 << 16
"""Bytes of a blob's beginning that are read ahead; most file maps fit."""
_PART: Final = 8
"""The part of a large blob that is read instead, up to `_MOST` bytes: the maps of many
files are large."""
_MOST: Final = 1 << 19
_PER_FILE: Final = 12, 64, 800
"""Bytes that a directory has for a file: without parts of its own, with few, and with
some 50, which a payload of many KB has."""
_PER_PART: Final = 256, 32
"""Bytes of a blob, and of a file's payload, for each of the directory: most parts have
4 KB and more, and those of small files far fewer."""
_META: Final = 1 << 10
"""Bytes of a directory beside them, at most."""


def blob_offsets(source: ByteSource) -> set[int]:
    """Where every blob of a pack begins, also those that no manifest names."""
    size = len(source)
    tail = bytes(source.read(max(0, size - 12), 12))
    try:
        length, _ = struct.unpack("<iI", tail[:8])
        if tail[8:] != PUFFIN or not 0 <= length <= size - 12:
            raise CorruptIndexError("the pack has no Puffin footer at its end")
        footer = json.loads(bytes(source.read(size - 12 - length, length)))
        return {int(blob["offset"]) for blob in footer["blobs"]}
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise CorruptIndexError(f"the pack's footer cannot be read: {error}") from error


class Blob:
    """An opened blob: its directory is in memory, its parts are read when asked for."""

    def __init__(
        self, source: ByteSource, entry: BlobEntry, cache: Cache | None = None
    ) -> None:
        """Read and check the directory.

        Raises:
            CorruptIndexError: these bytes are not the blob that ``entry`` names.
            IndexVersionError: a newer library wrote them.
        """
        self.entry = entry
        self.source = source
        self.key = source, entry.offset, entry.crc
        self._cache = cache
        self._base = entry.offset
        check()
        end = self._read_end()
        is_whole = len(end) == entry.length
        begin = end if is_whole else source.read(self._base, HEADER.size)
        header = begin[: HEADER.size]
        self._check_header(header)
        raw = self._directory(header, end)
        n_files, n_parts, n_meta, _ = COUNTS.unpack_from(raw)
        expected = COUNTS.size + 4 * (3 * n_files + 1) + 16 * n_parts + n_meta
        if expected != len(raw):
            raise CorruptIndexError(f"{self._name}: directory of a wrong size")
        at = COUNTS.size
        columns = []
        for code, n in (
            ("<u4", n_files + 1),
            ("<u4", n_files),
            ("<u4", n_files),
            ("<i8", n_parts),
            ("<u4", n_parts),
            ("<u4", n_parts),
        ):
            columns.append(np.frombuffer(raw, code, n, at))
            at += columns[-1].nbytes
        self.n_rows, self.identity = columns[1], columns[2]
        self._has_parts = columns[0][1:] > columns[0][:-1]
        starts, lengths = columns[3], columns[4].astype(np.int64)
        if n_parts and starts.min() + self._base < 0:
            raise CorruptIndexError(f"{self._name}: a part begins before the pack")
        # Where a part does not follow the one before: one of them is of another blob.
        ends = starts + lengths + -lengths % 8
        self._cuts: list[int] = (np.flatnonzero(starts[1:] != ends[:-1]) + 1).tolist()
        # Looked up one at a time, where lists are several times faster than arrays.
        lists: list[list[int]] = [columns[i].tolist() for i in (0, 3, 4, 5)]
        self._first, self._start, self.lengths, self._crc = lists
        # Parts of all files are asked for at once, those of one perhaps never.
        self._whole = end if is_whole and self._first[0] else memoryview(b"")
        n_read = max(len(raw), len(self._whole))
        self.n_bytes = n_read + _NUMBER_BYTES * sum(map(len, lists))
        try:
            meta = json.loads(bytes(raw[at:]))
        except (ValueError, RecursionError) as error:
            raise CorruptIndexError(f"{self._name}: its meta is no JSON") from error
        if meta != entry.meta.to_json():
            raise CorruptIndexError(f"{self._name}: it holds another index")

    @property
    def _name(self) -> str:
        meta = self.entry.meta
        return f"index blob {meta.kind!r} of column {meta.column!r}"

    def payload_bytes(self) -> np.ndarray:
        """The size of every slot, with its share of the parts of all files.

        Parts of other blobs do not count, and a part of several files counts for the
        first of them.
        """
        parts = np.array([self._start, self.lengths], np.int64)
        # An empty part begins where the next one does.
        (places, _), firsts = np.unique(parts, axis=1, return_index=True)
        firsts = firsts[places >= 0]
        lengths = np.zeros_like(parts[1])
        lengths[firsts] = parts[1, firsts]
        ends: np.ndarray = np.concatenate([[0], np.cumsum(lengths)])
        own: np.ndarray = np.diff(ends[self._first])
        shared: np.ndarray = own + int(ends[self._first[0]]) // max(1, len(own))
        return shared

    @staticmethod
    def opening_ranges(
        entry: BlobEntry, n_files: int, *, has_shared: bool
    ) -> list[Range]:
        """Where in a pack is what opens a blob; the last one has its end.

        That is its header, and a guess of its directory.  What begins there too are the
        parts of all data files together, if it has such parts.
        """
        least, few, many = _PER_FILE
        n_begin, of_file = HEADER.size, least
        if has_shared:
            n_begin = max(_BEGIN, min(entry.length // _PART, _MOST))
        else:
            n_bytes = entry.length // max(1, n_files)
            of_file = min(many, few + n_bytes // _PER_PART[1])
        n_end = max(_GUESS, _META + of_file * n_files + entry.length // _PER_PART[0])
        n_begin, n_end = (min(n, entry.length) for n in (n_begin, n_end))
        if n_begin + n_end >= entry.length:
            return [(entry.offset, entry.length)]
        end = entry.offset + entry.length
        return [(entry.offset, n_begin), (end - n_end, n_end)]

    @staticmethod
    def directory_range(entry: BlobEntry, end: memoryview) -> Range | None:
        """Where in a pack the directory of a blob is; None if ``end`` has it.

        ``end`` are the last bytes of the blob.
        """
        if len(end) < TAIL.size:
            return None
        start, length, _ = TAIL.unpack(end[-TAIL.size :])
        is_there = start + length + TAIL.size == entry.length
        if not is_there or length + TAIL.size <= len(end):
            return None
        return entry.offset + start, length

    def ranges_of(self, slots: Iterable[int]) -> Iterator[tuple[ByteSource, Range]]:
        """Where the payloads of some data files are."""
        for slot in slots:
            if 0 <= slot < len(self.n_rows):
                yield from self._ranges(self._first[slot], self._first[slot + 1])

    def shared_range(self) -> Iterator[tuple[ByteSource, Range]]:
        """Where the parts of all data files together are."""
        yield from self._ranges(0, self._first[0])

    def _ranges(self, start: int, stop: int) -> Iterator[tuple[ByteSource, Range]]:
        for first, end in self._runs(start, stop):
            yield (
                self.source,
                (self._base + self._start[first], self._span(first, end)),
            )

    def _runs(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Parts ``start .. stop - 1``, cut where they do not follow one another."""
        if start < stop:
            yield from pairwise([start, *self._cuts_in(start, stop), stop])

    def _cuts_in(self, start: int, stop: int) -> list[int]:
        """The cuts after ``start`` and before ``stop``."""
        cuts = self._cuts
        return cuts[bisect_right(cuts, start) : bisect_left(cuts, stop)] if cuts else []

    def payload(self, slot: int, count: ReadCount) -> BlobParts | None:
        """The payload of the data file in ``slot``; None if it has no index."""
        if not 0 <= slot < len(self.n_rows):
            raise CorruptIndexError(f"{self._name}: no slot {slot}")
        first, stop = self._first[slot], self._first[slot + 1]
        return BlobParts(self, first, stop - first, count) if stop > first else None

    def shared(self, count: ReadCount) -> BlobParts:
        """The parts of all data files together."""
        return BlobParts(self, 0, self._first[0], count)

    @property
    def has_shared(self) -> bool:
        """Whether some parts are of all data files together."""
        return bool(self._first[0])

    def payload_size(self, slot: int) -> int:
        """The bytes of the payload in a slot, those of parts of other blobs too."""
        if not 0 <= slot < len(self.n_rows):
            return 0
        return sum(self.lengths[self._first[slot] : self._first[slot + 1]])

    def has_payload(self, slots: np.ndarray) -> np.ndarray:
        """For each slot, whether there is a payload of its own, or no such slot."""
        inside = self._inside(slots)
        result = ~inside
        result[inside] = self._has_parts[slots[inside]]
        return result

    def fits(
        self, slots: np.ndarray, n_rows: np.ndarray, footer_crcs: np.ndarray
    ) -> np.ndarray:
        """For each slot, whether it is of the data file with these marks.

        A slot without a payload has no rows, unless files share parts.
        """
        inside = self._inside(slots)
        if inside.all():
            result: np.ndarray = self.n_rows[slots] == (n_rows & MAX_U32)
            result &= self.identity[slots] == footer_crcs
            return result
        result = inside.copy()
        result[inside] = self.fits(slots[inside], n_rows[inside], footer_crcs[inside])
        return result

    def _inside(self, slots: np.ndarray) -> np.ndarray:
        """For each number, whether there is such a slot."""
        # A negative number is a great one without its sign.
        result: np.ndarray = slots.view(f"u{slots.itemsize}") < len(self.n_rows)
        return result

    def check_identity(self, slot: int, *, n_rows: int, footer_crc: int) -> None:
        """Raise ``CorruptIndexError`` unless ``slot`` is of that data file."""
        same_rows = self.n_rows[slot] == n_rows & MAX_U32
        if self.identity[slot] != footer_crc or not same_rows:
            raise CorruptIndexError(f"{self._name}: it is of another data file")

    def held(self, what: Hashable) -> Any:
        """What ``hold`` has cached, if it is cached still."""
        return None if self._cache is None else self._cache.get((*self.key, what))

    def hold(self, what: Hashable, made: object, n_bytes: int) -> bool:
        """Cache what was made of the blob, which takes ``n_bytes``, if there is room.

        ``what`` it is must not be a number from 0 on: those are of payloads.
        """
        cache = self._cache
        return cache is not None and cache.keep((*self.key, what), made, n_bytes)

    def get(
        self,
        form: type,
        payload: BlobParts,
        start: int,
        stop: int,
        decode: Callable[[memoryview], P],
    ) -> list[P]:
        """Parts of a payload: those that are not in the cache come in one read.

        They are parts ``start .. stop - 1``.  ``form`` is what ``decode`` makes of the
        bytes of a part, which have been checked.

        Raises:
            CorruptIndexError: there are no such parts, or one fails its crc32c.
        """
        if not 0 <= start <= stop <= payload.n_parts:
            raise CorruptIndexError(f"no part {stop - 1} (there are {payload.n_parts})")
        if start == stop:
            return []
        check()
        at, count, cache = payload.first, payload.count, self._cache
        n_bytes = self._span(at + start, at + stop)
        count.parts += stop - start
        count.n_bytes += n_bytes
        if cache is None or not cache.limit:
            return list(map(decode, self._fetch(at + start, at + stop)))
        if form not in payload.cached.forms:
            payload.cached = cache.find((*self.key, at))
        cached = cast("list[P | None]", payload.cached.forms.get(form, [])[start:stop])
        result = [part for part in cached if part is not None]
        if result:
            payload.cached.was_used = True
        if len(result) == stop - start:
            count.cached_bytes += n_bytes
            return result
        missing = [i for i, part in enumerate(cached, start) if part is None]
        first, end = (missing[0], missing[-1] + 1) if missing else (start, stop)
        raw = self._fetch(at + first, at + end)
        read = list(map(decode, raw))
        n_read = self._span(at + first, at + end)
        if form is FrozenBitMap:
            n_decoded = sum(map(memory_of, raw))
        else:
            n_decoded = getattr(read[0], "n_bytes", n_read)
        cache.put((*self.key, at), form, payload.n_parts, first, read, n_decoded)
        count.cached_bytes += n_bytes - n_read
        # Outside of first .. end - 1 all parts are cached.
        return [*result[: first - start], *read, *result[len(result) - (stop - end) :]]

    def places(self, start: int, stop: int) -> Iterator[int]:
        """Where parts ``start .. stop - 1`` begin, and then their lengths."""
        # An empty part begins where the next one does.
        return chain(self._start[start:stop], self.lengths[start:stop])

    def _span(self, start: int, stop: int) -> int:
        """Bytes from the beginning of a part to the end of another, without gaps."""
        if self._cuts_in(start, stop):
            return sum(self._span(first, end) for first, end in self._runs(start, stop))
        return self._start[stop - 1] + self.lengths[stop - 1] - self._start[start]

    def _fetch(self, start: int, stop: int) -> list[memoryview]:
        """Parts ``start .. stop - 1``, checked; those in a row come in one read."""
        parts = []
        for first, end in self._runs(start, stop):
            begin, n_bytes = self._start[first], self._span(first, end)
            if 0 <= begin <= len(self._whole) - n_bytes:
                raw = self._whole[begin : begin + n_bytes]
            else:
                raw = self.source.read(self._base + begin, n_bytes)
            for i in range(first, end):
                at = self._start[i] - begin
                part = raw[at : at + self.lengths[i]]
                if crc32c(part) != self._crc[i]:
                    raise CorruptIndexError(f"{self._name}: part {i} fails its crc32c")
                parts.append(part)
        return parts

    def _read_end(self) -> memoryview:
        """The last bytes of the blob, all of a small one."""
        length = self.entry.length
        n_bytes = min(_GUESS, length)
        end = self.source.read(self._base + length - n_bytes, n_bytes)
        if len(end) < n_bytes:
            raise CorruptIndexError(f"{self._name}: the pack is cut off")
        return end

    def _check_header(self, header: memoryview) -> None:
        if len(header) < HEADER.size:
            raise CorruptIndexError(f"{self._name}: the pack is cut off")
        magic, container, version, _ = HEADER.unpack(header)
        if magic != MAGIC:
            raise CorruptIndexError(f"{self._name}: no blob begins there")
        if container > CONTAINER:
            raise IndexVersionError(
                f"{self._name}: container version {container} is newer than ours "
                f"({CONTAINER})"
            )
        if version != self.entry.meta.version:
            raise CorruptIndexError(f"{self._name}: payload version {version}")

    def _directory(self, header: memoryview, end: memoryview) -> memoryview:
        if len(end) < HEADER.size + TAIL.size:
            raise CorruptIndexError(f"{self._name}: too short")
        start, length, crc = TAIL.unpack(end[-TAIL.size :])
        if start + length + TAIL.size != self.entry.length:
            raise CorruptIndexError(f"{self._name}: the tail names no directory")
        beyond = self.directory_range(self.entry, end)
        if beyond is None:
            raw = end[-TAIL.size - length : -TAIL.size]
        else:
            raw = self.source.read(*beyond)
        if crc32c(raw, crc32c(header)) != crc or length < COUNTS.size:
            raise CorruptIndexError(f"{self._name}: directory fails its crc32c")
        if crc != self.entry.crc:
            raise CorruptIndexError(f"{self._name}: it is another blob")
        return raw


@dataclass(slots=True)
class BlobParts:
    """The ``Parts`` of one data file's index, out of a blob.

    They begin at part ``first`` of the blob.  ``count`` adds up the cost of reads;
    ``cached`` are those parts that were cached when they were last looked for.
    """

    blob: Blob
    first: int
    n_parts: int
    count: ReadCount
    cached: CacheEntry = NOTHING

    def __len__(self) -> int:
        return self.n_parts

    def __getitem__(self, i: int) -> memoryview:
        return self._one(memoryview, i, _as_it_is)

    def places(self, start: int, stop: int) -> Hashable:
        """The blob, and where its parts are; equal parts may be stored once."""
        return self.blob, *self.blob.places(self.first + start, self.first + stop)

    def read(self, start: int, stop: int) -> list[memoryview]:
        """Parts ``start .. stop - 1`` in at most one contiguous read."""
        return self.blob.get(memoryview, self, start, stop, _as_it_is)

    def bitmap(self, i: int) -> FrozenBitMap:
        """Part ``i`` as a bitmap."""
        return self._one(FrozenBitMap, i, bitmap_of)

    def bitmaps(self, start: int, stop: int) -> list[FrozenBitMap]:
        """Parts ``start .. stop - 1`` as bitmaps, in at most one contiguous read."""
        return self.blob.get(FrozenBitMap, self, start, stop, bitmap_of)

    def decoded(self, i: int, decode: Callable[[memoryview], D]) -> D:
        """What ``decode`` makes of part ``i``, perhaps from the cache."""
        return self._one(Decoded, i, decode)

    def _one(self, form: type, i: int, decode: Callable[[memoryview], P]) -> P:
        """Read one part like ``Blob.get``, fast where it is in the cache."""
        cached = self.cached
        parts = cached.forms.get(form)
        if parts is not None and 0 <= i < self.n_parts:
            part = parts[i]
            if part is not None:
                cached.was_used = True
                count, n_bytes = self.count, self.blob.lengths[self.first + i]
                count.parts += 1
                count.n_bytes += n_bytes
                count.cached_bytes += n_bytes
                return cast("P", part)
        return self.blob.get(form, self, i, i + 1, decode)[0]


def _as_it_is(raw: memoryview) -> memoryview:
    return raw
