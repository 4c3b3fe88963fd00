"""The distinct integers of a file as roaring bitmaps, to test many keys together.

For the keys of a join: a million wanted keys are answered by one intersection, exactly,
and so is a range.  Costs 2 bytes a distinct key where keys are scattered over less than
65,536 times their number, next to nothing where they are dense; beyond that 8 bytes.

Payload, version 1::

    part 0   u8 version | u8 t, length of the domain's tag | u16 zero | u32 b, buckets
             u64 rows of the file | u64 n, the number of keys
             t   the domain's tag
             b   times i32 key >> 32, ascending, then b times u64 end in part 1
    part 1   for every bucket the low 32 bits of its keys as portable roaring; or, where
             b is zero, the n keys as ascending i64
"""

from __future__ import annotations

import array
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final
from weakref import WeakKeyDictionary

import numpy as np
from pyroaring import AbstractBitMap, BitMap

from skipindex.errors import CorruptIndexError, UnsupportedTypeError
from skipindex.expressions.arrays import Ints, starts
from skipindex.expressions.atoms import (
    Atom,
    IntegerSet,
    NoneOf,
    NotNullAtom,
    OneOf,
    Range,
    Values,
    values_between,
)
from skipindex.expressions.bounds import Bounds
from skipindex.expressions.domain import Domain
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.indexes.encoding.header import Cursor, ascend, check_tag, check_version
from skipindex.indexes.encoding.postings import pack_postings
from skipindex.indexes.encoding.roaring import load
from skipindex.indexes.interface import IndexSpec
from skipindex.storage.parts import Parts

