"""Byte strings as 64-bit words, so that numpy compares many of them at a time.

A word is 8 bytes as a big-endian number, filled up with zeros after the end of the
string.  Strings whose words differ are ordered as their words.  Where all words of the
shorter string are equal, it is a prefix of the longer one except for NUL bytes at the
ends, and the lengths tell the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipindex.expressions.arrays import Ints, Words
from skipindex.indexes.encoding.ranks import layout_of, words_at

WORD: Final = 8
"""Bytes of a word."""
_BLOCK: Final = 1 << 15
"""Words that are made at a time, in the processor's cache."""


class ByteStrings:
    """Byte strings in one buffer, of which words are read where they are requested.

    ``values`` may have offsets of 32 bits too; NULL is any string.
    """

    __slots__ = ("_begins", "_data", "_ends")

    def __init__(self, values: pa.LargeBinaryArray) -> None:
        offsets, data = layout_of(values)
        self._begins, self._ends = offsets[:-1], offsets[1:]
        self._data = data[: int(offsets[-1])]
        if len(self._data) < WORD:
            self._data = np.append(self._data, np.zeros(WORD, np.uint8))

    @classmethod
    def of(cls, values: Sequence[bytes]) -> ByteStrings:
        """These strings."""
        return cls(pa.array(values, pa.large_binary()))

    def __len__(self) -> int:
        return len(self._begins)

    def lengths(self, rows: Ints | slice) -> Ints:
        """How many bytes the strings at ``rows`` have."""
        result = self._ends[rows] - self._begins[rows]
        return result.astype(np.int64, copy=False)

    def words(self, rows: Ints | slice, at: int) -> Words:
        """The bytes from ``at`` to ``at + 8`` of the strings at ``rows``."""
        begins = self._begins[rows].astype(np.int64, copy=False)
        return words_at(self._data, begins + at, self.lengths(rows) - at)


class WordKeys:
    """64-bit keys of many byte strings; keys that differ have the order of the strings.

    The 16 bytes after the prefix that all strings share are a number.  The key is
    the distance from the least one, without as many low bits as do not fit.

    No string that gets a key is less than ``least``, and none is greater than ``most``.
    """

    def __init__(self, least: bytes, most: bytes) -> None:
        both = zip(least, most, strict=False)
        same = (i for i, (one, other) in enumerate(both) if one != other)
        self._skip = next(same, min(len(least), len(most)))
        self._least = self._number(least)
        width = self._number(most) - self._least
        self._shift = max(0, width.bit_length() - 8 * WORD)

    @property
    def n_shared(self) -> int:
        """How many first bytes all strings share."""
        return self._skip

    @property
    def n_equal(self) -> int:
        """How many bytes, filled up with zeros, are equal where keys are."""
        return self._skip if self._shift else self._skip + 2 * WORD

    def key(self, value: bytes) -> np.uint64:
        """The key of one string."""
        return np.uint64((self._number(value) - self._least) >> self._shift)

    def keys(self, strings: ByteStrings) -> Words:
        """The keys of all strings; arbitrary for one that is not in the span."""
        result = np.empty(len(strings), np.uint64)
        shift, rest = np.uint64(self._shift), np.uint64(8 * WORD - self._shift)
        high, low = (np.uint64(half) for half in divmod(self._least, 1 << 8 * WORD))
        for start in range(0, len(strings), _BLOCK):
            block = slice(start, start + _BLOCK)
            highs, lows = (strings.words(block, self._skip + at) for at in (0, WORD))
            highs -= high
            highs -= lows < low
            lows -= low
            if 0 < self._shift < 8 * WORD:
                lows = highs << rest | lows >> shift
            result[block] = lows if self._shift < 8 * WORD else highs
        return result

    def _number(self, value: bytes) -> int:
        part = value[self._skip : self._skip + 2 * WORD]
        return int.from_bytes(part.ljust(2 * WORD, b"\0"), "big")


def compare(
    left: ByteStrings, at: Ints, right: ByteStrings, places: Ints, *, begin: int = 0
) -> npt.NDArray[np.int8]:
    """-1, 0 or 1 for every pair whose left string is less, equal or greater.

    The strings of every pair are at ``at`` in ``left`` and at ``places`` in ``right``.
    The ``begin`` first bytes of both, filled up with zeros, are equal.

    >>> some = ByteStrings.of([b"a", bytes([97, 0]), b"Rome, and more"])
    >>> compare(some, np.array([0, 1, 2]), some, np.array([1, 1, 0])).tolist()
    [-1, 0, -1]
    """
    result = np.zeros(len(at), np.int8)
    tied = np.arange(len(at))
    while len(tied):
        one, other = left.words(at[tied], begin), right.words(places[tied], begin)
        result[tied] = (one > other).view(np.int8) - (one < other).view(np.int8)
        tied = tied[one == other]
        begin += WORD
        lengths = left.lengths(at[tied]), right.lengths(places[tied])
        ended = np.minimum(*lengths) <= begin
        result[tied[ended]] = np.sign(lengths[0] - lengths[1])[ended]
        tied = tied[~ended]
    return result
