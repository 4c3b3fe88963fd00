"""A table that gets rows every day: append, optimize, vacuum.

    skipindex sample /data/events
    python examples/daily_append.py /data/events

The table is written beside the folder, as ``/data/events-daily``.
"""

import sys

from pyspark.sql import DataFrame, SparkSession

import skipindex as sx

DAYS = ["2026-01-01", "2026-01-02", "2026-01-03"]

if __name__ == "__main__":
    source = sys.argv[1]
    target = f"{source}-daily"
    spark = SparkSession.builder.getOrCreate()
    events = spark.read.parquet(source)

    def of(day: str) -> DataFrame:
        return events.where(f"CAST(moment AS DATE) = DATE '{day}'")

    sx.write_table(
        of(DAYS[0]),
        target,
        layout=sx.Clustering(by=["user", "status"]),
        indexes={"user": "bitmap"},
        overwrite=True,
    )
    for day in DAYS[1:]:
        table = sx.append(of(day), target)
        print(f"after {day}: {len(table.paths)} files")
    print(sx.open_table(target).optimize(spark))
    print(sx.open_table(target).vacuum(dry_run=True))
    print(sx.open_table(target).status())
