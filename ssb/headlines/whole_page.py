"""What the page says of whole queries: layout and skipping in columns of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from matplotlib.figure import Figure

from ssb.headlines import whole
from ssb.headlines.claims import Measured, NotMeasuredError, Times, listed
from ssb.headlines.engines import ALL_FILES, INDEXED, OWN, RANGES
from ssb.layouts import UNORDERED
from ssb.report.charts import COLOURS, WIDTH, style, svg
from ssb.report.markdown import Cell, table
from ssb.report.text import geometric_mean

INDEXES: Final = (ALL_FILES, RANGES, INDEXED)


def gain(
    before: Mapping[str, float] | None, after: Mapping[str, float] | None
) -> float | None:
    """How many times as fast, in the geometric mean of the queries of both."""
    if not before or not after:
        return None
    return geometric_mean([before[q] / after[q] for q in after])


def lines(measured: Measured) -> Iterator[str]:
    """The lines below the picture.

    Raises:
        NotMeasuredError: no engine was asked.
    """
    warm, cold = (measured.whole(state) for state in ("warm", "cold"))
    yield from table(
        (
            *("engine", "layout", "all files", "min/max", "all indexes"),
            *("layout alone", "skipping alone", "both"),
            *("cold: all files", "cold: all indexes", "cold: both"),
        ),
        list(_gains(warm, cold)),
    )
    yield ""
    yield (
        "Seconds of the 13 queries, planning included: sums of the medians of "
        f"the warm and of the cold runs, {measured.effort.warm} and "
        f"{measured.effort.cold} of each query; before a cold run no byte of the files "
        "is in memory.  The ways to ask take turns.  "
        f"*Layout alone* is the {UNORDERED} table relative to this layout, by all "
        "files; *skipping alone* is all files relative to all indexes, in this layout; "
        f"*both* is from all files of the {UNORDERED} table to this layout by all "
        "indexes: geometric means of the queries.  DuckDB and Polars are given the "
        "rows of a plan, by `plan.to_duckdb(columns=…)` and `to_polars(columns=…)`."
    )
    yield from ("", *_own_tables(measured), f"{_same(measured)}  {_worst(warm)}", "")
    yield from table(
        (
            *("layout", "files", "MB", "s to write"),
            *("files read by min/max", "s to build", "MB of min/max"),
            *("files read by all indexes", "s to build", "MB of indexes"),
        ),
        list(_costs(measured)),
    )
    yield ""
    yield (
        "Files read are sums over the 13 queries.  All indexes are exact: where their "
        "rows are probed, no plan of whole files reads fewer.  Seconds to write are of "
        "the run that wrote the layout, which may have been an earlier one, beside "
        "other work.  Warm milliseconds of each query in Spark:"
    )
    yield ""
    ways = [
        (layout, indexes)
        for layout in whole.layouts(measured.effort)
        for indexes in (ALL_FILES, INDEXED)
        if ("Spark", layout, indexes) in warm
    ]
    queries = list(warm["Spark", *ways[0]]) if ways else []
    yield from table(
        ("query", *(f"{layout}, {indexes}" for layout, indexes in ways)),
        [(q, *(round(1e3 * warm["Spark", *w][q]) for w in ways)) for q in queries],
    )


def _gains(warm: Times, cold: Times) -> Iterator[Sequence[Cell]]:
    for engine, layout in dict.fromkeys(way[:2] for way in warm):
        if layout == OWN:
            (sums,) = (sum(of.values()) for way, of in warm.items() if way[1] == OWN)
            (first,) = (sum(of.values()) for way, of in cold.items() if way[1] == OWN)
            own = (None, None, sums, None, None, None)
            yield (engine, layout, *own, None, first, None)
            continue
        base = (engine, UNORDERED, ALL_FILES)
        plain, indexed = (engine, layout, ALL_FILES), (engine, layout, INDEXED)
        cells: list[Cell] = [
            sum(warm[engine, layout, one].values())
            if (engine, layout, one) in warm
            else None
            for one in INDEXES
        ]
        cells += [
            gain(warm.get(base), warm.get(plain)),
            gain(warm.get(plain), warm.get(indexed)),
            gain(warm.get(base), warm.get(indexed)),
        ]
        cells += [
            sum(cold[way].values()) if way in cold else None for way in (plain, indexed)
        ]
        yield (engine, layout, *cells, gain(cold.get(base), cold.get(indexed)))


def _own_tables(measured: Measured) -> Iterator[str]:
    rows = measured.rows(whole.ASK)
    for row in {r["engine"]: r for r in rows if "load s" in r}.values():
        yield (
            f"{row['engine']} reads a table of its own, in the order of lo_orderdate, "
            "with the columns that the queries name and skip indexes minmax and "
            f"bloom_filter: {row['load s']:,.0f} s to load, {row['MB']:,.0f} MB."
        )
        yield ""
    notes = {f"{r['engine']}: {r['note']}" for r in rows if "note" in r}
    if notes:
        yield from (*(f"- {note}" for note in sorted(notes)), "")


def _same(measured: Measured) -> str:
    rows = [row for row in measured.rows(whole.ASK) if "answer" in row]
    if differ := whole.differing(rows):
        return f"**Answers differ: {listed(differ)}.**"
    return f"For each query all answers are the same; {len(rows)} were compared."


def _worst(warm: Times) -> str:
    """By engine, the query that skipping helps least."""
    worst: dict[str, tuple[float, str]] = {}
    for (engine, layout, indexes), of in warm.items():
        plain = warm.get((engine, layout, ALL_FILES))
        if indexes == INDEXED and plain:
            for query, seconds in of.items():
                one = (seconds / plain[query], f"{query}, {layout}")
                worst[engine] = max(one, worst.get(engine, one))
    parts = listed(f"{e} {n:.2f} ({where})" for e, (n, where) in worst.items())
    return f"All indexes relative to all files of a layout, at worst: {parts}."


def _costs(measured: Measured) -> Iterator[Sequence[Cell]]:
    for layout in whole.layouts(measured.effort):
        row = measured.one(whole.WRITE, layout=layout)
        yield (
            layout, row["files"], row["MB"], row["write s"],
            *(row[f"{one} {what}"] for one in (RANGES, INDEXED)
              for what in ("files", "s", "MB")),
        )  # fmt: skip


def picture(measured: Measured) -> str:
    """Seconds of the 13 queries by layout and by what chooses the files.

    Raises:
        NotMeasuredError: no engine was asked over the files.
    """
    warm = measured.whole("warm")
    engines = [e for e in dict.fromkeys(way[0] for way in warm)
               if (e, UNORDERED, ALL_FILES) in warm]  # fmt: skip
    if not engines:
        raise NotMeasuredError(whole.ASK)
    layouts = whole.layouts(measured.effort)
    with style():
        figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
        for place, engine in enumerate(engines, 1):
            axes = figure.add_subplot(1, len(engines), place)
            for i, indexes in enumerate(INDEXES):
                places = [n + 0.28 * (i - 1) for n in range(len(layouts))]
                heights = [
                    sum(warm.get((engine, layout, indexes), {}).values())
                    for layout in layouts
                ]
                axes.bar(places, heights, 0.26, color=COLOURS[i], label=indexes)
                for at, height in zip(places, heights, strict=True):
                    axes.text(at, height, f"{height:.1f}", ha="center", va="bottom",
                              fontsize=6)  # fmt: skip
            axes.set_xticks(range(len(layouts)), layouts, rotation=20, ha="right")
            axes.set_title(engine)
            axes.grid(visible=False, axis="x")
        figure.axes[0].set_ylabel("seconds, the 13 queries")
        figure.axes[0].legend()
        return svg(figure)
