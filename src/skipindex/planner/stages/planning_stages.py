"""The stages of planning: all files together, then the rows of what is left.

====================  =========================================================
stage                 what it asks
====================  =========================================================
``Partitions``        the paths
``Statistics``        min and max of every file, from the manifest
``FileMaps``          which files of a pack hold a value, all its files together
``Filters``           kinds that know values but no rows, on the files left
``Rows``              bitmaps of row positions, combined over all columns
====================  =========================================================
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial, reduce
from itertools import chain
from typing import Final

import numpy as np

from skipindex.conditions.bound_predicate import (
    ComparedColumns,
    Computed,
    Judged,
    Leaf,
    fold,
    leaves,
)
from skipindex.expressions.arrays import Mask
from skipindex.expressions.atoms import Atom, OneOf, Range
from skipindex.expressions.bounds import Bounds
from skipindex.indexes.encoding.column import MAX_ROWS
from skipindex.indexes.file_map import FILE_MAP
from skipindex.indexes.interface import UNUSABLE, Index
from skipindex.planner.stages.compared_columns import compared
from skipindex.planner.stages.computed import probe_index, probe_stats
from skipindex.planner.stages.cost import Price, in_order, not_worth_it
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
from skipindex.planner.stages.row_marks import RowMarks
from skipindex.planner.stages.rows import RowEvaluator, has_many
from skipindex.storage.deadline import checked
from skipindex.storage.parts import reads_so_far
from skipindex.table import ColumnInfo

_DECIDED: Final = "no undecided file remains"
_FEW_VALUES: Final = 16
"""Values of a list up to which a piece of a large index has their rows."""


class Partitions:
    """The values of partition columns, and what derived ones say of their source."""

    name = PARTITIONS

    def why_not(self, evaluation: Evaluation) -> str:  # noqa: ARG002 (always run)
        """It is always run."""
        return ""

    def run(self, evaluation: Evaluation) -> None:
        """Ask the paths."""
        derived = derived_partitions(evaluation.table)
        evaluation.problems += derived.problems
        evaluation.remarks += derived.unasked(evaluation.tree)
        is_asked = not evaluation.leaves
        for leaf, record in checked(evaluation.leaves.items()):
            if record.column.is_partition:
                stats = evaluation.table.stats(record.column)
                bounds = probe_stats(stats, leaf, evaluation.value_budget)
                evaluation.refine(leaf, bounds, "partition")
                is_asked = True
            if (mask := derived.probe(leaf)) is not None:
                evaluation.refine(leaf, Bounds(evaluation.no_file, mask), DERIVED)
                is_asked = True
        if is_asked:
            evaluation.reevaluate()


class Statistics:
    """Min and max of every file, and the files without rows."""

    name = MINMAX

    def why_not(self, evaluation: Evaluation) -> str:
        """It is run unless the caller leaves it out."""
        is_usable = evaluation.kinds is None or "minmax" in evaluation.kinds
        return "" if is_usable else "not among the kinds to use"

    def run(self, evaluation: Evaluation) -> None:
        """Ask the manifest."""
        for leaf, record in checked(evaluation.leaves.items()):
            if not record.column.is_partition:
                stats = evaluation.table.stats(record.column)
                bounds = probe_stats(stats, leaf, evaluation.value_budget)
                evaluation.refine(leaf, bounds, "minmax")
        for node in checked(evaluation.compared):
            left, right = (
                evaluation.table.stats(evaluation.table.stored(name))
                for name in (node.left, node.right)
            )
            bounds = compared(left, node.operator, right)
            evaluation.refine(node, bounds, "minmax")
        evaluation.reevaluate(evaluation.table.without_rows)


class FileMaps:
    """Maps of all files of a pack: "no row at all", or "some row"."""

    name = MAPS

    def why_not(self, evaluation: Evaluation) -> str:
        """It is run if a column has a map."""
        if not evaluation.is_open:
            return _DECIDED
        columns = [record.column for record in evaluation.leaves.values()]
        if not any(map(evaluation.reader.maps, columns)):
            return "no file map on these columns"
        return ""

    def run(self, evaluation: Evaluation) -> None:
        """Ask every map of a pack with undecided files."""
        undecided = evaluation.undecided()
        evaluation.reader.shared_ahead(r.column for r in evaluation.leaves.values())
        for leaf, record in checked(evaluation.leaves.items()):
            if isinstance(leaf, Computed):
                continue
            upper = evaluation.every_file.copy()
            wanted = undecided & record.bounds.upper
            probe = partial(
                evaluation.reader.probe_map,
                atom=leaf.atom,
                column=record.column,
                wanted=wanted,
            )
            for answer in evaluation.reader.each(
                probe, evaluation.reader.maps(record.column)
            ):
                if answer is not None:
                    upper[answer[0]] = False
                    record.holds[answer[1]] = True
            evaluation.refine(leaf, Bounds(evaluation.no_file, upper), FILE_MAP)
        evaluation.reevaluate()


class Filters:
    """Kinds that only ever say "no row at all"."""

    name = VALUES

    def why_not(self, evaluation: Evaluation) -> str:
        """It is run if a column has such an index, and it can pay for itself."""
        return _why_not_asked(evaluation, positional=False)

    def run(self, evaluation: Evaluation) -> None:
        """Ask the packs that hold payloads together, then one file after another."""
        undecided = evaluation.undecided()
        evaluation.reader.shared_ahead(r.column for r in evaluation.leaves.values())
        for leaf, record in checked(evaluation.leaves.items()):
            if not evaluation.reader.has(record.column, positional=False):
                continue
            # No filter rules out a file with a matching row, which maps tell.
            wanted = undecided & record.bounds.upper & ~record.holds
            if isinstance(leaf, Leaf) and wanted.any():
                self._ask_packs(evaluation, leaf, record, wanted)
            if wanted.any():
                self._ask_files(evaluation, leaf, record, wanted)
        evaluation.reevaluate()

    def _ask_packs(
        self, evaluation: Evaluation, leaf: Leaf, record: LeafRecord, wanted: Mask
    ) -> None:
        """Ask packs, and take the files that they rule out from ``wanted``."""
        for kind, files in evaluation.reader.probe_packs(
            leaf.atom, record.column, wanted
        ):
            upper = evaluation.every_file.copy()
            upper[files] = False
            wanted &= upper
            evaluation.refine(leaf, Bounds(evaluation.no_file, upper), kind.name)

    def _ask_files(
        self,
        evaluation: Evaluation,
        leaf: Leaf | Computed,
        record: LeafRecord,
        wanted: Mask,
    ) -> None:
        reader, column = evaluation.reader, record.column
        absent: dict[str, Mask] = {}
        located = reader.locations(column, wanted, positional=False)
        reader.payloads_ahead((column, *item) for item in located.items())
        for file, locations in located.items():
            for location in locations:
                index = reader.open(location, file, column)
                if index is None:
                    continue
                try:
                    answer = probe_index(
                        index,
                        leaf,
                        evaluation.value_budget,
                        float(evaluation.reading[file]),
                    )
                except UNUSABLE as error:
                    reader.refuse(error, location[1])
                    continue
                if answer is not None and not answer.upper:
                    name = location[0].name
                    mask = absent.setdefault(name, evaluation.no_file.copy())
                    mask[file] = True
                    break
        for name, mask in absent.items():
            evaluation.refine(leaf, Bounds(evaluation.no_file, ~mask), name)


class Rows:
    """Bitmaps of rows, of the files that they may rule out.

    Where some row certainly matches, bitmaps only count matches.  Such files are
    left for ``count_deferred_rows``, and so are others where asking takes longer than
    what it is expected to spare (``Price``).
    """

    name = ROWS

    def why_not(self, evaluation: Evaluation) -> str:
        """It is run if a column has such an index, and it can pay for itself."""
        return _why_not_asked(evaluation, positional=True)

    def run(self, evaluation: Evaluation) -> None:
        """Count the matching rows of files that may have none."""
        n_rows = evaluation.table.n_rows
        wanted = evaluation.undecided() & (n_rows.or_else(0) <= MAX_ROWS)
        with_rows = wanted & n_rows.above_zero()
        with_match = _with_a_match(evaluation, with_rows)
        deferred = with_match.copy()
        files = np.flatnonzero(wanted & ~deferred)
        empty, price = evaluation.no_file, _price_of_rows(evaluation, files)
        while len(files):
            turn = price.turn(files)
            files = np.setdiff1d(files, turn, assume_unique=True)
            counted = None if len(files) else deferred
            empty = empty | _look_at_rows(evaluation, turn, counted)
            if not len(files):
                break
            matches = [evaluation.rows[file].lower for file in turn.tolist()]
            groups = [
                1 if one is None else len(one)
                for one in evaluation.table.row_groups(turn)
            ]
            price.add(matches, n_rows.or_else(0)[turn], groups)
            if reason := price.too_high(len(files)):
                evaluation.remarks.append(reason)
                deferred[files] = True
                break
        evaluation.deferred = np.flatnonzero(deferred)
        evaluation.many = deferred & ~with_match
        evaluation.possible = evaluation.possible & ~empty


STAGES: Final[tuple[PlanningStage, ...]] = (
    *(Partitions(), Statistics(), FileMaps(), Filters(), Rows()),
)
"""In the order in which they are run: the cheapest comes first."""


def count_deferred_rows(evaluation: Evaluation) -> None:
    """Look at the rows that ``Rows`` left for later; once.

    No file is skipped by it: nearly all of them hold a matching row.
    """
    if not len(evaluation.deferred):
        return
    before, began = reads_so_far(), time.perf_counter()
    _look_at_rows(evaluation, evaluation.deferred)
    evaluation.deferred = np.empty(
        0, np.int64
    )  # they stay for later if this was stopped
    rows = evaluation.runs[-1]
    rows.seconds += time.perf_counter() - began
    rows.read = rows.read.plus(reads_so_far().since(before))


def _price_of_rows(evaluation: Evaluation, files: np.ndarray) -> Price:
    """What asking for the rows of ``files`` costs, and what it is expected to spare."""
    table, reader = evaluation.table, evaluation.reader
    if evaluation.forced is not None or not len(files):
        return Price(0.0, 0.0, in_store=False)
    return Price.of(
        _asked(evaluation, positional=True),
        table,
        files,
        cold=reader.cold_bytes(evaluation.columns.values(), files),
        is_kept=reader.cache.parts.limit > 0,
        reader=evaluation.read_by,
        in_store=not reader.is_local,
    )


def _why_not_asked(evaluation: Evaluation, *, positional: bool) -> str:
    """Why row-level indexes, or the others, are not probed."""
    if not evaluation.is_open:
        return _DECIDED
    asked = _asked(evaluation, positional=positional)
    if not asked:
        return "no such index on these columns"
    left = evaluation.possible & ~evaluation.certain
    return not_worth_it(
        evaluation.table, left, asked, positional=positional, kinds=evaluation.forced
    )


def _asked(evaluation: Evaluation, *, positional: bool) -> list[Judged]:
    """The conditions with row-level indexes, or with others."""
    asked: list[Judged] = [
        leaf
        for leaf in leaves(evaluation.tree)
        if evaluation.reader.has(evaluation.leaves[leaf].column, positional=positional)
    ]
    asked += [
        node
        for node in evaluation.compared
        if positional and _has_rows(evaluation, node)
    ]
    return asked


def _has_rows(evaluation: Evaluation, node: ComparedColumns) -> bool:
    """Whether rows of both columns are known, or one has the same value in all."""
    both = [evaluation.table.stored(name) for name in (node.left, node.right)]
    return all(
        c.is_partition or evaluation.reader.has(c, positional=True) for c in both
    )


def _look_at_rows(
    evaluation: Evaluation, files: np.ndarray, deferred: Mask | None = None
) -> Mask:
    """Count rows of files; the files without.  A match in a sample defers a file."""
    if not len(files):
        return evaluation.no_file
    wanted = evaluation.no_file.copy()
    wanted[files] = True
    columns, reader = evaluation.columns, evaluation.reader
    reader.open_ahead(columns.values())
    located = {
        name: reader.locations(column, wanted, positional=True)
        for name, column in columns.items()
    }
    is_only = isinstance(evaluation.tree, Leaf)

    def ask(atoms: Sequence[Atom], index: Index) -> None:
        for atom in atoms:
            if not (is_only and has_many(index, atom)):
                index.probe(atom)

    small = _small_questions(evaluation)
    reader.payloads_ahead(
        (
            (columns[name], *item)
            for name, by_file in located.items()
            for item in by_file.items()
        ),
        {name: partial(ask, atoms) for name, atoms in small.items()},
    )

    def column_of(leaf: Leaf | Computed) -> ColumnInfo:
        return evaluation.leaves[leaf].column

    table, costs = evaluation.table, {n: reader.cost(c) for n, c in columns.items()}
    tree = in_order(evaluation.tree, table, column_of, files, costs=costs)
    marks = RowMarks(evaluation.leaves, reader, located, table.n_rows.or_else(0))
    matched, verdicts = marks.probe(tree, files, samples=deferred is not None)
    if deferred is not None:
        deferred[matched] = True
        files = files[~deferred[files]]
    evaluator = RowEvaluator(
        tree,
        evaluation.records,
        reader,
        locations=located,
        table=table,
        value_budget=evaluation.value_budget,
        reading=evaluation.reading,
    )
    for file in checked(files.tolist()):
        if file in verdicts:
            continue
        if deferred is not None and evaluator.has_many_values(file):
            deferred[file] = True
        else:
            verdicts[file] = evaluator.verdict(file)
    empty, certain = evaluation.no_file.copy(), evaluation.certain.copy()
    for file, verdict in verdicts.items():
        evaluation.rows[file] = verdict
        if not verdict.upper:
            empty[file] = True
        elif verdict.lower == evaluation.table.n_rows.of_file(file):
            certain[file] = True
    evaluation.certain = certain
    for node, nowhere in chain(
        evaluator.empty_leaves.items(), marks.empty_leaves.items()
    ):
        by_kind = evaluation.records[node].removed_by
        by_kind.setdefault(ROWS, evaluation.no_file.copy())[nowhere] = True
    return empty


def _small_questions(evaluation: Evaluation) -> dict[str, list[Atom]]:
    """The atoms of columns of which each reads but a piece of an index, by name."""
    result: dict[str, list[Atom]] = {}
    # A function or a comparison of columns asks for many values, one after another.
    others = {
        evaluation.table.stored(name).name
        for node in evaluation.compared
        for name in (node.left, node.right)
    }
    for leaf in leaves(evaluation.tree):
        name, atom = evaluation.leaves[leaf].column.name, None
        if isinstance(leaf, Leaf):
            atom = leaf.atom
        few = isinstance(atom, OneOf) and len(atom.values) <= _FEW_VALUES
        if atom is not None and (few or isinstance(atom, Range)):
            result.setdefault(name, []).append(atom)
        else:
            others.add(name)
    return {name: atoms for name, atoms in result.items() if name not in others}


def _with_a_match(evaluation: Evaluation, files: Mask) -> Mask:
    """The ``files`` with a row certainly TRUE for the tree; errs to fewer."""

    # By node: the files with such a row, and those whose every row is TRUE.
    def of_leaf(leaf: Leaf | Computed) -> tuple[Mask, Mask]:
        record = evaluation.leaves[leaf]
        every = record.bounds.lower
        if isinstance(leaf, Computed):
            return files & every, every
        stats = evaluation.table.stats(record.column)
        return files & (record.holds | every | stats.holds(leaf.atom)), every

    def of_all(parts: Iterator[tuple[Mask, Mask]]) -> tuple[Mask, Mask]:
        # A row of one part, and every row of all the others.
        return reduce(lambda a, b: (a[0] & b[1] | a[1] & b[0], a[1] & b[1]), parts)

    def of_any(parts: Iterator[tuple[Mask, Mask]]) -> tuple[Mask, Mask]:
        return reduce(lambda a, b: (a[0] | b[0], a[1] | b[1]), parts)

    with_match, _ = fold(
        evaluation.tree,
        leaf=of_leaf,
        all_of=of_all,
        any_of=of_any,
        constant=lambda value: (
            (files, evaluation.every_file)
            if value
            else (evaluation.no_file, evaluation.no_file)
        ),
        unknown=lambda _: (evaluation.no_file, evaluation.no_file),
    )
    return with_match
