"""Builders of predicates, such as ``col("x") > 3``.

Each returns a node of the tree with plain Python values, or raises ``PredicateError``
for a value that cannot be a literal.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias

import numpy as np
from pyroaring import BitMap, BitMap64

from skipindex.errors import PredicateError, kind_of
from skipindex.expressions import predicate as ex
from skipindex.expressions.atoms import IntegerSet
from skipindex.expressions.literals import Literal, literal_of
from skipindex.expressions.names import name_parts
from skipindex.expressions.operators import Operator

ManyKeys: TypeAlias = np.ndarray | BitMap | BitMap64 | IntegerSet
"""All keys of an IN list in one value."""


class Column:
    """Builds predicates over one column: ``col("x") > 3``."""

    __slots__ = ("reference",)
    __hash__ = None  # type: ignore[assignment]  # == builds a predicate

    def __init__(self, reference: ex.Term) -> None:
        self.reference = reference

    def _compare(self, operator: Operator, value: object) -> ex.Predicate:
        if isinstance(value, Column):
            sides = self.reference, value.reference
            match sides:
                case ex.Reference() as left, ex.Reference() as right:
                    return ex.ColumnComparison(left, operator, right)
        return ex.Comparison(self.reference, operator, literal_of(value))

    def __eq__(self, value: object) -> ex.Predicate:  # type: ignore[override]
        return self._compare(Operator.EQ, value)

    def __ne__(self, value: object) -> ex.Predicate:  # type: ignore[override]
        return self._compare(Operator.NE, value)

    def __lt__(self, value: Literal) -> ex.Predicate:
        return self._compare(Operator.LT, value)

    def __le__(self, value: Literal) -> ex.Predicate:
        return self._compare(Operator.LE, value)

    def __gt__(self, value: Literal) -> ex.Predicate:
        return self._compare(Operator.GT, value)

    def __ge__(self, value: Literal) -> ex.Predicate:
        return self._compare(Operator.GE, value)

    def _refuse(self, _: object) -> ex.Predicate:
        raise PredicateError(
            f"no arithmetic with {self.reference} here (accepted: SQL text, such as "
            '"x + 1 > 5")'
        )

    __add__ = __sub__ = __mul__ = __truediv__ = __mod__ = _refuse
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rmod__ = _refuse

    def eq_null_safe(self, value: Literal) -> ex.Predicate:
        """``column <=> value``: NULL equals NULL, and nothing is UNKNOWN."""
        return self._compare(Operator.NULL_SAFE_EQ, value)

    def between(self, low: Literal, high: Literal) -> ex.Predicate:
        """``low <= column <= high``."""
        return ex.And((self >= low, self <= high))

    def isin(self, *values: Literal | ManyKeys | Iterable[object]) -> ex.Predicate:
        """``column IN (values)``, or IN the values of one list, set, array or Series.

        A million keys in a numpy array, a Series or a roaring bitmap cost
        milliseconds.
        """
        if len(values) != 1:
            return ex.In(self.reference, tuple(map(literal_of, values)))
        one: Any = values[0]
        if hasattr(one, "to_numpy"):
            one = one.to_numpy()  # a Series or an index of pandas or polars
        if isinstance(one, np.ndarray | BitMap | BitMap64 | IntegerSet):
            return ex.In(self.reference, _keys(one))
        if isinstance(one, AbstractSet):  # in one order, whatever the process
            one = sorted(one, key=repr)
        if isinstance(one, Iterable) and not isinstance(one, str | bytes):
            return ex.In(self.reference, tuple(map(literal_of, one)))
        return ex.In(self.reference, (literal_of(one),))

    def is_null(self) -> ex.Predicate:
        """``column IS NULL``."""
        return ex.IsNull(self.reference)

    def is_not_null(self) -> ex.Predicate:
        """``column IS NOT NULL``."""
        return ex.IsNull(self.reference, negated=True)

    def like(self, pattern: str, *, escape: str = "\\") -> ex.Predicate:
        """``column LIKE pattern``: ``%`` is any text, ``_`` any character."""
        return ex.Like(self.reference, pattern, escape)

    def startswith(self, prefix: str) -> ex.Predicate:
        """The column begins with ``prefix``; ``%`` and ``_`` are plain text."""
        return ex.Like(self.reference, _no_pattern(prefix) + "%")

    def endswith(self, suffix: str) -> ex.Predicate:
        """The column ends with ``suffix``; ``%`` and ``_`` are plain text."""
        return ex.Like(self.reference, "%" + _no_pattern(suffix))

    def contains(self, text: str) -> ex.Predicate:
        """The column contains ``text``; ``%`` and ``_`` are plain text."""
        return ex.Like(self.reference, f"%{_no_pattern(text)}%")


def col(name: str) -> Column:
    """The column ``name``: dots reach into structs, backticks quote.

    Raises:
        PredicateError: a backtick is not closed, or a part is empty.

    >>> table.plan((sx.col("city") == "Rome") & (sx.col("price") < 4)).where
    "city = 'Rome' AND price < 4"
    """
    if not isinstance(name, str):
        raise PredicateError(
            f"not a column: {kind_of(name)} (accepted: its name, as text)"
        )
    return Column(ex.Reference(name_parts(name)))


def _no_pattern(text: str) -> str:
    """The LIKE pattern that only ``text`` matches."""
    return "".join(f"\\{c}" if c in "\\%_" else c for c in text)


def _keys(keys: ManyKeys) -> tuple[Literal, ...] | IntegerSet:
    """The keys of an array or bitmap; numbers beyond bigint, and no numbers, singly."""
    if isinstance(keys, IntegerSet):
        return keys
    array = keys if isinstance(keys, np.ndarray) else np.asarray(keys.to_array())
    if array.ndim != 1:
        raise PredicateError(
            f"not a list of keys: an array of {array.ndim} dimensions (expected 1)"
        )
    whole = array.dtype.kind in "iu" and len(array) > 0
    if whole and int(array.max()) <= np.iinfo(np.int64).max:
        return IntegerSet(array)
    return tuple(map(literal_of, array))
