"""Parts that were read and checked, kept in memory up to a number of bytes.

A part is kept as what it is asked for: its bytes, the bitmap that they are, or what
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
"""Whose payload it is, its number there, and as what its parts are kept."""

_PART_OVERHEAD: Final = 200
_PLACE_OVERHEAD: Final = 8
"""What Python takes for a part beside its bytes, and for the place of one."""


@dataclass(slots=True)
class _Payload:
    """What is kept of one payload; None is a part that is not."""

    parts: list[Part | None]
    n_bytes: int


class PartCache:
    """The payloads that were asked for last; safe to share by threads.

    A payload, which is the index of one data file, is kept and let go as a whole, so
    that a question costs one look-up however many parts it needs.

    Args:
        limit: of all that is kept, in bytes, with what Python adds; 0 keeps nothing.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._payloads: OrderedDict[PayloadKey, _Payload] = OrderedDict()
        self._keys: dict[Hashable, set[PayloadKey]] = {}
        self._n_bytes = 0

    @property
    def n_bytes(self) -> int:
        """What all that is kept takes, rather too much than too little."""
        return self._n_bytes

    @property
    def limit(self) -> int:
        """The most that is kept."""
        return self._limit

    @limit.setter
    def limit(self, limit: int) -> None:
        with self._lock:
            self._limit = limit
            self._make_room()

    def get(self, payload: PayloadKey, start: int, stop: int) -> list[Part | None]:
        """Parts ``start .. stop - 1``, None for one that is not kept, or no list."""
        with self._lock:
            found = self._payloads.get(payload)
            if found is None:
                return []
            self._payloads.move_to_end(payload)
            return found.parts[start:stop]

    def keep(
        self,
        payload: PayloadKey,
        n_parts: int,
        start: int,
        parts: Sequence[Part],
        n_bytes: int,
    ) -> None:
        """Keep what was read in one piece.

        Args:
            payload: that it is of.
            n_parts: of the whole payload.
            start: the number of the first.
            parts: one or more neighbours.
            n_bytes: that they take.
        """
        n_bytes += _PART_OVERHEAD * len(parts)
        with self._lock:
            if n_bytes > self._limit:
                return
            kept = self._payloads.get(payload)
            if kept is None:
                kept = _Payload([None] * n_parts, 0)
                n_bytes += _PLACE_OVERHEAD * n_parts
                self._payloads[payload] = kept
                self._keys.setdefault(payload[0], set()).add(payload)
            kept.parts[start : start + len(parts)] = parts
            kept.n_bytes += n_bytes
            self._n_bytes += n_bytes
            self._make_room()

    def forget(self, owner: Hashable) -> None:
        """Let go all payloads of one owner."""
        with self._lock:
            for payload in self._keys.pop(owner, ()):
                self._n_bytes -= self._payloads.pop(payload).n_bytes

    def _make_room(self) -> None:
        while self._n_bytes > self._limit:
            payload, oldest = self._payloads.popitem(last=False)
            self._n_bytes -= oldest.n_bytes
            keys = self._keys[payload[0]]
            keys.discard(payload)
            if not keys:
                del self._keys[payload[0]]
