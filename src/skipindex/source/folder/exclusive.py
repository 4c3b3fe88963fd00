"""Exclusive tables: only skipindex changes their files, so the log lists them all.

The property ``exclusive`` says so: ``{"commit": n}``.  It counts in commit ``n`` alone,
and each commit writes it again.  So a commit of a version of this library that does not
know the property ends it.

A commit ends it too if the files that it names are not those that the commit before
named, except for files that it has added or replaced itself.  Such a change shows
that another writer has been there.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import replace
from typing import Any, Final

import numpy as np

from skipindex.log import commits
from skipindex.log.commits import Change, Snapshot
from skipindex.log.manifest import Manifest, taken
from skipindex.log.properties import TableProperties
from skipindex.log.unchanged import rows_by_path
from skipindex.source.folder.replacements import Rewrites
from skipindex.storage.file_system.file_info import Marks
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import published

DECLARED: Final[dict[str, Any]] = {}
"""The property as a caller sets it, who has compared the log with a listing."""


def commit(
    location: Location,
    change: Change,
    *,
    operation: str,
    known: Snapshot | None = None,
    forget: bool = False,
    added: Collection[str] = (),
) -> Snapshot:
    """Commit as ``log.commits.commit`` does, and keep or end the mark ``exclusive``.

    That the log names all files of the table ends with a warning where the change shows
    otherwise.  ``added`` are the visible files that the writer has made itself.
    """
    why = ""

    def marked(base: Snapshot) -> tuple[Manifest, TableProperties]:
        nonlocal why
        manifest, properties = change(base)
        mark, why = properties.exclusive, ""
        if mark != DECLARED and not (
            base.is_exclusive and mark == base.properties.exclusive
        ):
            mark = None
        if mark is not None:
            why = _ended(base, manifest, properties, added)
            mark = None if why else {"commit": base.newest + 1}
        return manifest, replace(properties, exclusive=mark)

    done = commits.commit(
        location, marked, operation=operation, known=known, forget=forget
    )
    if why:
        warn_of_others(location, why)
    return done


def _ended(
    base: Snapshot,
    manifest: Manifest,
    properties: TableProperties,
    visible: Collection[str],
) -> str:
    """Why the log may not name all files after ``base``; empty if it does."""
    then, now = Rewrites.of(base), Rewrites.from_properties(properties)
    why = ""
    if properties.exclusive != DECLARED and manifest is not base.manifest:
        why = _unexplained(base.manifest, manifest, then, now, visible)
    known = {one.new for one in then.replacements}
    hidden = [path for r in now.replacements if r.new not in known for path in r.names]
    fresh = [*hidden, *sorted(visible)]
    rows = manifest.rows_of(fresh)
    lacking = [path for path, row in zip(fresh, rows.tolist(), strict=True) if row < 0]
    return why or (f"no index has {lacking[0]!r}" if lacking else "")


def _unexplained(
    before: Manifest,
    manifest: Manifest,
    then: Rewrites,
    now: Rewrites,
    visible: Collection[str],
) -> str:
    """What has changed of the files and is not said to be ours; empty if nothing."""
    result = rows_by_path(before, manifest)
    fresh = taken(manifest.files, np.flatnonzero(result < 0))["path"].to_pylist()
    added = {*visible, *(file.path for one in now.replacements for file in one.new)}
    added |= {published(f.path) for one in then.replacements for f in one.new}
    if foreign := sorted(set(fresh) - added):
        return f"{foreign[0]!r} was not written by skipindex"
    there = np.flatnonzero(result >= 0)
    same = Marks.of_table(manifest.files).at(there)
    if not same.are_still(Marks.of_table(before.files).at(result[there])).all():
        return "a file was overwritten by another writer"
    left = np.ones(len(before), np.bool_)
    left[result[there]] = False
    gone = taken(before.files, np.flatnonzero(left))["path"].to_pylist()
    ours = {file.path for one in now.replacements for file in one.old}
    ours |= {trash.file.path for trash in now.trash} | then.replaced.keys()
    open_ = {one.new for one in now.replacements}
    ended = [one.new for one in then.replacements if one.new not in open_]
    ours |= {file.path for files in ended for file in files}
    if foreign := sorted(set(gone) - ours):
        return f"{foreign[0]!r} was deleted or changed, not replaced by skipindex"
    return ""


def warn_of_others(location: Location, why: str) -> None:
    """Warn that the log does not name all files of the table any more."""
    warnings.warn(
        f"{location.full('')!r} is no longer declared exclusive: {why}",
        stacklevel=3,
    )
