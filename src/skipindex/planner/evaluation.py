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

from skipindex.bounds import Bounds
from skipindex.indexes._column import MAX_ROWS
from skipindex.planner._indexes import UNUSABLE, IndexReader
from skipindex.planner._rows import RowEvaluator, RowVerdict
from skipindex.planner._selectivity import share_of
from skipindex.planner.bound import Bound, Leaf, evaluate, leaves
from skipindex.storage.parts import ReadCount, reads_so_far
from skipindex.table import ColumnInfo, Table

__all__ = ["Evaluation", "LeafRecord", "RowVerdict", "Stage"]

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


class Evaluation:
    """Runs the stages over one table and keeps what they found.

    Attributes:
        possible: the files that may hold a matching row.
        certain: the files whose every row matches.
        leaves: what is known of each leaf.
    """

    def __init__(
        self, table: Table, tree: Bound, *, kinds: Collection[str] | None
    ) -> None:
        n = len(table)
        self.table = table
        self.tree = tree
        self.reader = IndexReader(table, kinds)
        self._nothing, self._everything = np.zeros(n, bool), np.ones(n, bool)
        unknown = Bounds(self._nothing, self._everything)
        self.leaves: dict[Leaf, LeafRecord] = {
            leaf: LeafRecord(
                table.resolve(leaf.atom.column, case_sensitive=True), unknown
            )
            for leaf in leaves(tree)
        }
        self.stages: list[Stage] = []
        self.rows: dict[int, RowVerdict] = {}
        self.certain, self.possible = self._nothing, self._everything
        self._without_rows = self._nothing
        self._left: list[tuple[str, Mask]] = []
        self._kept = n, int(table.sizes.sum())
        use_stats = kinds is None or "minmax" in kinds
        self._run(PARTITIONS, lambda: self._ask_stats(partitions=True))
        self._run(
            MINMAX,
            lambda: self._ask_stats(partitions=False),
            skip="" if use_stats else "not among the kinds to use",
        )
        self._run(VALUES, self._ask_values, skip=self._why_not(positional=False))
        self._run(ROWS, self._ask_rows, skip=self._why_not(positional=True))

    @property
    def stage_of(self) -> np.ndarray:
        """For every file the stage that skipped it, or an empty string."""
        stages = np.full(len(self.table), "", object)
        before = self._everything
        for name, possible in self._left:
            stages[before & ~possible] = name
            before = possible
        return stages

    def _run(self, name: str, ask: Callable[[], bool], *, skip: str = "") -> None:
        """Run one stage and record what is left."""
        before, began = reads_so_far(), time.perf_counter()
        if not skip and ask():
            found = self._evaluate()
            self.certain = self.certain | found.lower
            self._narrow(name, self.possible & found.upper)
        self.stages.append(
            Stage(
                name,
                *self._kept,
                time.perf_counter() - began,
                reads_so_far().since(before),
                skip,
            )
        )

    def _narrow(self, name: str, possible: Mask) -> None:
        files = int(np.count_nonzero(possible))
        if files != self._kept[0]:
            self._kept = files, int(self.table.sizes.sum(where=possible))
        self.possible = possible
        self._left.append((name, possible))

    def _evaluate(self) -> Bounds[Mask]:
        """The tree over all files, from what is known of its leaves."""
        found = evaluate(
            self.tree,
            lambda leaf: self.leaves[leaf].bounds,
            nothing=self._nothing,
            everything=self._everything,
            is_empty=lambda mask: not mask.any(),
        )
        return Bounds(found.lower, found.upper & ~self._without_rows)

    def _refine(self, leaf: Leaf, bounds: Bounds[Mask], kind: str) -> None:
        record = self.leaves[leaf]
        removed = record.bounds.upper & ~bounds.upper
        earlier = record.removed_by.get(kind)
        record.removed_by[kind] = removed if earlier is None else earlier | removed
        record.bounds = record.bounds.refine(bounds)

    def _ask_stats(self, *, partitions: bool) -> bool:
        if not partitions:
            self._without_rows = self.table.n_rows == 0
        asked = not partitions or not self.leaves
        for leaf, record in self.leaves.items():
            if record.column.is_partition == partitions:
                stats = self.table.stats(record.column)
                kind = "partition" if partitions else "minmax"
                self._refine(leaf, stats.probe(leaf.atom), kind)
                asked = True
        return asked

    def _why_not(self, *, positional: bool) -> str:
        if not (self.possible & ~self.certain).any():
            return "nothing is left to decide"
        columns = [record.column for record in self.leaves.values()]
        if not any(self.reader.has(c, positional=positional) for c in columns):
            return "no such index on these columns"
        return ""

    def _undecided(self) -> Mask:
        """Files to ask an index of, which are all that have one."""
        return self.possible & ~self.certain & (self.table.n_rows >= 0)

    def _ask_values(self) -> bool:
        """Kinds that only ever say "no row at all"."""
        undecided = self._undecided()
        for leaf, record in self.leaves.items():
            if not self.reader.has(record.column, positional=False):
                continue
            places = self.reader.places(
                record.column, undecided & record.bounds.upper, positional=False
            )
            absent: dict[str, Mask] = {}
            for file, mine in places.items():
                for place in mine:
                    index = self.reader.open(place, file, record.column)
                    if index is None:
                        continue
                    try:
                        found = index.probe(leaf.atom)
                    except UNUSABLE as error:
                        self.reader.refuse(error)
                        continue
                    if found is not None and not found.upper:
                        name = place[0].name
                        mask = absent.setdefault(name, self._nothing.copy())
                        mask[file] = True
                        break
            for name, mask in absent.items():
                self._refine(leaf, Bounds(self._nothing, ~mask), name)
        return True

    def _ask_rows(self) -> bool:
        wanted = self._undecided() & (self.table.n_rows <= MAX_ROWS)
        files = np.flatnonzero(wanted)
        evaluator = RowEvaluator(
            self.tree,
            self.leaves,
            self.reader,
            n_rows=self.table.n_rows,
            wanted=wanted,
            share=share_of(self.table, lambda leaf: self.leaves[leaf].column, files),
        )
        verdicts = {file: evaluator.verdict(file) for file in files.tolist()}
        for leaf, empty in evaluator.empty_leaves.items():
            removed = self._nothing.copy()
            removed[empty] = True
            self.leaves[leaf].removed_by[ROWS] = removed
        self.rows = verdicts
        lower, upper = self._nothing.copy(), self.possible.copy()
        found = np.array([(v.lower, v.upper) for v in verdicts.values()], np.int64)
        if len(files):
            lower[files] = found[:, 0] == self.table.n_rows[files]
            upper[files] = found[:, 1] > 0
        self.certain = self.certain | lower
        self._narrow(ROWS, upper)
        return False
