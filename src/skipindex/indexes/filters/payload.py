"""The payload of a Bloom filter, for every way of choosing bits.

The payload, version 1, of all kinds that are filters::

    part 0    u8   version
              u8   t, length of the domain's tag
              u8   s, length of the scheme
              u8   0
              u64  n, the number of keys, which are distinct
              u32  k, bits of a key
              u32  crc32c of the places (k times u64) of the key "skipindex", the
                   witness
              u64  m, blocks
              t    the domain's tag
              s    the scheme: splitmix64 / b and the width of a block / k and k
              ..   what the kind adds
    part 1    f64  error rate that was requested
              u64  k
              u64  m
              u64  capacity: n, rounded up, so that the filters of most files of a
                   table have one size (``transposed``)
              u64  n
              ..   the bits (``blocked``)

With ``hashing="pybloom"`` it is a filter of pybloom-live (``pybloom``): ``m`` is the
bits of a slice, the scheme is hash / word width / k / byte order, the witness has the
places within slices, and part 1 is what ``BloomFilter.tofile`` writes.

The bits of pybloom-live depend on its version and on the byte order of the machine.
So a filter is probed only if this library gives the scheme and the bits of the witness
that the filter was built with; otherwise it is no index.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from crc32c import crc32c

from skipindex.errors import CorruptIndexError, UnknownIndexError
from skipindex.expressions.atoms import Atom, OneOf, Value
from skipindex.expressions.domain import Domain
from skipindex.indexes.encoding.header import Cursor, check_tag, check_version
from skipindex.indexes.filters.blocked import Blocks, distinct_hashes
from skipindex.indexes.filters.pybloom import Slices, filled, texts_of
from skipindex.indexes.filters.splitmix import Keys

VERSION: Final = 1
FILE_HEAD: Final = struct.Struct("<dQQQQ")
"""The header before the bits."""

PYBLOOM: Final = "pybloom"
"""The hashing of pybloom-live, as a spec asks for it."""

_MAX_SLICES: Final = 64
"""Most bits of a key, each in a slice of its own."""
_MOST_VALUES: Final = 8
"""Values, times ``2 ** k``, up to which a filter of ``k`` bits may rule one out."""
_WITNESS: Final = b"skipindex"
_HEAD: Final = struct.Struct("<BBBBQIIQ")
_CAPACITY_BITS: Final = 4
_SPLITMIX: Final = b"splitmix64/"

Shape: TypeAlias = Slices | Blocks
"""How large a filter is, and which bits a key has in it."""

KeyAlternatives: TypeAlias = Sequence[Sequence[Value]]
"""Lists of keys: a value has all keys of at least one of them."""

RequiredKeys: TypeAlias = Callable[[Atom], KeyAlternatives | None]
"""The keys of every value that makes an atom TRUE; None is "unknown"."""


def saturates(atom: Atom, k: int) -> bool:
    """Whether an atom has so many values that a filter of ``k`` bits rules out none.

    Half of the bits are set, so one absent value in ``2 ** k`` seems to be present.
    """
    return isinstance(atom, OneOf) and len(atom.values) > _MOST_VALUES << k


def check_error_rate(error_rate: float, kind: str) -> None:
    """Raise ``UnknownIndexError`` if no filter has such a rate."""
    if not 2.0**-_MAX_SLICES < error_rate < 1:
        raise UnknownIndexError(
            f"no {kind} index has error rate {error_rate!r} (accepted: between 0 and 1)"
        )


def check_hashing(hashing: str | None, kind: str) -> None:
    """Raise ``UnknownIndexError`` if no filter is hashed so."""
    if hashing not in {None, PYBLOOM}:
        raise UnknownIndexError(
            f"no {kind} index has hashing {hashing!r} (accepted: {PYBLOOM!r}, or None "
            "for SplitMix64)"
        )


def pack_filter(
    keys: Keys,
    error_rate: float,
    domain: Domain,
    *,
    own: bytes = b"",
    hashing: str | None = None,
) -> list[bytes]:
    """The parts of a filter of some keys.

    ``keys`` are distinct integers, or byte strings, which may repeat.  ``error_rate``
    is the fraction of absent keys that are not excluded, and ``own`` ends the
    header.  ``hashing`` is ``PYBLOOM``, or None for blocks.
    """
    if hashing != PYBLOOM:
        hashes = distinct_hashes(keys)
        n_keys, capacity = len(hashes), capacity_for(len(hashes))
        blocks = Blocks.for_keys(capacity, error_rate)
        bits = blocks.filled(hashes)
        return _parts(blocks, bits, n_keys, capacity, error_rate, domain, own)
    texts = texts_of(keys)
    n_keys, capacity = len(texts), capacity_for(len(texts))
    shape, bits = filled(texts, capacity, error_rate)
    return _parts(shape, bits, n_keys, capacity, error_rate, domain, own)


def _parts(
    shape: Shape,
    bits: bytes,
    n_keys: int,
    capacity: int,
    error_rate: float,
    domain: Domain,
    own: bytes,
) -> list[bytes]:
    head = FilterHead(n_keys, shape.k, shape.n, shape.text, witness_of(shape), own)
    fixed = FILE_HEAD.pack(error_rate, shape.k, shape.n, capacity, n_keys)
    return [head.to_bytes(domain), fixed + bits]


def capacity_for(n_keys: int) -> int:
    """``n_keys`` rounded up to 4 significant bits: up to an eighth more."""
    shift = max(0, n_keys.bit_length() - _CAPACITY_BITS)
    return max(1, -(-n_keys >> shift) << shift)


@functools.lru_cache(maxsize=4096)
def witness_of(shape: Shape) -> int:
    """What this library, or pybloom-live, makes of one key that never changes."""
    return int(crc32c(struct.pack(f"<{shape.k}Q", *shape.bits_of(_WITNESS))))


@functools.lru_cache(maxsize=4096)
def _shape_of(scheme: bytes, k: int, m: int) -> Shape | None:
    """The shape that a header describes; None if no filter has it."""
    if scheme.startswith(_SPLITMIX):
        return Blocks.parse(scheme, k, m)
    return Slices(k, m) if 0 < k <= _MAX_SLICES and 0 < m < 1 << 48 else None


@dataclass(frozen=True, slots=True)
class FilterHead:
    """The header of a filter.

    ``k`` is the bits of a key, and ``m`` the blocks, or the bits of a slice.
    ``scheme`` is how a key becomes bits, ``witness`` a sample of that, and ``own`` what
    the kind adds.
    """

    n_keys: int
    k: int
    m: int
    scheme: bytes
    witness: int
    own: bytes

    @classmethod
    def read(
        cls, raw: bytes | memoryview, domain: Domain, kind: str, *, n_own: int
    ) -> FilterHead:
        """The header in part 0, of whatever scheme.

        Raises:
            CorruptIndexError: it is damaged, or of another domain.
            IndexVersionError: a newer library wrote it.
        """
        cursor = Cursor(raw)
        check_version(raw, VERSION, kind)
        _, n_tag, n_scheme, _, n_keys, k, witness, m = cursor.unpack(_HEAD)
        check_tag(cursor.bytes(n_tag), domain, kind)
        scheme = bytes(cursor.bytes(n_scheme))
        own = bytes(cursor.bytes(n_own))
        cursor.end()
        head = cls(n_keys, k, m, scheme, witness, own)
        _ = head.shape  # which refuses what no filter has
        return head

    @property
    def shape(self) -> Shape:
        """What the header says of the bits.

        Raises:
            CorruptIndexError: no filter has this shape.
        """
        shape = _shape_of(self.scheme, self.k, self.m)
        if shape is None:
            raise CorruptIndexError(
                f"no filter of scheme {self.scheme!r} has k = {self.k} and m = {self.m}"
            )
        return shape

    def to_bytes(self, domain: Domain) -> bytes:
        """Part 0."""
        tag = domain.tag.encode()
        fixed = _HEAD.pack(
            VERSION,
            len(tag),
            len(self.scheme),
            0,
            self.n_keys,
            self.k,
            self.witness,
            self.m,
        )
        return fixed + tag + self.scheme + self.own


def check_scheme(head: FilterHead, kind: str) -> None:
    """Raise ``CorruptIndexError`` unless this library makes the same bits of a key."""
    shape = head.shape
    if head.scheme != shape.text or head.witness != witness_of(shape):
        is_own = isinstance(shape, Blocks)
        here = "this library" if is_own else "the installed pybloom-live"
        raise CorruptIndexError(
            f"a {kind} filter was built with scheme {head.scheme!r}, and {here} has "
            f"{shape.text!r}, or other bits of it"
        )


def may_hold(bits: memoryview, shape: Shape, key: Value) -> bool:
    """Whether ``key`` may be in the filter of these bits; if not, it is not."""
    return all(bits[bit >> 3] >> (bit & 7) & 1 for bit in shape.places(key))


def split_bits(
    raw: bytes | memoryview, head: FilterHead
) -> tuple[tuple[float, int], memoryview]:
    """The error rate and capacity, and the bits, of part 1.

    Raises:
        CorruptIndexError: it is not the filter that ``head`` describes.
    """
    cursor = Cursor(raw)
    error_rate, k, m, capacity, count = cursor.unpack(FILE_HEAD)
    bits = cursor.bytes((head.shape.n_bits + 7) // 8)
    cursor.end()
    if (k, m, count) != (head.k, head.m, head.n_keys) or count > capacity:
        raise CorruptIndexError(
            f"a bloom filter of {count} keys, k = {k}, m = {m} and capacity "
            f"{capacity} is not the one that its header describes"
        )
    return (error_rate, capacity), bits
