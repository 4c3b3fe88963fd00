"""What was gained, in plain words."""

from __future__ import annotations

from ssb.grid.index_sets import FULL
from ssb.report.results import Results, gains, kept, losses


def gained(results: Results) -> list[str]:
    """The most important figures of a run, one sentence each."""
    found = []
    for layout, indexes, before, after, factor in gains(results)[:1]:
        found.append(
            f"From the data as generated, unpruned, to the layout {layout} with the "
            f"indexes {indexes}, the 13 queries take {after:.1f} s, not "
            f"{before:.1f} s: {factor:.1f} times faster in the geometric mean."
        )
    full = {
        name: cell
        for name in results.layouts
        if (cell := results.cells.get((name, FULL))) and cell.figures
    }
    if full:
        best = min(
            full, key=lambda name: kept(full[name]) / results.layouts[name].files
        )
        cell, layout_ = full[best], results.layouts[best]
        asked = [f.query for f in cell.figures]
        found.append(
            f"On the layout {best}, {len(asked)} queries read {kept(cell):,} files of "
            f"{layout_.files * len(asked):,} with full indexes; "
            f"{results.oracle(best, asked):,} hold a matching row."
        )
        found.append(
            f"These indexes take {cell.build_seconds:.1f} s to build and "
            f"{cell.index_bytes / 1e6:.1f} MB, {100 * cell.share:.1f} % of the data."
        )
    lost = sum(f.lost for cell in results.cells.values() for f in cell.figures)
    wrong = sum(
        not timed.equal for cell in results.cells.values() for timed in cell.timed
    )
    plans = sum(len(cell.figures) for cell in results.cells.values())
    answers = sum(len(cell.timed) for cell in results.cells.values())
    found.append(
        f"{plans:,} plans were compared with the truth: {lost} files with a match were "
        f"skipped. {answers:,} answers were compared: {wrong} differ."
    )
    n_losses = len(losses(results))
    if n_losses:
        found.append(
            f"In {n_losses} places skipping does not pay; they are listed below."
        )
    return found
