"""The log of commits: what is known of each data file, and properties of the table.

A commit names data files with their statistics and packs.  What its properties say of
the files that count, ``source.folder`` reads and writes.
"""

from skipindex.log.commits import (
    FORMAT,
    Change,
    CommitInfo,
    Snapshot,
    history,
    latest_version,
    newest_for_writer,
    newest_snapshot,
    no_snapshot,
    read_snapshot,
    segments_of,
    warn_of_damage,
)
from skipindex.log.segments import Segment, read_file

__all__ = [
    "FORMAT",
    "Change",
    "CommitInfo",
    "Segment",
    "Snapshot",
    "history",
    "latest_version",
    "newest_for_writer",
    "newest_snapshot",
    "no_snapshot",
    "read_file",
    "read_snapshot",
    "segments_of",
    "warn_of_damage",
]
