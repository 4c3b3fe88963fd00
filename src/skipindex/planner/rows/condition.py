"""A bound predicate as an expression of Arrow that is TRUE for the same rows.

Arrow compares floats as IEEE does, where NaN is less than nothing and equal to
nothing; to Spark it equals itself, and is greater than all others.  So what includes
NaN asks for it by name.  Statistics leave NaN out, and Arrow takes them for bounds of
all values: it passes over row groups that hold NaN, and counts NaN among rows that it
does not look at.  So a condition on floats has a part that Arrow cannot foresee.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache, cached_property
from typing import Any, Final, TypeAlias, assert_never

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from skipindex.conditions.bound_predicate import (
    BoundPredicate,
    ComparedColumns,
    Computed,
    Leaf,
    Unknown,
    fold,
)
from skipindex.errors import PlanError
from skipindex.expressions import atoms
from skipindex.expressions.atoms import Value, Wildcard
from skipindex.expressions.domain import NAN, Domain, float_key
from skipindex.expressions.operators import Operator
from skipindex.expressions.patterns import arrow_pattern, matches
from skipindex.planner.rows.values import (
    array_of,
    compared_type,
    ends_of,
    is_between,
    joined,
    number_of,
    scalar_of,
)
from skipindex.table import ColumnInfo, TableState

FILES_INSTEAD: Final = "rows='files', which gives all rows of the files to read"

NO_ROW: Final = pc.scalar(False)
_UNFORESEEN: Final = pc.Expression._call("random", [], pc.RandomOptions()) < 0  # noqa: SLF001 (no public name)
"""FALSE for every row, which Arrow only knows of the rows that it reads."""
_NEGATIVE_ZERO: Final = -1
"""The key below that of 0.0: to ``isin``, -0.0 is another value."""

_OfValues: TypeAlias = atoms.Range | atoms.OneOf | atoms.NoneOf | atoms.Matches
Distinct = Callable[[pc.Expression], pa.Array]
"""The distinct values of an expression, in all files that are read."""


def distinct_in(rows: pa.Table | ds.Dataset) -> Distinct:
    """The distinct values of expressions in these rows."""
    source = ds.dataset(rows) if isinstance(rows, pa.Table) else rows

    def distinct(expression: pc.Expression) -> pa.Array:
        return pc.unique(source.to_table(columns={"value": expression})["value"])

    return distinct


def condition_of(
    tree: BoundPredicate, table: TableState, distinct: Distinct
) -> pc.Expression:
    """The expression; ``distinct`` is asked for the values of a function's column.

    Raises:
        PlanError: a part of the predicate is one that Spark alone can judge.
    """

    @cache
    def column_of(name: str) -> _Column:
        return _Column(table, table.stored(name), distinct)

    def of_leaf(leaf: Leaf | Computed) -> pc.Expression:
        if isinstance(leaf, Computed):
            return column_of(leaf.column).tested(leaf.test, leaf.text)
        match leaf.atom:
            case atoms.NullAtom():  # of a list or a struct too
                return pc.field(*table.stored(leaf.column).path).is_null()
            case atoms.NotNullAtom():
                return pc.field(*table.stored(leaf.column).path).is_valid()
            case atom:
                return column_of(leaf.column).holds(atom, leaf.text)

    def of_unknown(node: Unknown) -> pc.Expression:
        if isinstance(node, ComparedColumns):
            left, right = column_of(node.left), column_of(node.right)
            return left.compared(node.operator, right)
        if node.in_arrow is None:
            raise PlanError(
                f"{node.text} cannot be evaluated without Spark: {node.reason} "
                f"(accepted: plan.read(spark), or {FILES_INSTEAD})"
            )
        return compiled(node.in_arrow)

    def compiled(part: BoundPredicate) -> pc.Expression:
        return fold(
            part,
            leaf=of_leaf,
            all_of=lambda parts: joined(list(parts), every=True),
            any_of=lambda parts: joined(list(parts), every=False),
            constant=pc.scalar,
            unknown=of_unknown,
        )

    return compiled(tree)


class _Column:
    """A column, and the questions to it as expressions."""

    def __init__(
        self, table: TableState, column: ColumnInfo, distinct: Distinct
    ) -> None:
        assert column.domain is not None
        self._domain: Domain = column.domain
        self._is_float = column.domain.name == "float"
        self._own = pc.field(*column.path)
        self._distinct = distinct
        stored = table.type_of(column)
        if pa.types.is_dictionary(stored):
            stored = stored.value_type
        self._stored = stored
        self._dtype = compared_type(self._domain, stored)
        self._ends = ends_of(self._domain, self._dtype)
        same = self._dtype == stored
        self._value = self._own if same else self._own.cast(self._dtype)

    def holds(self, atom: _OfValues, text: str) -> pc.Expression:
        """Whether ``atom`` is TRUE."""
        match atom:
            case atoms.OneOf(values=values):
                return self._among(values)
            case atoms.NoneOf(values=values) if self._is_float:
                others = self._own.is_valid() & ~self._numbers(values)
                return self._or_nan(others, NAN not in values)
            case atoms.NoneOf(values=values):
                return self._own.is_valid() & ~self._among(values)
            case atoms.Range(low=low, high=high):
                return self._between(low, high)
            case atoms.Matches():
                return self._like(atom, text)
            case _:
                assert_never(atom)

    def tested(
        self, test: Callable[[Value | None], bool | None], text: str
    ) -> pc.Expression:
        """Whether a test of the value is TRUE; it is asked for each value there is."""
        answers = {value: test(value) for value in self._values}
        if None in answers.values():
            raise PlanError(
                f"{text} cannot be evaluated without Spark for some of the values "
                f"(accepted: plan.read(spark), or {FILES_INSTEAD})"
            )
        with_null = answers.pop(None, False)
        true = [value for value, answer in answers.items() if answer]
        expression = self._among(true) if true else NO_ROW
        return expression | self._own.is_null() if with_null else expression

    @cached_property
    def _values(self) -> list[Any]:
        """The distinct values of the column, one of them maybe NULL."""
        return list(self._domain.encode(self._distinct(self._own)).to_pylist())

    def compared(self, operator: Operator, other: _Column) -> pc.Expression:
        """Whether the value and that of another column of one order compare so."""
        mine, theirs = self._ordered, other._ordered
        less, more, equal = mine < theirs, mine > theirs, mine == theirs
        both = self._own.is_valid() & other._own.is_valid()
        if self._is_float:
            mine, theirs = self._own.is_nan(), other._own.is_nan()
            less |= ~mine & theirs
            more |= mine & ~theirs
            equal |= mine & theirs
        match operator:
            case Operator.LT:
                result = less & both
            case Operator.LE:
                result = (less | equal) & both
            case Operator.GT:
                result = more & both
            case Operator.GE:
                result = (more | equal) & both
            case Operator.EQ:
                result = equal & both
            case Operator.NE:
                result = ~equal & both
            case Operator.NULL_SAFE_EQ | Operator.NULL_SAFE_NE:
                nothing = self._own.is_null() & other._own.is_null()
                result = (equal & both) | nothing
                result = result if operator is Operator.NULL_SAFE_EQ else ~result
        return (result | _UNFORESEEN) & ~_UNFORESEEN if self._is_float else result

    @property
    def _ordered(self) -> pc.Expression:
        """The value in a type that all columns of the order share."""
        match self._domain.name:
            case "date":
                return self._value.cast(pa.int32()).cast(pa.int64())
            case "int" | "timestamp" | "timestamp_ntz" | "bool":
                return self._value.cast(pa.int64())
            case "decimal" | "big_decimal":
                return self._value.cast(pa.decimal128(38, self._domain.scale))
            case _:
                return self._value

    def _among(self, values: Collection[Value]) -> pc.Expression:
        result = self._numbers(values)
        return self._or_nan(result, NAN in values) if self._is_float else result

    def _numbers(self, values: Collection[Value]) -> pc.Expression:
        """Whether the value is one of these; NaN is none."""
        if self._is_float:
            zeros = {_NEGATIVE_ZERO} if 0 in values else set()
            values = [*(set(values) - {NAN}), *zeros]
        values = [number_of(value, self._domain) for value in values]
        values = [value for value in values if self._has(value)]
        if not values:
            return NO_ROW
        if self._domain.name == "bool":
            two = [self._value if value else ~self._value for value in values]
            return joined(two, every=False)
        if len(values) == 1:
            return self._value == self._scalar(values[0])
        return self._value.isin(array_of(values, self._domain, self._dtype))

    def _or_nan(self, numbers: pc.Expression, is_nan: bool) -> pc.Expression:  # noqa: FBT001
        """A condition on numbers that are not NaN, and whether NaN meets it."""
        if is_nan:
            return (numbers | self._own.is_nan()) | _UNFORESEEN
        return (numbers & ~self._own.is_nan()) & ~_UNFORESEEN

    def _has(self, value: Value) -> bool:
        """Whether the type has this value."""
        return self._ends is None or is_between(value, *self._ends)

    def _between(self, low: Value | None, high: Value | None) -> pc.Expression:
        if self._is_float:
            return self._floats(low, high)
        if self._domain.name == "bool":
            return self._among([v for v in (0, 1) if is_between(v, low, high)])
        low = None if low is None else number_of(low, self._domain)
        high = None if high is None else number_of(high, self._domain)
        if self._ends is not None:
            least, stop = self._ends
            if not is_between(least, None, high) or not is_between(low, None, stop):
                return NO_ROW
            low = low if is_between(least, None, low) else None
            high = high if is_between(high, None, stop) else None
        parts = [] if low is None else [self._value >= self._scalar(low)]
        parts += [] if high is None else [self._value < self._scalar(high)]
        return joined(parts, every=True) if parts else self._own.is_valid()

    def _floats(self, low: Value | None, high: Value | None) -> pc.Expression:
        """The numbers between two bounds, and NaN if that is."""
        least, most = float_key(float("-inf")), float_key(float("inf"))
        start = least if low is None else max(low, least)
        numbers = NO_ROW
        if is_between(start, None, most + 1) and is_between(least, None, high):
            numbers = self._value >= self._scalar(start)
            if high is not None and is_between(high, None, most + 1):
                numbers &= self._value < self._scalar(high)
        return self._or_nan(numbers, is_between(NAN, low, high))

    def _like(self, atom: atoms.Matches, text: str) -> pc.Expression:
        match atom.pattern:
            case (Wildcard.ANY_TEXT, bytes(piece), Wildcard.ANY_TEXT):
                result = pc.match_substring(self._value, piece)
            case (Wildcard.ANY_TEXT, bytes(piece)):
                result = pc.ends_with(self._value, piece)
            case pattern:
                if (regex := arrow_pattern(pattern)) is None:
                    return self.tested(
                        lambda value: (
                            value is not None
                            and matches(pattern, bytes(value), negated=atom.negated)
                        ),
                        text,
                    )
                result = pc.match_substring_regex(self._own, regex)
        return self._own.is_valid() & ~result if atom.negated else result

    def _scalar(self, value: Value) -> pa.Scalar:
        return scalar_of(value, self._domain, self._dtype)
