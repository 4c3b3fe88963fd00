"""Packs, their blobs, and the data files that each blob serves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.storage.pack import BlobEntry, BlobMeta


@dataclass(frozen=True, slots=True)
class PackInfo:
    """One pack and the blobs of it that are in use.

    ``size`` is in bytes.  A newer pack has a greater ``order``, which is None until the
    pack is committed.
    """

    name: str
    size: int
    blobs: tuple[BlobEntry, ...]
    order: int | None = None

    def to_json(self) -> dict[str, Any]:
        """For the manifest's metadata."""
        blobs = [
            {
                **blob.meta.to_json(),
                "version": blob.meta.version,
                "offset": blob.offset,
                "length": blob.length,
                "crc32c": blob.crc,
                **({"encodings": dict(blob.encodings)} if blob.encodings else {}),
            }
            for blob in self.blobs
        ]
        order = {} if self.order is None else {"order": self.order}
        return {"name": self.name, "size": self.size, "blobs": blobs, **order}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PackInfo:
        """The inverse of ``to_json``."""
        blobs = tuple(
            BlobEntry(
                BlobMeta(b["kind"], b["version"], b["column"], b["domain"], b["spec"]),
                b["offset"],
                b["length"],
                b["crc32c"],
                b.get("encodings", {}),
            )
            for b in data["blobs"]
        )
        return cls(data["name"], data["size"], blobs, data.get("order"))


@dataclass(frozen=True, slots=True)
class BlobUse:
    """Which files of a manifest have their payload in one blob, and in which slot.

    ``number`` is that of the pack in the manifest; two may have one name, where two
    builders wrote the same bytes.  Each of ``rows`` has its slot at the same place.
    """

    number: int
    pack: PackInfo
    entry: BlobEntry
    rows: np.ndarray = field(repr=False)
    slots: np.ndarray = field(repr=False)


@dataclass(frozen=True, slots=True)
class Refs:
    """Which payload of which pack serves which data file, as three columns.

    They are sorted by file, and of each file the newest pack comes last.
    """

    rows: np.ndarray
    packs: np.ndarray
    slots: np.ndarray

    @classmethod
    def of(cls, files: pa.Table) -> Refs:
        """The references in the columns ``packs`` and ``slots`` of ``files``."""
        packs, slots = (files[name].combine_chunks() for name in ("packs", "slots"))
        return cls(
            pc.list_parent_indices(packs).to_numpy(),
            pc.list_flatten(packs).to_numpy(),
            pc.list_flatten(slots).to_numpy(),
        )

    @classmethod
    def concat(cls, pieces: Sequence[Refs]) -> Refs:
        """All of ``pieces``; of one file, those of later pieces are newer."""
        names = ("rows", "packs", "slots")
        columns = [np.concatenate([getattr(p, n) for p in pieces]) for n in names]
        order = np.argsort(columns[0], kind="stable")
        return cls(*(column[order] for column in columns))

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, mask: np.ndarray) -> Refs:
        """The references where ``mask`` is True."""
        return Refs(self.rows[mask], self.packs[mask], self.slots[mask])

    def at_rows(self, row_of: np.ndarray) -> Refs:
        """Renumber rows to ``row_of[r]``, ascending; references with -1 are dropped."""
        rows = row_of[self.rows]
        left = rows >= 0
        return Refs(rows[left], self.packs[left], self.slots[left])

    def in_packs(self, number_of: np.ndarray) -> Refs:
        """Renumber packs to ``number_of[p]``; references with -1 are dropped."""
        packs = number_of[self.packs]
        left = packs >= 0
        return Refs(self.rows[left], packs[left], self.slots[left])

    def counts(self, n_files: int) -> np.ndarray:
        """How many every file has."""
        return np.bincount(self.rows, minlength=n_files)

    def to_lists(self, n_files: int) -> dict[str, pa.ListArray]:
        """The columns ``packs`` and ``slots`` of a manifest's files."""
        offsets = np.zeros(n_files + 1, np.int32)
        np.cumsum(self.counts(n_files), out=offsets[1:])
        columns = {"packs": self.packs, "slots": self.slots}
        return {
            name: pa.ListArray.from_arrays(
                pa.array(offsets), pa.array(values.astype(np.int32, copy=False))
            )
            for name, values in columns.items()
        }


def united(
    pieces: Sequence[Sequence[PackInfo]],
) -> tuple[tuple[PackInfo, ...], list[np.ndarray]]:
    """The packs of several lists as one, and of each list where its packs are in it.

    Committed packs come first, by their order; one that is in several lists is there
    once.  The others follow as they stand.
    """
    every = [pack for packs in pieces for pack in packs]
    number_of: np.ndarray = np.zeros(len(every), np.int32)
    result: list[PackInfo] = []
    alike: dict[int, list[int]] = {}
    for at in sorted(range(len(every)), key=lambda at: _age(every[at])):
        pack = every[at]
        known = [] if pack.order is None else alike.setdefault(pack.order, [])
        same = next((number for number in known if result[number] == pack), None)
        if same is None:
            same = len(result)
            known.append(same)
            result.append(pack)
        number_of[at] = same
    cuts = np.cumsum([len(packs) for packs in pieces])[:-1]
    return tuple(result), np.split(number_of, cuts)


def _age(pack: PackInfo) -> tuple[bool, int]:
    return pack.order is None, pack.order or 0


def entries_in_use(uses: Sequence[BlobUse], n_files: int) -> set[int]:
    """Which blobs are the newest of their index for a file, by place in ``uses``.

    ``uses`` are all blobs, newest pack last.
    """
    covered: dict[tuple[str, str], np.ndarray] = {}
    result = set()
    for at in reversed(range(len(uses))):
        use = uses[at]
        key = use.entry.meta.column, spec_key(use.entry.meta.spec)
        if key not in covered:
            covered[key] = np.zeros(n_files, np.bool_)
        if not covered[key][use.rows].all():
            result.add(at)
        covered[key][use.rows] = True
    return result


def spec_key(spec: Mapping[str, Any]) -> str:
    """A spec as text that is equal for equal specs."""
    return json.dumps(spec, sort_keys=True)
