"""pyiceberg over a table of statistics alone, for ``benchmarks.scale``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from benchmarks._manifests import Bounds


def iceberg_table(bounds: Bounds, folder: Path) -> Callable[[], Any]:
    """Write a table with the statistics of every file; what loads it again."""
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415
    from pyiceberg.conversions import to_bytes  # noqa: PLC0415
    from pyiceberg.manifest import (  # noqa: PLC0415
        DataFile,
        DataFileContent,
        FileFormat,
    )
    from pyiceberg.typedef import Record  # noqa: PLC0415
    from pyiceberg.types import PrimitiveType  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    catalog = SqlCatalog(
        "c", uri=f"sqlite:///{folder}/catalog.db", warehouse=folder.as_uri()
    )
    catalog.create_namespace("d")
    schema = pa.schema([(name, low.type) for name, (low, _) in bounds.items()])
    table = catalog.create_table("d.t", schema=schema)
    encoded: list[dict[int, list[bytes]]] = [{}, {}]
    for field in table.schema().fields:
        for side, end in enumerate(bounds[field.name]):
            values = end.to_pylist()
            encoded[side][field.field_id] = [
                to_bytes(cast(PrimitiveType, field.field_type), value)
                for value in values
            ]
    ids = list(encoded[0])
    n_files = len(next(iter(bounds.values()))[0])
    with table.transaction() as change, change.update_snapshot().fast_append() as files:
        for i in range(n_files):
            lower, upper = ({n: side[n][i] for n in ids} for side in encoded)
            files.append_data_file(
                DataFile.from_args(
                    content=DataFileContent.DATA,
                    file_path=f"{folder.as_uri()}/part-{i:07}.parquet",
                    file_format=FileFormat.PARQUET,
                    partition=Record(),
                    record_count=60_000,
                    file_size_in_bytes=1_000_000,
                    column_sizes={},
                    value_counts=dict.fromkeys(ids, 60_000),
                    null_value_counts=dict.fromkeys(ids, 0),
                    nan_value_counts={},
                    lower_bounds=lower,
                    upper_bounds=upper,
                )
            )
    return lambda: catalog.load_table("d.t")


def iceberg_filter(sql: str) -> str:
    """A condition as pyiceberg spells it: dates are texts."""
    return sql.replace("DATE'", "'")
