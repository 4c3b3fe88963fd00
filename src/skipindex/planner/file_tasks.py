"""Files to read, each with its verdict, the residual condition and the rows.

A residual is TRUE for the same rows of its file as the whole predicate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import numpy as np

from skipindex.conditions.bound_predicate import (
    BoundPredicate,
    Computed,
    Leaf,
    TruthValue,
    text_of,
    with_leaves,
)
from skipindex.conditions.simplify import simplify
from skipindex.expressions.arrays import Ints
from skipindex.indexes.encoding.column import MAX_ROWS
from skipindex.planner.stages.evaluation import Evaluation
from skipindex.planner.stages.row_counts import RowCounts
from skipindex.planner.stages.rows import RowEvaluator
from skipindex.storage.deadline import checked

_MOST_ROWS: Final = 10_000_000
"""Rows whose positions are found only to tell row groups."""
_DENSE: Final = 16
"""Rows for each row group of a file of which hardly one can be without a match."""


class Verdict(Enum):
    """Whether every row of a file to read matches."""

    ALL = "all rows match"
    READ = "some rows may match"


@dataclass(frozen=True, slots=True)
class FileTask:
    """A file to read.

    Args:
        path: relative to the table.
        size: in bytes.
        n_rows: its number of rows; None if no index has the file.
        verdict: whether every row is known to match.
        residual: the SQL that the reader must still check, ``TRUE`` if none.
        matching: the least and greatest number of matching rows; None if unknown.
    """

    path: str
    size: int
    n_rows: int | None
    verdict: Verdict
    residual: str
    matching: tuple[int, int] | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return {**plain, "verdict": self.verdict.value}


@dataclass(frozen=True, slots=True, eq=False)
class RowSelection:
    """The rows of a file that can match.

    Args:
        rows: their positions, from 0 on, ascending; None is all rows.
        exact: whether all of them match; if not, the reader must check the residual.
    """

    rows: Ints | None
    exact: bool


def tasks_of(
    evaluation: Evaluation, counts: RowCounts, files: np.ndarray
) -> list[FileTask]:
    """The tasks of reading ``files``, by their positions in the table."""
    texts: dict[BoundPredicate, str] = {}
    return [_task_of(evaluation, counts, file, texts) for file in files.tolist()]


def _task_of(
    evaluation: Evaluation,
    counts: RowCounts,
    file: int,
    texts: dict[BoundPredicate, str],
) -> FileTask:
    """The task of reading ``file``; files of one residual share its text."""
    table, certain = evaluation.table, bool(evaluation.certain[file])
    residual = "TRUE"
    if not certain:
        tree = _residual(evaluation, file)
        if tree not in texts:
            texts[tree] = text_of(tree)
        residual = texts[tree]
    n_rows = table.n_rows.of_file(file)
    matching = int(counts.lower[file]), int(counts.upper[file])
    return FileTask(
        path=table.paths[file],
        size=int(table.sizes[file]),
        n_rows=n_rows,
        verdict=Verdict.ALL if certain else Verdict.READ,
        residual=residual,
        matching=None if n_rows is None else matching,
    )


def _residual(evaluation: Evaluation, file: int) -> BoundPredicate:
    """The tree without what is certain of the file's every row."""

    def of_leaf(leaf: Leaf | Computed) -> BoundPredicate:
        bounds = evaluation.leaves[leaf].bounds
        if bounds.lower[file] or not bounds.upper[file]:
            return TruthValue(bool(bounds.lower[file]))
        return leaf

    return simplify(with_leaves(evaluation.tree, of_leaf))


def residual_of(evaluation: Evaluation, files: Sequence[int]) -> BoundPredicate:
    """The residual of all of some files; the whole predicate if they have several."""
    if not files:
        return evaluation.tree
    for record in evaluation.leaves.values():
        for known in (record.bounds.lower[files], record.bounds.upper[files]):
            if (known != known[0]).any():
                return evaluation.tree
    return _residual(evaluation, files[0])


