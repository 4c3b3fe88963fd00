"""Reading one object of a store in ranges."""

from __future__ import annotations

import contextlib
import io
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from skipindex.storage.cache import Cache
from skipindex.storage.deadline import carried, check
from skipindex.storage.file_system.byte_source import ByteSource, too_short

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_TAIL: Final = 1 << 16
"""The bytes at the end of a file that come with the first read there; the footer of
most Parquet files is among them."""
_NEAR: Final = 1 << 16
"""Ranges with fewer bytes between them come by one request."""
MAX_AHEAD: Final = 64 << 20
"""Bytes that are held for reads to come."""
MAX_RANGE: Final = 4 << 20
"""Most bytes of a range that is read ahead; of a larger one only what is asked for."""
_AT_ONCE: Final = 32
"""Calls of obstore that are under way at once."""
_REQUESTS: Final = 8
"""Requests that a call makes; of more than ten, obstore lets some wait for others."""
_SINGLE: Final = 128
"""Calls that are under way at once if each is one request."""
_OVERLAPS: Final = 4
"""Ranges looked at that begin before a place."""
_AHEAD: Final = Cache(MAX_AHEAD)
"""Ranges that were read before they were asked for, of all sources.  A cache of its
own, as plans read ahead too where no index bytes are to be held."""

Range: TypeAlias = tuple[int, int]
"""Where bytes begin, and how many there are."""


class StoreSource:
    """The bytes of one object.

    ``errors`` makes errors of obstore those of the system.  Every read must find the
    ETag ``tag``; None is any.
    """

    def __init__(
        self,
        store: ObjectStore,
        key: str,
        errors: Callable[[], AbstractContextManager[None]],
        size: int | None = None,
        tag: str | None = None,
    ) -> None:
        self._store = store
        self._key = key
        self._errors = errors
        self._size = size
        self._tag = tag
        self._starts: list[int] = []  # of ranges that were read ahead, sorted

    def __len__(self) -> int:
        if self._size is None:
            import obstore  # noqa: PLC0415 (of the extra "stores")

            with self._errors():
                self._size = obstore.head(self._store, self._key)["size"]
        return self._size

    def read(self, offset: int, length: int) -> memoryview:
        """Exactly ``length`` bytes, or fewer where the object ends before."""
        if length <= 0 or (self._size is not None and offset >= self._size):
            return memoryview(b"")
        held = self.held(offset, length)
        if held is not None:
            return held
        check()
        try:
            return self._fetch(offset, length)
        except OSError:
            if self._size is None and offset >= len(self):
                return memoryview(b"")  # no store answers for what is beyond the end
            raise

    def _fetch(self, offset: int, length: int) -> memoryview:
        import obstore  # noqa: PLC0415

        options: Any = {"range": (offset, offset + length)}
        if self._tag is not None:
            options["if_match"] = f'"{self._tag}"'
        with self._errors():
            result = obstore.get(self._store, self._key, options=options)
            self._size = result.meta["size"]
            data = memoryview(bytes(result.bytes()))
        length = min(length, self._size - offset)
        if len(data) < length:
            raise too_short(self._key, len(data), length)
        return data

    @property
    def n_requests(self) -> int:
        """How many requests one call of ``fetch_ahead`` may make."""
        return _REQUESTS if self._tag is None else 1

    def expect(self, ranges: Iterable[Range]) -> None:
        """Look for these ranges among those that were read ahead."""
        # What another thread puts here meanwhile is lost, and costs a request.
        self._starts = sorted({*self._starts, *(start for start, _ in ranges)})

    def hold(self, pieces: Sequence[tuple[int, memoryview]]) -> None:
        """Hold bytes of the object, and where they begin, for the reads to come."""
        self.expect((start, len(data)) for start, data in pieces)
        for start, data in pieces:
            _AHEAD.keep((self, start), data, len(data))

    def fetch_ahead(self, ranges: Sequence[Range]) -> None:
        """Hold some ranges for the reads to come; neighbours come by one request."""
        import obstore  # noqa: PLC0415

        starts = [start for start, length in ranges if length > 0]
        lengths = [length for _, length in ranges if length > 0]
        if not starts:
            return
        if self._tag is not None:  # obstore has no condition for several ranges
            begin = min(starts)
            end = max(start + length for start, length in ranges)
            whole = self._fetch(begin, end - begin)
            for start, length in ranges:
                piece = whole[start - begin : start - begin + length]
                _AHEAD.keep((self, start), piece, len(piece))
            return
        with self._errors():
            result = obstore.get_ranges(
                self._store, self._key, starts=starts, lengths=lengths, coalesce=_NEAR
            )
        for start, length, data in zip(starts, lengths, result, strict=True):
            if len(data) < length:  # the object ends there
                self._size = start + len(data)
            _AHEAD.keep((self, start), memoryview(bytes(data)), len(data))

    def held(self, offset: int, length: int) -> memoryview | None:
        """The bytes of a range that was read ahead; None if they are not held.

        They are fewer if the object ends before.
        """
        if self._size is not None:
            length = max(0, min(length, self._size - offset))
        starts = self._starts
        end = bisect_right(starts, offset)
        for start in reversed(starts[max(0, end - _OVERLAPS) : end]):
            # Not marked as used: what was not read yet is needed more.
            for data in _AHEAD.find((self, start)).forms.get(object, ()):
                if offset - start + length <= len(data):
                    piece: memoryview = data[offset - start : offset - start + length]
                    return piece
        return None


