"""The public functions and classes: the names of ``skipindex``, and a few more.

``skipindex.api.types`` has the types of results.  ``set_cache_bytes`` limits the index
bytes that plans of this process keep in memory, and ``set_cache_dir`` chooses the
folder that caches those of object stores.  A ``CacheSession`` is a separate cache
of index bytes.  ``record_queries`` records the queries of this process.
"""

from __future__ import annotations

from skipindex.api.clustering import Clustering as Clustering
from skipindex.api.functions import append as append
from skipindex.api.functions import build_indexes as build_indexes
from skipindex.api.functions import maintain as maintain
from skipindex.api.functions import open_table as open_table
from skipindex.api.functions import plan_files as plan_files
from skipindex.api.functions import read as read
from skipindex.api.functions import sink as sink
from skipindex.api.functions import via as via
from skipindex.api.functions import write_table as write_table
from skipindex.api.spark import disable as disable
from skipindex.api.spark import enable as enable
from skipindex.api.spark import last_plans as last_plans
from skipindex.api.spark import register as register
from skipindex.api.table import Table as Table
from skipindex.errors import CommitConflictError as CommitConflictError
from skipindex.errors import EngineError as EngineError
from skipindex.errors import PlanError as PlanError
from skipindex.errors import PredicateError as PredicateError
from skipindex.errors import SkipIndexError as SkipIndexError
from skipindex.errors import TableError as TableError
from skipindex.errors import UnsupportedTypeError as UnsupportedTypeError
from skipindex.expressions import col as col
from skipindex.indexes import MinMax as MinMax
from skipindex.indexes.kinds.bit_sliced import BitSliced as BitSliced
from skipindex.indexes.kinds.bitmap import Bitmap as Bitmap
from skipindex.indexes.kinds.bloom import Bloom as Bloom
from skipindex.indexes.kinds.exact import Exact as Exact
from skipindex.indexes.kinds.ngram_bloom import NGramBloom as NGramBloom
from skipindex.indexes.kinds.range_bitmap import RangeBitmap as RangeBitmap
from skipindex.indexes.kinds.token_bloom import TokenBloom as TokenBloom
from skipindex.layout.workload.workload import Workload as Workload
from skipindex.planner.plan import Plan as Plan
from skipindex.planner.stages.pack_cache import CacheSession as CacheSession
from skipindex.planner.stages.pack_cache import set_cache_bytes as set_cache_bytes
from skipindex.storage.disk_cache import set_cache_dir as set_cache_dir
from skipindex.storage.file_system.object_store import CommitLock as CommitLock
from skipindex.storage.file_system.object_store import (
    set_commit_lock as set_commit_lock,
)
from skipindex.table import Derived as Derived
from skipindex.table.queries import record_queries as record_queries
