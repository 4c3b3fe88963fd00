"""The pack: one immutable file with the index payloads of many data files.

``format`` has its layout, ``writer`` and ``reader`` write and read it.
"""

from __future__ import annotations

from skipindex.storage.pack.format import CONTAINER, BlobEntry, BlobMeta
from skipindex.storage.pack.reader import Blob, BlobParts, blob_offsets
from skipindex.storage.pack.writer import BlobBuilder, PackWriter, write_pack

__all__ = [
    "CONTAINER",
    "Blob",
    "BlobBuilder",
    "BlobEntry",
    "BlobMeta",
    "BlobParts",
    "PackWriter",
    "blob_offsets",
    "write_pack",
]
