"""Repair: rebuilding damaged indexes.

A file with a damaged payload leaves the pack.  All that the pack has of the file is
built again, and the same commit removes the file's reference to the pack.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from skipindex.errors import UnknownIndexError
from skipindex.indexes import MinMax, index_type, spec_from_json
from skipindex.indexes.file_map import FILE_MAP
from skipindex.indexes.interface import IndexSpec
from skipindex.log.damage import damage_of
from skipindex.log.manifest import Identity, Manifest
from skipindex.table import TableState
from skipindex.table.column_indexes import files_by_row


@dataclass(frozen=True, slots=True)
class Repair:
    """What is damaged, and what has to be built again.

    Args:
        packs: by number of a pack in the manifest, the files that leave it.
        specs: by column, what those packs hold.
        notes: what was found.
    """

    packs: Mapping[int, np.ndarray] = field(default_factory=dict)
    specs: Mapping[str, tuple[IndexSpec, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def mask(self, n_files: int) -> np.ndarray:
        """Which files of the table leave a pack."""
        mask: np.ndarray = np.zeros(n_files, np.bool_)
        for files in self.packs.values():
            mask[files] = True
        return mask

    def left(self, table: TableState) -> dict[Identity, set[str]]:
        """The names of the packs that each data file leaves."""
        identities = table.snapshot.manifest.identities()
        result: dict[Identity, set[str]] = {}
        for number, files in self.packs.items():
            name = table.snapshot.manifest.packs[number].name
            for row in table.rows[files].tolist():
                result.setdefault(identities[row], set()).add(name)
        return result


def to_repair(table: TableState, repair: bool | None) -> Repair:  # noqa: FBT001
    """What of a table's indexes is to be built again.

    With ``repair`` None, what is cheap to know is checked, with True all index bytes,
    and with False nothing.
    """
    manifest = table.snapshot.manifest
    if repair is False or not manifest.packs:
        return Repair()
    file_of_row = files_by_row(manifest, table.rows)
    leaving: dict[int, set[int]] = {}
    notes: list[str] = []
    for damage in damage_of(manifest, table.location, deep=repair is True):
        files = file_of_row[damage.use.rows[damage.at]]
        files = files[files >= 0]
        if not len(files):
            continue
        if damage.lasting:
            leaving.setdefault(damage.use.number, set()).update(files.tolist())
            notes.append(f"built again: {damage}")
        else:
            notes.append(f"not checked: {damage}")
    specs: dict[str, dict[IndexSpec, None]] = {}
    columns = {c.name: c for c in table.leaves if c.domain is not None}
    for number in leaving:
        for blob in manifest.packs[number].blobs:
            column = columns.get(blob.meta.column)
            if blob.meta.kind == FILE_MAP or column is None:
                continue
            if column.domain is None or column.domain.tag != blob.meta.domain:
                continue
            try:
                spec = spec_from_json(blob.meta.spec)
                index_type(blob.meta.kind)
            except UnknownIndexError as error:
                notes.append(f"pack {manifest.packs[number].name} not rebuilt: {error}")
                continue
            if not isinstance(spec, MinMax):
                specs.setdefault(column.name, {})[spec] = None
    return Repair(
        {number: np.array(sorted(files)) for number, files in leaving.items()},
        {name: tuple(result) for name, result in specs.items()},
        tuple(notes),
    )


def without_packs(
    manifest: Manifest, left: Callable[[Identity], Collection[str]]
) -> Manifest:
    """The manifest once each data file has left the packs that ``left`` names."""
    refs, names = manifest.refs(), [pack.name for pack in manifest.packs]
    leaves = [left(identity) for identity in manifest.identities()]
    pairs = zip(refs.rows.tolist(), refs.packs.tolist(), strict=True)
    stay = np.array([names[p] not in leaves[row] for row, p in pairs], np.bool_)
    return manifest.with_refs(manifest.packs, refs.where(stay))
