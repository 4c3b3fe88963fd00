"""The pictures of the headlines, in the look of the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any, Final

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from ssb.grid.index_sets import CAPPED
from ssb.headlines import skipped, small_files, studies
from ssb.headlines.claims import Measured, cube_name
from ssb.headlines.small_files import ALL, ALONE, SKIPPING
from ssb.queries import QUERIES
from ssb.report.charts import COLOURS, MARKERS, WIDTH, style, svg
from ssb.workloads.workload import SSB

_WARM_AND_COLD: Final = ("warm", "cold")


def layouts(measured: Measured) -> str:
    """Seconds of Q3.1 to Q3.4 by layout, without and with skipping, warm and cold."""
    with style():
        figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
        for place, state in enumerate(_WARM_AND_COLD, 1):
            axes = figure.add_subplot(1, 2, place)
            names = small_files.layouts(measured.effort)
            for i, side in enumerate((ALONE, SKIPPING)):
                rows = [
                    measured.one(
                        small_files.STUDY,
                        layout=name,
                        side=side,
                        state=state,
                        query=ALL,
                    )
                    for name in names
                ]
                middle = [row["seconds"] for row in rows]
                ends = [
                    [row["seconds"] - row["least"] for row in rows],
                    [row["most"] - row["seconds"] for row in rows],
                ]
                places = [n + 0.4 * (i - 0.5) for n in range(len(names))]
                axes.bar(
                    places, middle, 0.37, yerr=ends, color=COLOURS[i], label=side,
                    error_kw={"lw": 0.8},
                )  # fmt: skip
            axes.set_xticks(range(len(names)), names, rotation=20, ha="right")
            axes.set_title(state)
            axes.grid(visible=False, axis="x")
            axes.set_ylabel("seconds, Q3.1 to Q3.4")
        figure.axes[0].legend()
        return svg(figure)


def fractions(measured: Measured) -> str:
    """The part of the files that each set of indexes skips, by layout."""
    shown = skipped.sets(measured.effort, skipped.TIMED[0])
    sets = [*(name for name in shown if name != CAPPED), skipped.ORACLE]
    layouts = skipped.layouts(measured.effort)
    colours = dict(zip(sets, (*COLOURS[:6], *COLOURS[7:], "#F0E442"), strict=False))
    with style():
        figure = Figure(figsize=(WIDTH, 3.6), layout="constrained")
        for place, group in enumerate((SSB, skipped.ADDED), 1):
            axes = figure.add_subplot(1, 2, place)
            for i, name in enumerate(sets):
                rows = measured.rows(skipped.STUDY, indexes=name, group=group)
                found = {row["layout"]: 100 * row["skipped"] for row in rows}
                places = [
                    n + 0.85 * ((i + 0.5) / len(sets) - 0.5)
                    for n in range(len(layouts))
                ]
                axes.bar(
                    places,
                    [found.get(layout, 0) for layout in layouts],
                    0.8 / len(sets),
                    color=colours.get(name, "#000000"),
                    label=name,
                )
            axes.axhline(80, color="#000000", ls=":", lw=1)
            axes.set_ylim(0, 100)
            axes.set_xticks(range(len(layouts)), layouts, rotation=20, ha="right")
            axes.grid(visible=False, axis="x")
            axes.set_title("the 13 queries" if group == SSB else "the added ones")
            axes.set_ylabel("files skipped (%)")
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5)
        return svg(figure)


def parameters(measured: Measured) -> str:
    """The three studies: seconds above, files or bytes below."""
    columns = measured.values(studies.BY_COLUMNS)
    sizes = measured.values(studies.BY_SIZE)
    with style():
        figure = Figure(figsize=(WIDTH, 5.2), layout="constrained")
        upper = [figure.add_subplot(2, 3, place) for place in (1, 2, 3)]
        lower = [figure.add_subplot(2, 3, place) for place in (4, 5, 6)]
        for column, (rows, axis) in enumerate(
            ((columns, "clustering columns"), (sizes, "size of a file (MB, scaled)"))
        ):
            values = [row["value"] for row in rows]
            for i, (key, label) in enumerate(
                (("plain s", "unpruned"), ("pruned s", "min/max"))
            ):
                upper[column].plot(
                    values, [row[key] for row in rows], marker=MARKERS[i], ms=4,
                    color=COLOURS[7 * (1 - i)], label=label,
                )  # fmt: skip
            for i, (key, label) in enumerate(
                (("kept", "min/max"), ("oracle", "oracle"))
            ):
                part = [100 * row[key] / (row["files"] * len(QUERIES)) for row in rows]
                lower[column].plot(
                    values, part, marker=MARKERS[i], ms=4, color=COLOURS[6 * i],
                    label=label,
                )  # fmt: skip
            upper[column].set_ylabel("seconds, 13 queries")
            lower[column].set_ylabel("files read (%)")
            for axes in (upper[column], lower[column]):
                axes.set_ylim(bottom=0)
                if 0 < 10 * values[0] < values[-1]:
                    axes.set_xscale("log", base=2)
                    axes.xaxis.set_minor_formatter(NullFormatter())
                axes.set_xticks(values, [f"{value:g}" for value in values])
                axes.set_xlabel(axis)
                axes.legend()
        _cubes(measured, upper[2], lower[2])
        return svg(figure)


def _cubes(measured: Measured, upper: Any, lower: Any) -> None:
    for i, share in enumerate(studies.CUBES):
        rows = measured.rows(f"{studies.BY_CUBE}/{share:g}")[:-1]
        runs = [row["run"] for row in rows]
        data = rows[-1]["table MB"]
        rewritten = accumulate(row["rewritten MB"] / data for row in rows)
        upper.plot(runs, list(rewritten), color=COLOURS[i], label=cube_name(share))
        lower.plot(runs, [row["kept"] for row in rows], color=COLOURS[i])
    upper.set_ylabel("bytes rewritten (data: 1)")
    lower.set_ylabel("files read, 13 queries")
    upper.legend()
    for axes in (upper, lower):
        axes.set_ylim(bottom=0)
        axes.set_xlabel("incremental runs")


PICTURES: Final[Mapping[str, tuple[str, Callable[[Measured], str]]]] = {
    "layouts": (
        "Seconds of Q3.1 to Q3.4 by layout, without and with skipping",
        layouts,
    ),
    "skipped": (
        "Files skipped by layout and index, and the 80 % of the claim",
        fractions,
    ),
    "studies": ("Clustering columns, size of files and size of cubes", parameters),
}
"""By the end of their names: what they show, and what draws them."""
