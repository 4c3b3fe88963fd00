"""The files of an Iceberg table at one snapshot, as its metadata name them.

The library ``pyiceberg`` reads the metadata, the deletes and the rows.  Columns are
known by their field ids, so an index outlives the name of its column (the Iceberg
specification, "Column Projection").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa

from skipindex.errors import CommitConflictError, TableError, first_line
from skipindex.source.field_ids import FieldIds, Names, field_id_name
from skipindex.source.iceberg_writing import (
    data_file,
    filled_columns,
    replacement,
    unlike,
    why_not_written,
)
from skipindex.source.log_statistics import LogStatistics
from skipindex.source.parquet.files import UNREADABLE
from skipindex.source.parquet.spark_json import DEFAULTS
from skipindex.source.partitions.hive import Pairs
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
from skipindex.storage.file_system.names import is_data_file

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask, StaticTable, Table

_INSTALL: Final = (
    "accepted: with the library pyiceberg, as pip install 'skipindex[iceberg]' "
    "installs it; plain=True reads the folder as plain Parquet files"
)
_NAMES_OF_OPTIONS: Final = {
    "access_key_id": "s3.access-key-id",
    "secret_access_key": "s3.secret-access-key",
    "token": "s3.session-token",
    "session_token": "s3.session-token",
    "endpoint": "s3.endpoint",
    "region": "s3.region",
}
"""The options of obstore, without their prefix, as pyiceberg calls them."""
_NUMBERS: Final = ("IntegerType", "LongType", "DateType")
_TIMES: Final = ("TimestampType", "TimestamptzType")
_BYTES_OF_TIME: Final = 8
_THREADS: Final = 16
_FIRST_SURROGATE: Final = "\ud800"
"""Below it texts have one order by their UTF-8 and by their UTF-16."""


def iceberg_source(location: Location, at: AtVersion) -> IcebergSource:
    """The table at a snapshot, or at the current one of its metadata.

    Raises:
        TableError: the metadata cannot be read, there is no such snapshot, or it has
            deletes that pyiceberg does not apply.
    """
    table = _opened(location, at)
    where = location.plain_path("")
    snapshot = table.current_snapshot()
    if at.number is not None and table.snapshot_by_id(at.number) is None:
        raise TableError(
            f"the Iceberg table {where!r} has no snapshot {at.number} (accepted: one "
            "that is not expired)"
        )
    scan = table.scan(snapshot_id=at.number)
    try:
        tasks = list(scan.plan_files())
    except Exception as error:
        raise _unreadable(where, error) from error
    columns = scan.projection()
    names = _mapped_names(table)
    by_path = {_relative(location, one.file.file_path): one for one in tasks}
    if len(by_path) < len(tasks):
        raise _named_twice(location, tasks)
    number = at.number
    if number is None:
        number = -1 if snapshot is None else snapshot.snapshot_id
    return IcebergSource(
        "Iceberg",
        _places(columns),
        FieldIds(names),
        number,
        _arrow_schema(columns, _of_partitions(table, tasks, is_mapped=bool(names))),
        {path: one.file.file_size_in_bytes for path, one in by_path.items()},
        {},
        dict.fromkeys(by_path, ()),
        _statistics(columns, tasks, is_mapped=bool(names)),
        {path: _deleted(one) for path, one in by_path.items() if one.delete_files},
        table,
        columns,
        by_path,
        at,
    )


@dataclass(frozen=True, slots=True)
class IcebergSource(LogSource):
    """A table of Iceberg, its columns, the task of reading each file, how it opened."""

    table: StaticTable
    columns: Schema
    tasks: Mapping[str, FileScanTask]
    opened: AtVersion
    has_folders: ClassVar[bool] = False

    @property
    def described(self) -> str:
        """See ``Source``."""
        return f"snapshot {self.version} of {self.format}"

    def deleted_rows(self, path: str) -> None:
        """See ``Source``; pyiceberg alone reads the deletes."""

    def unlike_plain(self, paths: Sequence[str]) -> str:
        """See ``Source``."""
        return "its columns are known by field ids" if paths else ""

    def why_not_rewritten(self) -> str:
        """See ``Source``."""
        if self.opened.known is None:
            return "it is open by a metadata file, not by its catalog"
        if self.opened.number is not None:
            return "it is open at a snapshot"
        return why_not_written(self.table.metadata)

    def left_out(self, path: str) -> str:
        """See ``Source``."""
        task = self.tasks[path]
        if task.delete_files:
            return f"rows of {path!r} are deleted"
        if task.file.spec_id != self.table.metadata.default_spec_id:
            return f"{path!r} is of an older partition spec"
        return f"{path!r} is encrypted" if task.file.key_metadata else ""

    def left(self, location: Location, paths: Sequence[str]) -> str:
        """See ``Source``."""
        filled = filled_columns(self.table)

        def why(path: str) -> str:
            try:
                told = unlike(location, path, self.columns, self.schema, filled)
            except UNREADABLE as error:
                raise TableError(
                    f"cannot rewrite {location.full(path)!r}: {first_line(error)} "
                    "(accepted: another writer of Iceberg tables)"
                ) from error
            return told and f"{path!r}: {told}"

        with ThreadPoolExecutor(_THREADS) as pool:
            return next(filter(None, pool.map(why, paths)), "")

    def partition_of(self, path: str) -> Pairs:
        """See ``Source``."""
        record = self.tasks[path].file.partition
        values = [record[i] for i in range(len(record))]
        return tuple((str(i), repr(value)) for i, value in enumerate(values))

    def after(self, version: AtVersion) -> AtVersion:
        """See ``Source``."""
        if version.known is None:
            return version
        return version_of(_loaded(version.known))

    def statistics_written(self, location: Location, folder: str) -> Mapping[str, str]:
        """See ``Source``; they are taken from the footers by the commit."""
        staged = (one.path for one in location.list(folder))
        files = [p for p in staged if is_data_file(p.removeprefix(f"{folder}/"))]
        if why := self.left(location, files):
            raise TableError(
                f"a file was written that is not one of the Iceberg table "
                f"{location.full('')!r}: {why} (expected the field ids and the types "
                "of the table); nothing was replaced"
            )
        return {}

    def replace_files(self, location: Location, changes: Sequence[Change]) -> None:
        """See ``Source``.

        Each commit is to the very snapshot that was compared, or there is none.
        """
        from pyiceberg.exceptions import CommitFailedException  # noqa: PLC0415

        known = self.opened.known
        assert known is not None
        tried: set[int] = set()
        for _ in range(COMMIT_TRIES):
            try:
                table = _loaded(known)
                if any(table.snapshot_by_id(one) for one in tried):
                    return  # the answer to a commit was lost
                why = self._changed_in(location, table, changes)
                require_unchanged(location, why)
                require_written(location, changes)
                old, new = self._files(location, table, changes)
                number, updates, required = replacement(table, old, new)
                tried.add(number)
                table._do_commit(updates, required)  # noqa: SLF001
            except CommitFailedException:
                continue
            except (CommitConflictError, TableError):
                raise
            except Exception as error:
                if _has_any(known, tried):
                    return
                raise commit_failed(location, "catalog", error) from error
            return
        raise never_committed(location)

    def _changed_in(
        self, location: Location, table: Table, changes: Sequence[Change]
    ) -> str:
        """What other writers have done to what is replaced; empty if nothing."""
        before, now = self.table.metadata, table.metadata
        if now.table_uuid != before.table_uuid:
            return "it was made again"
        if now.schema() != before.schema() or now.spec() != before.spec():
            return "it has other columns or partitions"
        newest = iceberg_source(location, version_of(table))
        if why := newest.why_not_rewritten():
            return why
        for path in (path for one in changes for path in one.paths):
            if newest.sizes.get(path) != self.sizes[path]:
                return f"{path!r} was replaced"
            if why := newest.left_out(path):
                return why
        return ""

    def _files(
        self, location: Location, table: Table, changes: Sequence[Change]
    ) -> tuple[list[DataFile], list[DataFile]]:
        """The files that are replaced, and the new ones."""
        old, new = [], []
        for one in changes:
            before = [self.tasks[path].file for path in one.paths]
            like = one.paths[0], before[0]
            old += before
            new += [data_file(location, file, like, table.metadata) for file in one.new]
        return old, new

    def rows(self, location: Location, paths: Sequence[str]) -> Iterator[pa.Table]:
        """See ``Source``."""
        from pyiceberg.expressions import AlwaysTrue  # noqa: PLC0415
        from pyiceberg.io.pyarrow import ArrowScan  # noqa: PLC0415

        scan = ArrowScan(self.table.metadata, self.table.io, self.columns, AlwaysTrue())
        for path in paths:
            try:
                yield scan.to_table([self.tasks[path]]).cast(self.schema)
            except Exception as error:
                raise TableError(
                    f"cannot read {location.full(path)!r}: {first_line(error)} "
                    "(accepted: another reader of Iceberg tables)"
                ) from error


def version_of(table: Table, number: int | None = None) -> AtVersion:
    """How a table of pyiceberg is opened, at a snapshot or at its current one."""
    from pyiceberg.table import StaticTable  # noqa: PLC0415 (of an extra)

    properties = tuple((str(k), str(v)) for k, v in table.io.properties.items())
    known = None if isinstance(table, StaticTable) else table
    return AtVersion(number, table.metadata_location, properties, known)


def _loaded(known: Table) -> Table:
    """A table as its catalog has it now."""
    return known.catalog.load_table(known.name())


def _has_any(known: Table, snapshots: set[int]) -> bool:
    """Whether the catalog is known to have one of these snapshots."""
    try:
        table = _loaded(known)
    except Exception:  # noqa: BLE001 (of any catalog)
        return False
    return any(table.snapshot_by_id(one) is not None for one in snapshots)


def _opened(location: Location, at: AtVersion) -> StaticTable:
    where = location.plain_path("")
    try:
        from pyiceberg.table import StaticTable  # noqa: PLC0415 (of an extra)
    except ImportError as error:
        raise TableError(f"{where!r} is an Iceberg table ({_INSTALL})") from error
    given = {
        _NAMES_OF_OPTIONS[name.removeprefix("aws_")]: str(value)
        for name, value in location.options
        if name.removeprefix("aws_") in _NAMES_OF_OPTIONS
    }
    try:
        return StaticTable.from_metadata(at.metadata, {**given, **dict(at.properties)})
    except Exception as error:
        raise _unreadable(where, error) from error


def _unreadable(where: str, error: Exception) -> TableError:
    return TableError(
        f"{where!r} is an Iceberg table that pyiceberg cannot read: "
        f"{first_line(error)} (accepted: one without equality deletes that it reads)"
    )


def _relative(location: Location, uri: str) -> str:
    """The path of a file in the table's folder."""
    scheme, colon, rest = uri.partition("://")
    path = rest if colon else uri.removeprefix("file:")
    if location.is_local and colon and scheme == "file":
        path = "/" + path.lstrip("/")
    root = location.full("").rstrip("/") + "/"
    if not path.startswith(root) or location.is_local != (scheme in {"file", uri}):
        raise TableError(
            f"{uri!r} is a file of the Iceberg table {location.full('')!r}, and is not "
            "in its folder (accepted: a table whose files are below its location)"
        )
    return path.removeprefix(root)


