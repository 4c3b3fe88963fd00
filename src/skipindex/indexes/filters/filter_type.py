"""The base of the kinds that are Bloom filters.

A kind names the numbers or texts, its *keys*, that every value which makes an atom TRUE
has put into the filter.  A value may make it TRUE in several ways, so a kind gives
*alternatives*: lists of keys, and all keys of one list must be in the filter.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from pyroaring import AbstractBitMap, BitMap

from skipindex.errors import CorruptIndexError
from skipindex.expressions.atoms import Atom
from skipindex.expressions.bounds import Bounds
from skipindex.expressions.domain import Domain
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.indexes.filters.payload import (
    VERSION,
    FilterHead,
    RequiredKeys,
    check_error_rate,
    check_hashing,
    check_scheme,
    may_hold,
    pack_filter,
    saturates,
    split_bits,
)
from skipindex.indexes.filters.splitmix import Keys
from skipindex.indexes.filters.transposed import (
    TransposedFilters,
    pack_together,
    unpack,
)
from skipindex.storage.parts import Parts

ROWS: Final = struct.Struct("<Q")
"""The rows of the file, at the end of a header."""
_HASH_BYTES: Final = 24
_OBJECT_BYTES: Final = 160


class FilterSpec(ABC):
    """What asks for a filter: a frozen dataclass with ``error_rate`` and ``hashing``.

    The fields are each spec's own, because their order is that of its parameters.

    Attributes:
        kind: the name of the kind.
        n_own: the kind's own bytes in a header.
        has_rows: whether u64 rows of the file follow them.
    """

    __slots__ = ()

    kind: ClassVar[str]
    n_own: ClassVar[int] = 0
    has_rows: ClassVar[bool] = False
    error_rate: float
    hashing: str | None

    def __post_init__(self) -> None:
        check_error_rate(self.error_rate, self.kind)
        check_hashing(self.hashing, self.kind)

    @classmethod
    @abstractmethod
    def check(cls, domain: Domain) -> None:
        """Raise ``UnsupportedTypeError`` if columns of the domain cannot be indexed."""

    @classmethod
    @abstractmethod
    def wanted_by(cls, own: bytes) -> RequiredKeys:
        """What an atom requires of a filter whose header has these own bytes.

        Raises:
            CorruptIndexError: the bytes are damaged.
        """

    @abstractmethod
    def keys(self, column: EncodedColumn) -> Keys:
        """The keys of the column's values; integers are distinct.

        Raises:
            UnsupportedTypeError: this kind cannot hold the column.
        """

    @property
    def memory_per_row(self) -> int:
        """See ``interface``; pybloom-live has keys as objects."""
        return _OBJECT_BYTES if self.hashing else _HASH_BYTES

    def own(self, _n_rows: int) -> bytes:
        """What the kind adds to the header, of a file of so many rows."""
        return b""

    def build(self, column: EncodedColumn) -> list[bytes]:
        """The parts of the payload.

        Raises:
            UnsupportedTypeError: this kind cannot hold the column.
        """
        return pack_filter(
            self.keys(column),
            self.error_rate,
            column.domain,
            own=self.own(column.n_rows),
            hashing=self.hashing,
        )


@dataclass(frozen=True, slots=True)
class FilterIndex:
    """The filter of one column of one file."""

    head: FilterHead
    parts: Parts
    wanted: RequiredKeys

    def probe(self, atom: Atom) -> Bounds[AbstractBitMap] | None:
        """No row, if the filter lacks a key of every alternative; else None."""
        if saturates(atom, self.head.k):
            return None
        alternatives = self.wanted(atom)
        if alternatives is None:
            return None
        shape, (_, bits) = self.head.shape, split_bits(self.parts[1], self.head)
        if any(all(may_hold(bits, shape, k) for k in keys) for keys in alternatives):
            return None
        return Bounds(BitMap(), BitMap())


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterType:
    """A kind of filter."""

    spec: type[FilterSpec]
    version: int = VERSION
    positional: bool = False

    @property
    def name(self) -> str:
        """The name of the kind, on disk."""
        return self.spec.kind

    def check(self, domain: Domain) -> None:
        """Accept what the kind can hold."""
        self.spec.check(domain)

    def open(self, parts: Parts, domain: Domain, n_rows: int) -> FilterIndex:
        """Read the header; the bits only when asked."""
        if len(parts) != 2:
            raise CorruptIndexError(
                f"a {self.name} payload has {len(parts)} parts (accepted: 2)"
            )
        n_own, has_rows = self.spec.n_own, self.spec.has_rows
        head = FilterHead.read(parts[0], domain, self.name, n_own=n_own + self._n_tail)
        check_scheme(head, self.name)
        rows = int.from_bytes(head.own[n_own:], "little")
        if has_rows and rows != n_rows:
            raise CorruptIndexError(
                f"a {self.name} of {rows} rows is not of a file of {n_rows}"
            )
        if not has_rows and head.n_keys > n_rows:
            raise CorruptIndexError(
                f"a {self.name} of {head.n_keys} keys cannot be of a file of "
                f"{n_rows} rows"
            )
        return FilterIndex(head, parts, self.spec.wanted_by(head.own[:n_own]))

    def pack_together(
        self, payloads: Sequence[Sequence[bytes]], domain: Domain
    ) -> tuple[list[bytes], set[int]]:
        """The parts of the filters that can be transposed, and their slots."""
        return pack_together(
            payloads, domain, self.name, n_own=self.spec.n_own, n_tail=self._n_tail
        )

    def unpack(
        self, shared: Parts, domain: Domain, n_files: int
    ) -> dict[int, list[bytes]]:
        """The filters that were transposed, by slot, as payloads of their own."""
        return unpack(shared, domain, self.name, n_files, n_tail=self._n_tail)

    def open_pack(
        self, shared: Parts, domain: Domain, n_files: int
    ) -> TransposedFilters:
        """Read the header of transposed filters; their rows only when asked."""
        wanted_by = self.spec.wanted_by
        return TransposedFilters.open(shared, domain, self.name, n_files, wanted_by)

    @property
    def _n_tail(self) -> int:
        return ROWS.size if self.spec.has_rows else 0
