"""Files get their visible names on an object store: the store copies them."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skipindex.errors import StorageError
from skipindex.log.manifest import Manifest
from skipindex.log.properties import NO_PROPERTIES
from skipindex.rewrite.arrival import arrive
from skipindex.source.folder.new_files import SaveMode
from skipindex.storage.file_system import object_store
from skipindex.storage.file_system.location import Location, location_of
from tests.storage.s3_server import _Store, s3_server

N_ROWS = 100_000


@pytest.fixture
def server() -> Iterator[_Store]:
    with s3_server() as server:
        yield server


def parquet(seed: int, n_rows: int = N_ROWS) -> bytes:
    sink = io.BytesIO()
    rows = pa.table({"x": np.random.default_rng(seed).random(n_rows)})
    pq.write_table(rows, sink)
    return sink.getvalue()


def append(place: Location, *files: bytes) -> None:
    def write(staged: str) -> int:
        for i, data in enumerate(files):
            place.write(f"{staged}/part-{i}.parquet", data)
        return N_ROWS * len(files)

    arrive(
        place,
        SaveMode.APPEND,
        write=write,
        index=lambda _: (Manifest.empty(), NO_PROPERTIES),
    )


def visible(place: Location) -> list[str]:
    return [file.path for file in place.list() if file.path.startswith("part-")]


@pytest.mark.few(1)
@pytest.mark.parametrize("anew", [False, True], ids=["same tags", "other tags"])
def test_no_published_byte_is_read_back(server: _Store, anew: bool) -> None:
    """Footers are, to count the rows."""
    server.tags_copies_anew = anew
    place = location_of("s3://b/t", dict(server.options))
    place.write("f.parquet", parquet(0, 10))
    files = [parquet(i) for i in range(3)]
    server.read.clear()
    append(place, *files)
    assert sorted(place.read(path) for path in visible(place)) == sorted(files)
    server.read.clear()
    append(place, *files)
    read = {n: size for n, size in server.read.items() if "part-" in n}
    assert not [name for name in read if "/_skipindex" not in name], "visible ones"
    assert all(size <= 1 << 16 for size in read.values()), "footers of the others"
    assert sum(map(len, files)) > 2_000_000


@pytest.mark.parametrize("anew", [False, True], ids=["same tags", "other tags"])
def test_what_has_the_name_already_is_compared(server: _Store, anew: bool) -> None:
    server.tags_copies_anew = anew
    place = location_of("s3://b/t", dict(server.options))
    for name, data in (("a", b"12"), ("other", b"34"), ("longer", b"123")):
        place.write(name, data)
    place.copy("a", "copy")
    assert place.is_same("a", "copy")
    assert not place.is_same("a", "other")
    assert not place.is_same("a", "longer", is_copy=True)
    assert not place.is_same("a", "none", is_copy=True)


def test_an_object_that_is_too_large_to_copy_is_refused_in_a_sentence(
    server: _Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.max_copy = 100_000
    monkeypatch.setattr(object_store, "MAX_COPY", server.max_copy)
    place = location_of("s3://b/t", dict(server.options))
    place.write("f.parquet", parquet(0, 10))
    before = sorted(server.objects)
    with pytest.raises(StorageError, match=r"S3 copies at most 100000.*bytes_per_file"):
        append(place, parquet(1))
    assert sorted(server.objects) == before
