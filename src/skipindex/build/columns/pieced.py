"""A column that is too large to be read at once: read in pieces, in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import pyarrow as pa

from skipindex.build.columns.memory import Memory, spec_bytes
from skipindex.build.pending_pack import ColumnRequest
from skipindex.expressions.atoms import Value
from skipindex.expressions.domain import Domain
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.indexes.encoding.pieces import ColumnPieces, packed_bytes
from skipindex.indexes.file_map import ValueSpans
from skipindex.indexes.interface import Gathering, IndexSpec, PiecewiseSpec
from skipindex.table import DataFile
from skipindex.table.stored import read_pieces

_CODE: Final = 4
_SPREAD: Final = 9
_NUMBER: Final = 8
"""Bytes of a row's code; where rows are NULL, also laid out over all rows; and of its
value, if it is a number."""


class PiecedColumn:
    """A column of a large file: its statistics, and what its indexes are built from.

    What the indexes need is gathered while the file is read, as far as the memory of a
    worker goes.  An index is the very one of the whole column.

    Args:
        request: what is built on the column.
        memory: of the worker.
        n_rows: of the file.
    """

    def __init__(self, request: ColumnRequest, memory: Memory, n_rows: int) -> None:
        self.name = request.name
        self.domain: Domain = request.domain
        self.null_count = self.nan_count = 0
        self.minimum: Value | None = None
        self.maximum: Value | None = None
        self._memory = memory
        self._n_rows = n_rows
        self._n_read = 0
        self._gathered = _gatherings(request.specs, self.domain)
        needs_ranks = len(self._gathered) < len(request.specs)
        self._pieces = ColumnPieces(self.name, self.domain) if needs_ranks else None
        self._filters: dict[IndexSpec, list[bytes]] = {
            spec: [] for spec in self._gathered
        }
        self._too_much: dict[str, float] = {}

    @classmethod
    def read(
        cls, file: DataFile, request: ColumnRequest, memory: Memory
    ) -> PiecedColumn:
        """Read the column of a file.

        Raises:
            UnsupportedTypeError: as ``read_column``.
        """
        column = cls(request, memory, file.metadata.num_rows)
        pieces = read_pieces(
            file,
            request.path,
            request.domain,
            n_rows=memory.piece_rows,
            n_bytes=memory.piece_bytes,
        )
        for piece in pieces:
            column.add(piece)
            pa.default_memory_pool().release_unused()
        while column._gathered:
            spec, gathering = column._gathered.popitem()
            column._filters[spec] = column._held(gathering.build())
        return column

    def add(self, piece: EncodedColumn) -> None:
        """Take the next rows."""
        self.name = piece.name
        self._n_read += piece.n_rows
        if self._pieces is not None:
            self._pieces.add(piece)
        for gathering in self._gathered.values():
            gathering.add(piece)
        self.null_count += piece.null_count
        self.nan_count += piece.nan_count
        low, high = piece.minimum, piece.maximum
        if low is not None and high is not None:
            if self.minimum is None or low < self.minimum:  # type: ignore[operator]
                self.minimum = low
            if self.maximum is None or high > self.maximum:  # type: ignore[operator]
                self.maximum = high
        self._forget_too_much()

    def _forget_too_much(self) -> None:
        """Give up what takes more memory than is free: first the ranks, then all.

        The filters are built before the ranks are merged.
        """
        room, free = self._memory.piece_room, self._memory.free
        hashes = sum(one.n_bytes for one in self._gathered.values())
        whole = self._n_rows / max(1, self._n_read)
        if self._pieces is not None:
            takes = max(self._pieces.n_bytes + hashes, self._pieces.merge_bytes) + room
            if takes > free:
                self._too_much["ranks"] = takes * whole
                self._pieces = None
        if self._gathered and hashes + room > free:
            self._too_much["hashes"] = (hashes + room) * whole
            self._gathered = {}

    def build(self, spec: IndexSpec) -> list[bytes]:
        """The parts of an index.

        Raises:
            MemoryLimitError: it takes more memory than is free.
            UnsupportedTypeError: this kind cannot hold the column.
        """
        what = f"column {self.name!r}: no {spec.kind} index"
        if spec in self._filters:
            self._memory.check(self._too_much.get("hashes", 0), what)
            return self._filters.pop(spec)
        self._memory.check(self._too_much.get("ranks", 0), what)
        column = self._ranked
        per_row = spec_bytes(spec) + (_CODE if column.validity is None else _SPREAD)
        per_row += 0 if self.domain.is_bytes else _NUMBER
        takes = column.distinct.nbytes + packed_bytes(column.distinct)
        self._memory.check(takes + per_row * column.n_rows, what)
        return self._held(spec.build(column))

    def _held(self, parts: list[bytes]) -> list[bytes]:
        """A payload, which takes memory while others are built."""
        self._memory.held += sum(map(len, parts))
        return parts

    def spans(self) -> ValueSpans:
        """What a file map has of the column.

        Raises:
            MemoryLimitError: the values were too many.
        """
        what = f"column {self.name!r}: no file map"
        self._memory.check(self._too_much.get("ranks", 0), what)
        return ValueSpans.of(self._ranked)

    @cached_property
    def _ranked(self) -> EncodedColumn:
        """All rows; the pieces are given up."""
        pieces, self._pieces = self._pieces, None
        assert pieces is not None
        return pieces.merged()


def _gatherings(
    specs: Sequence[IndexSpec], domain: Domain
) -> dict[IndexSpec, Gathering]:
    """What is gathered for each spec that can be built without ranks."""
    found: dict[IndexSpec, Gathering] = {}
    for spec in specs:
        if isinstance(spec, PiecewiseSpec):
            gathering = spec.gathering(domain)
            if gathering is not None:
                found[spec] = gathering
    return found
