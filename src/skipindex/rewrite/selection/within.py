"""Which files are rewritten where a run may rewrite so many bytes and no more.

New files come first, and are clustered among themselves.  What is left of the budget
goes to old files that lie one above the other.  Cubes are *layers*: of one whose files
have large boxes for their bytes, each query reads many for few rows.  Layers are joined
from the sparsest to the densest as ``size_ratio`` says, by the bytes in a place.  Where
they weigh more than the budget, those of a run of files along the curve are taken that
lower the overlap most.  In such a place nothing is left to gain, so the next run takes
another one.

What is gained is an estimate, and neighbours along the curve always overlap a little.
So with each time that rows are rewritten with nothing new, their *level* rises, and
with it the number of layers from which on they are rewritten again: runs come to an
end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from skipindex.rewrite.selection.bin_packing import runs
from skipindex.rewrite.selection.boxes import Boxes
from skipindex.rewrite.selection.cubes import Runs, cubes_of
from skipindex.rewrite.selection.grouping import (
    Group,
    by_partition,
    weight_of,
)
from skipindex.rewrite.selection.target import EligibleFile, Target

Gains = npt.NDArray[np.float64]
Layers = Sequence[Sequence[EligibleFile]]

_DEEP: Final = 1.5
"""Layers from which on the files there are worth their bytes."""
_DEEPER: Final = 1.0
"""How many more these are with each level."""
_NEW: Final = 0.5
"""The share of its box that is gained of a new file that lies alone."""
_UNREAD: Final = 1e-3
"""What a file counts that no query of a workload reads."""
_TRIES: Final = 8
"""Runs of files that are looked at before a partition is left as it is."""
_STEP: Final = 2.0
"""Layers of which one is so much denser than the next sparser one are weighed apart."""


@dataclass(frozen=True, slots=True)
class Within:
    """What fits into a budget.

    Args:
        groups: the groups to cluster; each becomes a cube.
        least: the bytes of the smallest rewrite that would lower the overlap, if none
            fits.
    """

    groups: list[Group]
    least: int | None = None


def plan_within(
    files: Sequence[EligibleFile],
    known: Runs,
    target: Target,
    boxes: Boxes,
    *,
    budget: int,
    reads: Mapping[str, float] | None = None,
) -> Within:
    """The groups to cluster that weigh at most ``budget`` bytes together.

    ``reads`` says how often the queries of a workload read each file; what they read
    most comes first.
    """
    alike = {run: how for run, how in known.items() if how.shape == target.shape()}
    space = _Space(boxes, target.ratio, {}, reads)
    tables = []
    for mine in by_partition(files):
        found, fresh = cubes_of(mine, alike)
        tables.append(([c.files for c in found if not c.sealed], fresh))
        space.levels.update((f.path, cube.level) for cube in found for f in cube.files)
    chosen: list[tuple[list[EligibleFile], int]] = []
    least: list[int] = []
    room = budget
    for is_new in (True, False):
        offers = [
            offer
            for cubes, fresh in tables
            if (offer := space.new(fresh) if is_new else space.old(cubes, room))
        ]
        least += [offer.least for offer in offers]
        for offer in sorted(offers, key=lambda one: one.worth, reverse=True):
            if pool := offer.within(room):
                level = max(space.levels.get(file.path, 0) for file in pool)
                chosen.append((pool, 0 if is_new else 1 + level))
                room -= weight_of(pool)
    groups = []
    for pool, level in chosen:
        for run in runs([file.size for file in pool], target.cube_size):
            some = tuple(pool[i] for i in run)
            is_sealed = weight_of(some) >= target.cube_size
            groups.append(Group(some, sealed=is_sealed, level=level))
    smallest = min(least, default=0)
    return Within(groups, smallest if not groups and smallest > budget else None)


@dataclass(frozen=True, slots=True)
class _Offer:
    """Files of a partition that had better be clustered, in the order of the curve.

    ``deep`` says which of some of them still are where the others do not count.
    """

    files: list[EligibleFile]
    gains: Gains
    deep: Callable[[slice], npt.NDArray[np.bool_]] | None = None

    @property
    def worth(self) -> float:
        """What is gained for a byte."""
        return float(self.gains.sum()) / weight_of(self.files)

    @property
    def least(self) -> int:
        """The bytes of the smallest part that is of use: a new file, or two."""
        n = 1 if self.deep is None else 2
        return sum(sorted(file.size for file in self.files)[:n])

    def within(self, room: int) -> list[EligibleFile]:
        """The files that so many bytes gain most by; empty where none is worth it."""
        gains = self.gains.copy()
        for part in self._runs(gains, room):
            some = self.files[part]
            if self.deep is None:
                return some
            deep = self.deep(part)
            if deep.sum() > 1:
                return [file for file, is_one in zip(some, deep, strict=True) if is_one]
            gains[part] = 0
        return []

    def _runs(self, gains: Gains, room: int) -> Iterator[slice]:
        """Runs of files that fit, the best first; ``gains`` may change meanwhile."""
        ends = np.cumsum([0, *(file.size for file in self.files)])
        stops = np.searchsorted(ends, ends[:-1] + room, side="right") - 1
        for _ in range(_TRIES):
            gained = np.concatenate([[0.0], np.cumsum(gains)])
            found = gained[stops] - gained[:-1]
            first = int(np.argmax(found))
            if found[first] <= 0:
                return
            yield slice(first, int(stops[first]))


@dataclass(frozen=True, slots=True)
class _Space:
    """What files are weighed by: where they lie, their levels, and who reads them."""

    boxes: Boxes
    ratio: float
    levels: dict[str, int]
    reads: Mapping[str, float] | None

    def new(self, files: Sequence[EligibleFile]) -> _Offer | None:
        """New files, all of which had better be clustered."""
        if not files:
            return None
        order = [files[i] for i in self.boxes.along(files)]
        depths = self.boxes.depths(order, range(len(order)))
        return _Offer(order, self._gains(order, np.maximum(1 - 1 / depths, _NEW)))

    def old(self, cubes: Layers, room: int) -> _Offer | None:
        """The layers of which so many bytes gain most, as far as they are deep."""
        found = [self._of_chain(chain) for chain in self._chains(cubes)]
        offers = sorted(
            (offer for offer in found if offer is not None),
            key=lambda one: -one.worth * min(room, weight_of(one.files)),
        )
        return next(
            (one for one in offers if one.within(room)), next(iter(offers), None)
        )

    def _of_chain(self, layers: Layers) -> _Offer | None:
        files = [file for layer in layers for file in layer]
        numbers = np.repeat(np.arange(len(layers)), [len(layer) for layer in layers])
        depths = self.boxes.depths(files, numbers)
        order = self.boxes.along(files)
        order = order[depths[order] >= self._needed(files)[order]]
        if not len(order):
            return None
        some, cubes = [files[i] for i in order], numbers[order]

        def deep(part: slice) -> npt.NDArray[np.bool_]:
            mine = some[part]
            is_deep = self.boxes.depths(mine, cubes[part]) >= self._needed(mine)
            return np.asarray(is_deep)

        return _Offer(some, self._gains(some, 1 - 1 / depths[order]), deep)

    def _needed(self, files: Sequence[EligibleFile]) -> Gains:
        """The layers from which on each file is worth its bytes."""
        levels = [self.levels.get(file.path, 0) for file in files]
        return np.asarray(_DEEP + _DEEPER * np.array(levels))

    def _gains(self, files: Sequence[EligibleFile], share: Gains) -> Gains:
        """What of the space, or of the queries there, need not read a file any more."""
        gains = share * self.boxes.volumes(files)
        if self.reads is not None:
            gains *= [self.reads.get(file.path, 0.0) + _UNREAD for file in files]
        return gains

    def _chains(self, cubes: Layers) -> list[Layers]:
        """Layers that the ratio joins, the sparsest first, and the first of those."""
        dense = [weight_of(cube) / self.boxes.volumes(cube).sum() for cube in cubes]
        chains: list[Layers] = []
        chain: list[Sequence[EligibleFile]] = []
        joined = last = 0.0
        for i in np.argsort(dense, kind="stable"):
            if dense[i] > self.ratio * joined:
                chains.append(chain)
                chain, joined = [], 0.0
            elif dense[i] > _STEP * last:
                chains.append(list(chain))
            chain.append(cubes[i])
            joined, last = joined + dense[i], dense[i]
        return [one for one in (*chains, chain) if len(one) > 1]
