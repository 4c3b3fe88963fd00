"""The cubes of a table: files that were clustered together, in a file of their own.

::

    _skipindex/manifests/<hash>.cubes.json    {"cubes": {"cubes": [...]}, "crc32c": n}

They name every clustered file, so they stand in no commit: it names the file, and most
commits name that of the commit before.  Without them an ``optimize`` clusters files
again, and nothing else is different.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from crc32c import crc32c

from skipindex.errors import CorruptIndexError, StorageError
from skipindex.storage.checks import (
    MAX_COMMIT,
    RefusedError,
    fetched,
    require,
    sealed,
    unsealed,
)
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import MANIFESTS
from skipindex.storage.properties import TableProperties, check_cubes


def cube_file_path(properties: TableProperties) -> str | None:
    """Where the cubes of a table are; None if it has none."""
    record = properties.cube_file
    return None if record is None else f"{MANIFESTS}/{record['name']}"


def read_cubes(
    location: Location, properties: TableProperties
) -> Sequence[Mapping[str, Any]]:
    """The cubes of a table; none if their file is gone or damaged.

    Raises:
        StorageError: the file cannot be read now.
    """
    path = cube_file_path(properties)
    if properties.cubes is not None or path is None:
        return properties.cubes or ()
    try:
        data = fetched(location, path, MAX_COMMIT)
        require(crc32c(data) == (properties.cube_file or {})["crc32c"], "another file")
        found = unsealed("cubes", data)["cubes"]
        check_cubes(found)
    except RefusedError as error:
        raise StorageError(f"cannot read {location.full(path)!r}: {error}") from error
    except (CorruptIndexError, KeyError):
        return ()
    return list(found)


def with_cube_file(
    location: Location, base: TableProperties, properties: TableProperties
) -> TableProperties:
    """The properties of a commit, whose cubes are in a file.

    Args:
        location: of the table.
        base: the properties of the commit before.
        properties: with ``cubes``, if they differ from those of the file.

    Raises:
        CorruptIndexError: no reader would take the file.
    """
    if properties.cubes is None:
        return properties
    if not properties.cubes:
        return replace(properties, cubes=None, cube_file=None)
    check_cubes(properties.cubes)
    data = sealed("cubes", {"cubes": list(properties.cubes)})
    size = f"the file of cubes would have {len(data)} bytes (at most {MAX_COMMIT})"
    require(len(data) <= MAX_COMMIT, size)
    name = hashlib.sha256(data).hexdigest()[:32] + ".cubes.json"
    record = {"name": name, "size": len(data), "crc32c": crc32c(data)}
    found = replace(properties, cubes=None, cube_file=record)
    if record != base.cube_file:
        location.write(f"{MANIFESTS}/{name}", data)
    return found
