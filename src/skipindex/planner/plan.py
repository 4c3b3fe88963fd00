"""The plan: files to read, files not to read and why, and how we know."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from skipindex.conditions.binding.binder import Binder
from skipindex.conditions.binding.folders import Row
from skipindex.conditions.binding.terms import BoundColumn
from skipindex.conditions.bound_predicate import BoundPredicate
from skipindex.conditions.functions.zones import (
    OffsetsOf,
    ZoneRules,
    instants,
    offsets_here,
    relying_on,
)
from skipindex.conditions.simplify import simplify
from skipindex.conditions.sql.moment import Moment, MomentConstant, at_moment
from skipindex.conditions.sql.parser import parse
from skipindex.errors import EngineError, PlanError, PredicateError, kind_of
from skipindex.expressions import Predicate, to_sql
from skipindex.expressions.atoms import Value
from skipindex.indexes import index_types, parse_spec
from skipindex.indexes.file_map import FILE_MAP
from skipindex.planner.engine import OPAQUE, engine_of, engine_type
from skipindex.planner.file_tasks import (
    FileTask,
    RowSelection,
    Verdict,
    row_groups,
    selections,
    tasks_of,
)
from skipindex.planner.metrics import count_plan
from skipindex.planner.reports.evidence import (
    ConditionReport,
    Evidence,
    SkippedFile,
    conditions,
    skipped_file,
)
from skipindex.planner.reports.explain import (
    as_dict,
    explain,
    file_explanation,
    plan_html,
)
from skipindex.planner.reports.verify import VerifyReport, verify_plan
from skipindex.planner.rows import Rows
from skipindex.planner.stages.cost import ENGINES, Reader
from skipindex.planner.stages.evaluation import Evaluation
from skipindex.planner.stages.lazy_list import LazyList
from skipindex.planner.stages.limit import (
    EVERYTHING,
    Needed,
    RowLimit,
    SortKey,
    limited,
)
from skipindex.planner.stages.pack_cache import DEFAULT_SESSION, CacheSession
from skipindex.planner.stages.planning_stages import STAGES, count_deferred_rows
from skipindex.planner.stages.records import Stage
from skipindex.planner.stages.row_counts import RowCounts, row_counts
from skipindex.storage.file_system.location import Location
from skipindex.table import ColumnInfo, TableState, open_state
from skipindex.table.queries import Recording

__all__ = [
    "ConditionReport",
    "Evidence",
    "FileTask",
    "Moment",
    "MomentConstant",
    "Plan",
    "RowSelection",
    "SessionRules",
    "SkippedFile",
    "Stage",
    "Verdict",
    "plan_files",
    "record_plan",
]

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow.dataset as ds
    from duckdb import DuckDBPyConnection, DuckDBPyRelation
    from pyiceberg.table import FileScanTask
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

WITHOUT_SPARK: Final = (
    "plan.to_pandas(), plan.to_polars(), plan.to_duckdb() or plan.to_arrow()"
)
"""The methods of a plan that give its rows to other engines."""


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
        kinds: the index kinds that may be used; None is all.
        row_limit: the requested number of matching rows, and their order.
        condition: the PySpark ``Column`` that ``where`` was made of, if it has details
            that SQL text does not have.
        moment: the time for ``now()`` and similar functions, which are literals in
            ``where``.  None if the predicate does not depend on it.
        columns: the columns that the predicate and the order name.
        rules: the time zone rules that the plan relies on.
        evaluation: the results of every stage and every condition.

    >>> plan = table.plan("city = 'Rome' AND price < 4")
    >>> plan.paths, plan.count_bounds
    (['part-0.parquet'], (1, 1))
    >>> [(file.path, file.reason) for file in plan.skipped]
    [('part-1.parquet', ...)]
    """

    def __init__(
        self,
        where: str,
        evaluation: Evaluation,
        *,
        session: SessionRules,
        kinds: Collection[str] | None = None,
        row_limit: RowLimit = EVERYTHING,
        condition: SparkColumn | None = None,
        moment: Moment | None = None,
        columns: Sequence[ColumnInfo] = (),
        rules: ZoneRules,
        anew: Callable[[OffsetsOf], Plan],
    ) -> None:
        """Use ``plan_files``."""
        self.where = where
        self.condition = condition
        self.moment = moment
        self.session = session
        self.row_limit = row_limit
        self.evaluation = evaluation
        self.kinds = kinds
        self.columns = columns
        self.rules = rules
        self._anew = anew

    def __repr__(self) -> str:
        n_read = np.count_nonzero(self._is_read)
        n_folders = self.table.n_unlisted
        others = f" and of {n_folders} folders" if n_folders else ""
        return f"Plan({n_read} of {len(self.table)} files{others}, {self.where!r})"

    def _repr_html_(self) -> str:
        return plan_html(self)

    @property
    def table(self) -> TableState:
        """The table at the time when the plan was made."""
        return self.evaluation.table

    @property
    def tree(self) -> BoundPredicate:
        """The predicate as a tree of the atoms that indexes evaluate."""
        return self.evaluation.tree

    @property
    def paths(self) -> list[str]:
        """The files to read, relative to the table, without duplicates; a new list."""
        return self.table.paths_at(np.flatnonzero(self._is_read))

    @property
    def files(self) -> list[str]:
        """The files to read, as full paths or URIs for any reader; a new list.

        Names are not escaped: Spark reads some as patterns (``spark_paths``).
        """
        return list(map(self.table.location.plain_path, self.paths))

    @property
    def spark_paths(self) -> list[str]:
        """The files to read, escaped for ``spark.read``; a new list.

        A reader needs the schema of the entire table, and its folder as
        ``basePath`` if it has partitions.  ``read`` passes both.

        >>> plan = table.plan("price < 4")
        >>> whole = spark.read.parquet(path)
        >>> files = spark.read.schema(whole.schema).option("basePath", path)
        >>> files.parquet(*plan.spark_paths).where("price < 4").count()
        3
        """
        return list(map(self.table.location.spark_pattern, self.paths))

    @property
    def stages(self) -> list[Stage]:
        """What each stage kept and read, and the time it took."""
        stages = list(self.evaluation.stages)
        if self.row_limit.limit is not None:
            stages.append(self._limit[1])
        return stages

    @property
    def notes(self) -> list[str]:
        """Why indexes were missing, not used or not probed, with counts.

        The rows of all files are counted first, as for ``row_counts``.
        """
        count_deferred_rows(self.evaluation)
        table, reader = self.table, self.evaluation.reader
        gaps = [f"{n} files: {reason}" for reason, n in table.index_gaps.items()]
        unused = [f"{n} times: {reason}" for reason, n in reader.notes.items()]
        evaluation = self.evaluation
        left_out = [*evaluation.remarks, *evaluation.untested]
        if n := table.n_unlisted:
            left_out.append(
                f"{n} folders without a matching row were not listed, so their number "
                "of files is unknown"
            )
        return [*table.notes, *evaluation.problems, *gaps, *unused, *left_out]

    @property
    def tasks(self) -> Sequence[FileTask]:
        """The files to read, each with its verdict and residual."""
        make = partial(tasks_of, self.evaluation, self.row_counts)
        return LazyList(np.flatnonzero(self._is_read), make)

    @property
    def selections(self) -> Sequence[RowSelection]:
        """The rows of each of ``tasks`` that can match, by row-level indexes.

        >>> plan = table.plan("city = 'Rome' AND price < 4")
        >>> [(one.rows.tolist(), one.exact) for one in plan.selections]
        [([0], True)]
        """
        make = partial(_selections_of, self.evaluation)
        return LazyList(np.flatnonzero(self._is_read), make)

    @property
    def skipped(self) -> Sequence[SkippedFile]:
        """The files that are not read, each with the reason."""
        beyond = "" if self.row_limit.limit is None else self._limit[0].reason

        def proofs(files: np.ndarray) -> list[SkippedFile]:
            evaluation = self.evaluation
            return [skipped_file(evaluation, i, limit=beyond) for i in files.tolist()]

        return LazyList(np.flatnonzero(~self._is_read), proofs)

    @property
    def conditions(self) -> list[ConditionReport]:
        """Every condition, the kinds that ruled out files, and why others did not.

        The rows of all files are counted first, as for ``row_counts``.
        """
        count_deferred_rows(self.evaluation)
        return conditions(self.evaluation, self.kinds)

    @cached_property
    def row_counts(self) -> RowCounts:
        """The least and greatest number of matching rows of every file.

        The first access counts the rows of files that certainly hold a match, which
        skipping does not need.
        """
        return row_counts(self.evaluation)

    @property
    def count_bounds(self) -> tuple[int, int | None]:
        """The least and greatest number of matching rows; None is "not known"."""
        return self.row_counts.total

    @property
    def row_groups(self) -> tuple[int, int] | None:
        """How many row groups can hold a match, of how many in the files to read.

        None if a file was indexed by an older version, or never, or if the positions of
        very many rows would have to be found.

        >>> table.plan("city = 'Rome'").row_groups
        (2, 2)
        """
        return row_groups(self.evaluation, np.flatnonzero(self.kept))

    def under(self, offsets: OffsetsOf) -> Plan:
        """The plan for an engine with these time zone rules.

        This is the same plan, unless the offsets that it relies on differ there.

        >>> plan = table.plan("price < 4")  # which depends on no zone
        >>> plan.under(lambda zone, first, last: None) is plan
        True
        """
        # Values may be converted until it is known what is read, and how many match.
        _ = self.kept
        return self if self.rules.are_those_of(offsets) else self._anew(offsets)

    def explain(self, *, file: str | None = None) -> str:
        """The stages, the conditions and the indexes that evaluated them, as text.

        Args:
            file: explain this one file, by its path relative to the table.

        Raises:
            PlanError: the table has no such file.

        >>> print(table.plan("price < 4").explain())
        1 of 2 files for: price < 4
        ...
        """
        return explain(self) if file is None else file_explanation(self, file).to_text()

    def count(self, spark: SparkSession | None = None) -> int:
        """The number of matching rows; reads only files whose number is not known.

        ``limit`` is ignored.  Rows with NaN or -0.0 in files of other writers count,
        which ``read`` may lose: Spark trusts the statistics of such files, unless
        ``spark.sql.parquet.filterPushdown`` is false.

        Raises:
            PlanError: some file must be read and there is no session, or its
                settings are not those of the plan.

        >>> table.plan("city = 'Rome'").count()
        2
        """
        lower, upper = self.count_bounds
        is_known = spark is None or not self.rules.relied
        if lower == upper and is_known:
            return lower
        if spark is None:
            unread = int((~self.row_counts.exact).sum())
            raise PlanError(
                f"the number of rows in {unread} files is not known (pass a Spark "
                "session that reads them)"
            )
        return engine_of(spark).count(self)

    def to_dict(self, *, file: str | None = None) -> dict[str, Any]:
        """The plan, or the explanation of one file, as plain values for JSON.

        Raises:
            PlanError: the table has no such file.

        >>> table.plan("price < 4").to_dict()["count_bounds"]
        (3, 3)
        """
        if file is not None:
            return file_explanation(self, file).to_dict()
        return as_dict(self)

    def read(self, spark: SparkSession | None = None) -> DataFrame:
        """The matching rows: those of the entire table with the same filter.

        With ``limit``, at most that many, in the order of ``order_by``.

        Raises:
            PlanError: the session's settings are not those of the plan.
            EngineError: there is no session; the message names methods that do not
                need one.

        >>> table.plan("price < 4").read(spark).count()
        3
        """
        if spark is None:
            raise EngineError(
                "plan.read reads with Spark, and there is no session (accepted: "
                f"plan.read(spark), or without Spark {WITHOUT_SPARK})"
            )
        rows: DataFrame = engine_of(spark).read(self)
        return rows

    def to_arrow(
        self, *, columns: Sequence[str] | None = None, rows: Rows = "matching"
    ) -> ds.Dataset:
        """The matching rows as a dataset of pyarrow: the same rows as ``read``.

        The columns are those of the table, partition columns last, with the types
        that Spark gives them.  The dataset applies the condition, and an engine's own
        filters come on top.  Rows have no order.

        If row indexes leave few rows, the pages that hold them are read now.  Else
        footers are read now, and files when the dataset is read, or now if you name
        columns.  If Arrow does not have a function of the condition, it is evaluated
        for each distinct value, and that column of the files is read now.

        Args:
            columns: names of the columns to read; by default all.
            rows: ``"files"`` returns all rows of the files to read, for conditions that
                only Spark can evaluate.  Filter them by the same condition, or a
                narrower one.

        Raises:
            PlanError: only Spark can evaluate a part of the condition, or read a file
                correctly (it spells columns in other capitals, or has a type that Arrow
                does not cast, or times of the old hybrid calendar), or a file is gone.
                Or the plan has a ``limit``.

        >>> table.plan("city = 'Rome'").to_arrow().to_table()["price"].to_pylist()
        [1, 5]
        """
        from skipindex.planner.rows.engines import to_arrow  # noqa: PLC0415 (a slow import)

        return to_arrow(self, columns, rows)

    def to_duckdb(
        self,
        connection: DuckDBPyConnection | None = None,
        *,
        columns: Sequence[str] | None = None,
        rows: Rows = "matching",
    ) -> DuckDBPyRelation:
        """The matching rows as a relation of DuckDB: the same rows as ``read``.

        If row indexes leave few rows, the pages that hold them are read now.  Else it
        is lazy: DuckDB reads the columns that a query uses when the query runs.
        With ``limit``, it has at most that many rows.  Rows have no order.

        Args:
            connection: a DuckDB connection; by default that of the module ``duckdb``.
            columns: names of the columns to read; by default all.
            rows: as for ``to_arrow``; with ``"files"``, ``limit`` is ignored.

        Raises:
            PlanError: as for ``to_arrow``, or the plan has ``order_by``.
            EngineError: DuckDB is not installed.

        >>> table.plan("city = 'Rome'").to_duckdb().aggregate("sum(price)").fetchall()
        [(6,)]
        """
        from skipindex.planner.rows.engines import to_duckdb  # noqa: PLC0415 (a slow import)

        return to_duckdb(self, connection, columns, rows)

    def to_polars(
        self, *, columns: Sequence[str] | None = None, rows: Rows = "matching"
    ) -> pl.LazyFrame:
        """The matching rows as a lazy frame of Polars: the same rows as ``read``.

        If row indexes leave few rows, the pages that hold them are read now.  Else
        Polars reads the columns that a query uses when the frame is collected.
        With ``limit``, it has at most that many rows.  Rows have no order.

        Args:
            columns: names of the columns to read; by default all.
            rows: as for ``to_arrow``; with ``"files"``, ``limit`` is ignored.

        Raises:
            PlanError: as for ``to_arrow``, or the plan has ``order_by``.
            EngineError: Polars is not installed.

        >>> table.plan("city = 'Rome'").to_polars().select("price").collect().rows()
        [(1,), (5,)]
        """
        from skipindex.planner.rows.engines import to_polars  # noqa: PLC0415 (a slow import)

        return to_polars(self, columns, rows)

    def to_iceberg_scan(self) -> list[FileScanTask]:
        """The tasks of pyiceberg for the files to read, each with its deletes.

        The files may hold matching rows, and hold others: the reader of the tasks,
        such as ``pyiceberg.io.pyarrow.ArrowScan``, applies the condition.

        Raises:
            PlanError: the table is no Iceberg table.

        >>> [task.file.record_count for task in iceberg.plan("a = 1").to_iceberg_scan()]
        [2]
        """
        tasks = getattr(self.table.source, "tasks", None)
        if tasks is None:
            raise PlanError(
                f"{self.table.folder!r} is no Iceberg table (accepted: plan.files, or "
                f"{WITHOUT_SPARK})"
            )
        return [tasks[path] for path in self.paths]

    def to_pandas(
        self, *, columns: Sequence[str] | None = None, rows: Rows = "matching"
    ) -> pd.DataFrame:
        """The matching rows as a DataFrame of pandas: the same rows as ``read``.

        The files are read now.  With ``limit``, it has at most that many rows.  Rows
        have no order.  Columns of integers and booleans with NULL have nullable types,
        such as ``Int64``.  Timestamps are instants in UTC, as to Spark, whatever zone a
        writer of Arrow noted in a file.

        Args:
            columns: names of the columns to read; by default all.
            rows: as for ``to_arrow``; with ``"files"``, ``limit`` is ignored.

        Raises:
            PlanError: as for ``to_arrow``, or the plan has ``order_by``, or a column
                does not exist.
            EngineError: pandas is not installed.

        >>> table.plan("city = 'Rome'").to_pandas()["price"].tolist()
        [1, 5]
        """
        from skipindex.planner.rows.engines import to_pandas  # noqa: PLC0415 (a slow import)

        return to_pandas(self, columns, rows)

    def verify(
        self,
        *,
        sample: float | None = None,
        spark: SparkSession | None = None,
        seed: int = 0,
    ) -> VerifyReport:
        """Read the files, and report every claim of the plan that does not hold.

        A skipped file must have no matching row.  If the plan says that every row of a
        file matches, all must.  All other files, also those skipped by ``limit``, must
        have a number of matching rows within the plan's bounds.

        Args:
            sample: the number of files to check, or below 1 their fraction, skipped
                files first; by default all.
            spark: a session that counts, instead of pyarrow.
            seed: the seed of the sample.

        Raises:
            PlanError: ``sample`` is not a number of files, or the session's settings
                are not those of the plan.

        >>> table.plan("price < 4").verify().violations
        ()
        """
        return verify_plan(self, sample=sample, spark=spark, seed=seed)

    @property
    def kept(self) -> np.ndarray:
        """The files to read, as a mask over the files of the table."""
        return self._is_read

    @property
    def _is_read(self) -> np.ndarray:
        if self.row_limit.limit is None:
            return self.evaluation.possible
        return self._limit[0].mask

    @cached_property
    def _limit(self) -> tuple[Needed, Stage]:
        """The files that LIMIT needs, and the stage that found out."""
        first = self.row_limit.order_by[:1]
        by_statistics = self.kinds is None or "minmax" in self.kinds
        column = self._column_of(first[0]) if first and by_statistics else None
        return limited(self.evaluation, self.row_counts, self.row_limit, column)

    def _column_of(self, key: SortKey) -> ColumnInfo | None:
        """The column of a sort key, if it is one with an order of its own."""
        parts = key.column.parts
        column = self.table.resolve(
            parts[0], case_sensitive=self.session.case_sensitive
        )
        return column if len(parts) == 1 else None


