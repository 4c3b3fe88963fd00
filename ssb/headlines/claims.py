"""What the articles claim, what they measured, and what stands here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ssb.grid.index_sets import FULL
from ssb.grid.records import (
    CellRecord,
    Records,
    StepRecord,
    TimedQuery,
    cell_key,
)
from ssb.headlines import skipped, small_files, studies, whole
from ssb.headlines.engines import INDEXED, OWN
from ssb.headlines.skipped import ADDED, ORACLE
from ssb.headlines.small_files import ALL, ALONE, ASKED, SKIPPING, SMALL
from ssb.layouts import ANSWERS
from ssb.report.text import geometric_mean
from ssb.steps import Effort, effort_of
from ssb.workloads.workload import SSB

Rows = Sequence[Mapping[str, Any]]
Times = Mapping[tuple[str, str, str], Mapping[str, float]]
"""Seconds of each whole query, by engine, layout and indexes."""
COMMAND: Final = "python -m ssb headlines --out DIR"


class NotMeasuredError(LookupError):
    """A step that a claim rests on is not done."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The rows of finished steps.

    Args:
        records: of a run.
    """

    records: Records

    @property
    def effort(self) -> Effort:
        """How often the run measured."""
        return effort_of(self.records.setting["scale"])

    def rows(self, study: str, **keys: object) -> Rows:
        """The rows of the steps whose names begin so, with these values.

        Raises:
            NotMeasuredError: there is none.
        """
        found = [
            row
            for record in self.records
            if isinstance(record, StepRecord) and record.step.startswith(study)
            for row in record.rows
            if all(row.get(key) == value for key, value in keys.items())
        ]
        if not found:
            raise NotMeasuredError(study)
        return found

    def one(self, study: str, **keys: object) -> Mapping[str, Any]:
        """The first of them."""
        return self.rows(study, **keys)[0]

    def values(self, study: str) -> Rows:
        """The rows of a study of one parameter, by its value."""
        return sorted(self.rows(study), key=lambda row: float(row["value"]))

    def whole(self, state: str) -> Times:
        """The medians of the ways that answered every whole query.

        Raises:
            NotMeasuredError: no engine was asked.
        """
        ways: dict[tuple[str, str, str], dict[str, float]] = {}
        for row in self.rows(whole.ASK, state=state):
            if "seconds" in row:
                way = (row["engine"], row["layout"], row["indexes"])
                ways.setdefault(way, {})[row["query"]] = float(row["seconds"])
        most = max(map(len, ways.values()), default=0)
        return {way: of for way, of in ways.items() if len(of) == most}

    def cell(self, layout: str, indexes: str) -> CellRecord:
        """A layout with a set of indexes.

        Raises:
            NotMeasuredError: it is not done.
        """
        found = self.records.get(cell_key(layout, indexes))
        if not isinstance(found, CellRecord):
            raise NotMeasuredError(skipped.STUDY)
        return found


@dataclass(frozen=True, slots=True)
class Claim:
    """A headline.

    Args:
        claim: in words.
        theirs: what they report.
        steps: how the names of the steps begin that measure it.
        ours: what stands here.
        test: that shows it instead of steps.
    """

    claim: str
    theirs: str
    steps: str
    ours: Callable[[Measured], str]
    test: str = ""

    def told(self, measured: Measured) -> str:
        """What stands here, or why nothing does."""
        try:
            return self.ours(measured)
        except NotMeasuredError as missing:
            return f"not measured yet: the step {str(missing)!r} is not done"

    @property
    def command(self) -> str:
        """What measures it, or the test that shows it."""
        if self.test:
            return f"`pytest {self.test}`"
        return f'`{COMMAND} --steps "{self.steps}"`'


def percent(part: float) -> str:
    """A part as a percentage.

    >>> percent(0.8127)
    '81 %'
    """
    return f"{100 * part:.0f} %"


def listed(texts: Iterable[str]) -> str:
    """Texts with commas between them."""
    return ", ".join(texts)


def _small(measured: Measured) -> str:
    def seconds(layout: str, side: str, state: str) -> float:
        found = measured.one(
            small_files.STUDY, layout=layout, side=side, state=state, query=ALL
        )
        return float(found["seconds"])

    parts = []
    for state in ("warm", "cold"):
        before = seconds(SMALL, ALONE, state)
        faster = [
            f"{name} {before / seconds(name, ALONE, state):.1f} and "
            f"{before / seconds(name, SKIPPING, state):.1f}"
            for name in small_files.layouts(measured.effort)
            if name != SMALL
        ]
        parts.append(f"{state}: {listed(faster)}")
    return (
        "speed relative to the small files without skipping, for each layout without "
        f"and with skipping: {'; '.join(parts)}"
    )


def _files_of_q3(measured: Measured) -> str:
    parts = []
    for layout in small_files.layouts(measured.effort):
        rows = [
            measured.one(small_files.WRITE, layout=layout, query=query.name)
            for query in ASKED
        ]
        whole = sum(row["files"] for row in rows)
        by_range, by_all = (
            1 - sum(row[key] for row in rows) / whole
            for key in ("by min/max", "by all")
        )
        parts.append(f"{layout} {percent(by_range)} and {percent(by_all)}")
    return f"skipped by min/max, and by all indexes: {listed(parts)}"


def _columns(measured: Measured) -> str:
    rows = measured.values(studies.BY_COLUMNS)
    best = min(rows, key=lambda row: row["kept"])
    kept = listed(percent(row["kept"] / (row["files"] * 13)) for row in rows)
    before = rows[0]["plain s"]
    faster = listed(
        f"{before / row['plain s']:.1f} and {before / row['pruned s']:.1f}"
        for row in rows[1:]
    )
    return (
        f"files read with 0 to {len(rows) - 1} columns: {kept}; fewest with "
        f"{best['value']}; speed relative to none, without and with min/max: {faster}"
    )


def _sizes(measured: Measured) -> str:
    rows = measured.values(studies.BY_SIZE)
    best = min(rows, key=lambda row: row["pruned s"])
    parts = [
        f"{row['value']} MB {row['pruned s'] / best['pruned s']:.1f}" for row in rows
    ]
    return (
        f"seconds of the 13 queries, relative to the best size ({best['value']} MB): "
        f"{listed(parts)}; 1,024 MB are represented by "
        f"{studies.ROWS_OF_LARGEST:,} rows"
    )


def _cubes(measured: Measured) -> str:
    parts = []
    for share in studies.CUBES:
        rows = measured.rows(f"{studies.BY_CUBE}/{share:g}")
        runs, end = rows[:-1], rows[-1]
        rewritten = sum(row["rewritten MB"] for row in runs) / runs[-1]["table MB"]
        parts.append(
            f"{cube_name(share)}: {rewritten:.1f} times the data rewritten in "
            f"{len(runs)} runs, {end['kept']} files read at the end"
        )
    return "; ".join(parts)


def cube_name(share: float) -> str:
    """How a size of cubes is called."""
    return "never full" if share > 1 else f"cubes of {percent(share)} of the data"


def _eighty(measured: Measured) -> str:
    parts = []
    for layout in skipped.layouts(measured.effort):
        by_range, by_all = (
            float(
                measured.one(f"{skipped.STUDY}/{layout}", indexes=indexes, group=SSB)[
                    "skipped"
                ]
            )
            for indexes in ("minmax", ORACLE)
        )
        met = "met" if by_range > 0.8 else "not met"
        parts.append(
            f"{layout} {percent(by_range)} ({met}; {percent(by_all)} possible)"
        )
    return f"by min/max alone, 13 queries: {listed(parts)}"


def _hilbert(measured: Measured) -> str:
    curve = {
        layout: float(
            measured.one(f"{skipped.STUDY}/{layout}", indexes="minmax", group=SSB)[
                "skipped"
            ]
        )
        for layout in ("linear", "zorder", "hilbert")
    }
    return "skipped by min/max, 13 queries: " + listed(
        f"{name} {percent(part)}" for name, part in curve.items()
    )


def _bloom(measured: Measured) -> str:
    def kept(indexes: str, query: str) -> int:
        figures = measured.cell("zorder", indexes).figures
        return next(f.kept for f in figures if f.query == query)

    parts = [
        f"`{query}` {kept('minmax', query)} files by min/max, {kept('bloom', query)} "
        f"with Bloom filters, {kept(FULL, query)} with all indexes"
        for query in ("equal", "range")
    ]
    return "; ".join(parts)


def _bitmaps(measured: Measured) -> str:
    layout, indexes = skipped.TIMED
    few, all_of = (measured.cell(layout, name) for name in ("minmax", indexes))
    before = {f.query: f.kept for f in few.figures}
    less = {f.query: before[f.query] / f.kept for f in all_of.figures if f.kept}
    none = sum(before[f.query] > 0 == f.kept for f in all_of.figures)
    faster = {t.query: gain_of(t) for t in all_of.timed}
    most, least = (of(less.values()) for of in (max, min))
    return (
        f"files: {least:.0f} to {most:.0f} times fewer than by min/max, and none "
        f"at all for {none} queries that no row matches; seconds: "
        f"{min(faster.values()):.1f} to {max(faster.values()):.1f} times as fast as "
        "unpruned"
    )


def gain_of(timed: TimedQuery) -> float:
    """How many times as fast a query is with skipping, by the medians."""
    plain, pruned = (sorted(t)[len(t) // 2] for t in (timed.plain, timed.pruned))
    return plain / pruned


def _warehouse(measured: Measured) -> str:
    """Relative to the engine that has a table of its own."""
    seconds = measured.whole("warm")
    own = next((of for way, of in seconds.items() if way[1] == OWN), None)
    if own is None:
        raise NotMeasuredError(f"{whole.ASK}ClickHouse")
    parts = [
        f"{way[0]} {geometric_mean([of[query] / own[query] for query in own]):.2f}"
        for way, of in seconds.items()
        if way[1:] == (ANSWERS, INDEXED)
    ]
    return (
        "time of a warm query by plans of all indexes over answers put together, "
        f"relative to ClickHouse's own table (geometric mean): {listed(parts)}"
    )


def _added(measured: Measured) -> str:
    parts = []
    for indexes in ("minmax", "bloom", "bitmap", FULL):
        rows = measured.rows(skipped.STUDY, indexes=indexes, group=ADDED)
        parts.append(f"{indexes} {listed(percent(row['skipped']) for row in rows)}")
    layouts = listed(skipped.layouts(measured.effort))
    return f"skipped in {layouts}: {'; '.join(parts)}"


def _example(claim: str, theirs: str, ours: str, test: str) -> Claim:
    """A worked example, which a test shows without any data."""
    return Claim(claim, theirs, "", lambda _: ours, test)


CLAIMS: Final = (
    Claim(
        "Q3.1 to Q3.4: from small files to a layout",
        "Tencent: 10,000 small files over 12 s, compacted 4 to 7 s, Z-order below 1 s: "
        "1.7 to 3 times, and over 12 times, as fast",
        small_files.STUDY,
        _small,
    ),
    Claim(
        "only the curve lets files be skipped",
        "Tencent: before and after compaction all files are read, after Z-order few",
        small_files.WRITE,
        _files_of_q3,
    ),
    Claim(
        "more clustering columns are worse, and better than none",
        "Tencent: in a picture; bilibili: 2 to 4 columns",
        studies.BY_COLUMNS,
        _columns,
    ),
    Claim(
        "the size of files matters little",
        "Tencent: 32 MB to 1 GB, 1 GB is recommended",
        studies.BY_SIZE,
        _sizes,
    ),
    Claim(
        "small cubes skip less, large ones rewrite much",
        "Tencent: 150 GB is recommended",
        studies.BY_CUBE,
        _cubes,
    ),
    Claim(
        "Z-order skips most files",
        "bilibili: more than 80 %, three fields",
        skipped.STUDY,
        _eighty,
    ),
    Claim(
        "the same on look-ups and conditions on two columns",
        "none",
        skipped.STUDY,
        _added,
    ),
    Claim(
        "Hilbert is better than Z-order, and both than a sort",
        "bilibili: without figures; Paimon: to be confirmed",
        skipped.STUDY,
        _hilbert,
    ),
    Claim(
        "Bloom filters help equality and not ranges",
        "bilibili: without figures",
        f"{skipped.STUDY}/zorder",
        _bloom,
    ),
    Claim(
        "bitmaps make queries faster",
        "bilibili: 1 to 10 times as fast, 0 to 400 times fewer files",
        f"{skipped.STUDY}/hilbert",
        _bitmaps,
    ),
    Claim(
        "close to a dedicated warehouse",
        "bilibili: of ClickHouse, without figures",
        whole.STUDY,
        _warehouse,
    ),
    _example(
        "`x = 2 OR y = 2` on a grid of 16 files",
        "Delta: a sort reads 9, Z-order 7",
        "9 and 7",
        "tests/layout/test_curve_layout.py -k check_02",
    ),
    _example(
        "256 values in bit slices",
        "bilibili: 30 bitmaps in base 10, 9 in base 2, and not 256",
        "30 and 9",
        "tests/indexes/kinds/test_bit_sliced.py -k check_34",
    ),
)
"""The headlines in the order of the page."""
