"""``python -m tests.heavy.matrix``: run the cells of the matrix, exit 1 if one fails.

A cell that ``--cell`` names must run.  Where all cells run, those whose Python or Java
this machine does not have are passed over, and the table says why.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from typing import Final

from tests.heavy.matrix.cells import CELLS, ROOT, Cell
from tests.heavy.matrix.environments import (
    FOLDER,
    LackError,
    NoCellError,
    prepared,
    variables,
    versions,
)
from tests.heavy.matrix.results import Outcome, load, outcome_of, page, save, table

OUTCOMES: Final = FOLDER / "outcomes"
PAGE: Final = ROOT / "docs" / "support.md"


def main(arguments: list[str]) -> int:
    """Run the cells that ``arguments`` name; 0 if each that had to pass did."""
    by_name = {cell.name: cell for cell in CELLS}
    parser = argparse.ArgumentParser(prog="python -m tests.heavy.matrix")
    parser.add_argument("--cell", action="append", choices=by_name, help="default: all")
    parser.add_argument("--install", action="store_true", help="no test: only install")
    parser.add_argument("--noted", action="store_true", help="run none: only the table")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument("tests", nargs="*", help="only these: a trial, not noted")
    options = parser.parse_args(arguments)
    chosen = [by_name[name] for name in options.cell or by_name]
    outcomes = []
    for cell in () if options.noted else chosen:
        print(f"== {cell.name}", flush=True)
        outcome = run(cell, options.tests, install=options.install)
        outcomes.append(outcome)
        print(f"== {cell.name}: {outcome.summary}", flush=True)
        if not options.tests and not options.install:
            save(outcome, OUTCOMES)
    if options.noted:
        outcomes = load((cell.name for cell in chosen), OUTCOMES)
    print(table(outcomes))
    if options.write:
        PAGE.write_text(page(load(by_name, OUTCOMES), PAGE.read_text()))
    if not options.cell:
        outcomes = [outcome for outcome in outcomes if not outcome.is_lacking]
    if options.install:
        return int(any(outcome.problem for outcome in outcomes))
    return int(not outcomes or not all(outcome.is_proof for outcome in outcomes))


def run(cell: Cell, tests: list[str], *, install: bool = False) -> Outcome:
    """Make the environment of a cell, and run its tests there."""
    try:
        python = prepared(cell)
        environment = variables(python, cell)
    except NoCellError as error:
        is_lacking = isinstance(error, LackError)
        return Outcome(cell.name, str(error), is_lacking=is_lacking)
    found = versions(python, cell)
    if install:
        return Outcome(cell.name, versions=found)
    report = FOLDER / f"{cell.name}.xml"
    report.unlink(missing_ok=True)
    options = ["-q", "-p", "no:cacheprovider", f"--junitxml={report}", "-rf"]
    began = time.perf_counter()
    answer = subprocess.run(
        [python, "-m", "pytest", *options, "-m", cell.marked, *tests],
        cwd=ROOT,
        env=environment,
        check=False,
    )
    outcome = outcome_of(cell.name, found, report, time.perf_counter() - began)
    if answer.returncode == (1 if outcome.failed else 0):
        return outcome
    # It broke off, and its report is of a part: a crash has the code 1, too.
    return Outcome(cell.name, f"pytest ended with code {answer.returncode}", found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
