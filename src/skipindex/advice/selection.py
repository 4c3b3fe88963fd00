"""Choosing indexes under a size cap: all are built, then the least useful are dropped.

Only *open pairs* count: a question and a file of the sample that min/max does not skip,
and that holds no matching row, so an index can skip it.

- A pair whose file is kept costs 1, and up to ``_NEARLY`` more for the rows that may
  match.  A conjunction is empty only if all of its columns are known well, so an index
  that leaves few rows is worth more than one that leaves many.
- A pair whose file is skipped costs half the chance that a file like it would be kept,
  if its conditions were independent.  The sample is small, and an index that is just
  precise enough for it is not precise enough for the table.

From the richest candidate of every column downwards, the step that loses least for each
byte that it saves is taken, until the indexes fit under the cap.  Going up from nothing
would not do: an index that is useful only together with another one has no use at all
when it comes first.

What is left under the cap is filled.  Some descents go further down before that, and
the choice that costs least is taken.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pyroaring import BitMap

from skipindex.advice.candidates import Candidate, Rows, both, is_empty
from skipindex.advice.questions import Question
from skipindex.advice.sample import Sample
from skipindex.conditions.bound_predicate import Computed, Leaf, fold, leaves
from skipindex.storage.telling import part

_NEARLY: Final = 0.1
"""Most that rows left over add to the weight of a question, as a share of it."""
_NO_ROW: Final = BitMap()
_SHARES: Final = (1, 0.75, 0.5, 0.25)
"""Parts of the cap that are gone down to; the least costly choice is taken."""

Selection = dict[str, int]
"""Place of the candidate that is taken, by column."""


class OpenPair(NamedTuple):
    """A question and a file that an index can skip for it."""

    question: int
    file: int


@dataclass
class CandidateScores:
    """The questions, the sample and the candidates, and what a selection is worth.

    Args:
        sample: the files.
        questions: the evaluated queries.
        candidates: of each column, by size.

    Attributes:
        pairs: the open pairs of every question.
        of_column: the open pairs of the questions that ask for a column.
        matching: of every question, the files that hold a matching row.
    """

    sample: Sample
    questions: Sequence[Question]
    candidates: Mapping[str, Sequence[Candidate]]
    pairs: list[list[OpenPair]] = field(init=False)
    of_column: dict[str, list[OpenPair]] = field(init=False)
    matching: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._stats = {
            leaf: self.sample.stats(leaf).upper.tolist()
            for question in self.questions
            for leaf in leaves(question.tree)
        }
        self.pairs, self.matching = [], []
        self.of_column = {name: [] for name in self.candidates}
        richest, nothing = self.richest(), self.nothing()
        tell = part("asking", "questions", len(self.questions))
        for i, question in enumerate(self.questions):
            tell(i + 1)
            every = [OpenPair(i, file) for file in range(len(self.sample.files))]
            kept = [pair for pair in every if not is_empty(self.rows(pair, nothing))]
            pairs = [pair for pair in kept if is_empty(self.rows(pair, richest))]
            self.pairs.append(pairs)
            self.matching.append(len(kept) - len(pairs))
            columns = {leaf.column for leaf in leaves(question.tree)}
            for name in columns & self.of_column.keys():
                self.of_column[name] += pairs

    def questions_of(self, column: str) -> list[int]:
        """The questions with an open pair that ask for the column."""
        return sorted({pair.question for pair in self.of_column[column]})

    def nothing(self) -> Selection:
        """Min/max alone."""
        return dict.fromkeys(self.candidates, 0)

    def richest(self) -> Selection:
        """The largest candidate of every column."""
        return {name: len(result) - 1 for name, result in self.candidates.items()}

    def rows(self, pair: OpenPair, selection: Selection) -> Rows:
        """The rows of the pair's file that may match under ``selection``."""
        return fold(
            self.questions[pair.question].tree,
            leaf=lambda leaf: self._leaf(leaf, pair.file, selection),
            all_of=_intersection,
            any_of=_union,
            constant=lambda value: None if value else _NO_ROW,
            unknown=lambda _: None,
        )

    def _leaf(self, leaf: Leaf | Computed, file: int, selection: Selection) -> Rows:
        if not self._stats[leaf][file]:
            return _NO_ROW
        column = leaf.column
        if column not in selection:
            return None
        return self.candidates[column][selection[column]].answers[leaf][file]

    def cost(self, pair: OpenPair, selection: Selection) -> float:
        """What the pair costs under ``selection``: less than half if it is skipped."""
        rows = self.rows(pair, selection)
        n_rows = self.sample.n_rows[pair.file]
        n = n_rows if rows is None else len(rows)
        weight = self.questions[pair.question].weight
        if not n:
            return 0.5 * weight * self._chance(pair, selection)
        return weight * (1 + _NEARLY * math.log(n) / math.log(max(2, n_rows)))

    def _chance(self, pair: OpenPair, selection: Selection) -> float:
        """The probability that a row of a file like this one may match."""
        n_rows = self.sample.n_rows[pair.file]

        def share(leaf: Leaf | Computed) -> float:
            rows = self._leaf(leaf, pair.file, selection)
            return 1.0 if rows is None else len(rows) / n_rows

        chance = fold(
            self.questions[pair.question].tree,
            leaf=share,
            all_of=_product,
            any_of=lambda shares: 1 - _product(1 - one for one in shares),
            constant=float,
            unknown=lambda _: 1.0,
        )
        return -math.expm1(-n_rows * chance)

    def n_bytes(self, selection: Selection) -> int:
        """The size of the indexes of the sample."""
        return sum(self.candidates[name][i].n_bytes for name, i in selection.items())

    def kept(self, question: int, selection: Selection) -> int:
        """How many files of the sample a question keeps under ``selection``."""
        return self.matching[question] + sum(
            not is_empty(self.rows(pair, selection)) for pair in self.pairs[question]
        )


