"""The stages of planning: every file at once, then the rows of what is left.

====================  =========================================================
stage                 what it asks
====================  =========================================================
``Partitions``        the paths
``Statistics``        min and max of every file, from the manifest
``FileMaps``          which files of a pack hold a value, all files of it at once
``Filters``           kinds that know values but no rows, on the files left
``Rows``              bitmaps of row positions, combined over all columns
====================  =========================================================
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial, reduce
from typing import Final

import numpy as np

from skipindex.expressions.arrays import Mask
from skipindex.expressions.bounds import Bounds
from skipindex.indexes.encoding.column import MAX_ROWS
from skipindex.indexes.file_map import FILE_MAP
from skipindex.indexes.interface import UNUSABLE
from skipindex.planner.bound_predicate import (
    ComparedColumns,
    Computed,
    Leaf,
    fold,
    leaves,
)
from skipindex.planner.stages.compared_columns import compared
from skipindex.planner.stages.computed import probe_index, probe_stats
from skipindex.planner.stages.cost import (
    hardly_empty,
    in_order,
    not_worth_it,
    sample_of,
)
from skipindex.planner.stages.derived_partitions import derived_partitions
from skipindex.planner.stages.evaluation import Evaluation, PlanningStage
from skipindex.planner.stages.records import (
    DERIVED,
    MAPS,
    MINMAX,
    PARTITIONS,
    ROWS,
    VALUES,
    LeafRecord,
)
from skipindex.planner.stages.rows import RowEvaluator
from skipindex.storage.deadline import checked
from skipindex.storage.parts import reads_so_far

_DECIDED: Final = "nothing is left to decide"


class Partitions:
    """The values of partition columns, and what derived ones say of their source."""

    name = PARTITIONS

    def why_not(self, found: Evaluation) -> str:  # noqa: ARG002 (always run)
        """It is always run."""
        return ""

    def run(self, found: Evaluation) -> None:
        """Ask the paths."""
        derived = derived_partitions(found.table)
        found.problems += derived.problems
        found.remarks += derived.unasked(found.tree)
        is_asked = not found.leaves
        for leaf, record in checked(found.leaves.items()):
            if record.column.is_partition:
                stats = found.table.stats(record.column)
                bounds = probe_stats(stats, leaf, found.purse)
                found.refine(leaf, bounds, "partition")
                is_asked = True
            if (mask := derived.probe(leaf)) is not None:
                found.refine(leaf, Bounds(found.no_file, mask), DERIVED)
                is_asked = True
        if is_asked:
            found.narrow()


class Statistics:
    """Min and max of every file, and the files without rows."""

    name = MINMAX

    def why_not(self, found: Evaluation) -> str:
        """It is run unless the caller leaves it out."""
        is_usable = found.kinds is None or "minmax" in found.kinds
        return "" if is_usable else "not among the kinds to use"

    def run(self, found: Evaluation) -> None:
        """Ask the manifest."""
        for leaf, record in checked(found.leaves.items()):
            if not record.column.is_partition:
                stats = found.table.stats(record.column)
                bounds = probe_stats(stats, leaf, found.purse)
                found.refine(leaf, bounds, "minmax")
        for node in checked(list(found.compared)):
            left, right = (
                found.table.stats(found.table.stored(name))
                for name in (node.left, node.right)
            )
            found.compared[node] = compared(left, node.operator, right)
        found.narrow(found.table.without_rows)


class FileMaps:
    """Maps of all files of a pack: "no row at all", or "some row"."""

    name = MAPS

    def why_not(self, found: Evaluation) -> str:
        """It is run if a column has a map."""
        if not found.is_open:
            return _DECIDED
        columns = [record.column for record in found.leaves.values()]
        if not any(map(found.reader.maps, columns)):
            return "no file map on these columns"
        return ""

    def run(self, found: Evaluation) -> None:
        """Ask every map of a pack with undecided files."""
        undecided = found.undecided()
        found.reader.shared_ahead(r.column for r in found.leaves.values())
        for leaf, record in checked(found.leaves.items()):
            if isinstance(leaf, Computed):
                continue
            upper = found.every_file.copy()
            wanted = undecided & record.bounds.upper
            probe = partial(
                found.reader.probe_map,
                atom=leaf.atom,
                column=record.column,
                wanted=wanted,
            )
            for answer in found.reader.each(probe, found.reader.maps(record.column)):
                if answer is not None:
                    upper[answer[0]] = False
                    record.holds[answer[1]] = True
            found.refine(leaf, Bounds(found.no_file, upper), FILE_MAP)
        found.narrow()


class Filters:
    """Kinds that only ever say "no row at all"."""

    name = VALUES

    def why_not(self, found: Evaluation) -> str:
        """It is run if a column has such an index, and it can pay for itself."""
        return _why_not_asked(found, positional=False)

    def run(self, found: Evaluation) -> None:
        """Ask the packs that hold payloads together, then one file after another."""
        undecided = found.undecided()
        found.reader.shared_ahead(r.column for r in found.leaves.values())
        for leaf, record in checked(found.leaves.items()):
            if not found.reader.has(record.column, positional=False):
                continue
            # No filter rules out a file with a matching row, which maps tell.
            wanted = undecided & record.bounds.upper & ~record.holds
            if isinstance(leaf, Leaf) and wanted.any():
                self._ask_packs(found, leaf, record, wanted)
            if wanted.any():
                self._ask_files(found, leaf, record, wanted)
        found.narrow()

    def _ask_packs(
        self, found: Evaluation, leaf: Leaf, record: LeafRecord, wanted: Mask
    ) -> None:
        """Ask packs, and take the files that they rule out from ``wanted``."""
        for kind, files in found.reader.probe_packs(leaf.atom, record.column, wanted):
            upper = found.every_file.copy()
            upper[files] = False
            wanted &= upper
            found.refine(leaf, Bounds(found.no_file, upper), kind.name)

    def _ask_files(
        self, found: Evaluation, leaf: Leaf | Computed, record: LeafRecord, wanted: Mask
    ) -> None:
        reader, column = found.reader, record.column
        absent: dict[str, Mask] = {}
        located = reader.locations(column, wanted, positional=False)
        reader.payloads_ahead(located.values())
        for file, locations in located.items():
            for location in locations:
                index = reader.open(location, file, column)
                if index is None:
                    continue
                try:
                    answer = probe_index(
                        index, leaf, found.purse, float(found.reading[file])
                    )
                except UNUSABLE as error:
                    reader.refuse(error, location[1])
                    continue
                if answer is not None and not answer.upper:
                    name = location[0].name
                    mask = absent.setdefault(name, found.no_file.copy())
                    mask[file] = True
                    break
        for name, mask in absent.items():
            found.refine(leaf, Bounds(found.no_file, ~mask), name)


class Rows:
    """Bitmaps of rows, of the files that they may rule out.

    Where some row surely matches, bitmaps can only tell how many do.  Such files are
    left for ``count_deferred_rows``, and so are all others where each file of a sample
    holds many matches: to ask takes longer than the odd file without a match.
    """

    name = ROWS

    def why_not(self, found: Evaluation) -> str:
        """It is run if a column has such an index, and it can pay for itself."""
        return _why_not_asked(found, positional=True)

    def run(self, found: Evaluation) -> None:
        """Count the matching rows of files that may have none."""
        wanted = found.undecided() & (found.table.n_rows <= MAX_ROWS)
        with_rows = wanted & (found.table.n_rows > 0)
        deferred = _with_a_match(found, with_rows)
        files = np.flatnonzero(wanted & ~deferred)
        # A store is not asked twice, as the second answers are waited for too.
        may_sample = found.forced is None and found.table.location.is_local
        sample = sample_of(files) if may_sample else files[:0]
        empty = _look_at_rows(found, sample)
        others = np.setdiff1d(files, sample, assume_unique=True)
        matches = [found.rows[file].lower for file in sample.tolist()]
        if reason := hardly_empty(len(others), matches):
            found.remarks.append(reason)
            deferred[others] = True
        else:
            empty = empty | _look_at_rows(found, others)
        found.deferred = np.flatnonzero(deferred)
        found.possible = found.possible & ~empty


STAGES: Final[tuple[PlanningStage, ...]] = (
    *(Partitions(), Statistics(), FileMaps(), Filters(), Rows()),
)
"""In the order in which they are run: the cheapest comes first."""


def count_deferred_rows(found: Evaluation) -> None:
    """Look at the rows that ``Rows`` left for later; once.

    No file is skipped by it: nearly all of them hold a matching row.
    """
    if not len(found.deferred):
        return
    before, began = reads_so_far(), time.perf_counter()
    _look_at_rows(found, found.deferred)
    found.deferred = np.empty(0, np.int64)  # they stay for later if this was stopped
    rows = found.runs[-1]
    rows.seconds += time.perf_counter() - began
    rows.read = rows.read.plus(reads_so_far().since(before))


def _why_not_asked(found: Evaluation, *, positional: bool) -> str:
    """Why indexes that know rows, or those that know none, are not asked."""
    if not found.is_open:
        return _DECIDED
    asked: list[Leaf | Computed | ComparedColumns] = [
        leaf
        for leaf in leaves(found.tree)
        if found.reader.has(found.leaves[leaf].column, positional=positional)
    ]
    asked += [node for node in found.compared if positional and _has_rows(found, node)]
    if not asked:
        return "no such index on these columns"
    left = found.possible & ~found.certain
    return not_worth_it(
        found.table, left, asked, positional=positional, kinds=found.forced
    )


def _has_rows(found: Evaluation, node: ComparedColumns) -> bool:
    """Whether rows of both columns are known, or one has the same value in all."""
    both = [found.table.stored(name) for name in (node.left, node.right)]
    return all(c.is_partition or found.reader.has(c, positional=True) for c in both)


def _look_at_rows(found: Evaluation, files: np.ndarray) -> Mask:
    """Count the matching rows of some files; those that have none."""
    if not len(files):
        return found.no_file
    wanted = found.no_file.copy()
    wanted[files] = True
    columns = found.columns
    found.reader.open_ahead(columns.values())
    located = {
        name: found.reader.locations(column, wanted, positional=True)
        for name, column in columns.items()
    }
    found.reader.payloads_ahead(
        locations for by_file in located.values() for locations in by_file.values()
    )
    evaluator = RowEvaluator(
        in_order(
            found.tree,
            found.table,
            lambda leaf: found.leaves[leaf].column,
            files,
            costs={name: found.reader.cost(column) for name, column in columns.items()},
        ),
        found.leaves,
        found.reader,
        compared=found.compared,
        locations=located,
        table=found.table,
        purse=found.purse,
        reading=found.reading,
    )
    verdicts = [evaluator.verdict(file) for file in checked(files.tolist())]
    empty, certain = found.no_file.copy(), found.certain.copy()
    for file, verdict in zip(files.tolist(), verdicts, strict=True):
        found.rows[file] = verdict
        if not verdict.upper:
            empty[file] = True
        elif verdict.lower == found.table.n_rows[file]:
            certain[file] = True
    found.certain = certain
    for node, nowhere in evaluator.empty_leaves.items():
        if isinstance(node, ComparedColumns):
            removed = found.without_rows.setdefault(node, found.no_file.copy())
        else:
            by_kind = found.leaves[node].removed_by
            removed = by_kind.setdefault(ROWS, found.no_file.copy())
        removed[nowhere] = True
    return empty


def _with_a_match(found: Evaluation, files: Mask) -> Mask:
    """The files among ``files`` with a row surely TRUE for the tree; errs to fewer."""

    # By node: the files with such a row, and those whose every row is TRUE.
    def of_leaf(leaf: Leaf | Computed) -> tuple[Mask, Mask]:
        record = found.leaves[leaf]
        every = record.bounds.lower
        if isinstance(leaf, Computed):
            return files & every, every
        stats = found.table.stats(record.column)
        return files & (record.holds | every | stats.holds(leaf.atom)), every

    def of_all(parts: Iterator[tuple[Mask, Mask]]) -> tuple[Mask, Mask]:
        # A row of one part, and every row of all the others.
        return reduce(lambda a, b: (a[0] & b[1] | a[1] & b[0], a[1] & b[1]), parts)

    def of_any(parts: Iterator[tuple[Mask, Mask]]) -> tuple[Mask, Mask]:
        return reduce(lambda a, b: (a[0] | b[0], a[1] | b[1]), parts)

    with_match, _ = fold(
        found.tree,
        leaf=of_leaf,
        all_of=of_all,
        any_of=of_any,
        constant=lambda value: (
            (files, found.every_file) if value else (found.no_file, found.no_file)
        ),
        unknown=lambda _: (found.no_file, found.no_file),
    )
    return with_match
