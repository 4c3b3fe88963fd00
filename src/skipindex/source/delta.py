"""The files of a Delta table at one version, as its log names them.

The library ``deltalake`` reads the log.  What the log may ask of a reader is in the
Delta protocol (delta-io/delta, PROTOCOL.md); a table that asks for more than is read
here is refused, because a plain reader of its files would return other rows.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, lru_cache
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap

from skipindex.errors import (
    PredicateError,
    TableError,
    UnsupportedTypeError,
    first_line,
)
from skipindex.expressions import name_parts, stored_name
from skipindex.log.manifest import as_one_array
from skipindex.source.field_ids import FieldIds, Names, field_id_name, leaves_of
from skipindex.source.log_statistics import LogStatistics
from skipindex.source.parquet.files import UNREADABLE, values_at
from skipindex.source.parquet.partial_statistics import PartialStatistics
from skipindex.source.parquet.spark_json import declared_schema
from skipindex.source.parquet.stored import is_hybrid
from skipindex.source.source import (
    COMMIT_TRIES,
    AtVersion,
    Change,
    LogSource,
    commit_failed,
    never_committed,
    require_unchanged,
    require_written,
)
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.uris import SCHEMES

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

_READ: Final = frozenset(
    {
        *("appendOnly", "invariants", "checkConstraints", "generatedColumns"),
        *("changeDataFeed", "identityColumns", "domainMetadata", "rowTracking"),
        *("timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "clustering"),
        *("columnMapping", "deletionVectors"),
    }
)
"""Features of a table that are read here, or change nothing for who reads its files."""
_WRITTEN: Final = _READ - {"columnMapping", "rowTracking"}
"""Features of a table whose files may be replaced by others with the same rows."""
_DIGITS: Final = 14
"""Decimals of more digits are rounded in statistics of deltalake.  It multiplies others
by a power of ten, and is off by less than half a unit of their last digit."""
_SPELLED_ALIKE: Final = re.compile(r"[\w./=+-]*", re.ASCII)
"""Paths that all writers of a log spell in one way."""
_COMMA: Final = re.compile(r",(?=(?:[^`]*`[^`]*`)*[^`]*$)")
"""A comma between names, not in one that backticks quote."""
_OUTSIDE: Final = re.compile(r"/|[A-Za-z][\w+.-]*:/|(?:.*/)?\.\.(?:/|$)", re.DOTALL)
"""The beginning of a path that is absolute, or leaves the folder."""
_RUN: Final = "skipindexRun"
"""The key of the commit's own mark in the information on a commit."""
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
    kept = "" if at.number is None else "it is open at a version"
    return _source_of(location, _opened(location, at.number), kept)


def _source_of(location: Location, table: DeltaTable, kept: str) -> DeltaSource:
    _require_readable(location, table)
    columns = declared_schema(table.schema().to_json())
    if columns is None:
        raise TableError(f"the schema of {location.full('')!r} is none of Spark's")
    schema, refused = columns
    mode = table.metadata().configuration.get(f"{_MAPPING}mode", "none")
    places = _places(location, json.loads(table.schema().to_json()), mode)
    names = table.metadata().partition_columns
    files = pa.table(table.get_add_actions())
    spellings = files["path"].to_pylist()
    paths = [unquote(path) for path in spellings]
    if outside := next(filter(_OUTSIDE.match, paths), None):
        raise TableError(
            f"the log of {location.full('')!r} names {outside!r}, which is no path in "
            "its folder, as the log of a shallow clone does (accepted: a table whose "
            "files are below its folder, as a deep clone has them)"
        )
    if len(set(paths)) < len(paths):
        path, n = Counter(paths).most_common(1)[0]
        raise TableError(
            f"the log of {location.full('')!r} names {path!r} {n} times, perhaps in "
            "different spellings (accepted: a log that names each file once)"
        )
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
        schema,
        dict(zip(paths, files["size_bytes"].to_pylist(), strict=True)),
        refused,
        {
            path: tuple((name, _text(location, name, of[name])) for name in names)
            for path, of in zip(paths, values, strict=True)
        },
        _statistics(files),
        {path: (len(rows), len(rows)) for path, rows in vectors.items()},
        vectors,
        kept or _why_not_written(table),
        table.metadata().configuration,
        Spellings(
            {
                path: spelled
                for path, spelled in zip(paths, spellings, strict=True)
                if path != spelled or not _SPELLED_ALIKE.fullmatch(path)
            }
        ),
    )