def _named_twice(location: Location, tasks: Sequence[FileScanTask]) -> TableError:
    """The error that a snapshot has all rows of a file more than once."""
    counts = Counter(_relative(location, one.file.file_path) for one in tasks)
    path, n = counts.most_common(1)[0]
    return TableError(
        f"the Iceberg table {location.full('')!r} names {path!r} {n} times, so each of "
        f"its rows is read {n} times (accepted: a table that names each file once, as "
        "after a rewrite of its data files)"
    )


def _deleted(task: FileScanTask) -> tuple[int, int]:
    """At least and at most how many rows are deleted."""
    # pyiceberg keeps one entry of a Puffin file, which may be of another data file's
    # vector; entries of deleted positions may be of other files, or name a row twice.
    n_rows, counts = task.file.record_count, []
    for one in task.delete_files:
        if str(one.file_format).endswith("PUFFIN"):
            return 0, n_rows
        counts.append(one.record_count)
    return 0, min(n_rows, sum(counts))


def _of_partitions(
    table: StaticTable, tasks: Sequence[FileScanTask], *, is_mapped: bool
) -> set[int]:
    """The columns that files can be without, as the partition has their value."""
    from pyiceberg.transforms import IdentityTransform  # noqa: PLC0415

    specs = table.specs()
    return {
        part.source_id
        for one in tasks
        for i, part in enumerate(specs[one.file.spec_id].fields)
        if isinstance(part.transform, IdentityTransform)
        and one.file.partition[i] is not None
        and (is_mapped or part.source_id not in (one.file.value_counts or {}))
    }


