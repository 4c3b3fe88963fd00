"""Payloads of one pack that are kept together, where their kind can do that.

A kind of index builds a payload for every data file.  When a pack is written, a kind
that is a ``GatheringType`` may put them together; when packs are merged, they are taken
apart first, so that the larger pack has them all together again.
"""

from __future__ import annotations

from skipindex.errors import UnknownIndexError
from skipindex.expressions.domain import Domain
from skipindex.indexes import index_type
from skipindex.indexes.interface import GatheringType
from skipindex.storage.pack import Blob, BlobBuilder
from skipindex.storage.parts import READS


def gathered(builder: BlobBuilder, domain: Domain) -> BlobBuilder:
    """The same payloads, together as far as their kind can do that."""
    kind = _gathering(builder.meta.kind)
    if kind is None:
        return builder
    payloads = builder.payloads()
    shared, slots = kind.gather(payloads, domain)
    if not slots:
        return builder
    made = BlobBuilder(builder.meta, shared)
    for slot, (parts, (n_rows, identity)) in enumerate(
        zip(payloads, builder.marks(), strict=True)
    ):
        own = [] if slot in slots else parts
        made.add(own, n_rows=n_rows, identity=identity)
    return made


def scattered(blob: Blob, domain: Domain) -> dict[int, list[bytes]]:
    """By slot, the payloads that are together in a blob, as they were before.

    Raises:
        CorruptIndexError: a part makes no sense.
    """
    kind = _gathering(blob.entry.meta.kind)
    shared = blob.shared(READS)
    if kind is None or not len(shared):
        return {}
    return kind.scatter(shared, domain, len(blob.n_rows))


def is_together(name: str) -> bool:
    """Whether the payloads of a kind of that name can be taken apart."""
    return _gathering(name) is not None


def _gathering(name: str) -> GatheringType | None:
    try:
        kind = index_type(name)
    except UnknownIndexError:
        return None
    return kind if isinstance(kind, GatheringType) else None
