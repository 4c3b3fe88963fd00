"""The chunks of a dictionary: sorted distinct values, packed and unpacked.

A chunk holds 2,048 integers, or about 16 KB of byte strings::

    u8   form: bit 7, what follows is a zstd frame
               bits 0-3, w, the bytes of a number; 0, one u64 stands for all
    integers     the n - 1 gaps between neighbours
    bytes        n lengths, then the strings

Numbers are plain u8, u16, u32 or u64; in a frame they are w planes of a byte each, the
lowest first.  The first integer of a chunk, and its n, are in the payload's header.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import zstandard

from skipindex.errors import CorruptIndexError
from skipindex.expressions.arrays import Ints, Words
from skipindex.indexes.encoding.ranks import layout_of

INTS_PER_CHUNK: Final = 2048
CHUNK_BYTES: Final = 1 << 14
_ZSTD: Final = 0x80
_LEVEL: Final = 1
_WORTH: Final = 0.75
"""A chunk is compressed if it shrinks to this share, since reading it costs more."""
_WORTH_FROM: Final = 1 << 10
"""Fewer bytes than this are never compressed."""
_MAX_RAW: Final = 1 << 31
"""Bytes of a chunk before compression."""
_FEW_TEXTS: Final = 256
"""Texts up to which a chunk becomes a list."""
_OF_A_TEXT: Final = 48
"""Bytes that Python takes for a byte string beside its own, and for its place."""
_BLOCK: Final = 1 << 18
"""Byte strings that are measured together; a chunk has fewer."""


@dataclass(frozen=True, slots=True)
class IntChunk:
    """The integers of a chunk.

    ``above_first`` is how far every integer but the first is above the first.
    """

    above_first: Words

    @property
    def n_bytes(self) -> int:
        """What they take in memory."""
        return self.above_first.nbytes


@dataclass(frozen=True, slots=True)
class Texts:
    """Byte strings that lie one after another; as a sequence fit for bisection.

    ``ends`` is where each ends, or the length that all of them have.
    """

    data: memoryview
    n: int
    ends: Sequence[int] | Ints | int

    @property
    def n_bytes(self) -> int:
        """About what they take in memory."""
        n_ends = 0 if isinstance(self.ends, int) else len(self.ends)
        return len(self.data) + 8 * n_ends

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int, /) -> bytes:
        if isinstance(self.ends, int):
            return bytes(self.data[i * self.ends : (i + 1) * self.ends])
        return bytes(self.data[self.ends[i - 1] if i else 0 : self.ends[i]])

    def to_arrow(self) -> pa.LargeBinaryArray:
        """The same strings as an array, without a copy of them."""
        if isinstance(self.ends, int):
            offsets = np.arange(self.n + 1, dtype=np.int64) * self.ends
        else:
            offsets = np.concatenate(([0], self.ends)).astype(np.int64)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.large_binary(), self.n, buffers)


class FewTexts(list[bytes]):
    """A few byte strings as a list, in which a bisection takes a tenth of the time."""

    @property
    def n_bytes(self) -> int:
        """About what they take in memory."""
        return sum(map(len, self)) + _OF_A_TEXT * len(self)


def pack_ints(distinct: Ints) -> Iterator[bytes]:
    """The chunks of sorted distinct integers."""
    compressor = zstandard.ZstdCompressor(level=_LEVEL)
    for at in range(0, len(distinct), INTS_PER_CHUNK):
        chunk = distinct[at : at + INTS_PER_CHUNK].view(np.uint64)
        # Modulo 2**64, so that a gap of more than 2**63 is right too.
        yield _packed(compressor, chunk[1:] - chunk[:-1], b"")


def unpack_ints(raw: memoryview, n: int) -> IntChunk:
    """The ``n`` integers of a chunk."""
    gaps, rest = _unpacked(raw, n - 1)
    if len(rest):
        raise CorruptIndexError(f"a dictionary chunk has {len(rest)} bytes too many")
    if isinstance(gaps, int):
        return IntChunk(np.arange(1, n, dtype=np.uint64) * np.uint64(gaps))
    return IntChunk(np.cumsum(gaps, dtype=np.uint64))


def pack_texts(distinct: pa.LargeBinaryArray, ends: Iterable[int]) -> Iterator[bytes]:
    """The chunks of sorted distinct byte strings, cut at ``ends``."""
    compressor = zstandard.ZstdCompressor(level=_LEVEL)
    offsets, data = layout_of(distinct)
    start = 0
    for end in ends:
        at = offsets[start : end + 1]
        text = data[int(at[0]) : int(at[-1])].tobytes()
        yield _packed(compressor, np.diff(at).view(np.uint64), text)
        start = end


def unpack_sorted(raw: memoryview, n: int) -> Texts | FewTexts:
    """The strings of ``unpack_texts``, for many bisections."""
    texts = unpack_texts(raw, n)
    return FewTexts(texts[i] for i in range(n)) if n <= _FEW_TEXTS else texts


def unpack_texts(raw: memoryview, n: int) -> Texts:
    """The ``n`` byte strings of a chunk."""
    lengths, data = _unpacked(raw, n)
    if isinstance(lengths, int):
        texts, size = Texts(data, n, lengths), lengths * n
    else:
        ends = np.cumsum(lengths, dtype=np.int64)
        texts, size = Texts(data, n, ends), int(ends[-1])
    if size != len(data):
        raise CorruptIndexError(
            f"a dictionary chunk of {n} strings has {len(data)} bytes of text, and "
            f"says {size}"
        )
    return texts


def text_ends(distinct: pa.LargeBinaryArray) -> list[int]:
    """Where to cut sorted byte strings into chunks of about 16 KB, as end positions."""
    n = len(distinct)
    if not n:
        return []
    offsets, _ = layout_of(distinct)
    ends: list[int] = []
    start = 0
    while start < n:
        # Block by block: of some million strings, weights take as much as lengths do.
        some = offsets[start : start + _BLOCK + 1]
        weights = some - some[0] + np.arange(len(some))  # a length costs a byte or so
        is_last, at = start + len(some) > n, 0
        while at + 1 < len(some):
            full = int(weights.searchsorted(weights[at] + CHUNK_BYTES, side="right"))
            if full == len(some) and not is_last and at:
                break
            at = min(len(some) - 1, max(full - 1, at + 1))
            ends.append(start + at)
        start += at
    return ends


def _packed(compressor: zstandard.ZstdCompressor, numbers: Words, text: bytes) -> bytes:
    width, plain, planes = _in_bytes(numbers)
    content = plain.tobytes() + text
    if len(content) >= _WORTH_FROM:
        frame = compressor.compress(planes + text)
        if len(frame) <= _WORTH * len(content):
            return bytes([_ZSTD | width]) + frame
    return bytes([plain.itemsize if width else 0]) + content


def _in_bytes(numbers: Words) -> tuple[int, npt.NDArray[Any], bytes]:
    """The width of numbers, and themselves, plain and in planes."""
    if not len(numbers) or (numbers == numbers[0]).all():
        one = np.append(numbers[:1], np.zeros(1, np.uint64))[:1].astype("<u8")
        return 0, one, one.tobytes()
    greatest = int(numbers.max())
    width = (greatest.bit_length() + 7) // 8
    as_bytes = numbers.astype("<u8").view(np.uint8).reshape(-1, 8)
    planes = np.ascontiguousarray(as_bytes[:, :width].T).tobytes()
    return width, numbers.astype(np.min_scalar_type(greatest).newbyteorder("<")), planes


def _unpacked(raw: memoryview, n: int) -> tuple[npt.NDArray[Any] | int, memoryview]:
    """The ``n`` numbers at the front of a chunk, or what all of them are; the rest."""
    form = raw[0] if len(raw) else 15
    width, content = form & 15, raw[1:]
    if width > 8 or form & 0x70:
        raise CorruptIndexError(f"a dictionary chunk of {len(raw)} bytes has no form")
    if form & _ZSTD:
        content = decompressed(content, _MAX_RAW)
    if len(content) < (n * width or 8):
        raise CorruptIndexError(
            f"a dictionary chunk has {len(content)} bytes for {n} numbers"
        )
    if not width:
        return int.from_bytes(content[:8], "little"), content[8:]
    if not form & _ZSTD:
        return np.frombuffer(content, f"<u{width}", n), content[n * width :]
    as_bytes = np.zeros((n, 8), np.uint8)
    planes = np.frombuffer(content, np.uint8, n * width)
    as_bytes[:, :width] = planes.reshape(width, n).T
    return as_bytes.view("<u8").reshape(n), content[n * width :]


def decompressed(frame: memoryview, limit: int) -> memoryview:
    """What is in a zstd frame, if it is less than ``limit`` bytes.

    Raises:
        CorruptIndexError: it is not, or the frame is damaged.
    """
    try:
        size = zstandard.frame_content_size(frame)
        if not 0 < size < limit:
            raise CorruptIndexError(f"a zstd frame claims {size} bytes")
        # A decompressor is not safe to share between threads, and cheap to make.
        return memoryview(zstandard.ZstdDecompressor().decompress(frame))
    except (zstandard.ZstdError, MemoryError) as error:
        raise CorruptIndexError(f"a zstd frame is damaged ({error})") from error
