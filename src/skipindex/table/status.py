"""The status of a table: its files, columns and indexes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from skipindex.conditions.columns import ColumnInfo
from skipindex.errors import UnknownIndexError, one_line
from skipindex.indexes import MinMax, spec_from_json, spec_to_json
from skipindex.indexes.interface import IndexSpec
from skipindex.log.properties import retention_of, schema_of
from skipindex.notebook import bar, block, lines, paragraph, table
from skipindex.source.folder.folder import LISTED
from skipindex.source.folder.hidden_files import waiting
from skipindex.storage.blobs import spec_key
from skipindex.storage.file_system.names import PACKS, round_of
from skipindex.table.statistics.overlap import Overlap, partition_numbers
from skipindex.table.table import TableState

_PARTS: Final = {"year", "month", "day", "hour", "dt"}
"""Names of partition columns, in small letters, that are made of a time as a rule."""
_TIMES: Final = {"date", "timestamp", "timestamp_ntz", "string"}
"""Domains of columns that hold times."""


@dataclass(frozen=True, slots=True)
class ColumnStatus:
    """The indexes of one column.

    Args:
        name: the name of the column.
        statistics: the number of files whose least and greatest value are known.
        indexes: by kind, the number of files that have one.
        index_bytes: by kind, the size of the indexes.
        encodings: by kind and encoding, the number of files when their packs were
            written; of ``exact`` alone.
        why: the reason if the column has neither.
    """

    name: str
    statistics: int
    indexes: dict[str, int]
    index_bytes: dict[str, int]
    encodings: dict[str, dict[str, int]]
    why: str

    def encodings_of(self, kind: str) -> list[str]:
        """Each encoding of a kind, with its number of files."""
        return [f"{n} {name}" for name, n in self.encodings.get(kind, {}).items()]


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a table; no index is read.

    Args:
        table: the folder.
        version: the number of the newest commit; -1 before the first.
        source: what says which files the table has, such as "version 3 of Delta".
        files: the number of data files.
        n_bytes: the size of the data files.
        indexed_files: the number of files with an index.
        indexed_rows: the number of their rows.
        vanished_files: the number of indexed files that are deleted or changed; the
            next build removes them from the log.
        packs: the number of packs in use.
        index_bytes: the size of these packs, in bytes.
        superseded_bytes: the size of all other packs, also those of a running build;
            ``vacuum`` deletes them after the retention.
        gaps: by reason, the number of files without some index.
        columns: the indexes of each column.
        layout: the layout of the table, if it is known.
        unclustered_files: the number of files that no run has clustered by this layout,
            such as those of other writers; ``maintain`` and ``optimize`` take them
            first.  0 if the layout has no columns to cluster by.
        overlap: how many files hold one value of each clustering column; None for a
            column that is looked up, or does not exist.
        derived: by partition column, the declared function.
        undeclared: if nothing is declared, the partition columns that are named as
            parts of a time, if a column of the files may hold that time.
        exclusive: whether the table is declared exclusive.
        retention_seconds: how long superseded files stay; None is the default.
        waiting: the rewritten files that are not visible yet to readers that list the
            folder, and the time when they will be; empty if there are none.
        notes: warnings about parts of the log that were ignored, and about requested
            indexes of columns that are not known.
    """

    table: str
    version: int
    source: str
    files: int
    n_bytes: int
    indexed_files: int
    indexed_rows: int
    vanished_files: int
    packs: int
    index_bytes: int
    superseded_bytes: int
    gaps: dict[str, int]
    columns: tuple[ColumnStatus, ...]
    layout: Mapping[str, Any] | None
    unclustered_files: int
    overlap: Mapping[str, Overlap | None]
    derived: Mapping[str, str]
    undeclared: tuple[str, ...]
    exclusive: bool
    retention_seconds: float | None
    waiting: str
    notes: tuple[str, ...]

    @property
    def fresh(self) -> bool:
        """Whether every file has the indexes of the newest commit."""
        return not (self.gaps or self.vanished_files or self.notes)

    def to_dict(self) -> dict[str, Any]:
        """The status as plain values."""
        return asdict(self)

    def _repr_html_(self) -> str:
        rows: list[tuple[object, ...]] = [
            (column.name, kind, n, column.index_bytes[kind] / 1e6)
            for column in self.columns
            for kind, n in column.indexes.items()
        ]
        rows += [
            (one.name, "min/max" if one.statistics else one.why, one.statistics, "")
            for one in self.columns
            if not one.indexes
        ]
        head, *others = str(self).splitlines()
        share = self.indexed_files / max(1, self.files)
        drawn = bar(share, f"{self.indexed_files} of {self.files} files are indexed")
        return block(
            paragraph(head),
            drawn.svg,
            table(("column", "index", "files", "MB"), rows, right=(2, 3)),
            lines(line for line in others if not line.startswith("  ")),
        )

    def __str__(self) -> str:
        head = (
            f"{self.table}: {self.files} files, {self.n_bytes / 1e6:.1f} MB, "
            f"{self.indexed_files} of them indexed, with {self.indexed_rows:,} rows; "
            f"{self.index_bytes / 1e6:.2f} MB of indexes, "
            + (f"commit {self.version}" if self.version >= 0 else "no commit yet")
        )
        lines = [head]
        if self.source != LISTED.described:
            lines.append(f"the files are those of {self.source}")
        for column in self.columns:
            kinds = ", ".join(
                f"{kind} ({column.index_bytes[kind] / 1e6:.2f} MB"
                + (f", {n} files" if n < self.files else "")
                + "".join(f", {one}" for one in column.encodings_of(kind))
                + ")"
                for kind, n in column.indexes.items()
            )
            what = kinds or ("min/max" if column.statistics else column.why)
            lines.append(f"  {one_line(column.name)}: {what}")
        lines += [
            f"clustered by {name}: {'not known' if one is None else one}"
            for name, one in self.overlap.items()
        ]
        lines += [f"{n} files: {reason}" for reason, n in self.gaps.items()]
        if self.vanished_files:
            lines.append(f"{self.vanished_files} indexed files are deleted or changed")
        if self.unclustered_files:
            lines.append(f"{self.unclustered_files} files do not follow the layout")
        if self.superseded_bytes:
            n_bytes = f"{self.superseded_bytes / 1e6:.2f} MB"
            lines.append(f"{n_bytes} of superseded index files wait for vacuum")
        if self.undeclared:
            lines.append(
                f"{', '.join(self.undeclared)}: partition columns that may be computed "
                "from a time, not declared (propose_derived compares rows)"
            )
        if self.waiting:
            lines.append(self.waiting)
        return "\n".join([*lines, *self.notes])


