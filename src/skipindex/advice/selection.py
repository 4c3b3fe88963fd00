"""The choice: everything is built at first, and the least useful bytes are given up.

Only *open* pairs count: a question and a file of the sample that no min/max skips,
and that holds no matching row, so an index can skip it.  A pair costs 1 where the
file is kept for nothing, and up to ``_NEARLY`` more for the rows that may match:
a conjunction is empty only when all of its columns are known well, and what is
short of that must not look worthless.  Where the file is skipped, the pair costs
half the chance that one like it would not be, were its conditions independent: the
sample is small, and what is enough for it by a hair is not enough for the table.

From the richest candidate of every column downwards, the step is taken that loses
least for each byte that it saves, until the indexes fit under the cap.  Going down
and not up matters: an index that is useful only together with another one has no
use at all when it comes first.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, assert_never

from pyroaring import BitMap

from skipindex.advice.candidates import Candidate, Rows
from skipindex.advice.questions import Question
from skipindex.advice.sample import Sample
from skipindex.planner.bound_predicate import (
    AllOf,
    AnyOf,
    BoundPredicate,
    Computed,
    Leaf,
    TruthValue,
    Unknown,
    leaves,
)

_NEARLY: Final = 0.1
_NO_ROW: Final = BitMap()

State = dict[str, int]
"""Of every column, which of its candidates is taken."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and a file that an index can skip for it."""

    question: int
    file: int


@dataclass
class Board:
    """The questions, the sample and the candidates, and what a state is worth.

    Args:
        sample: the files.
        questions: that are asked.
        candidates: of each column, by size.
    """

    sample: Sample
    questions: Sequence[Question]
    candidates: Mapping[str, Sequence[Candidate]]
    pairs: list[Pair] = field(init=False)
    of_question: list[list[Pair]] = field(init=False)
    skipped: list[int] = field(init=False)
    matching: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._stats = {
            leaf: self.sample.stats(leaf).upper.tolist()
            for question in self.questions
            for leaf in leaves(question.tree)
        }
        self.pairs, self.of_question = [], []
        self.skipped, self.matching = [], []
        richest = self.richest()
        nothing = dict.fromkeys(self.candidates, 0)
        for i in range(len(self.questions)):
            skipped = matching = 0
            pairs = []
            for file in range(len(self.sample.files)):
                pair = Pair(i, file)
                if self.is_empty(self.rows(pair, nothing)):
                    skipped += 1
                elif self.is_empty(self.rows(pair, richest)):
                    pairs.append(pair)
                else:
                    matching += 1
            self.pairs += pairs
            self.of_question.append(pairs)
            self.skipped.append(skipped)
            self.matching.append(matching)
        self.of_column: dict[str, list[Pair]] = {name: [] for name in self.candidates}
        for pair in self.pairs:
            names = {x.column for x in leaves(self.questions[pair.question].tree)}
            for name in names & self.of_column.keys():
                self.of_column[name].append(pair)

    def questions_of(self, column: str) -> list[int]:
        """The questions with an open pair that ask for the column."""
        return sorted({pair.question for pair in self.of_column[column]})

    def richest(self) -> State:
        """The largest candidate of every column."""
        return {name: len(found) - 1 for name, found in self.candidates.items()}

    @staticmethod
    def is_empty(rows: Rows) -> bool:
        """Whether no row may match."""
        return rows is not None and not rows

    def rows(self, pair: Pair, state: State) -> Rows:
        """The rows of the pair's file that may match under ``state``."""

        def walk(node: BoundPredicate) -> Rows:
            match node:
                case AllOf(children):
                    rows: Rows = None
                    for child in children:
                        more = walk(child)
                        if more is not None:
                            rows = more if rows is None else rows & more
                            if not rows:
                                break
                    return rows
                case AnyOf(children):
                    union = _NO_ROW
                    for child in children:
                        more = walk(child)
                        if more is None:
                            return None
                        union = union | more
                    return union
                case Leaf() | Computed():
                    return self._leaf(node, pair.file, state)
                case TruthValue(value):
                    return None if value else _NO_ROW
                case Unknown():
                    return None
                case _:
                    assert_never(node)

        return walk(self.questions[pair.question].tree)

    def _leaf(self, leaf: Leaf | Computed, file: int, state: State) -> Rows:
        if not self._stats[leaf][file]:
            return _NO_ROW
        column = leaf.column
        if column not in state:
            return None
        return self.candidates[column][state[column]].answers[leaf][file]

    def cost(self, pair: Pair, state: State) -> float:
        """What the pair costs under ``state``: less than half if it is skipped."""
        rows = self.rows(pair, state)
        n_rows = self.sample.n_rows[pair.file]
        n = n_rows if rows is None else len(rows)
        weight = self.questions[pair.question].weight
        if not n:
            return 0.5 * weight * self._chance(pair, state)
        return weight * (1 + _NEARLY * math.log(n) / math.log(max(2, n_rows)))

    def _chance(self, pair: Pair, state: State) -> float:
        """That a row of a file like this one may match."""
        n_rows = self.sample.n_rows[pair.file]

        def share(node: BoundPredicate) -> float:
            match node:
                case AllOf(children):
                    return math.prod(map(share, children))
                case AnyOf(children):
                    return 1 - math.prod(1 - share(child) for child in children)
                case Leaf() | Computed():
                    rows = self._leaf(node, pair.file, state)
                    return 1.0 if rows is None else len(rows) / n_rows
                case TruthValue(value):
                    return float(value)
                case Unknown():
                    return 1.0
                case _:
                    assert_never(node)

        expected = n_rows * share(self.questions[pair.question].tree)
        return -math.expm1(-expected)

    def n_bytes(self, state: State) -> int:
        """The size of the indexes of the sample."""
        return sum(self.candidates[name][i].n_bytes for name, i in state.items())

    def kept(self, question: int, state: State) -> int:
        """How many files of the sample a question keeps under ``state``."""
        return self.matching[question] + sum(
            not self.is_empty(self.rows(pair, state))
            for pair in self.of_question[question]
        )


