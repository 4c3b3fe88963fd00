"""What a sweep has checked: a summary for the documentation, and every figure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.heavy.soundness.by_spark import SparkResult
from tests.heavy.soundness.foreign import ForeignResult
from tests.heavy.soundness.matrix import Result, Tally

_PAGE = """\
# The soundness matrix

Written by `make soundness`, seed {seed}; do not edit.

A *verdict* is one file judged for one predicate. Every verdict is compared with the
rows. A skipped file holds no row for which the predicate is TRUE. If the plan says
that all rows of a file match, all do. The number of matching rows lies within the
bounds that the plan gives. A verdict that fails one of these checks is a *breach*.
Every table also has files that were replaced after the build, and files that no index
has seen.

{judges}

{failures}## What was tested

{swept}

## What each kind skips

*Skipped* is the fraction of the files without a matching row that were skipped. *Full*
is the fraction of the files in which every row matches that were recognized. Both count
indexed files only. Each kind is tested alone, without the statistics, so an exact kind
that stops helping shows here, although it loses no row. The figures include conditions
that no index can evaluate, so 100 % cannot be reached.

{kinds}

## How to run it

`make soundness SEED=2` draws other cases in minutes, and writes the figures by type,
form, kind, writer and setting into `build/soundness-matrix.md`.
`python -m tests.heavy.case soundness --seed 1 --part int8 --count 1` checks one type
without Spark. Every `make test` runs a part of the matrix.
"""
_MATRIX = """\
# The soundness matrix, cell by cell

Written by `make soundness`, seed {seed}. `docs/soundness.md` says what the words mean.
"""
_MAX_LISTED = 50
"""So many breaches are written out."""


@dataclass(frozen=True)
class Checked:
    """All that one run has checked, by judge.

    Args:
        by_oracle: every form over every type with every kind.
        by_numpy: files of many rows.
        by_spark: the same tables as the oracle's, with Spark as judge.
        foreign: files of other writers, with Spark as judge.
    """

    by_oracle: Result = field(default_factory=Result)
    by_numpy: Result = field(default_factory=Result)
    by_spark: SparkResult = field(default_factory=SparkResult)
    foreign: ForeignResult = field(default_factory=ForeignResult)

    @property
    def failures(self) -> list[str]:
        """What was wrong, whoever judged."""
        every = (self.by_oracle, self.by_numpy, self.by_spark, self.foreign)
        return [failure for result in every for failure in result.failures]

    @property
    def n_verdicts(self) -> int:
        """How many files were judged, whoever judged."""
        totals = (self.by_oracle.total, self.by_numpy.total, self.foreign.total)
        return sum(total.verdicts for total in totals) + self.by_spark.verdicts


def page(checked: Checked, *, seed: int) -> str:
    """The summary for readers, as Markdown."""
    failures = checked.failures
    shown = [f"* {failure}" for failure in failures[:_MAX_LISTED]]
    breaches = [f"## Breaches: {len(failures)}", "", *shown, "", ""]
    return _PAGE.format(
        seed=seed,
        judges="\n".join(_judges(checked)),
        failures="\n".join(breaches) if failures else "",
        swept="\n".join(_swept(checked)),
        kinds="\n".join(_table("kind", _families(checked.by_oracle))),
    )


def matrix(checked: Checked, *, seed: int) -> str:
    """Every figure, as Markdown."""
    result = checked.by_oracle
    lines = [_MATRIX.format(seed=seed), *_judges(checked), ""]
    lines += ["## Column types by index kinds", "", *_types_by_kinds(result), ""]
    lines += ["## Index kinds", "", *_table("kind", result.along(2)), ""]
    lines += ["## Predicate forms", "", *_table("form", result.along(1)), ""]
    if checked.by_numpy.n_predicates:
        lines += ["## Files of 70,000 rows", "", *_large(checked.by_numpy), ""]
    if checked.by_spark.judged:
        lines += ["## Against Spark", "", *_by_spark(checked.by_spark), ""]
    if checked.foreign.judged:
        lines += ["## Files of others", "", *_foreign(checked.foreign), ""]
    return "\n".join(lines)


def _judges(checked: Checked) -> list[str]:
    """What each judge has judged, in sum."""
    oracle, numpy, spark = checked.by_oracle, checked.by_numpy, checked.by_spark
    foreign = checked.foreign
    by_spark = _sum(spark.tallies.values())
    rows = [
        ("row oracle", oracle.n_predicates, oracle.total, oracle.failures),
        ("numpy, files of many rows", numpy.n_predicates, numpy.total, numpy.failures),
        ("Spark", sum(spark.judged.values()), by_spark, spark.failures),
        ("Spark, files of others", foreign.judged, foreign.total, foreign.failures),
    ]
    return [
        "| judge | predicates | plans | verdicts | breaches |",
        "|---|---:|---:|---:|---:|",
        *(
            f"| {name} | {n_predicates:,} | {tally.predicates:,} "
            f"| {tally.verdicts:,} | {len(failures)} |"
            for name, n_predicates, tally, failures in rows
            if n_predicates
        ),
    ]


def _swept(checked: Checked) -> list[str]:
    """The names along each axis."""
    oracle, foreign = checked.by_oracle, checked.foreign
    settings = sorted(foreign.by_setting)
    parts = dict.fromkeys(part for name in settings for part in name.split(", "))
    axes = {
        "column types": (len(oracle.along(0)), oracle.along(0)),
        "forms of predicates": (len(oracle.along(1)), oracle.along(1)),
        "sets of indexes": (len(oracle.along(2)), _families(oracle)),
        "writers": (len(foreign.files), sorted(foreign.files)),
        "settings of Spark's readers": (len(settings), parts),
    }
    return [
        textwrap.fill(
            f"* {n} {what}: {'; '.join(names)}",
            width=88,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for what, (n, names) in axes.items()
        if n
    ]


def _families(result: Result) -> dict[str, Tally]:
    """The tallies by kind, whatever its parameters."""
    sums: dict[str, Tally] = {}
    for label, tally in result.along(2).items():
        sums.setdefault(label.partition("(")[0], Tally()).add(tally)
    return sums


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
