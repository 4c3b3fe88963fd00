"""Opening a table from its log without listing the folder.

The log names all files of a table only where it says that they change through skipindex
alone (``exclusive``).  Where that is in doubt, the folder is listed.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.errors import TableError
from skipindex.log import Snapshot, warn_of_damage
from skipindex.log.manifest import Manifest, as_one_array
from skipindex.log.moved import without_files
from skipindex.log.unchanged import match
from skipindex.source.folder.folder import (
    OWN_LOG,
    first_in_java,
    listed_beside,
    read_schema,
)
from skipindex.source.folder.hidden_files import replaced_paths
from skipindex.source.folder.live import check_folder
from skipindex.source.folder.replacements import Rewrites
from skipindex.source.formats import other_format
from skipindex.source.partitions.hive import partition_values
from skipindex.source.source import Observed
from skipindex.storage.file_system.file_info import FileInfo, Marks
from skipindex.storage.file_system.file_list import FileList
from skipindex.storage.file_system.location import Location

_ACCEPTED: Final = (
    "accepted: trust='listing', or first write_table(…, exclusive=True) or "
    "Table.declare_exclusive(), which lists the files once"
)


def why_not(location: Location, snapshot: Snapshot, *, insist: bool) -> str:
    """Why a listing is needed; empty if the log is enough."""
    is_whole = snapshot.damaged is None and not snapshot.lost
    if not snapshot.is_exclusive:
        if is_whole and insist:
            check_folder(location)
            raise TableError(
                f"{location.full('')!r} cannot be opened from its log, because the "
                f"table is not declared exclusive ({_ACCEPTED})"
            )
        if is_whole:
            return "it no longer names all of them"
        return "a part of it cannot be read"
    return "" if len(snapshot.manifest) else "it names none"


def by_log(
    location: Location, snapshot: Snapshot, schema: pa.Schema | None
) -> Observed | str:
    """What the log says; the path of the file with the schema if it has gone."""
    rewrites = Rewrites.of(snapshot)
    listing = _files_of(without_files(snapshot.manifest, rewrites.replaced))
    path, info = _schema_file(location, rewrites, listing)
    try:
        columns, refused = read_schema(location, path, info, schema)
    except TableError:
        if info.is_same(location.stat(path)):
            raise
        return path
    warn_of_damage(snapshot)
    notes = snapshot.notes
    return Observed(listing, columns, refused, path, OWN_LOG, snapshot, notes=notes)


def _files_of(manifest: Manifest) -> FileList:
    """The files of a manifest, by path."""
    names = as_one_array(manifest.files["path"]).cast(pa.binary())
    order = np.asarray(pc.sort_indices(names))
    marks = Marks.of_table(manifest.files).at(order)
    return FileList(names.take(pa.array(order)), *marks[:2], tags=marks.tags)


def _schema_file(
    location: Location, rewrites: Rewrites, listing: FileList
) -> tuple[str, FileInfo]:
    """The file that Spark takes the schema from: the first of the visible ones."""
    # Files that were rewritten are visible until they are published.
    hidden = [path for one in rewrites.replacements for path in one.names]
    old = rewrites.replaced
    is_hidden = pc.is_in(listing.names, value_set=pa.array(hidden, pa.binary()))
    shown = listing.names.filter(pc.invert(is_hidden))
    names = shown if len(shown) or old else listing.names
    texts = names.cast(pa.string())
    if pc.any(pc.invert(pc.string_is_ascii(texts))).as_py():
        first = [first_in_java(location, texts.to_pylist())]
    else:
        first = [pc.min(texts).as_py()] if len(texts) else []
    path = first_in_java(location, [*first, *old])
    if path in old:
        return path, old[path]
    return path, listing[pc.index(listing.names, path.encode()).as_py()]


def difference_from_log(location: Location, snapshot: Snapshot) -> str:
    """Why a listing and the log do not say the same of a table; empty if they do.

    The folder is listed.
    """
    if snapshot.damaged is not None or snapshot.lost:
        return "a part of the log cannot be read"
    everything, shown, live = listed_beside(location, snapshot)
    if foreign := other_format(file.path for file in everything):
        return f"{foreign[1]!r} is the log of a {foreign[0]} table"
    for path in shown.summaries:
        return f"{path!r} says which columns the table has"
    valued = {partition_values(file.path) for file in live}
    for folder in shown.folders:
        if partition_values(f"{folder}/") not in valued:
            return f"the folder {folder!r} has only empty files"
    listing = FileList.of(live)
    manifest = without_files(snapshot.manifest, replaced_paths(snapshot))
    rows, known = match(manifest, listing.names, listing.marks)
    if (rows < 0).any():
        first = int(np.argmax(rows < 0))
        what = "has changed since" if known[first] else "is not named by"
        return f"{live[first].path!r} {what} commit {snapshot.version}"
    named = np.isin(np.arange(len(manifest)), rows)
    if not named.all():
        path = manifest.files["path"][int(np.argmin(named))].as_py()
        return f"{path!r} is named by commit {snapshot.version}, and does not exist"
    return ""
