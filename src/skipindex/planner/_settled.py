"""Functions and literals of a term, settled for the types that they meet.

A type that Spark alone could settle is refused, never guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Final

import skipindex.planner._functions_casts
import skipindex.planner._functions_dates
import skipindex.planner._functions_numbers
import skipindex.planner._functions_rounding
import skipindex.planner._functions_text  # noqa: F401 (they register functions)
from skipindex.domain import EPOCH, INT64_MAX, INT64_MIN, Domain
from skipindex.planner._cuts import CAST_DIGITS, Refusal, cut
from skipindex.planner._functions import FUNCTIONS, Function, integer
from skipindex.planner._functions_decimals import decimal_type
from skipindex.planner._images import ConstantImage, Image, argument_of
from skipindex.planner._inversion import CallImage
from skipindex.predicate import Literal, argument_sql

UNTYPED: Final = Domain("decimal")
"""Of a decimal literal, whose type depends on what it meets."""


class RefusedError(Exception):
    """The term cannot be judged; the message is the reason."""


def constant(value: Literal) -> ConstantImage:
    """A literal as an argument.

    Raises:
        RefusedError: its type is not plain from its value.
    """
    text = argument_sql(value)
    match value:
        case None:
            return ConstantImage(None, None, text)
        case bool():
            return ConstantImage(Domain("bool"), int(value), text)
        case int() if INT64_MIN <= value <= INT64_MAX:
            bits = 32 if -(1 << 31) <= value < 1 << 31 else 64
            return ConstantImage(integer(bits), value, text)
        case float():
            return ConstantImage(Domain("float", bits=64), value, text)
        case str():
            return ConstantImage(Domain("string"), value, text)
        case bytes():
            return ConstantImage(Domain("binary"), value, text)
        case date() if not isinstance(value, datetime):
            return ConstantImage(Domain("date"), (value - EPOCH).days, text)
        case _:
            raise RefusedError(f"{text} as an argument")


def moment_image(value: datetime, name: str, zone: str | None) -> ConstantImage:
    """A timestamp as an argument.

    Raises:
        RefusedError: it depends on rules of a time zone.
    """
    domain = Domain(name)
    at = cut(domain, value, zone if name == "timestamp" else "UTC")
    if isinstance(at, Refusal) or at.slack or at.ge is None:
        raise RefusedError("a timestamp that depends on the time zone")
    assert isinstance(at.ge, int)
    return ConstantImage(domain, at.ge, argument_sql(value))


def applied(name: str, images: Sequence[Image], text: str) -> Image:
    """A function of images, settled for their types.

    Raises:
        RefusedError: it is not known, or not of these types.
    """
    resolver = FUNCTIONS.get(name)
    if resolver is None:
        raise RefusedError(f"the function {name}")
    found = resolver([argument_of(image) for image in images])
    if found is None:
        raise RefusedError(f"{name} of these types")
    return CallImage(replace(found, key=name), tuple(images), text)


def through(function: Function, image: Image, text: str) -> Image:
    """A function of one image."""
    return CallImage(function, (image,), text)


def is_of(image: Image, *names: str) -> bool:
    """Whether the domain of the image's values has one of the names."""
    return image.domain is not None and image.domain.name in names


def _as_decimal(image: Image) -> ConstantImage:
    """A decimal literal; a cast may have made its type wider than its value tells."""
    value = Decimal(image.expression)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    before = max(len(digits) + exponent, min(CAST_DIGITS, 38 - scale))
    unscaled = int(value.scaleb(scale))
    return ConstantImage(
        decimal_type(before + scale, scale), unscaled, image.expression
    )


def with_type(images: Sequence[Image]) -> Sequence[Image]:
    """Decimal literals as doubles, where the other operand is one, or as decimals.

    Raises:
        RefusedError: it is not.
    """
    if all(image.domain is not UNTYPED for image in images):
        return images
    double = Domain("float", bits=64)
    if any(is_of(image, "decimal") and image.domain != UNTYPED for image in images):
        return [_as_decimal(i) if i.domain is UNTYPED else i for i in images]
    if not any(image.domain == double for image in images):
        raise RefusedError("arithmetic with decimals")
    return [
        ConstantImage(double, image.value(None), image.expression)
        if image.domain is UNTYPED
        else image
        for image in images
    ]
