"""One run of optimize, from its arguments to its report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final, Generic

from skipindex.build.builder import TableT_co, index_files
from skipindex.build.column_requests import Request, column_requests
from skipindex.build.memory import bytes_in
from skipindex.build.runners import Progress, Runner
from skipindex.build.wanted import wanted_of
from skipindex.errors import LayoutError, TableError
from skipindex.expressions import Predicate
from skipindex.layout import curve_named
from skipindex.log.properties import TableProperties
from skipindex.notebook import InNotebook
from skipindex.rewrite.selection.attributes import (
    JoinedAttribute,
    from_json,
    named,
    to_json,
)
from skipindex.rewrite.selection.boxes import Boxes
from skipindex.rewrite.selection.cubes import runs_of
from skipindex.rewrite.selection.eligible_files import (
    check_rewritable,
    choose,
    clustering_columns,
    eligible_files,
)
from skipindex.rewrite.selection.grouping import (
    Group,
    Mode,
    mode_named,
    plan_clustering,
    plan_joining,
    rounds,
    weight_of,
)
from skipindex.rewrite.selection.target import (
    CUBE_SIZE,
    RATIO,
    ROWS_PER_FILE,
    EligibleFile,
    Target,
    rows_by_default,
)
from skipindex.rewrite.selection.within import plan_within
from skipindex.rewrite.transaction import GroupWriter, Rewritten, rewrite
from skipindex.source import require_unbucketed
from skipindex.source.folder.hidden_files import arriving_paths, was_rewritten
from skipindex.storage.file_system.names import round_of
from skipindex.storage.file_system.sidecar import require_no_sidecar
from skipindex.table import Overlap, TableState, overlaps_of

_CURVE: Final = "hilbert"
_CHOSEN: Final = (
    "answers",
    "workload",
    "max_ranges",
    "files_read_on_sample",
)
"""What a layout has besides, if it was chosen for a workload."""


_SIZES: Final = ("rows_per_file", "bytes_per_file", "rows_per_group")
"""What a layout has besides, whatever its rows are clustered by."""


@dataclass(frozen=True, slots=True)
class OptimizeOptions:
    """What a caller of ``Table.optimize`` asks for; None is "as the table has it".

    ``chosen`` is what the rows suggest for a workload, as a table records it; it stands
    for ``cluster_by`` and ``curve``.
    """

    cluster_by: Sequence[str | JoinedAttribute] | None = None
    curve: str | None = None
    where: str | Predicate | None = None
    mode: str = "incremental"
    rows_per_file: int | None = None
    bytes_per_file: int | None = None
    rows_per_group: int | None = None
    cube_size: int = CUBE_SIZE
    ratio: float = RATIO
    budget: int | str | None = None
    sort_within: Sequence[str] | None = None
    indexes: Request | None = None
    in_place: bool = False
    chosen: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class OptimizeReport(InNotebook, Generic[TableT_co]):
    """The result of ``optimize``.

    Args:
        table: the table after the run.
        files_in: the number of rewritten data files.
        files_out: the number of data files that hold their rows now.
        bytes_in: the size of the rewritten data files.
        bytes_out: the size of the data files that hold their rows now.
        n_rows: the number of rewritten rows.
        files_left: the number of chosen files that were not rewritten.
        sealed: the number of cubes that were sealed.
        least: the bytes of the smallest useful rewrite, if none fits into the budget of
            the run.
        overlap_before: by clustering column, how many files held one value before the
            run; None for a column that is looked up.
        overlap_after: the same after the run.
        seconds: wall time.
        notes: why chosen files were not rewritten.
    """

    table: TableT_co
    files_in: int
    files_out: int
    bytes_in: int
    bytes_out: int
    n_rows: int
    files_left: int
    sealed: int
    least: int | None
    overlap_before: Mapping[str, Overlap | None]
    overlap_after: Mapping[str, Overlap | None]
    seconds: float
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, without the table."""
        plain = {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if one.name != "table"
        }
        for name in ("overlap_before", "overlap_after"):
            plain[name] = {
                column: one and asdict(one) for column, one in plain[name].items()
            }
        return plain

    def __str__(self) -> str:
        text = (
            f"rewrote {self.files_in} files ({self.bytes_in / 1e6:.1f} MB) into "
            f"{self.files_out} ({self.bytes_out / 1e6:.1f} MB), kept {self.files_left} "
            f"unchanged, {self.seconds:.1f} s"
        )
        lines = [text]
        for name, after in self.overlap_after.items():
            before = self.overlap_before[name]
            line = f"overlap of {name}: {after} (before: {before})"
            if before and after and self.files_in:
                old = before.mean * self.bytes_in / self.files_in / 1e6
                new = after.mean * self.bytes_out / self.files_out / 1e6
                line += f", about {new:.1f} MB for a value (before: {old:.1f} MB)"
            lines.append(line)
        if self.least is not None:
            lines.append(
                "no useful rewrite fits into the budget: the smallest has "
                f"{self.least / 1e6:.1f} MB"
            )
        lines += self.notes
        return "\n".join(lines)


