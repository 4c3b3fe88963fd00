"""Write a table clustered by the columns of the queries, with indexes.

    skipindex sample /data/events
    python examples/write_and_cluster.py /data/events

The table is written beside the folder, as ``/data/events-clustered``.
"""

import sys

from pyspark.sql import SparkSession

import skipindex as sx

if __name__ == "__main__":
    source = sys.argv[1]
    target = f"{source}-clustered"
    spark = SparkSession.builder.getOrCreate()
    table = sx.write_table(
        spark.read.parquet(source),
        target,
        layout=sx.Clustering(by=["user", "status"], rows_per_file=1_000),
        indexes={"user": "bitmap", "status": "bitmap"},
        overwrite=True,
    )
    plan = table.plan("user BETWEEN 1000 AND 9000 AND status = 500")
    print(f"{len(plan.paths)} of {len(table.paths)} files")
    print(f"{plan.read(spark).count()} rows")
    print(table.layout_quality(["user = 4711", "status = 500"]))
