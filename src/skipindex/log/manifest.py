"""The manifest: what a commit knows of every data file, as columns.

One Arrow IPC file, one row a data file::

    path        string         relative to the table, as the file system names it
    size        int64          \
    mtime       int64           | the identity; a file that differs has no index
    footer_crc  uint32         /
    n_rows      int64
    note        string         why an index is missing that was requested, or null
    packs       list<int32>    positions in the list of packs
    slots       list<int32>    the file's slot in each of them
    tag         string         its ETag where a store gives one; part of the identity.
                               A manifest without any has no such column
    groups      binary         of each row group its rows, first byte and bytes, each as
                               an int64; empty for a file with one row group, or null if
                               not known.  An older manifest has no such column
    columns     uint64         a hash of the file's columns and of its writer's notes:
                               files with equal ones are checked once; or null
    s0, s1, …   struct         statistics of one column (``table.summaries``); the
                               field's metadata holds the column and its domain

The schema's metadata holds, as JSON, the packs with their blobs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.expressions.domain import Domain
from skipindex.storage.blobs import (
    BlobUse,
    PackInfo,
    Refs,
    entries_in_use,
    spec_key,
    united,
)
from skipindex.storage.checks import (
    check_files,
    check_stats,
    check_unpacked,
    checked_packs,
    checking,
    parsed,
    require,
    stats_type,
    stream_of,
)
from skipindex.storage.pack import BlobEntry

_MANY_BYTES: Final = 1 << 20
"""Threads that pack or unpack fewer take longer to begin than their work."""

_FILE_FIELDS: Final = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("mtime", pa.int64(), nullable=False),
        pa.field("footer_crc", pa.uint32(), nullable=False),
        pa.field("n_rows", pa.int64(), nullable=False),
        pa.field("note", pa.string()),
        pa.field("packs", pa.list_(pa.int32()), nullable=False),
        pa.field("slots", pa.list_(pa.int32()), nullable=False),
        pa.field("tag", pa.string()),
        pa.field("groups", pa.binary()),
        pa.field("columns", pa.uint64()),
    ]
)
_OPTIONAL: Final = ("tag", "groups", "columns")
"""Columns that a manifest without any value in them does not have."""

_IDENTITY: Final = ["size", "mtime", "tag", "footer_crc"]

_FEW: Final = 16
"""Values per value sought from which those sought are picked out first."""

Rows = TypeVar("Rows", pa.Table, pa.Array)

Identity: TypeAlias = tuple[str, int, int, str | None, int]
"""What tells a data file from all others: path, size, mtime, tag and footer_crc."""


def summary_type(domain: Domain) -> pa.StructType:
    """The type of a manifest's statistics column."""
    return stats_type(bound_type(domain))


def bound_type(domain: Domain) -> pa.DataType:
    """The type of a bound in a manifest."""
    return pa.large_binary() if domain.is_bytes else pa.int64()


@dataclass(frozen=True, slots=True)
class StatsColumn:
    """The statistics of one column in all files; ``values`` may hold nulls."""

    domain: str
    values: pa.StructArray

    @property
    def plain(self) -> pa.StructArray:
        """The values as they are on disk."""
        return as_type(self.values, self.kind)

    @property
    def kind(self) -> pa.StructType:
        """The type of the values on disk; in memory they may be narrower."""
        return plain_type(self.values.type)

    def is_like(self, other: StatsColumn) -> bool:
        """Whether both are of values of one kind."""
        return self.domain == other.domain and self.kind == other.kind


