"""The rows of many files, counted in this process or in worker processes.

pyroaring holds the interpreter's lock, so threads would not help.  Loky's workers are
neither forked, as this process may have threads and a JVM, nor do they need an
``if __name__ == "__main__"``.  They wait for later plans for a minute.

A worker gets the locations of indexes, not the table, and opens packs itself.  What it
finds is what this process would have found, notes and counts of bitmaps included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, wait
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from skipindex.errors import UnknownIndexError, first_line
from skipindex.expressions.bounds import Bounds
from skipindex.indexes import index_type
from skipindex.indexes.interface import UNUSABLE, IndexType
from skipindex.planner.bound_predicate import BoundPredicate, Computed, Leaf
from skipindex.planner.stages.computed import Purse
from skipindex.planner.stages.cost import row_seconds
from skipindex.planner.stages.index_reader import IndexOpener, IndexReader
from skipindex.planner.stages.pack_cache import DEFAULT_SESSION
from skipindex.planner.stages.records import IndexLocation, LeafBounds
from skipindex.planner.stages.rows import RowEvaluator, RowVerdict
from skipindex.storage.deadline import (
    Deadline,
    check,
    checked,
    running_until,
    seconds_left,
)
from skipindex.storage.file_system.location import Location
from skipindex.storage.pack import Blob, BlobEntry
from skipindex.storage.parts import ReadCount, add_reads, reads_so_far
from skipindex.table import TableState

POOL_SECONDS: Final = 3.0
"""The time that one process may take; workers take about a second to start."""
_PIECES: Final = 4
"""For every worker: some files take longer than others."""
_CHECK_SECONDS: Final = 0.1
"""While workers look, a plan that is cancelled ends after this time."""
_IDLE_SECONDS: Final = 60
"""An idle worker ends after this time."""

IndexLocations: TypeAlias = Mapping[str, Mapping[int, Sequence[IndexLocation]]]


@dataclass(frozen=True, slots=True)
class RowsFound:
    """What was found of some files.

    Args:
        verdicts: one for every file, in their order.
        empty_leaves: by leaf, the files where no row makes it TRUE.
    """

    verdicts: list[RowVerdict]
    empty_leaves: dict[Leaf | Computed, list[int]]


@dataclass(frozen=True, slots=True)
class _BlobName:
    """A blob, as a worker finds it again."""

    pack: str
    entry: BlobEntry
    kind: type[IndexType]


@dataclass(frozen=True, slots=True)
class _Task:
    """Some files to look at, which are numbered anew.

    Args:
        location: the table's.
        tree: the predicate, in the order in which it is probed.
        known: the bounds of its leaves.
        n_rows: the row counts of the files.
        sources: the blobs.
        locations: by column and file, the numbers and slots of its blobs.
        cache_bytes: index bytes that the worker may hold in memory.
        purse: the seconds that it may test values; None is any.
        reading: those that reading each file takes.
        seconds: after which the worker stops; None if there is no end.
    """

    location: Location
    tree: BoundPredicate
    known: dict[Leaf | Computed, LeafBounds]
    n_rows: np.ndarray
    sources: list[_BlobName]
    locations: dict[str, dict[int, list[tuple[int, int]]]]
    cache_bytes: int
    purse: float | None
    reading: np.ndarray
    seconds: float | None


@dataclass(frozen=True, slots=True)
class _Result:
    """What a worker found, and what it noted, read and left out."""

    found: RowsFound
    notes: dict[str, int]
    reads: ReadCount
    refused: dict[Computed, int]


def look_at_rows(
    files: np.ndarray,
    tree: BoundPredicate,
    known: Mapping[Leaf | Computed, LeafBounds],
    reader: IndexReader,
    *,
    locations: IndexLocations,
    table: TableState,
    workers: int | None,
    purse: Purse | None,
    reading: np.ndarray,
) -> RowsFound:
    """Between how many and how many rows of some files match.

    Args:
        files: their positions in the table.
        tree: the predicate, in the order in which it is probed.
        known: what is known of its leaves.
        reader: opens indexes, and takes notes.
        locations: by column name and file, where the indexes are.
        table: the table of the files.
        workers: processes; None is one for every core.
        purse: what tests of values are paid from; None is any price.
        reading: the seconds that reading each file takes.
    """
    asked = sum(map(bool, locations.values()))
    is_long = row_seconds(table.n_rows[files], asked) > POOL_SECONDS
    n_workers = (workers or _cores()) if is_long else 1
    if n_workers > 1:
        try:
            tasks = _tasks_of(
                files,
                tree,
                known,
                reader,
                locations,
                table,
                n_workers,
                purse=None if purse is None else purse.left,
                reading=reading,
            )
            results = _run(tasks, n_workers)
        except Exception as error:  # noqa: BLE001 (whatever it is, it may work here)
            reader.note(
                "one process looked at the rows of all files, because its workers "
                f"failed: {type(error).__name__}: {first_line(error)}"
            )
        else:
            return _joined(files, results, reader, purse)
    evaluator = RowEvaluator(
        tree,
        known,
        reader,
        locations=locations,
        n_rows=table.n_rows,
        purse=purse,
        reading=reading,
    )
    verdicts = [evaluator.verdict(file) for file in checked(files.tolist())]
    return RowsFound(verdicts, evaluator.empty_leaves)


def _tasks_of(
    files: np.ndarray,
    tree: BoundPredicate,
    known: Mapping[Leaf | Computed, LeafBounds],
    reader: IndexReader,
    locations: IndexLocations,
    table: TableState,
    workers: int,
    *,
    purse: float | None,
    reading: np.ndarray,
) -> list[_Task]:
    """Neighbouring files to every task, so that it opens few packs."""
    names = reader.pack_names()
    made = []
    n_tasks = min(len(files), workers * _PIECES)
    for mine in np.array_split(files, n_tasks):
        sources: dict[Blob, int] = {}
        kinds: dict[Blob, IndexType] = {}
        located: dict[str, dict[int, list[tuple[int, int]]]] = {}
        for column, by_file in locations.items():
            located[column] = {}
            for i, file in enumerate(mine.tolist()):
                for kind, blob, slot in by_file.get(file, ()):
                    kinds[blob] = kind
                    number = sources.setdefault(blob, len(sources))
                    located[column].setdefault(i, []).append((number, slot))
        made.append(
            _Task(
                table.location,
                tree,
                {
                    leaf: LeafBounds(
                        one.column,
                        Bounds(one.bounds.lower[mine], one.bounds.upper[mine]),
                    )
                    for leaf, one in known.items()
                },
                table.n_rows[mine],
                [_BlobName(names[b], b.entry, type(kinds[b])) for b in sources],
                located,
                reader.cache.parts.limit // workers,
                None if purse is None else purse / n_tasks,
                reading[mine],
                seconds_left(),
            )
        )
    return made


def _cores() -> int:
    """The cores that this process may use."""
    from loky import cpu_count  # noqa: PLC0415 (few plans need workers)

    n_cores: int = cpu_count()
    return n_cores


def _run(tasks: Sequence[_Task], workers: int) -> list[_Result]:
    from loky import get_reusable_executor  # noqa: PLC0415 (few plans need workers)

    pool = get_reusable_executor(max_workers=workers, timeout=_IDLE_SECONDS)
    futures = [pool.submit(look, task) for task in tasks]
    try:
        waiting = set(futures)
        while waiting:
            check()
            done, waiting = wait(waiting, _CHECK_SECONDS, FIRST_EXCEPTION)
            for future in done:
                future.result()  # raises what a worker raised
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()


def _joined(
    files: np.ndarray,
    results: Sequence[_Result],
    reader: IndexReader,
    purse: Purse | None,
) -> RowsFound:
    """The result as if this process had looked at one file after the other."""
    joined = RowsFound([], {})
    for result in results:
        mine = files[len(joined.verdicts) :].tolist()
        joined.verdicts.extend(result.found.verdicts)
        for leaf, nowhere in result.found.empty_leaves.items():
            joined.empty_leaves.setdefault(leaf, []).extend(mine[i] for i in nowhere)
        for note, n in result.notes.items():
            reader.notes[note] = reader.notes.get(note, 0) + n
        add_reads(result.reads)
        for leaf, n in result.refused.items():
            if purse is not None:
                purse.refuse(leaf, n)
    return joined


def look(task: _Task) -> _Result:
    """Look at the files of a task; called in a worker.

    Raises:
        UnknownIndexError: this process does not know a kind as the other does.
    """
    cache = DEFAULT_SESSION.packs  # of this worker
    cache.resize(task.cache_bytes)
    before = reads_so_far()
    opener = IndexOpener(task.n_rows, cache)
    blobs = [_opened(task.location, source, opener) for source in task.sources]
    locations = {
        column: {
            file: [(*blob, slot) for n, slot in mine if (blob := blobs[n]) is not None]
            for file, mine in by_file.items()
        }
        for column, by_file in task.locations.items()
    }
    purse = None if task.purse is None else Purse(task.purse)
    evaluator = RowEvaluator(
        task.tree,
        task.known,
        opener,
        locations=locations,
        n_rows=task.n_rows,
        purse=purse,
        reading=task.reading,
    )
    with running_until(Deadline(task.seconds)):
        files = checked(range(len(task.n_rows)))
        verdicts = [evaluator.verdict(file) for file in files]
    found = RowsFound(verdicts, evaluator.empty_leaves)
    refused = {} if purse is None else purse.refused
    return _Result(found, opener.notes, reads_so_far().since(before), refused)


def _opened(
    location: Location, source: _BlobName, opener: IndexOpener
) -> tuple[IndexType, Blob] | None:
    kind = index_type(source.entry.meta.kind)
    if type(kind) is not source.kind:
        raise UnknownIndexError(
            f"index kind {kind.name!r} is another one in a worker (expected "
            f"{source.kind.__qualname__!r})"
        )
    try:
        return kind, opener.cache.pack(location, source.pack).blob(source.entry)
    except UNUSABLE as error:
        opener.note(f"pack {source.pack} not used: {error}")
        return None
