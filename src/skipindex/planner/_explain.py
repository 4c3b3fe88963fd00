"""Explanations in words: the funnel of a plan, and why one file was skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import numpy as np
import pyarrow as pa

from skipindex.domain import Domain
from skipindex.planner.bound import (
    AllOf,
    AnyOf,
    Bound,
    Computed,
    Known,
    Leaf,
    Unknown,
    text_of,
    unknowns,
)
from skipindex.planner.evaluation import ROWS, Evaluation, LeafRecord

if TYPE_CHECKING:
    from skipindex.planner.plan import Plan


def proof(found: Evaluation, file: int) -> str:
    """Why ``file`` holds no matching row: the conditions and the evidence."""
    if found.table.n_rows[file] == 0:
        return "the file has no rows"
    rows = found.rows.get(file)
    if found.stage_of[file] == ROWS and rows is not None:
        kinds = ", ".join(rows.kinds)
        return f"{text_of(found.tree)}: no row of the file ({kinds})"
    return _refutation(found, found.tree, file)


def _refutation(found: Evaluation, node: Bound, file: int) -> str:
    match node:
        case AllOf(children):
            parts = (_refutation(found, child, file) for child in children)
            return next(filter(None, parts), "")
        case AnyOf(children):
            every = [_refutation(found, child, file) for child in children]
            return "; ".join(every) if all(every) else ""
        case Leaf(text=text) | Computed(text=text):
            record = found.leaves[node]
            if record.bounds.upper[file]:
                return ""
            return f"{text}: {_evidence(found, record, file)}"
        case Known(value):
            return "" if value else "the condition is never true"
        case Unknown():
            return ""
        case _:
            assert_never(node)


def _evidence(found: Evaluation, record: LeafRecord, file: int) -> str:
    for kind, removed in record.removed_by.items():
        if not removed[file]:
            continue
        if kind == "derived partition":
            return "what the partition columns were made of rules it out"
        if kind not in {"minmax", "partition"}:
            return f"{kind} index holds none of the values"
        stats = found.table.stats(record.column)
        assert record.column.domain is not None
        if not stats.bounded[file]:
            nulls = "only NULL" if stats.can_null[file] else "no rows"
            return f"{kind}: {nulls}"
        low = _shown(stats.low[file], record.column.domain)
        high = _shown(stats.high[file], record.column.domain)
        null = "" if stats.can_null[file] else ", no NULL"
        return f"{kind}: values in {low} .. {high}{null}"
    return "no evidence"  # pragma: no cover


def _shown(value: object, domain: Domain) -> str:
    plain = value.as_py() if isinstance(value, pa.Scalar) else int(value)  # type: ignore[call-overload]
    return domain.show(plain)


def explain(plan: Plan) -> str:
    """The funnel, what answered each condition, and what could not be used."""
    found = plan._evaluation  # noqa: SLF001 (the other half of the plan)
    table = plan.table
    total = int(table.sizes.sum())
    lines = [
        f"{len(plan.paths)} of {len(table)} files for: {plan.where}",
        f"  {'stage':<18}{'files':>8}{'MB':>10}{'ms':>9}{'index KB':>10}{'bitmaps':>9}",
        f"  {'all':<18}{len(table):>8}{total / 1e6:>10.1f}",
    ]
    for stage in plan.stages:
        if stage.note:
            lines.append(f"  {stage.name:<18}{'-':>8}  {stage.note}")
            continue
        lines.append(
            f"  {stage.name:<18}{stage.files:>8}{stage.n_bytes / 1e6:>10.1f}"
            f"{stage.seconds * 1e3:>9.1f}{stage.read.n_bytes / 1e3:>10.1f}"
            f"{stage.read.bitmaps:>9}"
        )
    certain = int((found.certain & found.possible).sum())
    low, high = plan.count_bounds
    upto = "unknown" if high is None else f"{high:,}"
    rows = f"{low:,}" if low == high else f"{low:,} to {upto}"
    lines.append(f"  rows that match: {rows}; files where every row does: {certain}")
    lines.append("conditions")
    for leaf, record in found.leaves.items():
        removed = [
            f"{kind} ruled out {int(mask.sum())} files"
            for kind, mask in record.removed_by.items()
            if np.any(mask)
        ]
        lines.append(
            f"  {leaf.text}: {', '.join(removed) or 'ruled out no file alone'}"
        )
    lines += [f"  {u.text}: not judged, {u.reason}" for u in unknowns(found.tree)]
    if plan.notes:
        lines += ["notes", *(f"  {note}" for note in plan.notes)]
    return "\n".join(lines)
