"""pybloom-live filters, filled in bulk with the very bits of ``BloomFilter.add``.

pybloom-live 4 hashes a key with salts ``H(H(i))``, ``i`` = 0, 1, ..., reads the
digests as native words of 16, 32 or 64 bits, and sets bit ``word mod m`` in each of
its ``k`` slices of ``m`` bits.  ``H`` and the width follow from ``k`` and ``m``.  So
one digest per salt and key is all that Python has to do, and numpy does the rest.

The installed library is the judge: the first filter of a scheme in a process is
preceded by a small one that is built both ways, and if they differ ``add`` is used.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash
from bitarray import bitarray
from pybloom_live import BloomFilter
from pybloom_live.pybloom import make_hashfuncs

from skipindex.expressions.atoms import Value
from skipindex.indexes.filters.splitmix import Keys, Pieces

_WIDE: Final = 1 << 31
_MIDDLE: Final = 1 << 15
"""Bits of a slice from which a hash word has 8 bytes, or 4."""
_BATCH: Final = 1 << 16
"""Keys that are hashed together."""
_CHECKED_KEYS: Final = tuple(f"key {i} \u00e9".encode() for i in range(20))


@dataclass(frozen=True, slots=True)
class Slices:
    """The shape of a filter of pybloom-live.

    Every key has one bit of each of the ``k`` slices, which have ``n`` bits.
    """

    k: int
    n: int

    @property
    def text(self) -> bytes:
        """What the bits depend on besides ``n``; part of the payload."""
        return scheme_of(self.k, self.n).encode()

    @property
    def n_bits(self) -> int:
        """Bits of the whole filter."""
        return self.k * self.n

    def bits_of(self, key: Value) -> list[int]:
        """The bit of ``key`` in each slice."""
        return list(hashes(self.k, self.n)[0](bloom_key(key)))

    def places(self, key: Value) -> list[int]:
        """The bits of ``key`` in the whole filter."""
        return [i * self.n + bit for i, bit in enumerate(self.bits_of(key))]


def bloom_key(value: Value) -> str:
    """The text that stands for a key in a filter of pybloom-live.

    Integers are written in decimal; byte strings are the text that they encode, or
    Latin-1 where they are not UTF-8.  Two keys may share a text, which keeps too many
    files, never too few.
    """
    if isinstance(value, int):
        return str(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def texts_of(keys: Keys) -> list[bytes]:
    """The distinct texts of keys, as UTF-8; integers are distinct already."""
    if isinstance(keys, np.ndarray):
        return [b"%d" % key for key in keys.tolist()]
    if isinstance(keys, Pieces):
        ends = (keys.begins + keys.lengths).tolist()
        data = keys.data.tobytes()
        pieces = {
            data[at:end] for at, end in zip(keys.begins.tolist(), ends, strict=True)
        }
        keys = pa.array(sorted(pieces), pa.large_binary())
    distinct = keys.unique()
    texts: list[bytes] = distinct.to_pylist()
    try:
        distinct.cast(pa.large_string())  # checks that all are UTF-8, and faster
    except pa.ArrowInvalid:
        return sorted({bloom_key(text).encode() for text in texts})
    return texts


def word_bytes(m: int) -> int:
    """The width of a hash word for slices of ``m`` bits."""
    return 8 if m >= _WIDE else 4 if m >= _MIDDLE else 2


def scheme_of(k: int, m: int) -> str:
    """What the bits of a filter depend on besides ``m``; part of the payload."""
    _, hashfn = hashes(k, m)
    return f"{hashfn().name}/u{word_bytes(m)}/k{k}/{sys.byteorder}"


@functools.lru_cache(maxsize=4096)
def hashes(k: int, m: int) -> tuple[Callable[[str], Any], Callable[[], Any]]:
    """The installed pybloom-live's own: a key to its bits, and the hash it uses."""
    maker, hashfn = make_hashfuncs(k, m)
    return maker, hashfn


