"""SplitMix64: the hash of a key, for one key in Python and for a column in numpy.

A key is an integer or a byte string.  All arithmetic is modulo ``2 ** 64``::

    mix(x)      x ^= x >> 30;  x *= 0xBF58476D1CE4E5B9
                x ^= x >> 27;  x *= 0x94D049BB133111EB
                x ^= x >> 31
    out(s, i)   mix(s + i * 0x9E3779B97F4A7C15)
    number      of an integer: the integer itself, in two's complement
                of a byte string: its length in bytes, plus the sum of out(w, i) over
                its words w, i = 1, 2, ...: 8 bytes, the lowest first, the last word
                filled up with zeros
    hash        out(number, 1)

``out(s, 1), out(s, 2), ...`` is the generator SplitMix64 with seed ``s`` (Steele, Lea
and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).  Every step is
one-to-one, so two integers never share a hash.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final, Self, TypeAlias

import numpy as np
import pyarrow as pa

from skipindex.expressions.arrays import Bits, Ints, Words
from skipindex.expressions.atoms import Value
from skipindex.indexes.encoding.ranks import layout_of


@dataclass(frozen=True, slots=True)
class Pieces:
    """Byte strings that lie anywhere in some bytes."""

    begins: Ints
    lengths: Ints
    data: Bits

    @classmethod
    def of(cls, texts: pa.LargeBinaryArray) -> Self:
        """The strings of an array without NULL."""
        offsets, data = layout_of(texts)
        return cls(offsets[:-1], np.diff(offsets), data)

    def __len__(self) -> int:
        return len(self.begins)


Keys: TypeAlias = Ints | Words | pa.LargeBinaryArray | Pieces
"""Keys of one kind: integers, or byte strings without NULL."""

_MASK: Final = (1 << 64) - 1
_STEP: Final = 0x9E3779B97F4A7C15
_FIRST: Final = 0xBF58476D1CE4E5B9
_SECOND: Final = 0x94D049BB133111EB
_BATCH: Final = 1 << 14
"""Numbers that are hashed together: they stay in the processor's nearest memory."""
_FEW: Final = 128
"""Byte strings of which a further word is not taken from all of them at once."""
_MANY: Final = 512
"""Words after which byte strings are hashed one by one."""
_LOW_BYTES: Final = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)


def mix(x: int) -> int:
    """The finalizer of SplitMix64; one-to-one on 64 bits."""
    x = (x ^ x >> 30) * _FIRST & _MASK
    x = (x ^ x >> 27) * _SECOND & _MASK
    return x ^ x >> 31


def out(seed: int, i: int) -> int:
    """Output ``i``, counted from 1, of the generator with a seed.

    >>> out(1234567, 1)
    6457827717110365317
    """
    return mix(seed + i * _STEP & _MASK)


@functools.lru_cache(maxsize=4096)
def hash_of(key: Value) -> int:
    """The hash of one key."""
    if isinstance(key, int):
        return out(key, 1)
    words = (key[at : at + 8] for at in range(0, len(key), 8))
    numbers = (int.from_bytes(word, "little") for word in words)
    return out(len(key) + sum(out(word, i) for i, word in enumerate(numbers, 1)), 1)


def outputs(seeds: Words, i: int) -> Words:
    """Output ``i`` of the generator with each seed."""
    x = seeds + np.uint64(i * _STEP & _MASK)
    _mix(x)
    return x


def hashes_of(keys: Keys) -> Words:
    """The hash of every key."""
    if isinstance(keys, np.ndarray):
        numbers = keys.view(np.uint64)
    else:
        numbers = _numbers(keys if isinstance(keys, Pieces) else Pieces.of(keys))
    result = np.empty(len(numbers), np.uint64)
    for at in range(0, len(numbers), _BATCH):
        result[at : at + _BATCH] = outputs(numbers[at : at + _BATCH], 1)
    return result


def _mix(x: Words) -> None:
    """``mix`` of every number, in its place."""
    shifted = np.empty_like(x)
    for shift, factor in ((30, _FIRST), (27, _SECOND)):
        np.right_shift(x, np.uint64(shift), out=shifted)
        np.bitwise_xor(x, shifted, out=x)
        np.multiply(x, np.uint64(factor), out=x)
    np.right_shift(x, np.uint64(31), out=shifted)
    np.bitwise_xor(x, shifted, out=x)


def _numbers(texts: Pieces) -> Words:
    """The number of every byte string."""
    begins, lengths, data = texts.begins, texts.lengths, texts.data
    if len(data) < 8:  # the bytes of a word
        data = np.append(data, np.zeros(8, np.uint8))
    numbers = lengths.astype(np.uint64)
    for at in range(0, len(numbers), _BATCH):
        some = slice(at, at + _BATCH)
        _add_words(numbers[some], begins[some], lengths[some], data)
    return numbers


def _add_words(numbers: Words, begins: Ints, lengths: Ints, data: Bits) -> None:
    """Add the mixed words of some byte strings to their numbers."""
    # Word by word of all strings together; from where few have another word, or after
    # many words, string by string.
    n = 0 if len(begins) < _FEW else min(int(lengths.min()) // 8, _MANY)
    for i in range(n):  # words that all have, and whole
        numbers += outputs(_words(data, begins + 8 * i), i + 1)
    rows = np.flatnonzero(lengths > 8 * n)
    while len(rows) >= _FEW and n < _MANY:
        left = lengths[rows] - 8 * n
        words = _words(data, begins[rows] + 8 * n)
        words &= _LOW_BYTES[np.minimum(left, 8)]
        n += 1
        numbers[rows] += outputs(words, n)
        rows = rows[left > 8]
    for row in rows.tolist():
        begin, end = int(begins[row]), int(begins[row] + lengths[row])
        numbers[row] = int(numbers[row]) + _rest(data[begin:end], n) & _MASK


def _words(data: Bits, at: Ints) -> Words:
    """The 8 bytes at each place; zeros beyond the end of the data."""
    last = len(data) - 8
    windows = np.ndarray((last + 1,), "<u8", data, 0, (1,))
    if int(at.max()) <= last:
        words: Words = windows[at].astype(np.uint64, copy=False)
        return words
    words = windows[np.minimum(at, last)].astype(np.uint64, copy=False)
    beyond = np.flatnonzero(at > last)
    words[beyond] >>= (8 * (at[beyond] - last)).view(np.uint64)
    return words


def _rest(text: Bits, n: int) -> int:
    """The sum of the mixed words of one byte string but for its first ``n``."""
    total = 0
    for at in range(8 * n, len(text), 8 * _BATCH):
        piece = text[at : at + 8 * _BATCH]
        padded = np.zeros((len(piece) + 7) // 8 * 8, np.uint8)
        padded[: len(piece)] = piece
        words = padded.view("<u8").astype(np.uint64)
        places = np.arange(at // 8 + 1, at // 8 + 1 + len(words), dtype=np.uint64)
        words += places * np.uint64(_STEP)
        _mix(words)
        total += int(words.sum())
    return total
