"""What a scan of a query asked, and what it reads; importable without PySpark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skipindex.notebook import block, fold, paragraph
from skipindex.planner.plan import Plan


@dataclass(frozen=True, slots=True)
class DimensionKeys:
    """What was read of a dimension that a scan is joined with.

    Args:
        column: of the scan, which is joined.
        folder: of the dimension.
        n_keys: that its conditions leave, or more; None if they are not known.
        seconds: that it took to read it and to evaluate its conditions.
        problem: why the keys are not known; else empty.
    """

    column: str
    folder: str
    n_keys: int | None = None
    seconds: float = 0.0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """What one scan of a query asked, and which files it reads for it.

    Args:
        folder: of the table.
        condition: the conditions of the scan as they were judged, in Spark SQL;
            what only Spark can compute has the name of its class, as in
            ``{RLike(name, 'a+')}``, and ``IN (99 keys)`` stands for a long list, or for
            many keys of a dimension that the scan is joined with.
        n_files: that the scan lists, which a filter of partitions may have left; of the
            table, as long as Spark has not listed them.
        n_skipped: of these, files that hold no matching row, none of the first rows,
            or of which the results are known.
        seconds: that planning took.
        is_estimate: whether only the size of a join's side was asked for.
        problem: why nothing was skipped, if planning failed.
        plan: tells more; None if planning failed.
        answered: results that are known of the files which are not read, such as
            ``count(*), max(day)``; empty if none was asked for.
        n_unindexed: files that are read because they came or changed after the indexes
            were built, or never were; ``refresh_indexes`` builds what they lack.
        number: of the question, by which the driver tells what was read.
        of_partitions: whether the files that are counted stand for partitions of a
            table of the catalog, which no index knows: only those that are read are
            listed.
        dimensions: that were asked for keys, as the scan is joined with them.

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

    @property
    def n_read(self) -> int:
        """The files that are left to read, of those that the scan lists."""
        return self.n_files - self.n_skipped

    def _repr_html_(self) -> str:
        more = "" if self.plan is None else self.plan._repr_html_()
        return block(paragraph(str(self)), more and fold("the plan", more))

    def __str__(self) -> str:
        what = "partitions" if self.of_partitions else "files"
        result = self.problem or f"{self.n_read} of {self.n_files} {what}"
        if self.n_unindexed:
            result = f"{result} ({self.n_unindexed} have no index yet)"
        if self.answered:
            result = f"{self.answered} from indexes and {result}"
        return f"{self.folder}: {result} for: {self.condition}"
