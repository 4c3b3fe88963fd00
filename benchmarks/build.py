"""Building indexes: ``python -m benchmarks.build DIR [--on local-1 …]``.

Side by side, in local processes and on the executors of a cluster of Spark with one
core each: the time to decode six columns and to build an index on each of them, to
decode all columns and to build what the advisor chooses for them, and to write the
table by plain Spark.  Decoding runs in the same workers as building.  The peak is of
the largest worker, the interpreter with its packages included; with one local process
it is this one.

DIR has Parquet files, such as those of ``python -m ssb``; they are linked, so it stays
as it is.  Times of a busy machine tell little, so a build has a limit of the same run.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic

import pyarrow.parquet as pq

import skipindex as sx
from benchmarks._report import Measure, best_seconds, show
from skipindex.advice.advised_build import AdviceRequest, build_advised
from skipindex.build.builder import build
from skipindex.build.runners import LocalRunner, Progress, Runner, T, Task
from skipindex.spark.runner import SparkRunner
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import FOLDER
from ssb.session import local_session

N_COLUMNS: Final = 6
MOST: Final = {"six indexes": 2.0, "the advisor's choice": 4.0}
"""How many times as long as decoding the columns a build may take."""
CLUSTERS: Final = {
    "cluster-1": "local-cluster[1,1,1024]",
    "cluster-2": "local-cluster[2,1,1024]",
}
PLACES: Final = ("local-1", "local-2", *CLUSTERS)


@dataclass(frozen=True, slots=True)
class Watched(Generic[T]):
    """A task that also tells the peak of its worker."""

    task: Task[T]

    @property
    def n_units(self) -> int:
        """As of the task."""
        return self.task.n_units

    @property
    def done(self) -> str:
        """As of the task."""
        return self.task.done

    def run(self) -> tuple[int, T]:
        """The peak of this process in bytes, and what the task gives."""
        found = self.task.run()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak << 10, found


@dataclass(slots=True)
class Watching:
    """A runner that remembers the peak of its workers."""

    runner: Runner
    peak: int = 0

    @property
    def slots(self) -> int:
        """As of the runner."""
        return self.runner.slots

    def run(self, tasks: Sequence[Task[T]], progress: Progress | None) -> list[T]:
        """The result of every task."""
        found = self.runner.run([Watched(task) for task in tasks], progress)
        self.peak = max([self.peak, *(peak for peak, _ in found)])
        return [result for _, result in found]


@dataclass(frozen=True, slots=True)
class Decode:
    """Reads some columns of some files, and makes nothing of them."""

    location: Location
    paths: tuple[str, ...]
    columns: tuple[str, ...]
    done: str = "decoded columns"

    @property
    def n_units(self) -> int:
        """See ``build.runners.Task``."""
        return len(self.paths)

    def run(self) -> bytes:
        """Read them one by one, as a build does."""
        for path in self.paths:
            with self.location.open_input(path) as source:
                file = pq.ParquetFile(source)
                for column in self.columns:
                    file.read([column], use_threads=False)
        return b""


def request_of(table: sx.Table) -> dict[str, str]:
    """A kind for each of the first columns: what is usual for its type."""
    found: dict[str, str] = {}
    for column in [c for c in table.state.leaves if c.domain and not c.is_partition]:
        assert column.domain is not None
        usual = "bitmap" if column.domain.is_bytes else "bit_sliced"
        found[column.name] = usual if found else "bloom"
        if len(found) == N_COLUMNS:
            break
    return found


def linked(source: Path, folder: Path) -> int:
    """Links to all data files of a table; their bytes."""
    size = 0
    for path in sorted(source.rglob("*.parquet")):
        place = path.relative_to(source)
        if not any(part.startswith(("_", ".")) for part in place.parts):
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            os.link(path, folder / place)
            size += path.stat().st_size
    return size


@contextmanager
def runner_at(place: str) -> Iterator[tuple[Runner, Any]]:
    """A runner, and the session if it has one."""
    if place not in CLUSTERS:
        yield LocalRunner(int(place.rpartition("-")[2])), None
        return
    spark = local_session("build", master=CLUSTERS[place], memory="2g")
    try:
        yield SparkRunner(spark), spark
    finally:
        spark.stop()


def decode(folder: Path, columns: Sequence[str], runner: Runner) -> None:
    """Read the columns of all files, in as many tasks as a build has."""
    table = sx.open_table(folder)
    n = max(1, min(len(table), 4 * runner.slots))
    dealt = (tuple(table.paths[i::n]) for i in range(n))
    tasks = [Decode(table.state.location, paths, tuple(columns)) for paths in dealt]
    runner.run(tasks, None)


def indexed(folder: Path, request: Mapping[str, str] | None, runner: Runner) -> None:
    """Build these indexes, or those that the advisor chooses, from nothing."""
    shutil.rmtree(folder / FOLDER, ignore_errors=True)
    table = sx.open_table(folder)
    if request is None:
        build_advised(table.state, None, AdviceRequest(), runner=runner)
    else:
        build(table.state, {"*": None, **request}, runner=runner)


def measured(place: str, folder: Path, n_bytes: int, rounds: int) -> list[Measure]:
    """The figures of one place."""
    request = request_of(sx.open_table(folder))
    megabytes = n_bytes / 1e6
    best = partial(best_seconds, rounds=rounds, warm_up=False)
    with runner_at(place) as (inner, spark):
        runner = Watching(inner)
        every = [column.name for column in sx.open_table(folder).columns]
        decode(folder, every, runner)  # workers start, and the files are read
        found = []
        for what, columns, wanted in (
            ("six indexes", list(request), request),
            ("the advisor's choice", every, None),
        ):
            least = best(partial(decode, folder, columns, runner))
            found.append(_measure(f"decode {len(columns)} columns", least, megabytes))
            runner.peak = 0
            took = best(partial(indexed, folder, wanted, runner))
            found.append(_measure(what, took, megabytes, MOST[what] * least))
            found.append(Measure(f"{what}: peak", runner.peak / 1e6, "MB"))
        shutil.rmtree(folder / FOLDER)
        if spark is not None:
            copy = folder.with_name("written")
            rows = spark.read.parquet(str(folder))
            took = best(partial(rows.write.mode("overwrite").parquet, str(copy)))
            found.append(_measure("write by plain Spark", took, megabytes))
            shutil.rmtree(copy)
    return found


def _measure(
    what: str, took: float, megabytes: float, limit: float | None = None
) -> Measure:
    speed = f"{megabytes / took:,.0f} MB of Parquet a second"
    return Measure(what, took, "s", limit, speed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.build")
    parser.add_argument("dir", type=Path, help="a folder of Parquet files")
    parser.add_argument("--on", action="append", choices=PLACES, help="by default all")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parsed = parser.parse_args(arguments)
    # Workers import the tasks of this module.
    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    source = parsed.dir.resolve()
    with tempfile.TemporaryDirectory(dir=source.parent) as temporary:
        folder = Path(temporary, "table")
        n_bytes = linked(source, folder)
        for place in parsed.on or PLACES:
            title = f"{place}: {n_bytes / 1e6:,.0f} MB of Parquet"
            show(title, measured(place, folder, n_bytes, parsed.rounds))
    return 0


if __name__ == "__main__":
    # Workers know the tasks by the name of this module, which is another one here.
    from benchmarks.build import main as imported

    sys.exit(imported())
