"""What a built-in function of Spark is to the planner, and the registry of them.

A function is listed only if it gives the same value in every version of Spark that
we support, with ANSI mode and without.  For the rest there is ``UnsureError``: a
value that would overflow, divide by zero, or fail to be cast is an error in ANSI mode
and NULL or another number without it.  A row with such a value always counts as a
possible match.

Functions work on *plain* values: ``str`` for text, ``float`` for float and double,
``int`` for everything else that is ordered as integers (dates are days, timestamps
microseconds, decimals unscaled), ``bytes`` for binary.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from skipindex.expressions.atoms import Value
from skipindex.expressions.domain import (
    INT64_MAX,
    INT64_MIN,
    NAN,
    Domain,
    big_decimal_key,
    float_from_key,
    float_key,
)

Plain: TypeAlias = int | float | str | bytes
_SIGN_128: Final = 1 << 127


class UnsureError(Exception):
    """Only Spark can tell the value, or whether it is an error."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument as far as it is known before any row is read.

    Args:
        domain: of its values; None for the literal NULL.
        is_constant: whether ``value`` is the value for every row.
        value: plain; None is NULL.
    """

    domain: Domain | None
    is_constant: bool = False
    value: Plain | None = None

    def is_a(self, *names: str) -> bool:
        """Whether its domain has one of these names."""
        return self.domain is not None and self.domain.name in names


@dataclass(frozen=True, slots=True)
class Function:
    """A function for given argument types and constants.

    It returns NULL exactly if an argument is NULL; ``apply`` raises ``UnsureError``
    where only Spark knows the value.

    Args:
        domain: of the result.
        apply: the value for plain arguments, none of them NULL; may be unsure.
        direction: 1 if it never falls as its one argument that varies rises, -1 if it
            never rises, 0 if neither.
        span: the least and greatest domain value of that argument between which this
            is so and ``apply`` is sure; None is "all of its type".
        least: for arguments that are byte strings: the least one whose value is at
            least the given one, or None if there is none.
        unsure: for the same: the arguments of which only Spark can tell whether
            their value is at least the given one.
        slack: the true value lies within this distance of ``apply``'s; where it is
            not 0, ``apply`` serves for bounds alone.
        reason: what ``slack`` is for.
        key: two functions of one key, which is not None, are the same function.
    """

    domain: Domain
    apply: Callable[..., Plain]
    direction: int = 0
    span: tuple[int, int] | None = None
    least: Callable[[bytes], bytes | None] | None = None
    unsure: Callable[[bytes], set[bytes]] | None = None
    slack: int = 0
    reason: str = ""
    key: Hashable = None


Resolver: TypeAlias = Callable[[Sequence[Argument]], Function | None]
"""The function for these arguments, or None if only Spark can say."""

FUNCTIONS: Final[dict[str, Resolver]] = {}
"""By Spark's name in lower case; operators by their sign."""


def function(*names: str) -> Callable[[Resolver], Resolver]:
    """Register a resolver under Spark's names for it."""

    def register(resolver: Resolver) -> Resolver:
        for name in names:
            assert name not in FUNCTIONS, name
            FUNCTIONS[name] = resolver
        return resolver

    return register


def whole(domain: Domain) -> tuple[int, int]:
    """The least and the greatest value that a column of ``domain`` can have."""
    match domain.name:
        case "bool":
            return 0, 1
        case "int":
            half = 1 << (min(domain.bits, 64) - 1)
            return -half, half - 1
        case "date":
            return -(1 << 31), (1 << 31) - 1
        case "float":
            return float_key(float("-inf")), NAN
        case "decimal":
            limit: int = 10**domain.digits
            return 1 - limit, limit - 1
        case _:
            return INT64_MIN, INT64_MAX


def integer(bits: int) -> Domain:
    """The domain of Spark's integer type of so many bits."""
    return Domain("int", bits=bits)


def in_bits(value: int, bits: int) -> int:
    """``value``, which is no overflow.

    Raises:
        UnsureError: it is.
    """
    half = 1 << (bits - 1)
    if not -half <= value < half:
        raise UnsureError
    return value


def to_plain(domain: Domain, value: Value) -> Plain:
    """A domain value as functions take it.

    Raises:
        UnsureError: it is text that is no UTF-8.
    """
    if isinstance(value, bytes):
        if domain.name == "big_decimal":
            return int.from_bytes(value, "big") - _SIGN_128
        if domain.name == "string":
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise UnsureError from None
        return value
    return float_from_key(value) if domain.name == "float" else value


def from_plain(domain: Domain, value: Plain) -> Value:
    """The inverse of ``to_plain``."""
    match value:
        case str():
            return value.encode()
        case float():
            return float_key(value)
        case int() if domain.name == "big_decimal":
            return big_decimal_key(value)
        case _:
            return value
