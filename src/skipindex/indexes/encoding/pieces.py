"""A column of a large file, which comes piece by piece, ranked in little memory.

Every piece is ranked by itself, and of it the ranks and the sorted distinct values
stay.  In the end the distinct values of all pieces are merged: integers by one sort,
byte strings in blocks of neighbours, each of which is sorted as a column is.  While
blocks are written, what they were made of is given up, so that the distinct values are
in memory about once.  The column that comes out is the column of the whole file.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipindex.expressions.arrays import Bits, Codes, Ints, starts
from skipindex.expressions.domain import Domain
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.indexes.encoding.ranks import Distinct, layout_of, rank_bytes

_BLOCK: Final = 1 << 18
_BLOCK_BYTES: Final = 1 << 25
"""Byte strings that are merged at once, and about how many bytes they have."""
_FEWEST: Final = 4
"""At least so many strings of a piece are between two that a block may end at."""
_TIMES: Final = 8
"""So often, what was merged of the pieces is given up."""


@dataclass(slots=True)
class _Piece:
    """Some rows that follow one another.

    Args:
        n_rows: how many.
        codes: the rank of every value that is not NULL within the piece.
        validity: a bit a row; None if no row is NULL.
        distinct: the sorted distinct values of the piece.
    """

    n_rows: int
    codes: npt.NDArray[np.unsignedinteger]
    validity: Bits | None
    distinct: Distinct


class ColumnPieces:
    """The pieces of a column so far.

    Args:
        name: the column, for messages.
        domain: of the column.
    """

    def __init__(self, name: str, domain: Domain) -> None:
        self.name = name
        self.domain = domain
        self._pieces: list[_Piece] = []

    def add(self, piece: EncodedColumn) -> None:
        """Append the next rows."""
        codes, distinct = piece.ranks
        narrow = np.min_scalar_type(max(0, len(distinct) - 1))
        bits = None if piece.validity is None else np.packbits(piece.validity)
        self._pieces.append(_Piece(piece.n_rows, codes.astype(narrow), bits, distinct))

    @property
    def n_bytes(self) -> int:
        """The memory that the pieces take now."""
        return sum(
            int(piece.distinct.nbytes) + piece.codes.nbytes + piece.n_rows // 8
            for piece in self._pieces
        )

    @property
    def merge_bytes(self) -> int:
        """The memory that ``merged`` takes at most, with what the pieces take now."""
        n_rows = sum(piece.n_rows for piece in self._pieces)
        n_distinct = sum(len(piece.distinct) for piece in self._pieces)
        distinct = sum(int(piece.distinct.nbytes) for piece in self._pieces)
        more = (
            distinct // 4 + 2 * _BLOCK_BYTES if self.domain.is_bytes else 2 * distinct
        )
        return self.n_bytes + more + 4 * n_distinct + 5 * n_rows

    def merged(self) -> EncodedColumn:
        """The column of all rows; the pieces are given up."""
        pieces, self._pieces = self._pieces, []
        parts = [piece.distinct for piece in pieces]
        for piece in pieces:
            piece.distinct = np.empty(0, np.int64)
        merge = _merge_texts if self.domain.is_bytes else _merge_ints
        distinct, ranks = merge(parts)
        n_values = sum(len(piece.codes) for piece in pieces)
        n_rows = sum(piece.n_rows for piece in pieces)
        codes = np.empty(n_values, np.uint32)
        valid = None if n_values == n_rows else np.ones(n_rows, np.bool_)
        row = at = 0
        for piece, rank in zip(pieces, ranks, strict=True):
            codes[at : at + len(piece.codes)] = rank[piece.codes]
            at += len(piece.codes)
            if valid is not None and piece.validity is not None:
                bits = np.unpackbits(piece.validity, count=piece.n_rows)
                valid[row : row + piece.n_rows] = bits
            row += piece.n_rows
        return EncodedColumn.of_ranks(self.name, self.domain, codes, distinct, valid)


def packed_bytes(distinct: Distinct) -> int:
    """At most about so many bytes a dictionary of these values has."""
    if isinstance(distinct, np.ndarray):
        return int(distinct.nbytes)
    return _text_bytes(distinct) + len(distinct)


def _merge_ints(parts: list[Ints]) -> tuple[Ints, list[Codes]]:
    """The distinct values of all parts; for each part the ranks of its values."""
    every = np.concatenate([np.empty(0, np.int64), *parts])
    every.sort()
    distinct = every[starts(every)]
    return distinct, [distinct.searchsorted(p).astype(np.uint32) for p in parts]


def _merge_texts(
    parts: list[pa.LargeBinaryArray],
) -> tuple[pa.LargeBinaryArray, list[Codes]]:
    """As ``_merge_ints``; the list of parts is empty afterwards."""
    n, n_bytes = sum(map(len, parts)), sum(map(_text_bytes, parts))
    ranks = [np.empty(len(part), np.uint32) for part in parts]
    # What is not written yet takes no memory.
    offsets, data = np.zeros(n + 1, np.int64), np.empty(n_bytes, np.uint8)
    written = at = 0
    first = [0] * len(parts)  # of what is left of each part
    cuts = _cuts(parts, n, n_bytes)
    for number, cut in enumerate([*cuts, None]):
        ends = [_below(part, cut) for part in parts]
        codes, distinct = rank_bytes(_front(parts, ends))
        taken = 0
        for i, end in enumerate(ends):
            ranks[i][first[i] : first[i] + end] = codes[taken : taken + end]
            ranks[i][first[i] : first[i] + end] += np.uint32(written)
            first[i] += end
            taken += end
            parts[i] = parts[i].slice(end)
        own, text = layout_of(distinct)
        text = text[int(own[0]) : int(own[-1])]
        stop = written + len(distinct)
        offsets[written + 1 : stop + 1] = own[1:] + (at - int(own[0]))
        data[at : at + len(text)] = text
        written, at = stop, at + len(text)
        if (number + 1) % max(1, len(cuts) // _TIMES) == 0:
            for i in range(len(parts)):
                parts[i] = _copied(parts[i])
                pa.default_memory_pool().release_unused()
    parts.clear()
    buffers = [None, pa.py_buffer(offsets[: written + 1]), pa.py_buffer(data[:at])]
    return pa.Array.from_buffers(pa.large_binary(), written, buffers), ranks


def _cuts(parts: Sequence[pa.LargeBinaryArray], n: int, n_bytes: int) -> list[bytes]:
    """Values to begin a block at, so that none has too many strings or bytes."""
    block = min(_BLOCK, max(1, n) * _BLOCK_BYTES // max(1, n_bytes))
    step = max(_FEWEST, block // max(1, len(parts)))
    found = {part[i].as_py() for part in parts for i in range(step, len(part), step)}
    return sorted(found)


def _front(
    parts: Sequence[pa.LargeBinaryArray], ends: Sequence[int]
) -> pa.LargeBinaryArray:
    """The first strings of every part, one part after another."""
    some = [part.slice(0, end) for part, end in zip(parts, ends, strict=True)]
    return pa.concat_arrays(some)


def _below(part: pa.LargeBinaryArray, cut: bytes | None) -> int:
    """How many of the sorted strings are below ``cut``."""
    if cut is None:
        return len(part)
    return bisect_left(part, cut, key=lambda value: value.as_py())


def _text_bytes(part: pa.LargeBinaryArray) -> int:
    offsets, _ = layout_of(part)
    return int(offsets[-1] - offsets[0])


def _copied(part: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """The same strings in buffers of their own.

    Arrow's pool gives memory back to the system, where that of numpy may stay.
    """
    offsets, data = layout_of(part)
    text = data[int(offsets[0]) : int(offsets[-1])]
    buffers = [None, _buffer(offsets - offsets[0]), _buffer(text)]
    return pa.Array.from_buffers(pa.large_binary(), len(part), buffers)


def _buffer(array: npt.NDArray[Any]) -> pa.Buffer:
    found = pa.allocate_buffer(array.nbytes)
    np.frombuffer(found, array.dtype)[:] = array
    return found
