"""The numbers behind the advice: what was measured, chosen and rejected."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from skipindex.advice.candidates import Candidate
from skipindex.advice.questions import Question
from skipindex.advice.report import (
    Advice,
    ColumnAdvice,
    QueryAdvice,
    Trial,
    specs_text,
)
from skipindex.advice.sample import Sample
from skipindex.advice.selection import CandidateScores, Selection
from skipindex.conditions.bound_predicate import leaves

_SORTED: Final = 0.5
"""If a value lies within the bounds of fewer files than this part, a column counts as
clustered."""


def advice_of(
    scores: CandidateScores,
    selection: Selection,
    *,
    columns: Sequence[str],
    max_bytes_ratio: float,
    n_asked: int,
    not_judged: Mapping[str, str],
    files_now: Sequence[int],
    notes: Sequence[str],
    seconds: float,
) -> Advice:
    """The report of a choice.

    ``columns`` are all that get statistics.  The first ``n_asked`` questions are those
    of the workload; 0 if there was none, and the first of them read ``files_now``
    files.  ``not_judged`` has columns without a usable index, and why.  ``notes``
    say what was not sampled or asked.
    """
    asked = range(n_asked or len(scores.questions))
    nothing = scores.nothing()
    least, chosen, most = (
        [scores.kept(i, one) for i in asked]
        for one in (nothing, selection, scores.richest())
    )

    def with_candidate(
        base: Selection, kept: list[int], name: str, at: int
    ) -> list[int]:
        """``kept``, which is of ``base``, with another candidate of one column."""
        other = {**base, name: at}
        concerned = set(scores.questions_of(name))
        return [scores.kept(i, other) if i in concerned else kept[i] for i in asked]

    trials = {
        name: [
            _Measured(
                one,
                with_candidate(nothing, least, name, i),
                with_candidate(selection, chosen, name, i),
            )
            for i, one in enumerate(result)
        ]
        for name, result in scores.candidates.items()
    }
    data_bytes = int(scores.sample.table.sizes.sum())
    n_files = len(scores.sample.table)
    scale = n_files / max(1, len(scores.sample.files))
    alone = [name for name in columns if name not in scores.candidates]
    return Advice(
        columns=tuple(
            _column_advice(scores.sample, name, trials[name], selection[name])
            for name in scores.candidates
        ),
        queries=tuple(
            QueryAdvice(
                question.text,
                least[i],
                chosen[i],
                most[i],
                files_now[i] if i < len(files_now) else None,
                min(n_files, *files_now[i : i + 1], math.ceil(chosen[i] * scale)),
                {
                    name: {
                        specs_text(one.candidate.specs): (one.alone[i], one.together[i])
                        for one in trials[name]
                    }
                    for name in _columns(question)
                    if name in trials
                },
            )
            for i, question in enumerate(scores.questions[:n_asked])
        ),
        unasked=tuple(name for name in alone if name not in not_judged),
        not_judged={name: not_judged[name] for name in alone if name in not_judged},
        data_bytes=data_bytes,
        max_bytes=int(max_bytes_ratio * data_bytes),
        table_files=n_files,
        n_files=len(scores.sample.files),
        n_questions=len(asked),
        kept=(sum(least), sum(chosen), sum(most)),
        notes=tuple(notes),
        seconds=seconds,
    )


@dataclass(frozen=True, slots=True)
class _Measured:
    """A candidate, and how many files each question keeps with it.

    Args:
        candidate: of one column.
        alone: with nothing else but min/max.
        together: where all other columns are as chosen.
    """

    candidate: Candidate
    alone: list[int]
    together: list[int]


def _columns(question: Question) -> list[str]:
    """The columns of a question, in its order."""
    return list(dict.fromkeys(leaf.column for leaf in leaves(question.tree)))


def _column_advice(
    sample: Sample, name: str, measured: Sequence[_Measured], at: int
) -> ColumnAdvice:
    column = sample.columns[name]
    trials = tuple(
        Trial(
            one.candidate.specs,
            round(one.candidate.n_bytes * sample.scale),
            sum(one.alone),
            sum(one.together),
        )
        for one in measured
    )
    facts = [
        f"{'clustered over files' if column.overlap < _SORTED else 'in every file'}",
        f"runs of {column.run_length:.1f} rows" if column.run_length > 2 else "",
        f"{column.null_share:.0%} NULL" if column.null_share else "",
    ]
    verdict = _verdict(trials, at, n_distinct=column.n_distinct)
    return ColumnAdvice(
        name=name,
        specs=trials[at].specs,
        n_bytes=trials[at].n_bytes,
        n_distinct=column.n_distinct,
        null_share=column.null_share,
        run_length=column.run_length,
        overlap=column.overlap,
        reason=f"{', '.join(filter(None, facts))}: {verdict}",
        trials=trials,
    )


def _verdict(trials: Sequence[Trial], at: int, *, n_distinct: float) -> str:
    """Why the candidate ``at`` was chosen, by the files that the others keep."""
    kept = [trial.kept_with_choice for trial in trials]
    alone = [trial.kept_alone for trial in trials]
    if at:
        cut = ", cut to fit under the cap" if min(kept) < kept[at] else ""
        return f"keeps {kept[0] - kept[at]} fewer files than min/max{cut}"
    if min(kept) < kept[0]:
        return "other columns skip more for the bytes"
    if min(alone) < alone[0]:
        return "the indexes of other columns skip as much without it"
    if n_distinct <= 1:
        return "one value, which min/max covers"
    return "no index skips more than min/max"