def status_of(table: TableState) -> Status:
    """The status of a table, as it was when it was opened."""
    table = as_requested(table)
    manifest, properties = table.snapshot.manifest, table.snapshot.properties
    return Status(
        table=table.folder,
        version=table.snapshot.version,
        source=table.source.described,
        files=len(table),
        n_bytes=table.n_bytes,
        indexed_files=int(table.n_rows.known.sum()),
        indexed_rows=int(table.n_rows.or_else(0).sum()),
        vanished_files=len(table.vanished),
        packs=len(manifest.packs),
        index_bytes=sum(pack.size for pack in manifest.packs),
        superseded_bytes=_superseded_bytes(table),
        gaps=table.index_gaps,
        columns=tuple(_column(table, column) for column in table.leaves),
        layout=properties.layout,
        unclustered_files=_unclustered(table),
        overlap=overlaps_of(table, (properties.layout or {}).get("cluster_by") or ()),
        derived=table.derived.columns,
        undeclared=_undeclared(table),
        exclusive=table.snapshot.is_exclusive,
        retention_seconds=(properties.retention or {}).get("seconds"),
        waiting=waiting(table.snapshot, retention_of(properties)),
        notes=(*table.notes, *filter(None, [unmet_request(table)])),
    )


def as_requested(table: TableState) -> TableState:
    """The table with the requested columns that the request gave a schema for."""
    record = table.snapshot.properties.schema
    if record is None or not unmet_request(table):
        return table
    known = {column.path[0] for column in table.columns}
    news = [field for field in schema_of(record) if field.name not in known]
    if not news:
        return table
    return table.reopened(declared=pa.schema([*table.schema, *news]))


def unmet_request(table: TableState) -> str:
    """A note on requested indexes of columns that the table, as it is open, lacks."""
    record = table.snapshot.properties.indexes
    if not isinstance(record, Mapping) or table.source.schema is not None:
        return ""  # it has all columns: what it lacks was dropped or renamed
    known = {"*", *(one.name for one in (*table.columns, *table.leaves))}
    lacking = sorted(name for name in record.keys() - known if record[name])
    if not lacking:
        return ""
    return (
        f"indexes of {', '.join(map(repr, lacking))} are requested and not built, as "
        "the table is open without such columns (accepted: to open it with a schema "
        "that has them)"
    )


