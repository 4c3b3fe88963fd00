"""Merging the payloads of many small packs into few large ones.

A build after every append leaves a pack each time, and a plan opens all of them.  This
module chooses the packs and commits; ``packs.merged_packs`` writes them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from skipindex.build.packs.merged_packs import Merger, Move
from skipindex.build.tiers import (
    MAX_BYTES,
    MAX_FILES,
    crowded,
    files_of_packs,
    index_keys,
    small,
    worn,
)
from skipindex.log import Snapshot
from skipindex.log.manifest import Manifest
from skipindex.log.moved import without_vanished
from skipindex.log.properties import TableProperties
from skipindex.source import commit
from skipindex.storage.blobs import Refs, spec_key
from skipindex.table import TableState


def merge(
    table: TableState, *, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES
) -> tuple[TableState, list[str]]:
    """The table with its small packs merged, in one commit, and what was not merged.

    A pack is small if it holds less than half of what a merged one may, and worn if
    less than half of it is still in use.  The old packs stay on disk.  Files and
    indexes that others change or drop meanwhile stay as they made them.
    """
    table.snapshot.require_known()
    manifest = without_vanished(table.snapshot.manifest, table.location)
    half_empty = worn(manifest, table.location)
    chosen = small(manifest, max_files, max_bytes) | half_empty
    if len(chosen) < 2 and not half_empty:
        return table, []
    return _merge(table, Merger(table, manifest, max_files, max_bytes), chosen)


def merge_crowded(
    table: TableState, shrunk: Collection[str]
) -> tuple[TableState, list[str]]:
    """The table after packs are merged of which there are too many of one size.

    Every build ends with this.  Packs named in ``shrunk`` are rewritten if less than
    half is in use.  The notes say what could not be merged.
    """
    notes: list[str] = []
    refused: set[str] = set()
    manifest = table.snapshot.manifest
    chosen = worn(manifest, table.location, shrunk)
    if chosen:
        table, notes = _merge(table, Merger(table, manifest), chosen)
    while True:
        manifest = table.snapshot.manifest
        counts = files_of_packs(manifest)
        numbers = [n for n, p in enumerate(manifest.packs) if p.name not in refused]
        packs = [manifest.packs[n] for n in numbers]
        indexes = list(map(index_keys, packs))
        result = crowded(packs, counts[numbers].tolist(), indexes)
        chosen = {numbers[i] for i in result}
        if not chosen:
            return table, notes
        names = {manifest.packs[n].name for n in chosen}
        table, why = _merge(table, Merger(table, manifest), chosen, least=2)
        notes += why
        left = {pack.name for pack in table.snapshot.manifest.packs}
        if not names - left:  # others have changed them, or nothing could be read
            return table, notes
        refused |= names & left


def rewrite_packs(
    table: TableState, names: Collection[str], *, forget_bins: bool
) -> tuple[TableState, list[str]]:
    """The table after these packs are rewritten with what is in use alone."""
    manifest = without_vanished(table.snapshot.manifest, table.location)
    merger = Merger(table, manifest, forget_bins=forget_bins)
    numbers = {n for n, pack in enumerate(manifest.packs) if pack.name in names}
    return _merge(table, merger, numbers)


def _merge(
    table: TableState, merger: Merger, chosen: set[int], *, least: int = 1
) -> tuple[TableState, list[str]]:
    moves = merger.write(chosen, least=least)

    def merged(base: Snapshot) -> tuple[Manifest, TableProperties]:
        manifest = _moved(without_vanished(base.manifest, table.location), moves)
        return manifest, base.properties

    if moves:
        known = table.snapshot
        known = commit(table.location, merged, operation="merge", known=known)
        table = table.refresh(known)
    packs = merger.manifest.packs
    notes = [f"pack {packs[n].name} not merged: {r}" for n, r in merger.refused.items()]
    return table, notes


def _moved(base: Manifest, moves: Sequence[Move]) -> Manifest:
    """``base`` where merged packs replace the small ones."""
    # A file that has changed since, or whose packs have, stays as it is.  An index that
    # was dropped since does not come back.
    packs, refs = list(base.packs), base.refs()
    names = np.array([pack.name for pack in packs], object)
    replaced: np.ndarray = np.zeros(len(refs), np.bool_)
    fresh = []
    for move in moves:
        alive = {
            (blob.meta.column, spec_key(blob.meta.spec))
            for pack in base.packs
            if pack.name in move.old
            for blob in pack.blobs
        }
        blobs = tuple(
            blob
            for blob in move.pack.blobs
            if (blob.meta.column, spec_key(blob.meta.spec)) in alive
        )
        packs.append(replace(move.pack, blobs=blobs))
        rows = base.rows_of([path for path, *_ in move.slots])
        is_old = np.isin(names, list(move.old))[refs.packs] & np.isin(refs.rows, rows)
        old: dict[int, set[tuple[str, int]]] = {}
        for at in np.flatnonzero(is_old).tolist():
            place = names[refs.packs[at]], int(refs.slots[at])
            old.setdefault(int(refs.rows[at]), set()).add(place)
        there = list(old)
        identity_of = dict(zip(there, base.identities(there), strict=True))
        moved = [
            row
            for row, places in old.items()
            if places <= move.refs.get(identity_of[row], set())
        ]
        replaced |= is_old & np.isin(refs.rows, moved)
        slots = [move.slots[identity_of[row]] for row in moved]
        numbers = [len(packs) - 1] * len(moved)
        fresh.append(Refs(*(np.array(c, np.int64) for c in (moved, numbers, slots))))
    return base.with_refs(tuple(packs), Refs.concat([refs.where(~replaced), *fresh]))
