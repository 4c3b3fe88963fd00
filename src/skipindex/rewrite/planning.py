"""Which files are rewritten, and which ones together.

Clustered files belong to *cubes*: the files that were clustered together.  A cube
that weighs enough is sealed, and an incremental run never touches it again.  A run
with nothing new finds nothing to do.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from skipindex.errors import LayoutError
from skipindex.partitions import partition_values
from skipindex.rewrite.packing import pack, runs
from skipindex.storage.replacements import is_hidden_copy, published

PROPERTY: Final = "cubes"
"""Of the table, in every commit."""

CUBE_SIZE: Final = 150_000_000_000
"""Bytes; the larger a cube, the better its rows can be separated."""


class Mode(Enum):
    """How much of a table is clustered."""

    INCREMENTAL = "incremental"
    FULL = "full"


def mode_named(name: str) -> Mode:
    """The mode of that name.

    Raises:
        LayoutError: there is none.
    """
    try:
        return Mode(name)
    except ValueError:
        accepted = ", ".join(repr(mode.value) for mode in Mode)
        raise LayoutError(f"no mode {name!r} (accepted: {accepted})") from None


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file that may be rewritten.

    Args:
        path: relative to the table.
        values: of the partition columns, as the folders spell them.
        size: in bytes.
        n_rows: its rows.
    """

    path: str
    values: tuple[tuple[str, str | None], ...]
    size: int
    n_rows: int


