"""Which files Spark would read below a folder, and how one of them is opened.

Names that begin with ``_`` or ``.`` are hidden (trap C-37), except ``_name=value``.  If
a folder is named ``name=value``, the table has partitions, and the files in such
folders are read.  Otherwise it has none, and the files of the folder itself are read:
what lies in folders below it is not the table's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from skipindex.errors import TableError
from skipindex.partitions import partition_folders
from skipindex.storage.location import Found, Location

_SMALL_DICTIONARY: Final = 1 << 16
"""Compressed bytes; writers give up at 1 MB before compression."""

SUMMARIES: Final = ("_common_metadata", "_metadata")
"""Files that Spark takes the schema from before any data file, even if they are empty;
its listing shows every name that begins like this."""

UNREADABLE: Final = (pa.ArrowException, OSError, ValueError)
"""What pyarrow raises for a damaged file; ValueError for names that are no UTF-8."""


def is_shown(name: str) -> bool:
    """Whether Spark's listing shows a file or folder of this name."""
    if name.startswith(SUMMARIES):
        return True
    return not (
        (name.startswith("_") and "=" not in name)
        or name.startswith(".")
        or name.endswith("._COPYING_")
    )


def is_data_name(name: str) -> bool:
    """Whether Spark reads a file of this name, if its listing shows it."""
    return not ((name.startswith("_") and "=" not in name) or name.startswith("."))


def is_data_file(path: str) -> bool:
    """Whether Spark reads the file at this relative path, if it reads its folder."""
    *folders, name = path.split("/")
    return is_data_name(name) and is_shown(name) and all(map(is_shown, folders))


class SparkListing:
    """Which of all files below a folder Spark reads."""

    def __init__(self, everything: Iterable[Found]) -> None:
        """Look at the names of all files below the folder.

        Raises:
            TableError: Spark refuses the folders too.
        """
        hidden: dict[str, bool] = {"": False}
        shown: dict[str, list[Found]] = {}
        for found in everything:
            folder, _, name = found.path.rpartition("/")
            if folder not in hidden:
                hidden[folder] = not all(map(is_shown, folder.split("/")))
            if not hidden[folder] and is_shown(name):
                shown.setdefault(folder, []).append(found)
        with_data = {
            folder: files
            for folder, files in shown.items()
            if any(is_data_name(_name(file)) for file in files)
        }
        partitioned = partition_folders(with_data)
        self.folders: list[str] = list(partitioned)
        """Those whose names are partition values; of empty files too."""
        self._read = frozenset(
            file.path
            for folder in partitioned or with_data.keys() & {""}
            for file in with_data[folder]
            if file.size and is_data_name(_name(file))
        )
        own = shown if partitioned else {"": shown.get("", [])}
        self.with_schema = [
            file.path
            for files in own.values()
            for file in files
            if file.size or _name(file) in SUMMARIES
        ]
        """Paths of the files that Spark takes the schema from: summaries too."""

    def is_read(self, found: Found) -> bool:
        """Whether Spark reads the file, which is one of them."""
        return found.path in self._read


def _name(file: Found) -> str:
    return file.path.rpartition("/")[2]


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
