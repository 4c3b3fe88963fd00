"""Readers of files in an object store, each used as its manual advises.

Every reader evaluates a query over all files of a folder, or over files that are named.
It is opened first: what it holds from then on, such as footers, serves later queries.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs

from ssb.queries import Query, wide_sums

THREADS: Final = 32
"""That wait for answers; few of them ever compute."""
Rows = list[tuple[object, ...]]
Reader = Callable[["Store", Mapping[str, int] | None], "Opened"]
"""Opens the files of these names and sizes, or all files of the folder if None."""


@dataclass(frozen=True, slots=True)
class Store:
    """A folder of a bucket.

    Args:
        root: the bucket and the folder.
        options: as skipindex takes them.
    """

    root: str
    options: Mapping[str, str]

    @property
    def uri(self) -> str:
        """As a URI."""
        return f"s3://{self.root}"


class Opened(Protocol):
    """Files that were opened."""

    def run(self, query: Query) -> Rows:
        """The rows of the answer."""
        ...


def opened_dataset(
    store: Store, files: Mapping[str, int] | None
) -> pads.FileSystemDataset:
    """A dataset of pyarrow, which reads ahead, and reads a footer once."""
    pa.set_io_thread_count(THREADS)
    system = pafs.S3FileSystem(
        access_key=store.options["access_key_id"],
        secret_key=store.options["secret_access_key"],
        region=store.options["region"],
        scheme="http",
        endpoint_override=store.options["endpoint"].removeprefix("http://"),
    )
    ahead = pads.ParquetFragmentScanOptions(pre_buffer=True)
    form = pads.ParquetFileFormat(default_fragment_scan_options=ahead)
    if files is None:
        found = system.get_file_info(pafs.FileSelector(store.root))
        files = {
            info.base_name: info.size
            for info in found
            if info.type == pafs.FileType.File
            and not info.base_name.startswith(("_", "."))
        }
    # With its size, a file needs no request that asks for it.
    fragments = [
        form.make_fragment(f"{store.root}/{name}", system, file_size=size)
        for name, size in sorted(files.items())
    ]
    schema = fragments[0].physical_schema
    return pads.FileSystemDataset(fragments, schema, form, system)


class DuckDbReader:
    """DuckDB on a dataset of pyarrow, to which it hands columns and conditions.

    Its own client of S3 is an extension that cannot be had from a package registry, and
    over file handles of Python it asks for one file after another.
    """

    def __init__(self, store: Store, files: Mapping[str, int] | None) -> None:
        self._connection = importlib.import_module("duckdb").connect()
        self._connection.register("flat", opened_dataset(store, files))

    def run(self, query: Query) -> Rows:
        """Run the SQL."""
        return plain(self._connection.execute(query.sql("flat")).fetchall())


class PolarsReader:
    """A lazy frame of Polars, by its own S3 client, and its SQL."""

    def __init__(self, store: Store, files: Mapping[str, int] | None) -> None:
        polars = importlib.import_module("polars")
        options = {
            "aws_access_key_id": store.options["access_key_id"],
            "aws_secret_access_key": store.options["secret_access_key"],
            "aws_region": store.options["region"],
            "aws_endpoint_url": store.options["endpoint"],
            "aws_allow_http": "true",
        }
        source = (
            f"{store.uri}/*.parquet"
            if files is None
            else [f"{store.uri}/{name}" for name in sorted(files)]
        )
        self._context = polars.SQLContext(
            flat=polars.scan_parquet(source, storage_options=options)
        )

    def run(self, query: Query) -> Rows:
        """Run the SQL."""
        frame = self._context.execute(wide_sums(query.sql("flat")), eager=True)
        return plain(frame.rows())


READERS: Final[Mapping[str, Reader]] = {
    "DuckDB": DuckDbReader,
    "Polars": PolarsReader,
}
"""By name."""


def plain(rows: Sequence[Sequence[Any]]) -> Rows:
    """Rows with numbers of Python's own, in an order of their own."""
    cells = (
        tuple(int(v) if isinstance(v, Decimal) else v for v in row) for row in rows
    )
    # An empty sum is NULL for one reader and 0 for another.
    return sorted((tuple(v or 0 for v in row) for row in cells), key=repr)
