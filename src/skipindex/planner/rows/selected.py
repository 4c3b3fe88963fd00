"""The rows of a plan in memory, where few pages of the files hold them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from skipindex.expressions.arrays import Ints
from skipindex.planner.rows.dataset import Files
from skipindex.planner.rows.pages import (
    FlatColumn,
    NotPagedError,
    WantedPages,
    decoded,
    flat_columns,
    wanted_pages,
)
from skipindex.table import UNREADABLE, DataFile

_BLOCK: Final = 14
"""Rows of 2 ** 14 are taken for a page, before the pages are known."""
_DECODERS: Final = 4
"""Columns that are decoded together."""

_NOT_PAGED: Final = (pa.DictionaryType, pa.BaseExtensionType)
"""Types whose values depend on more than the pages."""

Pages: TypeAlias = tuple[FlatColumn, Sequence[WantedPages]]


def blocks_of(rows: Ints) -> int:
    """The number of blocks of rows, about a page each, that hold some rows."""
    blocks = rows >> _BLOCK
    return int(np.count_nonzero(np.diff(blocks, prepend=-1)))


def n_blocks(n_rows: int) -> int:
    """The number of blocks in a file."""
    return (n_rows >> _BLOCK) + 1


class Bytes(NamedTuple):
    """How many bytes of files are read, as stored.

    Args:
        pages: of the pages that hold the wanted rows, in the wanted columns.
        groups: of the row groups that do, in the wanted columns.
        whole: of the wanted columns.
        condition: of the columns of the condition.
    """

    pages: int = 0
    groups: int = 0
    whole: int = 0
    condition: int = 0

    def plus(self, other: Bytes) -> Bytes:
        """The bytes of both."""
        return Bytes(*map(sum, zip(self, other, strict=True)))


def is_faster_than_arrow(size: Bytes) -> bool:
    """Whether reading pages is faster than a scan by Arrow."""
    return 1.75 * size.pages <= size.whole + size.condition


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
            returned.

    Raises:
        PlanError: Arrow would read a file otherwise than Spark, or it changed.
    """
    parts: list[_Part] = []
    size = Bytes()
    for i in rows:
        with files.opened(i) as (file, source):
            part = _Part(files, i, rows[i], file)
            part.locate(schema, condition, source)
        parts.append(part)
        size = size.plus(part.size)
        if not is_worth(size):
            return None
    for part in parts:
        part.copy()
    with ThreadPoolExecutor(_DECODERS) as pool:
        columns = list(pool.map(lambda field: _joined(field, parts), schema))
    if columns:
        return pa.Table.from_arrays(columns, schema=schema)
    return pa.table({"": pa.nulls(sum(map(len, rows.values())))}).select([])


class _Part:
    """The wanted rows of one file, whose columns are read in different ways.

    Attributes:
        file: its position in the table.
        size: the bytes that it takes to read them.
        pages: of columns whose pages are copied.
        data: these pages.
        values: of all other columns.
    """

    def __init__(self, files: Files, i: int, rows: Ints, file: DataFile) -> None:
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

    def locate(
        self, schema: pa.Schema, condition: Collection[str], source: pa.NativeFile
    ) -> None:
        """Find the pages of columns, of the open file."""
        try:
            flat = flat_columns(source, self._opened)
        except NotPagedError:
            flat = {}
        constants = self._files.constants(self.file)
        for name in {*schema.names, *condition} - {*constants}:
            sizes = self._sizes(name, flat)
            if name in condition:
                self.size = self.size.plus(Bytes(condition=sum(sizes)))
            if name not in schema.names:
                continue
            if not sizes:
                dtype = schema.field(name).type
                self.values[name] = pa.chunked_array([pa.nulls(self._n_rows, dtype)])
                continue
            n_bytes = n_group_bytes = sum(sizes[g] for g in self._within)
            if pages := self._pages(flat.get(name), source):
                self.pages[name] = pages
                n_bytes = sum(one.size for one in pages[1])
            else:
                self._by_groups.append(name)
            self.size = self.size.plus(Bytes(n_bytes, n_group_bytes, sum(sizes)))
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

    def _sizes(self, name: str, flat: Mapping[str, FlatColumn]) -> list[int]:
        """The bytes of a column in each row group; empty if the file lacks it."""
        if self._opened.schema_arrow.get_field_index(name) < 0:
            return []
        if name in flat:
            leaves = [flat[name].place]
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
