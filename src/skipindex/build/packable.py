"""Payloads of one pack that are kept together, where their kind can do that.

A kind of index builds a payload for every data file.  When a pack is written, a kind
that is a ``PackableType`` may put them together; when packs are merged, they are taken
apart first, so that the larger pack has them all together again.
"""

from __future__ import annotations

from skipindex.errors import UnknownIndexError
from skipindex.expressions.domain import Domain
from skipindex.indexes import index_type
from skipindex.indexes.interface import PackableType
from skipindex.storage.pack import Blob, BlobBuilder
from skipindex.storage.parts import READS


def packed_together(builder: BlobBuilder, domain: Domain) -> BlobBuilder:
    """The same payloads, together as far as their kind can do that."""
    kind = _packable(builder.meta.kind)
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


def unpacked(blob: Blob, domain: Domain) -> dict[int, list[bytes]]:
    """By slot, the payloads that are together in a blob, as they were before.

    Raises:
        CorruptIndexError: a part makes no sense.
    """
    kind = _packable(blob.entry.meta.kind)
    shared = blob.shared(READS)
    if kind is None or not len(shared):
        return {}
    return kind.unpack(shared, domain, len(blob.n_rows))


def is_together(name: str) -> bool:
    """Whether the payloads of a kind of that name can be taken apart."""
    return _packable(name) is not None


def _packable(name: str) -> PackableType | None:
    try:
        kind = index_type(name)
    except UnknownIndexError:
        return None
    return kind if isinstance(kind, PackableType) else None
