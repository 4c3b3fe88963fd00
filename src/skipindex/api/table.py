"""``Table``, the handle that users work with."""

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
    check_session,
    check_workers,
    check_zone,
    names_of,
    retention_in,
)
from skipindex.api.clustering import Clustering
from skipindex.api.progress import ProgressLike, followed
from skipindex.api.removal import RemovalReport, remove
from skipindex.api.usage import UsageReport, usage_of
from skipindex.build.builder import BuildReport, drop, refresh
from skipindex.build.column_requests import Request
from skipindex.build.memory import MemoryLike, memory_bytes
from skipindex.build.merge import merge
from skipindex.build.tiers import MAX_BYTES, MAX_FILES
from skipindex.errors import LayoutError, PredicateError, TableError
from skipindex.expressions import Predicate
from skipindex.layout.quality import Quality, layout_quality
from skipindex.layout.workload.workload import Workload
from skipindex.log import Change, CommitInfo, Snapshot, history
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.planner.plan import Plan, plan_files, record_plan
from skipindex.planner.rows.by_keys import Keys
from skipindex.planner.rows.located import Located
from skipindex.planner.stages.derived_partitions import derivation
from skipindex.planner.stages.pack_cache import DEFAULT_SESSION, CacheSession
from skipindex.rewrite.expiry import retention_record
from skipindex.rewrite.optimize import (
    OptimizeOptions,
    OptimizeReport,
    layout_to_declare,
)
from skipindex.rewrite.selection.target import CUBE_SIZE, RATIO
from skipindex.rewrite.vacuum import VacuumReport, vacuum
from skipindex.rewrite.verify_table import TableReport, verify
from skipindex.source import commit, difference_from_log
from skipindex.source.folder.exclusive import DECLARED
from skipindex.storage.disk_cache import warm
from skipindex.storage.file_system.names import PACKS
from skipindex.table import (
    ColumnInfo,
    Derived,
    FileEntry,
    Status,
    TableState,
    parts_of_time,
    status_of,
)
from skipindex.table.queries import OF_LOG, is_of_log, process_recording
from skipindex.table.status import IndexInfo, indexes_of

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import SparkSession

AnyPredicate: TypeAlias = "str | Predicate | SparkColumn"


