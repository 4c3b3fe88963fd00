"""Evaluating the constant parts of a condition.

    >>> from skipindex.conditions.sql.parser import parse
    >>> print(with_values(parse("d > DATE '2024-01-31' + 1 AND a = CAST('5' AS INT)")))
    d > DATE '2024-02-01' AND a = 5

If only Spark can compute a value, the condition is one that every row may match.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Final
from zoneinfo import ZoneInfo

from skipindex import expressions as ex
from skipindex.conditions.binding.compiler import Compiler
from skipindex.conditions.binding.literal_casts import cast
from skipindex.conditions.binding.terms import BoundColumn
from skipindex.conditions.bound_predicate import BoundPredicate
from skipindex.conditions.budget import PlanBudget
from skipindex.conditions.functions import FUNCTIONS
from skipindex.conditions.functions.calendar import CLOCK_UNITS, DAY
from skipindex.conditions.functions.clock import Clock, clock_of, formatted, moved
from skipindex.conditions.functions.registry import UNSURE, Coercion
from skipindex.conditions.trees.comparisons import compared, listed
from skipindex.conditions.trees.operands import is_constant, typed
from skipindex.expressions import Call, Case, Literal, Predicate, Reference, Term
from skipindex.expressions.domain import EPOCH
from skipindex.expressions.not_judged import REASONS, NotJudgedError

_ON_CLOCK: Final = {Coercion.CLOCK, Coercion.DATE}
"""Coercions of an instant to what the session's clock shows then."""
_INTEGERS: Final = {8: "TINYINT", 16: "SMALLINT", 64: "BIGINT"}
"""The types that a number does not have by itself."""


def with_values(tree: Predicate, zone: str | None = None) -> Predicate:
    """The tree with a literal for each constant, in a session of this time zone."""
    return _Constants(zone).conditions(tree)


@dataclass(frozen=True, slots=True)
class _Constants:
    """Computes constants for a session of a time zone, if it is known."""

    zone: str | None

    def conditions(self, tree: Predicate, *, inner: bool = False) -> Predicate:
        """A tree whose leaves get values one by one, unless it is in a term."""
        match tree:
            case ex.And(children) | ex.Or(children):
                parts = [self.conditions(child, inner=inner) for child in children]
                return type(tree)(tuple(parts))
            case ex.Not(child):
                return ex.Not(self.conditions(child, inner=inner))
        try:
            return self._leaf(tree)
        except NotJudgedError as refused:
            if inner:
                raise
            return ex.Unsupported(ex.to_sql(tree), str(refused))

    def _leaf(self, leaf: Predicate) -> Predicate:
        match leaf:
            case ex.Comparison(column, operator, value):
                term, known = self.argument(column), _plain(self.argument(value))
                if is_constant(term):
                    return ex.Constant(compared(_plain(term), operator, known))
                return ex.Comparison(_term(term), operator, known)
            case ex.In(column, values, negated):
                term = self.argument(column)
                if Call in set(map(type, values)):
                    values = tuple(_plain(self.argument(one)) for one in values)
                if is_constant(term):
                    tree = ex.Constant(listed(_plain(term), values))
                    return ex.push_not(tree, negate=negated)
                return ex.In(_term(term), values, negated)
            case ex.IsNull(column, negated):
                term = self.argument(column)
                if is_constant(term):
                    return ex.Constant(negated)
                return ex.IsNull(_term(term), negated)
            case ex.Like(column, pattern):
                text = _plain(self.argument(pattern))
                if not isinstance(text, str):
                    raise NotJudgedError("LIKE of anything but a column and a string")
                term = _term(self.argument(column))
                return replace(leaf, column=term, pattern=text)
            case ex.ColumnComparison(left, operator, right):
                sides = [_term(self.argument(side)) for side in (left, right)]
                return ex.ColumnComparison(sides[0], operator, sides[1])
            case _:
                return leaf

    def argument(self, argument: Term | Literal) -> Term | Literal:
        """An argument of a function, with literals for constants in it."""
        match argument:
            case Case(branches, otherwise):
                chosen = [
                    (self.conditions(tree, inner=True), self._inside(value))
                    for tree, value in branches
                ]
                return Case(tuple(chosen), self._inside(otherwise))
            case Call("interval" | "timestamp_ntz"):
                return argument
            case Call("cast", (value, str(type_name))):
                return self._cast(self.argument(value), type_name)
            case Call(name, arguments):
                call = Call(name, tuple(map(self._inside, arguments)))
                return self._value(call) if is_constant(call) else call
            case _:
                return argument

    def _inside(self, argument: Term | Literal) -> Term | Literal:
        """The same inside another term, where a FLOAT would be computed with."""
        match self.argument(argument):
            case Call("cast", (float(), "FLOAT" | "REAL")):
                raise NotJudgedError("arithmetic with a FLOAT")
            case result:
                return result

    def _cast(self, value: Term | Literal, type_name: str) -> Term | Literal:
        if not is_constant(value):
            return Call("cast", (value, type_name))
        name, _, digits = type_name.rstrip(")").partition("(")
        parameters = [int(one) for one in digits.split(",") if one]
        return typed(cast(_plain(value), name, parameters, self._clock()), name)

    def _clock(self) -> Clock | None:
        return clock_of(self.zone, relies=True)

    def _value(self, call: Call) -> Call | Literal:
        """The value of a function of literals."""
        result: Call | Literal
        match call:
            case Call("+" | "-", (moment, Call("interval", (int(n), str(unit))))):
                n = n if call.name == "+" else -n
                try:
                    result = self._later(moment, n, unit)
                except (ValueError, OverflowError):  # beyond the year 9999
                    result = None
            case Call("+", (Call("interval") as step, other)):
                return self._value(Call("+", (other, step)))
            case _:
                result = self._by_clock(call)
        if result is None:
            raise NotJudgedError(REASONS.get(call.name, f"the function {call.name}"))
        return result

    def _later(self, moment: Term | Literal, number: int, unit: str) -> Call | Literal:
        """A time moved by an interval; None if only Spark knows."""
        match moment:
            case Call("timestamp_ntz", (datetime() as wall,)):
                return typed(moved(wall, number, unit), "TIMESTAMP_NTZ")
            case datetime() if not isinstance(moment.tzinfo, ZoneInfo):
                is_wall = moment.tzinfo is None
            case _:
                return _computed(Call("+", (moment, Call("interval", (number, unit)))))
        # Days of an instant, and 24 hours too, are days of the session's local time.
        is_long = abs(number) * CLOCK_UNITS.get(unit, DAY) >= DAY
        is_day = unit == "DAY" or unit not in CLOCK_UNITS
        clock = self._clock()
        if clock is None or not (is_wall or is_long) or (is_wall and is_day):
            return moved(moment, number, unit) if is_wall or not is_long else None
        return clock.later(_instant(clock, moment), number, unit)

    def _by_clock(self, call: Call) -> Call | Literal:
        """The value of a function that may convert instants to the session's clock."""
        clock = self._clock()
        if clock is None:
            return _computed(call)
        match call:
            case Call("date_trunc", (str(unit), date() as moment)):
                return clock.truncated(unit, _instant(clock, moment))
            case Call("date_format", (date() as moment, str(pattern))):
                return formatted(clock.wall(_instant(clock, moment)), pattern)
        known = FUNCTIONS.get(call.name)
        if known and known.coercion in _ON_CLOCK and call.name != "unix_date":
            shown = tuple(_shown(clock, one) for one in call.arguments)
            call = replace(call, arguments=shown)
        return _computed(call)


