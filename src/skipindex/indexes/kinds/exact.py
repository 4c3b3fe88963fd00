"""Exact: the rows of every value, in the smallest of several encodings.

For every file and column the encoding is chosen: runs of codes in bit slices
(``run_length``), or a bitmap for each value (``bitmap``) where these take few bytes
more.

A column that is a function of another one, as a country is of a city and a year of a
day, costs a *mapping*: its own dictionary, and the code that each code of the other
column has.  That is decided for each file, by its values alone.  A mapping may lead
to a column that is mapped itself; the last one has runs.  The payload has all that it
needs, so it depends on no other index: the mappings and the runs have the very bytes
that are parts of the other columns' payloads, which a pack holds once.

Payload, version 3::

    part 0          as the encoding has it; its last byte is the encoding: 0
                    run_length, 2 bitmap, 3 mapping; in version 1 also 1
                    bit_sliced, which is read and not written
    parts 1 ..      as the encoding has them

A mapping::

    part 0          header (``header``), codes (``dictionary``), then
                    u8  m, the number of mappings
                    u32 codes that lead to each mapping, that of NULL among them
                    u32 NULLs, u32 codes of the column with the runs
                    u32 r, u8 w, u8 form, as in run_length, then the encoding
    parts 1 .. c    dictionary chunks
    then            m mappings: of each code the code that it becomes, the last mapping
                    first; bits as the slices of run_length.  NULL is the code n
    then            the beginnings and the slices of the runs
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import ClassVar, Final, Self

import numpy as np

from skipindex.errors import CorruptIndexError
from skipindex.expressions.arrays import Codes, Ints, UnsignedInts, starts
from skipindex.indexes.encoding.bit_matrix import codes_of, planes_of
from skipindex.indexes.encoding.coding import rank_coding
from skipindex.indexes.encoding.column import NULL_CODE, EncodedColumn
from skipindex.indexes.encoding.dictionary import Codebook
from skipindex.indexes.encoding.header import Cursor, Head
from skipindex.indexes.kinds.bit_sliced import BitSlicedIndex
from skipindex.indexes.kinds.bitmap import MANY_VALUES, Bitmap, BitmapIndex
from skipindex.indexes.kinds.run_length import (
    RunLengthIndex,
    Runs,
    bits_of_ranks,
    code_width,
)
from skipindex.indexes.positional import PositionalIndex, PositionalKind
from skipindex.storage.parts import Parts

_KIND: Final = "exact"
_VERSION: Final = 3
_RUN_LENGTH, _BITMAP, _MAPPING = 0, 2, 3
_ENCODINGS: Final = ("run_length", "bit_sliced", "bitmap", "mapping")
"""The names of encodings by their numbers."""
_WORTH: Final = 1.15
"""Bitmaps may take so many times the bytes of the runs, as they need no decoding."""
_KEYS: Final = ("int", "string", "binary")
_WORTH_OF_KEYS: Final = 1.2
"""Bitmaps of many values may take so many times the bytes of the runs in the domains
that keys have: a key is looked up in a few KB, but half of the values take longer."""
_PART_BYTES: Final = 20
"""A part beside its bytes, in the directory and in padding."""
_MAPPING_BITS: Final = 1200
"""A mapping beside its codes: a header, and the places of parts."""
_BLOCKS: Final = 20
_BLOCK_ROWS: Final = 50
_MOST_MAPPINGS: Final = 16
_MOST_BYTES_KEPT: Final = 1 << 12
"""Bytes of a mapping that stays in memory for the next file that has the same one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """A row-level index for every condition, in the smallest encoding for each file.

    If a column is a function of another column with this kind, in the rows of a file,
    it is stored as a mapping of that column's values.

    >>> report = table.build_indexes({"city": sx.Exact()}, workers=1)
    >>> report.table.plan("city = 'Oslo'").count()
    2
    """

    kind: ClassVar[str] = _KIND
    memory_per_row: ClassVar[int] = 80

    def build(self, column: EncodedColumn) -> list[bytes]:
        """The parts of the payload of one column by itself."""
        return self.build_together([column])[0]

    def build_together(self, columns: Sequence[EncodedColumn]) -> list[list[bytes]]:
        """The parts of the payloads of some columns of one file."""
        whole = [_Whole.of(column) for column in columns]
        source = _sources(whole)
        roots = {
            i: Runs.of(columns[i], by_rank=True)
            for i in {*source.values()} - source.keys()
        }
        steps = {
            i: (whole[j].n, planes_of(whole[i].by_code_of(whole[j]), whole[i].width))
            for i, j in source.items()
        }
        result = []
        for i, mine in enumerate(whole):
            *mapped, last = _chain(i, source)
            if mapped:
                parts = _mapped(mine, [steps[k] for k in mapped], roots[last])
            else:
                parts = _smallest(mine, roots.get(i))
            result.append(parts)
        return result


