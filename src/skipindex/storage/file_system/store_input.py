"""Reading one object of a store in ranges."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_TAIL: Final = 1 << 16
"""The bytes at the end of a file that come with the first read there; the footer of
most Parquet files is among them."""
_NEAR: Final = 1 << 16
"""Ranges with fewer bytes between them come by one request."""


class StoreSource:
    """The bytes of one object.

    Args:
        store: the bucket.
        key: of the object.
        errors: makes errors of obstore those of the system.
        size: of the object, if it is known.
        tag: the ETag that every read must find; None is any.
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

    def __len__(self) -> int:
        if self._size is None:
            import obstore  # noqa: PLC0415 (of the extra "stores")

            with self._errors():
                self._size = obstore.head(self._store, self._key)["size"]
        return self._size

    def read(self, offset: int, length: int) -> memoryview:
        """Exactly ``length`` bytes, or fewer where the object ends before."""
        import obstore  # noqa: PLC0415

        if self._size is not None:
            length = min(length, self._size - offset)
        if length <= 0:
            return memoryview(b"")
        options: Any = {"range": (offset, offset + length)}
        if self._tag is not None:
            options["if_match"] = f'"{self._tag}"'
        with self._errors():
            found = obstore.get(self._store, self._key, options=options)
            self._size = found.meta["size"]
            return memoryview(bytes(found.bytes()))

    def read_many(self, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        """Several ranges at once; neighbours come by one request."""
        import obstore  # noqa: PLC0415

        wanted = [(start, length) for start, length in ranges if length > 0]
        if not wanted:
            return [memoryview(b"") for _ in ranges]
        with self._errors():
            found = iter(
                obstore.get_ranges(
                    self._store,
                    self._key,
                    starts=[start for start, _ in wanted],
                    lengths=[length for _, length in wanted],
                    coalesce=_NEAR,
                )
            )
        return [memoryview(bytes(next(found)) if n > 0 else b"") for _, n in ranges]


class StoreInput(io.RawIOBase):
    """An object as a Python file, which Arrow reads; its end is read once.

    Args:
        source: the object.
    """

    def __init__(self, source: StoreSource) -> None:
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
        start = max(0, len(self._source) - _TAIL)
        if offset < start:
            return bytes(self._source.read(offset, length))
        if self._tail is None:
            self._tail = self._source.read(start, _TAIL)
        return bytes(self._tail[offset - start : offset - start + length])
