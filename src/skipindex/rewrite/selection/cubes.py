"""Cubes: files that one run clustered together, found by name and property.

The name of a file has the run that wrote it, and the round of that run.  A round takes
one group of files a partition, so its files in a partition are one cube.  The property
``runs`` says how each run orders rows, and which of its rounds made sealed cubes.  A
cube that weighs enough is sealed, and an incremental run never touches it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from json import dumps
from typing import Any

from skipindex.log.properties import TableProperties
from skipindex.rewrite.selection.target import EligibleFile, Target
from skipindex.storage.file_system.names import round_of


@dataclass(frozen=True, slots=True)
class Run:
    """How one run has written files.

    Args:
        shape: of the target.
        size: of the target.
        sealed: the rounds below this number made sealed cubes.
    """

    shape: Mapping[str, Any]
    size: Mapping[str, Any]
    sealed: int = 0

    @classmethod
    def of(cls, target: Target, *, sealed: int = 0) -> Run:
        """A run that wrote to this target."""
        return cls(target.shape(), target.size(), sealed)

    @property
    def is_clustered(self) -> bool:
        """Its rows follow a curve."""
        return bool(self.shape["cluster_by"])


Runs = Mapping[str, Run]
"""Runs by the id that names of files have."""


@dataclass(frozen=True, slots=True)
class Cube:
    """Files of one partition that one round of a run has written."""

    run: str
    round: int
    how: Run
    files: tuple[EligibleFile, ...]

    @property
    def level(self) -> int:
        """The level of its rows, as ``within`` has it."""
        levels: Sequence[int] = self.how.size.get("levels", ())
        return levels[self.round] if self.round < len(levels) else 0

    @property
    def sealed(self) -> bool:
        """No incremental run touches it: it was made of enough, or weighs enough."""
        weight, enough = sum(f.size for f in self.files), self.how.size.get("cube_size")
        return self.round < self.how.sealed or (enough is not None and weight >= enough)


def cubes_of(
    files: Iterable[EligibleFile], runs: Runs
) -> tuple[list[Cube], list[EligibleFile]]:
    """The cubes that these runs made of a partition, and the files in none of them."""
    result: dict[tuple[str, int], list[EligibleFile]] = {}
    others = []
    for file in files:
        wrote = round_of(file.path)
        if wrote is None or wrote[0] not in runs:
            others.append(file)
        else:
            result.setdefault(wrote, []).append(file)
    cubes = [
        Cube(run, number, runs[run], tuple(own))
        for (run, number), own in result.items()
    ]
    return cubes, others


def runs_of(properties: TableProperties) -> dict[str, Run]:
    """The runs that a table knows."""
    return {
        run: Run(one["shape"], one["size"], sealed)
        for one in (properties.runs or {}).get("targets", ())
        for run, sealed in one["runs"].items()
    }


def with_runs(
    properties: TableProperties, runs: Runs, paths: Iterable[str]
) -> TableProperties:
    """The properties with those of the runs that have written one of these files."""
    wrote = {result[0] for result in map(round_of, paths) if result is not None}
    alike: dict[str, dict[str, Any]] = {}
    for run, how in runs.items():
        if run in wrote:
            target = {"shape": dict(how.shape), "size": dict(how.size)}
            key = dumps(target, sort_keys=True)
            alike.setdefault(key, {**target, "runs": {}})["runs"][run] = how.sealed
    return replace(properties, runs={"targets": [*alike.values()]} if alike else None)


def runs_of_write(paths: Sequence[str], target: Target) -> TableProperties:
    """What a table records that was written whole, in one round."""
    wrote = round_of(paths[0])
    if wrote is None or not target.cluster_by:
        return TableProperties()
    return with_runs(TableProperties(), {wrote[0]: Run.of(target)}, paths)
