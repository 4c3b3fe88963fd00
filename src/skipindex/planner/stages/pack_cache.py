"""The cache that plans share, and the session that owns it.

Packs are immutable and named by their content, so what was read of one stays true.  A
``CacheSession`` holds the directories of their blobs, opened indexes (a header each),
and the parts that were read and verified, up to its size in bytes.  The least recently
used packs and payloads are evicted, and the indexes that were opened first.
"""

from __future__ import annotations

import operator
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Self

from skipindex.errors import PlanError
from skipindex.indexes.interface import Index, PackIndex
from skipindex.storage.file_system.byte_source import ByteSource
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import PACKS
from skipindex.storage.file_system.store_input import Range, held
from skipindex.storage.pack import Blob, BlobEntry
from skipindex.storage.pack.part_cache import PartCache

MAX_PACKS: Final = 2048
"""Each is the directories of its blobs, and no open file.

A plan over more of them reads directories again the next time."""
MAX_INDEXES: Final = 65536
"""About a kilobyte each.  A plan over 1,000 files asks some thousands."""

MAX_PACK_INDEXES: Final = 4096
"""Each is as large as an opened index, and a few bytes a file."""

MIN_CACHE_BYTES: Final = 256 << 20
MAX_CACHE_BYTES: Final = 1 << 30
CACHE_SHARE: Final = 16
"""Default cache of verified parts: the machine's memory divided by this."""
CACHE_VARIABLE: Final = "SKIPINDEX_CACHE_BYTES"


class PackReader:
    """One pack, and the directories of its blobs that were read."""

    def __init__(self, source: ByteSource, cache: PartCache) -> None:
        self._source = source
        self._cache: PartCache | None = cache
        self._blobs: dict[int, Blob] = {}

    def unopened(self, entry: BlobEntry) -> Iterator[tuple[ByteSource, Range]]:
        """What is read to open a blob; nothing if it is open."""
        if entry.offset not in self._blobs:
            yield from ((self._source, one) for one in Blob.opening_ranges(entry))

    def directory(self, entry: BlobEntry) -> Iterator[tuple[ByteSource, Range]]:
        """The directory of a blob whose end was read ahead, and does not have it."""
        if entry.offset in self._blobs:
            return
        end = held(self._source, Blob.opening_ranges(entry)[-1])
        if end is not None and (place := Blob.directory_range(entry, end)) is not None:
            yield self._source, place

    def blob(self, entry: BlobEntry) -> Blob:
        """The blob of ``entry``.

        Raises:
            CorruptIndexError: there is another one at this offset, or none.
        """
        blob = self._blobs.get(entry.offset)
        if blob is None or blob.entry != entry:
            if blob is not None:
                blob.forget()
            blob = Blob(self._source, entry, self._cache)
            self._blobs[entry.offset] = blob
        return blob

    def holds(self, what: PackReader | Blob) -> bool:
        """Whether this is it, or one of its opened blobs."""
        if isinstance(what, Blob):
            return self._blobs.get(what.entry.offset) is what
        return what is self

    def forget(self) -> None:
        """Evict the parts of its blobs; a plan that still uses it reads them anew."""
        self._cache = None
        for blob in list(self._blobs.values()):
            blob.forget()


