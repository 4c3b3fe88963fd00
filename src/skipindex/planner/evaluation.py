"""The stages of planning: every file at once, then the rows of what is left.

Each stage refines what is known of the leaves and evaluates the whole tree anew;
a file is skipped as soon as it provably holds no row for which the tree is TRUE.

====================  =========================================================
stage                 what it asks
====================  =========================================================
partition values      the paths
min/max               the manifest's statistics
bloom …               kinds that know values but no rows, on the files left
rows                  bitmaps of row positions, combined over all columns
====================  =========================================================
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from pyroaring import BitMap

from skipindex.bounds import Bounds
from skipindex.indexes._column import MAX_ROWS
from skipindex.planner._computed import probe_index, probe_stats
from skipindex.planner._derived import DerivedPartitions
from skipindex.planner._indexes import UNUSABLE, IndexReader
from skipindex.planner.bound import Bound, Computed, Leaf, evaluate, leaves
from skipindex.storage.parts import ReadCount
from skipindex.table import ColumnInfo, Table

PARTITIONS: Final = "partition values"
MINMAX: Final = "min/max"
VALUES: Final = "bloom"
ROWS: Final = "bitmaps"

Mask = np.ndarray


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage achieved.

    Args:
        name: of the stage.
        files: files that are left after it.
        n_bytes: their size.
        seconds: that it took.
        read: what it read of the indexes.
        note: why it was not run, or empty.
    """

    name: str
    files: int
    n_bytes: int
    seconds: float
    read: ReadCount
    note: str = ""


@dataclass(slots=True)
class LeafRecord:
    """What the stages found out about one leaf."""

    column: ColumnInfo
    bounds: Bounds[Mask]
    removed_by: dict[str, Mask] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RowVerdict:
    """What the bitmaps say of one file: the number of rows, from .. to."""

    lower: int
    upper: int
    kinds: tuple[str, ...]


