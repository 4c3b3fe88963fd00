"""skipindex itself, asked as all others are."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import skipindex as sx
from skipindex.build.column_requests import Request
from ssb.files import linked, size_of
from ssb.peers.interface import Answer, Cost
from ssb.queries import Query


class SkipIndexPeer:
    """skipindex with one set of indexes.

    Args:
        work: a folder of its own.
        name: of the set.
        request: the indexes by column; those of other columns are not built.
        others: the indexes of the columns that it does not name.
    """

    unit = "files"
    version = sx.__version__

    def __init__(
        self, work: Path, name: str, request: Request, others: Sequence[str] = ()
    ) -> None:
        self.name = name
        self._folder = work / name.replace(" ", "-").replace("/", "-")
        self._request = request
        self._others = list(others)
        self._table: sx.Table | None = None

    @classmethod
    def with_statistics(cls, work: Path) -> SkipIndexPeer:
        """With minimum and maximum alone."""
        return cls(work, "skipindex min/max", {"*": "minmax"})

    @classmethod
    def with_all_indexes(cls, work: Path) -> SkipIndexPeer:
        """With the indexes of ``ssb.layouts`` on the columns that are asked for."""
        from ssb.layouts import INDEXES  # noqa: PLC0415 (needs PySpark)

        return cls(work, "skipindex all indexes", INDEXES, ["bitmap", "bloom"])

    def build(self, files: Sequence[Path], columns: Sequence[str]) -> Cost:
        """Build the indexes, without Spark."""
        linked(files, self._folder)
        asked = self._request
        if "*" not in asked:
            asked = {c: self._request.get(c, self._others) for c in columns}
        began = time.perf_counter()
        self._table = sx.build_indexes(self._folder, asked).table
        seconds = time.perf_counter() - began
        n = f"{len(asked)} columns" if "*" not in asked else "all columns"
        return Cost(seconds, size_of(self._folder / "_skipindex"), n)

    def ask(self, query: Query) -> Answer:
        """The files of the plan."""
        assert self._table is not None
        began = time.perf_counter()
        plan = self._table.plan(query.where)
        seconds = time.perf_counter() - began
        return Answer.of_files(frozenset(plan.paths), len(self._table), seconds)
