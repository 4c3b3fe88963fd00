"""Hive partitions: names and values out of paths, typed as Spark types them.

``year=2022/month=01/part-0.parquet`` has the values ``2022`` and ``01``; Spark
takes both columns for int unless told otherwise, so ``month = '01'`` and
``month = 1`` both mean January (trap C-30).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

import pyarrow as pa

from skipindex.atoms import Value
from skipindex.domain import EPOCH, Domain, domain_of
from skipindex.errors import TableError

DEFAULT_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
"""Stands for NULL, and for '' too (trap C-40); Spark reads NULL."""

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# What Spark might take for a number, a date or a timestamp: begins like one, in
# the digits of any script, or is a name that Java's parseDouble knows.
_MAYBE_NUMBER: Final = re.compile(r"[\x00-\x20]*[+-]?(\.?\d|NaN|Infinity)")
# Begins with a digit, and is no number, date or time to any parser of Spark: letters,
# digits and underscores, and among them a letter that is no hexadecimal digit, no
# suffix or exponent of a number (d, f, e, x, p) and in no date (T, Z, UTC, GMT).
_CERTAIN_TEXT: Final = re.compile(r"[0-9]\w*[gijkmoqrsuvwyIJKOQRSVWY]\w*", re.ASCII)
_ESCAPED: Final = re.compile(r"%([0-9a-fA-F]{2})")


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """One partition column of a table.

    Args:
        name: as the folders write it.
        values: of every file, in the order of the table's files; None is NULL.
        dtype: the type that Spark gives the column; None if only Spark can tell.
    """

    name: str
    values: tuple[str | None, ...]
    dtype: pa.DataType | None

    def typed(self, domain: Domain) -> list[Value | None]:
        """The values in the column's domain."""
        return [None if v is None else _typed(v, domain) for v in self.values]


def partition_columns(
    paths: Sequence[str], declared: Mapping[str, pa.DataType]
) -> list[PartitionColumn]:
    """The partition columns of files at these relative paths, outermost first.

    Raises:
        TableError: the paths disagree on the names of the columns.
    """
    pairs = [_pairs(path) for path in paths]
    names = [name for name, _ in pairs[0]] if pairs else []
    for path, own in zip(paths, pairs, strict=True):
        if [name for name, _ in own] != names:
            raise TableError(
                f"the partition columns of {path!r} are {[n for n, _ in own]}, those "
                f"of {paths[0]!r} are {names} (expected the same for all files)"
            )
    columns = []
    for i, name in enumerate(names):
        values = tuple(own[i][1] for own in pairs)
        dtype = declared.get(name) or infer_type({v for v in values if v is not None})
        columns.append(PartitionColumn(name, values, dtype))
    return columns


def partition_values(path: str) -> tuple[tuple[str, str | None], ...]:
    """Names and raw values in a relative path, outermost first; None is NULL."""
    return tuple(_pairs(path))


def _pairs(path: str) -> list[tuple[str, str | None]]:
    """Names and values, outermost first.

    As in Spark, a folder of another form hides those above it, unless all below
    are of another form too.
    """
    found: list[tuple[str, str | None]] = []
    for folder in reversed(path.split("/")[:-1]):
        name, equals, raw = folder.partition("=")
        if equals and name:
            value = None if raw == DEFAULT_PARTITION else _unescape(raw)
            found.append((_unescape(name), value))
        elif found:
            break
    return found[::-1]


def _unescape(text: str) -> str:
    """Hive's escapes: one character each, never the bytes of UTF-8."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def infer_type(values: set[str]) -> pa.DataType | None:
    """The type that Spark infers for a partition column of these values.

    None where Spark's own parsers decide (decimals, doubles, timestamps, odd
    dates), or its version (no values at all): the column is then left to Spark, and
    prunes nothing.
    """
    if all(map(_INTEGER.fullmatch, values)):
        for dtype in (pa.int32(), pa.int64()):
            if values and all(_fits(int(v), dtype) for v in values):
                return dtype
        return None
    if all(map(_is_date, values)):
        return pa.date32()
    # One text among the values makes a text of the column, whatever the others are.
    if any(map(_is_text, values)):
        return pa.string()
    return None


def _is_text(value: str) -> bool:
    """Whether Spark surely takes the value alone for a string."""
    if not _MAYBE_NUMBER.match(value):
        return True
    return _CERTAIN_TEXT.fullmatch(value) is not None


def _fits(number: int, dtype: pa.DataType) -> bool:
    limit: int = 1 << (dtype.bit_width - 1)
    return -limit <= number < limit


def _is_date(value: str) -> bool:
    if not _DATE.fullmatch(value):
        return False
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _typed(value: str, domain: Domain) -> Value:
    match domain.name:
        case "int":
            return int(value)
        case "date":
            return (date.fromisoformat(value) - EPOCH).days
        case _:
            return value.encode()


def partition_domain(column: PartitionColumn) -> Domain | None:
    """The domain of the column, or None if its values cannot be judged here.

    A declared type counts only if every value reads as one of it.
    """
    if column.dtype is None:
        return None
    if not pa.types.is_string(column.dtype):
        there = {v for v in column.values if v is not None}
        whole = pa.types.is_signed_integer(column.dtype) and all(
            _INTEGER.fullmatch(v) and _fits(int(v), column.dtype) for v in there
        )
        dated = pa.types.is_date32(column.dtype) and all(map(_is_date, there))
        if not (whole or dated):
            return None
    return domain_of(column.dtype, column.name)
