"""The tables that queries scan: opened once, then checked for changes.

A verdict about a file is for one size and one time of it.  Spark's listing may be old,
and so may ours: the file index compares the two, and ``unchanged`` compares ours with
the files themselves.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final, TypeAlias
from urllib.parse import quote

import numpy as np

from skipindex.errors import TableError, first_line
from skipindex.log import latest_version
from skipindex.source import NEWEST, AtVersion, declared_schema
from skipindex.source.folder.hidden_files import standing
from skipindex.source.folder.replacements import Replacement
from skipindex.storage.deadline import Deadline, seconds_left
from skipindex.storage.file_system.file_info import mark_of
from skipindex.storage.file_system.location import Location, location_of
from skipindex.storage.file_system.uris import SCHEMES, StorageOptions
from skipindex.table import TableState, derived_by, open_state

MAX_TABLES: Final = 64
"""Most tables remembered; the least recently used one goes."""
_MAX_SCHEMAS: Final = 16
"""Schemas under which one table is remembered."""
_MAX_RECENT: Final = 8
"""Listings whose files the driver may still ask for."""
_NUMBERS = count(1)
_Place: TypeAlias = tuple[Location, AtVersion]


class ScannedTable:
    """A table at one moment, with the types that scans give its columns.

    Args:
        state: its files.
        rewrites: by which hidden ones among them have the rows of visible ones.
    """

    def __init__(self, state: TableState, rewrites: Sequence[Replacement] = ()) -> None:
        self.state = state
        self.number = next(_NUMBERS)
        """Of the listing: the driver asks for the files of a new number alone."""
        self.rewrites = rewrites
        self.counted: ScannedTable | None = None
        """The same moment with the hidden files, where some stand for visible ones."""
        self.is_current = True
        """Whether no file is known to have changed since."""
        self._typed: dict[tuple[str, tuple[tuple[str, str], ...]], TableState] = {}

    def counted_by(self, schema: str) -> ScannedTable:
        """What counts for a scan by its schema in Spark's JSON.

        Visible files hold no default, unless the scan knows of it, as by the catalog.
        """
        counted = self.counted
        if counted is None:
            return self
        knows = not any(one.has_defaults for one in counted.rewrites) or any(
            column.has_default for column in counted.typed(schema).leaves
        )
        return counted if knows else self

    def typed(
        self, schema: str, properties: Mapping[str, str] | None = None
    ) -> TableState:
        """The table, with the types that a scan gives its columns in Spark's JSON.

        The ``properties`` of a scan may say what its folders are made of.
        """
        if self.state.options.version.metadata:
            return self.state  # Iceberg has types of its own
        key = schema, tuple(sorted((properties or {}).items()))
        typed = self._typed.get(key)
        if typed is None:
            result = declared_schema(schema)
            if result is None:
                raise TableError(f"not a Spark schema: {schema[:80]!r}")
            typed = self.state.typed(*result)
            names = (partition.name for partition in typed.partitions)
            derived = derived_by(properties or {}, names, typed.schema)
            if derived is not None:
                typed = typed.declaring(derived)
            if len(self._typed) >= _MAX_SCHEMAS:
                self._typed.clear()
            self._typed[key] = typed
        return typed

    def packed_files(self) -> bytes:
        """The files and those that they were rewritten from, as ``Listing`` reads them.

        Of each: its size, its time in milliseconds, the number of its rewrite, or -1,
        and its path.
        """
        state, paths = self.state, self.state.paths
        old = [(i, file) for i, one in enumerate(self.rewrites) for file in one.old]
        rewrite_of: np.ndarray = np.full(len(paths), -1)
        if old:
            number_of = {p: i for i, one in enumerate(self.rewrites) for p in one.names}
            rewrite_of = np.array([number_of.get(path, -1) for path in paths], np.int64)
        more = [(file.size, file.mtime, i) for i, file in old]
        columns = np.stack([state.sizes, state.mtimes, rewrite_of])
        columns = np.hstack([columns, np.array(more, np.int64).reshape(-1, 3).T])
        columns[1] //= 1_000_000
        names = "".join(f"{path}\0" for path in [*paths, *(f.path for _, f in old)])
        return b"".join(
            [
                struct.pack("<qq", len(paths), len(old)),
                columns.astype("<i8").tobytes(),
                names.encode("utf-8", "surrogateescape"),
            ]
        )

    def unchanged(self, files: np.ndarray) -> np.ndarray:
        """Which of these files are now as they were listed, by their positions.

        Spark reads what a file holds now, even where its own listing is older, so a
        verdict about former content must not count.  The files of a store are listed
        for every plan, so nothing is asked again there.
        """
        state = self.state
        if not state.location.is_local:
            return np.ones(len(files), np.bool_)
        paths = [state.location.full(state.paths[i]) for i in files.tolist()]
        marks = np.array(list(_marks(paths)), np.int64).reshape(-1, 2)
        same: np.ndarray = marks[:, 0] == state.sizes[files]
        same &= marks[:, 1] == state.mtimes[files]
        self.is_current &= bool(same.all())
        return same


def _marks(paths: list[str]) -> Iterator[tuple[int, int]]:
    for path in paths:
        try:
            there = os.stat(path)  # noqa: PTH116 (three times faster)
        except OSError:
            yield -1, -1
        else:
            yield there.st_size, mark_of(there.st_mtime_ns)


_MOST_LOOKS: Final = 3
"""Threads that look at one table at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class _Look:
    """One look: when it began, by the monotonic clock, and when it is given up."""

    start: float
    deadline: Deadline


