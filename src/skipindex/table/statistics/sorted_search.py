"""Looking up many keys in a sorted list, by a table of where prefixes begin."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from skipindex.expressions.arrays import Ints, Words

_BUCKETS: Final = 16
"""Buckets for each key of the list: few of them then hold one."""
_MAX_BITS: Final = 16
"""Bits of the number of a bucket."""
_SHORT: Final = 8
"""Lists of no more keys are searched as they are."""


class SortedSearch:
    """Where keys stand in a sorted list, as ``np.searchsorted`` tells.

    The span of the list is cut into buckets of one width.  A key in a bucket that no
    key of the list lies in has the place of the bucket, so nearly all places are read
    from a table that the processor's cache holds.
    """

    def __init__(self, ordered: Ints | Words) -> None:
        self._ordered = ordered
        self._table: Ints | None = None
        if len(ordered) <= _SHORT:
            return
        width = int(ordered[-1]) - int(ordered[0])
        n_bits = min(_MAX_BITS, (_BUCKETS * len(ordered)).bit_length())
        self._shift = np.uint64(max(0, width.bit_length() - n_bits))
        buckets = self._buckets(ordered)
        n_before = np.cumsum(np.bincount(buckets.view(np.int64)))
        self._table = np.concatenate([[0], n_before])

    def places(self, keys: Ints | Words) -> Ints:
        """For every key, how many of the list are less."""
        if self._table is None:
            return np.searchsorted(self._ordered, keys)
        least, most = self._ordered[0], self._ordered[-1]
        inside: Any = np.clip(keys, least, most)
        buckets = self._buckets(inside).view(np.int64)
        result: Ints = self._table[buckets]
        mixed = np.flatnonzero(result != self._table[buckets + 1])
        result[mixed] = np.searchsorted(self._ordered, keys[mixed])
        result[keys > most] = len(self._ordered)
        return result

    def _buckets(self, keys: Ints | Words) -> Words:
        """The bucket of every key, each within the span of the list."""
        # As unsigned numbers: the distance may exceed int64.
        distance: Words = keys.view(np.uint64) - self._ordered[:1].view(np.uint64)
        return distance >> self._shift
