"""Building indexes: one parallel pass over the data files.

The files are dealt out to few large tasks.  A task reads only the columns that it
indexes, one at a time, writes its payloads into packs beside the table, and returns a
piece of a manifest.  One commit then makes all pieces visible together.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from skipindex.build.column_requests import Request, column_requests
from skipindex.build.memory import default_memory
from skipindex.build.merge import merge_crowded
from skipindex.build.missing import deal, missing_of
from skipindex.build.pending_pack import ColumnRequest
from skipindex.build.repair import Repair, to_repair, without_packs
from skipindex.build.runners import LocalRunner, Progress, Runner
from skipindex.build.task import NOT_READABLE
from skipindex.build.tiers import files_of_packs
from skipindex.build.wanted import SpecKey, wanted_of, without_asked
from skipindex.errors import SkipIndexError, one_line
from skipindex.indexes import parse_spec
from skipindex.indexes.file_map import FILE_MAP
from skipindex.log import Snapshot
from skipindex.log.manifest import Manifest
from skipindex.log.moved import without_vanished
from skipindex.log.properties import NO_PROPERTIES, TableProperties, schema_record
from skipindex.notebook import InNotebook
from skipindex.source import commit
from skipindex.storage.blobs import spec_key
from skipindex.storage.file_system.names import FOLDER
from skipindex.table import TableState
from skipindex.table.status import as_requested, unmet_request

TableT_co = TypeVar("TableT_co", covariant=True)


@dataclass(frozen=True, slots=True)
class BuildReport(InNotebook, Generic[TableT_co]):
    """The result of a build.

    Args:
        table: the table with the new indexes.
        files: the number of data files that were read and indexed.
        unchanged: the number of data files that already had all indexes.
        unread: the number of data files that could not be read completely, or that
            changed or were deleted meanwhile.
        n_bytes: the size of the new packs, in bytes.
        seconds: wall time.
        notes: data files, or columns of them, without an index, and why.
        hint: after the first build beside the data, how Polars reads the files; the
            text of the report ends with it.
    """

    table: TableT_co
    files: int
    unchanged: int
    unread: int
    n_bytes: int
    seconds: float
    notes: tuple[str, ...]
    hint: str = ""

    def __str__(self) -> str:
        unread = f", {self.unread} not readable" if self.unread else ""
        text = (
            f"indexed {self.files} files ({self.unchanged} up to date{unread}), "
            f"{self.n_bytes / 1e6:.1f} MB of indexes, {self.seconds:.1f} s"
        )
        return "\n".join(filter(None, [text, *self.notes, self.hint]))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, without the table."""
        names = ("files", "unchanged", "unread", "n_bytes", "seconds")
        return {
            **{name: getattr(self, name) for name in names},
            "notes": list(self.notes),
        }


def build(
    table: TableState,
    indexes: Request,
    *,
    runner: Runner,
    progress: Progress | None = None,
    properties: TableProperties = NO_PROPERTIES,
    repair: bool | None = None,
    dropped: Collection[SpecKey] = (),
    memory: int | None = None,
) -> BuildReport[TableState]:
    """Build what is missing of ``indexes``, and commit it with ``properties``.

    The same commit removes deleted data files, and small packs are merged after
    it.  ``progress`` is called with the number of units done and of all.
    ``repair`` says how deeply the present indexes are checked: None is what is cheap,
    True every byte, False nothing.  A worker may take ``memory`` bytes; None is by the
    machine that it is on.  The table no longer has what is ``dropped``.

    Raises:
        UnsupportedTypeError: a column cannot have an index of that kind.
        UnknownIndexError: the kind does not exist.
    """
    began = time.perf_counter()
    declared = table.options.declared
    if properties.indexes and declared is not None and table.source.schema is None:
        properties = replace(properties, schema=schema_record(declared))
    known = table.snapshot
    known.require_known()
    refused: list[str] = []
    requests = column_requests(table, indexes, refused)
    repairs = to_repair(table, repair)
    fresh, asked = _indexed(table, requests, repairs, runner, progress, memory)
    unchanged = len(table) - len(asked) - len(table.listing.unnamed)
    left = repairs.left(table)
    shrunk: set[str] = set()

    def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
        known = without_vanished(base.manifest, table.location)
        if left:
            known = without_packs(known, lambda identity: left.get(identity, ()))
        known = known.without_blobs(set(dropped)).without_lone_maps(FILE_MAP)
        shrunk.clear()
        shrunk.update(_shrunk(base.manifest, known))
        return known.merge(fresh), base.properties | properties

    if (
        len(fresh)
        or left
        or known.properties | properties != known.properties
        or _has_dead(known.manifest, table, dropped)
    ):
        done = commit(table.location, change, operation="build", known=known)
        table = table.refresh(done)
    table, unmerged = _merged(table, shrunk)
    notes: dict[str, list[str]] = {}
    rows = fresh.files.select(["path", "note", "n_rows"]).to_pylist()
    for row in rows:
        if row["note"]:
            notes.setdefault(row["note"], []).append(row["path"])
    if len(unnamed := table.listing.unnamed):
        shown = (p.encode(errors="backslashreplace") for p in table.paths_at(unnamed))
        notes["not indexed: the path is not UTF-8"] = [path.decode() for path in shown]
    if gone := asked.difference(fresh.paths):
        notes["deleted since they were listed"] = list(gone)
    unread = [r for r in rows if r["n_rows"] < 0 or NOT_READABLE in (r["note"] or "")]
    return BuildReport(
        table=table,
        files=sum(row["n_rows"] >= 0 for row in rows),
        unchanged=unchanged,
        unread=len(unread) + len(gone),
        n_bytes=sum(pack.size for pack in fresh.packs),
        seconds=time.perf_counter() - began,
        notes=(
            *refused,
            *(
                f"{len(paths)} files: {note} (first: {one_line(min(paths))})"
                for note, paths in notes.items()
            ),
            *repairs.notes,
            *unmerged,
        ),
        hint=_for_polars(table, known),
    )


