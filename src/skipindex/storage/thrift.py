"""Thrift's compact protocol, in which Parquet writes footers and headers of pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, STRUCT = (
    *(1, 2, 3, 4, 5, 6, 7),
    *(8, 9, 10, 12),
)
"""The types."""
_INTEGERS: Final = frozenset({I16, I32, I64})

Fields = dict[int, Any]
"""The values of a struct by the numbers of its fields; structs in it are such too."""


def read_struct(data: bytes, at: int) -> tuple[Fields, int]:
    """The struct at an offset, and where it ends.

    Raises:
        IndexError: the bytes end before.
        ValueError: a type is not known.
    """
    result: Fields = {}
    number = 0
    while head := data[at]:
        at += 1
        if head >> 4:
            number += head >> 4
        else:
            number, at = _integer(data, at)
        result[number], at = read_value(data, at, head & 15)
    return result, at + 1


def read_value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    """The value of a field at an offset, and where it ends; as ``read_struct``."""
    if kind in _INTEGERS:
        return _integer(data, at)
    if kind in {TRUE, FALSE}:
        return kind == TRUE, at
    if kind == STRUCT:
        return read_struct(data, at)
    if kind in {LIST, SET}:
        length, inner, at = read_list(data, at)
        items = []
        for _ in range(length):
            if inner in {TRUE, FALSE}:
                item, at = data[at] == TRUE, at + 1
            else:
                item, at = read_value(data, at, inner)
            items.append(item)
        return items, at
    if kind == BINARY:
        length, at = _varint(data, at)
    elif kind in {BYTE, DOUBLE}:
        length = 1 if kind == BYTE else 8
    else:
        raise ValueError(f"not a type of Thrift that Parquet uses: {kind}")
    if at + length > len(data):
        raise IndexError("the bytes end within a value")
    return data[at : at + length], at + length


def read_list(data: bytes, at: int) -> tuple[int, int, int]:
    """The length of a list, the type of its items, and where they begin."""
    head = data[at]
    if head >> 4 < 15:
        return head >> 4, head & 15, at + 1
    length, at = _varint(data, at + 1)
    return length, head & 15, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while data[at] & 0x80:
        result |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
    return result | data[at] << shift, at + 1


def _integer(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return value >> 1 ^ -(value & 1), at


def struct(fields: Mapping[int, tuple[int, bytes]]) -> bytes:
    """A struct of values with their types; field numbers are at most 15 apart."""
    result, last = [], 0
    for number, (kind, value) in sorted(fields.items()):
        result += [bytes([(number - last) << 4 | kind]), value]
        last = number
    return b"".join([*result, b"\0"])


def i32(number: int) -> tuple[int, bytes]:
    """A number that is not negative, of 32 bits."""
    return I32, varint(number << 1)


def i64(number: int) -> tuple[int, bytes]:
    """A number that is not negative, of 64 bits."""
    return I64, varint(number << 1)


def binary(data: bytes) -> tuple[int, bytes]:
    """A byte string or text."""
    return BINARY, varint(len(data)) + data


def listed(kind: int, items: Sequence[bytes]) -> tuple[int, bytes]:
    """A list of values of one type."""
    return LIST, b"".join([bytes([0xF0 | kind]), varint(len(items)), *items])


def varint(number: int) -> bytes:
    """A number that is not negative, in groups of 7 bits."""
    result = bytearray()
    while number > 0x7F:
        result.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*result, number])
