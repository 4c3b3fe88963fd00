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
    Table,
    append,
    build_indexes,
    drop_indexes,
    merge_packs,
    open_table,
    refresh_indexes,
    set_derived,
    write_table,
)
from skipindex.build.builder import BuildReport
from skipindex.errors import (
    AdviceError,
    BuildError,
    CommitConflictError,
    CorruptIndexError,
    EngineError,
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
from skipindex.expressions import col
from skipindex.indexes import MinMax
from skipindex.indexes.kinds.bit_sliced import BitSliced
from skipindex.indexes.kinds.bitmap import Bitmap
from skipindex.indexes.kinds.bloom import Bloom
from skipindex.indexes.kinds.key_set import KeySet
from skipindex.indexes.kinds.ngram_bloom import NGramBloom
from skipindex.indexes.kinds.range_bitmap import RangeBitmap
from skipindex.indexes.kinds.run_length import RunLength
from skipindex.indexes.kinds.token_bloom import TokenBloom
from skipindex.layout.picture import picture
from skipindex.layout.quality import Quality, describe
from skipindex.layout.workload.workload import Workload
from skipindex.planner.evidence import Evidence, SkippedFile
from skipindex.planner.plan import FileTask, Plan, Verdict, plan_files
from skipindex.planner.stages.pack_cache import set_cache_bytes
from skipindex.planner.verify import VerifyReport, Violation, verify_plan
from skipindex.rewrite.optimize import OptimizeReport
from skipindex.rewrite.vacuum import VacuumReport, vacuum
from skipindex.rewrite.verify_table import TableReport, verify
from skipindex.table import Derived, FileEntry, Status

if TYPE_CHECKING:
    from skipindex.spark.read import read
    from skipindex.spark.run_sql import sql
    from skipindex.spark.session import local_session
    from skipindex.spark.writers.optimize import optimize

_ON_SPARK: Final = {
    "local_session": "skipindex.spark.session",
    "optimize": "skipindex.spark.writers.optimize",
    "read": "skipindex.spark.read",
    "sql": "skipindex.spark.run_sql",
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
    "EngineError",
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
