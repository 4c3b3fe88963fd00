"""Ways to spoil a log: by its structure, with every checksum mended."""

from __future__ import annotations

import base64
import copy
import functools
import json
import os
import random
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from crc32c import crc32c

from skipindex.storage.checks import canonical, stream_of
from skipindex.storage.file_system.names import LOG, MANIFESTS, PACKS

_UNREADABLE: Final = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    OverflowError,
    MemoryError,
    RecursionError,
    struct.error,
)
"""What reading a table may raise that is spoiled already."""

Spoil = Callable[[Path, random.Random], None]

_SPARSE: Final = 64 << 30
_PATHS: Final = (
    "../victim.txt",
    "../home/thesis.tex",
    "../beside/part-0.parquet",
    "../beside/_skipindex-abc-0/part-0.parquet",
    "day=0/../../victim.txt",
    "/etc/passwd",
    "_notes.txt",
    "_skipindex-backup/part-0.parquet",
    "_skipindex-abc-0/../../home/part-0.parquet",
    "day=0/0.parquet",
    "day=1/1.parquet",
    "day=0",
    ".",
    "..",
    "",
    "a\0b",
    "\ud800",
    "x" * 5000,
)


def _deep(n: int) -> Any:
    value: Any = 1
    for _ in range(n):
        value = [value]
    return value


def _nasty(rng: random.Random) -> Any:
    return rng.choice(
        [
            None,
            True,
            -1,
            0,
            1,
            2**31,
            2**32,
            2**63 - 1,
            2**63,
            2**64,
            10**400,
            -(2**64),
            0.5,
            1e308,
            float("nan"),
            [],
            {},
            [[]],
            [1, 2, 3],
            {"a": {"b": 1}},
            _deep(60),
            _deep(500),
            "²³",
            "00",
            "A" * 100_000,
            *_PATHS,
        ]
    )


Place = tuple[Any, Any]
"""A list or an object, and an index of it."""


def _places(value: Any) -> Iterator[Place]:
    keys: Any = ()
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = range(len(value))
    for key in keys:
        yield value, key
        yield from _places(value[key])


def spoil_json(body: Any, rng: random.Random) -> None:
    """Change one to three places of an object."""
    for _ in range(rng.randint(1, 3)):
        places = list(_places(body))
        if not places:
            return
        holder, key = rng.choice(places)
        match rng.randrange(6):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[key]))
            case 2:
                other, at = rng.choice(places)
                value = other[at] if not isinstance(other, list) else other[at - 1]
                holder[key] = copy.deepcopy(value)
            case 3 if isinstance(holder, dict):
                holder[f"{key}-of-others"] = _nasty(rng)
            case 4 if isinstance(holder[key], int):
                holder[key] += rng.choice([-1, 1, 2**31, 2**62])
            case _:
                holder[key] = _nasty(rng)


def _commits(table: Path) -> list[Path]:
    return sorted(p for p in (table / LOG).glob("0*.json") if p.is_file())


def _reseal(path: Path, name: str, change: Callable[[Any], None]) -> None:
    try:
        body = json.loads(path.read_text())[name]
        change(body)
        outer = {name: body, "crc32c": crc32c(canonical(body))}
        path.write_text(json.dumps(outer))
    except _UNREADABLE:
        if _cleared(path):
            path.write_text("[" * 100_000)


def commit(table: Path, rng: random.Random) -> None:
    """Change places of the newest commit."""
    for path in _commits(table)[-1:]:
        _reseal(path, "commit", lambda body: spoil_json(body, rng))


def properties(table: Path, rng: random.Random) -> None:
    """Change places of its properties alone."""

    def change(body: Any) -> None:
        spoil_json(body["properties"], rng)

    for path in _commits(table)[-1:]:
        _reseal(path, "commit", change)


def _file(table: Path, rng: random.Random) -> list[Any]:
    files = [p for p in table.rglob("*.parquet*") if p.is_file()]
    paths = [str(p.relative_to(table)) for p in files]
    path = rng.choice([*_PATHS, *paths])
    try:
        found = (table / path).stat()
    except (OSError, ValueError):
        return [path, rng.choice([0, 1, 2**64]), rng.choice([0, -1, 2**70])]
    return [path, found.st_size, found.st_mtime_ns]


