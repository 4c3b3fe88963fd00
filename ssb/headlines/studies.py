"""Three parameters, one at a time: clustering columns, size of files, size of cubes.

Each table is a copy of the flat one with the columns that the 13 queries name, along a
Z-order curve.  The queries run through Spark without and with min/max.
"""

from __future__ import annotations

import re
import shutil
import time
import warnings
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation

import skipindex as sx
from ssb.data.generate import Dataset
from ssb.grid.cells import FLAT
from ssb.layouts import CLUSTER_BY, STATISTICS_ALONE, flat_rows
from ssb.queries import QUERIES
from ssb.run import matches_per_file
from ssb.steps import Context, Found, Row, Step, effort_of
from ssb.timing import time_queries

COLUMNS: Final = (*CLUSTER_BY, "lo_discount", "lo_quantity")
"""In the order in which a study adds them."""
BY_COLUMNS: Final = "clustering columns"
BY_SIZE: Final = "size of files"
BY_CUBE: Final = "size of cubes"
CURVE: Final = "zorder"
SIZES: Final = (32, 64, 128, 256, 512, 1024)
"""Megabytes of a file in the articles."""
ROWS_OF_LARGEST: Final = 120_000
"""Stand for a file of the largest of ``SIZES``, and fewer rows for a smaller one."""
CUBES: Final = (0.05, 0.2, 2.0)
"""Sizes of a cube, as parts of the data; the last is never full."""
ORDER: Final = "lo_orderkey"
"""Ascends as rows are generated."""


def steps() -> list[Step]:
    """A step for each value."""
    columns = range(1 + len(COLUMNS))
    return [
        *(Step(f"{BY_COLUMNS}/{n}", partial(_columns, n=n)) for n in columns),
        *(Step(f"{BY_SIZE}/{size}", partial(_size, size=size)) for size in SIZES),
        *(Step(f"{BY_CUBE}/{share:g}", partial(_cube, share=share)) for share in CUBES),
    ]


def names() -> list[str]:
    """The columns that the 13 queries name, and those to cluster by."""
    words = re.compile(r"\b(?:lo|c|s|p|d)_\w+")
    asked = {word for q in QUERIES for word in words.findall(q.sql(FLAT))}
    return sorted({*asked, *COLUMNS, *CLUSTER_BY})


def rows_per_file(dataset: Dataset) -> int:
    """The rows of a file of the studies of columns and cubes."""
    return -(-dataset.n_rows // effort_of(dataset.scale).files)


def _columns(context: Context, n: int) -> Found:
    row = _clustered(context, COLUMNS[:n], rows_per_file(context.dataset))
    label = ", ".join(COLUMNS[:n]) or "nothing"
    return Found([{"value": n, "label": label, **row}])


def _size(context: Context, size: int) -> Found:
    rows = max(1, ROWS_OF_LARGEST * size // SIZES[-1])
    row = _clustered(context, CLUSTER_BY, rows)
    return Found([{"value": size, "label": f"{rows:,} rows", **row}])


def _folder(context: Context) -> Path:
    path = context.work / "study"
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _clustered(context: Context, by: Sequence[str], rows: int) -> Row:
    path = _folder(context)
    curve = CURVE if by else None
    layout = sx.Clustering(by=by, curve=curve, rows_per_file=rows)
    began = time.perf_counter()
    with warnings.catch_warnings():
        # That many columns work badly is what the study shows.
        warnings.filterwarnings("ignore", "clustering by", UserWarning)
        sx.write_table(
            flat_rows(context.spark, context.dataset).select(*names()),
            path,
            layout=layout,
            indexes=STATISTICS_ALONE,
        )
    written = time.perf_counter() - began
    row = {"write s": round(written, 2), **_asked(context, path)}
    shutil.rmtree(path)
    return row


def _asked(context: Context, path: Path) -> Row:
    """The files that the 13 queries read of a table, and their seconds."""
    table = sx.open_table(path)
    truth = matches_per_file(context.spark, table, QUERIES)
    context.spark.read.parquet(str(path)).createOrReplaceTempView(FLAT)
    texts = [(query.name, query.sql(FLAT)) for query in QUERIES]
    timed = time_queries(context.spark, texts, folder=path, rounds=context.effort.study)
    plain = [sum(run) for run in zip(*(t.plain for t in timed), strict=True)]
    pruned = [sum(run) for run in zip(*(t.pruned for t in timed), strict=True)]
    return {
        "files": len(table),
        "MB": round(float(table.state.sizes.sum()) / 1e6, 2),
        "kept": kept(table),
        "oracle": sum(map(len, truth.values())),
        "plain s": round(sorted(plain)[len(plain) // 2], 3),
        "pruned s": round(sorted(pruned)[len(pruned) // 2], 3),
        "same": int(all(t.equal for t in timed)),
    }


def kept(table: sx.Table) -> int:
    """The files that the 13 queries read by min/max, together."""
    return sum(len(table.plan(q.where, kinds=["minmax"]).paths) for q in QUERIES)


def _cube(context: Context, share: float) -> Found:
    """Half of the rows, and then appends that an incremental run follows each."""
    path = _folder(context)
    first, *appends = _parts(context)
    layout = sx.Clustering(
        by=CLUSTER_BY, curve=CURVE, rows_per_file=rows_per_file(context.dataset)
    )
    table = sx.write_table(first, path, layout=layout, indexes=STATISTICS_ALONE)
    cube_size = max(1, int(2 * share * table.state.sizes.sum()))
    rows: list[Row] = []
    for number, appended in enumerate(appends, 1):
        table = sx.append(appended, table)
        report = table.optimize(context.spark, cube_size=cube_size)
        table = report.table
        rows.append({
            "value": share,
            "run": number,
            "rewritten MB": round(report.bytes_in / 1e6, 3),
            "table MB": round(float(table.state.sizes.sum()) / 1e6, 3),
            "files": len(table),
            "kept": kept(table),
            "optimize s": round(report.seconds, 2),
            "sealed": report.sealed,
        })  # fmt: skip
    table.vacuum(retention=timedelta(0))  # Spark alone reads what the folder has
    rows.append({"value": share, "label": f"{share:g}", **_asked(context, path)})
    shutil.rmtree(path)
    return Found(rows)


def _parts(context: Context) -> list[DataFrame]:
    """Half of the rows in the order of generation, and the others in equal parts."""
    keys = ds.dataset(str(context.dataset.flat)).to_table(columns=[ORDER])[ORDER]
    n = context.effort.appends
    shares = [0.0, *(0.5 + 0.5 * i / n for i in range(n + 1))]
    ends = pc.quantile(keys, q=shares, interpolation="lower").to_pylist()
    rows = flat_rows(context.spark, context.dataset)
    return [
        rows.where(
            (F.col(ORDER) > (low if i else low - 1)) & (F.col(ORDER) <= high)
        ).select(*names())
        for i, (low, high) in enumerate(pairwise(ends))
    ]
