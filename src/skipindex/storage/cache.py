"""The cache of what was read and checked, up to a number of bytes.

Parts, opened indexes and the directories of packs are in one of these together, ranges
that were read ahead in another.  Each is cached under the source of its bytes, by
identity: a file that is opened anew is another source.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

Key: TypeAlias = tuple[object, ...]
"""The source of what is cached, and what it is of that."""

_PART_OVERHEAD: Final = 200
_PLACE_OVERHEAD: Final = 8
"""Bytes that Python takes for a part beside its own, and for the place of one."""
_NO_PART: Final = (None,)


@dataclass(slots=True, eq=False)
class CacheEntry:
    """The cached parts of one payload, which are looked at without a lock.

    ``forms`` has the parts in each form, None for one that is not cached; it is empty
    once the entry has been evicted.  A thing that is no payload is the one part of the
    form ``object``.  ``n_bytes`` is of all parts.  ``was_used`` is whether a plan used
    it since it was last spared; readers set it.
    """

    forms: dict[type, list[Any]] = field(default_factory=dict)
    n_bytes: int = 0
    was_used: bool = False


NOTHING: Final = CacheEntry()
"""The entry of a key under which nothing is cached."""


class Cache:
    """What was asked for last; threads may share it.

    Entries are evicted whole: the one that was cached first goes, unless it was used
    since it was last spared (the clock algorithm: Corbato, A Paging Experiment with the
    Multics System, 1968).

    ``limit`` is in bytes, with what Python adds; 0 caches nothing.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._entries: OrderedDict[Key, CacheEntry] = OrderedDict()
        self._keys: dict[object, set[Key]] = {}
        self._n_bytes = 0

    @property
    def n_bytes(self) -> int:
        """The size of all that is cached; errs upwards."""
        return self._n_bytes

    @property
    def limit(self) -> int:
        """The most bytes that are cached."""
        return self._limit

    @limit.setter
    def limit(self, limit: int) -> None:
        with self._lock:
            self._limit = limit
            self._evict()

    def find(self, key: Key) -> CacheEntry:
        """What is cached of a payload."""
        return self._entries.get(key, NOTHING)

    def get(self, key: Key) -> Any:
        """The thing that ``keep`` has cached; None if it is not cached any more."""
        entry = self._entries.get(key, NOTHING)
        entry.was_used = True
        return entry.forms.get(object, _NO_PART)[0]

    def keep(self, key: Key, thing: object, n_bytes: int) -> bool:
        """Cache a thing in place of what is cached there; it takes ``n_bytes``.

        False if it alone is above the limit.
        """
        with self._lock:
            self._drop(key)
        return self.put(key, object, 1, 0, [thing], n_bytes)

    def put(
        self,
        key: Key,
        form: type,
        n_parts: int,
        start: int,
        parts: Sequence[object],
        n_bytes: int,
    ) -> bool:
        """Cache neighbouring parts; False if they alone are above the limit.

        ``n_parts`` is of the whole payload, ``n_bytes`` of these parts.
        """
        n_bytes += _PART_OVERHEAD * len(parts)
        with self._lock:
            if n_bytes > self._limit:
                return False
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = CacheEntry()
                self._keys.setdefault(key[0], set()).add(key)
            if form not in entry.forms:
                entry.forms[form] = [None] * n_parts
                n_bytes += _PLACE_OVERHEAD * n_parts
            entry.forms[form][start : start + len(parts)] = parts
            entry.n_bytes += n_bytes
            self._n_bytes += n_bytes
            self._evict()
        return True

    def forget(self, source: object) -> None:
        """Drop all that is cached of one source."""
        with self._lock:
            for key in list(self._keys.get(source, ())):
                self._drop(key)

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            for key in list(self._entries):
                self._drop(key)

    def _evict(self) -> None:
        while self._n_bytes > self._limit:
            key, oldest = next(iter(self._entries.items()))
            if oldest.was_used:
                oldest.was_used = False
                self._entries.move_to_end(key)
            else:
                self._drop(key)

    def _drop(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._n_bytes -= entry.n_bytes
            entry.forms = {}
            keys = self._keys[key[0]]
            keys.discard(key)
            if not keys:
                del self._keys[key[0]]
