"""Transposed Bloom filters of a pack: one row per filter bit, one column per file.

A key has ``k`` bits in every filter of one size.  With transposed filters a probe reads
``k`` rows of one bit a file instead of a whole filter a file, so a point query reads
some kilobytes of a pack of any size.

Filters of the same size and hashing are transposed, in eights, so that no bit is
wasted; an incomplete eight is taken too where it costs little.  The other filters stay
payloads of their own.

The parts, version 1, which are of all data files of the blob together::

    part 0    u8   version
              u8   t, length of the domain's tag
              u16  b, the number of blocks
              u32  f, the number of files
              t    the domain's tag
              ..   for every block
                   u32  n, its filters
                   u32  k, bits of a key
                   u64  m, blocks, or bits of a slice of pybloom-live
                   u32  crc32c of the bits of the witness key
                   u32  r, rows in a part
                   f64  error rate
                   u64  capacity
                   u16  s, length of the scheme
                   u16  o, length of the kind's own bytes
                   s    the scheme
                   o    the kind's own bytes
                   n    times u32, the slots, ascending
    part 1    for every block n times u64, the keys, then n times u64, the rows of the
              file or zero: what only taking filters apart again needs
    then      a row for every bit of a filter of every block, r to a part, each of one
              bit a filter, the lowest of a byte first
"""

from __future__ import annotations

import functools
import operator
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from skipindex.errors import CorruptIndexError
from skipindex.expressions.arrays import Ints, Mask
from skipindex.expressions.atoms import Atom
from skipindex.expressions.domain import Domain
from skipindex.indexes.encoding.bit_matrix import pack_rows, unpack_columns
from skipindex.indexes.encoding.header import Cursor, ascend, check_tag, check_version
from skipindex.indexes.filters.payload import (
    FILE_HEAD,
    FilterHead,
    KeyAlternatives,
    RequiredKeys,
    check_scheme,
    saturates,
    split_bits,
)
from skipindex.indexes.positional import DAMAGE, intervals_of, raise_damage
from skipindex.storage.parts import Parts

_VERSION: Final = 1
_HEAD: Final = struct.Struct("<BBHI")
_BLOCK: Final = struct.Struct("<IIQIIdQHH")
_PART_BYTES: Final = 1 << 13
_TAIL: Final = 8
"""Bytes at the end of a header."""
_WASTE: Final = 8
"""An incomplete eight is taken where at most one bit in this number is padding."""


