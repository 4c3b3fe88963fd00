"""Codes of a column's values, and how the header stores the coding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from skipindex.expressions.arrays import Codes
from skipindex.indexes.encoding.chunks import (
    INTS_PER_CHUNK,
    pack_ints,
    pack_texts,
    text_ends,
)
from skipindex.indexes.encoding.column import NULL_CODE, EncodedColumn
from skipindex.indexes.encoding.header import BYTES, VALUE_MODE, Head
from skipindex.indexes.encoding.ranks import Distinct

_BOUND_BYTES: Final = 64
"""Bounds of byte strings that are longer are cut, the upper one upwards."""

_PACKED: Final[WeakKeyDictionary[EncodedColumn, tuple[int, bytes, list[bytes]]]] = (
    WeakKeyDictionary()
)
"""The dictionaries of columns: kinds that are built on one column share it."""


@dataclass(frozen=True, slots=True)
class Coding:
    """A column as codes, and what a reader needs to understand them.

    ``codes`` has ``NULL_CODE`` where a row is NULL; the others are below ``n_codes``.
    ``form`` is ``VALUE_MODE``, ``BYTES`` or 0, ``head`` the codebook's piece of the
    header, and ``chunks`` the dictionary.
    """

    codes: Codes
    n_codes: int
    form: int
    head: bytes
    chunks: list[bytes]

    def header(
        self, column: EncodedColumn, *, version: int, parameter: int = 0
    ) -> bytes:
        """The header of a payload, ready for what its kind adds."""
        head = Head(
            version=version,
            form=self.form,
            parameter=parameter,
            n_rows=column.n_rows,
            null_count=column.null_count,
            n_codes=self.n_codes,
            n_chunks=len(self.chunks),
        )
        return head.to_bytes(column.domain) + self.head


def rank_coding(column: EncodedColumn) -> Coding:
    """Code by rank, with a dictionary."""
    codes = column.codes  # first: the distinct values come with them
    packed = _PACKED.get(column)
    if packed is None:
        packed = _PACKED[column] = dictionary(column.distinct)
    form, head, chunks = packed
    return Coding(codes, column.n_distinct, form, head, chunks)


def dictionary(distinct: Distinct) -> tuple[int, bytes, list[bytes]]:
    """The form, piece of a header and chunks of sorted distinct values."""
    if isinstance(distinct, np.ndarray):
        head = np.append(distinct[-1:], distinct[::INTS_PER_CHUNK]).astype("<i8")
        return 0, head.tobytes(), list(pack_ints(distinct))
    ends = text_ends(distinct)
    return BYTES, _text_head(distinct, ends), list(pack_texts(distinct, ends))


def value_span(column: EncodedColumn) -> int | None:
    """How many codes value mode needs; None if no integers are there, or too many."""
    low, high = column.minimum, column.maximum
    if not isinstance(low, int) or not isinstance(high, int):
        return None
    span = high - low + 1
    return span if span < NULL_CODE else None


def value_coding(column: EncodedColumn, span: int) -> Coding:
    """Code by the difference from the least value; ``span`` is ``value_span``."""
    values, low = column.values, column.minimum
    assert isinstance(values, np.ndarray)
    assert isinstance(low, int)
    codes = column.spread((values - low).astype(np.uint32))
    head = np.array([low], "<i8").tobytes()
    return Coding(codes, span, VALUE_MODE, head, [])


def dictionary_bits(n_distinct: int, span: int) -> float:
    """About the size of a sorted dictionary of integers: the entropy of its gaps."""
    return n_distinct * (math.log2(span / n_distinct) + 1.5)


def _text_head(distinct: pa.LargeBinaryArray, ends: list[int]) -> bytes:
    keys = [
        _separator(distinct[end - 1].as_py(), distinct[end].as_py())
        for end in ends[:-1]
    ]
    bounds = [b"", b""]
    if len(distinct):
        least, greatest = distinct[0].as_py(), distinct[-1].as_py()
        bounds = [least[:_BOUND_BYTES], _above(greatest)]
    texts = keys + bounds
    text_stops = np.cumsum([len(text) for text in texts])
    numbers = np.concatenate((ends, text_stops)).astype("<u4")
    return numbers.tobytes() + b"".join(texts)


def _separator(before: bytes, first: bytes) -> bytes:
    """The shortest prefix of ``first`` that is greater than ``before``."""
    n = 0
    while n < len(before) and before[n] == first[n]:
        n += 1
    return first[: n + 1]


def _above(greatest: bytes) -> bytes:
    """A short bound above ``greatest``, errs upwards; empty if there is none."""
    if len(greatest) < _BOUND_BYTES:
        return greatest + b"\0"
    prefix = greatest[:_BOUND_BYTES].rstrip(b"\xff")
    return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else b""
