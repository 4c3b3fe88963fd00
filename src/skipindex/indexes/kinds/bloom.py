"""Bloom filters of pybloom-live: "none of these values is in the file", or no opinion.

For ``=`` and IN on columns of many distinct values; about 10 bits a distinct value at
an error rate of 0.01.  Nothing else is answered: not ranges, and never a negation.

``filters.payload`` has the layout; a key is the text of a value (``bloom_key``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from skipindex.expressions.atoms import Atom, OneOf
from skipindex.expressions.domain import Domain
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.indexes.filters.filter_type import FilterSpec, FilterType
from skipindex.indexes.filters.payload import (
    KeyAlternatives,
    RequiredKeys,
    bloom_key,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bloom(FilterSpec):
    """A Bloom filter of the distinct values, for ``=`` and IN.

    Source: Bloom, Space/Time Trade-offs in Hash Coding with Allowable Errors, CACM
    1970; the bits are those of pybloom-live.

    Args:
        error_rate: the share of absent values that are taken for present ones.

    >>> report = table.build_indexes({"price": sx.Bloom(error_rate=0.001)}, workers=1)
    >>> report.n_bytes > 0
    True
    """

    error_rate: float = 0.01
    kind: ClassVar[str] = "bloom"

    @classmethod
    def check(cls, domain: Domain) -> None:
        """Accept every domain: each value has a text of its own."""

    @classmethod
    def wanted_by(cls, own: bytes) -> RequiredKeys:  # noqa: ARG003 (there are none)
        """One key for every value that is asked for."""
        return _wanted

    def keys(self, column: EncodedColumn) -> list[bytes]:
        """The ``bloom_key`` of every distinct value, as UTF-8."""
        distinct = column.distinct
        if isinstance(distinct, np.ndarray):
            return [b"%d" % value for value in distinct.tolist()]
        keys: list[bytes] = distinct.to_pylist()
        try:
            distinct.cast(pa.large_string())  # checks that all are UTF-8, and faster
        except pa.ArrowInvalid:
            return [bloom_key(value).encode() for value in keys]
        return keys


def _wanted(atom: Atom) -> KeyAlternatives | None:
    if isinstance(atom, OneOf):
        return [[bloom_key(value)] for value in atom.values]
    return None


INDEX_TYPE: Final = FilterType(spec=Bloom)