def rewrites(table: Path, rng: random.Random) -> None:
    """Replacements and trash of arbitrary files that exist, or not."""

    def files() -> list[Any]:
        return [_file(table, rng) for _ in range(rng.randint(0, 3))]

    def change(body: Any) -> None:
        replacements = [
            {
                "old": files(),
                "new": files(),
                "since": rng.choice([0, 0, 1e9, 1e300, -5]),
                "overwrites": rng.choice([True, False, False, 7]),
            }
            for _ in range(rng.randint(1, 3))
        ]
        if rng.random() < 0.2:  # around in a circle
            one = replacements[0]
            replacements.append({**one, "old": one["new"], "new": one["old"]})
        trash = [[*_file(table, rng), rng.choice([0, -1, 2**80])] for _ in range(3)]
        known = body["properties"].get("rewrites", {})
        record = {}
        for name in ("replacements", "shown"):
            kept = known.get(name, []) if rng.random() < 0.5 else []
            is_more = rng.random() < 0.5
            record[name] = [*kept, *replacements] if is_more else kept
        body["properties"]["rewrites"] = {**record, "trash": trash}

    for path in _commits(table)[-1:]:
        _reseal(path, "commit", change)


def _with_segment(table: Path, data: bytes, n_rows: int | None = None) -> None:
    """Let the newest segment of the newest commit be these bytes, of so many rows."""
    if not (table / MANIFESTS).is_dir():  # it was spoiled before
        return
    (table / MANIFESTS / "abc.arrow").write_bytes(data)

    def change(body: Any) -> None:
        named = {"name": "abc.arrow", "size": len(data), "crc32c": crc32c(data)}
        segment = body["segments"][-1]
        segment.update(named)
        if n_rows is not None:
            segment["rows"] = n_rows
            segment.pop("dead", None)

    for path in _commits(table)[-1:]:
        _reseal(path, "commit", change)


def _segment(table: Path) -> bytes | None:
    for path in _commits(table)[-1:]:
        try:
            name = json.loads(path.read_text())["commit"]["segments"][-1]["name"]
            return (table / MANIFESTS / name).read_bytes()
        except _UNREADABLE:
            pass
    return None


