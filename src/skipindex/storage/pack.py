r"""The pack: one immutable file with the index payloads of many data files.

Outside it is a Puffin file (Apache Iceberg's Puffin spec, version 1) with one
blob for every column and spec::

    "PFA1" | blob | blob | … | "PFA1" | JSON | i32 length | u32 flags = 0 | "PFA1"

A blob is ours, little-endian, 8-byte aligned, and needs nothing of the JSON::

    header    "SKIX" | u16 container = 1 | u16 payload version | u64 zero
    parts     part | padding to 8 | part | …
    directory u32 n_files | u32 n_parts | u32 length of meta | u32 zero
              u32 first_part[n_files + 1]    parts of file s: first[s] .. first[s+1],
                                             those before first[0] are of all files
              u32 n_rows[n_files]            modulo 2^32
              u32 identity[n_files]          crc32c of each data file's footer
              u64 start[n_parts]             from the beginning of the blob
              u32 length[n_parts]
              u32 crc32c[n_parts]
              meta: JSON with kind, column, domain and spec
    tail      u64 directory start | u32 directory length | u32 directory crc32c

A reader takes the tail, then the directory (crc32c over all of it and over the
header), then only the parts that a question needs, each with its own crc32c.  The
manifest knows the directory's crc32c too, so no whole blob is taken for another.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, cast

import numpy as np
from crc32c import crc32c
from pyroaring import FrozenBitMap

from skipindex.errors import CorruptIndexError, IndexVersionError
from skipindex.storage.file_system.location import ByteSource
from skipindex.storage.part_cache import Part, PartCache, PayloadKey
from skipindex.storage.parts import D, Decoded, ReadCount, bitmap_of

CONTAINER: Final = 1
_PUFFIN: Final = b"PFA1"
_MAGIC: Final = b"SKIX"
_HEADER: Final = struct.Struct("<4sHHQ")
_COUNTS: Final = struct.Struct("<IIII")
_TAIL: Final = struct.Struct("<QII")
_MAX_U32: Final = (1 << 32) - 1
_GUESS: Final = 1 << 14
"""How much of a blob's end is read first; most directories fit."""


@dataclass(frozen=True, slots=True)
class BlobMeta:
    """What a blob holds; written in it, and checked when it is opened."""

    kind: str
    version: int
    column: str
    domain: str
    spec: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """All but the version, which stands in the header."""
        return {
            "kind": self.kind,
            "column": self.column,
            "domain": self.domain,
            "spec": self.spec,
        }


@dataclass(frozen=True, slots=True)
class BlobEntry:
    """Where a blob lies in its pack, and which one it is.

    Args:
        meta: what it holds.
        offset: from the beginning of the pack.
        length: in bytes.
        crc: of the directory, which in turn vouches for every part.
    """

    meta: BlobMeta
    offset: int
    length: int
    crc: int


@dataclass(slots=True)
class BlobBuilder:
    """Collects the payloads of one column and spec, one data file after another.

    Args:
        meta: what the blob holds.
        shared: parts that are of all data files together.
    """

    meta: BlobMeta
    shared: list[bytes] = field(default_factory=list)
    _first: list[int] = field(default_factory=lambda: [0])
    _rows: list[int] = field(default_factory=list)
    _identity: list[int] = field(default_factory=list)
    _parts: list[bytes] = field(default_factory=list)

    def add(self, parts: list[bytes], *, n_rows: int, identity: int) -> None:
        """Append the payload of the next data file; no parts means no index."""
        self._parts.extend(parts)
        self._first.append(len(self._parts))
        self._rows.append(n_rows & _MAX_U32)
        self._identity.append(identity)

    def payloads(self) -> list[list[bytes]]:
        """The parts of every data file."""
        return [self._parts[a:b] for a, b in pairwise(self._first)]

    def marks(self) -> list[tuple[int, int]]:
        """The row count, modulo 2^32, and the identity of every data file."""
        return list(zip(self._rows, self._identity, strict=True))

    @property
    def n_bytes(self) -> int:
        """The size of all parts so far."""
        return sum(map(len, self.shared)) + sum(map(len, self._parts))

    def finish(self) -> bytes:
        """The blob."""
        return b"".join(self.chunks())

    def chunks(self) -> Iterator[bytes]:
        """The bytes of the blob, piece by piece; the last one ends with the tail."""
        header = _HEADER.pack(_MAGIC, CONTAINER, self.meta.version, 0)
        yield header
        parts = [*self.shared, *self._parts]
        rows = [
            n_rows if own or self.shared else 0
            for n_rows, own in zip(self._rows, self.payloads(), strict=True)
        ]
        first = [len(self.shared) + i for i in self._first]
        starts = np.empty(len(parts), "<u8")
        position = len(header)
        for i, part in enumerate(parts):
            starts[i] = position
            padding = -len(part) % 8
            yield part
            yield bytes(padding)
            position += len(part) + padding
        meta = json.dumps(self.meta.to_json(), sort_keys=True).encode()
        directory = b"".join(
            [
                _COUNTS.pack(len(self._rows), len(parts), len(meta), 0),
                np.array(first, "<u4").tobytes(),
                np.array(rows, "<u4").tobytes(),
                np.array(self._identity, "<u4").tobytes(),
                starts.tobytes(),
                np.array([len(p) for p in parts], "<u4").tobytes(),
                np.array([crc32c(p) for p in parts], "<u4").tobytes(),
                meta,
            ]
        )
        crc = crc32c(directory, crc32c(header))
        yield directory + _TAIL.pack(position, len(directory), crc)