@dataclass(frozen=True, slots=True, repr=False)
class Table:
    """The files of a table and their indexes, at the time when it was opened.

    Immutable; ``open_table`` opens one.  A call that changes the stored table reads its
    newest state first.  It returns the changed table, or has it in the ``table`` of its
    report.

    Args:
        state: internal state, which may change in any release.

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
        """The folder of the table, as a path or URI."""
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
        return [column.as_shown() for column in self.state.columns]

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
        """The newest state of the table.

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
        """The files that can hold a row for which ``predicate`` is TRUE.

        No other file holds such a row.  A file whose index is missing, stale, damaged
        or too new is read, and the plan says so.

        Args:
            predicate: a WHERE condition in Spark SQL, one built with ``col``, or a
                PySpark ``Column``.
            timezone: the time zone of the session that will read.  Without it,
                conditions on timestamps without a zone skip nothing.  Its rules are
                those of ``zoneinfo``, or of Java if Spark reads.
            case_sensitive: how column names are matched (``spark.sql.caseSensitive``).
            kinds: names of the index kinds that may be used (``"minmax"``,
                ``"bloom"`` …, ``"file_map"`` for file maps), and are always probed; by
                default all existing kinds, if probing them can pay.
            without: names of the kinds that may not be used.
            limit: the number of matching rows that are needed; files that are not
                needed for them are not read.
            order_by: the order in which the first ``limit`` rows are needed: ``"x"``,
                or a list such as ``["x DESC NULLS LAST", "y"]``.  Files are
                skipped by the statistics of the first column.
            session: a ``skipindex.api.CacheSession``, which keeps index bytes in memory
                for later plans; None is that of the process (``set_cache_bytes``).
            now: the time for ``now()`` in SQL text and in a ``Column``, with a time
                zone; by default the current time.  ``current_date()`` and days in
                ``now() - INTERVAL 7 DAYS`` are those of ``timezone``.  The plan has
                literals for them (``Plan.moment``), so it always returns the rows of
                this moment.

        Raises:
            PredicateError: ``predicate`` cannot be parsed, or a column does not exist.
            PlanError: ``limit`` is not a number of rows, ``order_by`` is not an order,
                ``timezone`` does not exist, or ``now`` has no time zone.
            UnknownIndexError: a kind in ``kinds`` or ``without`` does not exist.

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
        if (recording := process_recording()) is not None:
            record_plan(plan, recording)
        return plan

    plan_files = plan
    """The same call under the name of the function."""

    def locate(
        self, keys: Any, column: str, *, session: CacheSession | None = None
    ) -> Located:
        """Find the files and rows that have one of many keys in a column.

        No row with one of the keys is left out.  A merge or a delete by keys need only
        read these files.

        Args:
            keys: the keys, of the column's type: an Arrow array, or what ``pa.array``
                takes.  NULL equals no key.  There may be millions.
            column: the name of the column.
            session: a cache for index parts; by default that of ``cache_bytes``.

        Returns:
            Record batches, one for each file, with the columns ``key``, ``file`` (the
            path relative to the table) and ``row`` (its position in the file, from 0).
            Of a file without a row-level index that may hold some of the keys there is
            one row, where ``key`` and ``row`` are NULL.  ``read`` returns the rows
            themselves, in the order of the keys.

        Raises:
            PredicateError: the column does not exist, is a partition column or has a
                type that no index has, or the keys are of another type.

        >>> table.locate(["Oslo", "Paris"], "city").read_all().to_pylist()
        [{'key': 'Oslo', 'file': 'part-0.parquet', 'row': 1}, ...]
        >>> table.locate(["Paris", "Oslo"], "city").read(["price"])["price"].to_pylist()
        [4, 2, 3]
        """
        info = self.state.find(column)
        asked = Keys.of(keys, info, self.state)
        session = session or DEFAULT_SESSION
        return Located(self.state, info, asked, session)

    @property
    def indexes(self) -> Sequence[IndexInfo]:
        """The indexes of the table, by column, in the order of the table's columns.

        >>> [(info.column, info.kind, info.files) for info in table.indexes]
        [('city', 'minmax', 2), ('city', 'bitmap', 2), ('price', 'minmax', 2)]
        """
        return indexes_of(self.state)

    def _repr_html_(self) -> str:
        return self.status()._repr_html_()

    def status(self) -> Status:
        """The files, indexes and layout of the table, and which indexes are missing.

        Reads no index; ``verify`` reads them.

        >>> table.status().fresh
        True
        """
        return status_of(self.state)

    def usage(
        self, *, queries: str = OF_LOG, days: float = 7.0, verify: int = 5
    ) -> UsageReport:
        """What the recorded queries skipped, or would skip, and which skip nothing.

        Sessions with ``skipindex.enabled=observe`` skip nothing and record what they
        would skip; ``record_queries`` and ``skipindex.queries`` record other queries.

        Args:
            queries: ``"log"`` is the record beside the table; ``"log:FOLDER"`` another.
            days: how old the queries are at most.
            verify: the number of conditions, the newest, that are planned now.  Their
                plans are compared with the rows of up to ten files each.

        Raises:
            TableError: ``queries`` names no record, or a number is out of range.

        >>> table.usage().n_queries
        0
        """
        if not is_of_log(queries):
            raise TableError(
                f"not a record of queries: {queries!r} (accepted: 'log', or "
                "'log:FOLDER')"
            )
        if not (0 < days < float("inf") and verify >= 0):
            raise TableError(
                f"no report for days={days!r} and verify={verify!r} (accepted: a "
                "number of days above 0, and of conditions from 0 on)"
            )
        return usage_of(self.state, queries=queries, days=days, verify=verify)

    def history(self) -> list[CommitInfo]:
        """The existing commits, the newest first, with operation and time.

        Older commits are deleted after the retention (``declare_retention``).  A
        damaged commit has a note.

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
        """Check every index byte, and list what is damaged, stale or orphaned.

        The newest state of the table is read.  Data files are listed and not read
        (``Plan.verify`` checks a plan against the data).  Nothing is changed:
        ``refresh_indexes(repair=True)`` rebuilds damaged and stale indexes, and
        ``vacuum`` deletes orphans.

        Args:
            spark: a session whose executors read the indexes.
            workers: the number of processes that read them, without ``spark``.
            progress: as for ``build_indexes``; it counts parts of index files.

        Raises:
            TableError: the table no longer exists.
            BuildError: a worker process was killed, or a task of Spark failed.
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

    def warm(
        self,
        *,
        columns: Sequence[str] | None = None,
        progress: ProgressLike | None = None,
    ) -> int:
        """Read the indexes into the cache on disk; return the bytes of indexes.

        Later first plans, also in other processes, read only the log of an object
        store.  For tables on disks, set the environment variable
        ``SKIPINDEX_CACHE_DIR`` or call ``skipindex.api.set_cache_dir``.

        Args:
            columns: read only the indexes of these columns.
            progress: as for ``build_indexes``; it counts MB.

        Raises:
            StorageError: the cache has no folder or is too small, or the store cannot
                be read.
            PredicateError: a column does not exist.

        >>> from skipindex.api import set_cache_dir
        >>> set_cache_dir(f"{path}-cache")
        >>> table.warm(columns=["city"]) > 0
        True
        >>> set_cache_dir(None)
        """
        state, names = self.state, names_of(columns)
        chosen = {
            stored
            for name in names or ()
            for stored in state.spellings(state.find(name))
        }
        wanted = [
            (f"{PACKS}/{pack.name}", (blob.offset, blob.length))
            for pack in state.snapshot.manifest.packs
            for blob in pack.blobs
            if names is None or blob.meta.column in chosen
        ]
        with followed(progress, "reading", "MB") as count:
            warm(state.location, wanted, count)
        return sum(length for _, (_, length) in wanted)

    def advise(
        self,
        *,
        columns: Sequence[str] | None = None,
        queries: Sequence[str] | None = None,
        max_bytes_ratio: float = MAX_BYTES_RATIO,
        timezone: str | None = None,
        progress: ProgressLike | None = None,
    ) -> Advice:
        """The indexes that skip most for their bytes, with the measurements.

        Nothing is written.  All rows of a few files are read, in the needed columns.

        Args:
            columns: the columns that may get an index; by default all with an order.
            queries: a workload, as WHERE conditions, or SELECT statements if
                ``skipindex[sql]`` is installed; ``;`` separates several in one text.
                Only columns and conditions of the workload get indexes.  A query that
                is given twice counts twice.  ``"log"`` is the queries that are recorded
                beside the table, and ``"log:FOLDER"`` those in a folder.
            max_bytes_ratio: the maximum bytes of the indexes, as a fraction of the
                data's bytes.
            timezone: the time zone of the session that will query; as for ``plan``.
            progress: as for ``build_indexes``; the parts of the work count files,
                columns and questions.

        Raises:
            AdviceError: the cap is not a number above 0, or no query can be evaluated
                on this table.
            PredicateError: a column does not exist, or a query cannot be parsed.
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
            queries: conditions to compare with the ideal layout, in which matching
                rows fill files of average size that have no other rows.
            columns: the columns to measure; by default all with statistics.
            spark: a session that counts the matching rows exactly, by reading them;
                without it the indexes count them, as exactly as they can.

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
        memory: MemoryLike | None = None,
    ) -> BuildReport[Table]:
        """Build the missing indexes beside the data, in one commit.

        The data files are not changed.  Files that already have the indexes are not
        read again, so a second call is cheap, and a call after an append indexes only
        the new files.  Deleted files leave the log, and small packs are merged.

        Args:
            indexes: by column, a kind's name, a spec, or a list of them, such as
                ``{"city": "bitmap", "price": ["bloom", BitSliced()]}``.  Every column
                gets min/max statistics too: ``"*"`` stands for every column not
                named, by default ``"minmax"``; ``{"*": None}`` turns statistics off
                for them, and ``{"city": None}`` for one column.  The table stores the
                request.  None repeats earlier requests (``refresh_indexes``).  On a
                table without indexes, None lets the advisor choose: it measures
                candidates on a few files (``advise``), and the report's ``advice``
                has its choice and reasons.
            columns: the columns to choose for; by default all with an order.
            queries: a workload to choose by, as for ``advise``.
            max_bytes_ratio: the cap for the choice: the bytes of all indexes of the
                table together, as a fraction of the data's bytes.
            timezone: the time zone of the session that runs the queries.
            spark: a session whose executors build; None builds in local processes.
            workers: the number of processes without Spark; by default one for each
                core, or only this process for less than 32 MB of files.
            progress: True for a bar on stderr, or for plain lines if it is not a
                terminal.  Or a function that gets a ``skipindex.api.types.Progress``:
                the running part of the work, the number of files that are done, their
                total, the rate, and the remaining time.  Spark counts tasks.
            repair: whether existing indexes are checked, and rebuilt if damaged.  None
                makes cheap checks: whether packs exist with their size and, on a local
                disk, whether their directories are valid.  True reads every index
                byte, False nothing.
            memory: the maximum memory of each worker, in bytes or as ``"2GB"``; at
                least 300 MB.  None is half of the machine's memory divided by the
                workers, at most 4 GB each.  If a kind or a column needs more for a
                file, it is not indexed there: the report says how much it needs.

        Returns:
            The report; its ``table`` has the new indexes.

        Raises:
            TableError: the table no longer exists.
            PredicateError: a column does not exist, or a query cannot be parsed.
            UnsupportedTypeError: a column cannot have an index of that kind, or no
                named column can have one.
            UnknownIndexError: the kind does not exist.
            AdviceError: the advisor has nothing to choose by, or indexes were named.
            BuildError: ``memory`` is not an amount of memory.

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
        """Bring the indexes of the table up to date with its files, in one commit.

        New, changed and damaged files get the indexes that were requested or chosen
        before.  Deleted files leave the log.  No index kinds are chosen again.
        ``build_indexes`` documents the arguments.  (``refresh`` lists the files
        again, and builds nothing.)

        Raises:
            TableError: the table no longer exists.
            BuildError: ``memory`` is not an amount of memory.

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
        """Drop indexes, in one commit; return the table without them.

        Later refreshes do not build them again, also on new files; a build that names
        the columns does.  Statistics that are dropped alone come back with the next
        refresh of a column that keeps another index.  Readers of older commits can
        still use the bytes of what was dropped.  ``vacuum`` deletes these after the
        retention, and ``vacuum(purge=True)`` immediately.

        Args:
            columns: drop only the indexes of these columns.
            kinds: drop only the indexes of these kinds; ``"minmax"`` is the statistics.

        Raises:
            TableError: the table no longer exists.
            PredicateError: a column does not exist.
            UnknownIndexError: the kind does not exist.

        >>> [info.kind for info in table.drop_indexes(kinds=["bitmap"]).indexes]
        ['minmax', 'minmax']
        """
        left = drop(
            self.state.refresh(), columns=names_of(columns), kinds=names_of(kinds)
        )
        return changed("drop of indexes", left)

    def remove_indexes(self, *, dry_run: bool = False) -> RemovalReport:
        """Delete every byte that skipindex stores beside the data of this table.

        This is the folder ``_skipindex``: indexes, statistics, all commits, and
        declarations such as a layout or derived partitions.  No data file is changed,
        and every reader finds the same rows before and after.  Earlier plans then read
        all rows of files whose indexes are gone.

        If only the log determines which files belong to the table, after
        ``optimize``, ``append`` or an overwrite, the call refuses until ``vacuum`` has
        published them.

        Args:
            dry_run: only report what would be deleted.

        Raises:
            TableError: rows of the table are in hidden files, or the newest commit is
                damaged or of a newer version.
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

        Builds merge many packs of one size.  This call merges all packs that are not
        large, and rewrites packs that are mostly unused.  The data files are not read,
        and results do not change.  A pack that cannot be read, or fails a check, is not
        merged, and the ``notes`` of the returned table name it.  The old packs stay on
        disk for readers of older commits.

        Args:
            max_files: the maximum number of data files in a pack.
            max_bytes: the number of bytes at which a pack is closed.

        Raises:
            TableError: the table no longer exists.

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
        """Declare what the partition columns were computed from, in one commit.

        With ``{"year": "year(ctime)", "month": "month(ctime)"}`` a condition on
        ``ctime`` skips folders.  The declaration must hold for every file: no file is
        read to check it.

        Args:
            columns: by partition column, a function of one column of the files, in
                SQL; an empty mapping removes the declaration.
            timezone: the time zone of the session that wrote the files; without it,
                the local time of a timestamp is known only to a day.
            field: a column of times, whose parts are in the partition columns named
                year, month, day and hour; ``columns`` declares others.
            format: the format of ``field`` if it is a column of strings, such as
                ``"yyyy-MM-dd HH:mm:ss"``.

        Raises:
            PredicateError: nothing is declared, the partition column does not exist,
                or the function cannot be evaluated.
            TableError: the table no longer exists.

        >>> table.declare_derived({}).status().derived
        {}
        """
        state = self.state
        if field is None and (columns is None or format is not None):
            raise PredicateError(
                "nothing to declare (accepted: columns, as a mapping, or field, with "
                "a format for strings)"
            )
        parts: Mapping[str, str] = {}
        if field is not None:
            names = [partition.name for partition in state.partitions]
            parts = parts_of_time(field, format, names, state.schema)
        columns = {**parts, **(columns or {})}
        declared = Derived(columns, timezone)
        trial = state.reopened(derived=declared)
        for name, text in columns.items():
            derivation(trial, name, text)

        def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
            record = None
            if columns:
                record = declared.to_json() | {"places": state.places_in(declared)}
            return base.manifest, replace(base.properties, derived=record)

        commit(self.state.location, change, operation="set_derived")
        return changed("declaration", self.state.reopened(derived=None))

    def propose_derived(self, *, timezone: str = "UTC") -> tuple[Derived, ...]:
        """Propose what the partition columns may have been computed from.

        The rows of up to 16 files, from all parts of the table, are compared with
        their folders: by year, month, day and hour, and by dates.  A proposal holds for
        these files.  Only the writer knows whether it holds for all, so nothing is
        declared: call ``declare_derived(one.columns, timezone=one.timezone)``.

        Args:
            timezone: the time zone of the session that wrote the files.

        Returns:
            A proposal for each column that fits the folders.  Nothing for a table with
            a declaration, or if all files of the sample are in one folder.

        >>> table.propose_derived()
        ()
        """
        return propose_derived(self.state, timezone)

    def declare_exclusive(self, exclusive: bool = True) -> Table:  # noqa: FBT001, FBT002
        """Declare that only skipindex changes the files of the table.

        From then on ``open_table(…, trust="log")`` opens the table without listing it.
        The folder is listed once now, and must have exactly the files that the newest
        commit names.  No file is read.

        The declaration ends, with a warning, if a commit or vacuum finds a file that
        another writer has added, overwritten or deleted.  Until then such changes go
        unnoticed.

        Args:
            exclusive: False removes the declaration.

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
                        f"the log of {self.folder!r} cannot replace a listing: {why} "
                        "(accepted: a plain folder of Parquet files that are all "
                        "indexed; build_indexes indexes them)"
                    )
            return base.manifest, replace(base.properties, exclusive=mark)

        return self._declared("set_exclusive", change)

    def declare_retention(self, retention: timedelta | str | None) -> Table:
        """Declare how long superseded files, indexes and commits stay.

        ``vacuum`` deletes older ones.  Appends also delete old commits and indexes, at
        every 64th commit, without listing the data.  If indexes of an opened table are
        deleted, its plans read all rows of those files, so results stay right.

        Args:
            retention: a timedelta, or a text such as ``"12h"``; 0 keeps the newest
                commit, and those of the last hour; None is the default of 7 days.

        Raises:
            TableError: the retention is no time, negative, or longer than a century.

        >>> day = table.declare_retention("1d")
        >>> day.status().retention_seconds
        86400.0
        >>> day.declare_retention(None).status().retention_seconds
        """
        record = retention_record(retention_in(retention))

        def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
            return base.manifest, replace(base.properties, retention=record)

        return self._declared("set_retention", change)

    def declare_layout(self, layout: Clustering) -> Table:
        """Declare the layout of rows, in one commit.

        ``append`` uses it for new rows, and ``optimize`` for all others.  No file is
        rewritten now.

        Args:
            layout: the changes to the table's layout.

        Raises:
            LayoutError: the layout is impossible.
            PredicateError: a column does not exist.
            TableError: the table no longer exists.

        >>> city = table.declare_layout(sx.Clustering(by=["city"], curve="zorder"))
        >>> city.status().layout["curve"]
        'zorder'
        """
        state = self.state.refresh()
        given = _given(layout, "declare_layout")
        if isinstance(given.get("cluster_by"), Workload):
            raise LayoutError(
                "declare_layout cannot choose columns for a Workload, because it "
                "reads no rows (accepted: a list of columns, or None for the table's "
                "layout; optimize takes a Workload)"
            )
        asked = OptimizeOptions(**given)
        declared = layout_to_declare(state, asked)

        def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
            return base.manifest, base.properties | declared

        return self._declared("set_layout", change)

    def _declared(self, operation: str, change: Change) -> Table:
        known = self.state.snapshot
        done = commit(self.state.location, change, operation=operation, known=known)
        return changed("declaration", self.state.refresh(done))

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

        If there are columns to cluster by, in ``layout`` or in the table's layout, rows
        are clustered within each partition.  Otherwise files below the target size are
        joined.  One commit replaces the old files by the new ones, with their indexes.
        Readers that list the folder read the old files until ``vacuum`` publishes the
        new ones and deletes the old.  Of a Delta table, a commit in Delta's log
        replaces the files for all its readers, without a change of rows; of an Iceberg
        table, one in its catalog.

        Args:
            spark: a classic session.
            layout: the changes to the table's layout, as a ``Clustering``.  Or a
                ``Workload``, which chooses columns and curve on a sample of the rows;
                the table stores the result.
            predicate: the partitions to rewrite, as a condition that compares
                partition columns with literals.
            mode: ``"incremental"`` clusters new files, together with clustered files
                that they overlap, that are not sealed and not too heavy
                (``size_ratio``).  ``"full"`` clusters all files, unless one run has
                already clustered them all.
            cube_size: bytes at which a group of files that were clustered together is
                sealed: incremental runs do not rewrite it.  Queries read fewer files
                of larger cubes, but these take more bytes to grow.
            size_ratio: an incremental run rewrites a group of clustered files if it has
                at most this many times the bytes of the files that it is merged with.
                A larger ratio rewrites more bytes, and queries read fewer files.  0
                rewrites no clustered file, and infinity all that are not sealed.
            budget: the maximum bytes that this incremental run rewrites, such as
                ``"10GB"``.  New files come first.  The rest goes to old files where a
                rewrite lowers the overlap most for each byte.  Runs without new files
                improve a badly clustered table part by part, and come to an end.
            indexes: the indexes of the new files, as for ``build_indexes``; by default
                those of the table.
            into: write an optimized copy of the table to this folder, which must not
                exist or be empty, and do not change the table.
            in_place: rewrite a folder that skipindex has not written.
            publish: show the new files to all readers and delete the old ones
                immediately, as ``vacuum(retention=timedelta(0))`` does.  Running
                queries on tables that were opened before may fail.
            options: options of Spark's Parquet writer, such as ``compression``.
            progress: as for ``build_indexes``, of the rows and the new indexes.

        Raises:
            TableError: the table cannot be rewritten, or not in place.
            LayoutError: the layout or the budget is impossible, or the table has a
                layout that this version does not know.
            PredicateError: ``predicate`` compares more than partition columns.
            UnsupportedTypeError: a column cannot have an index of that kind.
            UnknownIndexError: the kind does not exist.
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
                "into= writes a copy that every reader sees (accepted: no publish)"
            )
        if publish and self.state.source.has_versions:
            raise LayoutError(
                f"the readers of {self.state.source.format} see the new files after "
                "its commit, and its own vacuum deletes the old ones (accepted: no "
                "publish)"
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
        retention: timedelta | str | None = None,
        dry_run: bool = False,
        purge: bool = False,
    ) -> VacuumReport:
        """Publish rewritten files, and delete files that are no longer needed.

        Deleted are replaced data files and their hidden copies, superseded packs,
        manifests and commits, and leftover files of writers that were killed.  Files
        that hold rows of the table, and files of other tools, are never deleted.

        **It deletes immediately.** ``vacuum(dry_run=True)`` has the same report, with
        the paths in ``deleted``, and changes nothing.  Readers that list the folder
        while files are published may see rows twice.

        Args:
            retention: how long replaced files stay for readers that have opened the
                table, as a timedelta or a text such as ``"7d"``; None is the declared
                time (``declare_retention``), or 7 days.  If it is shorter than the
                longest query or write, these may fail.
            dry_run: only report what would be published and deleted.
            purge: remove every value and path of deleted data.  Packs that also have
                unused data are rewritten, and the retention is 0.

        Raises:
            TableError: the retention is no time or negative, or the newest commit
                cannot be read.

        >>> table.vacuum(dry_run=True).deleted
        ()
        """
        keep = retention_in(retention)
        report = vacuum(self.state, retention=keep, dry_run=dry_run, purge=purge)
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
