"""Tables of the catalog of a session, by their names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from skipindex.errors import TableError
from skipindex.expressions import literal_sql
from skipindex.source import CatalogFolders
from skipindex.source.partitions.hive import partition_values
from skipindex.source.partitions.inference import unescape
from skipindex.spark.columns import declared, quote
from skipindex.spark.pruning.tables import scanned_location
from skipindex.spark.ship import has_driver
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.uris import StorageOptions
from skipindex.table import Derived, derived_by

_OWN: Final = "spark_catalog"
_PARTITION: Final = re.compile(
    r"Partition Values: \[(.*?)\]\n\tLocation: (.*?)\n", re.DOTALL
)
_AT_ONCE: Final = 100
"""Partitions that one statement adds."""
_ACCEPTED: Final = (
    "accepted: a path, a URI, or the name of a Parquet table of the session's catalog, "
    "such as 'db.events'"
)


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """What a catalog says of a table of Parquet files.

    Args:
        location: its folder.
        schema: the columns with their types, those of the folders too.
        derived: what its properties say of the partition columns, if anything.
        is_in_place: whether the names of its folders are the values of its partitions.
        folders: those of its partitions, relative to the table; None without partition
            columns.
    """

    location: Location
    schema: pa.Schema
    derived: Derived | None
    is_in_place: bool
    folders: CatalogFolders | None


def catalog_table(
    spark: SparkSession, name: str, options: StorageOptions | None = None
) -> CatalogTable | None:
    """The table of the catalog ``spark_catalog`` by its name; None for no name.

    Raises:
        TableError: no table has this name, or it is a view, or not of Parquet files.
    """
    if not has_driver(spark):
        return None
    state = spark._jsparkSession.sessionState()  # noqa: SLF001 - no public name
    own = name.removeprefix(f"{_OWN}.")
    try:
        identifier = state.sqlParser().parseTableIdentifier(own)
    except PySparkException:
        return None
    catalog = state.catalog()
    is_own = own != name or spark.catalog.currentCatalog() == _OWN
    if not is_own or not _exists(catalog, identifier):
        raise TableError(
            f"{name!r} does not exist, neither as a folder nor as a table of "
            f"{_OWN} ({_ACCEPTED})"
        )
    if catalog.isTempView(identifier):
        raise TableError(f"{name!r} is a temporary view ({_ACCEPTED})")
    table = catalog.getTableMetadata(identifier)
    storage, properties = table.storage(), table.properties()
    what = _why_not(table)
    if what or storage.locationUri().isEmpty():
        raise TableError(f"{name!r} is {what or 'without a folder'} ({_ACCEPTED})")
    uri = storage.locationUri().get()
    schema = declared(StructType.fromJson(json.loads(table.schema().json())))
    partitions = list(_each(table.partitionColumnNames()))
    said = {key.lower(): properties.apply(key) for key in _each(properties.keys())}
    ask = partial(_folders, spark, identifier, uri)
    known = [ask()] if partitions else []  # so that opening it does not ask again
    return CatalogTable(
        scanned_location(uri.getScheme(), uri.getAuthority(), uri.getPath(), options),
        schema,
        derived_by(said, partitions, schema),
        known != [None],
        (lambda: known.pop() if known else ask()) if partitions else None,
    )


def add_partitions(spark: SparkSession, name: str, folders: Iterable[str]) -> None:
    """Let the catalog know partitions of a table by their folders."""
    texts = [
        ", ".join(
            f"{quote(column)} = {literal_sql(value)}"
            for column, value in partition_values(f"{folder}/")
        )
        for folder in folders
    ]
    for i in range(0, len(texts), _AT_ONCE):
        some = " ".join(f"PARTITION ({text})" for text in texts[i : i + _AT_ONCE])
        spark.sql(f"ALTER TABLE {name} ADD IF NOT EXISTS {some}")


def named_by_folder(
    spark: SparkSession, location: Location
) -> tuple[str, frozenset[str]]:
    """The partitioned table in a folder of its own name, and the folders that it has.

    The name is empty if there is none.

    It is looked for in the database that the folder above is named after, in the
    current one and in the default one: a catalog has no list by folders.
    """
    above, _, name = location.full("").rstrip("/").rpartition("/")
    database = above.rpartition("/")[2].removesuffix(".db")
    for one in dict.fromkeys((database, spark.catalog.currentDatabase(), "default")):
        full = f"{quote(one)}.{quote(name)}"
        try:
            result = catalog_table(spark, f"{_OWN}.{full}")
        except TableError:
            continue
        if result is not None and result.folders and result.location == location:
            return full, result.folders() or frozenset()
    return "", frozenset()


def _exists(catalog: Any, identifier: Any) -> bool:
    try:
        return bool(catalog.isTempView(identifier) or catalog.tableExists(identifier))
    except PySparkException:  # there is no such database
        return False


def _why_not(table: Any) -> str:
    """What a table is that is not one of Parquet files; empty if it is one."""
    if table.tableType().name() == "VIEW":
        return "a view"
    provider = table.provider()
    kind = provider.get().lower() if provider.isDefined() else "unknown"
    serde = table.storage().serde()
    if kind == "hive" and serde.isDefined() and "parquet" in serde.get().lower():
        return ""
    return "" if kind == "parquet" else f"a table of the format {kind}"


def _folders(spark: SparkSession, identifier: Any, root: Any) -> frozenset[str] | None:
    """The folders of the partitions that the catalog has; None if some is elsewhere."""
    jvm: Any = spark._jvm  # noqa: SLF001 - no public name
    catalog = spark._jsparkSession.sessionState().catalog()  # noqa: SLF001
    result = catalog.listPartitions(identifier, jvm.scala.Option.empty())
    # One call has the text of all of them, where each would take several.
    texts = _PARTITION.findall(result.mkString("\n"))
    path = jvm.org.apache.hadoop.fs.Path
    top = path(root).toString()
    # Spark 3.5 shows URIs there, and Spark 4 paths.
    escaped = next((i for i, (_, shown) in enumerate(texts) if "%" in shown), None)
    if escaped is not None:
        location = path(result.apply(escaped).location()).toString()
        if location != texts[escaped][1]:
            texts = [(values, unquote(shown)) for values, shown in texts]
    folders = {folder.removeprefix(f"{top}/"): values for values, folder in texts}
    are_in_place = len(folders) == result.size() and all(
        _values(values) == _values(_named(folder)) for folder, values in folders.items()
    )
    return frozenset(folders) if are_in_place else None


def _named(path: str) -> str:
    """The values that the names of folders have, as the catalog shows values."""
    return ", ".join(map(unescape, path.split("/")))


def _values(text: str) -> list[str]:
    """The values in one order, as the catalog has none for them."""
    return sorted(text.split(", "))


def _each(values: Any) -> Iterator[Any]:
    """The elements of a collection of Scala."""
    iterator = values.iterator()
    while iterator.hasNext():
        yield iterator.next()