_KIND: Final = "key_set"
_BEYOND_INT64: Final = 1 << 63
_VERSION: Final = 1
_HEAD: Final = struct.Struct("<BBHIQQ")
_KEYS_PER_BUCKET: Final = 8
"""Keys per bucket on average; the header of a bucket would outweigh fewer."""
_LOW_32_BITS: Final = 0xFFFF_FFFF
_MAX_SINGLE_LOOKUPS: Final = 64
"""Up to this number, values are looked up one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySet:
    """The set of the distinct values of an integer column.

    It is for ``IN`` lists of many keys, as in joins, and has no row positions.

    >>> report = table.build_indexes({"price": sx.KeySet()}, workers=1)
    >>> report.table.plan("price IN (4, 9)").paths
    ['part-1.parquet']
    """

    kind: ClassVar[str] = _KIND
    memory_per_row: ClassVar[int] = 224

    def build(self, column: EncodedColumn) -> list[bytes]:
        """The parts of the payload.

        Raises:
            UnsupportedTypeError: the column's values are no integers.
        """
        _check(column.domain)
        keys = column.distinct
        assert isinstance(keys, np.ndarray)
        tag = column.domain.tag.encode()
        high = keys >> 32
        first = np.flatnonzero(starts(high))
        if len(first) * _KEYS_PER_BUCKET > len(keys) and len(first) > 1:
            buckets, body = b"", keys.astype("<i8").tobytes()
            first = first[:0]
        else:
            ends, body = _pack(keys, first)
            buckets = high[first].astype("<i4").tobytes() + ends.astype("<u8").tobytes()
        head = _HEAD.pack(_VERSION, len(tag), 0, len(first), column.n_rows, len(keys))
        return [head + tag + buckets, body]


def _pack(keys: Ints, first: Ints) -> tuple[Ints, bytes]:
    """The bitmaps of all buckets, and where each ends."""
    number = np.repeat(np.arange(len(first)), np.diff(first, append=len(keys)))
    coded = number.astype(np.uint64) << np.uint64(32) | (keys & _LOW_32_BITS).astype(
        np.uint64
    )
    packed = pack_postings(coded, len(first))
    raw = [
        packed.blob[at : at + n].tobytes()
        for at, n in zip(packed.offsets.tolist(), packed.lengths.tolist(), strict=True)
    ]
    return np.cumsum(packed.lengths), b"".join(raw)


_BUCKETS: Final[WeakKeyDictionary[IntegerSet, dict[int, BitMap]]] = WeakKeyDictionary()
"""Buckets of sets that many files are asked about; they go with the predicates."""


def _wanted(keys: IntegerSet) -> dict[int, BitMap]:
    """The buckets of a set, made once."""
    buckets = _BUCKETS.get(keys)
    if buckets is None:
        buckets = _BUCKETS[keys] = _buckets_of(keys)
    return buckets


def _buckets_of(keys: IntegerSet) -> dict[int, BitMap]:
    buckets = {}
    high = keys.array >> 32
    first = np.flatnonzero(starts(high))
    for at, stop in zip(first.tolist(), [*first[1:].tolist(), len(keys)], strict=True):
        # pyroaring takes an array.array whole, but numpy's one integer at a time.
        low = array.array("I")
        low.frombytes((keys.array[at:stop] & _LOW_32_BITS).astype(np.uint32).tobytes())
        buckets[int(high[at])] = BitMap(low)
    return buckets


@dataclass(frozen=True, slots=True)
class KeySetIndex:
    """The distinct values of one column of one file."""

    parts: Parts
    n_keys: int
    highs: tuple[int, ...]
    ends: tuple[int, ...]

    def probe(self, atom: Atom) -> Bounds[AbstractBitMap] | None:
        """No row, if no key makes ``atom`` TRUE; else None."""
        match atom:
            case OneOf(values=values):
                possible = self._count(values, any_is_enough=True) > 0
            case NoneOf(values=values):
                possible = self._count(values) < self.n_keys
            case Range(low=low, high=high):
                assert not isinstance(low, bytes)
                assert not isinstance(high, bytes)
                possible = self._reaches(low, high)
            case NotNullAtom():
                possible = self.n_keys > 0
            case _:
                return None
        return None if possible else Bounds(BitMap(), BitMap())

    def _count(self, values: Values, *, any_is_enough: bool = False) -> int:
        """How many of ``values`` are keys; at least one, if any is enough."""
        if not self.highs:
            keys = self._plain()
            wanted = np.asarray(
                values_between(values, -_BEYOND_INT64, _BEYOND_INT64), np.int64
            )
            at = np.minimum(keys.searchsorted(wanted), max(0, len(keys) - 1))
            return int(np.count_nonzero(keys[at] == wanted)) if len(keys) else 0
        result = 0
        if isinstance(values, IntegerSet) and len(values) > _MAX_SINGLE_LOOKUPS:
            asked = _wanted(values)
            for high, bitmap in self._bitmaps(set(asked)):
                if any_is_enough and bitmap.intersect(asked[high]):
                    return 1
                if not any_is_enough:
                    result += bitmap.intersection_cardinality(asked[high])
            return result
        split: dict[int, list[int]] = {}
        for value in values:
            assert isinstance(value, int)
            split.setdefault(value >> 32, []).append(value & _LOW_32_BITS)
        for high, bitmap in self._bitmaps(set(split)):
            result += sum(low in bitmap for low in split[high])
        return result

    def _reaches(self, low: int | None, high: int | None) -> bool:
        """Whether some key lies in ``low <= key < high``."""
        if not self.highs:
            keys = IntegerSet(self._plain())
            return len(values_between(keys, low, high)) > 0
        first = -_BEYOND_INT64 if low is None else low
        stop = _BEYOND_INT64 if high is None else high
        if first >= stop:
            return False
        touched = {h for h in self.highs if first >> 32 <= h <= stop - 1 >> 32}
        for bucket, bitmap in self._bitmaps(touched):
            base = bucket << 32
            begin, end = max(first - base, 0), min(stop - base, 1 << 32)
            if bitmap.range_cardinality(begin, end):
                return True
        return False

    def _plain(self) -> Ints:
        raw = self.parts[1]
        if len(raw) != 8 * self.n_keys:
            raise CorruptIndexError(
                f"a key_set of {self.n_keys} keys has {len(raw)} bytes of them"
            )
        return np.frombuffer(raw, "<i8").astype(np.int64)

    def _bitmaps(self, wanted: set[int]) -> Iterator[tuple[int, BitMap]]:
        """The requested buckets that exist."""
        if wanted.isdisjoint(self.highs):
            return
        raw = self.parts[1]
        if len(raw) != self.ends[-1]:
            raise CorruptIndexError(
                f"the buckets of a key_set end after {self.ends[-1]} bytes, and there "
                f"are {len(raw)}"
            )
        for i, high in enumerate(self.highs):
            if high in wanted:
                self.parts.count.bitmaps += 1
                yield high, load(raw[self.ends[i - 1] if i else 0 : self.ends[i]])


def _check(domain: Domain) -> None:
    if domain.is_bytes:
        raise UnsupportedTypeError(
            f"a key_set index cannot be on a column of {domain.name} (accepted: "
            "integers, booleans, dates, timestamps, floats, decimals up to 18 digits)"
        )


@dataclass(frozen=True, slots=True)
class KeySetType:
    """The kind ``key_set``."""

    name: str = _KIND
    version: int = _VERSION
    positional: bool = False
    spec: type[IndexSpec] = KeySet

    def check(self, domain: Domain) -> None:
        """Accept the domains of integers."""
        _check(domain)

    def open(self, parts: Parts, domain: Domain, n_rows: int) -> KeySetIndex:
        """Read the header; the keys only when asked."""
        if len(parts) != 2:
            raise CorruptIndexError(
                f"a key_set payload has {len(parts)} parts (accepted: 2)"
            )
        cursor = Cursor(parts[0])
        check_version(parts[0], _VERSION, _KIND)
        _, n_tag, _, n_buckets, rows, n_keys = cursor.unpack(_HEAD)
        check_tag(cursor.bytes(n_tag), domain, _KIND)
        highs = struct.unpack(f"<{n_buckets}i", cursor.bytes(4 * n_buckets))
        ends = cursor.numbers("Q", n_buckets)
        cursor.end()
        if rows != n_rows or n_keys > rows or not (ascend(highs) and ascend(ends)):
            raise CorruptIndexError(
                f"a key_set of {n_keys} keys in {n_buckets} buckets cannot be of a "
                f"file of {n_rows} rows"
            )
        return KeySetIndex(parts, n_keys, highs, ends)


INDEX_TYPE: Final = KeySetType()
