"""What a built-in function of Spark is to the planner, and tables of them.

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

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Protocol, TypeAlias

from skipindex.expressions.atoms import Value
from skipindex.expressions.domain import (
    INT64_MAX,
    INT64_MIN,
    NAN,
    Domain,
    big_decimal_from_key,
    big_decimal_key,
    float_from_key,
    float_key,
)

Plain: TypeAlias = int | float | str | bytes
TextInterval: TypeAlias = tuple[bytes | None, bytes | None]
"""Texts from the first on, before the second; None is "no bound on this side"."""


class UnsureError(Exception):
    """Only Spark knows the value, or whether it is an error."""


UNSURE: Final = (UnsureError, ArithmeticError)
"""What a function raises of values that only Spark knows: of a number that is too
large for Python, Python's own error."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument as far as it is known before any row is read.

    Args:
        domain: the domain of its values; None for the literal NULL.
        is_constant: whether ``value`` is the value for every row.
        value: plain; None is NULL.
    """

    domain: Domain | None
    is_constant: bool = False
    value: Plain | None = None

    @property
    def known_domain(self) -> Domain:
        """The domain of an argument that is not the literal NULL."""
        assert self.domain is not None
        return self.domain

    def is_a(self, *names: str) -> bool:
        """Whether its type has one of these names of domains.

        ``int32`` is an integer that Spark takes for an int without a cast that may
        fail, ``double`` a float of 64 bits.
        """
        match self.domain:
            case None:
                return False
            case Domain("int", bits=bits) if bits <= 32 and "int32" in names:
                return True
            case Domain("float", bits=64) if "double" in names:
                return True
            case Domain(name):
                return name in names


class Texts(Protocol):
    """The texts that a function reads dates or times from."""

    def between(self, low: int | None, high: int | None) -> Sequence[TextInterval]:
        """Intervals of all texts whose value is in ``[low, high)``."""

    def may_read(self, text: bytes) -> bool:
        """Whether ``text`` may have a value."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function for given argument types and constants.

    It returns NULL exactly if an argument is NULL; ``apply`` raises ``UnsureError``
    where only Spark knows the value.

    Args:
        domain: the domain of the result.
        apply: the value for plain arguments, none of them NULL; may be unsure.
        direction: 1 if it never falls as its one argument that varies rises, -1 if it
            never rises, 0 if neither.
        span: the least and greatest domain value of that argument between which this
            is so and ``apply`` is sure; None is "all of its type".
        least: if the argument is a byte string, the least one whose value is at least
            the given one, or None if there is none.
        unsure: if the argument is a byte string, those of which only Spark knows
            whether their value is at least the given one.
        slack: the true value lies within this distance of ``apply``'s; where it is
            not 0, ``apply`` serves for bounds alone.
        is_later: with a ``slack``: the true value is never before ``apply``'s.
        exact: with a ``slack``: the least argument whose true value is at least the
            given one, or None if that is not known.
        reason: why there is a ``slack``, or a ``span`` that is no overflow.
        key: two functions of one key, which is not None, are the same function.
        is_identity: every value stays what it is in its domain, whatever it is.
        texts: if it reads dates or times, of which texts.  It holds of who wrote text
            in a pattern, by Spark's default parser, and of no query: others read more.
        alike: where ``apply`` is unsure, texts of which one answers as the value does
            if a question is only about these letters; may be unsure.
        letters: of such questions.
    """

    domain: Domain
    apply: Callable[..., Plain]
    direction: int = 0
    span: tuple[int, int] | None = None
    least: Callable[[bytes], bytes | None] | None = None
    unsure: Callable[[bytes], set[bytes]] | None = None
    slack: int = 0
    is_later: bool = False
    exact: Callable[[int], int | None] | None = None
    reason: str = ""
    key: Hashable = None
    is_identity: bool = False
    texts: Texts | None = None
    alike: Callable[..., Collection[Plain]] | None = None
    letters: Collection[str] = ()


Resolver: TypeAlias = Callable[..., Function | None]
"""The function for some arguments, or None if only Spark can say."""


class Coercion(Enum):
    """What Spark casts the dates and times to that a function takes."""

    NONE = auto()
    CLOCK = auto()
    """Instants to local times of the session."""
    DATE = auto()
    """Instants and local times to dates."""
    INSTANT = auto()
    """Dates and local times to instants; the function gets their local times."""
    TEXT = auto()
    """All of them to text."""


@dataclass(frozen=True, slots=True)
class Builtin:
    """A built-in function of Spark, before the types of its arguments are known.

    Args:
        resolver: takes one ``Argument`` for each argument of the function.
        signatures: the types of the arguments, for every number of them that is
            possible; empty if the resolver takes any.
        coercion: what becomes of dates and times first.
    """

    resolver: Resolver
    signatures: tuple[tuple[str, ...], ...]
    coercion: Coercion

    @property
    def cast_of_text(self) -> str:
        """The type that Spark casts text to, as a date or a time; empty if to none."""
        match self.coercion:
            case Coercion.DATE:
                return "DATE"
            case Coercion.CLOCK:
                takes_dates = any("date" in one for one in self.signatures)
                return "DATE" if takes_dates else "TIMESTAMP"
            case Coercion.INSTANT:
                return "TIMESTAMP"
            case _:
                return ""

    def resolve(self, arguments: Sequence[Argument]) -> Function | None:
        """The function for these arguments, or None if only Spark can say."""
        fits = not self.signatures or any(
            _fits(arguments, signature) for signature in self.signatures
        )
        return self.resolver(*arguments) if fits else None


def _fits(arguments: Sequence[Argument], signature: Sequence[str]) -> bool:
    return len(arguments) == len(signature) and all(
        types == "any" or argument.is_a(*types.split("|"))
        for argument, types in zip(arguments, signature, strict=True)
    )


class FunctionTable(dict[str, Builtin]):
    """Functions by Spark's name in lower case; operators by their sign."""

    def named(
        self, *names: str, takes: str = "", coercion: Coercion = Coercion.NONE
    ) -> Callable[[Resolver], Resolver]:
        """Add a resolver under Spark's names for it.

        Args:
            names: all of them.
            takes: the types of the arguments, such as ``"date int32"``, where ``|``
                separates types, ``any`` is all of them, and ``, `` separates lists of
                arguments; by default the resolver takes any arguments.
            coercion: what becomes of dates and times first.
        """

        def add(resolver: Resolver) -> Resolver:
            signatures = tuple(tuple(one.split()) for one in takes.split(",") if one)
            for name in names:
                assert name not in self, name
                self[name] = Builtin(resolver, signatures, coercion)
            return resolver

        return add


def type_range(domain: Domain) -> tuple[int, int]:
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


def least_integer(low: int, high: int, reached: Callable[[int], bool]) -> int | None:
    """The least of ``low .. high`` for which ``reached``, None if there is none.

    Functions are inverted by it, without a second definition.  ``reached`` holds from
    some integer on; unlike ``bisect``, any distance is allowed.
    """
    stop = high + 1
    while low < stop:
        middle = (low + stop) // 2
        if reached(middle):
            stop = middle
        else:
            low = middle + 1
    return low if low <= high else None


def integer(bits: int) -> Domain:
    """The domain of Spark's integer type of so many bits."""
    return Domain("int", bits=bits)


def in_bits(value: int, bits: int) -> int:
    """``value``, which is no overflow."""
    half = 1 << (bits - 1)
    if not -half <= value < half:
        raise UnsureError
    return value


def to_plain(domain: Domain, value: Value) -> Plain:
    """A domain value as functions take it."""
    if isinstance(value, bytes):
        if domain.name == "big_decimal":
            return big_decimal_from_key(value)
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