def _selections_of(evaluation: Evaluation, files: np.ndarray) -> list[RowSelection]:
    return list(selections(evaluation, files))


def record_plan(
    plan: Plan,
    recording: Recording,
    n_files: int | None = None,
    n_read: int | None = None,
) -> None:
    """Record a plan as a query; a caller may know what Spark lists and reads."""
    table, possible = plan.table, plan.evaluation.possible
    recording.add(
        table.location,
        plan.where,
        zone=plan.session.timezone,
        files=len(table) if n_files is None else n_files,
        read=int(np.count_nonzero(possible)) if n_read is None else n_read,
        n_bytes=int(table.sizes[possible].sum()),
        seconds=sum(run.seconds for run in plan.evaluation.runs),
    )


def plan_files(
    predicate: str | Predicate | SparkColumn,
    *,
    table: TableState | Location | str | os.PathLike[str],
    timezone: str | None = None,
    case_sensitive: bool = False,
    kinds: Collection[str] | str | None = None,
    without: Collection[str] | str = (),
    limit: int | None = None,
    order_by: str | Sequence[str] | None = None,
    plain: bool = False,
    session: CacheSession | None = None,
    now: datetime | None = None,
    offsets: OffsetsOf = offsets_here,
    read_by: Reader = ENGINES,
) -> Plan:
    """See ``skipindex.plan_files``, which logs what the plan notes too.

    ``offsets`` are the rules of time zones, and ``read_by`` is as for ``Evaluation``.
    """
    opened = open_state(table, plain=plain).in_zone(instants(timezone))
    opened.check_names(case_sensitive=case_sensitive)
    if case_sensitive:
        opened = opened.with_exact_names()
    row_limit = RowLimit.of(limit, order_by)
    named: dict[str, ColumnInfo] = {}

    def resolve(name: str) -> ColumnInfo:
        column = opened.resolve(name, case_sensitive=case_sensitive)
        return named.setdefault(column.name, column)

    for key in row_limit.order_by:
        resolve(key.column.parts[0])
    usable = _usable(kinds, without)
    condition, moment = None, None
    if isinstance(predicate, Predicate):
        tree, where = predicate, to_sql(predicate)
    else:
        if isinstance(predicate, str):
            text = predicate
        else:
            text, condition = _engine_text(predicate), predicate
        where = text
        if condition is None or OPAQUE not in text:
            names = {column.name.lower() for column in opened.columns}
            where, moment = at_moment(
                text, _aware(now), timezone, lambda name: name.lower() in names
            )
        if moment is not None:
            condition = None  # the text is of the moment, and says all of it
        tree = parse(where)

    def planned(offsets: OffsetsOf) -> Plan:
        rules = ZoneRules(offsets)
        with relying_on(rules):
            binder = Binder(resolve, timezone, partial(_folders, opened))
            bound = simplify(binder.bind(tree))
        evaluation = Evaluation(
            opened,
            bound,
            kinds=usable,
            forced=kinds and usable,
            session=session or DEFAULT_SESSION,
            read_by=read_by,
        ).run(STAGES)
        return Plan(
            where,
            evaluation,
            session=SessionRules(timezone, case_sensitive),
            kinds=usable,
            row_limit=row_limit,
            condition=condition,
            moment=moment,
            columns=list(named.values()),
            rules=rules,
            anew=planned,
        )

    plan = planned(offsets)
    count_plan(plan.evaluation)
    return plan


