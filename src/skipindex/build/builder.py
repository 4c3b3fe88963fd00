"""Building: one pass over the data files, in as many processes as there are.

The files are dealt out to few, fat tasks.  A task reads only the columns that it
indexes, one at a time, writes its payloads into packs beside the table, and
returns a piece of a manifest.  One commit then makes all pieces visible at once.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

import numpy as np

from skipindex.build import requested as requested_module
from skipindex.build.merge import merge_crowded
from skipindex.build.merged_packs import files_of_packs
from skipindex.build.repair import Repair, to_repair, without_packs
from skipindex.build.requested import (
    SpecKey,
    column_named,
    indexable,
    without_asked,
)
from skipindex.build.runners import Progress, Runner
from skipindex.build.task import BuildTask, ColumnRequest
from skipindex.errors import SkipIndexError, UnsupportedTypeError
from skipindex.expressions.domain import ACCEPTED, Domain
from skipindex.indexes import MinMax, index_type, parse_spec, spec_to_json
from skipindex.indexes.file_map import FILE_MAP
from skipindex.indexes.interface import IndexSpec
from skipindex.storage.log import FOLDER, Snapshot, commit
from skipindex.storage.manifest import Manifest, spec_key
from skipindex.storage.properties import NO_PROPERTIES, TableProperties
from skipindex.storage.vanished import without_vanished
from skipindex.table import ColumnInfo, TableState

TASKS_PER_SLOT: Final = 4

EVERY: Final = requested_module.EVERY

SpecLike = str | IndexSpec | MinMax
Request = Mapping[str, SpecLike | Sequence[SpecLike] | None]


TableT_co = TypeVar("TableT_co", bound=TableState, covariant=True)


@dataclass(frozen=True, slots=True)
class BuildReport(Generic[TableT_co]):
    """What a build did.

    Args:
        table: the table with the new indexes.
        files: data files that were read and indexed.
        unchanged: data files that had all of it already.
        n_bytes: size of the packs that were written.
        seconds: wall time.
        notes: data files, or columns of them, that have no index, and why.
    """

    table: TableT_co
    files: int
    unchanged: int
    n_bytes: int
    seconds: float
    notes: tuple[str, ...]

    def __str__(self) -> str:
        text = (
            f"indexed {self.files} files ({self.unchanged} had it already), "
            f"{self.n_bytes / 1e6:.1f} MB of packs, {self.seconds:.1f} s"
        )
        return "\n".join([text, *self.notes])


def build(
    table: TableState,
    indexes: Request,
    *,
    runner: Runner,
    progress: Progress | None = None,
    properties: TableProperties = NO_PROPERTIES,
    repair: bool | None = None,
    dropped: Collection[SpecKey] = (),
) -> BuildReport[TableState]:
    """Build what is missing of ``indexes``, and commit it with ``properties``.

    Data files that are gone are forgotten in the same commit, and packs that have
    become many are merged after it.

    Args:
        table: the table.
        indexes: by column.
        runner: where it is done.
        progress: called with the number of tasks done and of all tasks.
        properties: of the table, which are committed with it.
        repair: what is looked at of the indexes that are there: None is what is
            cheap, True every byte of them.
        dropped: columns and specs that the table no longer has.

    Raises:
        PredicateError: a column does not exist.
        UnsupportedTypeError: a column cannot have an index of that kind.
        UnknownIndexError: there is no such kind.
    """
    began = time.perf_counter()
    requests = column_requests(table, indexes)
    repairs = to_repair(table, repair)
    fresh, asked = _indexed(table, requests, repairs, runner, progress)
    unchanged = len(table) - len(asked)
    left = repairs.left(table)
    shrunk: set[str] = set()

    def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
        known = without_vanished(base.manifest, table.location)
        known = without_packs(known, left)
        known = known.without_blobs(set(dropped)).without_lone_maps(FILE_MAP)
        shrunk.clear()
        shrunk.update(_shrunk(base.manifest, known))
        return known.merge(fresh), base.properties | properties

    known = table.snapshot
    if (
        len(fresh)
        or left
        or known.properties | properties != known.properties
        or _has_dead(known.manifest, table, dropped)
    ):
        commit(table.location, change, operation="build")
        table = table.refresh()
    table, unmerged = _merged(table, shrunk)
    notes: dict[str, list[str]] = {}
    for path, note in zip(fresh.paths, fresh.files["note"].to_pylist(), strict=True):
        if note:
            notes.setdefault(note, []).append(path)
    if gone := asked.difference(fresh.paths):
        notes["deleted since they were listed"] = list(gone)
    return BuildReport(
        table=table,
        files=len(fresh),
        unchanged=unchanged,
        n_bytes=sum(pack.size for pack in fresh.packs),
        seconds=time.perf_counter() - began,
        notes=(
            *(f"{len(p)} files: {n} (first: {min(p)})" for n, p in notes.items()),
            *repairs.notes,
            *unmerged,
        ),
    )


def index_files(
    table: TableState,
    indexes: Request,
    *,
    runner: Runner,
    progress: Progress | None = None,
) -> Manifest:
    """Build what is missing of ``indexes``; its manifest is not committed."""
    requests = column_requests(table, indexes)
    return _indexed(table, requests, Repair(), runner, progress)[0]


def _indexed(
    table: TableState,
    requests: Sequence[ColumnRequest],
    repairs: Repair,
    runner: Runner,
    progress: Progress | None,
) -> tuple[Manifest, set[str]]:
    """What is built, and the paths of the files that were to be read for it.

    Indexes hold values, so that no one may read them who may not read the data.
    """
    missing = _missing(table, requests, repairs)
    tasks = _deal(table, missing, runner.slots * TASKS_PER_SLOT)
    asked = {path for task in tasks for path in task.paths}
    if not tasks:
        return Manifest.empty(), asked
    table.location.restrict(FOLDER, asked)
    pieces = runner.run(tasks, progress)
    return Manifest.concat([Manifest.from_bytes(piece) for piece in pieces]), asked


def _shrunk(before: Manifest, after: Manifest) -> set[str]:
    """The packs that serve fewer files than before."""
    counts = dict.fromkeys((pack.name for pack in after.packs), 0)
    for pack, n in zip(after.packs, files_of_packs(after).tolist(), strict=True):
        counts[pack.name] += n
    for pack, n in zip(before.packs, files_of_packs(before).tolist(), strict=True):
        if pack.name in counts:
            counts[pack.name] -= n
    return {name for name, n in counts.items() if n < 0}


def _has_dead(
    manifest: Manifest, table: TableState, dropped: Collection[SpecKey]
) -> bool:
    """Whether a commit would forget anything."""
    if dropped or len(set(table.rows.tolist()) - {-1}) == len(manifest):
        return bool(dropped)
    return len(without_vanished(manifest, table.location)) < len(manifest)


def _merged(table: TableState, shrunk: set[str]) -> tuple[TableState, list[str]]:
    """The table once packs that have become many are merged, if that succeeds."""
    try:
        return merge_crowded(table, shrunk)
    except (OSError, SkipIndexError) as error:
        return table, [f"packs were not merged: {error}"]


def indexable_columns(table: TableState) -> list[ColumnInfo]:
    """The columns that can have an index."""
    return list(indexable(table))


def requested(
    table: TableState, indexes: Request
) -> list[tuple[ColumnInfo, SpecLike | Sequence[SpecLike]]]:
    """The columns of a request, and what each is to have.

    Columns that are not named have what ``*`` says, or else statistics; None, for one
    column or ``*``, is not even these.

    Raises:
        PredicateError: a column does not exist.
    """
    named = {name: wanted for name, wanted in indexes.items() if name != EVERY}
    found = [(column_named(table, name), wanted) for name, wanted in named.items()]
    taken = {column.name for column, _ in found}
    rest = [column for column in indexable_columns(table) if column.name not in taken]
    every = indexes.get(EVERY, MinMax())
    found += [(column, every) for column in rest]
    return [(column, wanted) for column, wanted in found if wanted is not None]


def column_requests(table: TableState, indexes: Request) -> list[ColumnRequest]:
    """The columns to index, and what to build on each.

    Raises:
        PredicateError: a column does not exist.
        UnsupportedTypeError: a column cannot have an index of that kind.
        UnknownIndexError: there is no such kind.
    """
    requests = []
    for column, wanted in requested(table, indexes):
        single = isinstance(wanted, str) or not isinstance(wanted, Sequence)
        wishes: Sequence[SpecLike] = [wanted] if single else wanted  # type: ignore[list-item, assignment]
        specs = [s for s in map(parse_spec, wishes) if not isinstance(s, MinMax)]
        domain = domain_to_index(column)
        for spec in specs:
            kind = index_type(spec.kind)
            try:
                kind.check(domain)
            except UnsupportedTypeError as error:
                raise UnsupportedTypeError(
                    f"cannot build a {spec.kind} index on column {column.name!r}: "
                    f"{error}"
                ) from error
        distinct = {spec_key(spec_to_json(spec)): spec for spec in specs}
        requests.append(
            ColumnRequest(
                column.name,
                domain,
                tuple(distinct.values()),
                column.path,
                alone=table.is_alone(column),
            )
        )
    return requests


def domain_to_index(column: ColumnInfo) -> Domain:
    """The domain of a column that can have an index.

    Raises:
        UnsupportedTypeError: it cannot, and why.
    """
    if column.is_partition:
        raise UnsupportedTypeError(
            f"cannot index column {column.name!r}: it is a partition column, whose "
            "values are known from the paths"
        )
    if column.domain is None:
        raise UnsupportedTypeError(
            f"cannot index column {column.name!r}: {column.reason} "
            f"(accepted: {ACCEPTED})"
        )
    return column.domain


def _missing(
    table: TableState, requests: Sequence[ColumnRequest], repairs: Repair
) -> dict[tuple[ColumnRequest, ...], list[int]]:
    """Files by what has to be built on them.

    Where a column could not be read, all of the file is built anew: what a pack has
    of that column is empty, and a part of the note would be lost.
    """
    per_file: dict[int, list[ColumnRequest]] = {}
    damaged = repairs.mask(len(table))
    known = {request.name for request in requests}
    noted = np.append(table.snapshot.manifest.files["note"].is_valid(), [False])
    noted = noted.astype(np.bool_)[table.rows] & (table.rows >= 0)
    failed = np.zeros(len(table), np.bool_)
    others = [
        ColumnRequest(column.name, column.domain, (), column.path)
        for column in table.leaves
        if column.name in repairs.specs.keys() - known and column.domain
    ]
    for request in (*requests, *others):
        counted = _counted(table, request)
        served = _served(table, request, repairs)
        again = tuple(
            spec
            for spec in repairs.specs.get(request.name, ())
            if spec not in request.specs
        )
        nowhere = np.zeros(len(table), np.bool_)
        missing = [
            (spec, ~served.get(spec_key(spec_to_json(spec)), nowhere) & where)
            for specs, where in ((request.specs, ~nowhere), (again, damaged))
            for spec in specs
        ]
        if request.name in known:
            failed |= ~counted & noted
        needed = ~counted if request.name in known else nowhere.copy()
        for _, mask in missing:
            needed |= mask
        for i in np.flatnonzero(needed).tolist():
            mine = tuple(spec for spec, mask in missing if mask[i])
            per_file.setdefault(i, []).append(replace(request, specs=mine))
    for i in np.flatnonzero(failed).tolist():
        per_file[i] = list(requests)
    groups: dict[tuple[ColumnRequest, ...], list[int]] = {}
    for i in sorted(per_file):
        groups.setdefault(tuple(per_file[i]), []).append(i)
    return groups


def _counted(table: TableState, request: ColumnRequest) -> np.ndarray:
    """Which files have statistics of a column."""
    stats = table.snapshot.manifest.stats.get(request.name)
    found: np.ndarray = table.rows >= 0
    if stats is None or stats.domain != request.domain.tag:
        return np.zeros_like(found)
    valid = np.append(np.asarray(stats.values.is_valid()), [False])
    found &= valid[table.rows]
    return found


def _served(
    table: TableState, request: ColumnRequest, repairs: Repair
) -> dict[str, np.ndarray]:
    """By spec, which files have that index on a column, and whole."""
    found: dict[str, np.ndarray] = {}
    for use in table.built(table.resolve(request.name, case_sensitive=True)):
        key = spec_key(use.entry.meta.spec)
        mask = found.setdefault(key, np.zeros(len(table), np.bool_))
        mask[np.setdiff1d(use.rows, repairs.packs.get(use.number, ()))] = True
    return found


def _deal(
    table: TableState,
    groups: Mapping[tuple[ColumnRequest, ...], list[int]],
    n_tasks: int,
) -> list[BuildTask]:
    """Tasks of nearly equal size: the largest file goes to the lightest task."""
    tasks = []
    n_files = sum(map(len, groups.values()))
    for columns, files in groups.items():
        share = max(1, min(len(files), -(-n_tasks * len(files) // n_files)))
        heap: list[tuple[int, int, list[int]]] = [(0, i, []) for i in range(share)]
        for file in sorted(files, key=lambda i: -int(table.sizes[i])):
            size, i, mine = heap[0]
            mine.append(file)
            heapq.heapreplace(heap, (size + int(table.sizes[file]), i, mine))
        for _, _, mine in sorted(heap, key=lambda entry: entry[1]):
            paths = tuple(table.paths[i] for i in sorted(mine))
            tasks.append(BuildTask(table.location, paths, columns))
    return tasks


def drop(
    table: TableState, *, columns: Sequence[str] | None, kinds: Sequence[str] | None
) -> TableState:
    """Forget the indexes of ``columns`` and ``kinds`` in one commit.

    None stands for all of them.  Statistics go with the kind ``minmax``.  The
    packs stay on disk for readers of older commits.

    Raises:
        PredicateError: a column does not exist.
        UnknownIndexError: there is no such kind.
    """
    names = None
    if columns is not None:
        names = {name for c in columns for name in table.spellings(table.find(c))}
    wanted = None if kinds is None else {parse_spec(kind).kind for kind in kinds}

    def without(base: Snapshot) -> tuple[Manifest, TableProperties]:
        manifest = without_vanished(base.manifest, table.location)
        blobs = {
            (blob.meta.column, spec_key(blob.meta.spec))
            for pack in manifest.packs
            for blob in pack.blobs
            if (names is None or blob.meta.column in names)
            and (wanted is None or blob.meta.kind in wanted)
        }
        manifest = manifest.without_blobs(blobs).without_lone_maps(FILE_MAP)
        if wanted is None or "minmax" in wanted:
            every = set(manifest.stats)
            manifest = manifest.without_stats(every if names is None else names)
        # What was chosen is no longer what is there: the next build chooses anew.
        return manifest, without_asked(base.properties, names, wanted)

    commit(table.location, without, operation="drop")
    return table.refresh()
