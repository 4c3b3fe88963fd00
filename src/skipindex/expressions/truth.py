"""``IS TRUE``, ``IS FALSE`` and ``IS UNKNOWN`` of a condition, pushed to its leaves.

The results are never UNKNOWN themselves, so NOT may stand above them.
"""

from __future__ import annotations

from decimal import Decimal

from skipindex.expressions import (
    NULL_SAFE,
    And,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    Unsupported,
    conjunction,
    disjunction,
    push_not,
)
from skipindex.expressions.domain import INT64_MAX, INT64_MIN
from skipindex.expressions.not_judged import NotJudgedError


def is_true(tree: Predicate) -> Predicate:
    """TRUE where ``tree`` is, otherwise FALSE."""
    return _true(push_not(tree))


def is_false(tree: Predicate) -> Predicate:
    """TRUE where ``tree`` is FALSE, otherwise FALSE."""
    return _true(push_not(tree, negate=True))


def is_not_true(tree: Predicate) -> Predicate:
    """FALSE where ``tree`` is TRUE, otherwise TRUE."""
    return push_not(is_true(tree), negate=True)


def is_unknown(tree: Predicate) -> Predicate:
    """TRUE where ``tree`` is UNKNOWN, otherwise FALSE."""
    return conjunction([is_not_true(tree), push_not(is_false(tree), negate=True)])


def _true(node: Predicate) -> Predicate:
    match node:
        case And(children):
            return conjunction([_true(child) for child in children])
        case Or(children):
            return disjunction([_true(child) for child in children])
        case Constant(value):
            return Constant(value is True)
        case Unsupported(text, reason):
            return Unsupported(f"({text}) IS TRUE", reason)
        case Comparison(_, operator, None) if operator not in NULL_SAFE:
            return Constant(value=False)
        case In(_, values, negated) if None in values:
            if negated:
                return Constant(value=False)
            return _true(_without_null(node))
        case _ if (subject := _subject(node)) is not None:
            return conjunction([node, IsNull(subject.column, negated=True)])
        case _:
            return node


def _subject(node: Predicate) -> Comparison | In | Like | None:
    """The leaf, if it is UNKNOWN exactly where its column is NULL."""
    match node:
        case In(_, ()) | IsNull():
            return None
        case Comparison(_, operator, _) if operator in NULL_SAFE:
            return None
        case Comparison(_, _, int() | Decimal() as value) if not (
            INT64_MIN <= value <= INT64_MAX
        ):
            # Spark may replace it by TRUE or FALSE, for NULL too.
            raise NotJudgedError("a number beyond bigint")
        case Comparison() | In() | Like():
            return node
        case Not() | And() | Or() | Constant() | Unsupported():
            raise AssertionError("push_not leaves leaves")


def _without_null(node: In) -> Predicate:
    values = tuple(value for value in node.values if value is not None)
    if not values:  # x IN (NULL) is UNKNOWN
        return Constant(None)
    return In(node.column, values, node.negated)
