"""Building, refreshing and dropping the indexes of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self, cast

from skipindex.advice import MAX_BYTES_RATIO
from skipindex.advice.advised_build import AdviceRequest, build_advised
from skipindex.api.reading import HandleT, ReadableTable, runner_of, told
from skipindex.build.associated.request import AssociatedRequest
from skipindex.build.builder import BuildReport, drop, refresh
from skipindex.build.column_requests import Request
from skipindex.build.columns.memory import DEFAULT_MEMORY, MemoryLike, memory_bytes
from skipindex.build.merge import merge
from skipindex.build.runners import Progress
from skipindex.build.tiers import MAX_BYTES, MAX_FILES
from skipindex.table import TableState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class IndexedTable(ReadableTable):
    """A table whose indexes can be built; each call ends in one commit."""

    def build_indexes(
        self,
        indexes: Request | None = None,
        *,
        columns: Sequence[str] | None = None,
        queries: Sequence[str] | None = None,
        max_bytes_ratio: float = MAX_BYTES_RATIO,
        timezone: str | None = None,
        spark: SparkSession | None = None,
        workers: int | None = None,
        progress: Progress | None = None,
        repair: bool | None = None,
        associated: AssociatedRequest | None = None,
        memory: MemoryLike = DEFAULT_MEMORY,
    ) -> BuildReport[Self]:
        """Build the indexes that are missing, beside the data, in one commit.

        The data files are not touched.  Files that have all of it are not read again,
        so a second call is cheap, and a call after an append indexes the new files.
        Files that are gone are forgotten, and packs that have become many are merged.

        Args:
            indexes: by column, a kind's name, a spec, or a list of them, such as
                ``{"city": "bitmap", "price": ["bloom", BitSliced()]}``.  Every column
                gets min/max statistics too: ``"*"`` stands for every column not
                named, and is ``"minmax"`` unless it is said; ``{"*": None}`` is no
                statistics of the others, ``{"city": None}`` none of this one.  The
                table remembers what it was asked.  None is all that it was given
                before (``refresh_indexes``), and on a table without indexes lets the
                advisor choose: it measures candidates on a few files (``advise``),
                and the report's ``advice`` says what it took and why.
            columns: the columns to choose for; by default all that have an order.
            queries: a workload to choose by, as conditions or whole SELECTs.
            max_bytes_ratio: the cap for the choice: the bytes of all indexes of the
                table together, as a part of the data's bytes.
            timezone: the time zone of the session that asks the queries.
            spark: a session whose executors do the work; None is a process pool here.
            workers: how many processes, without Spark; by default one a core.
            progress: called with the number of tasks done and of all tasks.
            repair: whether present indexes are checked, and built again where they
                are damaged.  None checks what is cheap to know: whether packs are there
                with their size and, on a local disk, whether their directories are
                whole.  True reads every index byte, False nothing.
            associated: attributes of joined tables to index as columns of this one,
                by the names that they get: ``{"c_region": sx.via("lo_custkey",
                customer, "c_custkey", "c_region")}``.  ``indexes`` may name them, and
                they get a ``"bitmap"`` otherwise.  Conditions on them leave out files
                until the joined table changes; ``refresh_indexes`` builds them anew.
            memory: what each worker may take, in bytes or as ``"2GB"``; at least 300
                MB.  Columns that are too large for it are read in pieces.  A kind that
                takes more is left out of such a file, and the report says so; a build
                with the memory that it takes builds it.

        Returns:
            What was built; its ``table`` has the new indexes.

        Raises:
            TableError: there is no such table any more.
            PredicateError: a column does not exist, or a query cannot be read.
            UnsupportedTypeError: a column cannot have an index of that kind.
            UnknownIndexError: there is no such kind.
            AdviceError: there is nothing to choose by, or indexes were named as well.
            BuildError: a column cannot be associated: its key is there twice, or the
                joined table has more than 10,000,000 rows.  Or ``memory`` is no amount
                of memory.

        >>> report = table.build_indexes({"price": "bit_sliced"}, workers=1)
        >>> report.table.plan("price BETWEEN 2 AND 3").count()
        2
        """
        return built(
            type(self),
            self.refresh(),
            indexes,
            AdviceRequest(columns, queries, max_bytes_ratio, timezone),
            spark=spark,
            workers=workers,
            progress=progress,
            repair=repair,
            associated=associated,
            memory=memory,
        )

    def refresh_indexes(
        self,
        *,
        spark: SparkSession | None = None,
        workers: int | None = None,
        progress: Progress | None = None,
        repair: bool | None = None,
        memory: MemoryLike = DEFAULT_MEMORY,
    ) -> BuildReport[Self]:
        """Bring the indexes that the table has up to date with its files.

        New, changed and damaged files get the indexes that the table was given so
        far, named or chosen.  Associated columns whose joined table has changed are
        built anew.  Files that are gone are forgotten.  Nothing is chosen
        anew.  One commit has all of it.  ``build_indexes`` tells the arguments.
        (``refresh`` lists the files again, and builds nothing.)

        Raises:
            TableError: there is no such table any more.
            BuildError: ``memory`` is no amount of memory.

        >>> table.refresh_indexes(workers=1).unchanged
        2
        """
        report = refresh(
            self.refresh(),
            runner=runner_of(spark, workers),
            progress=progress,
            repair=repair,
            memory=memory_bytes(memory),
        )
        return _reported(type(self), "refresh of indexes", report)

    def drop_indexes(
        self,
        *,
        columns: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
    ) -> Self:
        """Forget indexes, in one commit; the table without them.

        Args:
            columns: only the indexes of these columns.
            kinds: only the indexes of these kinds; ``"minmax"`` is the statistics.

        Raises:
            TableError: there is no such table any more.
            PredicateError: a column does not exist.
            UnknownIndexError: there is no such kind.

        >>> [info.kind for info in table.drop_indexes(kinds=["bitmap"]).indexes]
        ['minmax', 'minmax']
        """
        left = drop(self.refresh(), columns=columns, kinds=kinds)
        return told(type(self), "drop of indexes", left)

    def compact_indexes(
        self, *, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES
    ) -> Self:
        """Merge small packs of indexes into few large ones, in one commit.

        Builds merge packs where there are many of one size.  This call merges all that
        are not large, and rewrites those that are hardly in use.  The data files are
        not read, and answers stay the same.  A pack that cannot be read, or fails a
        check, stays as it is, and the ``notes`` of the returned table name it.  The old
        packs stay on disk for readers of older commits.

        Args:
            max_files: the most data files in a pack.
            max_bytes: the number of bytes at which a pack is closed.

        Raises:
            TableError: there is no such table any more.

        >>> table.compact_indexes().notes
        ()
        """
        merged, notes = merge(self.refresh(), max_files=max_files, max_bytes=max_bytes)
        return told(type(self), "merge of packs", merged.noted(notes))


def built(
    handle: type[HandleT],
    state: TableState,
    indexes: Request | None,
    request: AdviceRequest,
    *,
    spark: SparkSession | None,
    workers: int | None,
    progress: Progress | None,
    repair: bool | None,
    associated: AssociatedRequest | None = None,
    memory: MemoryLike = DEFAULT_MEMORY,
) -> BuildReport[HandleT]:
    """Build the indexes of a table as it is now; see ``Table.build_indexes``."""
    runner = runner_of(spark, workers)
    report = build_advised(
        state,
        indexes,
        request,
        runner=runner,
        progress=progress,
        repair=repair,
        associated=associated,
        memory=memory_bytes(memory),
    )
    return _reported(handle, "build", report)


def _reported(
    handle: type[HandleT], action: str, report: BuildReport[TableState]
) -> BuildReport[HandleT]:
    table = told(handle, action, report.table, report)
    return cast("BuildReport[HandleT]", replace(report, table=table))
