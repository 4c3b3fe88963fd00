"""A cache of parts that were read and checked, up to a number of bytes.

A part is cached as what it is asked for: its bytes, the bitmap that they are, or what
else a kind makes of them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from pyroaring import FrozenBitMap

from skipindex.storage.parts import Decoded

Part: TypeAlias = memoryview | FrozenBitMap | Decoded
PayloadKey: TypeAlias = tuple[Hashable, int]
"""The owner of a payload, and the payload's number there."""

_PART_OVERHEAD: Final = 200
_PLACE_OVERHEAD: Final = 8
"""Bytes that Python takes for a part beside its own, and for the place of one."""


@dataclass(slots=True, eq=False)
class CachedPayload:
    """The cached parts of one payload, which are looked at without a lock.

    ``forms`` has the parts in each form, None for one that is not cached; it is empty
    once the payload has been evicted.  ``n_bytes`` is of all parts.  ``was_used`` is
    whether a plan used it since it was last spared; readers set it.
    """

    forms: dict[type, list[Part | None]] = field(default_factory=dict)
    n_bytes: int = 0
    was_used: bool = False


NOTHING: Final = CachedPayload()
"""The entry of a payload of which no part is cached."""


class PartCache:
    """The payloads that were asked for last; threads may share it.

    A payload is the index of one data file.  Payloads are evicted whole: the one that
    was cached first goes, unless it was used since it was last spared (the clock
    algorithm: Corbato, A Paging Experiment with the Multics System, 1968).

    ``limit`` is in bytes, with what Python adds; 0 caches nothing.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._payloads: OrderedDict[PayloadKey, CachedPayload] = OrderedDict()
        self._keys: dict[Hashable, set[PayloadKey]] = {}
        self._n_bytes = 0

    @property
    def n_bytes(self) -> int:
        """The size of all cached parts; errs upwards."""
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

    def find(self, key: PayloadKey) -> CachedPayload:
        """What is cached of a payload."""
        return self._payloads.get(key, NOTHING)

    def put(
        self,
        key: PayloadKey,
        form: type,
        n_parts: int,
        start: int,
        parts: Sequence[Part],
        n_bytes: int,
    ) -> None:
        """Cache neighbouring parts, unless they alone are above the limit.

        ``n_parts`` is of the whole payload, ``n_bytes`` of these parts.
        """
        n_bytes += _PART_OVERHEAD * len(parts)
        with self._lock:
            if n_bytes > self._limit:
                return
            payload = self._payloads.get(key)
            if payload is None:
                payload = self._payloads[key] = CachedPayload()
                self._keys.setdefault(key[0], set()).add(key)
            if form not in payload.forms:
                payload.forms[form] = [None] * n_parts
                n_bytes += _PLACE_OVERHEAD * n_parts
            payload.forms[form][start : start + len(parts)] = parts
            payload.n_bytes += n_bytes
            self._n_bytes += n_bytes
            self._evict()

    def clear(self) -> None:
        """Drop all payloads."""
        with self._lock:
            for payload in self._payloads.values():
                self._drop(payload)
            self._payloads.clear()
            self._keys.clear()

    def invalidate(self, owner: Hashable) -> None:
        """Drop all payloads of one owner."""
        with self._lock:
            for key in self._keys.pop(owner, ()):
                self._drop(self._payloads.pop(key))

    def _evict(self) -> None:
        while self._n_bytes > self._limit:
            key, oldest = self._payloads.popitem(last=False)
            if oldest.was_used:
                oldest.was_used = False
                self._payloads[key] = oldest
                continue
            self._drop(oldest)
            keys = self._keys[key[0]]
            keys.discard(key)
            if not keys:
                del self._keys[key[0]]

    def _drop(self, payload: CachedPayload) -> None:
        self._n_bytes -= payload.n_bytes
        payload.forms = {}
