"""Everyone who is asked for the rows of a condition, beside what Spark said."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, Final
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest

import skipindex as sx
from skipindex.conditions.binding.constants import with_values
from skipindex.conditions.sql.parser import parse
from skipindex.errors import PlanError
from skipindex.expressions import (
    And,
    ColumnComparison,
    Not,
    Or,
    Predicate,
    Reference,
    to_sql,
)
from skipindex.planner.rows import engines
from skipindex.spark.catalyst.conditions import conditions
from tests import oracle
from tests.conditions.catalogue.entries import Entry, entries
from tests.conditions.catalogue.tables import KINDS, SHAPE_TYPES, rows_of, table_of
from tests.conditions.catalogue.trees import TABLE, versions

_OPPOSITE: Final = str.maketrans("+-", "-+")
_OF_NULL: Final = str.maketrans("+-?", "--+")
FORMS: Final[Mapping[str, Mapping[int, int]]] = {
    "NOT ({}\n)": _OPPOSITE,
    "({}\n) IS NULL": _OF_NULL,
}
"""Conditions around one, and what is said of a row by what is said without them."""
TYPES: Final = {name: kind for name, (_, kind) in SHAPE_TYPES.items()}
VALUES: Final = {"+": True, "-": False, "?": None}
_INTEGERS: Final = ("i", "l", "y", "a b", "x.y", "tick`s", "order")
_BEHIND: Final = ("(select", "input_file_")
ALONE: Final = ("minmax", *KINDS, "ngram_bloom", "token_bloom")


def true_rows(truth: str) -> np.ndarray:
    """The numbers of the rows of which a truth is TRUE."""
    return np.flatnonzero(np.frombuffer(truth.encode(), "S1") == b"+")


def rows_wrong(found: Sequence[int], truth: str) -> str:
    """What is too much and what lacks; empty if nothing is wrong.

    Nothing is said of rows behind those that the truth is known of.
    """
    wanted = true_rows(truth).tolist()
    found = sorted(number for number in found if number < len(truth))
    if found == wanted:
        return ""
    many = sorted(set(found) - set(wanted)) or "none"
    few = sorted(set(wanted) - set(found)) or "none"
    return f"rows too many: {many}, lacking: {few}, of {len(wanted)}"


def is_part(text: str) -> bool:
    """Whether Spark evaluates a part of a condition behind the scan."""
    return any(word in text.lower() for word in _BEHIND)


def plan_wrong(table: str, plan: sx.Plan, truth: str, *, is_part: bool = False) -> str:
    """What a plan claims that is not so: its files, and their numbers of rows.

    Args:
        table: the name of the table.
        plan: for a condition on it.
        truth: of the condition.  Nothing is said of files with rows behind those that
            it is known of.
        is_part: whether the plan is for a part of the condition, so that other rows
            may match it too.
    """
    bounds, numbers = np.array(rows_of(table).bounds), true_rows(truth)
    n_files = len(bounds) - 1
    places = np.searchsorted(bounds, numbers, side="right") - 1
    order = np.array([int(path.partition(".")[0]) for path in plan.table.paths])
    counts = np.bincount(places, minlength=n_files)[order]
    is_known = (bounds[1:] <= len(truth))[order]
    if lost := np.flatnonzero(~plan.kept & (counts > 0)).tolist():
        rows = [n for i in lost for n in numbers[places == order[i]].tolist()]
        return f"skips files with the rows {rows}"
    found = plan.row_counts
    many = (found.lower > counts) & (not is_part)
    wrong = is_known & (many | (counts > found.upper))
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        claim = f"{found.lower[i]} to {found.upper[i]}"
        rows = numbers[places == order[i]].tolist()
        return f"counts {claim} rows in the file {order[i]}, of which match {rows}"
    return ""


def selection_wrong(table: str, plan: sx.Plan, truth: str) -> str:
    """What is wrong with the positions of the rows that a plan selects."""
    bounds, numbers = rows_of(table).bounds, true_rows(truth).tolist()
    for path, chosen in zip(plan.paths, plan.selections, strict=True):
        file = int(path.partition(".")[0])
        first, end = bounds[file], bounds[file + 1]
        if chosen.rows is None or end > len(truth):
            continue
        own = [number - first for number in numbers if first <= number < end]
        rows = chosen.rows.tolist()
        if (chosen.exact and own != rows) or not {*own} <= {*rows}:
            return f"selects the rows {rows} of the file {file}, and not {own}"
    return ""


def doubt_of(plan: sx.Plan) -> int:
    """How many rows lie between the bounds."""
    low, high = plan.count_bounds
    assert high is not None
    return high - low


def plan_of(table: str, text: str, zone: str, *kinds: str) -> sx.Plan:
    """The plan of a text by all kinds, or by some."""
    return table_of(table).plan(text, timezone=zone, kinds=list(kinds) or None)


@contextmanager
def by_pages() -> Iterator[None]:
    """Rows are read by pages, however many there are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "MOST_BLOCKS", math.inf)
        patch.setattr(engines, "is_faster_than_arrow", lambda _: True)
        patch.setattr(engines, "_is_faster_than_engines", lambda _, **__: True)
        yield


