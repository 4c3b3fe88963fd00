"""The header of a row-level payload; each field is checked when it is read.

::

    0   u8   version of the payload
    1   u8   form: bit 0, codes are value - base; bit 1, values are bytes
    2   u8   t, length of the domain's tag
    3   u8   parameter of the kind (bit_sliced: base | encoding << 7), else 0
    4   u32  rows of the file
    8   u32  of which NULL
    12  u32  n, the number of codes
    16  u32  c, the number of dictionary chunks, which are parts 1 .. c
    20  t    the domain's tag
    ..       the codes (``dictionary``), then what the kind adds

All numbers in all payloads are little-endian.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from skipindex.errors import CorruptIndexError, IndexVersionError
from skipindex.expressions.domain import Domain

VALUE_MODE: Final = 1
BYTES: Final = 2

_HEAD: Final = struct.Struct("<BBBBIIII")


class Cursor:
    """Takes fields from the front of some bytes.

    Raises:
        CorruptIndexError: there are fewer bytes than a field needs.
    """

    def __init__(self, raw: bytes | memoryview) -> None:
        self._raw = memoryview(raw)
        self._at = 0

    def bytes(self, n: int) -> memoryview:
        """The next ``n`` bytes."""
        start = self._at
        self._at += n
        if n < 0 or self._at > len(self._raw):
            raise CorruptIndexError(
                f"a payload part ends after {len(self._raw)} bytes, "
                f"and at least {self._at} were expected"
            )
        return self._raw[start : self._at]

    def unpack(self, layout: struct.Struct) -> tuple[Any, ...]:
        """The next fields."""
        return layout.unpack(self.bytes(layout.size))

    def numbers(self, code: str, n: int) -> tuple[int, ...]:
        """The next ``n`` integers of a ``struct`` code."""
        width = 8 if code in "qQ" else 4
        return struct.unpack(f"<{n}{code}", self.bytes(width * n))

    def end(self) -> None:
        """Raise ``CorruptIndexError`` if bytes are left."""
        if self._at != len(self._raw):
            raise CorruptIndexError(
                f"a payload part of {len(self._raw)} bytes holds "
                f"{len(self._raw) - self._at} too many"
            )


@dataclass(frozen=True, slots=True)
class Head:
    """The fixed fields of a positional payload."""

    version: int
    form: int
    parameter: int
    n_rows: int
    null_count: int
    n_codes: int
    n_chunks: int

    def to_bytes(self, domain: Domain) -> bytes:
        """The header up to and with the domain's tag."""
        tag = domain.tag.encode()
        fixed = _HEAD.pack(
            self.version,
            self.form,
            len(tag),
            self.parameter,
            self.n_rows,
            self.null_count,
            self.n_codes,
            self.n_chunks,
        )
        return fixed + tag


def check_version(raw: bytes | memoryview, newest: int, kind: str) -> None:
    """Refuse a header whose version, the first byte, this library cannot read.

    Raises:
        IndexVersionError: it is newer.
        CorruptIndexError: there never was such a version, or the header is empty.
    """
    version = raw[0] if len(raw) else 0
    if version > newest:
        raise IndexVersionError(
            f"{kind} payload has version {version} (accepted: 1 to {newest})"
        )
    if version < 1:
        raise CorruptIndexError(f"{kind} payload has version {version}")


def check_tag(tag: bytes | memoryview, domain: Domain, kind: str) -> None:
    """Refuse the index of a column that has since changed its type."""
    if bytes(tag) != domain.tag.encode():
        raise CorruptIndexError(
            f"{kind} payload holds values of domain {bytes(tag)!r}, "
            f"and the column's is {domain.tag!r}"
        )


def read_head(cursor: Cursor, *, kind: str, domain: Domain, n_rows: int) -> Head:
    """The fixed fields, if they fit this column of this file.

    Raises:
        CorruptIndexError: they do not.
    """
    version, form, tag_length, *fields = cursor.unpack(_HEAD)
    head = Head(version, form, *fields)
    check_tag(cursor.bytes(tag_length), domain, kind)
    n_values = n_rows - head.null_count
    by_value = form == VALUE_MODE
    sensible = (
        head.n_rows == n_rows
        and n_values >= 0
        and (head.n_codes > 0) == (n_values > 0)
        and (not head.n_chunks if by_value else head.n_codes <= n_values)
        and (form == BYTES if domain.is_bytes else by_value or not form)
    )
    if not sensible:
        raise CorruptIndexError(
            f"the header of a {kind} payload is not of this column of a file of "
            f"{n_rows} rows: {head}"
        )
    return head


def ascend(numbers: Sequence[int]) -> bool:
    """Whether each number is greater than the one before."""
    return all(map(operator.lt, numbers, numbers[1:]))
