"""The commit log: what was committed, and how the next commit is made."""

from skipindex.storage.log.commits import (
    FORMAT,
    Change,
    Snapshot,
    commit,
    latest_version,
    newest_for_writer,
    newest_snapshot,
    read_snapshot,
    segments_of,
    warn_of_damage,
    warn_of_others,
)
from skipindex.storage.log.segments import Segment, read_file

__all__ = [
    "FORMAT",
    "Change",
    "Segment",
    "Snapshot",
    "commit",
    "latest_version",
    "newest_for_writer",
    "newest_snapshot",
    "read_file",
    "read_snapshot",
    "segments_of",
    "warn_of_damage",
    "warn_of_others",
]
