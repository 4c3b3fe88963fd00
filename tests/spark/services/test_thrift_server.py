"""A Thrift server that the Python driver starts serves pruned queries by JDBC."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import SparkSession

import skipindex as sx

pytestmark = [pytest.mark.spark, pytest.mark.slow]
"""Sessions that begin under a driver are pruned in quick runs too, of ``pruning``."""

N_FILES = 8
ROWS = 10
"""Of every file."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = tmp_path_factory.mktemp("served") / "t"
    table.mkdir()
    for file in range(N_FILES):
        ids = range(file * ROWS, file * ROWS + ROWS)
        columns = {"id": pa.array(ids, pa.int64()), "name": [f"n{i}" for i in ids]}
        pq.write_table(pa.table(columns), table / f"part-{file}.parquet")
    sx.build_indexes(table, {"id": "bitmap", "name": "bloom"}, workers=1)
    return table


@pytest.fixture(scope="module")
def url(spark: SparkSession) -> Iterator[str]:
    """Of a server on a free port."""
    settings = {
        "hive.server2.thrift.port": "0",
        "hive.server2.thrift.bind.host": "127.0.0.1",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    jvm: Any = spark._jvm
    start = jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2
    server = start.startWithContext(spark._jsparkSession.sqlContext())
    try:
        (port,) = [
            service.getPortNumber()
            for service in server.getServices()
            if service.getName() == "ThriftBinaryCLIService"
        ]
        yield f"jdbc:hive2://127.0.0.1:{port}/"
    finally:
        server.stop()
        for name in settings:
            spark.conf.unset(name)


@pytest.fixture
def pruned(spark: SparkSession, url: str) -> Iterator[SparkSession]:
    """The server runs before the session is enabled."""
    sx.enable(spark)
    yield spark
    sx.disable(spark)


class Connection:
    """A connection of Hive's JDBC driver, which is a session of the server."""

    def __init__(self, spark: SparkSession, url: str) -> None:
        jvm: Any = spark._jvm
        self._spark = spark
        properties = jvm.java.util.Properties()
        self._jdbc = jvm.org.apache.hive.jdbc.HiveDriver().connect(url, properties)

    def execute(self, statement: str) -> None:
        self._jdbc.createStatement().execute(statement)

    def query(self, text: str) -> tuple[list[list[str]], list[int]]:
        """The rows as text, and how many files each of the scans read."""
        n_before = len(sx.last_plans(self._spark))
        found = self._jdbc.createStatement().executeQuery(text)
        columns = range(1, 1 + found.getMetaData().getColumnCount())
        rows = []
        while found.next():
            rows.append([found.getString(i) for i in columns])
        return rows, [plan.n_read for plan in sx.last_plans(self._spark)[n_before:]]

    def close(self) -> None:
        self._jdbc.close()


@contextmanager
def connected(spark: SparkSession, url: str) -> Iterator[Connection]:
    connection = Connection(spark, url)
    try:
        yield connection
    finally:
        connection.close()


def test_each_connection_has_pruned_queries(
    pruned: SparkSession, url: str, folder: Path
) -> None:
    text = f"SELECT id, name FROM parquet.`{folder}` WHERE id = 33"
    with connected(pruned, url) as one, connected(pruned, url) as other:
        assert one.query(text) == ([["33", "n33"]], [1])
        assert other.query(text) == ([["33", "n33"]], [1])
        for size, told in (
            ("4m", "PlannedRows: 1 rows of 1 files"),
            ("0", "RowGroups"),
        ):
            one.execute(f"SET skipindex.rowsFromPlanner={size}")
            assert told in str(one.query(f"EXPLAIN {text}")[0])
        one.execute("SET skipindex.enabled=false")
        assert one.query(text) == ([["33", "n33"]], [])
        assert other.query(text) == ([["33", "n33"]], [1])


def test_tables_and_views_of_a_connection(
    pruned: SparkSession, url: str, folder: Path
) -> None:
    pruned.read.parquet(str(folder)).createOrReplaceGlobalTempView("served")
    with connected(pruned, url) as one, connected(pruned, url) as other:
        one.execute(f"CREATE TABLE served USING parquet LOCATION 'file:{folder}'")
        try:
            one.execute("CREATE TEMP VIEW late AS SELECT * FROM served WHERE id > 70")
            found = one.query("SELECT count(*), min(name) FROM late WHERE name = 'n74'")
            assert found == ([["1", "n74"]], [1])
            for name in ("served", "global_temp.served"):
                text = f"SELECT max(id) FROM {name} WHERE id BETWEEN 8 AND 12"
                assert other.query(text) == ([["12"]], [2])
            joined = (
                "SELECT a.id FROM served a JOIN global_temp.served b ON a.id = b.id "
                "WHERE b.name = 'n5'"
            )
            assert other.query(joined)[0] == [["5"]]
        finally:
            one.execute("DROP TABLE served")
            pruned.catalog.dropGlobalTempView("served")


def test_without_pruning_connections_read_all(
    pruned: SparkSession, url: str, folder: Path
) -> None:
    text = f"SELECT count(*) FROM parquet.`{folder}` WHERE id = 33"
    with connected(pruned, url) as connection:
        assert connection.query(text) == ([["1"]], [1])
        sx.disable(pruned)
        assert connection.query(text) == ([["1"]], [])
        sx.enable(pruned)
        assert connection.query(text) == ([["1"]], [1])


def test_beeline_has_pruned_queries(
    pruned: SparkSession, url: str, folder: Path
) -> None:
    """The command-line client that PySpark brings, in a process of its own."""
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    jvm: Any = pruned._jvm
    java = Path(jvm.java.lang.System.getProperty("java.home"), "bin", "java")
    text = f"SELECT id, name FROM parquet.`{folder}` WHERE id = 33"
    options = ["--silent=true", "--outputformat=csv2", "-u", url, "-e", text]
    done = subprocess.run(
        [java, "-cp", str(jars), "org.apache.hive.beeline.BeeLine", *options],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "33,n33" in done.stdout.splitlines(), done.stderr[-3000:]
    assert sx.last_plans(pruned)[-1].n_read == 1
