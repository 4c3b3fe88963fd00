"""A table of Hive's metastore whose texts of times became folders: hidden partitions.

The table and the queries are those of the article that hidden partitions come from.
Hive's catalog is that of a session of its own, in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT: Final = Path(__file__).parents[3]
PROGRAM: Final = """
import json, os, sys
import skipindex as sx
from ssb.session import local_session

here = os.getcwd()
spark = local_session("hive", cores=2, memory="1g", conf={
    "spark.sql.catalogImplementation": "hive",
    "spark.sql.warehouse.dir": f"{here}/warehouse",
    "spark.hadoop.javax.jdo.option.ConnectionURL":
        f"jdbc:derby:;databaseName={here}/metastore;create=true",
    "spark.driver.extraJavaOptions": f"-Dderby.system.home={here}",
    "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
    "spark.sql.session.timeZone": "UTC",
})
spark.sql('''CREATE TABLE hts (id STRING, dt STRING)
    PARTITIONED BY (year STRING, month STRING, day STRING) STORED AS PARQUET
    TBLPROPERTIES ('skipindex.time.field' = 'dt',
                   'skipindex.time.format' = 'yyyy-MM-dd HH:mm:ss')''')
texts = ["2021-12-11 08:00:00", "2021-12-12 00:00:00", "2022-11-29 23:59:59",
         "2022-11-30 11:00:00", "2022-11-30 13:00:00", "2022-12-01 00:00:00",
         "2023-01-01 10:00:00"]
rows = [(str(i), text, *text[:10].split("-")) for i, text in enumerate(texts)]
names = ["id", "dt", "year", "month", "day"]
spark.createDataFrame(rows, names).coalesce(1).createOrReplaceTempView("made")
spark.sql("INSERT INTO hts SELECT * FROM made")

def of(condition):
    found = spark.sql(f"SELECT id, dt FROM hts WHERE {condition}")
    rows = sorted(map(tuple, found.collect()))
    plan = found._jdf.queryExecution().executedPlan()
    scan = plan
    while scan.getClass().getSimpleName() != "FileSourceScanExec":
        scan = scan.children().head()
    shown = plan.toString().split("PartitionFilters: [")[1]
    return rows, scan.metrics().apply("numFiles").value(), shown.split("]")[0]

found = []
for condition in json.loads(sys.argv[1]):
    plain = of(condition)
    sx.enable(spark)
    found.append([condition, plain, of(condition)])
    sx.disable(spark)
table = sx.open_table("default.hts")
print(json.dumps([found, table.status().derived, len(table)]))
spark.stop()
"""
AT: Final = "2022-11-30 12:00:00"
READ: Final = {
    f"dt > '{AT}'": 3,
    f"dt >= '{AT}'": 3,
    f"'{AT}' < dt": 3,
    f"dt < '{AT}'": 4,
    "substring(dt, 1, 10) >= '2021-12-12'": 5,
    "dt = '2022-12-01 00:00:00'": 1,
    "dt LIKE '2022-11%'": 2,
    f"to_timestamp(dt) > TIMESTAMP '{AT}'": 3,
    "concat(year, month, day) >= '20221130'": 3,
    "year = '2022' AND dt > '2022-12'": 1,
    "id = '3'": 6,
}
"""Conditions, and how many of the six folders are read."""


def test_the_articles_example_reads_the_folders_that_can_match(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(list(READ))],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([f"{ROOT}/src", str(ROOT)])},
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found, derived, n_files = json.loads(done.stdout.strip().splitlines()[-1])
    for condition, plain, skipping in found:
        rows, n_read, shown = skipping
        assert rows == plain[0], condition
        assert n_read == READ[condition], (condition, shown)
        if "year" not in condition:
            assert plain[1:] == [6, ""]
            assert bool(shown) == (n_read < 6), condition
    moment = "to_timestamp_ntz(dt, 'yyyy-MM-dd HH:mm:ss')"
    parts: dict[str, Any] = {"year": "year", "month": "month", "day": "dayofmonth"}
    assert derived == {name: f"{part}({moment})" for name, part in parts.items()}
    assert n_files == 6