@dataclass(frozen=True)
class Spellings:
    """How a log spells the paths that writers of logs may spell in different ways."""

    by_path: Mapping[str, str]

    @cached_property
    def foreign(self) -> frozenset[str]:
        """The paths that deltalake spells otherwise."""
        if not self.by_path:
            return frozenset()
        own = _own_spellings(frozenset(self.by_path))
        return frozenset(path for path, one in self.by_path.items() if one not in own)


@dataclass(frozen=True, slots=True)
class DeltaSource(LogSource):
    """A table of Delta.

    Args:
        vectors: the positions of deleted rows by file.
        kept: why its files cannot be replaced; empty if they can.
        properties: of the table.
        spellings: how the log spells paths.
    """

    vectors: Mapping[str, BitMap]
    kept: str
    properties: Mapping[str, str]
    spellings: Spellings

    def why_not_rewritten(self) -> str:
        """See ``Source``."""
        return self.kept or ("its columns are mapped" if self.places else "")

    def left_out(self, path: str) -> str:
        """See ``Source``; a file that is removed under another spelling would stay."""
        if path not in self.spellings.foreign:
            return ""
        spelled = self.spellings.by_path[path]
        return f"the log has {spelled!r}, and spells it otherwise than deltalake"

    def statistics_written(self, location: Location, folder: str) -> Mapping[str, str]:
        """See ``Source``; deltalake takes them from the footers."""
        paths = [file.path.removeprefix(f"{folder}/") for file in location.list(folder)]
        known: dict[str, str] = {}
        for root in {_root(path) for path in paths}:
            for path, stats in self._footers(location, f"{folder}/{root}").items():
                known[_decoded(root) + path] = stats
        alike = Counter(map(_decoded, paths))
        described = self._described_columns()
        return {
            path: self._of_file(location, f"{folder}/{path}", known[key], described)
            if (key := _decoded(path)) in known and alike[key] == 1
            else "{}"
            for path in paths
        }

    def _footers(self, location: Location, folder: str) -> dict[str, str]:
        """The statistics of files below a folder in which partitions begin."""
        from deltalake import Field as Column  # noqa: PLC0415 (of the extra "delta")
        from deltalake import Schema, convert_to_deltalake  # noqa: PLC0415
        from deltalake.schema import PrimitiveType  # noqa: PLC0415

        text = PrimitiveType("string")
        uri, options = _where(location, folder)
        try:
            convert_to_deltalake(
                uri,
                partition_by=Schema([Column(n, text) for n in self.partition_names]),
                partition_strategy="hive",
                storage_options=options,
            )
            log = location.read(f"{folder}_delta_log/{0:020}.json").splitlines()
        except _failures() as error:
            raise TableError(
                f"cannot read the footers of {location.full(folder)!r}: "
                f"{first_line(error)}"
            ) from error
        adds = [one["add"] for one in map(json.loads, log) if "add" in one]
        return {_decoded(one["path"]): one["stats"] for one in adds}

    def _described_columns(self) -> frozenset[Names]:
        """The columns that have statistics in the log, by the table's properties."""
        # The named ones, or the first 32, fields of structs among them.
        partitions = self.partition_names
        leaves = [names for names, _ in leaves_of(self.schema)]
        leaves = [names for names in leaves if names[0] not in partitions]
        named = self.properties.get("delta.dataSkippingStatsColumns")
        try:
            if named is None:
                n = int(self.properties.get("delta.dataSkippingNumIndexedCols", "32"))
                return frozenset(leaves if n < 0 else leaves[:n])
            wanted = {name_parts(one.strip()) for one in re.split(_COMMA, named)}
        except (PredicateError, ValueError):  # a property that only its writer knows
            return frozenset()
        return frozenset(
            names
            for names in leaves
            if any(names[:i] in wanted for i in range(1, len(names) + 1))
        )

    def _of_file(
        self,
        location: Location,
        path: str,
        stats: str,
        described: frozenset[Names],
    ) -> str:
        """The statistics that deltalake has of a file, as far as they are right."""
        # It goes by the row groups that say something, ignores NaN where their writer
        # did, and rounds decimals.  Readers of the log take NaN for the greatest value.
        with location.open_input(path) as source:
            partial = PartialStatistics.of(pq.read_metadata(source))
        result = json.loads(stats)
        decimals = {
            ".".join(names): dtype
            for names, dtype in leaves_of(self.schema)
            if pa.types.is_decimal(dtype)
        }
        long = {name for name, one in decimals.items() if one.precision > _DIGITS}
        scales = {name: one.scale for name, one in decimals.items()}
        for kind, wrong, digits in (
            ("minValues", partial.bounds | long, scales),
            ("maxValues", partial.bounds | partial.nan | long, scales),
            ("nullCount", partial.nulls, {}),
        ):
            result[kind] = _right(result.get(kind, {}), wrong, described, digits)
        return json.dumps(result)

    def replace_files(self, location: Location, changes: Sequence[Change]) -> None:
        """See ``Source``.

        deltalake's own check of what other writers did since a version does not see
        that they replaced the same files without a change of rows.  So each version is
        checked here, and the commit has the next number, or there is none.
        """
        from deltalake import CommitProperties  # noqa: PLC0415 (of the extra "delta")
        from deltalake.exceptions import CommitFailedError  # noqa: PLC0415

        mark = uuid.uuid4().hex
        at_once = CommitProperties({_RUN: mark}, max_commit_retries=0)
        actions = self._actions(changes)
        for _ in range(COMMIT_TRIES):
            table = _opened(location, None)
            later = max(1, table.version() - self.version)
            if any(one.get(_RUN) == mark for one in table.history(later)):
                return  # the answer to a commit was lost
            now = _source_of(location, table, "")
            require_unchanged(location, self._changed_in(now, changes))
            require_written(location, changes)
            try:
                table.create_write_transaction(
                    actions,
                    "append",
                    table.schema(),
                    self.partition_names,
                    commit_properties=at_once,
                )
            except CommitFailedError:
                continue
            except _failures() as error:
                raise commit_failed(location, "log", error) from error
            return
        raise never_committed(location)

    def _changed_in(self, now: DeltaSource, changes: Sequence[Change]) -> str:
        """What a later version has done to what is replaced; empty if nothing."""
        if now.why_not_rewritten():
            return now.why_not_rewritten()
        if now.schema != self.schema:
            return "it has other columns"
        for path in (path for one in changes for path in one.paths):
            if now.sizes.get(path) != self.sizes[path]:
                return f"{path!r} was replaced"
            if path in now.vectors or now.values[path] != self.values[path]:
                return f"rows of {path!r} were deleted"
            spelled = (one.spellings.by_path.get(path) for one in (now, self))
            if len({*spelled}) > 1:
                return f"{path!r} is spelled in another way"
        return ""

    def _actions(self, changes: Sequence[Change]) -> list[AddAction | RemoveAction]:
        from deltalake.transaction import AddAction, RemoveAction  # noqa: PLC0415

        now, has_changed = int(time.time() * 1000), False
        result: list[AddAction | RemoveAction] = []
        for one in changes:
            values = dict(self.values[one.paths[0]])
            result += [RemoveAction(path, has_changed, now) for path in one.paths]
            for file in one.new:
                modified, stats = file.mtime // 1_000_000, one.statistics[file.path]
                args = (file.path, file.size, values, modified, has_changed, stats)
                result.append(AddAction(*args))
        return result

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


