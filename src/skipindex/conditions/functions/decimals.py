"""Spark's decimal types: 38 digits in all, and what is exact within them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from operator import mul
from typing import Final

from skipindex.conditions.functions.registry import Argument, Function
from skipindex.expressions import Literal
from skipindex.expressions.domain import Domain

_MOST_DIGITS: Final = 38
"""Beyond them, Spark drops digits after the point."""
_INTEGER_DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 20}
"""Digits of the decimal type that an integer of so many bits becomes."""
CAST_DIGITS: Final = 18
"""Digits before the point of the widest decimal type that a cast may name."""


def decimal_type(digits: int, scale: int) -> Domain:
    """The domain of a decimal of so many digits."""
    name = "decimal" if digits <= 18 else "big_decimal"
    return Domain(name, scale=scale, digits=digits)


def of_decimals(
    arguments: Sequence[Argument], operation: Callable[[int, int], int], direction: int
) -> Function | None:
    """A sum, difference or product of two decimals, or of a decimal and an integer.

    ``direction`` is 1 if the result rises with the argument that varies, -1 if it
    falls, 0 if neither.
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


def fits_decimal(domain: Domain, values: Iterable[Literal]) -> bool:
    """Whether Spark's common decimal type of column and literals rounds nothing."""
    if domain.name == "int":
        return within_38_digits(values, _INTEGER_DIGITS[domain.bits], 0)
    return within_38_digits(values, domain.digits - domain.scale, domain.scale)


def floor_of(value: Decimal, scale: int = 0) -> int:
    """``value * 10**scale``, rounded down to an integer.

    In integers: Python's own arithmetic with decimals rounds to 28 digits.
    """
    numerator, denominator = value.as_integer_ratio()
    floor: int = numerator * 10**scale // denominator
    return floor


def ceiling_of(value: Decimal, scale: int = 0) -> int:
    """``value * 10**scale``, rounded up to an integer; see ``floor_of``."""
    numerator, denominator = value.as_integer_ratio()
    ceiling: int = -(-numerator * 10**scale // denominator)
    return ceiling


def within_38_digits(
    values: Iterable[Literal], whole: int = 0, fraction: int = 0
) -> bool:
    """Whether Spark has a decimal type for all the values and a column.

    It has as many digits before and after the point as the widest of them, but
    only 38 in all; beyond that, digits after the point are dropped.  The column has
    ``whole`` digits before its point and ``fraction`` after it.
    """
    for value in values:
        if isinstance(value, int | Decimal):
            before, after = _digits(Decimal(value))
            # A value does not tell how wide the type was that it was cast to.
            if isinstance(value, int):
                before = max(before, _INTEGER_DIGITS[64])
            else:
                before = max(before, min(CAST_DIGITS, _MOST_DIGITS - after))
            whole, fraction = max(whole, before), max(fraction, after)
    return whole + fraction <= _MOST_DIGITS


def _digits(value: Decimal) -> tuple[int, int]:
    """Digits before and after the point, as Spark types a literal."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return max(len(digits) + exponent, 0), max(-exponent, 0)
