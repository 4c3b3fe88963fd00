"""A lock of the user decides who commits, where a store cannot."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext

import pytest

from skipindex.api import set_commit_lock
from skipindex.errors import StorageError
from skipindex.log import newest_snapshot
from skipindex.source import commit
from skipindex.storage.file_system.location import Location, location_of
from tests.log.test_log import add
from tests.storage.s3_server import s3_server


@pytest.fixture(autouse=True)
def _taken_back() -> Iterator[None]:
    yield
    set_commit_lock(None)


@pytest.fixture
def place() -> Iterator[Location]:
    """A table on a store that replaces objects whatever the condition."""
    with s3_server(conditional=False) as server:
        yield location_of("s3://bucket/t", dict(server.options))


class ThreadLock:
    """Excludes the threads of this process, and remembers what they wrote."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._lock = threading.Lock()

    @contextmanager
    def held(self, name: str) -> Iterator[None]:
        with self._lock:
            self.names.append(name)
            yield


class Rude:
    """Lets another writer commit before the block begins."""

    def __init__(self, place: Location) -> None:
        self._place = place

    def held(self, name: str) -> AbstractContextManager[None]:
        self._place.write(name.removeprefix("bucket/t/"), b"of another writer")
        return nullcontext()


class Broken:
    def held(self, name: str) -> AbstractContextManager[None]:
        raise ValueError(f"no lock for {name}")


def test_the_first_of_two_writers_wins(place: Location) -> None:
    with pytest.raises(StorageError, match=r"or a lock of yours: .*set_commit_lock"):
        place.write_new("_skipindex/log/1.json", b"1")
    assert list(place.list()) == []
    lock = ThreadLock()
    set_commit_lock(lock)
    assert place.write_new("_skipindex/log/1.json", b"1")
    assert not place.write_new("_skipindex/log/1.json", b"2")
    assert place.read("_skipindex/log/1.json") == b"1"
    assert lock.names == ["bucket/t/_skipindex/log/1.json"] * 2
    set_commit_lock(None)
    with pytest.raises(StorageError):
        place.write_new("_skipindex/log/2.json", b"1")


def test_what_is_there_is_looked_at_while_the_lock_is_held(place: Location) -> None:
    set_commit_lock(Rude(place))
    assert not place.write_new("_skipindex/log/1.json", b"1")
    assert place.read("_skipindex/log/1.json") == b"of another writer"


def test_a_lock_that_fails_is_an_error_and_nothing_is_written(place: Location) -> None:
    set_commit_lock(Broken())
    with pytest.raises(ValueError, match="no lock for bucket/t/_skipindex/log/1"):
        place.write_new("_skipindex/log/1.json", b"1")
    assert list(place.list()) == []
    with s3_server() as server:  # which can decide, and does not ask the lock
        able = location_of("s3://bucket/t", dict(server.options))
        assert able.write_new("_skipindex/log/1.json", b"1")
        assert not able.write_new("_skipindex/log/1.json", b"2")


def test_no_commit_of_many_threads_is_lost(place: Location) -> None:
    set_commit_lock(ThreadLock())

    def write(thread: int) -> None:
        for i in range(3):
            commit(place, add(f"{thread}-{i}"), operation="test")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    found = newest_snapshot(place)
    assert (found.version, len(found.manifest)) == (11, 12)