@dataclass(frozen=True, slots=True)
class Block:
    """Filters of one size.

    ``size`` is what their headers have in common, without a number of keys.  They have
    room for ``capacity`` keys; ``rows_per_part`` is a multiple of 8.
    """

    size: FilterHead
    error_rate: float
    capacity: int
    slots: Ints
    rows_per_part: int

    @property
    def width(self) -> int:
        """The bytes of a row."""
        return _width(len(self.slots))

    @property
    def n_rows(self) -> int:
        """One for every bit of a filter."""
        return self.size.shape.n_bits

    @property
    def n_parts(self) -> int:
        """How many parts its rows take."""
        return -(-self.n_rows // self.rows_per_part)

    def to_bytes(self) -> bytes:
        """Its place in part 0."""
        fixed = _BLOCK.pack(
            len(self.slots),
            self.size.k,
            self.size.m,
            self.size.witness,
            self.rows_per_part,
            self.error_rate,
            self.capacity,
            len(self.size.scheme),
            len(self.size.own),
        )
        own = self.size.scheme + self.size.own
        return fixed + own + self.slots.astype("<u4").tobytes()


def _width(n_filters: int) -> int:
    return (n_filters + 7) // 8


def pack_together(
    payloads: Sequence[Sequence[bytes]],
    domain: Domain,
    kind: str,
    *,
    n_own: int,
    n_tail: int,
) -> tuple[list[bytes], set[int]]:
    """The parts of all filters that can be transposed, and their slots.

    ``payloads`` has those of every slot, empty where there is none.  ``n_own`` is the
    kind's own bytes of a header that all files have in common, and ``n_tail`` those
    after them, 8 or none: the rows of the file.
    """
    filters: dict[int, tuple[FilterHead, memoryview]] = {}
    sizes: dict[tuple[FilterHead, float, int], list[int]] = {}
    for slot, parts in enumerate(payloads):
        if len(parts) != 2:
            continue
        try:
            head = FilterHead.read(parts[0], domain, kind, n_own=n_own + n_tail)
            check_scheme(head, kind)
            (error_rate, capacity), bits = split_bits(parts[1], head)
        except CorruptIndexError:
            continue  # such as one of another library: it stays by itself
        filters[slot] = head, bits
        size = replace(head, n_keys=0, own=head.own[:n_own])
        sizes.setdefault((size, error_rate, capacity), []).append(slot)
    blocks: list[Block] = []
    tails: list[bytes] = []
    rows: list[bytes] = []
    for (size, error_rate, capacity), slots in sizes.items():
        if -len(slots) % 8 * _WASTE > len(slots):
            del slots[len(slots) // 8 * 8 :]
        if not slots:
            continue
        per_part = max(8, _PART_BYTES // _width(len(slots)) // 8 * 8)
        block = Block(size, error_rate, capacity, np.array(slots, np.int64), per_part)
        heads = [filters[slot][0] for slot in slots]
        blocks.append(block)
        tails.append(np.array([head.n_keys for head in heads], "<u8").tobytes())
        tails += [head.own[n_own:].ljust(_TAIL, b"\0") for head in heads]
        rows += pack_rows(
            [filters[slot][1] for slot in slots],
            n_bits=block.n_rows,
            rows_per_part=per_part,
        )
    if not blocks:
        return [], set()
    tag = domain.tag.encode()
    fixed = _HEAD.pack(_VERSION, len(tag), len(blocks), len(payloads))
    header = fixed + tag + b"".join(block.to_bytes() for block in blocks)
    together = {int(slot) for block in blocks for slot in block.slots}
    return [header, b"".join(tails), *rows], together


def unpack(
    shared: Parts, domain: Domain, kind: str, n_files: int, *, n_tail: int
) -> dict[int, list[bytes]]:
    """The payloads that ``pack_together`` put together, by slot, as they were.

    Raises:
        CorruptIndexError: a part is damaged.
    """
    result: dict[int, list[bytes]] = {}
    tails, first = Cursor(shared[1]), 2
    for block in _read_blocks(shared, domain, kind, n_files):
        size, n = block.size, len(block.slots)
        counts = tails.numbers("Q", n)
        own = [size.own + bytes(tails.bytes(_TAIL))[:n_tail] for _ in range(n)]
        raw = b"".join(shared.read(first, first + block.n_parts))
        first += block.n_parts
        if len(raw) != block.n_rows * block.width:
            raise CorruptIndexError(
                f"the rows of transposed {kind} filters are cut off"
            )
        columns = unpack_columns(raw, n_bits=block.n_rows, n_columns=n)
        for slot, n_keys, ends, bits in zip(
            block.slots.tolist(), counts, own, columns, strict=True
        ):
            head = replace(size, n_keys=n_keys, own=ends)
            file_head = FILE_HEAD.pack(
                block.error_rate, size.k, size.m, block.capacity, n_keys
            )
            result[slot] = [head.to_bytes(domain), file_head + bits]
    return result


def _read_blocks(
    shared: Parts, domain: Domain, kind: str, n_files: int
) -> Iterator[Block]:
    raw = shared[0]
    check_version(raw, _VERSION, f"transposed {kind}")
    cursor = Cursor(raw)
    _, n_tag, n_blocks, result = cursor.unpack(_HEAD)
    check_tag(cursor.bytes(n_tag), domain, kind)
    if result != n_files:
        raise CorruptIndexError(
            f"transposed filters of {result} files are not of {n_files}"
        )
    n_parts = 2
    for _ in range(n_blocks):
        n, k, m, witness, per_part, error_rate, capacity, n_scheme, n_own = (
            cursor.unpack(_BLOCK)
        )
        scheme, own = bytes(cursor.bytes(n_scheme)), bytes(cursor.bytes(n_own))
        slots = np.frombuffer(cursor.bytes(4 * n), "<u4").astype(np.int64)
        size = FilterHead(0, k, m, scheme, witness, own)
        _ = size.shape  # which refuses what no filter has
        if not n or not ascend(slots.tolist()) or slots[-1] >= n_files:
            raise CorruptIndexError(
                f"the slots of transposed {kind} filters do not ascend"
            )
        if not per_part or per_part % 8:
            raise CorruptIndexError(
                f"transposed {kind} filters have {per_part} rows a part"
            )
        block = Block(size, error_rate, capacity, slots, per_part)
        n_parts += block.n_parts
        yield block
    cursor.end()
    if n_parts != len(shared):
        raise CorruptIndexError(
            f"transposed {kind} filters have {len(shared)} parts, and their header "
            f"says {n_parts}"
        )


@dataclass(frozen=True, slots=True)
class TransposedFilters:
    """The transposed filters of a pack.

    ``covered`` are the slots of which they speak.  ``blocks`` has the filters of each
    size, the first of their parts, and what an atom requires of them.
    """

    covered: Mask
    blocks: Sequence[tuple[Block, int, RequiredKeys]]
    parts: Parts

    @classmethod
    def open(
        cls,
        shared: Parts,
        domain: Domain,
        kind: str,
        n_files: int,
        wanted: Callable[[bytes], RequiredKeys],
    ) -> TransposedFilters:
        """Read part 0.

        Raises:
            CorruptIndexError: it is damaged, or another library hashed the keys.
            IndexVersionError: a newer library wrote it.
        """
        covered = np.zeros(n_files, np.bool_)
        blocks, first = [], 2
        for block in _read_blocks(shared, domain, kind, n_files):
            check_scheme(block.size, kind)
            covered[block.slots] = True
            blocks.append((block, first, wanted(block.size.own)))
            first += block.n_parts
        return cls(covered, blocks, shared)

    def ask(self, atom: Atom) -> tuple[Mask, Mask] | None:
        """The slots where no row is ruled out, and, of none, those where one is TRUE.

        None is "unknown".  Slots that are not ``covered`` are in neither.

        Raises:
            CorruptIndexError: a part is damaged.
        """
        possible, opinion = self.covered.copy(), False
        try:
            for block, first, wanted in self.blocks:
                if saturates(atom, block.size.k):
                    continue
                alternatives = wanted(atom)
                if alternatives is not None:
                    opinion = True
                    possible[block.slots] = self._among(block, first, alternatives)
        except DAMAGE as error:
            raise_damage("the transposed filters", error, atom.column)
        return (possible, np.zeros_like(possible)) if opinion else None

    def _among(self, block: Block, first: int, alternatives: KeyAlternatives) -> Mask:
        """The filters of a block that may have all keys of an alternative."""
        shape = block.size.shape
        keys = {key for alternative in alternatives for key in alternative}
        places = {key: shape.places(key) for key in keys}
        rows = self._rows(
            block, first, sorted({p for own in places.values() for p in own})
        )
        have = {
            key: functools.reduce(operator.and_, [rows[place] for place in own])
            for key, own in places.items()
        }
        result = 0
        for alternative in alternatives:
            result |= functools.reduce(
                operator.and_, [have[key] for key in alternative]
            )
        raw = np.frombuffer(result.to_bytes(block.width, "little"), np.uint8)
        bits = np.unpackbits(raw, count=len(block.slots), bitorder="little")
        return bits.view(np.bool_)

    def _rows(self, block: Block, first: int, places: Sequence[int]) -> dict[int, int]:
        """The rows at ascending places, as numbers: bit ``i`` is of filter ``i``."""
        width, per_part = block.width, block.rows_per_part
        by_part: dict[int, list[int]] = {}
        for place in places:
            by_part.setdefault(place // per_part, []).append(place)
        result: dict[int, int] = {}
        # Each part is read once, and neighbours in one read.
        for start, stop in intervals_of(list(by_part)):
            parts = self.parts.read(first + start, first + stop)
            for number, raw in enumerate(parts, start):
                n_rows = min(per_part, block.n_rows - number * per_part)
                if len(raw) != n_rows * width:
                    raise CorruptIndexError("a part of transposed filters is cut off")
                for place in by_part[number]:
                    at = (place - number * per_part) * width
                    result[place] = int.from_bytes(raw[at : at + width], "little")
        return result
