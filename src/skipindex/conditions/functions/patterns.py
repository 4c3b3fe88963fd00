"""Datetime patterns such as ``yyyy-MM-dd HH:mm:ss``: what they show and read.

The fields stand in order of size and have all of their digits, so moments and their
texts are ordered alike, in the years of four digits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from skipindex.conditions.functions import calendar
from skipindex.conditions.functions.calendar import CLOCK_UNITS, DAY, SECOND
from skipindex.conditions.functions.registry import TextInterval
from skipindex.expressions.not_judged import NotJudgedError

_FIELDS: Final = ("yyyy", "MM", "dd", "HH", "mm", "ss")
_MONTHS: Final = {1: 12, 2: 1}
"""The months of the unit of a pattern of one or two fields."""
_UNITS: Final = (DAY, CLOCK_UNITS["HOUR"], CLOCK_UNITS["MINUTE"], SECOND)
"""Microseconds of the unit of a pattern of three to six fields."""
_PIECE: Final = re.compile(
    r"(?P<field>([A-Za-z])\2*)|'(?P<quoted>[^']*)'|(?P<other>.)", re.DOTALL
)
_RESERVED: Final = set("[]{}#'0123456789")
_LIKE_OTHERS: Final = set("iksIKS")
"""Letters that are others beyond ASCII too, if their case does not count."""
_FRACTION: Final = range(10)
"""How many digits of a fraction of a second there may be."""
EXPECTED: Final = (
    "expected yyyy, then MM, dd, HH, mm, ss and .SSS in this order, up to any of "
    "them, with signs or quoted letters in between"
)
_FIRST: Final = calendar.day_number(1, 1, 1) * DAY
_STOP: Final = calendar.day_number(10_000, 1, 1) * DAY
"""Between these, years have four digits and no sign."""


@dataclass(frozen=True)
class Pattern:
    """A datetime pattern whose texts are ordered like their moments.

    As Spark's parser reads texts by it, by default: the case of letters does not count,
    and a fraction may have fewer digits.  Moments are microseconds of a local time.

    Args:
        separators: the text behind each field.
        digits: of the fraction of a second, the last field; 0 if there is none.
    """

    separators: tuple[str, ...]
    digits: int

    def shown(self, moment: int) -> str:
        """The text of a moment in the years 1 to 9999."""
        return self._text(moment, self.separators, self._fraction(moment, "0"))

    def read(self, text: str) -> int | None:
        """The moment of a text; None if it has none, or a year with a sign."""
        match = self._form.fullmatch(text)
        if match is None:
            return None
        numbers = list(map(int, match.groups()[: len(self._fields)]))
        numbers += (0, 1, 1, 0, 0, 0)[len(numbers) :]
        year, month, day, hour, minute, second = numbers
        if not (1 <= month <= 12 and hour < 24 and minute < 60 and second < 60):
            return None
        if not 1 <= day <= calendar.month_length(year, month):
            return None
        fraction = match.groups()[-1][:6].ljust(6, "0") if self.digits else "0"
        clock = ((hour * 60 + minute) * 60 + second) * SECOND + int(fraction)
        return calendar.day_number(year, month, day) * DAY + clock

    def alike(self, text: str) -> tuple[int, int] | None:
        """The moments that are shown as a text, the last excluded; None if none is."""
        moment = self.read(text)
        if moment is None or not _FIRST <= moment < _STOP:
            return None
        return moment, self._ceil(moment + 1)

    def may_read(self, text: bytes) -> bool:
        """Whether some moment has this text."""
        try:
            plain = text.decode()
        except UnicodeDecodeError:
            return False
        return plain[:1] in {"+", "-"} or self.read(plain) is not None

    def between(self, low: int | None, high: int | None) -> Sequence[TextInterval]:
        """Intervals of all texts with a moment in ``[low, high)``; tight in each."""
        result: list[TextInterval] = []
        start, stop = b"0", b":"
        if low is None or low < _FIRST:
            result.append((b"-", b"."))
        else:
            low = self._ceil(low)
            start = self._least(low) if low < _STOP else stop
        if high is None or high > _STOP:
            result.append((b"+", b","))
        elif high > _FIRST:
            stop = self._greatest(high - 1) + b"\0"
        if start < stop:
            result.append((start, stop))
        return result

    @cached_property
    def is_cast(self) -> bool:
        """Whether Spark reads the texts alike where it casts them, or not at all."""
        *inner, last = self.separators
        between = zip(inner, ("-", "-", " T", ":", ":", "."), strict=False)
        return not last and all(one and one in some for one, some in between)

    @cached_property
    def _fields(self) -> tuple[str, ...]:
        """The fields but the fraction."""
        return _FIELDS[: len(self.separators) - bool(self.digits)]

    @cached_property
    def _form(self) -> re.Pattern[str]:
        """What texts look like."""
        pieces = [rf"(\d{{{len(field)}}})" for field in self._fields]
        if self.digits:
            pieces.append(rf"(\d{{1,{self.digits}}})")
        both = zip(pieces, map(re.escape, self.separators), strict=True)
        return re.compile("".join(map("".join, both)), re.ASCII | re.IGNORECASE)

    def _ceil(self, moment: int) -> int:
        """The first moment from ``moment`` on that some text has."""
        n = len(self._fields)
        if n in _MONTHS:
            unit = "YEAR" if n == 1 else "MONTH"
            first = calendar.truncated(moment // DAY, unit)
            if first * DAY == moment:
                return moment
            return calendar.add_months(first, _MONTHS[n]) * DAY
        unit_length = max(10 ** (6 - self.digits), 1) if self.digits else _UNITS[n - 3]
        return -(-moment // unit_length) * unit_length

    def _least(self, moment: int) -> bytes:
        """The least text of such a moment."""
        fraction = self._fraction(moment, "0").rstrip("0") or "0" * bool(self.digits)
        capitals = tuple(separator.upper() for separator in self.separators)
        return self._text(moment, capitals, fraction).encode()

    def _greatest(self, moment: int) -> bytes:
        """The greatest text that has this moment or the last one before it."""
        small = tuple(separator.lower() for separator in self.separators)
        return self._text(moment, small, self._fraction(moment, "9")).encode()

    def _fraction(self, moment: int, fill: str) -> str:
        """Digits of the fraction of a second; ``fill`` are those below microseconds."""
        return f"{moment % SECOND:06}".ljust(9, fill)[: self.digits]

    def _text(self, moment: int, separators: Sequence[str], fraction: str) -> str:
        day, micros = divmod(moment, DAY)
        rest = micros // SECOND
        clock = rest // 3600, rest // 60 % 60, rest % 60
        numbers = zip(self._fields, (*calendar.civil(day), *clock), strict=False)
        texts = [f"{number:0{len(field)}}" for field, number in numbers]
        texts += [fraction] if self.digits else []
        return "".join(map("".join, zip(texts, separators, strict=True)))


@lru_cache
def pattern_of(text: str) -> Pattern:
    """The pattern of its text."""
    refused = NotJudgedError(f"the datetime pattern {text!r} is not known ({EXPECTED})")
    separators: list[str] = []
    digits = 0
    for piece in _PIECE.finditer(text):
        if piece["field"] is None:
            separator = piece["other"] or piece["quoted"] or "'"
            if not separators or digits or any(map(_is_odd, separator)):
                raise refused
            separators[-1] += separator
            continue
        field, n = piece["field"], len(separators)
        if n < len(_FIELDS) and field == _FIELDS[n]:
            separators.append("")
        elif n == len(_FIELDS) and separators[-1] and set(field) == {"S"}:
            separators.append("")
            digits = len(field)
        else:
            raise refused
    if not separators or digits not in _FRACTION:
        raise refused
    return Pattern(tuple(separators), digits)


def _is_odd(character: str) -> bool:
    """Whether Java may read other characters for it, or none."""
    if character in _RESERVED | _LIKE_OTHERS:
        return True
    has_case = character.lower() != character.upper()
    return has_case and not character.isascii()