class PackWriter:
    """Writes a pack blob by blob, so that only one of them is in memory.

    Args:
        write: takes the bytes, piece by piece.
    """

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._hash = hashlib.sha256()
        self.size = 0
        self.entries: list[BlobEntry] = []
        self._put(_PUFFIN)

    def add(self, builder: BlobBuilder) -> None:
        """Append a blob."""
        self._put(bytes(-self.size % 8))
        offset, last = self.size, b""
        for last in builder.chunks():
            self._put(last)
        (*_, crc) = _TAIL.unpack(last[-_TAIL.size :])
        entry = BlobEntry(builder.meta, offset, self.size - offset, crc)
        self.entries.append(entry)

    def finish(self) -> str:
        """Append the footer; the pack's name, which is a hash of its content."""
        footer = json.dumps(_puffin_footer(self.entries), sort_keys=True).encode()
        self._put(_PUFFIN + footer + struct.pack("<iI", len(footer), 0) + _PUFFIN)
        return self._hash.hexdigest()[:32] + ".puffin"

    def _put(self, data: bytes) -> None:
        self._write(data)
        self._hash.update(data)
        self.size += len(data)


def write_pack(builders: list[BlobBuilder]) -> tuple[str, bytes, list[BlobEntry]]:
    """The pack's name (a hash of its content), its bytes, and where blobs lie."""
    pieces: list[bytes] = []
    writer = PackWriter(pieces.append)
    for builder in builders:
        writer.add(builder)
    name = writer.finish()
    return name, b"".join(pieces), writer.entries


def blob_offsets(source: ByteSource) -> set[int]:
    """Where every blob of a pack begins, those that no manifest names among them.

    Raises:
        CorruptIndexError: it has no footer.
    """
    size = len(source)
    tail = bytes(source.read(max(0, size - 12), 12))
    try:
        length, _ = struct.unpack("<iI", tail[:8])
        if tail[8:] != _PUFFIN or not 0 <= length <= size - 12:
            raise CorruptIndexError("the pack has no Puffin footer at its end")
        footer = json.loads(bytes(source.read(size - 12 - length, length)))
        return {int(blob["offset"]) for blob in footer["blobs"]}
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise CorruptIndexError(f"the pack's footer cannot be read: {error}") from error


def _puffin_footer(entries: list[BlobEntry]) -> dict[str, Any]:
    blobs = [
        {
            "type": f"skipindex-{entry.meta.kind}-v{entry.meta.version}",
            "fields": [],
            # Required by the spec, and meaningless for plain Parquet.
            "snapshot-id": -1,
            "sequence-number": -1,
            "offset": entry.offset,
            "length": entry.length,
            "properties": {"column": entry.meta.column, "domain": entry.meta.domain},
        }
        for entry in entries
    ]
    return {"blobs": blobs, "properties": {"created-by": "skipindex"}}


