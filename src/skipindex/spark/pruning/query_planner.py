"""What the driver asks while it plans a query: which files hold no matching row."""

from __future__ import annotations

import json
import logging
import struct
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np

from skipindex.errors import SkipIndexError, first_line
from skipindex.spark.pruning.query_plan import QueryPlan
from skipindex.spark.pruning.tables import Tables, scanned_location
from skipindex.spark.pruning.verdicts import ZONE, Verdict, joined_by, verdict
from skipindex.spark.settings import CASE, READING, check_reading
from skipindex.storage.file_system.location import Location

LOG: Final = logging.getLogger("skipindex")
TIME_LIMIT: Final = "skipindex.timeLimit"
DEFAULT_TIME_LIMIT: Final = 10.0
"""Seconds that a query waits for a plan; then it reads every file."""
MAX_RECORDS: Final = 32
"""So many plans are told of, and so many verdicts remembered."""
_THREADS: Final = 8

SETTINGS: Final = (ZONE, CASE, TIME_LIMIT, *READING)
"""What a question tells of the session.

What an expression of Catalyst means is fixed, so that settings for SQL text do not
matter here.
"""


class QueryPlanner:
    """Answers the questions of scans; whatever fails, all is read."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.records: deque[QueryPlan] = deque(maxlen=MAX_RECORDS)
        self._pool = ThreadPoolExecutor(_THREADS, "skipindex")
        self._warned = False
        self._lock = threading.Lock()
        self._verdicts: OrderedDict[tuple[int, str], Verdict] = OrderedDict()

    def answer(self, text: str) -> bytes | None:
        """The number of a listing and a bit for each of its files; None is "read all".

        A question that is asked ahead has no answer if files need not be read: it is
        asked again then, when Spark lists them, and what it means is remembered.

        Args:
            text: the question as ``PlannerCalls`` writes it.
        """
        purpose, asked = text.split("\n", 1)
        header, _, conjuncts = asked.partition("\n")
        question = json.loads(header)
        limit = float(question["settings"][TIME_LIMIT] or DEFAULT_TIME_LIMIT)
        try:
            return self._pool.submit(
                self._answer, purpose, asked, question, conjuncts
            ).result(limit)
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
        joined = joined_by(state, asked["column"], asked["dimension"], None)
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

    def _answer(
        self, purpose: str, asked: str, question: Mapping[str, Any], conjuncts: str
    ) -> bytes | None:
        start = time.perf_counter()
        check_reading(question["settings"], question["reader"], question["options"])
        location = _location(question)
        number = question.get("listing")
        table = (
            self.tables.numbered(number) if number else self.tables.current(location)
        )
        if number == 0:
            return struct.pack("<q", table.number)
        key = None if number or question["keys"] else (table.number, asked)
        found = self._remembered(key) or verdict(table, question, conjuncts)
        if found is None:
            return None
        if key:
            self._remember(key, found)
        files = found.files
        if len(files) and purpose == "ahead":
            return b""
        if not found.answered:  # else that they are unchanged is a part of the answer
            files = files[table.unchanged(files)]
        self.records.append(
            QueryPlan(
                location.full(""),
                found.condition,
                len(table.state),
                len(files),
                time.perf_counter() - start,
                is_estimate=purpose == "estimate",
                plan=found.plan,
                answered=found.answered,
            )
        )
        if not len(files):
            return None
        bits = np.zeros(len(table.state), np.bool_)
        bits[files] = True
        packed = np.packbits(bits, bitorder="little").tobytes()
        return struct.pack("<q", table.number) + packed + found.results.encode()

    def _remembered(self, key: tuple[int, str] | None) -> Verdict | None:
        with self._lock:
            return self._verdicts.get(key) if key else None

    def _remember(self, key: tuple[int, str], verdict: Verdict) -> None:
        with self._lock:
            self._verdicts[key] = verdict
            self._verdicts.move_to_end(key)
            while len(self._verdicts) > MAX_RECORDS:
                self._verdicts.popitem(last=False)


def _location(asked: Mapping[str, Any]) -> Location:
    return scanned_location(asked["scheme"], asked["authority"], asked["root"])
