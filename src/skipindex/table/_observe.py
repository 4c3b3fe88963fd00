"""A table as it stands at one moment: its files, its newest commit and its schema.

The three go together: a rewrite that is committed meanwhile is noticed, and the table
is listed anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from skipindex.errors import CorruptIndexError, TableError
from skipindex.storage.location import Found, Location
from skipindex.storage.log import Snapshot, latest_version, read_snapshot
from skipindex.storage.manifest import Manifest
from skipindex.storage.replacements import Rewrites
from skipindex.stored import arrow_schema, given_schema
from skipindex.table._files import (
    SUMMARIES,
    UNREADABLE,
    SparkListing,
    check_folder,
    column_reader,
    is_data_file,
)
from skipindex.table._formats import require_plain

_LOOKS: Final = 20
"""How often a table is listed anew that others rewrite meanwhile."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A table as it stood at one moment.

    Args:
        listing: the data files, by path.
        folders: those whose names are partition values, of empty files too.
        snapshot: the commit that goes with them.
        notes: what of the commit could not be believed.
        schema_path: the file that the schema is taken from.
        schema: the columns of the files, as Spark types them.
        refused: the columns that are not indexed, and why.
    """

    listing: list[Found]
    folders: list[str]
    snapshot: Snapshot
    notes: tuple[str, ...]
    schema_path: str
    schema: pa.Schema
    refused: Mapping[str, str]


def observe(
    location: Location, *, schema: pa.Schema | None = None, plain: bool = False
) -> Observed:
    """The table below ``location`` as it is now.

    Args:
        location: of the table.
        schema: of the files, if no footer is to tell.
        plain: whether to take a table of another format for a plain folder.

    Raises:
        TableError: there is no such folder, or no Parquet file in it, or it is a
            table of another format.
    """
    everything, snapshot, notes = _listed(location)
    if not plain:
        require_plain(location, (file.path for file in everything), insist=True)
    shown = SparkListing(everything)
    listing, remarks = Rewrites.of(snapshot.properties).live(everything, shown.is_read)
    candidates = shown.with_schema or [file.path for file in listing]
    if not candidates:
        raise TableError(_nothing_there(location, everything))
    schema_path = _schema_path(location, candidates)
    if schema is None:
        schema, refused = _read_schema(location, schema_path)
    else:
        schema, refused = given_schema(schema)
    return Observed(
        listing,
        shown.folders,
        snapshot,
        (*notes, *remarks),
        schema_path,
        schema,
        refused,
    )


def _listed(location: Location) -> tuple[list[Found], Snapshot, tuple[str, ...]]:
    """All files and the newest commit, in a state that goes together.

    Files that a rewrite replaces come and go with commits, so a listing is good
    only if the same rewrites were committed before it and after it.
    """
    check_folder(location)
    snapshot, notes = _newest(location)
    for _ in range(_LOOKS):
        everything = _list(location)
        before = Rewrites.of(snapshot.properties)
        if latest_version(location) != snapshot.version:
            snapshot, notes = _newest(location)
        if Rewrites.of(snapshot.properties) == before:
            return everything, snapshot, notes
    raise TableError(
        f"{location.full('')!r} was rewritten {_LOOKS} times while it was listed; try "
        "again when that is done"
    )


def _list(location: Location) -> list[Found]:
    """All files below the folder, by path."""
    check_folder(location)
    try:
        return sorted(location.list(), key=lambda found: found.path)
    except OSError as error:
        raise TableError(f"cannot list {location.full('')!r}: {error}") from error


def _newest(location: Location) -> tuple[Snapshot, tuple[str, ...]]:
    """The newest commit; a damaged or newer one is no index, with a note."""
    try:
        return read_snapshot(location), ()
    except CorruptIndexError as error:
        return Snapshot(-1, Manifest.empty()), (f"indexes ignored: {error}",)
    except OSError as error:
        raise TableError(f"cannot list {location.full('')!r}: {error}") from error


def _schema_path(location: Location, candidates: list[str]) -> str:
    """The file that Spark takes the schema from: a summary, else the first by path."""

    def java_order(path: str) -> bytes:
        return location.spark_path(path).encode("utf-16-be", "surrogatepass")

    for name in SUMMARIES:
        summaries = [path for path in candidates if path.rpartition("/")[2] == name]
        if summaries:
            return min(summaries, key=java_order)
    return min(candidates, key=java_order)


def _read_schema(location: Location, path: str) -> tuple[pa.Schema, dict[str, str]]:
    try:
        file, close = column_reader(location, path)
        try:
            return arrow_schema(file)
        finally:
            close()
    except UNREADABLE as error:
        reason = str(error).partition("\n")[0]
        raise TableError(
            f"{location.full(path)!r} is no readable Parquet file: {reason} "
            "(names that begin with _ or . are left out)"
        ) from error


def _nothing_there(location: Location, everything: list[Found]) -> str:
    where = location.full("")
    if not location.exists():
        return f"no such table: {where!r} does not exist"
    left_out = "names that begin with _ or . are left out"
    below = next((f.path for f in everything if f.size and is_data_file(f.path)), None)
    if below is not None:
        left_out = f"{below!r} lies in a folder that is no partition, as k=v would be"
    return f"no Parquet files in {where!r} ({left_out})"