def _intersection(parts: Iterable[Rows]) -> Rows:
    """The rows of an AND; parts after one without rows are not evaluated."""
    result: Rows = None
    for rows in parts:
        result = both(result, rows)
        if is_empty(result):
            break
    return result


def _union(parts: Iterable[Rows]) -> Rows:
    """The rows of an OR."""
    result = _NO_ROW
    for rows in parts:
        if rows is None:
            return None
        result = result | rows
    return result


def _product(shares: Iterable[float]) -> float:
    return math.prod(shares)


def choose(scores: CandidateScores, max_bytes: float) -> Selection:
    """The candidates to take: at most ``max_bytes`` in all on the sample."""
    result = [_descended(scores, max_bytes, share) for share in _SHARES]
    best = min(result, key=lambda one: (one.cost, scores.n_bytes(one.selection)))
    return best.selection


def _descended(scores: CandidateScores, max_bytes: float, share: float) -> _Descent:
    """Down to a share of the cap, and up to the cap again."""
    descent = _Descent(scores, max_bytes)
    descent.give_up(share * max_bytes)
    descent.fill()
    while descent.drop_useless():
        descent.fill()  # the bytes that were given up may be of use elsewhere
    return descent


@dataclass(frozen=True, slots=True, order=True)
class _Step:
    """From one candidate of a column to another: what it loses and saves."""

    ratio: float
    column: str
    before: int
    after: int
    loss: float
    saved: int


class _Descent:
    """From the richest candidates down to those that fit under the cap."""

    def __init__(self, scores: CandidateScores, max_bytes: float) -> None:
        self.scores = scores
        self.selection = scores.richest()
        self._max_bytes = max_bytes
        self._useless: set[str] = set()
        self._costs = {
            pair: scores.cost(pair, self.selection)
            for pairs in scores.pairs
            for pair in pairs
        }

    @property
    def cost(self) -> float:
        """What all open pairs cost."""
        return sum(self._costs.values())

    def give_up(self, max_bytes: float) -> None:
        """Step down to ``max_bytes``, the least loss for a byte first."""
        n_bytes = self.scores.n_bytes(self.selection)
        heap = [step for name in self.selection for step in self._steps_down(name)]
        heapq.heapify(heap)
        while heap:
            step = heapq.heappop(heap)
            if step.before != self.selection[step.column]:
                continue
            now = self._step(step.column, step.after)
            if heap and now.ratio > heap[0].ratio and now.ratio > step.ratio:
                heapq.heappush(heap, now)
                continue
            if n_bytes <= max_bytes and now.loss > 0:
                continue  # all fits, and these bytes are of some use
            n_bytes -= now.saved
            self._take(step)
            for more in self._steps_down(step.column):
                heapq.heappush(heap, more)

    def fill(self) -> None:
        """Use what is left under the cap, the greatest gain for a byte first."""
        while True:
            slack = self._max_bytes - self.scores.n_bytes(self.selection)
            ups = [
                step
                for name, at in self.selection.items()
                if name not in self._useless
                for i in range(at + 1, len(self.scores.candidates[name]))
                if -self._saved(name, i) <= slack
                and (step := self._step(name, i)).loss < 0
            ]
            if not ups:
                return
            self._take(max(ups, key=lambda step: step.ratio))

    def drop_useless(self) -> bool:
        """Give up indexes that skip no file of the sample, the largest first.

        Such columns are not filled again.  Whether there was one.

        Fewer rows in a file that is kept are worth something only if another index can
        make use of them.
        """
        kept, result = self.scores.kept, self.scores.candidates
        sizes = {name: result[name][at].n_bytes for name, at in self.selection.items()}
        before = len(self._useless)
        for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
            without = {**self.selection, name: 0}
            if sizes[name] and all(
                kept(question, without) == kept(question, self.selection)
                for question in self.scores.questions_of(name)
            ):
                self._take(self._step(name, 0))
                self._useless.add(name)
        return len(self._useless) > before

    def _steps_down(self, name: str) -> list[_Step]:
        return [self._step(name, after) for after in range(self.selection[name])]

    def _step(self, name: str, after: int) -> _Step:
        other = {**self.selection, name: after}
        pairs = self.scores.of_column[name]
        loss = sum(self.scores.cost(pair, other) - self._costs[pair] for pair in pairs)
        if abs(loss) < 1e-12:
            loss = 0.0
        saved = self._saved(name, after)
        ratio = loss / saved if saved else 0.0
        return _Step(ratio, name, self.selection[name], after, loss, saved)

    def _saved(self, name: str, after: int) -> int:
        """The bytes that another candidate of a column saves; below 0 if larger."""
        result = self.scores.candidates[name]
        return result[self.selection[name]].n_bytes - result[after].n_bytes

    def _take(self, step: _Step) -> None:
        self.selection[step.column] = step.after
        for pair in self.scores.of_column[step.column]:
            self._costs[pair] = self.scores.cost(pair, self.selection)