def _unclustered(table: TableState) -> int:
    """The files that may have rows, and that no run has clustered by the layout."""
    properties = table.snapshot.properties
    layout = properties.layout or {}
    names, curve = list(layout.get("cluster_by") or ()), layout.get("curve", "hilbert")
    if not names or curve is None:
        return 0
    order = list(layout.get("sort_within") or ())
    shape = {"cluster_by": names, "curve": curve, "sort_within": order}
    targets = (properties.runs or {}).get("targets", ())
    known = {run for one in targets if one["shape"] == shape for run in one["runs"]}
    rows = np.flatnonzero(table.n_rows.or_else(1))
    wrote = (round_of(table.paths[row]) for row in rows)
    return sum(one is None or one[0] not in known for one in wrote)


def _superseded_bytes(table: TableState) -> int:
    """The size of the packs that the newest commit does not name."""
    if table.snapshot.unknown:
        return 0
    used = {f"{PACKS}/{pack.name}" for pack in table.snapshot.manifest.packs}
    try:
        return sum(f.size for f in table.location.list(PACKS) if f.path not in used)
    except FileNotFoundError:
        return 0


def overlaps_of(table: TableState, names: Iterable[str]) -> dict[str, Overlap | None]:
    """How many files hold a value of each of these columns; no file is opened.

    None where no column of the files has that name, as an attribute that is looked up.
    """
    partition = partition_numbers(table.paths)
    columns = {column.own_name: column for column in table.columns}
    result: dict[str, Overlap | None] = {}
    for name in names:
        column = columns.get(name)
        result[name] = None
        if column is not None and column.domain is not None:
            stats = table.stats(column)
            result[name] = Overlap.of(stats, table.sizes, partition)
    return result


def _undeclared(table: TableState) -> tuple[str, ...]:
    """The partition columns that may be made of a time, by their names."""
    kinds = {c.domain.name for c in table.columns if c.domain and not c.is_partition}
    if table.derived.columns or not kinds & _TIMES:
        return ()
    names = (partition.name for partition in table.partitions)
    return tuple(name for name in names if name.lower() in _PARTS)


def _column(table: TableState, column: ColumnInfo) -> ColumnStatus:
    files: dict[str, set[int]] = {}
    n_bytes: dict[str, int] = {}
    encodings: dict[str, Counter[str]] = {}
    n_counted = 0
    if column.domain is not None and not column.is_partition:
        for use in table.blobs(column):
            kind = use.entry.meta.kind
            files.setdefault(kind, set()).update(use.rows.tolist())
            n_bytes[kind] = n_bytes.get(kind, 0) + use.entry.length
            if use.entry.encodings:
                encodings.setdefault(kind, Counter()).update(use.entry.encodings)
        n_counted = int(table.counted(column).sum())
    why = "partition column" if column.is_partition else column.reason or "no index"
    counts = {kind: len(mine) for kind, mine in files.items()}
    stored = {
        kind: dict(sorted(numbers.items())) for kind, numbers in encodings.items()
    }
    return ColumnStatus(column.shown, n_counted, counts, n_bytes, stored, why)


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """One index of a table.

    Args:
        column: the indexed column; a field of a struct is ``a.b``.
        kind: the name of the kind, such as ``"bitmap"``.
        spec: the kind with its parameters; None if this installation does not know
            them.
        files: the number of the table's current files that have the index.
        n_bytes: its size in bytes; 0 for the statistics, which are part of every
            commit.
    """

    column: str
    kind: str
    spec: IndexSpec | MinMax | None
    files: int
    n_bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        spec = self.spec and spec_to_json(self.spec)
        return {name: getattr(self, name) for name in self.__slots__} | {"spec": spec}


def indexes_of(table: TableState) -> tuple[IndexInfo, ...]:
    """The indexes of a table as it was opened; none is read."""
    return tuple(
        info
        for column in table.leaves
        if column.domain is not None and not column.is_partition
        for info in _on(table, column)
    )


def _on(table: TableState, column: ColumnInfo) -> list[IndexInfo]:
    result = []
    name = column.shown
    known = int((table.stats(column).bounded | ~table.stats(column).can_value).sum())
    if known:
        result.append(IndexInfo(name, MinMax().kind, MinMax(), known, 0))
    by_spec: dict[str, list[int]] = {}
    uses = table.blobs(column)
    for i, use in enumerate(uses):
        by_spec.setdefault(spec_key(use.entry.meta.spec), []).append(i)
    for numbers in by_spec.values():
        mine = [uses[i] for i in numbers]
        meta = mine[0].entry.meta
        files = len(np.unique(np.concatenate([use.rows for use in mine])))
        n_bytes = sum(use.entry.length for use in mine)
        try:
            spec = spec_from_json(meta.spec)
        except UnknownIndexError:
            spec = None
        result.append(IndexInfo(name, meta.kind, spec, files, n_bytes))
    return result
