"""What all slices together ran: a state file, and a table for the documentation."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Final

from tests.heavy.catalogue import SWEEPS
from tests.heavy.slices import Slice

_ROOT: Final = Path(__file__).resolve().parents[2]
_PACKAGE: Final = _ROOT / "src" / "skipindex"
_BEGIN: Final = "<!-- totals of the sweeps, written by `make sweep PAGE=…` -->"
_MOST_SECONDS: Final = 300.0
"""For a case that failed to run again."""
_END: Final = "<!-- end of the totals -->"


@dataclass
class Total:
    """What was run of one sweep.

    Args:
        next: the number of the case to go on with.
        n: what all cases compared.
        failures: the commands of the cases that failed, and are not mended.
        package: the content of the package in the newest slice.
        since: what was compared since the package had another content.
        commit: of the newest slice.
        spark: its version of Spark.
    """

    next: int = 0
    n: int = 0
    failures: list[str] = field(default_factory=list)
    package: str = ""
    since: int = 0
    commit: str = ""
    spark: str = ""


@dataclass
class Totals:
    """What was run of all sweeps on this machine.

    Args:
        seed: of all cases.
        last: the sweep that ran last.
        of: by the name of the sweep.
    """

    seed: int
    last: str = ""
    of: dict[str, Total] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, *, seed: int | None = None) -> Totals:
        """What a file has; a new one has a seed of its own.

        Raises:
            SystemExit: the file has another seed than is asked for, or cannot be read.
        """
        if not path.exists():
            return cls(int(time.time()) % 10**8 if seed is None else seed)
        try:
            found = json.loads(path.read_text())
            of = {name: Total(**total) for name, total in found["of"].items()}
            state = cls(int(found["seed"]), found["last"], of)
        except (ValueError, TypeError, KeyError) as error:
            raise SystemExit(
                f"{path} cannot be read: {error} (delete it to begin anew)"
            ) from error
        if seed not in {None, state.seed}:
            raise SystemExit(
                f"{path} goes on with seed {state.seed}, and {seed} is asked for "
                "(delete it to begin anew, or name another --state)"
            )
        return state

    def write(self, path: Path) -> None:
        """Keep it; a run that is stopped meanwhile leaves the former file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".new")
        new.write_text(json.dumps(asdict(self), indent=1) + "\n")
        new.replace(path)

    def in_turn(self, names: Sequence[str]) -> list[str]:
        """The sweeps from that on which comes behind the one that ran last."""
        order = list(SWEEPS)
        begin = order.index(self.last) + 1 if self.last in order else 0
        turn = [*order[begin:], *order[:begin]]
        return [name for name in turn if name in names]

    def next_case(self, name: str) -> tuple[int, int]:
        """The seed, and the number of the next case."""
        return self.seed, self.of.get(name, Total()).next

    def add(self, name: str, done: Slice) -> None:
        """Count a slice."""
        total = self.of.setdefault(name, Total())
        package = content_of(_PACKAGE)
        if package != total.package:
            total.package, total.since = package, 0
        total.next += done.cases
        total.n += done.n
        total.since += done.n
        total.failures += [failure.again for failure in done.failures]
        total.commit, total.spark = _commit(), version("pyspark")
        self.last = name

    def again(self, end: float) -> Iterator[str]:
        """Run cases again that failed in earlier runs; those that pass now are mended.

        Args:
            end: by the monotonic clock, when the last of them is stopped.
        """
        for name, total in self.of.items():
            for command in list(total.failures):
                _, *arguments = shlex.split(command)
                seconds = min(_MOST_SECONDS, end - time.monotonic())
                if seconds <= 0 or not _passes(arguments, seconds):
                    yield f"{name}: fails still: {command}"
                    continue
                total.failures.remove(command)
                yield f"{name}: passes now: {command}"

    def line(self, name: str, done: Slice) -> str:
        """What a slice did, and all of them."""
        total, what = self.of[name], SWEEPS[name].what
        rate = 60 * done.n / max(1e-9, done.seconds)
        return (
            f"{name:17} {done.n:>9,} {what} in {done.cases} cases, "
            f"{len(done.failures)} failed, {rate:,.0f} a minute; {total.since:,} since "
            f"the package changed, {total.n:,} in all"
        )

    def write_page(self, path: Path) -> None:
        """Write the table of totals into a page, between its two marks.

        Raises:
            SystemExit: the page has no marks.
        """
        package = content_of(_PACKAGE)
        rows = [
            f"| `{name}` | {total.n:,} {SWEEPS[name].what} | {total.next:,} | "
            f"{len(total.failures)} | "
            f"{total.since if total.package == package else 0:,} | "
            f"{total.commit}, Spark {total.spark} |"
            for name in SWEEPS
            if (total := self.of.get(name)) is not None
        ]
        head = [
            "| sweep | compared | cases | fail | since the package changed | with |",
            "|---|---|---|---|---|---|",
        ]
        marked = re.compile(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}", re.DOTALL)
        table = "\n".join([_BEGIN, "", *head, *rows, "", _END])
        text, n = marked.subn(lambda _: table, path.read_text())
        if n != 1:
            raise SystemExit(f"{path} has no line {_BEGIN!r} with {_END!r} behind it")
        path.write_text(text)


def _passes(arguments: Sequence[str], seconds: float) -> bool:
    """Whether a case passes in so many seconds."""
    try:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=_ROOT, capture_output=True, check=False, timeout=seconds,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False
    return not done.returncode


def content_of(folder: Path) -> str:
    """A digest of the source files below a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in {".py", ".java"}:
            digest.update(str(path.relative_to(folder)).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=_ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout.strip() or "no commit"
