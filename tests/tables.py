"""Small tables on disk, and ways to damage them."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from crc32c import crc32c

import skipindex as sx
from skipindex.expressions.atoms import (
    Atom,
    IsNotNull,
    IsNull,
    Matches,
    NoneOf,
    OneOf,
    Pattern,
    Range,
    Value,
    Wildcard,
)
from skipindex.planner.stages.pack_cache import PACK_CACHE
from skipindex.storage.file_system.location import location_of
from skipindex.storage.log import (
    LOG,
    MANIFESTS,
    PACKS,
    Snapshot,
    commit,
    latest_version,
)

Columns: TypeAlias = pa.Table | Mapping[str, Any]


def put(path: Path, columns: Columns, **options: Any) -> Path:
    """Write one Parquet file, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = columns if isinstance(columns, pa.Table) else pa.table(dict(columns))
    pq.write_table(table, path, **options)
    return path


def put_all(folder: Path, files: Sequence[Columns]) -> Path:
    """Write ``0.parquet``, ``1.parquet`` and so on; the folder."""
    for i, columns in enumerate(files):
        put(folder / f"{i}.parquet", columns)
    return folder


def build(folder: Path, indexes: Any = None) -> sx.Table:
    """Build indexes in this process; the table."""
    return sx.build_indexes(folder, indexes, workers=1).table


def kept(table: sx.Table | Path, predicate: Any, **options: Any) -> list[str]:
    """The files that a new plan keeps."""
    return sx.plan_files(predicate, table=table, **options).paths


def packs(folder: Path) -> list[Path]:
    """The packs of a table."""
    return sorted((folder / PACKS).iterdir())


def newest_commit(folder: Path) -> Path:
    """The file of the newest commit."""
    return folder / LOG / f"{latest_version(location_of(folder)):020d}.json"


def newest_manifest(folder: Path) -> Path:
    """The manifest of the newest commit."""
    commit = json.loads(newest_commit(folder).read_bytes())["commit"]
    return folder / MANIFESTS / str(commit["manifest"]["name"])


def rewrite_commit(folder: Path, **changes: Any) -> None:
    """Change keys of the newest commit, with a crc32c that fits."""
    path = newest_commit(folder)
    commit = {**json.loads(path.read_bytes())["commit"], **changes}
    compact = json.dumps(commit, sort_keys=True, separators=(",", ":")).encode()
    path.write_text(json.dumps({"commit": commit, "crc32c": crc32c(compact)}))


def edit_blobs(folder: Path, edit: Callable[[bytearray], None]) -> None:
    """Change every blob in place, and commit that they are meant to be so."""

    def change(base: Snapshot) -> Snapshot:
        infos = []
        for pack in base.manifest.packs:
            path = folder / PACKS / pack.name
            data = bytearray(path.read_bytes())
            blobs = []
            for blob in pack.blobs:
                place = slice(blob.offset, blob.offset + blob.length)
                content = data[place]
                edit(content)
                data[place] = content
                (crc,) = struct.unpack("<I", content[-4:])
                blobs.append(replace(blob, crc=crc))
            path.write_bytes(bytes(data))
            infos.append(replace(pack, blobs=tuple(blobs)))
        manifest = replace(base.manifest, packs=tuple(infos))
        return Snapshot(base.version + 1, manifest, base.properties)

    commit(location_of(folder), change, operation="test")


def flip(path: Path, position: int, mask: int = 0xFF) -> None:
    """Change one byte of a file in place."""
    with path.open("r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ mask]))


def set_mtime(path: Path, seconds: float) -> None:
    """Set the modification mark of a file, and nothing else."""
    os.utime(path, ns=(int(seconds * 1e9), int(seconds * 1e9)))


def forget_open_packs() -> None:
    """Let the next plan open its packs anew."""
    PACK_CACHE.clear()


def holds(atom: Atom, value: Value | None) -> bool:
    """Whether ``atom`` is TRUE for one value of its column's domain."""
    match atom:
        case IsNull():
            return value is None
        case IsNotNull():
            return value is not None
        case OneOf(_, values):
            assert list(values) == sorted(set(values))
            return value in values
        case NoneOf(_, values):
            assert list(values) == sorted(set(values))
            return value is not None and value not in values
        case Range(_, low, high):
            if value is None:
                return False
            above = low is None or value >= low  # type: ignore[operator]
            below = high is None or value < high  # type: ignore[operator]
            return bool(above and below)
        case Matches(_, pattern, negated):
            if value is None:
                return False
            assert isinstance(value, bytes)
            return is_of(pattern, value.decode()) != negated


def is_of(pattern: Pattern, text: str) -> bool:
    """Whether ``text`` is of a pattern, one character or piece at a time."""
    if not pattern:
        return not text
    head, rest = pattern[0], pattern[1:]
    match head:
        case Wildcard.ANY_TEXT:
            return any(is_of(rest, text[i:]) for i in range(len(text) + 1))
        case Wildcard.ANY_CHARACTER:
            return bool(text) and is_of(rest, text[1:])
        case _:
            piece = head.decode()
            return text.startswith(piece) and is_of(rest, text[len(piece) :])