@dataclass(frozen=True)
class Manifest:
    """An immutable list of data files.

    ``files`` are the rows without the statistics, which are by column name; their
    column ``packs`` counts into ``packs``.
    """

    files: pa.Table
    stats: Mapping[str, StatsColumn]
    packs: tuple[PackInfo, ...]

    @classmethod
    def empty(cls) -> Manifest:
        """No file at all."""
        return cls(_FILE_FIELDS.empty_table(), {}, ())

    @classmethod
    def of_files(
        cls,
        rows: Sequence[Mapping[str, Any]],
        stats: Mapping[str, StatsColumn],
        packs: tuple[PackInfo, ...],
    ) -> Manifest:
        """A manifest of ``rows``, whose keys are the fields of the file."""
        return cls(pa.Table.from_pylist(list(rows), _FILE_FIELDS), stats, packs)

    def __len__(self) -> int:
        return int(self.files.num_rows)

    @property
    def n_bytes(self) -> int:
        """The size of the columns in memory."""
        columns = (column.values for column in self.stats.values())
        return int(sum((c.nbytes for c in columns), start=self.files.nbytes))

    @property
    def paths(self) -> list[str]:
        """The relative paths, in the order of the rows."""
        paths: list[str] = self.files["path"].to_pylist()
        return paths

    def rows_of(self, paths: Sequence[str]) -> np.ndarray:
        """The row of the file at each path, or -1."""
        return positions(pa.array(paths, pa.string()), self.files["path"])

    def identities(self, rows: Sequence[int] | None = None) -> list[Identity]:
        """The identity of the files in ``rows``, by default of every file."""
        files = self.files
        if rows is not None:
            files = files.take(pa.array(rows, pa.int64()))
        columns = (files[name].to_pylist() for name in ("path", *_IDENTITY))
        return list(zip(*columns, strict=True))

    def refs(self) -> Refs:
        """Where the payloads of every file are, newest pack last."""
        return Refs.of(self.files)

    def blobs(self) -> list[BlobUse]:
        """Every blob, newest pack last, with the files that it serves."""
        refs = self.refs()
        order = np.argsort(refs.packs, kind="stable")
        cuts = np.searchsorted(refs.packs[order], np.arange(len(self.packs) + 1))
        uses = []
        for i, pack in enumerate(self.packs):
            mine = order[cuts[i] : cuts[i + 1]]
            rows, slots = refs.rows[mine], refs.slots[mine]
            uses += [BlobUse(i, pack, b, rows, slots) for b in pack.blobs]
        return uses

    @classmethod
    def concat(cls, pieces: Sequence[Manifest]) -> Manifest:
        """All files of ``pieces``, which have no path in common.

        Packs that are committed come in their order and once each; others follow as
        they stand.
        """
        if not pieces:
            return cls.empty()
        packs, numbers = united([piece.packs for piece in pieces])
        tables = [
            piece.files
            if np.array_equal(number_of, np.arange(len(number_of)))
            else with_refs(piece.files, piece.refs().in_packs(number_of))
            for piece, number_of in zip(pieces, numbers, strict=True)
        ]
        stats = {}
        for name, column in {n: c for p in pieces for n, c in p.stats.items()}.items():
            values = [
                theirs.values
                if (theirs := piece.stats.get(name)) and theirs.is_like(column)
                else pa.nulls(len(piece), column.values.type)
                for piece in pieces
            ]
            stats[name] = replace(column, values=joined(values))
        files = pa.concat_tables(tables).combine_chunks()
        return cls(files, stats, packs)

    def merge(self, newer: Manifest) -> Manifest:
        """Both, where ``newer`` wins.

        A file with the same identity in both keeps the statistics and payloads
        that only the older one has; with another identity it keeps nothing.
        """
        result = positions(self.files["path"], newer.files["path"])
        old = np.flatnonzero(result >= 0)
        left = np.flatnonzero(result < 0)
        before: np.ndarray = np.full(len(newer), -1, np.int64)
        before[result[old]] = old
        for name in _IDENTITY:
            mine, theirs = self.files[name].to_numpy(), newer.files[name].to_numpy()
            known = np.flatnonzero(before >= 0)
            before[known[mine[before[known]] != theirs[known]]] = -1

        # Rows of the result: the old ones that are left, then all of the newer ones.
        # One chunk: else each append adds one, and each column is copied whenever it
        # is used as one array.
        files = pa.concat_tables(
            [taken(self.files, left), newer.files]
        ).combine_chunks()
        row_of: np.ndarray = np.full(len(self), -1, np.int64)
        row_of[left] = np.arange(len(left))
        same = np.flatnonzero(before >= 0)
        row_of[before[same]] = len(left) + same
        later = newer.refs()
        later = replace(
            later, rows=later.rows + len(left), packs=later.packs + len(self.packs)
        )
        refs = Refs.concat([self.refs().at_rows(row_of), later])
        merged_stats = {
            name: _merged_stats(
                self.stats.get(name), newer.stats.get(name), left, before
            )
            for name in {**self.stats, **newer.stats}
        }
        merged = Manifest(files, merged_stats, ())
        return merged.with_refs((*self.packs, *newer.packs), refs)

    def without_blobs(self, drop: set[tuple[str, str]]) -> Manifest:
        """Without the blobs whose (column, spec as JSON) is in ``drop``."""
        packs = []
        for pack in self.packs:
            blobs = tuple(b for b in pack.blobs if _index_of(b) not in drop)
            packs.append(replace(pack, blobs=blobs))
        return replace(self, packs=tuple(packs)).without_unused_packs()

    def without_lone_maps(self, kind: str) -> Manifest:
        """Without blobs of ``kind`` on columns that have no blob of another."""
        blobs = [blob for pack in self.packs for blob in pack.blobs]
        others = {blob.meta.column for blob in blobs if blob.meta.kind != kind}
        lone = {_index_of(b) for b in blobs if b.meta.column not in others}
        return self.without_blobs(lone)

    def without_stats(self, columns: set[str]) -> Manifest:
        """Without the statistics of ``columns``."""
        stats = {name: s for name, s in self.stats.items() if name not in columns}
        return replace(self, stats=stats)

    def blank_stats(self) -> set[str]:
        """The columns of which nothing is known in any file."""
        columns = self.stats.items()
        return {name for name, c in columns if c.values.null_count == len(c.values)}

    def without_unused_packs(self) -> Manifest:
        """Drop superseded blobs' files, then packs that serve no file."""
        refs = self.refs()
        if not (refs.counts(len(self)) > 1).any():  # nothing is superseded
            has_blobs = np.array([bool(pack.blobs) for pack in self.packs], np.bool_)
            serves = np.isin(np.arange(len(self.packs)), refs.packs)
            return _with_packs(self, serves & has_blobs)
        uses = self.blobs()
        blobs: list[list[BlobEntry]] = [[] for _ in self.packs]
        for at in sorted(entries_in_use(uses, len(self))):
            blobs[uses[at].number].append(uses[at].entry)
        packs = [
            pack if len(mine) == len(pack.blobs) else replace(pack, blobs=tuple(mine))
            for pack, mine in zip(self.packs, blobs, strict=True)
        ]
        in_use = np.array(list(map(bool, blobs)), np.bool_)
        return _with_packs(replace(self, packs=tuple(packs)), in_use)

    def referenced(self) -> Manifest:
        """Without the packs that no file refers to; the others stay as they are."""
        return _with_packs(self, np.isin(np.arange(len(self.packs)), self.refs().packs))

    def with_refs(self, packs: tuple[PackInfo, ...], refs: Refs) -> Manifest:
        """The same files, whose payloads are where ``refs`` says, in other packs."""
        files = with_refs(self.files, refs)
        return Manifest(files, self.stats, packs).without_unused_packs()

    def take(self, rows: np.ndarray) -> Manifest:
        """The files in ``rows``, in that order, with all packs."""
        stats = {
            name: replace(column, values=taken(column.values, rows))
            for name, column in self.stats.items()
        }
        return replace(self, files=taken(self.files, rows), stats=stats)

    def only(self, mask: Sequence[bool] | np.ndarray) -> Manifest:
        """The files where ``mask`` is True, and the packs that serve them."""
        return self.take(np.flatnonzero(mask)).without_unused_packs()

    def of_packs(self, groups: Sequence[Sequence[int]]) -> list[Manifest]:
        """For each group of packs, the files that they serve, without statistics."""
        refs, made = self.refs(), []
        for group in groups:
            number_of: np.ndarray = np.full(len(self.packs), -1, np.int32)
            number_of[list(group)] = np.arange(len(group))
            mine = refs.in_packs(number_of)
            rows, at = np.unique(mine.rows, return_inverse=True)
            files = with_refs(taken(self.files, rows), replace(mine, rows=at))
            packs = tuple(self.packs[number] for number in group)
            made.append(Manifest(files, {}, packs))
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled, it is its Arrow IPC file, which is small."""
        return Manifest.from_bytes, (self.to_bytes(),)

    def to_bytes(self) -> bytes:
        """The Arrow IPC file."""
        return self._encoded(pack.to_json() for pack in self.packs)

    def to_checked_bytes(self, limit: int) -> bytes:
        """The same, if ``from_bytes`` takes it, and it has at most so many bytes.

        Raises:
            CorruptIndexError: it does not.
        """
        data = self._encoded(checked_packs(pack.to_json() for pack in self.packs))
        size = f"a segment would have {len(data)} bytes (at most {limit})"
        require(len(data) <= limit, size)
        check_unpacked(data)
        _require_columns(self.files.schema)
        self.files.validate(full=True)
        for column in self.stats.values():
            column.values.validate(full=True)
            check_stats(column.kind)
        check_files(self.files, len(self.packs))
        return data

    def _encoded(self, packs: Iterable[Mapping[str, Any]]) -> bytes:
        table = self.files
        for name in _OPTIONAL:
            if table[name].null_count == len(table):
                table = table.drop_columns(name)
        fields, columns = list(table.schema), list(table.columns)
        for i, (name, column) in enumerate(self.stats.items()):
            metadata = {"column": name, "domain": column.domain}
            fields.append(pa.field(f"s{i}", column.kind, metadata=metadata))
            columns.append(column.plain)
        # One by one: many objects at a time make Python collect its garbage.
        text = ", ".join(json.dumps(pack, allow_nan=False) for pack in packs)
        table = pa.table(columns, schema=pa.schema(fields, {"packs": f"[{text}]"}))
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(
            compression="zstd", use_threads=table.nbytes >= _MANY_BYTES
        )
        with pa.ipc.new_file(sink, table.schema, options=options) as writer:
            writer.write_table(table.combine_chunks())
        data: bytes = sink.getvalue().to_pybytes()
        return data

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """The inverse of ``to_bytes``; ``data`` has the crc32c that the commit says."""
        with checking("it is not a manifest"):
            return cls._checked(data)

    @classmethod
    def _checked(cls, data: bytes) -> Manifest:
        check_unpacked(data)
        options = pa.ipc.IpcReadOptions(use_threads=len(data) >= _MANY_BYTES)
        table = pa.ipc.open_stream(stream_of(data), options=options).read_all()
        table.validate(full=True)  # before anything is cut or joined
        records = checked_packs(parsed(table.schema.metadata[b"packs"]))
        packs = tuple(map(PackInfo.from_json, records))
        n_fields = len(_FILE_FIELDS)
        for field_ in map(_FILE_FIELDS.field, _OPTIONAL):
            if field_.name not in table.schema.names:
                nothing = pa.nulls(len(table), field_.type)
                place = _FILE_FIELDS.get_field_index(field_.name)
                table = table.add_column(place, field_, nothing)
        _require_columns(table.schema)
        files = pa.table(table.columns[:n_fields], schema=_FILE_FIELDS)
        stats = {}
        rest = slice(n_fields, None)
        fields, columns = list(table.schema)[rest], table.columns[rest]
        for field_, column in zip(fields, columns, strict=True):
            metadata, values = field_.metadata, as_one_array(column)
            check_stats(values.type)
            name = metadata[b"column"].decode()
            stats[name] = StatsColumn(metadata[b"domain"].decode(), values)
        check_files(files, len(packs))
        return cls(files, stats, packs)


def _require_columns(schema: pa.Schema) -> None:
    """Check that those of files come first."""
    first, ours = ([(f.name, f.type) for f in one] for one in (schema, _FILE_FIELDS))
    require(first[: len(ours)] == ours, "its columns are not those of a manifest")


def _index_of(blob: BlobEntry) -> tuple[str, str]:
    """The column and spec of which a blob holds payloads."""
    return blob.meta.column, spec_key(blob.meta.spec)


def _with_packs(manifest: Manifest, mask: np.ndarray) -> Manifest:
    """The manifest with those packs alone where ``mask`` is True."""
    if mask.all():
        return manifest
    keep = np.flatnonzero(mask)
    number_of: np.ndarray = np.full(len(mask), -1, np.int32)
    number_of[keep] = np.arange(len(keep))
    files = with_refs(manifest.files, manifest.refs().in_packs(number_of))
    packs = tuple(manifest.packs[number] for number in keep.tolist())
    return replace(manifest, files=files, packs=packs)


def with_column(files: pa.Table, name: str, values: pa.Array) -> pa.Table:
    """``Manifest.files`` with other values in the column ``name``."""
    field_ = _FILE_FIELDS.field(name)
    at = files.schema.get_field_index(name)
    return files.set_column(at, field_, values.cast(field_.type))


def with_refs(files: pa.Table, refs: Refs) -> pa.Table:
    """``Manifest.files`` where these payloads serve the files."""
    for name, values in refs.to_lists(len(files)).items():
        files = with_column(files, name, values)
    return files


def as_one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column as one array; nothing is copied if it is one already."""
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if len(column) else pa.array([], column.type)


