"""Opening indexes for a plan: whatever is wrong with one, it is only not used."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa

from skipindex.errors import CorruptIndexError, UnknownIndexError
from skipindex.indexes import index_type
from skipindex.indexes._base import Index, IndexType
from skipindex.storage.location import ByteSource, Location
from skipindex.storage.log import PACKS
from skipindex.storage.manifest import BlobUse
from skipindex.storage.pack import Blob
from skipindex.storage.parts import ReadCount
from skipindex.table import ColumnInfo, Table

UNUSABLE: Final = (CorruptIndexError, OSError, pa.ArrowException)
"""What reading an index may raise; the index is then not used."""


@lru_cache(maxsize=64)
def _open_pack(location: Location, name: str) -> ByteSource:
    """Packs are immutable and named by their content, so they never go stale."""
    return location.view(f"{PACKS}/{name}")


class IndexReader:
    """The indexes of one table, for one plan.

    Args:
        table: the table.
        kinds: names of the kinds that may be used; None is all.
    """

    def __init__(self, table: Table, kinds: Collection[str] | None) -> None:
        self.count = ReadCount()
        self.notes: dict[str, int] = {}
        self._table = table
        self._kinds = kinds
        self._blobs: dict[tuple[str, int], Blob | None] = {}
        self._uses: dict[str, list[_Use]] = {}
        files = table.snapshot.manifest.files
        self._footers = files["footer_crc"].to_numpy()

    def has(self, column: ColumnInfo, *, positional: bool) -> bool:
        """Whether any file has such an index on ``column``."""
        return any(use.kind.positional == positional for use in self._of(column))

    def indexes(
        self, column: ColumnInfo, file: int, *, positional: bool
    ) -> Iterator[tuple[IndexType, Index]]:
        """The usable indexes of one file on ``column``, one at a time."""
        for use in self._of(column):
            if use.kind.positional != positional:
                continue
            slot = use.slot_of(file)
            if slot is not None:
                index = self._open(use, slot, file, column)
                if index is not None:
                    yield use.kind, index

    def refuse(self, error: Exception, what: str = "index") -> None:
        """Note that what was read is no index."""
        self.note(f"{what} not used: {error}")
        _open_pack.cache_clear()  # a repaired pack is another file of the same name

    def note(self, reason: str) -> None:
        """Count one more thing that kept an index from being used."""
        self.notes[reason] = self.notes.get(reason, 0) + 1

    def _of(self, column: ColumnInfo) -> list[_Use]:
        if column.name not in self._uses:
            self._uses[column.name] = self._usable(column)
        return self._uses[column.name]

    def _usable(self, column: ColumnInfo) -> list[_Use]:
        found = []
        for use in self._table.blobs(column):
            meta = use.entry.meta
            if self._kinds is not None and meta.kind not in self._kinds:
                continue
            try:
                kind = index_type(meta.kind)
            except UnknownIndexError as error:
                self.note(f"index on {column.name!r} not used: {error}")
                continue
            if meta.version > kind.version:
                self.note(
                    f"index on {column.name!r} not used: {meta.kind} version "
                    f"{meta.version} is newer than ours ({kind.version})"
                )
                continue
            found.append(_Use(use, kind))
        return found

    def _open(
        self, use: _Use, slot: int, file: int, column: ColumnInfo
    ) -> Index | None:
        assert column.domain is not None
        blob = self._blob(use.blob)
        if blob is None:
            return None
        try:
            parts = blob.payload(slot, self.count)
            if parts is None:
                return None
            n_rows = int(self._table.n_rows[file])
            footer = self._footers[self._table.rows[file]]
            blob.check_identity(slot, n_rows=n_rows, footer_crc=int(footer))
            return use.kind.open(parts, column.domain, n_rows)
        except UNUSABLE as error:
            self.refuse(error)
            return None

    def _blob(self, use: BlobUse) -> Blob | None:
        key = use.pack.name, use.entry.offset
        if key not in self._blobs:
            try:
                source = _open_pack(self._table.location, use.pack.name)
                self._blobs[key] = Blob(source, use.entry)
            except UNUSABLE as error:
                self.refuse(error, f"pack {use.pack.name}")
                self._blobs[key] = None
        return self._blobs[key]


class _Use:
    """One blob, its kind, and the slot of every file that it serves."""

    def __init__(self, blob: BlobUse, kind: IndexType) -> None:
        self.blob = blob
        self.kind = kind
        order = np.argsort(blob.rows)
        self._files = blob.rows[order]
        self._slots = blob.slots[order]

    def slot_of(self, file: int) -> int | None:
        """The slot of a file, or None if the blob does not serve it."""
        at = int(np.searchsorted(self._files, file))
        if at < len(self._files) and self._files[at] == file:
            return int(self._slots[at])
        return None
