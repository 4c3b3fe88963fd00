"""Checking everything that is read from a log against limits, before it is used.

Every byte below ``_skipindex`` may be damaged or foreign.  A commit or a manifest
that fails a check raises ``CorruptIndexError``; ``properties`` has the checks of a
table's properties, where one that fails leaves the others as they are.
"""

from __future__ import annotations

import contextlib
import errno
import json
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from crc32c import crc32c

from skipindex.errors import CorruptIndexError, first_line
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import is_pack_name

MAX_COMMIT: Final = 256 << 20
MAX_MANIFEST: Final = 1 << 30
"""Bytes of a file; a larger one is not read."""
MAX_UNPACKED: Final = 4 << 30
"""Bytes of a manifest in memory."""
_MAX_UNPACKED_OF_SMALL: Final = 64 << 20
"""Bytes that a manifest may have in memory however small its file is."""
_MAX_RATIO: Final = 4096
"""How many times as large as its file a manifest may be in memory, if not small."""
_MAX_BATCHES: Final = 64
"""Pieces of a manifest; we write one."""
_MAX_DEPTH: Final = 64
"""Levels of objects and lists in JSON."""
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
MAX_INT: Final = (1 << 63) - 1
"""The greatest int64."""
MAX_ORDER: Final = 1 << 53
"""The greatest number that says how new a pack is."""
_MAX_ENCODING: Final = 64
"""Letters of an encoding's name."""
_MAX_ROWS: Final = 1 << 40
"""Most rows of one data file; the sum over millions of them is still an int64."""

_CHECKING: Final = (
    OSError,  # what Arrow makes of an IPC message that is none
    KeyError,
    IndexError,
    TypeError,
    ValueError,  # what is no JSON, no UTF-8, or a CorruptIndexError
    AttributeError,
    OverflowError,
    struct.error,
    pa.ArrowException,
)
"""What checking foreign bytes raises where they are wrong."""
_SHORT_OF: Final = (MemoryError, RecursionError)
"""What checking whole bytes raises too, where a process has too little of one."""
_IS_NO_FILE: Final = frozenset(
    {
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.ELOOP,
        errno.EINVAL,
        errno.ENXIO,
        errno.EFBIG,
    }
)
"""Errors of the system if there is no file, or something else than one of ours."""


class RefusedError(CorruptIndexError):
    """The bytes cannot be read or checked now, and may be whole.

    Only bytes that were read and fail a check are damaged.  A reader goes on without
    those that are refused, and a writer does not commit over them.
    """


def fetched(location: Location, path: str, limit: int) -> bytes:
    """The bytes of a file."""
    try:
        return location.read(path, limit)
    except Exception as error:
        no_file = isinstance(error, OSError) and (
            error.errno in _IS_NO_FILE or isinstance(error, FileNotFoundError)
        )
        kind = CorruptIndexError if no_file else RefusedError
        raise kind(reason(error)) from error


@contextlib.contextmanager
def checking(what: str) -> Iterator[None]:
    """Errors while bytes are checked that were read; ``CorruptIndexError`` stays.

    Args:
        what: what is wrong with bytes that cannot be understood.

    Raises:
        CorruptIndexError: the bytes are wrong.
        RefusedError: nothing is known to be wrong with them.
    """
    try:
        yield
    except CorruptIndexError:
        raise
    except Exception as error:
        wrong = isinstance(error, _CHECKING) and not isinstance(error, _SHORT_OF)
        kind = CorruptIndexError if wrong else RefusedError
        raise kind(f"{what}: {reason(error)}") from error


def canonical(body: Any) -> bytes:
    """The bytes whose crc32c stands beside ``body``."""
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


def sealed(name: str, body: Mapping[str, Any]) -> bytes:
    """``body`` as a file that ``unsealed`` reads."""
    outer = {name: body, "crc32c": crc32c(canonical(body))}
    return json.dumps(outer, indent=1, sort_keys=True).encode()


def unsealed(name: str, data: bytes) -> dict[str, Any]:
    """The object ``name`` of a JSON file, checked against the crc32c beside it."""
    with checking(f"it is no {name}"):
        outer = parsed(data)
        body = outer[name]
        _check_depth(body)
        require(crc32c(canonical(body)) == outer["crc32c"], "it fails its crc32c")
        require(isinstance(body, dict), "it is no object")
    return dict(body)


