"""A slice of a sweep: its cases from a number on, for so many seconds."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import IO, Final

from tests.heavy.catalogue import SWEEPS, Told

_ROOT: Final = Path(__file__).resolve().parents[2]
_MODULE: Final = "tests.heavy.case"
_MOST_FAILURES: Final = 5
"""A slice ends behind them: what is wrong is likely one thing."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A case that failed.

    Args:
        failure: what is wrong.
        again: the command that runs this case alone.
    """

    failure: str
    again: str


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
    failures: list[Failed] = field(default_factory=list)

    def fail(self, command: Sequence[str], failure: str, only: str) -> None:
        """Note a failure, and how to see it again."""
        again = " ".join(["python", "-m", _MODULE, *command, only])
        self.failures.append(Failed(failure, again))


def run_slice(
    name: str, seed: int, first: int, until: float = inf, *,
    n_cases: int | None = None, parts: Sequence[str] = (),
) -> Slice:  # fmt: skip
    """Run cases in a process of their own; it is killed, whatever it does, in time.

    Args:
        name: of the sweep.
        seed: of all its cases.
        first: the number of the case to begin with.
        until: when to stop, by the monotonic clock.
        n_cases: how many cases at most.
        parts: of the sweep; all if there are none.
    """
    command = [name, "--seed", str(seed)]
    of_parts = [f"--part={one}" for one in parts]
    options = ["--json", "--first", str(first), *of_parts]
    options += [] if n_cases is None else [f"--count={n_cases}"]
    begin, done = time.monotonic(), Slice()
    patience = SWEEPS[name].patience if name in SWEEPS else inf
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
        errors = Path(work, "errors")
        with errors.open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", _MODULE, *command, *options],
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
            while len(done.failures) < _MOST_FAILURES and done.cases != n_cases:
                line = None
                only = shlex.join([*of_parts, f"--only={first + done.cases}"])
                left = min(patience, until - time.monotonic())
                try:
                    line = lines.get(timeout=None if left == inf else max(0.0, left))
                except Empty:
                    if left < patience:
                        break  # the time is over
                    done.fail(command, f"it hangs, after {patience:g} s", only)
                    done.cases += 1  # the next run goes on behind it
                    break
                if line is None:
                    # A case that failed may say that nothing can be run behind it.
                    if not done.failures:
                        text = errors.read_text(errors="replace")[-2000:]
                        problem = f"the process ended with {process.wait()}\n{text}"
                        done.fail(command, problem, only)
                        done.cases += 1
                    break
                told = Told(**json.loads(line))
                done.cases += 1
                done.n += told.n
                if told.failure:
                    done.fail(command, told.failure, told.only or only)
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
