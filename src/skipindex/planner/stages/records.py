"""Records of planning: stages, what each of them achieved, and the bounds of leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from skipindex.expressions.arrays import Mask
from skipindex.expressions.bounds import Bounds
from skipindex.storage.parts import ReadCount
from skipindex.table import ColumnInfo

PARTITIONS: Final = "partition values"
DERIVED: Final = "derived partition"
"""Named among what ruled files out, like an index kind."""
MINMAX: Final = "min/max"
MAPS: Final = "file maps"
VALUES: Final = "bloom"
ROWS: Final = "bitmaps"


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage achieved.

    Args:
        name: as ``explain`` shows it.
        n_files: the files that are left after it.
        n_bytes: their size.
        seconds: the time that it took.
        read: the index bytes and bitmaps that it read.
        note: why it was not run, or empty.
    """

    name: str
    n_files: int
    n_bytes: int
    seconds: float
    read: ReadCount
    note: str = ""


@dataclass(slots=True)
class StageRun:
    """A stage that was run, or not, and the files that may match after it."""

    name: str
    possible: Mask
    seconds: float
    read: ReadCount
    note: str


@dataclass(slots=True)
class LeafBounds:
    """What is known of one leaf, file by file.

    Args:
        column: the column that it asks about.
        bounds: the files whose every row makes it TRUE, and where some row may.
    """

    column: ColumnInfo
    bounds: Bounds[Mask]


@dataclass(slots=True)
class LeafRecord(LeafBounds):
    """What the stages found out about one leaf.

    Args:
        column: the column that it asks about.
        bounds: the files whose every row makes it TRUE, and where some row may.
        holds: files where some row surely makes it TRUE.
    """

    holds: Mask
    _removed: dict[str, Mask] = field(default_factory=dict, init=False)
    _refined: list[tuple[str, Mask, Mask]] = field(default_factory=list, init=False)

    def refine(self, bounds: Bounds[Mask], kind: str, *, first: bool) -> None:
        """Believe a kind too; ``first`` if nothing was known before."""
        self._refined.append((kind, self.bounds.upper, bounds.upper))
        self.bounds = bounds if first else self.bounds.refine(bounds)

    @property
    def removed_by(self) -> dict[str, Mask]:
        """The files that each kind ruled out; made at the first look."""
        for kind, before, after in self._refined:
            removed = before & ~after
            earlier = self._removed.get(kind)
            self._removed[kind] = removed if earlier is None else earlier | removed
        self._refined.clear()
        return self._removed
