"""The memory of a worker, and what building takes of it.

A worker indexes one file after another, and of a file one column after another.  What
is held meanwhile counts towards its limit: the interpreter with its packages, the
payloads of the files before, and those of the file's columns so far, all of them
twice, because a pack is put together from them.  The rest is for one column.

A column is read whole if that surely fits, which is estimated by the footer before
anything is read (``whole_bytes``).  Else it is read in pieces, and what is held of them
is counted, not estimated (``pieced``).  A kind that would take more than is free is not
built: the report says so, and plans read the file.

The footer tells how long the values of a row group are in the mean, and Arrow decodes
as many of them at once as fit into a piece, 8,192 at most.  How long the values of a
dictionary page are, where Arrow decodes them one by one, it does not tell: they are
taken for 64 bytes, and one batch of them is the most that is read unmeasured.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from skipindex.build.pending_pack import ColumnRequest
from skipindex.errors import BuildError
from skipindex.indexes.interface import MEMORY_PER_ROW, IndexSpec
from skipindex.table import DataFile
from skipindex.table.stored import place_of

MemoryLike: TypeAlias = int | str
"""Bytes, or a text such as ``"1GB"``."""

DEFAULT_MEMORY: Final = 10**9
LEAST_MEMORY: Final = 300 * 10**6
"""What a worker has if nothing is said, and what it needs."""

_UNITS: Final = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
}
_TEXT: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")

_PROCESS: Final = 160 * 10**6
"""Of Python with its packages."""
_SHARE_OF_PACK: Final = 10
_SHARE_OF_PIECE: Final = 8
_MOST_ROWS: Final = 1 << 20
_PIECE_BYTES_PER_ROW: Final = 100
_COPIES_OF_TEXT: Final = 2.5
_VALUE_BYTES: Final = 64
"""Of a value in a dictionary page, as far as a footer tells."""
_ROW_BYTES: Final = 30
_NUMBER_BYTES: Final = 60
"""A row of byte strings, or of numbers, besides the text, while it is read."""
_RANK_BYTES: Final = 80
"""A row while it is ranked."""
_NOTE: Final = re.compile(r"column '(.*?)': no (\w+) index: it takes about (\d+) MB")


class MemoryLimitError(BuildError):
    """Something takes more memory than a worker has."""


def memory_bytes(memory: MemoryLike) -> int:
    """The bytes of a limit.

    Raises:
        BuildError: it is no amount of memory, or less than a worker needs.

    >>> memory_bytes("1.5GB"), memory_bytes("512MiB"), memory_bytes(10**9)
    (1500000000, 536870912, 1000000000)
    """
    found: float | None = None
    if isinstance(memory, int) and not isinstance(memory, bool):
        found = memory
    elif isinstance(memory, str) and (match := _TEXT.fullmatch(memory)):
        unit = _UNITS.get(match[2].lower())
        found = None if unit is None else float(match[1]) * unit
    if found is None or found < LEAST_MEMORY:
        raise BuildError(
            f"no worker builds indexes within {memory!r} of memory (accepted: bytes, "
            f"or a text such as '1GB', from {LEAST_MEMORY // 10**6} MB on)"
        )
    return int(found)


@dataclass(slots=True)
class Memory:
    """The memory of one worker.

    Args:
        limit: bytes.
        held: of payloads that are not written yet.
    """

    limit: int
    held: int = 0

    @property
    def free(self) -> int:
        """What one column may take."""
        return max(0, self.limit - _PROCESS - 2 * self.held)

    @property
    def pack_bytes(self) -> int:
        """Payloads of one file of more bytes than this are a pack of their own."""
        return (self.limit - _PROCESS) // _SHARE_OF_PACK

    @property
    def piece_room(self) -> int:
        """What is left for the piece that is read."""
        return self.free // _SHARE_OF_PIECE

    @property
    def piece_rows(self) -> int:
        """At most so many rows are read at once."""
        return max(1, min(_MOST_ROWS, self.piece_room // _PIECE_BYTES_PER_ROW))

    @property
    def piece_bytes(self) -> int:
        """At most so many bytes are read at once."""
        return self.piece_room // 4

    def check(self, n_bytes: float, what: str) -> None:
        """Raise ``MemoryLimitError`` if there is less than ``what`` takes."""
        if n_bytes > self.free:
            takes = n_bytes + self.limit - self.free
            raise MemoryLimitError(
                f"{what}: it takes about {-int(-takes // 10**6)} MB, and a worker has "
                f"{self.limit // 10**6} MB (pass more memory, or write smaller files)"
            )


def whole_bytes(file: DataFile, request: ColumnRequest) -> float:
    """About what it takes to read a column whole and to build its indexes.

    By the footer: the rows, and of byte strings the bytes before compression.  Both
    count as often as they are in memory at once, which was measured.

    Raises:
        UnsupportedTypeError: the column cannot be read.
    """
    source = request.source
    domain = request.domain if source is None else source.association.key_domain
    place = place_of(file, request.stored_path, domain)
    n_rows = int(file.metadata.num_rows)
    rows = n_rows * row_bytes(request.specs)
    if place is None or not domain.is_bytes:
        return rows + n_rows * _NUMBER_BYTES
    text = file.text_bytes(place, n_rows * float(_VALUE_BYTES))
    return rows + n_rows * _ROW_BYTES + text * _COPIES_OF_TEXT


def row_bytes(specs: tuple[IndexSpec, ...]) -> int:
    """What a row takes to rank and to build indexes on, one after another."""
    return _RANK_BYTES + max(map(spec_bytes, specs)) if specs else 0


def spec_bytes(spec: IndexSpec) -> int:
    """What a row takes to build an index on, besides its ranks."""
    return int(getattr(spec, "memory_per_row", MEMORY_PER_ROW))


def left_out(note: str, limit: int) -> set[tuple[str, str]]:
    """The columns and kinds that a note says took too much, and now do not.

    Args:
        note: of a file.
        limit: the memory of a worker now, in bytes.
    """
    return {
        (column, kind)
        for column, kind, megabytes in _NOTE.findall(note)
        if int(megabytes) * 10**6 <= limit
    }
