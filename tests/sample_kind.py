"""An index kind as another package would bring it: this file, and an entry point.

A set of buckets for every file: a value's crc32c says in which bucket it is, and a
file without a value in the bucket has no row with it.  It uses nothing that begins
with an underscore.

Payload, version 1::

    part 0   u8 version | u8 t, length of the domain's tag | u16 n, buckets
             u32 rows of the file | tag | n / 8 bytes: the buckets, the lowest first
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from crc32c import crc32c
from pyroaring import AbstractBitMap, BitMap

from skipindex.errors import CorruptIndexError, IndexVersionError
from skipindex.expressions.atoms import Atom, OneOf, Value
from skipindex.expressions.bounds import Bounds
from skipindex.expressions.domain import Domain
from skipindex.indexes import EncodedColumn, IndexSpec, Parts

_HEAD: Final = struct.Struct("<BBHI")


def _bucket(value: Value, n_buckets: int) -> int:
    return int(crc32c(repr(value).encode())) % n_buckets


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    n_buckets: int = 64

    @property
    def kind(self) -> str:
        return "buckets"

    def build(self, column: EncodedColumn) -> list[bytes]:
        mask = 0
        for value in column.distinct.tolist():
            mask |= 1 << _bucket(value, self.n_buckets)
        tag = column.domain.tag.encode()
        head = _HEAD.pack(1, len(tag), self.n_buckets, column.n_rows)
        return [head + tag + mask.to_bytes(self.n_buckets // 8, "little")]


@dataclass(frozen=True, slots=True)
class BucketsIndex:
    n_buckets: int
    mask: int

    def probe(self, atom: Atom) -> Bounds[AbstractBitMap] | None:
        if not isinstance(atom, OneOf):
            return None
        if any(self.mask >> _bucket(v, self.n_buckets) & 1 for v in atom.values):
            return None
        return Bounds(BitMap(), BitMap())


@dataclass(frozen=True, slots=True)
class BucketsType:
    name: str = "buckets"
    version: int = 1
    positional: bool = False
    spec: type[IndexSpec] = Buckets

    def check(self, domain: Domain) -> None:
        pass

    def open(self, parts: Parts, domain: Domain, n_rows: int) -> BucketsIndex:
        if len(parts) != 1:
            raise CorruptIndexError(f"a buckets payload of {len(parts)} parts")
        raw = bytes(parts[0])
        if raw[:1] != b"\x01":
            raise IndexVersionError(f"buckets payload {raw[:1]!r} (accepted: 1 to 1)")
        try:
            _, n_tag, n_buckets, rows = _HEAD.unpack_from(raw)
        except struct.error as error:
            raise CorruptIndexError(f"a buckets payload of {len(raw)} bytes") from error
        tag, mask = raw[_HEAD.size :][:n_tag], raw[_HEAD.size :][n_tag:]
        if tag != domain.tag.encode():
            raise CorruptIndexError(f"a buckets payload holds values of domain {tag!r}")
        if rows != n_rows or 8 * len(mask) != n_buckets or not mask:
            raise CorruptIndexError("the header of a buckets payload makes no sense")
        return BucketsIndex(n_buckets, int.from_bytes(mask, "little"))


INDEX_TYPE: Final = BucketsType()
