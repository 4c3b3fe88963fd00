"""``python -m ssb grid``: the arguments of the benchmark grid, and the run."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from ssb import SsbError
from ssb.data.generate import DEFAULT_SEED
from ssb.grid.cells import TIMED, Cells, sets_of
from ssb.grid.index_sets import INDEX_SETS
from ssb.grid.layouts import grid_layouts
from ssb.grid.records import CellRecord, Records
from ssb.grid.setting import begun
from ssb.steps import run_steps

LOOKUPS: Final = 28
"""Look-ups that are drawn by default: four of each form."""


T = TypeVar("T")


def add_grid(commands: argparse._SubParsersAction[Any]) -> None:
    """Add ``grid``."""
    parser = commands.add_parser(
        "grid",
        help="measure every layout with every set of indexes; a second call goes on",
    )
    add = parser.add_argument
    add("--scale", type=float, default=1.0, help="scale factor (default: %(default)s)")
    add("--out", type=Path, required=True, metavar="DIR", help="folder of the data")
    add("--files", type=int, metavar="N", help="files of the data and of the layouts")
    add(
        "--data-seed", type=int, default=DEFAULT_SEED, metavar="N",
        help="of the data (default: %(default)s)",
    )  # fmt: skip
    add(
        "--lookups", type=int, default=LOOKUPS, metavar="N",
        help="look-ups that are drawn from the data (default: %(default)s)",
    )  # fmt: skip
    add(
        "--seed", type=int, default=1, metavar="N",
        help="of the look-ups (default: %(default)s)",
    )  # fmt: skip
    add(
        "--results", type=Path, metavar="DIR",
        help="folder of the results (default: benchmark in the folder of the data)",
    )  # fmt: skip
    add("--layouts", metavar="A,B", help=f"of: {', '.join(grid_layouts())}")
    add("--indexes", metavar="A,B", help=f"of: {', '.join(INDEX_SETS)}")
    add(
        "--every-cell", action="store_true",
        help="all sets of indexes for all layouts, not for two of them alone",
    )  # fmt: skip
    add(
        "--timed", metavar="LAYOUT:INDEXES,…",
        help="the cells whose queries run through Spark; empty for none",
    )  # fmt: skip
    add("--memory", metavar="M", help="heap of Spark (default: by the scale)")
    add(
        "--rounds", type=int, default=3, metavar="N",
        help="timed runs of each query and side (default: %(default)s)",
    )  # fmt: skip
    parser.set_defaults(command=run_command)


def add_report(commands: argparse._SubParsersAction[Any]) -> None:
    """Add ``report``."""
    parser = commands.add_parser(
        "report", help="write report.html, report.json and CSV files of a grid"
    )
    parser.add_argument(
        "--results", type=Path, required=True, metavar="DIR",
        help="folder of the results",
    )  # fmt: skip
    parser.set_defaults(command=run_report)


def run_report(parsed: argparse.Namespace) -> int:
    """Write the report."""
    try:
        from ssb.report.page import write_report  # noqa: PLC0415
    except ImportError as error:
        raise SsbError(
            f"the report needs {error.name}: "
            "install it with pip install 'skipindex[benchmark]'"
        ) from error
    print(write_report(parsed.results))
    return 0


def run_command(parsed: argparse.Namespace) -> int:
    """Run what is missing of the grid; 1 if a plan or an answer is wrong."""
    layouts = _chosen(parsed.layouts, grid_layouts(), "layout")
    index_sets = _chosen(parsed.indexes, INDEX_SETS, "set of indexes")
    timed = _timed(parsed.timed)
    if parsed.rounds < 1:
        raise SsbError(
            f"cannot run queries {parsed.rounds} times: accepted is 1 or more"
        )
    run = begun(
        "grid",
        parsed,
        results=parsed.results,
        data_seed=parsed.data_seed,
        lookups=parsed.lookups,
        seed=parsed.seed,
    )
    cells = Cells(
        lookups=parsed.lookups, seed=parsed.seed, timed=timed, rounds=parsed.rounds
    )
    every = parsed.every_cell or parsed.indexes is not None
    steps = [
        step
        for layout in layouts
        for step in cells.steps(
            layout, [one for one in sets_of(layout, every=every) if one in index_sets]
        )
    ]
    run_steps(run, steps, warm_up=partial(cells.warm_up, run))
    wrong = problems(run.records)
    right = f"all is right; the results are in {run.records.folder}"
    print("\n".join(wrong or [right]))
    return 1 if wrong else 0


def problems(records: Records) -> list[str]:
    """Whatever is wrong, one line each: files that were lost, answers that differ."""
    found = []
    for record in records:
        if isinstance(record, CellRecord):
            cell = f"{record.layout} with {record.indexes}"
            found += [
                f"{cell}: {figures.query} lost {figures.lost} files"
                for figures in record.figures
                if figures.lost
            ]
            found += [
                f"{cell}: {timed.query}: answers differ"
                for timed in record.timed
                if not timed.equal
            ]
    return found


def _chosen(text: str | None, known: Mapping[str, T], what: str) -> list[T]:
    """What a list of names separated by commas names; all where there is no list."""
    names = list(known) if text is None else text.split(",")
    for name in names:
        if name not in known:
            accepted = ", ".join(known)
            raise SsbError(f"no {what} is named {name!r}: accepted is {accepted}")
    return [known[name] for name in names]


def _timed(text: str | None) -> tuple[tuple[str, str], ...]:
    """The cells of ``LAYOUT:INDEXES,…``."""
    if text is None:
        return TIMED
    found = []
    for cell in filter(None, text.split(",")):
        layout, _, indexes = cell.partition(":")
        if layout not in grid_layouts() or indexes not in INDEX_SETS:
            raise SsbError(
                f"no cell is named {cell!r}: accepted is a layout and a set of "
                "indexes, such as hilbert:full"
            )
        found.append((layout, indexes))
    return tuple(found)
