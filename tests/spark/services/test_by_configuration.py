"""Queries are pruned by settings alone: no line of Python in the driver."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

import skipindex as sx
from skipindex.spark import driver
from tests.spark.java.javac import classes, compile_sources, javac, write_jar
from tests.spark.pruning.test_messages import SHELL
from tests.tables import put

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(javac() is None, reason="there is no javac on this machine"),
]

HOME: Final = Path(pyspark.__file__).parent
N_FILES: Final = 10
ROWS: Final = "skipindex.rowsFromPlanner"
APP: Final = """
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;

/** An application of the JVM alone. */
public class App {
    public static void main(String[] queries) throws Exception {
        SparkSession spark = SparkSession.builder().getOrCreate();
        spark.conf().set("skipindex.rowsFromPlanner", "0");
        for (String query : queries) {
            if (query.equals("KILL")) {
                ProcessHandle.current().children().forEach(ProcessHandle::destroyForcibly);
                Thread.sleep(500);
            } else if (query.equals("REST")) {
                ClassLoader loader = Thread.currentThread().getContextClassLoader();
                Class<?> served = Class.forName("skipindex.Served", true, loader);
                java.lang.reflect.Field rest = served.getDeclaredField("restSeconds");
                rest.setAccessible(true);
                rest.setLong(null, 0L);
            } else {
                Dataset<Row> found = spark.sql(query);
                List<Row> rows = found.collectAsList();
                SparkPlan plan = found.queryExecution().executedPlan();
                SparkPlan scan = plan.collectLeaves().apply(0);
                long files = scan.metrics().apply("numFiles").value();
                System.out.println("FOUND " + rows.get(0).get(0) + " in " + files);
            }
        }
        spark.stop();
    }
}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The classes as a wheel brings them, the application, and an indexed table."""
    folder = tmp_path_factory.mktemp("by-configuration")
    family = compile_sources(HOME / "jars", folder / "classes")
    write_jar(folder / family.jar, classes(folder / "classes"))
    (folder / "App.java").write_text(APP)
    command = [str(javac()), "-cp", f"{HOME}/jars/*", "-d", str(folder / "app")]
    subprocess.run([*command, str(folder / "App.java")], check=True)
    write_jar(folder / "app.jar", classes(folder / "app"))
    for file in range(N_FILES):
        (folder / "t").mkdir(exist_ok=True)
        ids = pa.array(range(file * 10, file * 10 + 10), pa.int64())
        path = folder / "t" / f"part-{file}.parquet"
        pq.write_table(pa.table({"id": ids}), path, row_group_size=5)
    sx.build_indexes(folder / "t", {"id": "bitmap"}, workers=1)
    return folder


def settings(
    made: Path, python: str = sys.executable, sidecar: Path | str = ""
) -> list[str]:
    """The arguments of a Spark that prunes by configuration."""
    (jar,) = made.glob("spark_*.jar")
    found = {
        "spark.sql.extensions": "skipindex.Extension",
        "spark.jars": str(jar),
        "spark.skipindex.python": python,
        "spark.skipindex.sidecar": str(sidecar),
        "spark.ui.enabled": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={made}",
        "spark.sql.warehouse.dir": str(made / "warehouse"),
    }
    pairs = [("--conf", f"{name}={value}") for name, value in found.items()]
    return ["--master", "local[2]", *(word for pair in pairs for word in pair)]


def environment(path: str = "") -> Mapping[str, str]:
    """Where Python finds modules in a path, and then ours."""
    source = f"{path}:{Path(sx.__file__).parents[1]}".removeprefix(":")
    return {**os.environ, "SPARK_HOME": str(HOME), "PYTHONPATH": source}


def run(folder: Path, *command: str, path: str = "") -> str:
    """What a command prints in a folder, and its log."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(path),
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


def submitted(
    made: Path,
    *queries: str,
    python: str = sys.executable,
    path: str = "",
    folder: Path | None = None,
    sidecar: Path | str = "",
) -> str:
    return run(
        folder or made,
        str(HOME / "bin" / "spark-submit"),
        *settings(made, python, sidecar),
        *("--class", "App", str(made / "app.jar")),
        *queries,
        path=path,
    )


def test_an_application_of_the_jvm_alone(made: Path) -> None:
    """It reads fewer files, and all of them while the planner is not there."""
    few = f"SELECT sum(id) FROM parquet.`{made}/t` WHERE id IN (15, 17)"
    two = f"SELECT count(*) FROM parquet.`{made}/t` WHERE id BETWEEN 15 AND 24"
    told = submitted(made, few, two, "KILL", few, "REST", two)
    assert re.findall("FOUND .*", told) == [
        "FOUND 32 in 1",
        "FOUND 10 in 2",
        f"FOUND 32 in {N_FILES}",
        "FOUND 10 in 2",
    ]
    assert (
        told.count("the planner has stopped: its process has ended with exit code") == 1
    )
    assert told.count("queries read all files") == 1


def test_the_indexes_are_in_the_sidecar(made: Path, tmp_path: Path) -> None:
    for i in range(3):
        put(tmp_path / "t" / f"{i}.parquet", {"id": [2 * i, 2 * i + 1]})
    query = f"SELECT max(id) FROM parquet.`{tmp_path}/t` WHERE id = 3"
    for sidecar in (tmp_path / "an été", "sides of"):  # of the working folder
        place = tmp_path / sidecar
        sx.build_indexes(tmp_path / "t", {"id": "bitmap"}, sidecar=place, workers=1)
        told = submitted(made, query, sidecar=sidecar, folder=tmp_path)
        assert re.findall("FOUND .*", told) == ["FOUND 3 in 1"]


