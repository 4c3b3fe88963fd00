r"""The pack: one immutable file with the index payloads of many data files.

Outside it is a Puffin file (Apache Iceberg's Puffin spec, version 1) with one
blob for every column and spec::

    "PFA1" | blob | blob | … | "PFA1" | JSON | i32 length | u32 flags = 0 | "PFA1"

A blob is ours, little-endian, 8-byte aligned, and needs nothing of the JSON::

    header    "SKIX" | u16 container | u16 payload version | u64 zero
    parts     part | padding to 8 | part | …
    directory u32 n_files | u32 n_parts | u32 length of meta | u32 zero
              u32 first_part[n_files + 1]    parts of file s: first[s] .. first[s+1],
                                             those before first[0] are of all files
              u32 n_rows[n_files]            modulo 2^32
              u32 identity[n_files]          crc32c of each data file's footer
              i64 start[n_parts]             from the beginning of the blob; in
                                             container 2, parts with the same bytes
                                             may begin at one place, which is negative
                                             for a part of an earlier blob
              u32 length[n_parts]
              u32 crc32c[n_parts]
              meta: JSON with kind, column, domain and spec
    tail      u64 directory start | u32 directory length | u32 directory crc32c

A reader takes the tail, then the directory (crc32c over all of it and over the
header), then only the parts that a question needs, each with its own crc32c.  The
manifest knows the directory's crc32c too, so no whole blob is taken for another.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

OWN_PARTS: Final = 1
CONTAINER: Final = 2
"""The newest container; one whose blob has all of its parts is the first."""
SHARED_FROM: Final = 512
"""Bytes of a part from which it is looked for in earlier blobs."""
PUFFIN: Final = b"PFA1"
MAGIC: Final = b"SKIX"
HEADER: Final = struct.Struct("<4sHHQ")
COUNTS: Final = struct.Struct("<IIII")
TAIL: Final = struct.Struct("<QII")
MAX_U32: Final = (1 << 32) - 1
"""The greatest unsigned number of 32 bits."""


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

    ``offset`` is from the beginning of the pack, ``length`` in bytes; ``crc`` is that
    of the directory, which has the crc32c of every part.  ``encodings`` has the number
    of files by encoding, if the kind has several; it is for reports alone.
    """

    meta: BlobMeta
    offset: int
    length: int
    crc: int
    encodings: Mapping[str, int] = field(default_factory=dict, compare=False)
