"""Folders: listing, reading and writing, as Spark and the operating system see them."""

from __future__ import annotations

import errno
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.moto_server import S3
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


@pytest.fixture(params=["local", "remote", "store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """The same, and an empty folder of a bucket."""
    if request.param == "store":
        s3: S3 = request.getfixturevalue("s3")
        return location_of(f"s3://{s3.new_bucket()}/a b/t", s3.options)
    uri = f"file://{tmp_path}" if request.param == "remote" else ""
    return Location(str(tmp_path), uri)


def paths(location: Location) -> list[str]:
    return sorted(file.path for file in location.list())


def test_the_listing_is_deep_and_relative(place: Location) -> None:
    place.write("p=1/q=2/a b.parquet", b"123")
    place.write(".hidden", b"")
    assert paths(place) == [".hidden", "p=1/q=2/a b.parquet"]
    (file,) = place.list("p=1")
    assert (file.path, file.size) == ("p=1/q=2/a b.parquet", 3)
    assert file.is_same(place.stat(file.path))
    if place.is_local:
        (path,) = Path(place.root).glob("p=1/q=2/*")
        assert file.mtime == path.stat().st_mtime_ns


def test_what_is_not_there_has_nothing(place: Location) -> None:
    place.write("folder/f", b"")
    for name in ("nowhere", "folder"):
        assert place.stat(name) is None, "a folder is no file"
    assert list(place.list("nowhere")) == place.names("nowhere") == []
    for read in (place.read, place.open_input):
        with pytest.raises(FileNotFoundError):
            read("nowhere")
    assert place.exists()
    assert not replace(place, root=place.full("nowhere")).exists()


def test_what_was_written_is_read_back(place: Location) -> None:
    place.write("a/b/c", b"first")
    place.write("a/b/c", b"second")
    assert place.read("a/b/c") == b"second"
    with place.open_input("a/b/c") as source:
        assert source.read_at(3, 2) == b"con"
        source.seek(1)
        assert source.read() == b"econd"
    place.delete("a/b/c")
    place.delete("a/b/c")
    assert place.stat("a/b/c") is None


def test_a_new_file_is_written_once(place: Location) -> None:
    assert place.write_new("log/0", b"mine")
    assert not place.write_new("log/0", b"yours")
    assert place.read("log/0") == b"mine"
    assert paths(place) == ["log/0"], "nothing is left beside it"


def test_of_many_writers_of_a_new_file_one_wins(place: Location) -> None:
    barrier = threading.Barrier(8)

    def write(i: int) -> bool:
        barrier.wait()
        return place.write_new("log/0", str(i).encode())

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(write, range(8)))
    assert sum(won) == 1
    assert place.read("log/0") == str(won.index(True)).encode()
    assert paths(place) == ["log/0"]


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    location = Location(str(tmp_path))
    (tmp_path / "target" / "full").mkdir(parents=True)
    with pytest.raises(OSError, match="target"):
        location.write("target", b"a file cannot replace a folder that is in use")
    assert list(location.list()) == []


def test_ranges_of_a_file(place: Location) -> None:
    place.write("f", bytes(range(100)))
    source = place.view("f")
    assert bytes(source.read(10, 3)) == b"\x0a\x0b\x0c"
    assert len(source) == 100
    assert bytes(source.read(98, 50)) == b"\x62\x63", "fewer where the file ends"
    assert bytes(source.read(500, 5)) == bytes(source.read(0, 0)) == b""


def test_views_of_nothing(location: Location) -> None:
    location.write("f", b"")
    source = location.view("f")
    assert (len(source), bytes(source.read(0, 10))) == (0, b"")
    with pytest.raises(FileNotFoundError):
        location.view("nowhere")


def test_names_are_as_they_are(place: Location) -> None:
    """None is a pattern or an escape."""
    names = ["k=a b/[1]*?.parquet", "k=a%20b/x y.parquet", "k=é/~#.parquet"]
    for name in names:
        place.write(name, name.encode())
    assert paths(place) == names
    assert [place.read(name) for name in names] == [name.encode() for name in names]
    assert sorted(place.names("")) == ["k=a b", "k=a%20b", "k=é"]
    for name in names:
        place.copy(name, f"copy/{name}")
        place.move(f"copy/{name}", f"moved/{name}")
        assert place.stat(f"copy/{name}") is None
        assert place.read(f"moved/{name}") == name.encode()
    place.delete_tree("moved")
    assert paths(place) == names


def test_a_file_that_is_cut_off_while_it_is_open_is_only_shorter(
    tmp_path: Path,
) -> None:
    """A mapped file would end the process here."""
    (tmp_path / "f").write_bytes(bytes(100_000))
    source = Location(str(tmp_path)).view("f")
    with (tmp_path / "f").open("r+b") as file:
        file.truncate(10)
    assert len(source) == 10
    assert bytes(source.read(90_000, 100)) == b""
    assert bytes(source.read(0, 100)) == bytes(10)


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
    "text", ["{}", "{}/", "{}/x/..", "file:{}", "file://{}", "file://{}/"]
)
def test_one_folder_has_one_location(text: str, tmp_path: Path) -> None:
    assert location_of(text.format(tmp_path)) == Location(str(tmp_path))


def test_a_relative_path_begins_at_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert location_of("t") == location_of(Path("t")) == Location(f"{tmp_path}/t")


def test_an_unknown_scheme_says_which_are_known_and_no_secret() -> None:
    with pytest.raises(TableError, match=r"'nope://b/t'.*accepted: a local path") as e:
        location_of("nope://KEY:SECRET@b/t?token=SECRET")
    assert "\n" not in str(e.value)
    assert "SECRET" not in str(e.value)
    assert e.value.__cause__ is None


def test_links_to_files_and_folders_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "f").write_bytes(b"12")
    table = tmp_path / "table"
    table.mkdir()
    (table / "p=1").symlink_to(tmp_path / "real", target_is_directory=True)
    (table / "g").symlink_to(tmp_path / "real" / "f")
    location, mtime = Location(str(table)), (tmp_path / "real" / "f").stat().st_mtime_ns
    assert {f.path: f.size for f in location.list()} == {"p=1/f": 2, "g": 2}
    assert location.stat("g") == FileInfo("g", 2, mtime)


def test_moved_and_copied_files_are_whole(place: Location) -> None:
    place.write("a", b"12")
    found = place.stat("a")
    place.move("a", "new/folder/b")
    assert paths(place) == ["new/folder/b"]
    for _ in range(2):  # the second time it is there already
        place.copy("new/folder/b", "c")
        assert {f.path: f.size for f in place.list()} == {"new/folder/b": 2, "c": 2}
    copied = place.stat("c")
    assert found is not None
    assert copied is not None
    assert copied.mtime == found.mtime or not place.is_local
    place.delete("new/folder/b")
    assert place.read("c") == b"12"
    assert paths(place) == ["c"], "nothing is left beside it"


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
    assert len({file.mtime for file in location.list()}) == 1
    assert paths(location) == ["a", "b"]


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
    assert paths(location) == ["a"], "nothing is left of the attempts"
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "packs").rmdir()
    (tmp_path / "packs").symlink_to("nowhere")
    for change, target in ((location.move, "file/a"), (location.copy, "file/a")):
        with pytest.raises(StorageError, match=f"cannot {change.__name__}"):
            change("a", target)
        with pytest.raises(FileNotFoundError):
            change("nothing", "there")
    for write in (location.write, location.write_new):
        with pytest.raises(StorageError, match=r"cannot write '.*/packs/a'"):
            write("packs/a", b"")
    with pytest.raises(FileNotFoundError):
        location.sync(["nothing"])


def test_a_file_and_its_name_are_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def told(descriptor: int) -> None:
        done.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))

    monkeypatch.setattr(os, "fsync", told)
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


def test_only_our_own_names_are_temporary() -> None:
    assert is_temporary("p=1/.skipindex-" + "0f" * 16 + ".tmp")
    for name in (".1234.tmp", "a.tmp", ".skipindex-zz.tmp", ".skipindex-/a.tmp"):
        assert not is_temporary(name)


def test_what_is_written_is_no_more_open_than_the_data(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for name, bits in (("open", 0o644), ("closed", 0o640)):
        (tmp_path / name).write_bytes(b"")
        (tmp_path / name).chmod(bits)
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
    found = [mode(tmp_path / name) for name in ("index", "index/log", "index/log/c")]
    assert found == [0o750, 0o750, 0o640]


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


def test_a_tilde_is_the_home_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert location_of("~/t").root == str(tmp_path / "t")
    assert location_of(Path("~")).root == str(tmp_path)
    for name in ("~t", "a/~/b", "file:~/t"):
        local = name.removeprefix("file:")
        assert location_of(name).root == str(Path(local).absolute())
