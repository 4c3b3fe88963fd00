"""Rows of flat columns at known positions, from only the pages that hold them.

The page headers of a column chunk are followed from its first page on, as every reader
does.  So a row is found where a reader of the entire chunk finds it: an offset index is
neither needed nor relied on.  The pages with a wanted row are copied, with the
dictionary if one of them needs it, into a Parquet file in memory that has a footer of
its own, and Arrow decodes this file.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import index
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skipindex.expressions.arrays import Ints
from skipindex.source import UNREADABLE, DataFile
from skipindex.source.parquet.files import chunk_begin, footer_of
from skipindex.storage.file_system.store_input import Range
from skipindex.storage.thrift import (
    BINARY,
    I32,
    LIST,
    STRUCT,
    Fields,
    binary,
    i32,
    i64,
    listed,
    read_list,
    read_struct,
    read_value,
    struct,
    varint,
)

_MAGIC: Final = b"PAR1"
_CODECS: Final = {"UNCOMPRESSED": 0, "SNAPPY": 1, "GZIP": 2, "BROTLI": 4, "ZSTD": 6}
"""Names of pyarrow that stand for one codec of the format; LZ4 stands for two."""
_HEADER: Final = 512
"""Bytes that are read of a page header at first; its bounds may be longer."""
_LONGEST_HEADER: Final = 1 << 20
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_DICTIONARY_CODES: Final = frozenset({2, 8})
"""Encodings of data pages that need the dictionary."""


class NotPagedError(Exception):
    """The pages of a column cannot be copied; the column must be read as usual."""


@dataclass(frozen=True, slots=True)
class FlatColumn:
    """A column of a file with one value or NULL in each row.

    Pages of equal columns may stand in one Parquet file.

    Args:
        place: among the column chunks of a row group.
        element: its entry in the schema of the footer, as it was written.
        physical: its physical type, by Parquet's number.
        field: its name and type in Arrow.
        writer: the name and version of the file's writer.
        keeps_type: whether the file stores the type in Arrow.
    """

    place: int = field(compare=False)
    element: bytes
    physical: int
    field: pa.Field
    writer: str
    keeps_type: bool


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a file, with its header.

    Args:
        offset: in the file.
        size: in bytes, as stored.
        raw_size: in bytes, before compression.
        n_values: that it holds; NULL counts.
        encoding: of the values, by Parquet's number.
    """

    offset: int
    size: int
    raw_size: int
    n_values: int
    encoding: int


@dataclass(frozen=True, slots=True)
class WantedPages:
    """The pages of one column chunk that hold the wanted rows.

    Args:
        dictionary: its page; None if no page needs it.
        pages: the data pages.
        rows: the places of the wanted rows among the rows of these pages.
        codec: of the chunk, by Parquet's number.
    """

    dictionary: Page | None
    pages: Sequence[Page]
    rows: Ints
    codec: int

    @property
    def all_pages(self) -> list[Page]:
        """The pages in the order of the file."""
        return [*([] if self.dictionary is None else [self.dictionary]), *self.pages]

    @property
    def size(self) -> int:
        """Bytes as stored."""
        return sum(page.size for page in self.all_pages)

    @property
    def n_rows(self) -> int:
        """Rows of the data pages."""
        return sum(page.n_values for page in self.pages)

    def copy(self, source: pa.NativeFile) -> list[bytes]:
        """The bytes of all pages; fewer if the file ends before."""
        return [source.read_at(page.size, page.offset) for page in self.all_pages]


def flat_columns(source: pa.NativeFile, file: DataFile) -> Mapping[str, FlatColumn]:
    """The flat columns of an open file, by name.

    Raises:
        NotPagedError: the footer cannot be parsed.
    """
    with _damage():
        footer = footer_of(source)
        writer = file.metadata.created_by or ""
        keeps_type = b"ARROW:schema" in (file.metadata.metadata or {})
        result: dict[str, FlatColumn] = {}
        leaves = [one for one in _schema_elements(footer) if not one[1].get(5)]
        if len(leaves) != len(file.schema):
            raise NotPagedError("the schema has another number of columns")
        for place, (element, fields) in enumerate(leaves):
            leaf, name = file.schema.column(place), fields[4].decode()
            # The path of a field of a struct is longer than its name.
            is_alone = leaf.path == name and leaf.max_definition_level <= 1
            if is_alone and not leaf.max_repetition_level:
                arrow = file.schema_arrow.field(name)
                result[name] = FlatColumn(
                    place, element, fields[1], arrow, writer, keeps_type
                )
        return result


