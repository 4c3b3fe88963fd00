"""Segments: the files of a manifest, each with some rows of it, never changed.

::

    _skipindex/manifests/<hash>.arrow

Each is an Arrow IPC file as ``log.manifest`` draws it.  A commit names its segments
with their size, crc32c and number of rows, and which of the rows are dead, because the
file is gone or a later segment has a newer row of it.  The manifest of the commit is
the live rows of all its segments, one after another.

Dead rows are a bitmap, whose first bit is the highest of the first byte, compressed
by zlib, in base64.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np
from crc32c import crc32c

from skipindex.errors import CorruptIndexError
from skipindex.log import compaction
from skipindex.log.compaction import to_rewrite
from skipindex.log.manifest import Manifest
from skipindex.log.narrow import narrowed, shared
from skipindex.log.unchanged import unchanged_rows
from skipindex.storage.checks import (
    MAX_MANIFEST,
    MAX_ORDER,
    MAX_UNPACKED,
    checked_int,
    checking,
    fetched,
    require,
)
from skipindex.storage.deadline import carried
from skipindex.storage.disk_cache import disk_file
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import MANIFESTS, is_manifest_name

_AT_ONCE: Final = 16
"""Segments that are read together from a store, where each takes a round trip."""
_MAX_SEGMENTS: Final = 1 << 12
"""Most segments of a commit."""
_MAX_ROWS: Final = (1 << 31) - 1
"""Most rows of a commit's segments; the columns of the manifest count no farther."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One file of a manifest, and which of its rows count.

    ``size`` is in bytes; ``dead`` is the bitmap of the rows that do not count, empty if
    all do.
    """

    name: str
    size: int
    crc: int
    n_rows: int
    dead: bytes = b""

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Segment:
        """The inverse of ``to_json``."""
        name = record["name"]
        require(is_manifest_name(name), f"{name!r} is not the name of a manifest")
        size = checked_int(record["size"], 0, MAX_MANIFEST)
        crc = checked_int(record["crc32c"], 0, (1 << 32) - 1)
        n_rows = checked_int(record["rows"], 0, _MAX_ROWS)
        dead = _unpacked(record["dead"], n_rows) if "dead" in record else b""
        return cls(name, size, crc, n_rows, dead)

    def to_json(self) -> dict[str, Any]:
        """The record of the segment in a commit."""
        named = {"name": self.name, "size": self.size, "crc32c": self.crc}
        packed = base64.b64encode(zlib.compress(self.dead)).decode()
        return {**named, "rows": self.n_rows} | ({"dead": packed} if self.dead else {})

    @property
    def path(self) -> str:
        """Where the file is."""
        return f"{MANIFESTS}/{self.name}"

    @property
    def n_live(self) -> int:
        """How many rows count."""
        return self.n_rows - int.from_bytes(self.dead).bit_count()

    @property
    def live(self) -> np.ndarray:
        """The rows that count, ascending."""
        if not self.dead:
            return np.arange(self.n_rows)
        bits = np.unpackbits(np.frombuffer(self.dead, np.uint8), count=self.n_rows)
        return np.flatnonzero(bits == 0)

    def is_file_of(self, other: Segment) -> bool:
        """Whether both are one file; other rows of it may count."""
        mine, theirs = replace(self, dead=b""), replace(other, dead=b"")
        return mine == theirs

    def with_live(self, rows: np.ndarray) -> Segment:
        """The same file, of which these rows count."""
        if len(rows) == self.n_rows:
            return replace(self, dead=b"")
        bits: np.ndarray = np.ones(self.n_rows, np.uint8)
        bits[rows] = 0
        return replace(self, dead=np.packbits(bits).tobytes())


@dataclass(frozen=True, slots=True)
class Lost:
    """A segment that cannot be read."""

    segment: Segment
    error: CorruptIndexError

    def __str__(self) -> str:
        return (
            f"indexes of {self.segment.n_live} files ignored: segment "
            f"{self.segment.name}: {self.error}"
        )


@dataclass(frozen=True, slots=True)
class Loaded:
    """The segments of a commit, as far as they can be read.

    ``manifest`` has the live rows of ``segments``, the whole ones, one after another.
    """

    manifest: Manifest
    segments: tuple[Segment, ...] = ()
    lost: tuple[Lost, ...] = ()


@lru_cache(maxsize=1)
def nothing() -> Loaded:
    """No segment at all; made when it is used, as Arrow's first table is slow."""
    return Loaded(Manifest.empty())


