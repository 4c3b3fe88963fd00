"""A cache of dimension columns, by the identity of their files.

What is kept of a dimension is true of files with just these sizes, times and tags.  It
takes room in the cache of ``DEFAULT_SESSION``, which evicts it like parts of indexes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final
from weakref import WeakValueDictionary

import pyarrow as pa

from skipindex.planner.stages.pack_cache import DEFAULT_SESSION
from skipindex.storage.file_system.file_info import SECOND
from skipindex.storage.file_system.location import FileInfo

_OLD: Final = 3 * SECOND
"""The age from which another content of a file has another time."""


@dataclass(frozen=True, slots=True)
class _Column:
    values: pa.ChunkedArray

    @property
    def n_bytes(self) -> int:
        return int(self.values.nbytes)


class KeptColumns:
    """Reads columns of a dimension once, also for queries that ask at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns: WeakValueDictionary[Hashable, threading.Lock] = (
            WeakValueDictionary()
        )
        """By owner, who reads its columns."""

    def table(
        self,
        owner: Hashable,
        files: Sequence[FileInfo],
        names: Sequence[str],
        read: Callable[[Sequence[str]], pa.Table],
    ) -> pa.Table:
        """The columns of these names.

        Args:
            owner: what the values depend on, with the identity of ``files``.
            files: that the columns are of.
            names: of the columns.
            read: gives those that are not in memory.

        Raises:
            Exception: whatever ``read`` raises.
        """
        with self._lock:
            turn = self._turns.setdefault(owner, threading.Lock())
        with turn:
            result = {name: _kept(owner, name) for name in names}
            missing = [name for name, column in result.items() if column is None]
            if missing:
                table = read(missing)
                is_kept = all(map(_is_old, files))
                for name in missing:
                    result[name] = table[name]
                    if is_kept:
                        _keep(owner, name, table[name])
        return pa.table(result)


def _is_old(file: FileInfo) -> bool:
    """Whether no later content of a file has its size and its time."""
    return file.tag is not None or file.mtime < time.time_ns() - _OLD


def _kept(owner: Hashable, name: str) -> pa.ChunkedArray | None:
    payload = DEFAULT_SESSION.packs.parts.find(((owner, name), 0))
    match payload.forms.get(_Column):
        case [_Column(values)]:
            payload.was_used = True
            return values
    return None


def _keep(owner: Hashable, name: str, values: pa.ChunkedArray) -> None:
    column = _Column(values)
    parts = DEFAULT_SESSION.packs.parts
    parts.put(((owner, name), 0), _Column, 1, 0, [column], column.n_bytes)
