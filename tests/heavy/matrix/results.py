"""What came of each cell, and the page that says so."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

NO_RUN: Final = "no run is noted"

_HEAD: Final = """\
| cell | Python | Spark | passed | failed | skipped | seconds |
|---|---|---|---:|---:|---:|---:|"""

_OWN: Final = ("python", "pyspark")
"""Versions that have a column."""
_NO_COUNTS: Final = "- | - | - | -"

PAGE_BEGINNING: Final = """\
# What skipindex is tested with

Written by `make test-matrix MATRIX=--write`.  Only versions in a row that passed are
supported.  A row without figures was not run; the list below has the reason.  Each cell
is a separate environment.  Cells without Spark have no PySpark, and run all quick tests
that need no session.  Cells with Spark run all quick tests that need one.

[How queries of Spark are pruned](guides/unchanged-queries.md) depends on how they
reach it:

| way | files | look-ups | row groups |
|---|---|---|---|
| sessions after `sx.enable` | yes | yes | yes |
| `spark-sql`, `spark-submit`, JDBC, by configuration | yes | yes | yes |
| servers of Spark Connect or Thrift in an enabled driver | yes | yes | yes |
| `sx.read`, `plan.read`, also in a client of Spark Connect | yes | no | no |
| bucketed tables | yes | no | no |
| Iceberg tables, Spark 3.5 | yes | no | no |
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a cell.

    Args:
        cell: its name.
        problem: why it was not run; empty if it was.
        versions: what was installed.
        passed, failed, skipped: how many tests.
        seconds: that they took.
        is_lacking: whether it was not run because the machine has no such Python or
            Java.
    """

    cell: str
    problem: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    is_lacking: bool = False

    @property
    def is_proof(self) -> bool:
        """Whether tests ran and none failed."""
        return not self.problem and self.passed > 0 and self.failed == 0

    @property
    def summary(self) -> str:
        """The figures of the table."""
        if self.problem:
            return f"not run: {self.problem}"
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def outcome_of(
    cell: str, versions: dict[str, str], report: Path, seconds: float
) -> Outcome:
    """The outcome that pytest's report in JUnit's format says."""
    if not report.exists():
        return Outcome(cell, "pytest wrote no report", versions, failed=1)
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for suite in ET.parse(report).getroot().iter("testsuite"):
        for name in counts:
            counts[name] += int(suite.get(name, 0))
    failed = counts["failures"] + counts["errors"]
    return Outcome(
        cell,
        versions=versions,
        passed=counts["tests"] - failed - counts["skipped"],
        failed=failed,
        skipped=counts["skipped"],
        seconds=round(seconds, 1),
    )


def save(outcome: Outcome, folder: Path) -> None:
    """Note the newest outcome of a cell."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{outcome.cell}.json").write_text(json.dumps(asdict(outcome)))


def load(cells: Iterable[str], folder: Path) -> list[Outcome]:
    """The newest outcomes of these cells."""
    found = []
    for cell in cells:
        path = folder / f"{cell}.json"
        if path.exists():
            found.append(Outcome(**json.loads(path.read_text())))
        else:
            found.append(Outcome(cell, NO_RUN))
    return found


def table(outcomes: Sequence[Outcome]) -> str:
    """A table in Markdown, a cell a row, and below it what each cell ran with."""
    return "\n".join([_HEAD, *map(_row, outcomes), "", *map(_words, outcomes)])


def page(outcomes: Sequence[Outcome], former: str = "") -> str:
    """The whole page.

    Args:
        outcomes: of all cells.
        former: the page as it stands.  A row of it stays where no newer run is noted,
            and its figures stay where this machine cannot run the cell.
    """
    rows = {line.split()[1]: line for line in former.splitlines() if line[:2] == "| "}
    words = {
        line.split("**")[1]: line for line in former.splitlines() if "- **" in line
    }
    lines, below = [], []
    for one in outcomes:
        row, told = rows.get(one.cell, _row(one)), words.get(one.cell, _words(one))
        stays = one.problem == NO_RUN or (one.is_lacking and _NO_COUNTS not in row)
        lines.append(row if stays else _row(one))
        below.append(told if stays else _words(one))
    return "\n".join([PAGE_BEGINNING, _HEAD, *lines, "", *below, ""])


def _row(outcome: Outcome) -> str:
    own = [outcome.versions.get(name, "-") for name in _OWN]
    counts = [outcome.passed, outcome.failed, outcome.skipped, round(outcome.seconds)]
    shown = [_NO_COUNTS] if outcome.problem else list(map(str, counts))
    return f"| {' | '.join([outcome.cell, *own, *shown])} |"


def _words(outcome: Outcome) -> str:
    """What a cell ran with, or why it did not."""
    others = (f"{n} {v}" for n, v in outcome.versions.items() if n not in _OWN)
    said = outcome.summary if outcome.problem else ", ".join(others)
    return f"- **{outcome.cell}**: {said}"
