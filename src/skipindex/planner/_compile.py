"""Terms become images: names are columns, functions are settled for their types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Final

import skipindex.planner._functions_casts
import skipindex.planner._functions_dates as dates
import skipindex.planner._functions_numbers
import skipindex.planner._functions_text  # noqa: F401 (they register functions)
from skipindex.domain import Domain
from skipindex.planner._calendar import DAY
from skipindex.planner._cases import CaseImage, Choice
from skipindex.planner._functions import (
    FUNCTIONS,
    Argument,
    Function,
    UnsureError,
    integer,
)
from skipindex.planner._images import (
    ColumnImage,
    ConstantImage,
    Image,
    argument_of,
    merged_columns,
)
from skipindex.planner._inversion import CallImage
from skipindex.planner._truth import is_not_true
from skipindex.planner.bound import Bound, leaves
from skipindex.predicate import (
    Call,
    Case,
    Literal,
    Predicate,
    Reference,
    Term,
    argument_sql,
    push_not,
)

_EPOCH: Final = date(1970, 1, 1)
_OF_CLOCKS: Final = {
    *("year", "quarter", "month", "day", "dayofmonth", "dayofyear", "dayofweek"),
    *("weekday", "weekofyear", "hour", "minute", "second", "date_format"),
}
"""What takes a wall clock where it is given an instant."""
_OF_DATES: Final = {
    *("last_day", "trunc", "date_add", "dateadd", "date_sub", "add_months"),
    *("datediff", "date_diff", "unix_date"),
}
"""What takes a date where it is given an instant or a wall clock."""
_OF_TEXT: Final = {"substring", "substr", "left", "right"}
_CLOCK_TARGETS: Final = {"DATE", "STRING", "TIMESTAMP_NTZ"}
_SECONDS: Final = 1_000_000
_INTERVAL_MONTHS: Final = {"MONTH": 1, "YEAR": 12}
_INTERVAL_MICROS: Final = {
    "DAY": DAY,
    "HOUR": 3600 * _SECONDS,
    "MINUTE": 60 * _SECONDS,
    "SECOND": _SECONDS,
}


_ARITHMETIC: Final = {"+", "-", "*", "/", "%", "mod"}
_OF_LITERAL: Final = Domain("decimal")
"""Of a decimal literal, whose type depends on what it meets."""


class RefusedError(Exception):
    """The term cannot be judged; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """Makes images of terms.

    Args:
        column: the image of a column; ``RefusedError`` if it has no order.
        bind: the bound tree of a predicate without NOT.
        zone: the session's time zone, if it is known.
    """

    column: Callable[[Reference], ColumnImage]
    bind: Callable[[Predicate], Bound]
    zone: str | None = None

    def compile(self, term: Term | Literal) -> Image:
        """The image of ``term``.

        Raises:
            RefusedError: only Spark can say what it is.
        """
        match term:
            case Reference():
                return self.column(term)
            case Call("interval"):
                raise RefusedError("an interval")
            case Call(("+" | "-") as sign, (left, Call("interval") as step)):
                return self._moved(term, self.compile(left), sign, step)
            case Call("+", (Call("interval") as step, right)):
                return self._moved(term, self.compile(right), "+", step)
            case Call(name, arguments):
                images = [self._argument(name, one) for one in arguments]
                return self._call(name, _as_doubles(images), str(term))
            case Case():
                return self._case(term)
            case _:
                return _literal(term)

    def _argument(self, name: str, argument: Term | Literal) -> Image:
        if name in _ARITHMETIC and isinstance(argument, Decimal):
            # Only next to a double, which makes a double of it.
            return ConstantImage(_OF_LITERAL, float(argument), str(argument))
        return self.compile(argument)

    def _call(self, name: str, images: Sequence[Image], text: str) -> Image:
        if name == "cast":
            return self._cast(images, text)
        if name == "date_trunc":
            return self._date_trunc(images, text)
        if name in {"+", "-"}:
            shifted = self._shifted(name, images, text)
            if shifted is not None:
                return shifted
        if name in _OF_CLOCKS:
            images = [self._as_clock(image) for image in images]
        elif name in _OF_DATES:
            images = [self._as_date(image) for image in images]
        elif name in _OF_TEXT:
            images = [self._as_text(images[0]), *images[1:]] if images else images
        return _applied(name, images, text)

    def _cast(self, images: Sequence[Image], text: str) -> Image:
        image, target = images[0], images[1].value(None)
        domain = image.domain
        if domain is None:
            raise RefusedError("a cast of NULL")
        if target in {"TIMESTAMP", "TIMESTAMP_LTZ"}:
            if domain.name == "timestamp":
                return image
            if domain.name == "date":
                image = _through(dates.midnight(), image, text)
            elif domain.name != "timestamp_ntz":
                raise RefusedError("a cast of the column")
            return _through(dates.instant(self.zone), image, text)
        if domain.name == "timestamp" and target in {"BIGINT", "LONG"}:
            whole_seconds = Function(integer(64), lambda t: t // _SECONDS, 1)
            return _through(whole_seconds, image, text)
        if target in _CLOCK_TARGETS:
            image = self._as_clock(image)
        try:
            return _applied("cast", [image, images[1]], text)
        except RefusedError:
            raise RefusedError("a cast of the column") from None

    def _date_trunc(self, images: Sequence[Image], text: str) -> Image:
        if len(images) != 2 or images[1].domain is None:
            raise RefusedError("the function date_trunc")
        moment = images[1]
        if images[1].domain.name == "date":
            moment = _through(dates.midnight(), moment, text)
        local = _applied("date_trunc", [images[0], self._as_clock(moment)], text)
        return _through(dates.instant(self.zone), local, text)

    def _shifted(self, sign: str, images: Sequence[Image], text: str) -> Image | None:
        """A date and a number of days; None for any other sum."""
        if len(images) != 2:
            return None
        left, right = images
        if _is(left, "date") and _is(right, "int"):
            name = "date_add" if sign == "+" else "date_sub"
            return _applied(name, [left, right], text)
        if sign == "+" and _is(left, "int") and _is(right, "date"):
            return _applied("date_add", [right, left], text)
        return None

    def _moved(self, term: Call, image: Image, sign: str, step: Call) -> Image:
        """A date or a time, and an interval."""
        number, unit = step.arguments
        if not isinstance(number, int) or image.domain is None:
            raise RefusedError("an interval")
        number = number if sign == "+" else -number
        months = _INTERVAL_MONTHS.get(str(unit))
        name = image.domain.name
        if name == "date" and months is not None:
            constant = ConstantImage(integer(32), number * months, str(number))
            return _applied("add_months", [image, constant], str(term))
        if name == "date" and unit == "DAY":
            constant = ConstantImage(integer(32), number, str(number))
            return _applied("date_add", [image, constant], str(term))
        if name == "timestamp_ntz" and unit in _INTERVAL_MICROS:
            distance = ConstantImage(
                integer(64), number * _INTERVAL_MICROS[str(unit)], str(number)
            )
            sum_ = FUNCTIONS["+"]([Argument(integer(64)), argument_of(distance)])
            assert sum_ is not None
            moved = Function(image.domain, sum_.apply, 1, sum_.span)
            return CallImage(moved, (image, distance), str(term))
        raise RefusedError("an interval")

    def _case(self, term: Case) -> Image:
        values = [self.compile(value) for _, value in term.branches]
        default = self.compile(term.otherwise)
        domain = _common_domain([*values, default])
        values = [_in_domain(image, domain) for image in values]
        choices, columns = [], list(merged_columns([*values, default]))
        for (condition, _), image in zip(term.branches, values, strict=True):
            bound = self.bind(push_not(condition))
            otherwise = self.bind(push_not(is_not_true(condition)))
            choices.append(Choice(bound, otherwise, image))
            columns += self._columns_of(bound) + self._columns_of(otherwise)
        unique = tuple({column.name: column for column in columns}.values())
        default = _in_domain(default, domain)
        return CaseImage(domain, tuple(choices), default, unique, str(term))

    def _columns_of(self, tree: Bound) -> list[ColumnImage]:
        names = {leaf.column for leaf in leaves(tree)}
        return [self.column(Reference((name,))) for name in sorted(names)]

    def _as_clock(self, image: Image) -> Image:
        if not _is(image, "timestamp"):
            return image
        return _through(dates.wall_clock(self.zone), image, image.expression)

    def _as_date(self, image: Image) -> Image:
        image = self._as_clock(image)
        if _is(image, "timestamp_ntz"):
            return _through(dates.to_date(), image, image.expression)
        return image

    def _as_text(self, image: Image) -> Image:
        if not _is(image, "date", "timestamp", "timestamp_ntz"):
            return image
        kind = ConstantImage(Domain("string"), "STRING", "'STRING'")
        return _applied("cast", [self._as_clock(image), kind], image.expression)


def fold(term: Term) -> tuple[Literal, str] | None:
    """The one value of a term without columns, and its type where that is not plain.

    None if only Spark can tell.
    """

    def no_column(_: Reference) -> ColumnImage:
        raise RefusedError("a column")

    def no_condition(_: Predicate) -> Bound:
        raise RefusedError("a condition")

    try:
        image = Compiler(no_column, no_condition).compile(term)
        plain = image.value(None)
    except (RefusedError, UnsureError):
        return None
    if plain is None or image.domain is None:
        return None
    domain = image.domain
    match domain.name:
        case "int":
            return plain, _INTEGERS.get(domain.bits, "")
        case "float" if domain.bits == 64:
            return plain, ""
        case "string":
            return plain, ""
        case "bool":
            return bool(plain), ""
        case "date":
            ordinal = _EPOCH.toordinal() + int(plain)
            if 1 <= ordinal <= date.max.toordinal():
                return date.fromordinal(ordinal), ""
    return None


_INTEGERS: Final = {8: "TINYINT", 16: "SMALLINT", 64: "BIGINT"}
"""The types that a number does not have by itself."""


def _applied(name: str, images: Sequence[Image], text: str) -> Image:
    """A function of images, settled for their types."""
    resolver = FUNCTIONS.get(name)
    if resolver is None:
        raise RefusedError(f"the function {name}")
    found = resolver([argument_of(image) for image in images])
    if found is None:
        raise RefusedError(f"{name} of these types")
    return CallImage(found, tuple(images), text)


def _as_doubles(images: Sequence[Image]) -> Sequence[Image]:
    """Decimal literals as doubles, where the other operand is one.

    Raises:
        RefusedError: it is not.
    """
    if all(image.domain is not _OF_LITERAL for image in images):
        return images
    double = Domain("float", bits=64)
    if not any(image.domain == double for image in images):
        raise RefusedError("arithmetic with decimals")
    return [
        ConstantImage(double, image.value(None), image.expression)
        if image.domain is _OF_LITERAL
        else image
        for image in images
    ]


def _through(function: Function, image: Image, text: str) -> Image:
    return CallImage(function, (image,), text)


def _is(image: Image, *names: str) -> bool:
    return image.domain is not None and image.domain.name in names


def _literal(value: Literal) -> ConstantImage:
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
        case int() if -(1 << 63) <= value < 1 << 63:
            bits = 32 if -(1 << 31) <= value < 1 << 31 else 64
            return ConstantImage(integer(bits), value, text)
        case float():
            return ConstantImage(Domain("float", bits=64), value, text)
        case str():
            return ConstantImage(Domain("string"), value, text)
        case bytes():
            return ConstantImage(Domain("binary"), value, text)
        case date() if not isinstance(value, datetime):
            return ConstantImage(Domain("date"), (value - _EPOCH).days, text)
        case _:
            raise RefusedError(f"{text} as an argument")


def _common_domain(images: Sequence[Image]) -> Domain:
    """The type of a CASE, where Spark casts no branch but to a wider integer."""
    domains = [image.domain for image in images if image.domain is not None]
    if not domains:
        raise RefusedError("a CASE of NULLs")
    names = {domain.name for domain in domains}
    if names in ({"int"}, {"float"}):
        return max(domains, key=lambda domain: domain.bits)
    if names == {"float", "int"}:
        doubles = [domain for domain in domains if domain.name == "float"]
        small = all(
            not image.columns and abs(int(image.value(None) or 0)) <= 1 << 24
            for image in images
            if _is(image, "int")
        )
        if small and all(domain.bits == 64 for domain in doubles):
            return doubles[0]
    elif len(set(domains)) == 1:
        return domains[0]
    raise RefusedError("a CASE whose branches differ in type")


def _in_domain(image: Image, domain: Domain) -> Image:
    """A branch as a value of the type of its CASE."""
    if _is(image, "int") and domain.name == "float":
        number = image.value(None)
        assert isinstance(number, int)
        return ConstantImage(domain, float(number), image.expression)
    return image
