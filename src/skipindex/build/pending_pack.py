"""The pack that a task is writing, one indexed file after another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from skipindex.build.packs.packable import builder_of, packed_together
from skipindex.expressions.domain import Domain
from skipindex.indexes import index_type, spec_to_json
from skipindex.indexes.file_map import FILE_MAP, ValueSpans, build_file_map
from skipindex.indexes.file_map import VERSION as MAP_VERSION
from skipindex.indexes.interface import IndexSpec
from skipindex.storage.blobs import PackInfo, spec_key
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import PACKS
from skipindex.storage.pack import BlobBuilder, BlobMeta, write_pack
from skipindex.table import ColumnInfo, TableState
from skipindex.table.summaries import Summary


@dataclass(frozen=True, slots=True)
class ColumnRequest:
    """What to build on the column, or the field, at ``path``; statistics always.

    With ``alone``, the table has no other column of this name in any capitals.
    """

    name: str
    domain: Domain
    specs: tuple[IndexSpec, ...]
    path: tuple[str, ...]
    alone: bool = True

    @property
    def has_map(self) -> bool:
        """Whether a file map goes with the indexes: with any that has row positions."""
        return any(index_type(spec.kind).positional for spec in self.specs)


@dataclass(slots=True)
class IndexedFile:
    """One data file: its row of the manifest, statistics and payloads.

    What is built on a column goes by the name that the file has for it, as it holds
    for no other name if names differ by their capitals.

    ``n_bytes`` are those of the payloads.  ``spilled`` has packs of this file alone,
    with payloads that were too many to hold.
    """

    row: dict[str, Any]
    respelled: list[ColumnRequest] = field(default_factory=list)
    summaries: dict[str, Summary] = field(default_factory=dict)
    payloads: dict[tuple[str, str], list[bytes]] = field(default_factory=dict)
    spans: dict[str, ValueSpans] = field(default_factory=dict)
    spilled: list[PackInfo] = field(default_factory=list)
    n_bytes: int = 0
    _held: set[int] = field(default_factory=set)
    """The parts that count: payloads that are built together share some."""

    def hold(self, column: str, spec: str, parts: list[bytes]) -> None:
        """Add the payload of an index that the column does not have yet."""
        self.payloads[column, spec] = parts
        self.n_bytes += sum(len(p) for p in parts if id(p) not in self._held)
        self._held.update(map(id, parts))

    def forget(self) -> None:
        """Give up the payloads, which are written."""
        self.payloads.clear()
        self.spans.clear()
        self._held.clear()
        self.n_bytes = 0


def request_of(
    table: TableState, column: ColumnInfo, specs: Sequence[IndexSpec]
) -> ColumnRequest:
    """The request for a column that has a domain."""
    assert column.domain is not None
    return ColumnRequest(
        column.name,
        column.domain,
        tuple(specs),
        column.place,
        alone=table.is_alone(column),
    )


class PendingPack:
    """The pack that a task is filling."""

    def __init__(self, columns: Sequence[ColumnRequest]) -> None:
        self.n_files = 0
        self.n_bytes = 0
        self._open: dict[str, ColumnRequest] = {}
        self._builders: dict[tuple[str, str], BlobBuilder] = {}
        self._spans: dict[str, list[ValueSpans | None]] = {}
        self._files: list[tuple[int, int]] = []
        for column in columns:
            self._add_column(column)

    def _add_column(self, column: ColumnRequest) -> None:
        """Open the blobs of a column; the files so far have nothing in them."""
        self._open[column.name] = column
        for spec in column.specs:
            as_json = spec_to_json(spec)
            version = index_type(spec.kind).version
            meta = BlobMeta(spec.kind, version, column.name, column.domain.tag, as_json)
            builder = self._builders[column.name, spec_key(as_json)] = builder_of(meta)
            for n_rows, identity in self._files:
                builder.add([], n_rows=n_rows, identity=identity)
        if column.has_map:
            self._spans[column.name] = [None] * self.n_files

    def add(self, indexed: IndexedFile) -> int:
        """Append the payloads of one file; its slot."""
        for column in indexed.respelled:
            if column.name not in self._open:
                self._add_column(column)
        n_rows, identity = max(0, indexed.row["n_rows"]), indexed.row["footer_crc"]
        for key, builder in self._builders.items():
            parts = indexed.payloads.get(key, [])
            builder.add(parts, n_rows=n_rows, identity=identity)
        self.n_bytes += indexed.n_bytes
        for name, spans in self._spans.items():
            spans.append(indexed.spans.get(name))
        self._files.append((n_rows, identity))
        self.n_files += 1
        return self.n_files - 1

    def write(self, location: Location) -> PackInfo | None:
        """Write the pack; None if it is empty."""
        if not self._builders or not self.n_files:
            return None
        domains = {name: column.domain for name, column in self._open.items()}
        payloads = [
            packed_together(builder, domains[name])
            for (name, _), builder in self._builders.items()
        ]
        builders = [*payloads, *self._maps()]
        name, data, entries = write_pack(builders)
        location.write(f"{PACKS}/{name}", data)
        return PackInfo(name, len(data), tuple(entries))

    def _maps(self) -> Iterator[BlobBuilder]:
        """The file maps that are worth their bytes."""
        n_bytes: Counter[str] = Counter()
        for (name, _), builder in self._builders.items():
            n_bytes[name] += builder.n_bytes
        for column in self._open.values():
            if column.name not in self._spans:
                continue
            parts = build_file_map(
                self._spans[column.name],
                column.domain,
                n_index_bytes=n_bytes[column.name],
            )
            if parts is not None:
                yield map_blob(column.name, column.domain.tag, parts, self._files)


def map_blob(
    column: str, domain: str, parts: list[bytes], files: Sequence[tuple[int, int]]
) -> BlobBuilder:
    """The blob of a file map.

    ``domain`` is the tag of the column's domain.  ``files`` has the row count and the
    footer's crc32c of each data file.
    """
    meta = BlobMeta(FILE_MAP, MAP_VERSION, column, domain, {"kind": FILE_MAP})
    builder = BlobBuilder(meta, shared=parts)
    for n_rows, identity in files:
        builder.add([], n_rows=n_rows, identity=identity)
    return builder
