"""The tables of the report: heads and rows of texts, ready to be shown or exported."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from ssb.grid.index_sets import FULL, NONE
from ssb.grid.layouts import GENERATED
from ssb.grid.records import CellRecord
from ssb.queries import QUERIES
from ssb.report.results import (
    Results,
    Timing,
    break_even,
    gains,
    kept,
    losses,
    stage_ms,
    warm_ms,
)
from ssb.workloads.workload import GROUPS

_NUMERIC: Final = re.compile(r"never|[\d.,]+( %| to [\d.,]+)?")

N_QUERIES: Final = len(QUERIES)
Cell = str | int | float | None
"""A number is shown with separators, None as a dash."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the report.

    Args:
        title: above it.
        heads: of the columns.
        rows: one value for each head.
        note: below it.
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


def shown(value: Cell) -> str:
    """A value as a text.

    >>> shown(12345), shown(0.1234), shown(3.14159), shown(250.4), shown(None)
    ('12,345', '0.123', '3.14', '250', '-')
    """
    match value:
        case None:
            return "-"
        case str():
            return value
        case int():
            return f"{value:,}"
        case _ if abs(value) >= 100:
            return f"{value:,.0f}"
        case _ if abs(value) >= 1 or not value:
            return f"{value:.2f}"
        case _:
            return f"{value:.3f}"


def layouts_table(results: Results) -> Table:
    """What each layout costs to write."""
    rows: list[Sequence[Cell]] = []
    for name, layout in results.layouts.items():
        megabytes = layout.n_bytes / 1e6
        low, high = layout.rows_per_file
        rows.append(
            (
                *(name, layout.what, layout.files, f"{low:,} to {high:,}", megabytes),
                *(layout.seconds, megabytes / layout.seconds),
            )
        )
    heads = ("layout", "what it is", "files", "rows a file", "MB", "s", "MB/s")
    return Table("Layouts", heads, rows, "s: to write it, from the generated table.")


def kept_table(results: Results, group: str | None = None) -> Table:
    """Files kept by set of indexes and layout, over the queries of a group."""
    asked: dict[str, list[str]] = {}
    for name in results.layouts:
        figures = next((c.figures for c in results.cells_of(name) if c.figures), ())
        asked[name] = [f.query for f in figures if group in {None, f.group}]
    rows: list[Sequence[Cell]] = [
        ("queries", *map(len, asked.values())),
        (
            "files in all",
            *(results.layouts[name].files * len(of) for name, of in asked.items()),
        ),
    ]
    for indexes in results.sets:
        cells = [results.cells.get((name, indexes)) for name in asked]
        counts = [kept(c, group) if c and c.figures else None for c in cells]
        rows.append((indexes, *counts))
    rows += [
        ("oracle", *(results.oracle(name, of) for name, of in asked.items())),
        ("ideal", *(results.ideal(name, of) for name, of in asked.items())),
    ]
    title = "All queries" if group is None else GROUPS[group].capitalize()
    return Table(title, ("files kept", *asked), rows)


def query_table(results: Results, layout: str) -> Table:
    """Files kept of one layout, query by query."""
    record = results.layouts[layout]
    cells = [cell for cell in results.cells_of(layout) if cell.figures]
    figures = {cell.indexes: {f.query: f for f in cell.figures} for cell in cells}
    names = [f.query for f in cells[0].figures] if cells else []
    rows: list[Sequence[Cell]] = [
        (
            name,
            record.matched[name],
            *(figures[cell.indexes][name].kept for cell in cells),
            record.oracle[name],
            record.ideal(name),
        )
        for name in names
    ]
    heads = ("query", "rows", *(cell.indexes for cell in cells), "oracle", "ideal")
    return Table(f"{layout}, {record.files} files", heads, rows)


def funnel_table(results: Results, cell: CellRecord) -> Table:
    """Files that are left after each stage, query by query."""
    layout = results.layouts[cell.layout]
    stages = list(dict.fromkeys(name for f in cell.figures for name in f.funnel))
    rows = [
        (
            *(f.query, layout.files, *(f.funnel.get(name) for name in stages)),
            *(layout.oracle[f.query], f.cold * 1e3, f.warm * 1e3),
        )
        for f in cell.figures
    ]
    heads = ("query", "in all", *stages, "oracle", "first plan, ms", "later plan, ms")
    return Table(f"{cell.layout} with {cell.indexes}", heads, rows)


def cost_table(results: Results) -> Table:
    """What each set of indexes costs to build, and when it has paid for itself."""
    rows: list[Sequence[Cell]] = []
    for (layout, indexes), cell in results.cells.items():
        if indexes == NONE:
            continue
        after = break_even(cell.build_seconds, cell.timed)
        paid: Cell = after if after is not None else ("never" if cell.timed else None)
        megabytes = cell.data_bytes / 1e6
        rows.append(
            (
                *(layout, indexes, cell.build_seconds, megabytes / cell.build_seconds),
                *(cell.index_bytes / 1e6, f"{100 * cell.share:.1f} %"),
                *(cell.build_seconds / results.layouts[layout].seconds, paid),
            )
        )
    heads = (
        *("layout", "indexes", "build s", "data MB/s", "index MB", "of the data"),
        *("build ÷ write", "pays after"),
    )
    note = (
        "pays after: so many queries of the timed mix save the seconds of the build; a "
        "dash where no query was timed."
    )
    return Table("Build cost and break-even", heads, rows, note)


