"""Ranks: the place of every value among the sorted distinct values of its column.

All positional kinds are built from ranks, so this is where sorting is paid for,
once.  The method follows the values (measured per core, 60,000 to 10,000,000 rows):

=====================================  ==========================================
integers, already sorted               neighbours compared, 380+ M rows/s
integers, span up to twice the rows    table look-up, 50 to 390 M rows/s
integers, span below 2**32             SIMD sort of ``offset << 32 | row``
integers, wider, few distinct          hashing, then the distinct values sorted
integers, wider                        argsort
bytes, few distinct                    hashing, then the distinct values sorted
bytes                                  sort by 8-byte words after the common
                                       prefix, then 4 bytes at a time where tied
=====================================  ==========================================
"""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.expressions.arrays import Bits, Codes, Ints, Mask, Words, starts

Distinct: TypeAlias = Ints | pa.LargeBinaryArray
"""Sorted distinct values."""

_SMALL_SPAN: Final = 1 << 16
"""Integers in a span that is small enough for a table of all of them."""
_SAMPLE: Final = 4096
"""Values of a sample."""
_TIE_PASSES: Final = 16
"""Passes of 4 bytes before the rest of very long ties is left to Python's sort."""
_BATCH: Final = 1 << 15
"""Byte strings whose words are taken together, which limits the memory."""
_32: Final = np.uint64(32)


def rank_ints(values: Ints) -> tuple[Codes, Ints]:
    """The rank of every value, and the sorted distinct values."""
    if not len(values):
        return np.empty(0, np.uint32), np.empty(0, np.int64)
    if _is_sorted(values):
        fresh = starts(values)
        return _numbered(fresh), values[fresh]
    low = int(values.min())
    span = int(values.max()) - low + 1  # of Python's integers: it cannot overflow
    if span <= max(_SMALL_SPAN, 2 * len(values)):
        return _rank_by_table(values, low, span)
    if span <= 1 << 32:
        return _rank_by_key_sort(values, low)
    if _few_distinct(pa.array(values)):
        return _rank_by_hash(values)
    order = np.argsort(values)
    ordered = values[order]
    fresh = starts(ordered)
    return _scattered(order, fresh), ordered[fresh]


def distinct_ints(values: Ints) -> Ints:
    """The sorted distinct values, cheaper than with their ranks."""
    if not len(values):
        return np.empty(0, np.int64)
    low = int(values.min())
    span = int(values.max()) - low + 1
    if span <= max(_SMALL_SPAN, 2 * len(values)):
        seen = np.zeros(span, np.bool_)
        seen[values - low] = True
        return np.flatnonzero(seen) + low
    ordered = values if _is_sorted(values) else np.sort(values)
    return ordered[starts(ordered)]


def rank_bytes(values: pa.LargeBinaryArray) -> tuple[Codes, pa.LargeBinaryArray]:
    """Rank like ``rank_ints``, in unsigned byte order; ``values`` has no NULL."""
    if not len(values):
        return np.empty(0, np.uint32), values
    if not _few_distinct(values):
        order, fresh = _byte_order(values)
        return _scattered(order, fresh), values.take(pa.array(order[fresh]))
    encoded = values.dictionary_encode()
    order, _ = _byte_order(encoded.dictionary)
    codes = np.empty(len(order), np.uint32)
    codes[order] = np.arange(len(order), dtype=np.uint32)
    indices = encoded.indices.to_numpy()
    return codes[indices], encoded.dictionary.take(pa.array(order))


def taken(distinct: Distinct, places: npt.NDArray[Any]) -> Distinct:
    """The values at some places."""
    if isinstance(distinct, np.ndarray):
        return distinct[places]
    return distinct.take(pa.array(places))


def layout_of(texts: pa.LargeBinaryArray) -> tuple[Ints, Bits]:
    """Where every string begins, and the last one ends, in some bytes; the bytes.

    Of ``pa.BinaryArray`` the places are int32.
    """
    if not len(texts):
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    _, offset_buffer, data_buffer = texts.buffers()
    is_wide = pa.types.is_large_binary(texts.type)
    offsets: Ints = np.frombuffer(offset_buffer, np.int64 if is_wide else np.int32)
    offsets = offsets[texts.offset : texts.offset + len(texts) + 1]
    return offsets, np.frombuffer(data_buffer or b"", np.uint8)


def _is_sorted(values: Ints) -> bool:
    # The first few tell almost always, and cost nothing.
    return all(bool((v[1:] >= v[:-1]).all()) for v in (values[:64], values))


def _numbered(fresh: Mask) -> Codes:
    codes = np.cumsum(fresh, dtype=np.uint32)
    codes -= np.uint32(1)
    return codes


def _scattered(order: Ints, fresh: Mask) -> Codes:
    codes = np.empty(len(order), np.uint32)
    codes[order] = _numbered(fresh)
    return codes


def _rank_by_table(values: Ints, low: int, span: int) -> tuple[Codes, Ints]:
    offsets = (values - low).astype(np.uint32)
    seen = np.zeros(span, np.bool_)
    seen[offsets] = True
    codes = np.cumsum(seen, dtype=np.uint32)
    codes -= np.uint32(1)  # wraps where nothing was seen yet; never looked up
    return codes[offsets], np.flatnonzero(seen) + low


