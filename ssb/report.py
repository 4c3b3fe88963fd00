"""The benchmark's table, as text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from ssb.run import KINDS, Outcome

_HEADS: Final = (
    *("query", "rows", "files", "minmax", "+bloom", "+bitmap", "oracle"),
    *("MB all", "MB read", "s all", "s plan", "s read", "same"),
)


def aligned(
    rows: Sequence[Sequence[str]], left: Collection[int] = frozenset({0})
) -> list[str]:
    """A line for each row, the cells of a column in one width.

    Args:
        rows: texts, equally many in each row.
        left: the columns whose cells begin at one place; all others end at one.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def table_of(layout: str, outcomes: Sequence[Outcome]) -> str:
    """One line a query and a line of sums, for one layout.

    Columns: rows that match; files in all; files kept with min/max, with bloom
    filters too, with row-level bitmaps too; files that truly hold a match; bytes of
    the table and of the files read; seconds on the whole table, to plan, and on the
    plan (planning included); whether both answers are the same.
    """
    lines = [_sums(o.query, [o]) for o in outcomes]
    head, *lines_of_queries, sums = aligned([_HEADS, *lines, _sums("all", outcomes)])
    rule = "-" * len(head)
    return "\n".join([f"layout: {layout}", head, rule, *lines_of_queries, rule, sums])


def verdict_of(outcomes: Sequence[Outcome]) -> str:
    """What is wrong, one line each; or one line that nothing is."""
    wrong = [f"{o.query}: answers differ" for o in outcomes if not o.equal]
    wrong += [
        f"{o.query}: {len(o.lost)} files lost: {o.lost}" for o in outcomes if o.lost
    ]
    wrong += [
        f"{o.query}: {o.kept['bitmaps']} files kept with bitmaps, "
        f"{o.oracle} hold a match"
        for o in outcomes
        if o.kept["bitmaps"] != o.oracle
    ]
    wrong += [
        f"{o.query}: the plan counts {o.counted[0]} to {o.counted[1]} rows, "
        f"{o.matched} match"
        for o in outcomes
        if o.counted != (o.matched, o.matched)
    ]
    if wrong:
        return "\n".join(["FAILED", *wrong])
    return (
        f"all {len(outcomes)} answers are equal, no file with a match was skipped, and "
        "with bitmaps no other file was read and every plan knew the count of rows"
    )


def _sums(name: str, outcomes: Sequence[Outcome]) -> list[str]:
    """The cells of a line: those of one query, or the sums of all."""

    def total(of: Callable[[Outcome], float]) -> float:
        return sum(map(of, outcomes))

    return [
        name,
        f"{total(lambda o: o.matched):,}",
        f"{total(lambda o: o.files)}",
        *(f"{sum(o.kept[kind] for o in outcomes)}" for kind in KINDS),
        f"{total(lambda o: o.oracle)}",
        f"{total(lambda o: o.n_bytes[0]) / 1e6:.1f}",
        f"{total(lambda o: o.n_bytes[1]) / 1e6:.1f}",
        f"{total(lambda o: o.seconds[0]):.2f}",
        f"{total(lambda o: o.plan_seconds):.3f}",
        f"{total(lambda o: o.seconds[1]):.2f}",
        "yes" if all(o.is_right for o in outcomes) else "NO",
    ]
