"""Rows of Iceberg tables that are deleted by position, which pyiceberg only reads."""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
)
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles
from pyroaring import BitMap

POSITIONS: Final = pa.schema(
    [
        pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483546"}),
        pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"}),
    ]
)
"""Of a file of deleted positions."""


class _Writer(ManifestWriterV2):
    kind = ManifestContent.DELETES

    def content(self) -> ManifestContent:
        return self.kind

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class _Deletes(_FastAppendFiles):
    """A commit of entries of deletes."""

    deletes: Sequence[DataFile]

    def _manifests(self) -> list[ManifestFile]:
        spec = self.spec(self.deletes[0].spec_id)
        output = self.new_manifest_output()
        writer = _Writer(
            spec, self.schema(), output, self._snapshot_id, self._compression
        )
        with writer:
            for file in self.deletes:
                writer.add(
                    ManifestEntry.from_args(
                        status=ManifestEntryStatus.ADDED,
                        snapshot_id=self._snapshot_id,
                        sequence_number=None,
                        file_sequence_number=None,
                        data_file=file,
                    )
                )
        return [writer.to_manifest_file(), *self._existing_manifests()]


def delete_positions(
    table: Table,
    task: FileScanTask,
    rows: list[int],
    content: DataFileContent = DataFileContent.POSITION_DELETES,
) -> None:
    """Delete rows of a data file; ``table`` is refreshed."""
    where = f"{table.location()}/data/deletes-{uuid.uuid4()}.parquet"
    path = task.file.file_path
    deleted = pa.table([[path] * len(rows), rows], schema=POSITIONS)
    with table.io.new_output(where).create() as stream:
        pq.write_table(deleted, stream)
    details: dict[str, Any] = {
        "content": content,
        "file_path": where,
        "file_format": FileFormat.PARQUET,
        "partition": task.file.partition,
        "record_count": len(rows),
        "file_size_in_bytes": len(table.io.new_input(where)),
        "lower_bounds": {2147483546: path.encode()},
        "upper_bounds": {2147483546: path.encode()},
        "equality_ids": [1] if content is DataFileContent.EQUALITY_DELETES else None,
    }
    file = DataFile.from_args(**details)
    file._spec_id = task.file.spec_id
    transaction = table.transaction()
    commit = _Deletes(operation=Operation.DELETE, transaction=transaction, io=table.io)
    commit.deletes = [file]
    commit.commit()
    transaction.commit_transaction()
    table.refresh()


def puffin_file(
    by_file: Mapping[str, list[int]],
) -> tuple[bytes, list[tuple[int, int]]]:
    """A Puffin file of a vector for each data file; the place and size of each."""
    data, blobs, places = b"PFA1", [], []
    for path, rows in by_file.items():
        bits = struct.pack("<qi", 1, 0) + BitMap(rows).serialize()
        body = b"\xd1\xd3\x39\x64" + bits
        blob = struct.pack(">I", len(body)) + body + struct.pack(">I", crc32(body))
        about = {"referenced-data-file": path, "cardinality": str(len(rows))}
        blobs.append(
            {
                "type": "deletion-vector-v1",
                "fields": [],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": len(data),
                "length": len(blob),
                "properties": about,
            }
        )
        places.append((len(data), len(blob)))
        data += blob
    footer = json.dumps({"blobs": blobs, "properties": {}}).encode()
    data += b"PFA1" + footer + struct.pack("<i", len(footer)) + bytes(4) + b"PFA1"
    return data, places