class Blob:
    """An opened blob: its directory is in memory, its parts where ``kept`` has them."""

    def __init__(
        self, source: ByteSource, entry: BlobEntry, kept: PartCache | None = None
    ) -> None:
        """Read and check the directory.

        Args:
            source: the pack.
            entry: where the blob lies in it.
            kept: where parts that were read and checked are kept.

        Raises:
            CorruptIndexError: these bytes are not the blob that ``entry`` names.
            IndexVersionError: a newer library wrote them.
        """
        self.entry = entry
        self._kept = kept
        self._source = source
        self._base = entry.offset
        self._check_header()
        raw = self._directory()
        n_files, n_parts, n_meta, _ = _COUNTS.unpack_from(raw)
        expected = _COUNTS.size + 4 * (3 * n_files + 1) + 16 * n_parts + n_meta
        if expected != len(raw):
            raise CorruptIndexError(f"{self._name}: directory of a wrong size")
        at = _COUNTS.size
        columns = []
        for code, n in (
            ("<u4", n_files + 1),
            ("<u4", n_files),
            ("<u4", n_files),
            ("<u8", n_parts),
            ("<u4", n_parts),
            ("<u4", n_parts),
        ):
            columns.append(np.frombuffer(raw, code, n, at))
            at += columns[-1].nbytes
        self.n_rows, self.identity = columns[1], columns[2]
        self._has_parts = columns[0][1:] > columns[0][:-1]
        # Looked up one at a time, where lists are several times faster than arrays.
        lists: list[list[int]] = [columns[i].tolist() for i in (0, 3, 4, 5)]
        self._first, self._start, self._length, self._crc = lists
        try:
            meta = json.loads(bytes(raw[at:]))
        except (ValueError, RecursionError) as error:
            raise CorruptIndexError(f"{self._name}: it does not say what") from error
        if meta != entry.meta.to_json():
            raise CorruptIndexError(f"{self._name}: it holds another index")

    @property
    def _name(self) -> str:
        meta = self.entry.meta
        return f"index blob {meta.kind!r} of column {meta.column!r}"

    def payload_bytes(self) -> np.ndarray:
        """About what every slot takes, its share of what is of all files included."""
        ends: np.ndarray = np.concatenate(
            [[0], np.cumsum(self._length, dtype=np.int64)]
        )
        own = np.diff(ends[self._first])
        shared: np.ndarray = own + int(ends[self._first[0]]) // max(1, len(own))
        return shared

    def payload(self, slot: int, count: ReadCount) -> BlobParts | None:
        """The payload of the data file in ``slot``; None if it has no index."""
        if not 0 <= slot < len(self.n_rows):
            raise CorruptIndexError(f"{self._name}: no slot {slot}")
        first, stop = self._first[slot], self._first[slot + 1]
        return BlobParts(self, first, stop - first, count) if stop > first else None

    def shared(self, count: ReadCount) -> BlobParts:
        """The parts that are of no data file, but of all of them."""
        return BlobParts(self, 0, self._first[0], count)

    @property
    def has_shared(self) -> bool:
        """Whether some parts are of all data files."""
        return bool(self._first[0])

    def has_payload(self, slots: np.ndarray) -> np.ndarray:
        """For each slot, whether there is a payload of its own, or no such slot."""
        found: np.ndarray = np.ones(len(slots), np.bool_)
        inside = (slots >= 0) & (slots < len(self._has_parts))
        found[inside] = self._has_parts[slots[inside]]
        return found

    def fits(
        self, slots: np.ndarray, n_rows: np.ndarray, footer_crcs: np.ndarray
    ) -> np.ndarray:
        """For each slot, whether it is of the data file with these marks."""
        inside = (slots >= 0) & (slots < len(self.n_rows))
        found: np.ndarray = inside.copy()
        at = slots[inside]
        same_rows = self.n_rows[at] == (n_rows[inside] & _MAX_U32)
        found[inside] = same_rows & (self.identity[at] == footer_crcs[inside])
        return found

    def check_identity(self, slot: int, *, n_rows: int, footer_crc: int) -> None:
        """Raise ``CorruptIndexError`` unless ``slot`` is of that data file."""
        same_rows = self.n_rows[slot] == n_rows & _MAX_U32
        if self.identity[slot] != footer_crc or not same_rows:
            raise CorruptIndexError(f"{self._name}: it is of another data file")

    def forget(self) -> None:
        """Keep no parts from now on, and let go those that are kept."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.forget(self)

    def read(self, payload: BlobParts, start: int, stop: int) -> list[memoryview]:
        """Parts ``start .. stop - 1`` of a payload, each checked when it was read."""
        key = self, payload.first, memoryview
        return cast(list[memoryview], self._get(key, payload, start, stop, _as_it_is))

    def bitmaps(self, payload: BlobParts, start: int, stop: int) -> list[FrozenBitMap]:
        """The same as bitmaps."""
        key = self, payload.first, FrozenBitMap
        return cast(list[FrozenBitMap], self._get(key, payload, start, stop, bitmap_of))

    def decoded(
        self, payload: BlobParts, i: int, decode: Callable[[memoryview], D]
    ) -> D:
        """What ``decode`` makes of part ``i``."""
        key = self, payload.first, Decoded
        return cast(D, self._get(key, payload, i, i + 1, decode)[0])

    def _get(
        self,
        key: PayloadKey,
        payload: BlobParts,
        start: int,
        stop: int,
        decode: Callable[[memoryview], Part],
    ) -> list[Part | None]:
        """Parts of a payload, without None; those that are not kept in one read."""
        if start >= stop:
            return []
        begin, end = payload.first + start, payload.first + stop
        n_bytes = self._span(begin, end)
        count, kept = payload.count, self._kept
        count.parts += stop - start
        count.n_bytes += n_bytes
        if kept is None or not kept.limit:
            return list(map(decode, self._fetch(begin, end)))
        parts = kept.get(key, start, stop)
        if parts and None not in parts:
            count.cached_bytes += n_bytes
            return parts
        first, last = 0, stop - start - 1
        if parts:
            missing = [i for i, part in enumerate(parts) if part is None]
            first, last = missing[0], missing[-1]
            begin, end = begin + first, begin + last + 1
        else:
            parts = [None] * (stop - start)
        found = list(map(decode, self._fetch(begin, end)))
        n_read = self._span(begin, end)
        n_kept = getattr(found[0], "n_bytes", n_read)
        kept.keep(key, payload.n_parts, start + first, found, n_kept)
        count.cached_bytes += n_bytes - n_read
        parts[first : last + 1] = found
        return parts

    def _span(self, start: int, stop: int) -> int:
        """Bytes from the beginning of a part to the end of another."""
        return self._start[stop - 1] + self._length[stop - 1] - self._start[start]

    def _fetch(self, start: int, stop: int) -> list[memoryview]:
        """Parts ``start .. stop - 1`` of the blob in one read, each checked."""
        begin = self._start[start]
        raw = self._source.read(self._base + begin, self._span(start, stop))
        parts = []
        for i in range(start, stop):
            at = self._start[i] - begin
            part = raw[at : at + self._length[i]]
            if crc32c(part) != self._crc[i]:
                raise CorruptIndexError(f"{self._name}: part {i} fails its crc32c")
            parts.append(part)
        return parts

    def _check_header(self) -> None:
        if len(self._source) < self._base + self.entry.length:
            raise CorruptIndexError(f"{self._name}: the pack is cut off")
        raw = self._source.read(self._base, _HEADER.size)
        magic, container, version, _ = _HEADER.unpack(raw)
        if magic != _MAGIC:
            raise CorruptIndexError(f"{self._name}: no blob begins there")
        if container > CONTAINER:
            raise IndexVersionError(
                f"{self._name}: container version {container} is newer than ours "
                f"({CONTAINER})"
            )
        if version != self.entry.meta.version:
            raise CorruptIndexError(f"{self._name}: payload version {version}")

    def _directory(self) -> memoryview:
        end = self._base + self.entry.length
        n_guess = min(_GUESS, self.entry.length - _HEADER.size)
        guess = self._source.read(end - n_guess, n_guess)
        if len(guess) < _TAIL.size:
            raise CorruptIndexError(f"{self._name}: too short")
        start, length, crc = _TAIL.unpack(guess[-_TAIL.size :])
        if start + length + _TAIL.size != self.entry.length:
            raise CorruptIndexError(f"{self._name}: the tail points nowhere")
        inside = n_guess - _TAIL.size - length
        if inside >= 0:
            raw = guess[inside : inside + length]
        else:
            raw = self._source.read(self._base + start, length)
        header = self._source.read(self._base, _HEADER.size)
        if crc32c(raw, crc32c(header)) != crc or length < _COUNTS.size:
            raise CorruptIndexError(f"{self._name}: directory fails its crc32c")
        if crc != self.entry.crc:
            raise CorruptIndexError(f"{self._name}: another blob is in its place")
        return raw


@dataclass(frozen=True, slots=True)
class BlobParts:
    """The ``Parts`` of one data file's index, out of a blob."""

    blob: Blob
    first: int
    n_parts: int
    count: ReadCount

    def __len__(self) -> int:
        return self.n_parts

    def __getitem__(self, i: int) -> memoryview:
        return self.read(i, i + 1)[0]

    def read(self, start: int, stop: int) -> list[memoryview]:
        """Parts ``start .. stop - 1`` in at most one contiguous read."""
        self._check(start, stop)
        return self.blob.read(self, start, stop)

    def bitmaps(self, start: int, stop: int) -> list[FrozenBitMap]:
        """Parts ``start .. stop - 1`` as bitmaps, in at most one contiguous read."""
        self._check(start, stop)
        return self.blob.bitmaps(self, start, stop)

    def decoded(self, i: int, decode: Callable[[memoryview], D]) -> D:
        """What ``decode`` makes of part ``i``, now or when it was asked for before."""
        self._check(i, i + 1)
        return self.blob.decoded(self, i, decode)

    def _check(self, start: int, stop: int) -> None:
        if not 0 <= start <= stop <= self.n_parts:
            raise CorruptIndexError(f"no part {stop - 1} (there are {self.n_parts})")


def _as_it_is(raw: memoryview) -> memoryview:
    return raw
