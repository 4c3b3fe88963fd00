"""Daily appends: what ``optimize`` rewrites, and how many files are read then.

::

    python -m benchmarks.incremental [--rows N] [--days N] [--figure PATH]
    python -m benchmarks.incremental --old [--rows N] [--figure PATH]

The rows are those of SSB's lineorder in the columns that count: customer and part are
uniform, the order date is that of the day, and one row in a hundred comes up to ten
days late.  In a third case one day has five times the rows, many of one customer, and a
file is deleted later.  Each day is appended along the curve, and then optimized with
the library's own choice of files.  Nothing is written: a file is the box of its rows.
Bytes and files are compared with a full rewrite on each day and with none.

With ``--old`` the table is badly clustered: its rows are in no order, or were clustered
in 30 parts that all lie everywhere.  Each run rewrites a part of its bytes, until one
finds nothing that is worth it.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from skipindex.layout import CurveLayout
from skipindex.rewrite.selection.boxes import Boxes
from skipindex.rewrite.selection.cubes import Run
from skipindex.rewrite.selection.grouping import (
    Group,
    Mode,
    plan_clustering,
    weight_of,
)
from skipindex.rewrite.selection.target import RATIO, EligibleFile, Target
from skipindex.rewrite.selection.within import plan_within

SAMPLE = 50_000
"""Rows that a clustering is fitted to."""
ROW_BYTES = 40
N_CUSTOMERS, N_PARTS = 30_000, 200_000
"""At scale 1."""
RATIOS = (0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 16.0)
FULL = math.inf
N_QUERIES = 200
N_LAYERS = 30
BUDGETS = (0.05, 0.1, 0.2, 0.3)
"""Parts of an old table that a run may rewrite."""
SHOWN = 0.2
"""The budget whose files are drawn."""
MOST_RUNS = 200
SKEWED, DELETED = 12, 20
"""The day with many rows, and the one before which a file is deleted."""

Rows = np.ndarray
"""One row for each of the table's, one column for each clustering column."""


