"""Manifests as build tasks return them, and what they say file by file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from skipindex.expressions.domain import Domain
from skipindex.log import Change, Snapshot
from skipindex.log.manifest import Manifest, StatsColumn, summary_type
from skipindex.log.properties import TableProperties
from skipindex.storage.blobs import PackInfo, spec_key
from skipindex.storage.file_system.file_info import FileInfo
from skipindex.storage.pack import BlobEntry, BlobMeta

TYPE = summary_type(Domain("int"))
SPECS = ({"kind": "bloom"}, {"kind": "bitmap"})
Key = tuple[str, str]


@dataclass
class Known:
    """What a manifest should know of one file."""

    identity: tuple[int, int, int]
    stats: dict[str, int] = field(default_factory=dict)
    payloads: dict[Key, tuple[str, int]] = field(default_factory=dict)


def manifest_of(files: Sequence[FileInfo]) -> Manifest:
    """What a commit knows of these files, without statistics and indexes."""
    rows: list[dict[str, Any]] = [
        {
            "path": file.path,
            "size": file.size,
            "mtime": file.mtime,
            "tag": file.tag,
            "footer_crc": 1,
            "n_rows": 1,
            "note": None,
            "packs": [],
            "slots": [],
        }
        for file in files
    ]
    return Manifest.of_files(rows, {}, ())


def piece(
    files: Mapping[str, int],
    columns: Mapping[str, Sequence[int]],
    *,
    low: int = 0,
    domain: str = "int",
) -> Manifest:
    """What a build task returns: one pack, and statistics of ``columns``.

    Args:
        files: the identity of every path.
        columns: positions in ``SPECS`` of what is built on every column.
        low: the statistic of every column.
        domain: of every column.
    """
    entries = [
        BlobEntry(
            BlobMeta(SPECS[i]["kind"], 1, name, domain, dict(SPECS[i])), 8 * n, 64, n
        )
        for n, (name, i) in enumerate(
            (name, i) for name, wanted in columns.items() for i in wanted
        )
    ]
    # Named by its content, as packs are.
    content = f"{sorted(files.items())} {sorted(columns.items())} {domain}"
    name = hashlib.sha256(content.encode()).hexdigest()[:32] + ".puffin"
    packs = (PackInfo(name, 1_000, tuple(entries)),) if entries else ()
    rows: list[dict[str, Any]] = [
        {
            "path": path,
            "size": identity,
            "mtime": 2 * identity,
            "footer_crc": 3 * identity,
            "n_rows": 10,
            "note": None,
            "packs": [0] if packs else [],
            "slots": [slot] if packs else [],
        }
        for slot, (path, identity) in enumerate(files.items())
    ]
    values = pa.array([{"low": low}] * len(rows), TYPE)
    stats = {name: StatsColumn(domain, values) for name in columns}
    return Manifest.of_files(rows, stats, packs)


def facts(manifest: Manifest) -> dict[str, Known]:
    """All that a manifest says, file by file."""
    rows = manifest.files.select(["path", "size", "mtime", "footer_crc"]).to_pylist()
    found = {
        row["path"]: Known((row["size"], row["mtime"], row["footer_crc"]))
        for row in rows
    }
    assert len(found) == len(manifest), "no path twice"
    paths = manifest.paths
    for name, column in manifest.stats.items():
        assert len(column.values) == len(manifest)
        for path, value in zip(paths, column.values.to_pylist(), strict=True):
            if value is not None:
                found[path].stats[name] = value["low"]
    for use in manifest.blobs():  # the newest comes last
        key = use.entry.meta.column, spec_key(use.entry.meta.spec)
        for row, slot in zip(use.rows.tolist(), use.slots.tolist(), strict=True):
            found[paths[row]].payloads[key] = use.pack.name, slot
    return found


def add(model: dict[str, Known], new: Manifest) -> None:
    """What merging ``new`` should do."""
    for path, known in facts(new).items():
        old = model.get(path)
        if old is None or old.identity != known.identity:
            model[path] = known
        else:
            old.stats.update(known.stats)
            old.payloads.update(known.payloads)


PIECES = st.builds(
    piece,
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 3), max_size=4),
    st.dictionaries(
        st.sampled_from(["x", "y"]),
        st.lists(st.sampled_from([0, 1]), unique=True),
        max_size=2,
    ),
    low=st.integers(0, 9),
)


def saying(**values: Any) -> Change:
    """The change of a commit that says these properties, and nothing else anew."""

    def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
        return base.manifest, replace(base.properties, **values)

    return change
