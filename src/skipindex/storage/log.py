"""The commit log: numbered JSON files, each created only if absent.

::

    _skipindex/log/00000000000000000007.json    one commit
    _skipindex/manifests/<hash>.arrow           the manifest that it names
    _skipindex/packs/<hash>.puffin              the packs that the manifest names

A commit file is ``{"commit": {…}, "crc32c": n}``, where the number is the crc32c
of the commit as compact JSON with sorted keys.  The commit names its manifest by
name, size and crc32c.  Manifests and packs are written first and never changed,
so a reader sees a commit whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from crc32c import crc32c

from skipindex.errors import (
    CommitConflictError,
    CorruptIndexError,
    IndexVersionError,
)
from skipindex.storage.location import Location
from skipindex.storage.manifest import Manifest

FOLDER: Final = "_skipindex"
LOG: Final = f"{FOLDER}/log"
MANIFESTS: Final = f"{FOLDER}/manifests"
PACKS: Final = f"{FOLDER}/packs"
FORMAT: Final = 1
_TRIES: Final = 50


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One committed generation of a table's indexes.

    Args:
        version: the number of the commit; -1 before the first one.
        manifest: the data files that are known.
        properties: of the table, as JSON: ``layout`` and ``indexes``.
    """

    version: int
    manifest: Manifest
    properties: dict[str, Any] = field(default_factory=dict)


Change = Callable[[Snapshot], Snapshot]
"""From the newest snapshot to the next one; it may be called again on a conflict."""


def latest_version(location: Location) -> int:
    """The number of the newest commit, or -1."""
    names = (found.path.rpartition("/")[2] for found in location.list(LOG))
    stems = (name.removesuffix(".json") for name in names if name.endswith(".json"))
    return max((int(stem) for stem in stems if stem.isdigit()), default=-1)


def read_snapshot(location: Location, version: int | None = None) -> Snapshot:
    """The snapshot of one commit, by default the newest; empty before the first.

    Raises:
        CorruptIndexError: a file is missing or fails its crc32c.
        IndexVersionError: a newer library wrote it.
    """
    if version is None:
        version = latest_version(location)
    if version < 0:
        return Snapshot(-1, Manifest.empty())
    name = f"commit {version}"
    try:
        outer = json.loads(location.read(_commit_path(version)))
        commit = outer["commit"]
        if crc32c(_canonical(commit)) != outer["crc32c"]:
            raise CorruptIndexError(f"{name} fails its crc32c")
        if commit["format"] > FORMAT:
            raise IndexVersionError(
                f"{name} has format {commit['format']}, newer than ours ({FORMAT})"
            )
        data = location.read(f"{MANIFESTS}/{commit['manifest']['name']}")
        if crc32c(data) != commit["manifest"]["crc32c"]:
            raise CorruptIndexError(f"the manifest of {name} fails its crc32c")
        manifest = Manifest.from_bytes(data)
    except (OSError, KeyError, TypeError, ValueError, pa.ArrowException) as error:
        if isinstance(error, CorruptIndexError):
            raise
        raise CorruptIndexError(f"{name} cannot be read: {error}") from error
    return Snapshot(version, manifest, commit["properties"])


def commit(location: Location, change: Change, *, operation: str) -> Snapshot:
    """Apply ``change`` to the newest snapshot and commit the result.

    Two writers: one of them finds its number taken, applies its change to what
    the other committed, and tries again.  Nothing of either is lost.  A newest
    commit that is damaged counts as empty: its indexes are no indexes.

    Raises:
        CommitConflictError: others were faster, 50 times in a row.
    """
    for attempt in range(_TRIES):
        version = latest_version(location)
        try:
            base = read_snapshot(location, version)
        except IndexVersionError:
            raise
        except CorruptIndexError:
            base = Snapshot(version, Manifest.empty())
        target = change(base)
        manifest = target.manifest.to_bytes()
        name = hashlib.sha256(manifest).hexdigest()[:32] + ".arrow"
        location.write(f"{MANIFESTS}/{name}", manifest)
        body = {
            "format": FORMAT,
            "operation": operation,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "manifest": {
                "name": name,
                "size": len(manifest),
                "crc32c": crc32c(manifest),
            },
            "properties": target.properties,
        }
        outer = {"commit": body, "crc32c": crc32c(_canonical(body))}
        data = json.dumps(outer, indent=1, sort_keys=True).encode()
        if location.write_new(_commit_path(version + 1), data):
            return Snapshot(version + 1, target.manifest, target.properties)
        time.sleep(random.uniform(0, 0.02 * min(attempt + 1, 10)))
    raise CommitConflictError(
        f"{operation}: other writers committed first {_TRIES} times at "
        f"{location.full(LOG)!r}; try again when they are done"
    )


def _commit_path(version: int) -> str:
    return f"{LOG}/{version:020d}.json"


def _canonical(body: dict[str, Any]) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
