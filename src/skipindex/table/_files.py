"""Which files Spark would read below a folder, and how one of them is opened.

Not those that are empty, nor any whose path has a part that begins with ``_`` or ``.``
(trap C-37).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from skipindex.errors import TableError
from skipindex.storage.location import Found, Location

UNREADABLE: Final = (pa.ArrowException, OSError, ValueError)
"""What pyarrow raises for a damaged file; ValueError for names that are no UTF-8."""


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


def column_reader(
    location: Location, path: str
) -> tuple[pq.ParquetFile, Callable[[], None]]:
    """The Parquet file at ``path``, and the call that closes it."""
    source = location.open_input(path)
    try:
        file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
    except BaseException:
        source.close()
        raise
    return file, source.close
