"""The rows of many files, counted in this process or in worker processes.

pyroaring holds the interpreter's lock, so threads would not help.  Loky's workers are
neither forked, as this process may have threads and a JVM, nor do they need an
``if __name__ == "__main__"``.  They wait for later plans for a minute.

A worker gets the locations of indexes, not the table, and opens packs itself.  What it
finds is what this process would have found, notes and counts of bitmaps included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from skipindex.errors import UnknownIndexError, first_line
from skipindex.expressions.bounds import Bounds
from skipindex.indexes import index_type
from skipindex.indexes.interface import UNUSABLE, IndexType
from skipindex.planner.bound_predicate import BoundPredicate, Computed, Leaf
from skipindex.planner.stages.cost import row_seconds
from skipindex.planner.stages.index_reader import IndexOpener, IndexReader
from skipindex.planner.stages.pack_cache import DEFAULT_SESSION
from skipindex.planner.stages.records import IndexLocation, LeafBounds
from skipindex.planner.stages.rows import RowEvaluator, RowVerdict
from skipindex.storage.file_system.location import Location
from skipindex.storage.pack import Blob, BlobEntry
from skipindex.storage.parts import ReadCount, add_reads, reads_so_far
from skipindex.table import TableState

POOL_SECONDS: Final = 3.0
"""The time that one process may take; workers take about a second to start."""
_PIECES: Final = 4
"""For every worker: some files take longer than others."""
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
    """

    location: Location
    tree: BoundPredicate
    known: dict[Leaf | Computed, LeafBounds]
    n_rows: np.ndarray
    sources: list[_BlobName]
    locations: dict[str, dict[int, list[tuple[int, int]]]]
    cache_bytes: int


@dataclass(frozen=True, slots=True)
class _Result:
    """What a worker found, and what it noted and read."""

    found: RowsFound
    notes: dict[str, int]
    reads: ReadCount


def look_at_rows(
    files: np.ndarray,
    tree: BoundPredicate,
    known: Mapping[Leaf | Computed, LeafBounds],
    reader: IndexReader,
    *,
    locations: IndexLocations,
    table: TableState,
    workers: int | None,
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
    """
    asked = sum(map(bool, locations.values()))
    is_long = row_seconds(table.n_rows[files], asked) > POOL_SECONDS
    n_workers = (workers or _cores()) if is_long else 1
    if n_workers > 1:
        try:
            tasks = _tasks_of(files, tree, known, reader, locations, table, n_workers)
            results = _run(tasks, n_workers)
        except Exception as error:  # noqa: BLE001 (whatever it is, it may work here)
            reader.note(
                "one process looked at the rows of all files, because its workers "
                f"failed: {type(error).__name__}: {first_line(error)}"
            )
        else:
            return _joined(files, results, reader)
    evaluator = RowEvaluator(
        tree, known, reader, locations=locations, n_rows=table.n_rows
    )
    verdicts = [evaluator.verdict(file) for file in files.tolist()]
    return RowsFound(verdicts, evaluator.empty_leaves)


def _tasks_of(
    files: np.ndarray,
    tree: BoundPredicate,
    known: Mapping[Leaf | Computed, LeafBounds],
    reader: IndexReader,
    locations: IndexLocations,
    table: TableState,
    workers: int,
) -> list[_Task]:
    """Neighbouring files to every task, so that it opens few packs."""
    names = reader.pack_names()
    made = []
    for mine in np.array_split(files, min(len(files), workers * _PIECES)):
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
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()


def _joined(
    files: np.ndarray, results: Sequence[_Result], reader: IndexReader
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
    evaluator = RowEvaluator(
        task.tree, task.known, opener, locations=locations, n_rows=task.n_rows
    )
    verdicts = [evaluator.verdict(file) for file in range(len(task.n_rows))]
    found = RowsFound(verdicts, evaluator.empty_leaves)
    return _Result(found, opener.notes, reads_so_far().since(before))


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
