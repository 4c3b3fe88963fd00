"""The memory that building an index takes, and how much a worker may use.

A worker indexes one file after another, and of a file one column after another.  What
is held meanwhile counts towards its limit: the interpreter with its packages, the
payloads of the files before, and those of the file's columns so far, all of them
twice, because a pack is put together from them.  The rest is for one column.

A column is read whole.  What that takes, and what each kind takes to be built on it, is
estimated by the footer before anything is read.  What takes more than is free is not
built: the report says so, and plans read the file.

The footer tells how many bytes the values of a column have, but not how long those of
a dictionary page are.  Where Arrow decodes them one by one, 64 bytes each are reckoned.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias, overload

from skipindex.build.pending_pack import ColumnRequest
from skipindex.errors import BuildError
from skipindex.indexes import index_type
from skipindex.indexes.interface import MEMORY_PER_ROW, IndexSpec
from skipindex.source import DataFile
from skipindex.source.parquet.stored import place_of

MemoryLike: TypeAlias = int | str
"""Bytes, or a text such as ``"1GB"``."""

MOST_MEMORY: Final = 4 * 10**9
"""Bytes that a worker has at most if its caller names no limit."""
LEAST_MEMORY: Final = 300 * 10**6
"""Bytes that a worker needs."""

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
"""Bytes that Python takes with its packages."""
_SHARE_OF_PACK: Final = 10
_COPIES_OF_TEXT: Final = 2.5
_VALUE_BYTES: Final = 64
"""A value in a dictionary page, whose length no footer tells."""
_ROW_BYTES: Final = 30
_NUMBER_BYTES: Final = 60
"""A row of byte strings, or of numbers, besides the text, while it is read."""
_RANK_BYTES: Final = 80
_COPIES_RANKED: Final = 1.25
"""A row while it is ranked, and its text."""
_SAMPLED_ROWS: Final = 4096
_COPIES_SAMPLED: Final = 6
"""Few long texts are copied more often, as a sample and one by one."""
_NOTE: Final = re.compile(r"column '(.*?)': no (\w+) index: it takes about (\d+) MB")
_CONTAINER: Final = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)
"""Where Linux has the memory limit of a container, by cgroup v2 and by v1.  A file with
"max" sets none."""


@overload
def memory_bytes(memory: MemoryLike) -> int: ...


@overload
def memory_bytes(memory: MemoryLike | None) -> int | None: ...


def memory_bytes(memory: MemoryLike | None) -> int | None:
    """The bytes of a limit; None if none is named.

    >>> memory_bytes("1.5GB"), memory_bytes("512MiB"), memory_bytes(10**9)
    (1500000000, 536870912, 1000000000)
    """
    if memory is None:
        return None
    result = bytes_in(memory)
    if result is None or result < LEAST_MEMORY:
        raise BuildError(
            f"no worker builds indexes within {memory!r} of memory (accepted: bytes, "
            f"or a text such as '1GB', from {LEAST_MEMORY // 10**6} MB on)"
        )
    return result


def bytes_in(size: object) -> int | None:
    """The bytes that a number or a text says; None of anything else.

    >>> bytes_in("1.5 kB"), bytes_in(7), bytes_in("7 apples"), bytes_in(True)
    (1500, 7, None, None)
    """
    if isinstance(size, int) and not isinstance(size, bool):
        return size
    if isinstance(size, str) and (match := _TEXT.fullmatch(size)):
        unit = _UNITS.get(match[2].lower())
        return None if unit is None else int(float(match[1]) * unit)
    return None


def default_memory(n_workers: int) -> int:
    """The bytes of each of so many workers if their caller names no limit.

    The workers have half of the machine together, and each has what it needs.  The
    other half is for what runs beside them, such as the JVM of an executor.
    """
    share = _machine_bytes() // 2 // n_workers
    return max(LEAST_MEMORY, min(MOST_MEMORY, share))


def _machine_bytes() -> int:
    """The memory of this machine, or of the container that this process runs in."""
    result = []
    try:
        result.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):  # not on every system
        result.append(2 * MOST_MEMORY)
    for path in _CONTAINER:
        try:
            result.append(int(Path(path).read_text()))
        except (OSError, ValueError):
            continue
    return min(result)


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

    def why_not(self, n_bytes: float, column: str, kind: str) -> str:
        """What to note where an index takes more than is free; else empty."""
        if n_bytes <= self.free:
            return ""
        takes = n_bytes + self.limit - self.free
        return (
            f"column {column!r}: no {kind} index: it takes about "
            f"{-int(-takes // 10**6)} MB, and a worker has {self.limit // 10**6} MB "
            "(pass more memory, or write smaller files)"
        )


@dataclass(frozen=True, slots=True)
class ColumnSize:
    """How large a column of a file is, as far as the footer tells.

    All figures are the measured peak of memory.

    Args:
        n_rows: of the file.
        text: bytes of its byte strings before compression; None of numbers.
    """

    n_rows: int
    text: float | None

    @property
    def read(self) -> float:
        """What it takes to read the column, for its statistics."""
        if self.text is None:
            return self.n_rows * float(_NUMBER_BYTES)
        return self.n_rows * _ROW_BYTES + self.text * _COPIES_OF_TEXT

    @property
    def ranked(self) -> float:
        """What it takes to read it, and to rank its rows."""
        text = self.text or 0.0
        sampled = text * min(1.0, _SAMPLED_ROWS / max(1, self.n_rows))
        more = text * _COPIES_RANKED + sampled * _COPIES_SAMPLED
        return self.read + self.n_rows * _RANK_BYTES + more

    def with_index(self, spec: IndexSpec) -> float:
        """What it takes to read it, and to build an index on it."""
        is_ranked = index_type(spec.kind).positional
        per_row = int(getattr(spec, "memory_per_row", MEMORY_PER_ROW))
        per_byte = int(getattr(spec, "memory_per_byte", 0))
        more = self.n_rows * per_row + (self.text or 0.0) * per_byte
        return more + (self.ranked if is_ranked else self.read)


def size_of(file: DataFile, request: ColumnRequest) -> ColumnSize:
    """The size of what is read for a column.

    Raises:
        UnsupportedTypeError: the column cannot be read.
    """
    domain = request.domain
    place = place_of(file, request.path, domain)
    n_rows = int(file.metadata.num_rows)
    if place is None or not domain.is_bytes:
        return ColumnSize(n_rows, None)
    return ColumnSize(n_rows, file.text_bytes(place, n_rows * float(_VALUE_BYTES)))


def left_out(note: str, limit: int | None) -> set[tuple[str, str]]:
    """The columns and kinds that a note says took too much, and now do not.

    ``limit`` is the memory of a worker now, in bytes; None is not known.
    """
    return {
        (column, kind)
        for column, kind, megabytes in _NOTE.findall(note)
        if limit is not None and int(megabytes) * 10**6 <= limit
    }