def _instant(clock: Clock, moment: date) -> datetime:
    """When a day begins, or the clock shows a time."""
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, datetime.min.time())
    return moment if moment.tzinfo is not None else clock.instant(moment)


def _shown(clock: Clock, argument: Term | Literal) -> Term | Literal:
    """An argument, with what the clock shows instead of an instant."""
    if isinstance(argument, datetime) and argument.tzinfo is not None:
        return Call("timestamp_ntz", (clock.wall(argument),))
    return argument


def _computed(call: Call) -> Call | Literal:
    """The value of a function of literals, typed; None if only Spark knows."""

    def no_column(_: Reference) -> BoundColumn:
        raise NotJudgedError("a column")

    def no_condition(_: Predicate) -> BoundPredicate:
        raise NotJudgedError("a condition")

    try:
        operand = Compiler(no_column, no_condition, PlanBudget.of(call)).compile(call)
        plain = operand.value(None)
    except (NotJudgedError, *UNSURE):
        return None
    domain = operand.domain
    if plain is None or domain is None:
        return None
    match domain.name:
        case "int":
            return typed(plain, _INTEGERS.get(domain.bits, ""))
        case "float" | "string" if domain.bits != 32:
            return plain
        case "bool":
            return bool(plain)
        case "date":
            ordinal = EPOCH.toordinal() + int(plain)
            if 1 <= ordinal <= date.max.toordinal():
                return date.fromordinal(ordinal)
    return None


def _plain(value: Term | Literal) -> Literal:
    """The value of a literal, without the type that it does not tell."""
    match value:
        case Call("cast" | "timestamp_ntz", (plain, *_)):
            return _plain(plain)
        case Reference() | Call() | Case():
            raise NotJudgedError("an interval")
        case _:
            return value


def _term(argument: Term | Literal) -> Term:
    if isinstance(argument, Reference | Call | Case) and not is_constant(argument):
        return argument
    raise NotJudgedError("no column is compared with a literal")
