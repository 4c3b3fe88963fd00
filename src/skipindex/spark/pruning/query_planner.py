"""Answering the driver while it plans a query: the files to skip."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from skipindex.conditions.functions.zones import listed_offsets
from skipindex.errors import first_line
from skipindex.expressions.arrays import Ints
from skipindex.expressions.atoms import IntegerSet
from skipindex.planner.plan import record_plan
from skipindex.spark.pruning.dimensions import (
    FREE_BYTES,
    RATIO,
    Dimensions,
    Session,
    tells_files_apart,
)
from skipindex.spark.pruning.few_rows import FewRows, few_rows
from skipindex.spark.pruning.partitions import needed_partitions
from skipindex.spark.pruning.protocol import (
    NO_ANSWER,
    ROW_GROUPS,
    Answer,
    Call,
    Dimension,
    NoTable,
    Problem,
    Question,
    Read,
    WantedRows,
    read_report,
)
from skipindex.spark.pruning.query_plan import DimensionKeys, QueryPlan
from skipindex.spark.pruning.tables import ScannedTable, Tables
from skipindex.spark.pruning.verdicts import (
    ENOUGH,
    ZONE,
    ColumnKeys,
    Verdict,
    is_case_sensitive,
    verdict,
)
from skipindex.spark.settings import CASE, READING, check_reading
from skipindex.storage.deadline import Deadline, PlanCancelledError, running_until
from skipindex.storage.disk_cache import DIR_SETTING, use_setting
from skipindex.table.queries import BESIDE, LITERALS, SETTING, Recording

_K = TypeVar("_K")
_V = TypeVar("_V")
_Key: TypeAlias = tuple[int, str, tuple[tuple[str, bytes], ...]]

LOG: Final = logging.getLogger("skipindex")
_GRACE: Final = 1.0
"""Seconds after which a plan stops that the driver does not wait for any more."""
MAX_RECORDS: Final = 32
"""Most reported plans, and most remembered verdicts."""
_NO_TABLE: Final = "all files are read, as one table with indexes was not found there"
_MAX_LATE: Final = 256
"""Most questions remembered that the driver gave up."""

SETTINGS: Final = (ZONE, CASE, *READING, SETTING, LITERALS, DIR_SETTING, ROW_GROUPS)
"""The session as a question describes it.