def check_segments(records: Any) -> tuple[Segment, ...]:
    """The segments that a commit names."""
    require(isinstance(records, list), "its segments are not a list")
    require(len(records) <= _MAX_SEGMENTS, "it has too many segments")
    n_rows = sum(checked_int(record["rows"], 0, _MAX_ROWS) for record in records)
    require(n_rows <= _MAX_ROWS, "its segments have too many rows")
    segments = tuple(map(Segment.from_json, records))
    require(
        len({s.name for s in segments}) == len(segments), "a segment is named twice"
    )
    return segments


def _unpacked(text: Any, n_rows: int) -> bytes:
    """The bitmap of the dead rows, which takes no more memory than it says."""
    require(isinstance(text, str), "the dead rows of a segment are not text")
    n_bytes = -(-n_rows // 8)
    unpacker = zlib.decompressobj()
    try:
        packed = base64.b64decode(text, validate=True)
        bitmap = unpacker.decompress(packed, n_bytes + 1)
    except (ValueError, zlib.error) as error:
        raise CorruptIndexError(f"the dead rows of a segment: {error}") from error
    require(len(bitmap) == n_bytes and unpacker.eof, "a bitmap of dead rows is cut off")
    beyond = int.from_bytes(bitmap[-1:]) & ((1 << (8 * n_bytes - n_rows)) - 1)
    require(not beyond, "a row is dead that a segment does not have")
    return bitmap


def load(location: Location, segments: Sequence[Segment], known: Loaded) -> Loaded:
    """Read the segments; what can be read now counts, whatever the others are.

    The files of segments of ``known``, another commit, are not read again.
    """
    if known.segments and tuple(segments) == known.segments:
        return known

    def rows_of(segment: Segment) -> Manifest | CorruptIndexError:
        try:
            return _live_rows(location, segment, known)
        except CorruptIndexError as error:
            return error

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        run = map if location.at(MANIFESTS).is_local else pool.map
        read = list(run(carried(rows_of), segments))
    n_bytes = 0
    manifests, result, lost = [], [], []
    for segment, rows in zip(segments, read, strict=True):
        if isinstance(rows, CorruptIndexError):
            lost.append(Lost(segment, rows))
            continue
        n_bytes += rows.n_bytes
        _require_memory(n_bytes)
        manifests.append(rows)
        result.append(segment)
    # What columns are known is for the newest segment to say; in others, one may have
    # been dropped with the last row that had a value.
    pieces = [m.without_stats(m.blank_stats()) for m in manifests[:-1]]
    manifest = shared(Manifest.concat([*pieces, *manifests[-1:]]))
    return Loaded(manifest, tuple(result), tuple(lost))


def _live_rows(location: Location, segment: Segment, known: Loaded) -> Manifest:
    """The rows of a segment that count, with their packs alone."""
    start = 0
    for one in known.segments:
        if one.is_file_of(segment):
            then, now = one.live, segment.live
            if np.isin(now, then).all():
                rows = start + np.searchsorted(then, now)
                return known.manifest.take(rows).referenced()
        start += one.n_live
    every = read_file(location, segment)
    return narrowed(every.take(segment.live).referenced())


def read_file(location: Location, segment: Segment) -> Manifest:
    """All rows of a segment, dead ones too."""
    file = disk_file(location, segment.path)
    cached = None if file is None else file.read(0, segment.size)
    if cached is not None and crc32c(cached) != segment.crc:
        cached = None
    if cached is None:
        data = fetched(location, segment.path, min(segment.size, MAX_MANIFEST))
    else:
        data = bytes(cached)
    with checking("it is not a manifest"):
        require(crc32c(data) == segment.crc, "its manifest fails its crc32c")
        manifest = Manifest.from_bytes(data)
        same = segment.n_rows == len(manifest)
        require(same, "it has other rows than its commit says")
        ordered = all(pack.order is not None for pack in manifest.packs)
        require(ordered, "a pack has no order")
    if file is not None and cached is None:
        file.write(0, memoryview(data))
    return manifest


def write_changed(
    location: Location, base: Loaded, manifest: Manifest, *, forget: bool
) -> Loaded:
    """Write the rows of ``manifest`` that no segment of ``base`` has.

    Some of the others may be written again, as ``compaction`` says.

    ``base`` is the commit before.  If ``forget``, no row that does not count may stay
    stored.

    Returns:
        The same manifest, whose rows may stand in another order.
    """
    manifest = _numbered(manifest)
    before = unchanged_rows(base.manifest, manifest)
    live = [segment.live for segment in base.segments]
    starts = np.cumsum([0, *map(len, live)])
    segment_of = np.searchsorted(starts, before, side="right") - 1
    left = np.bincount(segment_of[before >= 0], minlength=len(live)).tolist()
    rewritten = to_rewrite(
        left,
        [segment.n_rows or 0 for segment in base.segments],
        int((before < 0).sum()),
        forget=forget,
    )
    stays = (before >= 0) & ~np.isin(segment_of, list(rewritten))
    old = np.flatnonzero(stays)
    old = old[np.argsort(before[old], kind="stable")]
    cuts = np.searchsorted(before[old], starts)
    segments = [
        segment.with_live(live[i][before[old[cuts[i] : cuts[i + 1]]] - starts[i]])
        for i, segment in enumerate(base.segments)
        if cuts[i] < cuts[i + 1]
    ]
    new = np.flatnonzero(~stays)
    in_order = manifest.take(np.concatenate([old, new]))
    if len(new) or not _says_columns(base, segments, manifest):
        for at in range(0, max(1, len(new)), compaction.FULL):
            rows = new[at : at + compaction.FULL]
            segments.append(_written(location, manifest.take(rows).referenced()))
    written = Loaded(in_order, tuple(segments))
    _require_readable(written)
    return written


def _require_readable(written: Loaded) -> None:
    """Count the memory of the segments as ``load`` does, if it may be too much."""
    if written.manifest.n_bytes <= MAX_UNPACKED // 2:
        return  # of the one manifest; its pieces have narrower types
    at = n_bytes = 0
    for segment in written.segments:
        n_live = segment.n_live
        rows = written.manifest.take(np.arange(at, at + n_live))
        n_bytes += narrowed(rows.referenced()).n_bytes
        at += n_live
    _require_memory(n_bytes)


def _require_memory(n_bytes: int) -> None:
    limit = f"the manifest takes too much memory (at most {MAX_UNPACKED} bytes)"
    require(n_bytes <= MAX_UNPACKED, limit)


def _says_columns(
    base: Loaded, segments: Sequence[Segment], manifest: Manifest
) -> bool:
    """Whether a reader of these segments of ``base`` finds the manifest's columns."""
    if not segments:
        return not manifest.stats
    then, now = (
        {name: column.domain for name, column in one.stats.items()}
        for one in (base.manifest, manifest)
    )
    # The last segment has all columns: it was written with all that were known.
    return then == now and segments[-1].name == base.segments[-1].name


def _written(location: Location, manifest: Manifest) -> Segment:
    with checking("it is not a manifest"):
        data = manifest.to_checked_bytes(MAX_MANIFEST)
    name = hashlib.sha256(data).hexdigest()[:32] + ".arrow"
    segment = Segment(name, len(data), crc32c(data), len(manifest))
    location.write(segment.path, data)
    return segment


def _numbered(manifest: Manifest) -> Manifest:
    """The manifest where every pack has an order, greater than those before it."""
    known = [pack.order for pack in manifest.packs]
    fresh = max((order for order in known if order is not None), default=-1) + 1
    if fresh + len(known) > MAX_ORDER:
        fresh, known = 0, [None] * len(known)
    orders: list[int] = []
    for order in known:
        if order is not None and order > (orders[-1] if orders else -1):
            orders.append(order)
        else:
            orders.append(fresh)
            fresh += 1
    packs = tuple(
        pack if pack.order == order else replace(pack, order=order)
        for pack, order in zip(manifest.packs, orders, strict=True)
    )
    return manifest if packs == manifest.packs else replace(manifest, packs=packs)
