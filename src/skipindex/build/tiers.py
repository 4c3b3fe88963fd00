"""Which packs a build merges, so that their number grows with the data alone.

The tier of a pack is how full it is: a merged pack has limits of files and bytes, and
the packs of a tier are an eighth as full as those of the tier above.  Once a tier has
twelve packs with the same indexes, they become one, which is of a higher tier.  So a
payload is written once a tier, and a table of any age has at most eleven packs of each
of six tiers, beside those that are full.  (Log-structured merge trees do the same.)

A pack that is less than half in use is worn, and is written again.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Hashable, Sequence
from typing import Final, NamedTuple

import numpy as np

from skipindex.indexes.file_map import FILE_MAP
from skipindex.indexes.interface import UNUSABLE
from skipindex.log.manifest import Manifest
from skipindex.storage.blobs import BlobUse, PackInfo, spec_key
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import PACKS
from skipindex.storage.pack import Blob, BlobMeta

CROWD: Final = 12
"""Packs of a tier from which they are merged; one build alone seldom writes more."""
MAX_FILES: Final = 8192
MAX_BYTES: Final = 256 << 20
"""A merged pack is closed at so many data files, or bytes."""

_FOOTER: Final = 512
"""Bytes, more than a pack's footer has for a blob."""
_RATIO: Final = 8
"""Factor in data files and bytes between neighbouring tiers."""
_LOWEST: Final = 5
"""The tier of a pack of one data file: 8^4 < 8192 <= 8^5."""


class IndexKey(NamedTuple):
    """What two blobs have in common that hold the same index of other files."""

    column: str
    spec: str
    kind: str
    version: int
    domain: str

    @classmethod
    def of(cls, meta: BlobMeta) -> IndexKey:
        """The key of a blob."""
        spec = spec_key(meta.spec)
        return cls(meta.column, spec, meta.kind, meta.version, meta.domain)


def files_of_packs(manifest: Manifest) -> np.ndarray:
    """How many files every pack serves."""
    counts: np.ndarray = np.zeros(len(manifest.packs), np.int64)
    for use in manifest.blobs():
        counts[use.number] = len(use.rows)
    return counts


def index_keys(pack: PackInfo) -> frozenset[IndexKey]:
    """The indexes that a pack has, without file maps, which come and go."""
    metas = (blob.meta for blob in pack.blobs)
    return frozenset(IndexKey.of(meta) for meta in metas if meta.kind != FILE_MAP)


def is_small(n_files: int, n_bytes: int, max_files: int, max_bytes: int) -> bool:
    """Whether a pack holds less than half of what a merged one may."""
    return n_files * 2 < max_files and n_bytes * 2 < max_bytes


def small(manifest: Manifest, max_files: int, max_bytes: int) -> set[int]:
    """The numbers of the packs that hold less than half of what a merged one may."""
    files = files_of_packs(manifest).tolist()
    return {
        i
        for i, pack in enumerate(manifest.packs)
        if is_small(files[i], pack.size, max_files, max_bytes)
    }


def worn(
    manifest: Manifest, location: Location, among: Collection[str] | None = None
) -> set[int]:
    """The numbers of the packs that are less than half in use.

    The files of the packs with the names in ``among`` are counted, by default of all,
    which reads a directory of each.
    """
    result = set()
    files = files_of_packs(manifest).tolist()
    used = [sum(blob.length for blob in pack.blobs) for pack in manifest.packs]
    for use in manifest.blobs():
        if used[use.number] * 2 < use.pack.size - len(use.pack.blobs) * _FOOTER:
            result.add(use.number)
        elif use.entry is use.pack.blobs[0] and (
            among is None or use.pack.name in among
        ):
            try:
                n_slots = len(opened(use, location).n_rows)
            except UNUSABLE:
                continue
            if files[use.number] * 2 < n_slots:
                result.add(use.number)
    return result


def opened(use: BlobUse, location: Location) -> Blob:
    """A blob, opened for one look at its directory; raises one of ``UNUSABLE``."""
    return Blob(location.view(f"{PACKS}/{use.pack.name}"), use.entry)


def crowded(
    packs: Sequence[PackInfo], n_files: Sequence[int], alike: Sequence[Hashable]
) -> set[int]:
    """The numbers of the packs of the lowest tier that has too many; often none.

    A pack serves ``n_files``; only packs whose indexes are ``alike`` are merged.
    """
    tiers: dict[tuple[int, Hashable], set[int]] = {}
    for i, (pack, files) in enumerate(zip(packs, n_files, strict=True)):
        if is_small(files, pack.size, MAX_FILES, MAX_BYTES):
            tiers.setdefault((_tier(files, pack.size), alike[i]), set()).add(i)
    full = [(tier, mine) for (tier, _), mine in tiers.items() if len(mine) >= CROWD]
    return max(full, key=operator.itemgetter(0))[1] if full else set()


def _tier(n_files: int, n_bytes: int) -> int:
    """0 for the fullest packs; a tier down, a pack is an eighth as full."""
    tier, files, size = 0, n_files * _RATIO, n_bytes * _RATIO
    while files < MAX_FILES and size < MAX_BYTES and tier < _LOWEST:
        tier, files, size = tier + 1, files * _RATIO, size * _RATIO
    return tier
