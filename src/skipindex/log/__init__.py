"""The log of commits: which files count, and what is known of each.

A commit names data files with their statistics and packs, and the rewrites whose files
count beside those that a reader of the folder sees.  This package alone says so.
"""

from skipindex.log.commits import (
    FORMAT,
    Change,
    CommitInfo,
    Snapshot,
    commit,
    history,
    latest_version,
    newest_for_writer,
    newest_snapshot,
    read_snapshot,
    segments_of,
    warn_of_damage,
    warn_of_others,
)
from skipindex.log.live import (
    LOOKS,
    Listing,
    check_folder,
    live_files,
    look,
    never_still,
    newest_usable,
    no_snapshot,
)
from skipindex.log.segments import Segment, read_file

__all__ = [
    "FORMAT",
    "LOOKS",
    "Change",
    "CommitInfo",
    "Listing",
    "Segment",
    "Snapshot",
    "check_folder",
    "commit",
    "history",
    "latest_version",
    "live_files",
    "look",
    "never_still",
    "newest_for_writer",
    "newest_snapshot",
    "newest_usable",
    "no_snapshot",
    "read_file",
    "read_snapshot",
    "segments_of",
    "warn_of_damage",
    "warn_of_others",
]
