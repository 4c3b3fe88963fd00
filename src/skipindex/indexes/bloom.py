"""Bloom filters of pybloom-live: "none of these values is in the file", or no opinion.

For ``=`` and IN on columns of many distinct values; about 9.6 bits a distinct value
at an error rate of 0.01.  Nothing else is answered: not ranges, and never a negation.

Payload, version 1::

    part 0    u8   version
              u8   t, length of the domain's tag
              u8   s, length of the scheme
              u8   0
              u64  n, the number of keys, all distinct values but NULL
              u32  k, slices
              u32  crc32c of the bits (k times u64) of the witness key
              u64  m, bits of a slice
              t    the domain's tag
              s    the scheme: hash / word width / k / byte order
    part 1    what ``BloomFilter.tofile`` writes: f64 error rate, u64 k, u64 m,
              u64 capacity, u64 n, then the bits

The bits depend on the version of pybloom-live and on the byte order of the machine.
So a filter is asked only where the installed library gives the scheme and the bits of
the witness that the filter was built with; otherwise it is no index.
"""

from __future__ import annotations

import functools
import io
import struct
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from crc32c import crc32c
from pybloom_live import BloomFilter
from pyroaring import BitMap

from skipindex.atoms import Atom, OneOf, Value
from skipindex.bounds import Bounds
from skipindex.domain import Domain
from skipindex.errors import CorruptIndexError, UnknownIndexError
from skipindex.indexes._base import IndexSpec
from skipindex.indexes._bloom_bulk import fill, hashes, scheme_of
from skipindex.indexes._column import EncodedColumn
from skipindex.indexes._header import Cursor, check_tag, check_version
from skipindex.storage.parts import Parts

_KIND: Final = "bloom"
_VERSION: Final = 1
_WITNESS: Final = "skipindex"
_HEAD: Final = struct.Struct("<BBBBQIIQ")
_FILE_HEAD: Final = struct.Struct("<dQQQQ")
_MAX_SLICES: Final = 64
_HOPELESS: Final = 8


