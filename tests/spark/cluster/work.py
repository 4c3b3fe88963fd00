"""A driver: writes, builds, verifies, plans and reads a table on a cluster."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import skipindex as sx
from tests.spark.cluster.clusters import session_on
from tests.spark.pruning.scans import files_read

master, site, folder = sys.argv[1:4]
path = str(Path(folder, "table"))
# What tasks send to the driver is small: no rows, and no payloads of indexes.
spark = session_on(master, site, folder, spark__driver__maxResultSize="1m")


def origin(_: Iterator[Any]) -> Iterator[str]:
    try:
        import skipindex.build.task as module  # noqa: PLC0415
    except ImportError as error:
        yield f"{type(error).__name__}: {error}"
    else:
        yield str(module.__file__)


def on_workers() -> list[str]:
    slices = spark.sparkContext.range(8, numSlices=4).mapPartitions(origin)
    return sorted(set(slices.collect()))


found: dict[str, Any] = {"before": on_workers()}
df = spark.range(4000).selectExpr(
    "id", "id % 40 AS a", "id % 71 AS b", "concat('s', id % 97) AS s"
)
written: list[tuple[int, int]] = []
table = sx.write_table(
    df,
    path,
    layout=sx.Clustering(by=["a", "b"], rows_per_file=400),
    indexes={"a": "bitmap", "s": "bloom"},
    progress=lambda now: written.append((now.done, now.total)),
)
found["written"] = written[-1]
built: list[tuple[int, int]] = []
report = sx.build_indexes(
    table,
    {"id": "bitmap", "b": "bit_sliced"},
    spark=spark,
    progress=lambda now: built.append((now.done, now.total)),
)
found |= {"built": built[-1], "files": report.files, "notes": report.notes}
found["after"] = on_workers()
appended = sx.append(df.selectExpr("id + 4000 AS id", "a", "b", "s"), path)
found["ok"] = appended.verify(spark=spark).to_dict()
found["alike"] = appended.verify().to_dict() == found["ok"]
plan = appended.plan("a = 7 AND b = 11")
found["planned"] = [len(plan.paths), len(appended), plan.count_bounds]
rows = sx.read(path, "a = 7 AND b = 11", spark=spark)
found["rows"] = sorted(row["id"] for row in rows.collect())

text = f"SELECT id, s FROM parquet.`{path}` WHERE id = 5011"
expected = spark.sql(text).collect()
all_files = files_read(spark.sql(text))
sx.enable(spark)
found["same"] = spark.sql(text).collect() == expected
found["read"] = [files_read(spark.sql(text)), all_files]
sx.open_table(path).optimize(spark, mode="full")
found["optimized"] = sx.read(path, "id = 5011", spark=spark).count()
found["verified"] = sx.open_table(path).verify().to_dict()
spark.stop()
print(json.dumps(found, default=str))
