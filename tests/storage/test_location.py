"""Folders: listing, reading and writing, as Spark and the operating system see them."""

from __future__ import annotations

import errno
import os
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from skipindex.errors import StorageError, TableError
from skipindex.storage.file_system.location import (
    FileInfo,
    Location,
    location_of,
    without_secrets,
)
from skipindex.storage.file_system.names import is_temporary


@pytest.fixture(params=["local", "remote"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """A folder, and the same folder by the code for other file systems."""
    uri = f"file://{tmp_path}" if request.param == "remote" else ""
    return Location(str(tmp_path), uri)


def test_the_listing_is_deep_and_relative(location: Location, tmp_path: Path) -> None:
    (tmp_path / "p=1" / "q=2").mkdir(parents=True)
    (tmp_path / "p=1" / "q=2" / "a b.parquet").write_bytes(b"123")
    (tmp_path / ".hidden").write_bytes(b"")
    found = {f.path: f for f in location.list()}
    assert set(found) == {"p=1/q=2/a b.parquet", ".hidden"}
    file = found["p=1/q=2/a b.parquet"]
    assert file.size == 3
    assert file.mtime == (tmp_path / file.path).stat().st_mtime_ns
    assert location.stat(file.path) == file
    assert [f.path for f in location.list("p=1")] == [file.path]


def test_a_folder_that_is_not_there_lists_nothing(location: Location) -> None:
    assert list(location.list("nowhere")) == []
    assert location.stat("nowhere") is None
    assert location.exists()
    assert not Location(location.full("nowhere"), location.uri).exists()


def test_a_folder_is_no_file(location: Location, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert location.stat("folder") is None


def test_what_was_written_is_read_back(location: Location) -> None:
    location.write("a/b/c", b"first")
    location.write("a/b/c", b"second")
    assert location.read("a/b/c") == b"second"
    with location.open_input("a/b/c") as source:
        assert source.read_at(3, 2) == b"con"
    location.delete("a/b/c")
    assert location.stat("a/b/c") is None


def test_a_new_file_is_written_once(location: Location) -> None:
    assert location.write_new("log/0", b"mine")
    assert not location.write_new("log/0", b"yours")
    assert location.read("log/0") == b"mine"
    assert [f.path for f in location.list()] == ["log/0"], "nothing is left beside it"


def test_of_many_writers_of_a_new_file_one_wins(tmp_path: Path) -> None:
    location = Location(str(tmp_path))
    barrier = threading.Barrier(16)
    won: list[int] = []

    def write(i: int) -> None:
        barrier.wait()
        if location.write_new("log/0", str(i).encode()):
            won.append(i)

    threads = [threading.Thread(target=write, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert location.read("log/0") == str(won[0]).encode()
    assert [f.path for f in location.list()] == ["log/0"]


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    location = Location(str(tmp_path))
    (tmp_path / "target" / "full").mkdir(parents=True)
    with pytest.raises(OSError, match="target"):
        location.write("target", b"a file cannot replace a folder that is in use")
    assert list(location.list()) == []


def test_ranges_of_a_file(location: Location) -> None:
    location.write("f", bytes(range(100)))
    source = location.view("f")
    assert len(source) == 100
    assert bytes(source.read(10, 3)) == b"\x0a\x0b\x0c"
    assert bytes(source.read(98, 50)) == b"\x62\x63", "fewer where the file ends"
    assert bytes(source.read(500, 5)) == b""
    assert bytes(source.read(0, 0)) == b""


def test_an_empty_file_has_no_bytes(location: Location) -> None:
    location.write("f", b"")
    source = location.view("f")
    assert len(source) == 0
    assert bytes(source.read(0, 10)) == b""


def test_a_file_that_is_not_there_cannot_be_viewed(location: Location) -> None:
    with pytest.raises(FileNotFoundError):
        location.view("nowhere")


def test_a_file_that_is_cut_off_while_it_is_open_is_only_shorter(
    tmp_path: Path,
) -> None:
    """A mapped file would end the process here."""
    location = Location(str(tmp_path))
    location.write("f", bytes(100_000))
    source = location.view("f")
    with (tmp_path / "f").open("r+b") as file:
        file.truncate(10)
    assert len(source) == 10
    assert bytes(source.read(90_000, 100)) == b""
    assert bytes(source.read(0, 100)) == bytes(10)


def test_views_give_their_files_back(tmp_path: Path) -> None:
    location = Location(str(tmp_path))
    location.write("f", b"x")
    handles = Path("/proc/self/fd")
    before = len(list(handles.iterdir()))
    for _ in range(50):
        location.view("f")
    assert len(list(handles.iterdir())) <= before + 1


def test_workers_open_the_same_folder(location: Location) -> None:
    location.write("f", b"x")
    again = pickle.loads(pickle.dumps(location))
    assert again == location
    assert again.read("f") == b"x"


def test_spark_reads_the_very_characters_of_a_local_path() -> None:
    location = Location("/data/a b%20[1]")
    assert location.spark_path("p=x%2Fy/é*.parquet") == (
        "file:/data/a b%20[1]/p=x%2Fy/é*.parquet"
    )
    assert location.spark_path() == "file:/data/a b%20[1]"


@pytest.mark.parametrize(
    ("uri", "root", "path"),
    [
        ("s3://bucket/t?region=us-east-1", "bucket/t", "s3://bucket/t/f"),
        ("s3://bucket/t/?region=us-east-1", "bucket/t", "s3://bucket/t/f"),
        (
            "abfss://box@account.dfs.core.windows.net/t",
            "box/t",
            "abfss://box@account.dfs.core.windows.net/t/f",
        ),
    ],
)
def test_spark_keeps_the_form_of_a_uri(uri: str, root: str, path: str) -> None:
    location = location_of(uri)
    assert not location.is_local
    assert location.root == root
    assert location.spark_path("f") == path
    assert location.spark_path() == path.removesuffix("/f")


@pytest.mark.parametrize(
    "text",
    ["{}", "{}/", "{}/x/..", "file:{}", "file://{}", "file://{}/"],
)
def test_one_folder_has_one_location(text: str, tmp_path: Path) -> None:
    assert location_of(text.format(tmp_path)) == Location(str(tmp_path))


def test_a_relative_path_begins_at_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert location_of("t") == location_of(Path("t")) == Location(f"{tmp_path}/t")


def test_an_unknown_scheme_says_which_are_known() -> None:
    with pytest.raises(TableError, match=r"'foo://x/y'.*accepted: a local path") as e:
        location_of("foo://x/y")
    assert "\n" not in str(e.value)


def test_links_to_files_and_folders_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "f").write_bytes(b"12")
    table = tmp_path / "table"
    table.mkdir()
    (table / "p=1").symlink_to(tmp_path / "real", target_is_directory=True)
    (table / "g").symlink_to(tmp_path / "real" / "f")
    found = {f.path: f.size for f in Location(str(table)).list()}
    assert found == {"p=1/f": 2, "g": 2}
    assert Location(str(table)).stat("g") == FileInfo(
        "g", 2, (tmp_path / "real" / "f").stat().st_mtime_ns
    )


def test_moved_and_copied_files_are_whole(location: Location, tmp_path: Path) -> None:
    location.write("a", b"12")
    found = location.stat("a")
    location.move("a", "new/folder/b")
    assert [file.path for file in location.list()] == ["new/folder/b"]
    for _ in range(2):  # the second time it is there already
        location.copy("new/folder/b", "c")
        assert {f.path: f.size for f in location.list()} == {"new/folder/b": 2, "c": 2}
    assert location.read("c") == b"12"
    copied = location.stat("c")
    assert found is not None
    assert copied is not None
    if location.is_local:
        assert copied.mtime == found.mtime
    location.delete("new/folder/b")
    assert location.read("c") == b"12"
    assert not list(tmp_path.glob(".*.tmp"))


def test_a_file_system_without_links_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no links here")

    location = Location(str(tmp_path))
    location.write("a", b"12")
    monkeypatch.setattr("os.link", refuse)
    location.copy("a", "b")
    assert location.read("b") == b"12"
    assert location.stat("b").mtime == location.stat("a").mtime  # type: ignore[union-attr]
    assert sorted(file.path for file in location.list()) == ["a", "b"]


def test_deleting_what_is_gone_is_nothing(location: Location, tmp_path: Path) -> None:
    location.delete("nowhere/a")
    location.delete_folder("nowhere")
    location.delete_tree("nowhere")
    location.write("full/a", b"1")
    location.delete_folder("full")
    assert location.read("full/a") == b"1", "only an empty folder goes"
    assert [folder.path for folder in location.list_folders()] == ["full"]
    location.delete_tree("full")
    assert not (tmp_path / "full").exists()


@pytest.fixture
def no_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without hard links, such as exFAT."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)


@pytest.mark.usefixtures("no_links")
def test_without_hard_links_a_new_file_is_written_once(tmp_path: Path) -> None:
    location = Location(str(tmp_path))
    assert location.write_new("log/0", b"mine")
    assert not location.write_new("log/0", b"yours")
    assert location.read("log/0") == b"mine"
    location.copy("log/0", "beside/0")
    assert location.read("beside/0") == b"mine"
    assert sorted(f.path for f in location.list()) == ["beside/0", "log/0"]


def test_a_refusal_of_the_file_system_names_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = Location(str(tmp_path))
    location.write("a", b"")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    for write in (location.write, location.write_new):
        with pytest.raises(StorageError, match=r"cannot write '.*/packs/b': No space"):
            write("packs/b", b"1")
    with pytest.raises(StorageError, match=r"cannot sync '.*/a': No space"):
        location.sync(["a"])
    assert [f.path for f in location.list()] == ["a"], "nothing is left of the attempts"
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="cannot move"):
        location.move("a", "file/a")
    with pytest.raises(StorageError, match="cannot copy"):
        location.copy("a", "file/a")


def test_what_is_missing_is_no_refusal(tmp_path: Path) -> None:
    location = Location(str(tmp_path))
    for change in (location.move, location.copy):
        with pytest.raises(FileNotFoundError):
            change("nothing", "there")
    with pytest.raises(FileNotFoundError):
        location.sync(["nothing"])


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was synced, in its order."""
    done: list[str] = []
    fsync = os.fsync

    def told(descriptor: int) -> None:
        done.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", told)
    return iter([done])


def test_a_file_and_its_name_are_on_the_disk(
    tmp_path: Path, synced: Iterator[list[str]]
) -> None:
    (done,) = synced
    location = Location(str(tmp_path))
    for write in (location.write, location.write_new):
        done.clear()
        write(f"packs/{write.__name__}", b"1")
        file, folder = done
        assert is_temporary(file)
        assert folder == f"{tmp_path}/packs"
    done.clear()
    location.move("packs/write", "p=1/q=2/new")
    location.sync(["p=1/q=2/new"])
    assert done[0] == f"{tmp_path}/p=1/q=2/new"
    assert set(done[1:]) == {str(tmp_path), f"{tmp_path}/p=1", f"{tmp_path}/p=1/q=2"}


def test_a_link_to_nowhere_is_a_refusal(tmp_path: Path) -> None:
    (tmp_path / "packs").symlink_to("nowhere")
    location = Location(str(tmp_path))
    for write in (location.write, location.write_new):
        with pytest.raises(StorageError, match=r"cannot write '.*/packs/a'"):
            write("packs/a", b"")


def test_only_our_own_names_are_temporary() -> None:
    assert is_temporary("p=1/.skipindex-" + "0f" * 16 + ".tmp")
    for name in (".1234.tmp", "a.tmp", ".skipindex-zz.tmp", ".skipindex-/a.tmp"):
        assert not is_temporary(name)


def test_what_is_written_is_no_more_open_than_the_data(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "open").write_bytes(b"")
    (tmp_path / "closed").write_bytes(b"")
    (tmp_path / "open").chmod(0o644)
    (tmp_path / "closed").chmod(0o640)
    location = Location(str(tmp_path))
    old = os.umask(0o022)
    try:
        location.restrict("index", ["open"])
        location.write("index/packs/a", b"")
        assert mode(tmp_path / "index/packs/a") == 0o644
        location.restrict("index", ["open", "closed", "gone"])
        location.write("index/packs/b", b"")
        location.write_new("index/log/c", b"")
    finally:
        os.umask(old)
    assert mode(tmp_path / "index") == 0o750
    assert mode(tmp_path / "index/log") == 0o750
    assert mode(tmp_path / "index/log/c") == 0o640


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("s3://KEY:SECRET@bucket/t?scheme=http", "s3://bucket/t"),
        ("s3a://KEY@bucket/t", "s3a://bucket/t"),
        ("hdfs://user@host:8020/t", "hdfs://host:8020/t"),
        ("abfss://c@a.dfs.core.windows.net/t", "abfss://c@a.dfs.core.windows.net/t"),
        ("abfs://:SECRET@a.x.net/c/t", "abfs://a.x.net/c/t"),
        ("gs://bucket/t@1", "gs://bucket/t@1"),
        ("/data/a?b", "/data/a"),
    ],
)
def test_secrets_are_not_shown(uri: str, shown: str) -> None:
    assert without_secrets(uri) == shown
    location = Location("bucket/t", uri)
    assert location.spark_path("a b") == f"{shown}/a b"
    assert "SECRET" not in repr(location)


def test_an_error_does_not_show_a_secret() -> None:
    with pytest.raises(TableError) as raised:
        location_of("nope://KEY:SECRET@bucket/t?token=SECRET")
    assert "SECRET" not in str(raised.value)
    assert "nope://bucket/t" in str(raised.value)
    assert raised.value.__cause__ is None
