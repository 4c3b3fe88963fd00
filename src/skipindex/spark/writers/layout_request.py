"""The layout request of a write, and the layout that the log records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from skipindex.errors import LayoutError
from skipindex.layout import Workload, curve_named, n_files_for
from skipindex.rewrite.selection.attributes import JoinedAttribute, named, to_json
from skipindex.rewrite.selection.target import ROWS_PER_FILE, Target
from skipindex.spark.placement.cluster import apply_clustering, fit_workload
from skipindex.spark.writers.file_size import check_row_groups, rows_in
from skipindex.spark.writers.writing import LaidOut, lay_out
from skipindex.storage.file_system.location import Location


def target_of(layout: Mapping[str, Any]) -> Target:
    """A recorded layout as a run of optimize describes it."""
    curve = layout.get("curve")
    n_bytes = layout.get("bytes_per_file")
    return Target(
        tuple(layout.get("cluster_by", ())) if curve else (),
        curve or "linear",
        tuple(layout.get("sort_within") or ()),
        (layout.get("rows_per_file") or ROWS_PER_FILE) if n_bytes is None else None,
        n_bytes,
    )


@dataclass(frozen=True, slots=True)
class LayoutRequest:
    """The layout that a caller of ``write_table`` asks for, in its arguments."""

    cluster_by: Sequence[str | JoinedAttribute] | Workload
    curve: str | None
    partition_by: Sequence[str]
    sort_within: Sequence[str]
    rows_per_file: int
    balance: str
    bytes_per_file: int | None = None
    rows_per_group: int | None = None

    def check(self, df: DataFrame) -> None:
        """Refuse a layout that is impossible, before any row is read."""
        if isinstance(self.cluster_by, str) or isinstance(self.partition_by, str):
            raise LayoutError("cluster_by and partition_by are lists of column names")
        if self.curve is not None:
            curve_named(self.curve)
        check_row_groups(df.sparkSession, self.rows_per_group)
        if isinstance(self.cluster_by, Workload) and self.cluster_by.record:
            raise LayoutError(
                "a new table has no recorded queries (accepted: a list of conditions, "
                "or optimize with the Workload later)"
            )
        for name in ("rows_per_file", "bytes_per_file", "rows_per_group"):
            size = getattr(self, name)
            if size is not None and size < 1:
                raise LayoutError(f"{name} is {size} (expected 1 or more)")
        names: tuple[str, ...] = ()
        attributes: dict[str, JoinedAttribute] = {}
        if not isinstance(self.cluster_by, Workload):
            names, attributes = named(self.cluster_by)
        keys = (one.key for one in attributes.values())
        own = [name for name in names if name not in attributes]
        for name in (*own, *keys, *self.partition_by):
            if name not in df.columns:
                raise LayoutError(
                    f"no column {name!r} to lay out by "
                    f"(columns: {', '.join(df.columns)})"
                )
        both = sorted(set(own) & set(self.partition_by))
        if both:
            raise LayoutError(
                f"columns {both} are partition columns, so every file already holds "
                "one value of them; cluster by others"
            )

    def lay_out(
        self, df: DataFrame, location: Location, options: Mapping[str, str] | None
    ) -> LaidOut:
        """The rows in the layout; a clustering counts and samples them first."""
        layout: dict[str, Any] = {
            "partition_by": list(self.partition_by),
            "sort_within": list(self.sort_within),
        }
        if self.rows_per_group is not None:
            layout["rows_per_group"] = self.rows_per_group
        n_rows, rows_per_file = None, self.rows_per_file
        if self.bytes_per_file is None:
            layout["rows_per_file"] = rows_per_file
        else:
            layout["bytes_per_file"] = self.bytes_per_file
            n_rows = df.count()
            rows_per_file = rows_in(self.bytes_per_file, df, n_rows, options)
        if isinstance(self.cluster_by, Workload):
            n_rows = df.count() if n_rows is None else n_rows
            return self._by_workload(df, self.cluster_by, layout, n_rows, rows_per_file)
        names, attributes = named(self.cluster_by)
        layout["cluster_by"] = list(names)
        layout["curve"] = self.curve if names else None
        if attributes:
            layout["via"] = to_json(attributes, location)
        return lay_out(
            df,
            layout,
            location,
            rows_per_file=rows_per_file,
            n_rows=n_rows,
            balance=self.balance,
        )

    def _by_workload(
        self,
        df: DataFrame,
        workload: Workload,
        layout: Mapping[str, Any],
        n_rows: int,
        rows_per_file: int,
    ) -> LaidOut:
        choice = fit_workload(
            df,
            workload,
            n_files=n_files_for(n_rows, rows_per_file),
            n_rows=n_rows,
            partition_by=self.partition_by,
            balance=self.balance,
        )
        rows = apply_clustering(
            df,
            choice.layout,
            sort_within=self.sort_within,
            partition_by=self.partition_by,
        )
        chosen = choice.to_json() | {"workload": workload.to_json()}
        return LaidOut(rows, {**layout, **chosen})
