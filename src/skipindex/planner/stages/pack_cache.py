"""The cache that plans share, and the session that owns it.

Packs are immutable and named by their content, so what was read of one stays true.  A
``CacheSession`` holds the directories of their blobs, opened indexes, and the parts
that were read and verified, all in one cache up to its size in bytes.
"""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Hashable
from pathlib import Path
from typing import Final, Self
from weakref import WeakValueDictionary

from skipindex.errors import PlanError
from skipindex.storage.cache import NOTHING, Cache
from skipindex.storage.disk_cache import CachedSource, cached_source
from skipindex.storage.file_system.byte_source import ByteSource
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import PACKS
from skipindex.storage.pack import Blob, BlobEntry

MIN_CACHE_BYTES: Final = 256 << 20
MAX_CACHE_BYTES: Final = 1 << 30
CACHE_SHARE: Final = 16
"""Default cache of index bytes: the machine's memory divided by this."""
CACHE_VARIABLE: Final = "SKIPINDEX_CACHE_BYTES"


class PackCache:
    """Opened packs, and one cache of what is read of them; safe to share by threads.

    A pack stays open as long as something of it is cached, or a plan uses it.

    Args:
        n_bytes: the most bytes that are cached; None is what the environment says.
    """

    def __init__(self, n_bytes: int | None = None) -> None:
        self._lock = threading.Lock()
        self._parts = None if n_bytes is None else Cache(n_bytes)
        self._packs: WeakValueDictionary[Hashable, ByteSource] = WeakValueDictionary()

    @property
    def parts(self) -> Cache:
        """The verified parts, opened indexes, and directories of blobs.

        Raises:
            PlanError: ``SKIPINDEX_CACHE_BYTES`` is not a number of bytes.
        """
        with self._lock:
            if self._parts is None:
                self._parts = Cache(_limit_of_environment())
            return self._parts

    def resize(self, limit: int) -> None:
        """Hold at most so many bytes, whatever the environment says."""
        with self._lock:
            if self._parts is None:
                self._parts = Cache(limit)
            self._parts.limit = limit

    def pack(self, location: Location, name: str) -> ByteSource:
        """The pack of that name; opened anew where the file is another one.

        Raises:
            OSError: it cannot be opened.
        """
        key = location, name, _mark(location, name)
        with self._lock:
            pack = self._packs.get(key)
            if pack is None:
                path = f"{PACKS}/{name}"
                pack = cached_source(location, path, location.view(path))
                self._packs[key] = pack
            return pack

    def is_open(self, pack: ByteSource, entry: BlobEntry) -> bool:
        """Whether the directory of a blob is cached."""
        return self.parts.find((pack, entry.offset, entry.crc)) is not NOTHING

    def blob(self, pack: ByteSource, entry: BlobEntry) -> Blob:
        """The blob of ``entry``.

        Raises:
            CorruptIndexError: there is another one at this offset, or none.
            PlanError: ``SKIPINDEX_CACHE_BYTES`` is not a number of bytes.
        """
        blob: Blob | None = self.parts.get((pack, entry.offset, entry.crc))
        if blob is None or blob.entry != entry:
            blob = Blob(pack, entry, self.parts)
            self.parts.keep(blob.key, blob, blob.n_bytes)
        return blob

    def forget(self, damaged: ByteSource) -> None:
        """Open a pack anew the next time: a repaired one may have the same name."""
        with self._lock:
            for key, pack in list(self._packs.items()):
                if pack is damaged:
                    del self._packs[key]
        self.parts.forget(damaged)
        if isinstance(damaged, CachedSource):
            damaged.blocks.forget()

    def clear(self) -> None:
        """Evict everything."""
        with self._lock:
            self._packs.clear()
            if self._parts is not None:
                self._parts.clear()


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
