"""Packs, their blobs, and the data files that each blob serves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skipindex.storage.pack import BlobEntry, BlobMeta


@dataclass(frozen=True, slots=True)
class PackInfo:
    """One pack and the blobs of it that are in use."""

    name: str
    size: int
    blobs: tuple[BlobEntry, ...]

    def to_json(self) -> dict[str, Any]:
        """For the manifest's metadata."""
        blobs = [
            {
                **blob.meta.to_json(),
                "version": blob.meta.version,
                "offset": blob.offset,
                "length": blob.length,
                "crc32c": blob.crc,
            }
            for blob in self.blobs
        ]
        return {"name": self.name, "size": self.size, "blobs": blobs}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PackInfo:
        """The inverse of ``to_json``."""
        blobs = tuple(
            BlobEntry(
                BlobMeta(b["kind"], b["version"], b["column"], b["domain"], b["spec"]),
                b["offset"],
                b["length"],
                b["crc32c"],
            )
            for b in data["blobs"]
        )
        return cls(data["name"], data["size"], blobs)


@dataclass(frozen=True, slots=True)
class BlobUse:
    """Which files of a manifest have their payload in one blob, and in which slot.

    Args:
        number: of the pack in the manifest; two may have one name, where two
            builders wrote the same bytes.
        pack: the pack.
        entry: the blob.
        rows: the files.
        slots: of each of them.
    """

    number: int
    pack: PackInfo
    entry: BlobEntry
    rows: np.ndarray = field(repr=False)
    slots: np.ndarray = field(repr=False)


def spec_key(spec: Mapping[str, Any]) -> str:
    """A spec as text that is equal for equal specs."""
    return json.dumps(spec, sort_keys=True)