def parsed(data: bytes) -> Any:
    """The value of a JSON text."""
    try:
        return json.loads(data, parse_constant=_no_number)
    except RecursionError:
        depth = deepest = 0
        for bracket in re.findall(rb"[][{}]", _STRING.sub(b"", data)):
            depth += 1 if bracket in b"[{" else -1
            deepest = max(deepest, depth)
        require(deepest <= _MAX_DEPTH, f"it is nested more than {_MAX_DEPTH} deep")
        raise


def reason(error: BaseException) -> str:
    """One short line that says what is wrong with foreign bytes, and may quote them."""
    return first_line(error)[:200]


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _check_depth(body: Any) -> None:
    level = [body]
    for _ in range(_MAX_DEPTH):
        inner: list[Any] = []
        for value in level:
            children = value.values() if isinstance(value, dict) else value
            inner += [child for child in children if isinstance(child, (dict, list))]
        level = inner
        if not level:
            return
    raise CorruptIndexError(f"it is nested more than {_MAX_DEPTH} deep")


def require(good: object, problem: str) -> None:
    """Raise ``CorruptIndexError`` with ``problem`` unless ``good`` is true."""
    if not good:
        raise CorruptIndexError(problem)


def checked_int(value: Any, low: int = 0, high: int = MAX_INT) -> int:
    """``value``, if it is an integer between the limits."""
    if type(value) is int and low <= value <= high:
        return value
    raise CorruptIndexError("a number is out of range")


def checked_packs(records: Iterable[Any]) -> Iterator[Any]:
    """The packs of a manifest's metadata: each is checked, and then their order."""
    orders = []
    for record in records:
        _check_pack(record)
        orders.append(record.get("order"))
        yield record
    known = [order for order in orders if order is not None]
    require(known in ([], orders), "some packs have no order")
    require(known == sorted(known), "the packs are not in their order")


def _check_pack(record: Any) -> None:
    """Check one pack and its blobs."""
    require(is_pack_name(record["name"]), "a pack has a name of another form")
    checked_int(record["size"])
    if "order" in record:
        checked_int(record["order"], 0, MAX_ORDER)
    for blob in record["blobs"]:
        for key in ("kind", "column", "domain"):
            require(isinstance(blob[key], str), "a blob has no name")
        require(isinstance(blob["spec"], dict), "the spec of a blob is no object")
        checked_int(blob["version"], 0, (1 << 16) - 1)
        checked_int(blob["crc32c"], 0, (1 << 32) - 1)
        checked_int(checked_int(blob["offset"]) + checked_int(blob["length"]))
        encodings = blob.get("encodings", {})
        require(isinstance(encodings, dict), "the encodings of a blob are no object")
        for encoding, n_files in encodings.items():
            require(len(encoding) <= _MAX_ENCODING, "an encoding has a long name")
            checked_int(n_files)


def check_unpacked(data: bytes) -> None:
    """Refuse an Arrow file that takes too much memory, before it is unpacked."""
    limit = min(MAX_UNPACKED, _MAX_UNPACKED_OF_SMALL + _MAX_RATIO * len(data))
    require(unpacked_bytes(data) <= limit, "it is too large when it is unpacked")


def unpacked_bytes(data: bytes) -> int:
    """How large the buffers of an Arrow file say that they are."""
    total = 0
    for i, message in enumerate(pa.ipc.MessageReader.open_stream(stream_of(data))):
        require(i <= _MAX_BATCHES, "it is in too many pieces")
        body = memoryview(message.body) if message.body is not None else b""
        for offset, length in _buffers(bytes(message.metadata)):
            if 0 <= offset <= offset + length <= len(body) and length >= 8:
                # -1 stands for a buffer that was not worth packing.
                (claimed,) = struct.unpack_from("<q", body, offset)
                total += max(claimed, 0)
    return total


def stream_of(data: bytes) -> pa.Buffer:
    """The stream in an Arrow file: what comes after ``ARROW1`` and two zeros.

    The footer could name other rows than those that were checked, so it is not read.
    """
    return pa.py_buffer(data)[8:]


_SCHEMA: Final = 1
_RECORD_BATCH: Final = 3


