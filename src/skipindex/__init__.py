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

from skipindex.advice import Advice, advise
from skipindex.api import (
    build_indexes,
    drop_indexes,
    merge_packs,
    refresh_indexes,
    set_derived,
)
from skipindex.errors import (
    AdviceError,
    BuildError,
    CommitConflictError,
    CorruptIndexError,
    IndexVersionError,
    LayoutError,
    PlanError,
    PredicateError,
    SkipIndexError,
    StorageError,
    TableError,
    UnknownIndexError,
    UnsupportedTypeError,
)
from skipindex.indexes.bit_sliced import BitSliced
from skipindex.indexes.bitmap import Bitmap
from skipindex.indexes.bloom import Bloom
from skipindex.indexes.build import BuildReport
from skipindex.indexes.key_set import KeySet
from skipindex.indexes.minmax import MinMax
from skipindex.indexes.ngram_bloom import NGramBloom
from skipindex.indexes.range_bitmap import RangeBitmap
from skipindex.indexes.run_length import RunLength
from skipindex.indexes.token_bloom import TokenBloom
from skipindex.layout.picture import picture
from skipindex.layout.quality import Quality, describe
from skipindex.layout.workload import Workload
from skipindex.planner._packs import set_cache_bytes
from skipindex.planner.plan import FileTask, Plan, Verdict, plan_files
from skipindex.planner.proofs import Evidence, SkippedFile
from skipindex.planner.verify import VerifyReport, Violation, verify_plan
from skipindex.predicate import col
from skipindex.rewrite.job import OptimizeReport
from skipindex.rewrite.vacuum import VacuumReport, vacuum
from skipindex.rewrite.verify import TableReport, verify
from skipindex.table import Derived, FileEntry, Status, Table, open_table

if TYPE_CHECKING:
    from skipindex.spark.append import append
    from skipindex.spark.optimize import optimize
    from skipindex.spark.read import read
    from skipindex.spark.session import local_session
    from skipindex.spark.statement import sql
    from skipindex.spark.write import write_table

_ON_SPARK: Final = {
    "append": "skipindex.spark.append",
    "local_session": "skipindex.spark.session",
    "optimize": "skipindex.spark.optimize",
    "read": "skipindex.spark.read",
    "sql": "skipindex.spark.statement",
    "write_table": "skipindex.spark.write",
}
"""Imported when they are first used, so that planning needs no PySpark."""

__all__ = [
    "Advice",
    "AdviceError",
    "BitSliced",
    "Bitmap",
    "Bloom",
    "BuildError",
    "BuildReport",
    "CommitConflictError",
    "CorruptIndexError",
    "Derived",
    "Evidence",
    "FileEntry",
    "FileTask",
    "IndexVersionError",
    "KeySet",
    "LayoutError",
    "MinMax",
    "NGramBloom",
    "OptimizeReport",
    "Plan",
    "PlanError",
    "PredicateError",
    "Quality",
    "RangeBitmap",
    "RunLength",
    "SkipIndexError",
    "SkippedFile",
    "Status",
    "StorageError",
    "Table",
    "TableError",
    "TableReport",
    "TokenBloom",
    "UnknownIndexError",
    "UnsupportedTypeError",
    "VacuumReport",
    "Verdict",
    "VerifyReport",
    "Violation",
    "Workload",
    "advise",
    "append",
    "build_indexes",
    "col",
    "describe",
    "drop_indexes",
    "local_session",
    "merge_packs",
    "open_table",
    "optimize",
    "picture",
    "plan_files",
    "read",
    "refresh_indexes",
    "set_cache_bytes",
    "set_derived",
    "sql",
    "vacuum",
    "verify",
    "verify_plan",
    "write_table",
]


def __getattr__(name: str) -> Any:
    if name in _ON_SPARK:
        return getattr(importlib.import_module(_ON_SPARK[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
