"""The benchmark's table, as text."""

from __future__ import annotations

from collections.abc import Sequence

from ssb.run import Outcome
from ssb.star import StarOutcome

_HEADER = (
    f"{'query':<22}{'rows':>10}{'files':>7}{'minmax':>8}{'+bloom':>8}{'+bitmap':>9}"
    f"{'oracle':>8}{'MB all':>8}{'MB read':>9}{'s all':>8}{'s plan':>8}{'s read':>8}"
    "  same"
)


def table_of(layout: str, outcomes: Sequence[Outcome]) -> str:
    """One line a query and a line of sums, for one layout.

    Columns: rows that match; files in all; files kept with min/max, with bloom
    filters too, with row-level bitmaps too; files that truly hold a match; bytes of
    the table and of the files read; seconds on the whole table, to plan, and on the
    plan (planning included); whether both answers are the same.
    """
    lines = [f"layout: {layout}", _HEADER, "-" * len(_HEADER)]
    lines += [_line(o) for o in outcomes]
    lines += ["-" * len(_HEADER), _sums(outcomes)]
    return "\n".join(lines)


_STAR_HEADER = (
    f"{'query':<22}{'files':>7}{'plain':>8}{'pruned':>8}{'oracle':>8}"
    f"{'s plain':>9}{'s pruned':>10}  same"
)


def star_table_of(layout: str, outcomes: Sequence[StarOutcome]) -> str:
    """One line a query and a line of sums, for one layout of the fact table.

    Columns: files of the fact table; files of it that are read without and with
    skipping; files that hold a row for the query; seconds without and with skipping;
    whether rows and order are the same.
    """
    lines = [f"star form, layout: {layout}", _STAR_HEADER, "-" * len(_STAR_HEADER)]
    lines += [_star_line(o) for o in outcomes]
    total = StarOutcome(
        "all",
        sum(o.files for o in outcomes),
        (sum(o.read[0] for o in outcomes), sum(o.read[1] for o in outcomes)),
        sum(o.oracle for o in outcomes),
        (sum(o.seconds[0] for o in outcomes), sum(o.seconds[1] for o in outcomes)),
        equal=all(o.equal for o in outcomes),
    )
    return "\n".join([*lines, "-" * len(_STAR_HEADER), _star_line(total)])


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
    return (
        f"all {len(outcomes)} answers of unchanged SQL are equal, order included; "
        f"{sum(o.read[1] for o in outcomes)} of "
        f"{sum(o.read[0] for o in outcomes)} files read"
    )


def _star_line(o: StarOutcome) -> str:
    return (
        f"{o.query:<22}{o.files:>7}{o.read[0]:>8}{o.read[1]:>8}{o.oracle:>8}"
        f"{o.seconds[0]:>9.2f}{o.seconds[1]:>10.2f}{'yes' if o.equal else 'NO':>6}"
    )


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


def _line(o: Outcome) -> str:
    return (
        f"{o.query:<22}{o.matched:>10,}{o.files:>7}{o.kept['minmax']:>8}"
        f"{o.kept['bloom']:>8}{o.kept['bitmaps']:>9}{o.oracle:>8}"
        f"{o.n_bytes[0] / 1e6:>8.1f}{o.n_bytes[1] / 1e6:>9.1f}"
        f"{o.seconds[0]:>8.2f}{o.plan_seconds:>8.3f}{o.seconds[1]:>8.2f}"
        f"{'yes' if o.is_right else 'NO':>6}"
    )


def _sums(outcomes: Sequence[Outcome]) -> str:
    def total(name: str) -> int:
        return sum(o.kept[name] for o in outcomes)

    return (
        f"{'all':<22}{sum(o.matched for o in outcomes):>10,}"
        f"{sum(o.files for o in outcomes):>7}{total('minmax'):>8}{total('bloom'):>8}"
        f"{total('bitmaps'):>9}{sum(o.oracle for o in outcomes):>8}"
        f"{sum(o.n_bytes[0] for o in outcomes) / 1e6:>8.1f}"
        f"{sum(o.n_bytes[1] for o in outcomes) / 1e6:>9.1f}"
        f"{sum(o.seconds[0] for o in outcomes):>8.2f}"
        f"{sum(o.plan_seconds for o in outcomes):>8.3f}"
        f"{sum(o.seconds[1] for o in outcomes):>8.2f}"
        f"{'yes' if all(o.is_right for o in outcomes) else 'NO':>6}"
    )
