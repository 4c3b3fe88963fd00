"""Writing merged packs.

Payloads are copied after their checks, whatever they mean; payloads that a pack has
together are taken apart first (``packable``).  Data files are not read.

A pack in which anything fails a check, or cannot be read now, stays as it is and is
named.  One pack is written at a time, and one blob of it is in memory.  File maps are
built again from those of the merged packs.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np

from skipindex.build.packs.packable import (
    BlobReader,
    builder_of,
    packable,
    packed_together,
    values_in,
)
from skipindex.build.pending_pack import map_blob
from skipindex.build.tiers import (
    MAX_BYTES,
    MAX_FILES,
    IndexKey,
    index_keys,
    opened,
)
from skipindex.expressions.domain import Domain
from skipindex.indexes.file_map import FILE_MAP, ValueSpans, build_file_map
from skipindex.indexes.interface import UNUSABLE
from skipindex.log.damage import damage_of_blob
from skipindex.log.manifest import Identity, Manifest
from skipindex.storage.blobs import BlobUse, PackInfo
from skipindex.storage.file_system.names import PACKS
from skipindex.storage.pack import BlobMeta, PackWriter
from skipindex.table import TableState

T = TypeVar("T")

_MOST_VALUES: Final = 1 << 22
"""Values of the files of a merged pack that are in memory for a file map."""


@dataclass(frozen=True, slots=True)
class Move:
    """What one merged pack holds, and what it replaces.

    Args:
        pack: the pack.
        old: names of the small packs that it replaces.
        slots: by data file, its slot.
        refs: by data file, the small packs and slots that it had.
    """

    pack: PackInfo
    old: frozenset[str]
    slots: dict[Identity, int]
    refs: dict[Identity, set[tuple[str, int]]]


@dataclass(frozen=True, slots=True)
class _File:
    """A data file whose payloads are merged.

    Args:
        identity: of the file.
        n_rows: of the file.
        refs: where its payloads are in the packs that are merged, newest pack last.
    """

    identity: Identity
    n_rows: int
    refs: Sequence[tuple[int, int]]

    @property
    def footer_crc(self) -> int:
        """The checksum of the file's footer, as its payload names it."""
        return self.identity[-1]


class _NotMergeableError(Exception):
    """The pack of a number could not be read, though it could when it was checked."""


