"""Dates and times moved by a number of days or by an interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from skipindex.planner._calendar import CLOCK_UNITS
from skipindex.planner._functions import FUNCTIONS, Argument, Function, integer
from skipindex.planner._images import ConstantImage, Image, argument_of
from skipindex.planner._inversion import CallImage
from skipindex.planner._settled import RefusedError, applied, is_of
from skipindex.predicate import Call

_INTERVAL_MONTHS: Final = {"MONTH": 1, "YEAR": 12}


def shifted(sign: str, images: Sequence[Image], text: str) -> Image | None:
    """A date and a number of days; None for any other sum."""
    if len(images) != 2:
        return None
    left, right = images
    if is_of(left, "date") and is_of(right, "int"):
        name = "date_add" if sign == "+" else "date_sub"
        return applied(name, [left, right], text)
    if sign == "+" and is_of(left, "int") and is_of(right, "date"):
        return applied("date_add", [right, left], text)
    return None


def moved(term: Call, image: Image, sign: str, step: Call) -> Image:
    """A date or a time, and an interval.

    Raises:
        RefusedError: a zone has a say in the sum, or the interval is no constant.
    """
    number, unit = step.arguments
    if not isinstance(number, int) or image.domain is None:
        raise RefusedError("an interval")
    number = number if sign == "+" else -number
    months = _INTERVAL_MONTHS.get(str(unit))
    name = image.domain.name
    if name == "date" and months is not None:
        distance = ConstantImage(integer(32), number * months, str(number))
        return applied("add_months", [image, distance], str(term))
    if name == "date" and unit == "DAY":
        distance = ConstantImage(integer(32), number, str(number))
        return applied("date_add", [image, distance], str(term))
    if name == "timestamp_ntz" and unit in CLOCK_UNITS:
        distance = ConstantImage(
            integer(64), number * CLOCK_UNITS[str(unit)], str(number)
        )
        sum_ = FUNCTIONS["+"]([Argument(integer(64)), argument_of(distance)])
        assert sum_ is not None
        function = Function(image.domain, sum_.apply, 1, sum_.span, key="+")
        return CallImage(function, (image, distance), str(term))
    raise RefusedError("an interval")
