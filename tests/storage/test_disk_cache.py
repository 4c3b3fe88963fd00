"""The cache on disk: whatever becomes of it, plans are those of the store."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import stat
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skipindex as sx
from skipindex.api import set_cache_dir
from skipindex.api.types import Progress
from skipindex.cli import main
from skipindex.planner.stages.pack_cache import CacheSession
from skipindex.storage import disk_cache
from skipindex.storage.disk_cache import DIR_VARIABLE, DiskCache, DiskFile, disk_file
from skipindex.storage.file_system.location import Location, location_of
from skipindex.storage.file_system.names import MANIFESTS, PACKS
from tests.storage.s3_server import _Store, s3_server
from tests.tables import build, put_all

CONDITION = "a BETWEEN 3 AND 40 AND s = 'v1'"
DATA = disk_cache._DATA
PLACE = "bucket/t/_skipindex"
_OBJECTS: dict[str, bytes] = {}
"""Those of a table: made once, and copied."""


@pytest.fixture(autouse=True)
def own_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test sets is undone."""
    monkeypatch.setattr(disk_cache, "_given", [])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    set_cache_dir(tmp_path / "cache")
    return tmp_path / "cache"


def rows(file: int, shift: int = 0) -> dict[str, list[Any]]:
    values = [shift + (file * 37 + j * 11) % 97 for j in range(50)]
    return {"a": values, "s": [f"v{(v + file) % 4}" for v in values]}


def fill(place: Location, shift: int = 0) -> None:
    for i in range(6):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table(rows(i, shift)), sink)
        place.write(f"{i}.parquet", sink.getvalue().to_pybytes())
    sx.build_indexes(place, {"a": "exact", "s": "bitmap"}, workers=1)


@pytest.fixture(scope="module")
def store() -> Iterator[_Store]:
    with s3_server() as result:
        yield result


@pytest.fixture
def server(store: _Store) -> _Store:
    store.objects.clear()
    return store


@pytest.fixture
def place(server: _Store) -> Location:
    """A table on a store, whose indexes were not read yet."""
    result = location_of("s3://bucket/t", server.options)
    if not _OBJECTS:
        fill(result)
        _OBJECTS.update(server.objects)
    server.objects.update(_OBJECTS)
    server.read.clear()
    return result


def answer(place: Location | Path, condition: str = CONDITION) -> tuple[object, ...]:
    """What a process that has nothing in memory plans."""
    with CacheSession() as session:
        plan = sx.open_table(place).plan(condition, session=session)
        return plan.paths, plan.count_bounds, plan.notes


def uncached(place: Location | Path, condition: str = CONDITION) -> tuple[object, ...]:
    before, disk_cache._given[:] = list(disk_cache._given), [None]
    result = answer(place, condition)
    disk_cache._given[:] = before
    return result


def taken(server: _Store) -> int:
    """Bytes of packs and segments that were read of the store since the last call."""
    read = {name: n for name, n in server.read.items() if name.startswith(PLACE)}
    server.read.clear()
    return sum(n for name, n in read.items() if "/log/" not in name)


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.stat().st_size)


def test_a_second_process_reads_no_index_of_the_store(
    server: _Store, place: Location, folder: Path
) -> None:
    expected = uncached(place)
    assert taken(server) > 0
    assert not folder.exists()
    assert answer(place) == expected
    assert taken(server) > 0
    assert answer(place) == expected
    assert taken(server) == 0
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in files(folder)} == {0o600}


def flipped(at: int) -> Callable[[bytearray], None]:
    def change(raw: bytearray) -> None:
        raw[at % len(raw)] ^= 1 << at % 8

    return change


def swapped(raw: bytearray) -> None:
    """Whole blocks at the place of others."""
    head, size = raw[:4096], len(raw) // 4096 * 4096
    if size > 4096:
        raw[: size - 4096], raw[size - 4096 : size] = raw[4096:size], head
    else:
        raw[:0] = head


DAMAGE: dict[str, Callable[[bytearray], object]] = {
    **{f"checksum {at}": flipped(at) for at in (0, 7)},
    **{f"length {at}": flipped(at) for at in (8, 9, 11)},
    **{f"data {at}": flipped(at) for at in (12, 100, 2000, 4095, 4097, 5000, -1)},
    "empty": bytearray.clear,
    "cut in a head": lambda raw: raw.__delitem__(slice(5, None)),
    "cut in the data": lambda raw: raw.__delitem__(slice(1000, None)),
    "cut at the end": lambda raw: raw.pop(),
    "holes": lambda raw: raw.__setitem__(slice(None), bytes(len(raw))),
    "noise": lambda raw: raw.__setitem__(slice(None), random.Random(1).randbytes(9000)),
    "blocks of other places": swapped,
}