@dataclass
class Merger:
    """Writes merged packs.

    Args:
        table: the table.
        manifest: what of it is merged.
        max_files: that a merged pack may hold.
        max_bytes: at how many it is closed.
        forget_bins: the bins of file maps are values, and perhaps not of files that
            are still there.
        refused: by number of a pack, why it cannot be merged.
    """

    table: TableState
    manifest: Manifest
    max_files: int = MAX_FILES
    max_bytes: int = MAX_BYTES
    forget_bins: bool = False
    refused: dict[int, str] = field(default_factory=dict)

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
                number, reason = error.args
                self.refused[number] = reason

    def _check(self, use: BlobUse, sizes: dict[int, np.ndarray]) -> None:
        """Check that a blob can be read, and add up the sizes of its payloads."""
        location = self.table.location
        for damage in damage_of_blob(use, self.manifest, location, deep=True):
            self.refused[use.number] = damage.reason
            return
        try:
            blob = opened(use, location)
        except UNUSABLE as error:
            self.refused[use.number] = str(error)
            return
        meta = use.entry.meta
        if blob.has_shared and meta.kind != FILE_MAP:
            if packable(meta.kind) is None:
                self.refused[use.number] = f"kind {meta.kind!r} is not installed here"
            elif self._domain(meta) is None:
                self.refused[use.number] = f"no column {meta.column!r} of that type"
        n_bytes = blob.payload_bytes()
        before = sizes.setdefault(use.number, np.zeros(len(n_bytes), np.int64))
        if len(before) == len(n_bytes):
            before += n_bytes

    def _write_all(self, chosen: set[int], sizes: dict[int, np.ndarray]) -> list[Move]:
        """Write merged packs; all files of one have the same indexes in it."""
        # The newest pack of a file counts: if a merged pack has an index of some files
        # and not of another, the other's in an older pack would look superseded.
        alike: dict[frozenset[IndexKey], list[_File]] = {}
        refs = self.manifest.refs()
        refs = refs.where(np.isin(refs.packs, list(chosen)))
        rows, first = np.unique(refs.rows, return_index=True)
        pairs = list(zip(refs.packs.tolist(), refs.slots.tolist(), strict=True))
        stops = [*first.tolist(), len(pairs)][1:]
        counts = np.maximum(self.manifest.files["n_rows"].to_numpy()[rows], 0)
        keys_of = {number: index_keys(self.manifest.packs[number]) for number in chosen}
        files = zip(
            self.manifest.identities(rows.tolist()),
            counts.tolist(),
            first.tolist(),
            stops,
            strict=True,
        )
        for identity, n_rows, start, stop in files:
            mine = pairs[start:stop]
            keys = [keys_of[number] for number, _ in mine]
            file = _File(identity, n_rows, mine)
            alike.setdefault(frozenset().union(*keys), []).append(file)
        return [
            self._write_one(files)
            for every in alike.values()
            for files in self._cut(every, sizes)
        ]

    def _cut(
        self, every: Sequence[_File], sizes: dict[int, np.ndarray]
    ) -> Iterator[list[_File]]:
        """Cut the files into groups that one merged pack may hold."""
        files: list[_File] = []
        n_bytes = 0
        for file in every:
            files.append(file)
            n_bytes += sum(int(sizes[p][s]) for p, s in file.refs if s < len(sizes[p]))
            if len(files) >= self.max_files or n_bytes >= self.max_bytes:
                yield files
                files, n_bytes = [], 0
        if files:
            yield files

    def _write_one(self, files: Sequence[_File]) -> Move:
        """One merged pack of these files, written column by column."""
        packs = self.manifest.packs
        numbers = sorted({p for file in files for p, _ in file.refs})
        columns: dict[str, dict[IndexKey, BlobMeta]] = {}
        for number in numbers:
            for blob in packs[number].blobs:
                key = IndexKey.of(blob.meta)
                columns.setdefault(key.column, {})[key] = blob.meta
        with tempfile.TemporaryFile() as spool:
            writer = PackWriter(spool.write)
            for metas in columns.values():
                self._write_column(writer, metas, numbers, files)
            name = writer.finish()
            spool.flush()
            with (
                mmap.mmap(spool.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
                memoryview(mapped) as data,
            ):
                self.table.location.write(f"{PACKS}/{name}", data)
        return Move(
            PackInfo(name, writer.size, tuple(writer.entries)),
            old=frozenset(packs[p].name for p in numbers),
            slots={file.identity: slot for slot, file in enumerate(files)},
            refs={f.identity: {(packs[p].name, s) for p, s in f.refs} for f in files},
        )

    def _write_column(
        self,
        writer: PackWriter,
        metas: Mapping[IndexKey, BlobMeta],
        numbers: Sequence[int],
        files: Sequence[_File],
    ) -> None:
        """Write the blobs of one column, its file map after them."""
        spans: dict[IndexKey, list[ValueSpans | None]] = {}
        for key, meta in metas.items():
            if key.kind == FILE_MAP and self._domain(meta) is not None:
                old = self._readers(key, numbers)
                spans[key] = [_newest(file, old, BlobReader.span) for file in files]
        n_bytes, limit = 0, _MOST_VALUES // max(1, len(files))
        for key, meta in metas.items():
            if key.kind == FILE_MAP:
                continue
            old, domain = self._readers(key, numbers), self._domain(meta)
            alike = [mine for own, mine in spans.items() if own.domain == key.domain]
            builder = builder_of(meta)
            for i, file in enumerate(files):
                parts = _newest(file, old, BlobReader.payload) or []
                builder.add(parts, n_rows=file.n_rows, identity=file.footer_crc)
                for mine in alike:
                    # Bins of bins would be wider, and bins of texts have no end.
                    if domain is not None and not _is_single(mine[i]):
                        known = values_in(meta, parts, domain, file.n_rows, limit=limit)
                        if known is not None:
                            mine[i] = known
            made = builder if domain is None else packed_together(builder, domain)
            n_bytes += made.n_bytes
            writer.add(made)
        for key, mine in spans.items():
            meta = metas[key]
            domain = self._domain(meta)
            assert domain is not None
            parts_or_none = build_file_map(mine, domain, n_index_bytes=n_bytes)
            if parts_or_none is not None:
                marks = [(file.n_rows, file.footer_crc) for file in files]
                writer.add(map_blob(key.column, key.domain, parts_or_none, marks))

    def _readers(
        self, key: IndexKey, numbers: Iterable[int]
    ) -> dict[int, list[BlobReader]]:
        """The blobs of one index in every pack of these numbers."""
        result: dict[int, list[BlobReader]] = {}
        for number in numbers:
            pack = self.manifest.packs[number]
            result[number] = [
                BlobReader(
                    self.table.location.view(f"{PACKS}/{pack.name}"),
                    entry,
                    self._domain(entry.meta),
                    forget_bins=self.forget_bins,
                )
                for entry in pack.blobs
                if IndexKey.of(entry.meta) == key
            ]
        return result

    def _domain(self, meta: BlobMeta) -> Domain | None:
        """The domain of a column, if the table still has it."""
        folded = meta.column.lower()  # some files may spell it otherwise
        for column in self.table.leaves:
            domain, alike = column.domain, column.name.lower() == folded
            if alike and domain and domain.tag == meta.domain:
                return domain
        return None


def _is_single(span: ValueSpans | None) -> bool:
    return span is not None and span.single


def _newest(
    file: _File,
    old: Mapping[int, Sequence[BlobReader]],
    look: Callable[[BlobReader, int], T | None],
) -> T | None:
    """What the newest pack has of a file; None if no pack has anything."""
    for number, slot in reversed(file.refs):
        for reader in old[number]:
            try:
                result = look(reader, slot)
            except UNUSABLE as error:
                raise _NotMergeableError(number, str(error)) from error
            if result is not None:
                return result
    return None
