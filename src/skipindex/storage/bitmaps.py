"""Bitmaps of rows as bytes: in roaring's portable format, or as plain bits.

The portable format is RoaringFormatSpec (see ``indexes/encoding/roaring.py``).  Plain
bits are ``PLAIN`` as u16, and then one bit for each row, the lowest of a byte first;
zero bytes at the end are not stored.  They take far fewer bytes where a file has fewer
rows than the one container of a bitmap, and where these rows are neither few nor in
runs.
"""

from __future__ import annotations

import functools
import struct
from typing import Final, TypeVar, cast

import numpy as np
from pyroaring import AbstractBitMap, FrozenBitMap

from skipindex.errors import CorruptIndexError

PLAIN: Final = 12345
"""The first 16 bits of plain bits; no portable bitmap begins with them."""
NO_RUNS: Final = 12346
"""The first 32 bits of a portable bitmap without runs."""
RUNS: Final = 12347
"""The first 16 bits of a portable bitmap that has runs."""
BITS_SIZE: Final = 8192
"""The bytes of a container, which is of 65,536 rows, in bits."""
ARRAY_MAX: Final = 4096
"""The rows up to which a container without runs is an array of u16."""
ONE_CONTAINER: Final = struct.Struct("<IIHHI")
"""What is before the bytes of a portable bitmap's only container, without runs."""
_COOKIE: Final = struct.Struct("<I")
_PLAIN_COOKIE: Final = PLAIN.to_bytes(2, "little")
_MANY_RUNS: Final = 1024
"""Bytes a container from which the runs of a bitmap are made bits."""
_MOST_ROWS: Final = 1 << 22
"""Rows of a file from which runs stay runs: there are few such files."""

B = TypeVar("B", bound=AbstractBitMap)


def bitmap_of(raw: bytes | memoryview) -> FrozenBitMap:
    """An immutable bitmap; many runs are bits in it.

    An AND or OR of two containers with many runs takes ten times as long as of bits.
    """
    bitmap = deserialized(FrozenBitMap, raw)
    if not _run_heavy(raw) or bitmap.max() >= _MOST_ROWS:
        return bitmap
    even, odd = _halves()
    # CRoaring makes bits of runs and bits.
    return bitmap & even | bitmap & odd


def memory_of(raw: bytes | memoryview) -> int:
    """About what the bitmap of these bytes takes."""
    return _run_heavy(raw) * BITS_SIZE or max(len(raw), BITS_SIZE * is_plain(raw))


def _run_heavy(raw: bytes | memoryview) -> int:
    """How many containers a bitmap with many runs has; 0 if its runs are few."""
    if len(raw) < _MANY_RUNS:
        return 0
    (cookie,) = _COOKIE.unpack_from(raw)
    if cookie & 0xFFFF != RUNS:
        return 0
    n: int = (cookie >> 16) + 1
    return n if len(raw) >= n * _MANY_RUNS else 0


@functools.cache
def _halves() -> tuple[FrozenBitMap, FrozenBitMap]:
    """The even and the odd rows, whose containers are bits."""
    even, odd = (FrozenBitMap(range(i, _MOST_ROWS, 2)) for i in range(2))
    return even, odd


def deserialized(kind: type[B], raw: bytes | memoryview) -> B:
    """The bitmap whose bytes these are, portable or plain."""
    try:
        if is_plain(raw):
            return of_bits(kind, np.frombuffer(raw, np.uint8, offset=2))
        return kind.deserialize(cast(bytes, raw))
    except (ValueError, IndexError) as error:
        raise CorruptIndexError(
            f"{len(raw)} bytes are no roaring bitmap ({error})"
        ) from error


def of_bits(kind: type[B], bits: np.ndarray) -> B:
    """The bitmap of up to 65,536 rows by one bit each, the lowest of a byte first."""
    raw = np.zeros(ONE_CONTAINER.size + BITS_SIZE, np.uint8)
    raw[ONE_CONTAINER.size : ONE_CONTAINER.size + len(bits)] = bits
    words = raw[ONE_CONTAINER.size :].view(np.uint64)
    card = int(np.bitwise_count(words).sum())
    is_array = card <= ARRAY_MAX
    if is_array:  # the other rows are bits, and CRoaring makes an array
        np.invert(words, out=words)
        card = 8 * BITS_SIZE - card
    ONE_CONTAINER.pack_into(raw.data, 0, NO_RUNS, 1, 0, card - 1, ONE_CONTAINER.size)
    bitmap = kind.deserialize(cast(bytes, raw.data))
    return bitmap.flip(0, 8 * BITS_SIZE) if is_array else bitmap


def is_plain(raw: bytes | memoryview) -> bool:
    """Whether these are plain bits."""
    return raw[:2] == _PLAIN_COOKIE
