"""The pictures of the report, as SVG.

Colours are those of Okabe and Ito (*Color Universal Design*, 2008), which people who
see colours differently can tell apart; markers differ too, for print.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import matplotlib as mpl
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from ssb.grid.index_sets import CAPPED, FULL, INDEX_SETS, NONE
from ssb.grid.truth import MAP_COLUMNS
from ssb.report.results import Results, Timing, kept, warm_ms

COLOURS: Final = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7"),
    *("#D55E00", "#56B4E9", "#000000", "#8C8C8C"),
)
MARKERS: Final = "osD^vPX*<>"
_BARS: Final[tuple[str, ...]] = ("minmax", "bloom", CAPPED, FULL)


def look_of(indexes: str) -> tuple[str, str]:
    """The colour and the marker of a set of indexes, the same in all pictures."""
    # The sets that are bars come first, so that their colours differ.
    place = list(dict.fromkeys([*_BARS, *INDEX_SETS])).index(indexes)
    return COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]


_STYLE: Final[dict[Any, Any]] = {
    "axes.edgecolor": "#555555",
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "font.size": 9,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "skipindex",
}
_WIDTH: Final = 9.0


@contextmanager
def style() -> Iterator[None]:
    """Draw in the look of the report."""
    with mpl.rc_context(_STYLE):
        yield


def svg(figure: Figure) -> str:
    """A figure as an ``svg`` element, without the head of a file."""
    buffer = io.StringIO()
    # No metadata: they are the same for all, and name addresses.
    metadata = dict.fromkeys(["Creator", "Date", "Format", "Type"])
    figure.savefig(buffer, format="svg", metadata=metadata, bbox_inches="tight")
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def kept_by_layout(results: Results) -> str:
    """Files kept over all queries, for each layout and the main sets of indexes.

    As parts of what no index keeps, so that layouts of other file counts compare.
    """
    with style():
        figure = Figure(figsize=(_WIDTH, 3.4))
        axes = figure.add_subplot()
        names = list(results.layouts)
        sets = [name for name in _BARS if name in results.sets]
        series: dict[str, list[float | None]] = {name: [] for name in sets}
        oracle: list[float] = []
        ideal: list[float] = []
        for name in names:
            layout = results.layouts[name]
            whole = layout.files * len(layout.oracle)
            oracle.append(100 * sum(layout.oracle.values()) / whole)
            ideal.append(100 * results.ideal(name, layout.oracle) / whole)
            for indexes in sets:
                cell = results.cells.get((name, indexes))
                share = 100 * kept(cell) / whole if cell else None
                series[indexes].append(share)
        width = 0.8 / len(sets)
        for i, (indexes, values) in enumerate(series.items()):
            places = [n + (i - (len(sets) - 1) / 2) * width for n in range(len(names))]
            heights = [0.0 if value is None else value for value in values]
            colour, _ = look_of(indexes)
            axes.bar(places, heights, width * 0.92, label=indexes, color=colour)
        for found, label, colour, line in (
            (oracle, "oracle", "#000000", "-"),
            (ideal, "ideal", "#D55E00", ":"),
        ):
            ends = [(n - 0.45, n + 0.45) for n in range(len(names))]
            left, right = zip(*ends, strict=True)
            axes.hlines(found, left, right, colors=colour, ls=line, lw=1.6, label=label)
        axes.set_xticks(range(len(names)), names, rotation=20, ha="right")
        axes.set_ylabel("files kept (% of all)")
        axes.grid(visible=False, axis="x")
        axes.legend(ncols=3, loc="upper right", bbox_to_anchor=(1, 1.22))
        return svg(figure)


def planning_time(results: Results) -> str:
    """Milliseconds of a later plan against the number of files, on two log axes."""
    points: dict[str, list[tuple[float, float]]] = {}
    for (layout, indexes), cell in results.cells.items():
        if indexes != NONE and cell.figures:
            files = results.layouts[layout].files
            points.setdefault(indexes, []).append((files, warm_ms(cell)))
    with style():
        figure = Figure(figsize=(_WIDTH, 3.6))
        axes = figure.add_subplot()
        for indexes in filter(points.__contains__, results.sets):
            found = sorted(points[indexes])
            colour, marker = look_of(indexes)
            axes.plot(
                *zip(*found, strict=True), ls="", label=indexes, ms=5,
                marker=marker, color=colour,
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        ticks = {layout.files for layout in results.layouts.values()}
        axes.set_xticks(_apart(sorted(ticks)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.set_xlabel("files of the table")
        axes.set_ylabel("planning time (ms, median)")
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
        return svg(figure)


def _apart(numbers: Sequence[int]) -> list[int]:
    """Those of sorted numbers whose labels do not touch on a logarithmic axis."""
    found: list[int] = []
    for number in numbers:
        if not found or number >= 1.4 * found[-1]:
            found.append(number)
    return found


def front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no other one is at most as large as in both numbers; sorted.

    >>> front([(1, 5), (2, 6), (3, 2)])
    [(1, 5), (3, 2)]
    """
    found: list[tuple[float, float]] = []
    for point in sorted(points):
        if not found or point[1] < found[-1][1]:
            found.append(point)
    return found