def selections(evaluation: Evaluation, files: Ints) -> Iterator[RowSelection]:
    """The selection of each of ``files``, by their positions in the table.

    A file's indexes are probed when its selection is requested.
    """
    table, reader, certain = evaluation.table, evaluation.reader, evaluation.certain
    asked = evaluation.no_file.copy()
    asked[files] = True
    asked &= ~certain & table.n_rows.known & (table.n_rows.or_else(0) <= MAX_ROWS)
    evaluator = RowEvaluator(
        evaluation.tree,
        evaluation.records,
        reader,
        locations={
            name: reader.locations(column, asked, positional=True)
            for name, column in evaluation.columns.items()
        },
        table=table,
    )
    deleted = np.zeros(len(table)) if table.deleted is None else table.deleted[1]
    for file in checked(files.tolist()):
        if not asked[file]:
            yield RowSelection(None, bool(certain[file] and not deleted[file]))
            continue
        lower, upper = evaluator.rows(file)
        is_exact = not deleted[file] and (lower is upper or lower == upper)
        is_whole = len(upper) == table.n_rows.of_file(file)
        rows = None if is_whole else np.asarray(upper.to_array(), np.int64)
        yield RowSelection(rows, bool(is_exact))


def row_groups(evaluation: Evaluation, files: Ints) -> tuple[int, int] | None:
    """How many row groups of ``files`` can hold a match, and how many there are.

    None if it is not known without reading the files, or for too many rows.
    """
    groups = evaluation.table.row_groups(files)
    known = [one for one in groups if one is not None]
    if len(known) < len(groups):
        return None
    chosen = _chosen(evaluation, files, known)
    if len(chosen) < len(known):
        return None
    return sum(map(len, chosen)), sum(map(len, known))


def byte_ranges(evaluation: Evaluation) -> dict[int, Ints]:
    """The bytes of the row groups that can hold a match, where these are not all.

    By file, the number of its row groups, and a begin and an end of each that can;
    files that are not there are read whole, as those in which many rows match.
    """
    asked = np.zeros(len(evaluation.table), np.bool_)
    asked[[*evaluation.rows]] = True
    asked[evaluation.deferred] = True
    files = np.flatnonzero(asked & evaluation.possible & ~evaluation.many)
    groups = evaluation.table.row_groups(files)
    known = [
        (file, one)
        for file, one in zip(files.tolist(), groups, strict=True)
        if one is not None and len(one) > 1 and not _is_dense(evaluation, file, one)
    ]
    places = np.array([file for file, _ in known], np.int64)
    result = {}
    chosen = _chosen(evaluation, places, [one for _, one in known])
    for (file, one), numbers in zip(known, chosen, strict=False):
        if len(numbers) < len(one):
            begins, sizes = one[numbers, 1:3].T
            spans = np.column_stack([begins, begins + sizes])
            result[file] = np.insert(spans, 0, len(one))  # and makes it flat
    return result


def _is_dense(evaluation: Evaluation, file: int, groups: Ints) -> bool:
    """Whether hardly a row group of a file can be without a match."""
    verdict = evaluation.rows.get(file)
    return verdict is not None and verdict.upper > _DENSE * len(groups)


def _chosen(evaluation: Evaluation, files: Ints, groups: Sequence[Ints]) -> list[Ints]:
    """The numbers of row groups that can hold a match, up to very many rows."""
    result: list[Ints] = []
    n_rows = 0
    has_several = np.array([len(one) > 1 for one in groups], np.bool_)
    asked = has_several & ~evaluation.certain[files]
    selected = selections(evaluation, files[asked])
    for is_asked, one in zip(asked.tolist(), groups, strict=True):
        numbers = np.arange(len(one))
        if is_asked:
            rows = next(selected).rows
            n_rows += int(one[:, 0].sum()) if rows is None else len(rows)
            if n_rows > _MOST_ROWS:
                break
            if rows is not None:
                ends = one[:, 0].cumsum()
                numbers = np.unique(ends.searchsorted(rows, side="right"))
        result.append(numbers)
    return result
