"""Clustering of a DataFrame: partition i becomes data file i."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Final, TypedDict, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as sf

from skipindex.errors import LayoutError
from skipindex.layout import (
    MAX_COLUMNS,
    Answers,
    CurveLayout,
    LayoutChoice,
    Workload,
    choose_layout,
)
from skipindex.spark.columns import (
    arrow_schema,
    column,
    declared,
    require_order,
    resolve,
    row_size,
)
from skipindex.spark.placement.place import place_column
from skipindex.spark.placement.router import Router
from skipindex.spark.ship import ship_package

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


SAMPLE_ROWS: Final = 200_000
"""About 2 % noise in the size of a file at 100 files, 6 % at 1000."""

BALANCES: Final = ("rows", "bytes")

_SEED: Final = 20_260_101
"""Fixed, so that the same rows are sampled and laid out alike every time."""


class Sampling(TypedDict, total=False):
    """How a DataFrame is sampled to fit a layout.

    Attributes:
        n_rows: the number of rows of the DataFrame; None, the default, counts them.
        sample_rows: how many rows to sample, about.
        balance: what files have nearly equal amounts of: ``"rows"``, the default, or
            ``"bytes"`` before encoding, for rows of very different sizes.
    """

    n_rows: int | None
    sample_rows: int
    balance: str


def cluster(
    df: DataFrame,
    *,
    by: Sequence[str],
    n_files: int,
    curve: str = "hilbert",
    sort_within: Sequence[str] | None = None,
    partition_by: Sequence[str] = (),
    max_ranges: Mapping[str, int] | None = None,
    answers: Answers | None = None,
    **sampling: Unpack[Sampling],
) -> DataFrame:
    """The same rows in ``n_files`` partitions that follow a curve.

    Rows, schema, column order, nullability and column metadata are those of
    ``df``.  Written as it is, every partition gives one data file (and one for each
    value of ``partition_by`` in it), numbered along the curve.  A row goes by its
    content alone, so a task that Spark repeats sends it to the same file.

    The clustering columns are read once now, for the sample (twice, to count,
    without ``n_rows``); all columns are read once when the result is used.

    Args:
        df: any batch DataFrame.
        by: clustering columns, in order of importance; two to four work best.
        n_files: how many partitions to make, of nearly equal numbers of rows.
        curve: ``"hilbert"``, ``"zorder"``, ``"linear"`` or ``"hash"``.
        sort_within: order of rows inside a file; None is along the curve.
        partition_by: hive partition columns of the table to be written.  They
            come before the curve, so that each value is in few files.
        max_ranges: the most ranges of some columns, as a workload chose them.
        answers: the conditions whose rows come first, as a workload chose them.
        **sampling: see ``Sampling``.
    """
    layout = fit_clustering(
        df,
        by=by,
        n_files=n_files,
        curve=curve,
        partition_by=partition_by,
        max_ranges=max_ranges,
        answers=answers,
        **sampling,
    )
    return apply_clustering(
        df, layout, sort_within=sort_within, partition_by=partition_by
    )


def fit_clustering(
    df: DataFrame,
    *,
    by: Sequence[str],
    n_files: int,
    curve: str = "hilbert",
    partition_by: Sequence[str] = (),
    max_ranges: Mapping[str, int] | None = None,
    answers: Answers | None = None,
    **sampling: Unpack[Sampling],
) -> CurveLayout:
    """The clustering that a sample of ``df`` suggests; see ``cluster``."""
    named = resolve(df, by, role="cluster by")
    parts = resolve(df, partition_by, role="partition by")
    for name in named:
        if name in parts:
            raise LayoutError(
                f"cannot cluster by partition column {name!r}: "
                f"a file holds one value of it"
            )
    told = resolve(df, answers.columns if answers else (), role="put answers by")
    columns = tuple(dict.fromkeys((*named, *parts, *told)))
    for name in columns:
        require_order(df.schema[name])
    if len(named) > MAX_COLUMNS:
        warnings.warn(
            f"clustering by {len(named)} columns clusters each of them poorly: two to "
            f"{MAX_COLUMNS} work best, the most selective first",
            stacklevel=3,
        )
    sample, sizes = _sample(df, columns, **sampling)
    return CurveLayout.fit(
        sample,
        named,
        n_files=n_files,
        curve=curve,
        partition_by=parts,
        max_ranges=max_ranges,
        weights=sizes,
        answers=answers,
    )


def fit_workload(
    df: DataFrame,
    workload: Workload,
    *,
    n_files: int,
    partition_by: Sequence[str] = (),
    **sampling: Unpack[Sampling],
) -> LayoutChoice:
    """The layout that a sample of ``df`` suggests for a workload."""
    parts = resolve(df, partition_by, role="partition by")
    refused = {field.name: why for field in df.schema if (why := _refusal(field))}
    bound = workload.bind(declared(df.schema), refused=refused)
    columns = tuple(dict.fromkeys((*bound.columns, *parts)))
    for name in parts:
        require_order(df.schema[name])
    sample, sizes = _sample(df, columns, **sampling)
    return choose_layout(
        sample,
        bound,
        n_files=n_files,
        method=workload.method,
        partition_by=parts,
        weights=sizes,
        answers_share=workload.answers_share,
    )


def apply_clustering(
    df: DataFrame,
    layout: CurveLayout,
    *,
    sort_within: Sequence[str] | None = None,
    partition_by: Sequence[str] = (),
) -> DataFrame:
    """The rows where the layout puts them; see ``cluster``."""
    ship_package(df.sparkSession)
    first = resolve(df, partition_by, role="partition by")
    inner = resolve(df, sort_within or (), role="sort within files by")
    n_files = layout.n_files
    router = Router(layout, labels(n_files))

    place = _unused_name(df)
    placed = df.withColumn(place, place_column(df, router))
    sent = by_number(placed, n_files, sf.col(f"{place}.label"))
    # The partition columns come first because Spark's writer wants them so.
    order = [column(name) for name in (*first, *inner)]
    if not inner:
        order.append(sf.col(f"{place}.key"))
    return sent.sortWithinPartitions(*order).drop(place)


def _refusal(field: types.StructField) -> str:
    """Why rows cannot be laid out by the column, or nothing."""
    try:
        require_order(field)
    except LayoutError as error:
        return str(error)
    return ""


def _sample(
    df: DataFrame,
    columns: Sequence[str],
    *,
    n_rows: int | None = None,
    sample_rows: int = SAMPLE_ROWS,
    balance: str = "rows",
) -> tuple[pa.Table, np.ndarray | None]:
    """Some columns of about ``sample_rows`` rows, and what each row weighs."""
    if balance not in BALANCES:
        accepted = ", ".join(map(repr, BALANCES))
        raise LayoutError(f"cannot balance {balance!r} (accepted: {accepted})")
    keys = df.select(*map(column, columns))
    if n_rows is None:
        n_rows = keys.count()
    size = _unused_name(df)
    if balance == "bytes":
        keys = df.select(*map(column, columns), row_size(df.schema).alias(size))
    if n_rows > sample_rows:
        keys = keys.sample(fraction=sample_rows / n_rows, seed=_SEED)
    result = _to_arrow(keys)
    if balance == "bytes":
        return result.drop_columns([size]), result[size].to_numpy()
    return result, None


def _to_arrow(df: DataFrame) -> pa.Table:
    if hasattr(df, "toArrow"):
        return df.toArrow()
    # What toPandas does before Spark 4.0.
    batches = df._collect_as_arrow()  # type: ignore[operator]  # noqa: SLF001
    if batches:
        return pa.Table.from_batches(batches)
    return arrow_schema(df.schema).empty_table()


def _unused_name(df: DataFrame) -> str:
    taken = {name.casefold() for name in df.columns}
    return next(name for i in count() if (name := f"_place{i}") not in taken)
