"""Forgetting data files that are gone.

A manifest says of every data file its path, its least and greatest values and where
its payloads are.  Whatever changes a manifest leaves out the files that are no longer
there, so that what was deleted is forgotten, and its packs are not named.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from skipindex.storage.file_system.location import Location
from skipindex.storage.manifest import Manifest


def without_vanished(manifest: Manifest, location: Location) -> Manifest:
    """The manifest without the files that are gone, or are others by now.

    The folder is listed after the manifest was read, so a file that another writer
    has added and committed meanwhile is in the listing.
    """
    if not len(manifest):
        return manifest
    there = {(f.path, f.size, f.mtime) for f in location.list()}
    names = ("path", "size", "mtime")
    marks = zip(*(manifest.files[name].to_pylist() for name in names), strict=True)
    mask = [mark in there for mark in marks]
    if all(mask):
        return manifest
    keep = pa.array(mask, pa.bool_())
    stats = {
        name: replace(column, values=column.values.filter(keep))
        for name, column in manifest.stats.items()
    }
    # Where no file is left that has a column, nothing is left to be said of it.
    known = {n: s for n, s in stats.items() if s.values.null_count < len(s.values)}
    kept = replace(manifest, files=manifest.files.filter(keep), stats=known)
    return kept.without_unused_packs()
