"""What a table is asked: plans, indexes, status and advice; nothing is changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Self, TypeVar

from skipindex.advice import MAX_BYTES_RATIO, Advice, advise
from skipindex.api.extras import needs_spark
from skipindex.api.index_info import IndexInfo, indexes_of
from skipindex.api.journal import tell
from skipindex.api.planning import plan_files
from skipindex.build.runners import LocalRunner, Runner
from skipindex.expressions import Predicate
from skipindex.layout.quality import Quality, layout_quality
from skipindex.planner.engine import engine_of
from skipindex.planner.plan import Plan
from skipindex.planner.stages.pack_cache import CacheSession
from skipindex.rewrite.verify_table import TableReport, verify
from skipindex.table import Status, TableState, status_of

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import SparkSession


class ReadableTable(TableState):
    """The files of a table and their indexes, as they were when it was opened."""

    @classmethod
    def of(cls, state: TableState) -> Self:
        """The same table, with the calls of the public API.

        >>> sx.Table.of(table).paths == table.paths
        True
        """
        handle = cls.__new__(cls)
        vars(handle).update(vars(state))
        return handle

    def refresh(self) -> Self:
        """The table as it is now.

        >>> len(table.refresh())
        2
        """
        return self.of(super().refresh())

    def plan(
        self,
        predicate: str | Predicate | SparkColumn,
        *,
        timezone: str | None = None,
        case_sensitive: bool = False,
        kinds: Collection[str] | str | None = None,
        without: Collection[str] | str = (),
        limit: int | None = None,
        order_by: str | Sequence[str] | None = None,
        workers: int | None = None,
        session: CacheSession | None = None,
        now: datetime | None = None,
    ) -> Plan:
        """The files that may hold a row for which ``predicate`` is TRUE.

        No other file holds one.  ``plan_files(predicate, table=self, …)``, which tells
        the arguments.

        >>> table.plan("price < 4").paths
        ['part-0.parquet']
        """
        return plan_files(
            predicate,
            table=self,
            timezone=timezone,
            case_sensitive=case_sensitive,
            kinds=kinds,
            without=without,
            limit=limit,
            order_by=order_by,
            workers=workers,
            session=session,
            now=now,
        )

    @property
    def indexes(self) -> Sequence[IndexInfo]:
        """The indexes that the table has, by column, in the table's order.

        >>> [(info.column, info.kind, info.files) for info in table.indexes]
        [('city', 'minmax', 2), ('city', 'bitmap', 2), ('price', 'minmax', 2)]
        """
        return indexes_of(self)

    def status(self) -> Status:
        """What the table is made of, what indexes it has, and what is missing.

        No index is read; ``verify`` does that.

        >>> table.status().fresh
        True
        """
        return status_of(self)

    def verify(
        self, *, spark: SparkSession | None = None, workers: int = 1
    ) -> TableReport:
        """All that is damaged, stale or orphaned of what is stored of the table.

        The table is looked at anew.  Every index byte is read and checked, and
        compared with the files that it is of.  Data files are listed and not read
        (``Plan.verify`` holds a plan against the data).  Nothing is changed:
        ``refresh_indexes(repair=True)`` builds again what is damaged or stale, and
        ``vacuum`` deletes orphans.

        Args:
            spark: a session, whose executors then read the indexes.
            workers: processes that read them, without ``spark``.

        Raises:
            TableError: there is no such table any more.
            BuildError: a worker process was killed, or Spark gave a task up.
            EngineError: Spark is not installed.

        >>> table.verify().ok
        True
        """
        is_here = spark is None and workers <= 1
        return verify(self, runner=None if is_here else runner_of(spark, workers))

    def advise(
        self,
        *,
        columns: Sequence[str] | None = None,
        queries: Sequence[str] | None = None,
        max_bytes_ratio: float = MAX_BYTES_RATIO,
        timezone: str | None = None,
    ) -> Advice:
        """The indexes that are worth their bytes, and what each choice rests on.

        Nothing is written.  A few files are read whole, in the columns that count.

        Args:
            columns: those that may get an index; by default all that have an order.
            queries: a workload, as WHERE conditions or whole SELECTs, several in one
                text between ``;``.  Bytes then go to the columns and shapes that it
                asks for alone.  A query that is named twice counts twice.
            max_bytes_ratio: cap of the indexes' bytes, as a part of the data's bytes.
            timezone: the time zone of the session that will ask; as for ``plan``.

        Raises:
            AdviceError: the cap is no number above 0, or no query can be asked here.
            PredicateError: a column does not exist, or a query cannot be read.
            UnsupportedTypeError: a named column cannot have an index.

        >>> advice = table.advise(queries=["city = 'Rome'"], max_bytes_ratio=1)
        >>> [choice.name for choice in advice.columns]
        ['city']
        """
        return advise(
            self,
            columns=columns,
            queries=queries,
            max_bytes_ratio=max_bytes_ratio,
            timezone=timezone,
        )

    def layout_quality(
        self,
        queries: Iterable[str | Predicate] = (),
        *,
        columns: Sequence[str] | None = None,
        spark: SparkSession | None = None,
    ) -> Quality:
        """How well the files are separated; reads no data file.

        Args:
            queries: conditions to measure against the ideal layout, in which the
                matching rows fill files of average size by themselves.
            columns: the columns to measure; by default all that have statistics.
            spark: counts the matching rows exactly, by reading them; without it they
                are as exact as the indexes are.

        Raises:
            PredicateError: a column does not exist, or a query cannot be parsed.

        >>> table.layout_quality(columns=["price"]).columns[0].depth
        1.0
        """
        return layout_quality(self, queries, columns=columns, spark=spark)


HandleT = TypeVar("HandleT", bound=ReadableTable)


def runner_of(spark: SparkSession | None, workers: int | None) -> Runner:
    """The executors of a session; without one, so many processes, or one a core."""
    if spark is None:
        return LocalRunner.default() if workers is None else LocalRunner(workers)
    with needs_spark():
        return engine_of(spark).runner()


def told(
    handle: type[HandleT], action: str, state: TableState, outcome: object = None
) -> HandleT:
    """Log what was done to a table, by default the commit; the handle of the table."""
    tell(action, state.folder, outcome or f"commit {state.snapshot.version}")
    return handle.of(state)