@dataclass(frozen=True, slots=True)
class Target:
    """How the rewritten files are to be.

    Args:
        cluster_by: columns to cluster by; none to join small files only.
        curve: how.
        sort_within: order of the rows of a file; none is along the curve.
        rows_per_file: rows of a file, about.
        bytes_per_file: bytes of a file, about; in the place of rows.
        cube_size: bytes from which on a cube is sealed.
    """

    cluster_by: tuple[str, ...]
    curve: str
    sort_within: tuple[str, ...] = ()
    rows_per_file: int | None = None
    bytes_per_file: int | None = None
    cube_size: int = CUBE_SIZE

    def __post_init__(self) -> None:
        """Refuse what makes no files.

        Raises:
            LayoutError: not exactly one of the sizes is given, or it is below 1.
        """
        match self.rows_per_file, self.bytes_per_file:
            case (int(), None) | (None, int()):
                pass
            case _:
                raise LayoutError(
                    "expected one of rows_per_file and bytes_per_file, not both"
                )
        for what, size in (("files", self.limit), ("cubes", self.cube_size)):
            if size < 1:
                raise LayoutError(f"cannot make {what} of {size} (at least 1)")

    @property
    def limit(self) -> int:
        """Rows or bytes of a file."""
        return self.rows_per_file or self.bytes_per_file or 0

    def weight(self, file: DataFile) -> int:
        """Rows or bytes of ``file``."""
        return file.size if self.rows_per_file is None else file.n_rows

    def n_files(self, files: Iterable[DataFile]) -> int:
        """How many files to make of these: ``max(1, total / target)``.

        Rows are rounded up, so that a file has no more than it should; bytes are
        rounded down, because clustered rows take fewer of them.
        """
        total = sum(map(self.weight, files))
        if self.rows_per_file is None:
            return max(1, total // self.limit)
        return max(1, -(-total // self.limit))

    def shape(self) -> dict[str, Any]:
        """What makes two cubes alike: the order of rows, not the size of files."""
        return {
            "cluster_by": list(self.cluster_by),
            "curve": self.curve if self.cluster_by else None,
            "sort_within": list(self.sort_within),
        }

    def size(self) -> dict[str, Any]:
        """How large files and cubes are to be, as JSON."""
        return {
            "rows_per_file": self.rows_per_file,
            "bytes_per_file": self.bytes_per_file,
            "cube_size": self.cube_size if self.cluster_by else None,
        }


@dataclass(frozen=True, slots=True)
class Cube:
    """Files that were clustered together, or that joining has left behind.

    Args:
        shape: of the target.
        size: of the target.
        run: that made it.
        sealed: no incremental run touches it.
        paths: of its files.
    """

    shape: Mapping[str, Any]
    size: Mapping[str, Any]
    run: str
    sealed: bool
    paths: frozenset[str]

    def to_json(self) -> dict[str, Any]:
        """For the properties of the table."""
        return {
            "shape": dict(self.shape),
            "size": dict(self.size),
            "run": self.run,
            "sealed": self.sealed,
            "paths": sorted(self.paths),
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Cube:
        """The inverse of ``to_json``."""
        paths = frozenset(record["paths"])
        return cls(
            record["shape"], record["size"], record["run"], record["sealed"], paths
        )

    @property
    def is_clustered(self) -> bool:
        """Its rows follow a curve."""
        return bool(self.shape["cluster_by"])


def cubes_of(properties: Mapping[str, Any]) -> list[Cube]:
    """The cubes that the properties of a commit tell of."""
    return [Cube.from_json(record) for record in properties.get(PROPERTY, ())]


def cubes_of_write(
    paths: Sequence[str], sizes: Sequence[int], target: Target
) -> list[Cube]:
    """The cubes of a table that was written whole: one a partition."""
    if not target.cluster_by:
        return []
    partitions: dict[tuple[tuple[str, str | None], ...], dict[str, int]] = {}
    for path, size in zip(paths, sizes, strict=True):
        partitions.setdefault(partition_values(path), {})[path] = size
    run = uuid.uuid4().hex
    return [
        Cube(
            target.shape(),
            target.size(),
            run,
            sum(files.values()) >= target.cube_size,
            frozenset(files),
        )
        for files in partitions.values()
    ]


@dataclass(frozen=True, slots=True)
class Group:
    """Files of one partition that are rewritten together.

    Args:
        files: all of them.
        bins: files that become one, where small files are joined; else empty.
        left: paths of small files that are left as they are.
        sealed: what comes out is a sealed cube.
    """

    files: tuple[DataFile, ...]
    bins: tuple[tuple[DataFile, ...], ...] = ()
    left: frozenset[str] = frozenset()
    sealed: bool = False

    @property
    def values(self) -> tuple[tuple[str, str | None], ...]:
        """The partition, as the folders spell it."""
        return self.files[0].values

    @property
    def folder(self) -> str:
        """A visible folder of the partition."""
        paths = (
            published(file.path) if is_hidden_copy(file.path) else file.path
            for file in self.files
        )
        folders = [path.rpartition("/")[0] for path in paths]
        return min(folders, key=lambda folder: (len(folder), folder))

    @property
    def n_rows(self) -> int:
        """The rows of all files."""
        return sum(file.n_rows for file in self.files)


def by_partition(files: Iterable[DataFile]) -> list[list[DataFile]]:
    """The files that have rows, by the values of their partition columns."""
    found: dict[tuple[tuple[str, str | None], ...], list[DataFile]] = {}
    for file in files:
        if file.n_rows:
            found.setdefault(file.values, []).append(file)
    return list(found.values())


def plan_clustering(
    files: Sequence[DataFile],
    cubes: Sequence[Cube],
    target: Target,
    *,
    mode: Mode,
) -> list[Group]:
    """The groups to cluster; each becomes a cube.

    Incremental: files that are in no cube of this shape, together with the cubes
    that are not sealed yet.  Full: all files of a partition, unless one run has
    clustered all of them to this very target.

    Args:
        files: of the chosen partitions.
        cubes: that the table has.
        target: how the files are to be.
        mode: how much to do.
    """
    alike = [cube for cube in cubes if cube.shape == target.shape()]
    groups = []
    for mine in by_partition(files):
        pool = _to_cluster(mine, alike, target, mode)
        for run in runs([file.size for file in pool], target.cube_size):
            chosen = tuple(pool[i] for i in run)
            sealed = sum(file.size for file in chosen) >= target.cube_size
            groups.append(Group(chosen, sealed=sealed))
    return groups


def _to_cluster(
    files: Sequence[DataFile], cubes: Sequence[Cube], target: Target, mode: Mode
) -> list[DataFile]:
    paths = {file.path for file in files}
    mine = [cube for cube in cubes if cube.paths & paths]
    fresh = paths.difference(*(cube.paths for cube in mine))
    if mode is Mode.FULL:
        is_one_run = len({cube.run for cube in mine}) == 1
        alike = all(cube.size == target.size() for cube in mine)
        return [] if is_one_run and alike and not fresh else list(files)
    unsealed = [cube for cube in mine if not cube.sealed]
    if not fresh and len(unsealed) <= 1:
        return []
    # Those of a cube first, so that a cube grows rather than is split.
    old = set().union(*(cube.paths for cube in unsealed))
    chosen = [file for file in files if file.path in old]
    return chosen + [file for file in files if file.path in fresh]


def plan_joining(
    files: Sequence[DataFile], cubes: Sequence[Cube], target: Target
) -> list[Group]:
    """The groups of small files to join, one a partition.

    A file is small below the target.  Clustered files are left alone, and so are
    small files where an earlier run to the same target has left no others.
    """
    clustered = set().union(*(cube.paths for cube in cubes if cube.is_clustered))
    joined = set().union(
        *(
            cube.paths
            for cube in cubes
            if cube.shape == target.shape() and cube.size == target.size()
        )
    )
    groups = []
    for mine in by_partition(files):
        small = [
            file
            for file in mine
            if target.weight(file) < target.limit and file.path not in clustered
        ]
        if {file.path for file in small} <= joined:
            continue
        packed = pack([target.weight(file) for file in small], target.limit)
        bins = tuple(tuple(small[i] for i in run) for run in packed if len(run) > 1)
        if bins:
            chosen = tuple(file for run in bins for file in run)
            left = {file.path for file in small} - {file.path for file in chosen}
            groups.append(Group(chosen, bins, frozenset(left)))
    return groups


def rounds(groups: Iterable[Group]) -> list[list[Group]]:
    """The groups so that no two of a round are of one partition."""
    found: list[list[Group]] = []
    taken: dict[tuple[tuple[str, str | None], ...], int] = {}
    for group in groups:
        number = taken.get(group.values, 0)
        taken[group.values] = number + 1
        if number == len(found):
            found.append([])
        found[number].append(group)
    return found
