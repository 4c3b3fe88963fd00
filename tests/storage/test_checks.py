"""Manifests that are too much: refused before they take memory or time."""

from __future__ import annotations

import pyarrow as pa
import pytest

from skipindex.errors import CorruptIndexError
from skipindex.log.manifest import Manifest
from skipindex.storage.checks import unpacked_bytes
from skipindex.storage.file_system.file_info import FileInfo
from tests.log.pieces import manifest_of


def manifest(n_files: int) -> Manifest:
    return manifest_of([FileInfo(f"{i}", 1, 1) for i in range(n_files)])


def written(batches: list[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def test_what_a_manifest_says_of_its_size_is_true() -> None:
    whole = manifest(10_000)
    # A manifest without tags has no column of them.
    files = whole.files.drop_columns("tag")
    assert unpacked_bytes(whole.to_bytes()) >= files.nbytes
    assert unpacked_bytes(whole.to_bytes()) < 2 * whole.files.nbytes


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    zeros = pa.array([bytes(1 << 27)], pa.large_binary())
    data = written([pa.record_batch([zeros], names=["path"])])
    assert len(data) < 1 << 15
    before = pa.total_allocated_bytes()
    pool = pa.default_memory_pool()
    peak = pool.max_memory()
    with pytest.raises(CorruptIndexError, match="too large when it is unpacked"):
        Manifest.from_bytes(data)
    assert pa.total_allocated_bytes() <= before + len(data)
    assert pool.max_memory() is None or pool.max_memory() == peak


def test_a_manifest_in_many_pieces_is_none() -> None:
    files = manifest(2).files.replace_schema_metadata({"packs": "[]"})
    (batch,) = files.to_batches()
    assert len(Manifest.from_bytes(written([batch] * 3))) == 6
    with pytest.raises(CorruptIndexError, match="too many pieces"):
        Manifest.from_bytes(written([batch] * 100))


def test_what_holds_more_than_rows_is_no_manifest() -> None:
    words = pa.array(["a", "a"]).dictionary_encode()
    with pytest.raises(CorruptIndexError, match="more than rows"):
        Manifest.from_bytes(written([pa.record_batch([words], names=["path"])]))
