"""Types of numpy arrays, and where the values of a sorted array change."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Mask: TypeAlias = npt.NDArray[np.bool_]
Ints: TypeAlias = npt.NDArray[np.int64]
Words: TypeAlias = npt.NDArray[np.uint64]
Codes: TypeAlias = npt.NDArray[np.uint32]
UnsignedInts: TypeAlias = npt.NDArray[np.unsignedinteger]
Bits: TypeAlias = npt.NDArray[np.uint8]
"""Bits or other bytes; of a byte the lowest bit comes first."""


def starts(values: npt.NDArray[Any]) -> Mask:
    """Where a value differs from the one before it; the first one does.

    >>> starts(np.array([3, 3, 5, 5, 3])).tolist()
    [True, False, True, False, True]
    """
    result = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=result[1:])
    return result
