"""Opening indexes for a plan; unusable indexes are noted and ignored."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from skipindex.errors import UnknownIndexError
from skipindex.expressions.arrays import Ints
from skipindex.expressions.atoms import Atom
from skipindex.expressions.domain import Domain
from skipindex.indexes import index_type
from skipindex.indexes.file_map import FILE_MAP, FileMap
from skipindex.indexes.interface import (
    BY_VALUE,
    UNUSABLE,
    Index,
    IndexType,
    PackableType,
    PackIndex,
    probe_cost,
)
from skipindex.planner.stages.cost import STORE_BYTES_PER_SECOND, WAIT
from skipindex.planner.stages.pack_cache import PackCache
from skipindex.planner.stages.records import IndexLocation, Locations
from skipindex.storage.blobs import BlobUse
from skipindex.storage.deadline import carried, check, checked
from skipindex.storage.disk_cache import fetch_ahead, held
from skipindex.storage.file_system.byte_source import ByteSource
from skipindex.storage.file_system.names import PACKS
from skipindex.storage.file_system.store_input import Range
from skipindex.storage.pack import Blob
from skipindex.storage.parts import READS, Parts, ReadCount, add_reads, reads_so_far
from skipindex.table import ColumnInfo, TableState

T = TypeVar("T")
R = TypeVar("R")

_FITTING: Final[WeakKeyDictionary[TableState, dict[tuple[int, int], bool]]] = (
    WeakKeyDictionary()
)
"""Whether all payloads of a blob fit the files, by table, pack and place of the blob.

The bytes of a blob's directory never change: the manifest has their checksum."""
INDEX_BYTES: Final = 1000
_SLOT_BYTES: Final = 8
"""Bytes that an opened index takes, about, and of a pack's those of each slot."""
_PACK: Final = 1 << 32
"""Stands for a slot, for what is opened of all files of a blob together."""
_WHOLE: Final = int(WAIT * STORE_BYTES_PER_SECOND)
"""Bytes of all blobs of some columns, and of a file map, up to which they are read
whole: they are there before another answer of a store would be."""
_AT_ONCE: Final = 32
"""Packs or payloads of a store that are read concurrently."""
_LARGE: Final = 1 << 18
"""Bytes of a payload from which a part of it may be read after its header, which is
waited for; a store sends fewer bytes as fast."""
_MOST_IN_PART: Final = 8 * _AT_ONCE
"""Payloads that are read in part, at most."""
_LOOKED_UP: Final = 16
"""Files of which it is looked up what is in memory."""
_PIECE: Final = 1 << 15
"""Bytes that a question reads of an index with the rows by value, about."""
NO_QUESTIONS: Final[Mapping[str, Callable[[Any], object]]] = {}
"""Payloads are read as a whole."""


@dataclass(frozen=True, slots=True)
class UsableBlob:
    """One blob that a plan may use, and its kind."""

    use: BlobUse
    kind: IndexType