def _of_arrow(plan: sx.Plan) -> list[int]:
    numbers: list[int] = plan.to_arrow(columns=["nr"]).to_table()["nr"].to_pylist()
    return numbers


@cache
def _duckdb() -> Any:
    return pytest.importorskip("duckdb").connect()


def _of_duckdb(plan: sx.Plan) -> list[int]:
    relation = plan.to_duckdb(_duckdb(), columns=["nr"])
    return [row[0] for row in relation.fetchall()]


def _of_polars(plan: sx.Plan) -> list[int]:
    pytest.importorskip("polars")
    frame: Any = plan.to_polars(columns=["nr"]).collect()
    return list(frame["nr"].to_list())


def _of_pages(plan: sx.Plan) -> list[int]:
    with by_pages():
        return _of_arrow(plan)


def is_refused(plan: sx.Plan) -> bool:
    """Whether only Spark can evaluate the condition for all rows."""
    try:
        _of_arrow(plan)
    except PlanError:
        return True
    return False


READERS: Final[Mapping[str, Callable[[sx.Plan], list[int]]]] = {
    "Arrow": _of_arrow,
    "DuckDB": _of_duckdb,
    "Polars": _of_polars,
    "rows by pages": _of_pages,
}


def _of_plan(entry: Entry, text: str, *kinds: str) -> Iterator[str]:
    """What is wrong with the plan of a text that means the same."""
    plan = plan_of(entry.table, text, entry.zone, *kinds)
    for truth in entry.known:
        yield plan_wrong(entry.table, plan, truth)


def limit_wrong(entry: Entry, truth: str) -> str:
    """What is wrong with the files of a plan for a few rows."""
    bounds, numbers = rows_of(entry.table).bounds, true_rows(truth).tolist()
    if len(truth) < bounds[-1]:
        return ""
    for limit in (1, 5):
        plan = sx.plan_files(
            entry.text, table=table_of(entry.table), timezone=entry.zone, limit=limit
        )
        files = [int(path.partition(".")[0]) for path in plan.paths]
        spans = [range(bounds[file], bounds[file + 1]) for file in files]
        n_read = sum(any(n in span for span in spans) for n in numbers)
        if n_read < min(limit, len(numbers)):
            return f"with LIMIT {limit} reads {n_read} rows, of {len(numbers)}"
    return ""


@cache
def _python_rows(table: str) -> list[oracle.Row]:
    rows = pa.concat_tables(rows_of(table).files).to_pylist()
    return [{**row, "nr": number} for number, row in enumerate(rows)]


@cache
def _recorded(table: str) -> Mapping[str, str]:
    return {one.text: one.known[0] for one in entries(table) if one.known}


def _is_plain(tree: Predicate) -> bool:
    """Whether no function of a column is compared with another one."""
    match tree:
        case And(children) | Or(children):
            return all(map(_is_plain, children))
        case Not(child):
            return _is_plain(child)
        case ColumnComparison(left, _, right):
            return isinstance(left, Reference) and isinstance(right, Reference)
    return True


def parsed_truth(entry: Entry) -> str | None:
    """What the tree that is parsed is for each row, to the oracle.

    What it cannot evaluate is what Spark says of that part, if this is recorded.  None
    if it is not, or if the oracle does not cast a literal.
    """

    def judge(text: str, row: oracle.Row) -> bool | None:
        return VALUES[_recorded(entry.table)[text][row["nr"]]]

    tree = with_values(parse(entry.text), entry.zone)
    if not _is_plain(tree):
        return None
    try:
        truth = [
            oracle.evaluate(tree, row, unsupported=judge, integers=_INTEGERS)
            for row in _python_rows(entry.table)
        ]
    except (KeyError, TypeError, ValueError, ArithmeticError):
        return None
    return "".join(sign for one in truth for sign in VALUES if VALUES[sign] is one)


