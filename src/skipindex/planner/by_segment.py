"""Plans over tables whose statistics do not fit in memory: segment by segment.

The live rows of the segments of a manifest are its files, each once.  So the files
that a plan keeps are those that it keeps of each segment.  A task reads one segment and
plans over its files with the same stages as ``plan_files``, rows included; it returns
the paths that it keeps, compressed.  Tasks run one after another, in processes, or on
Spark's executors, and no process holds more than one segment.

What is true of the table alone is found by a first task for each segment: the first
file by path, which has the schema, and the folders, whose names type the partition
columns.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.build.runners import Runner
from skipindex.errors import CorruptIndexError, IndexVersionError
from skipindex.expressions import Predicate
from skipindex.planner.plan import plan_files
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.log import Segment, Snapshot, newest_head
from skipindex.storage.log.segments import load, nothing
from skipindex.table import TableState, open_state
from skipindex.table.listing import Observed, first_in_java, read_schema
from skipindex.table.opening.from_log import files_of


@dataclass(frozen=True)
class KeptFiles:
    """The files that may hold a row for which a condition is TRUE.

    Attributes:
        folder: of the table.
        n_files: of the table.
        notes: why files were listed, or why indexes were missing.
        pieces: the kept paths of each segment, as Arrow streams.
    """

    folder: str
    n_files: int
    notes: tuple[str, ...]
    pieces: Sequence[bytes]

    def __len__(self) -> int:
        """How many files are kept."""
        return self._n_kept

    def __iter__(self) -> Iterator[str]:
        """Their paths, relative to the table; one segment at a time is unpacked."""
        for piece in self.pieces:
            for batch in pa.ipc.open_stream(piece):
                yield from batch.column(0).to_pylist()

    @cached_property
    def _n_kept(self) -> int:
        batches = (b for piece in self.pieces for b in pa.ipc.open_stream(piece))
        return sum(len(batch) for batch in batches)


@dataclass(frozen=True)
class _Survey:
    """What is asked of one segment before any plan."""

    location: Location
    head: Snapshot
    segment: Segment

    @property
    def done(self) -> str:
        return f"read a segment of {self.location.full('')!r}"

    def run(self) -> bytes:
        """The first file by path, the folders, and how many files there are.

        Or, as for every task here, why the segment cannot be read.
        """
        try:
            listing = files_of(self.snapshot().manifest)
        except CorruptIndexError as error:
            return pickle.dumps(str(error))
        if not len(listing):
            return pickle.dumps((None, set(), 0))
        paths = listing.names.cast(pa.string())
        first = pc.min(paths).as_py()
        if pc.any(pc.invert(pc.string_is_ascii(paths))).as_py():
            first = first_in_java(self.location, paths.to_pylist())
        folders = set()
        if listing.has_folders:
            above = pc.replace_substring_regex(paths, "/[^/]*$", "")
            folders = set(above.unique().to_pylist())
        info = listing[pc.index(listing.names, first.encode()).as_py()]
        return pickle.dumps((info, folders, len(listing)))

    def snapshot(self) -> Snapshot:
        """The commit as if it had this segment alone.

        Raises:
            CorruptIndexError: the segment cannot be read.
        """
        loaded = load(self.location, [self.segment], nothing())
        for lost in loaded.lost:
            raise lost.error
        return replace(self.head, manifest=loaded.manifest, segments=loaded.segments)


@dataclass(frozen=True)
class _Planning:
    """A plan over the files of one segment."""

    survey: _Survey
    observed: Observed
    predicate: str | Predicate
    arguments: dict[str, Any]

    @property
    def done(self) -> str:
        return f"planned over a segment of {self.survey.location.full('')!r}"

    def run(self) -> bytes:
        """The kept paths as an Arrow stream, and notes of the plan."""
        asked = self.survey
        try:
            snapshot = asked.snapshot()
        except CorruptIndexError as error:
            return pickle.dumps(str(error))
        observed = replace(
            self.observed, listing=files_of(snapshot.manifest), snapshot=snapshot
        )
        table = TableState(asked.location, observed)
        plan = plan_files(self.predicate, table=table, workers=1, **self.arguments)
        kept = table.listing.names.take(pa.array(np.flatnonzero(plan.kept)))
        notes = [*table.notes, *plan.evaluation.reader.notes]
        return pickle.dumps((_stream(kept), notes))


def _stream(names: pa.Array) -> bytes:
    batch = pa.record_batch([names.cast(pa.string())], names=["path"])
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _run(runner: Runner, tasks: Sequence[_Survey | _Planning]) -> Iterator[Any]:
    """What the tasks found.

    Raises:
        CorruptIndexError: a segment cannot be read.
    """
    for told in runner.run(tasks, None):
        found = pickle.loads(told)  # noqa: S301 (our own)
        if isinstance(found, str):
            raise CorruptIndexError(found)
        yield found


def plan_by_segment(
    predicate: str | Predicate,
    *,
    location: Location,
    runner: Runner,
    timezone: str | None = None,
    case_sensitive: bool = False,
    kinds: Collection[str] | str | None = None,
    without: Collection[str] | str = (),
    now: datetime | None = None,
) -> KeptFiles:
    """See ``skipindex.api.plan_by_segment``."""
    arguments: dict[str, Any] = {
        "timezone": timezone,
        "case_sensitive": case_sensitive,
        "kinds": kinds,
        "without": without,
        "now": now or datetime.now(UTC),
    }
    try:
        head = newest_head(location)
        doubt = _doubt(head)
        if not doubt:
            return _by_tasks(predicate, location, head, runner, arguments)
    except (CorruptIndexError, IndexVersionError) as error:
        doubt = str(error)
    # What cannot be told from the log is told, or refused, as for any other plan.
    table = open_state(location, trust="log")
    plan = plan_files(predicate, table=table, **arguments)
    kept = table.listing.names.take(pa.array(np.flatnonzero(plan.kept)))
    notes = f"planned in one process: {doubt}", *table.notes
    return KeptFiles(table.folder, len(table), notes, [_stream(kept)])


def _doubt(head: Snapshot) -> str:
    """Why the segments of a commit may not name all files as they are; or empty."""
    if not head.is_exclusive:
        return "the log does not say that it names all files"
    if head.rewrites.replacements:
        return "new files are not published yet"
    return "" if head.segments else "it names no file"


def _by_tasks(
    predicate: str | Predicate,
    location: Location,
    head: Snapshot,
    runner: Runner,
    arguments: dict[str, Any],
) -> KeptFiles:
    surveys = [_Survey(location, head, segment) for segment in head.segments]
    firsts: list[FileInfo] = []
    folders: set[str] = set()
    n_files = 0
    for first, some, n in _run(runner, surveys):
        firsts += [] if first is None else [first]
        folders |= some
        n_files += n
    if not firsts:
        raise CorruptIndexError("no segment names a file")
    by_path = {info.path: info for info in firsts}
    path = first_in_java(location, list(by_path))
    schema, refused = read_schema(location, path, by_path[path])
    observed = Observed(
        [], schema, refused, path, head, tuple(sorted(folders)), head.notes
    )
    # What is wrong with the condition is said here, before any task.
    plan_files(predicate, table=TableState(location, observed), **arguments)
    tasks = [_Planning(one, observed, predicate, arguments) for one in surveys]
    pieces, notes = [], dict.fromkeys(head.notes)
    for piece, said in _run(runner, tasks):
        pieces.append(piece)
        notes |= dict.fromkeys(said)
    return KeptFiles(location.full(""), n_files, tuple(notes), pieces)
