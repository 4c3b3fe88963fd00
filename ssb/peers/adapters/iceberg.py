"""pyiceberg: minimum, maximum and number of NULLs of every file, in manifests."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow.parquet as pq

from ssb.files import size_of
from ssb.peers.interface import Answer, CannotSayError, Cost, library, version_of
from ssb.queries import Query


class IcebergPeer:
    """The files of ``plan_files``; the data are added as they lie."""

    name, unit = "pyiceberg", "files"

    def __init__(self, work: Path) -> None:
        library("pyiceberg")
        self._catalogs = library("pyiceberg.catalog.sql")
        self.version = version_of("pyiceberg")
        self._folder = work / "pyiceberg"
        self._table: Any = None
        self._n_files = 0

    def build(self, files: Sequence[Path], columns: Sequence[str]) -> Cost:  # noqa: ARG002
        """Write manifests with whole bounds of all columns."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        catalog = self._catalogs.SqlCatalog(
            "peers",
            uri=f"sqlite:///{self._folder}/catalog.db",
            warehouse=self._folder.as_uri(),
        )
        catalog.create_namespace("ssb")
        table = catalog.create_table(
            "ssb.flat",
            schema=pq.read_schema(files[0]),
            properties={"write.metadata.metrics.default": "full"},
        )
        began = time.perf_counter()
        table.add_files([str(file) for file in files])
        seconds = time.perf_counter() - began
        self._table = catalog.load_table("ssb.flat")
        self._n_files = len(files)
        n_bytes = size_of(self._folder) - (self._folder / "catalog.db").stat().st_size
        return Cost(seconds, n_bytes, "min/max of all columns in manifests")

    def ask(self, query: Query) -> Answer:
        """The files that the manifests cannot rule out."""
        began = time.perf_counter()
        try:
            tasks = self._table.scan(row_filter=query.where).plan_files()
            names = [PurePosixPath(task.file.file_path).name for task in tasks]
        except (TypeError, ValueError) as error:
            raise CannotSayError(str(error).partition("\n")[0]) from error
        seconds = time.perf_counter() - began
        return Answer.of_files(frozenset(names), self._n_files, seconds)
