"""What is read of a log is checked here, with limits, before anything uses it.

Every byte below ``_skipindex`` may be damaged or of others.  What does not hold is no
part of the log: ``CorruptIndexError`` for a commit or a manifest, and a note for one
property of a table, the others of which are still good.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from crc32c import crc32c

from skipindex.errors import CorruptIndexError
from skipindex.storage.file_system.names import (
    is_data_file,
    is_hidden_copy,
    is_pack_name,
    is_plain_path,
    published,
)

MAX_COMMIT: Final = 256 << 20
MAX_MANIFEST: Final = 1 << 30
"""Bytes of a file; a larger one is not read."""
MAX_UNPACKED: Final = 4 << 30
"""Bytes of a manifest in memory."""
_FREE: Final = 64 << 20
_RATIO: Final = 4096
"""Beyond ``_FREE`` bytes, how many times as large as the file it may be in memory."""
_MAX_BATCHES: Final = 64
"""Pieces of a manifest; we write one."""
_MAX_DEPTH: Final = 64
_MAX_INT: Final = (1 << 63) - 1
_MAX_ROWS: Final = 1 << 40
"""Of one data file; the sum over millions of them is still an int64."""
_MAX_SECONDS: Final = 1e11

READING: Final = (
    OSError,
    KeyError,
    IndexError,
    TypeError,
    ValueError,  # what is no JSON, no UTF-8, or a CorruptIndexError
    AttributeError,
    OverflowError,
    RecursionError,
    MemoryError,
    struct.error,
    pa.ArrowException,
)
"""What reading foreign bytes may raise."""


def canonical(body: Any) -> bytes:
    """The bytes whose crc32c stands beside ``body``."""
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


def sealed(name: str, body: Mapping[str, Any]) -> bytes:
    """``body`` as a file that ``unsealed`` reads."""
    outer = {name: body, "crc32c": crc32c(canonical(body))}
    return json.dumps(outer, indent=1, sort_keys=True).encode()


def unsealed(name: str, data: bytes) -> dict[str, Any]:
    """The object ``name`` of a JSON file, checked against the crc32c beside it.

    Raises:
        CorruptIndexError: it fails its crc32c, or is no such file.
    """
    try:
        outer = json.loads(data, parse_constant=_no_number)
        body = outer[name]
        _require(crc32c(canonical(body)) == outer["crc32c"], "it fails its crc32c")
        _require(isinstance(body, dict), "it is no object")
        _check_depth(body)
    except CorruptIndexError:
        raise
    except READING as error:
        raise CorruptIndexError(f"it is no {name}: {first_line(error)}") from error
    return dict(body)


def first_line(error: BaseException) -> str:
    """One line that says what is wrong."""
    text = str(error).partition("\n")[0][:200]
    return text or type(error).__name__


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


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


def _require(good: object, problem: str) -> None:
    if not good:
        raise CorruptIndexError(problem)


def whole(value: Any, low: int = 0, high: int = _MAX_INT) -> int:
    """``value``, if it is an integer between the limits.

    Raises:
        CorruptIndexError: it is not.
    """
    _require(type(value) is int and low <= value <= high, "a number is out of range")
    return int(value)


def _seconds(value: Any) -> None:
    good = type(value) in {int, float} and 0 <= value < _MAX_SECONDS
    _require(good and math.isfinite(value), "a time is out of range")


def _texts(value: Any, what: str) -> None:
    good = isinstance(value, list) and all(isinstance(v, str) for v in value)
    _require(good, f"{what} is no list of names")


def _files(
    value: Any, is_ours: Callable[[str], bool], what: str, *, or_none: bool = False
) -> list[str]:
    some = isinstance(value, list) and (or_none or bool(value))
    _require(some, f"there are no {what} files")
    for entry in value:
        _require(isinstance(entry, list) and len(entry) == 3, "a file is no triple")
        path, size, mtime = entry
        ours = is_plain_path(path) and is_ours(path)
        _require(ours, f"{str(path)[:200]!r} is no {what} file of the table")
        whole(size, 1)
        whole(mtime, -_MAX_INT)
    return [entry[0] for entry in value]


def check_replacements(records: Any) -> None:
    """Check the replacements of a table, as ``Rewrites`` writes them.

    Raises:
        CorruptIndexError: they are none that we would write.
    """
    _require(isinstance(records, list), "the replacements are no list")
    old: list[str] = []
    new: list[str] = []
    for record in records:
        _require(isinstance(record, dict), "a replacement is no object")
        arrival = record.get("arrival", False)
        _require(isinstance(arrival, bool), "arrival is no bool")
        old += _files(record.get("old"), is_data_file, "visible", or_none=arrival)
        new += _files(record.get("new"), is_hidden_copy, "hidden")
        _seconds(record.get("since"))
        _require(isinstance(record.get("publishing"), bool), "publishing is no bool")
        publication = record.get("publication")
        _require(publication is None or is_id(publication), "publication is no id")
    every = [*old, *new, *map(published, new)]
    _require(len(set(every)) == len(every), "a file is in two replacements")
    _require(all(map(is_data_file, map(published, new))), "a copy cannot be published")


def is_id(value: Any) -> bool:
    """Whether this is an id of a publication."""
    return (
        isinstance(value, str)
        and len(value) == 32
        and all(letter in "0123456789abcdef" for letter in value)
    )


def _check_rewrites(value: Any) -> None:
    check_replacements(value.get("replacements", []))
    trash = value.get("trash", [])
    _require(isinstance(trash, list), "the trash is no list")
    for entry in trash:
        _require(isinstance(entry, list) and len(entry) == 2, "trash is no pair")
        path, since = entry
        ours = is_plain_path(path) and is_hidden_copy(path)
        _require(ours, f"{str(path)[:200]!r} is no hidden file of the table")
        _seconds(since)


def _check_cubes(value: Any) -> None:
    _require(isinstance(value, list), "it is no list")
    for cube in value:
        _require(isinstance(cube, dict), "a cube is no object")
        shape = cube.get("shape")
        _require(isinstance(shape, dict), "a shape is no object")
        _texts(shape.get("cluster_by"), "cluster_by")
        _require(isinstance(cube.get("size"), dict), "a size is no object")
        _require(isinstance(cube.get("run"), str), "a run is no text")
        _require(isinstance(cube.get("sealed"), bool), "sealed is no bool")
        _texts(cube.get("paths"), "paths")


def _check_layout(value: Any) -> None:
    for name in ("cluster_by", "sort_within", "partition_by"):
        _texts(value.get(name) or [], name)
    for name in ("rows_per_file", "bytes_per_file"):
        if value.get(name) is not None:
            whole(value[name], 1)
    curve = value.get("curve")
    _require(curve is None or isinstance(curve, str), "curve is no name")


def _check_object(value: Any) -> None:
    _require(isinstance(value, dict), "it is no object")


_PROPERTIES: Final[Mapping[str, Callable[[Any], None]]] = {
    "rewrites": _check_rewrites,
    "cubes": _check_cubes,
    "layout": _check_layout,
    "choice": _check_object,
    "derived": _check_object,
}


def usable_properties(value: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The properties that can be used, and notes on those that are ignored.

    A property that is not known is none of ours to judge, and stays.

    Raises:
        CorruptIndexError: they are no object.
    """
    _require(isinstance(value, dict), "the properties are no object")
    good, notes = {}, []
    for name, content in value.items():
        check = _PROPERTIES.get(name)
        try:
            if check is not None:
                if name != "cubes":
                    _check_object(content)
                check(content)
        except READING as error:
            notes.append(f"property {name!r} ignored: {first_line(error)}")
        else:
            good[name] = content
    return good, tuple(notes)


