"""Commits in the log of a Delta table, as another writer would write them."""

from __future__ import annotations

import json
import string
import struct
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from pyroaring import BitMap

_Z85: Final = (
    string.digits + string.ascii_lowercase + string.ascii_uppercase
) + ".-:+=^!/*?&<>()[]{}@%$#"


def commit(path: str, *actions: dict[str, Any]) -> None:
    """One more commit of the log."""
    name = f"{DeltaTable(path).version() + 1:020}.json"
    text = "".join(json.dumps(action) + "\n" for action in actions)
    Path(path, "_delta_log", name).write_text(text)


def protocol(*features: str) -> dict[str, Any]:
    return {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": list(features),
            "writerFeatures": list(features),
        }
    }


def actions_of(path: str, kind: str) -> list[dict[str, Any]]:
    lines = [
        json.loads(line)
        for file in sorted(Path(path, "_delta_log").glob("*.json"))
        for line in file.read_text().splitlines()
    ]
    return [line[kind] for line in lines if kind in line]


def z85(data: bytes) -> str:
    """Bytes, of which there are a multiple of four, as Delta writes them in its log."""
    text = ""
    for (number,) in struct.iter_unpack(">I", data):
        digits = [number // 85**i % 85 for i in range(4, -1, -1)]
        text += "".join(_Z85[digit] for digit in digits)
    return text


def vector_bytes(rows: list[int]) -> bytes:
    """A deletion vector, by Delta's protocol."""
    return struct.pack("<IQI", 1681511377, 1, 0) + BitMap(rows).serialize()


def inline_vector(rows: list[int]) -> dict[str, Any]:
    """A deletion vector that stands in the log, by Delta's protocol."""
    data = vector_bytes(rows)
    return {
        "storageType": "i",
        "pathOrInlineDv": z85(data + b"\0" * (-len(data) % 4)),
        "sizeInBytes": len(data),
        "cardinality": len(rows),
    }


def delete_rows(path: str, rows: list[int], name: str = "") -> str:
    """Delete rows of a file by a vector; the name of the file."""
    live = live_files(path)
    adds = [one for one in actions_of(path, "add") if one["path"] in live]
    add = next(one for one in reversed(adds) if name in {"", one["path"]})
    remove = {"path": add["path"], "dataChange": True, "deletionTimestamp": 1}
    if "deletionVector" in add:
        remove["deletionVector"] = add["deletionVector"]
    vector = inline_vector(rows)
    commit(path, {"remove": remove}, {"add": {**add, "deletionVector": vector}})
    return str(add["path"])


def live_files(path: str) -> list[str]:
    """The paths of the newest version's files, as the log writes them."""
    return pa.table(DeltaTable(path).get_add_actions())["path"].to_pylist()


def deleted_in(table: DeltaTable) -> dict[str, frozenset[int]]:
    """The rows that vectors delete, by the path in the folder."""
    base = table.table_uri.rstrip("/") + "/"
    vectors = pa.RecordBatchReader.from_stream(table.deletion_vectors()).read_all()
    return {
        unquote(one["filepath"]).removeprefix(unquote(base)): frozenset(
            i for i, kept in enumerate(one["selection_vector"]) if not kept
        )
        for one in vectors.to_pylist()
    }
