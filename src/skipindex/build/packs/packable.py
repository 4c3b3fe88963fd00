"""Packing the payloads of many files together, for kinds that can.

A kind of index builds a payload for every data file.  When a pack is written, a
``PackableType`` may pack the payloads together.  When packs are merged, the payloads
are unpacked first, so that the larger pack has all of them together again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from skipindex.errors import UnknownIndexError
from skipindex.expressions.domain import Domain
from skipindex.indexes import index_type
from skipindex.indexes.file_map import MAX_PER_FILE, FileMap, ValueSpans
from skipindex.indexes.interface import UNUSABLE, IndexType, PackableType
from skipindex.indexes.positional import PositionalKind
from skipindex.storage.file_system.byte_source import ByteSource
from skipindex.storage.pack import Blob, BlobBuilder, BlobEntry, BlobMeta
from skipindex.storage.parts import MemoryParts, ReadCount

_BYTES_EACH: Final = 32
"""Bytes of a value, on average, up to which those of a merged pack are in memory."""


def builder_of(meta: BlobMeta) -> BlobBuilder:
    """What collects the payloads of one column and spec, of any kind."""
    encoding = getattr(_kind_of(meta.kind), "encoding", None)
    return BlobBuilder(meta, encoding=encoding)


def packed_together(builder: BlobBuilder, domain: Domain) -> BlobBuilder:
    """The same payloads, packed together as far as their kind can do that."""
    kind = packable(builder.meta.kind)
    if kind is None:
        return builder
    payloads = builder.payloads()
    shared, slots = kind.pack_together(payloads, domain)
    if not slots:
        return builder
    made = BlobBuilder(builder.meta, shared)
    for slot, (parts, (n_rows, identity)) in enumerate(
        zip(payloads, builder.marks(), strict=True)
    ):
        own = [] if slot in slots else parts
        made.add(own, n_rows=n_rows, identity=identity)
    return made


def values_in(
    meta: BlobMeta, parts: Sequence[bytes], domain: Domain, n_rows: int, *, limit: int
) -> ValueSpans | None:
    """The values of a file by its payload; None if they are long, or not known.

    They are long if there are more than ``limit``, or if they take more than 32 bytes
    times ``limit``.
    """
    kind = _kind_of(meta.kind)
    if not parts or not isinstance(kind, PositionalKind):
        return None
    try:
        index = kind.open(MemoryParts(parts), domain, n_rows)
        values = index.values_of_rows(min(limit, MAX_PER_FILE))
    except UNUSABLE:
        return None
    if values is None:
        return None
    spans = ValueSpans.single_values(values, is_bytes=domain.is_bytes)
    return spans if spans.lows.nbytes <= _BYTES_EACH * limit else None


@dataclass
class BlobReader:
    """A blob of a pack that is merged: the payload of every slot, packed or not.

    It is opened when it is asked for the first time.  Each method may raise
    ``CorruptIndexError`` and what the file system raises.

    Args:
        source: the pack.
        entry: the blob.
        domain: of its column; None if the table has the column no more.
        forget_bins: a file map whose bins may be values of lost files says nothing.
    """

    source: ByteSource
    entry: BlobEntry
    domain: Domain | None
    forget_bins: bool

    def payload(self, slot: int) -> list[bytes] | None:
        """The parts of the payload in ``slot``; None if the blob has none there."""
        parts = self._blob.payload(slot, ReadCount())
        if parts is not None:
            return [bytes(part) for part in parts.read(0, len(parts))]
        return self._unpacked.get(slot)

    def span(self, slot: int) -> ValueSpans | None:
        """The values in ``slot``, if the blob is a file map that knows them."""
        return self._spans[slot] if slot < len(self._spans) else None

    @cached_property
    def _blob(self) -> Blob:
        return Blob(self.source, self.entry)

    @cached_property
    def _unpacked(self) -> dict[int, list[bytes]]:
        """Payloads that are packed together, as they were before, by slot."""
        kind = packable(self.entry.meta.kind)
        if kind is None or self.domain is None or not self._blob.has_shared:
            return {}
        shared = self._blob.shared(ReadCount())
        return kind.unpack(shared, self.domain, len(self._blob.n_rows))

    @cached_property
    def _spans(self) -> list[ValueSpans | None]:
        if self.domain is None:
            return []
        shared = self._blob.shared(ReadCount())
        opened = FileMap.open(shared, self.domain, len(self._blob.n_rows))
        return [] if opened.binned and self.forget_bins else opened.spans()


def packable(name: str) -> PackableType | None:
    """The kind of that name, if its payloads can be packed together and unpacked."""
    kind = _kind_of(name)
    return kind if isinstance(kind, PackableType) else None


def _kind_of(name: str) -> IndexType | None:
    """The kind of that name, if it is installed here."""
    try:
        return index_type(name)
    except UnknownIndexError:
        return None
