"""What the driver asks while it plans a query: which files hold no matching row."""

from __future__ import annotations

import json
import logging
import struct
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from skipindex.errors import PlanError, SkipIndexError, first_line
from skipindex.expressions import In, Predicate, Reference, conjunction
from skipindex.expressions.atoms import IntegerSet
from skipindex.planner.plan import Plan, plan_files
from skipindex.planner.sql.parser import parse
from skipindex.spark.catalyst.conditions import Conditions, conditions
from skipindex.spark.pruning.answers import answer
from skipindex.spark.pruning.dimensions import JoinedConditions, joined_conditions
from skipindex.spark.pruning.first_rows import FirstRows, needed_files
from skipindex.spark.pruning.query_plan import QueryPlan
from skipindex.spark.pruning.tables import (
    ScannedTable,
    Tables,
    scanned_location,
    types_of,
)
from skipindex.spark.settings import CASE, READING, check_reading
from skipindex.storage.file_system.location import Location
from skipindex.table import TableState

LOG: Final = logging.getLogger("skipindex")
TIME_LIMIT: Final = "skipindex.timeLimit"
DEFAULT_TIME_LIMIT: Final = 10.0
"""Seconds that a query waits for a plan; then it reads every file."""
MAX_RECORDS: Final = 32
_THREADS: Final = 8

_ZONE: Final = "spark.sql.session.timeZone"
_INTEGERS: Final = frozenset({"tinyint", "smallint", "int", "bigint"})
SETTINGS: Final = (_ZONE, CASE, TIME_LIMIT, *READING)
"""What a question tells of the session.

What an expression of Catalyst means is fixed, so that settings for SQL text do not
matter here.
"""
_PARTITION_TYPES: Final[Mapping[str, pa.DataType]] = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "date": pa.date32(),
}
"""Types under which a folder's name has one value, whatever the session's settings."""


class QueryPlanner:
    """Answers the questions of scans; whatever fails, all is read."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.records: deque[QueryPlan] = deque(maxlen=MAX_RECORDS)
        self._pool = ThreadPoolExecutor(_THREADS, "skipindex")
        self._warned = False

    def answer(self, text: str) -> bytes | None:
        """The number of a listing and a bit for each of its files; None is "read all".

        Args:
            text: the question as ``PlannerCalls`` writes it.
        """
        header, _, conjuncts = text.partition("\n")
        question = json.loads(header)
        limit = float(question["settings"][TIME_LIMIT] or DEFAULT_TIME_LIMIT)
        try:
            return self._pool.submit(self._judged, question, conjuncts).result(limit)
        except TimeoutError:
            self._failed(
                question, f"planning took more than {limit:g} s ({TIME_LIMIT})"
            )
        except Exception as error:  # noqa: BLE001 (a query never fails by its plan)
            self._failed(question, f"{type(error).__name__}: {first_line(error)}")
        return None

    def files(self, number: str) -> bytes:
        """The files of a listing, as ``PlannerCalls`` reads them.

        Raises:
            TableError: the listing is not remembered any more.
        """
        return self.tables.numbered(int(number)).packed_files()

    def uses_of(self, text: str) -> bytes | None:
        """What leaves out files where a column is joined; None if nothing does.

        ``a`` are the conditions of the other side, judged by associated columns, and
        ``k`` the keys that it leaves, which are not needed where all are judged.

        Args:
            text: the folder, the column and the other side, as ``PlannerCalls`` writes
                them.
        """
        asked = json.loads(text)
        try:
            state = self.tables.remembered(_location(asked)).state
            column = state.resolve(asked["column"])
            is_indexed = state.blobs(column) or state.maps(column)
        except (SkipIndexError, OSError):
            return None
        joined = _joined(state, asked["column"], asked["dimension"], None)
        uses = b"" if joined is None else b"a"
        if is_indexed and not (joined and joined.are_all):
            uses += b"k"
        return uses or None

    def close(self) -> None:
        """Start no plan any more; the threads end when they have no work."""
        self._pool.shutdown(wait=False)

    def failed(self, reason: str) -> None:
        """Warn, once, that a query reads all files of a table."""
        if not self._warned:
            self._warned = True
            LOG.warning(
                "a query reads all files, as it could not be planned (this is said "
                "once; last_plans tells of others): %s",
                reason,
            )

    def _failed(self, question: Mapping[str, Any], problem: str) -> None:
        self.records.append(QueryPlan(question["root"], "", 0, 0, 0.0, problem=problem))
        self.failed(f"{question['root']}: {problem}")

    def _judged(self, question: Mapping[str, Any], conjuncts: str) -> bytes | None:
        start = time.perf_counter()
        settings = question["settings"]
        check_reading(settings, question["reader"], question["options"])
        location = _location(question)
        number = question.get("listing")
        table = (
            self.tables.numbered(number) if number else self.tables.current(location)
        )
        if number == 0:
            return struct.pack("<q", table.number)
        judged = _judged_columns(table, question)
        asked = conditions(conjuncts, judged)
        joined = _all_joined(table, asked, question)
        found = _verdict(table, asked, joined, question, judged)
        if found is None:
            return None
        text = " AND ".join([asked.text, *_other_texts(asked, joined, question)])
        self.records.append(
            QueryPlan(
                location.full(""),
                text + found.order,
                len(table.state),
                len(found.files),
                time.perf_counter() - start,
                is_estimate=question["is_estimate"],
                plan=found.plan,
                answered=found.answered,
            )
        )
        if not len(found.files):
            return None
        bits = np.zeros(len(table.state), np.bool_)
        bits[found.files] = True
        packed = np.packbits(bits, bitorder="little").tobytes()
        return struct.pack("<q", table.number) + packed + found.results.encode()


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What an answer is made of.

    Args:
        files: that need not be read.
        plan: says why.
        order: the first rows that are asked for, in SQL.
        answered: the results that are asked for.
        results: over these files.
    """

    files: np.ndarray
    plan: Plan | None = None
    order: str = ""
    answered: str = ""
    results: str = ""


