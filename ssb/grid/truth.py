"""The truth about a layout: matching rows of each file, found by one scan."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from ssb.data.generate import Dataset
from ssb.queries import DIMENSIONS

MAP_COLUMNS: Final = ("c_city", "p_brand1")
"""The columns of the map of files."""

Matches = Mapping[str, Mapping[str, int]]
"""By query and by the name of a file, the rows that match."""


def boxes_of(
    dataset: Dataset, path: Path
) -> tuple[tuple[float, float, float, float], ...]:
    """The least and greatest values of ``MAP_COLUMNS`` in each file.

    A value is told as its place among the values of the column, from 0 to 1.  Empty
    where the files do not have both columns.
    """
    files = [_ends(file) for file in sorted(path.glob("*.parquet"))]
    ends = [pair for pair in files if pair is not None]
    if len(ends) < len(files):
        return ()
    x, y = (_places(dataset, name) for name in MAP_COLUMNS)
    return tuple((x[a], x[b], y[c], y[d]) for (a, b), (c, d) in ends)


def _ends(file: Path) -> tuple[tuple[Any, Any], ...] | None:
    metadata = pq.read_metadata(file)
    names = metadata.schema.to_arrow_schema().names
    if not set(MAP_COLUMNS) <= set(names):
        return None
    found = []
    for name in MAP_COLUMNS:
        place = names.index(name)
        groups = [
            metadata.row_group(i).column(place).statistics
            for i in range(metadata.num_row_groups)
        ]
        found.append((min(g.min for g in groups), max(g.max for g in groups)))
    return tuple(found)


def _places(dataset: Dataset, column: str) -> dict[Any, float]:
    """The values of a column of a dimension, with their places."""
    table, _, _ = DIMENSIONS[column[0]]
    found = pq.read_table(dataset.tables[table], columns=[column]).column(0)
    values = sorted(found.unique().to_pylist())
    return {value: i / max(1, len(values) - 1) for i, value in enumerate(values)}


def save(matches: Matches, path: Path) -> None:
    """Write the truth beside a layout, for a run that goes on later."""
    path.write_text(json.dumps(matches), encoding="utf-8")


def load(path: Path) -> Matches:
    """What ``save`` wrote."""
    matches: Matches = json.loads(path.read_text(encoding="utf-8"))
    return matches