def optimize_files(
    table: TableState,
    options: OptimizeOptions,
    *,
    writer: Callable[[Target], GroupWriter],
    runner: Runner,
    timezone: str | None = None,
    progress: Progress | None = None,
) -> OptimizeReport[TableState]:
    """Cluster files, or join small ones, in one commit.

    ``writer`` makes what writes rows to a target.  ``timezone`` is that of the session,
    for ``where``.  It raises what ``Table.optimize`` does, except for the settings of a
    session.
    """
    began = time.perf_counter()
    require_own(table, in_place=options.in_place)
    request = wanted_of(table) if options.indexes is None else options.indexes
    chosen = choose_groups(table, options, request, timezone=timezone)
    files, target = chosen.files, chosen.target
    groups, notes = _rewritable(table, chosen.groups)
    turns = rounds(groups, alone=not table.source.has_folders)
    levels = tuple(some[0].level for some in turns)
    target = replace(target, levels=levels)
    before = overlaps_of(table, target.cluster_by)
    done: list[Rewritten] = []
    after = table
    if groups:
        done, committed = rewrite(
            table,
            groups,
            target,
            write=writer(target),
            index=lambda result: index_files(
                table.over(result), request, runner=runner, progress=progress
            ),
            properties=_properties(table, options, target),
        )
        version = table.source.after(table.options.version)
        after = table.reopened(committed.compact(), version=version)
    old = [file for rewritten in done for file in rewritten.group.files]
    new = [file for rewritten in done for file in rewritten.files]
    return OptimizeReport(
        table=after,
        files_in=len(old),
        files_out=len(new),
        bytes_in=sum(file.size for file in old),
        bytes_out=sum(file.size for file in new),
        n_rows=sum(file.n_rows for file in old),
        files_left=len(files) - len(old),
        sealed=sum(rewritten.group.sealed for rewritten in done),
        least=chosen.least,
        overlap_before=before,
        overlap_after=overlaps_of(after, target.cluster_by) if done else before,
        seconds=time.perf_counter() - began,
        notes=(*chosen.notes, *notes),
    )


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a run of optimize would rewrite.

    Args:
        files: the files that it may choose from.
        target: how their rows are to be.
        groups: the groups to rewrite.
        least: the bytes of the smallest useful rewrite, if none fits into the budget.
        notes: why files are in no group.
    """

    files: Sequence[EligibleFile]
    target: Target
    groups: Sequence[Group]
    least: int | None
    notes: tuple[str, ...] = ()

    @property
    def n_bytes(self) -> int:
        """The size of the files to rewrite."""
        return sum(file.size for group in self.groups for file in group.files)


def choose_groups(
    table: TableState,
    options: OptimizeOptions,
    request: Request,
    *,
    timezone: str | None = None,
) -> Chosen:
    """What a run would rewrite; no data file is read that an index knows."""
    target = target_of(table, options, request)
    mode = mode_named(options.mode)
    budget = budget_of(options)
    column_requests(table, request)  # what cannot be built is refused now
    chosen = choose(table, options.where, timezone=timezone)
    arriving = arriving_paths(table.snapshot)  # they are for the next run
    files = eligible_files(table, [i for i in chosen if table.paths[i] not in arriving])
    if target.cluster_by:
        target = sized(target, table, options, files)
    kept, notes = _kept(table, files)
    groups, least = _planned(table, kept, target, mode, budget)
    return Chosen(files, target, groups, least, notes)


def _kept(
    table: TableState, files: Sequence[EligibleFile]
) -> tuple[Sequence[EligibleFile], tuple[str, ...]]:
    """The files that the source lets be rewritten; a note on the others."""
    reasons = {file.path: table.source.left_out(file.path) for file in files}
    kept = [file for file in files if not reasons[file.path]]
    why = next(filter(None, reasons.values()), "")
    return kept, _note(len(files) - len(kept), why)


def _note(n_files: int, why: str) -> tuple[str, ...]:
    return (f"{n_files} files were not rewritten: {why}",) if n_files else ()


def _has_size(table: TableState, options: OptimizeOptions) -> bool:
    """Whether a caller or the table says how large files are to be."""
    layout = table.snapshot.properties.layout or {}
    asked = options.rows_per_file, options.bytes_per_file
    return any((*asked, layout.get("rows_per_file"), layout.get("bytes_per_file")))


def sized(
    target: Target,
    table: TableState,
    options: OptimizeOptions,
    files: Sequence[EligibleFile],
) -> Target:
    """The target, with the default size of files for clustering if none is given."""
    if _has_size(table, options):
        return target
    return replace(target, rows_per_file=rows_by_default(files))


def _rewritable(
    table: TableState, groups: Sequence[Group]
) -> tuple[list[Group], tuple[str, ...]]:
    """The groups whose rows Spark reads and writes as they are; a note on others."""
    reasons = [
        table.source.left(table.location, [file.path for file in group.files])
        for group in groups
    ]
    alike = [group for group, why in zip(groups, reasons, strict=True) if not why]
    why = next(filter(None, reasons), "")
    notes = _note(_n_files(groups) - _n_files(alike), why)
    foreign = check_rewritable(table, [file for group in alike for file in group.files])
    kept = [g for g in alike if foreign.keys().isdisjoint(f.path for f in g.files)]
    columns = ", ".join(sorted({name for names in foreign.values() for name in names}))
    why = f"Spark would write {columns} with other types"
    return kept, notes + _note(_n_files(alike) - _n_files(kept), why)


def _n_files(groups: Sequence[Group]) -> int:
    return sum(len(group.files) for group in groups)


def _planned(
    table: TableState,
    files: Sequence[EligibleFile],
    target: Target,
    mode: Mode,
    budget: int | None,
) -> tuple[list[Group], int | None]:
    """The groups to rewrite, and the bytes of the smallest useful one if none fits."""
    known = runs_of(table.snapshot.properties)
    if not target.cluster_by:
        joined = plan_joining(files, known, target, budget=budget)
        bins: list[Sequence[EligibleFile]] = []
        if budget is not None and not joined:
            bins = [
                b for group in plan_joining(files, known, target) for b in group.bins
            ]
        return joined, min(map(weight_of, bins), default=None)
    attributes = target.known.get("via", {})
    columns = [name for name in target.cluster_by if name not in attributes]
    boxes = Boxes.of(table, columns)
    if budget is None:
        there = boxes if columns else None
        return plan_clustering(files, known, target, mode=mode, boxes=there), None
    result = plan_within(files, known, target, boxes, budget=budget)
    return result.groups, result.least


def budget_of(options: OptimizeOptions) -> int | None:
    """The bytes that a run may rewrite; None is all."""
    mode = mode_named(options.mode)
    if options.budget is None:
        return None
    result = bytes_in(options.budget)
    if result is None or result < 0:
        raise LayoutError(
            f"a run cannot rewrite up to {options.budget!r} (accepted: bytes, or a "
            "text such as '10GB')"
        )
    if mode is Mode.FULL:
        raise LayoutError(
            "mode='full' rewrites all files, so it takes no budget (accepted: a "
            "budget with mode='incremental')"
        )
    return result


def require_own(table: TableState, *, in_place: bool) -> None:
    """Refuse to rewrite buckets, and files of other writers unless a caller allows."""
    table.require_rewritable("optimize")
    require_no_sidecar(table.location, "optimize")
    require_unbucketed(table.folder, table.paths)
    if table.source.has_versions:
        return  # vacuum deletes none of its files
    snapshot = table.snapshot
    # A layout alone may have been declared of a folder of other writers.
    is_own = snapshot.properties.layout is not None and (
        was_rewritten(snapshot) or any(map(round_of, table.paths)) or not len(table)
    )
    if not (in_place or is_own):
        raise TableError(
            f"{table.folder!r} was not written by skipindex: call optimize with into= "
            "to write an optimized copy, or once with in_place=True, after which "
            "vacuum deletes the files that were rewritten"
        )


def target_of(table: TableState, options: OptimizeOptions, request: Request) -> Target:
    """How the files are to be: as asked, else as the table was laid out."""
    layout = table.snapshot.properties.layout or {}
    if options.chosen is not None:
        sizes = {name: layout[name] for name in _SIZES if name in layout}
        layout = {**sizes, **options.chosen}
    curve, order = options.curve, options.sort_within
    known: dict[str, Any] = {}
    names: Sequence[str]
    if options.cluster_by is not None:
        names, result = named(options.cluster_by)
        if result:
            known["via"] = to_json(result, table.location)
    else:
        is_laid_out = curve or layout.get("curve", _CURVE)  # None: in no order
        names = layout.get("cluster_by", ()) if is_laid_out else ()
        if names and "via" in layout:
            known["via"] = layout["via"]
        order = layout.get("sort_within", ()) if order is None else order
        if curve is None:
            known |= {key: layout[key] for key in _CHOSEN if key in layout}
            curve = layout.get("curve")
    if curve is not None and not names:
        raise LayoutError(f"curve={curve!r} would need columns in cluster_by")
    curve = curve or _CURVE
    curve_named(curve)
    rows_per_group = options.rows_per_group
    if rows_per_group is None:
        rows_per_group = layout.get("rows_per_group")
    if rows_per_group is not None:
        if rows_per_group < 1:
            raise LayoutError(
                f"cannot make row groups of {rows_per_group} rows (at least 1)"
            )
        known["rows_per_group"] = rows_per_group
    rows, n_bytes = options.rows_per_file, options.bytes_per_file
    if rows is None and n_bytes is None:
        n_bytes = layout.get("bytes_per_file")
        rows = layout.get("rows_per_file") or ROWS_PER_FILE if n_bytes is None else None
    return Target(
        clustering_columns(table, names, request, from_json(known, table.location)),
        curve,
        tuple(table.resolve(name).own_name for name in order or ()),
        rows,
        n_bytes,
        options.cube_size,
        options.ratio,
        known,
    )


def _properties(
    table: TableState, options: OptimizeOptions, target: Target
) -> TableProperties:
    """The layout to record: the newest that all of the table was asked to have."""
    known = table.snapshot.properties.layout
    if options.where is not None or (known is not None and not target.cluster_by):
        return TableProperties()
    return _recorded(table, target)


def layout_to_declare(table: TableState, options: OptimizeOptions) -> TableProperties:
    """The layout that a table is to have, where a part of it is requested."""
    table.require_rewritable("declare a layout of")
    require_unbucketed(table.folder, table.paths)
    declared = _recorded(table, target_of(table, options, wanted_of(table)))
    if _has_size(table, options):
        return declared
    return replace(declared, layout={**(declared.layout or {}), "rows_per_file": None})


def _recorded(table: TableState, target: Target) -> TableProperties:
    return TableProperties(
        layout={
            **target.known,
            **target.shape(),
            "partition_by": [column.name for column in table.partitions],
            "rows_per_file": target.rows_per_file,
            "bytes_per_file": target.bytes_per_file,
        }
    )
