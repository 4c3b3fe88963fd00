"""``python -m ssb headlines``: the arguments, and the run."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from ssb import SsbError
from ssb.files import data_files
from ssb.grid.cells import FLAT
from ssb.grid.records import CellRecord, Records, StepRecord, Value
from ssb.grid.setting import begun
from ssb.headlines import skipped, small_files, star, store, studies, whole
from ssb.queries import QUERIES
from ssb.steps import Context, Effort, Step, effort_of, run_steps

LOOKUPS: Final = 28
"""Look-ups that are drawn from the data."""
WARM_UP_FILES: Final = 4
WARM_UP_ROUNDS: Final = 8


def add_headlines(commands: argparse._SubParsersAction[Any]) -> None:
    """Add ``headlines``."""
    parser = commands.add_parser(
        "headlines",
        help="measure the headline results of the articles; a second call goes on",
    )
    add = parser.add_argument
    add("--scale", type=float, default=1.0, help="scale factor (default: %(default)s)")
    add("--out", type=Path, required=True, metavar="DIR", help="folder of the data")
    add(
        "--files", type=int, metavar="N",
        help="files of the data and of most layouts (default: by the scale)",
    )  # fmt: skip
    add("--memory", metavar="M", help="heap of Spark (default: by the scale)")
    add(
        "--steps", metavar="A,B",
        help="the steps whose names begin so (default: all, fewer below scale 1); "
        f"the first parts of names are: {', '.join(kinds_of(all_steps()))}",
    )  # fmt: skip
    add(
        "--page", type=Path, metavar="FILE",
        help="a page with marks, which the results are written into with its pictures "
        "(default: headlines.md in the folder of the results)",
    )  # fmt: skip
    parser.set_defaults(command=run_command)


def all_steps() -> list[Step]:
    """The steps in their order."""
    return [
        *whole.steps(),
        *star.steps(),
        *store.steps(),
        *small_files.steps(),
        *skipped.steps(LOOKUPS),
        *studies.steps(),
    ]


def kinds_of(steps: Sequence[Step]) -> list[str]:
    """The first parts of their names."""
    return list(dict.fromkeys(step.name.partition("/")[0] for step in steps))


def chosen(text: str | None, effort: Effort) -> list[Step]:
    """The steps whose names begin with one of some texts between commas.

    Without a text they are those of an effort.

    Raises:
        SsbError: no name begins so.
    """
    steps = all_steps()
    if text is None:
        return [step for step in steps if effort.has(step.name)]
    beginnings = text.split(",")
    for beginning in beginnings:
        if not any(step.name.startswith(beginning) for step in steps):
            accepted = ", ".join(kinds_of(steps))
            raise SsbError(
                f"no step is named {beginning!r}: accepted is how a name begins, "
                f"of {accepted}"
            )
    return [step for step in steps if step.name.startswith(tuple(beginnings))]


def warm_up(context: Context) -> None:
    """Let the JVM compile what queries run, at the expense of no step."""
    context.log("warming up")
    files = data_files(context.dataset.flat)[:WARM_UP_FILES]
    rows = context.spark.read.parquet(*map(str, files))
    rows.createOrReplaceTempView(FLAT)
    for _ in range(WARM_UP_ROUNDS):
        for query in QUERIES:
            context.spark.sql(query.sql(FLAT)).collect()


def run_command(parsed: argparse.Namespace) -> int:
    """Run the steps that are missing; 1 if a plan or an answer is wrong."""
    effort = effort_of(parsed.scale)
    steps = chosen(parsed.steps, effort)
    context = begun(parsed, files=effort.files, lookups=LOOKUPS, seed=1)
    if not any(context.records):  # what another version of the library wrote
        shutil.rmtree(context.work, ignore_errors=True)
    every = all_steps() if parsed.steps else steps
    run_steps(context, every, chosen=steps, warm_up=partial(warm_up, context))
    try:
        from ssb.headlines.page import write_page  # noqa: PLC0415
    except ImportError as error:
        raise SsbError(
            f"the page needs {error.name}: "
            "install it with pip install 'skipindex[benchmark]'"
        ) from error
    page = write_page(context.records, context.records.folder, parsed.page)
    wrong = problems(context.records)
    print("\n".join([*wrong, f"the results are in {page}"]))
    return 1 if wrong else 0


def problems(records: Records) -> list[str]:
    """Whatever is wrong, one line each: files that were lost, answers that differ."""
    wrong = []
    rows: list[Mapping[str, Value]] = []
    for record in records:
        if isinstance(record, CellRecord):
            cell = f"{record.layout} with {record.indexes}"
            wrong += [
                f"{cell}: {figures.query} lost {figures.lost} files"
                for figures in record.figures
                if figures.lost
            ]
            wrong += [
                f"{cell}: {timed.query}: answers differ"
                for timed in record.timed
                if not timed.equal
            ]
        if isinstance(record, StepRecord):
            rows += record.rows
            wrong += [
                f"{record.step}: answers differ: {dict(row)}"
                for row in record.rows
                if row.get("same") == 0
            ]
    differ = whole.differing(rows)
    return wrong + [f"{whole.STUDY}: {query}: answers differ" for query in differ]
