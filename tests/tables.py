"""Small tables on disk, and ways to damage them."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias, cast

import pyarrow as pa
import pyarrow.parquet as pq
from crc32c import crc32c

import skipindex as sx
from skipindex import expressions as ex
from skipindex.expressions.atoms import (
    Atom,
    Matches,
    NoneOf,
    NotNullAtom,
    NullAtom,
    OneOf,
    Pattern,
    Range,
    Value,
    Wildcard,
)
from skipindex.log import Snapshot, latest_version
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.planner.stages.pack_cache import DEFAULT_SESSION
from skipindex.source import commit
from skipindex.storage.file_system.location import location_of
from skipindex.storage.file_system.names import LOG, MANIFESTS, PACKS
from tests import oracle

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


_MADE: Final[dict[Callable[[Path], object], TemporaryDirectory[str]]] = {}


def made(folder: Path, make: Callable[[Path], object]) -> Path:
    """What ``make`` puts into a folder: made once in this process, and then copied.

    Copies have the times of the files too, so that their indexes count.
    """
    assert "<locals>" not in make.__qualname__, "another function for each test"
    if make not in _MADE:
        _MADE[make] = TemporaryDirectory()
        make(Path(_MADE[make].name))
    shutil.copytree(_MADE[make].name, folder, dirs_exist_ok=True)
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
    """The newest segment of the newest commit's manifest."""
    commit = json.loads(newest_commit(folder).read_bytes())["commit"]
    return folder / MANIFESTS / str(commit["segments"][-1]["name"])


def rewrite_commit(folder: Path, **changes: Any) -> None:
    """Change keys of the newest commit, with a crc32c that fits."""
    path = newest_commit(folder)
    commit = {**json.loads(path.read_bytes())["commit"], **changes}
    compact = json.dumps(commit, sort_keys=True, separators=(",", ":")).encode()
    path.write_text(json.dumps({"commit": commit, "crc32c": crc32c(compact)}))


def edit_blobs(folder: Path, edit: Callable[[bytearray], None]) -> None:
    """Change every blob in place, and commit that they are meant to be so."""

    def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
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
        return manifest, base.properties

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
    DEFAULT_SESSION.clear()


def holds(atom: Atom, value: Value | None) -> bool:
    """Whether ``atom`` is TRUE for one value of its column's domain, by the oracle."""
    if isinstance(atom, Matches) and isinstance(value, bytes):
        return oracle.evaluate(_tree(atom), {"v": value.decode()}) is True
    return oracle.evaluate(_tree(atom), {"v": value}) is True


@lru_cache
def _tree(atom: Atom) -> ex.Predicate:
    """An atom as a condition on ``v``, a column of values of the domain.

    NULL makes every atom but ``NullAtom`` UNKNOWN, those over no values too.
    """
    v = ex.Reference(("v",))
    match atom:
        case NullAtom():
            return ex.IsNull(v)
        case NotNullAtom():
            return ex.IsNull(v, negated=True)
        case OneOf(_, values) | NoneOf(_, values):
            assert list(values) == sorted(set(values))
            # The oracle only compares them: bytes stand for text.
            literals = cast("tuple[ex.Literal, ...]", tuple(values))
            listed = ex.In(v, literals, negated=isinstance(atom, NoneOf))
            return ex.And((ex.IsNull(v, negated=True), listed))
        case Range(_, low, high):
            ends = ((ex.Operator.GE, low), (ex.Operator.LT, high))
            inside = [ex.Comparison(v, op, end) for op, end in ends if end is not None]
            return ex.And((ex.IsNull(v, negated=True), *inside))
        case Matches(_, pattern, negated):
            return ex.Like(v, like_text(pattern), negated=negated)
    raise AssertionError(f"no atom: {atom!r}")


def like_text(pattern: Pattern) -> str:
    """A pattern as LIKE writes it, with a backslash as the escape."""
    wildcards = {Wildcard.ANY_TEXT: "%", Wildcard.ANY_CHARACTER: "_"}
    return "".join(
        wildcards[piece]
        if isinstance(piece, Wildcard)
        else re.sub(r"([%_\\])", r"\\\1", piece.decode())
        for piece in pattern
    )


def api_members(cls: type) -> dict[str, Any]:
    """What a public class has of its own, in whatever class of the API that stands."""
    own = [
        base
        for base in reversed(cls.__mro__)
        if base is cls or base.__module__.startswith("skipindex.api.")
    ]
    return {name: member for base in own for name, member in vars(base).items()}


LOGGED: Final = [
    (pa.int64(), [3, 9, None], ["c = 9", "c < 4", "c IS NULL"], ["c > 9"]),
    (pa.int32(), [-3, 9], ["c = -3"], ["c IS NULL", "c < -3"]),
    (pa.int64(), [2**53 + 1], [f"c = {2**53 + 1}"], [f"c = {2**53}"]),
    (pa.date32(), [date(2024, 5, 1)], ["c = DATE '2024-05-01'"],
     ["c > DATE '2024-05-01'"]),
    (pa.string(), ["Oslo", "Rom"], ["c = 'Oslo'"], ["c = 'A'", "c > 'S'"]),
    (pa.float64(), [1.0, float("nan")], ["c > 5", "c < 0"], ["c IS NULL"]),
    (pa.decimal128(20, 2), [Decimal("1.5")], ["c = 1.5", "c > 9"], []),
    (pa.timestamp("us", "UTC"), [datetime(2024, 1, 1, 12, 0, 0, 999_999, tzinfo=UTC)],
     ["c = TIMESTAMP '2024-01-01 12:00:00.999999'"],
     ["c > TIMESTAMP '2024-01-01 12:00:02'"]),
    (pa.int64(), [None, None], ["c IS NULL"], ["c = 1", "c IS NOT NULL"]),
]  # fmt: skip
"""By type and values of a column ``c``, whose file has no index: conditions that keep
the file, and others that Delta's log and Iceberg's manifests rule out."""


def check_logged(table: sx.Table, holds: list[str], lacks: list[str]) -> None:
    """The file is kept for each condition that holds, and skipped for the others."""
    for n_files, conditions in ((1, holds), (0, lacks)):
        for where in conditions:
            assert len(table.plan(where, timezone="UTC").paths) == n_files, where
