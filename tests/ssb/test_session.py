from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from skipindex.errors import SkipIndexError
from ssb.session import local_session, require_java


def java_home(folder: Path, says: str) -> Path:
    """A folder with a ``java`` that claims to be of some version."""
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho '{says}' >&2\n", encoding="utf-8")
    command.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    "says",
    [
        'openjdk version "17.0.15" 2025-04-15',
        'java version "21" 2023-09-19 LTS',
        'openjdk version "25-ea" 2025-09-16',
    ],
)
def test_a_new_enough_java_is_accepted(
    says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = java_home(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert require_java() == home / "bin" / "java"


@pytest.mark.parametrize(
    ("says", "problem"),
    [
        ('openjdk version "11.0.2" 2019-01-15', "is Java 11: Spark needs Java 17"),
        ('java version "1.8.0_292"', "is Java 8: Spark needs Java 17"),
        ("no runtime installed", "does not tell a Java version: Spark needs Java 17"),
    ],
)
def test_an_old_java_is_named(
    says: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path, says)))
    with pytest.raises(SkipIndexError, match=problem):
        require_java()


def test_a_missing_java_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(SkipIndexError, match="no java command on the path: Spark"):
        require_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SkipIndexError, match="no java command in JAVA_HOME"):
        require_java()


@pytest.mark.spark
def test_workers_run_this_interpreter(spark: SparkSession) -> None:
    executables = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable)
    assert executables.collect() == [sys.executable]


@pytest.mark.spark
def test_a_running_session_is_returned(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    again = local_session(cores=7, conf={"spark.sql.skipindex.test": "1"})
    assert again.sparkContext is spark.sparkContext
    assert again.conf.get("spark.sql.skipindex.test") == "1"
    assert again.conf.get("spark.sql.shuffle.partitions") == before


@pytest.mark.spark
def test_the_session_is_quiet_and_leaves_nothing_in_the_folder(
    spark: SparkSession,
) -> None:
    assert spark.conf.get("spark.ui.enabled") == "false"
    warehouse = spark.conf.get("spark.sql.warehouse.dir")
    assert warehouse is not None
    assert str(Path.cwd()) not in warehouse