def _rank_by_key_sort(values: Ints, low: int) -> tuple[Codes, Ints]:
    keys = (values - low).view(np.uint64)
    keys <<= _32
    keys |= np.arange(len(values), dtype=np.uint64)
    keys.sort()
    offsets = keys >> _32
    fresh = starts(offsets)
    codes = np.empty(len(values), np.uint32)
    codes[keys.astype(np.uint32)] = _numbered(fresh)
    return codes, offsets[fresh].view(np.int64) + low


def _rank_by_hash(values: Ints) -> tuple[Codes, Ints]:
    encoded = pa.array(values).dictionary_encode()
    distinct = encoded.dictionary.to_numpy()
    order = np.argsort(distinct)
    codes = np.empty(len(order), np.uint32)
    codes[order] = np.arange(len(order), dtype=np.uint32)
    return codes[encoded.indices.to_numpy()], distinct[order]


def _few_distinct(values: pa.Array) -> bool:
    """Whether a sample repeats itself enough for hashing to beat sorting."""
    step = max(1, len(values) // _SAMPLE)
    sample = values.take(pa.array(np.arange(0, len(values), step)))
    n_distinct: int = pc.count_distinct(sample).as_py()
    return n_distinct * 4 < len(sample)


def _byte_order(values: pa.LargeBinaryArray) -> tuple[Ints, Mask]:
    """The sorting permutation of byte strings, and where a new value begins in it."""
    offsets, data = layout_of(values)
    begins, lengths, data = offsets[:-1], np.diff(offsets), data[: int(offsets[-1])]
    if len(data) < 8:  # the bytes of a word
        data = np.append(data, np.zeros(8, np.uint8))
    skip, words = _first_words(begins, lengths, data)
    order = np.argsort(words)
    fresh = starts(words[order])
    tied = _tied(fresh)
    at = skip + 8
    for _ in range(_TIE_PASSES):
        rows = order[tied]
        if not tied.size or int(lengths[rows].max()) <= at:
            break
        words = _words(data, begins[rows], lengths[rows], at)
        words >>= _32
        tied = _refine(order, fresh, tied, words)
        at += 4
    else:
        _sort_tails(values, order, fresh, tied)
        return order, fresh
    # Zeros fill up the last word, which keeps the order of strings but for NUL bytes at
    # their ends: what is equal in all of its words is told apart by its length.
    if tied.size:
        _refine(order, fresh, tied, lengths[order[tied]].view(np.uint64))
    return order, fresh


def _first_words(begins: Ints, lengths: Ints, data: Bits) -> tuple[int, Words]:
    """The length of a prefix that all strings share, and the words after it."""
    skip, longest = 0, int(lengths.max())
    while True:
        words = _words(data, begins, lengths, skip)
        differing = int(np.bitwise_or.reduce(words) ^ np.bitwise_and.reduce(words))
        if differing or skip >= longest:
            break
        skip += 8
    shared = (64 - differing.bit_length()) // 8
    if 0 < shared < 8:
        skip += shared
        words = _words(data, begins, lengths, skip)
    return skip, words


def _words(data: Bits, begins: Ints, lengths: Ints, skip: int) -> Words:
    """The 8 bytes of every string after ``skip`` bytes, as a big-endian number."""
    result = np.empty(len(begins), np.uint64)
    for at in range(0, len(begins), _BATCH):
        some = slice(at, at + _BATCH)
        result[some] = words_at(data, begins[some] + skip, lengths[some] - skip)
    return result


def words_at(data: Bits, at: Ints, left: Ints) -> Words:
    """The 8 bytes at ``at`` as a big-endian number; only ``left`` of them count."""
    last = len(data) - 8
    # Gathered as they are and swapped afterwards: several times faster than together.
    windows = np.ndarray((last + 1,), np.uint64, data, 0, (1,))
    words = windows[np.minimum(at, last)]
    if sys.byteorder == "little":
        words.byteswap(inplace=True)
    beyond = np.flatnonzero(at > last)
    words[beyond] <<= (8 * np.minimum(at[beyond] - last, 7)).view(np.uint64)
    short = np.flatnonzero(left < 8)
    shift = (8 * (8 - np.maximum(left[short], 1))).view(np.uint64)
    words[short] = words[short] >> shift << shift
    words[left <= 0] = 0
    return words


def _tied(fresh: Mask) -> Ints:
    """Places whose value is that of a neighbour."""
    alone = fresh.copy()
    alone[:-1] &= fresh[1:]
    return np.flatnonzero(~alone)


def _refine(order: Ints, fresh: Mask, tied: Ints, words: Words) -> Ints:
    """Sort within the ties by 32-bit words; what is tied still."""
    keys = np.cumsum(fresh[tied]).view(np.uint64)
    keys <<= _32
    keys |= words
    places = np.argsort(keys)
    order[tied] = order[tied][places]
    fresh[tied] = starts(keys[places])
    return tied[_tied(fresh[tied])]


def _sort_tails(
    values: pa.LargeBinaryArray, order: Ints, fresh: Mask, tied: Ints
) -> None:
    rows = order[tied]
    texts = values.take(pa.array(rows)).to_pylist()
    groups = np.cumsum(fresh[tied]).tolist()
    keys = list(zip(groups, texts, strict=True))
    places = sorted(range(len(keys)), key=keys.__getitem__)
    order[tied] = rows[places]
    fresh[tied[1:]] = [keys[a] != keys[b] for a, b in pairwise(places)]
