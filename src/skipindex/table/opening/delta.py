"""The files of a Delta table at one version, as its log names them.

The library ``deltalake`` reads the log.  What the log may ask of a reader is in the
Delta protocol (delta-io/delta, PROTOCOL.md); a table that asks for more than is read
here is refused, because a plain reader of its files would return other rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

from skipindex.errors import TableError, UnsupportedTypeError, first_line
from skipindex.expressions import stored_name
from skipindex.log.manifest import as_one_array
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.uris import SCHEMES
from skipindex.table.field_ids import FieldIds, Names, field_id_name
from skipindex.table.files import UNREADABLE, values_at
from skipindex.table.opening.source import AtVersion, OtherLog
from skipindex.table.spark_json import declared_schema
from skipindex.table.statistics.of_log import LogStatistics
from skipindex.table.stored import is_hybrid

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
"""Features of a table that are read here, or change nothing for who reads its files."""
_MAPPING: Final = "delta.columnMapping."
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


def delta_source(location: Location, at: AtVersion) -> DeltaSource:
    """The table at a version, or at its newest one.

    Raises:
        TableError: the log cannot be read, or asks for more than is read here.
    """
    table = _opened(location, at.number)
    _require_readable(location, table)
    columns = declared_schema(table.schema().to_json())
    if columns is None:
        raise TableError(f"the schema of {location.full('')!r} is none of Spark's")
    schema, refused = columns
    mode = table.metadata().configuration.get(f"{_MAPPING}mode", "none")
    places = _places(location, json.loads(table.schema().to_json()), mode)
    names = table.metadata().partition_columns
    files = pa.table(table.get_add_actions())
    paths = [unquote(path) for path in files["path"].to_pylist()]
    values: Sequence[Mapping[str, Any]] = [{}] * len(paths)
    if names:
        values = files["partition"].to_pylist()
    vectors = _vectors(table)
    if strange := vectors.keys() - set(paths):
        raise TableError(
            f"a deletion vector of {location.full('')!r} is of {min(strange)!r}, which "
            "is no file of the version (accepted: a whole log)"
        )
    return DeltaSource(
        "Delta",
        places,
        FieldIds({}) if mode == "id" else None,
        table.version(),
        dict(zip(paths, files["size_bytes"].to_pylist(), strict=True)),
        schema,
        refused,
        {
            path: tuple((name, _text(location, name, of[name])) for name in names)
            for path, of in zip(paths, values, strict=True)
        },
        _statistics(files),
        {path: (len(rows), len(rows)) for path, rows in vectors.items()},
        vectors,
    )


@dataclass(frozen=True, slots=True)
class DeltaSource(OtherLog):
    """A table of Delta; ``vectors`` has the positions of deleted rows by file."""

    vectors: Mapping[str, BitMap]

    def deleted_rows(self, path: str) -> BitMap:
        """See ``Source``."""
        return self.vectors.get(path, BitMap())

    def rows(self, location: Location, paths: Sequence[str]) -> Iterator[pa.Table]:
        """See ``Source``."""
        for path in paths:
            try:
                with location.open_input(path) as source:
                    file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
                    why = "it holds dates of the old hybrid calendar"
                    if not is_hybrid(file.metadata.metadata or {}):
                        result, why = self._as_declared(path, file.read()), ""
            except (UnsupportedTypeError, *UNREADABLE) as error:
                why = first_line(error)
            if why:
                raise TableError(
                    f"cannot read {location.full(path)!r}: {why} (accepted: another "
                    "reader of Delta tables)"
                )
            if path in self.vectors:
                kept = np.ones(len(result), np.bool_)
                kept[self.vectors[path].to_array()] = False
                result = result.filter(pa.array(kept))
            yield result

    def _as_declared(self, path: str, stored: pa.Table) -> pa.Table:
        """The rows of a file, with the table's columns."""
        own = {} if self.ids is None else self.ids.places(stored.schema)
        values = dict(self.values[path])

        def column(names: Names, dtype: pa.DataType) -> pa.ChunkedArray:
            place = self.places.get(names, names)
            result = _at(stored, own.get(place, place))
            if result is None:
                return pa.chunked_array([pa.nulls(len(stored), dtype)])
            if not pa.types.is_struct(dtype):
                return result.cast(dtype)
            fields = [column((*names, one.name), one.type) for one in dtype]
            return pa.chunked_array(
                [
                    pa.StructArray.from_arrays(
                        [as_one_array(one) for one in fields],
                        fields=list(dtype),
                        mask=as_one_array(result).is_null(),
                    )
                ],
                dtype,
            )

        columns = {}
        for one in self.schema:
            if one.name in values:
                text = pa.scalar(values[one.name], pa.string()).cast(one.type)
                columns[one.name] = pa.repeat(text, len(stored))
            else:
                columns[one.name] = column((one.name,), one.type)
        return pa.table(columns)


def _at(stored: pa.Table, path: Names) -> pa.ChunkedArray | None:
    """A column, or a field of structs; None if the file has it in no capitals."""
    dtype: Any = stored.schema
    for name in path:
        alike = [one.name for one in dtype if one.name.lower() == name.lower()]
        if not alike:
            return None
        if alike.count(name) != 1:
            raise UnsupportedTypeError(f"it spells column {name!r} as {alike}")
        dtype = dtype.field(name).type
    return values_at(stored, path)


def _places(
    location: Location, struct: Mapping[str, Any], mode: str
) -> dict[Names, Names]:
    """The paths in the files of columns and fields that have another name there."""
    if mode == "none":
        return {}
    result: dict[Names, Names] = {}

    def add(fields: Sequence[Any], names: Names, place: Names) -> None:
        for one in fields:
            notes = one["metadata"]
            stored = notes[f"{_MAPPING}physicalName"]
            if mode == "id":
                stored = field_id_name(notes[f"{_MAPPING}id"])
            here, there = (*names, one["name"]), (*place, stored)
            if here != there:
                result[here] = there
            if isinstance(one["type"], str):
                continue
            if one["type"]["type"] == "struct":
                add(one["type"]["fields"], here, there)
            elif '"struct"' in json.dumps(one["type"]):
                raise TableError(
                    f"the Delta table {location.full('')!r} maps the names of columns, "
                    f"and {stored_name(here)!r} has structs in a list or a map "
                    "(accepted: columns mapped by 'none')"
                )

    add(struct["fields"], (), ())
    return result


def _vectors(table: DeltaTable) -> dict[str, BitMap]:
    """The positions of the rows that deletion vectors delete, by path."""
    if "deletionVectors" not in frozenset(table.protocol().reader_features or ()):
        return {}
    base = table.table_uri.rstrip("/") + "/"
    result = {}
    for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()):
        for uri, kept in zip(batch[0].to_pylist(), batch[1], strict=True):
            rows = np.flatnonzero(~np.asarray(kept.values))
            result[unquote(uri.removeprefix(base))] = BitMap(rows)
    return result


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
    """Refuse a table that asks for more than is read here."""
    where = location.full("")
    protocol = table.protocol()
    features = frozenset(protocol.reader_features or ())
    if unknown := sorted(features - _READ):
        raise TableError(
            f"the Delta table {where!r} needs a reader of {', '.join(unknown)} "
            "(accepted: a table without)"
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