def segments(table: Path, rng: random.Random) -> None:
    """Change which segments the newest commit names, and which rows are dead."""

    def packed(bitmap: bytes) -> str:
        return base64.b64encode(zlib.compress(bitmap)).decode()

    def change(body: Any) -> None:
        every = body["segments"]
        one, other = rng.choice(every), rng.choice(every)
        match rng.randrange(8):
            case 0:
                one["dead"] = packed(rng.randbytes(-(-one["rows"] // 8)))
            case 1:
                one["dead"] = packed(rng.randbytes(rng.choice([0, 1, 2, 50])))
            case 2:
                one["dead"] = packed(bytes(rng.choice([1 << 20, 1 << 26])))
            case 3:
                one.pop("dead", None)
            case 4:
                every.append({**one, "dead": other.get("dead", "")})
            case 5:
                one.update({key: other[key] for key in ("name", "size", "crc32c")})
            case 6:
                every.remove(one)
            case _:
                one["rows"] = rng.choice([0, 1, 7, 2**31 - 1, 2**31, one["rows"] + 1])

    for path in _commits(table)[-1:]:
        _reseal(path, "commit", change)


def manifest_bytes(table: Path, rng: random.Random) -> None:
    """Change bytes of the manifest, its metadata more often than its rows."""
    data = _segment(table)
    if data is None:
        return
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        at = rng.randrange(8, len(found))
        match rng.randrange(3):
            case 0:
                found[at] = rng.randrange(256)
            case 1:
                found[at : at + 4] = struct.pack("<i", rng.choice([-1, 0, 2**31 - 1]))
            case _:
                number = rng.choice([-1, 2**62, 2**40, 2**33, 1])
                found[at : at + 8] = struct.pack("<q", number)
    _with_segment(table, bytes(found))


def manifest_rows(table: Path, rng: random.Random) -> None:
    """Change columns of the manifest, or what its metadata say of packs."""
    data = _segment(table)
    if data is None:
        return
    try:
        rows = pa.ipc.open_stream(stream_of(data)).read_all()
        rows.validate(full=True)  # it may be spoiled already
        packs = json.loads(rows.schema.metadata[b"packs"])
        for _ in range(rng.randint(1, 2)):
            rows, packs = _spoiled(rows, packs, rng)
        text = json.dumps(packs)
    except (*_UNREADABLE, pa.ArrowException):
        return
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    rows = rows.replace_schema_metadata({"packs": text})
    with pa.ipc.new_file(sink, rows.schema, options=options) as writer:
        writer.write_table(rows)
    _with_segment(table, sink.getvalue().to_pybytes(), len(rows))


def _spoiled(rows: pa.Table, packs: Any, rng: random.Random) -> tuple[pa.Table, Any]:
    at = rng.randrange(len(rows.schema))
    field, column = rows.schema.field(at), rows.column(at)
    n = len(rows)
    match rng.randrange(7):
        case 0:
            spoil_json(packs, rng)
        case 1:
            rows = rows.remove_column(at)
        case 2:
            column = pa.array([_PATHS[i % 14] for i in range(n)])
            rows = rows.set_column(at, pa.field(field.name, pa.string()), column)
        case 3:
            numbers = [rng.choice([-1, 2**62, 2**63 - 1, 0]) for _ in range(n)]
            kind = rng.choice([pa.int64(), field.type])
            if pa.types.is_list(kind):
                column = pa.array([[i % 2**31, 7] for i in numbers], kind)
            elif pa.types.is_integer(kind):
                column = pa.array([i % 2**32 for i in numbers]).cast(kind, safe=False)
            else:
                column = pa.array(numbers)
            named = pa.field(field.name, column.type, metadata=field.metadata)
            rows = rows.set_column(at, named, column)
        case 4:
            empty = pa.nulls(n, field.type)
            named = field.with_nullable(True)
            rows = rows.set_column(at, named, empty)
        case 5:
            metadata = {"column": rng.choice(["x", "\0", "none"]), "domain": "string"}
            rows = rows.append_column(
                pa.field("more", pa.int64(), metadata=metadata), pa.nulls(n, pa.int64())
            )
        case _:
            rows = pa.concat_tables([rows] * rng.choice([0, 2, 50]))
    return rows, packs


@functools.cache
def _bomb(n: int, packs: bytes) -> bytes:
    text = pa.array([b"\0" * (64 << 20)] * n, pa.large_binary())
    batch = pa.record_batch([text], names=["path"])
    batch = batch.replace_schema_metadata({b"packs": packs})
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, batch.schema, options=options) as writer:
        for _ in range(n):
            writer.write_batch(batch)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def bomb(table: Path, rng: random.Random) -> None:
    """A manifest of kilobytes that takes a quarter of a gigabyte in memory."""
    _with_segment(table, _bomb(rng.choice([1, 2]), b"[]"))


def pack(table: Path, rng: random.Random) -> None:
    """Change a blob, and mend its checksums up to the manifest's."""
    data = _segment(table)
    if data is None:
        return
    try:
        rows = pa.ipc.open_stream(stream_of(data)).read_all()
        rows.validate(full=True)  # it may be spoiled already
        packs = json.loads(rows.schema.metadata[b"packs"])
        one = rng.choice(packs)
        path = table / PACKS / one["name"]
        content = bytearray(path.read_bytes())
        blob = rng.choice(one["blobs"])
        begin, end = blob["offset"], blob["offset"] + blob["length"]
        start, length, _ = struct.unpack_from("<QII", content, end - 16)
        directory = begin + start
        if rng.random() < 0.2:
            content[begin + rng.randrange(16)] = rng.randrange(256)
        else:
            at = directory + rng.randrange(0, length - 4)
            value = rng.choice([0, 1, 7, 255, 2**16, 2**31, 2**32 - 1])
            struct.pack_into("<I", content, at, value)
        header = bytes(content[begin : begin + 16])
        crc = crc32c(bytes(content[directory : directory + length]), crc32c(header))
        struct.pack_into("<I", content, end - 4, crc)
        path.write_bytes(bytes(content))
        blob["crc32c"] = crc
    except (*_UNREADABLE, pa.ArrowException):
        return
    sink = pa.BufferOutputStream()
    changed = rows.replace_schema_metadata({"packs": json.dumps(packs)})
    with pa.ipc.new_file(sink, changed.schema) as writer:
        writer.write_table(changed)
    _with_segment(table, sink.getvalue().to_pybytes())


def _ours(table: Path) -> list[Path]:
    inside = [table / "_skipindex", *(table / "_skipindex").rglob("*")]
    hidden = [p for p in table.rglob("_skipindex-*") if "backup" not in p.name]
    copies = [p for folder in hidden for p in (folder, *folder.rglob("*"))]
    foreign = {"notes.txt", "thesis.tex", "readme.md"}
    return [p for p in [*inside, *copies] if p.name not in foreign]


def other_things(table: Path, rng: random.Random) -> None:
    """Something else in the place of a file or a folder of ours, or beside it."""
    choices = _ours(table)
    path = rng.choice(choices)
    if rng.random() < 0.4:
        newest = len(_commits(table))
        name = rng.choice(
            [
                f"{LOG}/{newest:020d}.json",
                f"{LOG}/{'9' * 20}.json",
                f"{LOG}/²³.json",
                f"{LOG}/-1.json",
                f"{LOG}/{10**14:020d}.json",
                f"{PACKS}/{'a' * 32}.puffin",
                f"{MANIFESTS}/{'b' * 32}.arrow",
                "_skipindex/staging/run",
                "_skipindex-abc-0",
                "day=0/_skipindex-abc-0",
                f"day=0/_skipindex-{'c' * 32}-0/part-00000.parquet",
                "day=0/_skipindex",
                "day=1/loop",
            ]
        )
        path = table / name
    foreign = [p for p in path.rglob("*") if p.is_file()] if path.is_dir() else []
    names = {"notes.txt", "thesis.tex", "readme.md"}
    if any(p.name in names for p in foreign):
        return  # what is not ours lies in it
    put_instead(path, rng)


def _cleared(path: Path) -> bool:
    """Whether nothing is at a path any more, and something may be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.is_dir():
            shutil.rmtree(path)
        elif path.exists():
            path.unlink()
    except OSError:
        return False
    return True


def put_instead(path: Path, rng: random.Random) -> None:
    """Put something else at a path."""
    if not _cleared(path):
        return
    up = os.path.relpath(_place_of(path), path.parent)
    match rng.randrange(12):
        case 0:
            os.mkfifo(path)
        case 1:
            path.mkdir()
        case 2:
            path.symlink_to(path.name)
        case 3:
            path.symlink_to(f"{up}/home")
        case 4:
            path.symlink_to(f"{up}/victim.txt")
        case 5:
            path.symlink_to(rng.choice(["/dev/zero", "/dev/stdin", "/proc/self/mem"]))
        case 6:
            path.symlink_to(rng.choice(["..", ".", "../..", "/"]))
        case 7:
            path.touch()
            os.truncate(path, _SPARSE)
        case 8:
            path.touch()
        case 9:
            path.write_bytes(rng.randbytes(rng.choice([1, 100, 10_000])))
        case 10:
            path.write_text(rng.choice(["[" * 100_000, "{}", "null", '{"commit":{}}']))
        case _:
            return  # it is gone
    if not path.is_symlink() and rng.random() < 0.5:
        os.utime(path, (1e9, 1e9))


def _place_of(path: Path) -> Path:
    """The folder in which the table lies."""
    return next(parent.parent for parent in path.parents if parent.name == "table")


SPOILS: Final[dict[str, Spoil]] = {
    spoil.__name__: spoil
    for spoil in (
        commit,
        properties,
        rewrites,
        segments,
        manifest_bytes,
        manifest_rows,
        bomb,
        pack,
        other_things,
    )
}
