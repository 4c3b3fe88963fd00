"""Terms to bound terms: names become columns, functions get their types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Final

from skipindex.conditions.binding.cases import (
    BoundCase,
    BoundCoalesce,
    BoundExtreme,
    Choice,
)
from skipindex.conditions.binding.clocks import bound_moment, coerced, moved, shifted
from skipindex.conditions.binding.terms import (
    BoundColumn,
    BoundLiteral,
    BoundTerm,
    merged_columns,
)
from skipindex.conditions.binding.typed_calls import (
    UNTYPED,
    applied,
    builtin,
    constant,
    is_of,
    through,
    with_type,
)
from skipindex.conditions.bound_predicate import BoundPredicate, leaves
from skipindex.conditions.budget import PlanBudget
from skipindex.conditions.functions import dates
from skipindex.conditions.functions.calendar import SECOND
from skipindex.conditions.functions.casts import INTEGER_BITS
from skipindex.conditions.functions.reading import clock_of_text, date_of_text
from skipindex.conditions.functions.registry import Coercion, Function, integer
from skipindex.expressions import (
    Call,
    Case,
    Literal,
    Predicate,
    Reference,
    Term,
    push_not,
)
from skipindex.expressions.domain import Domain
from skipindex.expressions.not_judged import NotJudgedError
from skipindex.expressions.truth import is_not_true

_CLOCK_TARGETS: Final = {"DATE", "STRING", "TIMESTAMP_NTZ"}
_TIME_TARGETS: Final = {"DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"}
_OF_TIMES: Final = {Coercion.CLOCK, Coercion.DATE, Coercion.INSTANT}
_SEVERAL_TYPES: Final = "a number to Spark, and a time to other readers"
_SECONDS: Final = ("unix_timestamp", "to_unix_timestamp")
_READ_ALIKE: Final = dict.fromkeys(
    ("to_timestamp", "try_to_timestamp", "to_date", *_SECONDS), "to_timestamp_ntz"
)
"""Functions that first read a local time from text, as another one does."""
_ARITHMETIC: Final = {"+", "-", "*", "/", "%", "mod"}


def _no_column_named(name: str) -> BoundColumn:
    raise NotJudgedError(f"the column {name}")


@dataclass(frozen=True, slots=True)
class Compiler:
    """Makes bound terms of terms.

    Args:
        column: the bound term of a column; ``NotJudgedError`` if it has no order.
        column_named: the bound term of a column, by the name that a bound leaf has.
        bind: the bound tree of a predicate without NOT.
        budget: of the condition that the terms are in.
        zone: the session's time zone, if it is known.
        rounds_up: whether nanoseconds count as the microsecond that is not before them.
        rounded: the terms of nanoseconds that were rounded.
    """

    column: Callable[[Reference], BoundTerm]
    bind: Callable[[Predicate], BoundPredicate]
    budget: PlanBudget
    zone: str | None = None
    column_named: Callable[[str], BoundColumn] = _no_column_named
    rounds_up: bool = False
    rounded: list[BoundTerm] = field(default_factory=list)

    def compile(self, term: Term | Literal) -> BoundTerm:
        """The bound term of ``term``."""
        self.budget.spend()
        match term:
            case Reference():
                return self.column(term)
            case Call("coalesce", arguments):
                return self._coalesce(arguments, str(term))
            case Call(("greatest" | "least") as name, (_, _, *_) as arguments):
                typed, domain = self._alike(arguments)
                columns, greatest = merged_columns(typed), name == "greatest"
                return BoundExtreme(domain, typed, columns, str(term), greatest)
            case Call("cast", (int(number), str(kind))) if kind in INTEGER_BITS:
                return BoundLiteral(integer(INTEGER_BITS[kind]), number, str(term))
            case Call("timestamp_ntz", (datetime() as moment,)):
                return bound_moment(moment, "timestamp_ntz", self.zone)
            case datetime():
                return bound_moment(term, "timestamp", self.zone)
            case Call("interval"):
                raise NotJudgedError("an interval")
            case Call(("+" | "-") as sign, (moment, Call("interval") as step)) | Call(
                "+" as sign, (Call("interval") as step, moment)
            ):
                operand = self.compile(moment)
                return moved(operand, sign, step, str(term), self.zone)
            case Call(name, arguments):
                operands = [self._argument(name, one) for one in arguments]
                return self._call(name, with_type(operands), str(term))
            case Case():
                return self._case(term)
            case _:
                return constant(term)

    def _argument(self, name: str, argument: Term | Literal) -> BoundTerm:
        if name in _ARITHMETIC and isinstance(argument, Decimal):
            # Its type is that of the other operand.
            return BoundLiteral(UNTYPED, float(argument), str(argument))
        return self.compile(argument)

    def _call(self, name: str, operands: Sequence[BoundTerm], text: str) -> BoundTerm:
        if name == "cast":
            return self._cast(operands, text)
        if name in {"+", "-"}:
            sum_ = shifted(name, operands, text)
            if sum_ is not None:
                return sum_
        function = builtin(name)
        coercion = function.coercion
        if coercion not in _OF_TIMES and any(map(_is_nanoseconds, operands)):
            raise NotJudgedError(f"{name} of nanoseconds: {_SEVERAL_TYPES}")
        operands = [self._time(operand) for operand in operands]
        kind = function.cast_of_text
        if kind:
            operands = [self._read(operand, kind, text) for operand in operands]
        operands = [coerced(operand, coercion, self.zone) for operand in operands]
        result = applied(_READ_ALIKE.get(name, name), operands, text)
        if name == "date_trunc" or name in _READ_ALIKE:
            # The local time of an instant.
            result = through(dates.instant(self.zone), result, text)
        if name in _SECONDS:
            return through(dates.unix_seconds(), result, text)
        return self._cast_to(result, "DATE", text) if name == "to_date" else result

    def _read(self, operand: BoundTerm, kind: str, text: str) -> BoundTerm:
        """A text of the rows as the date or the time that Spark casts it to."""
        if not operand.columns or not is_of(operand, "string"):
            return operand
        return self._cast_to(operand, kind, text)

    def _cast_to(self, operand: BoundTerm, kind: str, text: str) -> BoundTerm:
        return self._cast([operand, constant(kind)], text)

    def _time(self, operand: BoundTerm) -> BoundTerm:
        """The operand, nanoseconds as microseconds that a reader may make of them."""
        if not _is_nanoseconds(operand):
            return operand
        assert operand.domain is not None
        if self.rounded:
            raise NotJudgedError("readers may round nanoseconds differently")
        self.rounded.append(operand)
        rounding = dates.microseconds(operand.domain, up=self.rounds_up)
        return through(rounding, operand, operand.expression)

    def _cast(self, operands: Sequence[BoundTerm], text: str) -> BoundTerm:
        operand, target = operands[0], operands[1].value(None)
        domain = operand.domain
        if domain is None:
            raise NotJudgedError("a cast of NULL")
        if domain.nanoseconds:
            if target not in _TIME_TARGETS:
                raise NotJudgedError(f"a cast of nanoseconds: {_SEVERAL_TYPES}")
            operand = self._time(operand)
            domain = Domain(domain.nanoseconds)
        if domain.name == "string" and target in _TIME_TARGETS:
            return self._read_cast(operand, str(target), text)
        if target in {"TIMESTAMP", "TIMESTAMP_LTZ"}:
            if domain.name == "timestamp":
                return operand
            if domain.name == "date":
                operand = through(dates.midnight(), operand, text)
            elif domain.name != "timestamp_ntz":
                raise NotJudgedError("a cast of the column")
            return through(dates.instant(self.zone), operand, text)
        if domain.name == "timestamp" and target in {"BIGINT", "LONG"}:
            whole_seconds = Function(
                integer(64), lambda t: t // SECOND, 1, key="seconds"
            )
            return through(whole_seconds, operand, text)
        if target in _CLOCK_TARGETS:
            operand = coerced(operand, Coercion.CLOCK, self.zone)
        try:
            return applied("cast", [operand, operands[1]], text)
        except NotJudgedError:
            raise NotJudgedError("a cast of the column") from None

    def _read_cast(self, operand: BoundTerm, target: str, text: str) -> BoundTerm:
        """A cast of text to a date or a time."""
        if target == "DATE":
            return through(date_of_text(), operand, text)
        if target == "TIMESTAMP_NTZ":
            return through(clock_of_text(None, moves=False), operand, text)
        shown = through(clock_of_text(self.zone, moves=True), operand, text)
        return through(dates.instant(self.zone), shown, text)

    def _case(self, term: Case) -> BoundTerm:
        values = [self.compile(value) for _, value in term.branches]
        default = self.compile(term.otherwise)
        domain = _common_domain([*values, default])
        values = [_in_domain(operand, domain) for operand in values]
        default = _in_domain(default, domain)
        choices, columns = [], list(merged_columns([*values, default]))
        for (condition, _), operand in zip(term.branches, values, strict=True):
            bound = self.bind(push_not(condition))
            otherwise = self.bind(push_not(is_not_true(condition)))
            choices.append(Choice(bound, otherwise, operand))
            columns += self._columns_of(bound) + self._columns_of(otherwise)
        unique = tuple({column.name: column for column in columns}.values())
        return BoundCase(domain, tuple(choices), default, unique, str(term))

    def _columns_of(self, tree: BoundPredicate) -> list[BoundColumn]:
        names = {leaf.column for leaf in leaves(tree)}
        return [self.column_named(name) for name in sorted(names)]

    def _alike(
        self, arguments: Sequence[Term | Literal]
    ) -> tuple[tuple[BoundTerm, ...], Domain]:
        """The arguments but NULL, in the one type that Spark gives them."""
        operands = [self.compile(one) for one in arguments]
        domain = _common_domain(operands)
        typed = (_in_domain(operand, domain) for operand in operands)
        return tuple(operand for operand in typed if operand.domain is not None), domain

    def _coalesce(self, arguments: Sequence[Term | Literal], text: str) -> BoundTerm:
        operands, domain = self._alike(arguments)
        some: list[BoundTerm] = []
        for operand in operands:
            if isinstance(operand, BoundCoalesce):
                some += operand.arguments
            else:
                some.append(operand)
        return BoundCoalesce(domain, tuple(some), merged_columns(some), text)


def _is_nanoseconds(operand: BoundTerm) -> bool:
    return operand.domain is not None and bool(operand.domain.nanoseconds)


def _common_domain(operands: Sequence[BoundTerm]) -> Domain:
    """The type of a CASE, where Spark casts no branch but to a wider integer."""
    domains = [operand.domain for operand in operands if operand.domain is not None]
    if not domains:
        raise NotJudgedError("a CASE of NULLs")
    names = {domain.name for domain in domains}
    if len({domain.nanoseconds for domain in domains}) > 1:
        raise NotJudgedError(f"nanoseconds beside others: {_SEVERAL_TYPES}")
    if names in ({"int"}, {"float"}):
        return max(domains, key=lambda domain: domain.bits)
    if names == {"float", "int"}:
        doubles = [domain for domain in domains if domain.name == "float"]
        small = all(
            not operand.columns and abs(int(operand.value(None) or 0)) <= 1 << 24
            for operand in operands
            if is_of(operand, "int")
        )
        if small and all(domain.bits == 64 for domain in doubles):
            return doubles[0]
    elif len(set(domains)) == 1:
        return domains[0]
    raise NotJudgedError("a CASE whose branches differ in type")


def _in_domain(operand: BoundTerm, domain: Domain) -> BoundTerm:
    """A branch as a value of the type of its CASE."""
    if is_of(operand, "int") and domain.name == "float":
        number = operand.value(None)
        assert isinstance(number, int)
        return BoundLiteral(domain, float(number), operand.expression)
    return operand
