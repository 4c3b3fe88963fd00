"""Planners that are wrong: the sweep must notice each of them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any, Final
from unittest import mock

import numpy as np

from skipindex.spark.pruning import verdicts
from skipindex.spark.pruning.judged_columns import judged_columns
from skipindex.spark.pruning.query_planner import QueryPlanner
from skipindex.spark.pruning.tables import ScannedTable

Mutant = Callable[[], Any]


@contextmanager
def one_more_file() -> Iterator[None]:
    """One file more is skipped wherever any is."""
    rng = Random(1)
    # ``enable`` hands ``answer`` to the driver, so what it calls is replaced.
    answer = QueryPlanner._answer

    def wrong(self: QueryPlanner, *asked: Any) -> bytes:
        found = answer(self, *asked)
        if not found:
            return found
        (number,) = struct.unpack_from("<q", found)
        bits = np.unpackbits(
            np.frombuffer(found, np.uint8, offset=8), bitorder="little"
        )
        left = np.flatnonzero(
            ~bits[: len(self.tables.numbered(number).state)].astype(bool)
        )
        if len(left):
            bits[rng.choice(left.tolist())] = 1
        return found[:8] + np.packbits(bits, bitorder="little").tobytes()

    with mock.patch.object(QueryPlanner, "_answer", wrong):
        yield


@contextmanager
def stale_files() -> Iterator[None]:
    """A file that has changed since it was listed is judged by what it held."""

    def trusted(self: ScannedTable, files: Any) -> Any:
        return np.ones(len(files), bool)

    with mock.patch.object(ScannedTable, "unchanged", trusted):
        yield


@contextmanager
def folder_names() -> Iterator[None]:
    """Partition values are those of the folders' names, whatever the catalog says."""
    judged = judged_columns

    def trusted(state: Any, scan: Any, **options: Any) -> Any:
        return judged(state, replace(scan, is_catalog_table=False), **options)

    with mock.patch.object(verdicts, "judged_columns", trusted):
        yield


MUTANTS: Final[dict[str, Mutant]] = {
    made.__name__: made for made in (one_more_file, stale_files, folder_names)
}
