"""TPC-H: its eight tables in a few files each, and its 22 queries."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

import skipindex as sx

SCALE: Final = 0.01
_FILES: Final = {"lineitem": 12, "orders": 8, "customer": 4, "part": 4, "partsupp": 4}
_ORDER: Final = {"lineitem": "l_shipdate", "orders": "o_orderdate", "part": "p_brand"}
"""What a table is sorted by, so that its files differ."""
FACTS: Final[Mapping[str, Sequence[str]]] = {
    "lineitem": ("l_orderkey", "l_partkey", "l_suppkey"),
    "orders": ("o_orderkey", "o_custkey"),
    "partsupp": ("ps_partkey", "ps_suppkey"),
}
"""Columns with an index of the tables that are large."""
DIMENSIONS: Final[Mapping[str, Sequence[str]]] = {
    "customer": ("c_custkey", "c_nationkey", "c_mktsegment"),
    "part": ("p_partkey", "p_brand", "p_size"),
    "supplier": ("s_suppkey", "s_nationkey"),
    "nation": ("n_nationkey", "n_name"),
    "region": ("r_regionkey", "r_name"),
}
"""Of the others."""
_SQL: Final = (Path(__file__).parent / "tpch.sql").read_text()
QUERIES: Final[Mapping[str, str]] = dict(
    re.findall(r"^-- (Q\d+)\n(.*?)(?=^-- Q|\Z)", _SQL, re.MULTILINE | re.DOTALL)
)
"""The 22 queries with the parameters of their validation, by name."""


def make(folder: Path) -> Path:
    """Write the tables, each into a folder of its name; real data at ``SCALE``."""
    beside = shutil.which("tpchgen-cli", path=str(Path(sys.executable).parent))
    subprocess.run(
        [beside or "tpchgen-cli", "parquet", "--scale-factor", f"{SCALE}",
         "--output-dir", str(folder), "--no-progress"],
        capture_output=True, check=True,
    )  # fmt: skip
    for name in (*FACTS, *DIMENSIONS):
        whole = folder / f"{name}.parquet"
        rows = pq.read_table(whole)
        views = [pa.types.is_string_view(field.type) for field in rows.schema]
        for i in (i for i, is_view in enumerate(views) if is_view):
            # pyarrow sorts no table with views.
            rows = rows.set_column(
                i, rows.schema.field(i).name, rows.column(i).cast(pa.string())
            )
        if name in _ORDER:
            rows = rows.sort_by(_ORDER[name])
        n_files = _FILES.get(name, 1)
        size = -(-len(rows) // n_files)
        (folder / name).mkdir()
        for i in range(n_files):
            part = rows.slice(i * size, size)
            pq.write_table(part, folder / name / f"part-{i:02}.parquet")
        whole.unlink()
    return folder


def index(folder: Path, columns: Mapping[str, Sequence[str]]) -> None:
    """Build indexes of some tables."""
    for name, wanted in columns.items():
        indexes = {"*": "minmax", **dict.fromkeys(wanted, "bitmap")}
        sx.build_indexes(folder / name, indexes, workers=1)