def index_ranges(source: pa.NativeFile) -> list[list[Range | None]]:
    """Where the offset index of each column chunk is, by row group; None: nowhere.

    Raises:
        NotPagedError: the footer cannot be parsed.
    """
    with _damage():
        footer, _ = read_struct(footer_of(source), 0)
        return [
            [(index(one[4]), index(one[5])) if 5 in one else None for one in group[1]]
            for group in footer[4]
        ]


def header_ranges(
    source: pa.NativeFile, chunk: pq.ColumnChunkMetaData, at: Range
) -> list[Range]:
    """Where an offset index says that page headers of a column chunk are.

    It may say anything: what is read there is only held for those who look for it.
    """
    with _damage():
        start, stop = _span(chunk)
        offset, length = at
        locations, _ = read_struct(source.read_at(length, offset), 0)
        places = [start, *(one[1] for one in locations[1])]
        return [
            (one, min(_HEADER, stop - one)) for one in places if start <= one < stop
        ]


def chunk_range(chunk: pq.ColumnChunkMetaData) -> Range:
    """Where a column chunk begins, and its bytes."""
    start, stop = _span(chunk)
    return start, stop - start


def wanted_pages(
    source: pa.NativeFile, group: pq.RowGroupMetaData, place: int, rows: Ints
) -> WantedPages:
    """The pages of a column chunk with ``rows``, which ascend within the row group.

    Raises:
        NotPagedError: the headers of the pages do not add up to the chunk, or it has
            pages that are not supported.
    """
    with _damage():
        chunk = group.column(place)
        codec = _CODECS[chunk.compression]
        dictionary, pages = _pages(source, chunk)
        ends = np.cumsum([page.n_values for page in pages])
        if ends[-1] != group.num_rows or rows[-1] >= group.num_rows:
            raise NotPagedError("the pages have another number of rows")
        page_of = ends.searchsorted(rows, side="right")
        kept = np.unique(page_of)
        wanted = [pages[i] for i in kept.tolist()]
        is_coded = any(page.encoding in _DICTIONARY_CODES for page in wanted)
        if is_coded and dictionary is None:
            raise NotPagedError("a dictionary is missing")
        lengths = np.array([page.n_values for page in wanted])
        # Of each kept page: where it begins in the chunk, and among the kept rows.
        begins, begins_here = ends[kept] - lengths, np.cumsum(lengths) - lengths
        at = kept.searchsorted(page_of)
        places = rows - begins[at] + begins_here[at]
        return WantedPages(dictionary if is_coded else None, wanted, places, codec)


def decoded(
    column: FlatColumn, parts: Sequence[WantedPages], data: Sequence[Sequence[bytes]]
) -> pa.ChunkedArray:
    """The wanted rows of a column, part after part, in the type that Arrow reads.

    ``data`` are the copied pages of each part.

    Raises:
        NotPagedError: Arrow reads another number of rows, or another type.
        pa.ArrowException: a page is damaged.
    """
    sizes = [[page.size for page in part.all_pages] for part in parts]
    if sizes != [list(map(len, pages)) for pages in data]:
        raise NotPagedError("the file ends within a page")
    source = pa.BufferReader(_parquet_file(column, parts, data))
    file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
    values = file.read(use_threads=False).column(0)
    lengths = np.array([part.n_rows for part in parts])
    if len(values) != lengths.sum() or values.type != column.field.type:
        raise NotPagedError("Arrow reads other values")
    begins = np.cumsum(lengths) - lengths
    at = [part.rows + begin for part, begin in zip(parts, begins, strict=True)]
    return values.take(pa.array(np.concatenate(at)))


@contextmanager
def _damage() -> Iterator[None]:
    """Raise ``NotPagedError`` for bytes that cannot be parsed."""
    try:
        yield
    except (*UNREADABLE, LookupError, TypeError, RecursionError) as error:
        raise NotPagedError(str(error)) from error


