"""Predicates as people write them: the tree, its builders, and ``push_not``.

    >>> from skipindex import col
    >>> print((col("a") > 3) & ~col("b").isin(1, 2))
    a > 3 AND b NOT IN (1, 2)

The tree is Spark's three-valued logic: a leaf is TRUE, FALSE or UNKNOWN, and
WHERE keeps the rows for which the whole is TRUE.  Values are plain Python ones
(``Literal``); binding the tree to a table resolves their columns and types.
"""

from __future__ import annotations

from skipindex.expressions.builder import Column, ManyKeys, col
from skipindex.expressions.extent import is_large, shallow, size
from skipindex.expressions.literals import Literal, literal_sql
from skipindex.expressions.names import name_parts, stored_name
from skipindex.expressions.operators import MIRRORED, NEGATED, NULL_SAFE, Operator
from skipindex.expressions.predicate import (
    And,
    Call,
    Case,
    ColumnComparison,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    Reference,
    Term,
    Unsupported,
    argument_sql,
    conjunction,
    disjunction,
    push_not,
    to_sql,
)

__all__ = [
    "MIRRORED",
    "NEGATED",
    "NULL_SAFE",
    "And",
    "Call",
    "Case",
    "Column",
    "ColumnComparison",
    "Comparison",
    "Constant",
    "In",
    "IsNull",
    "Like",
    "Literal",
    "ManyKeys",
    "Not",
    "Operator",
    "Or",
    "Predicate",
    "Reference",
    "Term",
    "Unsupported",
    "argument_sql",
    "col",
    "conjunction",
    "disjunction",
    "is_large",
    "literal_sql",
    "name_parts",
    "push_not",
    "shallow",
    "size",
    "stored_name",
    "to_sql",
]
