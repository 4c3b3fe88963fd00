"""Removing deleted data files from a manifest.

A manifest has the path, the least and greatest values and the payloads of every data
file.  Every change of a manifest removes deleted files, so deleted values
leave the log and packs without a file are no longer named.
"""

from __future__ import annotations

import numpy as np

from skipindex.log.manifest import Manifest, as_one_array, positions
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
    listing = FileList.of(list(location.list()))
    paths = as_one_array(manifest.files["path"]).cast(listing.names.type)
    result = positions(paths, listing.names)
    mask = result >= 0
    now = listing.marks.at(result[mask])
    then = Marks.of_table(manifest.files).at(np.flatnonzero(mask))
    mask[mask] = now.are_still(then)
    if mask.all():
        return manifest
    left = manifest.only(mask)
    # A column that no file has any more has no statistics either.
    return left.without_stats(left.blank_stats())