def _arrow_schema(columns: Schema, of_partitions: set[int]) -> pa.Schema:
    """The columns; marks on those that are not NULL in each file without them."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow  # noqa: PLC0415

    fields = []
    arrow = schema_to_pyarrow(columns, include_field_ids=False)
    for one, plain in zip(columns.fields, arrow, strict=True):
        marks = dict.fromkeys(DEFAULTS, "") if _has_other(one, of_partitions) else None
        fields.append(pa.field(plain.name, _small(plain.type), metadata=marks))
    return pa.schema(fields)


def _has_other(one: Any, of_partitions: set[int]) -> bool:
    """Whether a column, or a field in it, is not NULL in files that lack it."""
    inner = getattr(one.field_type, "fields", ())
    return (
        one.field_id in of_partitions
        or one.initial_default is not None
        or any(_has_other(field, of_partitions) for field in inner)
    )


def _small(dtype: pa.DataType) -> pa.DataType:
    """The type with offsets of 32 bits, as Spark's columns have."""
    if pa.types.is_large_string(dtype):
        return pa.string()
    if pa.types.is_large_binary(dtype):
        return pa.binary()
    if pa.types.is_struct(dtype):
        return pa.struct([one.with_type(_small(one.type)) for one in dtype])
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        return pa.list_(dtype.value_field.with_type(_small(dtype.value_type)))
    if pa.types.is_map(dtype):
        item = dtype.item_field.with_type(_small(dtype.item_type))
        return pa.map_(dtype.key_field.with_type(_small(dtype.key_type)), item)
    return dtype


