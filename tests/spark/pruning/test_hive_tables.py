"""Tables of a Hive metastore: the time field and its format are properties of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

QUERIES: Final = {
    "SELECT id, dt, year FROM hts WHERE dt > '2022-11-30 00:00:00'": 2,
    "SELECT id, dt, year FROM hts WHERE year = '2022' AND dt < '2022-11-30'": 2,
    "SELECT count(*) FROM hts WHERE date(dt) = '2022-10-29'": 1,
}
"""By query, the files that it reads."""
PROGRAM: Final = """
import json, sys
import skipindex as sx
from ssb.session import local_session
from tests.spark.pruning.scans import with_and_without

folder, texts = sys.argv[1], json.loads(sys.argv[2])
spark = local_session("hive", cores=2, memory="1g", conf={
    "spark.sql.catalogImplementation": "hive",
    "spark.sql.warehouse.dir": f"{folder}/warehouse",
    "spark.hadoop.javax.jdo.option.ConnectionURL":
        f"jdbc:derby:;databaseName={folder}/metastore;create=true",
    "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
    "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
    "spark.sql.session.timeZone": "UTC",
})
spark.sql('''CREATE TABLE hts (id INT, dt TIMESTAMP)
    PARTITIONED BY (year STRING, month STRING, day STRING) STORED AS PARQUET
    TBLPROPERTIES ('skipindex.time.field' = 'dt',
        'skipindex.time.format' = 'yyyy-MM-dd HH:mm:ss',
        'skipindex.derived.timezone' = 'UTC')''')
days = ["2021-12-12", "2022-10-29", "2022-11-29", "2022-11-30", "2023-01-01"]
for number, day in enumerate(days):
    year, month, date = day.split("-")
    spark.sql(f'''INSERT INTO hts PARTITION (year='{year}', month='{month}',
        day='{date}') SELECT {number}, timestamp'{day} 12:00:00' ''')
sx.enable(spark)
found = [with_and_without(spark, lambda: spark.sql(text))[1:] for text in texts]
opened = sx.open_table("default.hts")
print(json.dumps([found, opened.status().derived, len(opened)]))
spark.stop()
"""


def test_the_properties_of_a_hive_table_prune_it(tmp_path: Path) -> None:
    texts = json.dumps(list(QUERIES))
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), texts],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    found, derived, n_files = json.loads(run.stdout.strip().splitlines()[-1])
    assert [some for some, _ in found] == list(QUERIES.values())
    assert n_files == 5
    assert derived == {
        "year": "year(dt)",
        "month": "month(dt)",
        "day": "dayofmonth(dt)",
    }
