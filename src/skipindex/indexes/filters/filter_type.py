"""The base of the kinds that are Bloom filters.

A kind names the texts, its *keys*, that every value which makes an atom TRUE has put
into the filter.  A value may make it TRUE in several ways, so a kind gives
*alternatives*: lists of keys, and all keys of one list must be in the filter.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from pyroaring import BitMap

from skipindex.errors import CorruptIndexError
from skipindex.expressions.atoms import Atom
from skipindex.expressions.bounds import Bounds
from skipindex.expressions.domain import Domain
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.indexes.filters.payload import (
    VERSION,
    Filter,
    FilterHead,
    RequiredKeys,
    check_error_rate,
    check_scheme,
    pack_filter,
    saturates,
)
from skipindex.indexes.filters.transposed import (
    TransposedFilters,
    pack_together,
    unpack,
)
from skipindex.indexes.interface import IndexSpec
from skipindex.storage.parts import Parts

ROWS: Final = struct.Struct("<Q")
"""The rows of the file, at the end of a header."""


class FilterSpec(ABC):
    """What asks for a filter: a frozen dataclass with an ``error_rate``.

    The field is each spec's own, because the order of fields is that of its parameters.
    """

    __slots__ = ()

    kind: ClassVar[str]
    error_rate: float

    def __post_init__(self) -> None:
        check_error_rate(self.error_rate, self.kind)

    @abstractmethod
    def keys(self, column: EncodedColumn) -> list[bytes]:
        """The distinct keys of the column's values, as UTF-8.

        Raises:
            UnsupportedTypeError: this kind cannot hold the column.
        """

    def own(self, _column: EncodedColumn) -> bytes:
        """What the kind adds to the header."""
        return b""

    def build(self, column: EncodedColumn) -> list[bytes]:
        """The parts of the payload.

        Raises:
            UnsupportedTypeError: this kind cannot hold the column.
        """
        return pack_filter(
            self.keys(column), self.error_rate, column.domain, own=self.own(column)
        )


@dataclass(frozen=True, slots=True)
class FilterIndex:
    """The filter of one column of one file."""

    filter: Filter
    wanted: RequiredKeys

    def probe(self, atom: Atom) -> Bounds[BitMap] | None:
        """No row, if the filter lacks a key of every alternative; else no opinion."""
        if saturates(atom, self.filter.head.k):
            return None
        alternatives = self.wanted(atom)
        if alternatives is None:
            return None
        bits, may_hold = self.filter.bits(), self.filter.may_hold
        if any(all(may_hold(bits, key) for key in keys) for keys in alternatives):
            return None
        return Bounds(BitMap(), BitMap())


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterType:
    """A kind of filter.

    Args:
        name: of the kind.
        spec: its spec.
        wanted: from the kind's own bytes, what an atom requires; raises
            ``CorruptIndexError`` if they are damaged.
        check_domain: raises ``UnsupportedTypeError`` where columns cannot be.
        n_own: the kind's own bytes in a header.
        has_rows: whether u64 rows of the file follow them.
    """

    name: str
    spec: type[IndexSpec]
    wanted: Callable[[bytes], RequiredKeys]
    check_domain: Callable[[Domain], None]
    n_own: int = 0
    has_rows: bool = True
    version: int = VERSION
    positional: bool = False

    def check(self, domain: Domain) -> None:
        """Accept what the kind can hold."""
        self.check_domain(domain)

    def open(self, parts: Parts, domain: Domain, n_rows: int) -> FilterIndex:
        """Read the header; the bits only when asked."""
        if len(parts) != 2:
            raise CorruptIndexError(
                f"a {self.name} payload has {len(parts)} parts (accepted: 2)"
            )
        n_own = self.n_own + self._n_tail
        head = FilterHead.read(parts[0], domain, self.name, n_own=n_own)
        check_scheme(head, self.name)
        rows = int.from_bytes(head.own[self.n_own :], "little")
        if self.has_rows and rows != n_rows:
            raise CorruptIndexError(
                f"a {self.name} of {rows} rows is not of a file of {n_rows}"
            )
        if not self.has_rows and head.n_keys > n_rows:
            raise CorruptIndexError(
                f"a {self.name} of {head.n_keys} keys cannot be of a file of "
                f"{n_rows} rows"
            )
        return FilterIndex(Filter(head, parts), self.wanted(head.own[: self.n_own]))

    def pack_together(
        self, payloads: Sequence[Sequence[bytes]], domain: Domain
    ) -> tuple[list[bytes], set[int]]:
        """The parts of the filters that can be transposed, and their slots."""
        return pack_together(
            payloads, domain, self.name, n_own=self.n_own, n_tail=self._n_tail
        )

    def unpack(
        self, shared: Parts, domain: Domain, n_files: int
    ) -> dict[int, list[bytes]]:
        """By slot, the filters that were transposed, as payloads of their own."""
        return unpack(shared, domain, self.name, n_files, n_tail=self._n_tail)

    def open_pack(
        self, shared: Parts, domain: Domain, n_files: int
    ) -> TransposedFilters:
        """Read the header of transposed filters; their rows only when asked."""
        return TransposedFilters.open(shared, domain, self.name, n_files, self.wanted)

    @property
    def _n_tail(self) -> int:
        return ROWS.size if self.has_rows else 0
