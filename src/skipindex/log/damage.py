"""Checking that payloads exist, are intact, and belong to the manifest's files.

Two depths: what a listing of the packs and the directories of their blobs say, which is
cheap, and every part, which reads all index bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from skipindex.errors import CorruptIndexError, IndexVersionError
from skipindex.log.manifest import Manifest
from skipindex.storage.blobs import BlobUse
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import PACKS
from skipindex.storage.pack import Blob
from skipindex.storage.parts import ReadCount
from skipindex.storage.telling import tell_done

UNCHECKED: Final = "cannot be read now"
"""How the reason begins if the next reading may succeed."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Payloads of one blob that are not what was written.

    ``at`` are places in ``use.rows``.  If it is ``lasting``, the next reading finds the
    same.
    """

    use: BlobUse
    at: np.ndarray
    reason: str
    lasting: bool = True

    def __str__(self) -> str:
        meta = self.use.entry.meta
        return (
            f"pack {self.use.pack.name}: {meta.kind} of column {meta.column!r}, "
            f"{len(self.at)} files: {self.reason}"
        )


@dataclass(frozen=True, slots=True)
class CheckTask:
    """Some packs, whose every byte a worker reads.

    ``piece`` is a manifest of the packs, with ``n_units`` blobs in all.
    """

    location: Location
    piece: Manifest
    n_units: int

    @property
    def done(self) -> str:
        """See ``build.runners.Task``."""
        return f"checked packs of {self.location.full('')!r}"

    def run(self) -> list[str]:
        """See ``told_damage``."""
        return told_damage(self.piece, self.location)


def told_damage(manifest: Manifest, location: Location) -> list[str]:
    """All that is wrong with the payloads of a manifest, in words."""
    told = []
    for damage in damage_of(manifest, location, deep=True):
        paths = [manifest.paths[row] for row in damage.use.rows[damage.at][:1].tolist()]
        told.append(f"{damage} (first: {paths[0]})" if paths else str(damage))
    return told


def check_tasks(
    manifest: Manifest, location: Location, n_tasks: int
) -> list[CheckTask]:
    """Tasks that check all packs, in their order, with about as many bytes in each."""
    sizes = np.array([pack.size for pack in manifest.packs], np.int64)
    before = np.cumsum(sizes) - sizes
    group = before * n_tasks // max(1, int(sizes.sum()))
    parts = [np.flatnonzero(group == g).tolist() for g in np.unique(group)]
    pieces = manifest.of_packs(parts)
    return [CheckTask(location, m, n_blobs(m)) for m in pieces]


def n_blobs(manifest: Manifest) -> int:
    """How many indexes ``damage_of`` looks at."""
    return sum(len(pack.blobs) for pack in manifest.packs)


def damage_of(manifest: Manifest, location: Location, *, deep: bool) -> list[Damage]:
    """What is wrong with the payloads of a manifest; nothing is raised.

    ``deep`` reads every part; without it the packs are listed, and where the files are
    local the directories of their blobs are read.
    """
    try:
        sizes = {
            result.path.rpartition("/")[2]: result.size
            for result in location.list(PACKS)
        }
    except OSError as error:
        return [_whole(use, error) for use in manifest.blobs()]
    result: list[Damage] = []
    for use in manifest.blobs():
        if use.pack.name not in sizes:
            result.append(_whole(use, CorruptIndexError("the pack does not exist")))
        elif sizes[use.pack.name] != use.pack.size:
            problem = f"the pack has {sizes[use.pack.name]} of {use.pack.size} bytes"
            result.append(_whole(use, CorruptIndexError(problem)))
        elif deep or location.at(PACKS).is_local:
            result += damage_of_blob(use, manifest, location, deep=deep)
        tell_done()
    return result


def damage_of_blob(
    use: BlobUse, manifest: Manifest, location: Location, *, deep: bool
) -> Iterator[Damage]:
    """What is wrong with the payloads of one blob."""
    try:
        blob = Blob(location.view(f"{PACKS}/{use.pack.name}"), use.entry)
        bad = dict(_foreign(blob, use, manifest))
        if deep:
            count = ReadCount()
            if blob.has_shared:
                shared = blob.shared(count)
                shared.read(0, len(shared))
            bad |= _broken(blob, use, count, bad)
    except IndexVersionError:
        return  # the library that wrote it can read it
    except (CorruptIndexError, OSError) as error:
        yield _whole(use, error)
        return
    by_reason: dict[str, list[int]] = {}
    for at, reason in bad.items():
        by_reason.setdefault(reason, []).append(at)
    for reason, places in by_reason.items():
        yield Damage(use, np.array(places, np.int64), reason)


def _whole(use: BlobUse, error: Exception) -> Damage:
    every = np.arange(len(use.rows))
    lasting = not isinstance(error, OSError) or isinstance(error, FileNotFoundError)
    reason = str(error) if lasting else f"{UNCHECKED}: {error}"
    return Damage(use, every, reason, lasting)


def _foreign(blob: Blob, use: BlobUse, manifest: Manifest) -> Iterator[tuple[int, str]]:
    """The places in ``use.rows`` whose slot is not of the file."""
    n_rows = np.maximum(manifest.files["n_rows"].to_numpy()[use.rows], 0)
    footers = manifest.files["footer_crc"].to_numpy()[use.rows]
    holds = blob.has_payload(use.slots)
    if blob.has_shared:
        holds[:] = True
    wrong = holds & ~blob.fits(use.slots, n_rows, footers)
    for at in np.flatnonzero(wrong).tolist():
        yield at, "it belongs to another data file"


def _broken(
    blob: Blob, use: BlobUse, count: ReadCount, known: Mapping[int, str]
) -> Iterator[tuple[int, str]]:
    """The places in ``use.rows`` where a part fails its crc32c."""
    for at, slot in enumerate(use.slots.tolist()):
        if at in known:
            continue
        try:
            parts = blob.payload(slot, count)
            if parts is not None:
                parts.read(0, len(parts))
        except CorruptIndexError as error:
            yield at, str(error)
