"""The indexes that a table has, one value each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skipindex.errors import UnknownIndexError
from skipindex.indexes import MinMax, spec_from_json
from skipindex.indexes.interface import IndexSpec
from skipindex.storage.blobs import spec_key
from skipindex.table import ColumnInfo, TableState


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """One index of a table.

    Args:
        column: the indexed column, also an associated one; a field of a struct is
            ``a.b``.
        kind: the name of the kind, such as ``"bitmap"``.
        spec: the kind with its parameters; None if this installation does not know
            them.
        files: the number of the table's files, as they are now, that have it.
        n_bytes: its size; 0 for the statistics, which are part of every commit.
    """

    column: str
    kind: str
    spec: IndexSpec | MinMax | None
    files: int
    n_bytes: int


def indexes_of(table: TableState) -> tuple[IndexInfo, ...]:
    """The indexes of a table as it was opened; none is read."""
    return tuple(
        info
        for column in (*table.leaves, *table.associated)
        if column.domain is not None and not column.is_partition
        for info in _on(table, column)
    )


def _on(table: TableState, column: ColumnInfo) -> list[IndexInfo]:
    found = []
    association = column.association
    name = column.name if association is None else association.name
    known = int((table.stats(column).bounded | ~table.stats(column).can_value).sum())
    if known:
        found.append(IndexInfo(name, MinMax().kind, MinMax(), known, 0))
    by_spec: dict[str, list[int]] = {}
    uses = table.blobs(column)
    for i, use in enumerate(uses):
        by_spec.setdefault(spec_key(use.entry.meta.spec), []).append(i)
    for numbers in by_spec.values():
        mine = [uses[i] for i in numbers]
        meta = mine[0].entry.meta
        files = len(np.unique(np.concatenate([use.rows for use in mine])))
        n_bytes = sum(use.entry.length for use in mine)
        try:
            spec = spec_from_json(meta.spec)
        except UnknownIndexError:
            spec = None
        found.append(IndexInfo(name, meta.kind, spec, files, n_bytes))
    return found
