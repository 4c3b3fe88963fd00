"""The results of a run, and the figures that follow from them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any, Final

from ssb import SsbError
from ssb.grid.index_sets import FULL, INDEX_SETS, NONE
from ssb.grid.layouts import GENERATED, grid_layouts
from ssb.grid.records import (
    RECORDS,
    CellRecord,
    LayoutRecord,
    Records,
    TimedQuery,
)
from ssb.grid.setting import RUN
from ssb.report.text import geometric_mean

SLOWER: Final = 1.05
"""Times unpruned from which on a query is called slower."""
OTHERS: Final = ("peers", "peer_builds", "latency")
"""Files of records that other commands write into the folder of the results."""

FlatRecords = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Results:
    """Everything that the report is made of.

    Args:
        run: the setting, the machine, the versions and the command.
        layouts: in the order of the grid.
        cells: likewise, by layout and set of indexes.
        others: by the names of ``OTHERS``, what other commands found.
    """

    run: Mapping[str, Any]
    layouts: Mapping[str, LayoutRecord]
    cells: Mapping[tuple[str, str], CellRecord]
    others: Mapping[str, FlatRecords]

    @cached_property
    def sets(self) -> list[str]:
        """The sets of indexes that some cell has, in the order of the grid."""
        found = {indexes for _, indexes in self.cells}
        return [name for name in INDEX_SETS if name in found]

    def cells_of(self, layout: str) -> list[CellRecord]:
        """The cells of a layout, in the order of the grid."""
        pairs = [(layout, name) for name in self.sets]
        return [self.cells[pair] for pair in pairs if pair in self.cells]

    def oracle(self, layout: str, queries: Iterable[str]) -> int:
        """The files that hold a match, over queries."""
        return sum(self.layouts[layout].oracle[name] for name in queries)

    def ideal(self, layout: str, queries: Iterable[str]) -> int:
        """The fewest files that could hold the matches, over queries."""
        return sum(self.layouts[layout].ideal(name) for name in queries)


def load(folder: Path) -> Results:
    """The results of the newest run in a folder.

    Raises:
        SsbError: there is none.
    """
    path = folder / RUN
    if not path.is_file():
        raise SsbError(
            f"no results in {str(folder)!r}: accepted is a folder that "
            "'python -m ssb grid' has written"
        )
    run = json.loads(path.read_text(encoding="utf-8"))
    layouts: dict[str, LayoutRecord] = {}
    cells: dict[tuple[str, str], CellRecord] = {}
    for record in Records(folder, run["setting"]):
        match record:
            case LayoutRecord():
                layouts[record.layout] = record
            case CellRecord():
                cells[record.layout, record.indexes] = record
    if not cells:
        raise SsbError(
            f"no finished cell in {str(folder / RECORDS)!r} for the setting of {RUN}: "
            "accepted are results of a run that has finished a cell"
        )
    order, sets = list(grid_layouts()), list(INDEX_SETS)
    return Results(
        run=run,
        layouts=dict(sorted(layouts.items(), key=lambda pair: order.index(pair[0]))),
        cells=dict(
            sorted(
                cells.items(),
                key=lambda pair: (order.index(pair[0][0]), sets.index(pair[0][1])),
            )
        ),
        others={name: _flat_records(folder / f"{name}.json") for name in OTHERS},
    )


def _flat_records(path: Path) -> FlatRecords:
    """A list of flat objects, or nothing where there is no such file."""
    if not path.is_file():
        return []
    found = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise SsbError(f"{str(path)!r} is no list of objects: accepted is such a list")
    return found


def kept(cell: CellRecord, group: str | None = None) -> int:
    """The files that a cell keeps, over the queries of a group, or over all."""
    return sum(f.kept for f in cell.figures if group in {None, f.group})


def warm_ms(cell: CellRecord) -> float:
    """The milliseconds of a later plan, the median over all queries."""
    return median(f.warm for f in cell.figures) * 1e3 if cell.figures else 0.0


def stage_ms(cell: CellRecord) -> dict[str, float]:
    """The milliseconds of each stage of a later plan, the mean over all queries."""
    names = dict.fromkeys(name for f in cell.figures for name in f.stages)
    return {
        name: sum(f.stages.get(name, 0.0) for f in cell.figures)
        / len(cell.figures)
        * 1e3
        for name in names
    }


@dataclass(frozen=True, slots=True)
class Timing:
    """Queries through Spark, of one cell or of one query.

    Args:
        plain: seconds without skipping, the sum of medians.
        pruned: seconds with skipping, likewise.
        factor: the geometric mean of the gains of the queries.
        n_bytes: that Spark read, without and with skipping.
        files: that Spark opened, likewise.
    """

    plain: float
    pruned: float
    factor: float
    n_bytes: tuple[int, int]
    files: tuple[int, int]

    @classmethod
    def of(cls, timed: Sequence[TimedQuery]) -> Timing:
        """The sums over queries."""
        pairs = [(median(t.plain), median(t.pruned)) for t in timed]
        return cls(
            plain=sum(plain for plain, _ in pairs),
            pruned=sum(pruned for _, pruned in pairs),
            factor=geometric_mean([plain / pruned for plain, pruned in pairs]),
            n_bytes=(
                sum(t.n_bytes[0] for t in timed),
                sum(t.n_bytes[1] for t in timed),
            ),
            files=(sum(t.files[0] for t in timed), sum(t.files[1] for t in timed)),
        )


def break_even(cost: float, timed: Sequence[TimedQuery]) -> float | None:
    """After how many such queries a cost in seconds has paid for itself.

    A mix of the timed queries is asked, each equally often.  None is never.
    """
    if not timed:
        return None
    both = Timing.of(timed)
    saved = (both.plain - both.pruned) / len(timed)
    return math.ceil(cost / saved) if saved > 0 else None


def gains(results: Results) -> list[tuple[str, str, float, float, float]]:
    """From the generated data, unpruned, to each timed cell, pruned.

    Each is layout, indexes, seconds before, seconds after, and the geometric mean of
    the gains, over the 13 queries; empty where the generated layout was not timed.
    """
    before = next((c.timed for c in results.cells_of(GENERATED) if c.timed), ())
    old = {t.query: median(t.plain) for t in before if t.query.startswith("Q")}
    found = []
    for (layout, indexes), cell in results.cells.items():
        new = {t.query: median(t.pruned) for t in cell.timed if t.query in old}
        if len(new) == len(old) and new:
            factor = geometric_mean([old[name] / new[name] for name in old])
            found.append(
                (layout, indexes, sum(old.values()), sum(new.values()), factor)
            )
    return sorted(found, key=lambda one: -one[-1])


@dataclass(frozen=True, slots=True)
class Loss:
    """A place where skipping does not pay.

    Args:
        where: the cell, and the query if it is one query.
        what: happens there.
    """

    where: str
    what: str


def losses(results: Results) -> list[Loss]:
    """The cells and queries where skipindex loses or gains nothing."""
    found = []
    for (layout, indexes), cell in results.cells.items():
        where = f"{layout} with {indexes}"
        for timed in cell.timed:
            plain, pruned = median(timed.plain), median(timed.pruned)
            if pruned > SLOWER * plain:
                found.append(
                    Loss(
                        f"{where}: {timed.query}",
                        f"{pruned / plain:.2f} times the unpruned time "
                        f"({pruned:.2f} s, not {plain:.2f} s); "
                        f"{timed.files[1]} of {timed.files[0]} files are read",
                    )
                )
        if cell.timed and break_even(cell.build_seconds, cell.timed) is None:
            found.append(Loss(where, "the build never pays for itself"))
        if indexes == NONE or not cell.figures:
            continue
        files = results.layouts[layout].files
        all_kept = kept(cell)
        if all_kept == files * len(cell.figures):
            found.append(Loss(where, "no file is skipped for any query"))
        beside = results.cells.get((layout, "minmax"))
        if beside and indexes != "minmax" and all_kept >= kept(beside):
            found.append(
                Loss(
                    where,
                    f"{cell.index_bytes / 1e6:.1f} MB of indexes skip no file that "
                    "min/max does not skip",
                )
            )
        if indexes == FULL:
            over = [
                f
                for f in cell.figures
                if f.kept > results.layouts[layout].oracle[f.query]
            ]
            found += [
                Loss(
                    f"{where}: {f.query}",
                    f"{f.kept} files are read, "
                    f"{results.layouts[layout].oracle[f.query]} hold a match",
                )
                for f in over
            ]
    return found
