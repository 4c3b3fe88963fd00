"""Sending every row to the partition whose number it carries."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column, DataFrame

HAS_PARTITION_IDS: Final = hasattr(DataFrame, "repartitionById")
"""Spark 4.1 takes the partition's number from a column."""

_SPARK_SEED: Final = np.uint32(42)


def by_number(df: DataFrame, n_partitions: int, label: Column) -> DataFrame:
    """The rows in ``n_partitions`` partitions, each row where its label says.

    The label of partition p is ``labels(n_partitions)[p]``.  The number of
    partitions is kept by adaptive execution because it is given.
    """
    if HAS_PARTITION_IDS:
        return df.repartitionById(n_partitions, label)
    return df.repartition(n_partitions, label)


def labels(n_partitions: int) -> npt.NDArray[np.int32]:
    """What a row must carry to get to partition 0, 1, ... of ``by_number``.

    That is the number itself, or before Spark 4.1 an int that Spark's hash
    partitioning sends there.
    """
    numbers = np.arange(n_partitions, dtype=np.int32)
    return numbers if HAS_PARTITION_IDS else _hashed_to(n_partitions)


def _hashed_to(n_partitions: int) -> npt.NDArray[np.int32]:
    """For each partition, the smallest int >= 0 that hashes to it."""
    n_tried = 4 * n_partitions
    while True:
        tried = np.arange(n_tried, dtype=np.int32)
        partition = _murmur3(tried) % n_partitions  # as Spark's pmod, never below 0
        result, first = np.unique(partition, return_index=True)
        if len(result) == n_partitions:
            return tried[first]
        n_tried *= 2


def _murmur3(values: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Spark's ``hash(int)``: Murmur3_x86_32 of 4 bytes with seed 42."""

    def rotate(words: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint32]:
        return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))

    word = values.view(np.uint32) * np.uint32(0xCC9E2D51)
    word = rotate(word, 15) * np.uint32(0x1B873593)
    mixed = rotate(_SPARK_SEED ^ word, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    mixed ^= np.uint32(4)
    mixed = (mixed ^ (mixed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    mixed = (mixed ^ (mixed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return (mixed ^ (mixed >> np.uint32(16))).view(np.int32)
