"""A manifest in memory, with the narrowest types that hold its values.

On disk the numbers are int64, and offsets of strings too: they compress well there.  In
memory an integer column has the narrowest type that holds its values, and buffers that
are equal, such as the counts of columns without NULL, are held once.  ``Manifest``
joins columns of different widths, and writes them as the format says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from crc32c import crc32c

from skipindex.log.manifest import Manifest, with_fields

_WIDTHS: Final = [(width, np.iinfo(width)) for width in (np.int8, np.int16, np.int32)]
_MAX_TEXTS: Final = 1 << 30
"""Bytes of all strings of a column whose offsets are 32 bits wide."""
_COPY_BELOW: Final = 4
"""A part of a buffer that is smaller than its share of the whole is copied out."""


def narrowed(manifest: Manifest) -> Manifest:
    """The same manifest, whose statistics have the narrowest types."""
    stats = {
        name: replace(column, values=narrow_column(column.values))
        for name, column in manifest.stats.items()
    }
    return replace(manifest, stats=stats)


def narrow_column(values: pa.StructArray) -> pa.StructArray:
    """The same statistics of one column in the narrowest types."""
    nulls, nans, low, high, *exact = (
        values.field(i) for i in range(values.type.num_fields)
    )
    ends = _narrow_ints if pa.types.is_integer(low.type) else _narrow_texts
    fields = [*_narrow_ints([nulls]), *_narrow_ints([nans]), *ends([low, high]), *exact]
    return with_fields(values, fields)


def _narrow_ints(arrays: Sequence[pa.Array]) -> list[pa.Array]:
    """Integers in the narrowest type that holds all of them."""
    ends = [end for array in arrays for end in _ends(array)]
    least, most = min(ends, default=0), max(ends, default=0)
    for width, limits in _WIDTHS:
        if limits.min <= least and most <= limits.max:
            return [_cast(array, width) for array in arrays]
    return list(arrays)


def _ends(array: pa.Array) -> list[int]:
    """The least and the greatest integer, if there are any."""
    if array.null_count or not len(array):
        return [end for end in pc.min_max(array).as_py().values() if end is not None]
    numbers = array.to_numpy()  # Arrow's function takes longer to call than to compute
    return [int(numbers.min()), int(numbers.max())]


def _cast(array: pa.Array, width: type[np.signedinteger[Any]]) -> pa.Array:
    if array.null_count:
        # A null has any number below it, which need not fit.
        return array.cast(pa.from_numpy_dtype(width), safe=False)
    return pa.array(array.to_numpy().astype(width))


def _narrow_texts(arrays: Sequence[pa.Array]) -> list[pa.Array]:
    if any(array.nbytes >= _MAX_TEXTS for array in arrays):
        return list(arrays)
    return [array.cast(pa.binary()) for array in arrays]


def shared(manifest: Manifest) -> Manifest:
    """The same manifest, where equal buffers are held once."""
    pool = _Pool()
    files = pa.table(
        [
            pa.chunked_array(map(pool.shared, column.chunks), column.type)
            for column in manifest.files.columns
        ],
        schema=manifest.files.schema,
    )
    stats = {}
    for name, column in manifest.stats.items():
        values = column.values
        n_fields = values.type.num_fields
        fields = [pool.shared(values.field(i)) for i in range(n_fields)]
        stats[name] = replace(column, values=with_fields(values, fields))
    return replace(manifest, files=files, stats=stats)


class _Pool:
    """Buffers by their size and crc32c."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], pa.Buffer] = {}

    def shared(self, array: pa.Array) -> pa.Array:
        """The same array of buffers that are held once; a slice stays as it is."""
        if array.offset or not len(array):
            return array
        if pa.types.is_list(array.type):
            offsets = self.shared(array.offsets)
            return pa.ListArray.from_arrays(offsets, self.shared(array.values))
        buffers = [b and self._one(b) for b in array.buffers()]
        nulls = array.null_count
        return pa.Array.from_buffers(array.type, len(array), buffers, nulls)

    def _one(self, buffer: pa.Buffer) -> pa.Buffer:
        key = buffer.size, crc32c(buffer)
        result = self._known.get(key)
        if result is not None and result.equals(buffer):
            return result
        whole = buffer.parent
        if whole is not None and buffer.size * _COPY_BELOW < whole.size:
            buffer = pa.py_buffer(buffer.to_pybytes())
        self._known[key] = buffer
        return buffer
