"""The benchmark of many files: its tables, beside delta-rs on the same statistics."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks import scale
from skipindex.storage.file_system.location import location_of

N_FILES = 400


def test_every_measure_is_made(tmp_path: Path) -> None:
    found = {measure.what: measure for measure in scale.measures(20, tmp_path, 1)}
    assert {*scale.conditions(20), "memory of a file"} < found.keys()
    assert all(measure.figure > 0 for measure in found.values())


def test_nothing_of_a_file_is_held_twice(tmp_path: Path) -> None:
    """A second copy of paths and marks would be about 40 bytes a file."""
    location, n_files = location_of(tmp_path), 10_000
    scale.written(location, scale.manifest_of_many(n_files))
    schema = pa.schema([(n, e[0].type) for n, e in scale.bounds_of(2).items()])
    assert scale.bytes_per_file(location, schema) < 1.07 * scale.LIMIT_BYTES


def test_the_files_kept_are_those_of_delta_rs(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    scale.write_delta_log(tmp_path / "delta", N_FILES)
    delta = deltalake.DeltaTable(str(tmp_path / "delta"))
    bounds = scale.bounds_of(N_FILES)
    schema = pa.schema([(name, ends[0].type) for name, ends in bounds.items()])
    location = location_of(tmp_path / "ours")
    (tmp_path / "ours").mkdir()
    scale.written(location, scale.manifest_of_many(N_FILES))
    table = scale.opened(location, schema)
    compared = 0
    for what, condition in scale.conditions(N_FILES).items():
        if "LIKE" in what or not isinstance(condition, str):
            continue  # delta-rs does not take it
        kept = delta.file_uris(file_pruning_predicate=condition)
        names = sorted(path.rpartition("/")[2] for path in kept)
        assert list(table.plan(condition).paths) == names, what
        compared += 1
    assert compared > 12
