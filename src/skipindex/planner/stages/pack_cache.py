"""Opened packs: what planning keeps of them from one plan to the next.

Packs are immutable and named by their content, so what was read of one stays true.
Kept are the directories of its blobs, opened indexes (a header and at most two chunks
of a dictionary each), and the parts that were read and checked, up to
``set_cache_bytes``.  The least recently used packs and payloads, and the indexes that
were opened first, make room for others.
"""

from __future__ import annotations

import operator
import os
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any, Final

from skipindex.errors import PlanError
from skipindex.indexes.interface import Index, PackIndex
from skipindex.storage.file_system.location import ByteSource, Location
from skipindex.storage.log import PACKS
from skipindex.storage.pack import Blob, BlobEntry
from skipindex.storage.part_cache import KeptParts

MAX_PACKS: Final = 2048
"""Each is the directories of its blobs, and no open file.

A plan over more of them reads directories again the next time."""
MAX_INDEXES: Final = 8192
"""A few hundred bytes each; with a dictionary up to 32 KB more."""

MAX_PACK_INDEXES: Final = 4096
"""As large as an opened index, and a few bytes a file."""

CACHE_BYTES: Final = 256 << 20
"""Of parts that are kept, unless somebody says otherwise."""
CACHE_VARIABLE: Final = "SKIPINDEX_CACHE_BYTES"


class PackReader:
    """One pack, and its directories as far as they were asked for."""

    def __init__(self, source: ByteSource, kept: KeptParts) -> None:
        self._source = source
        self._kept: KeptParts | None = kept
        self._blobs: dict[int, Blob] = {}

    def blob(self, entry: BlobEntry) -> Blob:
        """The blob of ``entry``.

        Raises:
            CorruptIndexError: there is another one in its place, or none.
        """
        blob = self._blobs.get(entry.offset)
        if blob is None or blob.entry != entry:
            if blob is not None:
                blob.forget()
            blob = Blob(self._source, entry, self._kept)
            self._blobs[entry.offset] = blob
        return blob

    def holds(self, what: PackReader | Blob) -> bool:
        """Whether this is it, or one of its opened blobs."""
        if isinstance(what, Blob):
            return self._blobs.get(what.entry.offset) is what
        return what is self

    def forget(self) -> None:
        """Let go the parts of its blobs; a plan that still uses it reads them anew."""
        self._kept = None
        for blob in list(self._blobs.values()):
            blob.forget()


class PackCache:
    """The packs and indexes that this process has open; safe to share by threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: KeptParts | None = None
        self._packs: OrderedDict[tuple[Any, ...], PackReader] = OrderedDict()
        self._indexes: dict[tuple[Blob, int], Index] = {}
        self._pack_indexes: dict[Blob, PackIndex] = {}

    @property
    def parts(self) -> KeptParts:
        """The parts that are kept.

        Raises:
            PlanError: the environment has no number of bytes to keep.
        """
        with self._lock:
            if self._parts is None:
                self._parts = KeptParts(_limit_of_environment())
            return self._parts

    def limit_parts(self, limit: int) -> None:
        """Keep parts of so many bytes, whatever the environment says."""
        with self._lock:
            if self._parts is None:
                self._parts = KeptParts(limit)
            self._parts.limit = limit

    def pack(self, location: Location, name: str) -> PackReader:
        """The pack of that name; opened anew where the file is another one.

        Raises:
            OSError: it cannot be opened.
            PlanError: the environment has no number of bytes to keep.
        """
        kept = self.parts
        key = (location.root, location.uri, name, _mark(location, name))
        with self._lock:
            pack = self._packs.get(key)
            if pack is None:
                pack = PackReader(location.view(f"{PACKS}/{name}"), kept)
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
        """Keep an opened index, whose reads are counted by the thread."""
        with self._lock:
            if len(self._indexes) >= MAX_INDEXES:
                for old in list(self._indexes)[: MAX_INDEXES // 2]:
                    del self._indexes[old]
            self._indexes[blob, slot] = index

    def pack_index(self, blob: Blob) -> PackIndex | None:
        """What a blob knows of all its files, if it has been opened before."""
        return self._pack_indexes.get(blob)

    def keep_pack_index(self, blob: Blob, index: PackIndex) -> None:
        """Keep what was opened, whose reads are counted by the thread."""
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
        """Forget everything."""
        with self._lock:
            for pack in self._packs.values():
                pack.forget()
            self._packs.clear()
            self._indexes.clear()
            self._pack_indexes.clear()


def _mark(location: Location, name: str) -> tuple[int, ...]:
    """What tells a pack from one that was put in its place, where that is cheap."""
    if not location.is_local:
        return ()
    found = Path(location.full(f"{PACKS}/{name}")).stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


PACK_CACHE: Final = PackCache()
"""Of this process."""


def set_cache_bytes(n_bytes: int) -> None:
    """Keep index bytes that were read and checked in memory, up to so many.

    Later plans then read less, or nothing; no answer changes.  It is 256 MB, or what
    the environment variable ``SKIPINDEX_CACHE_BYTES`` says, until this is called.

    Args:
        n_bytes: of this process; 0 keeps none.

    Raises:
        PlanError: this is no number of bytes.
    """
    PACK_CACHE.limit_parts(_checked_limit(n_bytes, "set_cache_bytes"))


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
        return CACHE_BYTES
    try:
        return _checked_limit(int(text), CACHE_VARIABLE)
    except ValueError:
        raise PlanError(
            f"{CACHE_VARIABLE} is {text!r} (accepted: a whole number of bytes, 0 or "
            "more)"
        ) from None
