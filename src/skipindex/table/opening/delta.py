"""The files of a Delta table at one version, as its log names them.

The library ``deltalake`` reads the log.  What the log may ask of a reader is in the
Delta protocol (delta-io/delta, PROTOCOL.md); a table that asks for more than is read
here is refused, because a plain reader of its files would return other rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import pyarrow as pa

from skipindex.errors import TableError, first_line
from skipindex.expressions import stored_name
from skipindex.log.manifest import as_one_array
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.uris import SCHEMES
from skipindex.table.opening.source import Source
from skipindex.table.spark_json import declared_schema
from skipindex.table.statistics.of_log import LogStatistics

if TYPE_CHECKING:
    from deltalake import DeltaTable

_READ: Final = frozenset(
    {
        *("appendOnly", "invariants", "checkConstraints", "generatedColumns"),
        *("changeDataFeed", "identityColumns", "domainMetadata", "rowTracking"),
        *("timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "clustering"),
        *("columnMapping", "deletionVectors"),
    }
)
"""Features of a table that change nothing for who reads its files by the log, and the
two that are looked at one by one."""
_TEXTS: Final[Mapping[type, Callable[[Any], str]]] = {
    bool: lambda value: str(value).lower(),
    int: str,
    str: str,
    date: date.isoformat,
}
"""How a folder writes a value, by its type."""
_INSTALL: Final = (
    "accepted: with the library deltalake, as pip install 'skipindex[delta]' installs "
    "it; plain=True reads the folder as plain Parquet files"
)


def delta_source(location: Location, version: int | None) -> Source:
    """The table at a version, or at its newest one.

    Raises:
        TableError: the log cannot be read, or asks for more than is read here.
    """
    table = _opened(location, version)
    _require_readable(location, table)
    columns = declared_schema(table.schema().to_json())
    if columns is None:
        raise TableError(f"the schema of {location.full('')!r} is none of Spark's")
    schema, refused = columns
    names = table.metadata().partition_columns
    files = pa.table(table.get_add_actions())
    paths = [unquote(path) for path in files["path"].to_pylist()]
    values: Sequence[Mapping[str, Any]] = [{}] * len(paths)
    if names:
        values = files["partition"].to_pylist()
    return Source(
        "Delta",
        table.version(),
        dict(zip(paths, files["size_bytes"].to_pylist(), strict=True)),
        schema,
        refused,
        {
            path: tuple((name, _text(location, name, of[name])) for name in names)
            for path, of in zip(paths, values, strict=True)
        },
        _statistics(files),
    )


def _statistics(files: pa.Table) -> LogStatistics:
    """What the log says of each file, of columns that are no fields of structs."""

    def columns(name: str) -> Mapping[str, pa.Array]:
        if name not in files.column_names:
            return {}
        struct = files[name].combine_chunks()
        return {
            stored_name((field.name,)): column
            for field, column in zip(struct.type, struct.flatten(), strict=True)
            if not pa.types.is_nested(field.type)
        }

    low, high = columns("min"), columns("max")
    return LogStatistics(
        as_one_array(files["num_records"]),
        dict(columns("null_count")),
        {name: (low[name], high[name]) for name in low.keys() & high.keys()},
    )


def _opened(location: Location, version: int | None) -> DeltaTable:
    where = location.full("")
    try:
        from deltalake import DeltaTable  # noqa: PLC0415 (of the extra "delta")
        from deltalake.exceptions import DeltaError  # noqa: PLC0415
    except ImportError as error:
        raise TableError(f"{where!r} is a Delta table ({_INSTALL})") from error
    if location.is_local and "%" in location.root:
        raise TableError(
            f"{where!r} is a Delta table, and deltalake takes % in its path for the "
            "escape of a character (accepted: a path without %)"
        )
    scheme, colon, rest = location.uri.partition(":")
    uri = f"{SCHEMES.get(scheme, scheme)}{colon}{rest}" or location.root
    options = {name: str(value) for name, value in location.options}
    if any(str(value).startswith("http:") for value in options.values()):
        options.setdefault("allow_http", "true")
    try:
        return DeltaTable(uri, version=version, storage_options=options or None)
    except (DeltaError, OSError, ValueError) as error:
        which = "" if version is None else f" at version {version}"
        reason = first_line(error)
        raise TableError(
            f"{where!r} is a Delta table, and its log cannot be read{which}: {reason} "
            "(accepted: a whole log and a version that it has; plain=True reads the "
            "folder as plain Parquet files)"
        ) from error


def _require_readable(location: Location, table: DeltaTable) -> None:
    """Refuse a table of which a plain reader of the files returns other rows."""
    where = location.full("")
    protocol = table.protocol()
    features = frozenset(protocol.reader_features or ())
    if unknown := sorted(features - _READ):
        raise TableError(
            f"the Delta table {where!r} needs a reader of {', '.join(unknown)} "
            "(accepted: a table without)"
        )
    mapping = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    if mapping != "none":
        raise TableError(
            f"the files of the Delta table {where!r} have other names of columns than "
            f"the table (delta.columnMapping.mode is {mapping!r}; accepted: 'none')"
        )
    if "deletionVectors" in features:
        deleted = pa.RecordBatchReader.from_stream(table.deletion_vectors())
        if any(batch.num_rows for batch in deleted):
            raise TableError(
                f"files of the Delta table {where!r} have rows that were deleted by "
                "deletion vectors, which plain readers of Parquet do not apply "
                "(accepted: a table after REORG TABLE … APPLY (PURGE))"
            )


def _text(location: Location, name: str, value: object) -> str | None:
    """What the folder of a file says of a partition column; None is NULL."""
    if value is None:
        return None
    kind = type(value)
    if kind not in _TEXTS:
        raise TableError(
            f"the Delta table {location.full('')!r} is partitioned by {name!r}, whose "
            f"values are of type {kind.__name__} (accepted: whole numbers, texts, "
            "dates, booleans)"
        )
    return _TEXTS[kind](value)
