"""The page of the headlines: claims, pictures and tables, between two marks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ssb import SsbError
from ssb.grid.records import Records, StepRecord
from ssb.grid.setting import RUN
from ssb.headlines import skipped, small_files, studies, warehouse
from ssb.headlines.claims import CLAIMS, Measured, NotMeasuredError, cube_name, percent
from ssb.headlines.pictures import PICTURES
from ssb.headlines.small_files import ALL, ALONE, ASKED, SKIPPING
from ssb.report.tables import Cell, shown
from ssb.steps import QUIET
from ssb.workloads.workload import SSB

BEGIN: Final = "<!-- headlines: written by python -m ssb headlines --page -->"
END: Final = "<!-- end of headlines -->"
PAGE: Final = "headlines.md"
SIZE_OF: Final = {ALONE: "data", SKIPPING: "index"}
TIME_OF: Final = {ALONE: "write", SKIPPING: "index"}
"""What the costs of a layout begin with, by side."""

Rows = Sequence[Mapping[str, Any]]


def write_page(records: Records, folder: Path, page: Path | None) -> Path:
    """Write what was measured as a page with pictures, or into a page of the docs.

    Args:
        records: of the run.
        folder: of the results.
        page: that has both marks; None is a page of its own in the folder.

    Returns:
        The page.

    Raises:
        SsbError: the page is not there, or lacks a mark.
    """
    path = folder / PAGE if page is None else page
    text = f"{BEGIN}\n{END}\n"
    if page is not None:
        try:
            text = page.read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise SsbError(
                f"no page {str(page)!r}: accepted is a page that has {BEGIN!r} "
                f"and {END!r}"
            ) from error
    run = json.loads((folder / RUN).read_text(encoding="utf-8"))
    measured = Measured(records)
    text = between(text, "\n".join(block(run, measured)), path)
    for name, (_, draw) in PICTURES.items():
        try:
            drawn = draw(measured)
        except NotMeasuredError:
            continue
        picture_of(path, name).write_text(f"{drawn}\n", encoding="utf-8")
    path.write_text(text, encoding="utf-8")
    return path


def picture_of(page: Path, name: str) -> Path:
    """The picture of a name beside a page."""
    return page.with_name(f"headlines-{name}.svg")


def between(text: str, block: str, path: Path) -> str:
    r"""A text with another block between its marks.

    >>> print(between(f"a\n{BEGIN}\nold\n{END}\nb", "new", Path("page.md")))
    a
    <!-- headlines: written by python -m ssb headlines --page -->
    new
    <!-- end of headlines -->
    b

    Raises:
        SsbError: a mark is missing.
    """
    before, begin, rest = text.partition(f"{BEGIN}\n")
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SsbError(
            f"{str(path)!r} lacks a mark: accepted is a page that has {BEGIN!r} "
            f"and {END!r}, each in a line of its own"
        )
    return f"{before}{BEGIN}\n{block}\n{END}{after}"


def block(run: Mapping[str, Any], measured: Measured) -> Iterator[str]:
    """The lines between the marks."""
    yield from table(
        ("claim", "in the articles", "measured", "command"),
        [(c.claim, c.theirs, c.told(measured), c.command) for c in CLAIMS],
    )
    yield ""
    yield from setting_lines(run, measured.records)
    for name, (what, draw) in PICTURES.items():
        try:
            draw(measured)
        except NotMeasuredError:
            continue
        yield from ("", f"![{what}]({picture_of(Path(PAGE), name).name})")
    for title, lines in (
        ("Small files and layouts", _small_files),
        ("Files skipped", _skipped),
        ("Beside a warehouse", _warehouse),
        ("One parameter at a time", _studies),
    ):
        try:
            found = list(lines(measured))
        except NotMeasuredError as missing:
            found = [f"Not measured yet: the step {str(missing)!r} is not done."]
        yield from ("", f"### {title}", "", *found)


def setting_lines(run: Mapping[str, Any], records: Records) -> Iterator[str]:
    """The machine, the versions, the date and the commit, and what was not quiet."""
    done = [record for record in records if isinstance(record, StepRecord)]
    setting, machine = run["setting"], run["machine"]
    versions = listed_versions(run["versions"])
    dates = sorted({record.date for record in done})
    commits = listed_of(sorted({record.commit for record in done}))
    yield (
        f"Scale {setting['scale']:g}, {machine['cores']} processors "
        f"({machine['processor']}), {machine['memory (GiB)']:g} GiB, "
        f"{machine['system']}; {versions}; {' to '.join(dates[:1] + dates[1:][-1:])}, "
        f"commit {commits}; {len(done)} steps in "
        f"{sum(record.seconds for record in done) / 60:.0f} minutes."
    )
    noisy = [r.busy for r in done if r.busy is not None and r.busy > QUIET]
    if noisy:
        yield (
            f"{len(noisy)} steps ran beside other work, which took up to "
            f"{percent(max(noisy))} of the processors.  Compare figures within one "
            "step; between steps, only the order of magnitude."
        )


def listed_versions(versions: Mapping[str, str]) -> str:
    """The versions that matter to a reader."""
    names = ("skipindex", "python", "java", "pyspark", "pyarrow")
    return listed_of(f"{name} {versions[name]}" for name in names if name in versions)


def listed_of(texts: Any) -> str:
    """Texts with commas between them."""
    return ", ".join(texts)


def table(heads: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[str]:
    """A table of Markdown; columns of numbers are set to the right."""
    cells = [[shown(cell).replace("|", "\\|") for cell in row] for row in rows]
    numeric = [
        all(isinstance(row[i], int | float | None) for row in rows)
        for i in range(len(heads))
    ]
    return [
        f"| {' | '.join(heads)} |",
        f"|{'|'.join('--:' if right else '---' for right in numeric)}|",
        *(f"| {' | '.join(row)} |" for row in cells),
    ]


def _small_files(measured: Measured) -> Iterator[str]:
    study = small_files.STUDY
    rows: list[Sequence[Cell]] = []
    for layout in small_files.LAYOUTS:
        cost = measured.one(small_files.WRITE, layout=layout, query=ALL)
        kept = [
            measured.one(small_files.WRITE, layout=layout, query=q.name) for q in ASKED
        ]
        for side in (ALONE, SKIPPING):
            warm = measured.one(
                study, layout=layout, state="warm", side=side, query=ALL
            )
            cold = measured.one(
                study, layout=layout, state="cold", side=side, query=ALL
            )
            groups = sum(row[f"row groups, {side}"] for row in kept)
            read = sum(row["files" if side == ALONE else "by all"] for row in kept)
            rows.append((
                layout, side, cost["files"], cost[f"{SIZE_OF[side]} MB"], read,
                warm["MB read"], groups, _spread(warm), _spread(cold),
                cost[f"{TIME_OF[side]} s"],
            ))  # fmt: skip
    by = listed_of(f"`{name}`" for name in small_files.BY)
    small = measured.one(small_files.WRITE, layout=small_files.SMALL, query=ALL)
    wanted = (
        ""
        if small["files"] > 0.9 * small_files.FILES
        else f", and not {small_files.FILES:,}: a small file has at least "
        f"{small_files.LEAST_ROWS} rows here"
    )
    yield (
        f"The flat table of lineorder has {small['files']:,} files{wanted}.  "
        f"`optimize` writes the other layouts: small files joined, curves by {by}, and "
        "a layout for the four queries.  Files, bytes and row groups are sums over "
        "Q3.1 to Q3.4; the footers' minimum and maximum exclude the other row groups.  "
        f"Seconds are the median (least to greatest) of {measured.effort.small} runs "
        "of the four queries.  A cold run has no byte of the table in memory, and "
        "includes opening it, in a running JVM.  MB and write seconds are those of the "
        "data files (layout alone) or of the indexes (with skipping)."
    )
    yield ""
    yield from table(
        ("layout", "", "files", "MB", "files read", "MB read", "row groups", "warm s",
         "cold s", "to write s"),
        rows,
    )  # fmt: skip


def _spread(row: Mapping[str, Any]) -> str:
    return f"{row['seconds']:.2f} ({row['least']:.2f} to {row['most']:.2f})"


def _skipped(measured: Measured) -> Iterator[str]:
    for group, title in ((SSB, "queries of SSB"), (skipped.ADDED, "added queries")):
        rows: list[Sequence[Cell]] = []
        for name in (*skipped.SETS, skipped.ORACLE):
            found = {
                row["layout"]: row
                for row in measured.rows(skipped.STUDY, indexes=name, group=group)
            }
            rows.append((
                name,
                *(
                    f"{percent(found[layout]['skipped'])} "
                    f"({found[layout]['queries above 80 %']})"
                    if layout in found
                    else None
                    for layout in skipped.LAYOUTS
                ),
            ))  # fmt: skip
        n = measured.one(skipped.STUDY, group=group)["queries"]
        lost = sum(
            row.get("lost") or 0 for row in measured.rows(skipped.STUDY, group=group)
        )
        yield (
            f"Files skipped over {n} {title}, and in brackets the queries that skip "
            f"more than 80 %.  Files with a match that were skipped: {lost}."
        )
        yield ""
        yield from table((title, *skipped.LAYOUTS), rows)
        yield ""
    yield from why_eighty(measured)


def why_eighty(measured: Measured) -> Iterator[str]:
    """Where the claim of 80 % holds, where it does not, and why."""
    by = {
        layout: [
            measured.one(f"{skipped.STUDY}/{layout}", indexes=indexes, group=SSB)
            for indexes in ("minmax", skipped.ORACLE)
        ]
        for layout in skipped.LAYOUTS
    }
    holds = [name for name, (few, _) in by.items() if few["skipped"] > 0.8]
    cannot = [name for name, (_, most) in by.items() if most["skipped"] <= 0.8]
    could = [name for name in by if name not in holds and name not in cannot]
    if holds:
        yield f"The 80 % are reached by {listed_of(holds)}."
    if could:
        yield (
            f"Only row-level indexes reach them for {listed_of(could)}: ranges of two "
            "or more columns overlap in files that hold no matching row."
        )
    if cannot:
        yield (
            f"No index reaches them for {listed_of(cannot)}: too many files hold a "
            "matching row."
        )


def _warehouse(measured: Measured) -> Iterator[str]:
    study = warehouse.STUDY
    loads = measured.rows(study, query=warehouse.LOAD)
    queries = [
        row["query"]
        for row in measured.rows(study, state="warm", engine="Spark under enable")
    ]
    rows: list[Sequence[Cell]] = []
    for load in loads:
        sums: list[Cell] = []
        for state in ("warm", "cold"):
            found = [
                r
                for r in measured.rows(study, state=state)
                if r["engine"] == load["engine"]
            ]
            total = sum(row["seconds"] for row in found)
            text = f"{total:.2f}" + ("" if len(found) == len(queries) else " *")
            sums.append(text if found else None)
        same = [r["same"] for r in measured.rows(study) if r["engine"] == load["engine"]
                and "same" in r]  # fmt: skip
        rows.append((
            load["engine"], load.get("version"), load.get("load s"), load.get("MB"),
            *sums, f"{sum(same)} of {len(same)}" if same else None,
            load.get("note", ""),
        ))  # fmt: skip
    yield (
        f"Sums over the 13 queries of the medians of {measured.effort.warm} warm and "
        f"{measured.effort.cold} cold runs; engines run alternately.  Planning is "
        "included.  A sum with a star is without queries at which the engine failed."
    )
    yield ""
    yield from table(
        (
            "engine",
            "version",
            "load s",
            "MB on disk",
            "warm s",
            "cold s",
            "same answers",
            "",
        ),
        rows,
    )
    yield ""
    engines = [load["engine"] for load in loads if load.get("version")]
    yield "Warm milliseconds of each query:"
    yield ""
    times = {
        (r["engine"], r["query"]): 1e3 * r["seconds"]
        for r in measured.rows(study, state="warm")
    }
    yield from table(
        ("query", *engines),
        [
            (
                query,
                *(
                    None if (e, query) not in times else round(times[e, query])
                    for e in engines
                ),
            )
            for query in queries
        ],
    )
    failed = [
        f"{row['engine']}, {row['query']}: {row['note']}"
        for row in measured.rows(study)
        if re.match("failed", str(row.get("note", "")))
    ]
    if failed:
        yield from ("", *(f"- {line}" for line in failed))


def _studies(measured: Measured) -> Iterator[str]:
    heads = ("files", "files read", "oracle", "unpruned s", "with min/max s")
    keys = ("files", "kept", "oracle", "plain s", "pruned s")

    def lines(study: str, head: str, values: Rows) -> Iterator[str]:
        yield from table(
            (head, *heads),
            [(_label(study, row), *(row[key] for key in keys)) for row in values],
        )

    yield (
        "Columns of the 13 queries along a Z-order curve.  Files are sums over the 13 "
        f"queries; seconds are medians of {measured.effort.study} runs."
    )
    yield ""
    yield from lines(
        studies.BY_COLUMNS, "clustered by", measured.values(studies.BY_COLUMNS)
    )
    yield ""
    yield (
        f"{studies.ROWS_OF_LARGEST:,} rows represent a file of {studies.SIZES[-1]:,} "
        "MB in the articles; smaller files have fewer rows in proportion."
    )
    yield ""
    yield from lines(studies.BY_SIZE, "MB, scaled", measured.values(studies.BY_SIZE))
    yield ""
    yield (
        "Half of the rows are written, and the others appended in "
        f"{measured.effort.appends} parts, with an incremental `optimize` after each.  "
        "*Mean*, *most* and *all* are the bytes that a run rewrote on average, at "
        "most, and in all, relative to the data at the end."
    )
    yield ""
    rows: list[Sequence[Cell]] = []
    for share in studies.CUBES:
        *runs, end = measured.rows(f"{studies.BY_CUBE}/{share:g}")
        data = runs[-1]["table MB"]
        bytes_of = [row["rewritten MB"] / data for row in runs]
        rows.append((
            cube_name(share), sum(bytes_of) / len(bytes_of), max(bytes_of),
            sum(bytes_of), *(end[key] for key in keys),
        ))  # fmt: skip
    yield from table(("cubes", "mean", "most", "all", *heads), rows)


def _label(study: str, row: Mapping[str, Any]) -> str:
    if study == studies.BY_COLUMNS:
        return str(row["label"])
    return f"{row['value']:,}: {row['label']}"
