"""Where the indexes of a table are, if not in the table's own folder.

One folder may be the sidecar of many tables.  Each has a folder of its own in it, whose
name is made of the table's path or URI; ``Roots.java`` makes the same name.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import replace
from typing import Final
from urllib.parse import unquote, urlsplit

from skipindex.errors import TableError
from skipindex.storage.file_system.location import Location, location_of
from skipindex.storage.file_system.names import FOLDER, LOG, version_of
from skipindex.storage.file_system.uris import (
    SCHEMES,
    StorageOptions,
    store_place,
    without_secrets,
)

SIDECAR: Final = "spark.skipindex.sidecar"
"""The setting of a Spark session that names the sidecar of its tables."""
_LONGEST: Final = 40
"""Characters of a table's name that the name of its folder begins with."""


def uri_of(table: Location) -> str:
    """The folder of a table as one text, however its scheme and slashes are spelled.

    >>> uri_of(location_of("/data/../data/events/"))
    'file:///data/events/'
    """
    if table.is_local:
        text = f"file://{table.root.rstrip('/')}/"
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    parts = urlsplit(without_secrets(table.uri))
    scheme, path = SCHEMES.get(parts.scheme, parts.scheme), unquote(parts.path)
    return f"{scheme}://{parts.netloc}{path.rstrip('/')}/"


def folder_in_sidecar(table: Location) -> str:
    """The name of the folder that a table has in a sidecar.

    >>> folder_in_sidecar(location_of("/data/events"))
    'events-fc662e33a838835f'
    """
    uri = uri_of(table)
    name = re.sub(r"[^A-Za-z0-9._-]", "_", uri.rstrip("/").rpartition("/")[2])
    return f"{name[:_LONGEST]}-{hashlib.sha256(uri.encode()).hexdigest()[:16]}"


def location_in(
    table: Location | str | os.PathLike[str],
    options: StorageOptions | None,
    sidecar: str | os.PathLike[str] | None,
) -> Location:
    """The folder that a path or URI names, with its indexes in a sidecar, if any."""
    is_local = not isinstance(table, Location) and store_place(os.fspath(table)) is None
    own = None if is_local and sidecar is not None else options
    return with_sidecar(location_of(table, own), sidecar, options)


def with_sidecar(
    table: Location,
    sidecar: str | os.PathLike[str] | None,
    options: StorageOptions | None = None,
    *,
    insist: bool = True,
) -> Location:
    """The table with its indexes in a sidecar; None leaves them beside the data.

    ``options`` are those of the table's store, and of the sidecar's if that is in one.
    """
    if sidecar is None:
        return table
    table = replace(table, sidecar=None)
    takes = store_place(os.fspath(sidecar)) or not store_place(table.uri)
    place = location_of(sidecar, options if takes else None)
    if uri_of(place).startswith(uri_of(table)):
        raise TableError(
            f"the sidecar {place.full('')!r} is in the table's folder "
            f"{table.full('')!r} (accepted: a folder elsewhere)"
        )
    if any(version_of(name) is not None for name in table.names(LOG)):
        if not insist:
            return table
        raise TableError(
            f"{table.full('')!r} has indexes in its own folder {FOLDER}, so it takes "
            "no sidecar (accepted: no sidecar, or first Table.remove_indexes)"
        )
    name = folder_in_sidecar(table)
    uri, mark, query = place.uri.partition("?")
    own = f"{uri.rstrip('/')}/{name}{mark}{query}" if uri else ""
    root = f"{place.root.rstrip('/')}/{name}"
    return replace(table, sidecar=replace(place, root=root, uri=own))


def require_no_sidecar(table: Location, action: str) -> None:
    """Raise ``TableError`` if a call that writes data files has a sidecar."""
    if table.sidecar is not None:
        raise TableError(
            f"{action} needs the indexes in the table's folder {table.full('')!r}, as "
            "it writes and hides data files there (accepted: the table without a "
            "sidecar)"
        )
