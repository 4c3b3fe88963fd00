"""Bloom filters: whether a file certainly holds none of the requested values.

For ``=`` and IN on columns of many distinct values; about 10 bits a distinct value at
an error rate of 0.01.  Nothing else is answered: not ranges, and never a negation.

``filters.payload`` has the layout; the values are the keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from skipindex.expressions.atoms import Atom, OneOf
from skipindex.expressions.domain import Domain
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.indexes.filters.filter_type import FilterSpec, FilterType
from skipindex.indexes.filters.payload import (
    KeyAlternatives,
    RequiredKeys,
)
from skipindex.indexes.filters.splitmix import Keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Bloom(FilterSpec):
    """A Bloom filter of the distinct values, for ``=`` and IN.

    Source: Bloom, Space/Time Trade-offs in Hash Coding with Allowable Errors, CACM
    1970; ``filters.blocked`` names the source of the layout.

    Args:
        error_rate: the fraction of absent values that the filter does not exclude.
        hashing: the hash function, by default SplitMix64.  ``"pybloom"`` writes the
            bits of pybloom-live, which take over ten times as long to build.

    >>> report = table.build_indexes({"price": sx.Bloom(error_rate=0.001)}, workers=1)
    >>> report.n_bytes > 0
    True
    """

    error_rate: float = 0.01
    hashing: str | None = None
    kind: ClassVar[str] = "bloom"

    @classmethod
    def check(cls, domain: Domain) -> None:
        """Accept every domain: each value has a text of its own."""

    @classmethod
    def wanted_by(cls, own: bytes) -> RequiredKeys:  # noqa: ARG003 (there are none)
        """One key for every value that is requested."""
        return _wanted

    def keys(self, column: EncodedColumn) -> Keys:
        """The values of the column; integers once each."""
        return column.some_distinct if column.domain.is_bytes else column.distinct


def _wanted(atom: Atom) -> KeyAlternatives | None:
    if isinstance(atom, OneOf):
        return [[value] for value in atom.values]
    return None


INDEX_TYPE: Final = FilterType(spec=Bloom)
