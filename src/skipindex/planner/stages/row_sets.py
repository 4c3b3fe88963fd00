"""Sets of rows of one file: bitmaps, or a mark for each row.

An index that compares the codes of all rows has marks before it has a bitmap.  Where
many rows are marked, an AND of marks takes less time than making bitmaps of them.
"""

from __future__ import annotations

from typing import Final, TypeAlias, TypeVar

import numpy as np
from pyroaring import AbstractBitMap, BitMap

from skipindex.expressions.arrays import Mask
from skipindex.indexes.encoding.roaring import from_mask, from_rows
from skipindex.planner.stages.cost import FEW


class MarkedRows:
    """The rows of a file that are marked; never changed."""

    __slots__ = ("_bitmap", "_n", "mask")

    def __init__(self, mask: Mask) -> None:
        self.mask: Final = mask
        self._n: int | None = None
        self._bitmap: BitMap | None = None

    def __len__(self) -> int:
        if self._n is None:
            self._n = int(np.count_nonzero(self.mask))
        return self._n

    @property
    def bitmap(self) -> BitMap:
        """The same rows; made once."""
        if self._bitmap is None:
            self._bitmap = from_mask(self.mask)
        return self._bitmap


RowSet: TypeAlias = AbstractBitMap | MarkedRows

R = TypeVar("R", bound=RowSet)


def bitmap_of(rows: RowSet) -> AbstractBitMap:
    """The rows as a bitmap."""
    return rows.bitmap if isinstance(rows, MarkedRows) else rows


def both(rows: RowSet | None, others: RowSet) -> RowSet:
    """The rows that are in both; None is all rows."""
    if rows is None:
        return others
    if isinstance(rows, MarkedRows):
        if isinstance(others, MarkedRows):
            return MarkedRows(rows.mask & others.mask)
        rows, others = others, rows
    if isinstance(others, MarkedRows) and len(rows) * FEW < len(others.mask):
        few = np.frombuffer(rows.to_array(), np.uint32)
        return from_rows(few[others.mask[few]], len(others.mask))
    return bitmap_of(rows) & bitmap_of(others)


def either(rows: RowSet, others: RowSet) -> RowSet:
    """The rows that are in one of two sets at least."""
    if isinstance(rows, MarkedRows) and isinstance(others, MarkedRows):
        return MarkedRows(rows.mask | others.mask)
    if not rows or not others:
        return rows or others
    return bitmap_of(rows) | bitmap_of(others)


def n_in_both(rows: RowSet, others: RowSet) -> int:
    """How many rows are in both."""
    if isinstance(rows, MarkedRows) or isinstance(others, MarkedRows):
        return len(both(rows, others))
    return rows.intersection_cardinality(others)
