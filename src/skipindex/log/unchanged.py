"""The rows of a manifest that existing segments already store.

A commit writes the other rows alone.  So a row that differs from the stored one in
anything, be it one statistic or one blob of one of its packs, counts as changed.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.expressions.arrays import Ints, Mask
from skipindex.log.manifest import Manifest, as_one_array, positions, taken
from skipindex.storage.file_system.file_info import Marks

_REFS: Final = frozenset({"packs", "slots"})
"""Columns of numbers that count into the packs of one manifest."""


def unchanged_rows(base: Manifest, new: Manifest) -> np.ndarray:
    """For every file of ``new`` the row of ``base`` that says the same of it, or -1.

    No row of ``base`` is named twice.
    """
    if new is base:
        return np.arange(len(new))
    if not new.files.schema.equals(base.files.schema):
        return np.full(len(new), -1, np.int64)
    before = rows_by_path(base, new)
    mine = np.flatnonzero(before >= 0)
    theirs = before[mine]
    same = _same_refs(base, new, mine, theirs)
    names = [name for name in new.files.column_names if name not in _REFS]
    ours, others = (
        taken(manifest.files.select(names), rows)
        for manifest, rows in ((new, mine), (base, theirs))
    )
    for name in names:
        same &= _same_values(as_one_array(ours[name]), as_one_array(others[name]))
    for name in {**base.stats, **new.stats}:
        same &= _same_stats(base, new, name, mine, theirs)
    before[mine[~same]] = -1
    return before


def rows_by_path(base: Manifest, new: Manifest) -> np.ndarray:
    """For every file of ``new`` the row of ``base`` with its path, or -1."""
    n, paths = len(base), new.files["path"]
    rows: np.ndarray = np.full(len(new), -1, np.int64)
    if paths.slice(0, n).equals(base.files["path"]):
        rows[:n] = np.arange(n)  # files were added, and that is all
        return rows
    result = positions(paths, base.files["path"])
    known = np.flatnonzero(result >= 0)
    _, first = np.unique(result[known], return_index=True)
    rows[known[first]] = result[known[first]]
    return rows


def match(
    manifest: Manifest,
    names: pa.BinaryArray,
    marks: Marks,
) -> tuple[Ints, Mask]:
    """For every file its row in the manifest or -1, and whether its path is known.

    ``names`` are the paths of the files as they are listed, as bytes, and ``marks``
    must be those committed.
    """
    known = as_one_array(manifest.files["path"]).cast(names.type)
    if names.equals(known):
        rows = np.arange(len(names))
    else:
        places = pc.index_in(names, value_set=known).fill_null(-1)
        rows = places.to_numpy().astype(np.int64)
    there = rows >= 0
    same = there.copy()
    then = Marks.of_table(manifest.files).at(rows[there])
    same[there] = marks.at(np.flatnonzero(there)).are_still(then)
    return np.where(same, rows, -1), there


def _same_refs(
    base: Manifest, new: Manifest, mine: np.ndarray, theirs: np.ndarray
) -> np.ndarray:
    """Whether the same slots of the same packs, blob for blob, serve two rows."""
    known: dict[int | None, list[int]] = {}
    for number, pack in enumerate(base.packs):
        known.setdefault(pack.order, []).append(number)
    number_of = np.array(
        [
            next((n for n in known.get(pack.order, ()) if base.packs[n] == pack), -1)
            for pack in new.packs
        ],
        np.int64,
    )
    ours, others = new.refs(), base.refs()
    n_ours, n_others = ours.counts(len(new)), others.counts(len(base))
    first, other_first = np.cumsum(n_ours) - n_ours, np.cumsum(n_others) - n_others
    same = np.asarray(n_ours[mine] == n_others[theirs])
    pairs = np.flatnonzero(same)
    lengths = n_ours[mine[pairs]]
    pair_of = np.repeat(pairs, lengths)
    step = np.arange(len(pair_of)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    at = first[mine[pair_of]] + step
    other_at = other_first[theirs[pair_of]] + step
    differs = number_of[ours.packs[at]] != others.packs[other_at]
    differs |= ours.slots[at] != others.slots[other_at]
    same[pair_of[differs]] = False
    return same


def _same_stats(
    base: Manifest, new: Manifest, name: str, mine: np.ndarray, theirs: np.ndarray
) -> np.ndarray:
    """Whether the same is known of a column in two rows; nothing is the same, too."""
    ours, others = new.stats.get(name), base.stats.get(name)
    if ours is not None and others is not None and ours.is_like(others):
        return _same_values(taken(ours.values, mine), taken(others.values, theirs))
    same: np.ndarray = np.ones(len(mine), np.bool_)
    for column, rows in ((ours, mine), (others, theirs)):
        if column is not None:
            same &= ~np.asarray(taken(column.values, rows).is_valid())
    return same


def _same_values(one: pa.Array, other: pa.Array) -> np.ndarray:
    """Where two arrays of one type have equal values, or both have none."""
    if one.equals(other):
        return np.ones(len(one), np.bool_)
    if pa.types.is_struct(one.type):
        same: np.ndarray = np.ones(len(one), np.bool_)
        for i in range(one.type.num_fields):
            same &= _same_values(one.field(i), other.field(i))
    else:
        same = np.asarray(pc.equal(one, other).fill_null(True))
    valid, other_valid = np.asarray(one.is_valid()), np.asarray(other.is_valid())
    return np.asarray((valid == other_valid) & (same | ~valid))