def positions(values: pa.ChunkedArray, among: pa.ChunkedArray) -> np.ndarray:
    """The position of each value in ``among``, or -1."""
    among = as_one_array(among)
    if len(values) * _FEW < len(among):  # a table of a few is made sooner than of many
        rows = np.flatnonzero(pc.is_in(among, value_set=as_one_array(values)))
        first = pc.index_in(values, value_set=among.take(pa.array(rows)))
        rows = np.append(rows, -1)
        return np.asarray(rows[np.asarray(first.fill_null(-1))], np.int64)
    result = pc.index_in(values, value_set=among).fill_null(-1)
    return np.asarray(result.to_numpy(), np.int64)


def taken(values: Rows, rows: np.ndarray) -> Rows:
    """The rows of a table or an array; nothing is copied if they follow each other."""
    n = len(rows)
    if n and rows[0] + n - 1 == rows[-1] and (np.diff(rows) == 1).all():
        return values.slice(int(rows[0]), n)
    return values.take(pa.array(rows))


def _merged_stats(
    old: StatsColumn | None,
    new: StatsColumn | None,
    left: np.ndarray,
    before: np.ndarray,
) -> StatsColumn:
    """The statistics of a column: rows ``left`` of the older, all rows of the newer."""
    if old is None or (new is not None and not old.is_like(new)):
        assert new is not None
        nothing = pa.nulls(len(left), new.values.type)
        return replace(new, values=joined([nothing, new.values]))
    # ``before``: the older row of the same file, or -1; it counts if ``new`` has none.
    values = old.values.take(pa.array(before, mask=before < 0))
    if new is not None:
        values = _first_known(new.values, values)
    both = [taken(old.values, left), values]
    return replace(old if new is None else new, values=joined(both))


