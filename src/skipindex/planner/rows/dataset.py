"""Files of a table as a dataset of Arrow with the table's columns.

Arrow reads a column that a file lacks as NULL, and casts one of another type.  Spark
does so too, but not always: so each file is checked first, and one of which Arrow
would read other values is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta, tzinfo
from typing import Any, Final, NamedTuple, TypeVar
from weakref import WeakKeyDictionary
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs

from skipindex.conditions.functions.zones import fixed_offset
from skipindex.errors import PlanError, UnsupportedTypeError, first_line
from skipindex.expressions.domain import EPOCH_UTC
from skipindex.planner.rows.values import joined, number_of, scalar_of
from skipindex.source import (
    UNREADABLE,
    DataFile,
    check_stored,
    has_int96,
    is_hybrid,
    lacks,
)
from skipindex.source.partitions.hive import PartitionColumn, partition_domain
from skipindex.source.partitions.inference import INSTANT
from skipindex.source.source import LogSource
from skipindex.storage.file_system.byte_source import ByteSource
from skipindex.storage.file_system.file_info import FileInfo
from skipindex.storage.file_system.store_input import (
    Range,
    as_file,
    fetch_ahead,
    tail_of,
)
from skipindex.table import TableState

T = TypeVar("T")

_AT_ONCE: Final = 8
"""Files that are checked together."""


def dataset_of(
    table: TableState,
    files: Sequence[int],
    *,
    timezone: str | None,
    case_sensitive: bool,
) -> ds.FileSystemDataset:
    """The rows of ``files``, which are positions in the table."""
    return Files(
        table, files, timezone=timezone, case_sensitive=case_sensitive
    ).dataset()


class StoredColumns(NamedTuple):
    """The columns of a file as Arrow reads them, and whether one has INT96."""

    schema: pa.Schema
    has_int96: bool

    @classmethod
    def of(cls, file: DataFile) -> StoredColumns:
        """The columns of an open file."""
        return cls(file.schema_arrow, has_int96(file))


_CHECKED: Final[WeakKeyDictionary[TableState, dict[bool, dict[int, StoredColumns]]]] = (
    WeakKeyDictionary()
)
"""The columns of files that were checked, by their hash, of a table, and by whether
capitals tell names apart."""


class Files:
    """Files of a table, each of which is checked before Arrow reads it.

    Args:
        table: the table.
        files: their positions in it.
        timezone: of the local times in the names of folders.
        case_sensitive: whether names of columns must have the same capitals.

    Attributes:
        schema: the columns, with the types that Spark gives them.
    """

    def __init__(
        self,
        table: TableState,
        files: Sequence[int],
        *,
        timezone: str | None,
        case_sensitive: bool,
    ) -> None:
        self._table, self._files, self._exact = table, files, case_sensitive
        listed = table.listing.at(np.array(files, np.int64))
        self._listed = dict(zip(files, listed, strict=True))
        self._views: dict[int, ByteSource] = {}
        self._hashes = dict(zip(files, table.columns_hashes(files), strict=True))
        known = _CHECKED.setdefault(table, {})
        self._by_hash = known.setdefault(case_sensitive, {})
        self._system = _file_system(self, table, self._listed)
        self._reader = ds.ParquetFileFormat(
            read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
        )
        self._parts = [_Partition(column, timezone) for column in table.partitions]
        types = {part.name: part.dtype for part in self._parts}
        fields = [
            pa.field(column.own_name, types[column.own_name])
            if column.is_partition
            else table.schema.field(column.own_name)
            for column in table.columns
        ]
        self.schema = pa.schema([field.remove_metadata() for field in fields])

    def dataset(self) -> ds.FileSystemDataset:
        """All rows of the files.

        Raises:
            PlanError: Arrow would read a file otherwise than Spark.
        """
        self.each(self.stored)
        fragments = [*map(self.fragment, self._files)]
        return ds.FileSystemDataset(fragments, self.schema, self._reader, self._system)

    def each(self, do: Callable[[int], T]) -> list[T]:
        """The results of a function for all files; of a store, several together."""
        if self._table.location.is_local:  # threads would wait for each other
            return list(map(do, self._files))
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(do, self._files))

    def constants(self, i: int) -> Mapping[str, pa.Scalar]:
        """The values of the partition columns of a file."""
        return {part.name: part.value(i) for part in self._parts}

    def fragment(self, i: int) -> ds.ParquetFileFragment:
        """A file that was checked."""
        given = [part.equals(i) for part in self._parts]
        where = joined(given, every=True) if given else pc.scalar(True)
        path = self._table.location.full(self._listed[i].path)
        return self._reader.make_fragment(
            path, self._system, partition_expression=where
        )

    def read(self, i: int, columns: Sequence[str]) -> pa.Table:
        """All rows of a file, in some columns.

        Raises:
            PlanError: Arrow would read it otherwise than Spark, or it changed.
        """
        with self.opened(i) as (file, _):
            table = self.fragment(i).to_table(self.schema, columns=columns)
            if table.num_rows != file.metadata.num_rows:
                raise self.changed(i, "has another number of rows")
            return table

    def stored(self, i: int) -> StoredColumns:
        """The columns of a file, which is checked.

        Its footer is read unless that of a file with the same columns was read.

        Raises:
            PlanError: Arrow would read it otherwise than Spark, or it changed.
        """
        columns_hash = self._hashes[i]
        if columns_hash in self._by_hash:
            listed, table = self._listed[i], self._table
            if table.location.is_local:  # a store reads no other content
                now = table.location.stat(listed.path)
                if not listed.is_same(now):
                    how = "is gone" if now is None else "was replaced"
                    raise self.changed(i, how)
            return self._by_hash[columns_hash]
        with self.opened(i) as (file, _):
            return StoredColumns.of(file)

    @contextmanager
    def opened(self, i: int) -> Iterator[tuple[DataFile, pa.NativeFile]]:
        """A file that is checked.

        Raises:
            PlanError: Arrow would read it otherwise than Spark, or it changed.
        """
        with self.source(i) as source:
            file = DataFile(source)
            if self._table.n_rows.of_file(i) not in {None, file.metadata.num_rows}:
                raise self.changed(i, "has another number of rows")
            columns_hash = file.columns_hash()
            if columns_hash is None or columns_hash not in self._by_hash:
                _compare(self._table, file, exact=self._exact)
            if columns_hash is not None:
                self._by_hash.setdefault(columns_hash, StoredColumns.of(file))
            yield file, source

    @contextmanager
    def source(self, i: int) -> Iterator[pa.NativeFile]:
        """The bytes of a file; its errors say which file it is.

        Raises:
            PlanError: the file changed, is gone, or cannot be read.
        """
        table, listed = self._table, self._listed[i]
        where = table.location.full(listed.path)
        try:
            with self.open_input(i) as source:
                if table.location.is_local:  # a store reads no other content
                    now = table.location.stat(listed.path)
                    if now is not None and not listed.is_same(now):
                        raise self.changed(i, "was replaced")
                yield source
        except PlanError:
            raise
        except FileNotFoundError as error:
            raise self.changed(i, "is gone") from error
        except UnsupportedTypeError as error:
            raise PlanError(
                f"only Spark can read {where!r}: {error} (accepted: "
                "plan.read(spark), or plan.files and a reader that supports such files)"
            ) from error
        except UNREADABLE as error:
            raise PlanError(
                f"{where!r} is not a readable Parquet file: {first_line(error)} "
                "(accepted: files that can be read; table.verify() finds all others)"
            ) from error

    @property
    def is_store(self) -> bool:
        """Whether the files are objects of a store."""
        return self._table.location.is_store

    def open_input(self, i: int) -> pa.NativeFile:
        """A file as it was listed; an object has what was read ahead of it."""
        if self.is_store:
            return as_file(self._view(i))
        listed = self._listed[i]
        return self._table.location.open_input(listed.path, listed)

    def read_ahead(self, ranges: Iterable[tuple[int, Range]]) -> None:
        """Hold ranges of objects, by file, for the reads to come."""
        fetch_ahead((self._view(i), one) for i, one in ranges)

    def tail(self, i: int) -> Range:
        """The end of a file, with the footer of most."""
        return tail_of(self._listed[i].size)

    def _view(self, i: int) -> ByteSource:
        if i not in self._views:
            listed = self._listed[i]
            self._views[i] = self._table.location.view(listed.path, listed)
        return self._views[i]

    def changed(self, i: int, how: str) -> PlanError:
        """The error of a file that is not the one of the plan any more."""
        table = self._table
        where = table.location.full(self._listed[i].path)
        return PlanError(
            f"the table {table.folder!r} changed since it was opened: {where!r} {how} "
            "(open it again, and plan or locate again)"
        )


def chosen_of(whole: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    """The columns of a table that a caller names; None is all.

    Raises:
        PlanError: one does not exist.
    """
    if isinstance(columns, str):
        raise PlanError(f"columns={columns!r} is not a list (accepted: [{columns!r}])")
    for name in columns or ():
        if name not in whole.names:
            known = ", ".join(whole.names)
            raise PlanError(f"no column {name!r} in the rows (columns: {known})")
    return whole if columns is None else pa.schema([*map(whole.field, columns)])


def of_log(
    log: LogSource, table: TableState, files: Sequence[int], whole: pa.Schema
) -> Iterator[pa.Table]:
    """The rows of files as the log of another format reads them, file by file."""
    for one in log.rows(table.location, table.paths_at(np.array(files, np.int64))):
        yield one.select(whole.names).cast(whole)


class _Partition:
    """A partition column, and its value in every file."""

    def __init__(self, column: PartitionColumn, timezone: str | None) -> None:
        domain = partition_domain(column)
        if domain is None or column.dtype is None:
            raise PlanError(
                f"only Spark knows the type of the partition column {column.name!r} "
                "(accepted: a table that was opened with its type in partition_types)"
            )
        self.name, self.dtype = column.name, column.dtype
        self._domain = domain
        self._values = column.typed(domain)
        has_times = column.dtype == INSTANT and any(v is not None for v in self._values)
        self._zone = _zone_of(column, timezone) if has_times else None

    def equals(self, i: int) -> pc.Expression:
        """What is true of the column in file ``i``."""
        value, column = self.value(i), pc.field(self.name)
        return column == value if value.is_valid else column.is_null()

    def value(self, i: int) -> pa.Scalar:
        """The value of the column in file ``i``."""
        value = self._values[i]
        if value is None:
            return pa.scalar(None, self.dtype)
        if self._zone is not None:
            assert isinstance(value, int)
            wall = EPOCH_UTC + timedelta(microseconds=value)
            instant = wall.replace(tzinfo=self._zone) - EPOCH_UTC
            value = instant // timedelta(microseconds=1)
        number = number_of(value, self._domain)
        return scalar_of(number, self._domain, self.dtype)


def _zone_of(column: PartitionColumn, timezone: str | None) -> tzinfo:
    """The zone of the local times in folders, whose instants Spark reads."""
    try:
        if timezone is not None:
            return fixed_offset(timezone) or ZoneInfo(timezone)
        given = "none was given"
    except (ZoneInfoNotFoundError, ValueError, OSError):
        given = f"{timezone!r} is not known"
    raise PlanError(
        f"the folders of {column.name!r} write times of a time zone, and {given} "
        "(accepted: timezone=… of table.plan, or of read after table.locate, such as "
        "'UTC')"
    )


def _compare(table: TableState, file: DataFile, *, exact: bool) -> None:
    """Raise ``UnsupportedTypeError`` if a column would be read otherwise."""
    if file.is_signed:
        raise UnsupportedTypeError("it is signed, and may have encrypted columns")
    for column in table.leaves:
        if column.has_default and lacks(file, column.path):
            raise UnsupportedTypeError(
                f"it lacks column {column.name!r}, whose DEFAULT Spark reads"
            )
        if column.is_partition or column.domain is None:
            continue
        if exact and not _has(file, column.path):
            continue
        if lacks(file, column.path) or _is_null(file, column.path):
            continue
        check_stored(file, column.path, column.domain)
    is_old = is_hybrid(file.metadata.metadata or {})
    hidden = {name for partition in table.partitions for name in partition.names}
    for field in table.schema:
        if field.name in hidden:
            continue
        if why := _read_otherwise(list(file.schema_arrow), [field], exact=exact):
            raise UnsupportedTypeError(f"column {field.name!r}: {why}")
        places = file.schema_arrow.get_all_field_indices(field.name)
        if len(places) > 1:
            raise UnsupportedTypeError(f"it has two columns {field.name!r}")
        for place in places:
            _cast(file.schema_arrow.field(place), field)
            if is_old and field.type.num_fields and _has_times(field.type):
                raise UnsupportedTypeError(
                    f"column {field.name!r}: the file holds dates of the old hybrid "
                    "calendar"
                )


def _read_otherwise(
    stored: Sequence[pa.Field], wanted: Sequence[pa.Field], *, exact: bool
) -> str:
    """Why one of Arrow and Spark reads NULL for a column or a field; or empty."""
    named = {field.name: field for field in stored}
    for field in wanted:
        alike = [name for name in named if name.lower() == field.name.lower()]
        if field.name not in named:
            if alike and not exact:
                return f"{field.name!r} is spelled {alike[0]!r} in this file"
            continue
        mine = named[field.name]
        fields, inner = _inside(mine), _inside(field)
        if result := _read_otherwise(fields, inner, exact=exact):
            return result
        both = {one.name for one in fields} & {one.name for one in inner}
        if (
            not both
            and pa.types.is_struct(mine.type)
            and pa.types.is_struct(field.type)
        ):
            return f"{field.name!r} has none of the table's fields here"
    return ""


def _inside(field: pa.Field) -> list[pa.Field]:
    """The fields of a struct, or what a list or a map holds."""
    dtype = field.type
    if pa.types.is_map(dtype):
        return [dtype.key_field.with_name("key"), dtype.item_field.with_name("value")]
    fields = [dtype.field(i) for i in range(dtype.num_fields)]
    if pa.types.is_struct(dtype):
        return fields
    return [one.with_name("element") for one in fields]


def _has_times(dtype: pa.DataType) -> bool:
    """Whether values of a type have dates or times in them."""
    inner = [dtype.field(i).type for i in range(dtype.num_fields)]
    return pa.types.is_temporal(dtype) or any(map(_has_times, inner))


def _cast(stored: pa.Field, wanted: pa.Field) -> None:
    """Raise ``UnsupportedTypeError`` if Arrow has no cast from one type to another."""
    if stored.type == wanted.type:
        return
    try:
        pa.nulls(0, stored.type).cast(wanted.type)
    except pa.ArrowException as error:
        raise UnsupportedTypeError(
            f"column {wanted.name!r} has type {stored.type} here, and {wanted.type} in "
            "the table"
        ) from error


def _is_null(file: DataFile, path: Sequence[str]) -> bool:
    """Whether a column was written as one of no type, all NULL."""
    places = file.schema_arrow.get_all_field_indices(path[0])
    types = [file.schema_arrow.field(i).type for i in places]
    return len(path) == 1 and types == [pa.null()]


def _has(file: DataFile, path: Sequence[str]) -> bool:
    """Whether a file has a column, or field of structs, of these very names."""
    fields: Any = file.schema_arrow
    for name in path:
        result = [field for field in fields if field.name == name]
        if len(result) != 1:
            return False
        fields = result[0].type if pa.types.is_struct(result[0].type) else ()
    return True


def _file_system(
    reader: Files, table: TableState, files: Mapping[int, FileInfo]
) -> pafs.FileSystem:
    """A file system of Arrow that opens the files."""
    if table.location.is_local:
        return pafs.LocalFileSystem()
    sizes = {table.location.full(f.path): (i, f.size) for i, f in files.items()}
    return pafs.PyFileSystem(_Opener(reader, sizes))


class _Opener(pafs.FileSystemHandler):  # type: ignore[misc]
    """Opens the files of a plan, with the options and the content that it knows."""

    def __init__(self, files: Files, listed: Mapping[str, tuple[int, int]]) -> None:
        self._files, self._listed = files, listed

    def get_type_name(self) -> str:
        """The name of the kind of file system."""
        return "skipindex"

    def normalize_path(self, path: str) -> str:
        """The same path."""
        return path

    def open_input_file(self, path: str) -> pa.NativeFile:
        """The file, for random access."""
        return self._files.open_input(self._listed[path][0])

    open_input_stream = open_input_file

    def get_file_info(self, paths: Sequence[str]) -> list[pafs.FileInfo]:
        """What was listed of the files."""
        return [
            pafs.FileInfo(path, pafs.FileType.File, size=self._listed[path][1])
            for path in paths
        ]

    def _refuse(self, *_: object) -> Any:
        raise PlanError("the files of a plan can only be read (accepted: their paths)")

    get_file_info_selector = create_dir = delete_dir = delete_dir_contents = _refuse
    delete_root_dir_contents = delete_file = move = copy_file = _refuse
    open_output_stream = open_append_stream = _refuse
