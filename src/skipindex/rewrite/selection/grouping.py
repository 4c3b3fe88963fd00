"""Choosing the files to rewrite, and grouping them.

Clustered files belong to *cubes*: the files that were clustered together.  A cube
that weighs enough is sealed, and an incremental run never touches it again.  A run
with nothing new finds nothing to do.

An incremental run clusters new files among themselves, and merges cubes with them as a
log-structured merge tree merges its levels (O'Neil et al., 1996): the lightest first,
and each only if it weighs at most ``ratio`` times what is merged with it.  Then a cube
that is rewritten grows by a share of ``1 / ratio`` at least, so a row is rewritten
``log(table / run) / log(1 + 1 / ratio)`` times at most.  On either side only the files
count that overlap the other side in every clustering column, and of the cube no
others are rewritten: a new day touches none of the days before.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from skipindex.errors import LayoutError
from skipindex.rewrite.selection.bin_packing import pack, runs
from skipindex.rewrite.selection.boxes import Boxes
from skipindex.rewrite.selection.cubes import Run, Runs, cubes_of
from skipindex.rewrite.selection.target import EligibleFile, Target
from skipindex.source.partitions.hive import Pairs
from skipindex.storage.file_system.names import visible_name


class Mode(Enum):
    """How much of a table is clustered."""

    INCREMENTAL = "incremental"
    FULL = "full"


def mode_named(name: str) -> Mode:
    """The mode of that name."""
    try:
        return Mode(name)
    except ValueError:
        accepted = ", ".join(repr(mode.value) for mode in Mode)
        raise LayoutError(f"no mode {name!r} (accepted: {accepted})") from None


@dataclass(frozen=True, slots=True)
class Group:
    """Files of one partition that are rewritten together.

    Args:
        files: all of them.
        bins: files that become one, where small files are joined; else empty.
        sealed: what comes out is a sealed cube.
        level: of its rows, as ``within`` has it.
    """

    files: tuple[EligibleFile, ...]
    bins: tuple[tuple[EligibleFile, ...], ...] = ()
    sealed: bool = False
    level: int = 0

    @property
    def values(self) -> Pairs:
        """The partition, as the folders spell it."""
        return self.files[0].values

    @property
    def folder(self) -> str:
        """A visible folder of the partition."""
        paths = (visible_name(file.path) for file in self.files)
        folders = [path.rpartition("/")[0] for path in paths]
        return min(folders, key=lambda folder: (len(folder), folder))

    @property
    def n_rows(self) -> int:
        """The rows of all files."""
        return sum(file.n_rows for file in self.files)


def by_partition(files: Iterable[EligibleFile]) -> list[list[EligibleFile]]:
    """The files that have rows, by the values of their partition columns."""
    result: dict[Pairs, list[EligibleFile]] = {}
    for file in files:
        if file.n_rows:
            result.setdefault(file.values, []).append(file)
    return list(result.values())


def plan_clustering(
    files: Sequence[EligibleFile],
    known: Runs,
    target: Target,
    *,
    mode: Mode,
    boxes: Boxes | None = None,
) -> list[Group]:
    """The groups to cluster; each becomes a cube.

    Incremental: files that are in no cube of this shape, together with cubes that are
    not sealed yet and not too heavy for them.  Without ``boxes`` every file may
    overlap the others.  Full: all files of a partition, unless one run has
    clustered all of them to this very target.
    """
    alike = {run: how for run, how in known.items() if how.shape == target.shape()}
    groups = []
    for mine in by_partition(files):
        pool = _to_cluster(mine, alike, target, mode, boxes)
        for run in runs([file.size for file in pool], target.cube_size):
            chosen = tuple(pool[i] for i in run)
            sealed = sum(file.size for file in chosen) >= target.cube_size
            groups.append(Group(chosen, sealed=sealed))
    return groups


def _to_cluster(
    files: Sequence[EligibleFile],
    known: Runs,
    target: Target,
    mode: Mode,
    boxes: Boxes | None,
) -> list[EligibleFile]:
    cubes, fresh = cubes_of(files, known)
    if mode is Mode.FULL:
        is_one_run = len({cube.run for cube in cubes}) == 1
        alike = all(cube.how.size == target.size() for cube in cubes)
        return [] if is_one_run and alike and not fresh else list(files)
    unsealed = [cube.files for cube in cubes if not cube.sealed]
    pool = merged(fresh, unsealed, target.ratio, boxes)
    # Those of a cube first, so that a cube grows rather than is split.
    mine, new = {file.path for file in pool}, {file.path for file in fresh}
    old = [file for file in files if file.path in mine - new]
    return [*old, *fresh]


def merged(
    fresh: Sequence[EligibleFile],
    cubes: Iterable[tuple[EligibleFile, ...]],
    ratio: float,
    boxes: Boxes | None,
) -> list[EligibleFile]:
    """New files and what is merged with them; without any, two cubes or more."""
    pool = list(fresh)
    first: tuple[EligibleFile, ...] = ()
    for cube in sorted(cubes, key=weight_of):
        near, around = list(cube), pool
        if boxes and pool:
            near, around = boxes.meeting(cube, pool), boxes.meeting(pool, cube)
        is_light = weight_of(near) <= ratio * weight_of(around)
        # Without new files a part of a cube is not enough, or it might go on for ever.
        if pool and near and is_light and (fresh or len(near) == len(cube)):
            pool += near
        elif len(pool) == len(first) and not fresh:
            pool, first = list(cube), cube
    return pool if fresh or len(pool) > len(first) else []


def weight_of(files: Iterable[EligibleFile]) -> int:
    """The bytes of all files."""
    return sum(file.size for file in files)


def plan_joining(
    files: Sequence[EligibleFile],
    known: Runs,
    target: Target,
    *,
    budget: int | None = None,
) -> list[Group]:
    """The groups of small files to join, one a partition.

    A file is small below the target.  Clustered files are not joined.  There is
    nothing to do where no small files fit together that no earlier run has joined.
    Bins of the lightest files come first where not all of them fit into ``budget``
    bytes.
    """
    clustered = {run: how for run, how in known.items() if how.is_clustered}
    joined: Runs = {}
    if target.rows_per_file is None:
        # Joined files have fewer bytes than went in, so they might fit together again;
        # they have as many rows, and so do not.
        joined = {run: how for run, how in known.items() if how == Run.of(target)}
    result = []
    for mine in by_partition(files):
        _, plain = cubes_of(mine, clustered)
        small = [file for file in plain if target.weight(file) < target.limit]
        _, fresh = cubes_of(small, joined)
        if _bins(fresh, target):
            result.append(_bins(small, target))
    left = math.inf if budget is None else budget
    fit = set()
    for run in sorted(
        (run for bins in result for run in bins),
        key=lambda run: weight_of(run) / len(run),
    ):
        if weight_of(run) <= left:
            left -= weight_of(run)
            fit.add(run)
    kept = (tuple(run for run in bins if run in fit) for bins in result)
    return [
        Group(tuple(file for run in bins for file in run), bins)
        for bins in kept
        if bins
    ]


def _bins(
    files: Sequence[EligibleFile], target: Target
) -> tuple[tuple[EligibleFile, ...], ...]:
    """The files that fit together, without those that fit with no other."""
    packed = pack([target.weight(file) for file in files], target.limit)
    return tuple(tuple(files[i] for i in run) for run in packed if len(run) > 1)


def rounds(groups: Iterable[Group], *, alone: bool = False) -> list[list[Group]]:
    """The groups so that no two of a round are of one partition; sealed ones first.

    All groups of a round are of one level.  With ``alone``, each is a round.
    """
    result: dict[tuple[bool, int, int], list[Group]] = {}
    taken: Counter[tuple[Pairs, bool, int]] = Counter()
    for group in groups:
        key = group.values, group.sealed, group.level
        result.setdefault((not group.sealed, group.level, taken[key]), []).append(group)
        taken[key] += 1
    turns = [result[number] for number in sorted(result)]
    return [[group] for turn in turns for group in turn] if alone else turns
