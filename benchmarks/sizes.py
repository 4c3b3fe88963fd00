"""What indexes cost in bytes, by column and kind: ``python -m benchmarks sizes``.

On the flat SSB table, as it was generated and clustered.  ``make headlines`` measures
what the advisor chooses for a tenth of the data, and the files that it keeps.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import skipindex as sx
from benchmarks._report import Measure, show
from skipindex.advice.sample import take_sample
from skipindex.errors import UnsupportedTypeError
from skipindex.indexes import index_types
from ssb.data.generate import find_dataset, find_or_generate
from ssb.layouts import INDEXES, layouts
from ssb.progress import progress_lines
from ssb.session import local_session

COLUMNS: Final = (*INDEXES, "lo_partkey", "lo_suppkey", "lo_commitdate", "lo_shipmode")
"""The columns that the queries and look-ups ask for, and keys beside them: 24."""

_REFERENCES: Final[Mapping[tuple[str, str], float]] = {
    ("lo_extendedprice", "bit_sliced"): 21e6 / 6_001_215,
    ("c_city", "bitmap"): 7e6 / 6_001_215,
}
"""Bytes a row that Apache Paimon's best file index takes of the unordered table at
scale 1, rounded up."""


def main() -> None:
    """Measure at ``BENCH_SCALE`` on the data in ``BENCH_DATA``."""
    log = progress_lines()
    scale = float(os.environ.get("BENCH_SCALE", "1"))
    data = Path(os.environ.get("BENCH_DATA", f"data/ssb-{scale:g}"))
    spark = local_session("bench sizes", conf={"spark.sql.session.timeZone": "UTC"})
    dataset = find_dataset(data) or find_or_generate(
        data, scale=scale, seed=4, files=100, spark=spark, log=log
    )
    for name, table in layouts(dataset, spark, log=log).items():
        limits = _REFERENCES if scale == 1 and name == "unordered" else {}
        show(f"bytes a row, {name}, scale {scale:g}", by_kind(table, limits))
    spark.stop()


def by_kind(table: sx.Table, limits: Mapping[tuple[str, str], float]) -> list[Measure]:
    """The bytes of every column and kind."""
    sample = take_sample(table.state, [table.state.resolve(name) for name in COLUMNS])
    n_rows = sum(sample.n_rows)
    measures = []
    for name, column in sample.columns.items():
        for kind in index_types().values():
            if kind.name == "range_bitmap" and column.n_distinct > 64:
                continue  # a bit a row and value
            try:
                kind.check(column.domain)
                built = [kind.spec().build(one) for one in column.files]
            except UnsupportedTypeError:
                continue
            figure = sum(len(part) for parts in built for part in parts) / n_rows
            limit = limits.get((name, kind.name))
            note = f"{column.n_distinct:,.0f} distinct values in a file"
            measures.append(Measure(f"{name} {kind.name}", figure, "B", limit, note))
    return measures


if __name__ == "__main__":
    main()
