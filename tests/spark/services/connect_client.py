"""A client of Spark Connect: what of skipindex works without a driver in reach."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import skipindex as sx

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
folder = Path(sys.argv[2])
events = folder / "events"
events.mkdir()
for i in range(12):
    ids = pa.array(range(10 * i, 10 * i + 10))
    pq.write_table(pa.table({"id": ids, "n": ids}), events / f"{i:02}.parquet")
calls: list[tuple[int, int]] = []


def refused(call: Callable[[], Any]) -> str:
    try:
        call()
    except sx.EngineError as error:
        return str(error)
    return ""


def interrupted(_: Any) -> None:
    raise KeyboardInterrupt


def is_interrupted() -> bool:
    try:
        sx.build_indexes(events, {"n": "bloom"}, spark=spark, progress=interrupted)
    except KeyboardInterrupt:
        return True
    return False


found: dict[str, Any] = {
    "refused": [
        refused(lambda: sx.enable(spark)),
        refused(lambda: sx.last_plans(spark)),
        refused(lambda: sx.open_table(events).optimize(spark, in_place=True)),
    ],
}
found["interrupted"] = is_interrupted()
found["version"] = sx.open_table(events).state.snapshot.version
report = sx.build_indexes(
    events,
    {"id": "bitmap"},
    spark=spark,
    progress=lambda now: calls.append((now.done, now.total)),
)
found |= {"files": report.files, "notes": report.notes, "calls": calls}
rows = sx.read(events, "id = 77", spark=spark)
found["rows"] = [row["n"] for row in rows.collect()]
plan = sx.plan_files("id BETWEEN 75 AND 84", table=events)
found["count"] = plan.count(spark)
found["explicit"] = spark.read.parquet(*plan.files).where("id > 82").count()

df = spark.range(1000).select("id", (sf.col("id") % 7).alias("a"))
layout = sx.Clustering(by=["a"], rows_per_file=100)
table = sx.write_table(df, folder / "t", layout=layout, indexes={"a": "bitmap"})
table = sx.append(df.select((sf.col("id") + 1000).alias("id"), "a"), table)
found["written"] = [len(table), table.plan("a = 3").count(spark)]
found["verified"] = table.verify().ok
text = f"SELECT count(*) FROM parquet.`{events}` WHERE id = 55"
found["sql"] = spark.sql(text).collect()[0][0]
spark.stop()
print(json.dumps(found))
