"""All that users call: the names of ``skipindex``, and a few more.

``skipindex.api.types`` has what the calls return.  ``run_statement`` runs the text of
an OPTIMIZE or VACUUM, and ``set_cache_bytes`` bounds the memory in which plans of this
process find indexes again; a ``CacheSession`` is such a memory of its own.
"""

from __future__ import annotations

from skipindex.api.clustering import Clustering
from skipindex.api.handle import Table, open_table
from skipindex.api.indexing import build_indexes
from skipindex.api.planning import plan_files, read
from skipindex.api.queries import disable, enable, last_plans, register
from skipindex.api.writing import append, run_statement, write_table
from skipindex.errors import (
    CommitConflictError,
    EngineError,
    LayoutError,
    PlanError,
    PredicateError,
    SkipIndexError,
    TableError,
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
from skipindex.layout.workload.workload import Workload
from skipindex.planner.plan import Plan
from skipindex.planner.stages.pack_cache import CacheSession, set_cache_bytes
from skipindex.table import Derived

__all__ = [
    "BitSliced",
    "Bitmap",
    "Bloom",
    "CacheSession",
    "Clustering",
    "CommitConflictError",
    "Derived",
    "EngineError",
    "KeySet",
    "LayoutError",
    "MinMax",
    "NGramBloom",
    "Plan",
    "PlanError",
    "PredicateError",
    "RangeBitmap",
    "RunLength",
    "SkipIndexError",
    "Table",
    "TableError",
    "TokenBloom",
    "UnsupportedTypeError",
    "Workload",
    "append",
    "build_indexes",
    "col",
    "disable",
    "enable",
    "last_plans",
    "open_table",
    "plan_files",
    "read",
    "register",
    "run_statement",
    "set_cache_bytes",
    "write_table",
]
