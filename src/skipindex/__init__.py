"""skipindex: make Spark read only the Parquet files that can hold a matching row.

    import skipindex as sx

    table = sx.open_table("/data/lineorder")               # plain Parquet files
    sx.build_indexes(table, {"c_city": "bitmap", "lo_quantity": "bit_sliced"})
    plan = sx.plan_files("c_city = 'UNITED KI1' AND lo_quantity < 25", table=table)
    print(plan.explain())
    df = plan.read(spark)                                  # same rows, fewer files

The law: a file with a matching row is never skipped.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from skipindex.api import build_indexes, drop_indexes, set_derived
from skipindex.errors import (
    CommitConflictError,
    CorruptIndexError,
    IndexVersionError,
    LayoutError,
    PlanError,
    PredicateError,
    SkipIndexError,
    TableError,
    UnknownIndexError,
    UnsupportedTypeError,
)
from skipindex.indexes.bit_sliced import BitSliced
from skipindex.indexes.bitmap import Bitmap
from skipindex.indexes.bloom import Bloom
from skipindex.indexes.build import BuildReport
from skipindex.indexes.minmax import MinMax
from skipindex.indexes.range_bitmap import RangeBitmap
from skipindex.planner.plan import FileTask, Plan, SkippedFile, Verdict, plan_files
from skipindex.predicate import col
from skipindex.table import Derived, FileEntry, Table, open_table

if TYPE_CHECKING:
    from skipindex.spark.read import read
    from skipindex.spark.session import local_session
    from skipindex.spark.write import write_table

_ON_SPARK: Final = {
    "local_session": "skipindex.spark.session",
    "read": "skipindex.spark.read",
    "write_table": "skipindex.spark.write",
}
"""Imported when they are first used, so that planning needs no PySpark."""

__all__ = [
    "BitSliced",
    "Bitmap",
    "Bloom",
    "BuildReport",
    "CommitConflictError",
    "CorruptIndexError",
    "Derived",
    "FileEntry",
    "FileTask",
    "IndexVersionError",
    "LayoutError",
    "MinMax",
    "Plan",
    "PlanError",
    "PredicateError",
    "RangeBitmap",
    "SkipIndexError",
    "SkippedFile",
    "Table",
    "TableError",
    "UnknownIndexError",
    "UnsupportedTypeError",
    "Verdict",
    "build_indexes",
    "col",
    "drop_indexes",
    "local_session",
    "open_table",
    "plan_files",
    "read",
    "set_derived",
    "write_table",
]


def __getattr__(name: str) -> Any:
    if name in _ON_SPARK:
        return getattr(importlib.import_module(_ON_SPARK[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
