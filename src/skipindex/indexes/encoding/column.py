"""A column of one file in its domain: the input of every index kind."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.errors import UnsupportedTypeError
from skipindex.expressions.arrays import Codes, Ints, Mask
from skipindex.expressions.atoms import Value
from skipindex.expressions.domain import NAN, Domain
from skipindex.indexes.encoding.ranks import (
    Distinct,
    distinct_ints,
    rank_bytes,
    rank_ints,
    taken,
)

NULL_CODE: Final = 0xFFFF_FFFF
"""The code of a row that is NULL: greater than every rank, and no rank itself."""

MAX_ROWS: Final = 0xFFFF_FFFF
"""Row positions have 32 bits, and one code is NULL's."""


class EncodedColumn:
    """The values of a column as its domain orders them.

    Ranks, distinct values and counts, which several kinds need, are computed once, on
    first use.

    If ``values`` is a dictionary array, it is ranked through its dictionary, without
    looking at the rows' values.
    """

    def __init__(
        self, name: str, values: pa.Array | pa.ChunkedArray, domain: Domain
    ) -> None:
        self.name = name
        self.domain = domain
        self.n_rows: int = len(values)
        self._encoded: pa.Array | None = None
        if pa.types.is_dictionary(values.type):
            indices, entries = _dictionary(values, domain)
            if not entries.null_count:
                self.null_count: int = indices.null_count
                self.validity = _validity(indices)
                self._ranked = _rank_entries(indices.drop_null(), entries)
                return
        self._encoded = _encode(values, domain)
        self.null_count = self._encoded.null_count
        self.validity = _validity(self._encoded)

    @cached_property
    def values(self) -> Distinct:
        """The values that are not NULL, in row order."""
        if self._encoded is None:
            codes, distinct = self._ranked
            return taken(distinct, codes)
        present = self._encoded.drop_null() if self.null_count else self._encoded
        if self.domain.is_bytes:
            return present
        ints: Ints = present.to_numpy()
        return ints

    @property
    def some_distinct(self) -> Distinct:
        """Every distinct value at least once, without a sort."""
        return self._ranked[1] if "_ranked" in self.__dict__ else self.values

    @cached_property
    def nan_count(self) -> int:
        """How many values are NaN, which only a float column holds."""
        if self.domain.name != "float":
            return 0
        return int(np.count_nonzero(self.values == NAN))

    @property
    def minimum(self) -> Value | None:
        """The least value, or None where all rows are NULL."""
        return self._extremes[0]

    @property
    def maximum(self) -> Value | None:
        """The greatest value, NaN before all others, or None where all are NULL."""
        return self._extremes[1]

    @cached_property
    def _extremes(self) -> tuple[Value | None, Value | None]:
        if self.null_count == self.n_rows:
            return None, None
        if "_ranked" in self.__dict__:
            distinct = self._ranked[1]
            low, high = distinct[0], distinct[-1]
            if self.domain.is_bytes:
                return low.as_py(), high.as_py()
            return int(low), int(high)
        if isinstance(self.values, np.ndarray):
            return int(self.values.min()), int(self.values.max())
        ends = pc.min_max(self.values)
        return ends["min"].as_py(), ends["max"].as_py()

    @cached_property
    def _ranked(self) -> tuple[Codes, Distinct]:
        """Ranks of the values that are not NULL, and the sorted distinct values."""
        if isinstance(self.values, np.ndarray):
            return rank_ints(self.values)
        ranked = rank_bytes(self.values)
        # From now on the values follow from their ranks, which take less memory.
        self._encoded = None
        del self.values
        return ranked

    @property
    def ranks(self) -> tuple[Codes, Distinct]:
        """Ranks of the values that are not NULL, and the sorted distinct values."""
        return self._ranked

    @cached_property
    def codes(self) -> Codes:
        """The rank of every row's value; ``NULL_CODE`` where it is NULL.

        Raises:
            UnsupportedTypeError: the file has more rows than 32 bits can number.
        """
        return self.spread(self._ranked[0])

    def spread(self, codes: Codes) -> Codes:
        """Codes of the values that are not NULL, laid out over all rows.

        Raises:
            UnsupportedTypeError: the file has more rows than 32 bits can number.
        """
        if self.n_rows > MAX_ROWS:
            raise UnsupportedTypeError(
                f"cannot index the rows of column {self.name!r}: the file has "
                f"{self.n_rows} (accepted: up to {MAX_ROWS}; bloom and minmax take any)"
            )
        if self.validity is None:
            return codes
        spread = np.full(self.n_rows, NULL_CODE, np.uint32)
        spread[self.validity] = codes
        return spread

    @cached_property
    def distinct(self) -> Distinct:
        """The distinct values, sorted; position = rank."""
        if "_ranked" not in self.__dict__ and isinstance(self.values, np.ndarray):
            return distinct_ints(self.values)
        return self._ranked[1]

    @property
    def n_distinct(self) -> int:
        """The number of distinct values, NULL not among them, NaN one of them."""
        return len(self.distinct)

    @cached_property
    def counts(self) -> Ints:
        """How many rows hold each distinct value."""
        codes, distinct = self._ranked
        return np.bincount(codes, minlength=len(distinct))


def _encode(values: pa.Array | pa.ChunkedArray, domain: Domain) -> pa.Array:
    # Chunk by chunk: strings of more than 2 GB fit only once they are encoded.
    if isinstance(values, pa.Array):
        return domain.encode(values)
    if values.num_chunks == 1:
        return domain.encode(values.chunk(0))
    empty = domain.encode(pa.array([], values.type))
    return pa.concat_arrays([empty, *map(domain.encode, values.chunks)])


def _dictionary(
    values: pa.Array | pa.ChunkedArray, domain: Domain
) -> tuple[pa.Array, pa.Array]:
    """Indices and encoded entries of a dictionary array."""
    if isinstance(values, pa.ChunkedArray):
        values = values.unify_dictionaries().combine_chunks()
        if isinstance(values, pa.ChunkedArray):  # of no chunk at all
            values = pa.array([], values.type)
    return values.indices, domain.encode(values.dictionary)


def _rank_entries(indices: pa.Array, entries: pa.Array) -> tuple[Codes, Distinct]:
    """Ranks through a dictionary, whose entries may repeat or go unused."""
    ranks: Codes
    distinct: Any
    if pa.types.is_integer(entries.type):
        ranks, distinct = rank_ints(entries.to_numpy())
    else:
        ranks, distinct = rank_bytes(entries)
    codes = ranks[indices.to_numpy()]
    used = np.zeros(len(distinct), np.bool_)
    used[codes] = True
    if used.all():
        return codes, distinct
    renumbered = np.cumsum(used, dtype=np.uint32)
    renumbered -= np.uint32(1)
    return renumbered[codes], taken(distinct, np.flatnonzero(used))


def _validity(values: pa.Array) -> Mask | None:
    """Which rows have a value, or None where all have one."""
    if not values.null_count:
        return None
    valid: Mask = values.is_valid().to_numpy(zero_copy_only=False)
    return valid