def _folders(table: TableState, columns: Sequence[BoundColumn]) -> list[Row] | None:
    """What a file has in columns, each combination once; None if it may have more."""
    named = {partition.name: partition for partition in table.partitions}
    values: list[list[Value | None]] = []
    for column in columns:
        info = table.stored(column.name)
        if not info.is_partition or column.domain.name == "timestamp":
            return None  # of the latter only bounds are known
        values.append(named[info.own_name].typed(column.domain))
    return list(dict.fromkeys(zip(*values, strict=True)))


def _engine_text(predicate: object) -> str:
    """A condition of an engine's own kind, in SQL."""
    engine = engine_type(predicate)
    if engine is None:
        raise PredicateError(
            f"not a predicate: {kind_of(predicate)} (accepted: SQL text, or a "
            "condition built with skipindex.col, or a PySpark Column)"
        )
    return engine.condition_text(predicate)


def _aware(now: datetime | None) -> datetime:
    """The moment of a plan, by default that of the clock."""
    if now is None:
        return datetime.now(UTC)
    if not isinstance(now, datetime):
        raise PlanError(f"now={now!r} is not a time (accepted: datetime.now(UTC))")
    if now.tzinfo is None:
        raise PlanError(f"now={now} has no time zone (accepted: datetime.now(UTC))")
    return now


def _usable(
    kinds: Collection[str] | str | None, without: Collection[str] | str
) -> set[str] | None:
    """The kinds that may be used; None is all."""

    def names(some: Collection[str] | str) -> set[str]:
        listed = [some] if isinstance(some, str) else some
        return {n if n == FILE_MAP else parse_spec(n).kind for n in listed}

    if kinds is None:
        if not without:
            return None
        kinds = {"minmax", FILE_MAP, *index_types()}
    return names(kinds) - names(without)
