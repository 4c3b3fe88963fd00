"""A build task whose first run ends badly; workers get this file as a module."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skipindex.build.task import BuildTask, run_task
from skipindex.log.manifest import Manifest


@dataclass(frozen=True)
class Spoiled:
    """What a worker unpickles as the task.

    Args:
        task: the task.
        marks: an empty folder, which gets a file for each run.
        end: how the first run ends, after it has written its packs.
    """

    task: BuildTask
    marks: Path
    end: str

    @property
    def done(self) -> str:
        return self.task.done

    def run(self) -> Manifest:
        raise AssertionError("workers get another one")

    def __reduce__(self) -> tuple[Callable[..., BuildTask], tuple[Any, ...]]:
        return _begin, (self.task, str(self.marks), self.end)


def _begin(task: BuildTask, marks: str, end: str) -> BuildTask:
    is_first = not os.listdir(marks)  # noqa: PTH208
    Path(marks, uuid.uuid4().hex).touch()
    if is_first:
        run_task(task)
        if end == "fails":
            raise RuntimeError("the first run of this task fails")
        if end == "dies":
            os._exit(1)
        time.sleep(600)
    return task
