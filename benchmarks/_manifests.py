"""Manifests of many files that are nowhere: statistics alone, and no index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from skipindex.expressions.domain import domain_of
from skipindex.log.manifest import Manifest, StatsColumn, summary_type

Bounds: TypeAlias = Mapping[str, tuple[pa.Array, pa.Array]]
"""By column, the least and the greatest value of every file."""


def manifest_of(paths: Sequence[str], bounds: Bounds) -> Manifest:
    """The manifest of files of 60,000 rows without a NULL.

    Args:
        paths: of the files.
        bounds: of their values.
    """
    n_files = len(paths)
    constant = {
        "size": 1_000_000,
        "mtime": 1,
        "footer_crc": 1,
        "n_rows": 60_000,
        "note": None,
        "tag": None,
        "groups": b"",
        "columns": 1,
    }
    schema = Manifest.empty().files.schema
    nothing = pa.ListArray.from_arrays(
        pa.array(np.zeros(n_files + 1, np.int32)), pa.array([], pa.int32())
    )
    columns = {
        "path": pa.array(paths),
        **{name: pa.repeat(value, n_files) for name, value in constant.items()},
        "packs": nothing,
        "slots": nothing,
    }
    arrays = [columns[field.name].cast(field.type) for field in schema]
    stats = {name: _statistics(*ends) for name, ends in bounds.items()}
    return Manifest(pa.table(arrays, schema=schema), stats, ())


def _statistics(low: pa.Array, high: pa.Array) -> StatsColumn:
    domain, n_files = domain_of(low.type), len(low)
    values = [
        pa.array(np.zeros(n_files, np.int64)),
        pa.nulls(n_files, pa.int64()),
        *(domain.encode(low), domain.encode(high)),
        *(pa.repeat(True, n_files), pa.repeat(True, n_files)),
    ]
    struct = pa.StructArray.from_arrays(values, fields=list(summary_type(domain)))
    return StatsColumn(domain.tag, struct)
