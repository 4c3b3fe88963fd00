"""What the filters of pieces of text have in common."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipindex.errors import UnsupportedTypeError
from skipindex.expressions.atoms import Atom
from skipindex.expressions.domain import Domain
from skipindex.expressions.patterns import Fragment, required
from skipindex.indexes.encoding.ranks import Ints


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
