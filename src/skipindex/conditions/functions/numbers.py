"""Arithmetic as Spark does it; results beyond the type are never guessed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import add, mul, sub
from typing import Final

from skipindex.conditions.functions.decimals import of_decimals
from skipindex.conditions.functions.registry import (
    Argument,
    Function,
    FunctionTable,
    Plain,
    UnsureError,
    in_bits,
    integer,
    least_integer,
    type_range,
)
from skipindex.expressions.domain import Domain, float_key

FUNCTIONS: Final = FunctionTable()

DOUBLE: Final = Domain("float", bits=64)
_INFINITY: Final = float_key(math.inf)
FINITE_SPAN: Final = (float_key(-math.inf), _INFINITY)
"""All doubles but NaN."""
_BEYOND: Final = float(1 << 63)
_LONG_SPAN: Final = (float_key(-_BEYOND), float_key(_BEYOND) - 1)
"""Doubles whose floor is a bigint; the lower end itself is one."""


def remainder(a: int, b: int) -> int:
    """Java's ``%``: the sign is the dividend's."""
    if not b:
        raise UnsureError
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def quotient(a: int, b: int) -> int:
    """Java's ``/`` of integers: rounded towards 0."""
    if not b:
        raise UnsureError
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _bits(arguments: Sequence[Argument]) -> int | None:
    """The width of the common type, if all arguments are integers."""
    widths = [a.domain.bits for a in arguments if a.domain and a.domain.name == "int"]
    return max(widths) if widths and len(widths) == len(arguments) else None


def _doubles(arguments: Sequence[Argument]) -> bool:
    """Whether the operation is one of doubles: next to one, integers become doubles."""
    return all(a.is_a("int", "double") for a in arguments) and any(
        a.is_a("float") for a in arguments
    )


def _linear(
    arguments: Sequence[Argument],
    operation: Callable[[int, int], int],
    on_doubles: Callable[[float, float], float],
    *,
    direction: int,
) -> Function | None:
    """An operation that rises, or falls, with the argument that varies."""
    bits = _bits(arguments)
    if bits is not None:
        bounds = type_range(integer(bits))

        def exact(a: int, b: int) -> int:
            return in_bits(operation(a, b), bits)

        span = _sure_span(arguments, operation, bounds) if direction else None
        return Function(integer(bits), exact, direction if span else 0, span)
    if not _doubles(arguments):
        is_one_varying = sum(a.is_constant for a in arguments) == 1
        return of_decimals(arguments, operation, direction if is_one_varying else 0)

    def approximate(a: Plain, b: Plain) -> float:
        return on_doubles(float(a), float(b))

    constant = next((a.value for a in arguments if a.is_constant), math.inf)
    varies = next((a for a in arguments if not a.is_constant), None)
    if varies is None or not isinstance(constant, int | float):
        return Function(DOUBLE, approximate)
    usable = math.isfinite(constant)
    span = FINITE_SPAN if varies.is_a("float") else None
    return Function(DOUBLE, approximate, direction if usable else 0, span)


def _sure_span(
    arguments: Sequence[Argument],
    operation: Callable[[int, int], int],
    bounds: tuple[int, int],
) -> tuple[int, int] | None:
    """The values of the argument that varies for which nothing overflows."""
    at = [i for i, argument in enumerate(arguments) if not argument.is_constant]
    if len(at) != 1:
        return None
    domain = arguments[at[0]].domain
    assert domain is not None
    constant = arguments[1 - at[0]].value
    assert isinstance(constant, int)

    def fits(value: int) -> bool:
        pair = (value, constant) if at[0] == 0 else (constant, value)
        return bounds[0] <= operation(*pair) <= bounds[1]

    # The operation is linear and small somewhere, so what fits is one interval.
    low, high = type_range(domain)
    middle = min(max(_root(operation, constant), low), high)
    if not fits(middle):
        return None
    least = least_integer(low, middle, fits)
    past = least_integer(middle, high, lambda value: not fits(value))
    assert least is not None
    return least, high if past is None else past - 1


def _root(operation: Callable[[int, int], int], constant: int) -> int:
    """An argument for which the result is near 0."""
    if operation is mul:
        return 0
    return -constant if operation is add else constant


@FUNCTIONS.named("+", takes="any any")
def _plus(*arguments: Argument) -> Function | None:
    return _linear(arguments, add, lambda a, b: a + b, direction=1)


