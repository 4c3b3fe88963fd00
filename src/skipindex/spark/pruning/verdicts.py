"""The verdict on the files of a scan: which hold no row that a query needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from skipindex.errors import PlanError, SkipIndexError
from skipindex.expressions import (
    In,
    Predicate,
    Reference,
    Unsupported,
    conjunction,
    literal_sql,
)
from skipindex.expressions.atoms import IntegerSet
from skipindex.planner.functions.zones import listed_offsets
from skipindex.planner.plan import Plan, plan_files, worth_judging
from skipindex.planner.sql.parser import parse
from skipindex.spark.catalyst.conditions import Conditions, conditions
from skipindex.spark.pruning.answers import answer
from skipindex.spark.pruning.dimensions import JoinedConditions, joined_conditions
from skipindex.spark.pruning.first_rows import FirstRows, needed_files
from skipindex.spark.pruning.protocol import Dimension, Question
from skipindex.spark.pruning.tables import ScannedTable
from skipindex.spark.settings import CASE
from skipindex.table import TableState

ZONE: Final = "spark.sql.session.timeZone"
_FEW: Final = 8
"""Keys of a join that are shown one by one."""
_INTEGERS: Final = frozenset({"tinyint", "smallint", "int", "bigint"})
_PARTITION_TYPES: Final[Mapping[str, pa.DataType]] = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "date": pa.date32(),
}
"""Types under which a folder's name has one value, whatever the session's settings."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an answer is made of.

    Args:
        files: that need not be read, unless they have changed.
        condition: of the scan, in SQL, with the first rows that are asked for.
        plan: says why.
        answered: the results that are asked for.
        results: over these files.
    """

    files: np.ndarray
    condition: str
    plan: Plan | None = None
    answered: str = ""
    results: str = ""


def verdict(table: ScannedTable, question: Question) -> Verdict | None:
    """The files that need not be read; None where no result is known without them."""
    judged = _judged_columns(table, question)
    asked = conditions(question.conjuncts, judged)
    joined = _all_joined(table, asked, question)
    texts = [*asked.shown, *_other_texts(asked, joined, question)]
    text = " AND ".join(texts) or "TRUE"
    plan_of = partial(_plan, table, asked, joined, question, judged)
    if question.answer is not None:
        known = answer(question.answer, judged, plan_of, table, question.is_listed())
        if known is None:
            return None
        return Verdict(known.files, text, known.plan, known.asked, known.text)
    first = FirstRows.of(question.first, judged)
    if first is None and not (asked.texts or asked.lists or _keys(question) or joined):
        return Verdict(np.zeros(0, np.int64), text)
    plan = plan_of((), first)
    kept = plan.evaluation.possible
    if first is not None:
        kept = needed_files(plan, table, question.is_listed())
        text = f"{text} {first}"
    return Verdict(np.flatnonzero(~kept), text, plan)


def _judged_columns(table: ScannedTable, question: Question) -> Mapping[str, str]:
    """The columns whose values are those that the table's indexes tell of."""
    data, partitions = question.data_types, question.partitions_types
    is_exact = _is_case_sensitive(question)
    # A partition column counts if Spark takes its values from the folders' names, as
    # the table does: a catalog may say otherwise.
    taken = {*partitions, *(n for p in table.state.partitions for n in p.names)}
    if not is_exact:
        taken = {name.lower() for name in taken}
    judged = {
        name: kind
        for name, kind in data.items()
        if (name if is_exact else name.lower()) not in taken
    }
    if question.is_catalog_table:
        return judged
    for column in table.state.partitions:
        kind = partitions.get(column.name, "")
        is_same = (
            column.dtype is not None and _PARTITION_TYPES.get(kind) == column.dtype
        )
        if is_same and len(column.names) == 1:
            judged[column.name] = kind
    return judged


def _is_case_sensitive(question: Question) -> bool:
    return (question.settings[CASE] or "").lower() == "true"


