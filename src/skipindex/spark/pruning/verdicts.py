"""The verdict on the files of a scan: which hold no row that a query needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property, partial
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from skipindex.conditions.functions.zones import listed_offsets
from skipindex.errors import PlanError
from skipindex.expressions import (
    In,
    Predicate,
    Reference,
    conjunction,
    literal_sql,
    to_sql,
)
from skipindex.expressions.arrays import Ints, Mask
from skipindex.expressions.atoms import IntegerSet
from skipindex.expressions.domain import EPOCH
from skipindex.planner.file_tasks import byte_ranges
from skipindex.planner.plan import Plan, plan_files
from skipindex.planner.stages.cost import SPARK
from skipindex.planner.stages.limit import needed
from skipindex.planner.stages.row_counts import RowCounts
from skipindex.spark.catalyst.conditions import Conditions, conditions
from skipindex.spark.catalyst.literals import INTEGERS
from skipindex.spark.catalyst.node import read_nodes
from skipindex.spark.catalyst.translator import Translator
from skipindex.spark.pruning.answers import answer
from skipindex.spark.pruning.judged_columns import columns_of_iceberg, judged_columns
from skipindex.spark.pruning.protocol import First, Question, arrow_stream
from skipindex.spark.pruning.tables import ScannedTable
from skipindex.spark.settings import CASE


class FirstRows(NamedTuple):
    """How many rows a query needs, and the first key of their order in SQL, if any."""

    n: int
    order_by: str | None


def _first_rows(asked: First | None, columns: Mapping[str, str]) -> FirstRows | None:
    """The rows that a query needs; None is all rows, or an order that is not known."""
    if asked is None or asked.order is None:
        return None if asked is None else FirstRows(asked.n, None)
    order = asked.order
    column = Translator(columns).column(*read_nodes(order.column))
    if column is None:
        return None
    return FirstRows(asked.n, f"{column} {order.direction} {order.nulls}")


def needed_files(plan: Plan, table: ScannedTable, listed: Mask) -> tuple[Mask, bool]:
    """The files that may hold one of the first rows, and whether they are all it takes.

    Rows count where they certainly match, in a file that Spark reads as it was judged:
    ``listed`` are those that it lists unchanged.  Enough of any rows need no other
    file, also none that is not known, or has changed.
    """
    result, counts = plan.evaluation, plan.row_counts
    column, n = None, plan.row_limit.limit or 0
    for key in plan.row_limit.order_by[:1]:
        column = result.table.resolve(
            key.column.parts[0], case_sensitive=plan.session.case_sensitive
        )

    def with_matches(lower: np.ndarray) -> Mask:
        bounds = RowCounts(lower, counts.upper)
        return needed(result, bounds, plan.row_limit, column).mask

    lower = np.where(listed & result.possible, counts.lower, 0)
    if column is not None and np.array_equal(with_matches(lower), result.possible):
        return result.possible, False
    counted = np.flatnonzero(lower)
    lower[counted[~table.unchanged(counted)]] = 0
    return with_matches(lower), column is None and bool(lower.sum() >= n)


ZONE: Final = "spark.sql.session.timeZone"
ENOUGH: Final = b"enough"
_FEW: Final = 8
"""Keys of a join that are shown one by one."""
ColumnKeys: TypeAlias = tuple[str, Sequence[Any]]
"""A column, and the keys that it needs to have one of."""


@dataclass(frozen=True)
class Verdict:
    """What an answer is made of.

    Args:
        files: that need not be read, unless they have changed.
        condition: of the scan, in SQL, with the first rows that are requested.
        plan: says why.
        answered: the results that are requested.
        results: over these files; ``ENOUGH`` if no more than the others is needed.
    """

    files: np.ndarray
    condition: str
    plan: Plan | None = None
    answered: str = ""
    results: bytes = b""

    @cached_property
    def ranges(self) -> Mapping[int, Ints]:
        """The row groups that can hold a match; see ``byte_ranges``."""
        if self.plan is None or self.plan.table.source.has_versions:
            return {}
        return byte_ranges(self.plan.evaluation)


def verdict(
    table: ScannedTable, question: Question, keys: Sequence[ColumnKeys] = ()
) -> Verdict | None:
    """The files that need not be read; None where no result is known without them.

    ``keys`` are those that columns need to have, by joins.
    """
    is_exact = is_case_sensitive(question)
    if question.iceberg is None:
        judged = judged_columns(table.state, question, case_sensitive=is_exact)
    else:
        judged = columns_of_iceberg(table.state, question, question.iceberg)
    asked = conditions(question.conjuncts, judged)
    text = _text(asked.parts, keys)
    plan_of = partial(_plan, table, asked, keys, question, judged)
    listed = question.is_listed(len(table.state))
    if question.answer is not None:
        known = answer(question.answer, judged, plan_of, table, listed)
        if known is None:
            return None
        rows = b"" if known.rows is None else arrow_stream(known.rows)
        return Verdict(known.files, text, known.plan, known.asked, rows)
    first = _first_rows(question.first, judged)
    if first is None and not (asked.parts or keys):
        return Verdict(np.zeros(0, np.int64), text)
    plan = plan_of((), first)
    kept, results = plan.evaluation.possible, b""
    if first is not None:
        kept, is_enough = needed_files(plan, table, listed)
        results = ENOUGH if is_enough else b""
        order = "" if first.order_by is None else f" ORDER BY {first.order_by}"
        text = f"{text}{order} LIMIT {first.n}"
    return Verdict(np.flatnonzero(~kept), text, plan, results=results)


def is_case_sensitive(question: Question) -> bool:
    """Whether the names of columns are case-sensitive."""
    return (question.settings[CASE] or "").lower() == "true"


def _key_set(values: Sequence[Any], kind: str) -> IntegerSet | tuple[Any, ...] | None:
    """The keys of a join for a column of this type; None if it is no type of keys."""
    if kind in INTEGERS:
        return IntegerSet(np.asarray(values, np.int64))
    if kind == "date":
        days = [v if isinstance(v, date) else EPOCH + timedelta(days=v) for v in values]
        return tuple(days)
    return tuple(values) if kind == "string" or kind.startswith("decimal(") else None


def _shown(keys: Sequence[Any]) -> str:
    is_short = len(keys) <= _FEW and all(isinstance(key, int | str) for key in keys)
    return ", ".join(map(literal_sql, keys)) if is_short else f"{len(keys)} keys"


def _text(parts: Sequence[Predicate], keys: Sequence[ColumnKeys]) -> str:
    """The conditions for people, without the members of long lists."""
    lists: list[ColumnKeys] = []
    others = []
    for part in parts:
        if isinstance(part, In) and isinstance(part.values, IntegerSet):
            lists.append((str(part.column), part.values))
        else:
            others.append(part)
    texts = [to_sql(conjunction(others))] if others else []
    texts += [f"{name} IN ({_shown(some)})" for name, some in [*lists, *keys]]
    return " AND ".join(texts) or "TRUE"


def _plan(
    table: ScannedTable,
    asked: Conditions,
    joined: Sequence[ColumnKeys],
    question: Question,
    judged: Mapping[str, str],
    more: Sequence[Predicate],
    first: FirstRows | None = None,
) -> Plan:
    """The plan for what was understood of the conditions, and for some more."""
    keys = [
        In(Reference((name,)), key_set)
        for name, values in joined
        if (key_set := _key_set(values, judged.get(name, ""))) is not None
    ]
    is_counted = first is not None or question.answer is not None
    if is_counted and (question.keys or len(keys) < len(joined)):
        raise PlanError("rows of a join, or of a list of unknown type, are not counted")
    parts = [*keys, *more]
    if asked.parts or not parts:
        parts.insert(0, asked.tree)
    return plan_files(
        conjunction(parts),
        table=table.typed(question.data, question.derived),
        timezone=asked.zone or question.settings[ZONE],
        offsets=listed_offsets(question.settings[ZONE] or "", question.offsets or ()),
        case_sensitive=is_case_sensitive(question),
        limit=None if first is None else first.n,
        order_by=None if first is None else first.order_by,
        read_by=SPARK,
    )
