"""How many files hold a value of a column, from the statistics of files alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.source.partitions.hive import partition_values
from skipindex.table.statistics.file_stats import FileStats

Positions: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Overlap:
    """The number of files of a partition that hold one value of a column; best is 1.

    The values are the least and the greatest one of each file.  A file whose bounds are
    not known counts for every value of its partition.  If no file holds a value, both
    are 0.

    Args:
        mean: the mean over the values, weighted by the bytes of their files.
        worst: the number for the value that the most files hold.
    """

    mean: float
    worst: int

    @classmethod
    def of(
        cls, stats: FileStats, sizes: npt.ArrayLike, partition: Positions
    ) -> Overlap:
        """The overlap of a column, with the size and the partition of each file."""
        low, high = spread(stats, partition)
        mine = np.flatnonzero(stats.can_value)
        if not len(mine):
            return cls(0.0, 0)
        # Ranges of their own for each partition: ranges of two of them never meet.
        apart = partition[mine] * (high.max() + 1)
        low, high = low[mine] + apart, high[mine] + apart
        lows, highs = np.sort(low), np.sort(high)
        begun = (np.searchsorted(lows, end, side="right") for end in (low, high))
        ended = (np.searchsorted(highs, end, side="left") for end in (low, high))
        n_low, n_high = (b - e for b, e in zip(begun, ended, strict=True))
        weights = np.asarray(sizes, np.float64)[mine]
        mean = np.average((n_low + n_high) / 2, weights=np.maximum(weights, 1))
        return cls(float(mean), int(max(n_low.max(), n_high.max())))

    def __str__(self) -> str:
        return f"{self.mean:.1f} files contain a value on average, {self.worst} at most"


def partition_numbers(paths: Sequence[str]) -> Positions:
    """The number of the partition of each file."""
    folders: dict[str, int] = {}
    numbers: dict[object, int] = {}
    result = np.empty(len(paths), np.int64)
    for i, path in enumerate(paths):
        folder = path.rpartition("/")[0]
        if folder not in folders:
            values = partition_values(path)
            folders[folder] = numbers.setdefault(values, len(numbers))
        result[i] = folders[folder]
    return result


def ranked(stats: FileStats) -> tuple[Positions, Positions]:
    """The least and greatest values of the files that have any, as ranks of all."""
    known = np.flatnonzero(stats.bounded & stats.can_value)
    if isinstance(stats.low, np.ndarray):
        both = np.concatenate([stats.low[known], stats.high[known]])
        ranks = np.unique(both, return_inverse=True)[1]
    else:
        texts = [end.take(pa.array(known)) for end in (stats.low, stats.high)]
        values = [text.cast(pa.large_binary()) for text in texts]
        both = pa.concat_arrays(values).dictionary_encode()
        order = np.asarray(pc.sort_indices(both.dictionary))
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        ranks = ranks[np.asarray(both.indices)]
    low, high = np.split(ranks.astype(np.int64), 2)
    return low, high


def spread(stats: FileStats, partition: Positions) -> tuple[Positions, Positions]:
    """The ranks of every file; all of its partition's where bounds are not known.

    What a file has that holds no value is arbitrary.
    """
    shape = len(partition)
    low, high = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    known = stats.bounded & stats.can_value
    if not known.any():
        return low, high
    low[known], high[known] = ranked(stats)
    n = int(partition.max()) + 1
    least, most = np.full(n, high.max()), np.zeros(n, np.int64)
    np.minimum.at(least, partition[known], low[known])
    np.maximum.at(most, partition[known], high[known])
    low[~known], high[~known] = (ends[partition[~known]] for ends in (least, most))
    # A partition of which nothing is known has one value.
    high = np.maximum(low, high)
    return low, high
