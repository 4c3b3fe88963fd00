"""Records of planning: stages, leaves, and locations of indexes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from skipindex.expressions.arrays import Ints, Mask
from skipindex.expressions.bounds import Bounds
from skipindex.indexes.interface import IndexType
from skipindex.storage.pack import Blob
from skipindex.storage.parts import ReadCount
from skipindex.table import ColumnInfo

PARTITIONS: Final = "partition values"
DERIVED: Final = "derived partition"
"""Named among what ruled files out, like an index kind."""
MINMAX: Final = "min/max"
MAPS: Final = "file maps"
VALUES: Final = "value filters"
ROWS: Final = "row indexes"


@dataclass(frozen=True, slots=True)
class Stage:
    """The result of one stage.

    Args:
        name: the name in ``explain``.
        n_files: the number of files that remain after it.
        n_bytes: their size in bytes.
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
class LeafRecord:
    """What the stages found out about one leaf.

    Args:
        column: the column that it asks about.
        bounds: the files whose every row makes it TRUE, and where some row may.
        holds: files where some row certainly makes it TRUE.
    """

    column: ColumnInfo
    bounds: Bounds[Mask]
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


IndexLocation = tuple[IndexType, Blob, int]
"""Where the index of one file is: its kind, its blob, and the slot in it."""


class Locations(Mapping[int, Sequence[IndexLocation]]):
    """Where the indexes on one column are, by file, the newest first.

    It has no object for each file: thousands, made by each plan, would let Python
    look for garbage in all of its memory again and again.

    Args:
        n_files: the number of files of the table.

    Attributes:
        sources: the kinds and blobs, the newest first.
        source: of each file the number of its newest source; -1 without an index.
        slot: its slot there.
    """

    def __init__(self, n_files: int) -> None:
        self.sources: list[tuple[IndexType, Blob]] = []
        self.source = np.full(n_files, -1, np.int32)
        self.slot = np.zeros(n_files, np.int64)
        self._older: dict[int, list[IndexLocation]] = {}

    def add(self, kind: IndexType, blob: Blob, files: Ints, slots: Ints) -> None:
        """A blob that is older than those before."""
        has_newer = self.source[files] >= 0
        if has_newer.any():
            older = files[has_newer].tolist(), slots[has_newer].tolist()
            for file, slot in zip(*older, strict=True):
                self._older.setdefault(file, []).append((kind, blob, slot))
            files, slots = files[~has_newer], slots[~has_newer]
        self.source[files] = len(self.sources)
        self.slot[files] = slots
        self.sources.append((kind, blob))

    def __getitem__(self, file: int) -> Sequence[IndexLocation]:
        kind, blob = self.sources[self.source[file]]
        newest = kind, blob, int(self.slot[file])
        return (newest, *self._older[file]) if file in self._older else (newest,)

    def get(self, file: int, default: Any = None, /) -> Any:
        """Like ``dict.get``: ``default`` for a file without an index."""
        return self[file] if self.source[file] >= 0 else default

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self.source >= 0).tolist())

    def __len__(self) -> int:
        return int(np.count_nonzero(self.source >= 0))