@dataclass
class Table:
    """Files, each with its rows, and what was written so far.

    ``runs`` has the run of each file that was clustered; ``n_bytes`` counts rewriting.
    """

    columns: tuple[str, ...]
    rows_per_file: int
    files: dict[str, Rows] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    n_bytes: int = 0
    n_runs: int = 0

    def append(self, rows: Rows) -> None:
        """One append along the curve, as the table records it."""
        self.runs[self._write(rows)] = Run.of(self._target())

    def optimize(self, ratio: float = RATIO, *, budget: float | None = None) -> int:
        """One run, and the bytes that it rewrote; ``FULL`` rewrites all."""
        target = replace(self._target(), ratio=ratio)
        eligible = [
            EligibleFile(path, (), len(rows) * ROW_BYTES, len(rows))
            for path, rows in self.files.items()
        ]
        if budget is None:
            mode = Mode.FULL if ratio == FULL else Mode.INCREMENTAL
            groups = plan_clustering(
                eligible, self.runs, target, mode=mode, boxes=self.boxes()
            )
        else:
            groups = plan_within(
                eligible, self.runs, target, self.boxes(), budget=int(budget)
            ).groups
        for group in groups:
            self._rewrite(group, replace(target, levels=(group.level,)))
        n_bytes = sum(weight_of(group.files) for group in groups)
        self.n_bytes += n_bytes
        return n_bytes

    def delete_one(self) -> None:
        """Another tool deletes the first file of all."""
        del self.files[min(self.files)]

    def _target(self) -> Target:
        return Target(self.columns, "hilbert", rows_per_file=self.rows_per_file)

    def _rewrite(self, group: Group, target: Target) -> None:
        rows = np.concatenate([self.files.pop(file.path) for file in group.files])
        self.runs[self._write(rows)] = Run.of(target)

    def boxes(self) -> Boxes:
        """Where the files lie."""
        low, high = (
            np.array([end(rows, axis=0) for rows in self.files.values()])
            for end in (np.min, np.max)
        )
        return Boxes({path: i for i, path in enumerate(self.files)}, low, high)

    def kept(self, queries: Sequence[tuple[Rows, Rows]]) -> float:
        """Files that a query reads, on average."""
        boxes = self.boxes()
        n_kept = [
            ((boxes.low <= high) & (boxes.high >= low)).all(axis=1).sum()
            for low, high in queries
        ]
        return float(np.mean(n_kept))

    def _write(self, rows: Rows) -> str:
        self.n_runs += 1
        run = f"{self.n_runs:032x}"
        arrays = [pa.array(rows[:, i]) for i in range(len(self.columns))]
        table = pa.table(dict(zip(self.columns, arrays, strict=True)))
        n_files = -(-len(rows) // self.rows_per_file)
        step = max(1, len(rows) // SAMPLE)
        layout = CurveLayout.fit(
            table.take(np.arange(0, len(rows), step)), self.columns, n_files=n_files
        )
        numbers = layout.assign(arrays).files
        order = np.argsort(numbers, kind="stable")
        ends = np.flatnonzero(np.diff(numbers[order])) + 1
        for number, part in enumerate(np.split(rows[order], ends)):
            self.files[f"part-{number:05d}-{run}-0.parquet"] = part
        return run


Draw = Callable[[np.random.Generator, int, int], Rows]
"""The rows of a day."""


def uniform(random: np.random.Generator, _: int, n_rows: int) -> Rows:
    """Customer and part, of which no day differs from another."""
    customers = random.integers(1, N_CUSTOMERS + 1, n_rows)
    return np.stack([customers, random.integers(1, N_PARTS + 1, n_rows)], axis=1)


def dated(random: np.random.Generator, day: int, n_rows: int) -> Rows:
    """Order date and customer; a few rows are late."""
    late = random.integers(0, 11, n_rows) * (random.random(n_rows) < 0.01)
    dates = np.maximum(day - late, 0)
    return np.stack([dates, random.integers(1, N_CUSTOMERS + 1, n_rows)], axis=1)


def skewed(random: np.random.Generator, day: int, n_rows: int) -> Rows:
    """As ``dated``; on one day there are many rows, a third of them of one customer."""
    if day != SKEWED:
        return dated(random, day, n_rows)
    rows = dated(random, day, 5 * n_rows)
    rows[::3, 1] = N_CUSTOMERS // 2
    return rows


def by_either(random: np.random.Generator, _: int) -> list[tuple[Rows, Rows]]:
    """Look-ups of one customer, or of one part."""
    least, most = np.array([1, 1]), np.array([N_CUSTOMERS, N_PARTS])
    queries = []
    for i in range(N_QUERIES):
        low, high = least.copy(), most.copy()
        low[i % 2] = high[i % 2] = random.integers(1, most[i % 2] + 1)
        queries.append((low, high))
    return queries


def by_week(random: np.random.Generator, day: int) -> list[tuple[Rows, Rows]]:
    """The orders of a week, of all customers or of one in ten."""
    queries = []
    for i in range(N_QUERIES):
        first = random.integers(0, max(1, day - 5))
        width = N_CUSTOMERS if i % 2 else N_CUSTOMERS // 10
        begin = random.integers(1, N_CUSTOMERS - width + 2)
        queries.append(
            (np.array([first, begin]), np.array([first + 6, begin + width - 1]))
        )
    return queries


CASES = {
    "two uniform columns": (("customer", "part"), uniform, by_either),
    "order date and customer": (("date", "customer"), dated, by_week),
    "a skewed day, a deleted file": (("date", "customer"), skewed, by_week),
}


@dataclass(frozen=True)
class Outcome:
    """One way to maintain a table, day by day.

    Args:
        name: for people.
        n_bytes: bytes rewritten until each day.
        kept: files that a query reads after each day, on average.
    """

    name: str
    n_bytes: list[int]
    kept: list[float]


def lived(case: str, ratio: float | None, *, n_rows: int, days: int) -> Outcome:
    """A table over some days; a ratio of None optimizes nothing."""
    columns, draw, ask = CASES[case]
    table = Table(columns, max(1, n_rows // days // 10))
    name = {None: "none", FULL: "full"}.get(ratio, f"ratio {ratio:g}" if ratio else "0")
    n_bytes, kept = [], []
    for day in range(days):
        random = np.random.default_rng(day)
        if draw is skewed and day == DELETED:
            table.delete_one()
        table.append(draw(random, day, n_rows // days))
        if ratio is not None:
            table.optimize(ratio)
        n_bytes.append(table.n_bytes)
        kept.append(table.kept(ask(random, day)))
    return Outcome(name, n_bytes, kept)


def told(case: str, outcomes: Sequence[Outcome]) -> str:
    """Bytes and files of each way, as shares of a full rewrite on each day."""
    full = outcomes[-1]
    lines = [f"{case}:", f"{'':12} {'bytes':>8} {'files, mean':>12} {'worst day':>10}"]
    for one in outcomes:
        shares = np.array(one.kept) / np.array(full.kept)
        lines.append(
            f"{one.name:12} {one.n_bytes[-1] / full.n_bytes[-1]:>8.3f} "
            f"{shares.mean():>12.3f} {shares.max():>10.3f}"
        )
    return "\n".join(lines)


def drawn(found: dict[str, list[Outcome]]) -> str:
    """Bytes and files of each way, by day, as SVG; it needs matplotlib."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)

    from ssb.report.charts import svg  # noqa: PLC0415 (it needs the extra)

    figure = Figure(figsize=(12, 6.5), layout="constrained")
    axes = figure.subplots(2, len(found), sharex=True, squeeze=False)
    for column, (case, outcomes) in zip(axes.T, found.items(), strict=True):
        full = outcomes[-1]
        for one in outcomes:
            days = np.arange(1, len(one.kept) + 1)
            if one.name == "0":
                continue
            column[0].plot(days, np.array(one.n_bytes) / full.n_bytes[-1])
            column[1].plot(days, np.array(one.kept) / full.kept, label=one.name)
        column[0].set_title(case)
        column[1].set_xlabel("day")
    axes[0, 0].set_ylabel("bytes rewritten (full: 1)")
    axes[1, 0].set_ylabel("files read (full: 1)")
    axes[1, 0].legend(frameon=False)
    return svg(figure)


def old_table(kind: str, *, n_rows: int, n_files: int = 300) -> Table:
    """A table of two uniform columns that is clustered as badly as can be."""
    table = Table(CASES["two uniform columns"][0], n_rows // n_files)
    random = np.random.default_rng(1)
    if kind == "30 layers":
        for _ in range(N_LAYERS):
            table.append(uniform(random, 0, n_rows // N_LAYERS))
        return table
    for i in range(n_files):
        table.files[f"{i}.parquet"] = uniform(random, 0, n_rows // n_files)
    return table


KINDS = ("in no order", "30 layers")


@dataclass
class Old:
    """Runs over a badly clustered table.

    Args:
        name: for people.
        shares: bytes rewritten until each run, as shares of the table, from before the
            first one on.
        kept: files that a query reads then, as shares of a full rewrite.
        files: least and greatest value of the first column in each file, then.
    """

    name: str
    shares: list[float]
    kept: list[float]
    files: list[Rows]


def mended(kind: str, budget: float, *, n_rows: int) -> Old:
    """Runs of a budget, a part of the table, until one does nothing."""
    table, full = (old_table(kind, n_rows=n_rows) for _ in range(2))
    queries = by_either(np.random.default_rng(2), 0)
    full.optimize(FULL)
    size = sum(map(len, table.files.values())) * ROW_BYTES
    one = Old(f"{kind}, {budget:.0%}", [], [], [])
    for _ in range(MOST_RUNS):
        boxes = table.boxes()
        one.shares.append(table.n_bytes / size)
        one.kept.append(table.kept(queries) / full.kept(queries))
        one.files.append(np.stack([boxes.low[:, 0], boxes.high[:, 0]], axis=1))
        if not table.optimize(budget=budget * size):
            break
    return one


def mended_told(one: Old) -> str:
    """Runs, bytes and files of one table, until it is good and until the end."""

    def at(n: int) -> str:
        return f"{n:>4} runs, {one.shares[n]:>5.2f} of its bytes, {one.kept[n]:>5.2f}"

    good = next((i for i, kept in enumerate(one.kept) if kept <= 1.5), None)
    until = "" if good is None else f"; at most 1.5 after {at(good)}"
    return (
        f"{one.name:18} files {one.kept[0]:>5.2f}; end {at(len(one.kept) - 1)}{until}"
    )


def mended_drawn(found: Sequence[Old]) -> str:
    """Files that a query reads after each run, and the files of one table, as SVG."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)

    from ssb.report.charts import svg  # noqa: PLC0415 (it needs the extra)

    figure = Figure(figsize=(9, 6.5), layout="constrained")
    grid = figure.add_gridspec(2, 6)
    axes = [figure.add_subplot(grid[0, at : at + 3]) for at in (0, 3)]
    for axis, kind in zip(axes, KINDS, strict=True):
        for one in found:
            if one.name.startswith(kind):
                axis.plot(one.kept, label=one.name.rpartition(" ")[2])
        axis.set_title(kind)
        axis.set_xlabel("run")
        axis.set_yscale("log")
        axis.set_yticks([1, 1.5, 2, 5, 10], labels=["1", "1.5", "2", "5", "10"])
    axes[0].set_ylabel("files read (full: 1)")
    axes[0].legend(title="budget", frameon=False)
    shown = next(one for one in found if one.name == f"{KINDS[1]}, {SHOWN:.0%}")
    moments = [0, len(shown.files) // 4, len(shown.files) - 1]
    for i, run in enumerate(moments):
        axis = figure.add_subplot(grid[1, 2 * i : 2 * i + 2])
        low, high = shown.files[run][np.argsort(shown.files[run][:, 0])].T
        # One path of all files: each is a line of its own by a gap.
        ends = np.stack([low, high, np.full(len(low), np.nan)], axis=1)
        axis.plot(ends.ravel(), np.repeat(np.arange(len(low)), 3), linewidth=0.8)
        axis.set_title(f"files after {run} runs of {SHOWN:.0%}", fontsize="medium")
        axis.set_xlabel("customer")
    return svg(figure)


def main(arguments: Sequence[str] = ()) -> None:
    """Print all cases, and draw them where a path is given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--old", action="store_true")
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args(arguments)
    if given.old:
        old = []
        for kind in KINDS:
            for budget in BUDGETS:
                old.append(mended(kind, budget, n_rows=given.rows))
                print(mended_told(old[-1]), flush=True)
        if given.figure is not None:
            given.figure.write_text(mended_drawn(old), "utf-8")
        return
    found = {}
    for case in CASES:
        ways = (None, *RATIOS, FULL)
        found[case] = [
            lived(case, way, n_rows=given.rows, days=given.days) for way in ways
        ]
        print(told(case, found[case]), flush=True)
    if given.figure is not None:
        given.figure.write_text(drawn(found), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