def _for_polars(table: TableState, before: Snapshot) -> str:
    """How Polars reads the files of a folder that has its first indexes."""
    is_first = not len(before.manifest) and len(table.snapshot.manifest)
    beside = table.location.sidecar is None and not table.source.has_versions
    if not (is_first and beside):
        return ""
    names = f"{table.folder}{'/*' * table.paths[0].count('/')}/*.parquet"
    hive = ", hive_partitioning=True" if table.partitions else ""
    return (
        "Polars reads no folder that has indexes: call "
        f"pl.scan_parquet({names!r}{hive}) on its files, or build with a sidecar"
    )


def refresh(
    table: TableState,
    *,
    runner: Runner,
    progress: Progress | None = None,
    repair: bool | None = None,
    memory: int | None = None,
) -> BuildReport[TableState]:
    """Build what new, changed and damaged files lack, and drop deleted files.

    The indexes are those that the table was asked to have so far, whether they were
    named or chosen; no new choice is made.
    """
    table = as_requested(table)
    result = build(
        table,
        wanted_of(table),
        runner=runner,
        progress=progress,
        repair=repair,
        memory=memory,
    )
    more = filter(None, (unmet_request(table), _lost_request(table)))
    return replace(result, notes=(*result.notes, *more))


def _lost_request(table: TableState) -> str:
    """A note if no commit says which indexes the table is to have."""
    snapshot = table.snapshot
    if snapshot.version >= 0:
        return ""
    why = "no build was committed before"
    if snapshot.damaged is not None:
        why = f"commit {snapshot.damaged} cannot be read"
    return (
        f"min/max alone were built: {why}, so it is not known which indexes the table "
        "is to have (accepted: build_indexes with them)"
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
    return _indexed(table, requests, Repair(), runner, progress, None)[0]


def _indexed(
    table: TableState,
    requests: Sequence[ColumnRequest],
    repairs: Repair,
    runner: Runner,
    progress: Progress | None,
    memory: int | None,
) -> tuple[Manifest, set[str]]:
    """The manifest of what is built, and the paths of the files to read for it."""
    if memory is None and isinstance(runner, LocalRunner):
        memory = default_memory(runner.workers)
    missing = missing_of(table, requests, repairs, memory)
    if isinstance(runner, LocalRunner):
        asked_for = {i for files in missing.values() for i in files}
        runner = runner.sized(table.sizes[list(asked_for)].tolist())
    tasks = deal(table, missing, runner.slots, memory)
    asked = {path for task in tasks for path in task.paths}
    if not tasks:
        return Manifest.empty(), asked
    table.location.restrict(FOLDER, asked)
    pieces = runner.run(tasks, progress)
    return Manifest.concat(pieces), asked


def _shrunk(before: Manifest, after: Manifest) -> set[str]:
    """The packs that serve fewer files than before."""
    then, now = _files_by_name(before), _files_by_name(after)
    return {name for name, n in now.items() if n < then[name]}


def _files_by_name(manifest: Manifest) -> Counter[str]:
    """How many files packs serve; packs with the same content have one name."""
    counts: Counter[str] = Counter()
    for pack, n in zip(manifest.packs, files_of_packs(manifest).tolist(), strict=True):
        counts[pack.name] += n
    return counts


def _has_dead(
    manifest: Manifest, table: TableState, dropped: Collection[SpecKey]
) -> bool:
    """Whether a commit would forget anything."""
    if dropped:
        return True
    known = len(set(table.rows.tolist()) - {-1})
    if known == len(manifest):
        return False
    return len(without_vanished(manifest, table.location)) < len(manifest)


def _merged(table: TableState, shrunk: set[str]) -> tuple[TableState, list[str]]:
    """The table after small packs are merged, if that succeeds."""
    try:
        return merge_crowded(table, shrunk)
    except (OSError, SkipIndexError) as error:
        return table, [f"packs were not merged: {error}"]


def drop(
    table: TableState, *, columns: Sequence[str] | None, kinds: Sequence[str] | None
) -> TableState:
    """Forget the indexes of ``columns`` and ``kinds`` in one commit.

    None stands for all of them.  Statistics go with the kind ``minmax``.  The
    packs stay on disk for readers of older commits.
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
        # The choice no longer describes the indexes, so the next build chooses again.
        return manifest, without_asked(base.properties, names, wanted)

    known = table.snapshot
    done = commit(table.location, without, operation="drop", known=known)
    return table.refresh(done)
