"""delta-rs: minimum and maximum of every file, in the log of the table."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from ssb.files import linked, size_of
from ssb.peers.interface import Answer, CannotSayError, Cost, library, version_of
from ssb.queries import Query


class DeltaRsPeer:
    """The files that ``file_uris`` of a converted folder tells."""

    name, unit = "delta-rs", "files"

    def __init__(self, work: Path) -> None:
        self._deltalake = library("deltalake")
        self.version = version_of("deltalake")
        self._folder = work / "delta-rs"
        self._table: Any = None
        self._n_files = 0

    def build(self, files: Sequence[Path], columns: Sequence[str]) -> Cost:  # noqa: ARG002
        """Write a log with the statistics of all columns.

        Their number is given, because the conversion writes those of the first 32
        columns alone by default, and also where it is told -1.
        """
        linked(files, self._folder)
        n_columns = len(pq.read_schema(files[0]).names)
        conf = {"delta.dataSkippingNumIndexedCols": str(n_columns)}
        began = time.perf_counter()
        self._deltalake.convert_to_deltalake(str(self._folder), configuration=conf)
        seconds = time.perf_counter() - began
        self._table = self._deltalake.DeltaTable(str(self._folder))
        self._n_files = len(files)
        note = f"min/max of {n_columns} columns in the log"
        return Cost(seconds, size_of(self._folder / "_delta_log"), note)

    def ask(self, query: Query) -> Answer:
        """The files that the log cannot rule out."""
        began = time.perf_counter()
        try:
            uris = self._table.file_uris(file_pruning_predicate=query.where)
        except self._deltalake.exceptions.DeltaError as error:
            raise CannotSayError(str(error).partition(". ")[0]) from error
        seconds = time.perf_counter() - began
        names = frozenset(PurePosixPath(unquote(uri)).name for uri in uris)
        return Answer.of_files(names, self._n_files, seconds)