@pytest.mark.few(4)
@pytest.mark.parametrize("damage", list(DAMAGE))
def test_damage_changes_no_plan_and_is_mended(
    server: _Store, place: Location, folder: Path, damage: str
) -> None:
    expected = answer(place)
    assert not expected[2]
    for path in files(folder):
        raw = bytearray(path.read_bytes())
        DAMAGE[damage](raw)
        path.write_bytes(raw)
    taken(server)
    assert answer(place) == expected
    read = taken(server)
    assert read > 0 or damage.startswith("data"), "that may be of a hole"
    answer(place)
    taken(server)
    assert answer(place) == expected
    assert taken(server) == 0


def test_files_of_other_packs_change_no_plan(
    server: _Store, place: Location, folder: Path
) -> None:
    expected = answer(place)
    paths = files(folder)
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, [*contents[1:], contents[0]], strict=True):
        path.write_bytes(content)
    taken(server)
    assert answer(place) == expected
    assert taken(server) > 0


def test_wrong_bytes_with_a_right_checksum_are_read_once_at_most(
    server: _Store, place: Location, folder: Path
) -> None:
    """As where the store itself has sent them."""
    expected = answer(place)
    for path in server.objects:
        if f"/{PACKS}/" in path or f"/{MANIFESTS}/" in path:
            file = disk_file(place, path.removeprefix("bucket/t/"))
            assert file is not None
            file.write(0, memoryview(bytes(len(server.objects[path]))))
    damaged = answer(place)
    assert damaged[2]
    assert set(expected[0]) <= set(damaged[0])  # type: ignore[call-overload]
    assert answer(place) == expected


def test_a_table_that_is_rebuilt_at_its_place_is_another_one(
    server: _Store, place: Location, folder: Path
) -> None:
    assert answer(place) == uncached(place)
    server.objects.clear()
    fill(place, shift=20)
    for condition in (CONDITION, "a = 21", "s = 'v3' AND a < 30"):
        again = answer(place, condition)
        assert again == uncached(place, condition)
        assert not again[2]


def test_a_name_of_a_pack_is_cached_for_its_own_store_and_folder(
    folder: Path, tmp_path: Path
) -> None:
    uris = ["s3://bucket/t", "s3://bucket/u", "gs://bucket/t"]
    places = [Location("bucket/t", uri) for uri in uris]
    places.append(Location("bucket/t", uris[0], (("endpoint", "http://other"),)))
    places += [Location(str(tmp_path)), Location("/b", "", (), places[0])]
    found = [disk_file(place, f"{PACKS}/{name}") for place in places for name in "ab"]
    assert len({file.digest for file in found if file}) == len(found) - 2
    assert found[-1] == found[1], "a sidecar is the folder that has the packs"


def kill_in_write(file: DiskFile, data: memoryview, cut: int) -> None:
    """Write in a process that is killed once so many bytes are written."""
    write, child = os.pwrite, os.fork()
    if not child:

        def half(descriptor: int, raw: bytes, offset: int) -> int:
            write(descriptor, raw[:cut], offset)
            os.kill(os.getpid(), signal.SIGKILL)
            return 0

        os.pwrite = half
        file.write(0, data)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL


@pytest.mark.parametrize("cut", [0, 1, 8, 12, 13, 4095, 4096, 4097, 9000])
def test_a_killed_writer_leaves_whole_blocks_or_none(folder: Path, cut: int) -> None:
    file = DiskFile(DiskCache(str(folder)), b"a" * 16)
    data = random.Random(2).randbytes(3 * DATA - 5)
    kill_in_write(file, memoryview(data), cut)
    for block in range(3):
        begin, n = block * DATA, min(DATA, len(data) - block * DATA)
        whole = cut >= block * 4096 + 12 + n
        assert file.read(begin, n) == (data[begin : begin + n] if whole else None)
    file.write(0, memoryview(data))
    assert file.read(0, len(data)) == data


@pytest.mark.few(5)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
@pytest.mark.parametrize("call", ["open", "pwrite", "pread", "utime", "scandir"])
def test_no_error_of_the_disk_reaches_a_plan(
    place: Location,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    code: int,
) -> None:
    expected = uncached(place)
    assert answer(place) == expected
    real = getattr(os, call)

    def refused(path: Any, *others: Any, **named: Any) -> Any:
        if call in {"open", "scandir"} and not str(path).startswith(str(folder)):
            return real(path, *others, **named)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, refused)
    for _ in range(2):
        assert answer(place) == expected
        shutil.rmtree(folder, ignore_errors=True)


