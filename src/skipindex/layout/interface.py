"""A layout: assigns rows to files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa

from skipindex.layout.curves import Keys
from skipindex.layout.cuts import FileNumbers, Salt


class Placement(NamedTuple):
    """Where rows go."""

    keys: Keys
    """Positions on the curve: the order of rows over files and inside them."""
    files: FileNumbers


class Layout(Protocol):
    """Sends every row of a table to one of ``n_files`` files, by its content alone.

    Small enough to be sent to executors.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that ``assign`` takes, in its order."""
        ...

    @property
    def n_files(self) -> int:
        """How many files there are; their numbers begin at 0."""
        ...

    @property
    def needs_salt(self) -> bool:
        """Rows that are alike in ``columns`` may go to several files."""
        ...

    def assign(
        self,
        arrays: Sequence[pa.Array | pa.ChunkedArray],
        *,
        salt: Salt | None = None,
    ) -> Placement:
        """The key and the file of every row.

        Arrays are those of ``columns``, all of one length; ``salt`` is a hash of each
        row, see ``FileCuts.assign``.

        Raises:
            LayoutError: if an array's type does not fit its column.
        """
        ...
