"""Sums and products of decimals, where Spark's type has room for every digit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import mul
from typing import Final

from skipindex.domain import Domain
from skipindex.planner._functions import Argument, Function

_MOST_DIGITS: Final = 38
"""Beyond them, Spark drops digits after the point."""
_INTEGER_DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 20}
"""Of the decimal type that an integer of so many bits becomes."""


def decimal_type(digits: int, scale: int) -> Domain:
    """The domain of a decimal of so many digits."""
    name = "decimal" if digits <= 18 else "big_decimal"
    return Domain(name, scale=scale, digits=digits)


def of_decimals(
    arguments: Sequence[Argument], operation: Callable[[int, int], int], direction: int
) -> Function | None:
    """A sum, difference or product of decimals, or of decimals and integers.

    Args:
        arguments: two of them.
        operation: on integers.
        direction: of the result, as the argument that varies rises.
    """
    if not any(argument.is_a("decimal", "big_decimal") for argument in arguments):
        return None
    if any(a.is_a("big_decimal") and not a.is_constant for a in arguments):
        direction = 0  # its domain is one of byte strings
    sizes = [_size(argument.domain) for argument in arguments]
    if len(sizes) != 2 or None in sizes:
        return None
    (a_digits, a_scale), (b_digits, b_scale) = (size for size in sizes if size)
    if operation is mul:
        domain = decimal_type(a_digits + b_digits + 1, a_scale + b_scale)
        a_unit = b_unit = 1
    else:
        scale = max(a_scale, b_scale)
        before = max(a_digits - a_scale, b_digits - b_scale)
        domain = decimal_type(before + scale + 1, scale)
        a_unit, b_unit = 10 ** (scale - a_scale), 10 ** (scale - b_scale)
    if domain.digits > _MOST_DIGITS:
        return None
    return Function(domain, lambda a, b: operation(a * a_unit, b * b_unit), direction)


def _size(domain: Domain | None) -> tuple[int, int] | None:
    """Digits in all and after the point, of the decimal that Spark makes of it."""
    match domain:
        case Domain("decimal" | "big_decimal"):
            return domain.digits, domain.scale
        case Domain("int"):
            return _INTEGER_DIGITS[min(domain.bits, 64)], 0
        case _:
            return None
