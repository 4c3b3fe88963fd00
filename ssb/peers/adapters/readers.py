"""DuckDB, DataFusion and Polars: what a query of them says that it read.

They skip row groups by their minimum and maximum, in the footers, while they read; so
their planning cannot be told from reading.  None of them needs anything built.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ssb.peers.interface import Answer, CannotSayError, Cost, library, version_of
from ssb.queries import Query


class _Reader:
    """A library that reads files as they are."""

    name: str
    unit = "row groups"

    def __init__(self, work: Path) -> None:
        del work  # it writes nothing
        self._library = library(self.name.lower())
        self.version = version_of(self.name.lower())

    def build(self, files: Sequence[Path], columns: Sequence[str]) -> Cost:
        """Name the files."""
        del columns  # it reads what it is asked for
        self._name([str(file) for file in files])
        self._of = sum(pq.ParquetFile(file).num_row_groups for file in files)
        return Cost(0, 0, "reads the files as they are")

    def _name(self, files: list[str]) -> None:
        raise NotImplementedError

    def _cannot_say(self) -> CannotSayError:
        return CannotSayError(f"{self.name} {self.version} does not say what it read")


class DuckDbPeer(_Reader):
    """Row groups scanned, as ``EXPLAIN ANALYZE`` says."""

    name = "DuckDB"

    def _name(self, files: list[str]) -> None:
        self._connection = self._library.connect()
        self._connection.read_parquet(files).create_view("flat")

    def ask(self, query: Query) -> Answer:
        """Run a count, and ask what it read."""
        sql = f"SELECT count(*) FROM flat WHERE {query.where}"  # noqa: S608 (our own)
        ((_, text),) = self._rows(f"EXPLAIN (ANALYZE, FORMAT json) {sql}")
        kept = json.loads(text).get("query", {}).get("total_row_groups_scanned")
        if kept is None:
            raise self._cannot_say()
        ((rows,),) = self._rows(sql)
        return Answer(kept, self._of, None, rows)

    def _rows(self, sql: str) -> list[Any]:
        rows: list[Any] = self._connection.execute(sql).fetchall()
        return rows


class DataFusionPeer(_Reader):
    """Row groups left by statistics and Bloom filters, as ``EXPLAIN ANALYZE`` says."""

    name = "DataFusion"
    _METRIC = re.compile(r"row_groups_pruned_bloom_filter=\d+ total → (\d+) matched")

    def _name(self, files: list[str]) -> None:
        self._context = self._library.SessionContext()
        self._context.register_parquet("flat", str(Path(files[0]).parent))

    def ask(self, query: Query) -> Answer:
        """Run a count, and ask what it read."""
        sql = f"SELECT count(*) AS n FROM flat WHERE {query.where}"  # noqa: S608
        (text,) = self._context.sql(f"EXPLAIN ANALYZE {sql}").to_pydict()["plan"]
        found = self._METRIC.search(text)
        if found is None:
            raise self._cannot_say()
        (rows,) = self._context.sql(sql).to_pydict()["n"]
        return Answer(int(found[1]), self._of, None, rows)


class PolarsPeer(_Reader):
    """Row groups read, as the verbose log says."""

    name = "Polars"
    _LINE = re.compile(r"Predicate pushdown: reading (\d+) / \d+ row groups")

    def _name(self, files: list[str]) -> None:
        self._scan = self._library.scan_parquet(files)

    def ask(self, query: Query) -> Answer:
        """Run a count with the verbose log on, and add up its lines."""
        pl = self._library
        try:
            counting = self._scan.filter(pl.sql_expr(query.where)).select(pl.len())
        except pl.exceptions.PolarsError as error:
            raise CannotSayError(str(error).partition("\n")[0]) from error
        with standard_error() as log, pl.Config(verbose=True):
            rows = counting.collect().item()
            lines = self._LINE.findall(log.read_text())
        if not lines:
            raise self._cannot_say()
        return Answer(sum(map(int, lines)), self._of, None, rows)


@contextmanager
def standard_error() -> Iterator[Path]:
    """A file that has what the process, its libraries too, writes to standard error."""
    with tempfile.NamedTemporaryFile() as log:
        sys.stderr.flush()
        before = os.dup(2)
        try:
            os.dup2(log.fileno(), 2)
            yield Path(log.name)
        finally:
            os.dup2(before, 2)
            os.close(before)
