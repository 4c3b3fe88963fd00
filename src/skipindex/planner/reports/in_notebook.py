"""A plan in a notebook: its stages, files as boxes, and the indexes used."""

from __future__ import annotations

from skipindex.notebook import bar, block, boxes, fold, lines, paragraph, table
from skipindex.planner.bound_predicate import shorten
from skipindex.planner.reports.explain import Explainable, explain

_MOST_FILES = 20
"""Files that are listed."""


def plan_html(plan: Explainable) -> str:
    """The plan as HTML; ``explain`` is folded in it."""
    state, tasks = plan.table, plan.tasks
    total, n_files, n_read = int(state.sizes.sum()), len(state), len(tasks)
    n_bytes = sum(task.size for task in tasks)
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
    size = f"{n_bytes / 1e6:,.1f} of {total / 1e6:,.1f} MB"
    return block(
        paragraph(f"{n_read:,} of {n_files:,} files for: {shorten(plan.where)}"),
        f"<p>{size}; rows that match: {rows}</p>",
        drawn.svg,
        table(("stage", "files", "", "MB", "ms"), funnel, right=(1, 3, 4)),
        fold(f"files to read ({n_read:,})", table(("file", "MB"), listed, right=(1,))),
        fold("explain()", lines(explain(plan).splitlines())),
    )
