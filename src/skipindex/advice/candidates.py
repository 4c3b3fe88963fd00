"""Candidate indexes of a column: built on the sample, then measured and probed.

A candidate is a list of specs.  Its bytes are those of payloads that were built, and
its answers are those of indexes that were opened.  So every kind is judged by the same
means, and so are the kinds of other packages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

import numpy as np
import numpy.typing as npt
from pyroaring import AbstractBitMap

from skipindex.advice.sample import SampledColumn
from skipindex.build.task import reason
from skipindex.conditions.bound_predicate import Computed, Leaf
from skipindex.errors import UnsupportedTypeError
from skipindex.indexes import (
    index_type,
    index_types,
    spec_from_json,
    spec_to_json,
)
from skipindex.indexes.interface import IndexSpec
from skipindex.planner.stages.computed import probe_index
from skipindex.storage.parts import MemoryParts

_PART_BYTES: Final = 36
_FILE_BYTES: Final = 64
"""What a pack's directory and padding add for a part, and for a file."""

_TOP_SLICES: Final = (1, 2, 4, 6, 8, 10)
"""Numbers of slices of ranks that are tried."""

_ANY: Final = 1 << 40
"""More rows than a file has."""

Rows = AbstractBitMap | None
"""Rows that may match; None is "any"."""

Answers = Mapping[Leaf | Computed, Sequence[Rows]]
"""Rows that may match in every file of the sample, by leaf."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to index a column.

    Args:
        specs: what is built; none is min/max alone.
        n_bytes: of the payloads of the sample.
        answers: what they say of the questions.
    """

    specs: tuple[IndexSpec, ...]
    n_bytes: int
    answers: Answers

    @property
    def left(self) -> npt.NDArray[np.int64]:
        """How many rows each answer leaves."""
        return np.array(
            [
                _ANY if rows is None else len(rows)
                for answer in self.answers.values()
                for rows in answer
            ],
            np.int64,
        )

    def __or__(self, other: Candidate) -> Candidate:
        """Both side by side."""
        answers = {
            leaf: [both(a, b) for a, b in zip(mine, other.answers[leaf], strict=True)]
            for leaf, mine in self.answers.items()
        }
        return Candidate(
            self.specs + other.specs, self.n_bytes + other.n_bytes, answers
        )


def both(a: Rows, b: Rows) -> Rows:
    """The rows that both leave."""
    if a is None or b is None:
        return b if a is None else a
    return a & b


def is_empty(rows: Rows) -> bool:
    """Whether no row may match."""
    return rows is not None and not rows


def candidates(
    column: SampledColumn, leaves: Sequence[Leaf | Computed], notes: list[str]
) -> list[Candidate]:
    """Ways to index ``column``, by size; the first is nothing beyond min/max.

    Each answers something better than any that is smaller; the last one knows all.
    A kind that fails is omitted, and why is added to ``notes``.
    """
    nothing = Candidate((), 0, {leaf: [None] * len(column.files) for leaf in leaves})
    if not leaves:
        return [nothing]
    result = [nothing, *_coarse(column, leaves, notes)]
    for spec in _others():
        result += built(column, spec, leaves, notes)
    return _ascending(result)


def _ascending(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Sort by size; leave out what a smaller one equals or beats on each question."""
    kept: list[Candidate] = []
    answers: list[npt.NDArray[np.int64]] = []
    for one in sorted(candidates, key=lambda c: (c.n_bytes, len(c.specs))):
        left = one.left
        if not any(bool((other <= left).all()) for other in answers):
            kept.append(one)
            answers.append(left)
    return kept


def _coarse(
    column: SampledColumn, leaves: Sequence[Leaf | Computed], notes: list[str]
) -> list[Candidate]:
    """Some slices of ranks, which know less than every row and take fewer bytes."""
    slices = [k for k in _TOP_SLICES if 1 << k < column.n_distinct]
    specs = [_spec("bit_sliced", max_slices=k) for k in slices]
    return [one for spec in specs for one in built(column, spec, leaves, notes)]


def _others() -> list[IndexSpec]:
    """The other kinds, each with its default parameters."""
    # ``exact`` has the smallest of those that know every row.
    tried = {"bit_sliced", "bitmap", "range_bitmap", "run_length"}
    return [kind.spec() for name, kind in index_types().items() if name not in tried]


def _spec(kind: str, **parameters: float | None) -> IndexSpec:
    return cast("IndexSpec", spec_from_json({"kind": kind, **parameters}))


def built(
    column: SampledColumn,
    spec: IndexSpec,
    leaves: Sequence[Leaf | Computed],
    notes: list[str],
) -> list[Candidate]:
    """The candidate of one spec; none if the column cannot have it."""
    kind = index_type(spec.kind)
    answers: dict[Leaf | Computed, list[Rows]] = {leaf: [] for leaf in leaves}
    n_bytes = 0
    try:
        kind.check(column.domain)
        for one in column.files:
            parts = spec.build(one)
            n_bytes += sum(map(len, parts)) + _PART_BYTES * len(parts) + _FILE_BYTES
            index = kind.open(MemoryParts(parts), column.domain, one.n_rows)
            for leaf, rows in answers.items():
                bounds = probe_index(index, leaf)
                rows.append(None if bounds is None else bounds.upper)
    except Exception as error:  # noqa: BLE001 (kinds of other packages too)
        _note(column, spec, error, notes)
        return []
    if not kind.positional:  # "no row at all", or unknown
        answers = {
            leaf: [None if rows is None or rows else rows for rows in result]
            for leaf, result in answers.items()
        }
    return [Candidate((spec,), n_bytes, answers)]


def _note(
    column: SampledColumn, spec: IndexSpec, error: Exception, notes: list[str]
) -> None:
    """Note once that a kind failed; a type that it does not support is no failure."""
    text = f"column {column.name!r}: no {spec.kind} index: {reason(error)}"
    if not isinstance(error, UnsupportedTypeError) and text not in notes:
        notes.append(text)


def spec_text(spec: IndexSpec) -> str:
    """The spec as a person would write it: its kind, and what is not the default."""
    mine, default = spec_to_json(spec), spec_to_json(type(spec)())
    options = [
        f"{k}={v!r}" for k, v in mine.items() if k != "kind" and v != default.get(k)
    ]
    return f"{spec.kind}({', '.join(options)})" if options else spec.kind
