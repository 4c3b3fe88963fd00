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

from skipindex.expressions import Literal, argument_sql, literal_sql
from skipindex.expressions.domain import EPOCH_UTC
from skipindex.expressions.not_judged import NotJudgedError
from skipindex.planner.functions.clock import Clock, clock_of, computing_by
from skipindex.planner.sql.cursor import Cursor
from skipindex.planner.sql.parser import QUERIES, cursor_of, parse_all
from skipindex.planner.trees.operands import MOMENTS, LiteralOperand, argument

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
    if "${" in text or not names_moment(text):
        return text, None
    cursor = cursor_of(text)
    if _has_other_names(cursor):
        return text, None
    clock, now = clock_of(zone), now.astimezone(UTC)
    spans: dict[tuple[int, int], MomentConstant] = {}
    for start, end in _uses(cursor, is_column):
        kind = _NAMES[cursor.tokens[start].key]
        value = _value(kind, now, clock, zone)
        of_engine = _of_engine(kind, now)
        if value is not None:
            cursor.given[start] = value, end
            of_engine = of_engine or _sql(value)
        if of_engine is not None:
            shown = None if value is None else _sql(value)
            spans[start, end] = MomentConstant(
                cursor.written(start, end), of_engine, shown
            )
    if not spans:
        return text, None
    with computing_by(clock):
        parse_all(cursor)
    given = sorted(spans.items())
    for (start, end), operand in cursor.folded.items():
        sql = _sql(operand)
        if sql is not None:
            inside = {s: c for s, c in given if start <= s[0] < end}
            engine_text = _replaced(cursor, inside, start, end, lambda c: c.engine_text)
            written = cursor.written(start, end)
            spans[start, end] = MomentConstant(written, engine_text, sql)
    widest = {
        span: constant
        for span, constant in sorted(spans.items())
        if not any(_encloses(other, span) for other in spans)
    }
    replaced = _replaced(
        cursor, widest, 0, len(cursor.tokens), lambda c: c.value or c.engine_text
    )
    has_rules = clock is not None and clock.has_rules
    return replaced, Moment(now, tuple(widest.values()), has_rules)


def names_moment(text: str) -> bool:
    """Whether a text may have a function of the moment."""
    return bool(_ANY_NAME.search(text))


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
) -> LiteralOperand | None:
    """The value of a function of the moment; None if it is not known without a zone."""
    match kind:
        case "instant":
            return LiteralOperand(now)
        case "seconds" if now >= EPOCH_UTC:
            return LiteralOperand(int(now.timestamp()), "BIGINT")
        case "zone" if zone is not None:
            return LiteralOperand(zone)
        case "day" if clock is not None:
            return LiteralOperand(clock.wall(now).date())
        case "wall clock" if clock is not None:
            return LiteralOperand(clock.wall(now), "TIMESTAMP_NTZ")
        case _:
            return None


def _of_engine(kind: str, now: datetime) -> str | None:
    """What depends on the session, as the engine computes it from the instant."""
    targets = {"day": "DATE", "wall clock": "TIMESTAMP_NTZ"}
    return f"CAST({literal_sql(now)} AS {targets[kind]})" if kind in targets else None


def _sql(operand: LiteralOperand) -> str | None:
    """A literal of the same type and value; None if SQL has none that is plain."""
    value: Literal = operand.value
    match value:
        case datetime() if operand.kind == "TIMESTAMP_NTZ":
            return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"
        case datetime():
            return literal_sql(value.astimezone(UTC)) if value.tzinfo else None
        case None | float():
            return None
    try:
        sql = argument_sql(argument(operand))
    except NotJudgedError:
        return None
    return f"({sql})" if sql.startswith("-") else sql  # -- begins a comment


def _encloses(wide: tuple[int, int], narrow: tuple[int, int]) -> bool:
    return wide != narrow and wide[0] <= narrow[0] and narrow[1] <= wide[1]


def _replaced(
    cursor: Cursor,
    spans: dict[tuple[int, int], MomentConstant],
    start: int,
    end: int,
    shown: Callable[[MomentConstant], str],
) -> str:
    """The text between two tokens, with other text for some of it."""
    tokens, pieces = cursor.tokens, []
    at, last = tokens[start].start, tokens[end - 1].end
    if start == 0:
        at = 0
    for (first, behind), constant in sorted(spans.items()):
        pieces += [cursor.text[at : tokens[first].start], shown(constant)]
        at = tokens[behind - 1].end
    pieces.append(cursor.text[at : max(last, at)])
    joined = pieces[0]
    for piece in pieces[1:]:
        apart = joined[-1:].isspace() or not joined or not _is_word(joined[-1:])
        joined += piece if apart or not _is_word(piece[:1]) else f" {piece}"
    return joined


def _is_word(character: str) -> bool:
    return character.isalnum() or character in {"_", "'", '"', "`"}
