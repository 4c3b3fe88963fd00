"""The footers of many files: their rows, and their columns under Spark's types."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pyarrow as pa

from skipindex.errors import StorageError, TableError, first_line
from skipindex.source.parquet.files import UNREADABLE, column_reader
from skipindex.source.parquet.stored import only_outside_spark, stored_schema
from skipindex.storage.file_system.location import Location

THREADS: Final = 16
"""Footers that are read at a time."""


def count_rows(location: Location, paths: Sequence[str]) -> int:
    """The rows of all these files, from their footers."""
    return sum(row_counts(location, paths))


def row_counts(location: Location, paths: Sequence[str]) -> list[int]:
    """The rows of each of these files, from their footers.

    Raises:
        StorageError: one cannot be read now.
    """
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(lambda path: footer_of(location, path)[0], paths))


def footer_of(location: Location, path: str) -> tuple[int, pa.Schema, list[str]]:
    """The rows, the columns under Spark's types, and those of other types."""
    try:
        with column_reader(location, path) as file:
            n_rows, (schema, _) = int(file.metadata.num_rows), stored_schema(file)
            return n_rows, schema, only_outside_spark(file)
    except UNREADABLE as error:
        # What is no Parquet file is an error of Arrow, without a number.
        refused = isinstance(error, StorageError) or (
            isinstance(error, OSError)
            and error.errno is not None
            and not isinstance(error, FileNotFoundError)
        )
        told = f"cannot rewrite {location.full(path)!r}: {first_line(error)}"
        raise (StorageError if refused else TableError)(told) from error
