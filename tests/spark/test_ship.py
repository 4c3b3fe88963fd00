"""The package on executors that do not have it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import zipfile

import pytest
from pyspark.sql import SparkSession

from skipindex.errors import EngineError
from skipindex.spark import ship
from skipindex.spark.ship import ship_package


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