def _buffers(metadata: bytes) -> list[tuple[int, int]]:
    """Offset and length of the buffers of a record batch; of other messages none."""

    def slot(table: int, number: int) -> int | None:
        vtable = table - struct.unpack_from("<i", metadata, table)[0]
        at = 4 + 2 * number
        if at >= struct.unpack_from("<H", metadata, vtable)[0]:
            return None
        (offset,) = struct.unpack_from("<H", metadata, vtable + at)
        return table + offset if offset else None

    def follow(place: int) -> int:
        return int(place + struct.unpack_from("<I", metadata, place)[0])

    # A FlatBuffers table: Message {version, header_type, header, …} with the header
    # RecordBatch {length, nodes, buffers, compression}.
    message = follow(0)
    kind, header = slot(message, 1), slot(message, 2)
    require(kind is not None and header is not None, "a message has no header")
    assert kind is not None
    assert header is not None
    if metadata[kind] == _SCHEMA:
        return []
    require(metadata[kind] == _RECORD_BATCH, "it holds more than rows")
    vector = slot(follow(header), 2)
    if vector is None:
        return []
    start = follow(vector)
    (n,) = struct.unpack_from("<I", metadata, start)
    require(16 * n <= len(metadata), "it has too many buffers")
    flat = struct.unpack_from(f"<{2 * n}q", metadata, start + 4)
    return list(zip(flat[::2], flat[1::2], strict=True))


def check_files(files: pa.Table, n_packs: int) -> None:
    """Check the rows of a manifest without the statistics."""
    for field in files.schema:
        holes = not field.nullable and files[field.name].null_count
        require(not holes, f"{field.name} is missing for a file")
    # A file that could not be read has -1 rows.
    for name, low, high in (("size", 0, MAX_INT), ("n_rows", -1, _MAX_ROWS)):
        values = files[name].to_numpy()
        good = not len(values) or (values.min() >= low and values.max() <= high)
        require(good, f"{name} of a file is out of range")
    _check_groups(files["groups"].combine_chunks(), files["n_rows"])
    lists = [files[name].combine_chunks() for name in ("packs", "slots")]
    lengths = [pc.list_value_length(values).to_numpy() for values in lists]
    require(np.array_equal(*lengths), "a file has packs without slots")
    for values, high in zip(lists, (n_packs - 1, MAX_INT), strict=True):
        flat = pc.list_flatten(values)
        require(flat.null_count == 0, "a pack or slot is missing")
        numbers = flat.to_numpy()
        good = not len(numbers) or (numbers.min() >= 0 and numbers.max() <= high)
        require(good, "a file names a pack or slot that is not there")


def _check_groups(groups: pa.Array, n_rows: pa.ChunkedArray) -> None:
    """Check that the rows of the row groups of each file add up to its rows."""
    is_listed = pc.greater(pc.binary_length(groups), 0).fill_null(False)
    listed = groups.filter(is_listed)
    whole = pa.ListArray.from_arrays(pa.array([0, len(listed)], pa.int32()), listed)
    lengths = pc.binary_length(listed).to_numpy()
    require(not (lengths % 24).any(), "a row group has no rows, first byte and bytes")
    numbers = np.frombuffer(pc.binary_join(whole, b"")[0].as_py(), "<i8").reshape(-1, 3)
    good = numbers.min(initial=0) >= 0 and numbers[:, 0].max(initial=0) <= _MAX_ROWS
    require(good, "the rows or bytes of a row group are out of range")
    ends = np.append(0, numbers[:, 0].cumsum())
    sums = np.diff(ends[np.append(0, lengths // 24).cumsum()])
    good = np.array_equal(sums, n_rows.filter(is_listed).to_numpy())
    require(good, "the row groups of a file have another number of rows")


def check_stats(kind: pa.DataType) -> None:
    """Check the type of the statistics of one column."""
    require(kind in _STATS, "there are statistics of another form")


def stats_type(value: pa.DataType) -> pa.StructType:
    """The type of the statistics of one column, whose bounds are of type ``value``."""
    numbers = [("null_count", pa.int64()), ("nan_count", pa.int64())]
    bounds = [("low", value), ("high", value)]
    exact = [("low_exact", pa.bool_()), ("high_exact", pa.bool_())]
    return pa.struct([*numbers, *bounds, *exact])


_STATS: Final[Sequence[pa.DataType]] = [
    stats_type(pa.int64()),
    stats_type(pa.large_binary()),
]
"""The types of statistics that a manifest has."""
