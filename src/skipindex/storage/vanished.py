"""Removing data files that are gone from a manifest.

A manifest has the path, the least and greatest values and the payloads of every data
file.  Every change of a manifest removes the files that are gone, so deleted values
are forgotten and packs without a file are no longer named.
"""

from __future__ import annotations

from skipindex.storage.file_system.file_info import FileInfo
from skipindex.storage.file_system.location import Location
from skipindex.storage.manifest import Manifest


def without_vanished(manifest: Manifest, location: Location) -> Manifest:
    """The manifest without the files that are gone or have changed.

    The folder is listed after the manifest was read, so a file that another writer
    has added and committed meanwhile is in the listing.
    """
    if not len(manifest):
        return manifest
    there = {file.path: file for file in location.list()}
    names = ("path", "size", "mtime", "tag")
    marks = zip(*(manifest.files[name].to_pylist() for name in names), strict=True)
    mask = [FileInfo(*mark).is_same(there.get(mark[0])) for mark in marks]
    if all(mask):
        return manifest
    left = manifest.only(mask)
    # A column that no file has any more has no statistics either.
    gone = {n for n, s in left.stats.items() if s.values.null_count == len(s.values)}
    return left.without_stats(gone)
