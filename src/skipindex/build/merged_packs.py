"""Writing merged packs.

Payloads are copied, after their checks, without knowing what they mean; those that a
pack has together are taken apart first (``_pack_wide``).  Data files are not read.

A pack in which anything fails a check, or cannot be read now, is left as it is, and
named.  One pack is written at a time, and of it one blob is in memory.  File maps are
made anew from those of the merged packs.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from skipindex.build.packable import is_together, packed_together, unpacked
from skipindex.build.task import map_blob
from skipindex.build.tiers import is_small
from skipindex.errors import CorruptIndexError
from skipindex.expressions.domain import Domain
from skipindex.indexes.file_map import FILE_MAP, FileMap, ValueSpans, build_file_map
from skipindex.storage.damage import damage_of_blob
from skipindex.storage.log import PACKS
from skipindex.storage.manifest import BlobUse, Manifest, PackInfo, spec_key
from skipindex.storage.pack import Blob, BlobBuilder, BlobMeta, PackWriter
from skipindex.storage.parts import ReadCount
from skipindex.table import TableState

_Key = tuple[str, str, str, int, str]
_Refs = list[tuple[int, int]]
_UNREADABLE: Final = (CorruptIndexError, OSError, pa.ArrowException)
_FOOTER: Final = 512
"""More than a pack's footer has for a blob."""


def files_of_packs(manifest: Manifest) -> np.ndarray:
    """How many files every pack serves."""
    counts: np.ndarray = np.zeros(len(manifest.packs), np.int64)
    for use in manifest.blobs():
        counts[use.number] = len(use.rows)
    return counts


def index_keys(pack: PackInfo) -> frozenset[_Key]:
    """The indexes that a pack has, but file maps, which come and go."""
    keys = (_key(blob.meta) for blob in pack.blobs if blob.meta.kind != FILE_MAP)
    return frozenset(keys)


@dataclass(frozen=True, slots=True)
class Move:
    """The slots of one merged pack.

    Args:
        pack: the pack.
        old: names of the small packs, whose place it takes.
        slots: by data file (path and identity), its slot.
        refs: by data file, the small packs and slots that it had.
    """

    pack: PackInfo
    old: frozenset[str]
    slots: dict[tuple[Any, ...], int]
    refs: dict[tuple[Any, ...], set[tuple[str, int]]]


