"""Questions of scans, written here, and the planner's replies, without a driver."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import skipindex as sx
from skipindex.spark.pruning.protocol import VERSION
from skipindex.spark.pruning.query_planner import SETTINGS, QueryPlanner
from skipindex.spark.pruning.tables import scanned_location

CLASSES = "org.apache.spark.sql.catalyst.expressions"
TYPES = {"id": "long", "month": "integer", "ID": "long", "plain": "long"}
CATALOG = {"long": "bigint", "integer": "int"}


def put(path: Path, first: int) -> None:
    """A file of ten consecutive numbers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": pa.array(range(first, first + 10))}), path)


def make(table: Path) -> None:
    """Four files in two folders, the numbers 0 to 39."""
    for i in range(4):
        put(table / f"month={i % 2 + 1}" / f"{i}.parquet", 10 * i)
    sx.build_indexes(table, {"id": "bitmap"}, workers=1)


def schema(names: Sequence[str]) -> str:
    fields = [
        {"name": name, "type": TYPES[name], "nullable": True, "metadata": {}}
        for name in names
    ]
    return json.dumps({"type": "struct", "fields": fields})


def attribute(name: str, metadata: str = "{}") -> dict[str, Any]:
    kind = CATALOG[TYPES[name]]
    held = [name, kind, True, metadata]
    return {"c": f"{CLASSES}.AttributeReference", "t": kind, "x": held}


def equal(name: str, value: int) -> dict[str, Any]:
    literal = {"c": f"{CLASSES}.Literal", "t": CATALOG[TYPES[name]], "v": value}
    operands = [attribute(name), literal]
    return {"c": f"{CLASSES}.EqualTo", "t": "boolean", "a": operands}


@dataclass(frozen=True)
class Reply:
    """An answer, as the driver reads it.

    Args:
        files: the files that need not be read.
        results: over these files: a row a line, with tabs between values.
        rows: of other files, by path, if they were asked for.
        ranges: by other files, the bytes to read of them.
    """

    files: list[str]
    results: str
    rows: Mapping[str, list[dict[str, Any]]] | None = None
    ranges: Mapping[str, list[int]] = field(default_factory=dict)


def skipped(
    planner: QueryPlanner, table: Path, *conjuncts: Mapping[str, Any], **scan: Any
) -> list[str]:
    """The files that need not be read; the arguments are those of ``asked``."""
    reply = asked(planner, table, *conjuncts, **scan)
    return [] if reply is None else reply.files


