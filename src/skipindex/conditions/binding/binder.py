"""Binding a predicate: names become columns, literals become domain values.

A condition that cannot be bound exactly becomes ``Unknown``, never the whole tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final, assert_never

from skipindex import expressions as ex
from skipindex.conditions.binding.comparison import ColumnBinding
from skipindex.conditions.binding.compiler import Compiler
from skipindex.conditions.binding.constants import with_values
from skipindex.conditions.binding.folders import (
    Folders,
    folder_columns,
    over_columns,
)
from skipindex.conditions.binding.inversion import BoundCall
from skipindex.conditions.binding.nanoseconds import NanosecondBinding, either_reading
from skipindex.conditions.binding.terms import BoundColumn, BoundTerm, preimage_of
from skipindex.conditions.bound_predicate import (
    NEVER,
    AllOf,
    AnyOf,
    BoundPredicate,
    ComparedColumns,
    Leaf,
    TruthValue,
    Unknown,
    unknowns,
)
from skipindex.conditions.budget import PlanBudget
from skipindex.conditions.columns import UNORDERED, ColumnInfo
from skipindex.conditions.functions.registry import UNSURE
from skipindex.errors import PredicateError
from skipindex.expressions.atoms import IntegerSet, NotNullAtom, NullAtom
from skipindex.expressions.domain import INT64_MAX, INT64_MIN
from skipindex.expressions.not_judged import (
    SESSION_VALUES,
    TWO_COLUMNS,
    NotJudgedError,
)
from skipindex.storage.deadline import check

_NAMED_VALUES: Final = SESSION_VALUES | {"USER"}
_REPEATED: Final = ("type list", "type large_list", "type fixed_size", "type map")

Resolve = Callable[[str], ColumnInfo]


@dataclass(frozen=True, slots=True)
class Binder:
    """Binds predicates to one table.

    Args:
        resolve: the column of a name; ``PredicateError`` if there is none.
        zone: the session's time zone, if it is known.
        folders: the values of partition columns; None is that no column is one.
        seen: the columns that leaves are about, by their stored names.
        budget: of the condition that is bound; None where none is yet.
    """

    resolve: Resolve
    zone: str | None = None
    folders: Folders | None = None
    seen: dict[str, BoundColumn] = field(default_factory=dict, compare=False)
    budget: PlanBudget | None = None

    def bind(self, predicate: ex.Predicate) -> BoundPredicate:
        """``predicate`` over atoms; TRUE for the same rows.

        Raises:
            PredicateError: a column does not exist, or its name is ambiguous.
        """
        return self._bind(ex.push_not(with_values(ex.shallow(predicate), self.zone)))

    def _bind(self, node: ex.Predicate) -> BoundPredicate:
        check()
        match node:
            case ex.And(children):
                return AllOf(tuple(map(self._bind, children)))
            case ex.Or(children):
                return AnyOf(tuple(map(self._bind, children)))
            case ex.Constant(value):
                # Nothing negates any more, so UNKNOWN may be read as FALSE.
                return TruthValue(value is True)
            case ex.Unsupported(text, reason):
                return Unknown(text, reason)
            case ex.Comparison() | ex.In() | ex.IsNull() | ex.Like():
                return self._atom(node)
            case ex.ColumnComparison():
                return self._compared(node)
            case ex.Not():
                raise AssertionError("push_not has removed every NOT")
            case _:
                assert_never(node)

    def _atom(
        self, node: ex.Comparison | ex.In | ex.IsNull | ex.Like
    ) -> BoundPredicate:
        try:
            return self._with_budget(node)._asked(node)  # noqa: SLF001 (this class)
        except NotJudgedError as refused:
            return Unknown(ex.to_sql(node), str(refused))
        except UNSURE:
            return Unknown(ex.to_sql(node), "only Spark can compute the value")

    def _with_budget(self, node: ex.Predicate) -> Binder:
        """A condition in another one shares the budget of that one."""
        return self if self.budget else replace(self, budget=PlanBudget.of(node))

    def _compared(self, node: ex.ColumnComparison) -> BoundPredicate:
        """Two columns whose values are ordered alike, whatever they are compared to."""
        text = ex.to_sql(node)
        sides: list[BoundColumn] = []
        within = self._with_budget(node)
        for term in (node.left, node.right):
            readings, problem = within._readings(term)  # noqa: SLF001 (this class)
            columns = [_column_of(reading) for reading in readings]
            match columns:
                case [BoundColumn() as column]:
                    sides.append(column)
                case _:
                    return Unknown(text, problem or TWO_COLUMNS)
        left, right = sides
        nanoseconds = left.domain.nanoseconds or right.domain.nanoseconds
        if nanoseconds or left.domain.tag != right.domain.tag:
            return Unknown(text, TWO_COLUMNS)  # Spark casts, or readers differ
        return ComparedColumns(
            text, TWO_COLUMNS, left=left.name, operator=node.operator, right=right.name
        )

    def _asked(
        self, node: ex.Comparison | ex.In | ex.IsNull | ex.Like
    ) -> BoundPredicate:
        text = ex.to_sql(node)
        readings, problem = self._readings(node.column)
        match node:
            case ex.Comparison(_, operator, None) if operator in ex.NULL_SAFE:
                negated = operator is ex.Operator.NULL_SAFE_NE
                node = ex.IsNull(node.column, negated)
            case ex.Comparison(_, _, None):
                return NEVER
            case ex.In(_, (), negated):  # true of NULL too
                return TruthValue(negated)
            case ex.In(_, values, negated) if negated and _has_null(values):
                return NEVER
        if not readings:
            return Unknown(text, problem, self._null_alone(node, text))
        down, *up = [self._answered(node, term, problem, text) for term in readings]
        if not up and self.folders and any(unknowns(down)):
            down = self._over_folders(node, readings[0].columns, text) or down
        return either_reading(node, down, up[0], text) if up else down

    def _null_alone(
        self, node: ex.Comparison | ex.In | ex.IsNull | ex.Like, text: str
    ) -> BoundPredicate | None:
        """Whether a list, a map or a struct is NULL, which needs no order."""
        if not isinstance(node, ex.IsNull) or not isinstance(node.column, ex.Reference):
            return None
        column, problem = self._column(node.column)
        if column is None or not problem.endswith(UNORDERED):
            return None
        atom = NotNullAtom if node.negated else NullAtom
        return Leaf(atom(column.name), text)

    def _answered(
        self,
        node: ex.Comparison | ex.In | ex.IsNull | ex.Like,
        operand: BoundTerm,
        problem: str,
        text: str,
    ) -> BoundPredicate:
        """The condition on a term, over the columns of the term."""
        domain = operand.domain
        if domain is None:
            return Unknown(text, problem)
        kind = NanosecondBinding if domain.nanoseconds else ColumnBinding
        if isinstance(operand, BoundColumn):
            return kind(operand.name, domain, self.zone, text).bind(node)
        if _beyond_bigint(node):
            return Unknown(text, "a function is compared with a number beyond bigint")
        asked = kind("", domain, self.zone, text).bind(node)
        return preimage_of(asked, operand, self._left)

    def _over_folders(
        self,
        node: ex.Comparison | ex.In | ex.IsNull | ex.Like,
        columns: Sequence[BoundColumn],
        text: str,
    ) -> BoundPredicate | None:
        """The condition on a function of partition columns, over each; None if not."""
        rows = self.folders(columns) if self.folders and len(columns) > 1 else None
        if rows is None:
            return None
        places = folder_columns(columns)

        def no_condition(_: ex.Predicate) -> BoundPredicate:
            raise NotJudgedError("a condition in a function of several columns")

        def column(reference: ex.Reference) -> BoundTerm:
            return places[self._bound_column(reference).name]

        try:
            operand = self._compiler(column, no_condition).compile(node.column)
            asked = self._answered(node, operand, "", text)
            return over_columns(asked, columns, rows, text)
        except NotJudgedError:
            return None

    def _readings(self, term: ex.Term) -> tuple[Sequence[BoundTerm], str]:
        """Readings of ``term``, two if readers round; none, and why, if unjudged."""
        try:
            if isinstance(term, ex.Reference):
                return [self._bound_column(term)], ""
            self._check_names(term)
            down = self._compiler(self._bound_column, self._bind)
            operand = down.compile(term)
            if not down.rounded:
                return [operand], ""
            up = replace(down, rounds_up=True, rounded=[])
            return [operand, up.compile(term)], ""
        except NotJudgedError as refused:
            return [], str(refused)

    @property
    def _left(self) -> PlanBudget:
        assert self.budget is not None
        return self.budget

    def _compiler(
        self,
        column: Callable[[ex.Reference], BoundTerm],
        bind: Callable[[ex.Predicate], BoundPredicate],
    ) -> Compiler:
        return Compiler(column, bind, self._left, self.zone, self.seen.__getitem__)

    def _bound_column(self, reference: ex.Reference) -> BoundColumn:
        """The bound term of a column; ``NotJudgedError`` if it has no order."""
        column, problem = self._column(reference)
        if column is None or column.domain is None:
            raise NotJudgedError(problem)
        operand = BoundColumn(column.name, column.domain, str(reference))
        self.seen[column.name] = operand
        return operand

    def _check_names(self, term: ex.Term | ex.Literal) -> None:
        """Every column exists, also where the function is not judged."""
        match term:
            case ex.Reference():
                self._column(term)
            case ex.Call(_, arguments):
                for argument in arguments:
                    self._check_names(argument)
            case ex.Case(branches, otherwise):
                for value in (*(value for _, value in branches), otherwise):
                    self._check_names(value)

    def _column(self, reference: ex.Reference) -> tuple[ColumnInfo | None, str]:
        """The column, or None and why it cannot be judged."""
        try:
            column = self.resolve(reference.parts[0])
        except PredicateError:
            reason = _hidden(reference)
            if reason:
                return None, reason
            raise
        for part in reference.parts[1:]:
            if column.reason.startswith(_REPEATED):
                return None, "elements of lists and maps have no index"
            column = column.field(part)
        return column, column.reason


def _column_of(term: BoundTerm) -> BoundColumn | None:
    """The column whose values a term has, cast to a wider type at most."""
    match term:
        case BoundColumn():
            return term
        case BoundCall() if term.function.is_identity and isinstance(
            term.varying, BoundColumn
        ):
            return term.varying
    return None


def _hidden(reference: ex.Reference) -> str:
    """The meaning that Spark gives a name of no column; empty if it has none."""
    first = reference.parts[0].upper()
    if first == "_METADATA":
        return "a hidden column of Spark"
    return "a value of the session" if first in _NAMED_VALUES else ""


def _beyond_bigint(node: ex.Comparison | ex.In | ex.IsNull | ex.Like) -> bool:
    """Whether Spark may replace the comparison by TRUE or FALSE."""
    return (
        isinstance(node, ex.Comparison)
        and isinstance(node.value, int | Decimal)
        and not INT64_MIN <= node.value <= INT64_MAX
    )


def _has_null(values: Sequence[ex.Literal]) -> bool:
    return not isinstance(values, IntegerSet) and None in values
