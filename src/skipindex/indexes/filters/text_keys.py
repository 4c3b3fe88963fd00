"""The base of filters over pieces of text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from skipindex.errors import UnsupportedTypeError
from skipindex.expressions.arrays import Bits, Ints
from skipindex.expressions.atoms import Atom, Value
from skipindex.expressions.domain import Domain
from skipindex.expressions.patterns import Fragment, required
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.indexes.encoding.ranks import layout_of
from skipindex.indexes.filters.filter_type import ROWS, FilterSpec
from skipindex.indexes.filters.payload import KeyAlternatives, RequiredKeys
from skipindex.indexes.filters.splitmix import Keys


class TextFilterSpec(FilterSpec):
    """What asks for a filter of pieces of text; the header has the rows of the file."""

    __slots__ = ()

    has_rows = True

    @abstractmethod
    def pieces(self, values: pa.LargeBinaryArray) -> Keys:
        """The keys of some values; integers are distinct."""

    @classmethod
    @abstractmethod
    def keys_by(cls, own: bytes) -> Callable[[Fragment], Sequence[Value]]:
        """The keys of every value that has a fragment; see ``wanted_by``."""

    @classmethod
    def check(cls, domain: Domain) -> None:
        """Raise ``UnsupportedTypeError`` for a column on which LIKE needs a cast."""
        if domain.name != "string":
            raise UnsupportedTypeError(
                f"a {cls.kind} index cannot be on a column of {domain.name} "
                "(accepted: string)"
            )

    @classmethod
    def wanted_by(cls, own: bytes) -> RequiredKeys:
        """The keys of every value with an atom's fragments, by alternative of the atom.

        Unknown if there is an alternative without keys, or none at all.
        """
        keys_of = cls.keys_by(own)

        def wanted(atom: Atom) -> KeyAlternatives | None:
            result = []
            for fragments in required(atom):
                keys = [key for fragment in fragments for key in keys_of(fragment)]
                if not keys:
                    return None
                result.append(keys)
            return result

        return wanted

    def keys(self, column: EncodedColumn) -> Keys:
        """The keys of the column's values; integers are distinct.

        Raises:
            UnsupportedTypeError: the column holds no text.
        """
        self.check(column.domain)
        values = column.some_distinct
        assert not isinstance(values, np.ndarray)
        return self.pieces(values)

    def own(self, n_rows: int) -> bytes:
        """How many rows the file has."""
        return ROWS.pack(n_rows)


def text_layout(values: pa.LargeBinaryArray) -> tuple[Ints, Bits]:
    """Where every string ends in the bytes of all, and the bytes."""
    offsets, data = layout_of(values)
    return offsets[1:] - offsets[0], data[int(offsets[0]) : int(offsets[-1])]
