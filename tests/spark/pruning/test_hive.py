"""A table of Hive's metastore whose texts of times became folders: hidden partitions.

The table and the queries are those of the article that hidden partitions come from.
Hive's catalog is that of a session of its own, in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT: Final = Path(__file__).parents[3]
SESSION: Final = """
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

def of(condition):
    found = spark.sql(f"SELECT id, dt FROM hts WHERE {condition}")
    rows = sorted(map(tuple, found.collect()))
    plan = found._jdf.queryExecution().executedPlan()
    scan = plan
    while scan.getClass().getSimpleName() != "FileSourceScanExec":
        scan = scan.children().head()
    shown = plan.toString().split("PartitionFilters: [")[1]
    return rows, scan.metrics().apply("numFiles").value(), shown.split("]")[0]

spark.sql('''CREATE TABLE hts (id STRING, dt STRING)
    PARTITIONED BY (year STRING, month STRING, day STRING) STORED AS PARQUET
    TBLPROPERTIES ('skipindex.time.field' = 'dt',
                   'skipindex.time.format' = 'yyyy-MM-dd HH:mm:ss')''')
"""
PROGRAM: Final = """
texts = ["2021-12-11 08:00:00", "2021-12-12 00:00:00", "2022-11-29 23:59:59",
         "2022-11-30 11:00:00", "2022-11-30 13:00:00", "2022-12-01 00:00:00",
         "2023-01-01 10:00:00"]
rows = [(str(i), text, *text[:10].split("-")) for i, text in enumerate(texts)]
names = ["id", "dt", "year", "month", "day"]
spark.createDataFrame(rows, names).coalesce(1).createOrReplaceTempView("made")
spark.sql("INSERT INTO hts SELECT * FROM made")

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


MANY: Final = """
from datetime import date, timedelta

first = date(1998, 1, 1)
days = [str(first + timedelta(i)).split("-") for i in range(10_000)]
one = "PARTITION (year = '{}', month = '{}', day = '{}')"
spark.sql("ALTER TABLE hts ADD " + "\\n".join(one.format(*day) for day in days))
texts = ["1998-01-01 08:00:00", "2021-12-12 00:00:00", "2022-11-30 11:00:00",
         "2022-11-30 13:00:00", "2022-12-01 00:00:00", "2025-05-18 23:59:59"]
rows = [(str(i), text, *text[:10].split("-")) for i, text in enumerate(texts)]
names = ["id", "dt", "year", "month", "day"]
spark.createDataFrame(rows, names).coalesce(1).createOrReplaceTempView("made")
spark.sql("INSERT INTO hts SELECT * FROM made")
metrics = spark._jvm.org.apache.spark.metrics.source.HiveCatalogMetrics

def listed(condition):
    metrics.reset()
    found = of(condition)
    fetched = metrics.METRIC_PARTITIONS_FETCHED().getCount()
    return fetched, metrics.METRIC_FILES_DISCOVERED().getCount(), *found

conditions = json.loads(sys.argv[1])
sx.enable(spark)
found = []
for condition in conditions:
    spark.catalog.refreshTable("hts")
    found.append([condition, listed(condition)])
sx.disable(spark)
print(json.dumps([found, listed(conditions[0]), len(days)]))
spark.stop()
"""
LISTED: Final = {
    f"dt > '{AT}' AND dt < '2022-12-03'": (3, 2, "34"),
    "dt BETWEEN '2022-11-30 00:00:00' AND '2022-11-30 12:00:00'": (1, 1, "2"),
    "to_date(dt, 'yyyy-MM-dd HH:mm:ss') = DATE '2025-05-18'": (1, 1, "5"),
    "substring(dt, 1, 4) = '2021'": (365, 1, "1"),
    "dt < '1998-02' OR dt >= '2025-05-01'": (31 + 18, 2, "05"),
    f"dt > '{AT}'": (901, 3, "345"),
}
"""Of 10,000 partitions those that can match, their files, and the rows."""


def run(folder: Path, program: str, conditions: Iterable[str]) -> Any:
    """What a program says of conditions, in a process and a metastore of its own."""
    done = subprocess.run(
        [sys.executable, "-c", SESSION + program, json.dumps(list(conditions))],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([f"{ROOT}/src", str(ROOT)])},
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_the_articles_example_reads_the_folders_that_can_match(tmp_path: Path) -> None:
    found, derived, n_files = run(tmp_path, PROGRAM, READ)
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


def test_of_many_partitions_those_are_listed_that_can_match(tmp_path: Path) -> None:
    """The metastore gives no others, and no other folder is listed."""
    found, plain, n_partitions = run(tmp_path, MANY, LISTED)
    assert len(found) == len(LISTED)
    for condition, (*listed, rows, n_read, _) in found:
        n_fetched, n_files, wanted = LISTED[condition]
        assert listed == [n_fetched, n_files], condition
        assert n_read == n_files, condition
        assert [row[0] for row in rows] == list(wanted), condition
    assert plain[0] == n_partitions
    assert plain[2] == found[0][1][2]
