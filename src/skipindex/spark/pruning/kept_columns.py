"""A cache of dimensions' columns and keys, by the identity of the files.

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
class _Kept:
    values: pa.Array | pa.ChunkedArray

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
        """By owner, who reads what it owns."""

    def keys(
        self,
        owner: Hashable,
        files: Sequence[FileInfo],
        read: Callable[[], tuple[pa.Array, bool]],
    ) -> pa.Array:
        """The keys that a condition leaves.

        Args:
            owner: what they depend on: the condition, and the identity of ``files``.
            files: that the keys and the columns of the condition are of.
            read: gives keys that are not in memory, and whether they may be kept.

        Raises:
            Exception: whatever ``read`` raises.
        """
        with self._turn(owner):
            keys = _kept(owner, "")
            if keys is None:
                keys, is_final = read()
                if is_final and all(map(_is_old, files)):
                    _keep(owner, "", keys)
        return keys

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
        with self._turn(owner):
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

    def _turn(self, owner: Hashable) -> threading.Lock:
        with self._lock:
            return self._turns.setdefault(owner, threading.Lock())


def _is_old(file: FileInfo) -> bool:
    """Whether no later content of a file has its size and its time."""
    return file.tag is not None or file.mtime < time.time_ns() - _OLD


def _kept(owner: Hashable, name: str) -> pa.Array | pa.ChunkedArray | None:
    payload = DEFAULT_SESSION.packs.parts.find(((owner, name), 0))
    match payload.forms.get(_Kept):
        case [_Kept(values)]:
            payload.was_used = True
            return values
    return None


def _keep(owner: Hashable, name: str, values: pa.Array | pa.ChunkedArray) -> None:
    kept = _Kept(values)
    parts = DEFAULT_SESSION.packs.parts
    parts.put(((owner, name), 0), _Kept, 1, 0, [kept], kept.n_bytes)
