"""The moment of a plan: ``now()`` and its like become literals.

A plan takes one moment.  What a condition makes of it, such as ``now() - INTERVAL 7
DAYS``, is computed once and put into the text as an exact literal.  The planner parses
that text and the engine evaluates it: so both mean the same rows, whenever they are
read.

    >>> from datetime import UTC, datetime
    >>> now = datetime(2026, 3, 29, 10, 30, tzinfo=UTC)
    >>> text, moment = at_moment("d > current_date() - 7", now, "Europe/Berlin")
    >>> text
    "d > DATE '2026-03-22'"
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from skipindex.conditions.functions.clock import Clock, clock_of
from skipindex.conditions.sql.cursor import Cursor
from skipindex.conditions.sql.parser import QUERIES, cursor_of, parse_all
from skipindex.conditions.trees.calls import MOMENTS
from skipindex.conditions.trees.operands import typed
from skipindex.expressions import argument_sql, literal_sql
from skipindex.expressions.domain import EPOCH_UTC

_NAMES: Final = {name.upper(): kind for name, kind in MOMENTS.items()}
_WITHOUT_PARENTHESES: Final = {"CURRENT_DATE", "CURRENT_TIMESTAMP"}
_ANY_NAME: Final = re.compile(rf"\b({'|'.join(_NAMES)})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MomentConstant:
    """An expression of a condition that depends on the moment.

    Args:
        text: the expression as it was written.
        engine_text: the expression with literals for the moment, for the engine.
        value: its value as a SQL literal; None if only the engine can compute it.
    """

    text: str
    engine_text: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Moment:
    """The moment that a plan uses for ``now()``, ``current_date()`` and the like.

    Args:
        now: the time, in UTC.
        constants: the values computed from it, in the order of the condition's text.
        has_rules: whether the constants depend on time zone rules, of which the engine
            may have another version.
    """

    now: datetime
    constants: tuple[MomentConstant, ...]
    has_rules: bool


def at_moment(
    text: str,
    now: datetime,
    zone: str | None,
    is_column: Callable[[str], bool] = lambda _: False,
) -> tuple[str, Moment | None]:
    """The condition with literals for the moment; without a use of it, as it was.

    ``now`` has a time zone.  If the session's ``zone`` is not known, days and wall
    clocks are left to the engine, which makes them of the same moment.  A column comes
    before a function that needs no parentheses, so ``is_column`` tells them apart.
    """
    if "${" in text or not _ANY_NAME.search(text):
        return text, None
    cursor = cursor_of(text)
    if _has_other_names(cursor):
        return text, None
    clock, now = clock_of(zone), now.astimezone(UTC)
    constants, pieces, at = [], [], 0
    for start, end in _uses(cursor, is_column):
        kind = _NAMES[cursor.tokens[start].key]
        value = _value(kind, now, clock, zone)
        engine_text = _of_engine(kind, now) or value
        if engine_text is None:
            continue
        written = cursor.written(start, end)
        constants.append(MomentConstant(written, engine_text, value))
        pieces += [text[at : cursor.tokens[start].start], value or engine_text]
        at = cursor.tokens[end - 1].end
    if not constants:
        return text, None
    parse_all(cursor)  # a mistake is shown in the text of the user
    has_rules = clock is not None and clock.has_rules
    moment = Moment(now, tuple(constants), has_rules)
    return "".join([*pieces, text[at:]]), moment


def _has_other_names(cursor: Cursor) -> bool:
    """Whether a name may be of a lambda, or of another table."""
    before = ""
    for token in cursor.tokens:
        if token.key in {"->", "SELECT"} or (before == "(" and token.key in QUERIES):
            return True
        before = token.key
    return False


def _uses(cursor: Cursor, is_column: Callable[[str], bool]) -> list[tuple[int, int]]:
    """Where functions of the moment stand: the first token, and behind the last."""
    result = []
    tokens = cursor.tokens
    for i, token in enumerate(tokens):
        if token.key not in _NAMES or (i and tokens[i - 1].key in {".", "AS", ":"}):
            continue
        after = tokens[i + 1].key
        if after == "(" and cursor.closing[i + 1] == i + 2:
            result.append((i, i + 3))
        elif (
            token.key in _WITHOUT_PARENTHESES
            and after not in {"(", ".", "=>", ":", "["}
            and not is_column(token.text)
        ):
            result.append((i, i + 1))
    return result


def _value(
    kind: str, now: datetime, clock: Clock | None, zone: str | None
) -> str | None:
    """What a function of the moment tells, in SQL; None if not without a zone."""
    match kind:
        case "instant":
            return literal_sql(now)
        case "seconds" if now >= EPOCH_UTC:
            return f"CAST({int(now.timestamp())} AS BIGINT)"
        case "zone" if zone is not None:
            return literal_sql(zone)
        case "day" if clock is not None:
            return literal_sql(clock.wall(now).date())
        case "local time" if clock is not None:
            return argument_sql(typed(clock.wall(now), "TIMESTAMP_NTZ"))
        case _:
            return None


def _of_engine(kind: str, now: datetime) -> str | None:
    """What depends on the session, as the engine computes it from the instant."""
    targets = {"day": "DATE", "local time": "TIMESTAMP_NTZ"}
    return f"CAST({literal_sql(now)} AS {targets[kind]})" if kind in targets else None