def _of_selection(entry: Entry, plan: sx.Plan) -> Iterator[str]:
    """What is wrong with the rows that the plan selects."""
    for truth in entry.known:
        yield selection_wrong(entry.table, plan, truth)


def _of_form(entry: Entry, form: str) -> Iterator[str]:
    """What is wrong with the plan of a condition around this one."""
    plan = plan_of(entry.table, form.format(entry.text), entry.zone)
    for truth in entry.known:
        yield plan_wrong(entry.table, plan, truth.translate(FORMS[form]))


def _of_again(entry: Entry, plan: sx.Plan) -> Iterator[str]:
    """What is wrong with the plan of the text that our parser writes."""
    again = to_sql(parse(entry.text))
    same = plan_of(entry.table, again, entry.zone)
    if (same.paths, same.count_bounds) != (plan.paths, plan.count_bounds):
        yield f"{again!r} has another plan"


def _of_tree(entry: Entry, plan: sx.Plan, version: str) -> Iterator[str]:
    """What is wrong with the plan of the final conditions of Catalyst."""
    json = versions()[version].get(entry.text) if entry.table == TABLE else None
    if json is None:
        return
    final = conditions(json, TYPES)
    zone = final.zone or entry.zone
    of_tree = table_of(TABLE).plan(final.tree, timezone=zone)
    for truth in entry.known:
        if trouble := plan_wrong(TABLE, of_tree, truth, is_part=is_part(entry.text)):
            yield f"{final.text!r} {trouble}"
    if more := {*of_tree.paths} - {*plan.paths}:
        yield f"{final.text!r} reads {len(more)} files more than the text"


def _of_reader(entry: Entry, plan: sx.Plan, name: str) -> Iterator[str]:
    """What is wrong with the rows of an engine."""
    try:
        numbers = READERS[name](plan)
    except PlanError as error:
        if not entry.refused:
            yield f"refuses: {error}"
        return
    if entry.refused and name == "Arrow":
        yield "does not refuse the condition"
    for truth in entry.known:
        yield rows_wrong(numbers, truth)


def _asked(entry: Entry, *, is_whole: bool) -> Iterator[tuple[str, Iterator[str]]]:
    """Who was asked, and what is wrong."""
    plan = plan_of(entry.table, entry.text, entry.zone)
    yield "the plan", iter(plan_wrong(entry.table, plan, t) for t in entry.known)
    if doubt_of(plan) != entry.doubt:
        trouble = f"{doubt_of(plan)} rows are in doubt, and not {entry.doubt}"
        yield "the plan", iter([f"{trouble} (write it with --marks if that is meant)"])
    if entry.table == "every" and entry.known and entry.zone == "UTC":
        ours = parsed_truth(entry)
        trouble = f"the tree is {ours}, and not {entry.known[0]}"
        yield "the parser", iter([trouble] * (ours not in {None, entry.known[0]}))
    limits = (limit_wrong(entry, truth) for truth in entry.known)
    others: dict[str, Callable[[], Iterator[str]]] = {"the plan": lambda: limits}
    others |= {
        f"the plan of {form!r}": partial(_of_form, entry, form) for form in FORMS
    }
    for kind in ALONE:
        others[f"the plan by {kind}"] = partial(_of_plan, entry, entry.text, kind)
    for version in versions():
        name = f"the final conditions of Spark {version}"
        others[name] = partial(_of_tree, entry, plan, version)
    for name in READERS:
        others[name] = partial(_of_reader, entry, plan, name)
    others["the selections of the plan"] = partial(_of_selection, entry, plan)
    others["the text that is written"] = partial(_of_again, entry, plan)
    names = list(others)
    if not is_whole:
        turn = crc32(entry.text.encode()) % (2 * len(names))
        names = names[turn : turn + 1]
    for name in names:
        yield name, others[name]()


def wrong(entry: Entry, *, is_whole: bool = False) -> Iterator[str]:
    """What is wrong with the answers to a condition, and who gave them.

    A quick run asks for the plan, and for every second condition one of the others,
    which depends on the text.
    """
    for name, troubles in _asked(entry, is_whole=is_whole):
        for trouble in filter(None, troubles):
            yield f"{entry}\n    {name}: {trouble}"
