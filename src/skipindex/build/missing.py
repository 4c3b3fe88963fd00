"""The files that a build must read, by their missing indexes, divided into tasks."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from skipindex.build.memory import left_out
from skipindex.build.pending_pack import ColumnRequest, request_of
from skipindex.build.repair import Repair
from skipindex.build.runners import TASKS_PER_SLOT
from skipindex.build.task import BuildTask
from skipindex.indexes import MinMax, spec_to_json
from skipindex.log.manifest import as_one_array
from skipindex.storage.blobs import spec_key
from skipindex.table import ColumnInfo, TableState
from skipindex.table.column_indexes import take

_TASK_BYTES: Final = 256 << 20
"""Data files of so many bytes are indexed by one task, where every worker has one: each
task writes a pack, and a plan opens them all."""


def missing_of(
    table: TableState,
    requests: Sequence[ColumnRequest],
    repairs: Repair,
    memory: int | None,
) -> dict[tuple[ColumnRequest, ...], list[int]]:
    """Files by what has to be built on them.

    If a column could not be read, all of the file is built again: the payload of that
    column is empty, and a part of the note would be lost.  So it is if a kind was left
    out that ``memory``, the bytes of a worker, now suffices for; not if it is None, as
    it is then by the machine of each worker.  A file whose path no log can name has no
    index.
    """
    per_file: dict[int, list[ColumnRequest]] = {}
    damaged = repairs.mask(len(table))
    known = {request.name for request in requests}
    notes = take(as_one_array(table.snapshot.manifest.files["note"]), table.rows)
    noted = np.asarray(notes.is_valid())
    failed = np.zeros(len(table), np.bool_)
    asked = {(one.name, spec.kind) for one in requests for spec in one.specs}
    asked |= {(one.name, MinMax.kind) for one in requests}
    for i in np.flatnonzero(noted).tolist():
        failed[i] = not asked.isdisjoint(left_out(notes[i].as_py(), memory))
    others = [
        request_of(table, column, ())
        for column in table.leaves
        if column.name in repairs.specs.keys() - known and column.domain
    ]
    for request in (*requests, *others):
        column = table.stored(request.name)
        counted = table.counted(column)
        served = _served(table, column, repairs)
        again = tuple(
            spec
            for spec in repairs.specs.get(request.name, ())
            if spec not in request.specs
        )
        nowhere = np.zeros(len(table), np.bool_)
        missing = [
            (spec, ~served.get(spec_key(spec_to_json(spec)), nowhere) & where)
            for specs, where in ((request.specs, ~nowhere), (again, damaged))
            for spec in specs
        ]
        if request.name in known:
            failed |= ~counted & noted
        needed = ~counted if request.name in known else nowhere.copy()
        for _, mask in missing:
            needed |= mask
        for i in np.flatnonzero(needed).tolist():
            mine = tuple(spec for spec, mask in missing if mask[i])
            per_file.setdefault(i, []).append(replace(request, specs=mine))
    for i in np.flatnonzero(failed).tolist():
        per_file[i] = list(requests)
    for i in table.listing.unnamed.tolist():
        per_file.pop(i, None)
    groups: dict[tuple[ColumnRequest, ...], list[int]] = {}
    for i in sorted(per_file):
        groups.setdefault(tuple(per_file[i]), []).append(i)
    return groups


def _served(
    table: TableState, column: ColumnInfo, repairs: Repair
) -> dict[str, np.ndarray]:
    """Which files have an index on a column, and whole, by its spec."""
    result: dict[str, np.ndarray] = {}
    for use in table.built(column):
        key = spec_key(use.entry.meta.spec)
        mask = result.setdefault(key, np.zeros(len(table), np.bool_))
        mask[np.setdiff1d(use.rows, repairs.packs.get(use.number, ()))] = True
    return result


def deal(
    table: TableState,
    groups: Mapping[tuple[ColumnRequest, ...], list[int]],
    slots: int,
    memory: int | None,
) -> list[BuildTask]:
    """Tasks of nearly equal size: the largest file goes to the lightest task.

    ``slots`` of them run at a time.  ``memory`` is the bytes that a worker may take, as
    for ``BuildTask``.
    """
    tasks = []
    n_files = sum(map(len, groups.values()))
    n_bytes = sum(int(table.sizes[files].sum()) for files in groups.values())
    n_tasks = min(max(slots, n_bytes // _TASK_BYTES), slots * TASKS_PER_SLOT)
    for columns, files in groups.items():
        share = max(1, min(len(files), -(-n_tasks * len(files) // n_files)))
        heap: list[tuple[int, int, list[int]]] = [(0, i, []) for i in range(share)]
        for file in sorted(files, key=lambda i: -int(table.sizes[i])):
            size, i, mine = heap[0]
            mine.append(file)
            heapq.heapreplace(heap, (size + int(table.sizes[file]), i, mine))
        for _, _, mine in sorted(heap, key=lambda entry: entry[1]):
            paths = tuple(table.paths[i] for i in sorted(mine))
            tasks.append(
                BuildTask(table.location, paths, columns, memory, table.source.ids)
            )
    return tasks