def _first_known(new: pa.StructArray, old: pa.StructArray) -> pa.StructArray:
    """``new`` where it is valid, else ``old``; both are of one kind."""
    n = len(new)
    rows = np.where(np.asarray(new.is_valid()), np.arange(n), np.arange(n) + n)
    return joined([new, old]).take(pa.array(rows))


def plain_type(kind: pa.StructType) -> pa.StructType:
    """The type on disk of statistics that have this type in memory."""

    def plain(one: pa.DataType) -> pa.DataType:
        if pa.types.is_integer(one):
            return pa.int64()
        return pa.large_binary() if pa.types.is_binary(one) else one

    fields = (kind.field(i) for i in range(kind.num_fields))
    return pa.struct([field.with_type(plain(field.type)) for field in fields])


def joined(columns: Sequence[pa.StructArray]) -> pa.StructArray:
    """Statistics of one kind as one array, of the widest type that one of them has."""
    kinds = {column.type for column in columns}
    if len(kinds) == 1:
        return pa.concat_arrays(columns)
    fields = []
    for i in range(next(iter(kinds)).num_fields):
        options = (kind.field(i) for kind in kinds)
        fields.append(max(options, key=lambda field: _width(field.type)))
    widest = pa.struct(fields)
    return pa.concat_arrays([as_type(column, widest) for column in columns])


def _width(kind: pa.DataType) -> int:
    """How wide the numbers, or the offsets of strings, are."""
    if pa.types.is_integer(kind):
        return int(kind.bit_width)
    return 64 if pa.types.is_large_binary(kind) else 32


def as_type(values: pa.StructArray, kind: pa.StructType) -> pa.StructArray:
    """Statistics of one kind in another of its types, which holds all their values."""
    if values.type == kind:
        return values
    fields = [values.field(i).cast(kind.field(i).type) for i in range(kind.num_fields)]
    return with_fields(values, fields)


def with_fields(values: pa.StructArray, fields: Sequence[pa.Array]) -> pa.StructArray:
    """Statistics with other fields, which are null where the former ones were."""
    names = [values.type.field(i).name for i in range(values.type.num_fields)]
    mask = values.is_null() if values.null_count else None
    return pa.StructArray.from_arrays(list(fields), names, mask=mask)