def choose(board: Board, max_bytes: float) -> State:
    """The candidates to take: together at most ``max_bytes`` on the sample."""
    state = board.richest()
    costs = {pair: board.cost(pair, state) for pair in board.pairs}
    _give_up(board, state, costs, max_bytes)
    _fill(board, state, costs, max_bytes)
    _drop_useless(board, state)
    return state


def _give_up(
    board: Board, state: State, costs: dict[Pair, float], max_bytes: float
) -> None:
    """Step down, the least loss for a byte first."""
    n_bytes = board.n_bytes(state)
    heap = [step for name in state for step in _steps_down(board, state, costs, name)]
    heapq.heapify(heap)
    while heap:
        step = heapq.heappop(heap)
        if step.before != state[step.column]:
            continue
        now = _step(board, state, costs, step.column, step.after)
        if heap and now.ratio > heap[0].ratio and now.ratio > step.ratio:
            heapq.heappush(heap, now)
            continue
        if n_bytes <= max_bytes and now.loss > 0:
            continue  # it fits, and this byte is of some use
        n_bytes -= now.saved
        _take(board, state, costs, step.column, step.after)
        for more in _steps_down(board, state, costs, step.column):
            heapq.heappush(heap, more)


def _fill(
    board: Board, state: State, costs: dict[Pair, float], max_bytes: float
) -> None:
    """Use what is left under the cap, the greatest gain for a byte first."""
    while True:
        slack = max_bytes - board.n_bytes(state)
        ups = [
            step
            for name, at in state.items()
            for i in range(at + 1, len(board.candidates[name]))
            if board.candidates[name][i].n_bytes - board.candidates[name][at].n_bytes
            <= slack
            and (step := _step(board, state, costs, name, i)).loss < 0
        ]
        if not ups:
            return
        best = max(ups, key=lambda step: step.ratio)
        _take(board, state, costs, best.column, best.after)


def _drop_useless(board: Board, state: State) -> None:
    """Give up what keeps no file of the sample fewer, the largest first.

    That a file is kept for fewer rows is worth something only if another index can
    make use of it.
    """
    sizes = {name: board.candidates[name][at].n_bytes for name, at in state.items()}
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        asked = board.questions_of(name)
        without = {**state, name: 0}
        if sizes[name] and all(
            board.kept(i, without) == board.kept(i, state) for i in asked
        ):
            state[name] = 0


@dataclass(frozen=True, slots=True, order=True)
class _Step:
    """From one candidate of a column to another: what it loses and saves."""

    ratio: float
    column: str
    before: int
    after: int
    loss: float
    saved: int


def _steps_down(
    board: Board, state: State, costs: Mapping[Pair, float], name: str
) -> Iterable[_Step]:
    for after in range(state[name]):
        yield _step(board, state, costs, name, after)


def _step(
    board: Board, state: State, costs: Mapping[Pair, float], name: str, after: int
) -> _Step:
    before = state[name]
    other = {**state, name: after}
    loss = sum(board.cost(p, other) - costs[p] for p in board.of_column[name])
    if abs(loss) < 1e-12:
        loss = 0.0
    saved = (
        board.candidates[name][before].n_bytes - board.candidates[name][after].n_bytes
    )
    return _Step(loss / saved if saved else 0.0, name, before, after, loss, saved)


def _take(
    board: Board, state: State, costs: dict[Pair, float], name: str, after: int
) -> None:
    state[name] = after
    for pair in board.of_column[name]:
        costs[pair] = board.cost(pair, state)
