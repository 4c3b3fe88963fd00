"""The layout of a table, as one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from skipindex.build.memory import bytes_in
from skipindex.errors import LayoutError
from skipindex.layout.workload.workload import Workload
from skipindex.rewrite.selection.attributes import JoinedAttribute


@dataclass(frozen=True, slots=True)
class Clustering:
    """How ``write_table`` and ``Table.optimize`` distribute rows over files.

    None is the table's own value, or the default below if the table has none.

    Args:
        by: columns that queries filter on; two to four work best.  A column may be an
            attribute of a joined table, as ``skipindex.via`` names it: it is looked
            up for the write, and not stored.  A ``Workload`` chooses columns and
            curve by its queries.  With ``[]``, ``write_table`` keeps the order of
            the rows, and ``optimize`` only joins small files.
        curve: ``"hilbert"`` (the default), ``"zorder"`` or ``"linear"``;
            ``write_table`` takes ``"hash"`` too, and ``"none"``, which writes rows in
            their order and records ``by`` for ``optimize``.  A workload chooses its
            own curve.
        sort_within: columns to sort by within each file; by default the curve.
        rows_per_file: the target number of rows of a file (1,000,000).  The first
            ``optimize`` of a table keeps the number of files of each partition, up to
            64, if each has at least 1 MB.
        bytes_per_file: the target size of a file instead, in bytes or as ``"512MB"``.
            ``write_table`` measures it on a sample of the rows, with one more count.
            Clustered rows take somewhat less.
        rows_per_group: the maximum number of rows of a row group (128,000).  Readers
            skip groups that cannot match, so small groups make look-ups faster and
            files larger.  Before Spark 4.1, and with the writer's option
            ``parquet.block.size``, groups are limited by their bytes.
        balance: for ``write_table``: ``"rows"`` (the default), or ``"bytes"`` for
            files of nearly equal sizes before encoding.

    >>> sx.Clustering(by=["city", "price"], rows_per_file=50_000).by
    ['city', 'price']
    """

    by: Sequence[str | JoinedAttribute] | Workload | None = None
    curve: str | None = None
    sort_within: Sequence[str] | None = None
    rows_per_file: int | None = None
    bytes_per_file: int | str | None = None
    rows_per_group: int | None = None
    balance: str | None = None

    def __post_init__(self) -> None:
        """Refuse a name where a list of names is meant.

        Raises:
            LayoutError: ``by`` or ``sort_within`` is one string.
        """
        for names in (self.by, self.sort_within):
            if isinstance(names, str):
                raise LayoutError(
                    f"by and sort_within are lists of column names, not {names!r}"
                )

    def _size(self) -> int | None:
        """The target size in bytes."""
        if self.bytes_per_file is None:
            return None
        result = bytes_in(self.bytes_per_file)
        if result is None:
            raise LayoutError(
                f"not a file size: {self.bytes_per_file!r} (accepted: bytes, or a "
                "text such as '512MB')"
            )
        return result

    @classmethod
    def of(cls, layout: Clustering | Workload | None) -> Clustering:
        """A layout as an argument: None is all of the defaults."""
        if isinstance(layout, Clustering):
            return layout
        return cls(by=layout)

    def given(self) -> dict[str, Any]:
        """The values that are not None; ``by`` is ``cluster_by`` below the API."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["bytes_per_file"] = self._size()
        named = {"cluster_by": values.pop("by"), **values}
        return {name: value for name, value in named.items() if value is not None}
