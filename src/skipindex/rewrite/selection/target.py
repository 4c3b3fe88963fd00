"""The target of a rewrite: the order of rows, and file sizes in rows or bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from skipindex.errors import LayoutError
from skipindex.source.partitions.hive import Pairs

CUBE_SIZE: Final = 150_000_000_000
"""Bytes; the larger a cube, the better its rows can be separated."""
ROWS_PER_FILE: Final = 1_000_000
"""The most rows of a file, unless a size is given."""
_MOST_FILES: Final = 64
"""Files that a partition keeps, unless a size is given."""
_LEAST_BYTES: Final = 1_000_000
"""The least bytes of a file, unless a size is given."""
RATIO: Final = 5.0
"""Over 30 days of two uniform columns this rewrites a third of the bytes of a full
rewrite each day, and a query reads some 1.15 times its files.  It is the knee of the
curve that ``benchmarks.incremental`` draws."""


@dataclass(frozen=True, slots=True)
class EligibleFile:
    """A file that may be rewritten.

    Args:
        path: relative to the table.
        values: of the partition columns, as the folders spell them.
        size: in bytes.
        n_rows: its rows.
    """

    path: str
    values: Pairs
    size: int
    n_rows: int


@dataclass(frozen=True, slots=True)
class Target:
    """How the rewritten files are to be.

    Args:
        cluster_by: columns to cluster by; none to join small files only.
        curve: how.
        sort_within: order of the rows of a file; none is along the curve, or as
            they come where files are joined.
        rows_per_file: rows of a file, about.
        bytes_per_file: bytes of a file, about; instead of rows.
        cube_size: bytes at which a cube is sealed.
        ratio: how many times as heavy as the files that it is merged with a cube may
            be; it is a setting of one run.
        known: the rest of the table's layout, which stays: the most ranges of
            columns, the answers, the workload that they were chosen for.
        levels: of each round of the run, the level of its rows (see ``within``).
    """

    cluster_by: tuple[str, ...]
    curve: str
    sort_within: tuple[str, ...] = ()
    rows_per_file: int | None = None
    bytes_per_file: int | None = None
    cube_size: int = CUBE_SIZE
    ratio: float = field(default=RATIO, compare=False)
    known: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    levels: tuple[int, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        """Check the sizes."""
        match self.rows_per_file, self.bytes_per_file:
            case (int(), None) | (None, int()):
                pass
            case _:
                raise LayoutError(
                    "expected one of rows_per_file and bytes_per_file, not both"
                )
        if not self.ratio >= 0:
            raise LayoutError(
                f"cannot merge cubes of up to {self.ratio} times the bytes (accepted: "
                "0 or more; infinity merges all unsealed cubes)"
            )
        for what, size in (("files", self.limit), ("cubes", self.cube_size)):
            if size < 1:
                raise LayoutError(f"cannot make {what} of {size} (at least 1)")

    @property
    def limit(self) -> int:
        """Rows or bytes of a file."""
        return self.rows_per_file or self.bytes_per_file or 0

    def weight(self, file: EligibleFile) -> int:
        """Rows or bytes of ``file``."""
        return file.size if self.rows_per_file is None else file.n_rows

    def n_files(self, files: Iterable[EligibleFile]) -> int:
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
        """How large files and cubes are to be, as JSON, and their levels if any."""
        return {
            "rows_per_file": self.rows_per_file,
            "bytes_per_file": self.bytes_per_file,
            "cube_size": self.cube_size if self.cluster_by else None,
            **({"levels": list(self.levels)} if any(self.levels) else {}),
        }


def rows_by_default(files: Sequence[EligibleFile]) -> int:
    """The rows of a file that clustering makes of these, unless a size is given.

    A partition keeps as many files as it has, up to 64 and as long as they have 1 MB:
    with fewer, a query for one value may read more bytes than before.
    """
    counts = Counter(file.values for file in files)
    n_files = sum(min(n, _MOST_FILES) for n in counts.values())
    n_rows, n_bytes = sum(f.n_rows for f in files), sum(f.size for f in files)
    n_files = max(1, min(n_files, n_bytes // _LEAST_BYTES))
    return max(1, min(ROWS_PER_FILE, -(-n_rows // n_files)))
