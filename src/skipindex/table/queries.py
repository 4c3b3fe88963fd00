"""The record of queries: what was asked of a table, for advice and maintenance.

::

    _skipindex/queries/<milliseconds>-<writer>.jsonl    one line for each query

A process writes segments of its own names alone, and writes a segment again as a whole
while it grows, so there is no lock, and a store need not append.  A query waits in
memory for a thread that writes: recording adds no request and no error to a query.  If
it cannot be written, it is lost.  The oldest segments are deleted beyond ``MAX_BYTES``.

A record is data, not an order: a line that is damaged, foreign or too long is ignored.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import re
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Final

from skipindex.errors import SkipIndexError, TableError, kind_of
from skipindex.storage.file_system.location import FileInfo, Location, location_of
from skipindex.storage.file_system.names import FOLDER, QUERIES, is_record
from skipindex.storage.file_system.sidecar import uri_of

LOG: Final = logging.getLogger("skipindex")
SETTING: Final = "skipindex.queries"
LITERALS: Final = "skipindex.queries.literals"
"""The settings of a session: where queries are recorded, and whether with literals."""
BESIDE: Final = "table"
"""The place of a record that is beside its table."""
OF_LOG: Final = "log"
"""The queries that a table has recorded, as an argument."""
MAX_BYTES: Final = 16 << 20
"""Bytes of all segments of a folder; one more segment may be written meanwhile."""
MAX_TEXT: Final = 4096
"""Characters of a condition; longer ones are not recorded."""
_MAX_SEGMENT: Final = 256 << 10
"""Bytes at which a process begins another segment."""
_MAX_LINE: Final = 16 << 10
"""Bytes of a line."""
_MAX_WAITING: Final = 10_000
"""Most queries in memory; older ones are lost."""
_EVERY: Final = 5.0
"""Seconds between two writes."""
_MAX_NUMBER: Final = 2**53
"""Numbers in a line are smaller."""
_LITERAL: Final = re.compile(
    r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*"|(`[^`]*`)|\b\d[\w.]*""", re.DOTALL
)
_LIST: Final = re.compile(r"\?(?:, ?\?)+")


@dataclass(frozen=True, slots=True)
class Asked:
    """One query of a record.

    Args:
        at: when it was planned, in seconds since 1970.
        table: the folder of the table, as a URI.
        where: its condition, in SQL; ``?`` stands for hidden literals.
        zone: the time zone of its session; None if unknown.
        files: the files that were listed.
        read: the files of these that were read.
        n_bytes: the size of the files that were read.
        ms: the milliseconds of planning.
    """

    at: float
    table: str
    where: str
    zone: str | None
    files: int
    read: int
    n_bytes: int
    ms: float

    @classmethod
    def of(cls, record: Any) -> Asked | None:
        """The query of a line; None if it is of another form."""
        if not isinstance(record, dict) or record.keys() != set(cls.__slots__):
            return None
        zone = "" if record["zone"] is None else record["zone"]
        texts = (record["table"], record["where"], zone)
        numbers = [record[name] for name in ("at", "files", "read", "n_bytes", "ms")]
        is_good = (
            all(isinstance(text, str) and len(text) <= MAX_TEXT for text in texts)
            and all(type(n) in {int, float} and 0 <= n < _MAX_NUMBER for n in numbers)
            and record["read"] <= record["files"]
        )
        return cls(**record) if is_good and record["where"] else None

    @property
    def is_hidden(self) -> bool:
        """Whether its literals are hidden."""
        return "?" in _LITERAL.sub("", self.where)


def hidden(where: str) -> str:
    """A condition without its literals.

    >>> hidden("city IN ('Rome', 'Oslo') AND `a 1` < -2.5")
    'city IN (?) AND `a 1` < -?'
    """
    text = _LITERAL.sub(lambda match: match[1] or "?", where)
    return _LIST.sub("?", text)


