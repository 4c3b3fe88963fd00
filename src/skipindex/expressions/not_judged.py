"""Conditions that only the engine can judge, and the reasons that a plan gives."""

from __future__ import annotations

from typing import Final

SESSION_VALUES: Final = {
    *("CURRENT_DATE", "CURRENT_PATH", "CURRENT_TIME", "CURRENT_TIMESTAMP"),
    *("CURRENT_USER", "LOCALTIME", "SESSION_USER"),
}
"""Functions that need no parentheses.  USER is one too, but more often a column."""
TWO_COLUMNS: Final = "two columns are compared"
"""Why ``a > b`` is not judged."""
REASONS: Final = {
    **dict.fromkeys(SESSION_VALUES, "a value of the session"),
    **dict.fromkeys("+-*/%&|^~", "arithmetic"),
    **dict.fromkeys(("||", "<<", ">>", ">>>", "DIV"), "arithmetic"),
    **dict.fromkeys(("ALL", "ANY", "SOME"), "LIKE with several patterns"),
    **dict.fromkeys("?:", "a parameter"),
    **dict.fromkeys(("RLIKE", "REGEXP"), "a regular expression"),
    "ILIKE": "ILIKE, which ignores case",
    "[": "an element of an array or a map",
    "::": "a cast of the column",
    "COLLATE": "a collation",
    "CASE": "a CASE expression",
    "EXISTS": "EXISTS",
    "INTERVAL": "an interval",
    "OPAQUE": "only Spark can compute it",
    "SELECT": "a subquery",
}
"""Why a condition is not judged, by the token or by the name of the function."""


class NotJudgedError(Exception):
    """Only the engine can judge the condition or term; the message says why."""


def reason_of(key: str) -> str:
    """Why a condition with the token ``key`` is not judged."""
    return REASONS.get(key, "no column is compared with a literal")
