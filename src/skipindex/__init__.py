"""skipindex: make Spark read only the Parquet files that can hold a matching row.

    import skipindex as sx

    table = sx.open_table("/data/lineorder")               # plain Parquet files
    table = table.build_indexes({"c_city": "bitmap", "lo_quantity": "bit_sliced"}).table
    plan = table.plan("c_city = 'UNITED KI1' AND lo_quantity < 25")
    print(plan.explain())
    df = plan.read(spark)                                  # same rows, fewer files

A file with a matching row is never skipped.

Calls take the table first, then the predicate, then keywords: ``plan_files(table,
predicate)`` and ``read(table, predicate, spark=spark)``; ``plan_files(predicate,
table=table)`` is the same.  The Spark session is always called ``spark``.  It is the
first argument of methods that require one (``plan.read``, ``table.optimize``), else an
optional keyword.  ``skipindex.api.types`` has the types of results, and
``skipindex.errors`` every error.  ``logging.getLogger("skipindex")`` reports builds,
commits and unusable indexes.

Importing this module loads nothing else; a name is loaded when it is first used.
"""

# ruff: noqa: F403, F405 (type checkers find the names of ``__all__`` in the API)

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skipindex.api import *
else:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        api = importlib.import_module(f"{__name__}.api")
        value = globals()[name] = getattr(api, name)
        return value


__version__ = "0.2.0.dev0"

__all__ = [
    "BitSliced",
    "Bitmap",
    "Bloom",
    "Clustering",
    "CommitConflictError",
    "Derived",
    "EngineError",
    "Exact",
    "MinMax",
    "NGramBloom",
    "Plan",
    "PlanError",
    "PredicateError",
    "RangeBitmap",
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
    "maintain",
    "open_table",
    "plan_files",
    "read",
    "register",
    "sink",
    "via",
    "write_table",
]

logging.getLogger(__name__).addHandler(logging.NullHandler())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
