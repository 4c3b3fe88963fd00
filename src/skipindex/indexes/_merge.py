"""Merging: the payloads of many small packs, in few large ones.

A build after every append leaves a pack each time, and a plan opens all of them.  Here
payloads are copied, after their checks, without knowing what they mean; those that a
pack has together are taken apart first (``_pack_wide``).  Data files are not read.  A
payload that fails a check, or is not of the file that the manifest means, is left
behind.  File maps are made anew from those of the small packs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from skipindex.domain import Domain
from skipindex.errors import CorruptIndexError
from skipindex.indexes._file_map import FILE_MAP, FileMap, ValueSpans, build_file_map
from skipindex.indexes._pack_wide import gathered, scattered
from skipindex.indexes._task import map_blob
from skipindex.storage.log import PACKS, Snapshot, commit
from skipindex.storage.manifest import Manifest, PackInfo, spec_key
from skipindex.storage.pack import Blob, BlobBuilder, BlobMeta, write_pack
from skipindex.storage.parts import READS
from skipindex.table import Table

MAX_FILES: Final = 8192
MAX_BYTES: Final = 256 << 20
"""A merged pack is closed at so many data files, or bytes."""

_Key = tuple[str, str, str, int, str]
_Refs = list[tuple[int, int]]
_UNREADABLE: Final = (CorruptIndexError, OSError, pa.ArrowException)


def merge(table: Table, *, max_files: int, max_bytes: int) -> Table:
    """The table with its small packs merged, in one commit; the old ones stay on disk.

    A pack is small if it holds less than half of what a merged one may.  Files and
    indexes that others change or drop meanwhile stay as they made them.
    """
    merger = _Merger(table, max_files=max_files, max_bytes=max_bytes)
    small = merger.small()
    if len(small) < 2:
        return table
    moves = merger.write(small)

    def merged(base: Snapshot) -> Snapshot:
        manifest = _moved(base.manifest, moves)
        return Snapshot(base.version + 1, manifest, base.properties)

    commit(table.location, merged, operation="merge")
    return table.refresh()


@dataclass(frozen=True, slots=True)
class _Move:
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


class _Merger:
    def __init__(self, table: Table, *, max_files: int, max_bytes: int) -> None:
        self._table = table
        self._manifest = table.snapshot.manifest
        self._max_files = max_files
        self._max_bytes = max_bytes
        self._blobs: dict[tuple[int, int], Blob | None] = {}
        self._maps: dict[tuple[int, int], list[ValueSpans | None]] = {}
        self._together: dict[tuple[int, int], dict[int, list[bytes]]] = {}

    def small(self) -> set[int]:
        """The numbers of the packs that are to be merged."""
        packs = self._manifest.packs
        files = np.zeros(len(packs), np.int64)
        for use in self._manifest.blobs():
            files[use.number] = len(use.rows)
        return {
            i
            for i, pack in enumerate(packs)
            if files[i] * 2 < self._max_files and pack.size * 2 < self._max_bytes
        }

    def write(self, small: set[int]) -> list[_Move]:
        """Write the merged packs."""
        files = self._manifest.files
        refs: list[tuple[int, _Refs]] = []
        for row, (packs, slots) in enumerate(
            zip(files["packs"].to_pylist(), files["slots"].to_pylist(), strict=True)
        ):
            mine = [(p, s) for p, s in zip(packs, slots, strict=True) if p in small]
            if mine:
                refs.append((row, mine))
        moves, at = [], 0
        while at < len(refs):
            move, n = self._write_one(refs[at : at + self._max_files])
            moves.append(move)
            at += n
        return moves

    def _write_one(self, refs: Sequence[tuple[int, _Refs]]) -> tuple[_Move, int]:
        """One merged pack of as many of the files as it may hold."""
        manifest = self._manifest
        metas = {
            _key(blob.meta): blob.meta
            for number in sorted({p for _, mine in refs for p, _ in mine})
            for blob in manifest.packs[number].blobs
        }
        builders = {
            key: BlobBuilder(meta)
            for key, meta in metas.items()
            if meta.kind != FILE_MAP
        }
        spans: dict[_Key, list[ValueSpans | None]] = {
            key: [] for key, meta in metas.items() if meta.kind == FILE_MAP
        }
        identities = list(_identities(manifest))
        counts = manifest.files["n_rows"].to_pylist()
        done, n_bytes, marks = [], 0, []
        for row, mine in refs:
            if n_bytes >= self._max_bytes:
                break
            mark = max(0, counts[row]), identities[row][-1]
            for key, builder in builders.items():
                parts = self._payload(key, mine, counts[row], mark[1])
                builder.add(parts, n_rows=mark[0], identity=mark[1])
                n_bytes += sum(map(len, parts))
            for key, own in spans.items():
                own.append(self._span(key, mine, counts[row], mark[1]))
            marks.append(mark)
            done.append((row, mine))
        made = [self._gathered(builder) for builder in builders.values()]
        self._together.clear()
        for key, own in spans.items():
            made += self._map(metas[key], own, marks, made)
        name, data, entries = write_pack(made)
        self._table.location.write(f"{PACKS}/{name}", data)
        names = [pack.name for pack in manifest.packs]
        move = _Move(
            PackInfo(name, len(data), tuple(entries)),
            frozenset(names[p] for _, mine in done for p, _ in mine),
            {identities[row]: slot for slot, (row, _) in enumerate(done)},
            {identities[r]: {(names[p], s) for p, s in mine} for r, mine in done},
        )
        return move, len(done)

    def _places(self, key: _Key, mine: _Refs) -> Iterator[tuple[int, int, int]]:
        """The packs, blobs and slots that may hold a payload, newest first."""
        for number, slot in reversed(mine):
            for i, blob in enumerate(self._manifest.packs[number].blobs):
                if _key(blob.meta) == key:
                    yield number, i, slot

    def _payload(self, key: _Key, mine: _Refs, n_rows: int, crc: int) -> list[bytes]:
        for number, i, slot in self._places(key, mine):
            try:
                blob = self._blob(number, i)
                if blob is None:
                    continue
                parts = blob.payload(slot, READS)
                together = self._scattered(number, i) if parts is None else {}
                if parts is None and slot not in together:
                    continue
                blob.check_identity(slot, n_rows=n_rows, footer_crc=crc)
                if parts is None:
                    return together[slot]
                return [bytes(part) for part in parts.read(0, len(parts))]
            except _UNREADABLE:
                continue
        return []

    def _scattered(self, number: int, i: int) -> dict[int, list[bytes]]:
        """The payloads that a blob has together, taken apart."""
        if (number, i) not in self._together:
            self._together[number, i] = {}
            blob = self._blob(number, i)
            domain = self._domain(self._manifest.packs[number].blobs[i].meta)
            if blob is not None and domain is not None:
                self._together[number, i] = scattered(blob, domain)
        return self._together[number, i]

    def _gathered(self, builder: BlobBuilder) -> BlobBuilder:
        domain = self._domain(builder.meta)
        return builder if domain is None else gathered(builder, domain)

    def _span(self, key: _Key, mine: _Refs, n_rows: int, crc: int) -> ValueSpans | None:
        for number, i, slot in self._places(key, mine):
            try:
                spans = self._spans(number, i)
                blob = self._blob(number, i)
                if blob is None or slot >= len(spans):
                    continue
                blob.check_identity(slot, n_rows=n_rows, footer_crc=crc)
            except _UNREADABLE:
                continue
            if spans[slot] is not None:
                return spans[slot]
        return None

    def _spans(self, number: int, i: int) -> list[ValueSpans | None]:
        if (number, i) not in self._maps:
            self._maps[number, i] = []
            blob = self._blob(number, i)
            meta = self._manifest.packs[number].blobs[i].meta
            domain = self._domain(meta)
            if blob is not None and domain is not None:
                parts = blob.shared(READS)
                found = FileMap.open(parts, domain, len(blob.n_rows)).spans()
                self._maps[number, i] = found
        return self._maps[number, i]

    def _domain(self, meta: BlobMeta) -> Domain | None:
        """The domain of a column, if the table still has it."""
        folded = meta.column.lower()  # some files may spell it otherwise
        for column in self._table.leaves:
            domain, alike = column.domain, column.name.lower() == folded
            if alike and domain and domain.tag == meta.domain:
                return domain
        return None

    def _blob(self, number: int, i: int) -> Blob | None:
        if (number, i) not in self._blobs:
            self._blobs[number, i] = None
            pack = self._manifest.packs[number]
            source = self._table.location.view(f"{PACKS}/{pack.name}")
            self._blobs[number, i] = Blob(source, pack.blobs[i])
        return self._blobs[number, i]

    def _map(
        self,
        meta: BlobMeta,
        spans: list[ValueSpans | None],
        marks: list[tuple[int, int]],
        made: list[BlobBuilder],
    ) -> Iterator[BlobBuilder]:
        domain = self._domain(meta)
        if domain is None:
            return
        n_bytes = sum(b.n_bytes for b in made if b.meta.column == meta.column)
        parts = build_file_map(spans, domain, n_index_bytes=n_bytes)
        if parts is not None:
            yield map_blob(meta.column, meta.domain, parts, marks)


def _key(meta: BlobMeta) -> _Key:
    return meta.column, spec_key(meta.spec), meta.kind, meta.version, meta.domain


def _identities(manifest: Manifest) -> Iterator[tuple[Any, ...]]:
    names = ("path", "size", "mtime", "footer_crc")
    columns = [manifest.files[name].to_pylist() for name in names]
    return zip(*columns, strict=True)


def _moved(base: Manifest, moves: Sequence[_Move]) -> Manifest:
    """``base`` with the merged packs in the place of the small ones.

    A file that has since changed, or whose packs have, keeps what it has; and what
    has since been dropped does not come back.
    """
    names = [pack.name for pack in base.packs]
    numbers = base.files["packs"].to_pylist()
    slots = base.files["slots"].to_pylist()
    packs = list(base.packs)
    for move in moves:
        alive = {
            (blob.meta.column, spec_key(blob.meta.spec))
            for pack in base.packs
            if pack.name in move.old
            for blob in pack.blobs
        }
        blobs = tuple(
            blob
            for blob in move.pack.blobs
            if (blob.meta.column, spec_key(blob.meta.spec)) in alive
        )
        packs.append(replace(move.pack, blobs=blobs))
        for row, identity in enumerate(_identities(base)):
            slot = move.slots.get(identity)
            if slot is None:
                continue
            own = list(zip(numbers[row], slots[row], strict=True))
            old = {(names[p], s) for p, s in own if names[p] in move.old}
            if not old or not old <= move.refs[identity]:
                continue
            kept = [(p, s) for p, s in own if names[p] not in move.old]
            kept.append((len(packs) - 1, slot))
            numbers[row], slots[row] = [p for p, _ in kept], [s for _, s in kept]
    return base.with_packs(tuple(packs), numbers, slots)