def _places(columns: Schema) -> dict[Names, Names]:
    """The names of field ids, by the paths of columns and fields of structs."""
    result: dict[Names, Names] = {}

    def add(fields: Sequence[Any], names: Names, place: Names) -> None:
        for one in fields:
            here = (*names, one.name)
            result[here] = (*place, field_id_name(one.field_id))
            if inner := getattr(one.field_type, "fields", ()):
                add(inner, here, result[here])

    add(columns.fields, (), ())
    return result


def _mapped_names(table: StaticTable) -> dict[Names, int]:
    """The field ids of columns in files that were written without any."""
    result: dict[Names, int] = {}

    def add(fields: Sequence[Any], parent: Names) -> None:
        for one in fields:
            for name in one.names:
                if one.field_id is not None:
                    result[(*parent, name)] = one.field_id
                add(one.fields, (*parent, name))

    mapping = table.metadata.name_mapping()
    add([] if mapping is None else mapping.root, ())
    return result


def _statistics(
    columns: Schema, tasks: Sequence[FileScanTask], *, is_mapped: bool
) -> LogStatistics:
    """What the manifests say of each file, of columns that are no fields of structs."""
    files = [one.file for one in tasks]
    nulls: dict[str, pa.Array] = {}
    bounds: dict[str, tuple[pa.Array, pa.Array]] = {}
    # A file without field ids may have been described when the table mapped other names
    # to its columns, and no manifest says which files have none.
    for one in () if is_mapped else columns.fields:
        name, number = field_id_name(one.field_id), one.field_id
        counts = [(file.null_value_counts or {}).get(number) for file in files]
        nulls[name] = pa.array(counts, pa.int64())
        kind = type(one.field_type).__name__
        if kind in (*_NUMBERS, *_TIMES, "StringType"):
            ends = [
                [_value(kind, (of or {}).get(number)) for of in sides]
                for sides in (
                    [file.lower_bounds for file in files],
                    [file.upper_bounds for file in files],
                )
            ]
            bounds[name] = (_array(kind, ends[0]), _array(kind, ends[1]))
    n_rows = pa.array([file.record_count for file in files], pa.int64())
    return LogStatistics(n_rows, nulls, bounds)


def _value(kind: str, stored: bytes | None) -> int | str | None:
    """A bound; None if it is not known, or is in another order elsewhere."""
    if stored is None:
        return None
    if kind in _TIMES and len(stored) != _BYTES_OF_TIME:
        return None  # of a column of dates, before it became one of times
    if kind != "StringType":
        return int.from_bytes(stored, "little", signed=True)
    text = stored.decode("utf-8", "replace")
    return text if all(char < _FIRST_SURROGATE for char in text) else None


def _array(kind: str, values: Sequence[Any]) -> pa.Array:
    match kind:
        case "StringType":
            return pa.array(values, pa.string())
        case "IntegerType" | "DateType":
            small = pa.array(values, pa.int64()).cast(pa.int32())
            return small.cast(pa.date32()) if kind == "DateType" else small
        case "LongType":
            return pa.array(values, pa.int64())
        case _:
            zone = "UTC" if kind == "TimestamptzType" else None
            return pa.array(values, pa.int64()).cast(pa.timestamp("us", zone))
