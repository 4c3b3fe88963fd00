"""Layout by answers: rows that match queries of a workload go to a few files.

A row's *signature* says which conditions it matches, the smallest condition in the
most significant bit, after Sun et al., "Fine-grained Partitioning for Aggressive Data
Skipping" (SIGMOD 2014).  Rows are ordered by their signatures, and along a curve among
those of one signature; rows that match nothing follow the curve alone.  A set of rows
of one signature that is smaller than a file is never cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipindex.conditions.bound_predicate import (
    BoundPredicate,
    Computed,
    Leaf,
    Unknown,
    leaves,
    shorten,
    text_of,
    unknowns,
    with_leaves,
)
from skipindex.errors import LayoutError
from skipindex.expressions.arrays import Ints, Mask
from skipindex.layout.weights import Weights
from skipindex.layout.workload.conditions import (
    ALL_ROWS,
    Condition,
    condition_of,
    either,
    from_json,
    is_told,
    matching,
    to_json,
)
from skipindex.layout.workload.steps import Steps
from skipindex.layout.workload.what_if import WhatIf
from skipindex.layout.workload.workload import BoundWorkload

FORMAT: Final = 1
MAX_CONDITIONS: Final = 48
"""Bits of a signature; similar conditions are merged down to these."""
MAX_QUERIES: Final = 256
"""Most different queries that are evaluated, the most frequent first."""
MAX_TOLD: Final = 100
"""Queries that were omitted, as the table records them."""
_MERGED_ROWS: Final = 20_000
"""Rows by which conditions are compared."""


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """The conditions whose rows are put together, the smallest first."""

    steps: tuple[Steps, ...]
    conditions: tuple[Condition, ...]
    left_out: tuple[str, ...] = ()
    """Queries that no row is moved for, and conditions that count as TRUE."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that ``signatures`` takes, in its order."""
        return tuple(own.column for own in self.steps)

    def signatures(
        self, arrays: Sequence[pa.Array | pa.ChunkedArray], n_rows: int
    ) -> Ints:
        """A bit for each condition, for every row; 0 if it matches none."""
        codes = [s.codes(a) for s, a in zip(self.steps, arrays, strict=True)]
        result = np.zeros(n_rows, np.int64)
        for condition in self.conditions:
            result <<= 1
            result |= matching(condition, codes, n_rows)
        return result

    def to_json(self) -> dict[str, Any]:
        """The conditions as plain values."""
        return {
            "format": FORMAT,
            "steps": [own.to_json() for own in self.steps],
            "conditions": [to_json(one) for one in self.conditions],
            "left_out": list(self.left_out),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Answers:
        """The conditions that ``to_json`` wrote.

        Raises:
            LayoutError: they are damaged, or were written by a newer library.
        """
        try:
            form, n_conditions = data["format"], len(data["conditions"])
            steps = tuple(map(Steps.from_json, data["steps"]))
            result = tuple(from_json(one, steps) for one in data["conditions"])
            answers = cls(steps, result, tuple(map(str, data["left_out"])))
        except LayoutError:
            raise
        except (
            AttributeError,
            KeyError,
            RecursionError,
            TypeError,
            ValueError,
        ) as error:
            raise LayoutError(f"the answers are damaged: {error!r}") from error
        if form != FORMAT or n_conditions > MAX_CONDITIONS:
            raise LayoutError(
                f"the answers have format {form!r} and {n_conditions} conditions "
                f"(accepted: {FORMAT}, and at most {MAX_CONDITIONS})"
            )
        return answers


def choose_answers(
    sample: pa.Table,
    workload: BoundWorkload,
    *,
    share: float,
    partition_by: Sequence[str] = (),
    weights: npt.ArrayLike | None = None,
) -> Answers:
    """The conditions whose rows are worth being put together.

    Equal queries are taken as one.  Those that match few rows for how often they are
    asked come first, as long as all rows together are at most ``share``: a query that
    most rows match contributes nothing.  The most similar ones are then merged, until
    they fit a signature.  No condition is needed on columns of ``partition_by``, as
    rows of different values do not share a file anyway.  ``weights`` is what each row
    of the sample stands for; None is 1.
    """
    asked: dict[BoundPredicate, float] = {}
    for whole, weight in zip(workload.trees, workload.weights.tolist(), strict=True):
        tree = with_leaves(whole, lambda leaf: _without(leaf, partition_by))
        asked[tree] = asked.get(tree, 0.0) + weight
    frequent = sorted(asked, key=lambda tree: -asked[tree])
    left_out = [text_of(tree) for tree in frequent[MAX_QUERIES:]]
    steps, conditions = _bound(workload, [(tree,) for tree in frequent[:MAX_QUERIES]])
    codes = [own.codes(sample.column(own.column)) for own in steps]
    loads = np.ones(len(sample)) if weights is None else np.asarray(weights, np.float64)
    result = []
    for tree, condition in zip(frequent, conditions, strict=False):
        rows = matching(condition, codes, len(sample))
        if condition == ALL_ROWS:
            left_out.append(text_of(tree))
        else:
            left_out += [
                part.text
                for part in (*unknowns(tree), *leaves(tree))
                if not is_told(part)
            ]
            result.append(_Asked((tree,), rows, asked[tree]))
    taken, others = _that_fit(result, loads, share)
    merged = _merged(taken)
    merged.sort(key=lambda one: float(loads[one.rows].sum()))
    steps, conditions = _bound(workload, [one.trees for one in merged])
    left_out += [text_of(tree) for one in others for tree in one.trees]
    told = [shorten(text) for text in left_out[:MAX_TOLD]]
    if len(left_out) > MAX_TOLD:
        told.append(f"and {len(left_out) - MAX_TOLD} more")
    return Answers(steps, conditions, tuple(told))


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """Queries whose rows are taken as one set, and how often they run."""

    trees: tuple[BoundPredicate, ...]
    rows: Mask
    weight: float


def _without(
    leaf: Leaf | Computed, partition_by: Sequence[str]
) -> Leaf | Computed | Unknown:
    if leaf.column not in partition_by:
        return leaf
    return Unknown(leaf.text, "rows are partitioned by it")


def _bound(
    workload: BoundWorkload, sets: Sequence[tuple[BoundPredicate, ...]]
) -> tuple[tuple[Steps, ...], tuple[Condition, ...]]:
    """One condition for each set of queries, over the columns that they need."""
    trees = tuple(tree for own in sets for tree in own)
    names = {leaf.column for tree in trees for leaf in leaves(tree)}
    domains = {n: domain for n, domain in workload.domains.items() if n in names}
    steps = tuple(WhatIf(BoundWorkload(trees, np.ones(len(trees)), domains)).steps)
    return steps, tuple(
        either([condition_of(tree, steps) for tree in own]) for own in sets
    )


def _that_fit(
    asked: Sequence[_Asked], loads: Weights, share: float
) -> tuple[list[_Asked], list[_Asked]]:
    """Split into what together matches at most ``share`` of the rows, and the rest."""
    most = share * float(loads.sum())
    taken: list[_Asked] = []
    others: list[_Asked] = []
    together = np.zeros(len(loads), np.bool_)
    # First come those that match few rows for how often they run.
    for one in sorted(asked, key=lambda one: loads[one.rows].sum() / (one.weight or 1)):
        is_asked = one.weight > 0
        if is_asked and float(loads[together | one.rows].sum()) <= most:
            together |= one.rows
            taken.append(one)
        else:
            others.append(one)
    return taken, others


def _merged(asked: list[_Asked]) -> list[_Asked]:
    """Merge the two that add the fewest rows, until ``MAX_CONDITIONS`` are left."""
    result = list(asked)
    if len(result) <= MAX_CONDITIONS:
        return result
    step = max(1, len(result[0].rows) // _MERGED_ROWS)
    rows = np.stack([one.rows[::step] for one in result]).astype(np.float32)
    weights = np.array([one.weight for one in result])
    common = rows @ rows.T
    # Agglomerative clustering: the distance is the rows read that do not match.
    while len(result) > MAX_CONDITIONS:
        sizes = common.diagonal()
        # The rows of the other that each query reads as well.
        extra = weights[:, np.newaxis] * (sizes[np.newaxis, :] - common)
        cost = extra + extra.T
        np.fill_diagonal(cost, np.inf)
        low, high = sorted(divmod(int(cost.argmin()), len(result)))
        one, other = result[low], result.pop(high)
        result[low] = _Asked(
            one.trees + other.trees, one.rows | other.rows, one.weight + other.weight
        )
        rows[low] = np.maximum(rows[low], rows[high])
        weights[low] += weights[high]
        rows, weights = np.delete(rows, high, 0), np.delete(weights, high)
        common = np.delete(np.delete(common, high, 0), high, 1)
        common[low] = common[:, low] = rows @ rows[low]
    return result
