"""What a Python worker runs to place rows; it needs neither PySpark nor pandas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipindex.layout import CurveLayout


@dataclass(frozen=True, slots=True, eq=False)
class Router:
    """A layout, and the partition label of each of its files."""

    layout: CurveLayout
    labels: npt.NDArray[np.int32]

    def place(self, columns: Sequence[pa.Array]) -> pa.StructArray:
        """Key and partition label of every row.

        The columns are those of the layout, then the salt if it needs one.
        """
        salt = None
        if self.layout.needs_salt:
            *columns, hashes = columns
            salt = hashes.to_numpy(zero_copy_only=False)
        result = self.layout.assign(columns, salt=salt)
        return pa.StructArray.from_arrays(
            [pa.array(result.keys), pa.array(self.labels[result.files])],
            names=["key", "label"],
        )
