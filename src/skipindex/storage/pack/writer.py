"""Writing packs."""

from __future__ import annotations

import hashlib
import json
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np
from crc32c import crc32c

from skipindex.storage.pack.format import (
    CONTAINER,
    COUNTS,
    HEADER,
    MAGIC,
    MAX_U32,
    OWN_PARTS,
    PUFFIN,
    SHARED_FROM,
    TAIL,
    BlobEntry,
    BlobMeta,
)

_SHORT: Final = 16
"""Bytes of a part up to which each file has its own."""


@dataclass(slots=True)
class BlobBuilder:
    """Collects the payloads of one column and spec, one data file after another.

    ``shared`` parts are of all data files together.  ``encoding`` names that of a
    payload, if the kind has several.
    """

    meta: BlobMeta
    shared: list[bytes] = field(default_factory=list)
    encoding: Callable[[Sequence[bytes]], str] | None = None
    _first: list[int] = field(default_factory=lambda: [0])
    _rows: list[int] = field(default_factory=list)
    _identity: list[int] = field(default_factory=list)
    _parts: list[bytes] = field(default_factory=list)

    def add(self, parts: list[bytes], *, n_rows: int, identity: int) -> None:
        """Append the payload of the next data file; no parts means no index."""
        self._parts.extend(parts)
        self._first.append(len(self._parts))
        self._rows.append(n_rows & MAX_U32)
        self._identity.append(identity)

    def payloads(self) -> list[list[bytes]]:
        """The parts of every data file."""
        return [self._parts[a:b] for a, b in pairwise(self._first)]

    def encodings(self) -> Mapping[str, int]:
        """The number of data files by encoding."""
        if self.encoding is None:
            return {}
        return dict(Counter(self.encoding(parts) for parts in self.payloads() if parts))

    def marks(self) -> list[tuple[int, int]]:
        """The row count, modulo 2^32, and the identity of every data file."""
        return list(zip(self._rows, self._identity, strict=True))

    @property
    def n_bytes(self) -> int:
        """The size of all parts so far."""
        return sum(map(len, self.shared)) + sum(map(len, self._parts))

    def chunks(self, known: Mapping[bytes, int], offset: int) -> Iterator[bytes]:
        """The bytes of the blob, piece by piece; the last one ends with the tail.

        It begins at ``offset`` of its pack.  ``known`` has where parts of earlier blobs
        begin there, by their digests: they are not written again.  Nor is a part of
        several files, such as the dictionary of the same values.
        """
        parts = [*self.shared, *self._parts]
        elsewhere = [known.get(digest(p)) if known else None for p in parts]
        copied = {p for p, n in Counter(parts).items() if n > 1 and len(p) > _SHORT}
        is_whole = elsewhere.count(None) == len(parts) and not copied
        container = OWN_PARTS if is_whole else CONTAINER
        header = HEADER.pack(MAGIC, container, self.meta.version, 0)
        yield header
        rows = [
            n_rows if own or self.shared else 0
            for n_rows, own in zip(self._rows, self.payloads(), strict=True)
        ]
        first = [len(self.shared) + i for i in self._first]
        starts = np.empty(len(parts), "<i8")
        position = len(header)
        written: dict[bytes, int] = {}
        for i, (part, place) in enumerate(zip(parts, elsewhere, strict=True)):
            if place is not None:
                starts[i] = place - offset
                continue
            starts[i] = written.get(part, position)
            if part in written:
                continue
            if part in copied:
                written[part] = position
            padding = -len(part) % 8
            yield part
            yield bytes(padding)
            position += len(part) + padding
        meta = json.dumps(self.meta.to_json(), sort_keys=True).encode()
        directory = b"".join(
            [
                COUNTS.pack(len(self._rows), len(parts), len(meta), 0),
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
        yield directory + TAIL.pack(position, len(directory), crc)


def digest(part: bytes) -> bytes:
    """What tells the bytes of a long part; empty of a short one."""
    if len(part) < SHARED_FROM:
        return b""
    return hashlib.blake2b(part, digest_size=20).digest()


class PackWriter:
    """Writes a pack blob by blob, so that only one of them is in memory."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._hash = hashlib.sha256()
        self.size = 0
        self.entries: list[BlobEntry] = []
        self._places: dict[bytes, int] = {}
        """Where long parts begin, by their digests."""
        self._put(PUFFIN)

    def add(self, builder: BlobBuilder) -> None:
        """Append a blob."""
        self._put(bytes(-self.size % 8))
        offset, last = self.size, b""
        places: dict[bytes, int] = {}
        for last in builder.chunks(self._places, offset):
            if len(last) >= SHARED_FROM:
                places.setdefault(digest(last), self.size)
            self._put(last)
        self._places = places | self._places
        (*_, crc) = TAIL.unpack(last[-TAIL.size :])
        length = self.size - offset
        entry = BlobEntry(builder.meta, offset, length, crc, builder.encodings())
        self.entries.append(entry)

    def finish(self) -> str:
        """Append the footer; the pack's name, which is a hash of its content."""
        footer = json.dumps(_puffin_footer(self.entries), sort_keys=True).encode()
        self._put(PUFFIN + footer + struct.pack("<iI", len(footer), 0) + PUFFIN)
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