def bloom_key(value: Value) -> str:
    """The text that stands for a value in a filter, for building and for asking.

    Integers are written in decimal; byte strings are the text that they encode, or
    Latin-1 where they are not UTF-8 (two values may share a text, which keeps a file
    too many, never one too few).
    """
    if isinstance(value, int):
        return str(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bloom:
    """A Bloom filter of the distinct values.

    Args:
        error_rate: the share of absent values that are taken for present ones.
    """

    error_rate: float = 0.01

    def __post_init__(self) -> None:
        check_error_rate(self.error_rate, _KIND)

    @property
    def kind(self) -> str:
        """``bloom``."""
        return _KIND

    def build(self, column: EncodedColumn) -> list[bytes]:
        """The parts of the payload."""
        return pack_filter(_keys(column), self.error_rate, column.domain)


def pack_filter(
    keys: list[bytes], error_rate: float, domain: Domain, *, own: bytes = b""
) -> list[bytes]:
    """The parts of a filter of distinct UTF-8 keys; ``own`` ends the header."""
    bloom = BloomFilter(max(1, len(keys)), error_rate)
    fill(bloom, keys)
    k, m = bloom.num_slices, bloom.bits_per_slice
    tag, scheme = domain.tag.encode(), scheme_of(k, m).encode()
    head = _HEAD.pack(
        _VERSION, len(tag), len(scheme), 0, len(keys), k, _witness(k, m), m
    )
    file = io.BytesIO()
    bloom.tofile(file)
    return [head + tag + scheme + own, file.getvalue()]


def _keys(column: EncodedColumn) -> list[bytes]:
    """The ``bloom_key`` of every distinct value, as UTF-8."""
    distinct = column.distinct
    if isinstance(distinct, np.ndarray):
        return [b"%d" % value for value in distinct.tolist()]
    keys: list[bytes] = distinct.to_pylist()
    try:
        distinct.cast(pa.large_string())  # checks that all are UTF-8, and faster
    except pa.ArrowInvalid:
        return [bloom_key(value).encode() for value in keys]
    return keys


def check_error_rate(error_rate: float, kind: str) -> None:
    """Raise ``UnknownIndexError`` if no filter has such a rate."""
    if not 2.0**-_MAX_SLICES < error_rate < 1:
        raise UnknownIndexError(
            f"no {kind} index has error rate {error_rate!r} (accepted: between 0 and 1)"
        )


@functools.lru_cache(maxsize=4096)
def _witness(k: int, m: int) -> int:
    bits = struct.pack(f"<{k}Q", *hashes(k, m)[0](_WITNESS))
    return int(crc32c(bits))


@dataclass(frozen=True, slots=True)
class BloomIndex:
    """The Bloom filter of one column of one file."""

    parts: Parts
    n_keys: int
    k: int
    m: int
    own: bytes = b""

    @property
    def n_bitmaps(self) -> int:
        """None: a filter knows no rows."""
        return 0

    def probe(self, atom: Atom) -> Bounds[BitMap] | None:
        """No row, if the filter has none of the values asked for; else no opinion."""
        # Half of the bits are set: of so many values, one in 2 ** k each, some pass.
        if not isinstance(atom, OneOf) or len(atom.values) > _HOPELESS << self.k:
            return None
        bits = self.bits()
        if any(self.may_hold(bits, bloom_key(value)) for value in atom.values):
            return None
        return Bounds(BitMap(), BitMap())

    def may_hold(self, bits: memoryview, key: str) -> bool:
        """Whether ``key`` may be among the filter's; if not, it surely is not."""
        slice_start = 0
        for place in hashes(self.k, self.m)[0](key):
            bit = slice_start + place
            if not bits[bit >> 3] >> (bit & 7) & 1:
                return False
            slice_start += self.m
        return True

    def bits(self) -> memoryview:
        """The filter's bits, the lowest of a byte first."""
        cursor = Cursor(self.parts[1])
        _, k, m, capacity, count = cursor.unpack(_FILE_HEAD)
        bits = cursor.bytes((self.k * self.m + 7) // 8)
        cursor.end()
        if (k, m, count) != (self.k, self.m, self.n_keys) or count > capacity:
            raise CorruptIndexError(
                f"a bloom filter of {count} keys, {k} slices of {m} bits and capacity "
                f"{capacity} is not the one that its header describes"
            )
        return bits


@dataclass(frozen=True, slots=True)
class BloomType:
    """The kind ``bloom``."""

    name: str = _KIND
    version: int = _VERSION
    positional: bool = False
    spec: type[IndexSpec] = Bloom

    def check(self, domain: Domain) -> None:
        """Accept every domain: each value has a text of its own."""

    def open(self, parts: Parts, domain: Domain, n_rows: int) -> BloomIndex:
        """Read the header; the bits only when asked."""
        index = open_filter(parts, domain, _KIND)
        if index.n_keys > n_rows:
            raise CorruptIndexError(
                f"a bloom filter of {index.n_keys} keys makes no sense for a file of "
                f"{n_rows} rows"
            )
        return index


def open_filter(
    parts: Parts, domain: Domain, kind: str, *, n_own: int = 0
) -> BloomIndex:
    """The filter that ``pack_filter`` wrote for a kind, with ``n_own`` own bytes.

    Raises:
        CorruptIndexError: it makes no sense, or another library hashed its keys.
    """
    if len(parts) != 2:
        raise CorruptIndexError(
            f"a {kind} payload has {len(parts)} parts (accepted: 2)"
        )
    cursor = Cursor(parts[0])
    check_version(parts[0][0] if len(parts[0]) else 0, _VERSION, kind)
    _, n_tag, n_scheme, _, n_keys, k, witness, m = cursor.unpack(_HEAD)
    check_tag(cursor.bytes(n_tag), domain, kind)
    scheme = bytes(cursor.bytes(n_scheme))
    own = bytes(cursor.bytes(n_own))
    cursor.end()
    if not (0 < k <= _MAX_SLICES and 0 < m < 1 << 48):
        raise CorruptIndexError(
            f"a {kind} filter in {k} slices of {m} bits makes no sense"
        )
    if scheme != scheme_of(k, m).encode() or witness != _witness(k, m):
        raise CorruptIndexError(
            f"a {kind} filter was built with scheme {scheme!r}, and the installed "
            f"pybloom-live has {scheme_of(k, m)!r}"
        )
    return BloomIndex(parts, n_keys, k, m, own)


INDEX_TYPE: Final = BloomType()
