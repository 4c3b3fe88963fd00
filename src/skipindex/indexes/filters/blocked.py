"""Blocked Bloom filters: all bits of a key are in one small block of the filter.

A filter is ``n`` blocks of ``2 ** b`` bits.  The hash ``h`` of a key (``splitmix``)
gives its block, and the generator with seed ``h`` gives ``k`` bits of the block, which
may fall together::

    block       ((h >> 32) * n) >> 32
    bit j       (out(h, 1 + j // 4) >> 16 * (j % 4)) mod 2 ** b      j = 0 ... k - 1
    place       block * 2 ** b + bit

Place ``p`` is bit ``p mod 8``, the lowest first, of byte ``p // 8``.  ``b`` is 3 to 16.

A block is read in one piece, and filled while it is in the processor's nearest memory;
numpy fills all blocks of some ten thousand keys together.  The keys of a block vary
around their mean, which costs some bits: the size is the least for which the mean over
all blocks is the error rate that was requested.

Source: Putze, Sanders and Singler, Cache-, Hash- and Space-Efficient Bloom Filters,
WEA 2007; the block of a hash is taken as in Parquet's split-block filters.
"""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from skipindex.expressions.arrays import Words, starts
from skipindex.expressions.atoms import Value
from skipindex.indexes.filters.splitmix import Keys, hash_of, hashes_of, out, outputs

_BATCH: Final = 1 << 15
"""Keys that are added together: a byte a bit of their blocks is in memory."""
_TEXT: Final = re.compile(rb"splitmix64/b(\d{1,2})/k(\d{1,2})")
_LEAST_WIDTH: Final = 3
_MOST_WIDTH: Final = 16
"""Binary logarithms of the bits of a block."""
_MOST_BITS: Final = 64
"""Bits of a key."""
_WIDTH: Final = 9
"""The width of most filters' blocks: one part of a pack has half of such a block."""
_WASTE: Final = 1.12
"""Blocks are wider where this one would take more bits than a filter without blocks,
by this factor."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The shape of a blocked filter.

    A key has ``k`` bits, and there are ``n`` blocks; ``width`` is the binary logarithm
    of the bits of a block.
    """

    k: int
    n: int
    width: int

    @classmethod
    def parse(cls, text: bytes, k: int, n: int) -> Self | None:
        """The shape of a payload's header; None if no filter has it."""
        match = _TEXT.fullmatch(text)
        if match is None:
            return None
        width, same_k = map(int, match.groups())
        shape = cls(k, n, width)
        if not (
            _LEAST_WIDTH <= width <= _MOST_WIDTH
            and 0 < k == same_k <= _MOST_BITS
            and 0 < n < 1 << 32
            and text == shape.text
        ):
            return None
        return shape

    @classmethod
    def for_keys(cls, capacity: int, error_rate: float) -> Self:
        """The smallest shape for so many keys."""
        k = max(1, math.ceil(-math.log2(error_rate)))
        for width in range(_LEAST_WIDTH, _WIDTH + 1):
            if _error_rate(capacity, k, width) <= error_rate:
                return cls(k, 1, width)
        width, load = _load(k, error_rate)
        return cls(k, math.ceil(capacity / load), width)

    @property
    def text(self) -> bytes:
        """What the bits depend on besides the number of blocks; part of the payload."""
        return b"splitmix64/b%d/k%d" % (self.width, self.k)

    @property
    def n_bits(self) -> int:
        """Bits of the whole filter."""
        return self.n << self.width

    def places(self, key: Value) -> list[int]:
        """The bits of ``key``."""
        seed = hash_of(key)
        base = ((seed >> 32) * self.n >> 32) << self.width
        mask = (1 << self.width) - 1
        return [base + (bits & mask) for bits in _stream(seed, self.k)]

    bits_of = places

    def filled(self, hashes: Words) -> bytes:
        """The bits of a filter of the keys with these hashes, which ascend."""
        result = np.zeros(self.n_bits // 8, np.uint8)
        block_bytes = 1 << self.width - 3
        for at in range(0, len(hashes), _BATCH):
            seeds = hashes[at : at + _BATCH]
            blocks = (seeds >> np.uint64(32)) * np.uint64(self.n) >> np.uint64(32)
            first, last = int(blocks[0]), int(blocks[-1])
            bases = (blocks.astype(np.int64) - first) << self.width
            bits = np.zeros(last + 1 - first << self.width, np.bool_)
            for i in range(-(-self.k // 4)):
                four = outputs(seeds, i + 1).astype("<u8", copy=False).view("<u2")
                four &= np.uint16((1 << self.width) - 1)
                for piece in four.reshape(-1, 4).T[: self.k - 4 * i]:
                    bits[bases + piece] = True
            # The first block may have keys of the batch before.
            mine = slice(first * block_bytes, (last + 1) * block_bytes)
            result[mine] |= np.packbits(bits, bitorder="little")
        return result.tobytes()


@functools.lru_cache(maxsize=4096)
def _stream(seed: int, k: int) -> list[int]:
    """The first ``k`` numbers of 16 bits of a generator."""
    words = [out(seed, i) for i in range(1, -(-k // 4) + 1)]
    return [words[j // 4] >> 16 * (j % 4) & 0xFFFF for j in range(k)]


def distinct_hashes(keys: Keys) -> Words:
    """The hashes of some keys, which may repeat, ascending."""
    words = hashes_of(keys)
    words.sort()
    fresh = starts(words)
    return words if fresh.all() else words[fresh]


def _error_rate(n_keys: int, k: int, width: int) -> float:
    """How likely an absent key seems to be in a block of so many keys."""
    return float((1 - (1 - 0.5**width) ** (k * n_keys)) ** k)


@functools.lru_cache(maxsize=64)
def _load(k: int, error_rate: float) -> tuple[int, float]:
    """The width of the blocks, and the mean number of keys in one of them."""
    classic = -k / math.log1p(-(error_rate ** (1 / k)))
    for width in range(_WIDTH, _MOST_WIDTH + 1):
        load = _load_of(width, k, error_rate)
        if 2**width <= _WASTE * classic * load:
            return width, load
    return width, load


def _load_of(width: int, k: int, error_rate: float) -> float:
    """The greatest mean number of keys in a block at an error rate, by bisection."""
    low, high = 0.0, float(1 << width)
    for _ in range(40):
        middle = (low + high) / 2
        if _mean_error_rate(middle, k, width) <= error_rate:
            low = middle
        else:
            high = middle
    return low


def _mean_error_rate(load: float, k: int, width: int) -> float:
    """``_error_rate`` where the keys of a block are of a Poisson distribution."""
    most = math.ceil(load + 12 * math.sqrt(load) + 24)
    n_keys = np.arange(most)
    logs = n_keys * math.log(load) - load
    logs[1:] -= np.cumsum(np.log(n_keys[1:]))
    rates = (1 - (1 - 0.5**width) ** (k * n_keys)) ** k
    return float(np.exp(logs) @ rates)