class PackCache:
    """Packs, opened indexes and verified parts; safe to share by threads.

    Args:
        n_bytes: the most bytes of parts; None is what the environment says.
    """

    def __init__(self, n_bytes: int | None = None) -> None:
        self._lock = threading.Lock()
        self._parts = None if n_bytes is None else PartCache(n_bytes)
        self._packs: OrderedDict[tuple[Any, ...], PackReader] = OrderedDict()
        self._indexes: dict[tuple[Blob, int], Index] = {}
        self._pack_indexes: dict[Blob, PackIndex] = {}

    @property
    def parts(self) -> PartCache:
        """The verified parts.

        Raises:
            PlanError: ``SKIPINDEX_CACHE_BYTES`` is not a number of bytes.
        """
        with self._lock:
            if self._parts is None:
                self._parts = PartCache(_limit_of_environment())
            return self._parts

    def resize(self, limit: int) -> None:
        """Hold parts of at most so many bytes, whatever the environment says."""
        with self._lock:
            if self._parts is None:
                self._parts = PartCache(limit)
            self._parts.limit = limit

    def pack(self, location: Location, name: str) -> PackReader:
        """The pack of that name; opened anew where the file is another one.

        Raises:
            OSError: it cannot be opened.
            PlanError: ``SKIPINDEX_CACHE_BYTES`` is not a number of bytes.
        """
        parts = self.parts
        key = (location, name, _mark(location, name))
        with self._lock:
            pack = self._packs.get(key)
            if pack is None:
                pack = PackReader(location.view(f"{PACKS}/{name}"), parts)
                self._packs[key] = pack
                if len(self._packs) > MAX_PACKS:
                    _, oldest = self._packs.popitem(last=False)
                    oldest.forget()
            else:
                self._packs.move_to_end(key)
            return pack

    def index(self, blob: Blob, slot: int) -> Index | None:
        """The index of one data file, if it has been opened before."""
        return self._indexes.get((blob, slot))

    def keep(self, blob: Blob, slot: int, index: Index) -> None:
        """Hold an opened index, whose reads are counted by the thread."""
        with self._lock:
            if len(self._indexes) >= MAX_INDEXES:
                for old in list(self._indexes)[: MAX_INDEXES // 2]:
                    del self._indexes[old]
            self._indexes[blob, slot] = index

    def pack_index(self, blob: Blob) -> PackIndex | None:
        """What a blob knows of all its files, if it has been opened before."""
        return self._pack_indexes.get(blob)

    def keep_pack_index(self, blob: Blob, index: PackIndex) -> None:
        """Hold what was opened, whose reads are counted by the thread."""
        with self._lock:
            while len(self._pack_indexes) >= MAX_PACK_INDEXES:
                del self._pack_indexes[next(iter(self._pack_indexes))]
            self._pack_indexes[blob] = index

    def forget(self, damaged: PackReader | Blob) -> None:
        """Open a pack anew the next time: a repaired one may have the same name."""
        with self._lock:
            holders = [key for key, pack in self._packs.items() if pack.holds(damaged)]
            for key in holders:
                pack = self._packs.pop(key)
                pack.forget()
                self._indexes = {
                    place: index
                    for place, index in self._indexes.items()
                    if not pack.holds(place[0])
                }
                self._pack_indexes = {
                    blob: index
                    for blob, index in self._pack_indexes.items()
                    if not pack.holds(blob)
                }

    def clear(self) -> None:
        """Evict everything."""
        with self._lock:
            for pack in self._packs.values():
                pack.forget()
            if self._parts is not None:
                self._parts.clear()
            self._packs.clear()
            self._indexes.clear()
            self._pack_indexes.clear()


def _mark(location: Location, name: str) -> tuple[int, ...]:
    """What differs where another file has replaced a pack, if that is cheap to see."""
    if not location.at(PACKS).is_local:
        return ()
    result = Path(location.full(f"{PACKS}/{name}")).stat()
    return result.st_ino, result.st_size, result.st_mtime_ns


class CacheSession:
    """Owns what plans hold in memory; safe to share by threads.

    Later plans of a session read less, or nothing; no answer changes.  What a session
    holds is freed by ``close``, by the end of a ``with`` block, or with the session.

        >>> from skipindex.planner.stages.pack_cache import CacheSession
        >>> with CacheSession(cache_bytes=64_000_000) as session:
        ...     session.resize(1_000_000)

    Args:
        cache_bytes: the most index bytes that are held; 0 holds none.  None is the
            environment variable ``SKIPINDEX_CACHE_BYTES``, or a sixteenth of the
            memory of this machine, from 256 MiB to 1 GiB.

    Attributes:
        packs: the packs, indexes and parts that are held.

    Raises:
        PlanError: ``cache_bytes`` is not a number of bytes.
    """

    def __init__(self, cache_bytes: int | None = None) -> None:
        if cache_bytes is not None:
            cache_bytes = _checked_limit(cache_bytes, "CacheSession")
        self.packs = PackCache(cache_bytes)

    def resize(self, n_bytes: int) -> None:
        """Hold at most so many index bytes, and evict what is over.

        Raises:
            PlanError: this is not a number of bytes.
        """
        self.packs.resize(_checked_limit(n_bytes, "resize"))

    def clear(self) -> None:
        """Evict everything; the size stays."""
        self.packs.clear()

    def close(self) -> None:
        """Evict everything, and hold no index bytes any more."""
        self.packs.resize(0)
        self.packs.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


DEFAULT_SESSION: Final = CacheSession()
"""The session of plans that are given no other."""


def set_cache_bytes(n_bytes: int) -> None:
    """Hold at most so many verified index bytes in memory, for all later plans.

    Later plans then read less, or nothing; no answer changes.  Until this is called, it
    is what the environment variable ``SKIPINDEX_CACHE_BYTES`` says, or a sixteenth of
    the memory of this machine, from 256 MiB to 1 GiB.  Plans with a ``session`` of
    their own are not affected.

    Args:
        n_bytes: the most bytes; 0 holds none.

    Raises:
        PlanError: this is not a number of bytes.

    >>> from skipindex.api import set_cache_bytes
    >>> set_cache_bytes(256 << 20)
    """
    DEFAULT_SESSION.packs.resize(_checked_limit(n_bytes, "set_cache_bytes"))


def _checked_limit(n_bytes: int, source: str) -> int:
    try:
        limit = operator.index(n_bytes)
    except TypeError:
        limit = -1
    if limit < 0:
        raise PlanError(
            f"{source}: cannot keep {n_bytes!r} bytes of indexes (accepted: a whole "
            "number, 0 or more)"
        )
    return limit


def _limit_of_environment() -> int:
    text = os.environ.get(CACHE_VARIABLE)
    if text is None:
        return _limit_of_machine()
    try:
        return _checked_limit(int(text), CACHE_VARIABLE)
    except ValueError:
        raise PlanError(
            f"{CACHE_VARIABLE} is {text!r} (accepted: a whole number of bytes, 0 or "
            "more)"
        ) from None


def _limit_of_machine() -> int:
    """The default, which leaves most of the memory to others."""
    try:
        n_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on every system
        return MIN_CACHE_BYTES
    return min(max(n_bytes // CACHE_SHARE, MIN_CACHE_BYTES), MAX_CACHE_BYTES)