What an expression of Catalyst means is fixed, so that settings for SQL text do not
matter here.
"""


class QueryPlanner:
    """Answers the questions of scans; whatever fails, all is read."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._dimensions = Dimensions()
        self.records: deque[QueryPlan] = deque(maxlen=MAX_RECORDS)
        self._warned = False
        self._lock = threading.Lock()
        self._asked: OrderedDict[int, QueryPlan] = OrderedDict()
        """By question, its record before a scan told what it lists."""
        self._told: OrderedDict[tuple[int, int], QueryPlan] = OrderedDict()
        """By question and scan, the record of the scan."""
        self._recording: OrderedDict[int, Recording] = OrderedDict()
        """By question, where it is recorded once a scan tells what it reads."""
        self._late: deque[int] = deque(maxlen=_MAX_LATE)
        """The questions whose answers do not count any more."""
        self._verdicts: OrderedDict[_Key, Verdict] = OrderedDict()
        """By the listing, the question, and the keys that were read for it."""

    def answer(self, text: str) -> bytes | None:
        """The number of a listing and a bit for each of its files; None is "read all".

        The files of a listing, if these are asked for; None for a report.
        No byte is no answer.  So a question ends that fails or takes too long, and one
        that is asked ahead if files need not be read: it is asked again when Spark
        lists them, and what it means is remembered.
        """
        line, asked = text.split("\n", 1)
        call, root, wanted = Call.of(line), "", None
        if call.purpose == "told":
            self.told(asked)
            return None
        if call.purpose == "rows":
            line, asked = asked.split("\n", 1)
            wanted = WantedRows.of(line)
        moment, deadline = _times(call.seconds, call.age)
        try:
            with running_until(deadline):
                if call.purpose == "files":
                    return self.files(asked)
                question = Question.read(asked)
                root = question.root
                return self._answer(call, moment, asked, question, wanted)
        except PlanCancelledError:
            pass  # the driver has gone on without the answer, and told why
        except Exception as error:  # noqa: BLE001 (a query never fails by its plan)
            self._failed(root, f"{type(error).__name__}: {first_line(error)}")
        return NO_ANSWER

    def files(self, number: str) -> bytes:
        """The files of a listing, as ``Listing.java`` reads them."""
        return self.tables.numbered(int(number)).packed_files()

    def told(self, text: str) -> None:
        """Remember what a scan reads, or why a question had no answer."""
        match read_report(text):
            case Problem() as one:
                self._give_up(one.number)
                self._failed(one.root, one.problem)
            case Read() as one:
                self._read(one)
            case NoTable() as one:
                self._read_all(one)

    def records_of(self, scans: Collection[int]) -> list[QueryPlan]:
        """The records without those of other scans, such as one that reads keys."""
        with self._lock:
            told = self._told.items()
            known = {0, *scans}  # 0 is that of rows, which have no scan
            others = {id(plan) for (_, scan), plan in told if scan not in known}
            return [plan for plan in self.records if id(plan) not in others]

    def _read_all(self, one: NoTable) -> None:
        """Record a scan of no table, once, unless its partitions were asked about."""
        plan = QueryPlan(one.root, "", 0, 0, 0.0, problem=_NO_TABLE)
        with self._lock:
            newest = self.records[-1] if self.records else plan
            is_known = newest.of_partitions and newest.folder == one.root
            if not (is_known or (0, one.scan) in self._told):
                _put(self._told, (0, one.scan), plan)
                self.records.append(plan)

    def _read(self, one: Read) -> None:
        """Let the record of a scan say what Spark listed, and what it reads."""
        # Scans with one question share the first record until they tell of themselves.
        scan = (one.number, one.scan)
        with self._lock:
            asked = self._asked.get(one.number)
            if asked is None:
                return
            plan = replace(
                asked,
                n_files=one.listed,
                n_skipped=one.listed - one.read,
                n_unindexed=asked.n_unindexed
                + max(one.unknown, one.listed - asked.n_files, 0),
            )
            former = self._told.get(scan, asked)
            for i, record in enumerate(self.records):
                if record is former:
                    self.records[i] = plan
                    break
            else:
                self.records.append(plan)
            _put(self._told, scan, plan)
            recording = self._recording.pop(one.number, None)
        if recording is not None and plan.plan is not None:
            record_plan(plan.plan, recording, one.listed, one.read)

    def _give_up(self, number: int) -> None:
        """Forget a question, if it has a number: the driver reads all files."""
        if not number:
            return
        with self._lock:
            self._late.append(number)
            self._asked.pop(number, None)
            kept = [record for record in self.records if record.number != number]
            self.records.clear()
            self.records.extend(kept)

    def _warn(self, reason: str) -> None:
        """Warn, once, that a query reads all files of a table."""
        if not self._warned:
            self._warned = True
            LOG.warning(
                "a query reads all files, because it could not be planned (logged "
                "once; see last_plans for others): %s",
                reason,
            )

    def _record(self, plan: QueryPlan) -> None:
        with self._lock:
            if plan.number and plan.number in self._late:
                return
            self.records.append(plan)
            if plan.number:
                _put(self._asked, plan.number, plan)

    def _failed(self, root: str, problem: str) -> None:
        self._record(QueryPlan(root, "", 0, 0, 0.0, problem=problem))
        self._warn(f"{root}: {problem}" if root else problem)

    def _answer(
        self,
        call: Call,
        moment: float,
        asked: str,
        question: Question,
        wanted: WantedRows | None,
    ) -> bytes | None:
        start = time.perf_counter()
        check_reading(question.settings, question.reader, question.options)
        use_setting(question.settings.get(DIR_SETTING))
        if call.purpose == "partitions":
            return self._needed(question)
        listing, location = question.listing, question.location()
        self._give_up(question.instead_of)
        table = (
            self.tables.numbered(listing)
            if listing
            else self.tables.since(location, moment, question.at)
        )
        if question.takes_rewritten:
            table = table.counted_by(question.data)
        dimensions, keys = self._joined(table, question)
        marks = tuple((name, _mark(some)) for name, some in keys)
        is_of_rows = question.first or question.answer  # of files that may change
        key = None if is_of_rows else (table.number, asked, marks)
        result = self._remembered(key) or verdict(table, question, keys)
        if result is None:
            return None
        if key:
            self._remember(key, result)
        if call.purpose == "observe":
            self._observe(table, result, question, start)
            return None
        files, rows = result.files, None
        if wanted is not None:
            rows = self._rows(table, result, wanted, question)
        # An estimate may count later, when files have changed.
        is_estimate = call.purpose == "estimate"
        takes_ranges = rows is None and question.takes_ranges and not is_estimate
        ranges = _unchanged(table, result.ranges) if takes_ranges else {}
        is_asked_again = len(files) or table.rewrites or ranges
        is_ahead = call.purpose in {"ahead", "rows"} and rows is None
        if is_asked_again and is_ahead:
            return NO_ANSWER
        is_enough = result.results == ENOUGH
        if not (
            result.answered or is_enough or rows
        ):  # else it does not matter for the others
            files = files[table.unchanged(files)]
        is_left = np.ones(len(table.state), np.bool_)
        if result.plan is not None:
            is_left = result.plan.evaluation.possible.copy()
        is_left[result.files] = False
        recording = Recording.of_settings(question.settings)
        if recording is not None and call.number and not question.is_planned:
            with self._lock:
                _put(self._recording, call.number, recording)
        record = QueryPlan(
            location.plain_path(""),
            result.condition,
            len(table.state),
            len(files),
            time.perf_counter() - start,
            is_estimate=is_estimate,
            plan=result.plan,
            answered=result.answered,
            n_unindexed=int((is_left & (table.state.rows < 0)).sum()),
            number=call.number,
            dimensions=dimensions,
            n_in_part=len(ranges),
        )
        if rows is None:
            self._record(record)
        else:  # the driver tells whether it takes them
            counted = replace(record, n_rows=rows.rows.num_rows, n_bytes=rows.n_bytes)
            with self._lock:
                _put(self._asked, call.number, counted)
        if not (len(files) or table.rewrites or is_enough or rows or ranges):
            return None
        is_skipped = np.zeros(len(table.state), np.bool_)
        is_skipped[files] = True
        results = result.results if rows is None else rows.to_bytes()
        return Answer(table.number, is_skipped, results, ranges).to_bytes()

    def _observe(
        self, table: ScannedTable, known: Verdict, question: Question, start: float
    ) -> None:
        """Record what a query would skip, which skips nothing."""
        n_files = len(table.state)
        self._record(
            QueryPlan(
                question.location().plain_path(""),
                known.condition,
                n_files,
                len(known.files),
                time.perf_counter() - start,
                plan=known.plan,
                is_observed=True,
            )
        )
        if known.plan is None or question.is_planned:  # which was recorded before
            return
        place = question.settings.get(SETTING) or BESIDE
        recording = Recording.of_settings({**question.settings, SETTING: place})
        if recording is not None:
            record_plan(known.plan, recording, n_files, n_files - len(known.files))

    def _rows(
        self, table: ScannedTable, known: Verdict, wanted: WantedRows, scan: Question
    ) -> FewRows | None:
        """The rows that can match; None if Spark reads the files."""
        try:
            return few_rows(table, known.plan, wanted, scan.settings[ZONE])
        except Exception as error:  # noqa: BLE001 (Spark reads them, or says why not)
            LOG.debug("Spark reads %s: %s", scan.uri, first_line(error))
            return None

    def _joined(
        self, table: ScannedTable, question: Question
    ) -> tuple[Sequence[DimensionKeys], Sequence[ColumnKeys]]:
        """What was read of dimensions, and the keys that columns need to have."""
        keys: list[ColumnKeys] = [
            (name, side) for name, side in question.keys if isinstance(side, list)
        ]
        state = table.typed(question.data)
        joins = [
            (name, side)
            for name, side in question.keys
            if isinstance(side, Dimension) and tells_files_apart(state, name)
        ]
        zone = question.settings[ZONE]
        session = Session(
            zone,
            listed_offsets(zone or "", question.offsets or ()),
            is_case_sensitive(question),
            max(FREE_BYTES, state.n_bytes // RATIO),
        )
        read = self._dimensions.keys(joins, session)
        keys += [(told.column, some) for told, some in read if some is not None]
        return tuple(told for told, _ in read), keys

    def _needed(self, question: Question) -> bytes | None:
        """The partitions that are needed, in JSON; None is all of them."""
        start = time.perf_counter()
        needed = needed_partitions(question)
        self._record(
            QueryPlan(
                question.location().full(""),
                needed.condition,
                len(needed.is_left),
                int((~needed.is_left).sum()),
                time.perf_counter() - start,
                plan=needed.plan,
                of_partitions=True,
            )
        )
        return None if needed.choice is None else json.dumps(needed.choice).encode()

    def _remembered(self, key: _Key | None) -> Verdict | None:
        with self._lock:
            return self._verdicts.get(key) if key else None

    def _remember(self, key: _Key, verdict: Verdict) -> None:
        with self._lock:
            _put(self._verdicts, key, verdict)


def _put(remembered: OrderedDict[_K, _V], key: _K, value: _V) -> None:
    """Remember one more, and forget the oldest beyond ``MAX_RECORDS``."""
    remembered[key] = value
    remembered.move_to_end(key)
    while len(remembered) > MAX_RECORDS:
        remembered.popitem(last=False)


def _unchanged(table: ScannedTable, ranges: Mapping[int, Ints]) -> Mapping[int, Ints]:
    """The ranges of files that are as they were listed; others are read whole."""
    files = np.array([*ranges], np.int64)
    return {file: ranges[file] for file in files[table.unchanged(files)].tolist()}


def _mark(keys: Sequence[Any]) -> bytes:
    """A hash that tells lists of keys apart."""
    if isinstance(keys, IntegerSet):
        data = keys.array.tobytes()
    else:
        data = repr(keys).encode(errors="surrogatepass")
    return blake2b(data, digest_size=16).digest()


def _times(seconds: float, age: float) -> tuple[float, Deadline]:
    """When a question was asked, by the monotonic clock, and when its plan stops."""
    # The driver waits ``seconds`` in all; ``age`` of them are over.
    return time.monotonic() - age, Deadline(seconds - age + _GRACE)