class _NotMergeableError(Exception):
    """A pack could not be read, though it could when it was checked."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(reason)
        self.number = number


class Merger:
    """Writes merged packs.

    Args:
        table: the table.
        manifest: what of it is merged.
        max_files: that a merged pack may hold.
        max_bytes: at how many it is closed.
        forget_bins: the bins of file maps are values, and perhaps not of files that
            are still there.
    """

    def __init__(
        self,
        table: TableState,
        manifest: Manifest,
        *,
        max_files: int,
        max_bytes: int,
        forget_bins: bool = False,
    ) -> None:
        self._table = table
        self.manifest = manifest
        self._max_files = max_files
        self._max_bytes = max_bytes
        self._forget_bins = forget_bins
        self._blobs: dict[tuple[int, int], Blob] = {}
        self._maps: dict[tuple[int, int], list[ValueSpans | None]] = {}
        self._together: dict[tuple[int, int], dict[int, list[bytes]]] = {}
        self._counts = np.maximum(manifest.files["n_rows"].to_numpy(), 0)
        self.refused: dict[int, str] = {}

    @cached_property
    def _identities(self) -> list[tuple[Any, ...]]:
        return list(identities(self.manifest))

    def small(self) -> set[int]:
        """The numbers of the packs that are to be merged."""
        files = files_of_packs(self.manifest).tolist()
        return {
            i
            for i, pack in enumerate(self.manifest.packs)
            if is_small(files[i], pack.size, self._max_files, self._max_bytes)
        }

    def worn(self, among: Collection[str] | None = None) -> set[int]:
        """The numbers of the packs that are less than half in use.

        Args:
            among: names of the packs whose files are counted, which reads a
                directory of each; None is all.
        """
        found = set()
        files = files_of_packs(self.manifest).tolist()
        for use in self.manifest.blobs():
            used = sum(blob.length for blob in use.pack.blobs)
            if used * 2 < use.pack.size - len(use.pack.blobs) * _FOOTER:
                found.add(use.number)
            elif use.entry is use.pack.blobs[0] and (
                among is None or use.pack.name in among
            ):
                try:
                    n_slots = len(self._open(use).n_rows)
                except _UNREADABLE:
                    continue
                if files[use.number] * 2 < n_slots:
                    found.add(use.number)
        return found

    def write(self, chosen: set[int], *, least: int = 1) -> list[Move]:
        """Write the merged packs; those that cannot be read are ``refused``.

        Nothing is written if fewer than ``least`` packs are left.
        """
        sizes: dict[int, np.ndarray] = {}
        for use in self.manifest.blobs():
            if use.number in chosen and use.number not in self.refused:
                self._check(use, sizes)
        while True:
            whole = chosen - self.refused.keys()
            if len(whole) < least:
                return []
            try:
                return self._write_all(whole, sizes)
            except _NotMergeableError as error:
                self.refused[error.number] = str(error)

    def _check(self, use: BlobUse, sizes: dict[int, np.ndarray]) -> None:
        """See that all of a blob can be read, and add up the sizes of its payloads."""
        location = self._table.location
        for damage in damage_of_blob(use, self.manifest, location, deep=True):
            self.refused[use.number] = damage.reason
            return
        try:
            blob = self._open(use)
        except _UNREADABLE as error:
            self.refused[use.number] = str(error)
            return
        meta = use.entry.meta
        if blob.has_shared and meta.kind != FILE_MAP:
            if not is_together(meta.kind):
                self.refused[use.number] = f"kind {meta.kind!r} is not installed here"
            elif self._domain(meta) is None:
                self.refused[use.number] = f"no column {meta.column!r} of that type"
        n_bytes = blob.payload_bytes()
        before = sizes.setdefault(use.number, np.zeros(len(n_bytes), np.int64))
        if len(before) == len(n_bytes):
            before += n_bytes

    def _open(self, use: BlobUse) -> Blob:
        """A blob that is not kept open."""
        return Blob(self._table.location.view(f"{PACKS}/{use.pack.name}"), use.entry)

    def _write_all(self, chosen: set[int], sizes: dict[int, np.ndarray]) -> list[Move]:
        """Write merged packs; all files of one have the same indexes in it.

        The newest pack of a file counts.  So where a merged pack has an index of some
        files and not of another, the other's in an older pack would look superseded.
        """
        files = self.manifest.files
        alike: dict[frozenset[_Key], list[tuple[int, _Refs]]] = {}
        for row, (packs, slots) in enumerate(
            zip(files["packs"].to_pylist(), files["slots"].to_pylist(), strict=True)
        ):
            mine = [(p, s) for p, s in zip(packs, slots, strict=True) if p in chosen]
            if mine:
                keys = [index_keys(self.manifest.packs[p]) for p, _ in mine]
                alike.setdefault(frozenset().union(*keys), []).append((row, mine))
        return [
            self._write_one(refs)
            for every in alike.values()
            for refs in self._cut(every, sizes)
        ]

    def _cut(
        self, every: Sequence[tuple[int, _Refs]], sizes: dict[int, np.ndarray]
    ) -> Iterator[list[tuple[int, _Refs]]]:
        """As many of the files as one merged pack may hold, and the next ones."""
        refs: list[tuple[int, _Refs]] = []
        n_bytes = 0
        for row, mine in every:
            refs.append((row, mine))
            n_bytes += sum(int(sizes[p][s]) for p, s in mine if s < len(sizes[p]))
            if len(refs) >= self._max_files or n_bytes >= self._max_bytes:
                yield refs
                refs, n_bytes = [], 0
        if refs:
            yield refs

    def _write_one(self, refs: Sequence[tuple[int, _Refs]]) -> Move:
        """One merged pack of these files, written column by column."""
        manifest = self.manifest
        numbers = sorted({p for _, mine in refs for p, _ in mine})
        columns: dict[str, dict[_Key, BlobMeta]] = {}
        for number in numbers:
            for blob in manifest.packs[number].blobs:
                columns.setdefault(blob.meta.column, {})[_key(blob.meta)] = blob.meta
        with tempfile.TemporaryFile() as spool:
            writer = PackWriter(spool.write)
            for metas in columns.values():
                self._write_column(writer, metas, refs)
            name = writer.finish()
            spool.flush()
            with (
                mmap.mmap(spool.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
                memoryview(mapped) as data,
            ):
                self._table.location.write(f"{PACKS}/{name}", data)
        names = [pack.name for pack in manifest.packs]
        identities = self._identities
        return Move(
            PackInfo(name, writer.size, tuple(writer.entries)),
            frozenset(names[p] for p in numbers),
            {identities[row]: slot for slot, (row, _) in enumerate(refs)},
            {identities[r]: {(names[p], s) for p, s in mine} for r, mine in refs},
        )

    def _write_column(
        self,
        writer: PackWriter,
        metas: dict[_Key, BlobMeta],
        refs: Sequence[tuple[int, _Refs]],
    ) -> None:
        """Write the blobs of one column, its file map after them."""
        n_bytes = 0
        for key, meta in metas.items():
            if meta.kind == FILE_MAP:
                continue
            builder = BlobBuilder(meta)
            for row, mine in refs:
                n_rows, crc = self._mark(row)
                parts = self._payload(key, mine)
                builder.add(parts, n_rows=n_rows, identity=crc)
            domain = self._domain(meta)
            made = builder if domain is None else packed_together(builder, domain)
            n_bytes += made.n_bytes
            writer.add(made)
            self._together.clear()
        for key, meta in metas.items():
            domain = self._domain(meta)
            if meta.kind != FILE_MAP or domain is None:
                continue
            spans = [self._span(key, mine) for _, mine in refs]
            parts_or_none = build_file_map(spans, domain, n_index_bytes=n_bytes)
            if parts_or_none is not None:
                marks = [self._mark(row) for row, _ in refs]
                writer.add(map_blob(meta.column, meta.domain, parts_or_none, marks))
            self._maps.clear()
        self._blobs.clear()

    def _mark(self, row: int) -> tuple[int, int]:
        """The row count and the footer's crc32c of a file."""
        return int(self._counts[row]), self._identities[row][-1]

    def _places(self, key: _Key, mine: _Refs) -> Iterator[tuple[int, int, int]]:
        """The packs, blobs and slots that may hold a payload, newest first."""
        for number, slot in reversed(mine):
            for i, blob in enumerate(self.manifest.packs[number].blobs):
                if _key(blob.meta) == key:
                    yield number, i, slot

    def _payload(self, key: _Key, mine: _Refs) -> list[bytes]:
        for number, i, slot in self._places(key, mine):
            try:
                parts = self._blob(number, i).payload(slot, ReadCount())
                if parts is not None:
                    return [bytes(part) for part in parts.read(0, len(parts))]
                together = self._unpacked(number, i)
            except _UNREADABLE as error:
                raise _NotMergeableError(number, str(error)) from error
            if slot in together:
                return together[slot]
        return []

    def _unpacked(self, number: int, i: int) -> dict[int, list[bytes]]:
        """The payloads that a blob has together, taken apart."""
        if (number, i) not in self._together:
            domain = self._domain(self.manifest.packs[number].blobs[i].meta)
            found = {} if domain is None else unpacked(self._blob(number, i), domain)
            self._together[number, i] = found
        return self._together[number, i]

    def _span(self, key: _Key, mine: _Refs) -> ValueSpans | None:
        for number, i, slot in self._places(key, mine):
            try:
                spans = self._spans(number, i)
            except _UNREADABLE as error:
                raise _NotMergeableError(number, str(error)) from error
            if slot < len(spans) and spans[slot] is not None:
                return spans[slot]
        return None

    def _spans(self, number: int, i: int) -> list[ValueSpans | None]:
        if (number, i) not in self._maps:
            blob = self._blob(number, i)
            domain = self._domain(self.manifest.packs[number].blobs[i].meta)
            spans: list[ValueSpans | None] = []
            if domain is not None:
                parts = blob.shared(ReadCount())
                opened = FileMap.open(parts, domain, len(blob.n_rows))
                if not (opened.binned and self._forget_bins):
                    spans = opened.spans()
            self._maps[number, i] = spans
        return self._maps[number, i]

    def _domain(self, meta: BlobMeta) -> Domain | None:
        """The domain of a column, if the table still has it."""
        folded = meta.column.lower()  # some files may spell it otherwise
        for column in self._table.leaves:
            domain, alike = column.domain, column.name.lower() == folded
            if alike and domain and domain.tag == meta.domain:
                return domain
        return None

    def _blob(self, number: int, i: int) -> Blob:
        if (number, i) not in self._blobs:
            pack = self.manifest.packs[number]
            source = self._table.location.view(f"{PACKS}/{pack.name}")
            self._blobs[number, i] = Blob(source, pack.blobs[i])
        return self._blobs[number, i]


def _key(meta: BlobMeta) -> _Key:
    return meta.column, spec_key(meta.spec), meta.kind, meta.version, meta.domain


def identities(manifest: Manifest) -> Iterator[tuple[Any, ...]]:
    """What tells every data file from all others."""
    names = ("path", "size", "mtime", "footer_crc")
    columns = [manifest.files[name].to_pylist() for name in names]
    return zip(*columns, strict=True)
