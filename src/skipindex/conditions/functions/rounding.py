"""Signs and rounding to a number of digits, as Spark does them."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Final

from skipindex.conditions.functions.decimals import decimal_type
from skipindex.conditions.functions.numbers import DOUBLE
from skipindex.conditions.functions.registry import (
    Argument,
    Function,
    FunctionTable,
    UnsureError,
    in_bits,
    type_range,
)
from skipindex.expressions.domain import Domain

FUNCTIONS: Final = FunctionTable()

_SHOWN_ALIKE: Final = 15
"""Digits of a double that every version of Java shows alike."""


@FUNCTIONS.named("sign", "signum", takes="int|float|decimal")
def _sign(_: Argument) -> Function:
    """The sign of a number, which Spark converts to a double."""
    return Function(DOUBLE, _signum, 1)


def _signum(value: float) -> float:
    return value if value != value else float((value > 0) - (value < 0))  # noqa: PLR0124


@FUNCTIONS.named("round", takes="int|decimal|double, int|decimal|double int")
def _round(number: Argument, digits: Argument | None = None) -> Function | None:
    """Half away from zero, to a number of digits that is a literal."""
    places = 0 if digits is None else digits.value
    if not isinstance(places, int) or abs(places) > 18:
        return None
    domain = number.known_domain
    match domain.name:
        case "int":
            unit, bits = 10 ** max(-places, 0), domain.bits
            span = _edge_free(type_range(domain), unit)
            return Function(
                domain, lambda a, *_: in_bits(_to_unit(a, unit), bits), 1, span
            )
        case "decimal":
            result, drop = _rounded_type(domain, places)
            unit, power = 10 ** max(drop, 0), 10 ** max(-places, 0)
            return Function(result, lambda a, *_: _to_unit(a, unit) // unit * power, 1)
        case "float" if domain.bits == 64 and places >= 0:
            return Function(DOUBLE, lambda a, *_: _round_double(a, places))
        case _:
            return None


def _to_unit(value: int, unit: int) -> int:
    """The multiple of ``unit`` that is nearest; half of one counts as a whole."""
    nearest = (abs(value) + unit // 2) // unit * unit
    return nearest if value >= 0 else -nearest


def _edge_free(ends: tuple[int, int], unit: int) -> tuple[int, int] | None:
    """The integers that do not overflow when they are rounded."""
    low, high = ends
    return (low + unit, high - unit) if unit > 1 else None


def _rounded_type(domain: Domain, places: int) -> tuple[Domain, int]:
    """Spark's type of a rounded decimal, and how many digits are dropped."""
    if places >= domain.scale:
        return domain, 0
    whole_digits = domain.digits - domain.scale + 1
    scale = max(places, 0)
    digits = max(whole_digits, 1 - places) if places < 0 else whole_digits + scale
    return decimal_type(digits, scale), domain.scale - places


def _round_double(value: float, places: int) -> float:
    """Round as Java does, by the decimal digits that it shows of a double."""
    if not math.isfinite(value):
        return value
    # Versions of Java differ in the seventeenth digit, so what is near to a half is
    # Spark's to say, unless few digits are shown.
    shown = Decimal(repr(value))
    unit = Decimal(1).scaleb(-places)
    with localcontext(prec=400, Emin=-9999, Emax=9999):
        rest = abs(shown) % unit / unit
        if (
            abs(rest - Decimal("0.5")) < Decimal("1e-9")
            and len(shown.as_tuple().digits) > _SHOWN_ALIKE
        ):
            raise UnsureError
        return float(shown.quantize(unit, ROUND_HALF_UP))
