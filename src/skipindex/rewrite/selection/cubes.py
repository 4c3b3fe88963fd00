"""Cubes: files that were clustered together, as the properties of a table tell.

A cube that weighs enough is sealed, and an incremental run never touches it again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skipindex.rewrite.selection.target import Target
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import visible_name
from skipindex.storage.log import read_cubes
from skipindex.storage.properties import TableProperties
from skipindex.table.partitions.hive import Pairs, partition_values


@dataclass(frozen=True, slots=True)
class Cube:
    """Files that were clustered together, or that joining has left behind.

    Args:
        shape: of the target.
        size: of the target.
        run: that made it.
        sealed: no incremental run touches it.
        paths: of its files, as they are visible or will be.
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
        paths = frozenset(map(visible_name, record["paths"]))
        return cls(
            record["shape"], record["size"], record["run"], record["sealed"], paths
        )

    @property
    def is_clustered(self) -> bool:
        """Its rows follow a curve."""
        return bool(self.shape["cluster_by"])


def cubes_of(location: Location, properties: TableProperties) -> list[Cube]:
    """The cubes of a table.

    Raises:
        StorageError: they cannot be read now.
    """
    return [Cube.from_json(record) for record in read_cubes(location, properties)]


def with_cubes(properties: TableProperties, cubes: Iterable[Cube]) -> TableProperties:
    """The properties with these cubes; one without files is left out."""
    return replace(properties, cubes=[cube.to_json() for cube in cubes if cube.paths])


def cubes_of_write(
    paths: Sequence[str], sizes: Sequence[int], target: Target
) -> list[Cube]:
    """The cubes of a table that was written whole: one a partition."""
    if not target.cluster_by:
        return []
    partitions: dict[Pairs, dict[str, int]] = {}
    for path, size in zip(paths, sizes, strict=True):
        partitions.setdefault(partition_values(path), {})[visible_name(path)] = size
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
