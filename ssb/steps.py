"""Steps that are measured once: each is stored, with what else the machine did."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, Self

from pyspark.sql import SparkSession

from ssb.data.generate import Dataset, Log
from ssb.grid.records import Record, Records, StepRecord, Value
from ssb.progress import Progress

QUIET: Final = 0.1
"""The part of the processors that other programs may take in a quiet step."""
_LOOK_EVERY: Final = 2.0
"""Seconds."""

Row = dict[str, Value]
Rows = list[Row]


@dataclass(frozen=True, slots=True)
class Effort:
    """How often a run measures, and into how much it cuts the rows.

    Args:
        files: of most layouts.
        appends: to a table that is optimized incrementally.
        small: runs of each query over small files and what becomes of them.
        warm: runs of each query in each engine.
        cold: runs of them before.
        study: runs of each query for each value of a parameter.
        store: files behind a store.
        rows: of a small file, at least.
        left_out: patterns of the names of steps that it does not have.
    """

    files: int
    appends: int
    small: int = 1
    warm: int = 1
    cold: int = 1
    study: int = 1
    store: int = 1000
    rows: int = 600
    left_out: tuple[str, ...] = ()

    def has(self, name: str) -> bool:
        """Whether a run of this effort measures the step of a name.

        >>> SHORT.has("size of files/32"), SHORT.has("size of files/64")
        (True, False)
        """
        return not any(fnmatchcase(name, pattern) for pattern in self.left_out)

    def having(self, begin: str, names: Iterable[str]) -> list[str]:
        """The names that, after ``begin``, are those of steps that it has."""
        return [name for name in names if self.has(begin + name)]


LARGE: Final = Effort(files=1000, small=3, warm=3, cold=1, study=2, appends=30)
"""From scale 10 on: each run takes long, and varies less."""
FULL: Final = Effort(files=100, small=3, warm=5, cold=3, study=3, appends=30)
SHORT: Final = Effort(
    files=40,
    appends=5,
    store=40,
    rows=3_000,
    left_out=(
        "whole queries write/workload",
        *("small files */hilbert", "small files */workload"),
        *("files skipped/compacted", "files skipped/workload-*"),
        *("cell/*/r*", "cell/*/bit_sliced", "cell/*/advisor-*"),
        "clustering columns/[356]",
        *("size of files/64", "size of files/128", "size of files/512"),
    ),
)
"""Below scale 1: to see that all works, in minutes."""


def effort_of(scale: float) -> Effort:
    """How much is measured of data of that scale."""
    return LARGE if scale >= 10 else FULL if scale >= 1 else SHORT


@dataclass(frozen=True, slots=True)
class Context:
    """What all steps of a run share.

    Args:
        spark: the session.
        dataset: of SSB.
        records: of finished steps.
        work: a folder for what steps write.
        log: told about what steps do.
    """

    spark: SparkSession
    dataset: Dataset
    records: Records
    work: Path
    log: Log

    @property
    def effort(self) -> Effort:
        """How often it measures."""
        return effort_of(self.dataset.scale)


@dataclass(frozen=True, slots=True)
class Found:
    """What a step found.

    Args:
        rows: flat objects.
        notes: what the reader has to know.
    """

    rows: Rows
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the run that is measured once.

    Args:
        name: of it, the key of its record; the part before the first slash tells
            what its time is like.
        run: measures it, or makes the record itself.
        after: done once all steps with the same ``after`` are stored.
    """

    name: str
    run: Callable[[Context], Found | Record]
    after: Callable[[Context], None] | None = None


