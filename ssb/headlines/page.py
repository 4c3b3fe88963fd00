"""The page: what was measured of whole queries, and of the claims, between marks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ssb import SsbError
from ssb.grid.records import Records, StepRecord
from ssb.grid.setting import RUN
from ssb.headlines import skipped, small_files, star, store, studies, whole, whole_page
from ssb.headlines.claims import (
    CLAIMS,
    Measured,
    NotMeasuredError,
    Rows,
    cube_name,
    listed,
    percent,
)
from ssb.headlines.pictures import PICTURES
from ssb.headlines.small_files import ALL, ALONE, ASKED, SKIPPING
from ssb.report.markdown import Cell, table
from ssb.steps import QUIET
from ssb.workloads.workload import SSB

PAGE: Final = "headlines.md"
_CLAIMS: Final = "claims"
COSTS_OF: Final = "hilbert"
SIZE_OF: Final = {ALONE: "data", SKIPPING: "index"}
TIME_OF: Final = {ALONE: "write", SKIPPING: "index"}
"""What the costs of a layout begin with, by side."""


@dataclass(frozen=True, slots=True)
class Block:
    """A part of the page that a command writes.

    Args:
        name: of it, in its marks; the steps whose names begin so belong to it, or
            those of no other block.
        pictures: by name, what they show and what draws them.
        lines: below the pictures.
    """

    name: str
    pictures: Mapping[str, tuple[str, Callable[[Measured], str]]]
    lines: Callable[[Measured], Iterator[str]]

    def is_own(self, record: StepRecord) -> bool:
        """Whether a step belongs to it."""
        own = [one for one in BLOCKS if record.step.startswith(one.name)]
        return self in own if own else self.name == _CLAIMS

    def marks(self, scale: float) -> tuple[str, str]:
        """The lines before and after it."""
        name = f"{self.name}, scale {scale:g}"
        begin = f"<!-- {name}: written by python -m ssb headlines --page -->"
        return begin, f"<!-- end of {name} -->"


def write_page(records: Records, folder: Path, page: Path | None) -> Path:
    """Write what was measured as a page with pictures, or into a page of the docs.

    Args:
        records: of the run.
        folder: of the results.
        page: that has the marks of a block; None is a page of its own in the folder.

    Returns:
        The page.

    Raises:
        SsbError: the page is not there, or lacks the marks of each measured block.
    """
    path = folder / PAGE if page is None else page
    scale = records.setting["scale"]
    done = [record for record in records if isinstance(record, StepRecord)]
    blocks = [block for block in BLOCKS if any(map(block.is_own, done))]
    text = "\n\n".join("\n".join(block.marks(scale)) for block in blocks) + "\n"
    if page is not None:
        try:
            text = page.read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise SsbError(
                f"no page {str(page)!r}: accepted is a page that has the marks of "
                f"{listed(block.name for block in blocks)}"
            ) from error
    run = json.loads((folder / RUN).read_text(encoding="utf-8"))
    measured = Measured(records)
    texts = []
    for block in blocks:
        marks = block.marks(scale)
        lines = "\n".join(block_lines(block, run, measured, path))
        try:
            text = between(text, lines, marks, path)
        except SsbError as error:
            texts.append(str(error))
    if len(texts) == len(blocks):
        raise SsbError("; ".join(texts) or "nothing is measured yet")
    path.write_text(text, encoding="utf-8")
    return path


def picture_of(page: Path, name: str, scale: float) -> Path:
    """The picture of a name beside a page."""
    return page.with_name(f"headlines-{name}-{scale:g}.svg")


def between(text: str, block: str, marks: tuple[str, str], path: Path) -> str:
    r"""A text with another block between its marks.

    >>> print(between("a\n<!-- x -->\nold\n<!-- y -->\nb", "new",
    ...               ("<!-- x -->", "<!-- y -->"), Path("page.md")))
    a
    <!-- x -->
    new
    <!-- y -->
    b

    Raises:
        SsbError: a mark is missing.
    """
    first, last = marks
    before, begin, rest = text.partition(f"{first}\n")
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise SsbError(
            f"{str(path)!r} lacks a mark: accepted is a page that has {first!r} "
            f"and {last!r}, each in a line of its own"
        )
    return f"{before}{first}\n{block}\n{last}{after}"


def block_lines(
    block: Block, run: Mapping[str, Any], measured: Measured, page: Path
) -> Iterator[str]:
    """The lines between the marks; the pictures are written beside the page."""
    scale = measured.records.setting["scale"]
    for name, (what, draw) in block.pictures.items():
        try:
            drawn = draw(measured)
        except NotMeasuredError:
            continue
        picture = picture_of(page, name, scale)
        picture.write_text(f"{drawn}\n", encoding="utf-8")
        yield from (f"![{what}]({picture.name})", "")
    try:
        yield from block.lines(measured)
    except NotMeasuredError as missing:
        yield f"Not measured yet: the step {str(missing)!r} is not done."
    done = [
        record
        for record in measured.records
        if isinstance(record, StepRecord) and block.is_own(record)
    ]
    yield ""
    yield from setting_lines(run, done)


def _claims(measured: Measured) -> Iterator[str]:
    yield from table(
        ("claim", "in the articles", "measured", "command"),
        [(c.claim, c.theirs, c.told(measured), c.command) for c in CLAIMS],
    )
    for title, lines in (
        ("Small files and layouts", _small_files),
        ("Files skipped", _skipped),
        ("One parameter at a time", _studies),
    ):
        try:
            found = list(lines(measured))
        except NotMeasuredError as missing:
            found = [f"Not measured yet: the step {str(missing)!r} is not done."]
        yield from ("", f"### {title}", "", *found)


def setting_lines(run: Mapping[str, Any], done: Sequence[StepRecord]) -> Iterator[str]:
    """The machine, the versions, the date and the commit, and what was not quiet."""
    setting, machine = run["setting"], run["machine"]
    versions = listed_versions(run["versions"])
    dates = sorted({record.date for record in done})
    commits = listed(sorted({record.commit for record in done}))
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
            f"{len(noisy)} of {len(done)} steps ran beside other work of this machine "
            f"or its host, up to {percent(max(noisy))} of the processors.  Compare "
            "figures within one step; between steps, only the order of magnitude."
        )


def listed_versions(versions: Mapping[str, str]) -> str:
    """The versions that matter to a reader."""
    names = ("skipindex", "python", "java", "pyspark", "pyarrow")
    return listed(f"{name} {versions[name]}" for name in names if name in versions)


def _small_files(measured: Measured) -> Iterator[str]:
    study = small_files.STUDY
    rows: list[Sequence[Cell]] = []
    for layout in small_files.layouts(measured.effort):
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
    by = listed(f"`{name}`" for name in small_files.BY)
    small = measured.one(small_files.WRITE, layout=small_files.SMALL, query=ALL)
    wanted = (
        ""
        if small["files"] > 0.9 * small_files.FILES
        else f", and not {small_files.FILES:,}: a small file has at least "
        f"{measured.effort.rows} rows here"
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
    layouts = skipped.layouts(measured.effort)
    sets = skipped.sets(measured.effort, COSTS_OF)
    for group, title in ((SSB, "queries of SSB"), (skipped.ADDED, "added queries")):
        rows: list[Sequence[Cell]] = []
        for name in (*sets, skipped.ORACLE):
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
                    for layout in layouts
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
        yield from table((title, *layouts), rows)
        yield ""
    yield from why_eighty(measured)
    yield ""
    yield (
        f"What each set of indexes costs in the layout *{COSTS_OF}*, and the median "
        "milliseconds of a plan of the 13 queries, with no index byte in memory and "
        "later:"
    )
    yield ""
    costs: list[Sequence[Cell]] = []
    for name in sets:
        row = measured.one(f"{skipped.STUDY}/{COSTS_OF}", indexes=name, group=SSB)
        share = percent(row["index, of the data"])
        costs.append((name, share, row["build s"], row["cold ms"], row["warm ms"]))
    yield from table(
        ("indexes", "of the data", "s to build", "cold plan, ms", "warm plan, ms"),
        costs,
    )


def why_eighty(measured: Measured) -> Iterator[str]:
    """Where the claim of 80 % holds, where it does not, and why."""
    by = {
        layout: [
            measured.one(f"{skipped.STUDY}/{layout}", indexes=indexes, group=SSB)
            for indexes in ("minmax", skipped.ORACLE)
        ]
        for layout in skipped.layouts(measured.effort)
    }
    holds = [name for name, (few, _) in by.items() if few["skipped"] > 0.8]
    cannot = [name for name, (_, most) in by.items() if most["skipped"] <= 0.8]
    could = [name for name in by if name not in holds and name not in cannot]
    if holds:
        yield f"The 80 % are reached by {listed(holds)}."
    if could:
        yield (
            f"Only row-level indexes reach them for {listed(could)}: ranges of two "
            "or more columns overlap in files that hold no matching row."
        )
    if cannot:
        yield (
            f"No index reaches them for {listed(cannot)}: too many files hold a "
            "matching row."
        )


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


BLOCKS: Final = (
    Block(
        whole.STUDY,
        {
            "whole": (
                "Seconds of the 13 queries by layout and by what chooses the files",
                whole_page.picture,
            )
        },
        whole_page.lines,
    ),
    Block(star.STUDY, {}, star.lines),
    Block(store.STUDY, {}, store.lines),
    Block(_CLAIMS, PICTURES, _claims),
)