@FUNCTIONS.named("-", takes="any any")
def _minus(*arguments: Argument) -> Function | None:
    direction = -1 if arguments[0].is_constant else 1
    return _linear(arguments, sub, lambda a, b: a - b, direction=direction)


@FUNCTIONS.named("*", takes="any any")
def _times(*arguments: Argument) -> Function | None:
    constant = next((a.value for a in arguments if a.is_constant), None)
    direction = 0
    if isinstance(constant, int | float) and constant == constant:  # noqa: PLR0124
        direction = (constant > 0) - (constant < 0)
    return _linear(arguments, mul, lambda a, b: a * b, direction=direction)


@FUNCTIONS.named("/", takes="int|double int|double")
def _divide(over: Argument, by: Argument) -> Function:
    def ratio(a: Plain, b: Plain) -> float:
        divisor = float(b)
        if not divisor:
            raise UnsureError
        return float(a) / divisor

    if not by.is_constant or not isinstance(by.value, int | float):
        return Function(DOUBLE, ratio)
    usable = bool(by.value) and math.isfinite(by.value)
    direction = (1 if by.value > 0 else -1) if usable else 0
    span = FINITE_SPAN if over.is_a("float") else None
    return Function(DOUBLE, ratio, direction, span)


@FUNCTIONS.named("%", "mod", takes="int|double int|double")
def _modulo(*arguments: Argument) -> Function:
    bits = _bits(arguments)
    if bits is not None:
        return Function(integer(bits), remainder)

    def of_doubles(a: Plain, b: Plain) -> float:
        if not float(b) or math.isinf(float(a)):
            raise UnsureError
        return math.fmod(float(a), float(b))

    return Function(DOUBLE, of_doubles)


@FUNCTIONS.named("pmod", takes="int int")
def _positive_modulo(*arguments: Argument) -> Function:
    def positive(a: int, b: int) -> int:
        if b <= 0:
            raise UnsureError
        return a % b

    return Function(integer(_bits(arguments) or 64), positive)


@FUNCTIONS.named("div", takes="int int")
def _integer_divide(_: Argument, by: Argument) -> Function:
    def exact(a: int, b: int) -> int:
        return in_bits(quotient(a, b), 64)

    if not by.is_constant or not isinstance(by.value, int) or by.value in {0, -1}:
        return Function(integer(64), exact)
    return Function(integer(64), exact, 1 if by.value > 0 else -1)


@FUNCTIONS.named("negative", takes="int|decimal|float")
def _negative(number: Argument) -> Function:
    domain = number.known_domain
    match domain.name:
        case "int":
            low, high = type_range(domain)
            bits = domain.bits
            span = (low + 1, high)
            return Function(domain, lambda a: in_bits(-a, bits), -1, span)
        case "decimal":
            return Function(domain, lambda a: -a, -1)
        case _:
            return Function(domain, lambda a: -a, -1, FINITE_SPAN)


@FUNCTIONS.named("positive", takes="int|decimal|float")
def _positive(number: Argument) -> Function:
    return Function(number.known_domain, lambda a: a, 1)


@FUNCTIONS.named("abs", takes="int|decimal|float")
def _absolute(number: Argument) -> Function:
    domain = number.known_domain
    if domain.name == "int":
        bits = domain.bits
        return Function(domain, lambda a: in_bits(abs(a), bits))
    return Function(domain, abs)


def _rounded(
    domain: Domain,
    of_double: Callable[[float], int],
    of_fraction: Callable[[int, int], int],
) -> Function | None:
    match domain.name:
        case "int":
            return Function(integer(64), lambda a: a, 1)
        case "float":

            def checked(a: float) -> int:
                if not math.isfinite(a):
                    raise UnsureError
                return in_bits(of_double(a), 64)

            return Function(integer(64), checked, 1, _LONG_SPAN)
        case "decimal" if 0 < domain.scale < domain.digits:
            unit = 10**domain.scale
            digits = domain.digits - domain.scale + 1
            result = Domain("decimal", digits=digits)
            return Function(result, lambda a: of_fraction(a, unit), 1)
        case _:
            return None


@FUNCTIONS.named("floor", takes="int|float|decimal")
def _floor(number: Argument) -> Function | None:
    return _rounded(number.known_domain, math.floor, lambda a, unit: a // unit)


@FUNCTIONS.named("ceil", "ceiling", takes="int|float|decimal")
def _ceiling(number: Argument) -> Function | None:
    return _rounded(number.known_domain, math.ceil, lambda a, unit: -(-a // unit))
