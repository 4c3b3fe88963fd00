"""The six questions that an index is asked, in the column's own domain.

Binding (``skipindex.planner.bind``) has already brought every literal into the
domain of its column (``skipindex.domain``): an ``int`` or ``bytes``, ordered as
Spark orders the column.  So ``=``, ``<``, ``BETWEEN``, ``LIKE 'p%'`` and all the
rest are one of these, and an index kind answers six shapes and no operators.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

Value: TypeAlias = int | bytes


@dataclass(frozen=True, slots=True)
class Range:
    """``low <= value < high``; None is "no bound on this side".

    Half-open, because every value of both domains has a ``successor`` and byte
    strings have no predecessor.
    """

    column: str
    low: Value | None
    high: Value | None


@dataclass(frozen=True, slots=True)
class OneOf:
    """The value is one of ``values``, which are sorted, distinct and not empty."""

    column: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class NoneOf:
    """The value is not NULL and none of ``values`` (sorted, distinct, not empty)."""

    column: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    """The value is NULL."""

    column: str


@dataclass(frozen=True, slots=True)
class IsNotNull:
    """The value is not NULL."""

    column: str


class Wildcard(Enum):
    """What stands between the literal pieces of a pattern."""

    ANY_TEXT = "%"
    ANY_CHARACTER = "_"


Pattern: TypeAlias = tuple[bytes | Wildcard, ...]
"""Pieces in order.  No two literals are neighbours, no literal is empty, and every one
is whole UTF-8 characters."""


@dataclass(frozen=True, slots=True)
class Matches:
    """The value, of a string column, is [not] of ``pattern``, and is not NULL.

    The pattern is none that another atom says: no constant, and no mere prefix.
    """

    column: str
    pattern: Pattern
    negated: bool = False


Atom: TypeAlias = Range | OneOf | NoneOf | IsNull | IsNotNull | Matches


def successor(value: Value) -> Value:
    """The least value of the domain that is greater than ``value``."""
    return value + 1 if isinstance(value, int) else value + b"\0"


def after_prefix(prefix: bytes) -> bytes | None:
    """The least byte string greater than all that begin with ``prefix``."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None
