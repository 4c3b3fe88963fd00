"""Manifests without some files, or with files at other paths.

A manifest has the path, the least and greatest values and the payloads of every data
file.  Every change of a manifest removes deleted files, so deleted values
leave the log and packs without a file are no longer named.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.log.manifest import Manifest, as_one_array, positions, with_column
from skipindex.storage.file_system.file_info import FileInfo, Marks
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


def without_files(manifest: Manifest, paths: Collection[str]) -> Manifest:
    """The manifest without the files at these paths."""
    result = manifest.rows_of(list(paths))
    mask: np.ndarray = np.ones(len(manifest), np.bool_)
    mask[result[result >= 0]] = False
    return manifest if mask.all() else manifest.only(mask)


def with_moved(manifest: Manifest, moved: Mapping[str, FileInfo]) -> Manifest:
    """The manifest with files at other paths, by the path that they have in it.

    The rows are in the same order; the content of the files is the same.
    """
    rows = manifest.rows_of(list(moved))
    places = list(moved.values())
    place_of: np.ndarray = np.full(len(manifest), -1, np.int64)
    place_of[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
    files = manifest.files
    for name in ("path", "mtime", "tag"):
        there = pa.array([getattr(place, name) for place in places], files[name].type)
        fresh = there.take(pa.array(place_of, mask=place_of < 0))
        if name != "tag":  # a new place has its own, or none
            fresh = pc.coalesce(fresh, files[name])
        else:
            fresh = pc.if_else(pa.array(place_of < 0), files[name], fresh)
        files = with_column(files, name, fresh)
    return replace(manifest, files=files)