def pareto(results: Results) -> str:
    """Index bytes against files kept, for the four layouts with most sets."""
    sizes = {
        name: sum(bool(cell.figures) for cell in results.cells_of(name))
        for name in results.layouts
    }
    names = [name for name, n in sizes.items() if n]
    names = sorted(names, key=lambda name: -sizes[name])[:4]
    with style():
        rows = -(-len(names) // 2)
        figure = Figure(figsize=(_WIDTH, 3.4 * rows), layout="constrained")
        for place, name in enumerate(names, 1):
            axes = figure.add_subplot(rows, min(2, len(names)), place)
            layout = results.layouts[name]
            cells = [cell for cell in results.cells_of(name) if cell.figures]
            points = [(100 * cell.share, float(kept(cell))) for cell in cells]
            for cell, point in zip(cells, points, strict=True):
                colour, marker = look_of(cell.indexes)
                axes.plot(
                    *point, ls="", marker=marker, ms=6, color=colour,
                    label=cell.indexes,
                )  # fmt: skip
            best = front(points)
            axes.step(*zip(*best, strict=True), where="post", color="#555555", lw=0.8)
            asked = [figures.query for figures in cells[0].figures]
            axes.axhline(
                sum(layout.oracle[query] for query in asked),
                color="#000000", ls=":", lw=1, label="oracle",
            )  # fmt: skip
            axes.set_title(name)
            axes.set_ylim(bottom=0)
            axes.set_xlabel("size of the indexes (% of the data)")
            axes.set_ylabel("files kept, all queries")
            axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        shown: dict[str, Any] = {}
        for axes in figure.axes:
            handles, labels = axes.get_legend_handles_labels()
            shown |= dict(zip(labels, handles, strict=True))
        figure.legend(shown.values(), shown, loc="outside lower center", ncols=5)
        return svg(figure)


def map_of_files(results: Results) -> str:
    """The least and greatest values of two columns in each file, for each layout."""
    names = [name for name, layout in results.layouts.items() if layout.boxes]
    with style():
        rows = -(-len(names) // 4)
        figure = Figure(figsize=(_WIDTH, 2.3 * rows), layout="constrained")
        rgb = to_rgb(COLOURS[0])
        for place, name in enumerate(names, 1):
            axes = figure.add_subplot(rows, 4, place)
            for left, right, low, high in results.layouts[name].boxes:
                axes.add_patch(
                    Rectangle(
                        (left, low), max(right - left, 0.004), max(high - low, 0.004),
                        facecolor=(*rgb, 0.05), edgecolor=(*rgb, 0.6), lw=0.6,
                    )
                )  # fmt: skip
            axes.set_xlim(-0.02, 1.02)
            axes.set_ylim(-0.02, 1.02)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.set_title(name, fontsize=8)
            axes.set_xlabel(f"{MAP_COLUMNS[0]} →", fontsize=7)
            axes.set_ylabel(f"{MAP_COLUMNS[1]} →", fontsize=7)
        return svg(figure)


def times(results: Results) -> str:
    """Seconds of the timed queries, unpruned and pruned, for each timed cell."""
    cells = [cell for cell in results.cells.values() if cell.timed]
    with style():
        figure = Figure(figsize=(_WIDTH, 0.5 + 0.45 * len(cells)))
        axes = figure.add_subplot()
        for i, cell in enumerate(cells):
            both = Timing.of(cell.timed)
            for shift, value, colour in (
                (-0.19, both.plain, COLOURS[7]),
                (0.19, both.pruned, COLOURS[0]),
            ):
                axes.barh(i + shift, value, 0.36, color=colour)
                axes.text(value, i + shift, f" {value:.2f}", va="center", fontsize=8)
        axes.set_yticks(range(len(cells)), [f"{c.layout}, {c.indexes}" for c in cells])
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("seconds, all timed queries (grey: unpruned; blue: pruned)")
        return svg(figure)
