"""Run hostile tables and count.

``python -m tests.sweeps.hostile --count 2000 --seed 0``
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any, Final

from tests.sweeps.hostile.templates import TEMPLATES, make

PATIENCE: Final = 120.0
"""Seconds for one table, after which it hangs; most take less than one."""


def run(first: int, stop: int, work: Path) -> Iterator[dict[str, Any]]:
    """What became of each case; a process that dies or hangs is told, and replaced."""
    templates = work / "templates"
    if not templates.exists():
        for name in TEMPLATES:
            make(name, templates / name)
    while first < stop:
        for told in _process(templates, work, first, stop):
            first = told["seed"] + 1
            yield told


def _process(
    templates: Path, work: Path, first: int, stop: int
) -> Iterator[dict[str, Any]]:
    command = [sys.executable, "-m", "tests.sweeps.hostile.worker"]
    arguments = [str(templates), str(work), str(first), str(stop)]
    process = subprocess.Popen(
        [*command, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines: Queue[str | None] = Queue()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    Thread(target=read, daemon=True).start()
    begun = first
    try:
        while True:
            try:
                line = lines.get(timeout=PATIENCE)
            except Empty:
                yield {"seed": begun, "spoils": ["?"], "wrong": ["it hangs"]}
                return
            if line is None:
                break
            told = json.loads(line)
            if "begun" in told:
                begun = told["begun"]
            else:
                yield told
                if told["seed"] + 1 == stop:
                    return
        assert process.stderr is not None
        text = process.stderr.read()[-500:]
        problem = f"the process died ({process.wait()}): {text}"
        yield {"seed": begun, "spoils": ["?"], "wrong": [problem]}
    finally:
        process.kill()
        process.wait()


def main() -> int:
    """Print what is wrong, and figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.sweeps.hostile")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    spoils: Counter[str] = Counter()
    n = n_wrong = n_refused = 0
    with tempfile.TemporaryDirectory() as work:
        for told in run(given.seed, given.seed + given.count, Path(work)):
            n += 1
            spoils.update(told["spoils"])
            n_refused += told.get("refused", False)
            if told["wrong"]:
                n_wrong += 1
                print(json.dumps(told), flush=True)
    print(f"{n} tables, {n_wrong} wrong, {n_refused} of a newer library refused")
    print(", ".join(f"{name} {count}" for name, count in sorted(spoils.items())))
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