def test_a_disk_that_fills_up_caches_what_fits(
    place: Location, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, room, write = uncached(place), [6000], os.pwrite

    def some(descriptor: int, raw: bytes, offset: int) -> int:
        n = write(descriptor, raw[: room[0]], offset) if room[0] else 0
        room[0] -= n
        if n < len(raw) and not n:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return n

    monkeypatch.setattr(os, "pwrite", some)
    for _ in range(3):
        assert answer(place) == expected
    assert sum(path.stat().st_blocks for path in files(folder)) > 0


def refuse_as_another_user(folder: Path, patch: pytest.MonkeyPatch) -> None:
    folder.mkdir(0o700)
    user = os.geteuid()
    patch.setattr(os, "geteuid", lambda: user + 1)


def open_to_others(folder: Path, _: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    folder.chmod(0o770)


def a_link(folder: Path, _: pytest.MonkeyPatch) -> None:
    (folder.parent / "real").mkdir(0o700)
    folder.symlink_to(folder.parent / "real")


def a_file(folder: Path, _: pytest.MonkeyPatch) -> None:
    folder.write_text("mine")


@pytest.mark.parametrize(
    "make", [refuse_as_another_user, open_to_others, a_link, a_file]
)
def test_a_folder_that_is_not_of_this_user_alone_is_not_used(
    place: Location,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path, pytest.MonkeyPatch], None],
) -> None:
    expected = uncached(place)
    make(folder, monkeypatch)
    assert answer(place) == expected
    assert disk_file(place, f"{PACKS}/a.puffin") is None
    assert not folder.is_dir() or not list(folder.iterdir())


def used(folder: Path) -> int:
    return sum(512 * path.stat().st_blocks for path in folder.iterdir())


def test_what_was_used_least_recently_goes_at_the_bound(tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path / "cache"), 100 * 4096)
    data = memoryview(bytes(range(256)) * 16)[:DATA]
    every = [DiskFile(cache, bytes([i]) * 16) for i in range(60)]
    for i, file in enumerate(every):
        for block in range(4):
            file.write(block * DATA, data)
        if i:
            assert DiskFile(cache, every[0].digest).read(0, DATA) == data
        assert used(tmp_path / "cache") <= cache.limit + cache.limit // 16 + 4096
        time.sleep(0.002)  # the clock of the file system has ticks
    cache.evict()
    assert used(tmp_path / "cache") <= cache.limit
    left = [file.read(0, DATA) is not None for file in every]
    assert left[0]
    n_left = sum(left) - 1
    assert 15 <= n_left <= 25
    assert all(left[-n_left:])
    (tmp_path / "cache" / "notes.txt").write_bytes(bytes(1 << 20))
    cache.evict()
    assert (tmp_path / "cache" / "notes.txt").exists(), "it is of someone else"


def write_and_read(folder: Path, seed: int) -> None:
    """Read and write the same files as other processes, under a small limit."""
    cache, draw = DiskCache(str(folder), 60 * 4096), random.Random(seed)
    contents = {n: random.Random(n).randbytes(9 * DATA - n) for n in range(8)}
    for _ in range(1500):
        n = draw.randrange(8)
        file, content = DiskFile(cache, bytes([n]) * 16), memoryview(contents[n])
        begin = draw.randrange(9) * DATA
        end = begin + draw.randrange(1, 4) * DATA
        if draw.random() < 0.01:
            file.forget()
        elif draw.random() < 0.5:
            file.write(begin, content[begin:end])
        else:
            there = file.read(begin, end - begin)
            assert there is None or there == content[begin:end]


def test_processes_share_it(folder: Path) -> None:
    children = []
    for seed in range(3):
        child = os.fork()
        if not child:
            code = 1
            try:
                write_and_read(folder, seed)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    assert used(folder) <= 60 * 4096 + 3 * 8 * 4096


@given(st.data())
def test_what_is_read_is_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk_cache, "_REGION", 3)
        cache = DiskCache(str(tmp_path_factory.mktemp("cache") / "c"))
        file = DiskFile(cache, b"0123456789abcdef")
        content = random.Random(3).randbytes(data.draw(st.integers(1, 9 * DATA)))
        ranges = st.tuples(
            st.integers(0, len(content) - 1), st.integers(1, len(content))
        )
        there: set[int] = set()
        for is_write, (offset, length) in data.draw(
            st.lists(st.tuples(st.booleans(), ranges), max_size=12)
        ):
            begin, n = file.whole_blocks(offset, length)
            blocks = set(range(begin // DATA, -(-min(begin + n, len(content)) // DATA)))
            if is_write:
                file.write(begin, memoryview(content)[begin : begin + n])
                there |= blocks
            else:
                read = file.read(offset, length)
                expected = content[offset : offset + length]
                assert read == (expected if blocks <= there else None)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=12))