def _root(path: str) -> str:
    """The folder in which the partitions of a file begin, with a slash if it is one."""
    parts = takewhile(lambda part: "=" not in part, path.split("/")[:-1])
    return "".join(f"{part}/" for part in parts)


def _decoded(path: str) -> str:
    """A path without escapes; deltalake undoes some of those that a folder has."""
    while (once := unquote(path)) != path:
        path = once
    return path


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
    try:
        batches = [*pa.RecordBatchReader.from_stream(table.deletion_vectors())]
    except _failures() as error:
        raise TableError(
            f"the deletion vectors of {table.table_uri!r} cannot be read: "
            f"{first_line(error)} (accepted: a log as the protocol has it, in which a "
            "file with a vector has a number of records)"
        ) from error
    for batch in batches:
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
    n_rows = as_one_array(files["num_records"])
    nulls = columns("null_count").items()
    return LogStatistics(
        n_rows,
        {name: _nulls_of(counts, n_rows) for name, counts in nulls},
        {name: (low[name], high[name]) for name in low.keys() & high.keys()},
    )


def _right(
    values: Mapping[str, Any],
    wrong: Collection[str],
    kept: Collection[Names],
    scales: Mapping[str, int],
    parent: Names = (),
) -> dict[str, Any]:
    """The values of columns ``kept`` that are not ``wrong``; decimals in scale."""
    result = {}
    for name, value in values.items():
        names = (*parent, name)
        full = ".".join(names)
        if isinstance(value, Mapping):
            result[name] = _right(value, wrong, kept, scales, names)
        elif names in kept and full not in wrong:
            result[name] = round(value, scales[full]) if full in scales else value
    return result