@dataclass(frozen=True, slots=True)
class Recording:
    """Where queries are recorded.

    Args:
        place: ``"table"`` is beside each table that has indexes; or a folder.
        literals: whether the conditions have their literals.
    """

    place: str
    literals: bool = True

    @classmethod
    def of_settings(cls, settings: Mapping[str, str | None]) -> Recording | None:
        """What a session says; else what this process does."""
        place = settings.get(SETTING)
        if not place:
            return _process[0]
        return cls(place, (settings.get(LITERALS) or "true").lower() != "false")

    def add(
        self,
        table: Location,
        where: str,
        *,
        zone: str | None,
        files: int,
        read: int,
        n_bytes: int,
        seconds: float,
    ) -> None:
        """Record a query; it is written later, and no failure is raised."""
        if len(where) > MAX_TEXT:
            return
        asked = Asked(
            round(time.time(), 3),
            "",
            where if self.literals else hidden(where),
            zone,
            files,
            read,
            n_bytes,
            round(seconds * 1000, 3),
        )
        _WRITER.add(self.place, table, asked)


_process: Final[list[Recording | None]] = [None]
"""What this process records where no session says it."""


def process_recording() -> Recording | None:
    """Where this process records the queries that no session runs."""
    return _process[0]


def record_queries(place: str | None = BESIDE, *, literals: bool = True) -> None:
    """Record the queries that this process plans, for ``queries="log"``.

    For each plan, the condition, the time zone, the number of files, bytes and
    milliseconds are recorded.  A thread writes them within seconds, and when the
    process ends.  A record has at most 16 MB; the oldest queries are deleted.  A query
    never waits, and never fails.  Sessions of Spark have the settings
    ``skipindex.queries`` and ``skipindex.queries.literals`` instead.

    Args:
        place: ``"table"`` is the folder ``_skipindex/queries`` of each table that has
            indexes, or a path or URI of one folder for all tables; None records
            nothing.
        literals: False replaces all literals by ``?``.  Such a query says only which
            columns are asked for.

    Raises:
        TableError: the place is no text.

    >>> from skipindex.api import record_queries
    >>> record_queries()
    >>> table.plan("price < 4").paths
    ['part-0.parquet']
    >>> record_queries(None)
    """
    if not (place is None or isinstance(place, str)):
        raise TableError(
            f"not a place for queries: {kind_of(place)} (accepted: 'table', a folder "
            "as a text, or None)"
        )
    _process[0] = None if place is None else Recording(place, literals)


class Journal:
    """The segments of one process in a folder of lines.

    Args:
        location: the folder of a table, or of a record.
        folder: below it; empty is the folder itself.
    """

    def __init__(self, location: Location, folder: str) -> None:
        self._location, self._folder = location, folder
        self._segment, self._data = "", b""

    def write(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Write lines to the segment, and delete the oldest segments beyond the bound.

        Raises:
            StorageError: the folder cannot be written.
        """
        if self._segment and self._location.stat(self._segment) is None:
            self._segment = ""  # a purge has deleted it, and what it held
        for record in records:
            line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
            if len(line) > _MAX_LINE:
                continue
            if not self._segment or len(self._data) + len(line) > _MAX_SEGMENT:
                self._put()
                name = f"{time.time() * 1000:013.0f}-{uuid.uuid4().hex[:12]}.jsonl"
                self._segment, self._data = self._path(name), b""
            self._data += line
        self._put()
        self._trim()

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}" if self._folder else name

    def _put(self) -> None:
        if self._segment:
            self._location.write(self._segment, self._data)

    def _trim(self) -> None:
        segments = segments_of(self._location, self._folder)
        n_bytes = sum(file.size for file in segments)
        for file in segments:
            if n_bytes <= MAX_BYTES or file.path == self._segment:
                return
            self._location.delete_own(file)
            n_bytes -= file.size


class _Writer:
    """The thread that writes what waits."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[str, Location, Asked]] = deque(maxlen=_MAX_WAITING)
        self._journals: dict[tuple[Location, str], Journal] = {}
        self._writing = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, place: str, table: Location, asked: Asked) -> None:
        """Let a query wait, and start the thread if there is none in this process."""
        self._waiting.append((place, table, asked))
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, daemon=True)
            with suppress(RuntimeError):  # Python ends, and writes what waits
                self._thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(_EVERY)
            self.flush()

    def forget(self) -> None:
        """Begin again, in a process that is a copy of another."""
        self.__init__()  # type: ignore[misc]

    def flush(self) -> None:
        """Write what waits; what cannot be written is lost."""
        with self._writing:
            lines: dict[tuple[Location, str], list[dict[str, Any]]] = {}
            while self._waiting:
                place, table, asked = self._waiting.popleft()
                with suppress(SkipIndexError, OSError, ValueError):
                    record = asdict(asked) | {"table": uri_of(table)}
                    lines.setdefault(_folder_of(place, table), []).append(record)
            for where, records in lines.items():
                try:
                    if where not in self._journals and not _may_begin(*where):
                        continue
                    journal = self._journals.setdefault(where, Journal(*where))
                    journal.write(records)
                except Exception as error:  # noqa: BLE001 (no query waits for it)
                    self._journals.pop(where, None)
                    LOG.debug("queries are not recorded: %s", error)


