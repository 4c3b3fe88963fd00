"""A Bloom filter of all words: which files have no ``'% word %'``.

A word (*token*) is a longest run of ASCII letters and digits and of bytes beyond
ASCII.  Of a requested text, only the words count that are certainly complete in the
value: those with another character on both sides, or at the value's own beginning or
end.  So ``LIKE '%error: disk full%'`` looks for ``disk``, and ``LIKE '%disk%'`` gets
unknown, because it is true of ``disks``.  Smaller than ``ngram_bloom``, and made for
log lines, paths and sentences; a negation is unknown.

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

from skipindex.expressions.arrays import Bits, Mask
from skipindex.expressions.atoms import Value
from skipindex.expressions.patterns import Fragment
from skipindex.indexes.filters.filter_type import FilterType
from skipindex.indexes.filters.splitmix import Pieces
from skipindex.indexes.filters.text_keys import TextFilterSpec, text_layout

_TOKEN: Final = re.compile(rb"[0-9A-Za-z\x80-\xff]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBloom(TextFilterSpec):
    """A Bloom filter of the words of a string column.

    Args:
        error_rate: the fraction of absent words that the filter does not exclude.
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
        """The words that are certainly complete in every value with a fragment."""
        return _keys

    @property
    def memory_per_byte(self) -> int:
        """See ``interface``; half of the bytes may be words."""
        return 80 if self.hashing else 12

    def pieces(self, values: pa.LargeBinaryArray) -> Pieces:
        """The words, as often as they are there."""
        ends, data = text_layout(values)
        inside = _in_token(data)
        begins, lasts = inside.copy(), inside.copy()
        begins[1:] &= ~inside[:-1]
        lasts[:-1] &= ~inside[1:]
        # Two words meet where one value ends in a word and the next begins with one.
        firsts = ends[(ends > 0) & (ends < len(data))]
        begins[firsts] = inside[firsts]
        lasts[firsts - 1] = inside[firsts - 1]
        starts = np.flatnonzero(begins)
        return Pieces(starts, np.flatnonzero(lasts) + 1 - starts, data)


def _in_token(data: Bits) -> Mask:
    """Which bytes are of words."""
    letters = (data | np.uint8(0x20)) - np.uint8(ord("a")) < 26
    digits = data - np.uint8(ord("0")) < 10
    mask: Mask = letters | digits | (data >= 0x80)
    return mask


def _keys(fragment: Fragment) -> list[bytes]:
    """The words that are certainly complete in every value with the fragment."""
    text = fragment.text
    return [
        word[0]
        for word in _TOKEN.finditer(text)
        if (word.start() or fragment.begins)
        and (word.end() < len(text) or fragment.ends)
    ]


INDEX_TYPE: Final = FilterType(spec=TokenBloom)