@lru_cache(maxsize=1)
def _own_spellings(paths: frozenset[str]) -> frozenset[str]:
    """How deltalake spells paths in a log, as seen in the log of an empty table."""
    from deltalake import DeltaTable, Field, Schema  # noqa: PLC0415
    from deltalake.schema import PrimitiveType  # noqa: PLC0415
    from deltalake.transaction import RemoveAction  # noqa: PLC0415

    schema, has_changed = Schema([Field("n", PrimitiveType("integer"))]), False
    actions: list[AddAction | RemoveAction] = []
    actions += [RemoveAction(path, has_changed, 0) for path in paths]
    try:
        with TemporaryDirectory() as folder:
            table = DeltaTable.create(folder, schema)
            table.create_write_transaction(actions, "append", schema, [])
            log = Path(folder, "_delta_log", f"{1:020}.json").read_text()
    except _failures() as error:
        raise TableError(
            f"deltalake writes no log in a new folder: {first_line(error)}"
        ) from error
    lines = map(json.loads, log.splitlines())
    return frozenset(one["remove"]["path"] for one in lines if "remove" in one)


def _nulls_of(counts: pa.Array, n_rows: pa.Array) -> pa.Array:
    """How many NULLs files have, where the log says that none or all rows are NULL."""
    # Of a file whose tightBounds is false no other number means anything (the protocol,
    # "Per-file Statistics"), and deltalake does not say of which it is.
    is_told = pc.or_kleene(pc.equal(counts, 0), pc.equal(counts, n_rows))
    return pc.if_else(is_told, counts, pa.scalar(None, counts.type))


def _failures() -> tuple[type[Exception], ...]:
    """What deltalake raises."""
    from deltalake.exceptions import DeltaError  # noqa: PLC0415 (of the extra "delta")

    return (DeltaError, OSError, ValueError)


def _where(location: Location, folder: str = "") -> tuple[str, dict[str, str] | None]:
    """The address of a folder, and its options, as deltalake takes them."""
    scheme, colon, rest = location.uri.partition(":")
    uri = f"{SCHEMES.get(scheme, scheme)}{colon}{rest}" or location.root
    options = {name: str(value) for name, value in location.options}
    if any(str(value).startswith("http:") for value in options.values()):
        options.setdefault("allow_http", "true")
    return f"{uri}/{folder}".rstrip("/"), options or None


def _opened(location: Location, version: int | None) -> DeltaTable:
    where = location.plain_path("")
    try:
        from deltalake import DeltaTable  # noqa: PLC0415 (of the extra "delta")
    except ImportError as error:
        raise TableError(f"{where!r} is a Delta table ({_INSTALL})") from error
    if location.is_local and "%" in location.root:
        raise TableError(
            f"{where!r} is a Delta table, and deltalake takes % in its path for the "
            "escape of a character (accepted: a path without %)"
        )
    uri, options = _where(location)
    try:
        return DeltaTable(uri, version=version, storage_options=options)
    except _failures() as error:
        which = "" if version is None else f" at version {version}"
        reason = first_line(error)
        raise TableError(
            f"{where!r} is a Delta table, and its log cannot be read{which}: {reason} "
            "(accepted: a whole log and a version that it has; plain=True reads the "
            "folder as plain Parquet files)"
        ) from error


def _require_readable(location: Location, table: DeltaTable) -> None:
    """Refuse a table that asks for more than is read here."""
    where = location.plain_path("")
    protocol = table.protocol()
    features = frozenset(protocol.reader_features or ())
    if unknown := sorted(features - _READ):
        raise TableError(
            f"the Delta table {where!r} needs a reader of {', '.join(unknown)} "
            "(accepted: a table without)"
        )


def _why_not_written(table: DeltaTable) -> str:
    """Why files of the table are not replaced; empty if they can be."""
    features = frozenset(table.protocol().writer_features or ())
    unknown = ", ".join(sorted(features - _WRITTEN))
    return unknown and f"it needs a writer of {unknown}"


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
