"""``Table``, the handle that users hold."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import pyarrow as pa

from skipindex.advice import MAX_BYTES_RATIO, Advice, advise
from skipindex.advice.advised_build import AdviceRequest, build_advised
from skipindex.advice.derived import propose_derived
from skipindex.api.calls import log_action, needs_spark, runner_of, warn_once
from skipindex.api.checks import (
    check_cache,
    check_indexes,
    check_ratio,
    check_retention,
    check_session,
    check_workers,
    check_zone,
    names_of,
)
from skipindex.api.clustering import Clustering
from skipindex.api.progress import ProgressLike, followed
from skipindex.api.removal import RemovalReport, remove
from skipindex.build.associated.request import AssociatedRequest
from skipindex.build.builder import BuildReport, drop, refresh
from skipindex.build.column_requests import Request
from skipindex.build.memory import MemoryLike, memory_bytes
from skipindex.build.merge import merge
from skipindex.build.tiers import MAX_BYTES, MAX_FILES
from skipindex.errors import LayoutError, PredicateError, TableError
from skipindex.expressions import Predicate
from skipindex.layout.quality import Quality, layout_quality
from skipindex.layout.workload.workload import Workload
from skipindex.log import CommitInfo, Snapshot, commit, history
from skipindex.log.exclusive import DECLARED
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.planner.plan import Plan, plan_files
from skipindex.planner.stages.derived_partitions import derivation
from skipindex.planner.stages.pack_cache import CacheSession
from skipindex.rewrite.expiry import retention_record
from skipindex.rewrite.optimize import (
    OptimizeOptions,
    OptimizeReport,
    layout_to_declare,
)
from skipindex.rewrite.selection.target import CUBE_SIZE, RATIO
from skipindex.rewrite.vacuum import VacuumReport, vacuum
from skipindex.rewrite.verify_table import TableReport, verify
from skipindex.table import (
    ColumnInfo,
    Derived,
    FileEntry,
    Status,
    TableState,
    difference_from_log,
    parts_of_time,
    status_of,
)
from skipindex.table.status import IndexInfo, indexes_of

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import SparkSession

AnyPredicate: TypeAlias = "str | Predicate | SparkColumn"


@dataclass(frozen=True, slots=True, repr=False)
class Table:
    """The files of a table and their indexes, as they were when it was opened.

    Immutable.  A call that changes the stored table looks at it anew first, and
    returns it as it is afterwards, or has it in the ``table`` of its report.
    ``open_table`` opens one.

    Args:
        state: what the package itself works with; it may change in any release.

    >>> table = sx.open_table(path)
    >>> table
    Table('...', 2 files)
    """

    state: TableState

    def __repr__(self) -> str:
        return f"Table({self.folder!r}, {len(self)} files)"

    def __len__(self) -> int:
        return len(self.state)

    @property
    def folder(self) -> str:
        """Where the table is, as a path or URI."""
        return self.state.folder

    @property
    def paths(self) -> list[str]:
        """The paths of the data files, relative to the table.

        >>> table.paths
        ['part-0.parquet', 'part-1.parquet']
        """
        return self.state.paths

    @property
    def files(self) -> list[FileEntry]:
        """The data files with their sizes and times, in the order of their paths."""
        return self.state.files

    @property
    def columns(self) -> list[ColumnInfo]:
        """The columns in Spark's order: those of the files, then the partitions.

        >>> [column.name for column in table.columns]
        ['city', 'price']
        """
        return self.state.columns

    @property
    def schema(self) -> pa.Schema:
        """The columns of the files, as Arrow types."""
        return self.state.schema

    @property
    def n_bytes(self) -> int:
        """The size of all data files, in bytes."""
        return self.state.n_bytes

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings about parts of the log that were ignored.

        >>> table.notes
        ()
        """
        return self.state.notes

    def refresh(self) -> Table:
        """The table as it is now.

        >>> len(table.refresh())
        2
        """
        return Table(self.state.refresh())

    def plan(
        self,
        predicate: AnyPredicate,
        *,
        timezone: str | None = None,
        case_sensitive: bool = False,
        kinds: Collection[str] | str | None = None,
        without: Collection[str] | str = (),
        limit: int | None = None,
        order_by: str | Sequence[str] | None = None,
        session: CacheSession | None = None,
        now: datetime | None = None,
    ) -> Plan:
        """The files that may hold a row for which ``predicate`` is TRUE.

        No other file holds one.  A file whose index is missing, stale, damaged or too
        new is read, and the plan says so.

        Args:
            predicate: a WHERE condition in Spark SQL, one built with ``col``, or a
                PySpark ``Column``.
            timezone: the time zone of the session that will read; without it,
                timestamps that are written without a zone prune nothing.  Its rules are
                those of ``zoneinfo``, and where Spark reads, those of its Java.
            case_sensitive: how column names are matched (``spark.sql.caseSensitive``).
            kinds: names of the index kinds that may be used (``"minmax"``,
                ``"bloom"`` …, ``"file_map"`` for the maps), and are always asked; by
                default all that there are, where asking them can be worth it.
            without: names of the kinds that may not be used.
            limit: so many matching rows are enough, so other files are not read.
            order_by: with ``limit``, the first rows in this order are wanted: ``"x"``,
                or a list such as ``["x DESC NULLS LAST", "y"]``.  Files are left out by
                the statistics of the first column.
            session: a ``skipindex.api.CacheSession``, which holds index bytes that were
                read for later plans; None is that of the process (``set_cache_bytes``).
            now: what ``now()`` stands for in SQL text and in a ``Column``, with a time
                zone; by default the clock.  ``current_date()``, and whole days of
                ``now() - INTERVAL 7 DAYS``, are those of ``timezone``.  The plan has
                literals for them (``Plan.moment``), so whenever it is read, the rows
                are those of this moment.

        Raises:
            PredicateError: it cannot be parsed, or names a column that is not there.
            PlanError: ``limit`` is no number of rows, ``order_by`` is no order,
                ``timezone`` is none, or ``now`` has no time zone.
            UnknownIndexError: ``kinds`` or ``without`` names a kind that there is not.

        >>> table.plan("price < 4").paths
        ['part-0.parquet']
        """
        check_zone(timezone)
        check_cache(session)
        plan = plan_files(
            predicate,
            table=self.state,
            timezone=timezone,
            case_sensitive=case_sensitive,
            kinds=kinds,
            without=without,
            limit=limit,
            order_by=order_by,
            session=session,
            now=now,
        )
        for reason in (*plan.table.notes, *plan.evaluation.reader.notes):
            warn_once(plan.table.folder, reason)
        return plan

    plan_files = plan
    """The same call under the name of the function."""

    @property
    def indexes(self) -> Sequence[IndexInfo]:
        """The indexes that the table has, by column, in the table's order.

        >>> [(info.column, info.kind, info.files) for info in table.indexes]
        [('city', 'minmax', 2), ('city', 'bitmap', 2), ('price', 'minmax', 2)]
        """
        return indexes_of(self.state)

    def _repr_html_(self) -> str:
        return self.status()._repr_html_()

    def status(self) -> Status:
        """What the table is made of, what indexes it has, and what is missing.

        No index is read; ``verify`` does that.

        >>> table.status().fresh
        True
        """
        return status_of(self.state)

    def history(self) -> list[CommitInfo]:
        """The commits that are there, the newest first: what wrote each, and when.

        Older ones are deleted, as ``declare_retention`` tells.  One that is damaged
        has a note.

        >>> [commit.operation for commit in table.history()]
        ['build']
        """
        return history(self.state.location)

    def verify(
        self,
        *,
        spark: SparkSession | None = None,
        workers: int = 1,
        progress: ProgressLike | None = None,
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
            progress: as for ``build_indexes``; it counts parts of index files.

        Raises:
            TableError: there is no such table any more.
            BuildError: a worker process was killed, or Spark gave a task up.
            EngineError: Spark is not installed.

        >>> table.verify().ok
        True
        """
        check_workers(workers)
        is_here = spark is None and workers <= 1
        runner = None if is_here else runner_of(spark, workers)
        unit = "parts" if spark is None else "tasks"
        with followed(progress, "checking", unit) as count:
            return verify(self.state, runner=runner, progress=count)

    def advise(
        self,
        *,
        columns: Sequence[str] | None = None,
        queries: Sequence[str] | None = None,
        max_bytes_ratio: float = MAX_BYTES_RATIO,
        timezone: str | None = None,
        progress: ProgressLike | None = None,
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
            progress: as for ``build_indexes``; the parts of the work count files,
                columns and questions.

        Raises:
            AdviceError: the cap is no number above 0, or no query can be asked here.
            PredicateError: a column does not exist, or a query cannot be read.
            UnsupportedTypeError: a named column cannot have an index.

        >>> advice = table.advise(queries=["city = 'Rome'"], max_bytes_ratio=1)
        >>> [choice.name for choice in advice.columns]
        ['city']
        """
        check_ratio(max_bytes_ratio)
        check_zone(timezone)
        with followed(progress, "sampling"):
            return advise(
                self.state,
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
        asked = [queries] if isinstance(queries, str) else queries
        return layout_quality(self.state, asked, columns=names_of(columns), spark=spark)

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
        progress: ProgressLike | None = None,
        repair: bool | None = None,
        associated: AssociatedRequest | None = None,
        memory: MemoryLike | None = None,
    ) -> BuildReport[Table]:
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
            workers: how many processes, without Spark; by default one a core, and this
                one alone for less than 32 MB of files.
            progress: True for a bar on stderr, or plain lines where that is no
                terminal; or a function that is called with a
                ``skipindex.api.types.Progress``, from the beginning on: the part that
                is at work, how many files are done and of how many, the rate, and the
                time left.  Spark counts tasks.
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
                MB.  None is half of the machine's memory divided by the workers, at
                most 4 GB each.  What takes more, a kind or all of a column, is not
                indexed in such a file: the report says what it takes, and a build with
                that much builds it.

        Returns:
            What was built; its ``table`` has the new indexes.

        Raises:
            TableError: there is no such table any more.
            PredicateError: a column does not exist, or a query cannot be read.
            UnsupportedTypeError: a column cannot have an index of that kind, or no
                column that is named can have one.
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
            self.state.refresh(),
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
        progress: ProgressLike | None = None,
        repair: bool | None = None,
        memory: MemoryLike | None = None,
    ) -> BuildReport[Table]:
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
        runner = runner_of(spark, workers)
        with followed(progress, unit=_unit(spark)) as count:
            report = refresh(
                self.state.refresh(),
                runner=runner,
                progress=count,
                repair=repair,
                memory=memory_bytes(memory),
            )
        return _built("refresh of indexes", report)

    def drop_indexes(
        self,
        *,
        columns: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
    ) -> Table:
        """Forget indexes, in one commit; the table without them.

        Readers of older commits may still use their bytes, which ``vacuum`` frees once
        the retention is over, and ``vacuum(purge=True)`` at once.

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
        left = drop(
            self.state.refresh(), columns=names_of(columns), kinds=names_of(kinds)
        )
        return changed("drop of indexes", left)

    def remove_indexes(self, *, dry_run: bool = False) -> RemovalReport:
        """Take away every byte that skipindex stores beside the data of this table.

        That is the folder ``_skipindex``: indexes, statistics, all commits, and with
        them what was declared, such as a layout or derived partitions.  No data file is
        touched, and every reader finds the same rows before and after.  A plan of
        before then reads files whose indexes are gone whole.

        Where only the log says which files count, after ``optimize``, ``append`` or an
        overwrite, it refuses until ``vacuum`` has shown them.

        Args:
            dry_run: only tell what would be deleted.

        Raises:
            TableError: rows of the table stand in hidden files, or the newest commit
                is damaged or of a newer version.
            CommitConflictError: another writer committed meanwhile.

        >>> report = table.remove_indexes()
        >>> report.n_bytes > 0
        True
        >>> table.refresh().indexes
        ()
        """
        report = remove(self.state.location, dry_run=dry_run)
        log_action("removal of indexes", self.folder, report)
        return report

    def compact_indexes(
        self, *, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES
    ) -> Table:
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
        merged, notes = merge(
            self.state.refresh(), max_files=max_files, max_bytes=max_bytes
        )
        return changed("merge of packs", merged.noted(notes))

    def declare_derived(
        self,
        columns: Mapping[str, str] | None = None,
        *,
        timezone: str | None = None,
        field: str | None = None,
        format: str | None = None,  # noqa: A002 - as in Spark's own functions
    ) -> Table:
        """Declare what the partition columns were made of, in one commit.

        ``{"year": "year(ctime)", "month": "month(ctime)"}`` lets a condition on
        ``ctime`` leave out folders.  It must be true of every file: no file is read to
        check it.

        Args:
            columns: by partition column, a function of one column of the files in
                SQL; an empty mapping takes the declaration back.
            timezone: the time zone of the session that wrote the files; without it
                the wall clock of a timestamp is only known to a day.
            field: a column of times that the partition columns named year, month, day
                and hour hold the parts of; ``columns`` tells of others.
            format: of the texts of ``field``, such as ``"yyyy-MM-dd HH:mm:ss"``, if it
                is a column of strings.

        Raises:
            PredicateError: nothing is declared, there is no such partition column, or
                the function cannot be judged.
            TableError: there is no such table any more.

        >>> table.declare_derived({}).status().derived
        {}
        """
        state = self.state
        if field is None and (columns is None or format is not None):
            raise PredicateError(
                "nothing to declare (accepted: columns, as a mapping, or field, with a "
                "format if it is of strings)"
            )
        parts: Mapping[str, str] = {}
        if field is not None:
            names = [partition.name for partition in state.partitions]
            parts = parts_of_time(field, format, names, state.schema)
        columns = {**parts, **(columns or {})}
        declared = Derived(columns, timezone)
        trial = state.with_derived(declared)
        for name, text in columns.items():
            derivation(trial, name, text)

        def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
            record = declared.to_json() if columns else None
            return base.manifest, replace(base.properties, derived=record)

        commit(self.state.location, change, operation="set_derived")
        return changed("declaration", self.state.with_derived(None))

    def propose_derived(self, *, timezone: str = "UTC") -> tuple[Derived, ...]:
        """What partition columns may have been made of, to declare one if it is true.

        The rows of up to 16 files, from all parts of the table, are compared with
        their folders: by year, month, day and hour, and by dates.  What is proposed is
        true of these.  Whether it is of all files, the writer knows, so nothing is
        declared: ``declare_derived(one.columns, timezone=one.timezone)`` does that.

        Args:
            timezone: of the session that wrote the files.

        Returns:
            One for each column whose values are those of the folders.  None for a table
            that has a declaration, or whose sample lies in one folder.

        >>> table.propose_derived()
        ()
        """
        return propose_derived(self.state, timezone)

    def declare_exclusive(self, exclusive: bool = True) -> Table:  # noqa: FBT001, FBT002
        """Record in the log that the files of the table change only through skipindex.

        From then on ``open_table(…, trust="log")`` opens the table without listing it.
        The folder is listed once, and must hold just the files that the newest commit
        names.  No file is read.

        The record ends, with a warning, at a commit or vacuum that finds a file that
        another writer has added, overwritten or deleted.  Nothing finds it before.

        Args:
            exclusive: False takes the record back.

        Raises:
            TableError: the folder has other files than the log names, empty partition
                folders or a ``_metadata`` file, or a part of the log is damaged.

        >>> table.declare_exclusive().status().exclusive
        True
        >>> table.declare_exclusive(False).status().exclusive
        False
        """

        def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
            mark = None
            if exclusive:
                mark = DECLARED
                if why := difference_from_log(self.state.location, base):
                    raise TableError(
                        f"the log of {self.folder!r} cannot stand for a listing: {why} "
                        "(accepted: a plain folder of Parquet files, each of them "
                        "indexed, as build_indexes leaves it)"
                    )
            return base.manifest, replace(base.properties, exclusive=mark)

        commit(self.state.location, change, operation="set_exclusive")
        return changed("declaration", self.state.refresh())

    def declare_retention(self, retention: timedelta | None) -> Table:
        """Record how long the table keeps what is superseded, for readers who need it.

        ``vacuum`` goes by it.  Of old commits and indexes, appends delete what is over
        too, at every 64th commit, without listing the data.  A reader who opened the
        table before that reads files whose indexes are gone whole, so its rows are
        right, and one who asks for a commit that is gone gets an error.

        Args:
            retention: 0 keeps the newest commit, and those of the last hour; None is
                the default of 7 days.

        Raises:
            TableError: the retention is negative or longer than a century.

        >>> from datetime import timedelta
        >>> day = table.declare_retention(timedelta(days=1))
        >>> day.status().retention_seconds
        86400.0
        >>> day.declare_retention(None).status().retention_seconds
        """
        check_retention(retention)
        record = retention_record(retention)

        def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
            return base.manifest, replace(base.properties, retention=record)

        commit(self.state.location, change, operation="set_retention")
        return changed("declaration", self.state.refresh())

    def declare_layout(self, layout: Clustering) -> Table:
        """Record how rows are laid out from now on, in one commit.

        ``append`` lays new rows out so, and ``optimize`` clusters the others.  No file
        is rewritten now.

        Args:
            layout: what to change of the table's own layout.

        Raises:
            LayoutError: the layout is impossible.
            PredicateError: a column does not exist.
            TableError: there is no such table any more.

        >>> city = table.declare_layout(sx.Clustering(by=["city"], curve="zorder"))
        >>> city.status().layout["curve"]
        'zorder'
        """
        state = self.state.refresh()
        given = _given(layout, "declare_layout")
        if isinstance(given.get("cluster_by"), Workload):
            raise LayoutError(
                "declare_layout reads no rows, so it takes no Workload to cluster by "
                "(accepted: a list of columns, or None for the layout that the table "
                "has; optimize takes a Workload)"
            )
        asked = OptimizeOptions(**given)
        declared = layout_to_declare(state, asked)

        def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
            return base.manifest, base.properties | declared

        commit(state.location, change, operation="set_layout")
        return changed("declaration", state.refresh())

    def optimize(
        self,
        spark: SparkSession,
        *,
        layout: Clustering | Workload | None = None,
        predicate: str | Predicate | None = None,
        mode: str = "incremental",
        cube_size: int = CUBE_SIZE,
        size_ratio: float = RATIO,
        budget: int | str | None = None,
        indexes: Request | None = None,
        into: str | os.PathLike[str] | None = None,
        in_place: bool = False,
        publish: bool = False,
        options: Mapping[str, str] | None = None,
        progress: ProgressLike | None = None,
    ) -> OptimizeReport[Table]:
        """Rewrite files so that more of them can be skipped; the rows stay the same.

        With columns to cluster by, or a table that was written with them, rows are
        clustered within each partition; without, files below the target size are
        joined.  The new files, with their indexes, and the end of the old ones are
        one commit.  ``vacuum`` deletes the old files later; until then, a reader who
        lists the folder, and does not know of commits, reads those and not the new
        ones.

        Args:
            spark: a classic session.
            layout: what to change of the table's own layout, as a ``Clustering``; or
                the ``Workload`` that the rows are to be clustered for, which chooses
                columns and curve on a sample of them, and is recorded.
            predicate: the partitions to rewrite, as a condition that compares
                partition columns with literals.
            mode: ``"incremental"`` clusters what is new, together with what lies
                where that does, is not sealed and not too heavy for it; ``"full"``
                clusters all, unless one run has done just that.
            cube_size: bytes from which on files that were clustered together are
                sealed: incremental runs do not rewrite them.  A larger cube is better
                separated, and costs more to grow.
            size_ratio: how many times as heavy as the files that it is merged with a
                group of clustered files may be, for an incremental run to rewrite it.
                Larger reads fewer files and rewrites more bytes; 0 leaves all that is
                clustered, and infinity merges all that is not sealed.
            budget: the most bytes that this run rewrites, such as ``"10GB"``; an
                incremental one.  New files come first, and what is left goes to old
                ones: to those whose rewriting lowers the overlap most for each byte,
                and that the queries read most if the layout was chosen for a
                workload.  Runs with nothing new make a badly clustered table better,
                one part after the other, and come to an end.
            indexes: the indexes of the new files, as for ``build_indexes``; by default
                those that the table has.
            into: write an optimized copy of the whole table to this folder, which
                does not exist or is empty, and leave the table alone.
            in_place: rewrite a table that skipindex has not written.
            publish: show the new files to readers who list the folder too, and delete
                the old ones, as ``vacuum(retention=timedelta(0))`` does afterwards.
                Queries that are running then, on tables opened before, may fail.
            options: for Spark's Parquet writer, such as ``compression``.
            progress: as for ``build_indexes``, of the rows and the new indexes.

        Raises:
            TableError: the table cannot be rewritten, or not in place.
            LayoutError: the layout or the budget is impossible, or the table has a
                layout that this version does not know.
            PredicateError: ``predicate`` asks for more than partition values.
            UnsupportedTypeError: a column cannot have an index of that kind.
            UnknownIndexError: there is no such kind.
            CommitConflictError: another writer changed the same files meanwhile.
            PlanError: a setting of the session would change values.
            EngineError: Spark is not installed.

        >>> layout = sx.Clustering(by=["city"])
        >>> report = table.optimize(spark, layout=layout, in_place=True)
        >>> report.table.plan("price < 4").count(spark)
        3
        """
        with needs_spark():
            from skipindex.spark.writers.optimize import optimize  # noqa: PLC0415
        check_session(spark)
        check_indexes(indexes)
        given = _given(layout, "optimize")
        if publish and into is not None:
            raise LayoutError(
                "into= writes a copy, which every reader sees (accepted: no publish)"
            )
        by = given.get("cluster_by")
        workload = given.pop("cluster_by") if isinstance(by, Workload) else None
        asked = OptimizeOptions(
            where=predicate,
            mode=mode,
            cube_size=cube_size,
            ratio=size_ratio,
            budget=budget,
            indexes=indexes,
            in_place=in_place,
            **given,
        )
        with followed(progress, unit="tasks") as count:
            report = optimize(
                spark,
                self.state,
                asked,
                workload=workload,
                into=into,
                options=options,
                progress=count,
            )
        if publish:
            vacuum(self.state, retention=timedelta(0))
            report = replace(report, table=report.table.refresh())
        return optimized(report)

    def vacuum(
        self,
        *,
        retention: timedelta | None = None,
        dry_run: bool = False,
        purge: bool = False,
    ) -> VacuumReport:
        """Publish rewritten files, and delete what no commit has needed for a while.

        That is: data files that were replaced, hidden copies of them, packs,
        manifests and commits that are superseded, and what was left by a writer that
        was killed.  No file that holds rows of the table is deleted, and none that is
        not ours.

        **It deletes at once.** ``vacuum(dry_run=True)`` has the same report, with the
        paths in ``deleted``, and changes nothing.  Readers who list the folder while
        files are published may see rows twice.

        Args:
            retention: how long readers may hold on to a table that they have opened;
                None is what ``declare_retention`` has recorded, or 7 days.  Below the
                duration of the longest query or write, those may fail.
            dry_run: only tell what would be published and deleted.
            purge: leave no value and no path of data that is gone: packs that hold
                more than what is in use are written anew, and nothing stays for
                readers that opened the table before (the retention is 0).

        Raises:
            TableError: the retention is negative, or the newest commit cannot be
                read.

        >>> table.vacuum(dry_run=True).deleted
        ()
        """
        check_retention(retention)
        report = vacuum(self.state, retention=retention, dry_run=dry_run, purge=purge)
        log_action("vacuum", self.folder, report)
        return report


def _given(layout: Clustering | Workload | None, call: str) -> dict[str, Any]:
    """What a layout says, of a table whose rows are there."""
    given = Clustering.of(layout).given()
    if "balance" in given:
        raise LayoutError(
            f"{call} takes no balance (accepted: one size of files, in rows or bytes)"
        )
    return given


def built(
    state: TableState,
    indexes: Request | None,
    request: AdviceRequest,
    *,
    spark: SparkSession | None,
    workers: int | None,
    progress: ProgressLike | None,
    repair: bool | None,
    associated: AssociatedRequest | None = None,
    memory: MemoryLike | None = None,
) -> BuildReport[Table]:
    """Build the indexes of a table as it is now; see ``Table.build_indexes``."""
    check_indexes(indexes)
    check_ratio(request.max_bytes_ratio)
    check_zone(request.timezone)
    runner = runner_of(spark, workers)
    with followed(progress, unit=_unit(spark)) as count:
        report = build_advised(
            state,
            indexes,
            request,
            runner=runner,
            progress=count,
            repair=repair,
            associated=associated,
            memory=memory_bytes(memory),
        )
    return _built("build", report)


def _unit(spark: SparkSession | None) -> str:
    """What a build counts."""
    return "files" if spark is None else "tasks"


def changed(action: str, state: TableState, outcome: object = None) -> Table:
    """Log what was done to a table, by default the commit; the handle of the table."""
    log_action(action, state.folder, outcome or f"commit {state.snapshot.version}")
    return Table(state)


def optimized(report: OptimizeReport[TableState]) -> OptimizeReport[Table]:
    """The report of a run of optimize, with the table as a handle."""
    handle: Any = changed("optimize", report.table, report)
    return cast("OptimizeReport[Table]", replace(report, table=handle))


def _built(action: str, report: BuildReport[TableState]) -> BuildReport[Table]:
    handle: Any = changed(action, report.table, report)
    return cast("BuildReport[Table]", replace(report, table=handle))
