"""A plan as text, JSON and HTML: its stages, and the explanation of one file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from skipindex.conditions.bound_predicate import Computed, Leaf, leaves, shorten
from skipindex.conditions.sql.moment import Moment
from skipindex.errors import PlanError, one_line
from skipindex.notebook import bar, block, boxes, fold, paragraph
from skipindex.notebook import lines as html_lines
from skipindex.notebook import table as html_table
from skipindex.planner.file_tasks import FileTask
from skipindex.planner.reports.evidence import ConditionReport, Evidence, SkippedFile
from skipindex.planner.reports.together import together
from skipindex.planner.stages.evaluation import Evaluation
from skipindex.planner.stages.lazy_list import LazyList
from skipindex.planner.stages.limit import RowLimit
from skipindex.planner.stages.planning_stages import STAGES
from skipindex.planner.stages.records import Stage
from skipindex.planner.stages.row_counts import row_counts
from skipindex.table import TableState

_MOST_FILES = 20
"""Files that a notebook lists."""


class Explainable(Protocol):
    """The parts of a plan that are explained."""

    where: str
    moment: Moment | None
    row_limit: RowLimit
    kinds: Collection[str] | None
    evaluation: Evaluation

    @property
    def table(self) -> TableState: ...
    @property
    def paths(self) -> Sequence[str]: ...
    @property
    def tasks(self) -> Sequence[FileTask]: ...
    @property
    def skipped(self) -> Sequence[SkippedFile]: ...
    @property
    def conditions(self) -> Sequence[ConditionReport]: ...
    @property
    def stages(self) -> Sequence[Stage]: ...
    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def count_bounds(self) -> tuple[int, int | None]: ...
    @property
    def row_groups(self) -> tuple[int, int] | None: ...


def explain(plan: Explainable) -> str:
    """The stages, the indexes that evaluated each condition, and unusable indexes."""
    low, high = plan.count_bounds  # counts rows, which the stages then show
    evaluation = plan.evaluation
    table = plan.table
    total = int(table.sizes.sum())
    lines = [
        f"{len(plan.tasks)} of {_listed(table)} for: {shorten(plan.where)}",
        *_of_moment(plan.moment),
        f"  {'stage':<18}{'files':>8}{'MB':>10}{'ms':>9}{'index KB':>10}{'bitmaps':>9}",
        f"  {'all':<18}{len(table):>8}{total / 1e6:>10.1f}",
    ]
    for stage in plan.stages:
        if stage.note:
            lines.append(f"  {stage.name:<18}{'-':>8}  {stage.note}")
            continue
        lines.append(
            f"  {stage.name:<18}{stage.n_files:>8}{stage.n_bytes / 1e6:>10.1f}"
            f"{stage.seconds * 1e3:>9.1f}{stage.read.n_bytes / 1e3:>10.1f}"
            f"{stage.read.bitmaps:>9}"
        )
    certain = int((evaluation.certain & evaluation.possible).sum())
    rows = f"{low:,} to unknown" if high is None else _rows((low, high))
    if groups := plan.row_groups:
        rows += f", in {groups[0]:,} of {groups[1]:,} row groups of these files"
    lines.append(f"  rows that match: {rows}; files where all match: {certain}")
    lines.append("conditions")
    for condition in plan.conditions:
        lines += _of_condition(condition)
    combined = together(evaluation)
    lines += combined.to_text() if combined else []
    if plan.notes:
        lines += ["notes", *(f"  {note}" for note in plan.notes)]
    return "\n".join(lines)


def as_dict(plan: Explainable) -> dict[str, Any]:
    """All of the plan as plain values for JSON."""
    combined = together(plan.evaluation)
    return {
        "where": plan.where,
        "moment": _moment_as_dict(plan.moment),
        "limit": plan.row_limit.limit,
        "order_by": list(map(str, plan.row_limit.order_by)),
        "count_bounds": plan.count_bounds,
        "row_groups": plan.row_groups,
        "files": plan.paths,
        "folders_not_listed": plan.table.n_unlisted,
        "tasks": [task.to_dict() for task in plan.tasks],
        "skipped": [skipped.to_dict() for skipped in plan.skipped],
        "conditions": [condition.to_dict() for condition in plan.conditions],
        "together": combined and combined.to_dict(),
        "stages": [
            {
                "name": stage.name,
                "files": stage.n_files,
                "bytes": stage.n_bytes,
                "seconds": stage.seconds,
                "index_bytes": stage.read.n_bytes,
                "cached_bytes": stage.read.cached_bytes,
                "bitmaps": stage.read.bitmaps,
                "note": stage.note,
            }
            for stage in plan.stages
        ],
        "notes": plan.notes,
    }


def plan_html(plan: Explainable) -> str:
    """The plan as HTML; ``explain`` is folded in it."""
    state, tasks = plan.table, plan.tasks
    total, n_files, n_read = int(state.sizes.sum()), len(state), len(tasks)
    low, high = plan.count_bounds
    rows = f"{low:,} to {'unknown' if high is None else f'{high:,}'}"
    funnel = [("all", n_files, bar(1.0, f"{n_files} files"), total / 1e6, "")]
    for stage in plan.stages:
        if stage.note:
            continue
        share = stage.n_files / max(1, n_files)
        drawn = bar(share, f"{stage.n_files} of {n_files} files")
        ms = f"{stage.seconds * 1e3:.1f}"
        funnel.append((stage.name, stage.n_files, drawn, stage.n_bytes / 1e6, ms))
    listed: list[tuple[str, object]] = [
        (task.path, task.size / 1e6) for task in tasks[:_MOST_FILES]
    ]
    if n_read > _MOST_FILES:
        listed.append((f"and {n_read - _MOST_FILES:,} more", ""))
    read = set(plan.paths)
    is_read = [path in read for path in state.paths]
    drawn = boxes(is_read, f"{n_read} of {n_files} files are read")
    size = f"{sum(t.size for t in tasks) / 1e6:,.1f} of {total / 1e6:,.1f} MB"
    files = html_table(("file", "MB"), listed, right=(1,))
    return block(
        paragraph(f"{n_read:,} of {n_files:,} files for: {shorten(plan.where)}"),
        f"<p>{size}; rows that match: {rows}</p>",
        drawn.svg,
        html_table(("stage", "files", "", "MB", "ms"), funnel, right=(1, 3, 4)),
        fold(f"files to read ({n_read:,})", files),
        fold("explain()", html_lines(explain(plan).splitlines())),
    )


def _listed(table: TableState) -> str:
    n = table.n_unlisted
    others = f" (and those of {n} folders, which were not listed)" if n else ""
    of = f" of {table.source.described}" if table.source.has_versions else ""
    return f"{len(table)} files{of}{others}"


def _of_moment(moment: Moment | None) -> list[str]:
    if moment is None:
        return []
    values = {
        shorten(constant.text): constant.value or "not known without timezone=…"
        for constant in moment.constants
    }
    return [f"  at {moment.now}", *(f"    {k}: {v}" for k, v in values.items())]


def _moment_as_dict(moment: Moment | None) -> dict[str, Any] | None:
    if moment is None:
        return None
    values = {constant.text: constant.value for constant in moment.constants}
    return {"now": moment.now.isoformat(), "constants": values}


def _of_condition(condition: ConditionReport) -> list[str]:
    if condition.reason:
        return [f"  {shorten(condition.text)}: not judged, {condition.reason}"]
    removed = [f"{kind} ruled out {n} files" for kind, n in condition.removed.items()]
    unused = [f"    {kind}: {reason}" for kind, reason in condition.unused.items()]
    words = ", ".join(removed) or "ruled out no file alone"
    return [f"  {shorten(condition.text)}: {words}", *unused]


@dataclass(frozen=True, slots=True)
class FileExplanation:
    """What a plan knows of one file.

    Args:
        path: relative to the table.
        verdict: whether it is read, or the stage that skipped it.
        reason: the proof, or what must still be checked.
        index: whether its index fits it, or why not.
        encodings: how the ``exact`` index of a column of a condition is stored.
        matching: between how many and how many rows match; None if not known.
        evidence: against the conditions; empty for a file that is read.
        conditions: for every condition, the same about its rows alone.
    """

    path: str
    verdict: str
    reason: str
    index: str
    encodings: Mapping[str, str]
    matching: tuple[int, int] | None
    evidence: tuple[Evidence, ...]
    conditions: tuple[tuple[str, tuple[int, int] | None], ...]

    def to_text(self) -> str:
        """For people."""
        each = [f"    {shorten(text)}: {_rows(rows)}" for text, rows in self.conditions]
        lines = [
            f"{one_line(self.path)}: {self.verdict}",
            f"  {self.reason}",
            f"  index: {self.index}",
            *(
                f"    {one_line(name)}: stored as {encoding}"
                for name, encoding in self.encodings.items()
            ),
            f"  rows that match: {_rows(self.matching)}",
            *(["  rows for which each condition is true", *each] if each else []),
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        listed = [{"text": text, "rows": rows} for text, rows in self.conditions]
        against = [one.to_dict() for one in self.evidence]
        return {**plain, "evidence": against, "conditions": listed}


def _encodings(evaluation: Evaluation, file: int) -> dict[str, str]:
    """The encoding of a file's index, for the columns of conditions, by name."""
    result = {}
    wanted = np.arange(len(evaluation.table)) == file
    for column in evaluation.columns.values():
        locations = evaluation.reader.locations(column, wanted, positional=True)
        for location in locations.get(file, ()):
            index = evaluation.reader.open(location, file, column)
            encoding = getattr(index, "encoding", "")
            if encoding not in ("", location[0].name):
                result[column.shown] = encoding
    return result


