"""See why files are read or not, and check the answer against the data.

    skipindex sample /data/events
    python examples/explain.py /data/events

No Spark is needed.
"""

import sys

import skipindex as sx

if __name__ == "__main__":
    path = sys.argv[1]
    table = sx.open_table(path)
    table = table.build_indexes({"user": "bitmap", "status": "bitmap"}).table
    plan = table.plan("user < 2000 AND status = 500 AND path <> '/cart'")

    print(plan.explain())  # what each stage left, and what judged each condition
    for skipped in plan.skipped[:3]:
        print(f"{skipped.path}: {skipped.reason}")
    print(plan.explain(file=table.paths[0]))  # everything about one file
    print(plan.count_bounds, "rows match, at least and at most")
    print(plan.verify())  # reads the data again and compares
