"""A Bloom filter of all words: which files have no ``'% word %'``.

A word (*token*) is a longest run of ASCII letters and digits and of bytes beyond
ASCII.  Of a text that is asked for, only the words count that are surely whole in the
value: those with another character on both sides, or at the value's own beginning or
end.  So ``LIKE '%error: disk full%'`` looks for ``disk``, and ``LIKE '%disk%'`` gets
no opinion, because it is true of ``disks``.  Smaller than ``ngram_bloom``, and made for
log lines, paths and sentences; nothing is said of a negation.

``filters.payload`` has the layout, with u64 rows of the file at the end of part 0.
The words are the keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from skipindex.expressions.atoms import Value
from skipindex.expressions.patterns import Fragment
from skipindex.indexes.filters.filter_type import FilterType
from skipindex.indexes.filters.text_keys import TextFilterSpec, text_layout

_TOKEN: Final = re.compile(rb"[0-9A-Za-z\x80-\xff]+")
_IN_TOKEN: Final = np.array(
    [_TOKEN.fullmatch(bytes([byte])) is not None for byte in range(256)]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBloom(TextFilterSpec):
    """A Bloom filter of the words of a string column.

    Args:
        error_rate: the share of absent words that are taken for present ones.
        hashing: see ``Bloom``.

    >>> report = table.build_indexes({"city": sx.TokenBloom()}, workers=1)
    >>> report.table.plan("city = 'Oslo'").paths
    ['part-0.parquet']
    """

    error_rate: float = 0.01
    hashing: str | None = None
    kind: ClassVar[str] = "token_bloom"

    @classmethod
    def keys_by(cls, own: bytes) -> Callable[[Fragment], Sequence[Value]]:  # noqa: ARG003
        """The words that are surely whole in every value with a fragment."""
        return _keys

    def pieces(self, values: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
        """The words."""
        return _tokens(values)


def _tokens(values: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """The words, as often as they are there."""
    ends, data = text_layout(values)
    inside = _IN_TOKEN[data]
    if not inside.any():
        return values.slice(0, 0)
    begins = inside.copy()
    begins[1:] &= ~inside[:-1]
    # Two words meet where one value ends in a word and the next begins with one.
    firsts = ends[ends < len(data)]
    begins[firsts] = inside[firsts]
    before = np.cumsum(inside)
    starts = before[begins] - 1
    offsets = np.append(starts, before[-1])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data[inside])]
    return pa.Array.from_buffers(pa.large_binary(), len(starts), buffers)


def _keys(fragment: Fragment) -> list[bytes]:
    """The words that are surely whole in every value with the fragment."""
    text = fragment.text
    return [
        word[0]
        for word in _TOKEN.finditer(text)
        if (word.start() or fragment.begins)
        and (word.end() < len(text) or fragment.ends)
    ]


INDEX_TYPE: Final = FilterType(spec=TokenBloom)
