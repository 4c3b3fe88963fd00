"""A driver: builds indexes while tasks fail, die, and are overtaken by a copy."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import spoiled  # type: ignore[import-not-found] # the file beside this one, as workers import it

import skipindex as sx
from skipindex.build.builder import build
from skipindex.build.runners import LocalRunner, Progress
from skipindex.build.task import BuildTask
from skipindex.log.manifest import Manifest
from skipindex.spark.runner import SparkRunner
from skipindex.table import open_state
from tests.spark.cluster.clusters import session_on
from tests.tables import packs

master, site, folder = sys.argv[1:4]
WANTED: Any = {"a": ["bitmap", "bloom"], "s": "range_bitmap"}
N_FILES = 16


@dataclass
class Spoiling:
    """Runs tasks on Spark, the second of which ends badly at first."""

    inner: SparkRunner
    marks: Path
    end: str

    @property
    def slots(self) -> int:
        return self.inner.slots

    def run(
        self, tasks: Sequence[BuildTask], progress: Progress | None
    ) -> list[Manifest]:
        changed: list[Any] = list(tasks)
        changed[1] = spoiled.Spoiled(tasks[1], self.marks, self.end)
        return self.inner.run(changed, progress)


@dataclass
class Here:
    """Runs as many tasks as Spark would, in this process."""

    slots: int

    def run(
        self, tasks: Sequence[BuildTask], progress: Progress | None
    ) -> list[Manifest]:
        return LocalRunner(1).run(tasks, progress)


spark = session_on(
    master,
    site,
    folder,
    spark__speculation="true",
    spark__speculation__interval="100ms",
    spark__speculation__minTaskRuntime="1s",
    spark__speculation__multiplier="2",
    spark__speculation__quantile="0.5",
    spark__speculation__efficiency__enabled="false",
)
spark.sparkContext.addPyFile(spoiled.__file__)
plain = Path(folder, "plain")
plain.mkdir()
for i in range(N_FILES):
    numbers = pa.array(range(9 * i, 9 * i + 9))
    words = [f"v{n % 5}" for n in range(9)]
    pq.write_table(pa.table({"a": numbers, "s": words}), plain / f"{i:02}.parquet")
runner = SparkRunner(spark)
found: dict[str, Any] = {}
copies = [shutil.copytree(plain, Path(folder, end)) for end in sys.argv[4:]]
build(open_state(plain), WANTED, runner=Here(runner.slots))
for copy in copies:
    marks = Path(folder, f"marks-{copy.name}")
    marks.mkdir()
    calls: list[tuple[int, int]] = []
    spoiling = Spoiling(runner, marks, copy.name)
    report = build(
        open_state(copy),
        WANTED,
        runner=spoiling,
        progress=lambda *done: calls.append(done),  # noqa: B023
    )
    found[copy.name] = {
        "runs": len(list(marks.iterdir())),
        "files": report.files,
        "notes": report.notes,
        "progress": calls == sorted(set(calls)),
        "same_packs": [p.name for p in packs(copy)] == [p.name for p in packs(plain)],
        "verified": sx.open_table(copy).verify().to_dict(),
        "paths": sx.plan_files("a = 40", table=copy).paths,
    }
spark.stop()
print(json.dumps(found))
