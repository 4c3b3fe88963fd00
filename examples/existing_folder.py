"""Index a folder of Parquet files that exists, and ask which files a query must read.

    skipindex sample /data/events
    python examples/existing_folder.py /data/events

No Spark is needed.
"""

import sys

import skipindex as sx

if __name__ == "__main__":
    path = sys.argv[1]
    table = sx.open_table(path)
    before = table.plan("user = 4711")
    report = table.build_indexes({"user": "bloom"})
    after = report.table.plan("user = 4711")
    print(report)
    print(f"before: {len(before.paths)} of {len(table.paths)} files")
    print(f"after:  {len(after.paths)} of {len(table.paths)} files")