def _pages(
    source: pa.NativeFile, chunk: pq.ColumnChunkMetaData
) -> tuple[Page | None, list[Page]]:
    """The dictionary page, if any, and the data pages of a column chunk, in order."""
    start, stop = _span(chunk)
    at, left = start, chunk.num_values
    dictionary: Page | None = None
    pages: list[Page] = []
    while left > 0:
        if not 0 < at < stop:
            raise NotPagedError("the pages end before the rows")
        header, length = _page_header(source, at, stop)
        size = length + header[3]
        if min(header[2], header[3]) < 0 or at + size > stop:
            raise NotPagedError("a page is larger than its column chunk")
        details = header[_DETAILS[header[1]]]
        n_values, encoding = details[1], details[4 if header[1] == _DATA_V2 else 2]
        page = Page(at, size, length + header[2], n_values, encoding)
        if header[1] == _DICTIONARY:
            if at != start:
                raise NotPagedError("the dictionary is not the first page")
            dictionary = page
        else:
            if n_values <= 0 or (header[1] == _DATA_V2 and details[3] != n_values):
                raise NotPagedError("a page has another number of rows")
            pages.append(page)
            left -= n_values
        at += size
    if left or not pages:
        raise NotPagedError("the pages have another number of rows")
    return dictionary, pages


def _span(chunk: pq.ColumnChunkMetaData) -> tuple[int, int]:
    """Where a column chunk begins and ends."""
    start = chunk_begin(chunk)
    return start, start + chunk.total_compressed_size


_DETAILS: Final = {_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}
"""The field of a page header for each type of page."""


def _page_header(source: pa.NativeFile, at: int, stop: int) -> tuple[Fields, int]:
    """The header of the page at an offset, and its length."""
    for n_bytes in (_HEADER, _LONGEST_HEADER):
        data = source.read_at(min(n_bytes, stop - at), at)
        try:
            return read_struct(data, 0)
        except IndexError:
            continue
    raise NotPagedError("a page has no header")


def _schema_elements(footer: bytes) -> Iterator[tuple[bytes, Fields]]:
    """The entries of the schema, each as written and parsed."""
    _, at = read_value(footer, 1, footer[0] & 15)  # the version
    if (footer[0] >> 4, footer[at]) != (1, 1 << 4 | LIST):
        raise NotPagedError("the footer does not begin with a schema")
    length, _, at = read_list(footer, at + 1)
    for _ in range(length):
        fields, end = read_struct(footer, at)
        yield footer[at:end], fields
        at = end


def _parquet_file(
    column: FlatColumn, parts: Sequence[WantedPages], data: Sequence[Sequence[bytes]]
) -> bytes:
    """A Parquet file of one column, with a row group for each part."""
    result, size, groups = [_MAGIC], len(_MAGIC), []
    for part, pages in zip(parts, data, strict=True):
        result += pages
        n_raw = sum(page.raw_size for page in part.all_pages)
        chunk = {
            1: i32(column.physical),
            2: listed(I32, [varint(0)]),
            3: listed(BINARY, [binary(column.field.name.encode())[1]]),
            4: i32(part.codec),
            5: i64(part.n_rows),
            6: i64(n_raw),
            7: i64(part.size),
            9: i64(size),
        }
        if part.dictionary:
            chunk |= {9: i64(size + part.dictionary.size), 11: i64(size)}
        entry = struct({2: i64(0), 3: (STRUCT, struct(chunk))})
        group = {1: listed(STRUCT, [entry]), 2: i64(n_raw), 3: i64(part.n_rows)}
        groups.append(struct(group))
        size += part.size
    root = struct({4: binary(b"schema"), 5: i32(1)})
    footer = {
        1: i32(2),
        2: listed(STRUCT, [root, column.element]),
        3: i64(sum(part.n_rows for part in parts)),
        4: listed(STRUCT, groups),
        6: binary(column.writer.encode()),
    }
    if column.keeps_type:
        schema = base64.b64encode(pa.schema([column.field]).serialize())
        entry = struct({1: binary(b"ARROW:schema"), 2: binary(schema)})
        footer[5] = listed(STRUCT, [entry])
    packed = struct(footer)
    return b"".join([*result, packed, len(packed).to_bytes(4, "little"), _MAGIC])
