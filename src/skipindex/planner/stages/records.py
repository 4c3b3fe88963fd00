"""Records of planning: stages, what is known of leaves, and where their indexes are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from skipindex.expressions.arrays import Mask
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
VALUES: Final = "bloom"
ROWS: Final = "bitmaps"


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
        holds: files where some row surely makes it TRUE.
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

    It has no object for each file: thousands, made anew by each plan, would let Python
    look for garbage in all of its memory again and again.
    """

    def __init__(self) -> None:
        self._sources: list[tuple[IndexType, Blob]] = []
        # By file, of its newest index alone.
        self._source: dict[int, int] = {}
        self._slot: dict[int, int] = {}
        self._older: dict[int, list[IndexLocation]] = {}

    def add(
        self, kind: IndexType, blob: Blob, files: Sequence[int], slots: Sequence[int]
    ) -> None:
        """A blob that is older than those before."""
        number = len(self._sources)
        self._sources.append((kind, blob))
        for file, slot in zip(files, slots, strict=True):
            if file in self._source:
                self._older.setdefault(file, []).append((kind, blob, slot))
            else:
                self._source[file] = number
                self._slot[file] = slot

    def __getitem__(self, file: int) -> Sequence[IndexLocation]:
        kind, blob = self._sources[self._source[file]]
        newest = kind, blob, self._slot[file]
        return (newest, *self._older[file]) if file in self._older else (newest,)

    def get(self, file: int, default: Any = None, /) -> Any:
        """Like ``dict.get``: ``default`` for a file without an index."""
        return self[file] if file in self._source else default

    def __iter__(self) -> Iterator[int]:
        return iter(self._source)

    def __len__(self) -> int:
        return len(self._source)