def run_steps(
    context: Context,
    steps: Sequence[Step],
    *,
    chosen: Sequence[Step] | None = None,
    warm_up: Callable[[], None] = lambda: None,
) -> None:
    """Run the steps that are not stored, and tell the time left.

    What steps write for later ones is removed after the last of them.

    Args:
        context: of the run.
        steps: all that there are.
        chosen: those that may run; by default all.
        warm_up: done before the first of them.
    """

    def is_open(step: Step) -> bool:
        return step.name not in context.records

    open_steps = list(filter(is_open, steps if chosen is None else chosen))
    if open_steps:
        warm_up()
    progress = Progress(context.log)
    for step in open_steps:
        progress.expect(_kind(step))
    commit = commit_of(Path(__file__).parent)
    for step in open_steps:
        with progress.step(_kind(step), step.name), Meter() as meter:
            found = step.run(context)
            if isinstance(found, Found):
                found = StepRecord(
                    step=step.name,
                    rows=tuple(found.rows),
                    seconds=meter.seconds(),
                    busy=meter.others(),
                    commit=commit,
                    date=datetime.now(UTC).date().isoformat(),
                    notes=found.notes,
                )
            context.records.add(found)
        later = {other.after for other in filter(is_open, steps)}
        if step.after is not None and step.after not in later:
            step.after(context)


def _kind(step: Step) -> str:
    return step.name.partition("/")[0]


def commit_of(folder: Path) -> str:
    """The commit that a folder is at, with a plus where files differ from it."""
    git = shutil.which("git")
    if git is None:
        return ""

    def asked(*arguments: str) -> str:
        answer = subprocess.run(  # noqa: S603 (own arguments)
            [git, "-C", str(folder), *arguments],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return answer.stdout.strip() if answer.returncode == 0 else ""

    commit = asked("rev-parse", "--short=10", "HEAD")
    changed = asked("status", "--porcelain", "--untracked-files=no", "--", ":/src")
    return f"{commit}+" if changed else commit


class Meter:
    """The time since it was made, and the part of the processors that others took.

    The processes that this one started are looked at every few seconds: the time of
    one that ends without its parent, as Python workers of Spark do, is told nowhere.
    """

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._all, self._own, self._seen = _busy_ticks(), 0, _own_ticks()
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        self._ended.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_EVERY):
            self._look()

    def _look(self) -> None:
        now = _own_ticks()
        self._own += grown(self._seen, now)
        self._seen = now

    def seconds(self) -> float:
        """So far."""
        return time.perf_counter() - self._began

    def others(self) -> float | None:
        """In all, at the end; None where the system does not tell.

        This process and those that it started, Spark's among them, are no others.
        """
        self._end()
        busy = _busy_ticks()
        if busy is None or self._all is None:
            return None
        self._look()
        ticks = busy - self._all - self._own
        whole = self.seconds() * os.sysconf("SC_CLK_TCK") * (os.cpu_count() or 1)
        return min(1.0, max(0.0, ticks / whole)) if whole else 0.0


def grown(before: Mapping[int, int], now: Mapping[int, int]) -> int:
    """The ticks that were added between two looks, by process.

    >>> grown({1: 10, 2: 900}, {1: 15, 3: 4})
    9
    """
    return sum(max(0, n - before.get(process, 0)) for process, n in now.items())


def _busy_ticks() -> int | None:
    """The ticks in which some processor worked, for whomever, since the start.

    Those that the host of a virtual machine took for others count too.
    """
    stat = Path("/proc/stat")
    if not stat.exists():
        return None
    user, nice, system, _, _, *interrupts = map(int, stat.read_text().split()[1:9])
    return user + nice + system + sum(interrupts)


def _own_ticks() -> dict[int, int]:
    """The ticks of this process and of all that it started, by process."""
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:  # it has ended
            continue
        fields = text.rpartition(")")[2].split()
        process = int(path.parent.name)
        children.setdefault(int(fields[1]), []).append(process)
        ticks[process] = sum(map(int, fields[11:13]))
    own, left = {}, [os.getpid()]
    while left:
        process = left.pop()
        own[process] = ticks.get(process, 0)
        left += children.get(process, [])
    return own


def spread(seconds: Sequence[float]) -> Row:
    """The median, the least and the most of some times."""
    ordered = sorted(seconds)
    middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    return {
        "seconds": round(middle, 4),
        "least": round(ordered[0], 4),
        "most": round(ordered[-1], 4),
    }
