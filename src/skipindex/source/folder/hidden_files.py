"""What others ask of the files that count, and do not, by more than being listed.

Only this package reads what a commit says of them.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Final

from skipindex.log.commits import Snapshot
from skipindex.source.folder.replacements import Replacement, Rewrites
from skipindex.storage.file_system.file_list import FileList
from skipindex.storage.file_system.names import published

_LAST_DAY: Final = 253_402_214_400.0
"""30 December 9999, in seconds since 1970."""


def hidden_paths(snapshot: Snapshot) -> set[str]:
    """The paths of all hidden files, of the trash too."""
    rewrites = Rewrites.of(snapshot)
    files = {path for one in rewrites.entries for path in one.names}
    return files | {trash.file.path for trash in rewrites.trash}


def replaced_paths(snapshot: Snapshot) -> set[str]:
    """The paths of visible files that hidden ones were made of."""
    return {*Rewrites.of(snapshot).replaced}


def counts_hidden_files(snapshot: Snapshot) -> bool:
    """Whether a commit lets hidden files count."""
    return bool(Rewrites.of(snapshot).replacements)


def was_rewritten(snapshot: Snapshot) -> bool:
    """Whether files of the table were replaced, or hidden, at any time."""
    return Rewrites.of(snapshot).changes > 0


def arriving_paths(snapshot: Snapshot) -> set[str]:
    """The paths of files that are getting their visible names, by both names."""
    open_ = Rewrites.of(snapshot).replacements
    names = (path for r in open_ if r.overwrites for path in r.names)
    return {path for name in names for path in (name, published(name))}


def waiting(
    snapshot: Snapshot, retention: timedelta, *, since: float = -math.inf
) -> str:
    """Which rewritten files a reader of the folder does not see yet; empty if none.

    Those count that were committed after ``since``, in seconds since 1970.
    """
    open_ = Rewrites.of(snapshot).replacements
    rewrites = [r for r in open_ if not r.overwrites and r.since > since]
    if not rewrites:
        return ""
    files = [file for one in rewrites for file in one.new]
    first = min(one.since for one in rewrites) + retention.total_seconds()
    due = datetime.fromtimestamp(min(first, _LAST_DAY), UTC)
    return (
        f"{len(files)} rewritten files ({sum(f.size for f in files) / 1e6:.1f} MB) "
        f"are not visible to readers that list the folder: vacuum publishes them "
        f"from {due:%Y-%m-%d %H:%M} UTC on, vacuum(retention=timedelta(0)) now"
    )


def due(snapshot: Snapshot, begin: float) -> tuple[int, int]:
    """How many files a vacuum can publish, and how many deletions are due.

    ``begin`` is when the retention began, in seconds since 1970.
    """
    rewrites = Rewrites.of(snapshot)
    over = [one.since for one in rewrites.shown]
    over += [one.since for one in rewrites.trash]
    files = [len(r.new) for r in rewrites.replacements if r.since <= begin]
    return sum(files), sum(since <= begin for since in over)


def standing(snapshot: Snapshot, counted: FileList) -> list[Replacement]:
    """The rewrites whose hidden files are among those that count.

    There are none while an overwrite is open, whose rows no reader of the folder sees
    yet.
    """
    open_ = Rewrites.of(snapshot).replacements
    if not open_ or any(one.overwrites for one in open_):
        return []
    paths = set(counted.paths)
    return [one for one in open_ if paths.issuperset(one.names)]
