"""The public calls that run on Spark or on this machine, as the caller says."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from skipindex.advice import MAX_BYTES_RATIO
from skipindex.advice.build import Wish, build_wished
from skipindex.indexes._merge import merge
from skipindex.indexes._refresh import refresh
from skipindex.indexes._runners import LocalRunner, Progress, Runner
from skipindex.indexes._tiers import MAX_BYTES, MAX_FILES
from skipindex.indexes.build import BuildReport, Request, drop
from skipindex.planner._derived import derivation
from skipindex.storage.log import Snapshot, commit
from skipindex.table import Derived, Table, open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AnyTable = Table | str | os.PathLike[str]


def build_indexes(
    table: AnyTable,
    indexes: Request | None = None,
    *,
    columns: Sequence[str] | None = None,
    queries: Sequence[str] | None = None,
    max_bytes_ratio: float = MAX_BYTES_RATIO,
    timezone: str | None = None,
    spark: SparkSession | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    plain: bool = False,
    repair: bool | None = None,
) -> BuildReport:
    """Build the indexes that are missing, beside the data, in one commit.

    The data files are not touched.  Files that have all of it are not read again,
    so a second call is cheap, and a call after an append indexes the new files.
    Files that are gone are forgotten, and packs that have become many are merged.

    Args:
        table: a ``Table``, a path or a URI: any directory of Parquet files.
        indexes: by column, a kind's name, a spec, or a list of them, such as
            ``{"city": "bitmap", "price": ["bloom", BitSliced()]}``.  Every column
            gets min/max statistics too: ``"*"`` stands for every column not named,
            and is ``"minmax"`` unless it is said; ``{"*": None}`` is no statistics
            of the others, ``{"city": None}`` none of this one.  The table remembers
            what it was asked.  None is all that it was given before
            (``refresh_indexes``), and on a table without indexes lets the advisor
            choose: it measures candidates on a few files (``advise``), and the
            report's ``advice`` says what it took and why.
        columns: to choose for; by default all that have an order.
        queries: a workload to choose by, as conditions or whole SELECTs.
        max_bytes_ratio: cap of all indexes of the table together, as a part of the
            data's bytes; to choose by.
        timezone: of the queries' session; as for ``plan_files``.
        spark: a session whose executors do the work; None is a process pool here.
        workers: how many processes, without Spark; by default one a core.
        progress: called with the number of tasks done and of all tasks.
        plain: as for ``open_table``.
        repair: whether indexes that are there are looked at, and built again where
            they are damaged.  None looks at what is cheap to know: whether packs are
            there with their size and, on a local disk, whether their directories are
            whole.  True reads every index byte, False nothing.

    Returns:
        What was built; its ``table`` has the new indexes.

    Raises:
        TableError: there is no such table.
        PredicateError: a column does not exist, or a query cannot be read.
        UnsupportedTypeError: a column cannot have an index of that kind.
        UnknownIndexError: there is no such kind.
        AdviceError: there is nothing to choose by, or indexes were named as well.
    """
    opened = open_table(table, plain=plain).refresh()
    wish = Wish(columns, queries, max_bytes_ratio, timezone)
    return build_wished(
        opened,
        indexes,
        wish,
        runner=_runner(spark, workers),
        progress=progress,
        repair=repair,
    )


def refresh_indexes(
    table: AnyTable,
    *,
    spark: SparkSession | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    repair: bool | None = None,
) -> BuildReport:
    """Bring the indexes that a table has up to date with its files, in one commit.

    New, changed and damaged files get the indexes that the table was given so far,
    named or chosen; files that are gone are forgotten; nothing is chosen anew.
    (``Table.refresh()`` is something else: it lists the files again.)

    Args:
        table: a ``Table``, a path or a URI.
        spark: a session whose executors do the work; None is a process pool here.
        workers: how many processes, without Spark; by default one a core.
        progress: called with the number of tasks done and of all tasks.
        repair: as for ``build_indexes``.

    Raises:
        TableError: there is no such table.
    """
    opened = open_table(table).refresh()
    runner = _runner(spark, workers)
    return refresh(opened, runner=runner, progress=progress, repair=repair)


def _runner(spark: SparkSession | None, workers: int | None) -> Runner:
    if spark is not None:
        from skipindex.spark.build import SparkRunner  # noqa: PLC0415 (needs a JVM)

        return SparkRunner(spark)
    return LocalRunner.default() if workers is None else LocalRunner(workers)


def drop_indexes(
    table: AnyTable,
    *,
    columns: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
) -> Table:
    """Forget indexes, in one commit; the table without them.

    Args:
        table: a ``Table``, a path or a URI.
        columns: of these columns only.
        kinds: of these kinds only; ``"minmax"`` stands for the statistics.

    Raises:
        PredicateError: a column does not exist.
        UnknownIndexError: there is no such kind.
    """
    return drop(open_table(table).refresh(), columns=columns, kinds=kinds)


def merge_packs(
    table: AnyTable, *, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES
) -> Table:
    """Merge small packs into few large ones, in one commit; the table with them.

    Builds do this of themselves where packs become many; here all are merged that are
    not large, and those that are hardly in use.  The data files are not read,
    and answers stay the same.  A pack that cannot be read, or fails a check, stays as
    it is, and the table's ``notes`` name it.  The old packs stay on disk for readers
    of older commits.

    Args:
        table: a ``Table``, a path or a URI.
        max_files: how many data files a pack may hold.
        max_bytes: at how many bytes a pack is closed.

    Raises:
        TableError: there is no such table.
    """
    opened = open_table(table).refresh()
    merged, notes = merge(opened, max_files=max_files, max_bytes=max_bytes)
    return merged.noted(notes)


def set_derived(
    table: AnyTable, columns: Mapping[str, str], *, zone: str | None = None
) -> Table:
    """Declare what the partition columns were made of, in one commit; the table.

    ``{"year": "year(ctime)", "month": "month(ctime)"}`` lets a condition on ``ctime``
    leave out folders.  It must be true of every file: nobody reads them to see.

    Args:
        table: a ``Table``, a path or a URI.
        columns: by partition column, a function of one column of the files in SQL;
            an empty mapping takes the declaration back.
        zone: of the session that wrote the files; without it the wall clock of a
            timestamp is only known to a day.

    Raises:
        PredicateError: there is no such partition column, or the function cannot be
            judged.
        TableError: there is no such table.
    """
    declared = Derived(dict(columns), zone)
    opened = open_table(table).refresh()
    trial = opened.with_derived(declared)
    for name, text in columns.items():
        derivation(trial, name, text)

    def change(base: Snapshot) -> Snapshot:
        properties = {k: v for k, v in base.properties.items() if k != "derived"}
        if columns:
            properties["derived"] = declared.to_json()
        return Snapshot(base.version + 1, base.manifest, properties)

    commit(opened.location, change, operation="set_derived")
    return opened.with_derived(None)
