"""Terms become images: names are columns, functions are settled for their types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Final

from skipindex.expressions import (
    Call,
    Case,
    Literal,
    Predicate,
    Reference,
    Term,
    push_not,
)
from skipindex.expressions.domain import EPOCH, Domain
from skipindex.expressions.not_judged import NotJudgedError
from skipindex.expressions.truth import is_not_true
from skipindex.planner.binding.budget import spend
from skipindex.planner.binding.cases import CaseImage, Choice, CoalesceImage
from skipindex.planner.binding.extremes import ExtremeImage
from skipindex.planner.binding.shifts import moved, shifted
from skipindex.planner.binding.terms import (
    ColumnImage,
    ConstantImage,
    Image,
    merged_columns,
)
from skipindex.planner.binding.typed_calls import (
    UNTYPED,
    applied,
    constant,
    is_of,
    moment_image,
    through,
    with_type,
)
from skipindex.planner.bound_predicate import Bound, leaves
from skipindex.planner.functions import dates
from skipindex.planner.functions.calendar import SECOND
from skipindex.planner.functions.registry import Function, UnsureError, integer

_OF_CLOCKS: Final = {
    *("year", "quarter", "month", "day", "dayofmonth", "dayofyear", "dayofweek"),
    *("weekday", "weekofyear", "hour", "minute", "second"),
}
"""What takes a wall clock where it is given an instant."""
_OF_DATES: Final = {
    *("last_day", "trunc", "date_add", "dateadd", "date_sub", "add_months"),
    *("datediff", "date_diff", "unix_date"),
}
"""What takes a date where it is given an instant or a wall clock."""
_OF_TEXT: Final = {"substring", "substr", "left", "right"}
_CLOCK_TARGETS: Final = {"DATE", "STRING", "TIMESTAMP_NTZ"}
_ARITHMETIC: Final = {"+", "-", "*", "/", "%", "mod"}


def _no_column_named(name: str) -> ColumnImage:
    raise NotJudgedError(f"the column {name}")


@dataclass(frozen=True, slots=True)
class Compiler:
    """Makes images of terms.

    Args:
        column: the image of a column; ``NotJudgedError`` if it has no order.
        column_named: of a column that a bound leaf is about.
        bind: the bound tree of a predicate without NOT.
        zone: the session's time zone, if it is known.
    """

    column: Callable[[Reference], ColumnImage]
    bind: Callable[[Predicate], Bound]
    zone: str | None = None
    column_named: Callable[[str], ColumnImage] = _no_column_named

    def compile(self, term: Term | Literal) -> Image:
        """The image of ``term``.

        Raises:
            NotJudgedError: only Spark can say what it is.
        """
        spend()
        match term:
            case Reference():
                return self.column(term)
            case Call("coalesce", arguments):
                return self._coalesce(arguments, str(term))
            case Call(("greatest" | "least") as name, (_, _, *_) as arguments):
                typed, domain = self._alike(arguments)
                columns, greatest = merged_columns(typed), name == "greatest"
                return ExtremeImage(domain, typed, columns, str(term), greatest)
            case Call("cast", (datetime() as moment, "TIMESTAMP_NTZ")):
                return moment_image(moment, "timestamp_ntz", self.zone)
            case datetime():
                return moment_image(term, "timestamp", self.zone)
            case Call("interval"):
                raise NotJudgedError("an interval")
            case Call(("+" | "-") as sign, (left, Call("interval") as step)):
                return moved(term, self.compile(left), sign, step, self.zone)
            case Call("+", (Call("interval") as step, right)):
                return moved(term, self.compile(right), "+", step, self.zone)
            case Call(name, arguments):
                images = [self._argument(name, one) for one in arguments]
                return self._call(name, with_type(images), str(term))
            case Case():
                return self._case(term)
            case _:
                return constant(term)

    def _argument(self, name: str, argument: Term | Literal) -> Image:
        if name in _ARITHMETIC and isinstance(argument, Decimal):
            # Its type is that of the other operand.
            return ConstantImage(UNTYPED, float(argument), str(argument))
        return self.compile(argument)

    def _call(self, name: str, images: Sequence[Image], text: str) -> Image:
        if name == "cast":
            return self._cast(images, text)
        if name == "date_trunc":
            return self._date_trunc(images, text)
        if name in {"+", "-"}:
            sum_ = shifted(name, images, text)
            if sum_ is not None:
                return sum_
        if name == "date_format" and images:
            images = [self._as_existing(images[0]), *images[1:]]
        elif name in _OF_CLOCKS:
            images = [self._as_clock(image) for image in images]
        elif name in _OF_DATES:
            images = [self._as_date(image) for image in images]
        elif name in _OF_TEXT:
            images = [self._as_text(images[0]), *images[1:]] if images else images
        return applied(name, images, text)

    def _cast(self, images: Sequence[Image], text: str) -> Image:
        image, target = images[0], images[1].value(None)
        domain = image.domain
        if domain is None:
            raise NotJudgedError("a cast of NULL")
        if target in {"TIMESTAMP", "TIMESTAMP_LTZ"}:
            if domain.name == "timestamp":
                return image
            if domain.name == "date":
                image = through(dates.midnight(), image, text)
            elif domain.name != "timestamp_ntz":
                raise NotJudgedError("a cast of the column")
            return through(dates.instant(self.zone), image, text)
        if domain.name == "timestamp" and target in {"BIGINT", "LONG"}:
            whole_seconds = Function(
                integer(64), lambda t: t // SECOND, 1, key="seconds"
            )
            return through(whole_seconds, image, text)
        if target in _CLOCK_TARGETS:
            image = self._as_clock(image)
        try:
            return applied("cast", [image, images[1]], text)
        except NotJudgedError:
            raise NotJudgedError("a cast of the column") from None

    def _date_trunc(self, images: Sequence[Image], text: str) -> Image:
        if len(images) != 2 or images[1].domain is None:
            raise NotJudgedError("the function date_trunc")
        moment = self._as_existing(images[1])
        local = applied("date_trunc", [images[0], moment], text)
        return through(dates.instant(self.zone), local, text)

    def _case(self, term: Case) -> Image:
        values = [self.compile(value) for _, value in term.branches]
        default = self.compile(term.otherwise)
        domain = _common_domain([*values, default])
        values = [_in_domain(image, domain) for image in values]
        default = _in_domain(default, domain)
        choices, columns = [], list(merged_columns([*values, default]))
        for (condition, _), image in zip(term.branches, values, strict=True):
            bound = self.bind(push_not(condition))
            otherwise = self.bind(push_not(is_not_true(condition)))
            choices.append(Choice(bound, otherwise, image))
            columns += self._columns_of(bound) + self._columns_of(otherwise)
        unique = tuple({column.name: column for column in columns}.values())
        return CaseImage(domain, tuple(choices), default, unique, str(term))

    def _columns_of(self, tree: Bound) -> list[ColumnImage]:
        names = {leaf.column for leaf in leaves(tree)}
        return [self.column_named(name) for name in sorted(names)]

    def _alike(
        self, arguments: Sequence[Term | Literal]
    ) -> tuple[tuple[Image, ...], Domain]:
        """The arguments but NULL, in the one type that Spark gives them."""
        images = [self.compile(one) for one in arguments]
        domain = _common_domain(images)
        typed = (_in_domain(image, domain) for image in images)
        return tuple(image for image in typed if image.domain is not None), domain

    def _coalesce(self, arguments: Sequence[Term | Literal], text: str) -> Image:
        images, domain = self._alike(arguments)
        some: list[Image] = []
        for image in images:
            if isinstance(image, CoalesceImage):
                some += image.arguments
            else:
                some.append(image)
        return CoalesceImage(domain, tuple(some), merged_columns(some), text)

    def _as_clock(self, image: Image) -> Image:
        if not is_of(image, "timestamp"):
            return image
        return through(dates.wall_clock(self.zone), image, image.expression)

    def _as_existing(self, image: Image) -> Image:
        """The wall clock of what Spark casts to an instant first."""
        if is_of(image, "timestamp"):
            return self._as_clock(image)
        if is_of(image, "date"):
            image = through(dates.midnight(), image, image.expression)
        existing = dates.existing(self.zone)
        if existing is None or not is_of(image, "timestamp_ntz"):
            return image
        return through(existing, image, image.expression)

    def _as_date(self, image: Image) -> Image:
        image = self._as_clock(image)
        if is_of(image, "timestamp_ntz"):
            return through(dates.to_date(), image, image.expression)
        return image

    def _as_text(self, image: Image) -> Image:
        if not is_of(image, "date", "timestamp", "timestamp_ntz"):
            return image
        kind = ConstantImage(Domain("string"), "STRING", "'STRING'")
        return applied("cast", [self._as_clock(image), kind], image.expression)


def fold(term: Term) -> tuple[Literal, str] | None:
    """The one value of a term without columns, and its type where that is not plain.

    None if only Spark can tell.
    """

    def no_column(_: Reference) -> ColumnImage:
        raise NotJudgedError("a column")

    def no_condition(_: Predicate) -> Bound:
        raise NotJudgedError("a condition")

    try:
        image = Compiler(no_column, no_condition).compile(term)
        plain = image.value(None)
    except (NotJudgedError, UnsureError):
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
            ordinal = EPOCH.toordinal() + int(plain)
            if 1 <= ordinal <= date.max.toordinal():
                return date.fromordinal(ordinal), ""
    return None


_INTEGERS: Final = {8: "TINYINT", 16: "SMALLINT", 64: "BIGINT"}
"""The types that a number does not have by itself."""


def _common_domain(images: Sequence[Image]) -> Domain:
    """The type of a CASE, where Spark casts no branch but to a wider integer."""
    domains = [image.domain for image in images if image.domain is not None]
    if not domains:
        raise NotJudgedError("a CASE of NULLs")
    names = {domain.name for domain in domains}
    if names in ({"int"}, {"float"}):
        return max(domains, key=lambda domain: domain.bits)
    if names == {"float", "int"}:
        doubles = [domain for domain in domains if domain.name == "float"]
        small = all(
            not image.columns and abs(int(image.value(None) or 0)) <= 1 << 24
            for image in images
            if is_of(image, "int")
        )
        if small and all(domain.bits == 64 for domain in doubles):
            return doubles[0]
    elif len(set(domains)) == 1:
        return domains[0]
    raise NotJudgedError("a CASE whose branches differ in type")


def _in_domain(image: Image, domain: Domain) -> Image:
    """A branch as a value of the type of its CASE."""
    if is_of(image, "int") and domain.name == "float":
        number = image.value(None)
        assert isinstance(number, int)
        return ConstantImage(domain, float(number), image.expression)
    return image
