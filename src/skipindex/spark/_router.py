"""What a Python worker runs to place rows; it needs neither PySpark nor pandas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipindex.layout.clustering import Clustering


@dataclass(frozen=True, slots=True, eq=False)
class Router:
    """A clustering, and the partition label of each of its files."""

    clustering: Clustering
    labels: npt.NDArray[np.int32]

    def place(self, columns: Sequence[pa.Array]) -> pa.StructArray:
        """Return key and partition label of every row.

        The columns are those of the clustering, then the salt if it needs one.
        """
        salt = None
        if self.clustering.cuts.needs_salt:
            *columns, hashes = columns
            salt = hashes.to_numpy(zero_copy_only=False)
        found = self.clustering.assign(columns, salt=salt)
        return pa.StructArray.from_arrays(
            [pa.array(found.keys), pa.array(self.labels[found.files])],
            names=["key", "label"],
        )