@dataclass(frozen=True, slots=True)
class _Whole:
    """A column with NULL as its greatest code.

    Args:
        column: whose ranks the codes are.
        codes: of the rows.
        n: the number of codes.
        n_runs: of equal neighbours.
        width: of a code, in bits.
        n_bits: that its runs take, without the dictionary.
        n_bits_of_ranks: that ranks take more than values, which need no dictionary.
        sampled: the codes of the sampled rows, renumbered from 0 on.
    """

    column: EncodedColumn
    codes: Codes
    n: int
    n_runs: int
    width: int
    n_bits: int
    n_bits_of_ranks: float
    sampled: Ints

    @classmethod
    def of(cls, column: EncodedColumn) -> _Whole:
        codes, n = column.codes, column.n_distinct
        if column.null_count:
            codes = np.where(codes == NULL_CODE, np.uint32(n), codes)
        has_null = column.null_count > 0
        width = code_width(n, has_null=has_null)
        n_runs = int(np.count_nonzero(starts(codes)))
        _, sampled = np.unique(codes[_sample(len(codes))], return_inverse=True)
        return cls(
            column,
            codes,
            n + has_null,
            n_runs,
            width,
            n_runs * width + min(len(codes), 32 * n_runs),
            max(0.0, bits_of_ranks(column, n_runs)),
            sampled,
        )

    def is_function_of(self, other: _Whole) -> bool:
        """Whether rows with one code of ``other`` have one code here too."""
        some = np.empty(len(other.sampled), np.uint32)
        some[other.sampled] = mine = self.codes[_sample(len(self.codes))]
        if (some[other.sampled] != mine).any():
            return False
        return not (self.by_code_of(other)[other.codes] != self.codes).any()

    def by_code_of(self, other: _Whole) -> Codes:
        """For each code of ``other``, the code of one of its rows."""
        result = np.zeros(other.n, np.uint32)
        result[other.codes] = self.codes
        return result


@lru_cache(maxsize=4)
def _sample(n_rows: int) -> Ints:
    """Rows that are compared first: blocks from all of a file."""
    # Its beginning may be like no other part of it, and neighbours are alike.
    n = min(_BLOCK_ROWS, n_rows)
    firsts = np.linspace(0, n_rows - n, _BLOCKS).astype(np.int64)
    return np.unique(firsts[:, np.newaxis] + np.arange(n))


def _sources(columns: Sequence[_Whole]) -> dict[int, int]:
    """For columns that are worth a mapping, which column they are functions of."""
    # That is the one with the fewest values, so none leads back to the first.
    order = sorted(range(len(columns)), key=lambda i: (columns[i].n, -i))
    result: dict[int, int] = {}
    ranked: set[int] = set()
    for place, i in reversed(list(enumerate(order))):
        mine = columns[i]
        for j in order[place + 1 :]:
            n_bits = columns[j].n * mine.width + _MAPPING_BITS
            if n_bits >= mine.n_bits:
                break  # nor are those with more values
            if j not in ranked and n_bits + columns[j].n_bits_of_ranks >= mine.n_bits:
                continue
            is_short = len(_chain(j, result)) <= _MOST_MAPPINGS
            if is_short and mine.is_function_of(columns[j]):
                result[i] = j
                ranked |= {i, j}
                break
    return result


def _chain(i: int, source: Mapping[int, int]) -> list[int]:
    """A column, and those that it is a function of, one after another."""
    chain = [i]
    while chain[-1] in source:
        chain.append(source[chain[-1]])
    return chain


def _mapped(
    first: _Whole, steps: Sequence[tuple[int, bytes]], runs: Runs
) -> list[bytes]:
    """A column's payload by steps from runs: how many codes, and what they become."""
    coding = rank_coding(first.column)
    header = coding.header(first.column, version=_VERSION) + bytes([len(steps)])
    n_null = int(np.count_nonzero(runs.coding.codes == NULL_CODE))
    numbers = [*(n for n, _ in steps), n_null, runs.coding.n_codes]
    header += np.array(numbers, "<u4").tobytes() + runs.head + bytes([_MAPPING])
    return [header, *coding.chunks, *(bits for _, bits in steps), *runs.parts]


