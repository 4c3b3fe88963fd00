"""The printed matrix: what was checked by cell, as a page of documentation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.soundness.by_spark import SparkResult
from tests.soundness.foreign import ForeignResult
from tests.soundness.matrix import Result, Tally

_HEAD = """\
# The soundness matrix

Written by `make soundness`{arguments}; do not edit.

A *verdict* is one file judged for one predicate. Every verdict is held against the
truth: a skipped file must hold no row for which the predicate is TRUE, in a file of
which all rows are said to match all must, and the number of matching rows must lie
within the bounds that the plan gives. Every table also has files that were replaced
after the build, and files that no index has seen.

*Skipped* is how many of the files without a matching row were skipped, and *full* how
many of the files in which every row matches were known to be so; both of indexed files
alone. Each kind is asked on its own, without the statistics, so an exact kind that
stops helping shows here, although it would lose no row. Trees with conditions that no
index can judge are in these figures, so 100 % is not to be had.
"""


def page(
    result: Result,
    large: Result,
    spark: SparkResult,
    foreign: ForeignResult,
    *,
    arguments: str,
) -> str:
    """The whole page as Markdown."""
    total = result.total
    failures = [
        *result.failures,
        *large.failures,
        *spark.failures,
        *foreign.failures,
    ]
    judged = sum(spark.judged.values())
    lines = [
        _HEAD.format(arguments=arguments),
        "| judge | predicates | plans | verdicts | breaches |",
        "|---|---:|---:|---:|---:|",
        _judge("row oracle", result.n_predicates, total, len(result.failures)),
    ]
    if large.n_predicates:
        breaches = len(large.failures)
        lines.append(_judge("numpy", large.n_predicates, large.total, breaches))
    if spark.judged:
        by_spark = _sum(spark.tallies.values())
        lines.append(_judge("Spark", judged, by_spark, len(spark.failures)))
    if foreign.judged:
        name, breaches = "Spark, files of others", len(foreign.failures)
        lines.append(_judge(name, foreign.judged, foreign.total, breaches))
    lines += ["", *_failures(failures)]
    lines += ["## Column types by index kinds", "", *_types_by_kinds(result), ""]
    lines += ["## Index kinds", "", *_table("kind", result.along(2)), ""]
    lines += ["## Predicate forms", "", *_table("form", result.along(1)), ""]
    if large.n_predicates:
        lines += ["## Files of 70,000 rows", "", *_large(large), ""]
    if spark.judged:
        lines += ["## Against Spark", "", *_by_spark(spark), ""]
    if foreign.judged:
        lines += ["## Files of others", "", *_foreign(foreign), ""]
    return "\n".join(lines)


def _judge(name: str, n_predicates: int, tally: Tally, n_failures: int) -> str:
    return (
        f"| {name} | {n_predicates:,} | {tally.predicates:,} "
        f"| {tally.verdicts:,} | {n_failures} |"
    )


def _failures(failures: Sequence[str]) -> list[str]:
    if not failures:
        return []
    shown = [f"* {failure}" for failure in failures[:50]]
    return [f"## Breaches: {len(failures)}", "", *shown, ""]


def _types_by_kinds(result: Result) -> list[str]:
    """Verdicts, and of the files without a match the share that was skipped."""
    kinds = list(result.along(2))
    lines = [
        "Verdicts, and of the files without a matching row the share that was skipped.",
        "",
        "| type | " + " | ".join(kinds) + " |",
        "|---|" + "---:|" * len(kinds),
    ]
    for name in result.along(0):
        cells = []
        for kind in kinds:
            tally = _sum(
                t for (a, _, c), t in result.cells.items() if (a, c) == (name, kind)
            )
            share = _share(tally.skipped, tally.skippable)
            cells.append(f"{tally.verdicts:,} ({share})" if tally.verdicts else "")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def _table(what: str, tallies: dict[str, Tally]) -> list[str]:
    lines = [
        f"| {what} | plans | verdicts | skipped | full | count exact |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, tally in tallies.items():
        lines.append(
            f"| {name} | {tally.predicates:,} | {tally.verdicts:,} "
            f"| {_share(tally.skipped, tally.skippable)} "
            f"| {_share(tally.full, tally.fillable)} "
            f"| {_share(tally.exact, tally.indexed)} |"
        )
    return lines


def _large(large: Result) -> list[str]:
    return [
        "Trees of conditions over seven columns, with one request for all of them,",
        "every second time without the statistics.",
        "",
        *_table("request", large.along(2)),
    ]


def _by_spark(spark: SparkResult) -> list[str]:
    lines = [
        "With `spark.sql.parquet.filterPushdown=false`. Each condition is planned",
        "with some kinds by turns. What Spark refuses is of a wrong type, or an error",
        "of ANSI mode.",
        "",
        "| session | conditions | refused by Spark | verdicts | skipped |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, tally in spark.tallies.items():
        lines.append(
            f"| {name} | {spark.judged[name]} | {spark.refused[name]} "
            f"| {tally.verdicts:,} | {_share(tally.skipped, tally.skippable)} |"
        )
    return lines


def _foreign(foreign: ForeignResult) -> list[str]:
    lines = [
        "Tables whose files were written by all of these, with random encodings,",
        "pages, row groups, compressions and schemas, under both of Spark's readers,",
        "with `mergeSchema` and without, in several time zones. What Spark itself",
        "cannot read under a setting is not judged.",
        "",
        "| writer | files | verdicts | skipped | not read by Spark |",
        "|---|---:|---:|---:|---:|",
        *(
            f"| {name} | {n:,} | {foreign.verdicts[name]:,} "
            f"| {_share(foreign.skipped[name], foreign.skippable[name])} "
            f"| {foreign.unread[name]:,} |"
            for name, n in sorted(foreign.files.items())
        ),
    ]
    lines += ["", *_table("setting", dict(sorted(foreign.by_setting.items())))]
    return [*lines, "", *_table("type", foreign.by_pool)]


def _sum(tallies: Iterable[Tally]) -> Tally:
    found = Tally()
    for tally in tallies:
        found.add(tally)
    return found


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"
