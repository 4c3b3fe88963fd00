"""The plan: files to read, files not to read and why, and how we know."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from skipindex.errors import PredicateError
from skipindex.indexes import parse_spec
from skipindex.planner._explain import explain, proof
from skipindex.planner.bind import Binder
from skipindex.planner.bound import (
    AllOf,
    AnyOf,
    Bound,
    Computed,
    Known,
    Leaf,
    text_of,
)
from skipindex.planner.evaluation import Evaluation, Stage
from skipindex.planner.simplify import simplify
from skipindex.planner.sql import parse
from skipindex.predicate import Predicate, to_sql
from skipindex.storage.location import Location
from skipindex.table import ColumnInfo, Table, open_table

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession


class Verdict(Enum):
    """What is known of a file that is read."""

    ALL = "all rows match"
    READ = "some rows may match"


@dataclass(frozen=True, slots=True)
class FileTask:
    """A file to read.

    Args:
        path: relative to the table.
        size: in bytes.
        n_rows: None if no index knows the file.
        verdict: whether every row is known to match.
        residual: the SQL that the reader must still check, ``TRUE`` if none.
        matching: between how many and how many rows match; None if unknown.
    """

    path: str
    size: int
    n_rows: int | None
    verdict: Verdict
    residual: str
    matching: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that holds no matching row.

    Args:
        path: relative to the table.
        size: in bytes; with ``mtime`` the identity that the proof is about.
        mtime: modification mark in nanoseconds.
        stage: that skipped it.
        reason: the atom, or the conjunction, and the evidence against it.
    """

    path: str
    size: int
    mtime: int
    stage: str
    reason: str


@dataclass(frozen=True, slots=True)
class SessionRules:
    """The session settings that a plan relies on.

    Args:
        timezone: None if nothing was assumed.
        case_sensitive: how column names were matched.
    """

    timezone: str | None
    case_sensitive: bool


class Plan:
    """Which files of a table can hold a row for which a predicate is TRUE.

    Attributes:
        where: the predicate as Spark SQL.
        session: the session settings that the plan relies on.
        condition: the PySpark ``Column`` that ``where`` was made of, if it was one.
    """

    def __init__(
        self,
        where: str,
        evaluation: Evaluation,
        *,
        session: SessionRules,
        condition: SparkColumn | None = None,
    ) -> None:
        """Use ``plan_files``."""
        self.where = where
        self.condition = condition
        self.session = session
        self._evaluation = evaluation

    def __repr__(self) -> str:
        kept = int(self._evaluation.possible.sum())
        return f"Plan({kept} of {len(self.table)} files, {self.where!r})"

    @property
    def table(self) -> Table:
        """The table, as it was when the plan was made."""
        return self._evaluation.table

    @property
    def paths(self) -> list[str]:
        """The files to read, relative to the table, without duplicates."""
        kept = np.flatnonzero(self._evaluation.possible)
        return [self.table.paths[i] for i in kept]

    @property
    def files(self) -> list[str]:
        """The files to read, as full paths for ``spark.read``."""
        return [self.table.location.spark_path(path) for path in self.paths]

    @property
    def stages(self) -> list[Stage]:
        """The funnel: what each stage left, took and read."""
        return list(self._evaluation.stages)

    @property
    def notes(self) -> list[str]:
        """Why indexes were missing or not used, with the number of times."""
        table, reader = self.table, self._evaluation.reader
        kept = [f"{n} files: {reason}" for reason, n in table.index_gaps.items()]
        unused = [f"{n} times: {reason}" for reason, n in reader.notes.items()]
        declared = self._evaluation.derived.problems
        return [*table.notes, *declared, *kept, *unused]

    @cached_property
    def tasks(self) -> list[FileTask]:
        """The files to read, with what is known of them."""
        found = self._evaluation
        return [self._task(int(i)) for i in np.flatnonzero(found.possible)]

    @cached_property
    def skipped(self) -> list[SkippedFile]:
        """The files that are not read, each with its proof."""
        found, table = self._evaluation, self.table
        return [
            SkippedFile(
                table.paths[i],
                int(table.sizes[i]),
                int(table.mtimes[i]),
                str(found.stage_of[i]),
                proof(found, int(i)),
            )
            for i in np.flatnonzero(~found.possible)
        ]

    @property
    def count_bounds(self) -> tuple[int, int | None]:
        """Between how many and how many rows match; None is "not known"."""
        bounds = [task.matching for task in self.tasks]
        lower = sum(b[0] for b in bounds if b is not None)
        if None in bounds:
            return lower, None
        return lower, sum(b[1] for b in bounds if b is not None)

    def explain(self) -> str:
        """The funnel, the conditions and what answered them, for people."""
        return explain(self)

    def to_dict(self) -> dict[str, Any]:
        """All of the plan, as plain values for JSON."""
        return {
            "where": self.where,
            "files": self.paths,
            "tasks": [
                {
                    "path": task.path,
                    "size": task.size,
                    "n_rows": task.n_rows,
                    "verdict": task.verdict.value,
                    "residual": task.residual,
                    "matching": task.matching,
                }
                for task in self.tasks
            ],
            "skipped": [
                {name: getattr(skipped, name) for name in SkippedFile.__slots__}
                for skipped in self.skipped
            ],
            "stages": [
                {
                    "name": stage.name,
                    "files": stage.files,
                    "bytes": stage.n_bytes,
                    "seconds": stage.seconds,
                    "index_bytes": stage.read.n_bytes,
                    "bitmaps": stage.read.bitmaps,
                    "note": stage.note,
                }
                for stage in self.stages
            ],
            "notes": self.notes,
        }

    def read(self, spark: SparkSession) -> DataFrame:
        """The matching rows: those of the whole table under the same filter.

        Raises:
            PlanError: the session's settings are not those of the plan.
        """
        from skipindex.spark.read import read_plan  # noqa: PLC0415 (needs a JVM)

        return read_plan(spark, self)

    def _task(self, i: int) -> FileTask:
        found = self._evaluation
        n_rows = int(self.table.n_rows[i])
        known = n_rows if n_rows >= 0 else None
        rows = found.rows.get(i)
        matching = (0, n_rows) if known is not None else None
        if rows is not None:
            matching = rows.lower, rows.upper
        if found.certain[i]:
            matching = None if known is None else (n_rows, n_rows)
        return FileTask(
            path=self.table.paths[i],
            size=int(self.table.sizes[i]),
            n_rows=known,
            verdict=Verdict.ALL if found.certain[i] else Verdict.READ,
            residual="TRUE" if found.certain[i] else text_of(self._residual(i)),
            matching=matching,
        )

    def _residual(self, i: int) -> Bound:
        """The tree without what is certain of the file's every row."""
        leaves = self._evaluation.leaves

        def walk(node: Bound) -> Bound:
            if isinstance(node, AllOf | AnyOf):
                return type(node)(tuple(map(walk, node.children)))
            if isinstance(node, Leaf | Computed):
                bounds = leaves[node].bounds
                if bounds.lower[i] or not bounds.upper[i]:
                    return Known(bool(bounds.lower[i]))
            return node

        return simplify(walk(self._evaluation.tree))