_WRITER: Final = _Writer()
flush = _WRITER.flush
atexit.register(flush)
if hasattr(os, "register_at_fork"):  # the parent writes what waits in it
    os.register_at_fork(after_in_child=_WRITER.forget)


def _folder_of(place: str, table: Location) -> tuple[Location, str]:
    return (table, QUERIES) if place == BESIDE else (location_of(place), "")


def _may_begin(location: Location, folder: str) -> bool:
    """Whether a record may begin there: beside a table, one that has indexes."""
    return not folder or location.holds(location.full(FOLDER))


def segments_of(location: Location, folder: str) -> list[FileInfo]:
    """The segments of a folder, the oldest first; none if there is no folder."""
    try:
        listing = list(location.list(folder))
    except FileNotFoundError:
        return []
    return sorted(
        (file for file in listing if is_record(file.path, folder)),
        key=lambda file: file.path,
    )


def _lines(location: Location, folder: str) -> Iterator[Any]:
    """The values of the lines that can be read, of the newest segments."""
    left = 2 * MAX_BYTES
    for file in reversed(segments_of(location, folder)):
        left -= file.size
        if left < 0:
            return
        with suppress(OSError):  # deleted meanwhile, or not readable
            for line in location.read(file.path, 2 * MAX_BYTES).splitlines():
                if len(line) <= _MAX_LINE:
                    with suppress(ValueError, RecursionError):
                        yield json.loads(line)


def recorded(
    table: Location, queries: str = OF_LOG, *, since: float = 0.0
) -> list[Asked]:
    """The recorded queries of a table, from a time on, the oldest first.

    ``queries`` is ``"log"``, which is beside the table, or ``"log:FOLDER"``.
    """
    place = queries.removeprefix(OF_LOG).removeprefix(":") or BESIDE
    mine = uri_of(table)
    every = map(Asked.of, _lines(*_folder_of(place, table)))
    result = [a for a in every if a and a.at >= since]
    if place != BESIDE:  # there it is of this table, or of what it is a copy of
        result = [asked for asked in result if asked.table == mine]
    return sorted(result, key=lambda asked: asked.at)


def is_of_log(queries: object) -> bool:
    """Whether an argument names the recorded queries: ``"log"`` or ``"log:FOLDER"``."""
    return isinstance(queries, str) and (
        queries == OF_LOG or queries.startswith(f"{OF_LOG}:")
    )


def forget(table: Location) -> None:
    """Delete the queries that are recorded beside a table."""
    for file in segments_of(table, QUERIES):
        table.delete_own(file)
