"""What min/max per file lets a reader skip, and small grids to try it on."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipindex.layout import CurveLayout

Integers = npt.NDArray[np.int64]


def grid(*sides: int) -> list[Integers]:
    """The coordinates of every cell, in no useful order."""
    cells = np.stack(np.meshgrid(*map(np.arange, sides), indexing="ij"))
    flat = cells.reshape(len(sides), -1)
    return list(flat[:, np.random.default_rng(7).permutation(flat.shape[1])])


def table(*columns: npt.ArrayLike) -> pa.Table:
    """Columns a, b, c and so on."""
    names = "abcdefghij"[: len(columns)]
    return pa.table({n: np.asarray(c) for n, c in zip(names, columns, strict=True)})


def files_of(
    rows: pa.Table, curve: str, n_files: int, *, max_ranges: int | None = None
) -> npt.NDArray[np.int32]:
    """The file of every row, clustered by all columns and fitted to all."""
    names = rows.column_names
    ranges = None if max_ranges is None else dict.fromkeys(names, max_ranges)
    fitted = CurveLayout.fit(
        rows, names, curve=curve, n_files=n_files, max_ranges=ranges
    )
    return fitted.assign(rows.columns).files


def kept(
    files: npt.NDArray[np.int32],
    rows: pa.Table,
    *,
    any_of: bool = False,
    **ranges: tuple[int, int],
) -> int:
    """How many files min/max cannot skip for a range on each column.

    The ranges are closed; they are joined by OR if ``any_of``, else by AND.
    """
    n_files = int(files.max()) + 1
    columns: Mapping[str, Integers] = {n: rows[n].to_numpy() for n in ranges}
    hits = []
    for name, (low, high) in ranges.items():
        lowest = np.full(n_files, np.iinfo(np.int64).max)
        highest = np.full(n_files, np.iinfo(np.int64).min)
        np.minimum.at(lowest, files, columns[name])
        np.maximum.at(highest, files, columns[name])
        hits.append((lowest <= high) & (low <= highest))
    return int((np.any if any_of else np.all)(hits, axis=0).sum())
