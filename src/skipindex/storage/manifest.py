"""The manifest: what a commit knows of every data file, as columns.

One Arrow IPC file, one row a data file::

    path        string         relative to the table, as the file system names it
    size        int64          \
    mtime       int64           | the identity; a file that differs has no index
    footer_crc  uint32         /
    n_rows      int64
    note        string         why an index is missing that was asked for, or null
    packs       list<int32>    positions in the list of packs
    slots       list<int32>    the file's slot in each of them
    tag         string         its ETag where a store gives one; part of the identity.
                               A manifest without any has no such column
    s0, s1, …   struct         statistics of one column (``table.summaries``); the
                               field's metadata holds the column and its domain

The schema's metadata holds, as JSON, the packs with their blobs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.errors import CorruptIndexError
from skipindex.storage.blobs import BlobUse, PackInfo, spec_key
from skipindex.storage.checks import (
    READING,
    check_files,
    check_pack,
    check_stats,
    check_unpacked,
    reason,
    stream_of,
)
from skipindex.storage.pack import BlobEntry

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
    ]
)

_IDENTITY: Final = ["size", "mtime", "tag", "footer_crc"]

Ref: TypeAlias = tuple[int, int]
"""Where payloads of a data file are: the number of a pack, and a slot in it."""

Identity: TypeAlias = tuple[str, int, int, str | None, int]
"""What tells a data file from all others: path, size, mtime, tag and footer_crc."""


@dataclass(frozen=True, slots=True)
class StatsColumn:
    """The statistics of one column in all files; ``values`` may hold nulls."""

    domain: str
    values: pa.StructArray

    def is_like(self, other: StatsColumn) -> bool:
        """Whether both are of values of one kind."""
        return self.domain == other.domain and self.values.type == other.values.type


@dataclass(frozen=True)
class Manifest:
    """An immutable list of data files.

    Args:
        files: the rows without the statistics.
        stats: the statistics by column name.
        packs: the packs that the ``packs`` column counts into.
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
    def paths(self) -> list[str]:
        """The relative paths, in the order of the rows."""
        paths: list[str] = self.files["path"].to_pylist()
        return paths

    def identities(self) -> list[Identity]:
        """The identity of every file."""
        columns = (self.files[name].to_pylist() for name in ("path", *_IDENTITY))
        return list(zip(*columns, strict=True))

    def refs(self) -> list[list[Ref]]:
        """Where the payloads of every file are, newest pack last."""
        columns = (self.files[name].to_pylist() for name in ("packs", "slots"))
        return [list(zip(*one, strict=True)) for one in zip(*columns, strict=True)]

    def blobs(self) -> list[BlobUse]:
        """Every blob, newest pack last, with the files that it serves."""
        packs = self.files["packs"].combine_chunks()
        slots = pc.list_flatten(self.files["slots"].combine_chunks()).to_numpy()
        rows = pc.list_parent_indices(packs).to_numpy()
        numbers = pc.list_flatten(packs).to_numpy()
        order = np.argsort(numbers, kind="stable")
        cuts = np.searchsorted(numbers[order], np.arange(len(self.packs) + 1))
        uses = []
        for i, pack in enumerate(self.packs):
            mine = order[cuts[i] : cuts[i + 1]]
            uses += [BlobUse(i, pack, b, rows[mine], slots[mine]) for b in pack.blobs]
        return uses

    @classmethod
    def concat(cls, pieces: Sequence[Manifest]) -> Manifest:
        """All files of ``pieces``, which have no path in common."""
        if not pieces:
            return cls.empty()
        tables: list[pa.Table] = []
        packs: list[PackInfo] = []
        for piece in pieces:
            lists = piece.files["packs"].combine_chunks()
            shift = pa.scalar(len(packs), pa.int32())
            numbers = pc.add(pc.list_flatten(lists), shift)
            shifted = pa.ListArray.from_arrays(lists.offsets, numbers)
            tables.append(with_column(piece.files, "packs", shifted))
            packs += piece.packs
        stats = {}
        for name, column in {n: c for p in pieces for n, c in p.stats.items()}.items():
            values = [
                piece.stats[name].values
                if name in piece.stats
                else pa.nulls(len(piece), column.values.type)
                for piece in pieces
            ]
            stats[name] = replace(column, values=pa.concat_arrays(values))
        files = pa.concat_tables(tables).combine_chunks()
        return cls(files, stats, tuple(packs))

    def merge(self, newer: Manifest) -> Manifest:
        """Both, where ``newer`` wins.

        A file with the same identity in both keeps the statistics and payloads
        that only the older one has; with another identity it keeps nothing.
        """
        row_of = {path: row for row, path in enumerate(self.paths)}
        before = np.array([row_of.get(path, -1) for path in newer.paths], np.int64)
        left = np.delete(np.arange(len(self)), before[before >= 0])
        for name in _IDENTITY:
            mine, theirs = self.files[name].to_numpy(), newer.files[name].to_numpy()
            known = np.flatnonzero(before >= 0)
            differs = mine[before[known]] != theirs[known]
            if name == "tag":  # that of an earlier version of this library is null
                for tags in (mine[before[known]], theirs[known]):
                    differs &= np.array([tag is not None for tag in tags], bool)
            before[known[differs]] = -1

        # Rows of the result: the old ones that are left, then all of the newer ones.
        files = pa.concat_tables([self.files.take(left), newer.files])
        refs, n_packs = self.refs(), len(self.packs)
        merged_refs = [refs[row] for row in left]
        for row, mine in zip(before.tolist(), newer.refs(), strict=True):
            theirs = refs[row] if row >= 0 else []
            merged_refs.append([*theirs, *((n_packs + p, slot) for p, slot in mine)])
        merged_stats = {
            name: _merged_stats(
                self.stats.get(name), newer.stats.get(name), left, before
            )
            for name in {**self.stats, **newer.stats}
        }
        merged = Manifest(files, merged_stats, ())
        return merged.with_refs((*self.packs, *newer.packs), merged_refs)

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

    def without_unused_packs(self) -> Manifest:
        """Drop superseded blobs' files, then packs that serve no file."""
        in_use = self._entries_in_use()
        number_of: dict[int, int] = {}
        packs: list[PackInfo] = []
        for i, pack in enumerate(self.packs):
            blobs = tuple(blob for blob in pack.blobs if blob in in_use[i])
            if blobs:
                number_of[i] = len(packs)
                packs.append(replace(pack, blobs=blobs))
        if len(packs) == len(self.packs):
            return replace(self, packs=tuple(packs))
        refs = [
            [(number_of[p], slot) for p, slot in mine if p in number_of]
            for mine in self.refs()
        ]
        return self._with_refs(tuple(packs), refs)

    def _entries_in_use(self) -> list[list[BlobEntry]]:
        """For every pack, the blobs that are the newest of their index for a file."""
        newest: set[tuple[int, str, str]] = set()
        in_use: list[list[BlobEntry]] = [[] for _ in self.packs]
        for use in reversed(self.blobs()):
            key = _index_of(use.entry)
            fresh = {(int(row), *key) for row in use.rows} - newest
            newest |= fresh
            if fresh:
                in_use[use.number].append(use.entry)
        return in_use

    def with_refs(
        self, packs: tuple[PackInfo, ...], refs: Sequence[Sequence[Ref]]
    ) -> Manifest:
        """With other packs, and for every file where its payloads are in them."""
        return self._with_refs(packs, refs).without_unused_packs()

    def _with_refs(
        self, packs: tuple[PackInfo, ...], refs: Sequence[Sequence[Ref]]
    ) -> Manifest:
        files = self.files
        for i, name in enumerate(("packs", "slots")):
            values = [[ref[i] for ref in mine] for mine in refs]
            column = pa.array(values, pa.list_(pa.int32()))
            files = with_column(files, name, column)
        return Manifest(files, self.stats, packs)

    def only(self, mask: Sequence[bool]) -> Manifest:
        """The files where ``mask`` is True, and the packs that serve them."""
        keep = pa.array(mask, pa.bool_())
        stats = {
            name: replace(column, values=column.values.filter(keep))
            for name, column in self.stats.items()
        }
        left = replace(self, files=self.files.filter(keep), stats=stats)
        return left.without_unused_packs()

    def of_packs(self, groups: Sequence[Sequence[int]]) -> list[Manifest]:
        """For each group of packs, the files that they serve, without statistics."""
        refs, made = self.refs(), []
        for group in groups:
            number_of = {number: i for i, number in enumerate(group)}
            left = [
                [(number_of[p], slot) for p, slot in mine if p in number_of]
                for mine in refs
            ]
            files = self.files.filter(pa.array(list(map(bool, left)), pa.bool_()))
            packs = tuple(self.packs[number] for number in group)
            bare = Manifest(files, {}, ())
            made.append(bare._with_refs(packs, [mine for mine in left if mine]))
        return made

    def to_bytes(self) -> bytes:
        """The Arrow IPC file."""
        table = self.files
        if table["tag"].null_count == len(table):
            table = table.drop_columns("tag")
        for i, (name, column) in enumerate(self.stats.items()):
            metadata = {"column": name, "domain": column.domain}
            fresh = pa.field(f"s{i}", column.values.type, metadata=metadata)
            table = table.append_column(fresh, column.values)
        packs = json.dumps([pack.to_json() for pack in self.packs])
        table = table.replace_schema_metadata({"packs": packs})
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_file(sink, table.schema, options=options) as writer:
            writer.write_table(table.combine_chunks())
        data: bytes = sink.getvalue().to_pybytes()
        return data

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """The inverse of ``to_bytes``; ``data`` has the crc32c that the commit says.

        Raises:
            CorruptIndexError: these bytes are none that ``to_bytes`` would make.
        """
        try:
            return cls._checked(data)
        except READING as error:
            if isinstance(error, CorruptIndexError):
                raise
            raise CorruptIndexError(f"it is no manifest: {reason(error)}") from error

    @classmethod
    def _checked(cls, data: bytes) -> Manifest:
        check_unpacked(data)
        table = pa.ipc.open_stream(stream_of(data)).read_all()
        packs = json.loads(table.schema.metadata[b"packs"])
        for record in packs:
            check_pack(record)
        n_fields = len(_FILE_FIELDS)
        if "tag" not in table.schema.names:
            nothing = pa.nulls(len(table), pa.string())
            table = table.add_column(n_fields - 1, _FILE_FIELDS.field("tag"), nothing)
        found = [(field.name, field.type) for field in table.schema][:n_fields]
        if found != [(field.name, field.type) for field in _FILE_FIELDS]:
            raise CorruptIndexError("it has other columns than a manifest")
        files = pa.table(table.columns[:n_fields], schema=_FILE_FIELDS)
        check_files(files, len(packs))
        stats = {}
        for i in range(n_fields, len(table.schema)):
            metadata = table.schema.field(i).metadata
            values = table.column(i).combine_chunks()
            if isinstance(values, pa.ChunkedArray):  # no rows, no chunks
                values = pa.array([], values.type)
            check_stats(values, len(files))
            name = metadata[b"column"].decode()
            stats[name] = StatsColumn(metadata[b"domain"].decode(), values)
        return cls(files, stats, tuple(map(PackInfo.from_json, packs)))


