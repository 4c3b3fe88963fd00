"""A cache of parts that were read and checked, up to a number of bytes.

A part is cached as what it is asked for: its bytes, the bitmap that they are, or what
else a kind makes of them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from pyroaring import FrozenBitMap

from skipindex.storage.parts import Decoded

Part: TypeAlias = memoryview | FrozenBitMap | Decoded
PayloadKey: TypeAlias = tuple[Hashable, int, type]
"""The owner of a payload, the payload's number there, and the form of its parts."""

_PART_OVERHEAD: Final = 200
_PLACE_OVERHEAD: Final = 8
"""What Python takes for a part beside its bytes, and for the place of one."""


@dataclass(slots=True)
class _Payload:
    """The parts of one payload; None is a part that is not cached."""

    parts: list[Part | None]
    n_bytes: int


class PartCache:
    """The payloads that were asked for last; threads may share it.

    A payload is the index of one data file.  Payloads are evicted whole, so a probe
    costs one look-up whatever number of parts it reads.

    Args:
        limit: in bytes, with what Python adds; 0 caches nothing.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._payloads: OrderedDict[PayloadKey, _Payload] = OrderedDict()
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

    def parts_of(self, payload: PayloadKey) -> Sequence[Part | None]:
        """All parts of a payload, None for one that is not cached.

        It is empty if no part of the payload is.
        """
        with self._lock:
            if payload not in self._payloads:
                return ()
            self._payloads.move_to_end(payload)
            return self._payloads[payload].parts

    def put(
        self,
        payload: PayloadKey,
        n_parts: int,
        start: int,
        parts: Sequence[Part],
        n_bytes: int,
    ) -> None:
        """Cache neighbouring parts, unless they alone are above the limit.

        Args:
            payload: whose parts they are.
            n_parts: of the whole payload.
            start: the number of the first part.
            parts: one or more.
            n_bytes: of these parts.
        """
        n_bytes += _PART_OVERHEAD * len(parts)
        with self._lock:
            if n_bytes > self._limit:
                return
            cached = self._payloads.get(payload)
            if cached is None:
                cached = _Payload([None] * n_parts, 0)
                n_bytes += _PLACE_OVERHEAD * n_parts
                self._payloads[payload] = cached
                self._keys.setdefault(payload[0], set()).add(payload)
            cached.parts[start : start + len(parts)] = parts
            cached.n_bytes += n_bytes
            self._n_bytes += n_bytes
            self._evict()

    def invalidate(self, owner: Hashable) -> None:
        """Drop all payloads of one owner."""
        with self._lock:
            for payload in self._keys.pop(owner, ()):
                self._n_bytes -= self._payloads.pop(payload).n_bytes

    def _evict(self) -> None:
        while self._n_bytes > self._limit:
            payload, oldest = self._payloads.popitem(last=False)
            self._n_bytes -= oldest.n_bytes
            keys = self._keys[payload[0]]
            keys.discard(payload)
            if not keys:
                del self._keys[payload[0]]
