"""Functions that take a table by its handle, path or URI."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    TypeAlias,
    TypedDict,
    Unpack,
    cast,
    overload,
)
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from skipindex.advice import MAX_BYTES_RATIO
from skipindex.advice.advised_build import AdviceRequest
from skipindex.api.calls import needs_spark, warn_once
from skipindex.api.checks import (
    check_frame,
    check_indexes,
    check_place,
    check_session,
    check_sidecar,
    check_types,
    check_workers,
    check_zone,
    no_table,
)
from skipindex.api.clustering import Clustering
from skipindex.api.maintenance.policy import Budget, BudgetLike, Policy, PolicyLike
from skipindex.api.maintenance.report import MaintainReport, summed
from skipindex.api.maintenance.run import maintain_all
from skipindex.api.progress import ProgressLike, followed
from skipindex.api.table import AnyPredicate, Table, built, changed
from skipindex.build.builder import BuildReport
from skipindex.build.column_requests import Request
from skipindex.build.memory import MemoryLike
from skipindex.errors import (
    EngineError,
    LayoutError,
    TableError,
    first_line,
    kind_of,
)
from skipindex.layout.workload.workload import Workload
from skipindex.planner.before_listing import Question, open_needed
from skipindex.planner.engine import engine_type
from skipindex.planner.plan import WITHOUT_SPARK, Plan
from skipindex.planner.stages.pack_cache import CacheSession
from skipindex.rewrite.selection.attributes import JoinedAttribute
from skipindex.source import CatalogFolders, Trust
from skipindex.source.folder.batch import Batch
from skipindex.source.formats import is_metadata
from skipindex.source.iceberg import version_of
from skipindex.source.source import NEWEST, AtVersion
from skipindex.storage.disk_cache import DIR_SETTING, use_setting
from skipindex.storage.file_system.location import Location, location_of
from skipindex.storage.file_system.sidecar import location_in, with_sidecar
from skipindex.storage.file_system.uris import StorageOptions
from skipindex.table import Derived, TableState, open_state
from skipindex.table.table import Options

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyiceberg.table import Table as IcebergTable
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from skipindex.spark.catalog import CatalogTable

AnyTable: TypeAlias = (
    "Table | Location | str | os.PathLike[str] | DeltaTable | IcebergTable"
)


class Opening(TypedDict, total=False):
    """The arguments of ``open_table`` by name, which other functions hand on."""

    schema: pa.Schema | StructType | None
    partition_types: Mapping[str, pa.DataType] | None
    derived: Derived | None
    plain: bool
    storage_options: StorageOptions | None
    trust: Trust
    sidecar: str | os.PathLike[str] | None
    version: int | None


def place_of(
    table: AnyTable,
    spark: SparkSession | None = None,
    question: Question | None = None,
    **given: Unpack[Opening],
) -> TableState | Location:
    """A table that is open, or where it is, with the options of its file system.

    One that is named as in the catalog of a session is opened, with the catalog's
    schema.  Without ``spark`` that is the active session, if there is one.  With a
    ``question``, a table of given columns is opened as far as that needs it.

    Raises:
        TableError: it is no table, an option is unknown or refused, or the table is
            open already.
    """
    if isinstance(table, Table):
        for name, value in given.items():
            # Not 0, which is a version.
            is_default = value is False or value in (None, {}, "listing")
            if not is_default:
                raise TableError(
                    f"{table!r} is open and keeps its {name} (accepted: a path or URI)"
                )
        return table.state
    options, sidecar = given.get("storage_options"), given.get("sidecar")
    check_sidecar(sidecar)
    how = _how(given)
    if isinstance(table, str):
        table = _of_iceberg_catalog(table)
    if (known := _of_library(table, given.get("version"))) is not None:
        folder, how["version"] = known
        return open_state(location_in(folder, options, sidecar), **how)
    if not isinstance(table, Location | str | os.PathLike):
        raise no_table(table)
    named = _catalog_table(table, options, spark)
    if named is not None:
        place = with_sidecar(named.location, sidecar, options)
        return _of_catalog(replace(named, location=place), question, how)
    if not isinstance(table, Location):
        check_place(table)
        if is_metadata(os.fspath(table)):
            folder, _, _ = os.fspath(table).rpartition("/metadata/")
            at = how.get("version", NEWEST)
            how["version"] = replace(at, metadata=os.fspath(table))
            return open_state(location_in(folder, options, sidecar), **how)
    location = location_in(table, options, sidecar)
    if (needed := _needed(location, question, how)) is not None:
        return needed
    return open_state(location, **how) if how.keys() - {"plain"} else location


class _How(TypedDict, total=False):
    """What ``open_state`` takes by name."""

    schema: pa.Schema | None
    partition_types: Mapping[str, pa.DataType] | None
    derived: Derived | None
    plain: bool
    trust: Trust
    folders: CatalogFolders | None
    version: AtVersion


def _how(given: Opening) -> _How:
    """The arguments that are not None, as ``open_state`` takes them."""
    check_types(given.get("partition_types"), given.get("derived"))
    version = given.get("version")
    is_number = hasattr(version, "__index__") and not isinstance(version, bool)
    if version is not None and not (is_number and 0 <= version < 1 << 63):
        raise TableError(
            f"not a version: {version!r} (accepted: the number of a version of Delta, "
            "or of a snapshot of Iceberg)"
        )
    known: dict[str, Any] = {
        **given,
        "schema": _arrow_schema(given.get("schema")),
        "version": None if version is None else AtVersion(version),
    }
    names = _How.__annotations__.keys() & known
    given_names = {k for k in names if known[k] is not None or k == "trust"}
    return cast("_How", {name: known[name] for name in given_names})


def _of_catalog(
    named: CatalogTable, question: Question | None, how: _How
) -> TableState:
    """A table of the catalog, opened as this says."""
    if how.get("schema") is None:
        how["schema"] = named.schema
    if named.is_in_place:
        how["folders"] = named.folders
        how["derived"] = how.get("derived") or named.derived
    else:
        warn_once(
            named.location.plain_path(""),
            "the folders of its partitions are not named k=v, so the files below the "
            "folder are read, and its properties for derived partitions are ignored",
        )
    return _needed(named.location, question, how) or open_state(named.location, **how)


def is_in_catalog(spark: SparkSession, name: str) -> bool:
    """Whether a session's catalog has a table of this name in SQL; no file is listed.

    Raises:
        TableError: it is not of Parquet files, or a view, or not there.
    """
    return _named(spark, name) is not None


def table_of_catalog(
    spark: SparkSession,
    name: str,
    sidecar: str | os.PathLike[str] | None = None,
    *,
    insist: bool = True,
) -> Table:
    """The table of a session's catalog by its name in SQL, whatever folders there are.

    ``sidecar`` and ``insist`` are those of ``with_sidecar``.

    Raises:
        TableError: there is none of Parquet files, or it is a view.
    """
    named = _named(spark, name)
    if named is None:
        raise TableError(f"not a table name: {name!r} (accepted: such as 'db.events')")
    place = with_sidecar(named.location, sidecar, insist=insist)
    return Table(_of_catalog(replace(named, location=place), None, {}))


def _needed(
    location: Location, question: Question | None, how: _How
) -> TableState | None:
    """The table as far as a question needs it; None if it needs all."""
    schema = how.get("schema")
    if question is None or schema is None:
        return None
    options = Options(
        schema,
        derived=how.get("derived"),
        plain=how.get("plain", False),
        folders=how.get("folders"),
    )
    return open_needed(location, question, options)


def _catalog_table(
    table: AnyTable, options: StorageOptions | None, spark: SparkSession | None
) -> CatalogTable | None:
    """What the catalog of a session says of a table; None for a path."""
    is_name = isinstance(table, str) and not {"/", ":"} & set(table)
    if not is_name or Path(str(table)).exists():
        return None
    if spark is None and (sql := sys.modules.get("pyspark.sql")) is not None:
        spark = sql.SparkSession.getActiveSession()
    return None if spark is None else _named(spark, str(table), options)


def _named(
    spark: SparkSession, name: str, options: StorageOptions | None = None
) -> CatalogTable | None:
    """What the catalog of a session says of a name; None if it is none."""
    with needs_spark():
        from skipindex.spark.catalog import catalog_table  # noqa: PLC0415
    return catalog_table(spark, name, options)


def state_of(
    table: AnyTable,
    spark: SparkSession | None = None,
    question: Question | None = None,
    *,
    fresh: bool = False,
    **given: Unpack[Opening],
) -> TableState:
    """The table as it is, opened if it is not; ``fresh`` lists its files again.

    Raises:
        TableError: as for ``open_table``.
    """
    place = place_of(table, spark, question, **given)
    return open_state(place, plain=given.get("plain", False), fresh=fresh)


def _of_library(
    table: object, version: int | None = None
) -> tuple[str, AtVersion] | None:
    """The folder and the version of a table of another library; None for others."""
    library = sys.modules.get("pyiceberg.table")
    if library is not None and isinstance(table, library.Table):
        return table.location(), version_of(table, version)
    library = sys.modules.get("deltalake")
    if library is None or not isinstance(table, library.DeltaTable):
        return None
    if version is not None:
        raise TableError(f"{table!r} has its version (accepted: none beside it)")
    parts = urlsplit(uri := table.table_uri)
    place = unquote(parts.path) if parts.scheme == "file" else uri
    return place, AtVersion(table.version())


def _of_iceberg_catalog(name: str) -> str | IcebergTable:
    """The table of a catalog that pyiceberg knows, by name; other texts as they are."""
    catalog, _, table = name.partition(".")
    if "." not in table or {"/", ":"} & set(name) or Path(name).exists():
        return name
    try:
        from pyiceberg.catalog import load_catalog  # noqa: PLC0415 (of an extra)
        from pyiceberg.utils.config import Config  # noqa: PLC0415
    except ImportError:
        return name
    properties: Any = Config().get_catalog_config(catalog)
    if properties is None:
        return name
    try:
        return load_catalog(catalog, **properties).load_table(table)
    except Exception as error:
        raise TableError(
            f"pyiceberg's catalog {catalog!r} cannot load {table!r}: "
            f"{first_line(error)} (accepted: a table of it, or another path)"
        ) from error


def open_table(
    table: AnyTable,
    *,
    schema: pa.Schema | StructType | None = None,
    partition_types: Mapping[str, pa.DataType] | None = None,
    derived: Derived | None = None,
    plain: bool = False,
    storage_options: StorageOptions | None = None,
    trust: Trust = "listing",
    sidecar: str | os.PathLike[str] | None = None,
    version: int | None = None,
) -> Table:
    """Open a folder of Parquet files that Spark reads as a table, or one with a log.

    Its files are those of ``spark.read.parquet(path)``: the files in the folder, or the
    files in its partition folders named ``k=v``, if it has any.

    Args:
        table: a path or URI, or the name of a Parquet table such as ``"db.events"``
            in the catalog of the active Spark session.  The catalog then has the
            folder, the schema and the partitions, and other folders are not read.  If
            a partition is in a folder of another name, all files below the table's
            folder are read.  An existing path takes precedence over a name.  If it is
            a ``Table``, this very object is returned.  A ``DeltaTable`` of the library
            ``deltalake`` is its folder and its version.  An Iceberg table is one of
            the library ``pyiceberg``, the path of a file ``*.metadata.json``, or a
            name such as ``"prod.db.events"`` in a catalog that pyiceberg is configured
            for.
        schema: the columns, as for ``spark.read.schema``: an Arrow schema or a PySpark
            ``StructType``.  A file that lacks a column holds NULL.  By default the
            schema is that of one footer, as in Spark.
        partition_types: types of hive partition columns, by name, if the reader does
            not let Spark infer them.
        derived: what the partition columns were computed from; by default the
            properties of a catalog table, or else ``Table.declare_derived``.
        plain: read the folder as plain Parquet files, even if it has the log of Delta,
            Iceberg, Hudi or another format.  Rows that were deleted come back then.
        storage_options: options of obstore for an ``s3:``, ``gs:`` or ``abfss:`` URI,
            such as ``access_key_id``, ``region`` and ``endpoint``.  By default they
            come from the environment.  Workers get them; no message has their values.
        trust: the source of the list of files.  With ``"listing"`` every plan is right,
            also if other tools write to the folder.  With ``"log"`` nothing is listed,
            so opening takes as many requests for a million files as for ten.  Then
            only skipindex may write: a file that another writer adds is not read, one
            that it overwrites may be skipped wrongly, and one that it deletes is an
            error.  The table must be declared exclusive (``write_table`` with
            ``exclusive=True``, or ``Table.declare_exclusive``).  If a part of the log
            is damaged, the files are listed.
        sidecar: another folder, as a path or URI, for the indexes and the log: nothing
            is written to the table's own folder, which may be read-only.  One sidecar
            may serve many tables: each has a folder in it, named after the table's
            path or URI.  Every reader and writer of the table must pass the same
            sidecar.  ``append`` and ``Table.optimize`` refuse a table with a sidecar.
            ``storage_options`` apply to its store too.  None is ``_skipindex`` in the
            table's folder.
        version: a version of a Delta table, or the number of a snapshot of an Iceberg
            table; None is the newest one.

    A Delta table is read by its log (with the library ``deltalake``), an Iceberg table
    by its metadata (with ``pyiceberg``): its files and its columns are those of one
    version, without the rows that are deleted.  Its indexes stand in ``_skipindex`` in
    its folder, and serve each version that has the file.  ``append`` refuses it, and
    ``Table.optimize`` an Iceberg table without its catalog.  An open Iceberg table
    stays at its metadata: open it again after a commit.

    Raises:
        TableError: the folder does not exist or has no Parquet file, Spark refuses its
            folders, it is a table of a format that is not read, a Delta table has a
            feature that is not read, ``trust`` is ``"log"`` and the log does not name
            all files, a storage option is unknown or refused, the indexes in the
            sidecar are of another table, or the table has indexes in its own folder.

    >>> [column.name for column in sx.open_table(path).columns]
    ['city', 'price']
    """
    state = state_of(
        table,
        schema=schema,
        partition_types=partition_types,
        derived=derived,
        plain=plain,
        storage_options=storage_options,
        trust=trust,
        sidecar=sidecar,
        version=version,
    )
    return table if isinstance(table, Table) else Table(state)


def _arrow_schema(schema: pa.Schema | StructType | None) -> pa.Schema | None:
    if schema is None or isinstance(schema, pa.Schema):
        return schema
    engine = engine_type(schema)
    if engine is None:
        raise TableError(
            f"not a schema: {kind_of(schema)} (accepted: an Arrow schema or a PySpark "
            "StructType)"
        )
    return engine.arrow_schema(schema)


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
    progress: ProgressLike | None = None,
    repair: bool | None = None,
    memory: MemoryLike | None = None,
    **opening: Unpack[Opening],
) -> BuildReport[Table]:
    """Build the missing indexes beside the data, in one commit.

    ``open_table(table, **opening).build_indexes(indexes, …)`` does the same.
    ``Table.build_indexes`` documents the other arguments and the errors.

    >>> report = sx.build_indexes(path, {"price": "bit_sliced"}, workers=1)
    >>> report.files, report.table.plan("price > 4").count()
    (2, 1)
    """
    return built(
        state_of(table, spark, fresh=True, **opening),
        indexes,
        AdviceRequest(columns, queries, max_bytes_ratio, timezone),
        spark=spark,
        workers=workers,
        progress=progress,
        repair=repair,
        memory=memory,
    )


def maintain(
    table: AnyTable | Sequence[AnyTable],
    *,
    budget: BudgetLike = None,
    dry_run: bool = False,
    policy: PolicyLike = None,
    spark: SparkSession | None = None,
    workers: int | None = None,
    **opening: Unpack[Opening],
) -> MaintainReport:
    """Do what a table needs next, as far as a budget allows.

    The steps, in this order: index new files (``refresh_indexes``), merge small index
    files (``compact_indexes``), cluster new files (``optimize``), and under a budget
    old ones that overlap, choose indexes and layout again if the queries have changed,
    and delete old commits and indexes.  The report has the bytes that the recorded
    queries do not read any more.

    Without recorded queries (``skipindex.api.record_queries``), new files are indexed
    and clustered, and nothing is chosen again.  If there is nothing to do, nothing is
    committed.  Another writer may commit first: then a step is not done, and the next
    call does it.  A step that fails stops no other, and is ``failed`` in the report.

    Args:
        table: as for ``build_indexes``; or a list of tables, which share the budget.
        budget: the maximum that the call takes: such as ``"10min"``, ``"50GB"`` to read
            and write, or ``"10min,50GB"``.  Clustering stops between two parts, and the
            next call continues.  A build is not divided: if it does not fit, it is
            left.
        dry_run: only report the steps, with the bytes that each would read and write.
        policy: the limits, as a ``skipindex.api.types.Policy``, a mapping of its
            values, or the path of a TOML file.
        spark: a session that clusters; without it no data file is rewritten.
        workers: as for ``Table.build_indexes``.
        opening: as for ``open_table``.

    Raises:
        TableError: the table does not exist, or the budget or the policy has a value
            that is not accepted.  Of a list, the other tables are maintained first.

    >>> report = sx.maintain(path, budget="1min", workers=1)
    >>> [step.step for step in report.steps]
    []
    """
    asked, limit = Policy.of(policy), Budget.of(budget)
    is_one = isinstance(table, Table | Location | str | os.PathLike)
    is_one = is_one or _of_library(table) is not None
    if not (is_one or isinstance(table, Sequence)):
        raise no_table(table)
    if spark is not None:
        check_session(spark)
    check_workers(workers)
    began = time.perf_counter()
    given: list[tuple[str, Callable[[], TableState]]]
    if is_one:  # what is wrong with it is the error of the call
        state = state_of(cast("AnyTable", table), spark, fresh=True, **opening)
        given = [(state.folder, lambda: state)]
    else:
        given = [
            (str(one), partial(state_of, one, spark, fresh=True, **opening))
            for one in cast("Sequence[AnyTable]", table)
        ]
    every = maintain_all(
        given,
        asked,
        limit,
        dry_run=dry_run,
        session=None if spark is None else lambda: spark,
        workers=workers,
    )
    steps = [step for one in every for step in one.steps if step.step == "open"]
    if steps:
        raise TableError(
            f"{len(steps)} of {len(every)} tables were not maintained, the others "
            f"were (the first: {steps[0].table}: {steps[0].note})"
        )
    if is_one:
        return every[0]
    return summed(f"{len(every)} tables", every, time.perf_counter() - began)


def via(key: str, table: AnyTable, table_key: str, attribute: str) -> JoinedAttribute:
    """An attribute of a joined table, for a layout of the table that joins it.

    Its value for a row is ``attribute`` in the row of ``table`` whose ``table_key``
    equals the row's ``key``; NULL if ``table`` has no such row.  This call reads no
    data.  A layout clusters rows by the attribute as by a column, and does not store
    it.

    Args:
        key: the column that is joined by: integers or strings.
        table: the joined table, the dimension: a ``Table``, a path or a URI, on the
            file system of the table that joins it.
        table_key: its column that is joined by, which has no value twice.
        attribute: its column that is looked up.

    >>> same = sx.via("price", path, "price", "city")
    >>> sx.Clustering(by=[same, "price"]).by
    [JoinedAttribute(key='price', ...), 'price']
    """
    place = place_of(table)
    location = place.location if isinstance(place, TableState) else place
    return JoinedAttribute(key, location, table_key, attribute)


_MISSING: Final = object()
"""Stands for an argument that is not given, as None is one."""


class PlanOptions(Opening, total=False):
    """The keyword arguments of ``plan_files``: of ``open_table`` and ``Table.plan``."""

    timezone: str | None
    case_sensitive: bool
    kinds: Collection[str] | str | None
    without: Collection[str] | str
    limit: int | None
    order_by: str | Sequence[str] | None
    session: CacheSession | None
    now: datetime | None


@overload
def plan_files(
    table: AnyTable, /, predicate: AnyPredicate, **options: Unpack[PlanOptions]
) -> Plan: ...


@overload
def plan_files(
    predicate: AnyPredicate, /, *, table: AnyTable, **options: Unpack[PlanOptions]
) -> Plan: ...


@overload
def plan_files(
    *, table: AnyTable, predicate: AnyPredicate, **options: Unpack[PlanOptions]
) -> Plan: ...


def plan_files(
    first: Any = _MISSING,
    predicate: Any = _MISSING,
    *,
    table: AnyTable | None = None,
    **options: Any,
) -> Plan:
    """The files that can hold a row for which ``predicate`` is TRUE.

    No other file holds such a row.  Pass the table first,
    ``plan_files(table, predicate)``, or by name,
    ``plan_files(predicate, table=table)``.
    ``open_table(table, …).plan(predicate, …)`` does the same.

    If the columns are known, by ``schema`` or by the name of a catalog table, partition
    folders that cannot hold such a row are not listed.  The plan's notes then have the
    number of these folders; their files are not counted.

    Args:
        first: the table, or, with ``table``, the predicate.
        predicate: a WHERE condition in Spark SQL, one built with ``col``, or a
            PySpark ``Column``.
        table: as for ``open_table``.
        options: those of ``open_table``, and of ``Table.plan``: ``timezone``,
            ``case_sensitive``, ``kinds``, ``without``, ``limit``, ``order_by``,
            ``session`` and ``now``.

    Raises:
        TypeError: the table or the predicate is missing, or given twice.
        TableError: the table does not exist.
        PredicateError: as for ``Table.plan``, whose other errors are raised too.

    >>> sx.plan_files(path, "city = 'Rome' AND price < 4").paths
    ['part-0.parquet']
    >>> sx.plan_files("city = 'Rome' AND price < 4", table=path).paths
    ['part-0.parquet']
    """
    if table is None:
        table, first = first, _MISSING
    elif predicate is _MISSING:
        predicate, first = first, _MISSING
    # Not ``in``, as a column of PySpark makes a condition of ``==``.
    if table is _MISSING or predicate is _MISSING or first is not _MISSING:
        raise TypeError(
            "a plan is for one table and one predicate (accepted: plan_files(table, "
            "predicate, …) or plan_files(predicate, table=table, …))"
        )
    given = {
        name: options.pop(name) for name in Opening.__annotations__.keys() & options
    }
    options["now"] = options.get("now") or datetime.now(UTC)
    question = Question(
        predicate,
        options.get("timezone"),
        options.get("case_sensitive", False),
        options["now"],
    )
    check_zone(options.get("timezone"))
    try:
        state = state_of(table, None, question, **given)
    except TableError as error:
        if isinstance(predicate, str | os.PathLike) and Path(predicate).is_dir():
            raise TableError(
                f"{error} (the table comes first: plan_files({str(predicate)!r}, "
                f"{str(table)!r}))"
            ) from error
        raise
    return Table(state).plan(predicate, **options)


def read(
    table: AnyTable,
    predicate: AnyPredicate,
    *,
    spark: SparkSession | None = None,
    **opening: Unpack[Opening],
) -> DataFrame:
    """The rows of ``table`` for which ``predicate`` is TRUE; plans, then reads.

    The rows and columns are those of ``spark.read.parquet(path).where(predicate)``,
    with ``spark.sql.parquet.mergeSchema`` too.

    Args:
        table: as for ``open_table``.
        predicate: as for ``plan_files``.
        spark: the session that reads; the plan uses its settings.
        opening: as for ``open_table``.  Spark has settings of its own for stores.

    Raises:
        PredicateError: ``predicate`` cannot be parsed, or a column does not exist.
        PlanError: a setting of the session would change the meaning of the plan.
        TableError: the table does not exist.
        EngineError: Spark is not installed, or no session is active.

    >>> sx.read(path, "city = 'Rome' AND price < 4", spark=spark).count()
    1
    """
    with needs_spark():
        from skipindex.spark.reading import read as on_spark  # noqa: PLC0415
        from skipindex.spark.settings import is_case_sensitive, setting  # noqa: PLC0415
    if spark is None:
        raise EngineError(
            "read reads with Spark, and there is no session (accepted: spark=spark, or "
            f"without Spark plan = plan_files(table, predicate), and {WITHOUT_SPARK})"
        )
    check_session(spark)
    use_setting(spark.conf.get(DIR_SETTING, None))
    question = Question(
        predicate,
        setting(spark, "spark.sql.session.timeZone"),
        is_case_sensitive(spark),
        datetime.now(UTC),
    )
    place = place_of(table, spark, question, **opening)
    plain = opening.get("plain", False)
    return on_spark.read(spark, place, predicate, plain=plain, now=question.now)


def write_table(
    df: DataFrame,
    path: str | os.PathLike[str],
    *,
    layout: Clustering | Workload | None = None,
    partition_by: Sequence[str] | Mapping[str, str] = (),
    indexes: Request | None = None,
    overwrite: bool = False,
    options: Mapping[str, str] | None = None,
    progress: ProgressLike | None = None,
    plain: bool = False,
    storage_options: StorageOptions | None = None,
    exclusive: bool = False,
) -> Table:
    """Write ``df`` as a table of Parquet files, clustered and indexed.

    The rows, the schema and the NULLs are those of ``df``; their order and their
    distribution over files follow ``layout``.  Any Parquet reader can read the result.
    One commit replaces the former table when the new rows are complete and indexed, so
    ``df`` may read the same folder.  A call that fails changes nothing.

    Args:
        df: any batch DataFrame; it is evaluated three times (a
            count, a sample, the write), so cache it if it is expensive.
        path: a folder that does not exist, or is empty.
        layout: which rows share a file, as a ``Clustering``, or as the ``Workload``
            that chooses one; None keeps the order of ``df``.
        partition_by: hive partition columns, as a list of columns of ``df``, or as a
            mapping such as ``{"year": "year(dt)"}``, by which they are computed.  The
            mapping is stored, as by ``Table.declare_derived``, so conditions on ``dt``
            skip folders.
        indexes: as for ``build_indexes``.  None is the request of the overwritten
            table, or else the advisor's choice; ``{"*": "minmax"}`` builds statistics
            alone.
        overwrite: replace all data files at ``path``.
        options: options of Spark's Parquet writer, such as ``compression``.
        progress: as for ``Table.build_indexes``, of the rows and the new indexes.
        plain: replace a table of another format too, with its log.
        storage_options: as for ``open_table``; Spark, which writes the data files, has
            its own settings.
        exclusive: declare that only skipindex changes the files, as
            ``Table.declare_exclusive`` does.

    Raises:
        TableError: ``path`` is a file or a table of another format, or is not empty and
            ``overwrite`` is not set, or ``df`` has no rows with ``partition_by``.
        LayoutError: the layout is impossible, or ``df`` has a column that
            ``partition_by`` computes.
        PredicateError: ``indexes`` names a column that does not exist, or a function of
            ``partition_by`` cannot be evaluated.
        UnsupportedTypeError: a column cannot have an index of that kind.
        UnknownIndexError: the kind does not exist.
        CommitConflictError: other writers committed first, in every attempt.
        EngineError: Spark is not installed.

    >>> df = spark.range(100).selectExpr("id % 7 AS city", "id AS price")
    >>> layout = sx.Clustering(by=["city", "price"], rows_per_file=25)
    >>> len(sx.write_table(df, new_path, layout=layout, indexes={"city": "bitmap"}))
    4
    """
    with needs_spark():
        from skipindex.spark.writers import write as on_spark  # noqa: PLC0415
    check_frame(df)
    check_indexes(indexes)
    given = Clustering.of(layout).given()
    if {"rows_per_file", "bytes_per_file"} <= given.keys():
        raise LayoutError("expected one of rows_per_file and bytes_per_file, not both")
    if given.get("curve") == "none":
        given["curve"] = None
    with followed(progress, unit="tasks") as count:
        state = on_spark.write_table(
            df,
            location_of(path, storage_options),
            partition_by=partition_by,
            indexes=indexes,
            overwrite=overwrite,
            options=options,
            progress=count,
            plain=plain,
            exclusive=exclusive,
            **given,
        )
    return changed("write", state, f"{len(state)} files")


def append(
    df: DataFrame,
    table: AnyTable,
    *,
    indexes: Request | None = None,
    options: Mapping[str, str] | None = None,
    progress: ProgressLike | None = None,
    storage_options: StorageOptions | None = None,
) -> Table:
    """Add the rows of ``df`` as new files, with the layout and indexes of the table.

    No existing file is changed.  A call that fails adds no row.  A call that is killed
    while its files become visible leaves the visible ones, without indexes, as an
    append by Spark does.  Any number of appends and ``Table.optimize``, and one plain
    Spark append, may run at the same time.

    Args:
        df: rows with the columns of the table, in any order; narrower types are
            cast to the table's.  Missing derived partition columns are computed, in
            the declared time zone; given ones must have the computed values.
        table: a table of ``write_table``, or one with a layout.  With the name of a
            catalog table, new partitions are added to the catalog; with the path of
            such a table, a warning names the partitions that the catalog lacks.
        indexes: as for ``build_indexes``; None is the indexes of the table.
        options: options of Spark's Parquet writer, such as ``compression``.
        progress: as for ``Table.build_indexes``, of the rows and the new indexes.
        storage_options: as for ``write_table``.

    Raises:
        TableError: the table does not exist, its columns are not those of ``df`` or
            cannot hold their values, it has another format or is bucketed, a row is
            not in the partition that the table declares for it, or a missing
            partition column was declared without a time zone.
        LayoutError: the table has no layout, or one that this version does not know.
        PredicateError: ``indexes`` names a column that does not exist.
        UnsupportedTypeError: a column cannot have an index of that kind.
        UnknownIndexError: the kind does not exist.
        EngineError: Spark is not installed.

    >>> df = spark.range(100).selectExpr("id % 7 AS city", "id AS price")
    >>> table = sx.write_table(df, new_path, layout=sx.Clustering(by=["city"]))
    >>> len(sx.append(df, table))
    2
    """
    with needs_spark():
        from skipindex.spark.writers import append as on_spark  # noqa: PLC0415
    check_frame(df)
    check_indexes(indexes)
    place, name = _place_to_append(table, df.sparkSession, storage_options)
    with followed(progress, unit="tasks") as count:
        state = on_spark.append(
            df, place, indexes=indexes, name=name, options=options, progress=count
        )
    return changed("append", state, f"{len(state)} files")


def sink(
    table: AnyTable,
    *,
    indexes: Request | None = None,
    options: Mapping[str, str] | None = None,
    storage_options: StorageOptions | None = None,
) -> Callable[[DataFrame, int], None]:
    """A function for ``foreachBatch`` that adds the rows of each batch exactly once.

    A batch gets the layout and the indexes of the table, as by ``append``.  Its rows
    count from one commit on, which also has the id of the stream's checkpoint and the
    number of the batch: a stream that fails or is killed, at whatever step, and begins
    again adds nothing twice.  Readers that list the folder see the files a moment
    later; if the process is killed in between, after the next batch or vacuum.

    Args:
        table: a table of ``write_table``, or one with a layout, which must exist.
        indexes: as for ``append``.
        options: as for ``append``.
        storage_options: as for ``write_table``.

    Returns:
        A function of a DataFrame and the number of a batch.  It raises what ``append``
        raises, and nothing is added then; also if the table has a later batch of the
        stream, or was replaced since the batch before.

    Raises:
        TableError: the table does not exist, or has another format, whose own sink is
            exact.
        LayoutError: the table has no layout.
        EngineError: Spark is not installed.

    >>> events = spark.read.parquet(path)
    >>> by_city = sx.Clustering(by=["city"])
    >>> _ = sx.write_table(events.limit(0), new_path, layout=by_city)
    >>> stream = spark.readStream.schema(events.schema).parquet(path)
    >>> batches = stream.writeStream.foreachBatch(sx.sink(new_path))
    >>> batches = batches.option("checkpointLocation", new_path + "-checkpoint")
    >>> query = batches.trigger(availableNow=True).start()
    >>> query.awaitTermination()
    >>> spark.read.parquet(new_path).count()
    5
    """
    with needs_spark():
        from skipindex.spark.writers import append as on_spark  # noqa: PLC0415
        from skipindex.spark.writers.stream import batch_of  # noqa: PLC0415
    check_indexes(indexes)
    on_spark.appendable(*_place_to_append(table, None, storage_options))
    last: Batch | None = None

    def add(df: DataFrame, number: int) -> None:
        nonlocal last
        check_frame(df)
        batch = batch_of(df, number)
        place, name = _place_to_append(table, df.sparkSession, storage_options)
        state = on_spark.append(
            df,
            place,
            indexes=indexes,
            name=name,
            options=options,
            batch=batch,
            after=last,
        )
        if batch.is_in(state.snapshot.properties):
            last = batch

    return add


def _place_to_append(
    table: AnyTable, spark: SparkSession | None, options: StorageOptions | None
) -> tuple[TableState | Location, str]:
    """A table, and its name in the catalog if it is given by that."""
    place = place_of(table, spark, storage_options=options)
    is_named = isinstance(table, str) and isinstance(place, TableState)
    return place, str(table) if is_named else ""