def asked(
    planner: QueryPlanner,
    table: Path,
    *conjuncts: Mapping[str, Any],
    data: Sequence[str] = ("id",),
    partitions: Sequence[str] = ("month",),
    is_catalog_table: bool = False,
    settings: Mapping[str, str] | None = None,
    reader: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
    keys: Sequence[Any] = (),
    more: Mapping[str, Any] | None = None,
    purpose: str = "read",
    unlisted: Sequence[str] = (),
    iceberg: Mapping[str, Any] | None = None,
    number: int = 1,
    seconds: float = 60.0,
    age: float = 0.0,
    wanted: Mapping[str, Any] | None = None,
    takes_ranges: bool = False,
) -> Reply | None:
    """What the planner replies to a question about a scan.

    Args:
        planner: is asked.
        table: the folder.
        conjuncts: of the scan.
        data: the columns of its files.
        partitions: its other columns.
        is_catalog_table: whether a catalog has it.
        settings: of the session.
        reader: those of the session that reads.
        options: of the scan.
        keys: of joins.
        more: members of a question.
        purpose: what the answer is for.
        unlisted: files that it does not list.
        iceberg: what is read of an Iceberg table.
        number: of the question.
        seconds: that the planner has for the answer.
        age: for which the question waited to be asked.
        wanted: the rows that are asked for, with ``rows`` as the purpose.
        takes_ranges: whether parts of files may be read.
    """
    question = {
        "version": VERSION,
        "root": str(table),
        "scheme": "file",
        "authority": None,
        "is_catalog_table": is_catalog_table,
        "data": schema(data),
        "data_types": {name: CATALOG[TYPES[name]] for name in data},
        "partitions": schema(partitions),
        "partitions_types": {name: CATALOG[TYPES[name]] for name in partitions},
        "settings": dict.fromkeys(SETTINGS) | dict(settings or {}),
        "reader": dict(reader or {}),
        "options": dict(options or {}),
        "keys": list(keys),
        **({} if iceberg is None else {"iceberg": iceberg}),
        **({"takes_rewritten": True} if takes_ranges else {}),
    }
    if more is not None:
        question |= more
    if unlisted:
        now = planner.tables.current(scanned_location("file", None, str(table)))
        listed = "".join("01"[path not in unlisted] for path in now.state.paths)
        question |= {"listing": now.number, "listed": listed}
    rows = "" if wanted is None else f"{json.dumps(wanted)}\n"
    text = (
        f"{purpose} {number} {seconds} {age}\n{rows}{json.dumps(question)}\n"
        f"{json.dumps(conjuncts)}"
    )
    answer = planner.answer(text)
    if not answer:
        return None if answer is None else Reply([], "")
    (listed_as,) = struct.unpack_from("<q", answer)
    paths, sizes, millis = listing(planner, listed_as)
    end = 8 + (len(paths) + 7) // 8
    bits = np.unpackbits(np.frombuffer(answer[8:end], np.uint8), bitorder="little")
    files = np.flatnonzero(bits).tolist()
    for i in files:
        there = (table / paths[i]).stat()
        assert there.st_size == sizes[i]
        assert there.st_mtime_ns // 1_000_000 == millis[i]
    skipped = [paths[i] for i in files]
    if answer.startswith(b"ranges", end):
        return Reply(skipped, "", ranges=_ranges(answer, end + 6, paths))
    if wanted is None:
        return Reply(skipped, _results(answer[end:]))
    n_bytes, n = struct.unpack_from("<qi", answer, end)
    assert n_bytes > 0 or not n
    pairs = np.frombuffer(answer, "<i4", 2 * n, end + 12).reshape(-1, 2)
    rows_of = pa.ipc.open_stream(answer[end + 12 + 8 * n :]).read_all().to_pylist()
    spans = pairs[:, 1].cumsum().tolist()
    there = zip(pairs.tolist(), spans, strict=True)
    by_file = {paths[i]: rows_of[stop - n : stop] for (i, n), stop in there}
    return Reply(skipped, "", by_file)


def _ranges(answer: bytes, at: int, paths: Sequence[str]) -> dict[str, list[int]]:
    """Numbers of row groups, and begins and ends, by path."""
    (left,) = struct.unpack_from("<i", answer, at)
    at, result = at + 4, {}
    for _ in range(left):
        file, n = struct.unpack_from("<ii", answer, at)
        result[paths[file]] = np.frombuffer(answer, "<i8", n, at + 8).tolist()
        at += 8 + 8 * n
    assert at == len(answer)
    return result


def _results(written: bytes) -> str:
    """Rows as text; other results are text."""
    if not written.startswith(b"\xff"):
        return written.decode()
    rows = pa.ipc.open_stream(written).read_all().to_pylist()
    texts = (("" if v is None else str(v) for v in row.values()) for row in rows)
    return "".join("\t".join(row) + "\n" for row in texts)


def listing(
    planner: QueryPlanner, number: int
) -> tuple[list[str], list[int], list[int]]:
    """The paths, sizes and times of the files of a listing."""
    packed = planner.files(str(number))
    n = sum(struct.unpack_from("<qq", packed))
    sizes, millis, _ = np.frombuffer(packed, "<i8", 3 * n, 16).reshape(3, n).tolist()
    return packed[16 + 24 * n :].decode().split("\0")[:-1], sizes, millis
