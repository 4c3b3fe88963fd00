"""The rows of a plan in memory, where few pages of the files hold them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from skipindex.expressions.arrays import Ints
from skipindex.planner.rows.dataset import Files
from skipindex.planner.rows.pages import (
    FlatColumn,
    NotPagedError,
    WantedPages,
    chunk_range,
    decoded,
    flat_columns,
    header_ranges,
    index_ranges,
    wanted_pages,
)
from skipindex.planner.stages.cost import BLOCK
from skipindex.source import UNREADABLE, DataFile
from skipindex.storage.deadline import carried
from skipindex.storage.file_system.store_input import MAX_AHEAD, MAX_RANGE, Range

_DECODERS: Final = 4
"""Columns that are decoded together."""

_AT_ONCE: Final = 8
"""Objects of a store that are read together."""
_REQUEST: Final = 1 << 17
"""Bytes of an object that take as long as one more request beside many."""
_MOST_HEADERS: Final = 4000
"""Ranges of an object that are read to find pages."""

_NOT_PAGED: Final = (pa.DictionaryType, pa.BaseExtensionType)
"""Types whose values depend on more than the pages."""

Pages: TypeAlias = tuple[FlatColumn, Sequence[WantedPages]]


def blocks_of(rows: Ints) -> int:
    """The number of blocks of rows, about a page each, that hold some rows."""
    blocks = rows >> BLOCK
    return int(np.count_nonzero(np.diff(blocks, prepend=-1)))


class Bytes(NamedTuple):
    """How many bytes of files are read, as stored.

    Args:
        pages: of the pages that hold the wanted rows, in the wanted columns.
        groups: of the row groups that do, in the wanted columns.
        whole: of the wanted columns.
        condition: of the columns of the condition.
        requests: of a store, for the pages and their headers.
    """

    pages: int = 0
    groups: int = 0
    whole: int = 0
    condition: int = 0
    requests: int = 0

    def plus(self, other: Bytes) -> Bytes:
        """The bytes of both."""
        return Bytes(*map(sum, zip(self, other, strict=True)))


def is_faster_than_arrow(size: Bytes) -> bool:
    """Whether reading pages is faster than a scan by Arrow."""
    return 1.75 * size.pages <= size.whole + size.condition


def _is_faster_from_a_store(size: Bytes) -> bool:
    """Whether reading pages of objects is faster than a scan."""
    whole = size.whole + size.condition
    return size.pages <= MAX_AHEAD // 2 and (
        2 * (size.pages + _REQUEST * size.requests) <= whole
    )


def rows_at(
    files: Files,
    rows: Mapping[int, Ints],
    schema: pa.Schema,
    condition: Collection[str],
    is_worth: Callable[[Bytes], bool],
) -> pa.Table | None:
    """The rows at these positions of each file, in order.

    Args:
        files: those that are read.
        rows: by the position of a file in the table: positions, which ascend.
        schema: the wanted columns, of ``files.schema``.
        condition: names of the columns of the condition.
        is_worth: whether to read pages, asked after each file; if not, None is
            returned.  Of a store it is another question.

    Raises:
        PlanError: Arrow would read a file otherwise than Spark, or it changed.
    """
    parts: list[_Part] = []
    size = Bytes()
    if files.is_store:
        files.read_ahead((i, files.tail(i)) for i in rows)
    for i in rows:
        with files.opened(i) as (file, source):
            part = _Part(files, i, rows[i], file, source)
            parts.append(part)
            if files.is_store:
                continue
            part.locate(schema, condition, source)
        size = size.plus(part.size)
        if not is_worth(size):
            return None
    if files.is_store and not _held_ahead(files, parts, schema, condition):
        return None
    if files.is_store:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(carried(_Part.copy), parts))
    else:  # threads would wait for each other
        for part in parts:
            part.copy()
    with ThreadPoolExecutor(_DECODERS) as pool:
        columns = list(pool.map(lambda field: _joined(field, parts), schema))
    if columns:
        return pa.Table.from_arrays(columns, schema=schema)
    return pa.table({"": pa.nulls(sum(map(len, rows.values())))}).select([])


def _held_ahead(
    files: Files, parts: Sequence[_Part], schema: pa.Schema, condition: Collection[str]
) -> bool:
    """Locate the pages of objects, and hold them; False if a scan is faster."""
    # Each step is one wait for all files.
    files.read_ahead((part.file, one) for part in parts for one in part.indexes(schema))
    headers = [(part.file, one) for part in parts for one in part.headers()]
    if len(headers) > _MOST_HEADERS:
        return False
    files.read_ahead(headers)
    size = Bytes(requests=len(headers))
    for part in parts:
        with files.source(part.file) as source:
            part.locate(schema, condition, source)
        size = size.plus(part.size)
    if is_worth := _is_faster_from_a_store(size):
        files.read_ahead((part.file, one) for part in parts for one in part.ranges())
    return is_worth


class _Part:
    """The wanted rows of one file, whose columns are read in different ways.

    Attributes:
        file: its position in the table.
        size: the bytes that it takes to read them.
        pages: of columns whose pages are copied.
        data: these pages.
        values: of all other columns.
    """

    def __init__(
        self, files: Files, i: int, rows: Ints, file: DataFile, source: pa.NativeFile
    ) -> None:
        self.file, self.size = i, Bytes()
        self.pages: dict[str, Pages] = {}
        self.data: dict[str, list[list[bytes]]] = {}
        self.values: dict[str, pa.ChunkedArray] = {}
        self._files, self._n_rows = files, len(rows)
        self._groups, self._by_groups = file.groups, list[str]()
        lengths = np.array([group.num_rows for group in self._groups])
        ends = lengths.cumsum()
        if rows[-1] >= ends[-1]:
            raise files.changed(i, "has fewer rows")
        group_of = ends.searchsorted(rows, side="right")
        begins = ends - lengths
        # By row group that holds some of the rows, their positions in it.
        self._within = {
            g: rows[group_of == g] - begins[g] for g in np.unique(group_of).tolist()
        }
        self._opened = file
        self._flat: Mapping[str, FlatColumn] = {}
        self._indexes: dict[tuple[int, int], Range | None] = {}
        self._is_held: set[tuple[int, int]] = set()
        with suppress(NotPagedError):
            self._flat = flat_columns(source, file)

    def indexes(self, schema: pa.Schema) -> list[Range]:
        """Where the offset indexes of column chunks with some of the rows are."""
        places = [self._flat[name].place for name in schema.names if name in self._flat]
        with self._files.source(self.file) as source, suppress(NotPagedError):
            by_group = index_ranges(source)
            self._indexes = {
                (g, place): by_group[g][place] for g in self._within for place in places
            }
        return [index for index in self._indexes.values() if index is not None]

    def headers(self) -> list[Range]:
        """Where the headers of pages of these column chunks may be.

        Without an offset index it is the entire chunk, unless that is large.
        """
        result: list[Range] = []
        with self._files.source(self.file) as source:
            for (g, place), index in self._indexes.items():
                chunk = self._groups[g].column(place)
                ranges = [chunk_range(chunk)]
                if index is not None:
                    with suppress(NotPagedError):
                        ranges = header_ranges(source, chunk, index)
                if all(length <= MAX_RANGE for _, length in ranges):
                    self._is_held.add((g, place))
                    result += ranges
        return result

    def ranges(self) -> list[Range]:
        """Where the pages are."""
        every = [one for _, pages in self.pages.values() for one in pages]
        return [(page.offset, page.size) for one in every for page in one.all_pages]

    def locate(
        self, schema: pa.Schema, condition: Collection[str], source: pa.NativeFile
    ) -> None:
        """Find the pages of columns, of the open file."""
        constants = self._files.constants(self.file)
        for name in {*schema.names, *condition} - {*constants}:
            sizes = self._sizes(name)
            if name in condition:
                self.size = self.size.plus(Bytes(condition=sum(sizes)))
            if name not in schema.names:
                continue
            if not sizes:
                dtype = schema.field(name).type
                self.values[name] = pa.chunked_array([pa.nulls(self._n_rows, dtype)])
                continue
            n_bytes = n_group_bytes = sum(sizes[g] for g in self._within)
            if pages := self._pages(self._flat.get(name), source):
                self.pages[name] = pages
                n_bytes = sum(one.size for one in pages[1])
                n_requests = sum(len(one.all_pages) for one in pages[1])
            else:
                self._by_groups.append(name)
                n_requests = len(self._within)
            size = Bytes(n_bytes, n_group_bytes, sum(sizes), requests=n_requests)
            self.size = self.size.plus(size)
        for name in {*constants} & {*schema.names}:
            self.values[name] = pa.chunked_array(
                [pa.repeat(constants[name], self._n_rows)], schema.field(name).type
            )

    def column(self, name: str) -> FlatColumn | None:
        """The column of this name, if its pages are copied."""
        return self.pages[name][0] if name in self.pages else None

    def copy(self) -> None:
        """Copy the pages, and read the columns without pages."""
        with self._files.source(self.file) as source:
            for name, (_, pages) in self.pages.items():
                self.data[name] = [one.copy(source) for one in pages]
        if self._by_groups:
            self.values |= self.by_groups(self._by_groups)

    def by_groups(self, columns: Sequence[str]) -> dict[str, pa.ChunkedArray]:
        """The rows of any columns, from the entire row groups that hold them."""
        groups = self._files.fragment(self.file).subset(row_group_ids=[*self._within])
        with self._files.source(self.file):
            table = groups.to_table(
                self._files.schema, columns=columns, use_threads=False
            )
        lengths = np.array([self._groups[g].num_rows for g in self._within])
        if table.num_rows != lengths.sum():
            raise self._files.changed(self.file, "has another number of rows")
        begins = lengths.cumsum() - lengths
        at = [r + n for r, n in zip(self._within.values(), begins, strict=True)]
        table = table.take(pa.array(np.concatenate(at)))
        return dict(zip(columns, table.columns, strict=True))

    def _sizes(self, name: str) -> list[int]:
        """The bytes of a column in each row group; empty if the file lacks it."""
        if self._opened.schema_arrow.get_field_index(name) < 0:
            return []
        if name in self._flat:
            leaves = [self._flat[name].place]
        else:
            schema = self._opened.schema
            paths = [schema.column(j).path for j in range(len(schema))]
            leaves = [j for j, p in enumerate(paths) if f"{p}.".startswith(f"{name}.")]
        return [
            sum(group.column(j).total_compressed_size for j in leaves)
            for group in self._groups
        ]

    def _pages(self, column: FlatColumn | None, source: pa.NativeFile) -> Pages | None:
        """The pages of a column; None if they cannot be copied."""
        if column is None or isinstance(column.field.type, _NOT_PAGED):
            return None
        chunks = {(g, column.place) for g in self._within}
        if self._files.is_store and not chunks <= self._is_held:
            return None
        try:
            return column, [
                wanted_pages(source, self._groups[g], column.place, rows)
                for g, rows in self._within.items()
            ]
        except NotPagedError:
            return None


def _joined(field: pa.Field, parts: Sequence[_Part]) -> pa.ChunkedArray:
    """The rows of a column in all files, in the table's type."""
    chunks: list[pa.Array] = []
    start = 0
    while start < len(parts):
        stop = start + 1
        if first := parts[start].pages.get(field.name):
            alike = first[0]
            while stop < len(parts) and alike == parts[stop].column(field.name):
                stop += 1
            values = _decoded(field.name, parts[start:stop])
        else:
            values = parts[start].values[field.name]
        chunks += values.cast(field.type).chunks
        start = stop
    return pa.chunked_array(chunks, field.type)


def _decoded(name: str, parts: Sequence[_Part]) -> pa.ChunkedArray:
    """The rows of a column in some files, whose pages are alike."""
    pages = [one for part in parts for one in part.pages[name][1]]
    data = [one for part in parts for one in part.data[name]]
    try:
        return decoded(parts[0].pages[name][0], pages, data)
    except (NotPagedError, *UNREADABLE):
        # If a page is damaged, this raises the error of Arrow.
        values = [part.by_groups([name])[name] for part in parts]
        return pa.chunked_array([chunk for one in values for chunk in one.chunks])
