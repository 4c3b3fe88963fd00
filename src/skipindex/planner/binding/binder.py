"""Binding: names become columns, literals values of their domains.

What cannot be settled exactly makes that one atom ``Unknown``, never the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, assert_never

from skipindex.errors import PredicateError
from skipindex.expressions import (
    NULL_SAFE,
    And,
    Call,
    Case,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Operator,
    Or,
    Predicate,
    Reference,
    Term,
    Unsupported,
    push_not,
    shallow,
    size,
    to_sql,
)
from skipindex.expressions.atoms import IntegerSet
from skipindex.expressions.domain import INT64_MAX, INT64_MIN
from skipindex.expressions.not_judged import SESSION_VALUES, NotJudgedError
from skipindex.planner.binding.budget import STEPS_PER_NODE, budget
from skipindex.planner.binding.comparison import ColumnBinding
from skipindex.planner.binding.compiler import Compiler
from skipindex.planner.binding.terms import ColumnImage, Image, pulled
from skipindex.planner.bound_predicate import AllOf, AnyOf, Bound, Known, Unknown
from skipindex.planner.functions.registry import UnsureError
from skipindex.table import ColumnInfo

_NAMED_VALUES: Final = SESSION_VALUES | {"USER"}
_REPEATED: Final = ("type list", "type large_list", "type fixed_size", "type map")

Resolve = Callable[[str], ColumnInfo]


@dataclass(frozen=True, slots=True)
class Binder:
    """Binds predicates to one table.

    Args:
        resolve: the column of a name; ``PredicateError`` if there is none.
        zone: the session's time zone, if it is known.
        seen: the columns that leaves are about, by their stored names.
    """

    resolve: Resolve
    zone: str | None = None
    seen: dict[str, ColumnImage] = field(default_factory=dict, compare=False)

    def bind(self, predicate: Predicate) -> Bound:
        """``predicate`` over atoms; TRUE for the same rows.

        Raises:
            PredicateError: a column does not exist, or its name is ambiguous.
        """
        return self._bind(push_not(shallow(predicate)))

    def _bind(self, node: Predicate) -> Bound:
        match node:
            case And(children):
                return AllOf(tuple(map(self._bind, children)))
            case Or(children):
                return AnyOf(tuple(map(self._bind, children)))
            case Constant(value):
                # Nothing negates any more, so UNKNOWN may be read as FALSE.
                return Known(value is True)
            case Unsupported(text, reason):
                return Unknown(text, reason)
            case Comparison() | In() | IsNull() | Like():
                return self._atom(node)
            case Not():
                raise AssertionError("push_not has removed every NOT")
            case _:
                assert_never(node)

    def _atom(self, node: Comparison | In | IsNull | Like) -> Bound:
        try:
            with budget(STEPS_PER_NODE * size(node)):
                return self._asked(node)
        except NotJudgedError as refused:
            return Unknown(to_sql(node), str(refused))
        except (UnsureError, ArithmeticError):
            return Unknown(to_sql(node), "only Spark can tell the value")

    def _asked(self, node: Comparison | In | IsNull | Like) -> Bound:
        text = to_sql(node)
        image, problem = self._image(node.column)
        match node:
            case Comparison(_, operator, None) if operator in NULL_SAFE:
                negated = operator is Operator.NULL_SAFE_NE
                node = IsNull(node.column, negated)
            case Comparison(_, _, None):
                return Known(value=False)
            case In(_, (), negated):  # true of NULL too
                return Known(negated)
            case In(_, values, negated) if negated and _has_null(values):
                return Known(value=False)
        if image is None or image.domain is None:
            return Unknown(text, problem)
        if isinstance(image, ColumnImage):
            return ColumnBinding(image, self.zone, text).ask(node)
        if _beyond_bigint(node):
            return Unknown(text, "a function is compared with a number beyond bigint")
        virtual = ColumnImage("", image.domain, "")
        return pulled(ColumnBinding(virtual, self.zone, text).ask(node), image)

    def _image(self, term: Term) -> tuple[Image | None, str]:
        """What ``term`` is, or None and why it cannot be judged."""
        if isinstance(term, Reference):
            column, problem = self._column(term)
            if column is None or column.domain is None:
                return None, problem
            image = ColumnImage(column.name, column.domain, str(term))
            self.seen[column.name] = image
            return image, ""
        self._check_names(term)
        try:
            compiler = Compiler(
                self._column_image, self._bind, self.zone, self.seen.__getitem__
            )
            return compiler.compile(term), ""
        except NotJudgedError as refused:
            return None, str(refused)

    def _column_image(self, reference: Reference) -> ColumnImage:
        image, problem = self._image(reference)
        if not isinstance(image, ColumnImage):
            raise NotJudgedError(problem)
        return image

    def _check_names(self, term: Term) -> None:
        """Every column exists, also where the function is not judged."""
        match term:
            case Reference():
                self._column(term)
            case Call(_, arguments):
                for argument in arguments:
                    if isinstance(argument, Reference | Call | Case):
                        self._check_names(argument)
            case Case(branches, otherwise):
                for value in [*(value for _, value in branches), otherwise]:
                    if isinstance(value, Reference | Call | Case):
                        self._check_names(value)
            case _:
                assert_never(term)

    def _column(self, reference: Reference) -> tuple[ColumnInfo | None, str]:
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
                return None, "what is inside of lists and maps has no index"
            column = column.field(part)
        return column, column.reason


def _hidden(reference: Reference) -> str:
    """What Spark takes a name for that no column has; empty if it refuses the name."""
    first = reference.parts[0].upper()
    if first == "_METADATA":
        return "a hidden column of Spark"
    return "a value of the session" if first in _NAMED_VALUES else ""


def _beyond_bigint(node: Comparison | In | IsNull | Like) -> bool:
    """Whether Spark may put TRUE or FALSE in the place of the comparison."""
    return (
        isinstance(node, Comparison)
        and isinstance(node.value, int | Decimal)
        and not INT64_MIN <= node.value <= INT64_MAX
    )


def _has_null(values: Sequence[Literal]) -> bool:
    return not isinstance(values, IntegerSet) and None in values
