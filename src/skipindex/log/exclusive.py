"""Exclusive tables: only skipindex changes their files, so the log lists them all.

The property ``exclusive`` says so: ``{"commit": n}``.  It counts in commit ``n`` alone,
and each commit writes it again.  So a commit of a version of this library that does not
know the property ends it.

A commit ends it too if the files that it names are not those that the commit before
named, except for files that it has added or replaced itself.  Such a change shows
that another writer has been there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np

from skipindex.log.manifest import Manifest, taken
from skipindex.log.properties import TableProperties
from skipindex.log.replacements import Rewrites
from skipindex.log.unchanged import rows_by_path
from skipindex.storage.file_system.file_info import Marks
from skipindex.storage.file_system.names import published

DECLARED: Final[dict[str, Any]] = {}
"""The property as a caller sets it, who has compared the log with a listing."""


Content: TypeAlias = tuple[Manifest, TableProperties]
"""The files that a commit names, and the properties of the table."""


def stamped(
    base: Content,
    new: Content,
    version: int,
    added: Collection[str] = (),
    *,
    was_exclusive: bool,
) -> tuple[TableProperties, str]:
    """The properties as commit ``version`` has them, and why the mark ends, if so.

    ``base`` is the commit before ``version``, which is written by a writer who has
    ``added`` these visible files.
    """
    _, properties = new
    mark = properties.exclusive
    if mark is None:
        return properties, ""
    why = ""
    if mark != DECLARED:
        if mark != base[1].exclusive or not was_exclusive:
            return replace(properties, exclusive=None), ""
        why = _unexplained(base, new, added)
    why = why or _unnamed(base, new, added)
    return replace(properties, exclusive=None if why else {"commit": version}), why


def _unexplained(base: Content, new: Content, visible: Collection[str]) -> str:
    """What has changed of the files and is not said to be ours; empty if nothing."""
    (before, _), (manifest, _) = base, new
    if manifest is before:
        return ""
    result = rows_by_path(before, manifest)
    fresh = taken(manifest.files, np.flatnonzero(result < 0))["path"].to_pylist()
    then, now = (Rewrites.from_properties(one) for _, one in (base, new))
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
    ours |= {trash.file.path for trash in now.trash} | then.replaced
    open_ = {one.new for one in now.replacements}
    ended = [one.new for one in then.replacements if one.new not in open_]
    ours |= {file.path for files in ended for file in files}
    if foreign := sorted(set(gone) - ours):
        return f"{foreign[0]!r} was deleted or changed, not replaced by skipindex"
    return ""


def _unnamed(base: Content, new: Content, visible: Collection[str]) -> str:
    """The first file that this commit adds and does not name, if there is one."""
    then, now = (Rewrites.from_properties(one) for _, one in (base, new))
    known = {one.new for one in then.replacements}
    hidden = [one.new for one in now.replacements if one.new not in known]
    fresh = [*(file.path for files in hidden for file in files), *sorted(visible)]
    rows = new[0].rows_of(fresh)
    lacking = [path for path, row in zip(fresh, rows.tolist(), strict=True) if row < 0]
    return f"no index has {lacking[0]!r}" if lacking else ""