def _key_set(values: Sequence[Any], kind: str) -> IntegerSet | tuple[str, ...] | None:
    """The keys of a join for a column of this type; None if it is no type of keys."""
    if kind in _INTEGERS:
        return IntegerSet(np.array(values, np.int64))
    return tuple(values) if kind == "string" else None


def _keys(question: Question) -> list[tuple[str, Sequence[Any]]]:
    """The keys that a join leaves, with their columns."""
    return [(name, side) for name, side in question.keys if isinstance(side, list)]


def _all_joined(
    table: ScannedTable, asked: Conditions, question: Question
) -> list[JoinedConditions]:
    """The conditions of dimensions that the table's indexes can judge."""
    state = table.typed(question.data)
    found: list[JoinedConditions] = []
    zone = asked.zone
    for name, side in question.keys:
        is_asked = isinstance(side, Dimension)
        one = joined_by(state, name, side, zone) if is_asked else None
        if one is not None:
            found.append(one)
            zone = one.zone
    return found


def joined_by(
    state: TableState, column: str, side: Dimension | None, zone: str | None
) -> JoinedConditions | None:
    """Like ``joined_conditions``, but None too if the dimension cannot be looked at."""
    if side is None:
        return None
    try:
        return joined_conditions(state, column, side, zone)
    except (SkipIndexError, OSError):
        return None


def _other_texts(
    asked: Conditions, joined: Sequence[JoinedConditions], question: Question
) -> list[str]:
    """Conditions of dimensions, and lists and keys that may be too many to be shown."""
    lists = [*asked.lists, *_keys(question)]
    texts = [f"{name} IN ({_shown(keys)})" for name, keys in lists]
    return [*(one.text for one in joined), *texts]


def _shown(keys: Sequence[Any]) -> str:
    is_short = len(keys) <= _FEW and all(isinstance(key, int | str) for key in keys)
    return ", ".join(map(literal_sql, keys)) if is_short else f"{len(keys)} keys"


def _condition(asked: Conditions, table: TableState) -> Predicate:
    """What the conditions ask; those that nothing can judge as people read them."""
    whole = worth_judging(asked.text, table)
    is_refused = len(asked.texts) > 1 and isinstance(whole, Unsupported)
    if is_refused or asked.shown == asked.texts:
        return whole
    parts = []
    for text, shown in zip(asked.texts, asked.shown, strict=True):
        part = parse(text)
        if isinstance(part, Unsupported) and text != shown:
            part = replace(part, text=shown)
        parts.append(part)
    return conjunction(parts)


def _plan(
    table: ScannedTable,
    asked: Conditions,
    joined: Sequence[JoinedConditions],
    question: Question,
    judged: Mapping[str, str],
    more: Sequence[Predicate],
    first: FirstRows | None = None,
) -> Plan:
    """The plan for what was understood of the conditions, and for some more."""
    lists = [*asked.lists, *_keys(question)]
    keys = [
        In(Reference((name,)), key_set)
        for name, values in lists
        if (key_set := _key_set(values, judged.get(name, ""))) is not None
    ]
    is_counted = first is not None or question.answer is not None
    if is_counted and (question.keys or len(keys) < len(lists)):
        raise PlanError("rows of a join, or of a list of unknown type, are not counted")
    zones = [asked.zone, *(one.zone for one in joined), question.settings[ZONE]]
    parts = [*(one.predicate for one in joined), *keys, *more]
    if asked.texts or not parts:
        parts.insert(0, _condition(asked, table.state))
    return plan_files(
        conjunction(parts),
        table=table.typed(question.data, question.derived),
        timezone=next(filter(None, zones), None),
        offsets=listed_offsets(question.settings[ZONE] or "", question.offsets or ()),
        case_sensitive=_is_case_sensitive(question),
        limit=None if first is None else first.n,
        order_by=None if first is None else first.order_by,
    )