def _rows(matching: tuple[int, int] | None) -> str:
    if matching is None:
        return "not known"
    low, high = matching
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def file_explanation(plan: Explainable, path: str) -> FileExplanation:
    """What ``plan`` knows of one file; each condition is evaluated again, alone."""
    table = plan.table
    if path not in table.paths:
        raise PlanError(
            f"no file {path!r} in {table.location.full('')!r} (expected a path "
            f"relative to it, such as {table.paths[0]!r})"
        )
    i = table.paths.index(path)
    against: tuple[Evidence, ...] = ()
    tasks, proofs = plan.tasks, plan.skipped
    assert isinstance(tasks, LazyList)
    assert isinstance(proofs, LazyList)
    task, skipped = tasks.of_file(i), proofs.of_file(i)
    if task is not None:
        verdict = f"read, {task.verdict.value}"
        reason = f"still to be checked: {task.residual}"
    else:
        assert skipped is not None
        verdict, reason = f"skipped by {skipped.stage}", skipped.reason
        against = skipped.evidence

    def counted(evaluation: Evaluation) -> tuple[int, int] | None:
        counts = row_counts(evaluation)
        known = counts.upper[i] >= 0
        return (int(counts.lower[i]), int(counts.upper[i])) if known else None

    def alone(leaf: Leaf | Computed) -> Evaluation:
        session = plan.evaluation.session
        return Evaluation(table, leaf, kinds=plan.kinds, session=session).run(STAGES)

    return FileExplanation(
        path=path,
        verdict=verdict,
        reason=reason,
        index=table.gaps[i] or "up to date",
        encodings=_encodings(plan.evaluation, i),
        matching=counted(plan.evaluation),
        evidence=against,
        conditions=tuple(
            (leaf.text, counted(alone(leaf)))
            for leaf in dict.fromkeys(leaves(plan.evaluation.tree))
        ),
    )
