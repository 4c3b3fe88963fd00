"""A Bloom filter of all pieces of ``n`` bytes: which files have no ``'%abc%'``.

A value that contains a text contains every run of ``n`` bytes of that text, so a file
whose filter lacks one of them has no such value.  LIKE with any number of pieces,
``contains``, ``startswith``, ``endswith``, ``=`` and IN are answered; a negation, and a
text of fewer than ``n`` bytes, are unknown.  Letters differ from capitals,
as LIKE does.

``filters.payload`` has the layout, with u64 ``n`` and u64 rows of the file at the end
of part 0.  A key is the number whose bytes, the highest first, are the piece.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipindex.errors import CorruptIndexError, UnknownIndexError
from skipindex.expressions.arrays import Words, starts
from skipindex.expressions.atoms import Value
from skipindex.expressions.patterns import Fragment
from skipindex.indexes.filters.filter_type import FilterSpec, FilterType
from skipindex.indexes.filters.text_keys import TextFilterSpec, text_layout

_OWN: Final = struct.Struct("<Q")
_LENGTHS: Final = range(2, 9)
_BATCH_BYTES: Final = 1 << 21
"""Bytes whose pieces are made together."""
_TABLE_LENGTH: Final = 3
"""Up to this length, a table of all possible pieces is smaller than a sort."""


_Numbers = npt.NDArray[np.uint32] | npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class NGramBloom(TextFilterSpec):
    """A Bloom filter of the pieces of ``n`` bytes of a string column.

    Args:
        n: bytes of UTF-8 in a piece, 2 to 8.  Longer pieces rule out more files, but
            the text of a condition must have at least ``n`` bytes.
        error_rate: the fraction of absent pieces that the filter does not exclude.
        hashing: see ``Bloom``.

    >>> report = table.build_indexes({"city": sx.NGramBloom(n=2)}, workers=1)
    >>> report.table.plan("city LIKE '%ari%'").paths
    ['part-1.parquet']
    """

    n: int = 3
    error_rate: float = 0.01
    hashing: str | None = None
    kind: ClassVar[str] = "ngram_bloom"
    n_own: ClassVar[int] = _OWN.size

    def __post_init__(self) -> None:
        if self.n not in _LENGTHS:
            raise UnknownIndexError(
                f"no ngram_bloom index has pieces of {self.n!r} bytes "
                "(accepted: 2 to 8)"
            )
        FilterSpec.__post_init__(self)  # super() does not know a class with slots

    @classmethod
    def keys_by(cls, own: bytes) -> Callable[[Fragment], Sequence[Value]]:
        """All pieces of a fragment; the own bytes have their length.

        Raises:
            CorruptIndexError: no piece has this length.
        """
        (n,) = _OWN.unpack(own)
        if n not in _LENGTHS:
            raise CorruptIndexError(f"an ngram_bloom has pieces of {n} bytes")

        def keys_of(fragment: Fragment) -> list[int]:
            text = fragment.text
            pieces = {text[i : i + n] for i in range(len(text) - n + 1)}
            return [int.from_bytes(piece, "big") for piece in sorted(pieces)]

        return keys_of

    @property
    def memory_per_byte(self) -> int:
        """See ``interface``; a piece may begin with each byte."""
        if self.hashing:
            return 160
        if self.n <= _TABLE_LENGTH:
            return 0
        return 12 if self.n <= 4 else 24

    def pieces(self, values: pa.LargeBinaryArray) -> Words:
        """The distinct pieces, as numbers."""
        return _pieces(values, self.n).astype(np.uint64, copy=False)

    def own(self, n_rows: int) -> bytes:
        """The length of a piece, and how many rows the file has."""
        return _OWN.pack(self.n) + TextFilterSpec.own(self, n_rows)


def _pieces(values: pa.LargeBinaryArray, n: int) -> _Numbers:
    """The distinct pieces of ``n`` bytes, as ascending big-endian numbers."""
    batches = _batches(values)
    if n <= _TABLE_LENGTH:
        seen = np.zeros(1 << 8 * n, np.bool_)
        for batch in batches:
            seen[_windows(batch, n)] = True
        return np.flatnonzero(seen).astype(np.uint64)
    result = [_distinct(_windows(batch, n)) for batch in batches]
    return _distinct(np.concatenate([np.empty(0, np.uint32), *result]))


def _batches(values: pa.LargeBinaryArray) -> Iterator[pa.LargeBinaryArray]:
    """The values, so many at a time that they have about ``_BATCH_BYTES``."""
    _, data = text_layout(values)
    n = max(1, len(values) * _BATCH_BYTES // max(1, len(data)))
    for at in range(0, len(values), n):
        yield values.slice(at, n)


def _distinct(numbers: _Numbers) -> _Numbers:
    # Sorted and compared: np.unique hashes, which takes ten times as long.
    numbers.sort()
    return numbers[starts(numbers)]


def _windows(values: pa.LargeBinaryArray, n: int) -> _Numbers:
    """All pieces of ``n`` bytes, as big-endian numbers."""
    ends, data = text_layout(values)
    n_windows = max(0, len(data) - n + 1)
    whole = np.ones(n_windows, np.bool_)
    for back in range(1, n):  # a piece that begins there goes beyond its value
        crossing = ends - back
        whole[crossing[(crossing >= 0) & (crossing < n_windows)]] = False
    width = np.dtype(np.uint32 if n <= 4 else np.uint64)
    numbers = np.zeros(n_windows, width)
    for i in range(n):
        numbers <<= width.type(8)
        numbers |= data[i : i + n_windows]
    pieces: _Numbers = numbers[whole]
    return pieces


INDEX_TYPE: Final = FilterType(spec=NGramBloom)
