"""Checkpoints of Delta: in one file, in several, and by the second specification."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from tests.heavy.lives.delta_statistics import NO_BOUNDS
from tests.heavy.lives.rows import Column

_TEXT, _NUMBER, _SMALL, _FLAG = pa.string(), pa.int64(), pa.int32(), pa.bool_()
_PAIRS: Final = pa.map_(_TEXT, _TEXT)
_VECTOR: Final = pa.struct(
    {
        "storageType": _TEXT,
        "pathOrInlineDv": _TEXT,
        "offset": _SMALL,
        "sizeInBytes": _SMALL,
        "cardinality": _NUMBER,
    }
)
_ACTIONS: Final[Mapping[str, Mapping[str, pa.DataType]]] = {
    "add": {
        "path": _TEXT,
        "partitionValues": _PAIRS,
        "size": _NUMBER,
        "modificationTime": _NUMBER,
        "dataChange": _FLAG,
        "deletionVector": _VECTOR,
        "stats": _TEXT,
    },
    "metaData": {
        "id": _TEXT,
        "schemaString": _TEXT,
        "partitionColumns": pa.list_(_TEXT),
        "configuration": _PAIRS,
        "createdTime": _NUMBER,
        "format": pa.struct({"provider": _TEXT, "options": _PAIRS}),
    },
    "protocol": {
        "minReaderVersion": _SMALL,
        "minWriterVersion": _SMALL,
        "readerFeatures": pa.list_(_TEXT),
        "writerFeatures": pa.list_(_TEXT),
    },
    "sidecar": {"path": _TEXT, "sizeInBytes": _NUMBER, "modificationTime": _NUMBER},
    "checkpointMetadata": {"version": _NUMBER},
}
Actions = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint that is written.

    Args:
        log: its folder.
        version: of the table.
        columns: of the table, for the type of ``stats_parsed``.
        adds: the files; those of a file of JSON would have no ``stats_parsed``.
        rest: the other actions.
    """

    log: Path
    version: int
    columns: Sequence[Column]
    adds: Actions
    rest: Actions

    def write(self, rng: random.Random) -> dict[str, Any]:
        """Write one of some kind; what ``_last_checkpoint`` says of it."""
        how = rng.choice([self._in_parts, self._by_sidecars])
        return {"version": self.version, "size": 1, **how(rng)}

    def _in_parts(self, rng: random.Random) -> dict[str, Any]:
        rows, n = [*self.rest, *self.adds], rng.choice([0, 0, 1, 2, 3])
        name = f"{self.version:020}.checkpoint"
        if not n:
            self._write(rows, self.log / f"{name}.parquet")
            return {}
        rng.shuffle(rows)
        for i in range(n):
            part = f"{name}.{i + 1:010}.{n:010}.parquet"
            self._write(rows[i::n], self.log / part)
        return {"parts": n}

    def _by_sidecars(self, rng: random.Random) -> dict[str, Any]:
        """A manifest of JSON or Parquet, and the files beside it, or in the latter."""
        name, n = uuid.UUID(int=rng.getrandbits(128)), rng.choice([0, 1, 2])
        rows = [{"checkpointMetadata": {"version": self.version}}, *self.rest]
        rows += [] if n else self.adds
        (self.log / "_sidecars").mkdir(exist_ok=True)
        for i in range(n):
            path = self.log / "_sidecars" / f"{name}-{i}.parquet"
            self._write(self.adds[i::n], path)
            rows.append({"sidecar": _about(path)})
        to = self.log / f"{self.version:020}.checkpoint.{name}"
        if n and rng.random() < 0.5:
            to = to.with_name(f"{to.name}.json")
            to.write_text("".join(json.dumps(one) + "\n" for one in rows))
        else:
            to = to.with_name(f"{to.name}.parquet")
            self._write(rows, to)
        return {"v2Checkpoint": _about(to)}

    def _write(self, rows: Actions, path: Path) -> None:
        """Actions as rows of Parquet."""
        used = {name for row in rows for name in row} | {"add", "metaData", "protocol"}
        columns = {}
        for name in used:
            values = [_as_pairs(row.get(name)) for row in rows]
            fields = dict(_ACTIONS[name])
            if any("stats_parsed" in (one or {}) for one in values):
                fields["stats_parsed"] = self._type_of_statistics()
            columns[name] = pa.array(values, pa.struct(fields))
        pq.write_table(pa.table(columns), path)

    def _type_of_statistics(self) -> pa.DataType:
        own = [one for one in self.columns if not one.is_partition]
        bounds, counts = _struct(own, None), _struct(own, _NUMBER)
        fields = {"numRecords": _NUMBER, "tightBounds": _FLAG, "nullCount": counts}
        if bounds is not None:
            fields |= {"minValues": bounds, "maxValues": bounds}
        return pa.struct(fields)


def _about(path: Path) -> dict[str, Any]:
    size = path.stat().st_size
    return {"path": path.name, "sizeInBytes": size, "modificationTime": 1}


def _as_pairs(action: Mapping[str, Any] | None) -> Any:
    """An action with its mappings as pairs, as Arrow takes them."""
    result = dict(action or {})
    for name in result.keys() & {"configuration", "partitionValues"}:
        result[name] = [*result[name].items()]
    if "format" in result:
        result["format"] = {**result["format"], "options": []}
    return result or None


def _struct(columns: Sequence[Column], dtype: pa.DataType | None) -> pa.DataType | None:
    """Columns of statistics: of their own types, or of one for all."""
    fields = {}
    for one in columns:
        if one.kind is None:
            inner = _struct(one.fields, dtype)
        elif dtype is None and one.kind.name in NO_BOUNDS:
            inner = None
        else:
            inner = dtype or one.kind.arrow
        if inner is not None:
            fields[one.stored] = inner
    return pa.struct(fields) if fields else None