def planning_table(results: Results) -> Table:
    """Planning time of each cell, by stage."""
    cells = [cell for cell in results.cells.values() if cell.figures]
    by_stage = {(c.layout, c.indexes): stage_ms(c) for c in cells}
    stages = list(dict.fromkeys(name for one in by_stage.values() for name in one))
    rows = [
        (
            *(c.layout, c.indexes, results.layouts[c.layout].files),
            *(median(f.cold for f in c.figures) * 1e3, warm_ms(c)),
            *(by_stage[c.layout, c.indexes].get(name) for name in stages),
        )
        for c in cells
    ]
    heads = ("layout", "indexes", "files", "first plan", "later plan", *stages)
    note = "Medians over all queries in ms; the stages are means of later plans."
    return Table("Planning time by stage", heads, rows, note)


def timing_table(results: Results) -> Table:
    """Every timed cell: seconds, bytes and files, unpruned and pruned."""
    rows: list[Sequence[Cell]] = []
    for cell in results.cells.values():
        if cell.timed:
            both = Timing.of(cell.timed)
            plans = {f.query: f.warm for f in cell.figures}
            planning = sum(plans.get(t.query, 0.0) for t in cell.timed)
            rows.append(
                (
                    *(cell.layout, cell.indexes, len(cell.timed), both.plain),
                    *(
                        both.pruned,
                        both.factor,
                        f"{100 * planning / both.pruned:.1f} %",
                    ),
                    *(both.n_bytes[0] / 1e6, both.n_bytes[1] / 1e6, *both.files),
                    "yes" if all(t.equal for t in cell.timed) else "NO",
                )
            )
    heads = (
        *("layout", "indexes", "queries", "unpruned s", "pruned s", "factor"),
        *("planning", "unpruned MB", "pruned MB", "unpruned files", "pruned files"),
        "same rows",
    )
    note = (
        "Sums of medians; factor: geometric mean of the queries; planning: later plans "
        "as a part of the pruned time; MB: as Spark's tasks count what they read."
    )
    return Table("Queries through Spark", heads, rows, note)


def timed_queries_table(cell: CellRecord) -> Table:
    """The timed queries of one cell."""
    rows = [
        (
            *(t.query, median(t.plain), _spread(t.plain)),
            *(median(t.pruned), _spread(t.pruned), median(t.plain) / median(t.pruned)),
            *(t.n_bytes[0] / 1e6, t.n_bytes[1] / 1e6, *t.files),
            "yes" if t.equal else "NO",
        )
        for t in cell.timed
    ]
    heads = (
        *("query", "unpruned s", "range", "pruned s", "range", "factor"),
        *("unpruned MB", "pruned MB", "unpruned files", "pruned files", "same rows"),
    )
    return Table(f"{cell.layout} with {cell.indexes}", heads, rows)


def _spread(seconds: Sequence[float]) -> str:
    return f"{min(seconds):.2f} to {max(seconds):.2f}"


def gains_table(results: Results) -> Table:
    """From the generated data, unpruned, to each timed cell, pruned."""
    rows = []
    for layout, indexes, before, after, factor in gains(results):
        built = results.cells[layout, indexes].build_seconds
        seconds = built + results.layouts[layout].seconds * (layout != GENERATED)
        saved = (before - after) / N_QUERIES
        paid = math.ceil(seconds / saved) if saved > 0 else "never"
        rows.append(
            (layout, indexes, before, after, before / after, factor, seconds, paid)
        )
    heads = (
        *("to layout", "indexes", "before s", "after s", "sum ÷ sum", "factor"),
        *("write and build s", "pays after"),
    )
    note = (
        "The 13 queries; before: the generated files, unpruned; factor: geometric "
        "mean; pays after: so many such queries save the seconds of writing the "
        "layout and building the indexes."
    )
    return Table("From the data as generated to each layout", heads, rows, note)


def losses_table(results: Results) -> Table:
    """Where skipping does not pay."""
    rows = [(loss.where, loss.what) for loss in losses(results)]
    return Table("", ("where", "what happens"), rows)


def shown_cells(results: Results) -> Iterable[CellRecord]:
    """The cells whose funnels are shown."""
    for layout in results.layouts:
        cell = results.cells.get((layout, FULL))
        if cell and cell.figures:
            yield cell


def is_number(column: Sequence[Cell]) -> bool:
    """Whether a column is aligned at its right end."""
    return all(not isinstance(v, str) or _NUMERIC.fullmatch(v) for v in column)