def check_pack(record: Any) -> None:
    """Check a pack and its blobs, as the metadata of a manifest have them.

    Raises:
        CorruptIndexError: it is none that we would write.
    """
    _require(is_pack_name(record["name"]), "a pack has a name that is not ours")
    whole(record["size"])
    for blob in record["blobs"]:
        texts = [blob["kind"], blob["column"], blob["domain"]]
        _require(all(isinstance(text, str) for text in texts), "a blob has no name")
        _require(isinstance(blob["spec"], dict), "the spec of a blob is no object")
        whole(blob["version"], 0, (1 << 16) - 1)
        whole(blob["offset"])
        whole(blob["length"])
        whole(blob["crc32c"], 0, (1 << 32) - 1)
        whole(blob["offset"] + blob["length"])


def check_unpacked(data: bytes) -> None:
    """Refuse an Arrow file that takes too much memory, before it is unpacked.

    Raises:
        CorruptIndexError: its buffers say that they are too large.
    """
    limit = min(MAX_UNPACKED, _FREE + _RATIO * len(data))
    _require(unpacked_bytes(data) <= limit, "it is too large when it is unpacked")


def unpacked_bytes(data: bytes) -> int:
    """How large the buffers of an Arrow file say that they are."""
    total = 0
    for i, message in enumerate(pa.ipc.MessageReader.open_stream(stream_of(data))):
        _require(i <= _MAX_BATCHES, "it is in too many pieces")
        body = memoryview(message.body) if message.body is not None else b""
        for offset, length in _buffers(bytes(message.metadata)):
            if 0 <= offset <= offset + length <= len(body) and length >= 8:
                # -1 stands for a buffer that was not worth packing.
                (claimed,) = struct.unpack_from("<q", body, offset)
                total += max(claimed, 0)
    return total