def test_ranges_that_become_one_are_no_more_and_no_less(
    ranges: list[tuple[int, int]],
) -> None:
    def places(some: list[tuple[int, int]]) -> set[int]:
        return {at for start, length in some for at in range(start, start + length)}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk_cache, "_STEP", 12)
        joined = disk_cache._joined(sorted(ranges))
    assert places(joined) == places(ranges)
    assert len(joined) <= len(ranges)
    assert all(length <= 12 for _, length in joined)
    for (begin, n), (start, length) in pairwise(joined):
        end = max(begin + n, start + length)
        assert start > begin + n or end - begin > 12, "two that could be one"


def test_stores_have_a_cache_and_disks_only_if_one_is_given(
    place: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = put_all(tmp_path / "t", [rows(i) for i in range(3)])
    build(local, {"a": "exact"})
    default = tmp_path / "home" / "skipindex"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(DIR_VARIABLE)
    answer(local, "a = 3")
    assert not default.exists()
    answer(place)
    assert files(default)
    monkeypatch.setenv(DIR_VARIABLE, str(tmp_path / "given"))
    expected = uncached(local, "a = 3")
    assert not (tmp_path / "given").exists()
    for _ in range(2):
        assert answer(local, "a = 3") == expected
    assert files(tmp_path / "given")
    monkeypatch.setenv(DIR_VARIABLE, "")
    assert disk_file(place, f"{PACKS}/a.puffin") is None


def test_the_last_setting_counts(
    place: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_use() -> str | None:
        file = disk_file(place, f"{PACKS}/a.puffin")
        return None if file is None else file.cache.folder

    monkeypatch.setenv(DIR_VARIABLE, f"{tmp_path}/a")
    assert in_use() == f"{tmp_path}/a"
    disk_cache.use_setting(None)
    assert in_use() == f"{tmp_path}/a"
    disk_cache.use_setting(f"{tmp_path}/b")
    assert in_use() == f"{tmp_path}/b"
    set_cache_dir(tmp_path / "c", n_bytes=5 << 20)
    assert in_use() == f"{tmp_path}/c"
    disk_cache.use_setting("")
    assert in_use() is None
    monkeypatch.setenv("HOME", str(tmp_path))
    set_cache_dir("~/d")
    assert in_use() == f"{tmp_path}/d"
    set_cache_dir("~unknown-user/d")
    assert in_use() is None


def test_warm_reads_all_that_plans_need(
    server: _Store, place: Location, folder: Path
) -> None:
    steps: list[Progress] = []
    table = sx.open_table(place)
    n_bytes = table.warm(progress=steps.append)
    lengths = [
        b.length for pack in table.state.snapshot.manifest.packs for b in pack.blobs
    ]
    assert n_bytes == sum(lengths) > table.warm(columns=["A"]) > 0
    assert steps[-1].done == steps[-1].total
    taken(server)
    table.warm()
    for condition in (CONDITION, "a = 21", "s = 'v3' AND a < 30", "a IS NULL"):
        assert answer(place, condition) == uncached(place, condition)
    with CacheSession() as session:
        taken(server)
        table.plan(CONDITION, session=session)
        assert taken(server) == 0


def test_warm_says_why_it_cannot(
    server: _Store, place: Location, folder: Path, tmp_path: Path
) -> None:
    table = sx.open_table(place)
    set_cache_dir(folder, n_bytes=5000)
    with pytest.raises(sx.SkipIndexError, match=r"do not fit .* of 5,000 bytes"):
        table.warm()
    set_cache_dir(None)
    with pytest.raises(sx.SkipIndexError, match=r"can be cached on disk .*CACHE_DIR"):
        table.warm()
    set_cache_dir(folder)
    with pytest.raises(sx.PredicateError, match="nowhere"):
        table.warm(columns=["nowhere"])
    for name in [name for name in server.objects if f"/{PACKS}/" in name]:
        del server.objects[name]
    with pytest.raises(sx.SkipIndexError, match=r"cannot be read: .*No such object"):
        table.warm()


def test_the_command_line_fills_it(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build(put_all(tmp_path / "t", [rows(i) for i in range(3)]), {"a": "exact"})
    assert main(["warm", str(tmp_path / "t"), "--columns", "a", "--quiet"]) == 0
    assert "KB of indexes are cached on disk" in capsys.readouterr().out
    assert files(folder)
    assert main(["warm", str(tmp_path / "t"), "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] > 0


@pytest.mark.parametrize("n_bytes", [0, -1, 1.5, "1GB", True])
def test_no_number_of_bytes_is_refused(tmp_path: Path, n_bytes: Any) -> None:
    with pytest.raises(sx.PlanError, match="whole number"):
        set_cache_dir(tmp_path, n_bytes=n_bytes)
