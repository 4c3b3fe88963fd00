"""From what was measured and chosen to the advice: the numbers behind every word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from skipindex.advice.candidates import Candidate
from skipindex.advice.report import (
    Advice,
    ColumnAdvice,
    QueryAdvice,
    Trial,
    specs_text,
)
from skipindex.advice.selection import Board, State
from skipindex.planner.bound_predicate import leaves

_SORTED: Final = 0.5
"""Where a value lies within the bounds of fewer files, min/max does much."""


def advice_of(
    board: Board,
    state: State,
    *,
    columns: Sequence[str],
    max_bytes_ratio: float,
    n_asked: int,
    notes: Sequence[str],
    seconds: float,
) -> Advice:
    """The report of a choice.

    Args:
        board: what was measured.
        state: what was chosen.
        columns: all that get statistics.
        max_bytes_ratio: the cap.
        n_asked: questions of the workload, which come first; 0 if there was none.
        notes: as they are.
        seconds: that it took.
    """
    nothing = dict.fromkeys(board.candidates, 0)
    richest = board.richest()
    ids = range(n_asked or len(board.questions))

    def kept(some: State) -> list[int]:
        return [board.kept(i, some) for i in ids]

    least, chosen, most = kept(nothing), kept(state), kept(richest)
    # For every column and candidate: the files that each question keeps.
    alone: dict[str, list[list[int]]] = {}
    together: dict[str, list[list[int]]] = {}
    for name, found in board.candidates.items():
        mine = [i for i in board.questions_of(name) if i in ids]
        alone[name], together[name] = [], []
        for at in range(len(found)):
            one, rest = list(least), list(chosen)
            for i in mine:
                one[i] = board.kept(i, {**nothing, name: at})
                rest[i] = board.kept(i, {**state, name: at})
            alone[name].append(one)
            together[name].append(rest)
    advice = tuple(
        _column_advice(board, state, name, alone[name], together[name])
        for name in board.candidates
    )
    queries = tuple(
        QueryAdvice(
            board.questions[i].text,
            least[i],
            chosen[i],
            most[i],
            {
                name: {
                    specs_text(one.specs): (alone[name][at][i], together[name][at][i])
                    for at, one in enumerate(board.candidates[name])
                }
                for name in dict.fromkeys(
                    leaf.column for leaf in leaves(board.questions[i].tree)
                )
                if name in board.candidates
            },
        )
        for i in ids
    )
    data_bytes = int(board.sample.table.sizes.sum())
    return Advice(
        columns=advice,
        queries=queries if n_asked else (),
        unasked=tuple(name for name in columns if name not in board.candidates),
        data_bytes=data_bytes,
        max_bytes=int(max_bytes_ratio * data_bytes),
        n_files=len(board.sample.files),
        kept=(sum(least), sum(chosen), sum(most)),
        notes=tuple(notes),
        seconds=seconds,
    )


def _column_advice(
    board: Board,
    state: State,
    name: str,
    alone: Sequence[Sequence[int]],
    together: Sequence[Sequence[int]],
) -> ColumnAdvice:
    column, found, at = board.sample.columns[name], board.candidates[name], state[name]
    scale = board.sample.scale
    trials = tuple(
        Trial(one.specs, round(one.n_bytes * scale), sum(a), sum(t))
        for one, a, t in zip(found, alone, together, strict=True)
    )
    facts = [
        f"{'clustered over files' if column.overlap < _SORTED else 'in every file'}",
        f"runs of {column.run_length:.1f} rows" if column.run_length > 2 else "",
        f"{column.null_share:.0%} NULL" if column.null_share else "",
    ]
    saved = trials[0].kept_with_choice - trials[at].kept_with_choice
    verdict = _verdict(found, at, saved, n_distinct=column.n_distinct)
    return ColumnAdvice(
        name=name,
        specs=found[at].specs,
        n_bytes=trials[at].n_bytes,
        n_distinct=column.n_distinct,
        null_share=column.null_share,
        run_length=column.run_length,
        overlap=column.overlap,
        reason=f"{', '.join(filter(None, facts))}: {verdict}",
        trials=trials,
    )


def _verdict(
    found: Sequence[Candidate], at: int, saved: int, *, n_distinct: float
) -> str:
    if at:
        less = "" if at == len(found) - 1 else ", cut to fit under the cap"
        return f"keeps {saved} files fewer than min/max{less}"
    if len(found) > 1:
        return "other columns skip more for the bytes"
    if n_distinct <= 1:
        return "one value, which min/max knows"
    return "no index skips more than min/max"