def _index_of(blob: BlobEntry) -> tuple[str, str]:
    """The column and spec of which a blob holds payloads."""
    return blob.meta.column, spec_key(blob.meta.spec)


def with_column(files: pa.Table, name: str, values: pa.Array) -> pa.Table:
    """``Manifest.files`` with other values in the column ``name``."""
    field_ = _FILE_FIELDS.field(name)
    at = files.schema.get_field_index(name)
    return files.set_column(at, field_, values.cast(field_.type))


def _merged_stats(
    old: StatsColumn | None,
    new: StatsColumn | None,
    left: np.ndarray,
    before: np.ndarray,
) -> StatsColumn:
    """The statistics of a column in rows of an older manifest and all of a newer one.

    Args:
        old: of the older manifest.
        new: of the newer one.
        left: the older rows.
        before: for every newer row, the older one of the same file, or -1; its
            statistics count where ``new`` has none.
    """
    if old is None or (new is not None and not old.is_like(new)):
        assert new is not None
        nothing = pa.nulls(len(left), new.values.type)
        return replace(new, values=pa.concat_arrays([nothing, new.values]))
    values = old.values.take(pa.array(before, mask=before < 0))
    if new is not None:
        values = _first_known(new.values, values)
    both = [old.values.take(left), values]
    return replace(old if new is None else new, values=pa.concat_arrays(both))


def _first_known(new: pa.StructArray, old: pa.StructArray) -> pa.StructArray:
    """``new`` where it is valid, else ``old``; both have one type."""
    n = len(new)
    rows = np.where(np.asarray(new.is_valid()), np.arange(n), np.arange(n) + n)
    return pa.concat_arrays([new, old]).take(pa.array(rows))
