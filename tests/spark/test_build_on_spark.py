"""Builds on Spark: the same bytes as at home."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.api.types import Progress
from skipindex.build.builder import build as build_with
from skipindex.build.runners import LocalRunner
from skipindex.build.task import BuildTask
from skipindex.log.manifest import Manifest
from skipindex.spark.runner import SparkRunner
from skipindex.storage.file_system.names import FOLDER
from tests.tables import newest_manifest, packs, put_all

pytestmark = pytest.mark.spark

WANTED: Any = {
    "a": ["bitmap", "bloom", sx.BitSliced(base=10)],
    "s": ["range_bitmap", "bloom"],
}


@dataclass
class Here:
    """Runs as many tasks as Spark would, in this process."""

    slots: int

    def run(self, tasks: Sequence[BuildTask], progress: Any) -> list[Manifest]:
        return LocalRunner(1).run(tasks, progress)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = [
        {"a": [*range(9 * i, 9 * i + 9)], "s": [f"v{n % 5}" for n in range(9)]}
        for i in range(12)
    ]
    return put_all(tmp_path, files)


def test_spark_builds_the_same_bytes(spark: SparkSession, folder: Path) -> None:
    slots = SparkRunner(spark).slots
    build_with(sx.open_table(folder).state, WANTED, runner=Here(slots))
    content = newest_manifest(folder).read_bytes()
    here = {path.name: path.read_bytes() for path in packs(folder)}
    shutil.rmtree(folder / FOLDER)
    report = sx.build_indexes(folder, WANTED, spark=spark)
    assert (report.files, report.unchanged, report.notes) == (12, 0, ())
    assert newest_manifest(folder).read_bytes() == content
    assert {path.name: path.read_bytes() for path in packs(folder)} == here
    assert len(here) == min(12, 4 * slots), "few fat tasks"
    plan = report.table.plan("a = 40 AND s = 'v4'")
    assert (plan.paths, plan.count_bounds) == (["4.parquet"], (1, 1))


def test_a_second_build_starts_no_job(spark: SparkSession, folder: Path) -> None:
    sx.build_indexes(folder, WANTED, spark=spark)
    context = spark.sparkContext
    before = context._jsc.sc().dagScheduler().nextJobId()
    report = sx.build_indexes(folder, WANTED, spark=spark)
    assert (report.files, report.unchanged) == (0, 12)
    assert context._jsc.sc().dagScheduler().nextJobId() == before


def test_progress_ends_with_all_tasks(spark: SparkSession, folder: Path) -> None:
    calls: list[tuple[int, int]] = []
    report = sx.build_indexes(
        folder,
        WANTED,
        spark=spark,
        progress=lambda now: calls.append((now.done, now.total)),
    )
    n_tasks = calls[-1][1]
    assert calls[-1] == (n_tasks, n_tasks)
    assert calls == sorted(set(calls)), "it never goes back, and never repeats"
    assert report.files == 12


@pytest.mark.slow
def test_a_progress_that_raises_ends_the_build(
    spark: SparkSession, folder: Path
) -> None:
    def interrupt(_: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sx.build_indexes(folder, WANTED, spark=spark, progress=interrupt)
    assert sx.open_table(folder).state.snapshot.version == -1
    assert sx.build_indexes(folder, WANTED, spark=spark).files == 12


def test_a_file_that_cannot_be_read_is_noted(spark: SparkSession, folder: Path) -> None:
    (folder / "x.parquet").write_bytes(b"PAR1 is not all that it takes PAR1")
    report = sx.build_indexes(folder, WANTED, spark=spark)
    (note,) = report.notes
    assert note.startswith("1 files: not readable: ")
    assert report.table.plan("a = 40").paths == ["4.parquet", "x.parquet"]


def test_a_task_that_fails_raises_in_the_caller(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here, the packs cannot be written: a file is in their folder's place."""
    (folder / FOLDER).mkdir()
    (folder / FOLDER / "packs").write_bytes(b"")
    with pytest.raises(Exception, match="packs"):
        sx.build_indexes(folder, WANTED, spark=spark)
    assert sx.open_table(folder).state.snapshot.version == -1
