"""The cache on disk of packs and segments, which processes of one user share.

Packs and segments are named by a hash of their content, so a table that was rebuilt at
the same place has other ones.  Each has files of its own here, ``<digest>-<region>``,
where the digest is of its place and name.  A file has blocks of 4096 bytes, those that
were never read are holes::

    checksum  u64  xxh3_64 of the data; its seed has the digest, the number of the
                   block in the pack, and the length
    length    u32  bytes of the data; below 4084 only at the end of the pack
    data

A block without the right checksum is read from the store again.  So a writer that is
killed or out of space, and two writers at once, do no harm, and nothing is locked.
What is in a pack is checked once more by its reader, as if the store had sent it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from xxhash import xxh3_64_intdigest

from skipindex.errors import PlanError, StorageError, first_line
from skipindex.storage.deadline import carried
from skipindex.storage.file_system import store_input
from skipindex.storage.file_system.byte_source import ByteSource
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.store_input import Range, StoreSource
from skipindex.storage.file_system.walk import open_regular

DIR_VARIABLE: Final = "SKIPINDEX_CACHE_DIR"
DIR_SETTING: Final = "skipindex.cacheDir"
DISK_BYTES: Final = 1 << 30
"""Bytes of the cache, if not given."""
_VERSION: Final = 1
_BLOCK: Final = 4096
_HEAD: Final = struct.Struct("<QI")
_DATA: Final = _BLOCK - _HEAD.size
"""Bytes of a block, and of its data."""
_REGION: Final = 4096
"""Blocks of a file, which is evicted as a whole."""
_WINDOW: Final = 16
"""Blocks that are read at least, as small parts are asked for one after the other."""
_UNCOUNTED: Final = 8 << 20
"""Most bytes that a process writes before it looks at the size of the cache."""
_STEP: Final = _REGION * _DATA // 16
"""Bytes that ``warm`` reads by one request, and of ranges that become one."""
_AT_ONCE: Final = 16
"""Requests of ``warm`` that are under way at once."""
_NAME: Final = re.compile(r"[0-9a-f]{32}-[0-9]+")
_SEED: Final = (1 << 64) - 1


@dataclass(slots=True)
class DiskCache:
    """A folder of this user that no other can write to, up to a number of bytes.

    The files that were used least recently are evicted.
    """

    folder: str
    limit: int = DISK_BYTES
    n_new: int = 1 << 62  # bytes that were written since the size was looked at

    def is_usable(self) -> bool:
        """Whether there is such a folder; it is made if there is none."""
        with contextlib.suppress(OSError):
            Path(self.folder).mkdir(0o700, parents=True, exist_ok=True)
            here = os.lstat(self.folder)
            is_own = here.st_uid == os.geteuid() and not here.st_mode & 0o022
            return stat.S_ISDIR(here.st_mode) and is_own
        return False

    def evict(self) -> None:
        """Delete the files that were used least recently, down to the limit."""
        self.n_new, files = 0, []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if _NAME.fullmatch(entry.name):
                    with contextlib.suppress(FileNotFoundError):  # evicted by others
                        here = entry.stat(follow_symlinks=False)
                        n_bytes = 512 * here.st_blocks
                        files.append((here.st_mtime_ns, n_bytes, entry.path))
        total = sum(n_bytes for _, n_bytes, _ in files)
        for _, n_bytes, path in sorted(files):
            if total <= self.limit:
                break
            Path(path).unlink(missing_ok=True)
            total -= n_bytes


@dataclass(slots=True)
class DiskFile:
    """What the cache has of one pack or segment; no call raises an error.

    ``window`` is where the blocks begin that were read last, and their data.
    """

    cache: DiskCache
    digest: bytes
    window: tuple[int, memoryview] = (0, memoryview(b""))

    @staticmethod
    def whole_blocks(offset: int, length: int) -> Range:
        """The blocks that have a range, which may end beyond the file."""
        begin = offset // _DATA * _DATA
        return begin, -(-(offset + length) // _DATA) * _DATA - begin

    def read(self, offset: int, length: int) -> memoryview | None:
        """The bytes, fewer if the file ends before; None if they are not cached."""
        if length <= 0:
            return None
        begin, data = self.window
        if not begin <= offset <= offset + length <= begin + len(data):
            first, end = offset // _DATA, -(-(offset + length) // _DATA)
            pieces = list(self._pieces(first, max(end, first + _WINDOW)))
            is_end = bool(pieces) and len(pieces[-1]) < _DATA
            if len(pieces) < end - first and not is_end:
                return None
            begin, data = first * _DATA, memoryview(b"".join(pieces))
            if len(pieces) <= _WINDOW:
                self.window = begin, data
        return data[offset - begin :][:length]

    def _pieces(self, first: int, end: int) -> Iterator[memoryview]:
        """The data of blocks, up to one that is not cached, or the file's last one."""
        for path, start, stop in self._regions(first, end):
            raw = _read(path, start % _REGION * _BLOCK, (stop - start) * _BLOCK)
            for at in range(0, (stop - start) * _BLOCK, _BLOCK):
                if len(raw) < at + _HEAD.size:
                    return
                checksum, size = _HEAD.unpack_from(raw, at)
                data = raw[at + _HEAD.size : at + _HEAD.size + size]
                is_whole = 0 < size <= _DATA and len(data) == size
                number = start + at // _BLOCK
                if not is_whole or checksum != self._checksum(number, data):
                    return
                yield data
                if size < _DATA:
                    return

    def write(self, offset: int, data: memoryview) -> None:
        """Cache ``whole_blocks``, or those up to the end of the file."""
        try:
            first, end = offset // _DATA, -(-(offset + len(data)) // _DATA)
            if first < end and self.cache.is_usable():
                for path, start, stop in self._regions(first, end):
                    begin = start * _DATA - offset
                    some = data[begin : begin + (stop - start) * _DATA]
                    self._write(path, start, some)
                if self.cache.n_new > min(_UNCOUNTED, self.cache.limit // 16):
                    self.cache.evict()
        except OSError:  # the disk is full, or nothing may be written
            return

    def _write(self, path: str, start: int, data: memoryview) -> None:
        pieces: list[bytes | memoryview] = []
        for at in range(0, len(data), _DATA):
            piece = data[at : at + _DATA]
            checksum = self._checksum(start + at // _DATA, piece)
            pieces += [_HEAD.pack(checksum, len(piece)), piece]
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        file = os.open(path, flags, 0o600)
        try:
            raw = b"".join(pieces)
            os.pwrite(file, raw, start % _REGION * _BLOCK)
            self.cache.n_new += len(raw)
        finally:
            os.close(file)

    def forget(self) -> None:
        """Drop everything of this file."""
        self.window = 0, memoryview(b"")
        with contextlib.suppress(OSError):
            for path in Path(self.cache.folder).glob(f"{self.digest.hex()}-*"):
                path.unlink(missing_ok=True)

    def _regions(self, first: int, end: int) -> Iterator[tuple[str, int, int]]:
        """Blocks ``first .. end - 1``, cut at the ends of the files that have them."""
        while first < end:
            region = first // _REGION
            stop = min(end, (region + 1) * _REGION)
            yield f"{self.cache.folder}/{self.digest.hex()}-{region}", first, stop
            first = stop

    def _checksum(self, number: int, data: memoryview) -> int:
        seed = int.from_bytes(self.digest[:8]) + (number << 13) + len(data)
        return xxh3_64_intdigest(data, seed & _SEED)


def _read(path: str, offset: int, length: int) -> memoryview:
    """What is there of some bytes; the file counts as used now."""
    try:
        file = open_regular(path)
    except OSError:
        return memoryview(b"")
    try:
        with contextlib.suppress(OSError):  # a read-only disk
            os.utime(file)
        return memoryview(os.pread(file, length, offset))
    except OSError:
        return memoryview(b"")
    finally:
        os.close(file)


class CachedSource:
    """A file of which what is read stays in ``blocks`` on disk."""

    def __init__(self, source: ByteSource, blocks: DiskFile) -> None:
        self.source = source
        self.blocks = blocks

    def __len__(self) -> int:
        return len(self.source)

    def read(self, offset: int, length: int) -> memoryview:
        """Exactly ``length`` bytes, or fewer where the file ends before."""
        if length <= 0:
            return memoryview(b"")
        there = held(self, offset, length)
        if there is not None:
            return there
        begin, n_bytes = self.blocks.whole_blocks(offset, length)
        data = self.source.read(begin, n_bytes)
        self.blocks.write(begin, data)
        return data[offset - begin :][:length]


def held(source: ByteSource, offset: int, length: int) -> memoryview | None:
    """Bytes of a file that no request is needed for; None if one is."""
    if isinstance(source, StoreSource):
        return source.held(offset, length)
    if not isinstance(source, CachedSource):
        return None
    there = held(source.source, offset, length)
    return source.blocks.read(offset, length) if there is None else there


def fetch_ahead(wanted: Iterable[tuple[ByteSource, Range]]) -> None:
    """Like that of ``store_input``, for what is not on disk yet; it is cached there."""
    plain: list[tuple[ByteSource, Range]] = []
    ranges: dict[CachedSource, list[Range]] = {}
    for source, one in wanted:
        if not isinstance(source, CachedSource):
            plain.append((source, one))
        elif held(source.source, *one) is None:
            ranges.setdefault(source, []).append(one)
    missing: list[tuple[CachedSource, Range]] = []
    for source, some in ranges.items():
        pieces, gaps = [], []
        for one in sorted(some):  # so a block is read once
            data = source.blocks.read(*one)
            if data is None:
                gaps.append(source.blocks.whole_blocks(*one))
            else:
                pieces.append((one[0], data))
        if isinstance(source.source, StoreSource):
            source.source.hold(pieces)
        missing += [(source, one) for one in _joined(gaps)]
    inner = [(source.source, one) for source, one in missing]
    store_input.fetch_ahead([*plain, *inner])
    for source, (start, length) in missing:
        data = held(source.source, start, length)
        if data is not None:
            source.blocks.write(start, data)


def _joined(ranges: Iterable[Range]) -> list[Range]:
    """Sorted ranges, where short ones that overlap or follow one another are one."""
    result: list[Range] = []
    for start, length in ranges:
        begin, n_bytes = result[-1] if result else (0, -1)
        end = max(begin + n_bytes, start + length)
        if start <= begin + n_bytes and end - begin <= _STEP:
            result[-1] = begin, end - begin
        else:
            result.append((start, length))
    return result


_given: Final[list[DiskCache | None]] = []
"""What ``set_cache_dir`` has set last."""


def set_cache_dir(
    folder: str | os.PathLike[str] | None, *, n_bytes: int = DISK_BYTES
) -> None:
    """Cache index bytes in a folder on disk, for all tables that are opened later.

    Later plans, also those of other processes, then read less of object stores and
    network disks; no answer changes.  Until this is called, it is what the environment
    variable ``SKIPINDEX_CACHE_DIR`` says, or ``~/.cache/skipindex`` for object stores
    alone.  A folder that others own or can write to is not used.

    Args:
        folder: made if there is none; None caches nothing on disk.
        n_bytes: the most bytes in the folder.

    Raises:
        PlanError: this is not a number of bytes.

    >>> from skipindex.api import set_cache_dir
    >>> set_cache_dir(None)
    """
    if type(n_bytes) is not int or n_bytes <= 0:
        raise PlanError(
            f"set_cache_dir: cannot keep {n_bytes!r} bytes of indexes (accepted: a "
            "whole number above 0)"
        )
    _given[:] = [_cache_of("" if folder is None else os.fspath(folder), n_bytes)]


def use_setting(folder: str | None) -> None:
    """Cache in the folder that a session names; None leaves all as it is."""
    if folder is not None:
        _given[:] = [_cache_of(folder, DISK_BYTES)]


def cached_source(location: Location, path: str, source: ByteSource) -> ByteSource:
    """The source of a pack, or one that reads what it can from the cache."""
    file = disk_file(location, path)
    return source if file is None else CachedSource(source, file)


def warm(
    location: Location,
    wanted: Sequence[tuple[str, Range]],
    count: Callable[[int, int], object],
) -> None:
    """Cache ranges of packs, of which ``count`` gets the MB read and those of all.

    Raises:
        StorageError: they are not to be cached, or do not fit, or cannot be read.
    """
    files = {path: disk_file(location, path) for path, _ in wanted}
    total = sum(length for _, (_, length) in wanted)
    caches = [file.cache for file in files.values() if file is not None]
    if not caches:
        raise StorageError(
            f"no index bytes of {location.full('')!r} can be cached on disk (accepted: "
            f"for tables on disks too, {DIR_VARIABLE} with a folder of yours that no "
            "other user can write to; indexes)"
        )
    if total > caches[0].limit * _DATA // _BLOCK:
        raise StorageError(
            f"{total:,} bytes of indexes do not fit into the cache of "
            f"{caches[0].limit:,} bytes on disk (accepted: fewer columns, or "
            "skipindex.api.set_cache_dir with more n_bytes)"
        )
    views = {path: cached_source(location, path, location.view(path)) for path in files}
    steps = [
        (views[path], at, min(_STEP, start + length - at))
        for path, (start, length) in wanted
        for at in range(start, start + length, _STEP)
    ]

    def read(step: tuple[ByteSource, int, int]) -> int:
        source, start, length = step
        return len(source.read(start, length))

    pool, done = ThreadPoolExecutor(_AT_ONCE), 0
    try:
        for n_bytes in pool.map(carried(read), steps):
            done += n_bytes
            count(done // 1_000_000, total // 1_000_000)
    except OSError as error:
        raise StorageError(f"an index cannot be read: {first_line(error)}") from error
    finally:
        pool.shutdown(cancel_futures=True)


def disk_file(location: Location, path: str) -> DiskFile | None:
    """The cache of a pack or segment, whose name must be a hash of its content.

    None if it is not to be cached, or if there is no folder for it.
    """
    place = location.at(path)
    cache = _given[0] if _given else _of_environment(is_local=place.is_local)
    if cache is None or not cache.is_usable():
        return None
    # Stores of two owners may have a bucket of one name.
    servers = [str(v) for name, v in place.options if name.startswith("endpoint")]
    key = "\0".join([str(_VERSION), *servers, place.plain_path(path)])
    return DiskFile(cache, hashlib.sha256(os.fsencode(key)).digest()[:16])


def _of_environment(*, is_local: bool) -> DiskCache | None:
    folder = os.environ.get(DIR_VARIABLE)
    if folder is None and not is_local:
        base = os.environ.get("XDG_CACHE_HOME", "")
        folder = f"{base if base.startswith('/') else '~/.cache'}/skipindex"
    return None if folder is None else _cache_of(folder, DISK_BYTES)


@lru_cache(maxsize=16)
def _cache_of(folder: str, n_bytes: int) -> DiskCache | None:
    """The cache in a folder; None if it is empty, or in the home of an unknown user."""
    full = os.path.expanduser(folder)  # noqa: PTH111 (a link in it stays)
    if not full or full.startswith("~"):
        return None
    return DiskCache(str(Path(full).absolute()), n_bytes)
