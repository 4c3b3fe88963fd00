"""Choosing the files to rewrite under a budget of bytes.

New files come first, in each partition with all that a run without a budget would merge
with them, or among themselves if it does not fit.  The rest of the budget goes
to old files that overlap.  Cubes are *layers*: of one whose files
have large boxes for their bytes, each query reads many for few rows.  Layers are joined
from the sparsest to the densest as ``size_ratio`` says, by the bytes in a place.  Where
they weigh more than the budget, those of a run of files along the curve are taken that
lower the overlap most.  In such a place nothing is left to gain, so the next run takes
another one.

What is gained is an estimate, and neighbours along the curve always overlap a little.
So where old rows are rewritten, their *level* is one more than the lowest there was,
and the higher the lowest level in a place is, the more layers have to lie there.  Rows
of the lowest level get fewer each time, so runs come to an end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from skipindex.layout.ordering import Positions
from skipindex.rewrite.selection.bin_packing import runs
from skipindex.rewrite.selection.boxes import Boxes
from skipindex.rewrite.selection.cubes import Cube, Runs, cubes_of
from skipindex.rewrite.selection.grouping import (
    Group,
    by_partition,
    merged,
    weight_of,
)
from skipindex.rewrite.selection.target import EligibleFile, Target

Gains = npt.NDArray[np.float64]
Layers = Sequence[Sequence[EligibleFile]]

_DEEP: Final = 1.5
"""Number of overlapping layers that makes a rewrite worthwhile."""
_DEEPER: Final = 1.0
"""How many more these are with each level of what is lowest there."""
_NEW: Final = 0.5
"""Gain of clustering a file that overlaps no other, as a fraction of its box."""
_TRIES: Final = 8
"""Runs of files that are tried before a partition stays unchanged."""
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
) -> Within:
    """The groups to cluster that weigh at most ``budget`` bytes together."""
    alike = {run: how for run, how in known.items() if how.shape == target.shape()}
    space = _Space(boxes, target.ratio)
    parts = []
    for mine in by_partition(files):
        cubes, fresh = cubes_of(mine, alike)
        space.add(cubes)
        parts.append(_Part([c.files for c in cubes if not c.sealed], fresh))
    chosen: list[tuple[list[EligibleFile], int]] = []
    least: list[int] = []
    room = budget
    for step in (space.new_merged, space.new, space.old_merged, space.old):
        offers = [(offer, part) for part in parts if (offer := step(part, room))]
        least += [offer.least for offer, _ in offers]
        for offer, part in sorted(offers, key=lambda one: -one[0].worth):
            if pool := offer.within(room):
                chosen.append((pool, offer.rise + min(map(space.level, pool))))
                room -= weight_of(pool)
                part.remove(pool)
    groups = []
    for pool, level in chosen:
        for run in runs([file.size for file in pool], target.cube_size):
            some = tuple(pool[i] for i in run)
            is_sealed = weight_of(some) >= target.cube_size
            groups.append(Group(some, sealed=is_sealed, level=level))
    smallest = min(least, default=0)
    return Within(groups, smallest if not groups and smallest > budget else None)


@dataclass(slots=True)
class _Part:
    """The files of a partition that are not sealed: in cubes, and new ones."""

    cubes: list[tuple[EligibleFile, ...]]
    fresh: list[EligibleFile]

    def remove(self, files: Sequence[EligibleFile]) -> None:
        gone = {file.path for file in files}
        self.fresh = [file for file in self.fresh if file.path not in gone]
        left = (tuple(f for f in cube if f.path not in gone) for cube in self.cubes)
        self.cubes = list(filter(None, left))


@dataclass(frozen=True, slots=True)
class _Offer:
    """Files of a partition that had better be clustered, in the order of the curve.

    Args:
        files: all of them.
        gains: what each is worth.
        is_whole: they are rewritten together or not at all.
        deep: which of some of them are worth it where the others do not count; of new
            files all are.
    """

    files: list[EligibleFile]
    gains: Gains
    is_whole: bool = False
    deep: Callable[[slice], npt.NDArray[np.bool_]] | None = None

    @property
    def rise(self) -> int:
        """The levels by which its rows rise."""
        return 0 if self.deep is None else 1

    @property
    def worth(self) -> float:
        """What is gained for a byte."""
        return float(self.gains.sum()) / weight_of(self.files)

    @property
    def least(self) -> int:
        """The bytes of the smallest useful part: a new file, or two."""
        n = len(self.files) if self.is_whole else 1 + self.rise
        return sum(sorted(file.size for file in self.files)[:n])

    def within(self, room: int) -> list[EligibleFile]:
        """The files whose rewrite under these bytes gains most; empty if none pays."""
        if self.is_whole:
            return self.files if weight_of(self.files) <= room else []
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
            result = gained[stops] - gained[:-1]
            first = int(np.argmax(result))
            if result[first] <= 0:
                return
            yield slice(first, int(stops[first]))


class _Space:
    """What files are weighed by: where they lie, and their levels."""

    def __init__(self, boxes: Boxes, ratio: float) -> None:
        self.boxes = boxes
        self.ratio = ratio
        self._levels: dict[str, int] = {}
        self._cubes: dict[str, int] = {}

    def add(self, cubes: Sequence[Cube]) -> None:
        """Let the files of cubes be known; a file of none is a layer of its own."""
        for number, cube in enumerate(cubes, len(self._cubes)):
            self._levels |= {file.path: cube.level for file in cube.files}
            self._cubes |= {file.path: number for file in cube.files}

    def level(self, file: EligibleFile) -> int:
        """The level of its rows; 0 of a new file."""
        return self._levels.get(file.path, 0)

    def new_merged(self, part: _Part, room: int) -> _Offer | None:
        """New files with what a run without a budget merges with them, if it fits."""
        return self._merged(part, room) if part.fresh else None

    def old_merged(self, part: _Part, room: int) -> _Offer | None:
        """What a run without a budget merges where nothing is new, if it fits."""
        return None if part.fresh else self._merged(part, room)

    def _merged(self, part: _Part, room: int) -> _Offer | None:
        pool = merged(part.fresh, part.cubes, self.ratio, self.boxes)
        fits = bool(pool) and weight_of(pool) <= room
        return self._new(pool, is_whole=True) if fits else None

    def new(self, part: _Part, _: int) -> _Offer | None:
        """New files, all of which had better be clustered."""
        return self._new(part.fresh) if part.fresh else None

    def _new(self, files: Sequence[EligibleFile], *, is_whole: bool = False) -> _Offer:
        order = [files[i] for i in self.boxes.along(files)]
        share = np.maximum(1 - 1 / self._layers(order)[0], _NEW)
        return _Offer(order, self._gains(order, share), is_whole)

    def old(self, part: _Part, room: int) -> _Offer | None:
        """The layers whose rewrite under these bytes gains most, if they are deep."""
        result = [self._of_chain(chain) for chain in self._chains(part.cubes)]
        offers = sorted(
            (offer for offer in result if offer is not None),
            key=lambda one: -one.worth * min(room, weight_of(one.files)),
        )
        return next(
            (one for one in offers if one.within(room)), next(iter(offers), None)
        )

    def _of_chain(self, layers: Layers) -> _Offer | None:
        files = [file for layer in layers for file in layer]
        depths, is_deep = self._deep(files)
        order = self.boxes.along(files)
        order = order[is_deep[order]]
        if not len(order):
            return None
        some = [files[i] for i in order]
        gains = self._gains(some, 1 - 1 / depths[order])
        return _Offer(some, gains, deep=lambda part: self._deep(some[part])[1])

    def _deep(
        self, files: Sequence[EligibleFile]
    ) -> tuple[Gains, npt.NDArray[np.bool_]]:
        """The layers at each file, and whether rewriting them pays for its bytes."""
        depths, lowest = self._layers(files)
        return depths, np.asarray(depths >= _DEEP + _DEEPER * lowest)

    def _layers(self, files: Sequence[EligibleFile]) -> tuple[Gains, Positions]:
        cubes = [self._cubes.get(file.path, -1 - i) for i, file in enumerate(files)]
        return self.boxes.layers(files, cubes, list(map(self.level, files)))

    def _gains(self, files: Sequence[EligibleFile], share: Gains) -> Gains:
        """What part of the space need not read a file any more."""
        return share * self.boxes.volumes(files)

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