def _smallest(whole: _Whole, runs: Runs | None) -> list[bytes]:
    """The payload of a column by itself; by ``runs`` if other columns need them."""
    column = whole.column
    mine = runs or Runs.of(column)
    header = mine.coding.header(column, version=_VERSION) + mine.head
    result = [header, *mine.coding.chunks, *mine.parts]
    encoding = _RUN_LENGTH
    if runs is None:
        limit = _worth(column) * _size(result)
        # Two bytes a row, or four a run, is the least that a bitmap for each value has.
        n_values = column.n_rows - column.null_count
        if min(2 * n_values, 4 * whole.n_runs) <= limit:
            parts = Bitmap().build(column)
            if _size(parts) <= limit:
                result, encoding = parts, _BITMAP
    first = bytes([_VERSION]) + result[0][1:] + bytes([encoding])
    return [first, *result[1:]]


def _worth(column: EncodedColumn) -> float:
    """How many times the bytes of the runs the bitmaps of a column may take."""
    if column.n_distinct < MANY_VALUES:
        return _WORTH
    is_key = column.domain.name in _KEYS and not column.domain.nanoseconds
    return _WORTH_OF_KEYS if is_key else 1.0


def _size(parts: Sequence[bytes]) -> int:
    return sum(map(len, parts)) + _PART_BYTES * len(parts)


@dataclass(frozen=True, slots=True)
class MappingIndex(RunLengthIndex):
    """A column by the runs of another one, whose codes lead to its own.

    ``sizes`` has how many codes lead to each mapping.
    """

    sizes: Sequence[int]
    encoding: ClassVar[str] = "mapping"

    @classmethod
    def read(cls, head: Head, book: Codebook, parts: Parts, cursor: Cursor) -> Self:
        """The mappings, and the runs that they lead from."""
        (n,) = cursor.bytes(1)
        *sizes, null_count, n_codes = cursor.numbers("I", n + 2)
        root = replace(head, null_count=null_count, n_codes=n_codes)
        runs = RunLengthIndex.read(root, book, parts, cursor)
        if not 0 < n <= _MOST_MAPPINGS or sizes[-1] != n_codes + (null_count > 0):
            raise CorruptIndexError(
                f"a mapping of {n} steps cannot lead from {n_codes} codes and "
                f"{null_count} NULLs over {sizes} codes"
            )
        return cls(head, book, parts, runs.n_runs, runs.width, runs.form, sizes)

    @property
    def first(self) -> int:
        """The mappings are before the runs."""
        return 1 + self.head.n_chunks + len(self.sizes)

    def codes_in(self, raw: memoryview) -> UnsignedInts:
        """The code of every run, which its code in the slices leads to."""
        n_codes = self.head.n_codes + (self.head.null_count > 0)
        tables = []
        steps = self.parts.read(1 + self.head.n_chunks, self.first)
        for step, size in zip(steps, self.sizes, strict=True):
            is_small = len(step) <= _MOST_BYTES_KEPT
            decode = _mapping if is_small else _mapping.__wrapped__
            tables.append(decode(bytes(step), n_codes, size))
            n_codes = size
        return reduce(np.take, [*tables, codes_of(raw, self.width, self.n_runs)])


@lru_cache(maxsize=256)
def _mapping(raw: bytes, n_codes: int, size: int) -> UnsignedInts:
    """The codes, all below ``n_codes``, that ``size`` codes become."""
    codes = codes_of(memoryview(raw), max(1, (n_codes - 1).bit_length()), size)
    if codes.max() >= n_codes:
        raise CorruptIndexError(f"a mapping leads beyond {n_codes} codes")
    return codes


def _encoding(parts: Sequence[bytes]) -> str:
    """The name of a payload's encoding; "unknown" if this version has no such one."""
    number = parts[0][-1] if parts[0] else len(_ENCODINGS)
    return [*_ENCODINGS, "unknown"][min(number, len(_ENCODINGS))]


def _read(head: Head, book: Codebook, parts: Parts, cursor: Cursor) -> PositionalIndex:
    """The index in the encoding that the last byte of the header says."""
    kinds = RunLengthIndex, BitSlicedIndex, BitmapIndex, MappingIndex
    encoding = parts[0][-1]
    if encoding >= len(kinds):
        raise CorruptIndexError(f"an exact payload has encoding {encoding}")
    index = kinds[encoding].read(head, book, parts, cursor)
    cursor.bytes(1)
    return index


INDEX_TYPE: Final = PositionalKind(
    name=_KIND,
    version=_VERSION,
    spec=Exact,
    index=_read,
    probe_cost=12.0,
    encoding=_encoding,
)
