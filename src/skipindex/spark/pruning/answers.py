"""Answering aggregates of a scan from indexes, without reading files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from skipindex.expressions import Predicate, col, name_parts
from skipindex.expressions.arrays import Mask
from skipindex.expressions.atoms import Value
from skipindex.planner.answers import Groups, MatchingRows
from skipindex.planner.plan import Plan
from skipindex.planner.rows.values import number_of, scalar_of
from skipindex.spark.catalyst.node import read_nodes
from skipindex.spark.catalyst.translator import Translator
from skipindex.spark.pruning.protocol import Function, Results
from skipindex.spark.pruning.tables import ScannedTable
from skipindex.table import ColumnInfo, TableState

MAX_ROWS: Final = 10_000
"""More groups than that are left to Spark."""

PlanOf = Callable[[tuple[Predicate, ...]], Plan]
"""The plan of the scan's conditions and of some more."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The results over some files.

    Args:
        asked: what they are results of.
        files: these files.
        rows: with the value of the group first; None if nothing but ``files`` is asked.
        plan: says how it is known which rows match.
    """

    asked: str
    files: np.ndarray
    rows: pa.Table | None
    plan: Plan


def answer(
    asked: Results,
    columns: Mapping[str, str],
    plan_of: PlanOf,
    table: ScannedTable,
    listed: Mask,
) -> Answer | None:
    """The results that indexes know; None if they do not know enough.

    ``table`` has the files as they were listed, and ``listed`` are those that Spark
    lists unchanged.
    """
    if asked.rows is not None:
        return _enough(asked.rows, plan_of(()), table, listed)
    wanted = _in_sql(asked, columns)
    return None if wanted is None else _results(wanted, plan_of, table, listed)


def _in_sql(asked: Results, columns: Mapping[str, str]) -> Results | None:
    """The same with names of columns in SQL; None if one is not understood."""
    translator, unknown = Translator(columns), []

    def name(json_text: str | None) -> str | None:
        column = json_text and translator.column(*read_nodes(json_text))
        unknown.append(bool(json_text) and column is None)
        return column

    functions = [replace(one, column=name(one.column)) for one in asked.functions]
    result = Results(group=name(asked.group), functions=functions)
    return None if any(unknown) else result


def _told(asked: Results) -> str:
    """What was asked, for people."""
    texts = [f"{one.name}({one.column or '*'})" for one in asked.functions]
    text = ", ".join(texts) or "groups"
    return text if asked.group is None else f"{text} by {asked.group}"


def _results(
    asked: Results, plan_of: PlanOf, table: ScannedTable, listed: Mask
) -> Answer | None:
    """The results over all files that indexes answer for; None if these are too few."""
    # A file is answered for if Spark would read just the rows that its index is of,
    # and every result over it is known.
    plan = plan_of(())
    rows = MatchingRows(plan, listed)
    known, result = rows.counted.copy(), []
    if asked.group is not None:
        column = _column(plan, asked.group)
        groups = rows.groups(column)
        known &= _among(groups, len(known))
    else:
        for function in asked.functions:
            results = _by_file(function, plan_of, plan, rows)
            known &= _among(results, len(known))
            result.append((function, results))
    files = np.flatnonzero(known)
    files = files[table.unchanged(files)]
    if not rows.counts[files].any() and len(files) < np.count_nonzero(listed):
        return None  # these files are not read anyway
    if asked.group is not None:
        merged = _merged(groups, files)
        if len(merged) > MAX_ROWS:
            return None
        counts = [pa.array(merged.values(), pa.int64())] * len(asked.functions)
        columns = [array_of([*merged], plan.table, column), *counts]
    else:
        columns = [_total(plan, f, results, files) for f, results in result]
    rows = pa.table(columns, [str(i) for i in range(len(columns))])
    return Answer(_told(asked), files, rows, plan)


def _enough(n: int, plan: Plan, table: ScannedTable, listed: Mask) -> Answer | None:
    """Answer a LIMIT of ``n`` without reading; None unless ``n`` rows must match."""
    lower = np.where(listed, plan.row_counts.lower, 0)
    best = np.argsort(-lower, kind="stable")
    files = best[: int(np.searchsorted(np.cumsum(lower[best]), n)) + 1]
    files = files[table.unchanged(files)]
    if lower[files].sum() < n:
        return None
    return Answer(f"{n} rows", np.arange(len(lower)), None, plan)


def array_of(
    values: Sequence[Value | None], table: TableState, column: ColumnInfo
) -> pa.Array:
    """Values of a column in the type that the table gives it."""
    domain, dtype = column.domain, table.type_of(column)
    assert domain is not None
    if pa.types.is_string(dtype):  # whatever the bytes are
        return pa.array(values, pa.binary()).view(dtype)
    scalars = [
        None if value is None else scalar_of(number_of(value, domain), domain, dtype)
        for value in values
    ]
    return pa.array(scalars, dtype)


def _column(plan: Plan, name: str) -> ColumnInfo:
    """A column of the plan's table by its name in SQL."""
    (part,) = name_parts(name)
    return plan.table.resolve(part, case_sensitive=plan.session.case_sensitive)


def _by_file(
    function: Function, plan_of: PlanOf, plan: Plan, rows: MatchingRows
) -> Mapping[int, Value | None]:
    """The result over each file for which it is known."""
    if function.column is None:
        files = np.flatnonzero(rows.counted).tolist()
        return {file: int(rows.counts[file]) for file in files}
    if function.name == "count":
        counts = plan_of((col(function.column).is_not_null(),)).row_counts
        files = np.flatnonzero(rows.counted & counts.exact).tolist()
        return {file: int(counts.lower[file]) for file in files}
    column = _column(plan, function.column)
    extremes = rows.extremes(column, greatest=function.name == "max")
    return {file: extreme.value for file, extreme in extremes.items()}


def _among(results: Mapping[int, object], n_files: int) -> Mask:
    mask = np.zeros(n_files, np.bool_)
    mask[list(results)] = True
    return mask


def _merged(groups: Mapping[int, Groups], files: np.ndarray) -> Groups:
    merged: dict[Value | None, int] = {}
    for file in files.tolist():
        for value, n in groups[file].items():
            merged[value] = merged.get(value, 0) + n
    return merged


def _total(
    plan: Plan,
    function: Function,
    results: Mapping[int, Value | None],
    files: np.ndarray,
) -> pa.Array:
    """The result over all files."""
    values: list[Any] = [results[file] for file in files.tolist()]
    if function.name == "count":
        return pa.array([sum(values)], pa.int64())
    assert function.column is not None
    extreme = min if function.name == "min" else max
    there = [value for value in values if value is not None]
    column = _column(plan, function.column)
    return array_of([extreme(there, default=None)], plan.table, column)
