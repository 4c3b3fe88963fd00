"""Functions and literals of a term, settled for the types that they meet.

A type that Spark alone could settle is refused, never guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Final

import skipindex.planner.functions.casts
import skipindex.planner.functions.dates
import skipindex.planner.functions.numbers
import skipindex.planner.functions.rounding
import skipindex.planner.functions.text  # noqa: F401 (they register functions)
from skipindex.expressions import Literal, argument_sql
from skipindex.expressions.domain import EPOCH, INT64_MAX, INT64_MIN, Domain
from skipindex.expressions.not_judged import NotJudgedError
from skipindex.planner.binding.inversion import CallImage
from skipindex.planner.binding.literal_cuts import Refusal, cut
from skipindex.planner.binding.terms import ConstantImage, Image, argument_of
from skipindex.planner.functions.decimals import CAST_DIGITS, decimal_type
from skipindex.planner.functions.registry import FUNCTIONS, Function, integer

UNTYPED: Final = Domain("decimal")
"""Of a decimal literal, whose type depends on what it meets."""


def constant(value: Literal) -> ConstantImage:
    """A literal as an argument.

    Raises:
        NotJudgedError: its type is not plain from its value.
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
            raise NotJudgedError(f"{text} as an argument")


def moment_image(value: datetime, name: str, zone: str | None) -> ConstantImage:
    """A timestamp as an argument.

    Raises:
        NotJudgedError: it depends on rules of a time zone.
    """
    domain = Domain(name)
    at = cut(domain, value, zone if name == "timestamp" else "UTC")
    if isinstance(at, Refusal) or at.slack or at.ge is None:
        raise NotJudgedError("a timestamp that depends on the time zone")
    assert isinstance(at.ge, int)
    return ConstantImage(domain, at.ge, argument_sql(value))


def applied(name: str, images: Sequence[Image], text: str) -> Image:
    """A function of images, settled for their types.

    Raises:
        NotJudgedError: it is not known, or not of these types.
    """
    resolver = FUNCTIONS.get(name)
    if resolver is None:
        raise NotJudgedError(f"the function {name}")
    found = resolver([argument_of(image) for image in images])
    if found is None:
        raise NotJudgedError(f"{name} of these types")
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
        NotJudgedError: it is not.
    """
    if all(image.domain is not UNTYPED for image in images):
        return images
    double = Domain("float", bits=64)
    if any(is_of(image, "decimal") and image.domain != UNTYPED for image in images):
        return [_as_decimal(i) if i.domain is UNTYPED else i for i in images]
    if not any(image.domain == double for image in images):
        raise NotJudgedError("arithmetic with decimals")
    return [
        ConstantImage(double, image.value(None), image.expression)
        if image.domain is UNTYPED
        else image
        for image in images
    ]
