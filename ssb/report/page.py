"""The report: an HTML page that needs no other file; the figures as JSON and CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ssb.report import charts, tables
from ssb.report.others import records_table, sums_table
from ssb.report.results import OTHERS, Results, gains, load
from ssb.report.sentences import gained
from ssb.report.tables import Table
from ssb.workloads.workload import GROUPS

PAGE: Final = "report.html"
_TEMPLATE: Final = "page.html.j2"
_OTHER_TITLES: Final = {
    "peers": "Beside other engines and table formats",
    "peer_builds": "What other engines and table formats build",
    "latency": "Behind a store with latency",
}
_LONG: Final = 40
"""Rows from which on a table is folded."""


@dataclass(frozen=True, slots=True)
class Part:
    """A section of the page.

    Args:
        anchor: of the section.
        title: above it.
        text: below the title.
        pictures: SVG elements, each with its caption.
        tables: that stand open.
        folded: tables that the reader opens; print shows them too.
    """

    anchor: str
    title: str
    text: str = ""
    pictures: Sequence[tuple[str, str]] = ()
    tables: Sequence[Table] = ()
    folded: Sequence[Table] = ()


def write_report(folder: Path) -> Path:
    """Write the page, ``report.json`` and the CSV files beside the results.

    Args:
        folder: of the results.

    Returns:
        The page.

    Raises:
        SsbError: there are no results.
    """
    results = load(folder)
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.do"],
    )
    environment.filters["shown"] = tables.shown
    environment.globals["is_number"] = tables.is_number
    found = list(parts(results))
    page = environment.get_template(_TEMPLATE).render(
        run=results.run, gained=gained(results), parts=found
    )
    path = folder / PAGE
    path.write_text(page, encoding="utf-8")
    _write_json(results, folder / "report.json")
    for part in found:
        for i, table in enumerate((*part.tables, *part.folded)):
            _write_csv(table, folder / "csv" / f"{part.anchor}-{i:02}.csv")
    return path


def parts(results: Results) -> Iterator[Part]:
    """The sections of the page, in order."""
    timed = [cell for cell in results.cells.values() if cell.timed]
    yield Part(
        "files",
        "Files kept, against oracle and ideal",
        "A query keeps the files that its plan reads. The oracle are the files that "
        "hold a matching row; no plan can be right with fewer. The ideal is the number "
        "of files that the matching rows would fill.",
        [(charts.kept_by_layout(results), "Files kept over all queries.")],
        [
            tables.kept_table(results),
            *(tables.kept_table(results, group) for group in GROUPS),
        ],
        [tables.query_table(results, name) for name in results.layouts],
    )
    if timed:
        yield Part(
            "spark",
            "Queries through Spark",
            "Each query runs without and with skipping in turn, in one session. Spark "
            "prunes row groups by the footers of files in both.",
            [(charts.times(results), "Seconds of all timed queries.")],
            [
                tables.timing_table(results),
                *([tables.gains_table(results)] if gains(results) else []),
            ],
            [tables.timed_queries_table(cell) for cell in timed],
        )
    yield Part(
        "losses",
        "Where skipping does not pay",
        tables=[tables.losses_table(results)],
    )
    yield Part(
        "cost",
        "What layouts and indexes cost",
        pictures=[
            (
                charts.pareto(results),
                (
                    "Size of the indexes against files kept; the line joins the sets "
                    "that no other set beats in both."
                ),
            )
        ],
        tables=[tables.layouts_table(results), tables.cost_table(results)],
    )
    yield Part(
        "planning",
        "Planning time",
        pictures=[
            (
                charts.planning_time(results),
                "Planning time against the number of files, one mark for each cell.",
            )
        ],
        folded=[tables.planning_table(results)],
    )
    yield Part(
        "funnel",
        "Funnel of each query",
        "The files that are left after each stage of a plan; a dash is a stage that "
        "the plan has not.",
        folded=[
            tables.funnel_table(results, cell) for cell in tables.shown_cells(results)
        ],
    )
    if any(layout.boxes for layout in results.layouts.values()):
        yield Part(
            "map",
            "Map of the files",
            "Each rectangle is a file: its least and greatest values of two clustering "
            "columns, from the first to the last value of the table. Where it is "
            "darker, more files overlap, and fewer can be skipped.",
            [(charts.map_of_files(results), "Files over two clustering columns.")],
        )
    for name in OTHERS:
        if results.others[name]:
            title = _OTHER_TITLES[name]
            table = records_table("Every record", results.others[name])
            sums = sums_table(results.others[name])
            is_long = len(table.rows) > _LONG
            yield Part(
                name,
                title,
                tables=[one for one in (sums, None if is_long else table) if one],
                folded=[table] if is_long else (),
            )


def _write_json(results: Results, path: Path) -> None:
    stored: dict[str, Any] = {
        "run": results.run,
        "layouts": [asdict(record) for record in results.layouts.values()],
        "cells": [asdict(record) for record in results.cells.values()],
        **results.others,
    }
    path.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


def _write_csv(table: Table, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table.heads)
        writer.writerows(table.rows)
