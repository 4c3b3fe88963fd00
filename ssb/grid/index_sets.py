"""The sets of indexes of the grid, and how each is built."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.build.column_requests import Request
from skipindex.build.wanted import SpecLike
from skipindex.errors import UnsupportedTypeError
from skipindex.expressions.domain import Domain
from skipindex.indexes import MinMax, parse_spec
from skipindex.indexes.registry import index_type
from ssb.layouts import INDEXES
from ssb.queries import QUERIES

CAPPED: Final = "advisor-workload"
FULL: Final = "full"


@dataclass(frozen=True, slots=True)
class IndexSet:
    """Indexes for every column that a query names.

    Args:
        name: of the set.
        what: it is, in one line.
        specs: that every column gets, as far as its type can have them.
        advised: the advisor chooses them for the 13 queries, under its cap.
        best: the kinds that ``make ssb`` uses, where it names the column.
    """

    name: str
    what: str
    specs: tuple[SpecLike, ...] = ()
    advised: bool = False
    best: bool = False

    def request(self, columns: Mapping[str, Domain]) -> Request:
        """What to ask ``build_indexes`` for.

        Args:
            columns: that the queries name, with their domains.
        """
        return {
            name: INDEXES[name]
            if self.best and name in INDEXES
            else ["minmax", *(s for s in self.specs if _fits(s, domain))]
            for name, domain in columns.items()
        }


def _fits(spec: SpecLike, domain: Domain) -> bool:
    parsed = parse_spec(spec)
    if isinstance(parsed, MinMax):
        return True
    try:
        index_type(parsed.kind).check(domain)
    except UnsupportedTypeError:
        return False
    return True


INDEX_SETS: Final[Mapping[str, IndexSet]] = {
    found.name: found
    for found in (
        IndexSet("minmax", "least and greatest value of every file", ("minmax",)),
        IndexSet("bloom", "min/max and a Bloom filter", ("bloom",)),
        IndexSet("bitmap", "min/max and a bitmap for each value", ("bitmap",)),
        IndexSet(
            "range_bitmap",
            "min/max and cumulative bitmaps of at most 64 bins",
            (sx.RangeBitmap(max_bitmaps=64),),
        ),
        IndexSet("run_length", "min/max and runs of equal rows", ("run_length",)),
        IndexSet("bit_sliced", "min/max and binary slices", ("bit_sliced",)),
        IndexSet(
            FULL,
            "for every column the kinds of `make ssb`, Bloom filters among them",
            ("bit_sliced", "bloom"),
            best=True,
        ),
        IndexSet(
            CAPPED,
            "chosen under the cap for the 13 queries",
            advised=True,
        ),
    )
}
"""All sets by name, in the order of the report."""


def build(
    indexes: IndexSet,
    path: Path,
    columns: Mapping[str, Domain],
    *,
    spark: SparkSession,
) -> tuple[float, tuple[str, ...]]:
    """Build a set on a folder that has no index; seconds, and what the build notes.

    Args:
        indexes: the set.
        path: the folder of the data files.
        columns: to index, with their domains.
        spark: the session whose executors work.
    """
    began = time.perf_counter()
    if indexes.advised:
        report = sx.build_indexes(
            path,
            columns=list(columns),
            queries=[query.where for query in QUERIES],
            spark=spark,
        )
    else:
        report = sx.build_indexes(path, indexes.request(columns), spark=spark)
    return time.perf_counter() - began, report.notes
