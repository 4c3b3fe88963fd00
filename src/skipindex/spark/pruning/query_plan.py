"""The plan of one scan of a query; importable without PySpark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skipindex.notebook import block, fold, paragraph
from skipindex.planner.plan import Plan


@dataclass(frozen=True, slots=True)
class DimensionKeys:
    """The keys of a dimension that a scan is joined with.

    Args:
        column: the joined column of the scan.
        folder: the folder of the dimension.
        n_keys: the number of keys under its conditions, or more; None if unknown.
        seconds: the time to read it and to evaluate its conditions.
        problem: why the keys are unknown; else empty.
    """

    column: str
    folder: str
    n_keys: int | None = None
    seconds: float = 0.0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The plan of one scan of a query: its condition, and the files that it reads.

    Args:
        folder: the folder of the table.
        condition: the evaluated conditions of the scan, in Spark SQL.  An expression
            that only Spark can evaluate has the name of its class, as in
            ``{RLike(name, 'a+')}``.  ``IN (99 keys)`` is a long list, or the keys of a
            dimension that the scan is joined with.
        n_files: the number of files that the scan lists, after partition filters; of
            the table, until Spark has listed them.
        n_skipped: the number of these files that are skipped: they hold no matching
            row, none of the first rows, or their results are known from indexes.
        seconds: the time of planning.
        is_estimate: whether only the size of a join's side was requested.
        problem: why nothing was skipped, if planning failed.
        plan: the plan with all details; None if planning failed.
        answered: the results that are known of the files which are not read, such as
            ``count(*), max(day)``; empty if none was requested.
        n_unindexed: the number of files that are read because they have no index, or
            changed after the build; ``refresh_indexes`` indexes them.
        number: the number of the question, by which the driver reports what was read.
        of_partitions: whether the counted files stand for partitions of a catalog
            table, of which only those that are read are listed.
        dimensions: the dimensions that the scan is joined with, and their keys.
        n_rows: the number of rows that the planner read, in place of the scan, of the
            files that are not skipped; None if Spark reads these files.
        n_bytes: the bytes of the pages that the planner read.
        n_in_part: the number of files of which Spark is to read some row groups, those
            that can hold a match.
        is_observed: whether nothing was skipped, as ``skipindex.enabled`` is
            ``observe``: ``n_skipped`` is what would be skipped.

    >>> sx.enable(spark)
    >>> spark.read.parquet(path).where("price < 4").count()
    3
    >>> sx.last_plans(spark)[-1].n_skipped
    1
    >>> sx.disable(spark)
    """

    folder: str
    condition: str
    n_files: int
    n_skipped: int
    seconds: float
    is_estimate: bool = False
    problem: str = ""
    plan: Plan | None = None
    answered: str = ""
    n_unindexed: int = 0
    number: int = 0
    of_partitions: bool = False
    dimensions: Sequence[DimensionKeys] = ()
    n_rows: int | None = None
    n_bytes: int = 0
    n_in_part: int = 0
    is_observed: bool = False

    @property
    def n_read(self) -> int:
        """The number of files to read, of those that the scan lists."""
        return self.n_files - self.n_skipped

    def _repr_html_(self) -> str:
        more = "" if self.plan is None else self.plan._repr_html_()
        return block(paragraph(str(self)), more and fold("the plan", more))

    def __str__(self) -> str:
        what = "partitions" if self.of_partitions else "files"
        result = self.problem or f"{self.n_read} of {self.n_files} {what}"
        if self.n_in_part:
            result = f"{result}, {self.n_in_part} of them in part"
        if self.n_unindexed:
            result = f"{result} ({self.n_unindexed} have no index yet)"
        if self.n_rows is not None:
            read = f"{self.n_rows:,} rows ({self.n_bytes:,} bytes)"
            result = f"{read}, read by the planner from {result}"
        if self.is_observed:
            result = f"{result} would be read"
        if self.answered:
            result = f"{self.answered} from indexes and {result}"
        return f"{self.folder}: {result} for: {self.condition}"