def filled(
    texts: Sequence[bytes], capacity: int, error_rate: float
) -> tuple[Slices, bytes]:
    """The filter of distinct UTF-8 texts: its shape, and its bits."""
    bloom = BloomFilter(capacity, error_rate)
    fill(bloom, texts)
    return Slices(bloom.num_slices, bloom.bits_per_slice), bloom.bitarray.tobytes()


def fill(bloom: Any, keys: Sequence[bytes]) -> None:
    """Add distinct UTF-8 keys to an empty filter, as ``add(key, skip_check=True)``."""
    k, m = bloom.num_slices, bloom.bits_per_slice
    if word_bytes(m) < 8 and _agrees(k, word_bytes(m)):
        _fill_in_bulk(bloom, keys)
    else:
        _fill_one_by_one(bloom, keys)


def _fill_one_by_one(bloom: Any, keys: Sequence[bytes]) -> None:
    for key in keys:
        bloom.add(key.decode(), skip_check=True)


def _fill_in_bulk(bloom: Any, keys: Sequence[bytes]) -> None:
    k, m = bloom.num_slices, bloom.bits_per_slice
    bits = np.zeros(k * m, np.uint8)
    for at in range(0, len(keys), _BATCH):
        words = _words(k, word_bytes(m), keys[at : at + _BATCH])
        places = (words % words.dtype.type(m)).astype(np.int64)
        places += np.arange(k, dtype=np.int64) * m
        bits[places.ravel()] = 1
    filled = bitarray(endian="little")
    filled.frombytes(np.packbits(bits, bitorder="little").tobytes())
    del filled[k * m :]
    bloom.bitarray = filled
    bloom.count = len(keys)


def _words(k: int, width: int, keys: Sequence[bytes]) -> npt.NDArray[Any]:
    """The first ``k`` hash words of every key."""
    size, new = _hash_of(8 * k * width)
    per_digest = size // width
    columns = []
    for i in range(-(-k // per_digest)):
        salt = new(struct.pack("I", i)).digest()
        if new is xxhash.xxh128:
            digest = xxhash.xxh128_digest
            raw = b"".join([digest(salt + key) for key in keys])
        else:
            raw = b"".join([new(salt + key).digest() for key in keys])
        columns.append(np.frombuffer(raw, f"=u{width}").reshape(-1, per_digest))
    words = columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)
    return words[:, :k]


def _hash_of(n_bits: int) -> tuple[int, Callable[[bytes], Any]]:
    """The bytes of a digest, and the hash that pybloom-live takes for them."""
    if n_bits <= 128:
        return 16, xxhash.xxh128
    if n_bits <= 160:
        return 20, _constructor("sha1")
    if n_bits <= 256:
        return 32, _constructor("sha256")
    if n_bits <= 384:
        return 48, _constructor("sha384")
    return 64, _constructor("sha512")


def _constructor(name: str) -> Callable[[bytes], Any]:
    """A hash of the standard library; the interpreter's own if it has one."""
    # On short keys OpenSSL spends most of its time on making the object.
    for module in (f"_{name}", "_sha2", "_sha512"):
        try:
            own: Callable[[bytes], Any] = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
        return own
    openssl: Callable[[bytes], Any] = getattr(hashlib, name)
    return openssl


@functools.cache
def _agrees(k: int, width: int) -> bool:
    """Whether a small filter comes out the same both ways."""
    # Any error rate with k slices, and just enough capacity for the word's width.
    error_rate = 0.75 * 2.0 ** (1 - k)
    capacity = 100
    while word_bytes(BloomFilter(capacity, error_rate).bits_per_slice) < width:
        capacity *= 4
    bulk, single = (BloomFilter(capacity, error_rate) for _ in range(2))
    if bulk.num_slices != k or word_bytes(bulk.bits_per_slice) != width:
        return False
    _fill_in_bulk(bulk, _CHECKED_KEYS)
    _fill_one_by_one(single, _CHECKED_KEYS)
    return bool(bulk.bitarray == single.bitarray) and bulk.count == single.count