def plan_files(
    predicate: str | Predicate | SparkColumn,
    *,
    table: Table | Location | str | os.PathLike[str],
    timezone: str | None = None,
    case_sensitive: bool = False,
    kinds: Collection[str] | None = None,
) -> Plan:
    """The files that may hold a row for which ``predicate`` is TRUE.

    No other file holds one.  A file whose index is missing, stale, damaged or too
    new is kept, and the plan says so.

    Args:
        predicate: a WHERE condition in Spark SQL, one built with ``col``, or a
            PySpark ``Column``.
        table: a ``Table``, a path or a URI.
        timezone: of the session that will read; without it, timestamps that are
            written without a zone prune nothing.
        case_sensitive: how column names are matched (``spark.sql.caseSensitive``).
        kinds: names of the index kinds that may be used (``"minmax"``,
            ``"bloom"`` …); by default all that there are.

    Raises:
        PredicateError: it cannot be parsed, or names a column that is not there.
        TableError: there is no such table.
        UnknownIndexError: ``kinds`` names a kind that does not exist.
    """
    opened = open_table(table)
    if kinds is not None:
        names = [kinds] if isinstance(kinds, str) else kinds
        kinds = {parse_spec(name).kind for name in names}
    condition = None
    if isinstance(predicate, str):
        tree, where = parse(predicate), predicate
    elif isinstance(predicate, Predicate):
        tree, where = predicate, to_sql(predicate)
    elif hasattr(predicate, "_jc") or type(predicate).__module__.startswith("pyspark."):
        from skipindex.spark._condition import condition_text  # noqa: PLC0415 (a JVM)

        where = condition_text(predicate)
        tree, condition = parse(where), predicate
    else:
        raise PredicateError(
            f"no predicate: {predicate!r} (accepted: SQL text, or a condition built "
            "with skipindex.col, or a PySpark Column)"
        )

    def resolve(name: str) -> ColumnInfo:
        return opened.resolve(name, case_sensitive=case_sensitive)

    bound = simplify(Binder(resolve, timezone).bind(tree))
    evaluation = Evaluation(opened, bound, kinds=kinds)
    session = SessionRules(timezone, case_sensitive)
    return Plan(where, evaluation, session=session, condition=condition)
