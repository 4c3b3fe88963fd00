"""The state of one plan: what is known of the files, and the loop over stages.

Each stage refines what is known of the leaves and evaluates the whole tree again; a
file is skipped as soon as it provably holds no row for which the tree is TRUE.
``planning_stages`` has the stages.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Protocol, cast

import numpy as np

from skipindex.conditions.bound_predicate import (
    BoundPredicate,
    ComparedColumns,
    Computed,
    Judged,
    Leaf,
    comparisons,
    evaluate,
    leaves,
    text_of,
)
from skipindex.expressions.arrays import Mask
from skipindex.expressions.bounds import Bounds
from skipindex.planner.stages.computed import ValueBudget
from skipindex.planner.stages.cost import ENGINES, Reader, reading_seconds
from skipindex.planner.stages.index_reader import IndexReader
from skipindex.planner.stages.pack_cache import DEFAULT_SESSION, CacheSession
from skipindex.planner.stages.records import LeafRecord, Stage, StageRun
from skipindex.planner.stages.rows import RowVerdict
from skipindex.storage.deadline import check, checked
from skipindex.storage.parts import reads_so_far
from skipindex.table import ColumnInfo, TableState


class PlanningStage(Protocol):
    """One way to learn more of the leaves; it holds no state of its own."""

    @property
    def name(self) -> str:
        """The name that plans show."""

    def why_not(self, evaluation: Evaluation) -> str:
        """Why the stage is not run, or empty if it is."""

    def run(self, evaluation: Evaluation) -> None:
        """Learn more of the leaves, and note which files it leaves."""


class Evaluation:
    """What is known of the files of one table for one predicate.

    Nothing is read before ``run``.

    Args:
        table: the table.
        tree: the predicate.
        kinds: names of the index kinds that may be used; None is all.
        forced: names of kinds that are always asked; None if there are none.
        session: holds what is read, for later plans.
        read_by: what is expected to read the files.

    Attributes:
        reader: where indexes came from, and why some were not used.
        leaves: what is known of each leaf.
        records: what is known of leaves, and of comparisons of two columns.
        possible: the files that may hold a matching row.
        certain: the files whose every row matches.
        rows: what bitmaps say of files, by their number.
        deferred: files that hold a matching row, certainly or probably, and whose rows
            were not counted yet (``planning_stages.count_deferred_rows``).
        many: files that were left there because they probably hold many.
        remarks: what was left undone, in words.
        problems: declarations of the table that cannot be used, in words.
        runs: the stages that were run, in order.
    """

    def __init__(
        self,
        table: TableState,
        tree: BoundPredicate,
        *,
        kinds: Collection[str] | None,
        forced: Collection[str] | None = None,
        session: CacheSession = DEFAULT_SESSION,
        read_by: Reader = ENGINES,
    ) -> None:
        n = len(table)
        self.table = table
        self.tree = tree
        self.kinds = kinds
        self.forced = forced
        self.session = session
        self.read_by = read_by
        self.reader = IndexReader(table, kinds, session.packs)
        self.no_file, self.every_file = np.zeros(n, bool), np.ones(n, bool)
        unknown = Bounds(self.no_file, self.every_file)
        self.leaves: dict[Leaf | Computed, LeafRecord] = {
            leaf: LeafRecord(
                table.stored(leaf.column),
                unknown,
                np.zeros(n, bool),
            )
            for leaf in checked(leaves(tree))
        }
        self.records = cast("dict[Judged, LeafRecord]", dict(self.leaves))
        for node in comparisons(tree):
            column = table.stored(node.left)
            self.records[node] = LeafRecord(column, unknown, np.zeros(n, bool))
        self.possible, self.certain = self.every_file, self.no_file
        self.is_open = n > 0
        self.rows: dict[int, RowVerdict] = {}
        self.deferred = np.empty(0, np.int64)
        self.many = self.no_file
        self.remarks: list[str] = []
        self.problems: list[str] = []
        self.runs: list[StageRun] = []

    def run(self, stages: Sequence[PlanningStage]) -> Evaluation:
        """Run ``stages`` in their order, and record what each of them leaves."""
        for stage in checked(stages):
            before, began = reads_so_far(), time.perf_counter()
            note = stage.why_not(self)
            if not note:
                stage.run(self)
            seconds = time.perf_counter() - began
            read = reads_so_far().since(before)
            self.runs.append(StageRun(stage.name, self.possible, seconds, read, note))
        return self

    @property
    def compared(self) -> list[ComparedColumns]:
        """The comparisons of two columns."""
        return [node for node in self.records if isinstance(node, ComparedColumns)]

    def refine(self, node: Judged, bounds: Bounds[Mask], kind: str) -> None:
        """Believe what ``kind`` says of a leaf, besides what is known of it."""
        record = self.records[node]
        first = record.bounds.upper is self.every_file
        record.refine(bounds, kind, first=first)

    def reevaluate(self, without_rows: Mask | None = None) -> None:
        """Evaluate the tree over all files, from what is known of its leaves.

        ``without_rows`` are files that hold no row at all, if that is known.
        """

        def bounds(node: Judged) -> Bounds[Mask]:
            check()
            return self.records[node].bounds

        result = evaluate(
            self.tree,
            bounds,
            nothing=self.no_file,
            everything=self.every_file,
            is_empty=lambda mask: not mask.any(),
        )
        upper = result.upper if without_rows is None else result.upper & ~without_rows
        # The first answers are taken as they are: a new mask costs a page fault for
        # every 4,096 files.
        if self.certain is self.no_file:
            self.certain = result.lower
        else:
            self.certain = self.certain | result.lower
        if self.possible is self.every_file:
            self.possible = upper
        else:
            self.possible = self.possible & upper
        self.is_open = bool(np.any(self.possible > self.certain))

    def undecided(self) -> Mask:
        """Files to ask an index of, which are all that have one."""
        return self.possible & ~self.certain & self.table.n_rows.known

    @cached_property
    def columns(self) -> dict[str, ColumnInfo]:
        """The columns of all leaves and comparisons, by their stored names."""
        compared = (name for node in self.compared for name in (node.left, node.right))
        every = [record.column for record in self.leaves.values()]
        every += map(self.table.stored, compared)
        return {column.name: column for column in every}

    @cached_property
    def reading(self) -> np.ndarray:
        """About how many seconds it takes to read each file."""
        return reading_seconds(self.table)

    @cached_property
    def value_budget(self) -> ValueBudget | None:
        """What tests of values are paid from; None if the caller names kinds."""
        if self.forced is not None:
            return None
        return ValueBudget.of(float(self.reading.sum()))

    @property
    def untested(self) -> list[str]:
        """What was not asked, as testing values would take too long, in words."""
        refused = {} if self.value_budget is None else self.value_budget.refused
        return [
            f"the values of {n} files were not tested for {leaf.expression}: reading "
            "the files takes no longer (kinds=… forces it)"
            for leaf, n in refused.items()
        ]

    @cached_property
    def text(self) -> str:
        """The predicate in SQL words."""
        return text_of(self.tree)

    @property
    def stages(self) -> Sequence[Stage]:
        """What each stage achieved so far."""
        return [
            Stage(
                run.name,
                int(np.count_nonzero(run.possible)),
                int(self.table.sizes[run.possible].sum()),
                run.seconds,
                run.read,
                run.note,
            )
            for run in self.runs
        ]

    @cached_property
    def stage_of(self) -> np.ndarray:
        """After ``run``: the stage that skipped each file, or an empty string."""
        stages = np.full(len(self.table), "", object)
        before = self.every_file
        for run in self.runs:
            stages[before & ~run.possible] = run.name
            before = run.possible
        return stages
