"""Building: one pass over the data files, in as many processes as there are.

The files are dealt out to few, fat tasks.  A task reads only the columns that it
indexes, one at a time, writes its payloads into packs beside the table, and
returns a piece of a manifest.  One commit then makes all pieces visible at once.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from skipindex.domain import ACCEPTED, Domain
from skipindex.errors import PredicateError, UnsupportedTypeError
from skipindex.indexes import index_type, parse_spec, spec_to_json
from skipindex.indexes._base import IndexSpec
from skipindex.indexes._file_map import FILE_MAP
from skipindex.indexes._runners import Progress, Runner
from skipindex.indexes._task import BuildTask, ColumnRequest
from skipindex.indexes.minmax import MinMax
from skipindex.storage.log import Snapshot, commit
from skipindex.storage.manifest import Manifest, spec_key
from skipindex.table import ColumnInfo, Table

TASKS_PER_SLOT: Final = 4

EVERY: Final = "*"
"""In a request, every column that has an order and is not named in it."""

CHOICE: Final = "choice"
"""The property of a table in which a choice of indexes is remembered."""

Wanted = str | IndexSpec | MinMax
Request = Mapping[str, Wanted | Sequence[Wanted]]


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did.

    Args:
        table: the table with the new indexes.
        files: data files that were read and indexed.
        unchanged: data files that had all of it already.
        n_bytes: size of the packs that were written.
        seconds: wall time.
        notes: data files, or columns of them, that have no index, and why.
    """

    table: Table
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
    table: Table,
    indexes: Request,
    *,
    runner: Runner,
    progress: Progress | None = None,
    properties: Mapping[str, Any] | None = None,
) -> BuildReport:
    """Build what is missing of ``indexes``, and commit it with ``properties``.

    Raises:
        PredicateError: a column does not exist.
        UnsupportedTypeError: a column cannot have an index of that kind.
        UnknownIndexError: there is no such kind.
    """
    began = time.perf_counter()
    fresh = index_files(table, indexes, runner=runner, progress=progress)
    news = dict(properties or {})
    known = table.snapshot.properties
    if len(fresh) or any(known.get(key) != value for key, value in news.items()):
        commit(
            table.location, lambda base: _merged(base, fresh, news), operation="build"
        )
    notes: dict[str, list[str]] = {}
    for path, note in zip(fresh.paths, fresh.files["note"].to_pylist(), strict=True):
        if note:
            notes.setdefault(note, []).append(path)
    return BuildReport(
        table=table.refresh(),
        files=len(fresh),
        unchanged=len(table) - len(fresh),
        n_bytes=sum(pack.size for pack in fresh.packs),
        seconds=time.perf_counter() - began,
        notes=tuple(f"{len(p)} files: {n} (first: {min(p)})" for n, p in notes.items()),
    )


def index_files(
    table: Table,
    indexes: Request,
    *,
    runner: Runner,
    progress: Progress | None = None,
) -> Manifest:
    """Build what is missing of ``indexes``; its manifest is not committed."""
    requests = column_requests(table, indexes)
    tasks = _deal(table, _missing(table, requests), runner.slots * TASKS_PER_SLOT)
    pieces = runner.run(tasks, progress) if tasks else []
    return Manifest.concat([Manifest.from_bytes(piece) for piece in pieces])


def _merged(base: Snapshot, fresh: Manifest, news: Mapping[str, Any]) -> Snapshot:
    manifest = base.manifest.merge(fresh)
    return Snapshot(base.version + 1, manifest, {**base.properties, **news})


def orderly(table: Table) -> list[ColumnInfo]:
    """The columns that can have an index."""
    every = [column for column in table.leaves if column.domain is not None]
    return [column for column in every if not column.is_partition]


def requested(
    table: Table, indexes: Request
) -> list[tuple[ColumnInfo, Wanted | Sequence[Wanted]]]:
    """The columns of a request, ``*`` among them, and what each is to have.

    Raises:
        PredicateError: a column does not exist.
    """
    named = {name: wanted for name, wanted in indexes.items() if name != EVERY}
    found = [(_named(table, name), wanted) for name, wanted in named.items()]
    if EVERY in indexes:
        taken = {column.name for column, _ in found}
        rest = [column for column in orderly(table) if column.name not in taken]
        found += [(column, indexes[EVERY]) for column in rest]
    return found


def _named(table: Table, name: str) -> ColumnInfo:
    """The column of exactly that name, else the one that Spark would take it for."""
    try:
        return table.resolve(name, case_sensitive=True)
    except PredicateError:
        return table.find(name)


def column_requests(table: Table, indexes: Request) -> list[ColumnRequest]:
    """The columns to index, and what to build on each.

    Raises:
        PredicateError: a column does not exist.
        UnsupportedTypeError: a column cannot have an index of that kind.
        UnknownIndexError: there is no such kind.
    """
    requests = []
    for column, wanted in requested(table, indexes):
        single = isinstance(wanted, str) or not isinstance(wanted, Sequence)
        wishes: Sequence[Wanted] = [wanted] if single else wanted  # type: ignore[list-item, assignment]
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
            ColumnRequest(column.name, domain, tuple(distinct.values()), column.path)
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
    table: Table, requests: Sequence[ColumnRequest]
) -> dict[tuple[ColumnRequest, ...], list[int]]:
    """Files by what has to be built on them."""
    per_file: list[list[ColumnRequest]] = [[] for _ in table.paths]
    manifest = table.snapshot.manifest
    for request in requests:
        stats = manifest.stats.get(request.name)
        counted = set()
        if stats is not None and stats.domain == request.domain.tag:
            valid = stats.values.is_valid().to_pylist()
            counted = {i for i, r in enumerate(table.rows) if r >= 0 and valid[r]}
        served: dict[str, set[int]] = {}
        for use in table.blobs(table.resolve(request.name, case_sensitive=True)):
            key = spec_key(use.entry.meta.spec)
            served.setdefault(key, set()).update(use.rows.tolist())
        for i, own in enumerate(per_file):
            specs = tuple(
                spec
                for spec in request.specs
                if i not in served.get(spec_key(spec_to_json(spec)), ())
            )
            if specs or i not in counted:
                own.append(replace(request, specs=specs))
    groups: dict[tuple[ColumnRequest, ...], list[int]] = {}
    for i, own in enumerate(per_file):
        if own:
            groups.setdefault(tuple(own), []).append(i)
    return groups


def _deal(
    table: Table, groups: Mapping[tuple[ColumnRequest, ...], list[int]], n_tasks: int
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
    table: Table, *, columns: Sequence[str] | None, kinds: Sequence[str] | None
) -> Table:
    """Forget the indexes of ``columns`` and ``kinds`` in one commit.

    None stands for all of them.  Statistics go with the kind ``minmax``.  The
    packs stay on disk for readers of older commits.

    Raises:
        PredicateError: a column does not exist.
        UnknownIndexError: there is no such kind.
    """
    names = None if columns is None else {table.find(c).name for c in columns}
    wanted = None if kinds is None else {parse_spec(kind).kind for kind in kinds}

    def without(base: Snapshot) -> Snapshot:
        manifest = base.manifest
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
        properties = {k: v for k, v in base.properties.items() if k != CHOICE}
        return Snapshot(base.version + 1, manifest, properties)

    commit(table.location, without, operation="drop")
    return table.refresh()
