"""The table of the star form, as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ssb.report import aligned
from ssb.star_form.run import StarOutcome

_HEADS: Final = (
    *("query", "files", "plain", "pruned", "oracle", "s plain", "s pruned", "same"),
)


def star_table_of(layout: str, outcomes: Sequence[StarOutcome]) -> str:
    """One line a query and a line of sums, for one layout of the fact table.

    Columns: files of the fact table; files of it that are read without and with
    skipping; files that hold a row for the query; seconds without and with skipping;
    whether rows and order are the same.
    """
    lines = [_sums(o.query, [o]) for o in outcomes]
    head, *queries, sums = aligned([_HEADS, *lines, _sums("all", outcomes)])
    rule = "-" * len(head)
    tight = sum(outcome.is_tight for outcome in outcomes)
    last = (
        f"{tight} of {len(outcomes)} queries read only files that hold a row for them"
    )
    title = f"star form, layout: {layout}"
    return "\n".join([title, head, rule, *queries, rule, sums, last])


def star_verdict_of(outcomes: Sequence[StarOutcome]) -> str:
    """What is wrong, one line each; or one line that nothing is."""
    wrong = [f"{o.query}: answers differ" for o in outcomes if not o.equal]
    wrong += [
        f"{o.query}: {o.read[1]} files read, {o.oracle} hold a row for it"
        for o in outcomes
        if o.read[1] < o.oracle
    ]
    if wrong:
        return "\n".join(["FAILED", *wrong])
    plain, pruned = (sum(o.read[i] for o in outcomes) for i in (0, 1))
    return (
        f"all {len(outcomes)} answers of unchanged SQL are equal, order included; "
        f"{pruned} of {plain} files read"
    )


def _sums(name: str, outcomes: Sequence[StarOutcome]) -> list[str]:
    plain, pruned = (sum(o.read[i] for o in outcomes) for i in (0, 1))
    counts = (sum(o.files for o in outcomes), plain, pruned)
    times = [sum(o.seconds[i] for o in outcomes) for i in (0, 1)]
    return [
        name,
        *map(str, (*counts, sum(o.oracle for o in outcomes))),
        *(f"{seconds:.2f}" for seconds in times),
        "yes" if all(o.equal for o in outcomes) else "NO",
    ]
