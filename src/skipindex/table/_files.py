"""Which files Spark would read below a folder, and how one of them is opened.

Not those that are empty, nor any whose path has a part that begins with ``_`` or ``.``
(trap C-37).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skipindex.errors import TableError, UnsupportedTypeError
from skipindex.storage.location import Found, Location
from skipindex.table._dictionaries import is_as_written

_SMALL_DICTIONARY: Final = 1 << 16
"""Compressed bytes; writers give up at 1 MB before compression."""

UNREADABLE: Final = (pa.ArrowException, OSError, ValueError)
"""What pyarrow raises for a damaged file; ValueError for names that are no UTF-8."""

_OPTIONS: Final[Mapping[str, Any]] = {"coerce_int96_timestamp_unit": "us"}


def is_data_file(path: str) -> bool:
    """Whether Spark would read the file at this relative path, if it is not empty."""
    return not any(
        (part.startswith("_") and "=" not in part)
        or part.startswith(".")
        or part.endswith("._COPYING_")
        for part in path.split("/")
    )


def is_visible(found: Found) -> bool:
    """Whether Spark would read the file."""
    return found.size > 0 and is_data_file(found.path)


def check_folder(location: Location) -> None:
    """Raise ``TableError`` if there is a file in the place of the folder."""
    if location.stat("") is not None:
        raise TableError(
            f"{location.full('')!r} is a file (expected the folder of a table)"
        )


class DataFile:
    """One Parquet file, of which columns are read one at a time.

    Args:
        source: the open file.
        encoded: columns that are read as dictionary arrays where that is faster.
    """

    def __init__(self, source: pa.NativeFile, encoded: Collection[str] = ()) -> None:
        self._source = source
        self._plain = self._encoded = pq.ParquetFile(source, **_OPTIONS)
        self.metadata = self._plain.metadata
        self.schema = self._plain.schema
        self.schema_arrow = self._plain.schema_arrow
        if columns := _dictionary_columns(self.metadata, encoded):
            self._encoded = pq.ParquetFile(
                source, metadata=self.metadata, read_dictionary=columns, **_OPTIONS
            )

    def read(self, path: Sequence[str]) -> pa.ChunkedArray:
        """All rows of a column, or of a field of structs, as the file has them.

        A field is NULL where a struct around it is.

        Raises:
            UnsupportedTypeError: the writer asks for a dictionary array, and Arrow
                does not read the values of this dictionary rightly.
        """
        for file in dict.fromkeys((self._encoded, self._plain)):
            table = file.read(columns=[".".join(path)], use_threads=False)
            values = table.column(path[0])
            if len(path) > 1:
                values = pc.struct_field(values, path[1:])
            if not pa.types.is_dictionary(values.type) or self._is_right(values, path):
                return values
        raise UnsupportedTypeError(
            f"column {'.'.join(path)!r}: its dictionary cannot be read rightly"
        )

    def _is_right(self, values: pa.ChunkedArray, path: Sequence[str]) -> bool:
        name = ".".join(path)
        columns = map(self.metadata.schema.column, range(self.metadata.num_columns))
        leaves = [i for i, column in enumerate(columns) if column.path == name]
        if len(leaves) != 1:
            return False
        return is_as_written(values, leaves[0], self.metadata, self._source)


def column_reader(
    location: Location, path: str, *, encoded: Collection[str] = ()
) -> tuple[DataFile, Callable[[], None]]:
    """The Parquet file at ``path``, and the call that closes it.

    Args:
        location: of the table.
        path: of the file.
        encoded: columns that are read as dictionary arrays where that is faster.
    """
    source = location.open_input(path)
    try:
        return DataFile(source, encoded), source.close
    except BaseException:
        source.close()
        raise


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
