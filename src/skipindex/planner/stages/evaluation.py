"""The stages of planning: every file at once, then the rows of what is left.

Each stage refines what is known of the leaves and evaluates the whole tree anew;
a file is skipped as soon as it provably holds no row for which the tree is TRUE.

====================  =========================================================
stage                 what it asks
====================  =========================================================
partition values      the paths
min/max               the manifest's statistics
file maps             which files of a pack hold a value, all files of it at once
bloom …               kinds that know values but no rows, on the files left
rows                  bitmaps of row positions, combined over all columns
====================  =========================================================
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import assert_never

import numpy as np

from skipindex.expressions.bounds import Bounds
from skipindex.indexes.encoding.column import MAX_ROWS
from skipindex.indexes.file_map import FILE_MAP
from skipindex.planner.bound_predicate import (
    AllOf,
    AnyOf,
    Bound,
    Computed,
    Known,
    Leaf,
    Unknown,
    evaluate,
    leaves,
)
from skipindex.planner.stages.computed import probe_index, probe_stats
from skipindex.planner.stages.cost import not_worth_it
from skipindex.planner.stages.derived_partitions import DerivedPartitions
from skipindex.planner.stages.index_reader import UNUSABLE, IndexReader
from skipindex.planner.stages.pool import look_at_rows
from skipindex.planner.stages.records import (
    DERIVED,
    MAPS,
    MINMAX,
    PARTITIONS,
    ROWS,
    VALUES,
    LeafRecord,
    Ran,
    Stage,
)
from skipindex.planner.stages.rows import RowVerdict, in_order
from skipindex.planner.stages.selectivity import share_of
from skipindex.storage.parts import reads_so_far
from skipindex.table import TableState

Mask = np.ndarray


class Evaluation:
    """Runs the stages over one table and keeps what they found.

    Attributes:
        possible: the files that may hold a matching row.
        leaves: what is known of each leaf.
    """

    def __init__(
        self,
        table: TableState,
        tree: Bound,
        *,
        kinds: Collection[str] | None,
        forced: Collection[str] | None = None,
        workers: int | None = None,
    ) -> None:
        n = len(table)
        self._forced = forced
        self._workers = workers
        self.table = table
        self.tree = tree
        self._reader = IndexReader(table, kinds)
        self.derived = DerivedPartitions(table)
        self._nothing, self._everything = np.zeros(n, bool), np.ones(n, bool)
        unknown = Bounds(self._nothing, self._everything)
        self.leaves: dict[Leaf | Computed, LeafRecord] = {
            leaf: LeafRecord(
                table.resolve(leaf.column, case_sensitive=True),
                unknown,
                np.zeros(n, bool),
            )
            for leaf in leaves(tree)
        }
        self._ran: list[Ran] = []
        self._rows: dict[int, RowVerdict] = {}
        self._later = np.empty(0, np.int64)
        self._certain, self.possible = self._nothing, self._everything
        self._without_rows: Mask | None = None
        self._open = n > 0
        use_stats = kinds is None or "minmax" in kinds
        self._run(PARTITIONS, lambda: self._ask_stats(partitions=True))
        self._run(
            MINMAX,
            lambda: self._ask_stats(partitions=False),
            skip="" if use_stats else "not among the kinds to use",
        )
        self._run(MAPS, self._ask_maps, skip=self._why_no_map())
        self._run(VALUES, self._ask_values, skip=self._why_not(positional=False))
        self._run(ROWS, self._ask_rows, skip=self._why_not(positional=True))

    @property
    def certain(self) -> Mask:
        """The files whose every row matches."""
        self._settle()
        return self._certain

    @property
    def rows(self) -> Mapping[int, RowVerdict]:
        """What bitmaps say of files, by their number."""
        self._settle()
        return self._rows

    @property
    def stages(self) -> Sequence[Stage]:
        """What each stage achieved."""
        self._settle()
        return [
            Stage(
                ran.name,
                int(np.count_nonzero(ran.possible)),
                int(self.table.sizes[ran.possible].sum()),
                ran.seconds,
                ran.read,
                ran.note,
            )
            for ran in self._ran
        ]

    @property
    def reader(self) -> IndexReader:
        """Where indexes came from, and why some were not used."""
        self._settle()
        return self._reader

    @cached_property
    def stage_of(self) -> np.ndarray:
        """For every file the stage that skipped it, or an empty string."""
        stages = np.full(len(self.table), "", object)
        before = self._everything
        for ran in self._ran:
            stages[before & ~ran.possible] = ran.name
            before = ran.possible
        return stages

    def _run(self, name: str, ask: Callable[[], bool], *, skip: str = "") -> None:
        """Run one stage and record what is left."""
        before, began = reads_so_far(), time.perf_counter()
        if not skip and ask():
            found = self._evaluate()
            # The first answers are taken as they are: a new mask costs a page fault
            # for every 4,096 files.
            if self._certain is self._nothing:
                self._certain = found.lower
            else:
                self._certain = self._certain | found.lower
            if self.possible is self._everything:
                self.possible = found.upper
            else:
                self.possible = self.possible & found.upper
            self._open = bool(np.any(self.possible > self._certain))
        seconds = time.perf_counter() - began
        read = reads_so_far().since(before)
        self._ran.append(Ran(name, self.possible, seconds, read, skip))

    def _evaluate(self) -> Bounds[Mask]:
        """The tree over all files, from what is known of its leaves."""
        found = evaluate(
            self.tree,
            lambda leaf: self.leaves[leaf].bounds,
            nothing=self._nothing,
            everything=self._everything,
            is_empty=lambda mask: not mask.any(),
        )
        if self._without_rows is None:
            return found
        return Bounds(found.lower, found.upper & ~self._without_rows)

    def _refine(self, leaf: Leaf | Computed, bounds: Bounds[Mask], kind: str) -> None:
        record = self.leaves[leaf]
        first = record.bounds.upper is self._everything
        record.refine(bounds, kind, first=first)

    def _ask_stats(self, *, partitions: bool) -> bool:
        if not partitions:
            self._without_rows = self.table.without_rows
        asked = not partitions or not self.leaves
        for leaf, record in self.leaves.items():
            if record.column.is_partition == partitions:
                stats = self.table.stats(record.column)
                kind = "partition" if partitions else "minmax"
                self._refine(leaf, probe_stats(stats, leaf), kind)
                asked = True
            if partitions and (mask := self.derived.probe(leaf)) is not None:
                self._refine(leaf, Bounds(self._nothing, mask), DERIVED)
                asked = True
        return asked

    def _why_not(self, *, positional: bool) -> str:
        if not self._open:
            return "nothing is left to decide"
        columns = [record.column for record in self.leaves.values()]
        n_asked = sum(self._reader.has(c, positional=positional) for c in columns)
        if not n_asked:
            return "no such index on these columns"
        left = self.possible & ~self._certain
        return not_worth_it(
            self.table, left, n_asked, positional=positional, kinds=self._forced
        )

    def _why_no_map(self) -> str:
        if not self._open:
            return "nothing is left to decide"
        columns = [record.column for record in self.leaves.values()]
        if not any(map(self._reader.maps, columns)):
            return "no file map on these columns"
        return ""

    def _ask_maps(self) -> bool:
        """Maps of all files of a pack: "no row at all", or "some row"."""
        undecided = self._undecided()
        for leaf, record in self.leaves.items():
            if isinstance(leaf, Computed):
                continue
            upper = self._everything.copy()
            wanted = undecided & record.bounds.upper
            for use in self._reader.maps(record.column):
                found = self._reader.ask_map(use, leaf.atom, record.column, wanted)
                if found is not None:
                    upper[found[0]] = False
                    record.holds[found[1]] = True
            self._refine(leaf, Bounds(self._nothing, upper), FILE_MAP)
        return True

    def _undecided(self) -> Mask:
        """Files to ask an index of, which are all that have one."""
        return self.possible & ~self._certain & (self.table.n_rows >= 0)

    def _ask_values(self) -> bool:
        """Kinds that only ever say "no row at all"."""
        undecided = self._undecided()
        for leaf, record in self.leaves.items():
            if not self._reader.has(record.column, positional=False):
                continue
            self._ask_packs(leaf, record, undecided)
            places = self._reader.places(
                record.column, undecided & record.bounds.upper, positional=False
            )
            absent: dict[str, Mask] = {}
            for file, mine in places.items():
                for place in mine:
                    index = self._reader.open(place, file, record.column)
                    if index is None:
                        continue
                    try:
                        found = probe_index(index, leaf)
                    except UNUSABLE as error:
                        self._reader.refuse(error, place[1])
                        continue
                    if found is not None and not found.upper:
                        name = place[0].name
                        mask = absent.setdefault(name, self._nothing.copy())
                        mask[file] = True
                        break
            for name, mask in absent.items():
                self._refine(leaf, Bounds(self._nothing, ~mask), name)
        return True

    def _ask_packs(
        self, leaf: Leaf | Computed, record: LeafRecord, undecided: Mask
    ) -> None:
        """The same kinds, where a pack has their payloads together."""
        if isinstance(leaf, Computed):
            return
        wanted = undecided & record.bounds.upper
        for kind, files in self._reader.ask_packs(leaf.atom, record.column, wanted):
            upper = self._everything.copy()
            upper[files] = False
            wanted &= upper
            self._refine(leaf, Bounds(self._nothing, upper), kind.name)

    def _ask_rows(self) -> bool:
        """Bitmaps, of files that they may rule out; of others when it is asked for.

        Where some row surely matches, bitmaps can only tell how many do.
        """
        wanted = self._undecided() & (self.table.n_rows <= MAX_ROWS)
        later, _ = self._some_row(self.tree, wanted & (self.table.n_rows > 0))
        self._later = np.flatnonzero(later)
        files = np.flatnonzero(wanted & ~later)
        empty = self._look_at_rows(files)
        self.possible = self.possible & ~empty
        return False

    def _settle(self) -> None:
        """Look at the rows that were left for later."""
        files, self._later = self._later, np.empty(0, np.int64)
        if not len(files):
            return
        before, began = reads_so_far(), time.perf_counter()
        self._look_at_rows(files)
        rows = self._ran[-1]
        rows.seconds += time.perf_counter() - began
        rows.read = rows.read.plus(reads_so_far().since(before))

    def _look_at_rows(self, files: np.ndarray) -> Mask:
        """Count the matching rows of some files; those that have none."""
        wanted = self._nothing.copy()
        wanted[files] = True
        columns = {r.column.name: r.column for r in self.leaves.values()}
        share = share_of(self.table, lambda leaf: self.leaves[leaf].column, files)
        found = look_at_rows(
            files,
            in_order(self.tree, share),
            self.leaves,
            self._reader,
            places={
                name: self._reader.places(column, wanted, positional=True)
                for name, column in columns.items()
            },
            table=self.table,
            workers=self._workers,
        )
        empty, certain = self._nothing.copy(), self._certain.copy()
        for file, verdict in zip(files.tolist(), found.verdicts, strict=True):
            self._rows[file] = verdict
            if not verdict.upper:
                empty[file] = True
            elif verdict.lower == self.table.n_rows[file]:
                certain[file] = True
        self._certain = certain
        for leaf, nowhere in found.empty_leaves.items():
            removed = self.leaves[leaf].removed_by.setdefault(
                ROWS, self._nothing.copy()
            )
            removed[nowhere] = True
        return empty

    def _some_row(self, node: Bound, files: Mask) -> tuple[Mask, Mask]:
        """Those of ``files`` with a row surely TRUE for ``node``; errs to fewer.

        And those whose every row is, for the other parts of an AND.
        """
        match node:
            case Leaf(atom):
                record = self.leaves[node]
                stats = self.table.stats(record.column)
                every = record.bounds.lower
                return files & (record.holds | every | stats.holds(atom)), every
            case Computed():
                every = self.leaves[node].bounds.lower
                return files & every, every
            case AnyOf(children):
                found, every = self._nothing, self._nothing
                for child in children:
                    some, all_ = self._some_row(child, files)
                    found, every = found | some, every | all_
                return found, every
            case AllOf(children):
                # A row of one part, and every row of all the others.
                found, every = files, self._everything
                for child in children:
                    some, all_ = self._some_row(child, files)
                    found, every = found & all_ | every & some, every & all_
                return found, every
            case Known(value):
                every = self._everything if value else self._nothing
                return files & every, every
            case Unknown():
                return self._nothing, self._nothing
            case _:
                assert_never(node)
