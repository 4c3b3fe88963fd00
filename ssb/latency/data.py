"""The rows of a layout in as many files as are wanted, indexed, in a bucket."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

import skipindex as sx
from skipindex.build.column_requests import Request
from ssb import SsbError
from ssb.latency.readers import Store

BUCKET: Final = "latency"
FOLDER: Final = "flat"


def cut(files: Sequence[Path], folder: Path, n_files: int) -> list[Path]:
    """The same rows in the same order in ``n_files`` files, equally many in each.

    Every given file is cut on its own.

    Raises:
        SsbError: ``n_files`` is no multiple of the number of files.
    """
    parts, rest = divmod(n_files, len(files))
    if rest or not parts:
        raise SsbError(
            f"{len(files)} files cannot be cut into {n_files}: accepted is a multiple"
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    cut_files: list[Path] = []
    for file in files:
        rows = pq.read_table(file)
        ends = [rows.num_rows * i // parts for i in range(parts + 1)]
        for start, end in itertools.pairwise(ends):
            path = folder / f"part-{len(cut_files):05}.parquet"
            pq.write_table(rows.slice(start, end - start), path)
            cut_files.append(path)
    return cut_files


def indexed(store: Store, request: Request) -> str:
    """Build the indexes through the store, as the identity of a file is the store's.

    Returns:
        What was built, in a line.
    """
    report = sx.build_indexes(store.uri, request, storage_options=store.options)
    return str(report)
