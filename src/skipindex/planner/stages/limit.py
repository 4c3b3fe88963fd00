"""Which files a query with LIMIT needs, with and without ORDER BY.

``LIMIT n`` alone may return any ``n`` rows that match, so files that certainly hold
so many are enough.  With ``ORDER BY`` a file is not needed where even its best row
comes after ``n`` rows that certainly match.

The bounds of a file enclose the values of all of its rows, and a row that certainly
matches is one of them; so they may be wide (a long text that was cut), but never of
other rows than the file's (ClickHouse 107309, DataFusion 24352).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import gt, itemgetter, lt
from typing import Any, Final, TypeAlias

import numpy as np

from skipindex.conditions.bound_predicate import (
    BoundPredicate,
    ComparedColumns,
    Computed,
    Leaf,
    Unknown,
    fold,
)
from skipindex.errors import PlanError
from skipindex.expressions import Reference, name_parts
from skipindex.expressions.atoms import NullAtom
from skipindex.expressions.operators import NULL_SAFE
from skipindex.planner.stages.computed import bound_of
from skipindex.planner.stages.evaluation import Evaluation
from skipindex.planner.stages.records import Stage
from skipindex.planner.stages.row_counts import RowCounts
from skipindex.storage.parts import ReadCount
from skipindex.table import ColumnInfo, TableState

LIMIT: Final = "limit"
"""The name of the stage."""

_KEY: Final = re.compile(
    r"\s*(?P<name>.+?)(?:\s+(?P<order>ASC|DESC))?(?:\s+NULLS\s+(?P<nulls>FIRST|LAST))?\s*",
    re.IGNORECASE | re.DOTALL,
)
_Rank: TypeAlias = tuple[float, Any]
"""A position in the ascending order: its class, then the value if it has one."""

_NULL_LOW: Final[_Rank] = (0, None)
_BELOW: Final[_Rank] = (1, None)
_VALUE: Final = 2
"""The class of the values."""
_ABOVE: Final[_Rank] = (3, None)
_NULL_HIGH: Final[_Rank] = (4, None)


@dataclass(frozen=True, slots=True)
class SortKey:
    """One column of ORDER BY.

    Args:
        column: its name.
        descending: the greatest first.
        nulls_first: where NULL goes; Spark's default is before the least value.
    """

    column: Reference
    descending: bool
    nulls_first: bool

    def __str__(self) -> str:
        order = "DESC" if self.descending else "ASC"
        return f"{self.column} {order} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


def parse_order(order_by: str | Sequence[str]) -> tuple[SortKey, ...]:
    """The columns of ORDER BY: ``"x"``, or several such as ``"x DESC NULLS LAST"``."""
    texts = [order_by] if isinstance(order_by, str) else list(order_by)
    if not texts:
        raise PlanError("order_by has no column (expected 'x', or ['x DESC', 'y'])")
    keys = []
    for text in texts:
        match = _KEY.fullmatch(text)
        if match is None or "," in re.sub(r"`[^`]*`", "", match["name"]):
            raise PlanError(
                f"not a sort key: {text!r} (expected a column, then ASC or DESC, then "
                "NULLS FIRST or NULLS LAST; several as a list)"
            )
        descending = (match["order"] or "ASC").upper() == "DESC"
        default = "LAST" if descending else "FIRST"
        nulls_first = (match["nulls"] or default).upper() == "FIRST"
        keys.append(
            SortKey(Reference(name_parts(match["name"])), descending, nulls_first)
        )
    return tuple(keys)


@dataclass(frozen=True, slots=True)
class RowLimit:
    """How many of the matching rows are wanted, and which.

    Args:
        limit: how many rows; None is all.
        order_by: which rows come first; empty is any rows.
    """

    limit: int | None
    order_by: tuple[SortKey, ...]

    @classmethod
    def of(cls, limit: int | None, order_by: str | Sequence[str] | None) -> RowLimit:
        """The row limit of the arguments of ``plan_files``."""
        if limit is None:
            if order_by is not None:
                raise PlanError("order_by without limit has no effect (pass limit=n)")
            return EVERYTHING
        if not hasattr(limit, "__index__") or isinstance(limit, bool) or limit < 0:
            raise PlanError(f"not a limit: {limit!r} (accepted: a number of rows)")
        listed = [order_by] if isinstance(order_by, str) else order_by or ()
        if not _are_texts(listed):
            raise PlanError(
                f"not an order: {order_by!r} (accepted: 'x', or a list such "
                "as ['x DESC'])"
            )
        return cls(limit, () if order_by is None else parse_order(order_by))


def _are_texts(values: object) -> bool:
    return isinstance(values, Iterable) and all(isinstance(v, str) for v in values)


EVERYTHING: Final = RowLimit(None, ())
"""All rows that match."""


@dataclass(frozen=True, slots=True, eq=False)
class Needed:
    """The files that LIMIT needs.

    Args:
        mask: the files that are needed, among those that may hold a match.
        reason: why the others are not.
        note: why none could be omitted, or empty.
    """

    mask: np.ndarray
    reason: str = ""
    note: str = ""


def limited(
    evaluation: Evaluation,
    counts: RowCounts,
    row_limit: RowLimit,
    column: ColumnInfo | None,
) -> tuple[Needed, Stage]:
    """The files that ``row_limit`` needs, and what the stage achieved.

    ``column`` is the first sort key's; None if it has no statistics.
    """
    began = time.perf_counter()
    files = needed(evaluation, counts, row_limit, column)
    stage = Stage(
        LIMIT,
        int(files.mask.sum()),
        int(evaluation.table.sizes[files.mask].sum()),
        time.perf_counter() - began,
        ReadCount(),
        files.note,
    )
    return files, stage


def needed(
    evaluation: Evaluation,
    counts: RowCounts,
    row_limit: RowLimit,
    column: ColumnInfo | None,
) -> Needed:
    """The files that can hold one of the first rows that match.

    Only the first column of ORDER BY counts.  The others order ties, and a file that
    ties is needed.
    """
    limit = row_limit.limit
    assert limit is not None
    possible = evaluation.possible
    if limit == 0:
        return Needed(np.zeros_like(possible), "the limit is 0")
    lower = np.where(possible, counts.lower, 0)
    if lower.sum() < limit:
        return Needed(possible, note=f"fewer than {limit} rows certainly match")
    if not row_limit.order_by:
        return _any_rows(evaluation.table, lower, limit)
    key = row_limit.order_by[0]
    if column is None or column.domain is None:
        return Needed(possible, note=f"the order of {key.column} is not known")
    return _first_rows(evaluation, lower, limit, key, column)


def _any_rows(table: TableState, lower: np.ndarray, limit: int) -> Needed:
    """The files with the most certain matches a byte, until there are enough."""
    holding = np.flatnonzero(lower > 0)
    price = table.sizes[holding] / lower[holding]
    order = holding[np.argsort(price, kind="stable")]
    n_files = int(np.searchsorted(np.cumsum(lower[order]), limit)) + 1
    mask = np.zeros(len(table), bool)
    mask[order[:n_files]] = True
    n_rows = int(lower[order[:n_files]].sum())
    return Needed(mask, f"{n_rows} rows of the files that are read certainly match")


def _first_rows(
    evaluation: Evaluation,
    lower: np.ndarray,
    limit: int,
    key: SortKey,
    column: ColumnInfo,
) -> Needed:
    # --[ best ... worst ]----- last -----[ best ... worst ]--> in the order asked for
    #   at least `limit` rows are here,     so no row of this file is needed
    # The NULLs of a file all come before its values, or all after them.
    stats = evaluation.table.stats(column)
    null = _NULL_LOW if key.nulls_first != key.descending else _NULL_HIGH
    best, worst = (1, 0) if key.descending else (0, 1)
    can_null = stats.can_null & _keeps_null(evaluation.tree, column.name)
    # Of the rows that certainly match, so many may come after the first part.
    n_rows = evaluation.table.n_rows
    part = n_rows.minus(stats.nulls) if key.nulls_first else stats.nulls
    later = np.where(part.known, part.or_else(0), lower)
    later[~(stats.can_value if key.nulls_first else can_null)] = 0
    first = (lower - later).clip(0)
    points: list[tuple[_Rank, int]] = []
    starts = []
    files = np.flatnonzero(evaluation.possible)
    for i in files.tolist():
        span: tuple[_Rank, _Rank] = (_BELOW, _ABOVE)
        if stats.can_value[i] and stats.bounded[i]:
            low, high = (bound_of(ends, i) for ends in (stats.low, stats.high))
            span = (_VALUE, low), (_VALUE, high)
        ends = (null, span[worst]) if key.nulls_first else (span[worst], null)
        parts = zip(ends, (int(first[i]), int(lower[i] - first[i])), strict=True)
        points += [(end, n_rows) for end, n_rows in parts if n_rows]
        is_null = can_null[i] and (key.nulls_first or not stats.can_value[i])
        starts.append(null if is_null else span[best])
    points.sort(key=itemgetter(0), reverse=key.descending)
    total = np.cumsum([n_rows for _, n_rows in points])
    last = points[int(np.searchsorted(total, limit))][0]
    after = lt if key.descending else gt
    mask = evaluation.possible.copy()
    mask[files[[after(start, last) for start in starts]]] = False
    shown = _shown(last, column)
    return Needed(mask, f"{limit} rows that match have {key.column} up to {shown}")


def _keeps_null(tree: BoundPredicate, column: str) -> bool:
    """Whether a row with NULL in ``column`` may match."""

    def leaf(node: Leaf | Computed) -> bool:
        if node.column != column:
            return True
        if isinstance(node, Computed):
            return node.test(None) is not False
        return isinstance(node.atom, NullAtom)

    def unknown(node: Unknown) -> bool:
        if not isinstance(node, ComparedColumns) or node.operator in NULL_SAFE:
            return True
        return column not in {node.left, node.right}

    return fold(tree, leaf=leaf, all_of=all, any_of=any, constant=bool, unknown=unknown)


def _shown(rank: _Rank, column: ColumnInfo) -> str:
    assert column.domain is not None
    place, value = rank
    if place == _VALUE:
        return column.domain.show(value)
    return "NULL" if rank in {_NULL_LOW, _NULL_HIGH} else "any value"
