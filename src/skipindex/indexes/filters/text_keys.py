"""The base of the filters of pieces of text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipindex.errors import UnsupportedTypeError
from skipindex.expressions.arrays import Ints
from skipindex.expressions.atoms import Atom
from skipindex.expressions.domain import Domain
from skipindex.expressions.patterns import Fragment, required
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.indexes.filters.filter_type import ROWS, FilterSpec


class TextFilterSpec(FilterSpec):
    """What asks for a filter of pieces of text; the header has the rows of the file."""

    __slots__ = ()

    @abstractmethod
    def pieces(self, values: pa.LargeBinaryArray) -> list[bytes]:
        """The distinct keys of some values, as UTF-8."""

    def keys(self, column: EncodedColumn) -> list[bytes]:
        """The distinct keys of the column's values, as UTF-8.

        Raises:
            UnsupportedTypeError: the column holds no text.
        """
        check_is_text(column.domain, self.kind)
        values = column.some_distinct
        assert not isinstance(values, np.ndarray)
        return self.pieces(values)

    def own(self, column: EncodedColumn) -> bytes:
        """How many rows the file has."""
        return ROWS.pack(column.n_rows)


def check_is_text(domain: Domain, kind: str) -> None:
    """Raise ``UnsupportedTypeError`` for a column on which LIKE needs a cast."""
    if domain.name != "string":
        raise UnsupportedTypeError(
            f"a {kind} index cannot be on a column of {domain.name} (accepted: string)"
        )


def text_layout(values: pa.LargeBinaryArray) -> tuple[Ints, npt.NDArray[np.uint8]]:
    """Where every string ends in the bytes of all, and the bytes."""
    _, offset_buffer, data_buffer = values.buffers()
    if not len(values):
        return np.empty(0, np.int64), np.empty(0, np.uint8)
    offsets = np.frombuffer(offset_buffer, np.int64)
    offsets = offsets[values.offset : values.offset + len(values) + 1]
    data = np.frombuffer(data_buffer or b"", np.uint8)
    return offsets[1:] - offsets[0], data[int(offsets[0]) : int(offsets[-1])]


def wanted_by_text(
    atom: Atom, keys_of: Callable[[Fragment], list[str]]
) -> list[list[str]] | None:
    """By alternative of the atom, the keys of every value that has its fragments.

    None if there is an alternative without keys, or none at all.

    Args:
        atom: any.
        keys_of: the keys of every value that has the fragment.
    """
    wanted = []
    for fragments in required(atom):
        keys = [key for fragment in fragments for key in keys_of(fragment)]
        if not keys:
            return None
        wanted.append(keys)
    return wanted