def _verdict(
    table: ScannedTable,
    asked: Conditions,
    joined: Sequence[JoinedConditions],
    question: Mapping[str, Any],
    judged: Mapping[str, str],
) -> _Verdict | None:
    """The files that need not be read; None where no result is known without them."""
    plan_of = partial(_plan, table, asked, joined, question, judged)
    listed = np.frombuffer(question.get("listed", "").encode(), np.uint8) == ord("1")
    if "answer" in question:
        known = answer(question["answer"], judged, plan_of, table, listed)
        if known is None:
            return None
        # That the files are unchanged is a part of the answer.
        return _Verdict(
            known.files, known.plan, answered=known.asked, results=known.text
        )
    first = FirstRows.of(question.get("first"), judged)
    if first is None and not (asked.texts or asked.lists or _keys(question) or joined):
        return _Verdict(np.zeros(0, np.int64))
    plan = plan_of((), first)
    kept = plan.evaluation.possible
    if first is not None:
        kept = needed_files(plan, table, listed)
    files = np.flatnonzero(~kept)
    order = "" if first is None else f" {first}"
    return _Verdict(files[table.unchanged(files)], plan, order)


def _judged_columns(
    table: ScannedTable, question: Mapping[str, Any]
) -> Mapping[str, str]:
    """The columns whose values are those that the table's indexes tell of.

    A partition column counts if Spark takes its values from the folders' names, as
    the table does: a catalog may say otherwise.
    """
    data, partitions = types_of(question["data"]), types_of(question["partitions"])
    taken = table.partition_names | {name.lower() for name in partitions}
    judged = {name: kind for name, kind in data.items() if name.lower() not in taken}
    if question["is_catalog_table"]:
        return judged
    for column in table.state.partitions:
        kind = partitions.get(column.name, "")
        is_same = (
            column.dtype is not None and _PARTITION_TYPES.get(kind) == column.dtype
        )
        if is_same and len(column.names) == 1:
            judged[column.name] = kind
    return judged


def _location(asked: Mapping[str, Any]) -> Location:
    return scanned_location(asked["scheme"], asked["authority"], asked["root"])


def _key_set(values: Sequence[Any], kind: str) -> IntegerSet | tuple[str, ...] | None:
    """The keys of a join for a column of this type; None if it is no type of keys."""
    if kind in _INTEGERS:
        return IntegerSet(np.array(values, np.int64))
    return tuple(values) if kind == "string" else None


def _keys(question: Mapping[str, Any]) -> list[tuple[str, Sequence[Any]]]:
    """By column, the keys that a join leaves."""
    return [(name, side) for name, side in question["keys"] if isinstance(side, list)]


def _all_joined(
    table: ScannedTable, asked: Conditions, question: Mapping[str, Any]
) -> list[JoinedConditions]:
    """The conditions of dimensions that the table's indexes can judge."""
    state = table.typed(question["data"])
    found: list[JoinedConditions] = []
    zone = asked.zone
    for name, side in question["keys"]:
        one = _joined(state, name, side, zone) if isinstance(side, dict) else None
        if one is not None:
            found.append(one)
            zone = one.zone
    return found


def _joined(
    state: TableState, column: str, side: Any, zone: str | None
) -> JoinedConditions | None:
    """As ``joined_conditions``; None too if the dimension cannot be looked at."""
    if side is None:
        return None
    try:
        return joined_conditions(state, column, side, zone)
    except (SkipIndexError, OSError):
        return None


def _other_texts(
    asked: Conditions, joined: Sequence[JoinedConditions], question: Mapping[str, Any]
) -> list[str]:
    """Conditions of dimensions, and lists and keys that may be too many to be shown."""
    lists = [*asked.lists, *_keys(question)]
    texts = [f"{name} IN ({len(keys)} keys)" for name, keys in lists]
    return [*(one.text for one in joined), *texts]


def _plan(
    table: ScannedTable,
    asked: Conditions,
    joined: Sequence[JoinedConditions],
    question: Mapping[str, Any],
    judged: Mapping[str, str],
    more: Sequence[Predicate],
    first: FirstRows | None = None,
) -> Plan:
    """The plan for what was understood of the conditions, and for some more.

    Raises:
        PlanError: rows are counted, and not all conditions of them are understood.
    """
    lists = [*asked.lists, *_keys(question)]
    keys = [
        In(Reference((name,)), key_set)
        for name, values in lists
        if (key_set := _key_set(values, judged.get(name, ""))) is not None
    ]
    is_counted = first is not None or "answer" in question
    if is_counted and (question["keys"] or len(keys) < len(lists)):
        raise PlanError("rows of a join, or of a list of unknown type, are not counted")
    settings = question["settings"]
    zones = [asked.zone, *(one.zone for one in joined), settings[_ZONE]]
    others = (one.predicate for one in joined)
    return plan_files(
        conjunction([parse(asked.text), *others, *keys, *more]),
        table=table.typed(question["data"]),
        timezone=next(filter(None, zones), None),
        case_sensitive=(settings[CASE] or "").lower() == "true",
        limit=None if first is None else first.n,
        order_by=None if first is None else first.order_by,
    )
