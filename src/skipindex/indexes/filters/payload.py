"""The bits of a Bloom filter of texts, as pybloom-live has them, in a payload.

The payload, version 2, of all kinds that are filters::

    part 0    u8   version
              u8   t, length of the domain's tag
              u8   s, length of the scheme
              u8   0
              u64  n, the number of keys, which are distinct
              u32  k, slices
              u32  crc32c of the bits (k times u64) of the witness key
              u64  m, bits of a slice
              t    the domain's tag
              s    the scheme: hash / word width / k / byte order
              ..   what the kind adds
    part 1    what ``BloomFilter.tofile`` writes: f64 error rate, u64 k, u64 m,
              u64 capacity, u64 n, then the bits

In version 1 the capacity was the number of keys; since version 2 it is rounded up, so
that the filters of most files of a table have one size (``transposed``).

The bits depend on the version of pybloom-live and on the byte order of the machine.
So a filter is probed only if the installed library gives the scheme and the bits of
the witness that the filter was built with; otherwise it is no index.
"""

from __future__ import annotations

import functools
import io
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from crc32c import crc32c
from pybloom_live import BloomFilter

from skipindex.errors import CorruptIndexError, UnknownIndexError
from skipindex.expressions.atoms import Atom, OneOf, Value
from skipindex.expressions.domain import Domain
from skipindex.indexes.encoding.header import Cursor, check_tag, check_version
from skipindex.indexes.filters.hashing import fill, hashes, scheme_of

VERSION: Final = 2
FILE_HEAD: Final = struct.Struct("<dQQQQ")
"""What ``BloomFilter.tofile`` writes before the bits."""

_MAX_SLICES: Final = 64
_MOST_VALUES: Final = 8
_WITNESS: Final = "skipindex"
_HEAD: Final = struct.Struct("<BBBBQIIQ")
_CAPACITY_BITS: Final = 4


KeyAlternatives: TypeAlias = Sequence[Sequence[str]]
"""Lists of keys: a value has all keys of at least one of them."""

RequiredKeys: TypeAlias = Callable[[Atom], KeyAlternatives | None]
"""The keys of every value that makes an atom TRUE; None is "no opinion"."""


def saturates(atom: Atom, k: int) -> bool:
    """Whether an atom has so many values that a filter of ``k`` slices rules out none.

    Half of the bits are set, so one absent value in ``2 ** k`` seems to be present.
    """
    return isinstance(atom, OneOf) and len(atom.values) > _MOST_VALUES << k


def bloom_key(value: Value) -> str:
    """The text that stands for a value in a filter, for building and for probing.

    Integers are written in decimal; byte strings are the text that they encode, or
    Latin-1 where they are not UTF-8.  Two values may share a text, which keeps too many
    files, never too few.
    """
    if isinstance(value, int):
        return str(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def check_error_rate(error_rate: float, kind: str) -> None:
    """Raise ``UnknownIndexError`` if no filter has such a rate."""
    if not 2.0**-_MAX_SLICES < error_rate < 1:
        raise UnknownIndexError(
            f"no {kind} index has error rate {error_rate!r} (accepted: between 0 and 1)"
        )


def pack_filter(
    keys: Sequence[bytes], error_rate: float, domain: Domain, *, own: bytes = b""
) -> list[bytes]:
    """The parts of a filter of distinct UTF-8 keys; ``own`` ends the header."""
    bloom = BloomFilter(capacity_for(len(keys)), error_rate)
    fill(bloom, keys)
    k, m = bloom.num_slices, bloom.bits_per_slice
    head = FilterHead(len(keys), k, m, scheme_of(k, m).encode(), witness_of(k, m), own)
    file = io.BytesIO()
    bloom.tofile(file)
    return [head.to_bytes(domain), file.getvalue()]


def capacity_for(n_keys: int) -> int:
    """``n_keys`` rounded up to 4 significant bits: up to an eighth more."""
    shift = max(0, n_keys.bit_length() - _CAPACITY_BITS)
    return max(1, -(-n_keys >> shift) << shift)


@functools.lru_cache(maxsize=4096)
def witness_of(k: int, m: int) -> int:
    """What the installed library makes of one key that never changes."""
    bits = struct.pack(f"<{k}Q", *hashes(k, m)[0](_WITNESS))
    return int(crc32c(bits))


@dataclass(frozen=True, slots=True)
class FilterHead:
    """The header of a filter.

    Args:
        n_keys: that are in it.
        k: slices.
        m: bits of a slice.
        scheme: how a key becomes bits.
        witness: a sample of that.
        own: what the kind adds.
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
        check_size(head, kind)
        return head

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


def check_size(head: FilterHead, kind: str) -> None:
    """Raise ``CorruptIndexError`` for slices that no filter has."""
    if not (0 < head.k <= _MAX_SLICES and 0 < head.m < 1 << 48):
        raise CorruptIndexError(
            f"no {kind} filter has {head.k} slices of {head.m} bits"
        )


def check_scheme(head: FilterHead, kind: str) -> None:
    """Raise ``CorruptIndexError`` unless the installed library has that scheme."""
    scheme = scheme_of(head.k, head.m)
    if head.scheme != scheme.encode() or head.witness != witness_of(head.k, head.m):
        raise CorruptIndexError(
            f"a {kind} filter was built with scheme {head.scheme!r}, and the "
            f"installed pybloom-live has {scheme!r}"
        )


def places_of(key: str, k: int, m: int) -> list[int]:
    """The bits that ``key`` sets, one in each slice, of a filter of this shape."""
    bits = hashes(k, m)[0](key)
    return [i * m + bit for i, bit in enumerate(bits)]


def may_hold(bits: memoryview, head: FilterHead, key: str) -> bool:
    """Whether ``key`` may be in the filter of these bits; if not, it surely is not."""
    return all(
        bits[bit >> 3] >> (bit & 7) & 1 for bit in places_of(key, head.k, head.m)
    )


def split_bits(
    raw: bytes | memoryview, head: FilterHead
) -> tuple[tuple[float, int], memoryview]:
    """The error rate and capacity, and the bits, of part 1.

    Raises:
        CorruptIndexError: it is not the filter that ``head`` describes.
    """
    cursor = Cursor(raw)
    error_rate, k, m, capacity, count = cursor.unpack(FILE_HEAD)
    bits = cursor.bytes((head.k * head.m + 7) // 8)
    cursor.end()
    if (k, m, count) != (head.k, head.m, head.n_keys) or count > capacity:
        raise CorruptIndexError(
            f"a bloom filter of {count} keys, {k} slices of {m} bits and capacity "
            f"{capacity} is not the one that its header describes"
        )
    return (error_rate, capacity), bits
