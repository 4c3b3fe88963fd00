"""Removing deleted data files from a manifest.

A manifest has the path, the least and greatest values and the payloads of every data
file.  Every change of a manifest removes deleted files, so deleted values
leave the log and packs without a file are no longer named.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from skipindex.log.manifest import Manifest, positions
from skipindex.storage.file_system.file_info import Marks
from skipindex.storage.file_system.file_list import FileList
from skipindex.storage.file_system.location import Location


def without_vanished(manifest: Manifest, location: Location) -> Manifest:
    """The manifest without deleted and changed files.

    The folder is listed after the manifest was read, so a file that another writer
    has added and committed meanwhile is in the listing.
    """
    if not len(manifest):
        return manifest
    listing = [file for file in location.list() if _is_text(file.path)]
    paths = pa.array([file.path for file in listing], pa.string())
    result = positions(manifest.files["path"], paths)
    mask = result >= 0
    now = FileList.of(listing).marks.at(result[mask])
    then = Marks.of_table(manifest.files).at(np.flatnonzero(mask))
    mask[mask] = now.are_still(then)
    if mask.all():
        return manifest
    left = manifest.only(mask)
    # A column that no file has any more has no statistics either.
    return left.without_stats(left.blank_stats())


def _is_text(path: str) -> bool:
    """Whether a manifest can name the path."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
