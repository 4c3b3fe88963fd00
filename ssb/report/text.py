"""The tables of the flat and of the star form, as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ssb.run import KINDS, Outcome
from ssb.star_form import StarOutcome

_HEADS: Final = (
    *("query", "rows", "files", "minmax", "+bloom", "+bitmap", "oracle"),
    *("MB all", "MB read", "s all", "s plan", "s read", "same"),
)
_STAR_HEADS: Final = (
    *("query", "files", "plain", "pruned", "oracle", "s plain", "s pruned", "same"),
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
    table = _ruled([_HEADS, *lines, _sums("all", outcomes)])
    return "\n".join([f"layout: {layout}", *table])


def _ruled(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with rules between the heads, the queries and the sums."""
    head, *queries, sums = aligned(rows)
    rule = "-" * len(head)
    return [head, rule, *queries, rule, sums]


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


@dataclass(frozen=True, slots=True)
class BuildCost:
    """What the indexes of a layout cost.

    Args:
        seconds: to build them; 0 where they were there.
        n_bytes: of them.
        data_bytes: of the data files.
    """

    seconds: float
    n_bytes: int
    data_bytes: int


def gain_of(
    outcomes: Mapping[str, Sequence[Outcome]], costs: Mapping[str, BuildCost]
) -> str:
    """What was gained, in plain words: two lines for each layout, and one for all.

    Args:
        outcomes: by layout; the first layout is the data as they were generated.
        costs: likewise.
    """
    lines = []
    for layout, found in outcomes.items():
        files, kept = sum(o.files for o in found), sum(o.kept["bitmaps"] for o in found)
        whole, read = (sum(o.n_bytes[i] for o in found) / 1e6 for i in (0, 1))
        before, after = (sum(o.seconds[i] for o in found) for i in (0, 1))
        cost = costs[layout]
        lines.append(
            f"{layout}: {len(found)} queries read {kept:,} of {files:,} files and "
            f"{read:,.0f} of {whole:,.0f} MB, and take {after:.1f} s, not "
            f"{before:.1f} s: {_faster(before / after)}."
        )
        built = f", and were built in {cost.seconds:.1f} s" if cost.seconds else ""
        lines.append(
            f"  Its indexes are {cost.n_bytes / 1e6:,.1f} MB, "
            f"{100 * cost.n_bytes / cost.data_bytes:.0f} % of the data{built}."
        )
    first, *_, last = outcomes.values()
    factors = [a.seconds[0] / b.seconds[1] for a, b in zip(first, last, strict=True)]
    factor = geometric_mean(factors)
    lines.append(
        "From the first layout, unpruned, to the last one, pruned: "
        f"{sum(o.seconds[0] for o in first):.1f} s become "
        f"{sum(o.seconds[1] for o in last):.1f} s; in the geometric mean a query is "
        f"{_faster(factor)}."
    )
    return "\n".join(lines)


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of positive numbers.

    >>> geometric_mean([1, 4])
    2.0
    """
    return math.exp(sum(map(math.log, values)) / len(values))


def _faster(factor: float) -> str:
    """A factor in words.

    >>> _faster(1.5), _faster(0.8)
    ('1.5 times faster', '1.2 times slower')
    """
    if factor >= 1:
        return f"{factor:.1f} times faster"
    return f"{1 / factor:.1f} times slower"


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


def star_table_of(layout: str, outcomes: Sequence[StarOutcome]) -> str:
    """One line a query and a line of sums, for one layout of the fact table.

    Columns: files of the fact table; files of it that are read without and with
    skipping; files that hold a row for the query; seconds without and with skipping;
    whether rows and order are the same.
    """
    lines = [_star_sums(o.query, [o]) for o in outcomes]
    table = _ruled([_STAR_HEADS, *lines, _star_sums("all", outcomes)])
    tight = sum(outcome.is_tight for outcome in outcomes)
    last = (
        f"{tight} of {len(outcomes)} queries read only files that hold a row for them"
    )
    title = f"star form, layout: {layout}"
    return "\n".join([title, *table, last])


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


def _star_sums(name: str, outcomes: Sequence[StarOutcome]) -> list[str]:
    plain, pruned = (sum(o.read[i] for o in outcomes) for i in (0, 1))
    counts = (sum(o.files for o in outcomes), plain, pruned)
    times = [sum(o.seconds[i] for o in outcomes) for i in (0, 1)]
    return [
        name,
        *map(str, (*counts, sum(o.oracle for o in outcomes))),
        *(f"{seconds:.2f}" for seconds in times),
        "yes" if all(o.equal for o in outcomes) else "NO",
    ]
