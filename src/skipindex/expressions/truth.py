"""``IS TRUE``, ``IS FALSE`` and ``IS UNKNOWN`` of a condition, pushed to its leaves.

The results are never UNKNOWN themselves, so NOT may stand above them.
"""

from __future__ import annotations

from decimal import Decimal

from skipindex import expressions as ex
from skipindex.expressions.domain import INT64_MAX, INT64_MIN
from skipindex.expressions.not_judged import NotJudgedError


def is_true(tree: ex.Predicate) -> ex.Predicate:
    """TRUE where ``tree`` is, otherwise FALSE."""
    return _true(ex.push_not(tree))


def is_false(tree: ex.Predicate) -> ex.Predicate:
    """TRUE where ``tree`` is FALSE, otherwise FALSE."""
    return _true(ex.push_not(tree, negate=True))


def is_not_true(tree: ex.Predicate) -> ex.Predicate:
    """FALSE where ``tree`` is TRUE, otherwise TRUE."""
    return ex.push_not(is_true(tree), negate=True)


def is_unknown(tree: ex.Predicate) -> ex.Predicate:
    """TRUE where ``tree`` is UNKNOWN, otherwise FALSE."""
    return ex.conjunction([is_not_true(tree), ex.push_not(is_false(tree), negate=True)])


def _true(node: ex.Predicate) -> ex.Predicate:
    match node:
        case ex.And(children):
            return ex.conjunction([_true(child) for child in children])
        case ex.Or(children):
            return ex.disjunction([_true(child) for child in children])
        case ex.Constant(value):
            return ex.Constant(value is True)
        case ex.Unsupported(text, reason):
            return ex.Unsupported(f"({text}) IS TRUE", reason)
        case ex.ColumnComparison(left, operator, right) if operator not in ex.NULL_SAFE:
            sides = [ex.IsNull(side, negated=True) for side in (left, right)]
            return ex.conjunction([node, *sides])
        case ex.Comparison(_, operator, None) if operator not in ex.NULL_SAFE:
            return ex.Constant(value=False)
        case ex.In(_, values, negated) if None in values:
            if negated:
                return ex.Constant(value=False)
            return _true(_without_null(node))
        case _ if (subject := _subject(node)) is not None:
            return ex.conjunction([node, ex.IsNull(subject.column, negated=True)])
        case _:
            return node


def _subject(node: ex.Predicate) -> ex.Comparison | ex.In | ex.Like | None:
    """The leaf, if it is UNKNOWN exactly where its column is NULL."""
    match node:
        case ex.In(_, ()) | ex.IsNull():
            return None
        case ex.Comparison(_, operator, _) if operator in ex.NULL_SAFE:
            return None
        case ex.Comparison(_, _, int() | Decimal() as value) if not (
            INT64_MIN <= value <= INT64_MAX
        ):
            # Spark may replace it by TRUE or FALSE, for NULL too.
            raise NotJudgedError("a number beyond bigint")
        case ex.Comparison(_, _, value) if isinstance(value, ex.Call):
            # A cast to decimal may be such a number, before it is computed.
            if any("(" in str(one) for one in value.arguments):
                raise NotJudgedError("a number beyond bigint")
            return node
        case ex.Comparison() | ex.In() | ex.Like():
            return node
        case ex.ColumnComparison():
            return None
        case ex.Not() | ex.And() | ex.Or() | ex.Constant() | ex.Unsupported():
            raise AssertionError("push_not leaves leaves")


def _without_null(node: ex.In) -> ex.Predicate:
    values = tuple(value for value in node.values if value is not None)
    if not values:  # x IN (NULL) is UNKNOWN
        return ex.Constant(None)
    return ex.In(node.column, values, node.negated)
