"""Open files: never more than the limit with any readers, and the bytes are right."""

from __future__ import annotations

import errno
import gc
import os
import resource
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from skipindex.storage.file_system import descriptors
from skipindex.storage.file_system.byte_source import ByteSource
from skipindex.storage.file_system.descriptors import MAX_OPEN, OPEN
from skipindex.storage.file_system.location import location_of
from tests.tables import build, forget_open_packs, put


def n_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def sources(tmp_path: Path) -> list[ByteSource]:
    """More files than may be open, the i-th of them of i + 1 bytes of value i."""
    location = location_of(tmp_path)
    for i in range(3 * MAX_OPEN):
        (tmp_path / str(i)).write_bytes(bytes([i]) * (i + 1))
    return [location.view(str(i)) for i in range(3 * MAX_OPEN)]


def test_files_are_opened_again(sources: list[ByteSource]) -> None:
    """By one thread, and by several at once."""

    def read(i: int) -> bool:
        i %= len(sources)
        return bytes(sources[i].read(0, 100)) == bytes([i]) * (i + 1)

    before = n_descriptors()
    for i in range(2 * len(sources)):
        assert read(i)
        assert len(OPEN) <= MAX_OPEN
    assert list(map(len, sources)) == list(range(1, len(sources) + 1))
    assert n_descriptors() <= before
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(4000)))
    assert len(OPEN) <= MAX_OPEN


def test_what_nothing_uses_any_more_is_closed(sources: list[ByteSource]) -> None:
    sources[0].read(0, 1)
    sources.clear()
    gc.collect()
    OPEN.close_idle()
    assert len(OPEN) == 0


def test_where_others_took_the_descriptors_ours_are_closed(
    sources: list[ByteSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    sources[5].read(0, 1)
    sources[6].read(0, 1)
    real, failed = os.open, []

    def crowded(path: str, flags: int, *rest: int) -> int:
        if not failed:
            failed.append(path)
            raise OSError(errno.EMFILE, "Too many open files", path)
        return real(path, flags, *rest)

    monkeypatch.setattr(os, "open", crowded)
    assert bytes(sources[0].read(0, 1)) == b"\0"
    assert failed
    assert len(OPEN) == 1


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_not_waited_for(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / "pack")
    with pytest.raises(OSError, match=r"Not a regular file|Is a directory"):
        location_of(tmp_path).view("pack")


@pytest.fixture
def few_descriptors() -> Iterator[int]:
    """Hardly more than are open now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = n_descriptors() + MAX_OPEN + 24
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    yield limit
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_more_packs_and_tables_than_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few_descriptors: int
) -> None:
    monkeypatch.setattr("skipindex.build.tiers.CROWD", 10_000)
    monkeypatch.setattr("skipindex.build.task.PACK_FILES", 1)
    n = few_descriptors + 10
    forget_open_packs()
    for i in range(n):
        put(tmp_path / "t" / f"{i}.parquet", {"x": [j * n + i for j in range(3)]})
    table = build(tmp_path / "t", {"x": "bitmap"})
    assert len(table.state.snapshot.manifest.packs) == n
    for _ in range(2):
        plan = table.plan(f"x = {n + 7} OR x = {n + 9}")
        assert (plan.paths, plan.notes) == (["7.parquet", "9.parquet"], [])
    assert len(OPEN) <= MAX_OPEN
    merged = table.compact_indexes()
    assert (len(merged.state.snapshot.manifest.packs), merged.notes) == (1, ())
    assert merged.plan(f"x = {n + 7}").paths == ["7.parquet"]
    for i in range(MAX_OPEN + 30):
        put(tmp_path / f"u{i}" / "0.parquet", {"x": [1, 5]})
        assert build(tmp_path / f"u{i}", {"x": "bitmap"}).plan("x = 2").paths == []


def test_a_forked_process_can_read(sources: list[ByteSource]) -> None:
    descriptors.OPEN.after_fork()
    assert bytes(sources[3].read(0, 9)) == b"\3" * 4
