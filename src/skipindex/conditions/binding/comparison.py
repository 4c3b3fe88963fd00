"""Conditions on one column as atoms in its domain.

A literal is cut in the column's domain once, and every comparison becomes a range
between cuts.  A literal that cannot be cut exactly makes the condition ``Unknown``, or
widens it: rows are possible then, and none is certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, assert_never

import numpy as np
import numpy.typing as npt

from skipindex.conditions.binding.literal_cuts import Cut, Refusal, cut
from skipindex.conditions.bound_predicate import (
    NEVER,
    AllOf,
    AnyOf,
    BoundPredicate,
    Leaf,
    TruthValue,
    Unknown,
    within,
)
from skipindex.conditions.functions.calendar import day_of_text
from skipindex.conditions.functions.dates import SHOWN_DAYS
from skipindex.conditions.functions.decimals import fits_decimal
from skipindex.expressions import Comparison, In, IsNull, Like, Literal, Operator, atoms
from skipindex.expressions.domain import INT64_MAX, INT64_MIN, NAN, Domain
from skipindex.expressions.patterns import REPLACEMENT, parse_pattern

_SKIPPED_DAYS: Final = 10
"""The Gregorian calendar began with the day after 1582-10-04, which is 1582-10-15."""


@dataclass(frozen=True, slots=True)
class ColumnBinding:
    """A condition's column, and the words of the condition.

    Args:
        name: the column's; empty for the value of a function.
        domain: the domain of its values.
        zone: the session's time zone, if it is known.
        text: the condition in SQL.
    """

    name: str
    domain: Domain
    zone: str | None
    text: str

    def bind(self, node: Comparison | In | IsNull | Like) -> BoundPredicate:
        """The condition over atoms; it compares with no NULL."""
        match node:
            case Comparison(_, operator, value):
                return self.comparison(operator, value)
            case In(_, values, negated):
                if isinstance(values, atoms.IntegerSet) and self.domain.name == "int":
                    return self._leaf(
                        (atoms.NoneOf if negated else atoms.OneOf)(self.name, values)
                    )
                listed = [value for value in values if value is not None]
                return self.membership(listed, negated=negated)
            case IsNull(_, negated):
                return self._leaf(
                    (atoms.NotNullAtom if negated else atoms.NullAtom)(self.name)
                )
            case Like():
                return self.like(node)
            case _:
                assert_never(node)

    def comparison(self, operator: Operator, value: Literal) -> BoundPredicate:
        """``column operator value``; the value is not NULL."""
        folded = self._folded(operator, value)
        if folded is not None:
            return folded
        at = cut(self.domain, value, self.zone)
        if isinstance(at, Refusal):
            return Unknown(self.text, at.reason)
        if at.slack:
            return self._nearly(operator, at)
        match operator:
            case Operator.LT:
                return self._range(None, at.ge)
            case Operator.LE:
                return self._range(None, at.gt)
            case Operator.GE:
                return self._least(at.ge)
            case Operator.GT:
                return self._least(at.gt)
            case Operator.EQ | Operator.NULL_SAFE_EQ:
                return self._equal(at)
            case Operator.NE:
                if _single(at):
                    assert at.ge is not None
                    return self._leaf(atoms.NoneOf(self.name, (at.ge,)))
                if at.ge == at.gt:  # no value equals it
                    return self._leaf(atoms.NotNullAtom(self.name))
                return AnyOf((self._range(None, at.ge), self._least(at.gt)))
            case Operator.NULL_SAFE_NE:
                # Only a literal that is cut is none that Spark casts to NULL.
                null = self._leaf(atoms.NullAtom(self.name))
                return AnyOf((null, self.comparison(Operator.NE, value)))
            case _:
                assert_never(operator)

    def _folded(self, operator: Operator, value: Literal) -> TruthValue | None:
        """Spark's own folding: an integer column against a number beyond bigint."""
        if self.domain.name != "int" or not isinstance(value, int | Decimal):
            return None
        # ``i < 9223372036854775808`` is TRUE even where ``i`` is NULL, as Spark's
        # analyzer replaces the four inequalities by a constant.
        if INT64_MIN <= value <= INT64_MAX:
            return None
        match operator:
            case Operator.LT | Operator.LE:
                return TruthValue(value > 0)
            case Operator.GT | Operator.GE:
                return TruthValue(value < 0)
            case _:
                return None

    def membership(self, values: Sequence[Literal], *, negated: bool) -> BoundPredicate:
        """``column [NOT] IN (values)``; no value is NULL."""
        # Spark compares all of them in one common type; where a list mixes
        # numbers with doubles that type is double, for the integers too.
        if "decimal" in self.domain.name and _holds_a(float, values):
            values = [float(v) if isinstance(v, int | Decimal) else v for v in values]
        problem = self._cast_of_list(values)
        if problem:
            return Unknown(self.text, problem)
        kind = atoms.NoneOf if negated else atoms.OneOf
        if self.domain.name == "int" and len(values) >= atoms.MANY:
            array = _as_int64(values)
            if array is not None:
                return self._leaf(kind(self.name, atoms.IntegerSet(array)))
        plain = self._themselves(values)
        exact: set[atoms.Value] = plain or set()
        for value in values if plain is None else ():
            at = cut(self.domain, value, self.zone)
            if isinstance(at, Refusal):
                return Unknown(self.text, at.reason)
            if at.slack:
                return Unknown(self.text, "instants of a zone with summer time")
            if _single(at):
                assert at.ge is not None
                exact.add(at.ge)
            elif at.ge is not None and at.ge != at.gt:
                return Unknown(self.text, "several values equal one in the list")
        if exact:
            return self._leaf(kind(self.name, atoms.values_of(exact)))
        # No row equals any of them.
        return self._leaf(atoms.NotNullAtom(self.name)) if negated else NEVER

    def _cast_of_list(self, values: Sequence[Literal]) -> str:
        """Why Spark may cast the column, or round, to compare it with a list, or ""."""
        name, texts = self.domain.name, _holds_a(str, values)
        if _holds_a(float, values):
            if name != "float" and "decimal" not in name:
                return "the list makes Spark cast the column"
        elif texts and not all(isinstance(value, str) for value in values):
            return "the list mixes text with other types"
        if texts and name not in {"string", "int", "date"}:
            return "Spark may compare the list as text"
        if name == "date" and any(map(_is_early, values)):
            return "Spark's old formatter changes days before 1582-10-15"
        if name == "float" or not _holds_a(Decimal, values):
            return ""
        return "" if fits_decimal(self.domain, values) else "the list makes Spark round"

    def _themselves(self, values: Sequence[Literal]) -> set[atoms.Value] | None:
        """A list of texts in the domain of a text column; None for other lists."""
        if self.domain.name == "string" and {*map(type, values)} == {str}:
            try:
                return {v.encode() for v in values if isinstance(v, str)}
            except UnicodeEncodeError:  # a lone surrogate is no UTF-8
                return None
        return None

    def like(self, node: Like) -> BoundPredicate:
        """``column [NOT] LIKE pattern``.

        With a character beyond U+FFFF, which is two in Java, no row is certain: most
        versions of Spark match too few rows then (SPARK-55453).
        """
        result = self._like(node)
        if isinstance(result, Unknown) or max(node.pattern, default="") <= "\uffff":
            return result
        unknown = Unknown(self.text, "versions of Spark differ beyond U+FFFF")
        return AnyOf((result, unknown)) if node.negated else AllOf((result, unknown))

    def _like(self, node: Like) -> BoundPredicate:
        """The condition as it is meant; ``'p%'`` is a range, and a constant ``=``."""
        if self.domain.name != "string":
            return Unknown(self.text, "LIKE on this type needs a cast")
        try:
            pattern = parse_pattern(node.pattern, node.escape)
        except UnicodeEncodeError:
            return Unknown(self.text, "the pattern is not valid text")
        match pattern:
            case None:
                return Unknown(self.text, "the pattern ends in, or misuses, its escape")
            case _ if REPLACEMENT in node.pattern:
                return Unknown(self.text, "bytes that are no UTF-8 may match U+FFFD")
            case () | (bytes(),):
                text = pattern[0].decode() if pattern else ""  # type: ignore[union-attr]
                return self.comparison(
                    Operator.NE if node.negated else Operator.EQ, text
                )
            case (atoms.Wildcard.ANY_TEXT,):
                return NEVER if node.negated else self._range(b"", None)
            case (bytes(prefix), atoms.Wildcard.ANY_TEXT):
                stop = atoms.after_prefix(prefix)
                if node.negated:
                    return AnyOf((self._range(None, prefix), self._least(stop)))
                return self._range(prefix, stop)
        leaf = self._leaf(atoms.Matches(self.name, pattern, node.negated))
        if isinstance(pattern[0], bytes) and not node.negated:
            return AllOf(
                (self._range(pattern[0], atoms.after_prefix(pattern[0])), leaf)
            )
        return leaf

    def _equal(self, at: Cut) -> BoundPredicate:
        if _single(at):
            assert at.ge is not None
            return self._leaf(atoms.OneOf(self.name, (at.ge,)))
        if at.ge is None or at.ge == at.gt:
            return NEVER
        return self._range(at.ge, at.gt)

    def _least(self, low: atoms.Value | None) -> BoundPredicate:
        return NEVER if low is None else self._range(low, None)

    def _range(
        self, low: atoms.Value | None, high: atoms.Value | None
    ) -> BoundPredicate:
        return within(self.name, low, high, self.text)

    def _nearly(self, operator: Operator, at: Cut) -> BoundPredicate:
        """The atom, widened by the cut's slack: possible rows, none certain."""
        assert isinstance(at.ge, int)
        low, high = at.ge - at.slack, at.ge + at.slack + 1
        why = "the time zone's rules are known only approximately"
        unknown = Unknown(self.text, why)
        match operator:
            case Operator.LT | Operator.LE:
                return AllOf((self._range(None, high), unknown))
            case Operator.GT | Operator.GE:
                return AllOf((self._range(low, None), unknown))
            case Operator.EQ | Operator.NULL_SAFE_EQ:
                return AllOf((self._range(low, high), unknown))
            case Operator.NE:
                return unknown
            case Operator.NULL_SAFE_NE:
                return AnyOf((self._leaf(atoms.NullAtom(self.name)), unknown))
            case _:
                assert_never(operator)

    def _leaf(self, atom: atoms.Atom) -> Leaf:
        return Leaf(atom, self.text)


def _is_early(value: Literal) -> bool:
    """Whether it is a text that the old formatter may show for another day."""
    # For ten days there was no such day in the Julian calendar: it shows later ones.
    day = day_of_text(value) if isinstance(value, str) else None
    return day is not None and day < SHOWN_DAYS[0] + _SKIPPED_DAYS


def _holds_a(kind: type, values: Sequence[Literal]) -> bool:
    return any(issubclass(one, kind) for one in set(map(type, values)))


def _as_int64(values: Sequence[Literal]) -> npt.NDArray[np.int64] | None:
    """The values, if they are all integers of 64 bits."""
    if set(map(type, values)) != {int}:
        return None
    try:
        return np.array(values, np.int64)
    except OverflowError:
        return None


def _single(at: Cut) -> bool:
    """Whether exactly one value of the domain equals the literal."""
    if at.ge is None:
        return False
    # The greatest values have no successor.
    last = at.gt is None and at.ge in {INT64_MAX, NAN}
    return last or at.gt == atoms.successor(at.ge)