class IndexReader:
    """The indexes of one table, for one plan; those that cannot be used are noted.

    Args:
        table: the table.
        kinds: names of the kinds that may be used; None is all.
        cache: holds what is opened.
    """

    def __init__(
        self, table: TableState, kinds: Collection[str] | None, cache: PackCache
    ) -> None:
        self.notes: dict[str, int] = {}
        self._lock = threading.Lock()
        self.cache = cache
        self._table = table
        self.is_local = table.location.at(PACKS).is_local
        self._kinds = kinds
        self._packs: dict[str, ByteSource | None] = {}
        self._blobs: dict[tuple[str, int], Blob | None] = {}
        self._opened: dict[tuple[Blob, int], Any] = {}
        self._ahead: set[tuple[str, int]] = set()
        self._sources: dict[str, list[UsableBlob]] = {}
        self._footers = table.snapshot.manifest.files["footer_crc"].to_numpy()
        self._fitting = _FITTING.setdefault(table, {})

    def open(
        self, location: IndexLocation, file: int, column: ColumnInfo
    ) -> Index | None:
        """The index of one file, or None if it has none that can be used."""
        kind, blob, slot = location
        check()
        index: Index | None = self._held(blob, slot)
        if index is not None:
            return index
        assert column.domain is not None
        try:
            parts = blob.payload(slot, READS)
            if parts is None:
                return None
            n_rows = int(self._table.n_rows.or_else(0)[file])
            index = kind.open(parts, column.domain, n_rows)
        except UNUSABLE as error:
            self.refuse(error, blob)
            return None
        self._hold(blob, slot, index, INDEX_BYTES)
        return index

    def _held(self, blob: Blob, slot: int) -> Any:
        """What this plan or an earlier one has opened, if it is in memory."""
        index = blob.held(~slot)
        return self._opened.get((blob, slot)) if index is None else index

    def _hold(self, blob: Blob, slot: int, index: object, n_bytes: int) -> None:
        if not blob.hold(~slot, index, n_bytes):
            self._opened[blob, slot] = index  # where nothing is cached, for this plan

    def refuse(self, error: Exception, blob: Blob, what: str = "index") -> None:
        """Note that what was read of a blob is no index."""
        self.note(f"{what} not used: {error}")
        self.cache.forget(blob.source)

    def note(self, reason: str) -> None:
        """Count one more reason why an index was not used."""
        with self._lock:
            self.notes[reason] = self.notes.get(reason, 0) + 1

    def open_ahead(self, columns: Iterable[ColumnInfo]) -> None:
        """Read what opens the blobs of these columns, concurrently from a store."""
        if self.is_local:
            return
        uses = [use for column in columns for use in self._uses(column)]
        wanted = {(use.pack.name, use.entry.offset): use for use in uses}
        result = [
            (pack, use.entry, _opening_ranges(use))
            for key, use in wanted.items()
            if key not in self._ahead
            and (pack := self._pack(key[0])) is not None
            and not self.cache.is_open(pack, use.entry)
        ]
        self._ahead |= wanted.keys()
        if sum(entry.length for _, entry, _ in result) <= _WHOLE:
            fetch_ahead((pack, (one.offset, one.length)) for pack, one, _ in result)
            return
        fetch_ahead((pack, one) for pack, _, ranges in result for one in ranges)
        # Some directories are larger than was guessed.
        fetch_ahead(
            (pack, one)
            for pack, entry, (*_, last) in result
            if (end := held(pack, *last)) is not None
            if (one := Blob.directory_range(entry, end)) is not None
        )

    def _uses(self, column: ColumnInfo) -> list[BlobUse]:
        return [*self.maps(column), *(source.use for source in self._of(column))]

    def shared_ahead(self, columns: Iterable[ColumnInfo]) -> None:
        """Read the parts of all data files together, concurrently from a store."""
        if self.is_local:
            return
        columns = list(columns)
        self.open_ahead(columns)
        blobs = [
            self.blob(use)
            for column in columns
            for use in self._uses(column)
            if _may_share(use)
        ]
        fetch_ahead(
            one
            for blob in blobs
            if blob is not None and self._held(blob, _PACK) is None
            for one in blob.shared_range()
        )

    def payloads_ahead(
        self,
        located: Iterable[tuple[ColumnInfo, int, Iterable[IndexLocation]]],
        ask: Mapping[str, Callable[[Any], object]] = NO_QUESTIONS,
    ) -> None:
        """Read the payloads at these places, concurrently from a store.

        A large payload that has the rows by value is not read as a whole if ``ask`` has
        the column: then only what this reads of the index.
        """
        if self.is_local:
            return
        places = [(column, file, one) for column, file, some in located for one in some]
        in_part = [
            place
            for place in places
            if place[0].name in ask and self._is_read_in_part(*place[2])
        ]
        if len(in_part) > _MOST_IN_PART:
            in_part = []
        asked = {(blob, slot) for _, _, (_, blob, slot) in in_part}
        fetch_ahead(
            one
            for _, _, (_, blob, slot) in places
            if (blob, slot) not in asked and self._held(blob, slot) is None
            for one in blob.ranges_of([slot])
        )

        def look(place: tuple[ColumnInfo, int, IndexLocation]) -> None:
            column, file, location = place
            index = self.open(location, file, column)
            if index is not None:
                with contextlib.suppress(*UNUSABLE):  # the probe that follows tells
                    ask[column.name](index)

        list(self.each(look, in_part))

    def _is_read_in_part(self, kind: IndexType, blob: Blob, slot: int) -> bool:
        return (
            _by_value(kind, blob)
            and blob.payload_size(slot) >= _LARGE
            and self.cache.parts.limit > 0  # else it would be read twice
        )

    def each(self, call: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """The result of ``call`` for each item; concurrently if reads are slow."""
        every = list(items)
        if self.is_local or len(every) < 2:
            return map(call, checked(every))

        def counted(item: T) -> tuple[R, ReadCount]:
            before = reads_so_far()
            made = call(item)
            return made, reads_so_far().since(before)

        with ThreadPoolExecutor(min(len(every), _AT_ONCE)) as pool:
            done = list(pool.map(carried(counted), every))
        for _, reads in done:
            add_reads(reads)
        return (made for made, _ in done)

    def cold_bytes(self, columns: Collection[ColumnInfo], files: Ints) -> float:
        """The bytes of row-level indexes of a file that are not in memory, about."""
        self.open_ahead(columns)
        some = files[:: -(-len(files) // _LOOKED_UP)]
        wanted = np.zeros(len(self._table), np.bool_)
        wanted[some] = True
        n_bytes = sum(
            min(
                blob.payload_size(slot),
                _PIECE if _by_value(kind, blob) else sys.maxsize,
            )
            for column in columns
            for places in self.locations(column, wanted, positional=True).values()
            for kind, blob, slot in places
            if self._held(blob, slot) is None
        )
        return n_bytes / max(1, len(some))

    def has(self, column: ColumnInfo, *, positional: bool) -> bool:
        """Whether any file has such an index on ``column``."""
        return any(s.kind.positional == positional for s in self._of(column))

    def cost(self, column: ColumnInfo) -> float:
        """About what it costs to ask for the rows of a file; 0 without such an index.

        In units of a bitmap that is read and probed.
        """
        kinds = (source.kind for source in self._of(column))
        return max((probe_cost(kind) for kind in kinds if kind.positional), default=0.0)

    def locations(
        self, column: ColumnInfo, wanted: np.ndarray, *, positional: bool
    ) -> Locations:
        """Where the indexes on ``column`` of the ``wanted`` files are.

        All of them are of these very files.
        """
        result = Locations(len(self._table))
        for source in self._of(column):
            if source.kind.positional != positional:
                continue
            mine = np.flatnonzero(wanted[source.use.rows])
            if not len(mine):
                continue
            blob = self.blob(source.use)
            if blob is None:
                continue
            files, slots = source.use.rows[mine], source.use.slots[mine]
            if not blob.has_shared and self._all_fit(source.use, blob):
                result.add(source.kind, blob, files, slots)
                continue
            own = blob.has_payload(slots)
            if not own.all():
                files, slots = files[own], slots[own]
            fits = blob.fits(slots, *self.identity(files))
            for i in np.flatnonzero(~fits).tolist():
                fits[i] = self._is_there(blob, int(slots[i]), int(files[i]))
            if not fits.all():
                files, slots = files[fits], slots[fits]
            result.add(source.kind, blob, files, slots)
        return result

    def maps(self, column: ColumnInfo) -> list[BlobUse]:
        """The file maps on ``column`` that may be used."""
        if self._kinds is not None and FILE_MAP not in self._kinds:
            return []
        return self._table.maps(column)

    def probe_map(
        self, use: BlobUse, atom: Atom, column: ColumnInfo, wanted: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """The ``wanted`` files that a map rules out, and those with a matching row.

        A file that the map does not cover, or that has changed, is in neither.
        None is "unknown".
        """
        return self._probe_shared(use, FileMap.open, "file map", atom, column, wanted)

    def probe_packs(
        self, atom: Atom, column: ColumnInfo, wanted: np.ndarray
    ) -> Iterator[tuple[IndexType, np.ndarray]]:
        """Which of the ``wanted`` files are ruled out, for each kind and pack.

        Only kinds that know no rows, where a pack has their payloads together.
        """

        def probe(source: UsableBlob) -> tuple[IndexType, np.ndarray] | None:
            kind = source.kind
            if kind.positional or not isinstance(kind, PackableType):
                return None
            blob = self.blob(source.use)
            if blob is None or not blob.has_shared:
                return None
            result = self._probe_shared(
                source.use, kind.open_pack, "index", atom, column, wanted
            )
            return None if result is None else (kind, result[0])

        return filter(None, self.each(probe, self._of(column)))

    def _probe_shared(
        self,
        use: BlobUse,
        open_shared: Callable[[Parts, Domain, int], PackIndex],
        what: str,
        atom: Atom,
        column: ColumnInfo,
        wanted: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """The answer of a pack about its files, as for ``probe_map``."""
        assert column.domain is not None
        mine = np.flatnonzero(wanted[use.rows])
        if not len(mine):
            return None
        blob = self.blob(use)
        if blob is None:
            return None
        try:
            index: PackIndex | None = self._held(blob, _PACK)
            if index is None:
                parts, n_files = blob.shared(READS), len(blob.n_rows)
                index = open_shared(parts, column.domain, n_files)
                n_bytes = INDEX_BYTES + _SLOT_BYTES * n_files
                self._hold(blob, _PACK, index, n_bytes)
            result = index.ask(atom)
        except UNUSABLE as error:
            self.refuse(error, blob, what)
            return None
        if result is None:
            return None
        files, slots = use.rows[mine], use.slots[mine]
        if not self._all_fit(use, blob):
            fits = blob.fits(slots, *self.identity(files))
            if not fits.all():
                self.note(f"{what} not used: it belongs to another data file")
                files, slots = files[fits], slots[fits]
        possible, sure = result
        ruled_out = index.covered & ~possible
        return files[ruled_out[slots]], files[sure[slots]]

    def _all_fit(self, use: BlobUse, blob: Blob) -> bool:
        """Whether all payloads of a blob are of the data files that it is used for."""
        key = use.number, use.entry.offset
        if key not in self._fitting:
            fits = blob.fits(use.slots, *self.identity(use.rows))
            own = blob.has_shared or blob.has_payload(use.slots).all()
            self._fitting[key] = bool(fits.all() and own)
        return self._fitting[key]

    def identity(self, files: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The row counts and footer checksums of files, as the manifest has them."""
        n_rows = self._table.n_rows.or_else(-1, at=files)
        return n_rows, self._footers[self._table.rows[files]]

    def _is_there(self, blob: Blob, slot: int, file: int) -> bool:
        """Whether an index is in a slot; noted if it is of another data file."""
        (n_rows,), (footer,) = self.identity(np.array([file]))
        try:
            if blob.payload(slot, READS) is None:
                return False
            blob.check_identity(slot, n_rows=int(n_rows), footer_crc=int(footer))
        except UNUSABLE as error:
            self.refuse(error, blob)
            return False
        return True

    def blob(self, use: BlobUse) -> Blob | None:
        """The opened blob, or None if it cannot be used."""
        key = use.pack.name, use.entry.offset
        if key not in self._blobs:
            blob, pack = None, self._pack(use.pack.name)
            if pack is not None:
                try:
                    blob = self.cache.blob(pack, use.entry)
                except UNUSABLE as error:
                    self.note(f"pack {use.pack.name} not used: {error}")
                    self.cache.forget(pack)
            self._blobs[key] = blob
        return self._blobs[key]

    def _pack(self, name: str) -> ByteSource | None:
        if name not in self._packs:
            try:
                self._packs[name] = self.cache.pack(self._table.location, name)
            except UNUSABLE as error:
                self.note(f"pack {name} not used: {error}")
                self._packs[name] = None
        return self._packs[name]

    def _of(self, column: ColumnInfo) -> list[UsableBlob]:
        if column.name not in self._sources:
            self._sources[column.name] = self._usable(column)
        return self._sources[column.name]

    def _usable(self, column: ColumnInfo) -> list[UsableBlob]:
        result = []
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
            result.append(UsableBlob(use, kind))
        return result


def _by_value(kind: IndexType, blob: Blob) -> bool:
    """Whether payloads of a blob have the rows by value."""
    return BY_VALUE in (kind.name, *blob.entry.encodings)


def _may_share(use: BlobUse) -> bool:
    """Whether a blob may have parts of all data files together."""
    kind = use.entry.meta.kind
    return kind == FILE_MAP or isinstance(index_type(kind), PackableType)


def _opening_ranges(use: BlobUse) -> list[Range]:
    if use.entry.meta.kind == FILE_MAP and use.entry.length <= _WHOLE:
        return [(use.entry.offset, use.entry.length)]  # its parts would be read next
    n_files = int(use.slots.max(initial=-1)) + 1
    return Blob.opening_ranges(use.entry, n_files, has_shared=_may_share(use))