def fetch_ahead(wanted: Iterable[tuple[ByteSource, Range]]) -> None:
    """Read ranges of many objects at once, and hold them for the reads to come.

    Other sources than objects of a store are left out, and ranges that are too large.
    An error is left to the read that follows.
    """
    by_source: dict[StoreSource, list[Range]] = {}
    room = MAX_AHEAD
    for source, (start, length) in wanted:
        if not isinstance(source, StoreSource):
            continue
        if start < 0 or not 0 < length <= min(room, MAX_RANGE):
            continue
        if source.held(start, length) is None:
            room -= length
            by_source.setdefault(source, []).append((start, length))
    if not by_source:
        return
    for source, ranges in by_source.items():
        source.expect(ranges)

    tasks = [
        (source, some)
        for source, ranges in by_source.items()
        for some in _dealt(sorted(ranges), source.n_requests)
    ]

    def fetch(task: tuple[StoreSource, list[Range]]) -> None:
        source, ranges = task
        with contextlib.suppress(OSError):
            source.fetch_ahead(ranges)

    at_once = max(_SINGLE if one.n_requests == 1 else _AT_ONCE for one in by_source)
    with ThreadPoolExecutor(min(len(tasks), at_once)) as pool:
        list(pool.map(carried(fetch), tasks))


def _dealt(ranges: Sequence[Range], most: int = _REQUESTS) -> Iterator[list[Range]]:
    """Sorted ranges by call; each makes a few requests, which no other call makes."""
    some: list[Range] = []
    n_requests, end = 0, 0
    for start, length in ranges:
        if not some or start - end > _NEAR:
            if n_requests == most:
                yield some
                some, n_requests = [], 0
            n_requests += 1
        some.append((start, length))
        end = max(end, start + length)
    yield some


def as_file(source: ByteSource) -> pa.NativeFile:
    """An object as a file that Arrow reads."""
    return pa.PythonFile(StoreInput(source), mode="r")


def tail_of(size: int) -> Range:
    """The bytes at the end of an object that come with the first read there."""
    return max(0, size - _TAIL), min(size, _TAIL)


class StoreInput(io.RawIOBase):
    """An object as a Python file, which Arrow reads; its end is read once."""

    def __init__(self, source: ByteSource) -> None:
        super().__init__()
        self._source = source
        self._at = 0
        self._tail: memoryview | None = None

    def readable(self) -> bool:
        """Whether it can be read: yes."""
        return True

    def seekable(self) -> bool:
        """Whether any place can be read: yes."""
        return True

    def tell(self) -> int:
        """The place of the next read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: len(self._source)}
        self._at = max(0, base[whence] + offset)
        return self._at

    def read(self, size: int = -1) -> bytes:
        """The next bytes; fewer at the end."""
        left = max(0, len(self._source) - self._at)
        length = left if size < 0 else min(size, left)
        data = self._read_at(self._at, length)
        self._at += len(data)
        return data

    def _read_at(self, offset: int, length: int) -> bytes:
        start, n_bytes = tail_of(len(self._source))
        if offset < start:
            return bytes(self._source.read(offset, length))
        if self._tail is None:
            self._tail = self._source.read(start, n_bytes)
        return bytes(self._tail[offset - start : offset - start + length])
