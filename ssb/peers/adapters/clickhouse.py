"""ClickHouse in the process (chdb): skip indexes of a MergeTree table.

The columns that are asked for are inserted into such a table, one part a file.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ssb.peers.adapters.lance_format import columns_with_few_values
from ssb.peers.interface import Answer, CannotSayError, Cost, library, version_of
from ssb.queries import Query

_INDEX_SIZE: Final = (
    "SELECT sum(data_compressed_bytes) FROM system.data_skipping_indices "
    "WHERE database = 'ssb'"
)


class ClickHousePeer:
    """Parts left, with min/max and a set or a Bloom filter on every column."""

    name, unit = "chdb", "parts"

    def __init__(self, work: Path) -> None:
        sessions = library("chdb.session")
        self.version = version_of("chdb")
        folder = work / "chdb"
        shutil.rmtree(folder, ignore_errors=True)
        # One folder a process: a session on a second one is refused.
        self._session = sessions.Session(str(folder))
        self._of = 0

    def build(self, files: Sequence[Path], columns: Sequence[str]) -> Cost:
        """Insert the files with indexes and without; the time is the difference."""
        few = columns_with_few_values(files, columns)
        indexes = []
        for column in columns:
            kind = "set(0)" if column in few else "bloom_filter(0.01)"
            indexes += [
                f"INDEX m_{column} {column} TYPE minmax",
                f"INDEX k_{column} {column} TYPE {kind}",
            ]
        plain = self._insert(files, columns, [])
        seconds = self._insert(files, columns, indexes)
        self._of = len(files)
        n_bytes = int(self._rows(_INDEX_SIZE)[0][0])
        note = "min/max and sets or Bloom filters; more time than the insert alone took"
        return Cost(max(0.0, seconds - plain), n_bytes, note)

    def _insert(
        self, files: Sequence[Path], columns: Sequence[str], indexes: Sequence[str]
    ) -> float:
        """The seconds that it takes to insert all files into a new table."""
        run = self._session.query
        names = ", ".join(columns)
        types = self._rows(f"DESCRIBE file('{files[0]}', Parquet)")
        of = {
            name: kind.removeprefix("Nullable(").rstrip(")") for name, kind, *_ in types
        }
        fields = ", ".join([*(f"{name} {of[name]}" for name in columns), *indexes])
        run("DROP DATABASE IF EXISTS ssb SYNC")
        run("CREATE DATABASE ssb ENGINE = Atomic")
        run(f"CREATE TABLE ssb.flat ({fields}) ENGINE = MergeTree ORDER BY tuple()")
        run("SYSTEM STOP MERGES ssb.flat")
        began = time.perf_counter()
        for file in files:
            run(f"INSERT INTO ssb.flat SELECT {names} FROM file('{file}', Parquet)")  # noqa: S608
        return time.perf_counter() - began

    def ask(self, query: Query) -> Answer:
        """Ask for the parts that the indexes leave, and count the rows."""
        sql = f"SELECT count() FROM ssb.flat WHERE {query.where}"  # noqa: S608
        began = time.perf_counter()
        answer = self._session.query(
            f"EXPLAIN indexes = 1, json = 1 {sql}", "TabSeparatedRaw"
        )
        seconds = time.perf_counter() - began
        steps = [
            step for plan in json.loads(str(answer)) for step in _steps(plan["Plan"])
        ]
        reads = [step for step in steps if step["Node Type"] == "ReadFromMergeTree"]
        if not reads:
            raise CannotSayError(f"chdb {self.version} does not say what it scanned")
        left = [index["Selected Parts"] for index in reads[0].get("Indexes", ())]
        rows = int(self._rows(sql)[0][0])
        return Answer(min([self._of, *left]), self._of, seconds, rows)

    def _rows(self, sql: str) -> list[list[str]]:
        text = str(self._session.query(sql, "TabSeparatedRaw"))
        return [line.split("\t") for line in text.splitlines()]


def _steps(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from _steps(below)
