"""Which files Spark would read below a folder, and how one of them is opened.

Not those that are empty, nor any whose path has a part that begins with ``_`` or ``.``
(trap C-37).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from skipindex.errors import TableError
from skipindex.storage.location import Found, Location
from skipindex.storage.names import is_data_file

_SMALL_DICTIONARY: Final = 1 << 16
"""Compressed bytes; writers give up at 1 MB before compression."""

UNREADABLE: Final = (pa.ArrowException, OSError, ValueError)
"""What pyarrow raises for a damaged file; ValueError for names that are no UTF-8."""


def is_visible(found: Found) -> bool:
    """Whether Spark would read the file."""
    return found.size > 0 and is_data_file(found.path)


def check_folder(location: Location) -> None:
    """Raise ``TableError`` if there is a file in the place of the folder."""
    if location.stat("") is not None:
        raise TableError(
            f"{location.full('')!r} is a file (expected the folder of a table)"
        )


def column_reader(
    location: Location, path: str, *, encoded: Collection[str] = ()
) -> tuple[pq.ParquetFile, Callable[[], None]]:
    """The Parquet file at ``path``, and the call that closes it.

    Args:
        location: of the table.
        path: of the file.
        encoded: columns that are read as dictionary arrays where that is faster.
    """
    source = location.open_input(path)
    try:
        file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
        if columns := _dictionary_columns(file.metadata, encoded):
            file = pq.ParquetFile(
                source,
                metadata=file.metadata,
                read_dictionary=columns,
                coerce_int96_timestamp_unit="us",
            )
    except BaseException:
        source.close()
        raise
    return file, source.close


def _dictionary_columns(metadata: pq.FileMetaData, names: Collection[str]) -> list[str]:
    """Those columns of byte strings that are written as a dictionary throughout.

    A writer whose dictionary grows too large goes on with plain values, which take
    several times longer to read as a dictionary.  Only Spark's writer says so for
    certain; of others, a small dictionary is taken for one of all values.
    """
    wanted = []
    for i in range(metadata.num_columns):
        column = metadata.schema.column(i)
        if (
            column.path in names
            and "." not in column.path  # the field of a struct
            and column.physical_type == "BYTE_ARRAY"
            and column.converted_type in {"UTF8", "NONE"}
        ):
            wanted.append((i, column.path))
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    return [
        path
        for i, path in wanted
        if groups and all(_is_dictionary(group.column(i)) for group in groups)
    ]


def _is_dictionary(chunk: pq.ColumnChunkMetaData) -> bool:
    if not chunk.has_dictionary_page:
        return False
    # The first version of the format names plain pages apart from the dictionary.
    if "PLAIN" not in chunk.encodings:
        return True
    n_bytes = chunk.data_page_offset - chunk.dictionary_page_offset
    return bool(0 < n_bytes < _SMALL_DICTIONARY)