class Evaluation:
    """Runs the stages over one table and keeps what they found."""

    def __init__(
        self, table: Table, tree: Bound, *, kinds: Collection[str] | None
    ) -> None:
        n = len(table)
        self.table = table
        self.tree = tree
        self.reader = IndexReader(table, kinds)
        self.derived = DerivedPartitions(table)
        self._nothing, self._everything = np.zeros(n, bool), np.ones(n, bool)
        unknown = Bounds(self._nothing, self._everything)
        self.leaves: dict[Leaf | Computed, LeafRecord] = {
            leaf: LeafRecord(
                table.resolve(leaf.column, case_sensitive=True), unknown
            )
            for leaf in leaves(tree)
        }
        self.stages: list[Stage] = []
        self.stage_of = np.full(n, "", object)
        self.rows: dict[int, RowVerdict] = {}
        self.certain, self.possible = self._nothing, self._everything
        self._without_rows = self._nothing
        use_stats = kinds is None or "minmax" in kinds
        self._run(PARTITIONS, lambda: self._ask_stats(partitions=True))
        self._run(
            MINMAX,
            lambda: self._ask_stats(partitions=False),
            skip="" if use_stats else "not among the kinds to use",
        )
        self._run(VALUES, self._ask_values, skip=self._why_not(positional=False))
        self._run(ROWS, self._ask_rows, skip=self._why_not(positional=True))

    def _run(self, name: str, ask: Callable[[], None], *, skip: str = "") -> None:
        """Run one stage and record what is left."""
        before = self.reader.count
        self.reader.count = ReadCount()
        began = time.perf_counter()
        if not skip:
            ask()
            found = self._evaluate()
            gone = self.possible & ~found.upper
            self.stage_of[gone & (self.stage_of == "")] = name
            self.certain = self.certain | found.lower
            self.possible = self.possible & found.upper
        self.stages.append(
            Stage(
                name,
                int(self.possible.sum()),
                int(self.table.sizes[self.possible].sum()),
                time.perf_counter() - began,
                self.reader.count,
                skip,
            )
        )
        self.reader.count = before

    def _evaluate(self) -> Bounds[Mask]:
        """The tree over all files, from what is known of its leaves and rows."""
        found = evaluate(
            self.tree,
            lambda leaf: self.leaves[leaf].bounds,
            nothing=self._nothing,
            everything=self._everything,
            is_empty=lambda mask: not mask.any(),
        )
        lower, upper = found.lower.copy(), found.upper & ~self._without_rows
        for file, verdict in self.rows.items():
            upper[file] &= verdict.upper > 0
            lower[file] |= verdict.lower == self.table.n_rows[file]
        return Bounds(lower, upper)

    def _refine(self, leaf: Leaf | Computed, bounds: Bounds[Mask], kind: str) -> None:
        record = self.leaves[leaf]
        removed = record.bounds.upper & ~bounds.upper
        record.removed_by[kind] = record.removed_by.get(kind, self._nothing) | removed
        record.bounds = record.bounds.refine(bounds)

    def _ask_stats(self, *, partitions: bool) -> None:
        if not partitions:
            self._without_rows = self.table.n_rows == 0
        for leaf, record in self.leaves.items():
            if record.column.is_partition == partitions:
                stats = self.table.stats(record.column)
                kind = "partition" if partitions else "minmax"
                self._refine(leaf, probe_stats(stats, leaf), kind)
            if partitions and (mask := self.derived.probe(leaf)) is not None:
                self._refine(leaf, Bounds(self._nothing, mask), "derived partition")

    def _why_not(self, *, positional: bool) -> str:
        if not (self.possible & ~self.certain).any():
            return "nothing is left to decide"
        columns = [record.column for record in self.leaves.values()]
        if not any(self.reader.has(c, positional=positional) for c in columns):
            return "no such index on these columns"
        return ""

    def _undecided(self) -> list[int]:
        """Files to ask an index of, which are all that have one."""
        known = self.table.n_rows >= 0
        files: list[int] = np.flatnonzero(
            self.possible & ~self.certain & known
        ).tolist()
        return files

    def _ask_values(self) -> None:
        """Kinds that only ever say "no row at all"."""
        files = self._undecided()
        for leaf, record in self.leaves.items():
            if not self.reader.has(record.column, positional=False):
                continue
            absent: dict[str, Mask] = {}
            for file in files:
                if not record.bounds.upper[file]:
                    continue
                for kind, index in self.reader.indexes(
                    record.column, file, positional=False
                ):
                    try:
                        found = probe_index(index, leaf)
                    except UNUSABLE as error:
                        self.reader.refuse(error)
                        continue
                    if found is not None and not found.upper:
                        mask = absent.setdefault(kind.name, self._nothing.copy())
                        mask[file] = True
                        break
            for name, mask in absent.items():
                self._refine(leaf, Bounds(self._nothing, ~mask), name)

    def _ask_rows(self) -> None:
        for file in self._undecided():
            if self.table.n_rows[file] <= MAX_ROWS:
                self.rows[file] = self._rows_of(file)

    def _rows_of(self, file: int) -> RowVerdict:
        nothing = BitMap()
        everything = BitMap(range(int(self.table.n_rows[file])))
        used: list[str] = []

        def answer(leaf: Leaf | Computed) -> Bounds[BitMap]:
            record = self.leaves[leaf]
            if not record.bounds.upper[file]:
                return Bounds(nothing, nothing)
            if record.bounds.lower[file]:
                return Bounds(everything, everything)
            found = Bounds(nothing, everything)
            for kind, index in self.reader.indexes(
                record.column, file, positional=True
            ):
                try:
                    bounds = probe_index(index, leaf)
                except UNUSABLE as error:
                    self.reader.refuse(error)
                    continue
                if bounds is None:
                    continue
                used.append(kind.name)
                found = found.refine(bounds)
                if found.lower == found.upper:
                    break
            if not found.upper:
                removed = record.removed_by.setdefault(ROWS, self._nothing.copy())
                removed[file] = True
            return found

        found = evaluate(
            self.tree,
            answer,
            nothing=nothing,
            everything=everything,
            is_empty=lambda rows: not rows,
        )
        kinds = tuple(dict.fromkeys(used))
        return RowVerdict(len(found.lower), len(found.upper), kinds)
