"""A slice of a sweep: its cases from a number on, for so many seconds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import IO, Final

from tests.sweeps.catalogue import Told

_ROOT: Final = Path(__file__).resolve().parents[2]
_MOST_FAILURES: Final = 5
"""A slice ends behind them: what is wrong is likely one thing."""


@dataclass
class Slice:
    """What a slice did.

    Args:
        cases: how many ended.
        n: how many things they compared.
        seconds: that it took.
        failures: the cases that failed, and the process if it died.
    """

    cases: int = 0
    n: int = 0
    seconds: float = 0.0
    failures: list[Told] = field(default_factory=list)


def run_slice(name: str, seed: int, first: int, until: float) -> Slice:
    """Run cases in a process of their own; it is killed, whatever it does, in time.

    Args:
        name: of the sweep.
        seed: of all its cases.
        first: the number of the case to begin with.
        until: when to stop, by the monotonic clock.
    """
    module = "tests.sweeps.worker"
    command = [sys.executable, "-m", module, name, "--seed", str(seed)]
    begin, done = time.monotonic(), Slice()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
        errors = Path(work, "errors")
        with errors.open("w") as log:
            process = subprocess.Popen(
                [*command, "--first", str(first)],
                cwd=_ROOT,
                env={**os.environ, "TMPDIR": work},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        assert process.stdout is not None
        lines: Queue[str | None] = Queue()
        Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
        try:
            while len(done.failures) < _MOST_FAILURES:
                line = lines.get(timeout=max(0.0, until - time.monotonic()))
                if line is None:
                    _tell_death(process, errors, done, command, first)
                    break
                told = Told(**json.loads(line))
                done.cases += 1
                done.n += told.n
                if told.failure:
                    done.failures.append(told)
        except Empty:
            pass  # the time is over
        finally:
            with suppress(ProcessLookupError):  # it has ended, and all of its own
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    done.seconds = time.monotonic() - begin
    return done


def _read(stream: IO[str], lines: Queue[str | None]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def _tell_death(
    process: subprocess.Popen[str],
    errors: Path,
    done: Slice,
    command: list[str],
    first: int,
) -> None:
    """Count the end of a process that nobody stopped as a failure of its case."""
    if done.failures:
        return  # a case said that nothing can be run behind it
    text = errors.read_text(errors="replace")[-2000:]
    again = " ".join(["python", *command[1:], "--only", str(first + done.cases)])
    problem = f"the process ended with {process.wait()}\n{text}"
    done.failures.append(Told(0, problem, again))
    done.cases += 1  # the next run goes on behind it