class _Looks:
    """The looks at one table, each for all that asked for the table before it began."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running: list[_Look] = []
        self._start = float("-inf")
        """Of the newest look that has ended, by the monotonic clock."""
        self._scanned: ScannedTable | None = None
        self._problem = ""

    def since(self, moment: float, current: Callable[[], ScannedTable]) -> ScannedTable:
        """What a look that began after a moment finds; this thread looks if none."""
        own = Deadline(seconds_left())
        with self._changed:
            if self._is_known(moment, own):
                if self._scanned is None:
                    raise TableError(self._problem)
                return self._scanned
            look = _Look(time.monotonic(), own)
            self._running.append(look)
        result, problem = None, ""
        try:
            result = current()
        except Exception as error:
            problem = f"{type(error).__name__}: {first_line(error)}"
            raise
        finally:
            with self._changed:
                if look in self._running:
                    self._running.remove(look)
                is_ended = result is not None or problem  # else it was cancelled
                if is_ended and look.start > self._start:
                    self._start, self._scanned, self._problem = (
                        look.start,
                        result,
                        problem,
                    )
                self._changed.notify_all()
        return result

    def _is_known(self, moment: float, own: Deadline) -> bool:
        """Wait for a look begun after ``moment``; False if this thread is to look."""
        while self._start <= moment:  # one tick of the clock may be both
            own.check()
            self._running = [one for one in self._running if not one.deadline.is_over]
            is_awaited = any(one.start > moment for one in self._running)
            if not is_awaited and len(self._running) < _MOST_LOOKS:
                return False
            self._changed.wait(
                _shortest([own, *(one.deadline for one in self._running)])
            )
        return True


def _shortest(deadlines: Iterable[Deadline]) -> float | None:
    """The seconds until the first of some deadlines; None if there is no end."""
    left = [deadline.seconds_left for deadline in deadlines]
    result = min((seconds for seconds in left if seconds is not None), default=None)
    return None if result is None else min(result, threading.TIMEOUT_MAX)


class Tables:
    """The tables of this process by their folders, as they are now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._looks: OrderedDict[_Place, _Looks] = OrderedDict()
        self._known: OrderedDict[_Place, ScannedTable] = OrderedDict()
        self._given: dict[Location, TableState] = {}
        # The driver asks for the files of a listing after the answer that named it.
        self._recent: deque[ScannedTable] = deque(maxlen=_MAX_RECENT)

    def give(self, state: TableState) -> None:
        """Open the table of this folder as this one was opened."""
        with self._lock:
            self._given[replace(state.location, sidecar=None)] = state
            self._known.clear()

    def since(
        self, location: Location, moment: float, at: AtVersion = NEWEST
    ) -> ScannedTable:
        """The table as found by a look that began after a moment.

        Moments are of the monotonic clock.  Threads that ask at once share a look,
        and its failure.  One that began before they asked is of no use to them, as a
        file may have changed after it was listed.  So a thread begins one of its own,
        up to three at a time, and then waits for the first of them to end.  A look that
        outlives the deadline of its thread, as one at a store that hangs, keeps no
        other thread from its own.
        """
        with self._lock:
            looks = self._looks.setdefault((location, at), _Looks())
            self._looks.move_to_end((location, at))
            while len(self._looks) > MAX_TABLES:
                self._looks.popitem(last=False)
        return looks.since(moment, lambda: self.current(location, at))

    def current(self, location: Location, at: AtVersion = NEWEST) -> ScannedTable:
        """The table as it is now, as far as the log and the files seen tell.

        A file that came or changed since then is not known, so it is read.
        """
        with self._lock:
            known = self._known.get((location, at))
        if known is not None and _is_current(known):
            return known
        folder = replace(location, sidecar=None)
        given = self._given.get(folder)
        if known is not None:
            state = known.state.refresh()
        elif given is None:
            state = open_state(location, version=at)
        elif at.metadata:
            properties = given.options.version.properties
            version = replace(at, properties=properties)
            state = open_state(given.location, version=version)
        else:
            state = given.reopened(trust="listing")
        # Spark lists the folder, so what counts are the files that it finds there.
        result = ScannedTable(state.shown())
        if rewrites := standing(state.snapshot, state.listing):
            result.counted = ScannedTable(state, rewrites)
        with self._lock:
            self._recent += filter(None, (result, result.counted))
            if self._given.get(folder) is not given:
                return result  # it was registered meanwhile: the next one opens it so
            if at.metadata and at.number is None:  # its former metadata are of no use
                for place in [*self._known]:
                    if place[0] == location and place[1].number is None:
                        del self._known[place]
            self._known[location, at] = result
            self._known.move_to_end((location, at))
            while len(self._known) > MAX_TABLES:
                self._known.popitem(last=False)
        return result

    def numbered(self, number: int) -> ScannedTable:
        """The table whose listing has that number."""
        with self._lock:
            for known in (*self._known.values(), *self._recent):
                for one in filter(None, (known, known.counted)):
                    if one.number == number:
                        return one
        raise TableError(f"listing {number} is no longer in memory")


def _is_current(known: ScannedTable) -> bool:
    """Whether the log has no newer commit, and no file is known to have changed."""
    location = known.state.location
    if not location.is_local or not known.is_current:
        return False
    if known.counted is not None and not known.counted.is_current:
        return False
    return latest_version(location) == known.state.snapshot.newest


def scanned_location(
    scheme: str | None,
    authority: str | None,
    path: str,
    options: StorageOptions | None = None,
) -> Location:
    """The folder that Spark scans, from parts of its URI; the path has no escapes.

    Without a scheme it is of the local file system, as with ``file``.
    """
    if scheme in {None, "file"}:
        return location_of(path, options)
    name = SCHEMES.get(str(scheme), scheme)
    return location_of(f"{name}://{authority or ''}{quote(path)}", options)
