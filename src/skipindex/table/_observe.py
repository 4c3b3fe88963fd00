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
from skipindex.schema import arrow_schema
from skipindex.storage.location import Found, Location
from skipindex.storage.log import Snapshot, latest_version, read_snapshot
from skipindex.storage.manifest import Manifest
from skipindex.storage.replacements import Rewrites
from skipindex.table._files import (
    UNREADABLE,
    check_folder,
    column_reader,
    is_data_file,
    is_visible,
)

_SUMMARIES: Final = ("_common_metadata", "_metadata")
"""Files that Spark takes the schema from before any data file."""
_LOOKS: Final = 20
"""How often a table is listed anew that others rewrite meanwhile."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A table as it stood at one moment.

    Args:
        listing: the data files, by path.
        snapshot: the commit that goes with them.
        notes: what of the commit could not be believed.
        schema_path: the file that the schema is taken from.
        schema: the columns of the files, as Spark types them.
        refused: the columns that are not indexed, and why.
    """

    listing: list[Found]
    snapshot: Snapshot
    notes: tuple[str, ...]
    schema_path: str
    schema: pa.Schema
    refused: Mapping[str, str]


def observe(location: Location) -> Observed:
    """The table below ``location`` as it is now.

    Raises:
        TableError: there is no such folder, or no Parquet file in it.
    """
    everything, snapshot, notes = _listed(location)
    listing, remarks = Rewrites.of(snapshot.properties).live(everything, is_visible)
    if not listing:
        raise TableError(_nothing_there(location))
    schema_path = _schema_path(location, everything, listing)
    schema, refused = read_schema(location, schema_path)
    return Observed(listing, snapshot, (*notes, *remarks), schema_path, schema, refused)


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


def _schema_path(
    location: Location, everything: list[Found], listing: list[Found]
) -> str:
    """The file that Spark takes the schema from: a summary, else the first by path."""

    def java_order(path: str) -> bytes:
        return location.spark_path(path).encode("utf-16-be", "surrogatepass")

    shown = [
        found.path
        for found in everything
        if found.size > 0 and is_data_file(found.path.rpartition("/")[0])
    ]
    for name in _SUMMARIES:
        summaries = [path for path in shown if path.rpartition("/")[2] == name]
        if summaries:
            return min(summaries, key=java_order)
    visible = list(filter(is_data_file, shown))
    return min(visible or [file.path for file in listing], key=java_order)


def read_schema(location: Location, path: str) -> tuple[pa.Schema, dict[str, str]]:
    """The columns of a file as Spark types them, and why some are not indexed."""
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


def _nothing_there(location: Location) -> str:
    where = location.full("")
    if not location.exists():
        return f"no such table: {where!r} does not exist"
    return f"no Parquet files in {where!r} (names that begin with _ or . are left out)"
