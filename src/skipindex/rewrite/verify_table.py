"""Verifying everything that is stored for a table: damaged, stale and unused parts."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from skipindex.build.runners import TASKS_PER_SLOT, LocalRunner, Progress, Runner
from skipindex.errors import SkipIndexError, one_line
from skipindex.indexes import index_type
from skipindex.indexes.file_map import FILE_MAP
from skipindex.log import Snapshot, read_snapshot
from skipindex.log.damage import check_tasks
from skipindex.notebook import InNotebook
from skipindex.planner.stages.derived_partitions import misplaced
from skipindex.rewrite.expiry import parts_of
from skipindex.rewrite.purge import BLANK
from skipindex.source import difference_from_log
from skipindex.source.folder.hidden_files import hidden_paths
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import (
    FOLDER,
    STAGING,
    is_commit,
    is_hidden_copy,
    is_record,
    version_of,
)
from skipindex.table import TableState, open_state, status_of


@dataclass(frozen=True, slots=True)
class TableReport(InNotebook):
    """The result of ``verify``; the lists are empty if nothing is wrong.

    Args:
        table: the folder.
        damaged: commits, manifests and payloads that cannot be used.
        stale: data files without some index, and index entries of deleted files.
        misplaced: data files whose folder contradicts the declaration of the partition
            columns, so that conditions do not find their rows.
        orphans: files of skipindex that nothing refers to; ``vacuum`` deletes them.
        index_bytes: the number of index bytes that were read and checked.
    """

    table: str
    damaged: tuple[str, ...]
    stale: tuple[str, ...]
    orphans: tuple[str, ...]
    index_bytes: int
    misplaced: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is damaged, stale or misplaced; orphans do no harm."""
        return not (self.damaged or self.stale or self.misplaced)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return {**InNotebook.to_dict(self), "ok": self.ok}

    def __str__(self) -> str:
        head = (
            f"{self.table}: {len(self.damaged)} damaged, {len(self.stale)} stale, "
            f"{len(self.orphans)} orphans; {self.index_bytes / 1e6:.2f} MB of indexes "
            "were checked"
        )
        lines = [head]
        for name in ("damaged", "stale", "misplaced", "orphans"):
            lines += [f"  {name}: {text}" for text in getattr(self, name)]
        return "\n".join(lines)


def verify(
    table: TableState | Location | str | os.PathLike[str],
    *,
    plain: bool = False,
    runner: Runner | None = None,
    progress: Progress | None = None,
) -> TableReport:
    """See ``Table.verify``, and ``open_table`` for ``plain``.

    Without a ``runner`` this process reads the packs.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is damaged is in the report
        if isinstance(table, TableState):
            opened = table.reopened(trust="listing")
        else:
            opened = open_state(table, plain=plain)
    opened.snapshot.require_known()
    listing = sorted(opened.location.list_own(), key=lambda file: file.path)
    damaged, needed = _log(opened, listing)
    damaged += _payloads(opened, runner or LocalRunner(1), progress)
    return TableReport(
        opened.folder,
        tuple(damaged),
        tuple(_stale(opened)),
        tuple(_orphans(listing, needed)),
        sum(pack.size for pack in opened.snapshot.manifest.packs),
        tuple(misplaced(opened)),
    )


def _log(table: TableState, listing: list[FileInfo]) -> tuple[list[str], set[str]]:
    """What is damaged of the log, and all that its commits refer to."""
    damaged = list(table.notes)
    needed: set[str] = set()
    snapshot: Snapshot | None = None
    for file in (file for file in listing if is_commit(file.path)):
        needed.add(file.path)
        try:
            if table.location.read(file.path) == BLANK:
                continue
            version = version_of(file.path.rpartition("/")[2])
            snapshot = read_snapshot(table.location, version, known=snapshot)
        except (OSError, SkipIndexError) as error:
            if isinstance(error.__cause__, FileNotFoundError):
                continue  # vacuum takes the manifests of older commits
            if not any(str(error) in note for note in damaged):
                damaged.append(f"{file.path}: {error}")
            continue
        needed |= parts_of(snapshot) | hidden_paths(snapshot)
        damaged += [
            str(one)
            for one in snapshot.lost
            if not isinstance(one.error.__cause__, FileNotFoundError)
            and not any(one.segment.name in note for note in damaged)
        ]
    return damaged, needed


def _payloads(
    table: TableState, runner: Runner, progress: Progress | None
) -> Iterator[str]:
    manifest = table.snapshot.manifest
    n_tasks = TASKS_PER_SLOT * runner.slots
    tasks = check_tasks(manifest, table.location, n_tasks)
    for told in runner.run(tasks, progress) if tasks else ():
        yield from told
    for pack in manifest.packs:
        for blob in pack.blobs:
            meta = blob.meta
            if meta.kind == FILE_MAP:
                continue
            try:
                kind = index_type(meta.kind)
            except SkipIndexError as error:
                yield f"pack {pack.name}: {error}"
                continue
            if meta.version > kind.version:
                yield (
                    f"pack {pack.name}: {meta.kind} version {meta.version} of column "
                    f"{meta.column!r} is newer than ours ({kind.version})"
                )


def _stale(table: TableState) -> Iterator[str]:
    status = status_of(table)
    told = set()
    for path, reason in zip(table.paths, table.freshness, strict=True):
        if reason:
            told.add(path)
            yield f"{one_line(path)}: {reason}"
    noted = table.snapshot.manifest.files["note"].to_pylist()
    for path, row in zip(table.paths, table.rows.tolist(), strict=True):
        if row >= 0 and noted[row]:
            yield f"{one_line(path)}: {noted[row]}"
    for column in status.columns:
        for kind, n in column.indexes.items():
            if n < status.indexed_files:
                yield (
                    f"column {column.name!r}: {n} of {status.indexed_files} indexed "
                    f"files have the index {kind}"
                )
    paths = table.snapshot.manifest.paths
    for path in (paths[row] for row in table.vanished):
        if path not in told:
            yield f"{one_line(path)}: indexed, and deleted or changed"
    snapshot = table.snapshot
    if snapshot.is_exclusive and (why := difference_from_log(table.location, snapshot)):
        yield (
            "the table is declared exclusive, and another writer has changed its "
            f"files: {why}"
        )


def _orphans(listing: list[FileInfo], needed: set[str]) -> Iterator[str]:
    for file in listing:
        ours = file.path.startswith(f"{FOLDER}/") or is_hidden_copy(file.path)
        if ours and file.path not in needed and not is_record(file.path):
            left = " (of a running or killed writer)"
            yield file.path + left * file.path.startswith(STAGING)
