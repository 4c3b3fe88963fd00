"""The package on executors that do not have it."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest
from pyspark import SparkFiles
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.errors import EngineError
from skipindex.spark import ship
from skipindex.spark.runner import _reason
from skipindex.spark.ship import ship_package
from tests.spark.pruning.costs import n_jobs


def run(script: str, *arguments: str) -> str:
    """Run a script in a process of its own, because of its own SparkContext."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_the_archive_holds_the_package_and_no_compiled_files() -> None:
    archive = ship._write_archive()
    names = zipfile.ZipFile(archive).namelist()
    assert "skipindex/layout/curve_layout.py" in names
    assert "skipindex/spark/placement/cluster.py" in names
    assert len(names) == len(set(names))
    assert not [name for name in names if "__pycache__" in name]


def test_the_package_can_be_imported_from_the_archive() -> None:
    found = run(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        import skipindex.layout.curve_layout as module
        print(module.__file__)
        """,
        str(ship._write_archive()),
    )
    assert "skipindex.zip" in found


def test_the_package_goes_to_a_session_of_connect_once() -> None:
    sent: list[tuple[str, bool]] = []

    class Remote:
        session_id = "7"

        def addArtifacts(self, path: str, *, pyfile: bool) -> None:
            sent.append((path.rpartition("/")[2], pyfile))

    with pytest.raises(EngineError, match="before 4"):
        ship_package(Remote())  # type: ignore[arg-type]
    Remote.registerProgressHandler = None  # type: ignore[attr-defined]
    for _ in range(2):
        ship_package(Remote())  # type: ignore[arg-type]
    assert sent == [("skipindex.zip", True)]


@pytest.mark.spark
def test_nothing_is_sent_to_local_workers(spark: SparkSession) -> None:
    before = list(spark.sparkContext._python_includes)
    ship_package(spark)
    assert spark.sparkContext._python_includes == before


NO_PACKAGE = f'exec {sys.executable} -I -S "$@"'
OLDER = "echo 3 6; exit 1"
SAME = f'exec {sys.executable} "$@"'
PRINTS = f"printf 'of the site'; {sys.executable} \"$@\"; echo the end"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (NO_PACKAGE, "cannot import skipindex: ModuleNotFoundError: No module named"),
        (OLDER, "is Python 3.6, and this is 3."),
        ("exit 7", "cannot import skipindex: exit code 7"),
        ("", "is not there"),
        (SAME, None),
        (PRINTS, None),
    ],
)
def test_workers_on_this_machine_need_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, told: str | None
) -> None:
    monkeypatch.setattr(SparkFiles, "getRootDirectory", lambda: str(tmp_path))
    python = tmp_path / "python"
    if body:
        python.write_text(f"#!/bin/sh\n{body}\n")
        python.chmod(0o755)

    class Context:
        master = "local[2]"
        pythonExec = str(python)
        _python_includes = ("a.zip",)

    class Session:
        _jsparkSession = None
        sparkContext = Context()

    if told is None:
        ship_package(Session())  # type: ignore[arg-type]
        return
    with pytest.raises(EngineError, match=f"{re.escape(told)}.*PYSPARK_PYTHON=/"):
        ship_package(Session())  # type: ignore[arg-type]


@pytest.mark.spark
def test_no_job_starts_where_workers_lack_the_package(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.range(3).write.parquet(str(tmp_path / "t"))
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(tmp_path / "none"))
    before = n_jobs(spark)
    with pytest.raises(EngineError, match="PYSPARK_PYTHON"):
        sx.build_indexes(tmp_path / "t", {"id": "bitmap"}, spark=spark)
    with pytest.raises(EngineError, match="PYSPARK_PYTHON"):
        sx.write_table(spark.range(9), tmp_path / "u", layout=sx.Clustering(by=["id"]))
    assert n_jobs(spark) == before
    assert not (tmp_path / "u").exists()


def test_a_worker_without_a_module_is_one_line() -> None:
    trace = (
        "An exception was thrown from the Python worker:\nTraceback (most recent call "
        'last):\n  File "worker.py", line 1\nModuleNotFoundError: No module named '
        "'pyroaring'\n"
    )
    told = _reason(RuntimeError(trace))
    assert "No module named 'pyroaring'" in told
    assert "PYSPARK_PYTHON" in told
    assert "\n" not in told


@pytest.mark.spark
@pytest.mark.slow
def test_clustering_runs_on_executors_of_their_own() -> None:
    found = run(
        """
        from skipindex.spark.placement.cluster import cluster
        from ssb.session import local_session
        from skipindex.spark.ship import ship_package

        spark = local_session(
            master="local-cluster[2,1,1024]",
            conf={"spark.executor.memory": "1g", "spark.driver.memory": "1g"},
        )
        for _ in range(2):
            ship_package(spark)
        print(spark.sparkContext._python_includes)
        df = spark.range(2000).selectExpr("id", "id % 10 AS a", "id % 7 AS b")
        print(cluster(df, by=["a", "b"], n_files=3, n_rows=2000).count())

        def where(_):
            import skipindex.layout.curve_layout as module
            yield module.__file__

        print(spark.sparkContext.parallelize([0], 1).mapPartitions(where).collect())
        spark.stop()
        """
    )
    includes, counts, files = found.strip().splitlines()[-3:]
    assert includes.count("skipindex.zip") == 1, "it is sent once"
    assert counts == "2000"
    assert "skipindex.zip/skipindex/layout" in files, "it comes before what is there"