@pytest.mark.parametrize("python", ["/no/python", "/bin/true"])
def test_without_a_planner_all_files_are_read_and_one_line_says_so(
    made: Path, python: str
) -> None:
    query = f"SELECT max(id) FROM parquet.`{made}/t` WHERE id = 15"
    told = submitted(made, query, query, python=python)
    assert re.findall("FOUND .*", told) == [f"FOUND 15 in {N_FILES}"] * 2
    assert len(re.findall("queries read all files", told)) == 1


@pytest.mark.parametrize(
    ("site", "files", "lines"),
    [("print('of the site')", 1, 0), ("import time; time.sleep(60)", N_FILES, 1)],
)
def test_a_python_that_prints_and_one_that_hangs(
    made: Path, tmp_path: Path, site: str, files: int, lines: int
) -> None:
    (tmp_path / "sitecustomize.py").write_text(site)
    query = f"SELECT max(id) FROM parquet.`{made}/t` WHERE id = 15"
    told = submitted(made, query, query, path=str(tmp_path))
    assert re.findall("FOUND .*", told) == [f"FOUND 15 in {files}"] * 2
    assert told.count("queries read all files") == lines


@pytest.mark.parametrize("path", ["", ":", "/nowhere::"])
def test_no_module_of_the_working_folder_is_run(
    made: Path, tmp_path: Path, path: str
) -> None:
    """Nor where ``PYTHONPATH`` has empty folders, as ``$PYTHONPATH:/more`` leaves."""
    for name in ("random", "types", "threading", "sitecustomize", "skipindex", "numpy"):
        text = "print('A MODULE RAN', __file__); raise SystemExit('not this one')"
        (tmp_path / f"{name}.py").write_text(text)
    query = f"SELECT max(id) FROM parquet.`{made}/t` WHERE id = 15"
    told = submitted(made, query, path=path, folder=tmp_path)
    assert re.findall("FOUND .*", told) == ["FOUND 15 in 1"]
    assert "A MODULE RAN" not in told


def test_classes_of_another_version_are_refused(made: Path) -> None:
    (jar,) = made.glob("spark_*.jar")
    name = jar.name
    assert driver.is_own_jar(name)
    other = name.replace(name[-10:], "000000.jar")
    assert not driver.is_own_jar(other)
    module = "skipindex.spark.pruning.child"
    done = subprocess.run(
        [*SHELL, "-m", module, other],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert done.returncode == 1
    assert "have different versions" in done.stderr


def test_spark_sql(made: Path) -> None:
    text = f"SELECT 'sum', sum(id) FROM parquet.`{made}/t` WHERE id > 94"
    told = run(
        made,
        str(HOME / "bin" / "spark-sql"),
        *settings(made),
        *("--conf", "spark.eventLog.enabled=true"),
        *("--conf", f"spark.eventLog.dir={made}"),
        *("--conf", "spark.eventLog.rolling.enabled=false"),
        *("--conf", "spark.eventLog.compress=false"),
        *(
            "-e",
            ";".join([f"EXPLAIN {text}", f"SET {ROWS}=0", f"EXPLAIN {text}", text]),
        ),
    )
    assert "sum\t485" in told
    assert told.count("PlannedRows: 5 rows of 1 files, read by skipindex") == 1
    assert told.count("RowGroups: 1 of 2 row groups of 1 files") == 1
    (log,) = made.glob("local-*")
    assert files_read(log) == 1


def files_read(log: Path) -> int:
    """The metric of the one scan in a log of events."""
    events = [json.loads(line) for line in log.read_text().splitlines()]
    numbers = set()
    updates: dict[int, int] = {}
    for event in events:
        if event["Event"].endswith("SparkListenerSQLExecutionStart"):
            numbers |= set(metrics(event["sparkPlanInfo"]))
        if event["Event"].endswith("SparkListenerDriverAccumUpdates"):
            updates |= dict(event["accumUpdates"])
    (found,) = numbers & updates.keys()
    return updates[found]


def metrics(plan: Mapping[str, Any]) -> Iterator[int]:
    for metric in plan["metrics"]:
        if metric["name"] == "number of files read":
            yield metric["accumulatorId"]
    for child in plan["children"]:
        yield from metrics(child)


def test_a_thrift_server_over_jdbc(made: Path) -> None:
    """Each connection is a session of its own; the client is Hive's beeline."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [
            str(HOME / "bin" / "spark-submit"),
            *settings(made),
            *("--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"),
            *("spark-internal", "--hiveconf", f"hive.server2.thrift.port={port}"),
            *("--hiveconf", "hive.server2.thrift.bind.host=127.0.0.1"),
        ],
        cwd=made,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        await_port(port)
        for _ in range(2):
            told = run(
                made,
                str(HOME / "bin" / "beeline"),
                *("-u", f"jdbc:hive2://127.0.0.1:{port}/", "-n", "anyone"),
                *("-e", f"SELECT count(*) c FROM parquet.`{made}/t` WHERE id > 75"),
                *("-e", f"EXPLAIN SELECT id FROM parquet.`{made}/t` WHERE id > 75"),
                *("-e", f"SET {ROWS}=0"),
                *("-e", f"EXPLAIN SELECT id FROM parquet.`{made}/t` WHERE id > 75"),
            )
            assert re.search(r"\|\s*24\s*\|", told)
            assert "PlannedRows: 24 rows of 3 files, read by skipindex" in told
            assert "RowGroups: 1 of 2 row groups of 1 files" in told
            assert "SkippingFileIndex" in told
    finally:
        server.terminate()
        server.wait(60)


def await_port(port: int) -> None:
    for _ in range(240):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.5)
    raise AssertionError("the server does not listen")
