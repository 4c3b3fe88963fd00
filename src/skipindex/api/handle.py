"""``Table``, the handle that users hold, and how it is opened."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from skipindex.api.clustering import Clustering
from skipindex.api.extras import needs_spark
from skipindex.api.indexed import IndexedTable
from skipindex.api.journal import tell
from skipindex.api.planning import AnyTable, located
from skipindex.api.reading import told
from skipindex.build.column_requests import Request
from skipindex.build.runners import Progress
from skipindex.errors import LayoutError, TableError
from skipindex.expressions import Predicate
from skipindex.layout.workload.workload import Workload
from skipindex.planner.engine import engine_type
from skipindex.planner.stages.derived_partitions import derivation
from skipindex.rewrite.optimize import OptimizeOptions, OptimizeReport
from skipindex.rewrite.selection.target import CUBE_SIZE
from skipindex.rewrite.vacuum import RETENTION, VacuumReport, vacuum
from skipindex.storage.file_system.uris import StorageOptions
from skipindex.storage.log import Snapshot, commit
from skipindex.storage.log.exclusive import DECLARED
from skipindex.storage.manifest import Manifest
from skipindex.storage.properties import TableProperties
from skipindex.table import Derived, TableState, Trust, open_state, unlike_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class Table(IndexedTable):
    """The files of a table and their indexes, as they were when it was opened.

    Immutable.  A call that changes the stored table looks at it anew first, and
    returns it as it is afterwards, or has it in the ``table`` of its report.

    >>> table = sx.open_table(path)
    >>> table
    Table('...', 2 files)
    """

    def declare_derived(
        self, columns: Mapping[str, str], *, timezone: str | None = None
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

        Raises:
            PredicateError: there is no such partition column, or the function cannot
                be judged.
            TableError: there is no such table any more.

        >>> table.declare_derived({}).derived.columns
        {}
        """
        declared = Derived(dict(columns), timezone)
        trial = self.with_derived(declared)
        for name, text in columns.items():
            derivation(trial, name, text)

        def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
            record = declared.to_json() if columns else None
            return base.manifest, replace(base.properties, derived=record)

        commit(self.location, change, operation="set_derived")
        return told(Table, "declaration", self.with_derived(None))

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

        >>> table.declare_exclusive().snapshot.is_exclusive
        True
        >>> table.declare_exclusive(False).snapshot.is_exclusive
        False
        """

        def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
            mark = None
            if exclusive:
                mark = DECLARED
                if why := unlike_log(self.location, base):
                    raise TableError(
                        f"the log of {self.folder!r} cannot stand for a listing: {why} "
                        "(accepted: a plain folder of Parquet files, each of them "
                        "indexed, as build_indexes leaves it)"
                    )
            return base.manifest, replace(base.properties, exclusive=mark)

        commit(self.location, change, operation="set_exclusive")
        return told(Table, "declaration", self.refresh())

    def optimize(
        self,
        spark: SparkSession,
        *,
        layout: Clustering | Workload | None = None,
        predicate: str | Predicate | None = None,
        mode: str = "incremental",
        cube_size: int = CUBE_SIZE,
        indexes: Request | None = None,
        into: str | os.PathLike[str] | None = None,
        in_place: bool = False,
        options: Mapping[str, str] | None = None,
        progress: Progress | None = None,
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
            layout: what to change of the table's own layout, as a ``Clustering``.
            predicate: the partitions to rewrite, as a condition that compares
                partition columns with literals.
            mode: ``"incremental"`` clusters what is new, together with what is not
                sealed; ``"full"`` clusters all, unless one run has done just that.
            cube_size: bytes from which on files that were clustered together are
                sealed: incremental runs do not rewrite them.  A larger cube is better
                separated, and costs more to grow.
            indexes: the indexes of the new files, as for ``build_indexes``; by default
                those that the table has.
            into: write an optimized copy of the whole table to this folder, which
                does not exist or is empty, and leave the table alone.
            in_place: rewrite a table that skipindex has not written.
            options: for Spark's Parquet writer, such as ``compression``.
            progress: called with the number of index tasks done and of all.

        Raises:
            TableError: the table cannot be rewritten, or not in place.
            LayoutError: the layout is impossible.
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
        given = Clustering.of(layout).given()
        if "balance" in given or isinstance(given.get("cluster_by"), Workload):
            raise LayoutError(
                "optimize takes no balance, and no Workload to cluster by (accepted: a "
                "list of columns, or None for the layout that the table has)"
            )
        asked = OptimizeOptions(
            where=predicate,
            mode=mode,
            cube_size=cube_size,
            indexes=indexes,
            in_place=in_place,
            **given,
        )
        report = optimize(
            spark, self, asked, into=into, options=options, progress=progress
        )
        return optimized(report)

    def vacuum(
        self,
        *,
        retention: timedelta = RETENTION,
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
            retention: how long readers may hold on to a table that they have opened.
                Below the duration of the longest query or write, those may fail.
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
        report = vacuum(self, retention=retention, dry_run=dry_run, purge=purge)
        tell("vacuum", self.folder, report)
        return report


def open_table(
    table: AnyTable,
    *,
    schema: pa.Schema | StructType | None = None,
    partition_types: Mapping[str, pa.DataType] | None = None,
    derived: Derived | None = None,
    plain: bool = False,
    storage_options: StorageOptions | None = None,
    trust: Trust = "listing",
) -> Table:
    """The table below a folder: any directory of Parquet files that Spark reads.

    Its files are those of ``spark.read.parquet(path)``: the files in the folder, or,
    if there are folders named ``k=v``, those in such folders.

    Args:
        table: a path or URI; a ``Table`` is returned as it is.
        schema: the columns, as for ``spark.read.schema``: an Arrow schema or a PySpark
            ``StructType``.  A file that lacks one of them holds NULL.  By default they
            are those of one footer, as in Spark.
        partition_types: types of hive partition columns, by name, where the
            reader does not let Spark infer them.
        derived: what the partition columns were made of; by default what
            ``Table.declare_derived`` has committed.
        plain: take the folder for one of Parquet files, even if the log of Delta,
            Iceberg, Hudi or another format in it says which files count.
        storage_options: what the object store of an ``s3:``, ``gs:`` or ``abfss:`` URI
            is opened with, as obstore calls it, such as ``access_key_id``, ``region``
            and ``endpoint``.  By default they come from the environment.  Workers get
            them; no message has their values.
        trust: what says which files there are.  With ``"listing"`` every plan is
            right, also if others write to the folder.  With ``"log"`` it is right as
            long as the files change only through skipindex, and none is listed: opening
            takes as many requests for a million files as for ten.  The price: a file
            that another writer adds is not seen, one that it overwrites may be skipped
            by what was known of it, and one that it deletes is an error of the reader.
            The log must say that the table is written so (``write_table`` with
            ``exclusive=True``, or ``Table.declare_exclusive``).  Where a part of the
            log is damaged, or a vacuum is at work, the files are listed.

    Raises:
        TableError: there is no such folder, or no Parquet file in it, or Spark refuses
            its folders, or it is a table of another format, or ``trust`` is
            ``"log"`` and the log does not name all files, or a storage option is
            unknown or refused.

    >>> [column.name for column in sx.open_table(path).columns]
    ['city', 'price']
    """
    place = located(table, storage_options)
    if isinstance(place, Table):
        return place
    if schema is not None and not isinstance(schema, pa.Schema):
        engine = engine_type(schema)
        if engine is None:
            raise TableError(
                f"no schema: {schema!r} (accepted: an Arrow schema or a PySpark "
                "StructType)"
            )
        schema = engine.arrow_schema(schema)
    return Table.of(
        open_state(
            place,
            schema=schema,
            partition_types=partition_types,
            derived=derived,
            plain=plain,
            trust=trust,
        )
    )


def optimized(report: OptimizeReport[TableState]) -> OptimizeReport[Table]:
    """The report of a run of optimize, with the table as a handle."""
    handle = told(Table, "optimize", report.table, report)
    return cast("OptimizeReport[Table]", replace(report, table=handle))
