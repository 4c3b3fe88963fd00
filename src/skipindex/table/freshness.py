"""Matching files with a commit: which are still those that were indexed.

A file that the newest commit does not know, or knows with another size or modification
mark, has no index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.storage.manifest import BlobUse, Manifest


def match(
    manifest: Manifest, paths: Sequence[str], marks: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, list[str]]:
    """For every file its row in the manifest or -1, and why there is none.

    Args:
        manifest: what was committed.
        paths: of the files as they are listed.
        marks: ``size`` and ``mtime`` of the files, which must be those committed.
    """
    known = {path: i for i, path in enumerate(manifest.paths)}
    rows = np.array([known.get(path, -1) for path in paths], np.int64)
    there = rows >= 0
    same = there.copy()
    for name, now in marks.items():
        then = manifest.files[name].to_numpy()
        same[there] &= then[rows[there]] == now[there]
    never = "never indexed" if len(manifest) else "the table has no index"
    changed = "changed since it was indexed"
    reasons = np.select([same, there], ["", changed], default=never)
    return np.where(same, rows, -1), [str(reason) for reason in reasons]


def take(values: pa.Array, rows: np.ndarray) -> pa.Array:
    """``values`` at ``rows``; null where the row is -1."""
    return values.take(pa.array(rows, mask=rows < 0))


def first_counted(columns: Sequence[pa.StructArray]) -> pa.StructArray:
    """Of every file the first statistics that have counts, of columns of one type."""
    if len(columns) == 1:
        return columns[0]
    n = len(columns[0])
    counted = [np.asarray(pc.struct_field(c, "null_count").is_valid()) for c in columns]
    which = np.argmax(counted, axis=0)
    return pa.concat_arrays(columns).take(pa.array(which * n + np.arange(n)))


def files_by_row(manifest: Manifest, rows: np.ndarray) -> np.ndarray:
    """Of every row of the manifest, and of the row -1, its file; -1 if it has none."""
    files: np.ndarray = np.full(len(manifest) + 1, -1, np.int64)
    files[rows] = np.arange(len(rows))
    files[-1] = -1
    return files


def fresh_blobs(manifest: Manifest, rows: np.ndarray) -> dict[str, list[BlobUse]]:
    """The index blobs of files that did not change, by column and newest first.

    Args:
        manifest: what was committed.
        rows: of every file its row in the manifest or -1, as ``match`` says.
    """
    file_of_row = files_by_row(manifest, rows)
    found: dict[str, list[BlobUse]] = {}
    for use in reversed(manifest.blobs()):
        files = file_of_row[use.rows]
        fresh = files >= 0
        mine = replace(use, rows=files[fresh], slots=use.slots[fresh])
        found.setdefault(use.entry.meta.column, []).append(mine)
    return found