def stream_of(data: bytes) -> pa.Buffer:
    """The stream in an Arrow file: what comes after ``ARROW1`` and two zeros.

    The footer could name other rows than those that were checked; no reader asks it.
    """
    return pa.py_buffer(data)[8:]


_SCHEMA: Final = 1
_RECORD_BATCH: Final = 3


def _buffers(metadata: bytes) -> list[tuple[int, int]]:
    """Offset and length of the buffers of a record batch; of other messages none.

    The metadata are a FlatBuffers table: Message {version, header_type, header, …}
    with the header RecordBatch {length, nodes, buffers, compression}.
    """

    def slot(table: int, number: int) -> int | None:
        vtable = table - struct.unpack_from("<i", metadata, table)[0]
        at = 4 + 2 * number
        if at >= struct.unpack_from("<H", metadata, vtable)[0]:
            return None
        (offset,) = struct.unpack_from("<H", metadata, vtable + at)
        return table + offset if offset else None

    def follow(place: int) -> int:
        return int(place + struct.unpack_from("<I", metadata, place)[0])

    message = follow(0)
    kind, header = slot(message, 1), slot(message, 2)
    _require(kind is not None and header is not None, "a message has no header")
    assert kind is not None
    assert header is not None
    if metadata[kind] == _SCHEMA:
        return []
    _require(metadata[kind] == _RECORD_BATCH, "it holds more than rows")
    vector = slot(follow(header), 2)
    if vector is None:
        return []
    start = follow(vector)
    (n,) = struct.unpack_from("<I", metadata, start)
    _require(16 * n <= len(metadata), "it has too many buffers")
    flat = struct.unpack_from(f"<{2 * n}q", metadata, start + 4)
    return list(zip(flat[::2], flat[1::2], strict=True))


def check_files(files: pa.Table, n_packs: int) -> None:
    """Check the rows of a manifest without the statistics.

    Raises:
        CorruptIndexError: they contradict themselves.
    """
    files.validate(full=True)
    for field in files.schema:
        holes = not field.nullable and files[field.name].null_count
        _require(not holes, f"{field.name} is missing for a file")
    # A file that could not be read has -1 rows.
    for name, low, high in (("size", 0, _MAX_INT), ("n_rows", -1, _MAX_ROWS)):
        values = files[name].to_numpy()
        good = not len(values) or (values.min() >= low and values.max() <= high)
        _require(good, f"{name} of a file is out of range")
    lists = [files[name].combine_chunks() for name in ("packs", "slots")]
    lengths = [pc.list_value_length(values).to_numpy() for values in lists]
    _require(np.array_equal(*lengths), "a file has packs without slots")
    for values, high in zip(lists, (n_packs - 1, _MAX_INT), strict=True):
        flat = pc.list_flatten(values)
        _require(flat.null_count == 0, "a pack or slot is missing")
        numbers = flat.to_numpy()
        good = not len(numbers) or (numbers.min() >= 0 and numbers.max() <= high)
        _require(good, "a file has a pack that there is not")


def check_stats(values: pa.Array, n_files: int) -> None:
    """Check the statistics of one column.

    Raises:
        CorruptIndexError: they are of another form than ours.
    """
    _require(len(values) == n_files, "there are too few statistics")
    _require(values.type in _STATS, "there are statistics of another form")
    values.validate(full=True)


def _stats_type(value: pa.DataType) -> pa.DataType:
    numbers = [("null_count", pa.int64()), ("nan_count", pa.int64())]
    bounds = [("low", value), ("high", value)]
    exact = [("low_exact", pa.bool_()), ("high_exact", pa.bool_())]
    return pa.struct([*numbers, *bounds, *exact])


_STATS: Final[Sequence[pa.DataType]] = [
    _stats_type(pa.int64()),
    _stats_type(pa.large_binary()),
]
"""As ``indexes.minmax`` writes them."""
