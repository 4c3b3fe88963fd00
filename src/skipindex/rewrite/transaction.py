"""Replacing files in one commit.

1. The rows are written below ``_skipindex/staging/<run>``, which no reader sees.
2. The files move into hidden folders beside those that they replace.
3. They are counted and indexed there.
4. One commit names them, their indexes, and what they replace.

A writer that dies before the commit has changed nothing that is read, and vacuum
finds what is left.  After it, a reader of commits reads the new files, and a reader
that lists the folder still reads the old ones, until vacuum publishes.

Where the log of another format names the files of the table, the new ones get visible
names in step 2, which readers of that log ignore, and before step 4 that log names
them instead of the old ones.  A writer that dies in between leaves files without an
index.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from skipindex.errors import TableError
from skipindex.log import Snapshot
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.rewrite.selection.cubes import Run, runs_of, with_runs
from skipindex.rewrite.selection.grouping import Group, rounds
from skipindex.rewrite.selection.target import Target
from skipindex.source import commit
from skipindex.source.folder.staging import delete_files, hide_staged
from skipindex.source.parquet.footers import count_rows
from skipindex.source.partitions.hive import partition_values
from skipindex.source.source import Change
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import STAGING
from skipindex.table import TableState

GroupWriter = Callable[[Sequence[Group], str], None]
"""Writes all rows of some groups, no two of one partition, below a folder.

The folder is relative to the table, and does not exist.  Partitions are folders in
it that spell the values as the groups do; names of files ascend along the curve.
"""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A group that was rewritten, and its new files.

    They are hidden where the commit of skipindex alone lets them count.  ``statistics``
    are those that a log gets of them, by path.
    """

    group: Group
    files: tuple[FileInfo, ...]
    statistics: Mapping[str, str]


def rewrite(
    table: TableState,
    groups: Sequence[Group],
    target: Target,
    *,
    write: GroupWriter,
    index: Callable[[Sequence[FileInfo]], Manifest],
    properties: TableProperties,
) -> tuple[list[Rewritten], Snapshot]:
    """Replace the files of ``groups`` in one commit; what each became, and the commit.

    ``table`` is as it was when the groups were chosen, of which no two have a file in
    common.  The same commit sets ``properties``.
    """
    location, source = table.location, table.source
    run = uuid.uuid4().hex
    done: list[Rewritten] = []
    made: list[str] = []
    try:
        turns = rounds(groups, alone=not source.has_folders)
        for i, chosen in enumerate(turns):
            folder = f"{STAGING}/{run}/{i}"
            write(chosen, folder)
            done += _move_beside(table, folder, chosen, f"{run}-{i}", made)
        for rewritten in done:
            _check_rows(location, rewritten)
        new = [file for rewritten in done for file in rewritten.files]
        fresh = index(new)
        n_sealed = sum(chosen[0].sealed for chosen in turns)
        wrote = {run: Run.of(target, sealed=n_sealed)}
        if source.has_versions:
            made.clear()  # a commit that fails may have succeeded after all
        replaced = source.replace(location, _changes(table, done))

        def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
            manifest, known, kept = replaced(base)
            runs = {**runs_of(base.properties), **wrote}
            known = with_runs(known, runs, kept | {file.path for file in new})
            return manifest.merge(fresh), known | properties

        committed = commit(location, change, operation="optimize", known=table.snapshot)
    except BaseException:
        # If the commit succeeded after all, deleting its copies makes the replacement
        # void, and readers use the old files.
        with contextlib.suppress(Exception):
            delete_files(location, made)
        raise
    finally:
        with contextlib.suppress(Exception):
            location.delete_tree(f"{STAGING}/{run}")
    return done, committed


def _changes(table: TableState, done: Sequence[Rewritten]) -> list[Change]:
    """What replaces what, as it was when the old files were chosen."""
    listed = {file.path: file for file in table.listing}
    has_defaults = any(column.has_default for column in table.leaves)

    def change(one: Rewritten) -> Change:
        old = [listed[file.path] for file in one.group.files]
        return Change(old, one.files, has_defaults, one.statistics)

    return [change(one) for one in done]


def _move_beside(
    table: TableState,
    staged: str,
    groups: Sequence[Group],
    name: str,
    made: list[str],
) -> list[Rewritten]:
    """Move staged files beside those that they replace, and tell ``made`` where."""
    location, source = table.location, table.source
    written = source.statistics_written(location, staged)
    statistics: dict[Group, dict[str, str]] = {group: {} for group in groups}
    by_values = {group.values: group for group in groups}

    def group_of(path: str) -> Group:
        return groups[0] if len(groups) == 1 else by_values[partition_values(path)]

    moved: dict[Group, list[FileInfo]] = {group: [] for group in groups}
    for path, file in hide_staged(
        location,
        staged,
        name,
        lambda path: group_of(path).folder,
        made,
        visible=source.has_versions,
    ):
        group = group_of(path)
        moved[group].append(file)
        statistics[group][file.path] = written.get(path, "")
    for group, files in moved.items():
        old, new = (f.path for f in group.files), (f.path for f in files)
        location.narrow(new, old)
    return [
        Rewritten(group, tuple(files), statistics[group])
        for group, files in moved.items()
    ]


def _check_rows(location: Location, rewritten: Rewritten) -> None:
    n_rows = count_rows(location, [file.path for file in rewritten.files])
    if n_rows != rewritten.group.n_rows:
        first = rewritten.group.files[0].path
        raise TableError(
            f"rewrote {n_rows} rows of {rewritten.group.n_rows} (in {first!r} and "
            f"{len(rewritten.group.files) - 1} more files); nothing was replaced"
        )
