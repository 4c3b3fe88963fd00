"""Checking that Arrow read the dictionary pages of a column as they were written.

Arrow puts the entries of a dictionary page into a table that has each value once, and
takes the numbers of the data pages as they are.  Where an entry is repeated, as DuckDB
does for the unused values of an ENUM, these numbers then mean other entries, or none.
So the result is compared with the pages: if Arrow's entries are, byte for byte, those
of the page, none was omitted, and every number has its meaning.  Plain values behind
the dictionary come after its entries and do not matter.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skipindex.storage.thrift import read_struct

_HEADER_BYTES: Final = 64
"""The header of a dictionary page has no more; it is some small numbers."""

_MAX_PAGE: Final = 64 << 20
"""A dictionary page of more bytes than this is not read."""

_CODECS: Final = {"LZ4": "lz4_raw"}
"""Names of compressions that Arrow's codecs have otherwise."""


def is_as_written(
    values: pa.ChunkedArray,
    leaf: int,
    metadata: pq.FileMetaData,
    source: pa.NativeFile,
) -> bool:
    """Whether ``values``, read as dictionaries, are certainly those of the file.

    ``values`` are all rows of one column that is not repeated, and ``leaf`` is its
    place among the columns of Parquet.
    """
    groups = [*map(metadata.row_group, range(metadata.num_row_groups))]
    groups = [group for group in groups if group.num_rows]
    if [len(part) for part in values.chunks] != [group.num_rows for group in groups]:
        return False
    return all(
        _is_inside(part)
        and _has_entries_of(part.dictionary, group.column(leaf), source)
        for part, group in zip(values.chunks, groups, strict=True)
    )


def _is_inside(values: pa.DictionaryArray) -> bool:
    """Whether all numbers are those of entries; Arrow does not check this."""
    ends = pc.min_max(values.indices)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    return low is None or 0 <= low <= high < len(values.dictionary)


def _has_entries_of(
    entries: pa.Array, chunk: pq.ColumnChunkMetaData, source: pa.NativeFile
) -> bool:
    """Whether ``entries`` begin with all entries of the dictionary page."""
    begin = chunk.dictionary_page_offset
    if chunk.physical_type != "BYTE_ARRAY" or begin is None:
        return False
    room = chunk.data_page_offset - begin
    if not 0 < room <= _MAX_PAGE or entries.null_count:
        return False
    try:
        n_entries, page = _page(source.read_at(room, begin), chunk.compression)
    except (ArithmeticError, LookupError, ValueError, pa.ArrowException):
        return False
    if len(entries) < n_entries:
        return False
    return bool(np.array_equal(_plain(entries.slice(0, n_entries)), page))


def _page(raw: bytes, compression: str) -> tuple[int, npt.NDArray[np.uint8]]:
    """The number of entries of a dictionary page, and its bytes."""
    header, begin = read_struct(raw[:_HEADER_BYTES], 0)
    n_bytes, n_stored, entries = header[2], header[3], header[7]
    page: Any = raw[begin : begin + n_stored]
    if len(page) != n_stored:
        raise ValueError("the page is cut off")
    if compression != "UNCOMPRESSED":
        codec = pa.Codec(_CODECS.get(compression, compression.lower()))
        page = codec.decompress(page, n_bytes)
    return entries[1], np.frombuffer(page, np.uint8)


def _plain(entries: pa.Array) -> npt.NDArray[np.uint8]:
    """The entries as a page has them: for each its length, then its bytes."""
    texts = entries.cast(pa.large_binary())
    _, offsets, data = texts.buffers()
    n = len(texts)
    if not n:
        return np.empty(0, np.uint8)
    ends = np.frombuffer(offsets, np.int64, n + 1, 8 * texts.offset)
    lengths = np.diff(ends)
    n_bytes = int(ends[-1] - ends[0])
    page = np.empty(n_bytes + 4 * n, np.uint8)
    is_length = np.zeros(len(page), np.bool_)
    starts = ends[:-1] - ends[0] + 4 * np.arange(n)
    is_length[(starts[:, np.newaxis] + np.arange(4)).ravel()] = True
    page[is_length] = lengths.astype("<u4").view(np.uint8)
    if n_bytes:
        page[~is_length] = np.frombuffer(data, np.uint8, n_bytes, int(ends[0]))
    return page
